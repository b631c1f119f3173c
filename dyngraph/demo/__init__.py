"""The demonstration: `python -m dyngraph.demo`."""

"""Benchmarks: `python -m bench` prints one table of ratios, each measured side by side in one
process."""

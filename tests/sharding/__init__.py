"""Tensors, modules and programs on several devices: dyngraph.sharding."""

"""Operators by family; each is declared once, by `define`."""

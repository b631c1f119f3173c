"""One function by define-by-run and by function transforms, side by side: see `compare`."""

from dyngraph.comparison.compare import compare
from dyngraph.comparison.report import Comparison

__all__ = ["Comparison", "compare"]

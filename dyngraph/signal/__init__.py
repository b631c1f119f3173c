"""PyTorch's `torch.signal`: windows of signals."""

from dyngraph.signal import windows as windows

__all__ = ["windows"]

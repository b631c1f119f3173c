"""The compiled backward: see `compiled_autograd`."""

from dyngraph.compiled.toggle import compiled_autograd, is_enabled

__all__ = ["compiled_autograd", "is_enabled"]

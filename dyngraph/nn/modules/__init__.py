"""The modules, in files named as PyTorch's."""

from dyngraph.nn.modules.module import Module as Module

__all__ = ["Module"]

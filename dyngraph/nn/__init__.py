"""Neural networks: modules, and the functions they are made of."""

from dyngraph.nn import functional as functional
from dyngraph.nn.modules.module import Module as Module
from dyngraph.nn.parameter import Buffer as Buffer, Parameter as Parameter

__all__ = ["Buffer", "Module", "Parameter", "functional"]

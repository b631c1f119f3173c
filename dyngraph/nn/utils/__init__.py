"""Tools for modules and their parameters."""

from dyngraph.nn.utils import rnn as rnn

__all__ = ["rnn"]

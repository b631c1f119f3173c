"""Neural networks: the functions they are made of."""

from dyngraph.nn import functional as functional

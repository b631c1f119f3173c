"""`skip_init`: a module without its initial values."""

from __future__ import annotations

import inspect
from typing import Any

from dyngraph.nn import init
from dyngraph.nn.modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """A module that is made without drawing its initial values, which are what memory holds here:
    zeros. Raises RuntimeError for a class that is no Module, or does not take `device`.

    >>> dg.nn.utils.skip_init(dg.nn.Linear, 2, 1).weight.tolist()
    [[0.0, 0.0]]
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    with init.skipped():
        return module_cls(*args, **kwargs)

"""functionalize: PyTorch's way to a function without writes, which here every function has."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["functionalize"]


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """The function itself: arrays are immutable, so what runs is without writes and views already.

    `jax.make_jaxpr` shows it. An input that `func` writes to is written to. Raises RuntimeError
    where `remove` is neither "mutations" nor "mutations_and_views".

    >>> dg.func.functionalize(lambda x: x.mul_(2))(dg.ones(2))
    tensor([2., 2.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. "
            "Valid options are 'mutations' and 'mutations_and_views'."
        )

    @functools.wraps(func)
    def functional(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return functional

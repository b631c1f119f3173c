"""Rows of the operators in `dyngraph/ops/masked_reductions.py` and `masked_moments.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, Sample, call, spread

MASK = np.array([[True, False, True, True], [True, True, False, True]])
VALUES = spread(2, 4)


def along(*more: Any, **options: Any) -> list[Sample]:
    return [call(VALUES, *more, mask=MASK, **options)]


def filled(function: Callable[..., Any], fill: float, *, axis: Any = 1) -> Callable[..., Any]:
    """`function` along a dim of the values with `fill` where the mask is False."""
    return lambda x, *dim, mask: function(jnp.where(mask, x, fill), axis=dim[-1] if dim else None)


def over(function: Callable[..., Any]) -> Callable[..., Any]:
    """numpy's function with a `where`."""
    return lambda x, dim=None, *, mask: function(x, axis=dim, where=mask)


def normalized(x: Any, ord: float, dim: int, mask: Any) -> Any:
    x = jnp.where(mask, x, 0)
    return x / jnp.sum(jnp.abs(x) ** ord, dim, keepdims=True) ** (1 / ord)


def logaddexp(a: Any, b: Any, input_mask: Any, other_mask: Any) -> Any:
    total = jnp.where(input_mask, jnp.exp(a), 0) + jnp.where(other_mask, jnp.exp(b), 0)
    return jnp.log(total)


REFERENCES: dict[str, Callable[..., Any]] = {
    "sum": over(jnp.sum),
    "prod": over(jnp.prod),
    "amax": filled(jnp.max, -jnp.inf),
    "amin": filled(jnp.min, jnp.inf),
    "mean": over(jnp.mean),
    "median": filled(lambda x, axis: jnp.sort(x, axis)[:, 1], jnp.inf),
    "var": lambda x, dim, mask: jnp.var(x, dim, ddof=1, where=mask),
    "std": lambda x, dim, mask: jnp.std(x, dim, ddof=1, where=mask),
    "cumsum": filled(jnp.cumsum, 0),
    "cumprod": filled(jnp.cumprod, 1),
    "softmax": filled(jax.nn.softmax, -jnp.inf),
    "logsumexp": filled(jax.nn.logsumexp, -jnp.inf),
    "softmin": filled(lambda x, axis: jax.nn.softmax(-x, axis), jnp.inf),
}

ROWS: list[OpInfo] = [
    *(OpInfo(f"masked.{name}", along(1), reference) for name, reference in REFERENCES.items()),
    OpInfo(
        "masked.log_softmax",
        along(1),
        filled(jax.nn.log_softmax, -jnp.inf),
        second=False,  # JAX's own second derivative is NaN at -inf
    ),
    OpInfo("masked.sum", [call(VALUES, mask=MASK[0])], over(jnp.sum)),
    OpInfo(
        "masked.norm",
        along(3.0, 1),
        lambda x, ord, dim, mask: jnp.sum(jnp.where(mask, jnp.abs(x), 0) ** ord, dim) ** (1 / ord),
    ),
    OpInfo("masked.normalize", along(3.0, 1), normalized),
    OpInfo(
        "masked.logaddexp",
        [call(VALUES, spread(2, 4), input_mask=MASK, other_mask=MASK[::-1])],
        logaddexp,
    ),
    OpInfo("masked.argmax", along(1), filled(jnp.argmax, -jnp.inf), gradient=False),
    OpInfo("masked.argmin", along(1), filled(jnp.argmin, jnp.inf), gradient=False),
]

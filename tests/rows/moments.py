"""Rows of the operators in `dyngraph/ops/moments.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, complex_normal, normal


def moment(*, root: bool, with_mean: bool) -> Callable[..., Any]:
    function = jnp.std if root else jnp.var

    def reference(
        x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, correction: Any = None
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if correction is None:
            correction = 0 if unbiased is False else 1
        value = function(x, axis=dim, ddof=correction, keepdims=keepdim)
        return (value, jnp.mean(x, axis=dim, keepdims=keepdim)) if with_mean else value

    return reference


MOMENTS = [
    call(normal(3, 4)),
    call(normal(3, 4), 0, keepdim=True),
    call(normal(2, 3, 2), (0, 2), correction=0),
]

ROWS: list[OpInfo] = [
    OpInfo(
        "var",
        [*MOMENTS, call(normal(4), False), call(complex_normal(3, 2), 0)],
        moment(root=False, with_mean=False),
    ),
    OpInfo("std", [*MOMENTS, call(normal(3, 4), 1, False)], moment(root=True, with_mean=False)),
    OpInfo("var_mean", MOMENTS, moment(root=False, with_mean=True)),
    OpInfo("std_mean", MOMENTS[:2], moment(root=True, with_mean=True)),
    OpInfo(
        "cov",
        [
            call(normal(3, 5)),
            call(normal(2, 4), fweights=np.array([1, 2, 1, 3], np.int32), correction=0),
        ],
        lambda x, fweights=None, correction=1: jnp.cov(x, ddof=correction, fweights=fweights),
    ),
    OpInfo("corrcoef", [call(normal(3, 5))], jnp.corrcoef),
]

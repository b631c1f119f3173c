"""Rows of the operators in `dyngraph/ops/softmaxes.py`."""

from __future__ import annotations

import jax

from tests.opinfo import OpInfo, call, functional, integers, normal
from tests.references import numpy_names

ROWS: list[OpInfo] = [
    OpInfo(
        "softmax",
        [call(normal(2, 3), 1), call(normal(2, 3), dim=0), call(normal(), 0)],
        lambda x, dim: jax.nn.softmax(x, dim if x.ndim else ()),
    ),
    OpInfo(
        "log_softmax",
        [call(normal(2, 3), -1), call(normal(2, 3, 2), dim=1)],
        lambda x, dim: jax.nn.log_softmax(x, dim),
    ),
    functional("softmin", [call(normal(2, 3), 1)], lambda x, dim: jax.nn.softmax(-x, dim)),
    OpInfo(
        "logsumexp",
        [call(normal(2, 3), 1), call(normal(2, 3), (0, 1), True), call(integers(5, 3), 0)],
        numpy_names(jax.scipy.special.logsumexp),
    ),
]

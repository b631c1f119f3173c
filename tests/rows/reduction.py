"""Rows of the operators in `dyngraph/ops/reduction.py`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import dyngraph as dg
from tests.opinfo import OpInfo, booleans, call, complex_normal, integers, normal, positive
from tests.references import numpy_names

with_nan = normal(3, 4)
with_nan[1, 2] = with_nan[0, 0] = np.nan
with_zeros = positive(3, 4)
with_zeros[0, 1] = with_zeros[2, 0] = with_zeros[2, 3] = 0
REDUCED = [call(normal(2, 3)), call(normal(2, 3, 2), dim=(0, -1)), call(normal(2, 3), 1, True)]

ROWS: list[OpInfo] = [
    OpInfo(
        "sum",
        [
            *REDUCED,
            call(integers(5, 2, 3), 0),
            call(normal(2, 3), dim=[0, 1], dtype=dg.float16),
            call(complex_normal(2, 3), dim=()),
        ],
        numpy_names(jnp.sum),
        rtol=1e-3,
    ),
    OpInfo("nansum", [call(with_nan), call(with_nan, 1, True)], numpy_names(jnp.nansum)),
    OpInfo(
        "mean",
        [*REDUCED, call(integers(5, 2, 3), dtype=dg.float32), call(complex_normal(2, 3), 0)],
        numpy_names(jnp.mean),
    ),
    OpInfo("nanmean", [call(with_nan), call(with_nan, 1, True)], numpy_names(jnp.nanmean)),
    OpInfo(
        "prod",
        [
            call(positive(2, 3)),
            call(with_zeros, 1),
            call(normal(2, 3), 0, True),
            call(integers(5, 2, 3)),
        ],
        numpy_names(jnp.prod),
    ),
    OpInfo(
        "count_nonzero",
        [call(with_zeros), call(integers(2, 3, 4), 1)],
        numpy_names(jnp.count_nonzero),
        gradient=False,
    ),
    OpInfo(
        "sum_to_size",
        [call(normal(2, 3), 1, 3), call(normal(2, 2, 3), (2, 1)), call(normal(2, 3), ())],
        lambda x, *size: jax.vjp(
            lambda y: jnp.broadcast_to(y, x.shape),
            jnp.zeros(size[0] if isinstance(size[0], tuple) else size, x.dtype),
        )[1](x)[0],
    ),
    OpInfo(
        "all",
        [call(booleans(2, 3)), call(booleans(2, 3), 1, True), call(with_zeros, dim=(0, 1))],
        numpy_names(jnp.all),
        gradient=False,
    ),
    OpInfo(
        "any",
        [call(booleans(2, 3)), call(booleans(2, 3), 1, True), call(with_zeros, dim=(0, 1))],
        numpy_names(jnp.any),
        gradient=False,
    ),
]

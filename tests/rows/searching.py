"""Rows of the operators in `dyngraph/ops/searching.py`."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, integers

ROWS: list[OpInfo] = [
    OpInfo(
        "searchsorted",
        [
            call(np.array([1.0, 2.0, 4.0], np.float32), np.array([2.0, 9.0], np.float32)),
            call(
                np.array([1.0, 2.0, 4.0], np.float32),
                np.array([[2.0], [0.0]], np.float32),
                right=True,
            ),
        ],
        lambda s, v, right=False: jnp.searchsorted(s, v, side="right" if right else "left"),
        gradient=False,
    ),
    OpInfo(
        "bucketize",
        [call(np.array([1.0, 1.5], np.float32), np.array([1.0, 2.0], np.float32))],
        lambda v, s: jnp.searchsorted(s, v),
        gradient=False,
    ),
    OpInfo(
        "bincount",
        [call(np.array([1, 3, 1], np.int32), minlength=5)],
        lambda x, minlength: jnp.bincount(x, length=minlength),
        gradient=False,
    ),
    OpInfo(
        "isin",
        [call(integers(4, 5), np.array([1, 2], np.int32), invert=True)],
        lambda x, y, invert: jnp.isin(x, y, invert=invert),
        gradient=False,
    ),
    OpInfo(
        "nonzero_static",
        [call(np.array([[0, 1], [2, 3]], np.int32), size=2), call(integers(2, 4), size=5)],
        lambda x, size: jnp.argwhere(x, size=size, fill_value=-1),
        gradient=False,
    ),
    OpInfo(
        "unravel_index",
        [call(integers(24, 2, 3), (4, 3, 2))],
        lambda x, shape: tuple(i.astype(x.dtype) for i in jnp.unravel_index(x, shape)),
        gradient=False,
    ),
]

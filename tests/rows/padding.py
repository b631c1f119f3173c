"""Rows of the operators in `dyngraph/ops/padding.py`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, functional, normal


def pad(x: Any, pad: Any, mode: str = "constant", value: float = 0.0) -> Any:
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2) + [pad[i : i + 2] for i in range(0, len(pad), 2)][
        ::-1
    ]
    if mode == "constant":
        return jax.lax.pad(x, jnp.asarray(value, x.dtype), [(a, b, 0) for a, b in pairs])
    return jnp.pad(x, pairs, {"replicate": "edge", "circular": "wrap"}.get(mode, mode))


def pad_constant(x: Any, widths: Any, value: float) -> Any:
    return pad(x, widths, value=value)


ROWS: list[OpInfo] = [
    functional(
        "pad",
        [
            call(normal(2, 3), (1, 2)),
            call(normal(2, 3), (1, -2, 0, 3), value=2.0),
            call(normal(2, 3), (1, 2), "reflect"),
            call(normal(2, 3), (1, 2), "replicate"),
            call(normal(2, 3), (1, 2, 1, 0), "circular"),
        ],
        pad,
    ),
    functional(  # places taken away: an edge and a reflection still see them, a circle does not
        "pad",
        [
            call(normal(4), (-1, 2), "reflect"),
            call(normal(4), (-1, 2), "replicate"),
            call(normal(4), (-1, 2), "circular"),
        ],
        lambda x, pad, mode: x[
            np.array(
                {
                    "reflect": [1, 2, 3, 2, 1],
                    "replicate": [1, 2, 3, 3, 3],
                    "circular": [1, 2, 3, 1, 2],
                }[mode]
            )
        ],
    ),
    OpInfo("constant_pad_nd", [call(normal(2, 3), (1, -1, 0, 2), 0.5)], pad_constant),
]

"""Rows of the functions in `dyngraph/nn/from_jax.py`."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from tests.opinfo import OpInfo, call, functional, normal, positive, spread


def of_jax(name: str, *samples: Any) -> OpInfo:
    """A row whose twin is the function of `jax.nn` with that name."""
    return functional(name, samples, getattr(jax.nn, name))


ROWS: list[OpInfo] = [
    of_jax("hard_sigmoid", call(spread(5, 10) * 1.5)),
    of_jax("hard_silu", call(spread(5, 10) * 1.5)),
    of_jax("hard_swish", call(spread(5, 10) * 1.5)),
    of_jax("hard_tanh", call(spread(4, 5))),
    of_jax("identity", call(normal(3))),
    of_jax("log_sigmoid", call(normal(3))),
    of_jax("log1mexp", call(positive(3))),
    of_jax("soft_sign", call(spread(3))),
    of_jax("sparse_plus", call(spread(4, 5))),
    of_jax("sparse_sigmoid", call(spread(4, 5))),
    of_jax("squareplus", call(normal(3))),
    of_jax("swish", call(normal(3))),
    of_jax("standardize", call(normal(2, 4)), call(normal(2, 4), (0, 1), normal(1), positive(1))),
    of_jax("logsumexp", call(normal(2, 3), 1)),
    of_jax("logmeanexp", call(normal(2, 3))),
    functional(
        "dot_product_attention",
        [
            call(
                normal(1, 2, 2, 3),
                normal(1, 3, 2, 3),
                normal(1, 3, 2, 3),
                None,
                np.array([[[[True, False, True], [True, True, True]]]]),
            )
        ],
        jax.nn.dot_product_attention,
        no_differences="jax.nn computes the softmax in float32",
        no_half={"float16": "F16_F16_F32"},  # a precision that XLA lacks on CPU
    ),
]

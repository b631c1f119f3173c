"""Rows of the operators in `dyngraph/ops/sequence_losses.py`."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, functional, normal
from tests.references import reduced


def alignments(times: int, classes: int, target: list[int]) -> np.ndarray:
    """Every sequence of labels and blanks (0) that says `target`."""
    return np.array(
        [
            path
            for path in itertools.product(range(classes), repeat=times)
            if [label for label, _ in itertools.groupby(path) if label] == target
        ]
    )


def ctc(log_p: Any, targets: Any, steps: Any, sizes: Any, reduction: str = "mean") -> Any:
    """The sum over all alignments, one by one."""
    losses = []
    for n, (size, count) in enumerate(zip(sizes, steps, strict=True)):
        paths = alignments(count, log_p.shape[2], np.asarray(targets[n])[:size].tolist())
        chosen = log_p[np.arange(count), n, paths].sum(1)
        # PyTorch's gradient is one of scores before the log_softmax: see the operator.
        shares = jnp.exp(log_p[:count, n])
        zero = (shares - jax.lax.stop_gradient(shares)).sum()
        loss = zero - jax.nn.logsumexp(chosen)
        losses.append(loss / size if reduction == "mean" else loss)
    return reduced(jnp.stack(losses), reduction)


def log_probabilities(*shape: int) -> np.ndarray:
    return np.asarray(jax.nn.log_softmax(normal(*shape), -1))


TARGETS = np.array([[1, 1], [2, 0]], np.int32)

ROWS: list[OpInfo] = [
    functional(
        "ctc_loss",
        [
            call(log_probabilities(4, 2, 3), TARGETS, (4, 3), (2, 1), reduction="none"),
            call(log_probabilities(4, 2, 3), TARGETS, (4, 4), (2, 1)),
        ],
        ctc,
        # A second derivative means nothing where the first is not the value's own.
        second=False,
        no_differences="the gradient is one of scores before the log_softmax: see the operator",
    ),
]

"""Losses of sequences that are not aligned with their targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import dtypes
from dyngraph.ops.arguments import require_float, widened
from dyngraph.ops.host_values import array_of, on_host, outside
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor

_NEVER = -1e30  # the logarithm of 0: -inf would make NaN of the gradients


def _label_scores(log_probs: Any, labels: Any) -> Any:
    """(T, N, L): the log-probability of each label of each sequence at each time."""
    return jnp.take_along_axis(log_probs, labels[None], 2)


def _ctc(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    *,
    blank: int,
    reduction: str,
    zero_infinity: bool,
) -> Any:
    """`log_probs` (T, N, C), `targets` (N, S), lengths (N)."""
    # Graves et al. 2006, https://doi.org/10.1145/1143844.1143891, section 4.1, with logarithms.
    scores = widened(log_probs)
    times, count, _ = scores.shape
    width = 2 * targets.shape[1] + 1
    labels = jnp.full((count, width), blank, targets.dtype).at[:, 1::2].set(targets)
    known = jnp.where((labels >= 0) & (labels < scores.shape[2]), labels, 0)
    emitted = jnp.maximum(_label_scores(scores, known), _NEVER)
    before = jnp.concatenate([jnp.full((count, 2), -1, labels.dtype), labels[:, :-2]], 1)
    skips = (labels != blank) & (labels != before)
    never = jnp.full((count, width), _NEVER, scores.dtype)

    def forward(alpha: Any, now: Any) -> tuple[Any, Any]:
        one = jnp.pad(alpha, ((0, 0), (1, 0)), constant_values=_NEVER)[:, :width]
        two = jnp.pad(alpha, ((0, 0), (2, 0)), constant_values=_NEVER)[:, :width]
        ways = jnp.stack([alpha, one, jnp.where(skips, two, _NEVER)])
        alpha = jnp.maximum(jax.nn.logsumexp(ways, 0) + now, _NEVER)
        return alpha, alpha

    # A start in which one step reaches the first blank and the first label alone.
    start = never.at[:, 0].set(0)
    first = jnp.arange(width) < 2
    alpha = jnp.where(first, emitted[0], _NEVER) if times else start
    _, rest = jax.lax.scan(forward, alpha, emitted[1:])
    alphas = jnp.concatenate([start[None], alpha[None], rest]) if times else start[None]
    last = jnp.take_along_axis(alphas, input_lengths[None, :, None], 0)[0]
    ends = 2 * target_lengths
    blank_end = jnp.take_along_axis(last, ends[:, None], 1)[:, 0]
    label_end = jnp.take_along_axis(last, jnp.maximum(ends - 1, 0)[:, None], 1)[:, 0]
    label_end = jnp.where(target_lengths > 0, label_end, _NEVER)
    log_likelihood = jnp.logaddexp(blank_end, label_end)
    possible = log_likelihood > _NEVER / 2
    loss = -jnp.where(possible, log_likelihood, -0.0 if zero_infinity else -jnp.inf)
    # PyTorch's gradient is that of scores before their log_softmax, and of log-probabilities only
    # because that adds up: it has a term exp(log_probs) more. Added here with the value 0.
    shares = jnp.exp(scores)
    live = (jnp.arange(times)[:, None] < input_lengths) & possible
    extra = jnp.where(live[:, :, None], shares - jax.lax.stop_gradient(shares), 0)
    loss = loss + extra.sum((0, 2))
    if reduction == "mean":
        return (loss / jnp.maximum(target_lengths, 1)).mean().astype(log_probs.dtype)
    return (loss.sum() if reduction == "sum" else loss).astype(log_probs.dtype)


_ctc_loss = define(
    "ctc_loss",
    _ctc,
    signature=(
        "log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity"
    ),
    targets=None,
    input_lengths=None,
    target_lengths=None,
)


def _lengths(where: str, value: Any, count: int, longest: int | None) -> np.ndarray:
    lengths = on_host("ctc_loss", value).reshape(-1)
    if lengths.dtype.kind not in "iu":
        raise RuntimeError(f"{where} must be integral, got {lengths.dtype}")
    if lengths.shape != (count,):
        raise RuntimeError(
            f"{where} must be of size batch_size: expected {count} lengths, got {lengths.size}"
        )
    if lengths.size and (lengths.min() < 0 or (longest is not None and lengths.max() > longest)):
        raise RuntimeError(
            f"Expected {where} to have values between 0 and {longest}, but got {lengths.tolist()}"
        )
    return lengths


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative log-likelihood of label sequences, whatever their alignment in time.

    `log_probs` is (T, N, C) or (T, C), from a `log_softmax`; `targets` is (N, S), or all labels one
    after the other. A mean first divides each sequence's loss by its target's length.
    Targets that can't be aligned have an infinite loss, or with `zero_infinity` 0, and the gradient
    0, where PyTorch has NaN for the former. Graves et al. 2006,
    https://doi.org/10.1145/1143844.1143891. The gradient is that of scores before the
    `log_softmax`, as in PyTorch. Raises RuntimeError where lengths do not fit, ValueError
    for another `reduction`.

    >>> log_p = dg.log_softmax(dg.zeros(2, 1, 2), 2)
    >>> dg.nn.functional.ctc_loss(log_p, dg.tensor([[1]]), [2], [1])
    tensor(0.2877)
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(
            f"{reduction} is not a valid value for reduction: expected 'none', 'mean' or 'sum'"
        )
    scores = array_of(log_probs)
    require_float("ctc_loss", scores)
    if scores.ndim not in (2, 3):
        raise RuntimeError(
            f"log_probs must be (time, batch, classes) or (time, classes), got {list(scores.shape)}"
        )
    batched = scores.ndim == 3
    if not batched:
        log_probs = log_probs.unsqueeze(1)  # type: ignore[attr-defined]
        scores = array_of(log_probs)
    times, count, classes = scores.shape
    if not 0 <= blank < classes:
        raise RuntimeError(f"blank must be in label range: got {blank} for {classes} classes")
    sizes = _lengths("target_lengths", target_lengths, count, None)
    steps = _lengths("input_lengths", input_lengths, count, times)
    labels = array_of(targets)
    if labels.ndim == 1:
        if labels.shape[0] != sizes.sum() and batched:
            raise RuntimeError(
                f"Expected tensor to have size {int(sizes.sum())} at dimension 0, but got size "
                f"{labels.shape[0]} for argument #2 'targets'"
            )
        longest = int(sizes.max(initial=0))
        rows = np.zeros((count, longest), labels.dtype)
        flat = on_host("ctc_loss", targets)
        for row, size, end in zip(rows, sizes, np.cumsum(sizes), strict=True):
            row[:size] = flat[end - size : end]
        padded: Any = rows
    elif labels.ndim == 2 and labels.shape[0] == count and sizes.max(initial=0) <= labels.shape[1]:
        padded = targets
    else:
        raise RuntimeError(
            f"Expected targets ({count}, longest target length {int(sizes.max(initial=0))}), got "
            f"{list(labels.shape)}"
        )
    held = on_host("ctc_loss", padded)
    held = held[np.arange(held.shape[1]) < sizes[:, None]]
    bad = outside(held, 0, classes)
    if bad is not None:
        raise RuntimeError(f"target {bad} is no class: there are {classes} classes, from 0")
    index = dtypes.default_int().dtype
    loss = _ctc_loss(
        log_probs,
        padded,
        steps.astype(index),
        sizes.astype(index),
        blank,
        reduction,
        bool(zero_infinity),
    )
    if not batched and reduction == "none":
        return loss.squeeze(0)  # type: ignore[attr-defined]
    return loss


__all__: list[str] = []  # these are functions of nn.functional
METHODS: tuple[str, ...] = ()
"""The functions of this file that are methods of Tensor too."""

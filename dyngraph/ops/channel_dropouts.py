"""The dropouts of nn.functional but for `dropout` itself: of whole channels, and for SELU."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from dyngraph.ops import dropout_forms as forms
from dyngraph.ops.dropouts import check_probability
from dyngraph.tensor import Tensor


def _run(
    form: Callable[..., Tensor],
    written: Callable[..., Tensor],
    input: Tensor,
    p: float,
    training: bool,
    inplace: bool,
) -> Tensor:
    check_probability(p)
    return (written if inplace else form)(input, p, training)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`dyngraph.alpha_dropout` with defaults; `inplace` writes to the input.

    Raises ValueError for a `p` that is no probability.

    >>> dg.nn.functional.alpha_dropout(dg.ones(2))
    tensor([1., 1.])
    """
    return _run(forms.alpha_dropout, forms.alpha_dropout_, input, p, training, inplace)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`dyngraph.feature_alpha_dropout` with defaults; `inplace` writes to the input.

    Raises ValueError for a `p` that is no probability.

    >>> dg.nn.functional.feature_alpha_dropout(dg.ones(1, 2))
    tensor([[1., 1.]])
    """
    return _run(
        forms.feature_alpha_dropout, forms.feature_alpha_dropout_, input, p, training, inplace
    )


def _drop_channels(
    input: Tensor, p: float, training: bool, inplace: bool, *, batched: bool
) -> Tensor:
    """Drops slices `input[i, j]`, or `input[j]` where there is no batch."""
    if batched:
        return _run(forms.feature_dropout, forms.feature_dropout_, input, p, training, inplace)
    check_probability(p)
    if inplace:
        forms.feature_dropout_(input.unsqueeze(0), p, training)
        return input
    return forms.feature_dropout(input.unsqueeze(0), p, training).squeeze(0)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes whole channels of (batch, channels, length), or without the batch.

    Each with probability `p`, while the others are scaled by 1 / (1 - p); `inplace` writes to the
    input. Tompson et al. 2015, https://arxiv.org/abs/1411.4280. Raises RuntimeError for other
    numbers of dims.

    >>> dg.nn.functional.dropout1d(dg.ones(1, 2), 1.0)
    tensor([[0., 0.]])
    """
    check_probability(p)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. It drops "
            "channels of inputs with one more dim, and an optional batch dim; use dropout() to "
            "drop elements."
        )
    return _drop_channels(input, p, training, inplace, batched=input.ndim == 3)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes whole channels of (batch, channels, height, width), as `dropout1d` does.

    Three dims are taken for (batch, channels, length), with a UserWarning, as PyTorch takes them.

    >>> dg.nn.functional.dropout2d(dg.ones(1, 1, 1, 2), 1.0)
    tensor([[[[0., 0.]]]])
    """
    check_probability(p)
    if input.ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input, which is interpreted as shape (N, C, L). Use "
            "dropout1d for that, or add a batch dim.",
            stacklevel=2,
        )
    elif input.ndim != 4:
        _warn_of_dims("dropout2d", input.ndim, "3D or 4D")
    return _drop_channels(input, p, training, inplace, batched=True)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes whole channels of (batch, channels, depth, height, width), as `dropout1d` does.

    Four dims are (channels, depth, height, width); other numbers, with a UserWarning, are taken in
    the same way, as PyTorch takes them.

    >>> dg.nn.functional.dropout3d(dg.ones(1, 1, 1, 2), 1.0)
    tensor([[[[0., 0.]]]])
    """
    check_probability(p)
    if input.ndim not in (4, 5):
        _warn_of_dims("dropout3d", input.ndim, "4D or 5D")
    return _drop_channels(input, p, training, inplace, batched=input.ndim == 5)


def _warn_of_dims(where: str, count: int, expected: str) -> None:
    warnings.warn(
        f"{where}: Received a {count}-D input, which is deprecated: it is for {expected} inputs. "
        "Use dropout() instead.",
        stacklevel=3,
    )


__all__: list[str] = []  # these are functions of nn.functional
METHODS: tuple[str, ...] = ()

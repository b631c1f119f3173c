"""What the rows can't say of convolutions and pools: errors, edges recorded from PyTorch 2.13."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg
from dyngraph.nn import functional as F

X = dg.ones(1, 2, 5, 6)

ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "channels": (
        lambda: F.conv2d(X, dg.ones(3, 1, 2, 2)),
        RuntimeError,
        "to have 1 channels, but got 2 channels instead",
    ),
    "kernel too large": (
        lambda: F.conv2d(X, dg.ones(3, 2, 9, 9)),
        RuntimeError,
        "Kernel size can't be greater than actual input size",
    ),
    "bias": (
        lambda: F.conv2d(X, dg.ones(3, 2, 2, 2), dg.ones(2)),
        RuntimeError,
        "expected bias to be 1-dimensional with 3 elements",
    ),
    "dtype": (
        lambda: F.conv2d(X, dg.ones(3, 2, 2, 2).half()),
        RuntimeError,
        "should be the same. Convert them to one dtype",
    ),
    "same and stride": (
        lambda: F.conv2d(X, dg.ones(3, 2, 2, 2), padding="same", stride=2),
        RuntimeError,
        "not supported for strided convolutions",
    ),
    "stride": (
        lambda: F.conv2d(X, dg.ones(3, 2, 2, 2), stride=0),
        RuntimeError,
        "non-positive stride is not supported",
    ),
    "stride of three": (
        lambda: F.conv2d(X, dg.ones(3, 2, 2, 2), stride=(1, 2, 3)),
        RuntimeError,
        "a single integer value or a list of 2 values",
    ),
    "padding": (
        lambda: F.conv2d(X, dg.ones(3, 2, 2, 2), padding="full"),
        RuntimeError,
        "Expected 'valid', 'same' or numbers",
    ),
    "groups": (
        lambda: F.conv2d(X, dg.ones(3, 1, 2, 2), groups=2),
        RuntimeError,
        "to be divisible by groups=2",
    ),
    "output padding": (
        lambda: F.conv_transpose2d(X, dg.ones(2, 2, 2, 2), output_padding=1),
        RuntimeError,
        "output padding must be smaller than either stride or dilation",
    ),
    "pool padding": (
        lambda: F.max_pool2d(X, 2, padding=2),
        RuntimeError,
        "at most half of effective kernel size",
    ),
    "pool dims": (lambda: F.max_pool2d(dg.ones(4), 2), RuntimeError, "Expected 3D or 4D input"),
    "pool size": (lambda: F.avg_pool2d(X, 9), RuntimeError, "Output size is too small"),
    "adaptive": (
        lambda: F.adaptive_avg_pool2d(X, (1, 2, 3)),
        RuntimeError,
        "output_size must have 2 elements",
    ),
    "unpool": (
        lambda: F.max_unpool1d(dg.ones(1, 1), dg.tensor([[9]]), 2),
        RuntimeError,
        "Found an invalid max index: 9",
    ),
    "unpool size": (
        lambda: F.max_unpool1d(dg.ones(1, 1), dg.tensor([[1]]), 2, output_size=(9,)),
        ValueError,
        "invalid output_size",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_wrong_arguments_raise(case: str) -> None:
    call, error, message = ERRORS[case]
    with pytest.raises(error, match=message):
        call()


def test_convolution_of_an_empty_batch_is_empty() -> None:
    assert F.conv2d(X[:0], dg.ones(3, 2, 2, 2)).shape == (0, 3, 4, 5)


def test_convolution_of_bfloat16_stays_bfloat16() -> None:
    out = F.conv1d(dg.ones(1, 1, 3).bfloat16(), dg.ones(1, 1, 2).bfloat16())
    assert out.dtype == jnp.bfloat16
    assert out.tolist() == [[[2.0, 2.0]]]


def test_gradient_of_equal_maxima_goes_to_the_first() -> None:
    x = dg.zeros(1, 2, 2, requires_grad=True)
    F.max_pool2d(x, 2).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[[1.0, 0.0], [0.0, 0.0]]]


def test_maximum_of_a_window_with_nan_is_nan() -> None:
    out = F.max_pool1d(dg.tensor([[1.0, float("nan"), 2.0, 3.0]]), 2)
    assert np.array_equal(np.asarray(out), [[np.nan, 3.0]], equal_nan=True)


def test_max_pool_returns_flat_positions() -> None:
    x = dg.tensor([[[0.0, 1.0], [3.0, 2.0]]])
    values, places = F.max_pool2d(x, 2, return_indices=True)
    assert values.tolist() == [[[3.0]]]
    assert places.tolist() == [[[2]]]


def test_window_that_is_cut_off_counts_its_own_elements() -> None:
    x = dg.tensor([[1.0, 2.0, 3.0]])
    assert F.avg_pool1d(x, 2, ceil_mode=True).tolist() == [[1.5, 3.0]]


def test_divisor_override_divides_every_window() -> None:
    assert F.avg_pool2d(dg.ones(1, 2, 2), 2, divisor_override=8).item() == 0.5

"""What the rows can't say of resizing and patches: errors, values recorded from PyTorch 2.13."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.nn import functional as F

X = dg.ones(1, 2, 5, 6)

ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "mode for dims": (
        lambda: F.interpolate(X, (3, 4), mode="linear"),
        NotImplementedError,
        "Got 4D input, but linear mode needs 3D input",
    ),
    "size and factor": (
        lambda: F.interpolate(X, (3, 4), 2.0),
        ValueError,
        "only one of size or scale_factor",
    ),
    "no size": (lambda: F.interpolate(X), ValueError, "either size or scale_factor"),
    "corners": (
        lambda: F.interpolate(X, (3, 4), align_corners=True),
        ValueError,
        "align_corners option can only be set",
    ),
    "antialias": (
        lambda: F.interpolate(X, (3, 4), antialias=True),
        ValueError,
        "restricted to bilinear and bicubic modes",
    ),
    "size length": (
        lambda: F.interpolate(X, (3, 4, 5)),
        ValueError,
        "same number of spatial dimensions",
    ),
    "grid mode": (
        lambda: F.grid_sample(X, dg.ones(1, 1, 1, 2), "linear"),
        ValueError,
        "expected mode to be 'bilinear', 'nearest' or 'bicubic'",
    ),
    "grid shape": (
        lambda: F.grid_sample(X, dg.ones(1, 1, 1, 3)),
        RuntimeError,
        r"expected input \(N, C, H, W\) and grid \(N, \*out, 2\)",
    ),
    "affine": (
        lambda: F.affine_grid(dg.ones(1, 3, 3), (1, 1, 2, 2)),
        ValueError,
        "Expected a batch of 2D affine matrices of shape 1x2x3",
    ),
    "pixel_shuffle": (
        lambda: F.pixel_shuffle(X, 2),
        RuntimeError,
        "divisible by the square of upscale_factor",
    ),
    "channel_shuffle": (
        lambda: F.channel_shuffle(X, 3),
        RuntimeError,
        "Number of channels must be divisible by groups",
    ),
    "unfold": (lambda: F.unfold(X, 9), RuntimeError, "no block fits"),
    "fold": (
        lambda: F.fold(dg.ones(1, 3, 4), (4, 5), 2),
        RuntimeError,
        r"Expected input \(batch, channels \* 4, 12\)",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_wrong_arguments_raise(case: str) -> None:
    call, error, message = ERRORS[case]
    with pytest.raises(error, match=message):
        call()


# Recorded from torch.nn.functional.interpolate(arange(4.).reshape(1, 1, 2, 2), ...) in 2.13.
BICUBIC = {
    "areas": (
        dict(size=(2, 3)),
        [[-0.086806, 0.5, 1.086805], [1.913195, 2.5, 3.086806]],
    ),
    "corners": (dict(size=(2, 3), align_corners=True), [[0.0, 0.5, 1.0], [2.0, 2.5, 3.0]]),
    "smoothed": (dict(size=(1, 2), antialias=True), [[1.0, 2.0]]),
}


@pytest.mark.parametrize("case", BICUBIC)
def test_bicubic_values_are_pytorchs(case: str) -> None:
    options, expected = BICUBIC[case]
    x = dg.arange(4.0).reshape(1, 1, 2, 2)
    out = F.interpolate(x, mode="bicubic", **options)
    np.testing.assert_allclose(np.asarray(out)[0, 0], expected, rtol=1e-5, atol=1e-6)


def test_dim_that_keeps_its_size_is_copied_whatever_the_factor() -> None:
    x = dg.tensor([[[0.0, 1.0, 4.0]]])
    assert F.interpolate(x, scale_factor=1.2, mode="linear").tolist() == x.tolist()


def test_bicubic_grid_sample_is_pytorchs() -> None:
    x = dg.arange(4.0).reshape(1, 1, 2, 2)
    grid = dg.tensor([[[[0.0, 0.5], [-0.3, 0.2]]]])
    out = F.grid_sample(x, grid, "bicubic", "border", align_corners=False)
    np.testing.assert_allclose(np.asarray(out).ravel(), [2.5, 1.618002], rtol=1e-5)

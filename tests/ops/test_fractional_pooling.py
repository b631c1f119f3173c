"""Fractional pooling: where its windows are drawn, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

import dyngraph as dg

F = dg.nn.functional


def test_ratio_is_a_share_of_the_sizes() -> None:
    x = dg.ones(2, 3, 8, 6)
    assert F.fractional_max_pool2d(x, 2, output_ratio=(0.5, 0.7)).shape == (2, 3, 4, 4)
    assert F.fractional_max_pool3d(dg.ones(1, 4, 8, 6), 2, output_ratio=0.5).shape == (1, 2, 4, 3)


def test_equal_seeds_draw_the_same_windows() -> None:
    x = dg.arange(1936.0).reshape(16, 11, 11)
    draws = []
    for value in (5, 5, 6):
        dg.manual_seed(value)
        draws.append(F.fractional_max_pool2d(x, 2, 5).tolist())
    assert draws[0] == draws[1] != draws[2]


def test_positions_are_those_of_the_values() -> None:
    x = dg.randn(2, 3, 7, 5)
    values, places = F.fractional_max_pool2d_with_indices(x, 2, (3, 2))
    found = x.flatten(2).gather(2, places.flatten(2)).reshape(2, 3, 3, 2)
    assert values.tolist() == found.tolist()
    assert F.fractional_max_pool2d(x, 2, (3, 2), return_indices=True)[1].shape == places.shape


def test_windows_of_given_draws_are_those_of_torch() -> None:
    """Values of torch 2.13 for the draws 0.3 (width) and 0.8 (height)."""
    x = dg.arange(48.0).reshape(1, 6, 8)
    draws = dg.tensor([[[0.3, 0.8]]])
    y = F.fractional_max_pool2d(x, 2, (3, 4), _random_samples=draws)
    assert y.tolist() == [[[9, 11, 13, 15], [25, 27, 29, 31], [41, 43, 45, 47]]]


def test_missing_size_raises() -> None:
    with pytest.raises(ValueError, match="either an output_size or an output_ratio"):
        F.fractional_max_pool2d(dg.ones(1, 4, 4), 2)


@pytest.mark.parametrize(
    ("shape", "arguments", "message"),
    [
        ((1, 4, 4), (3, 3), "pool height 3 too large relative to input height 4"),
        ((1, 4, 4), ((2, 2, 2), 1), "kernel_size must either be a single number or a tuple of 2"),
        ((1, 4, 4), (2, (1, 1, 1)), "output_size must either be a single number or a tuple of 2"),
        ((1, 4, 4), (2, 0), "kernel_size and output_size must be positive"),
        ((4, 4), (2, 2), "Expected 3D or 4D tensor"),
        ((1, 0, 4), (2, 2), "non-zero size for non-batch dimensions"),
    ],
)
def test_windows_that_do_not_fit_raise(
    shape: tuple[int, ...], arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(RuntimeError, match=message):
        F.fractional_max_pool2d(dg.ones(shape), *arguments)


def test_draws_of_another_shape_raise() -> None:
    with pytest.raises(RuntimeError, match="Expect _random_samples of shape"):
        F.fractional_max_pool2d(dg.ones(1, 4, 4), 2, 2, _random_samples=dg.ones(1, 2, 2))

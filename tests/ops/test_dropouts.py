"""Dropout of elements and channels, and draws of categories: what their masks and gradients are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg

F = dg.nn.functional
# What SELU tends to far below 0: minus its scale times its alpha.
SATURATION = -1.7580993408473766
CHANNELS: dict[str, tuple[Callable[..., dg.Tensor], tuple[int, ...], int]] = {
    "feature_dropout": (lambda x, p: dg.feature_dropout(x, p, True), (6, 5, 3), 2),
    "feature_alpha_dropout": (lambda x, p: F.feature_alpha_dropout(x, p, True), (6, 5, 3), 2),
    "dropout1d": (F.dropout1d, (6, 5, 3), 2),
    "dropout1d without a batch": (F.dropout1d, (30, 3), 1),
    "dropout2d": (F.dropout2d, (6, 5, 2, 3), 2),
    "dropout3d": (F.dropout3d, (6, 5, 2, 1, 3), 2),
    "dropout3d without a batch": (F.dropout3d, (30, 2, 1, 3), 1),
}
WITH_DEFAULTS = (
    "alpha_dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
)
SHAPES = {"dropout1d": (6, 3, 2), "dropout2d": (6, 3, 2, 1), "dropout3d": (6, 3, 2, 1, 1)}
every_channel = pytest.mark.parametrize(
    ("function", "shape", "lead"), CHANNELS.values(), ids=CHANNELS
)
every_default = pytest.mark.parametrize("name", WITH_DEFAULTS)


@pytest.fixture(autouse=True)
def seed() -> None:
    dg.manual_seed(0)


def ones(name: str, **options: Any) -> dg.Tensor:
    return dg.ones(SHAPES.get(name, (6, 3)), **options)


def alpha_values(p: float) -> tuple[float, float]:
    """What alpha dropout makes of a 1 that it drops, and of one that it keeps."""
    scale = 1 / math.sqrt((SATURATION**2 * p + 1) * (1 - p))
    shift = -scale * p * SATURATION
    return scale * SATURATION + shift, scale + shift


# Masks


@every_channel
def test_channels_are_dropped_as_a_whole(
    function: Callable[..., dg.Tensor], shape: tuple[int, ...], lead: int
) -> None:
    rows = function(dg.ones(shape), 0.5).numpy().reshape(math.prod(shape[:lead]), -1)
    assert (rows == rows[:, :1]).all()
    assert len(np.unique(rows)) == 2


@pytest.mark.parametrize("name", ["dropout1d", "dropout2d", "dropout3d"])
def test_kept_channels_are_scaled(name: str) -> None:
    assert set(getattr(F, name)(ones(name), 0.75).flatten().tolist()) == {0.0, 4.0}


@pytest.mark.parametrize("name", ["alpha_dropout", "feature_alpha_dropout"])
def test_alpha_dropout_saturates_what_it_drops(name: str) -> None:
    values = np.unique(getattr(F, name)(dg.ones(20, 10), 0.3, True).numpy())
    np.testing.assert_allclose(values, alpha_values(0.3), rtol=1e-5)


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    y = F.alpha_dropout(dg.randn(100_000), 0.3, True)
    assert abs(float(y.mean())) < 0.02 and abs(float(y.std()) - 1) < 0.02


def test_share_of_dropped_channels_is_the_probability() -> None:
    y = dg.feature_dropout(dg.ones(100, 100), 0.2, True)
    assert abs(float((y == 0).float().mean()) - 0.2) < 0.02


@every_default
def test_equal_seeds_drop_the_same(name: str) -> None:
    first = getattr(F, name)(ones(name), 0.5, True).tolist()
    dg.manual_seed(0)
    assert getattr(F, name)(ones(name), 0.5, True).tolist() == first
    assert getattr(F, name)(ones(name), 0.5, True).tolist() != first


# Where nothing is drawn


@every_default
def test_without_training_nothing_changes(name: str) -> None:
    x = ones(name)
    assert getattr(F, name)(x, 0.5, False).tolist() == x.tolist()
    assert getattr(F, name)(x, 0.0, True).tolist() == x.tolist()


@every_default
def test_probability_of_one_leaves_zeros(name: str) -> None:
    x = ones(name, requires_grad=True)
    y = getattr(F, name)(x, 1.0, True)
    y.sum().backward()
    assert x.grad is not None
    assert not y.any() and not x.grad.any()


# Gradients


@every_channel
def test_gradient_is_that_of_the_mask(
    function: Callable[..., dg.Tensor], shape: tuple[int, ...], lead: int
) -> None:
    x = dg.randn(shape, requires_grad=True)
    dg.manual_seed(1)
    y = function(x, 0.4)
    dg.manual_seed(1)
    slope = function(dg.ones(shape), 0.4) - function_at_zero(function, shape)
    y.sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), slope.numpy(), rtol=1e-5, atol=1e-6)


def function_at_zero(function: Callable[..., dg.Tensor], shape: tuple[int, ...]) -> dg.Tensor:
    dg.manual_seed(1)
    return function(dg.zeros(shape), 0.4)


def test_gradient_of_alpha_dropout_is_its_scale_where_kept() -> None:
    x = dg.ones(50, requires_grad=True)
    y = F.alpha_dropout(x, 0.3, True)
    y.sum().backward()
    dropped, kept = alpha_values(0.3)
    scale = (kept - dropped) / (1 - SATURATION)
    assert x.grad is not None
    expected = np.where(y.detach().numpy() > 0, scale, 0)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5)


# In place


@every_default
def test_inplace_writes_what_the_function_gives(name: str) -> None:
    expected = getattr(F, name)(ones(name), 0.5, True).tolist()
    dg.manual_seed(0)
    x = ones(name)
    assert getattr(F, name)(x, 0.5, True, inplace=True) is x
    assert x.tolist() == expected and x._version == 1


@pytest.mark.parametrize("name", ["alpha_dropout", "feature_alpha_dropout", "feature_dropout"])
def test_form_of_the_package_writes_to_the_tensor(name: str) -> None:
    expected = getattr(dg, name)(dg.ones(6, 3), 0.5, True).tolist()
    dg.manual_seed(0)
    x = dg.ones(6, 3)
    assert getattr(dg, f"{name}_")(x, 0.5, True) is x
    assert x.tolist() == expected


def test_dropout1d_in_place_without_a_batch() -> None:
    x = dg.ones(30, 2)
    assert F.dropout1d(x, 0.5, True, inplace=True) is x
    assert x.shape == (30, 2) and set(x.flatten().tolist()) == {0.0, 2.0}


# Refusals


@every_default
def test_number_that_is_no_probability_raises(name: str) -> None:
    with pytest.raises(ValueError, match=r"has to be between 0 and 1, but got 1\.5"):
        getattr(F, name)(ones(name), 1.5)


def test_number_that_is_no_probability_raises_in_the_package() -> None:
    with pytest.raises(RuntimeError, match=r"has to be between 0 and 1, but got -0\.5"):
        dg.alpha_dropout(dg.ones(2), -0.5, True)


def test_feature_dropout_of_one_dim_raises() -> None:
    with pytest.raises(RuntimeError, match="at least 2 dimensions in the input, got 1"):
        dg.feature_dropout(dg.ones(2), 0.5, True)


def test_dropout1d_of_one_dim_raises() -> None:
    with pytest.raises(RuntimeError, match="Expected 2D or 3D input, but received a 1D input"):
        F.dropout1d(dg.ones(2))


def test_alpha_dropout_of_integers_raises() -> None:
    with pytest.raises(RuntimeError, match=r"Convert the input by \.float"):
        dg.alpha_dropout(dg.tensor([1, 2]), 0.5, True)


def test_dropout2d_of_three_dims_warns() -> None:
    with pytest.warns(UserWarning, match="interpreted as shape"):
        assert F.dropout2d(dg.ones(6, 5, 3), 1.0).shape == (6, 5, 3)


# Categories


def test_gumbel_softmax_gives_shares() -> None:
    y = F.gumbel_softmax(dg.randn(4, 3), tau=0.5, dim=0)
    np.testing.assert_allclose(y.sum(0).numpy(), np.ones(3), rtol=1e-5)
    assert bool((y > 0).all())


def test_hard_gumbel_softmax_draws_each_category_by_its_share() -> None:
    logits = dg.tensor([0.0, 1.0, 2.0])
    y = F.gumbel_softmax(logits.expand(20_000, 3), hard=True)
    assert set(y.flatten().round().tolist()) == {0.0, 1.0}
    np.testing.assert_allclose(y.mean(0).numpy(), logits.softmax(0).numpy(), atol=0.02)


def test_hard_gumbel_softmax_has_the_gradient_of_the_shares() -> None:
    grads = []
    for hard in (False, True):
        dg.manual_seed(0)
        logits = dg.tensor([0.3, -0.2, 0.5], requires_grad=True)
        F.gumbel_softmax(logits, hard=hard)[1].backward()
        assert logits.grad is not None
        grads.append(logits.grad.tolist())
    assert grads[0] == grads[1]


def test_gumbel_softmax_of_integers_raises() -> None:
    with pytest.raises(RuntimeError, match=r"Convert the input by \.float"):
        F.gumbel_softmax(dg.tensor([1, 2]))

"""Initial values: bounds, moments and shapes of PyTorch's formulas, by layer and by function."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph import nn
from dyngraph.nn import init


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    with dg.random.fork_rng():
        dg.manual_seed(0)
        yield


def check_uniform(tensor: Any, bound: float) -> None:
    """Whether draws fill [-bound, bound): 800 of them, so that each check errs by chance less than
    once in a thousand seeds."""
    array = tensor.detach().numpy()
    assert array.size >= 600 and np.abs(array).max() < bound
    assert np.abs(array).max() > 0.98 * bound
    assert array.std() == pytest.approx(bound / math.sqrt(3), rel=0.1)


def check_normal(tensor: Any, std: float) -> None:
    array = tensor.detach().numpy()
    assert array.mean() == pytest.approx(0, abs=0.15 * std)
    assert array.std() == pytest.approx(std, rel=0.1)


SHAPE = (20, 40)


@pytest.mark.parametrize(
    ("make", "bound"),
    [
        (lambda: nn.Linear(40, 20).weight, 1 / math.sqrt(40)),
        (lambda: nn.Linear(4, 800).bias, 1 / math.sqrt(4)),
        (lambda: nn.Conv1d(10, 20, 4).weight, 1 / math.sqrt(40)),
        (lambda: nn.Conv1d(10, 20, 8, groups=2).weight, 1 / math.sqrt(40)),
        (lambda: nn.ConvTranspose1d(20, 10, 4).weight, 1 / math.sqrt(40)),
        (lambda: nn.Bilinear(4, 10, 20).weight, 1 / math.sqrt(4)),
        (lambda: init.xavier_uniform_(dg.empty(SHAPE), gain=2.0), 2 * math.sqrt(6 / 60)),
        (lambda: init.kaiming_uniform_(dg.empty(SHAPE), a=1.0), math.sqrt(3 / 40)),
        (
            lambda: init.kaiming_uniform_(dg.empty(SHAPE), 0, "fan_out", "tanh"),
            5 / 3 * math.sqrt(3 / 20),
        ),
    ],
)
def test_uniform_draws_have_their_bound(make: Callable[[], Any], bound: float) -> None:
    check_uniform(make(), bound)


@pytest.mark.parametrize(
    ("make", "std"),
    [
        (lambda: nn.Embedding(20, 40).weight, 1.0),
        (lambda: nn.EmbeddingBag(20, 40).weight, 1.0),
        (lambda: init.normal_(dg.empty(SHAPE), 0.0, 3.0), 3.0),
        (lambda: init.xavier_normal_(dg.empty(SHAPE)), math.sqrt(2 / 60)),
        (lambda: init.kaiming_normal_(dg.empty(SHAPE), nonlinearity="relu"), math.sqrt(2 / 40)),
        # the standard deviation of a normal distribution cut at 2: scipy.stats.truncnorm(-2, 2)
        (lambda: init.trunc_normal_(dg.empty(SHAPE)), 0.8796),
    ],
)
def test_normal_draws_have_their_deviation(make: Callable[[], Any], std: float) -> None:
    check_normal(make(), std)


@pytest.mark.parametrize(
    ("name", "param", "gain"),
    [
        ("linear", None, 1.0),
        ("sigmoid", None, 1.0),
        ("tanh", None, 5 / 3),
        ("relu", None, math.sqrt(2)),
        ("leaky_relu", 0.5, math.sqrt(2 / 1.25)),
        ("selu", None, 0.75),
    ],
)
def test_gain(name: str, param: float | None, gain: float) -> None:
    assert init.calculate_gain(name, param) == pytest.approx(gain)


def test_norms_start_as_the_identity() -> None:
    norm = nn.BatchNorm1d(2)
    assert norm.weight.tolist() == [1.0, 1.0] and norm.bias.tolist() == [0.0, 0.0]  # type: ignore[union-attr]
    assert norm.running_var.tolist() == [1.0, 1.0]  # type: ignore[union-attr]


def test_truncated_draws_stay_within() -> None:
    drawn = init.trunc_normal_(dg.empty(SHAPE), mean=1.0, std=2.0, a=0.5, b=1.5).numpy()
    assert drawn.min() >= 0.5 and drawn.max() <= 1.5 and drawn.std() > 0.2


def test_orthogonal_rows_are_orthonormal_times_the_gain() -> None:
    m = init.orthogonal_(dg.empty(3, 2, 2), gain=2.0).numpy().reshape(3, 4)
    np.testing.assert_allclose(m @ m.T, 4 * np.eye(3), atol=1e-5)


def test_sparse_columns_have_their_share_of_zeros() -> None:
    drawn = init.sparse_(dg.empty(SHAPE), 0.3, std=2.0).numpy()
    assert ((drawn == 0).sum(0) == 6).all()
    assert len({tuple(column) for column in (drawn == 0).T}) > 1


def test_dirac_passes_each_groups_channels_on() -> None:
    weight = init.dirac_(dg.empty(4, 2, 3), groups=2)
    x = dg.randn(1, 4, 5)
    out = dg.nn.functional.conv1d(x, weight, padding=1, groups=2)
    np.testing.assert_array_equal(out.numpy(), x.numpy())


def test_values_are_drawn_by_the_generator_given() -> None:
    first, second = (
        init.kaiming_normal_(dg.empty(2, 2), generator=dg.Generator().manual_seed(3)).tolist()
        for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize("shape", [(3, 5), (), (5, 300), (70_000,)])
def test_values_are_those_that_a_new_tensor_of_the_shape_would_get(shape: tuple[int, ...]) -> None:
    state = dg.get_rng_state()
    drawn = init.uniform_(dg.empty(shape))
    dg.set_rng_state(state)
    np.testing.assert_array_equal(drawn.numpy(), dg.rand(shape).numpy())


def test_initial_values_are_not_recorded() -> None:
    weight = nn.Parameter(dg.zeros(2, 2))
    assert init.eye_(weight) is weight and weight.is_leaf
    assert weight.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_skipped_layer_draws_nothing() -> None:
    before = dg.get_rng_state().tolist()
    nn.utils.skip_init(nn.Linear, 3, 2)
    assert dg.get_rng_state().tolist() == before


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: init.calculate_gain("swish"), "Unsupported nonlinearity swish"),
        (lambda: init.calculate_gain("leaky_relu", "a"), "negative_slope a not a valid"),  # type: ignore[arg-type]
        (lambda: init.xavier_normal_(dg.empty(2)), "fewer than 2 dimensions"),
        (lambda: init.kaiming_normal_(dg.empty(2, 2), mode="fan"), "Mode fan not supported"),
        (lambda: init.eye_(dg.empty(2)), "Only tensors with 2 dimensions"),
        (lambda: init.dirac_(dg.empty(2, 2)), "3, 4, or 5 dimensions"),
        (lambda: init.dirac_(dg.empty(3, 2, 1), groups=2), "must be divisible by groups"),
        (lambda: init.orthogonal_(dg.empty(2)), "2 or more dimensions"),
        (lambda: init.sparse_(dg.empty(2), 0.5), "Only tensors with 2 dimensions"),
    ],
)
def test_misuse_raises(call: Callable[[], Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call()


def test_tensor_without_elements_warns() -> None:
    with pytest.warns(UserWarning, match="zero-element tensors is a no-op"):
        nn.Linear(0, 2)


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (lambda: nn.Conv2d(3, 4, 2, groups=2), ValueError, "in_channels must be divisible"),
        (lambda: nn.Conv2d(2, 3, 2, groups=2), ValueError, "out_channels must be divisible"),
        (lambda: nn.Conv2d(2, 4, 2, padding="all"), ValueError, "Invalid padding string 'all'"),
        (lambda: nn.Conv2d(2, 4, 2, 2, "same"), ValueError, "not supported for strided"),
        (lambda: nn.Conv2d(2, 4, 2, padding_mode="x"), ValueError, "padding_mode must be one of"),
        (
            lambda: nn.ConvTranspose1d(2, 2, 3, 2)(dg.ones(1, 2, 4), [20]),
            ValueError,
            r"valid sizes range from \[9\] to \[10\]",
        ),
        (lambda: nn.Dropout(1.5), ValueError, "has to be between 0 and 1"),
        (lambda: nn.BatchNorm1d(2)(dg.ones(2)), ValueError, "expected 2D or 3D input"),
        (lambda: nn.InstanceNorm1d(2)(dg.ones(2)), ValueError, "expected 2D or 3D input"),
        (lambda: nn.GroupNorm(2, 3), ValueError, "must be divisible by num_groups"),
        (lambda: nn.Embedding(3, 2, 3), AssertionError, "must be within num_embeddings"),
        (lambda: nn.Linear(3, 2)(dg.ones(1, 4)), RuntimeError, "shapes"),
        (lambda: nn.Hardtanh(1.0, 0.0), AssertionError, "must be greater than min_val"),
        (lambda: nn.FractionalMaxPool2d(2), ValueError, "either an output size, or a pooling"),
        (lambda: nn.CircularPad1d(1)(dg.ones(2)), ValueError, "expected 2D or 3D input"),
        (lambda: nn.Unflatten(1, 3), TypeError, "must be a tuple of ints"),
        (lambda: nn.MultiMarginLoss(3), ValueError, "only p == 1 and p == 2"),
        (lambda: nn.TripletMarginLoss(0.0), ValueError, "margin to be greater than 0"),
        (
            lambda: nn.AdaptiveLogSoftmaxWithLoss(2, 4, [3, 2]),
            ValueError,
            "sorted in an increasing order",
        ),
        (
            lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2, 4], 2.0)(dg.ones(1, 4), dg.tensor([6])),
            RuntimeError,
            r"should be in \[0, 5\]",
        ),
    ],
)
def test_layer_that_does_not_fit_raises(
    call: Callable[[], Any], kind: type[Exception], match: str
) -> None:
    with pytest.raises(kind, match=match):
        call()

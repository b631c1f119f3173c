"""What the table's rows can't say of reductions: ties, edge values, dtypes, errors.

Values are those that PyTorch 2.13 gives, unless a test says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg

INF, NAN = float("inf"), float("nan")


def gradient(function: Callable[[Any], Any], values: Any) -> list[Any]:
    """The gradient of `function` (of its sum, or of its first output) at `values`."""
    x = dg.tensor(values, requires_grad=True)
    result = function(x)
    result = result[0] if isinstance(result, tuple) else result
    (grad,) = dg.autograd.grad(dg.sum(result), x)
    return grad.tolist()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sum", "SumBackward0"),
        ("mean", "MeanBackward0"),
        ("prod", "ProdBackward0"),
        ("max", "MaxBackward1"),
        ("min", "MinBackward1"),
        ("amax", "AmaxBackward0"),
        ("median", "MedianBackward0"),
        ("norm", "LinalgVectorNormBackward0"),
        ("nanmean", "DivBackward0"),
    ],
)
def test_node_has_the_name_of_pytorchs(name: str, expected: str) -> None:
    x = dg.tensor([1.0, 2.0], requires_grad=True)
    assert getattr(dg, name)(x).grad_fn.name() == expected


def test_nodes_of_forms_with_a_dim_have_their_own_name() -> None:
    x = dg.tensor([1.0, 2.0], requires_grad=True)
    assert dg.max(x, 0).values.grad_fn.name() == "MaxBackward0"
    assert dg.median(x, 0).values.grad_fn.name() == "MedianBackward1"


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum"])
def test_small_integers_add_up_in_the_default_integer_type(name: str) -> None:
    x = dg.tensor([1, 2], dtype=dg.uint8)
    result = getattr(dg, name)(x, 0)
    assert result.dtype == dg.int32


def test_default_integer_type_has_64_bits_with_x64(x64: None) -> None:
    assert dg.sum(dg.tensor([True, True])).dtype == dg.int64
    assert dg.argmax(dg.tensor([1.0, 2.0])).dtype == dg.int64


def test_mean_of_integers_raises() -> None:
    with pytest.raises(RuntimeError, match=r"mean\(\): could not infer output dtype.*\.float\(\)"):
        dg.mean(dg.tensor([1, 2]))


def test_mean_of_nothing_is_nan() -> None:
    assert np.isnan(dg.mean(dg.zeros(0)).item())


def test_repeated_dim_raises() -> None:
    with pytest.raises(RuntimeError, match="dim 0 appears multiple times in the list of dims"):
        dg.sum(dg.ones(2, 3), (0, -2))


def test_dim_out_of_range_raises() -> None:
    with pytest.raises(IndexError, match=r"expected to be in range of \[-2, 1\], but got 2"):
        dg.sum(dg.ones(2, 3), 2)


def test_numpys_argument_names_are_accepted() -> None:
    x = dg.tensor([[1.0, 2.0]])
    assert dg.sum(x, axis=0, keepdims=True).shape == (1, 2)
    assert dg.max(x, axis=1, keepdims=True).values.shape == (1, 1)
    assert dg.std(x, axis=1, keepdims=True).shape == (1, 1)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "argmax", "var", "cumsum", "logsumexp"])
def test_tensor_without_dims_has_a_dim_to_reduce(name: str) -> None:
    result = getattr(dg, name)(dg.tensor(2.0), dim=-1)
    assert result.shape == ()


def test_max_along_a_dim_of_a_tensor_without_dims() -> None:
    assert gradient(lambda x: dg.max(x, 0, keepdim=True), 2.0) == 1.0
    assert dg.max(dg.tensor(2.0), 0).indices.item() == 0


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (dg.max, [0.0, 0.5, 0.5]),
        (lambda x: dg.amax(x, 0), [0.0, 0.5, 0.5]),
        (lambda x: dg.max(x, 0), [0.0, 1.0, 0.0]),
        (lambda x: dg.norm(x, INF), [0.0, 0.5, 0.5]),
    ],
)
def test_gradient_of_a_largest_value_at_ties(function: Any, expected: list[float]) -> None:
    assert gradient(function, [1.0, 3.0, 3.0]) == expected


def test_gradient_of_the_median_at_ties() -> None:
    third = pytest.approx(1 / 3)
    assert gradient(dg.median, [1.0, 3.0, 3.0, 3.0]) == [0.0, third, third, third]
    assert gradient(lambda x: dg.median(x, 0), [1.0, 3.0, 3.0, 3.0]) == [0.0, 1.0, 0.0, 0.0]


def test_nan_is_the_largest_and_gets_the_gradient() -> None:
    assert gradient(dg.max, [1.0, NAN]) == [0.0, 1.0]
    assert gradient(lambda x: dg.max(x, 0), [1.0, NAN]) == [0.0, 1.0]


def test_median_along_a_dim_returns_the_first_nan() -> None:
    assert dg.median(dg.tensor([3.0, NAN, 1.0, NAN]), 0).indices.item() == 1


def test_nanmedian_leaves_nan_out() -> None:
    assert dg.nanmedian(dg.tensor([3.0, NAN, 1.0, NAN])).item() == 1.0


def test_max_with_a_tensor_is_maximum() -> None:
    x = dg.tensor([1.0, 5.0], requires_grad=True)
    result = dg.max(x, dg.tensor([2.0, 3.0]))
    assert result.tolist() == [2.0, 5.0]
    assert result.grad_fn.name() == "MaximumBackward0"


@pytest.mark.parametrize("name", ["max", "amax"])
def test_extreme_of_nothing_raises(name: str) -> None:
    with pytest.raises(RuntimeError, match="Specify the reduction dim with the 'dim' argument"):
        getattr(dg, name)(dg.zeros(0, 3))
    with pytest.raises(IndexError, match="Expected reduction dim 0 to have non-zero size"):
        getattr(dg, name)(dg.zeros(0, 3), 0)
    result = getattr(dg, name)(dg.zeros(0, 3), 1)
    assert (result.values if name == "max" else result).shape == (0,)


def test_argmax_of_nothing_raises() -> None:
    with pytest.raises(IndexError, match="Expected reduction dim to be specified"):
        dg.argmax(dg.zeros(0))


def test_argmax_of_bools_raises() -> None:
    with pytest.raises(RuntimeError, match=r"does not support bool input.*\.int\(\)"):
        dg.argmax(dg.tensor([True]))


def test_empty_tuple_of_dims_reduces_nothing_in_all_and_any() -> None:
    assert dg.all(dg.tensor([True, False]), dim=()).tolist() == [True, False]


def test_truth_of_uint8_is_uint8() -> None:
    assert dg.all(dg.tensor([1, 0], dtype=dg.uint8)).dtype == dg.uint8


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0.0, 2.0, 3.0], [6.0, 0.0, 0.0]), ([0.0, 0.0, 3.0], [0.0, 0.0, 0.0])],
)
def test_gradient_of_a_product_with_zeros(values: list[float], expected: list[float]) -> None:
    assert gradient(dg.prod, values) == expected


def test_gradient_of_a_running_product_with_a_zero() -> None:
    assert gradient(lambda x: dg.cumprod(x, 0), [2.0, 0.0, 3.0]) == [1.0, 8.0, 0.0]


def test_running_maximum_takes_the_latest_of_equals() -> None:
    assert dg.cummax(dg.tensor([1.0, 3.0, 2.0, 3.0]), 0).indices.tolist() == [0, 1, 1, 3]
    assert gradient(lambda x: dg.cummax(x, 0), [1.0, 3.0, 2.0, 3.0]) == [1.0, 2.0, 0.0, 1.0]


def test_running_minimum_stays_at_nan() -> None:
    assert dg.cummin(dg.tensor([1.0, NAN, 0.0]), 0).indices.tolist() == [0, 1, 1]


def test_gradient_of_the_std_of_a_constant_is_0() -> None:
    assert gradient(dg.std, [2.0, 2.0]) == [0.0, 0.0]


def test_std_of_one_element_is_nan_and_so_is_its_gradient() -> None:
    assert np.isnan(dg.std(dg.tensor([2.0])).item())
    assert np.isnan(gradient(dg.std, [2.0])).all()


def test_older_forms_of_the_correction() -> None:
    x = dg.tensor([[1.0, 3.0], [2.0, 6.0]])
    assert dg.var(x, 1, False).tolist() == [1.0, 4.0]
    assert dg.var(x, dim=1, unbiased=True).tolist() == [2.0, 8.0]
    assert dg.var(x, False).item() == pytest.approx(3.5)


def test_unbiased_and_correction_together_raise() -> None:
    with pytest.raises(TypeError, match="Pass only correction"):
        dg.var(dg.ones(2), unbiased=True, correction=0)


def test_std_of_integers_raises() -> None:
    with pytest.raises(RuntimeError, match=r"only support floating point.*\.float\(\)"):
        dg.std(dg.tensor([1, 2]))


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, INF, "fro"])
def test_gradient_of_a_norm_at_0_is_0(p: Any) -> None:
    assert gradient(lambda x: dg.norm(x, p), [0.0, 0.0]) == [0.0, 0.0]


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3])
def test_gradient_of_a_norm_for_an_element_that_is_0_is_0(p: Any) -> None:
    assert gradient(lambda x: dg.norm(x, p), [0.0, 2.0]) == [0.0, pytest.approx(1.0)]


def test_second_derivative_of_a_norm_at_0_is_finite() -> None:
    x = dg.zeros(2, requires_grad=True)
    (first,) = dg.autograd.grad(dg.norm(x), x, create_graph=True)
    (second,) = dg.autograd.grad(dg.sum(first), x)
    assert second.tolist() == [0.0, 0.0]


def test_norm_of_integers_raises() -> None:
    with pytest.raises(RuntimeError, match=r"Expected a floating point.*\.float\(\)"):
        dg.norm(dg.tensor([1, 2]))


def test_unknown_norm_raises() -> None:
    with pytest.raises(
        RuntimeError, match=r"Order abc not supported\. Pass a number, 'fro' or 'nuc'"
    ):
        dg.norm(dg.ones(2, 2), "abc")


def test_gradient_of_logsumexp_where_all_are_minus_infinity_is_0() -> None:
    # PyTorch gives NaN here; a masked row would poison all that it was computed from.
    assert gradient(lambda x: dg.logsumexp(x, 0), [-INF, -INF]) == [0.0, 0.0]


def test_logsumexp_ignores_minus_infinity() -> None:
    assert gradient(lambda x: dg.logsumexp(x, 0), [-INF, 1.0]) == [0.0, 1.0]


def test_quantile_outside_0_to_1_raises() -> None:
    with pytest.raises(RuntimeError, match=r"must be in the range \[0, 1\] but got 1.5"):
        dg.quantile(dg.ones(2), 1.5)


def test_quantiles_of_a_vector_come_in_front() -> None:
    q = dg.tensor([0.0, 0.5])
    assert dg.quantile(dg.tensor([[1.0, 3.0], [2.0, 4.0]]), q, dim=1).tolist() == [
        [1.0, 2.0],
        [2.0, 3.0],
    ]


def test_allclose_and_equal_are_python_bools() -> None:
    x = dg.tensor([1.0, NAN])
    assert dg.allclose(x, x) is False
    assert dg.allclose(x, x, equal_nan=True) is True
    assert dg.equal(x, dg.tensor([1.0])) is False
    assert dg.equal(dg.tensor([1, 2]), dg.tensor([1, 2])) is True


def test_a_sum_saves_nothing() -> None:
    x = dg.tensor([1.0, 2.0], requires_grad=True)
    assert dg.sum(x).grad_fn.saved == ()


def test_sum_to_size_refuses_a_size_that_does_not_broadcast() -> None:
    with pytest.raises(RuntimeError, match=r"size \{\[2\]\} is not expandable to size \{\[3\]\}"):
        dg.ones(3).sum_to_size(2)

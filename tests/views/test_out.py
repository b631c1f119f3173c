"""out=: an operator that writes its result into a tensor that is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg
from tests.graph.helpers import assert_values, leaf

OPERATORS: dict[str, tuple[Callable[..., Any], Any]] = {
    "add": (lambda **out: dg.add(dg.ones(2), 2.0, **out), [3, 3]),
    "mul": (lambda **out: dg.mul(dg.ones(2), dg.tensor([2.0, 3.0]), **out), [2, 3]),
    "exp": (lambda **out: dg.exp(dg.zeros(2), **out), [1, 1]),
    "matmul": (lambda **out: dg.matmul(dg.ones(2, 3), dg.ones(3), **out), [3, 3]),
    "sum": (lambda **out: dg.sum(dg.ones(2, 3), 1, **out), [3, 3]),
    "cat": (lambda **out: dg.cat([dg.ones(1), dg.zeros(1)], **out), [1, 0]),
    "stack": (lambda **out: dg.stack([dg.tensor(1.0), dg.tensor(2.0)], **out), [1, 2]),
    "clamp": (lambda **out: dg.clamp(dg.tensor([-1.0, 3.0]), 0, 2, **out), [0, 2]),
    "index_select": (
        lambda **out: dg.index_select(dg.ones(3), 0, dg.tensor([0, 1]), **out),
        [1, 1],
    ),
    "cumsum": (lambda **out: dg.cumsum(dg.ones(2), 0, **out), [1, 2]),
}
FACTORIES: dict[str, tuple[Callable[..., Any], Any]] = {
    "arange": (lambda **out: dg.arange(2, **out), [0, 1]),
    "zeros": (lambda **out: dg.zeros(2, **out), [0, 0]),
    "full": (lambda **out: dg.full((2,), 3.0, **out), [3, 3]),
    "linspace": (lambda **out: dg.linspace(0, 1, 2, **out), [0, 1]),
}
ALL = OPERATORS | FACTORIES
every_operator = pytest.mark.parametrize("call, expected", OPERATORS.values(), ids=OPERATORS)
every_function = pytest.mark.parametrize("call, expected", ALL.values(), ids=ALL)


@every_function
def test_result_is_the_tensor_given(call: Callable[..., Any], expected: Any) -> None:
    out = dg.full((2,), 9.0)
    assert call(out=out) is out
    assert_values(out, expected)


@every_function
def test_write_is_seen_by_what_shares_the_storage(call: Callable[..., Any], expected: Any) -> None:
    base = dg.full((4,), 9.0)
    call(out=base[1:3])
    assert_values(base, [9, *expected, 9])


@every_operator
def test_write_raises_the_version_by_one(call: Callable[..., Any], expected: Any) -> None:
    out = dg.zeros(2)
    call(out=out)
    assert out._version == 1


@every_function
def test_empty_tensor_takes_the_shape_of_the_result(
    call: Callable[..., Any], expected: Any
) -> None:
    out = dg.empty(0)
    call(out=out)
    assert_values(out, expected)


@every_operator
def test_tensor_of_another_shape_is_resized(call: Callable[..., Any], expected: Any) -> None:
    out = dg.zeros(3)
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        call(out=out)
    assert_values(out, expected)


def test_several_results_go_into_several_tensors() -> None:
    values, indices = dg.empty(2), dg.tensor([9, 9])
    result = dg.max(dg.tensor([[1.0, 5.0], [4.0, 2.0]]), 1, out=(values, indices))
    assert result.values is values and result.indices is indices
    assert_values(values, [5, 4])
    assert indices.tolist() == [1, 0]


def test_result_is_converted_to_a_wider_kind() -> None:
    out = dg.empty(2)
    dg.add(dg.tensor([1, 2]), dg.tensor([3, 4]), out=out)
    assert_values(out, [4, 6])


def test_result_is_converted_between_floats() -> None:
    out = dg.empty(2, dtype=dg.bfloat16)
    dg.add(dg.ones(2), 1.0, out=out)
    assert out.dtype == dg.bfloat16 and out.tolist() == [2, 2]


def test_comparison_may_go_into_floats() -> None:
    out = dg.empty(2)
    dg.gt(dg.tensor([1.0, 3.0]), 2.0, out=out)
    assert_values(out, [0, 1])


CASTS: dict[str, tuple[Any, Any]] = {
    "float into integer": (lambda: dg.tensor([1.0, 2.0]), lambda: dg.tensor([0, 0])),
    "complex into float": (lambda: dg.tensor([1j, 2j]), lambda: dg.zeros(2)),
    "integer into bool": (lambda: dg.tensor([1, 2]), lambda: dg.tensor([False, False])),
}
every_cast = pytest.mark.parametrize("value, out", CASTS.values(), ids=CASTS)


@every_cast
def test_result_is_not_converted_to_a_narrower_kind(value: Any, out: Any) -> None:
    given = out()
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        dg.add(value(), value(), out=given)
    assert given.tolist() == out().tolist()
    assert given._version == 0


GRADIENTS: dict[str, Callable[[], object]] = {
    "an argument requires grad": lambda: dg.add(leaf(1.0, 2.0), 1.0, out=dg.empty(2)),
    "the second argument requires grad": lambda: dg.mul(dg.ones(2), leaf(1.0, 2.0), out=dg.ones(2)),
    "one of a list requires grad": lambda: dg.cat([dg.ones(1), leaf(1.0, 2.0)], out=dg.empty(3)),
    "the tensor given requires grad": lambda: dg.add(dg.ones(2), 1.0, out=leaf(1.0, 2.0)),
    "the tensor given is interior": lambda: dg.add(dg.ones(2), 1.0, out=leaf(1.0, 2.0) * 2),
}


@pytest.mark.parametrize("call", GRADIENTS.values(), ids=GRADIENTS)
def test_out_does_not_go_with_recording(call: Callable[[], object]) -> None:
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        call()


@pytest.mark.parametrize("call", GRADIENTS.values(), ids=GRADIENTS)
def test_out_goes_with_no_grad(call: Callable[[], object]) -> None:
    with dg.no_grad():
        call()


def test_refused_out_is_left_as_it_was() -> None:
    out = dg.zeros(2)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        dg.add(leaf(1.0, 2.0), 1.0, out=out)
    assert_values(out, [0, 0])
    assert out._version == 0


def test_out_written_under_no_grad_is_checked_by_backward() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    loss = (y * y).sum()
    with dg.no_grad():
        dg.add(dg.ones(2), 1.0, out=y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_out_may_be_one_of_the_arguments() -> None:
    x = dg.tensor([1.0, 2.0])
    dg.mul(x, x, out=x)
    assert_values(x, [1, 4])


def test_out_that_is_no_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match="out"):
        dg.add(dg.ones(2), 1.0, out=[0.0, 0.0])  # pyright: ignore


def test_out_does_not_go_with_tangents() -> None:
    with dg.autograd.forward_ad.dual_level():
        x = dg.autograd.forward_ad.make_dual(dg.ones(2), dg.ones(2))
        with pytest.raises(RuntimeError, match="Trying to use forward AD with add"):
            dg.add(x, 1.0, out=dg.empty(2))


def test_function_without_a_gradient_takes_out_while_recording() -> None:
    out = dg.empty(2)
    dg.gt(leaf(1.0, 3.0), 2.0, out=out)
    assert_values(out, [0, 1])


def test_view_made_under_no_grad_may_be_given() -> None:
    y = leaf(1.0, 2.0) * 2
    with dg.no_grad():
        view = y[:1]
        dg.add(dg.ones(1), 1.0, out=view)
    assert_values(y, [2, 4])


def test_resize_of_a_view_writes_into_its_base() -> None:
    base = dg.zeros(4)
    with pytest.warns(UserWarning, match="was resized"):
        dg.add(dg.ones(2), 1.0, out=base[1:])
    assert_values(base, [0, 2, 2, 0])


def test_resize_and_write_raise_the_version_by_one() -> None:
    out = dg.empty(0)
    dg.add(dg.ones(2), 1.0, out=out)
    assert out._version == 1


def test_leaf_is_resized_under_no_grad() -> None:
    out = leaf(1.0, 2.0, 3.0)
    with dg.no_grad(), pytest.warns(UserWarning, match="was resized"):
        dg.add(dg.ones(2), 1.0, out=out)
    assert out.requires_grad
    assert_values(out, [2, 2])


@pytest.mark.parametrize("dtype", [dg.int32, dg.float16])
def test_made_tensor_has_the_dtype_of_out(dtype: dg.dtype) -> None:
    out = dg.empty(2, dtype=dtype)
    dg.ones(2, out=out)
    assert out.dtype == dtype and out.tolist() == [1, 1]


def test_dtype_that_out_does_not_have_is_refused() -> None:
    with pytest.raises(RuntimeError, match="does not match dtype of out parameter"):
        dg.zeros(2, out=dg.empty(2), dtype=dg.int32)


@pytest.mark.parametrize(
    "call",
    [
        lambda: dg.add(dg.ones(2), 1.0, out=(dg.empty(2),)),
        lambda: dg.max(dg.ones(2, 2), 1, out=dg.empty(2)),
        lambda: dg.max(dg.ones(2, 2), 1, out=(dg.empty(2),)),
    ],
    ids=["tuple for one", "one for several", "too few"],
)
def test_out_of_another_number_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match="argument 'out' must be"):
        call()


def test_one_of_several_that_is_refused_leaves_all_unwritten() -> None:
    values, indices = dg.zeros(2), dg.tensor([False, False])
    with pytest.raises(RuntimeError, match="can't be cast"):
        dg.max(dg.ones(2, 2), 1, out=(values, indices))
    assert_values(values, [0, 0])

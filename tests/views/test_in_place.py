"""Methods that write into their tensor: each one, against the operator that makes a new tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from tests.graph.helpers import assert_values, leaf
from tests.views.calls import (
    DIFFERENTIABLE,
    NOT_HERE,
    ONE_BY_ONE,
    RANDOM,
    TWINS,
    VARIANTS,
    Call,
    as_tensors,
)

every_twin = pytest.mark.parametrize(
    "name, call",
    [*TWINS.items(), *VARIANTS.values()],
    ids=[*TWINS, *VARIANTS],
)
every_gradient = pytest.mark.parametrize("name, call", DIFFERENTIABLE.items(), ids=DIFFERENTIABLE)


def write(tensor: dg.Tensor, name: str, call: Call) -> Any:
    """The result of the method of `tensor`, called as in `call`."""
    args, kwargs = as_tensors(call)
    return getattr(tensor, name)(*args, **kwargs)


def expected(name: str, call: Call) -> dg.Tensor:
    """What the operator without the underscore makes of the call's values, in their dtype."""
    x = dg.tensor(call.values)
    return write(x, name.removesuffix("_"), call).to(x.dtype)


def same(a: dg.Tensor, b: dg.Tensor) -> None:
    """Both have the same dtype, shape and, but for rounding, values."""
    assert a.dtype == b.dtype
    np.testing.assert_allclose(
        a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5, strict=True
    )


def test_every_method_is_in_the_table() -> None:
    methods = {
        name
        for name in dir(dg.Tensor)
        if name.endswith("_") and not name.startswith("_") and not name.endswith("__")
    }
    assert methods - NOT_HERE == TWINS.keys() | RANDOM.keys() | ONE_BY_ONE


@every_twin
def test_result_is_the_tensor_itself(name: str, call: Call) -> None:
    x = dg.tensor(call.values)
    assert write(x, name, call) is x


@every_twin
def test_value_is_that_of_the_operator(name: str, call: Call) -> None:
    x = dg.tensor(call.values)
    write(x, name, call)
    same(x, expected(name, call))


@every_twin
def test_version_goes_up_by_one(name: str, call: Call) -> None:
    x = dg.tensor(call.values)
    write(x, name, call)
    assert x._version == 1


@every_twin
def test_storage_stays_the_same(name: str, call: Call) -> None:
    x = dg.tensor(call.values)
    alias = x.detach()
    write(x, name, call)
    same(alias, x)


@every_twin
def test_write_into_a_view_changes_its_part_of_the_base(name: str, call: Call) -> None:
    base = dg.stack([dg.tensor(call.values)] * 2)
    write(base[1], name, call)
    same(base[1], expected(name, call))
    same(base[0], dg.tensor(call.values))


@every_twin
def test_write_under_no_grad_records_nothing(name: str, call: Call) -> None:
    x = dg.tensor(call.values)
    with dg.no_grad():
        args, kwargs = as_tensors(call, leaves=True)
        getattr(x, name)(*args, **kwargs)
    assert not x.requires_grad and x.grad_fn is None


def gradients(name: str, call: Call, *, of_view: bool = False) -> list[dg.Tensor]:
    """The gradients of the tensor written to and of the arguments, in order."""
    x = dg.tensor(call.values, requires_grad=True)
    y = dg.stack([x, x])[1] if of_view else x.clone()
    args, kwargs = as_tensors(call, leaves=True)
    result = getattr(y, name)(*args, **kwargs)
    arrays = [x, *(a for a in (*args, *kwargs.values()) if isinstance(a, dg.Tensor))]
    weights = 1 + dg.arange(result.numel(), dtype=dg.float32).reshape(result.shape)
    inputs = [a for a in arrays if a.requires_grad]
    return list(dg.autograd.grad((result * weights).sum(), inputs, materialize_grads=True))


@every_gradient
def test_gradient_is_that_of_the_operator(name: str, call: Call) -> None:
    for a, b in zip(gradients(name, call), gradients(name.removesuffix("_"), call), strict=True):
        same(a, b)


@every_gradient
def test_gradient_of_a_write_into_a_view_is_that_of_the_operator(name: str, call: Call) -> None:
    got = gradients(name, call, of_view=True)
    for a, b in zip(got, gradients(name.removesuffix("_"), call), strict=True):
        same(a, b)


@every_gradient
def test_write_makes_an_interior_tensor_of_a_constant(name: str, call: Call) -> None:
    x = dg.tensor(call.values)
    args, kwargs = as_tensors(call, leaves=True)
    getattr(x, name)(*args, **kwargs)
    recorded = any(isinstance(a, dg.Tensor) and a.requires_grad for a in (*args, *kwargs.values()))
    assert x.requires_grad == (x.grad_fn is not None) == recorded


COMPARISONS = "eq_ ne_ lt_ le_ gt_ ge_".split()


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparison_written_into_its_operand_has_gradient_zero(name: str) -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    getattr(y, name)(4.0)
    y.sum().backward()
    assert_values(x.grad, [0, 0])


def test_conj_physical_conjugates_the_gradient() -> None:
    x = dg.tensor([1 + 2j, 3j], requires_grad=True)
    y = x * 1
    y.conj_physical_()
    (y * dg.tensor([1j, 2])).sum().real.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1j, 2]


# Values of their own


def test_copy_takes_the_values_of_another_tensor() -> None:
    x = dg.zeros(2)
    assert x.copy_(dg.tensor([1.0, 2.0])) is x
    assert_values(x, [1, 2])


def test_copy_broadcasts() -> None:
    assert_values(dg.zeros(2, 2).copy_(dg.tensor([1.0, 2.0])), [[1, 2], [1, 2]])


def test_copy_converts_to_the_dtype_of_its_tensor() -> None:
    x = dg.zeros(2, dtype=dg.int32).copy_(dg.tensor([1.7, -1.7]))
    assert x.dtype == dg.int32 and x.tolist() == [1, -1]


def test_copy_is_a_snapshot() -> None:
    source = dg.ones(2)
    x = dg.zeros(2).copy_(source)
    source.zero_()
    assert_values(x, [1, 1])


def test_copy_passes_the_gradient_to_the_source_alone() -> None:
    x, source = leaf(1.0, 2.0), leaf(3.0)
    y = x * 2
    y.copy_(source)
    (y * dg.tensor([1.0, 10.0])).sum().backward()
    assert_values(x.grad, [0, 0])
    assert_values(source.grad, 11)


def test_copy_converts_the_gradient_to_the_dtype_of_the_source() -> None:
    source = dg.tensor([1.0, 2.0], dtype=dg.bfloat16, requires_grad=True)
    dg.zeros(2).copy_(source).sum().backward()
    assert source.grad is not None
    assert source.grad.dtype == dg.bfloat16


def test_copy_of_complex_takes_the_gradient_of_the_real_source() -> None:
    source = leaf(1.0, 2.0)
    x = dg.zeros(2, dtype=dg.complex64).copy_(source)
    (x * dg.tensor([2 + 1j, 3j])).sum().real.backward()
    assert_values(source.grad, [2, 0])


def test_copy_of_itself_is_allowed() -> None:
    x = dg.tensor([1.0, 2.0])
    x.copy_(x)
    assert_values(x, [1, 2])


@pytest.mark.parametrize("value", [2.5, dg.tensor(2.5)], ids=["number", "tensor"])
def test_fill_takes_one_value(value: Any) -> None:
    x = dg.zeros(2)
    assert x.fill_(value) is x
    assert_values(x, [2.5, 2.5])
    assert x._version == 1


def test_fill_passes_the_gradient_to_its_value() -> None:
    x, value = leaf(1.0, 2.0), leaf(3.0)
    y = x * 2
    y.fill_(value)
    y.sum().backward()
    assert_values(x.grad, [0, 0])
    assert_values(value.grad, 2)


def test_zero_sets_all_to_zero() -> None:
    x = dg.ones(2)
    assert x.zero_() is x
    assert_values(x, [0, 0])
    assert x._version == 1


def test_zero_stops_the_gradient() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.zero_()
    y.sum().backward()
    assert_values(x.grad, [0, 0])


@pytest.mark.parametrize(
    "shape, wrap, expected",
    [
        ((2, 3), False, [[5, 0, 0], [0, 5, 0]]),
        ((4, 2), False, [[5, 0], [0, 5], [0, 0], [0, 0]]),
        ((5, 2), True, [[5, 0], [0, 5], [0, 0], [5, 0], [0, 5]]),
    ],
)
def test_fill_diagonal_fills_the_diagonal(
    shape: tuple[int, int], wrap: bool, expected: list[list[float]]
) -> None:
    x = dg.zeros(shape)
    assert x.fill_diagonal_(5, wrap=wrap) is x
    assert_values(x, expected)


def test_fill_diagonal_stops_the_gradient_on_the_diagonal() -> None:
    x = dg.ones(2, 2, requires_grad=True)
    (x * 3).fill_diagonal_(0).sum().backward()
    assert_values(x.grad, [[0, 3], [3, 0]])


@pytest.mark.usefixtures("x64")
def test_float_power_is_for_64_bits() -> None:
    x = dg.tensor([2.0, 3.0], dtype=dg.float64)
    assert x.float_power_(2) is x
    assert x.tolist() == [4, 9]


def test_apply_calls_a_function_for_each_element() -> None:
    x = dg.tensor([1.0, 2.0])
    assert x.apply_(lambda value: value + 10) is x
    assert_values(x, [11, 12])


def test_map_calls_a_function_for_each_pair() -> None:
    x = dg.tensor([1.0, 2.0])
    assert x.map_(dg.tensor([3.0, 4.0]), lambda a, b: a * b) is x
    assert_values(x, [3, 8])


def test_map2_calls_a_function_for_each_triple() -> None:
    x = dg.tensor([1.0, 2.0])
    assert x.map2_(dg.tensor([3.0, 4.0]), dg.ones(2), lambda a, b, c: a * b + c) is x
    assert_values(x, [4, 9])


# Augmented assignment

AUGMENTED: dict[str, tuple[Callable[[Any, Any], Any], Any, Any]] = {
    "+=": (lambda x, other: x.__iadd__(other), [1.0, 2.0], [5, 7]),
    "-=": (lambda x, other: x.__isub__(other), [1.0, 2.0], [3, 3]),
    "*=": (lambda x, other: x.__imul__(other), [1.0, 2.0], [4, 10]),
    "/=": (lambda x, other: x.__itruediv__(other), [1.0, 2.0], [4, 2.5]),
    "//=": (lambda x, other: x.__ifloordiv__(other), [1.0, 2.0], [4, 2]),
    "%=": (lambda x, other: x.__imod__(other), [3.0, 2.0], [1, 1]),
    "**=": (lambda x, other: x.__ipow__(other), [1.0, 2.0], [4, 25]),
}
AUGMENTED_OF_INTEGERS: dict[str, tuple[Callable[[Any, Any], Any], Any, Any]] = {
    "&=": (lambda x, other: x.__iand__(other), [6, 3], [4, 1]),
    "|=": (lambda x, other: x.__ior__(other), [6, 3], [6, 7]),
    "^=": (lambda x, other: x.__ixor__(other), [6, 3], [2, 6]),
    "<<=": (lambda x, other: x.__ilshift__(other), [1, 2], [8, 20]),
    ">>=": (lambda x, other: x.__irshift__(other), [1, 2], [2, 1]),
}


@pytest.mark.parametrize("assign, other, result", AUGMENTED.values(), ids=AUGMENTED)
def test_augmented_assignment_writes_in_place(assign: Any, other: Any, result: Any) -> None:
    x = dg.tensor([4.0, 5.0])
    alias = x.detach()
    assert assign(x, dg.tensor(other)) is x
    assert_values(alias, result)


@pytest.mark.parametrize("assign, other, result", AUGMENTED.values(), ids=AUGMENTED)
def test_augmented_assignment_takes_a_number(assign: Any, other: Any, result: Any) -> None:
    x = dg.tensor([4.0, 5.0])
    assert assign(x, other[1]) is x
    assert x.tolist()[1] == result[1]


@pytest.mark.parametrize(
    "assign, other, result", AUGMENTED_OF_INTEGERS.values(), ids=AUGMENTED_OF_INTEGERS
)
def test_augmented_assignment_writes_integers_in_place(
    assign: Any, other: Any, result: Any
) -> None:
    x = dg.tensor([4, 5])
    alias = x.detach()
    assert assign(x, dg.tensor(other)) is x
    assert alias.tolist() == result


def test_augmented_assignment_to_a_part_writes_into_the_tensor() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    y[2:] *= y[1:2]
    assert_values(y, [1, 2, 6])


def test_augmented_assignment_to_a_part_has_the_gradient_of_what_it_read() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    y[1:] += y[:2] * 10
    (y * dg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert_values(x.grad, [21, 32, 3])


def test_augmented_assignment_to_chosen_elements_writes_into_the_tensor() -> None:
    y = leaf(1.0, 2.0, 3.0) * 1
    y[dg.tensor([0, 2])] += 10
    assert_values(y, [11, 2, 13])

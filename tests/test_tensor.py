"""The Tensor as a Python object: made, asked, converted, compared, copied and printed."""

import copy
import math
import operator
import pickle
from collections.abc import Callable, Iterator
from math import inf, nan
from typing import Any

import numpy as np
import pytest

import dyngraph as dg


def leaf(*values: float) -> dg.Tensor:
    return dg.tensor(list(values), requires_grad=True)


def grad_of(x: dg.Tensor) -> dg.Tensor:
    assert x.grad is not None
    return x.grad


# Creation


@pytest.mark.parametrize(
    "value, shape",
    [(1.0, ()), ([1.0, 2.0], (2,)), ([[1.0], [2.0]], (2, 1)), ([], (0,)), ([[], []], (2, 0))],
)
def test_tensor_takes_shape_and_values_of_nested_lists(value: Any, shape: tuple[int, ...]) -> None:
    x = dg.tensor(value)
    assert (tuple(x.shape), x.tolist()) == (shape, value)


@pytest.mark.parametrize(
    "value, dtype",
    [
        (1.0, "float32"),
        ([1, 2.5], "float32"),
        ([], "float32"),
        (True, "bool"),
        (1j, "complex64"),
        ([1, 2.5, 1j], "complex64"),
    ],
)
def test_tensor_infers_its_dtype_from_python_values(value: Any, dtype: str) -> None:
    assert dg.tensor(value).dtype == getattr(dg, dtype)


def test_integers_of_python_make_the_default_integer_dtype() -> None:
    made = [dg.tensor(1), dg.tensor([True, 2]), dg.arange(3), dg.full((2,), 3)]
    assert len({x.dtype for x in made}) == 1
    assert not made[0].is_floating_point()


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8, np.uint8, np.bool_, np.complex64])
def test_tensor_and_from_numpy_keep_the_dtype_of_an_array(dtype: type) -> None:
    array = np.array([0, 1], dtype)
    for x in (dg.tensor(array), dg.as_tensor(array), dg.from_numpy(array)):
        assert x.numpy().dtype == dtype
        np.testing.assert_array_equal(x.numpy(), array)


def test_tensor_copies_an_array() -> None:
    array = np.ones(3, np.float32)
    x = dg.tensor(array)
    array[:] = 7
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_tensor_takes_numpy_scalars() -> None:
    assert dg.tensor(np.float32(2.5)).item() == 2.5


def test_tensor_takes_a_list_of_scalar_tensors() -> None:
    assert dg.tensor([dg.tensor(1.0), dg.tensor(2.0)]).tolist() == [1.0, 2.0]


def test_tensor_with_a_dtype_converts() -> None:
    assert dg.tensor([1.7, -1.7], dtype=dg.int32).tolist() == [1, -1]
    assert dg.tensor([0, 2], dtype=dg.bool).tolist() == [False, True]


def test_tensor_of_a_tensor_warns_and_copies_it() -> None:
    x = leaf(1.0)
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        y = dg.tensor(x)
    assert (y.tolist(), y.requires_grad) == ([1.0], False)


def test_tensor_of_a_ragged_list_raises() -> None:
    with pytest.raises(ValueError, match="expected sequence of length 1"):
        dg.tensor([[1.0], [1.0, 2.0]])


def test_tensor_of_a_string_raises() -> None:
    with pytest.raises(TypeError, match="invalid data type 'str'"):
        dg.tensor("a")


def test_tensor_of_none_raises() -> None:
    with pytest.raises(RuntimeError, match="Could not infer dtype of NoneType"):
        dg.tensor(None)


def test_as_tensor_returns_a_tensor_as_it_is() -> None:
    x = leaf(1.0)
    assert dg.as_tensor(x) is x


def test_as_tensor_with_another_dtype_converts_and_keeps_the_history() -> None:
    x = leaf(1.0)
    y = dg.as_tensor(x, dtype=dg.float16)
    y.sum().backward()
    assert (y.dtype, grad_of(x).dtype) == (dg.float16, dg.float32)


def test_from_numpy_of_a_list_raises() -> None:
    with pytest.raises(TypeError, match=r"expected np.ndarray \(got list\)"):
        dg.from_numpy([1.0])  # type: ignore[arg-type]


@pytest.mark.parametrize("factory", ["zeros", "ones", "empty"])
def test_sizes_may_be_numbers_a_tuple_a_list_or_a_shape(factory: str) -> None:
    make = getattr(dg, factory)
    shapes = [make(2, 3), make((2, 3)), make([2, 3]), make(dg.zeros(2, 3).shape)]
    assert [tuple(x.shape) for x in shapes] == [(2, 3)] * 4
    assert make(()).dim() == 0


def test_zeros_ones_full_and_eye_have_their_values() -> None:
    assert dg.zeros(2).tolist() == [0.0, 0.0]
    assert dg.ones(2).tolist() == [1.0, 1.0]
    assert dg.full((1, 2), 7.5).tolist() == [[7.5, 7.5]]
    assert dg.eye(2, 3).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


@pytest.mark.parametrize("value, dtype", [(3.0, "float32"), (True, "bool"), (1j, "complex64")])
def test_full_takes_its_dtype_from_the_value(value: Any, dtype: str) -> None:
    assert dg.full((2,), value).dtype == getattr(dg, dtype)


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ((3,), [0, 1, 2]),
        ((1, 4), [1, 2, 3]),
        ((5, 0, -2), [5, 3, 1]),
        ((3.0,), [0.0, 1.0, 2.0]),
        ((0, 1, 0.25), [0.0, 0.25, 0.5, 0.75]),
        ((2, 2), []),
    ],
)
def test_arange_counts_from_start_to_before_end(arguments: tuple[Any, ...], expected: Any) -> None:
    x = dg.arange(*arguments)
    assert x.tolist() == expected
    assert x.is_floating_point() == any(isinstance(value, float) for value in arguments)


def test_arange_with_step_zero_raises() -> None:
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        dg.arange(1, 2, 0)


def test_arange_away_from_its_end_raises() -> None:
    with pytest.raises(RuntimeError, match="inconsistent with step sign"):
        dg.arange(2, 1, 1)


@pytest.mark.parametrize(
    "arguments, expected",
    [((0, 1, 5), [0.0, 0.25, 0.5, 0.75, 1.0]), ((3, 4, 1), [3.0]), ((1, 0, 0), [])],
)
def test_linspace_includes_both_ends(arguments: tuple[int, ...], expected: list[float]) -> None:
    assert dg.linspace(*arguments).tolist() == expected


@pytest.mark.parametrize("make", [lambda: dg.zeros(-1), lambda: dg.linspace(0, 1, -1)])
def test_negative_sizes_raise(make: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match="negative"):
        make()


FACTORIES: dict[str, Callable[..., dg.Tensor]] = {
    "tensor": lambda **options: dg.tensor([1, 2], **options),
    "zeros": lambda **options: dg.zeros(2, **options),
    "ones": lambda **options: dg.ones(2, **options),
    "full": lambda **options: dg.full((2,), 1, **options),
    "empty": lambda **options: dg.empty(2, **options),
    "arange": lambda **options: dg.arange(2, **options),
    "linspace": lambda **options: dg.linspace(0, 2, 2, **options),
    "eye": lambda **options: dg.eye(2, **options),
    "zeros_like": lambda **options: dg.zeros_like(dg.ones(2), **options),
    "ones_like": lambda **options: dg.ones_like(dg.ones(2), **options),
    "full_like": lambda **options: dg.full_like(dg.ones(2), 1, **options),
    "empty_like": lambda **options: dg.empty_like(dg.ones(2), **options),
    "new_zeros": lambda **options: dg.ones(2).new_zeros(2, **options),
    "new_ones": lambda **options: dg.ones(2).new_ones(2, **options),
    "new_full": lambda **options: dg.ones(2).new_full((2,), 1, **options),
    "new_empty": lambda **options: dg.ones(2).new_empty(2, **options),
    "new_tensor": lambda **options: dg.ones(2).new_tensor([1, 2], **options),
}
every_factory = pytest.mark.parametrize("factory", FACTORIES)


@every_factory
def test_factories_take_a_dtype(factory: str) -> None:
    for dtype in (dg.int32, dg.float32, dg.float16):
        assert FACTORIES[factory](dtype=dtype).dtype == dtype


@every_factory
def test_factories_take_requires_grad(factory: str) -> None:
    x = FACTORIES[factory](dtype=dg.float32, requires_grad=True)
    assert (x.requires_grad, x.is_leaf, x.grad_fn) == (True, True, None)


@every_factory
def test_factories_refuse_requires_grad_for_integers(factory: str) -> None:
    with pytest.raises(RuntimeError, match="floating point and complex dtype can require grad"):
        FACTORIES[factory](dtype=dg.int32, requires_grad=True)


@pytest.mark.parametrize("factory", ["zeros_like", "ones_like", "empty_like"])
def test_like_factories_take_shape_and_dtype_but_no_history(factory: str) -> None:
    x = dg.ones(2, 3, dtype=dg.float16, requires_grad=True)
    y = getattr(dg, factory)(x)
    assert (y.shape, y.dtype, y.requires_grad) == (x.shape, x.dtype, False)


def test_new_factories_take_the_dtype_but_no_history() -> None:
    x = dg.ones(1, dtype=dg.float16, requires_grad=True)
    made = [x.new_zeros(2), x.new_ones((2,)), x.new_full((2,), 7), x.new_tensor([1, 2])]
    assert [(y.dtype, y.requires_grad) for y in made] == [(dg.float16, False)] * 4
    assert [y.tolist() for y in made] == [[0.0, 0.0], [1.0, 1.0], [7.0, 7.0], [1.0, 2.0]]


# Default dtype


@pytest.fixture
def half_by_default() -> Iterator[None]:
    before = dg.get_default_dtype()
    dg.set_default_dtype(dg.float16)
    yield
    dg.set_default_dtype(before)


def test_default_dtype_is_float32() -> None:
    assert dg.get_default_dtype() == dg.float32


def test_default_dtype_is_that_of_new_tensors(half_by_default: None) -> None:
    made = [dg.tensor(1.0), dg.ones(2), dg.linspace(0, 1, 2), dg.arange(2.0), dg.full((1,), 2.0)]
    assert [x.dtype for x in made] == [dg.get_default_dtype()] * 5 == [dg.float16] * 5


def test_default_dtype_leaves_integers_and_arrays_alone(half_by_default: None) -> None:
    assert not dg.tensor([1]).is_floating_point()
    assert dg.tensor(np.ones(1, np.float32)).dtype == dg.float32


def test_default_dtype_is_that_of_a_quotient_of_integers(half_by_default: None) -> None:
    assert (dg.tensor([1]) / 2).dtype == dg.float16


def test_printing_names_every_float_dtype_but_the_default(half_by_default: None) -> None:
    assert repr(dg.ones(1)) == "tensor([1.])"
    assert repr(dg.ones(1, dtype=dg.float32)) == f"tensor([1.], dtype={dg.float32})"


def test_default_dtype_must_be_a_float() -> None:
    with pytest.raises(TypeError, match="only floating-point types are supported"):
        dg.set_default_dtype(dg.int32)


# requires_grad and is_leaf


def test_tensors_do_not_require_grad_unless_asked() -> None:
    x = dg.ones(2)
    assert (x.requires_grad, x.is_leaf, x.grad_fn, x.grad) == (False, True, None, None)


def test_requires_grad_spreads_to_results() -> None:
    y = leaf(1.0) * dg.ones(1)
    assert (y.requires_grad, y.is_leaf) == (True, False)


def test_results_of_tensors_without_grad_are_leaves() -> None:
    y = dg.ones(1) * 2
    assert (y.requires_grad, y.is_leaf, y.grad_fn) == (False, True, None)


@pytest.mark.parametrize(
    "result",
    [lambda x: x > 1, lambda x: x == x, lambda x: x.argmax(), lambda x: x.int()],
    ids=["comparison", "equality", "argmax", "int"],
)
def test_results_without_a_derivative_do_not_require_grad(result: Callable[..., Any]) -> None:
    y = result(leaf(1.0, 2.0))
    assert (y.requires_grad, y.is_leaf, y.grad_fn) == (False, True, None)


def test_detached_tensor_is_a_leaf_without_grad() -> None:
    y = (leaf(1.0) * 2).detach()
    assert (y.requires_grad, y.is_leaf, y.grad_fn, y.tolist()) == (False, True, None, [2.0])


def test_requires_grad_method_returns_its_tensor() -> None:
    x = dg.ones(2)
    assert x.requires_grad_() is x
    assert x.requires_grad
    assert not x.requires_grad_(False).requires_grad


def test_leaf_that_stops_requiring_grad_is_not_recorded() -> None:
    x = leaf(1.0)
    x.requires_grad = False
    assert not (x * 2).requires_grad


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_floats_and_complex_numbers_may_require_grad(dtype: str) -> None:
    x = dg.ones(2, dtype=getattr(dg, dtype))
    x.requires_grad = True
    assert x.requires_grad


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "bool"])
def test_integers_and_bools_refuse_to_require_grad(dtype: str) -> None:
    x = dg.ones(2, dtype=getattr(dg, dtype))
    with pytest.raises(RuntimeError, match="only Tensors of floating point"):
        x.requires_grad = True
    with pytest.raises(RuntimeError, match="only Tensors of floating point"):
        x.requires_grad_()
    assert not x.requires_grad


def test_integers_may_be_told_not_to_require_grad() -> None:
    x = dg.tensor([1])
    x.requires_grad = False
    assert not x.requires_grad_(False).requires_grad


def test_interior_tensor_refuses_to_stop_requiring_grad() -> None:
    y = leaf(1.0) * 2
    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf variables"):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="detach"):
        y.requires_grad_(False)


def test_interior_tensor_may_be_asked_to_require_grad_as_it_does() -> None:
    y = leaf(1.0) * 2
    assert y.requires_grad_() is y


@pytest.mark.parametrize("value", [1, "True", None])
def test_requires_grad_must_be_a_bool(value: Any) -> None:
    x = dg.ones(2)
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        x.requires_grad = value


# .grad


def test_grad_is_the_assigned_tensor() -> None:
    x, grad = leaf(1.0), dg.ones(1)
    x.grad = grad
    assert x.grad is grad


def test_backward_adds_to_an_assigned_grad() -> None:
    x = leaf(1.0)
    x.grad = dg.tensor([10.0])
    (x * 2).backward()
    assert grad_of(x).tolist() == [12.0]


def test_grad_of_none_starts_afresh() -> None:
    x = leaf(1.0)
    (x * 2).backward()
    x.grad = None
    (x * 3).backward()
    assert grad_of(x).tolist() == [3.0]


def test_assigned_grad_may_have_a_history() -> None:
    x, w = leaf(1.0), leaf(3.0)
    x.grad = w * 2
    grad_of(x).backward()
    assert grad_of(w).tolist() == [2.0]


@pytest.mark.parametrize("shape", [(3,), (1,), (2, 1), ()])
def test_grad_of_another_shape_raises(shape: tuple[int, ...]) -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="assign a gradient of size"):
        x.grad = dg.ones(shape)


@pytest.mark.parametrize("dtype", ["int32", "float16", "complex64"])
def test_grad_of_another_dtype_raises(dtype: str) -> None:
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="assign a gradient with dtype"):
        x.grad = dg.ones(1, dtype=getattr(dg, dtype))


@pytest.mark.parametrize("value", [0, "grad", [1.0]])
def test_grad_that_is_no_tensor_raises(value: Any) -> None:
    x = leaf(1.0)
    with pytest.raises(TypeError, match="expected to be a Tensor or None"):
        x.grad = value


def test_tensor_refuses_to_be_its_own_grad() -> None:
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="its own grad"):
        x.grad = x


def test_refused_grad_leaves_the_old_one() -> None:
    x = leaf(1.0)
    x.grad = dg.ones(1)
    with pytest.raises(RuntimeError, match="assign a gradient of size"):
        x.grad = dg.ones(2)
    assert grad_of(x).tolist() == [1.0]


def test_deleted_grad_is_none() -> None:
    x = leaf(1.0)
    (x * 2).backward()
    del x.grad
    assert x.grad is None


@pytest.mark.parametrize("name", ["grad_fn", "is_leaf", "output_nr", "shape"])
def test_facts_of_a_tensor_cannot_be_deleted(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        delattr(leaf(1.0), name)


@pytest.mark.parametrize("name", ["is_leaf", "output_nr", "shape"])
def test_facts_of_a_tensor_cannot_be_assigned(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        setattr(leaf(1.0), name, None)


def test_requires_grad_cannot_be_deleted() -> None:
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        del leaf(1.0).requires_grad


def test_unknown_attribute_raises() -> None:
    name = "no_such_name"
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'no_such_name'"):
        getattr(leaf(1.0), name)


def test_dir_lists_operators_and_autograd_names() -> None:
    assert {"grad", "requires_grad", "backward", "exp", "register_hook"} <= set(dir(leaf(1.0)))


# .data


def test_data_has_the_values_without_the_history() -> None:
    y = leaf(1.0) * 2
    assert (y.data.tolist(), y.data.requires_grad, y.data.is_leaf) == ([2.0], False, True)


def test_assigned_data_changes_values_and_shape_alone() -> None:
    x = leaf(1.0, 2.0)
    before = id(x)
    x.data = dg.zeros(3)
    assert (id(x), x.requires_grad, x.is_leaf, x.tolist()) == (before, True, True, [0.0] * 3)


def test_integer_data_of_a_tensor_that_requires_grad_raises() -> None:
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="must be floating point or complex dtype"):
        x.data = dg.tensor([1])


def test_data_that_is_no_tensor_raises() -> None:
    x: Any = leaf(1.0)
    with pytest.raises(TypeError, match="data has to be a tensor"):
        x.data = None


def test_data_cannot_be_deleted() -> None:
    with pytest.raises(RuntimeError, match="Deleting tensor data is not allowed"):
        del leaf(1.0).data


# numpy


@pytest.mark.parametrize("convert", [lambda x: x.numpy(), np.asarray], ids=["numpy", "asarray"])
def test_numpy_of_a_tensor_that_requires_grad_raises(convert: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match=r"numpy\(\) on Tensor that requires grad.*detach\(\)"):
        convert(leaf(1.0))


def test_numpy_of_a_tensor_that_requires_grad_is_allowed_under_no_grad() -> None:
    with dg.no_grad():
        assert leaf(1.0).numpy().tolist() == [1.0]


def test_detached_tensor_converts_to_numpy() -> None:
    array = (leaf(1.0, 2.0) * 2).detach().numpy()
    assert (array.dtype, array.tolist()) == (np.float32, [2.0, 4.0])


def test_numpy_functions_take_tensors() -> None:
    assert np.asarray(dg.tensor([1, 2], dtype=dg.int32)).dtype == np.int32
    assert np.asarray(dg.ones(2, 3)).sum() == 6.0


# Python scalars


@pytest.mark.parametrize("value", [True, 3, 2.5, 1 + 2j])
def test_item_gives_a_number_of_python(value: Any) -> None:
    for shape in ((), (1,), (1, 1)):
        item = dg.full(shape, value).item()
        assert (type(item), item) == (type(value), value)


def test_item_of_a_tensor_that_requires_grad_is_allowed() -> None:
    assert dg.tensor(3.0, requires_grad=True).item() == 3.0


@pytest.mark.parametrize("size", [0, 2])
def test_item_of_other_than_one_element_raises(size: int) -> None:
    message = f"a Tensor with {size} elements cannot be converted to Scalar"
    with pytest.raises(RuntimeError, match=message):
        dg.ones(size).item()


@pytest.mark.parametrize(
    "value", [1.5, 3, True, [True, False], [[1.0, 2.0], [3.0, 4.0]], [1j], [[], []]]
)
def test_tolist_gives_nested_lists_of_python_numbers(value: Any) -> None:
    assert repr(dg.tensor(value).tolist()) == repr(value)


def test_tolist_of_a_tensor_that_requires_grad_is_allowed() -> None:
    assert leaf(1.0, 2.0).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "convert, value, expected",
    [
        (float, 2, 2.0),
        (int, -2.7, -2),
        (int, True, 1),
        (bool, 2.0, True),
        (bool, 0.0, False),
        (bool, nan, True),
        (complex, 1.5, 1.5 + 0j),
        (complex, 1 + 2j, 1 + 2j),
        (float, inf, inf),
        (math.floor, 1.5, 1),
        (hex, 255, "0xff"),
    ],
)
def test_tensor_of_one_element_converts_to_python(
    convert: Callable[..., Any], value: Any, expected: Any
) -> None:
    assert convert(dg.tensor(value)) == expected
    assert convert(dg.tensor([[value]])) == expected


@pytest.mark.parametrize("size", [0, 2])
@pytest.mark.parametrize("convert", [float, int, complex])
def test_number_of_other_than_one_element_raises(convert: Callable[..., Any], size: int) -> None:
    with pytest.raises(ValueError, match="only one element tensors can be converted"):
        convert(dg.ones(size))


@pytest.mark.parametrize(
    "size, message", [(2, "more than one value is ambiguous"), (0, "no values is ambiguous")]
)
def test_truth_of_other_than_one_element_raises(size: int, message: str) -> None:
    with pytest.raises(RuntimeError, match=f"Boolean value of Tensor with {message}"):
        bool(dg.ones(size))


@pytest.mark.parametrize(
    "value, error, message",
    [(nan, ValueError, "NaN to integer"), (inf, OverflowError, "infinity to integer")],
)
def test_int_of_no_finite_number_raises(value: float, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"cannot convert float {message}"):
        int(dg.tensor(value))


def test_float_of_a_complex_number_raises() -> None:
    with pytest.raises(RuntimeError, match="cannot be converted to type double"):
        float(dg.tensor(1 + 2j))


@pytest.mark.parametrize("value", [1, [1], True])
def test_integer_tensor_of_one_element_is_an_index(value: Any) -> None:
    assert [10, 20, 30][dg.tensor(value)] == 20
    assert operator.index(dg.tensor(value)) == 1


@pytest.mark.parametrize("value", [1.0, [1, 2]])
def test_other_tensors_are_no_index(value: Any) -> None:
    with pytest.raises(TypeError, match="only integer tensors of a single element"):
        _ = [10, 20, 30][dg.tensor(value)]


# Containers


def test_len_is_the_first_size() -> None:
    assert (len(dg.ones(3, 2)), len(dg.ones(0, 2))) == (3, 0)


def test_len_of_a_scalar_raises() -> None:
    with pytest.raises(TypeError, match="0-d tensor"):
        len(dg.tensor(1.0))


def test_iteration_goes_over_the_first_dimension() -> None:
    assert [row.tolist() for row in dg.tensor([[1.0, 2.0], [3.0, 4.0]])] == [[1.0, 2.0], [3.0, 4.0]]
    assert list(dg.ones(0, 2)) == []


def test_iteration_over_a_scalar_raises() -> None:
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(dg.tensor(1.0))


def test_iteration_is_recorded() -> None:
    x = leaf(1.0, 2.0, 3.0)
    first, _, third = x
    (first * 10 + third * 30).backward()
    assert grad_of(x).tolist() == [10.0, 0.0, 30.0]


def test_indexing_a_scalar_raises() -> None:
    with pytest.raises(IndexError, match=r"0-dim tensor.*item\(\)"):
        _ = dg.tensor(1.0)[0]


def test_contains_looks_for_an_equal_element() -> None:
    x = dg.tensor([[1.0, 2.0]])
    assert 2 in x and dg.tensor(1.0) in x
    assert 5 not in x


@pytest.mark.parametrize("value", ["a", None])
def test_contains_of_no_number_raises(value: Any) -> None:
    with pytest.raises(RuntimeError, match="__contains__ only supports Tensor or scalar"):
        _ = value in dg.ones(2)


def test_shape_is_a_tuple() -> None:
    x = dg.ones(2, 3)
    assert isinstance(x.shape, tuple) and isinstance(x.shape, dg.Size)
    assert x.shape == (2, 3) and x.shape == x.size()
    assert x.shape[1:] == (3,)


def test_sizes_are_counted() -> None:
    x = dg.ones(2, 3)
    assert (x.dim(), x.ndim, x.numel(), x.nelement(), x.shape.numel()) == (2, 2, 6, 6, 6)
    assert (x.size(0), x.size(-1), x.size(dim=1)) == (2, 3, 3)
    assert (x.element_size(), x.nbytes) == (4, 24)


def test_size_of_a_missing_dimension_raises() -> None:
    with pytest.raises(IndexError, match="Dimension out of range"):
        dg.ones(2).size(3)


def test_size_of_a_dimension_of_a_scalar_raises() -> None:
    with pytest.raises(IndexError, match="no dimensions"):
        dg.tensor(1.0).size(0)


# Equality and hash


def test_equality_is_elementwise() -> None:
    x = dg.tensor([1.0, 2.0])
    assert (x == dg.tensor([1.0, 3.0])).tolist() == [True, False]
    assert (x != 1.0).tolist() == [False, True]


@pytest.mark.parametrize("other", [None, "a"])
def test_tensor_is_unequal_to_what_is_no_number(other: Any) -> None:
    x = dg.ones(2)
    assert (x == other) is False
    assert (x != other) is True


def test_equality_of_shapes_that_do_not_broadcast_raises() -> None:
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        _ = dg.ones(2) == dg.ones(3)


def test_hash_is_by_identity() -> None:
    x, equal = dg.ones(2), dg.ones(2)
    assert len({x, x, equal}) == 2
    assert {x: "found"}[x] == "found"


@pytest.mark.parametrize("other", [None, "a", [1.0]])
def test_arithmetic_with_no_number_raises(other: Any) -> None:
    with pytest.raises(TypeError, match="unsupported operand type"):
        _ = dg.ones(1) + other


def test_order_against_none_raises() -> None:
    nothing: Any = None
    with pytest.raises(TypeError, match="'<' not supported between"):
        operator.lt(dg.ones(1), nothing)


def test_is_tensor_knows_tensors() -> None:
    assert dg.is_tensor(leaf(1.0))
    assert not dg.is_tensor([1.0]) and not dg.is_tensor(np.ones(1))


# Copies


def test_deepcopy_of_a_leaf_is_a_leaf_of_its_own() -> None:
    x = leaf(1.0, 2.0)
    y = copy.deepcopy(x)
    assert (y.tolist(), y.requires_grad, y.is_leaf) == ([1.0, 2.0], True, True)
    y.sum().backward()
    assert x.grad is None


def test_deepcopy_copies_the_grad() -> None:
    x = leaf(1.0)
    (x * 2).backward()
    y = copy.deepcopy(x)
    assert grad_of(y).tolist() == [2.0]
    assert y.grad is not x.grad


def test_deepcopy_copies_the_users_attributes() -> None:
    x = leaf(1.0)
    x.notes = ["mine"]  # pyright: ignore
    y = copy.deepcopy(x)
    x.notes.append("later")  # pyright: ignore
    assert y.notes == ["mine"]  # pyright: ignore


def test_pickle_keeps_the_users_attributes() -> None:
    x = leaf(1.0)
    x.notes = ["mine"]  # pyright: ignore
    assert pickle.loads(pickle.dumps(x)).notes == ["mine"]


def test_deepcopy_keeps_shared_tensors_shared() -> None:
    x = leaf(1.0)
    first, second = copy.deepcopy([x, x])
    assert first is second and first is not x


def test_deepcopy_of_an_interior_tensor_raises() -> None:
    with pytest.raises(RuntimeError, match=r"graph leaves.*deepcopy"):
        copy.deepcopy(leaf(1.0) * 2)


@pytest.mark.parametrize("requires_grad", [True, False])
def test_pickle_of_a_leaf_keeps_values_dtype_and_requires_grad(requires_grad: bool) -> None:
    x = dg.ones(2, 3, dtype=dg.float16, requires_grad=requires_grad)
    y = pickle.loads(pickle.dumps(x))
    assert (y.tolist(), y.dtype, y.requires_grad) == (x.tolist(), x.dtype, requires_grad)


def test_pickle_leaves_the_grad_behind() -> None:
    x = leaf(1.0)
    (x * 2).backward()
    assert pickle.loads(pickle.dumps(x)).grad is None


@pytest.mark.parametrize(
    "values", [[True, False], [1, 2], [1.5, inf], [1 + 2j], []], ids=lambda values: repr(values)
)
def test_pickle_keeps_every_kind_of_value(values: list[Any]) -> None:
    assert pickle.loads(pickle.dumps(dg.tensor(values))).tolist() == values


# Conversions


@pytest.mark.parametrize(
    "method, dtype",
    [
        ("float", "float32"),
        ("half", "float16"),
        ("bfloat16", "bfloat16"),
        ("int", "int32"),
        ("short", "int16"),
        ("char", "int8"),
        ("byte", "uint8"),
        ("bool", "bool"),
        ("cfloat", "complex64"),
    ],
)
def test_conversion_methods_give_their_dtype(method: str, dtype: str) -> None:
    x = dg.tensor([0, 1], dtype=dg.int16 if method == "int" else dg.int32)
    expected = getattr(dg, dtype)
    for y in (getattr(x, method)(), x.to(expected), x.type(expected), x.to(dtype=expected)):
        assert (y.dtype, [complex(v) for v in y.tolist()]) == (expected, [0, 1])


def test_conversion_to_integers_truncates_towards_zero() -> None:
    assert dg.tensor([1.9, -1.9]).int().tolist() == [1, -1]


def test_conversion_to_the_same_dtype_returns_the_tensor() -> None:
    x = leaf(1.0)
    assert x.float() is x and x.to(dg.float32) is x and x.to(x) is x


def test_conversion_follows_another_tensor() -> None:
    other = dg.ones(1, dtype=dg.int32)
    assert leaf(1.5).to(other).dtype == dg.int32
    assert leaf(1.5).type_as(other).dtype == dg.int32


def test_conversion_between_floats_is_differentiable() -> None:
    x = leaf(1.0, 2.0)
    (x.half() * 3).sum().backward()
    assert (grad_of(x).dtype, grad_of(x).tolist()) == (dg.float32, [3.0, 3.0])


def test_gradient_through_complex_numbers_comes_back_real() -> None:
    x = leaf(3.0, -4.0)
    x.to(dg.complex64).abs().sum().backward()
    assert (grad_of(x).dtype, grad_of(x).tolist()) == (dg.float32, [1.0, -1.0])


def test_negative_base_has_a_gradient_with_a_complex_exponent() -> None:
    base = leaf(-2.0)
    exponent = dg.tensor([1.5 + 0.5j], requires_grad=True)
    (base**exponent).real.sum().backward()
    b, e = np.complex64(-2.0), np.complex64(1.5 + 0.5j)
    np.testing.assert_allclose(grad_of(base).numpy(), [(e * b ** (e - 1)).real], rtol=1e-4)
    np.testing.assert_allclose(grad_of(exponent).numpy(), [np.conj(b**e * np.log(b))], rtol=1e-4)


def test_dtypes_tell_floats_from_others() -> None:
    assert leaf(1.0).is_floating_point() and dg.is_floating_point(leaf(1.0))
    assert dg.tensor(1j).is_complex() and not dg.tensor(1j).is_floating_point()
    assert not dg.tensor(1).is_floating_point() and not dg.tensor(True).is_floating_point()


@pytest.mark.parametrize(
    "dtype, scalar, expected",
    [
        ("int32", 2, "int32"),
        ("int32", True, "int32"),
        ("int32", 2.5, "float32"),
        ("int32", 1j, "complex64"),
        ("int8", 100, "int8"),
        ("uint8", 2, "uint8"),
        ("bool", True, "bool"),
        ("bool", 2.5, "float32"),
        ("float32", 2, "float32"),
        ("float32", 2.5, "float32"),
        ("float32", 1j, "complex64"),
        ("float16", 2.5, "float16"),
        ("bfloat16", 2.5, "bfloat16"),
        ("complex64", 2.5, "complex64"),
    ],
)
def test_python_scalars_promote_by_their_kind_alone(dtype: str, scalar: Any, expected: str) -> None:
    x = dg.ones(2, dtype=getattr(dg, dtype))
    for y in (x * scalar, scalar * x):
        assert y.dtype == getattr(dg, expected)


def test_bool_and_python_integer_make_the_default_integer_dtype() -> None:
    assert (dg.tensor([True]) + 1).dtype == dg.tensor(1).dtype


def test_division_of_integers_makes_floats() -> None:
    y = dg.tensor([1, 2], dtype=dg.int32) / 2
    assert (y.dtype, y.tolist()) == (dg.float32, [0.5, 1.0])


def test_tensors_promote_to_the_wider_dtype() -> None:
    one = {name: dg.ones(2, dtype=getattr(dg, name)) for name in ("int32", "float16", "float32")}
    assert (one["int32"] + one["float32"]).dtype == dg.float32
    assert (one["float16"] * one["float32"]).dtype == dg.float32
    assert (one["int32"] * one["float16"]).dtype == dg.float16


def test_gradients_have_the_dtype_of_their_own_tensor_after_promotion() -> None:
    x = dg.ones(2, dtype=dg.float16, requires_grad=True)
    y = leaf(1.0, 2.0)
    (x * y).sum().backward()
    assert (grad_of(x).dtype, grad_of(y).dtype) == (dg.float16, dg.float32)


# Format and repr


@pytest.mark.parametrize(
    "value, spec, expected",
    [(3.14159, ".2f", "3.14"), (5, "03d", "005"), (5, ">4", "   5"), (True, "", "True")],
)
def test_scalar_formats_as_its_number(value: Any, spec: str, expected: str) -> None:
    assert format(dg.tensor(value), spec) == expected


def test_scalar_that_requires_grad_formats_as_its_number() -> None:
    assert f"{dg.tensor(2.5, requires_grad=True):.3f}" == "2.500"
    assert f"{dg.tensor(2.5, requires_grad=True)}" == "2.5"


def test_other_tensors_format_as_they_print() -> None:
    assert f"{leaf(1.0)}" == "tensor([1.], requires_grad=True)"


def test_other_tensors_take_no_format_string() -> None:
    with pytest.raises(TypeError, match=r"unsupported format string passed to Tensor.__format__"):
        format(dg.ones(1), ".2f")


PRINTED_VALUES: list[tuple[Any, str]] = [
    (3.0, "tensor(3.)"),
    (0.1, "tensor(0.1000)"),
    (-0.0, "tensor(-0.)"),
    (nan, "tensor(nan)"),
    (1e10, "tensor(1.0000e+10)"),
    (1e-10, "tensor(1.0000e-10)"),
    (2 + 3j, "tensor(2.+3.j)"),
    ([], "tensor([])"),
    ([[], []], "tensor([], size=(2, 0))"),
    ([1.0, -2.0], "tensor([ 1., -2.])"),
    ([1.5, 2.25], "tensor([1.5000, 2.2500])"),
    ([1 / 3, 100.0], "tensor([  0.3333, 100.0000])"),
    ([1.5, nan, -inf], "tensor([1.5000,    nan,   -inf])"),
    ([nan, nan], "tensor([nan, nan])"),
    ([123456.789], "tensor([123456.7891])"),
    ([1e8, 2e8], "tensor([1.0000e+08, 2.0000e+08])"),
    ([1e-4, 2e-4], "tensor([1.0000e-04, 2.0000e-04])"),
    ([1e-5, 1e5], "tensor([1.0000e-05, 1.0000e+05])"),
    ([1.5, 1501.25, 0.5], "tensor([1.5000e+00, 1.5012e+03, 5.0000e-01])"),
    ([3.4e38, 2e-38], "tensor([3.4000e+38, 2.0000e-38])"),
    ([-1, 100, 7], "tensor([ -1, 100,   7])"),
    ([2147483647, 0], "tensor([2147483647,          0])"),
    ([True, False], "tensor([ True, False])"),
    (
        [[1.0, -20.5], [300.25, 4.0]],
        "tensor([[  1.0000, -20.5000],\n        [300.2500,   4.0000]])",
    ),
    ([[1, 20], [300, -4]], "tensor([[  1,  20],\n        [300,  -4]])"),
    ([[True], [False]], "tensor([[ True],\n        [False]])"),
    ([[[1.0, 2.0]], [[3.0, 4.0]]], "tensor([[[1., 2.]],\n\n        [[3., 4.]]])"),
    ([1 + 2j, 3 - 4j], "tensor([1.+2.j, 3.-4.j])"),
    ([1.5 + 2j, -0.25 + 0j], "tensor([ 1.5000+2.j, -0.2500+0.j])"),
    ([1e-5 + 1j, 1e5 + 0j], "tensor([1.0000e-05+1.j, 1.0000e+05+0.j])"),
    (
        [[1j, 2.0], [0.5, 1 - 1j]],
        "tensor([[0.0000+1.j, 2.0000+0.j],\n        [0.5000+0.j, 1.0000-1.j]])",
    ),
]

PRINTED_LONG: list[tuple[Callable[[], dg.Tensor], str]] = [
    (lambda: dg.zeros(0, 3), "tensor([], size=(0, 3))"),
    (
        lambda: dg.ones(2, 2, 2),
        "tensor([[[1., 1.],\n         [1., 1.]],\n\n        [[1., 1.],\n         [1., 1.]]])",
    ),
    (
        lambda: dg.arange(30.0),
        "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n"
        "        14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24., 25., 26., 27.,\n"
        "        28., 29.])",
    ),
    (lambda: dg.arange(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    (lambda: dg.arange(1001.0), "tensor([   0.,    1.,    2.,  ...,  998.,  999., 1000.])"),
    (
        lambda: dg.arange(2000.0).reshape(2, 1000),
        "tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 9.9700e+02, 9.9800e+02,\n"
        "         9.9900e+02],\n"
        "        [1.0000e+03, 1.0010e+03, 1.0020e+03,  ..., 1.9970e+03, 1.9980e+03,\n"
        "         1.9990e+03]])",
    ),
    (
        lambda: dg.zeros(1001, 2),
        "tensor([[0., 0.],\n"
        "        [0., 0.],\n"
        "        [0., 0.],\n"
        "        ...,\n"
        "        [0., 0.],\n"
        "        [0., 0.],\n"
        "        [0., 0.]])",
    ),
]

PRINTED_AUTOGRAD: list[tuple[Callable[[], dg.Tensor], str]] = [
    (lambda: leaf(1.0), "tensor([1.], requires_grad=True)"),
    (lambda: dg.tensor(1.5, requires_grad=True), "tensor(1.5000, requires_grad=True)"),
    (lambda: leaf(), "tensor([], requires_grad=True)"),
    (lambda: dg.tensor([1j], requires_grad=True), "tensor([0.+1.j], requires_grad=True)"),
    (
        lambda: dg.tensor([[1.0], [2.0]], requires_grad=True),
        "tensor([[1.],\n        [2.]], requires_grad=True)",
    ),
    (lambda: leaf(1.0, 1.0) * 2, "tensor([2., 2.], grad_fn=<MulBackward0>)"),
    (lambda: leaf(1.0, 1.0).sum(), "tensor(2., grad_fn=<SumBackward0>)"),
    (lambda: (leaf(1.0, 1.0) * 2).detach(), "tensor([2., 2.])"),
    (
        lambda: dg.linspace(0, 1, 9, requires_grad=True),
        "tensor([0.0000, 0.1250, 0.2500, 0.3750, 0.5000, 0.6250, 0.7500, 0.8750, 1.0000],\n"
        "       requires_grad=True)",
    ),
    (
        lambda: dg.linspace(0, 1, 7, requires_grad=True) * 2,
        "tensor([0.0000, 0.3333, 0.6667, 1.0000, 1.3333, 1.6667, 2.0000],\n"
        "       grad_fn=<MulBackward0>)",
    ),
]


def printed_ids(rows: list[tuple[Any, str]]) -> list[str]:
    return [" ".join(printed.split())[:60] for _, printed in rows]


@pytest.mark.parametrize("value, printed", PRINTED_VALUES, ids=printed_ids(PRINTED_VALUES))
def test_values_print_with_four_digits_in_aligned_columns(value: Any, printed: str) -> None:
    assert repr(dg.tensor(value)) == str(dg.tensor(value)) == printed


@pytest.mark.parametrize("make, printed", PRINTED_LONG, ids=printed_ids(PRINTED_LONG))
def test_long_tensors_wrap_at_eighty_columns_and_are_summarised_past_a_thousand_elements(
    make: Callable[[], dg.Tensor], printed: str
) -> None:
    assert repr(make()) == printed


@pytest.mark.parametrize("make, printed", PRINTED_AUTOGRAD, ids=printed_ids(PRINTED_AUTOGRAD))
def test_history_is_printed_after_the_values(make: Callable[[], dg.Tensor], printed: str) -> None:
    assert repr(make()) == printed


@pytest.mark.parametrize(
    "values, dtype, printed",
    [
        ([1.0, 1.0], "float16", "[1., 1.]"),
        ([0.1, 1e-3], "float16", "[0.1000, 0.0010]"),
        ([1.0, 1.0], "bfloat16", "[1., 1.]"),
        ([1, 200], "uint8", "[  1, 200]"),
        ([1, -100], "int8", "[   1, -100]"),
    ],
)
def test_dtypes_other_than_the_default_ones_are_printed(
    values: list[float], dtype: str, printed: str
) -> None:
    x = dg.tensor(values, dtype=getattr(dg, dtype))
    assert repr(x) == f"tensor({printed}, dtype={getattr(dg, dtype)})"

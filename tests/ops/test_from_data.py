"""Tensors from data: what `tests/test_tensor.py` leaves open.

Values and error types were recorded from PyTorch 2.13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg


@pytest.mark.parametrize(
    "data, dtype",
    [
        (np.float16(1), dg.float16),
        ([np.float16(1), 2], dg.float16),
        ([np.int16(1), 2], dg.int32),
        ([dg.tensor(1, dtype=dg.int16)], dg.int16),
        ([np.ones(2, np.float16), np.ones(2, np.float16)], dg.float16),
        ([jnp.ones((), jnp.bfloat16), 2.0], dg.float32),
        (jnp.ones(2, jnp.bfloat16), dg.bfloat16),
        (range(3), dg.int32),
        (np.ones(2), dg.float32),
        (np.ones(2, np.int64), dg.int32),
        (np.ones(2, np.complex128), dg.complex64),
        (np.ones(2, ">f4"), dg.float32),
    ],
)
def test_dtype_is_inferred_from_all_elements(data: Any, dtype: Any) -> None:
    assert dg.tensor(data).dtype == dtype


def test_sixty_four_bit_arrays_keep_their_dtype_with_x64(x64: None) -> None:
    assert dg.tensor(np.ones(2)).dtype == dg.float64
    assert dg.from_numpy(np.ones(2, np.int64)).dtype == dg.int64
    assert dg.tensor([1]).dtype == dg.int64
    assert dg.tensor([1.0]).dtype == dg.float32


@pytest.mark.parametrize("make", [lambda d: dg.tensor(1, dtype=d), lambda d: dg.zeros(2, dtype=d)])
def test_sixty_four_bit_dtypes_raise_without_x64(make: Callable[..., Any]) -> None:
    for dtype in (dg.float64, dg.int64, dg.complex128):
        with pytest.raises(TypeError, match="jax_enable_x64"):
            make(dtype)


@pytest.mark.parametrize(
    "data, error, message",
    [
        ([[1, 2], [1, 2, 3]], ValueError, r"expected sequence of length 2 at dim 1 \(got 3\)"),
        ([[1, 2], 3], TypeError, "not a sequence"),
        ([1, [2]], TypeError, "expected a number at dim 0"),
        (["a"], ValueError, "too many dimensions 'str'"),
        ([1, None], RuntimeError, "Could not infer dtype of NoneType"),
        (object(), RuntimeError, "Could not infer dtype of object"),
        (np.array(["a"]), TypeError, "can't convert np.ndarray of type"),
        ([dg.ones(2)], ValueError, r"only one element tensors.*stack\(\)"),
    ],
)
def test_what_is_no_array_of_numbers_raises(data: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        dg.tensor(data)


def test_list_that_contains_itself_raises() -> None:
    data: list[Any] = []
    data.append(data)
    with pytest.raises(ValueError, match="too many dimensions"):
        dg.tensor(data)


@pytest.mark.parametrize(
    "data, dtype",
    [([300], dg.int8), ([256], dg.uint8), ([1e10], dg.int32), ([float("nan")], dg.int32)],
)
def test_number_that_its_dtype_does_not_hold_raises(data: Any, dtype: Any) -> None:
    with pytest.raises(RuntimeError, match=f"type {dtype.name} without overflow"):
        dg.tensor(data, dtype=dtype)


@pytest.mark.parametrize("data", [2**40, [2**70], np.array([2**40])])
def test_integer_beyond_32_bits_raises_without_x64(data: Any) -> None:
    with pytest.raises(RuntimeError, match=r"without overflow.*jax_enable_x64"):
        dg.tensor(data)


def test_negative_number_wraps_around_in_an_unsigned_dtype() -> None:
    assert dg.tensor([-1], dtype=dg.uint8).tolist() == [255]


def test_float_beyond_its_dtype_is_infinite() -> None:
    assert dg.tensor([1e300, -1e300]).tolist() == [float("inf"), -float("inf")]


def test_complex_number_in_a_real_dtype_raises() -> None:
    with pytest.raises(TypeError, match="must be real number, not complex"):
        dg.tensor([1j], dtype=dg.float32)


def test_tensor_in_a_list_that_requires_grad_warns() -> None:
    with pytest.warns(UserWarning, match="detach"):
        assert dg.tensor([dg.tensor(1.0, requires_grad=True)]).tolist() == [1.0]


def test_as_tensor_shares_a_jax_array() -> None:
    array = jnp.ones(3)
    assert dg.as_tensor(array).jax() is array
    assert dg.from_jax_array(array).jax() is array


def test_as_tensor_does_not_follow_a_numpy_array() -> None:
    array = np.ones(1000, np.float32)
    made = [dg.as_tensor(array), dg.from_numpy(array), dg.asarray(array)]
    array[:] = 7
    assert [x[0].item() for x in made] == [1.0, 1.0, 1.0]


def test_asarray_keeps_the_history_unless_told() -> None:
    x = dg.ones(2, requires_grad=True)
    y = x * 2
    assert dg.asarray(x) is x and dg.asarray(y) is y
    assert not dg.asarray(y, requires_grad=False).requires_grad
    assert dg.asarray(x, copy=True).grad_fn is not None


def test_asarray_without_a_copy_raises_where_one_is_needed() -> None:
    with pytest.raises(ValueError, match="can't alias"):
        dg.asarray([1, 2], copy=False)
    with pytest.raises(ValueError, match="can't alias"):
        dg.asarray(dg.ones(2), dtype=dg.float16, copy=False)


def test_from_jax_array_refuses_a_key() -> None:
    with pytest.raises(TypeError, match=r"expected a jax.Array of numbers"):
        dg.from_jax_array(jax.random.key(0))


def test_scalar_tensor_has_the_default_dtype() -> None:
    assert [dg.scalar_tensor(v).dtype for v in (1, True, 1.5)] == [dg.float32] * 3

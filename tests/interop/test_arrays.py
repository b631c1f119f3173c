"""Arrays of other libraries without copies, and tensors in pytrees."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg


def address(array: Any) -> int:
    """Where the first element of a numpy or jax array is."""
    if isinstance(array, np.ndarray):
        return array.__array_interface__["data"][0]
    return array.unsafe_buffer_pointer()


def aligned(values: Any) -> np.ndarray:
    """A numpy array at an address that XLA takes as it is."""
    values = np.asarray(values)
    memory = np.zeros(values.nbytes + 64, np.uint8)
    start = -address(memory) % 64
    made = memory[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    made[...] = values
    return made


def test_numpy_reads_a_tensor_where_it_is() -> None:
    x = dg.arange(4.0)
    assert address(x.numpy()) == address(np.from_dlpack(x)) == address(x.jax())
    assert address(np.asarray(x)) == address(x.jax())


def test_tensor_reads_numpy_where_it_is() -> None:
    array = aligned(np.arange(4, dtype=np.float32))
    assert address(dg.from_dlpack(array).jax()) == address(array)
    assert address(dg.from_dlpack(array, copy=True).jax()) != address(array)


def test_jax_and_tensors_share_memory_both_ways() -> None:
    array = jnp.arange(4.0)
    x = dg.from_dlpack(array)
    assert address(x.jax()) == address(array)
    assert address(jnp.from_dlpack(x)) == address(array)
    assert dg.interop.tensors_of([array])[0].jax() is array


@pytest.mark.parametrize("dtype", [np.int16, np.uint8, np.float16, np.complex64, np.bool_])
def test_dtypes_pass_by_dlpack(dtype: Any) -> None:
    array = np.array([1, 0], dtype)
    x = dg.from_dlpack(array)
    assert np.from_dlpack(x).dtype == array.dtype
    assert x.tolist() == array.tolist()


def test_view_passes_with_its_own_values() -> None:
    x = dg.arange(6.0).view(2, 3)
    assert np.from_dlpack(x.T[1]).tolist() == [1.0, 4.0]


def test_array_with_its_dtype_and_copy() -> None:
    x = dg.arange(2.0)
    assert np.asarray(x, np.float64).dtype == np.float64
    copied = np.array(x, copy=True)
    copied[0] = 5
    assert x.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("read", [np.from_dlpack, np.asarray, jnp.from_dlpack])
def test_tensor_that_requires_grad_is_not_handed_out(read: Any) -> None:
    x = dg.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Use tensor\.detach\(\)"):
        read(x)


def test_tensors_are_leaves_of_pytrees() -> None:
    tree = {"a": dg.ones(2, requires_grad=True), "b": [dg.zeros(1)]}
    assert all(isinstance(leaf, dg.Tensor) for leaf in jax.tree.leaves(tree))
    doubled = jax.tree.map(lambda t: t * 2, tree)
    doubled["a"].sum().backward()
    assert tree["a"].grad.tolist() == [2.0, 2.0]  # type: ignore[union-attr]


def test_parameters_are_mapped_by_name() -> None:
    module = dg.nn.Module()
    module.weight = dg.nn.Parameter(dg.ones(2))
    module.weight.sum().backward()
    parameters = dict(module.named_parameters())
    stepped = jax.tree.map(lambda p: (p - p.grad).detach(), parameters)
    assert stepped["weight"].tolist() == [0.0, 0.0]


def test_trees_of_arrays_and_tensors_share_memory() -> None:
    key = jax.random.key(0)
    tree = {"x": jnp.ones(2), "n": np.arange(2), "key": key, "s": "text", "none": None}
    tensors = dg.interop.tensors_of(tree, requires_grad=True)
    assert (tensors["x"].requires_grad, tensors["n"].requires_grad) == (True, False)
    assert tensors["key"] is key
    assert (tensors["s"], tensors["none"]) == ("text", None)
    assert dg.interop.arrays_of(tensors)["x"] is tree["x"]

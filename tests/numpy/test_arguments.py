"""How the arguments of `dyngraph.numpy` are read: inputs, static arguments, keys, errors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import dyngraph as dg
import numpy as np

dnp = dg.numpy


def test_new_number_compiles_nothing() -> None:
    x = dg.tensor([1.0, 2.0], requires_grad=True)
    dnp.multiply(x, 0.25).sum().backward()
    ways = len(dnp.multiply.recorded.ways)
    for number in (0.5, 0.75, 3.0):
        dnp.multiply(x, number).sum().backward()
    assert len(dnp.multiply.recorded.ways) == ways


def test_number_that_must_be_static_is() -> None:
    x = dg.tensor([3.0, 4.0])
    assert dnp.linalg.norm(x, 1.0).item() == 7.0
    assert dnp.linalg.norm(x, dnp.inf).item() == 4.0
    assert dnp.repeat(x, 2).tolist() == [3.0, 3.0, 4.0, 4.0]


def test_equal_numbers_of_other_types_are_other_arguments() -> None:
    x = dg.tensor([1, 2])
    assert dnp.power(x, 2).dtype == dg.int32
    assert dnp.power(x, 2.0).dtype == dg.float32


def test_arrays_of_every_kind_are_inputs() -> None:
    x = dg.tensor([1.0, 2.0], requires_grad=True)
    for other in (jnp.ones(2), np.ones(2, np.float32), np.float32(1)):
        assert dnp.add(x, other).tolist() == [2.0, 3.0]
    assert isinstance(dnp.add(jnp.ones(2), 1), dg.Tensor)


def test_tensors_in_lists_get_gradients() -> None:
    x, y = (dg.tensor([v], requires_grad=True) for v in (1.0, 2.0))
    (dnp.concatenate([x, 3 * y]) ** 2).sum().backward()
    assert x.grad is not None and y.grad is not None
    assert (x.grad.item(), y.grad.item()) == (2.0, 36.0)


def test_dtype_of_ours_is_a_dtype() -> None:
    assert dnp.zeros(2, dtype=dg.float16).dtype == dg.float16
    assert dnp.astype(dg.ones(2), dg.bfloat16).dtype == dg.bfloat16


def test_integer_tensor_is_a_size_or_an_axis() -> None:
    assert dnp.arange(dg.tensor(3)).tolist() == [0, 1, 2]
    assert dnp.sum(dg.ones(2, 3), axis=dg.tensor(1)).tolist() == [3.0, 3.0]


def test_named_tuples_and_lists_stay() -> None:
    assert type(dnp.linalg.slogdet(dg.eye(2))).__name__ == "SlogdetResult"
    assert isinstance(dnp.split(dg.ones(4), 2), list)


def test_shape_that_depends_on_values_is_found_and_recorded() -> None:
    x = dg.tensor([1.0, -2.0, 3.0], requires_grad=True)
    kept = dnp.extract(x > 0, x)
    assert kept.tolist() == [1.0, 3.0]
    (grad,) = dg.autograd.grad((kept**3).sum(), x, create_graph=True)
    assert grad.tolist() == [3.0, 0.0, 27.0]
    (second,) = dg.autograd.grad(grad.sum(), x)
    assert second.tolist() == [6.0, 0.0, 18.0]
    assert [i.tolist() for i in dnp.nonzero(x > 0)] == [[0, 2]]


def test_node_is_named_after_the_function() -> None:
    x = dg.tensor([1.0, 2.0], requires_grad=True)
    y = dnp.tanh(x)
    assert y.grad_fn is not None
    assert y.grad_fn.name() == "NumpyTanhBackward0"


def test_nothing_is_recorded_without_grad_mode() -> None:
    x = dg.tensor([1.0, 2.0], requires_grad=True)
    with dg.no_grad():
        assert dnp.tanh(x).grad_fn is None
        assert dnp.extract(x > 1, x).grad_fn is None


def test_function_without_a_derivative_runs_on_tensors_that_require_grad() -> None:
    x = dg.tensor([[1.0, 0.0], [0.0, 2.0]], requires_grad=True)
    vectors = dnp.linalg.eig(x).eigenvectors
    assert vectors.shape == (2, 2)
    with pytest.raises(NotImplementedError, match="non-symmetric eigenvectors"):
        dnp.real(vectors).sum().backward()


def test_unhashable_argument_is_named() -> None:
    with pytest.raises(TypeError, match=r"argument 'axis' must be hashable, .* Pass tensors"):
        dnp.sum(dg.ones(2), axis={0})


def test_error_of_jax_names_the_function_and_the_shapes() -> None:
    with pytest.raises(TypeError, match="incompatible shapes") as raised:
        dnp.add(dg.ones(2), dg.ones(3))
    assert "This happened in numpy.add(_, _) on float32[2], float32[3]." in raised.value.__notes__


def test_functions_run_inside_jit() -> None:
    @jax.jit
    def traced(array: jax.Array) -> jax.Array:
        return dnp.square(dg.from_jax_array(array)).jax()

    assert traced(jnp.arange(3.0)).tolist() == [0.0, 1.0, 4.0]


def test_function_argument_is_called_on_tensors() -> None:
    x = dg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    ours = dnp.apply_along_axis(lambda row: row * row[0], 0, x)
    want = jnp.apply_along_axis(lambda row: row * row[0], 0, jnp.asarray(x.detach().jax()))
    assert ours.tolist() == want.tolist()
    ours.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[5.0, 8.0], [1.0, 2.0]]

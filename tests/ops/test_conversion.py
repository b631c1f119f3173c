"""Conversions of dtype and device, and their gradients."""

from typing import Any

import pytest

import dyngraph as dg


def test_conversion_to_a_float_is_recorded_as_to_copy() -> None:
    x = dg.ones(2, requires_grad=True)
    assert dg.autograd.graph.graph_desc(x.half().grad_fn) == "ToCopyBackward0(AccumulateGrad())"
    assert x.int().grad_fn is None


def test_copy_of_the_same_dtype_is_recorded() -> None:
    x = dg.ones(2, requires_grad=True)
    y = x.to(dg.float32, copy=True)
    assert y is not x
    assert dg.autograd.graph.graph_desc(y.grad_fn) == "ToCopyBackward0(AccumulateGrad())"


def test_conversion_without_arguments_returns_the_tensor() -> None:
    x: Any = dg.ones(2)
    assert x.to() is x and x.to(None) is x and x.to("cpu", dg.float32) is x and x.cpu() is x


def test_positional_flags_are_non_blocking_and_copy() -> None:
    x = dg.ones(2)
    assert x.to(dg.float32, True) is x
    assert x.to(dg.float32, True, True) is not x
    assert x.to("cpu", dg.float16, True, True).dtype == dg.float16
    with pytest.raises(TypeError, match="at most 4 positional arguments"):
        x.to("cpu", dg.float16, True, True, None)


def test_conversion_to_a_string_that_is_no_device_raises() -> None:
    with pytest.raises(RuntimeError, match="Invalid device string: 'float32'"):
        dg.ones(2).to("float32")


@pytest.mark.parametrize("method", ["double", "long", "cdouble"])
def test_sixty_four_bit_conversions_raise_without_x64(method: str) -> None:
    with pytest.raises(TypeError, match="jax_enable_x64"):
        getattr(dg.ones(2), method)()


def test_sixty_four_bit_conversions_with_x64(x64: None) -> None:
    x = dg.ones(2, requires_grad=True)
    assert (x.long().dtype, x.cdouble().dtype) == (dg.int64, dg.complex128)
    (x.double() * 3).sum().backward()
    assert x.grad is not None
    assert (x.grad.dtype, x.grad.tolist()) == (dg.float32, [3.0, 3.0])


def test_complex_to_real_warns_and_discards_the_imaginary_part() -> None:
    x = dg.tensor([1 + 2j], requires_grad=True)
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        y = x.float()
    (y * 3).sum().backward()
    assert x.grad is not None
    assert (y.tolist(), x.grad.tolist()) == ([1.0], [3 + 0j])


def test_complex_number_with_an_imaginary_part_alone_is_true() -> None:
    assert dg.tensor([0j, 1j]).bool().tolist() == [False, True]


@pytest.mark.parametrize("dtype, name", [("float32", "Float"), ("int8", "Char"), ("bool", "Bool")])
def test_type_names_the_dtype(dtype: str, name: str) -> None:
    x = dg.ones(2, dtype=getattr(dg, dtype))
    assert x.type() == f"dyngraph.{name}Tensor"
    assert dg.ones(2, dtype=dg.int16).type(x.type()).dtype == x.dtype


def test_type_of_an_unknown_name_raises() -> None:
    with pytest.raises(ValueError, match="invalid type: 'foo'"):
        dg.ones(2).type("foo")


# Devices


def test_move_to_another_device_and_back_has_a_gradient() -> None:
    x = dg.tensor([1.0, 2.0], device="cpu:2", requires_grad=True)
    y = x.to("cpu:1")
    assert y.device == dg.device("cpu:1")
    assert dg.autograd.graph.graph_desc(y.grad_fn) == "ToCopyBackward0(AccumulateGrad())"
    (y * y).sum().backward()
    assert x.grad is not None
    assert (x.grad.device, x.grad.tolist()) == (dg.device("cpu:2"), [2.0, 4.0])


def test_move_with_a_dtype_is_one_node() -> None:
    x = dg.tensor([1.0, 2.0], requires_grad=True)
    y = x.to("cpu:1", dg.float16)
    assert (y.dtype, y.device) == (dg.float16, dg.device("cpu:1"))
    assert dg.autograd.graph.graph_desc(y.grad_fn) == "ToCopyBackward0(AccumulateGrad())"
    (y * 3).sum().backward()
    assert x.grad is not None
    assert (x.grad.dtype, x.grad.device) == (dg.float32, dg.device("cpu"))


def test_move_has_a_second_derivative() -> None:
    x = dg.tensor([1.0, 2.0], requires_grad=True)
    y = x.to("cpu:1")
    (grad,) = dg.autograd.grad((y * y * y).sum(), [x], create_graph=True)
    assert grad.device == dg.device("cpu")
    (second,) = dg.autograd.grad(grad.sum(), [x])
    assert second.tolist() == [6.0, 12.0]


def test_move_of_an_integer_or_without_grad_is_not_recorded() -> None:
    assert not dg.tensor([1]).to("cpu:1").requires_grad
    x = dg.ones(2, requires_grad=True)
    assert not x.to("cpu:1", dg.int32).requires_grad
    with dg.no_grad():
        assert not x.to("cpu:1").requires_grad


def test_move_to_the_device_of_another_tensor() -> None:
    other = dg.ones(1, dtype=dg.int8, device="cpu:3")
    for x in (dg.ones(2).to(other), dg.ones(2).type_as(other)):
        assert (x.device, x.dtype) == (dg.device("cpu:3"), dg.int8)


def test_move_to_a_missing_gpu_raises() -> None:
    with pytest.raises(RuntimeError, match="device cuda is not available"):
        dg.ones(2).cuda()

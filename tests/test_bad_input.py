"""Bad input: PyTorch's type of error, with the fact, what was expected and what to do instead.

The tables name each case; `match` is on the remedy. A call gets the leaf `x`, with values [1, 2]
and grad [10, 20], which has to be as it was after the refusal.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import dyngraph as dg
from dyngraph.autograd.graph import get_gradient_edge
from tests.graph.helpers import assert_values, leaf

Call = Callable[[dg.Tensor], Any]


def cases(table: dict[str, Any]) -> pytest.MarkDecorator:
    """Runs a test for each value of `table`, under the value's name."""
    return pytest.mark.parametrize("call", table.values(), ids=table.keys())


@pytest.fixture
def x() -> dg.Tensor:
    x = leaf(1.0, 2.0)
    x.grad = dg.tensor([10.0, 20.0])
    return x


def integers() -> Any:
    return dg.tensor([1, 2])


def constant() -> dg.Tensor:
    return dg.ones(2)


def on_first(*size: int) -> dg.Tensor:
    return dg.ones(*size, device="cpu:0")


def on_second(*size: int) -> dg.Tensor:
    return dg.ones(*size, device="cpu:1")


# The gradient to start from

WITHOUT_GRADIENT: dict[str, Call] = {
    "interior": lambda x: (x * x).backward(),
    "leaf": lambda x: x.backward(),
    "no elements": lambda x: x[:0].backward(),
    "list of roots": lambda x: dg.autograd.backward([x * x]),
    "second root": lambda x: dg.autograd.backward([x.sum(), x * x]),
    "grad": lambda x: dg.autograd.grad(x * x, x),
    "edge": lambda x: dg.autograd.backward(get_gradient_edge(x * x)),
}


@cases(WITHOUT_GRADIENT)
def test_output_of_several_elements_without_gradient_is_to_be_reduced(
    call: Call, x: dg.Tensor
) -> None:
    with pytest.raises(RuntimeError, match=r"Reduce it first, by sum\(\) or mean\(\), or pass its"):
        call(x)


def complex_leaf() -> Any:
    return dg.tensor([1 + 2j, 3j], requires_grad=True)


COMPLEX_WITHOUT_GRADIENT: dict[str, Call] = {
    "backward": lambda x: complex_leaf().sum().backward(),
    "grad": lambda x: dg.autograd.grad((x * 1j).sum(), x),
}


@cases(COMPLEX_WITHOUT_GRADIENT)
def test_complex_output_without_gradient_is_to_be_made_real(call: Call, x: dg.Tensor) -> None:
    with pytest.raises(RuntimeError, match=r"Pass the gradient, or take a real function of it"):
        call(x)


WRONG_SHAPE: dict[str, Call] = {
    "longer": lambda x: (x * x).backward(dg.ones(3)),
    "to broadcast": lambda x: (x * x).backward(dg.ones(1)),
    "scalar": lambda x: (x * x).backward(dg.ones(())),
    "for a scalar": lambda x: x.sum().backward(dg.ones(1)),
    "second root": lambda x: dg.autograd.backward([x.sum(), x * x], [None, dg.ones(2, 2)]),
    "grad": lambda x: dg.autograd.grad(x * x, x, dg.ones(3)),
    "edge": lambda x: dg.autograd.backward(get_gradient_edge(x * x), dg.ones(3)),
}


@cases(WRONG_SHAPE)
def test_gradient_of_another_shape_is_refused_with_both_shapes(call: Call, x: dg.Tensor) -> None:
    message = r"grad_output\[\d\] has a shape of \[.*\] and output\[\d\] has a shape of \[.*\]"
    with pytest.raises(RuntimeError, match=message):
        call(x)


def test_gradient_without_a_batch_is_refused_with_what_a_batch_is(x: dg.Tensor) -> None:
    with pytest.raises(RuntimeError, match="leave out is_grads_batched=True: with it we interpret"):
        dg.autograd.grad(x * x, x, dg.ones(2), is_grads_batched=True)


COMPLEX_MISMATCH: dict[str, Call] = {
    "complex for real": lambda x: (x * x).backward(dg.ones(2, dtype=dg.complex64)),
    "real for complex": lambda x: (complex_leaf() * 2).backward(dg.ones(2)),
    "grad": lambda x: dg.autograd.grad(x * x, x, dg.ones(2, dtype=dg.complex64)),
}


@cases(COMPLEX_MISMATCH)
def test_complex_gradient_and_output_go_together(call: Call, x: dg.Tensor) -> None:
    message = r"both grad_output and output are required to have the same dtype.*has a dtype of"
    with pytest.raises(RuntimeError, match=message):
        call(x)


# PyTorch converts an integer gradient; here that is refused, as it is a mistake more often.
INTEGER_GRADIENT: dict[str, Call] = {
    "integer": lambda x: (x * x).backward(integers()),
    "bool": lambda x: (x * x).backward(dg.tensor([True, False])),
    "grad": lambda x: dg.autograd.grad(x * x, x, integers()),
}


@cases(INTEGER_GRADIENT)
def test_integer_gradient_is_to_be_converted(call: Call, x: dg.Tensor) -> None:
    with pytest.raises(RuntimeError, match=r"expected a floating point gradient\. Convert it by"):
        call(x)


NO_TENSOR_AS_GRADIENT: dict[str, Call] = {
    "number": lambda x: dg.autograd.backward([x.sum()], [1.0]),  # pyright: ignore
    "array": lambda x: (x * x).backward([np.ones(2)]),  # pyright: ignore
    "string": lambda x: x.sum().backward("1"),  # pyright: ignore
    "grad": lambda x: dg.autograd.grad(x.sum(), x, [1.0]),  # pyright: ignore
}


@cases(NO_TENSOR_AS_GRADIENT)
def test_gradient_that_is_no_tensor_is_to_be_made_one(call: Call, x: dg.Tensor) -> None:
    with pytest.raises(TypeError, match=r"either Tensors or None.*Wrap it by dg\.tensor"):
        call(x)


# The graph

FREED: dict[str, Call] = {
    "backward twice": lambda x: twice(lambda loss, own: loss.backward()),
    "grad twice": lambda x: twice(lambda loss, own: dg.autograd.grad(loss, own)),
    "saved tensor": lambda x: twice(
        lambda loss, own: (loss.backward(), loss.grad_fn._saved_self)  # pyright: ignore
    ),
    "node called": lambda x: twice(lambda loss, own: (loss.backward(), loss.grad_fn(dg.ones(())))),  # pyright: ignore
}


def twice(action: Callable[[dg.Tensor, dg.Tensor], object]) -> None:
    """Calls `action` two times with one loss and its leaf."""
    own = leaf(3.0)
    loss = own * own
    action(loss, own)
    action(loss, own)


@cases(FREED)
def test_second_backward_needs_retain_graph_in_the_first(call: Call, x: dg.Tensor) -> None:
    message = (
        "Specify retain_graph=True if you need to backward through the graph a second time, in"
    )
    with pytest.raises(RuntimeError, match=message):
        call(x)


def test_second_backward_of_state_carried_over_names_detach(x: dg.Tensor) -> None:
    state = leaf(1.0, 2.0).exp()
    state.sum().backward()
    with pytest.raises(
        RuntimeError, match=r"detach\(\) state that is carried over from an earlier"
    ):
        (state * x).sum().backward()


UNUSED: dict[str, Call] = {
    "other leaf": lambda x: dg.autograd.grad(x.sum(), leaf(1.0)),
    "one of two": lambda x: dg.autograd.grad((x * x).sum(), [x, leaf(1.0)]),
    "later tensor": lambda x: dg.autograd.grad(x.sum(), x * 2),
    "cut by detach": lambda x: dg.autograd.grad((x.detach() * leaf(1.0, 2.0)).sum(), x),
    "batched": lambda x: dg.autograd.grad(x * x, leaf(1.0), dg.eye(2), is_grads_batched=True),
    "edge": lambda x: dg.autograd.grad(x.sum(), get_gradient_edge(leaf(1.0))),
}


@cases(UNUSED)
def test_unused_input_of_grad_needs_allow_unused(call: Call, x: dg.Tensor) -> None:
    with pytest.raises(RuntimeError, match=r"Set allow_unused=True .* or materialize_grads=True"):
        call(x)


NO_GRAD_INPUT: dict[str, Call] = {
    "constant": lambda x: dg.autograd.grad(x.sum(), constant()),
    "detached": lambda x: dg.autograd.grad(x.sum(), x.detach()),
    "integer": lambda x: dg.autograd.grad(x.sum(), integers()),
    "one of two": lambda x: dg.autograd.grad(x.sum(), [x, constant()]),
    "allow_unused": lambda x: dg.autograd.grad(x.sum(), constant(), allow_unused=True),
}


@cases(NO_GRAD_INPUT)
def test_input_of_grad_without_requires_grad_is_to_get_it_before_the_forward_pass(
    call: Call, x: dg.Tensor
) -> None:
    with pytest.raises(RuntimeError, match="Set requires_grad=True on it before the forward pass"):
        call(x)


UNTRACKED: dict[str, Call] = {
    "constant": lambda x: constant().sum().backward(),
    "detached": lambda x: x.detach().sum().backward(),
    "under no_grad": lambda x: dg.no_grad()(lambda: x.sum())().backward(),
    "integers": lambda x: (x > 0).sum().backward(),
    "grad": lambda x: dg.autograd.grad(constant().sum(), x),
    "second root": lambda x: dg.autograd.backward([x.sum(), constant().sum()]),
}


@cases(UNTRACKED)
def test_output_without_history_names_where_to_look(call: Call, x: dg.Tensor) -> None:
    message = (
        r"Make an input with requires_grad=True, and look for detach\(\), no_grad\(\) or an int"
    )
    with pytest.raises(RuntimeError, match=message):
        call(x)


# requires_grad

INTEGER_REQUIRES_GRAD: dict[str, Call] = {
    "tensor": lambda x: dg.tensor([1, 2], requires_grad=True),
    "tensor of bools": lambda x: dg.tensor([True], requires_grad=True),
    "zeros": lambda x: dg.zeros(2, dtype=dg.int32, requires_grad=True),
    "full": lambda x: dg.full((2,), 1, requires_grad=True),
    "arange": lambda x: dg.arange(3, requires_grad=True),
    "randint": lambda x: dg.randint(0, 3, (2,), requires_grad=True),
    "ones_like": lambda x: dg.ones_like(integers(), requires_grad=True),
    "new_zeros": lambda x: integers().new_zeros(2, requires_grad=True),
    "requires_grad_": lambda x: integers().requires_grad_(),
    "requires_grad": lambda x: setattr(integers(), "requires_grad", True),
    "Variable": lambda x: dg.autograd.Variable(integers(), requires_grad=True),
    "under no_grad": lambda x: dg.no_grad()(lambda: integers().requires_grad_())(),
}


@cases(INTEGER_REQUIRES_GRAD)
def test_integers_that_shall_require_grad_are_to_be_converted(call: Call, x: dg.Tensor) -> None:
    with pytest.raises(RuntimeError, match=r"Convert it first, for example by \.float\(\)"):
        call(x)


def test_integer_data_for_a_leaf_is_to_be_converted(x: dg.Tensor) -> None:
    with pytest.raises(RuntimeError, match=r"must be floating point .* Convert it by \.float\(\)"):
        x.data = integers()


INTERIOR_REQUIRES_GRAD: dict[str, Call] = {
    "requires_grad_": lambda x: (x * 2).requires_grad_(False),
    "requires_grad": lambda x: setattr(x * 2, "requires_grad", False),
    "of several outputs": lambda x: x.unbind()[1].requires_grad_(False),
}


@cases(INTERIOR_REQUIRES_GRAD)
def test_interior_tensor_that_shall_not_require_grad_is_to_be_detached(
    call: Call, x: dg.Tensor
) -> None:
    with pytest.raises(RuntimeError, match=r"use var_no_grad = var\.detach\(\)"):
        call(x)


# dtypes

WIDE: dict[str, Call] = {
    "tensor": lambda x: dg.tensor(1.0, dtype=dg.float64),
    "zeros": lambda x: dg.zeros(2, dtype=dg.float64),
    "zeros_like": lambda x: dg.zeros_like(x, dtype=dg.float64),
    "by name": lambda x: dg.zeros(2, dtype="float64"),
    "by numpy's type": lambda x: dg.zeros(2, dtype=np.float64),
    "linspace": lambda x: dg.linspace(0, 1, 3, dtype=dg.float64),
    "rand": lambda x: dg.rand(2, dtype=dg.float64),
    "to": lambda x: x.to(dg.float64),
    "double": lambda x: x.double(),
    "sum": lambda x: x.sum(dtype=dg.float64),
    "set_default_dtype": lambda x: dg.set_default_dtype(dg.float64),
    "finfo": lambda x: dg.finfo(dg.float64),
}
WIDE_INTEGER: dict[str, Call] = {
    "tensor": lambda x: dg.tensor(1, dtype=dg.int64),
    "arange": lambda x: dg.arange(3, dtype=dg.int64),
    "to": lambda x: x.to(dg.int64),
    "long": lambda x: x.long(),
}
SWITCH = r"Call jax\.config\.update\('jax_enable_x64', True\)"


@cases(WIDE)
def test_float64_without_x64_names_the_switch_and_float32(call: Call, x: dg.Tensor) -> None:
    with pytest.raises(TypeError, match=SWITCH + r" before making tensors, or use float32"):
        call(x)


@cases(WIDE_INTEGER)
def test_int64_without_x64_names_the_switch_and_int32(call: Call, x: dg.Tensor) -> None:
    with pytest.raises(TypeError, match=SWITCH + r" before making tensors, or use int32"):
        call(x)


def test_complex128_without_x64_names_the_switch_and_complex64() -> None:
    with pytest.raises(TypeError, match=SWITCH + r" before making tensors, or use complex64"):
        dg.zeros(2, dtype=dg.complex128)


def test_integer_beyond_32_bits_names_the_switch() -> None:
    with pytest.raises(RuntimeError, match=r"need jax\.config\.update\('jax_enable_x64', True\)"):
        dg.tensor([2**40])


def test_factor_beyond_32_bits_names_the_switch_and_floats(x: dg.Tensor) -> None:
    with pytest.raises(OverflowError, match=SWITCH + ", or pass a float"):
        _ = x * 2**40


@pytest.mark.usefixtures("x64")
def test_64_bit_dtypes_are_there_with_x64() -> None:
    assert dg.zeros(2, dtype=dg.float64).dtype == dg.float64


NO_DTYPE: dict[str, Call] = {
    "unknown name": lambda x: dg.zeros(2, dtype="float31"),
    "number": lambda x: dg.zeros(2, dtype=32),
    "to": lambda x: x.to(dtype="float31"),
}


@cases(NO_DTYPE)
def test_unknown_dtype_names_what_is_one(call: Call, x: dg.Tensor) -> None:
    with pytest.raises(TypeError, match="Pass one of dyngraph's dtypes, a numpy dtype or its name"):
        call(x)


def test_default_dtype_that_is_no_float_names_the_floats() -> None:
    with pytest.raises(TypeError, match="Pass float16, bfloat16, float32 or float64"):
        dg.set_default_dtype(dg.int32)


# Devices

NO_DEVICE: dict[str, Call] = {
    "name": lambda x: dg.zeros(2, device="quantum"),
    "letter as index": lambda x: dg.device("cpu:x"),
    "no index": lambda x: dg.device("cpu:"),
    "to": lambda x: x.to("quantum"),
    "tensor": lambda x: dg.tensor([1.0], device="quantum:0"),
}


@cases(NO_DEVICE)
def test_unknown_device_names_the_kinds(call: Call, x: dg.Tensor) -> None:
    message = "Expected one of cpu, cuda, gpu, tpu, rocm, with an optional index as in 'cuda:0'"
    with pytest.raises(RuntimeError, match=message):
        call(x)


MISSING_DEVICE: dict[str, Call] = {
    "index": lambda x: dg.zeros(2, device="cpu:9"),
    "to": lambda x: x.to("cpu:9"),
    "by object": lambda x: x.to(dg.device("cpu", 9)),
    "negative index": lambda x: x.to(dg.device("cpu", -1)),
}


@cases(MISSING_DEVICE)
def test_missing_device_names_those_of_the_process(call: Call, x: dg.Tensor) -> None:
    message = "this process has cpu, cpu:1, .*Install jax for that accelerator .*, or pass one of"
    with pytest.raises(RuntimeError, match=message):
        call(x)


def test_device_that_is_no_name_names_what_is_one() -> None:
    with pytest.raises(TypeError, match="Pass a string, a device or a Device"):
        dg.device(1.0)


def test_device_with_two_indices_is_to_drop_one() -> None:
    with pytest.raises(RuntimeError, match="Drop one"):
        dg.device("cpu:1", 1)


TWO_DEVICES: dict[str, Call] = {
    "sum": lambda x: on_first(2) + on_second(2),
    "function": lambda x: dg.mul(on_first(2), on_second(2)),
    "recorded": lambda x: x.to("cpu:0", copy=True).exp() * on_first(2) * x.to("cpu:1"),
    "matrices": lambda x: on_first(2, 2) @ on_second(2, 2),
    "list": lambda x: dg.cat([on_first(2), on_second(2)]),
    "condition": lambda x: dg.where(on_first(2) > 0, on_second(2), on_second(2)),
    "three": lambda x: dg.addcmul(on_first(2), on_second(2), dg.ones(2, device="cpu:2")),
    "index": lambda x: on_first(2)[dg.tensor([0], device="cpu:1")],
}


@cases(TWO_DEVICES)
def test_tensors_on_two_devices_are_to_be_moved(call: Call, x: dg.Tensor) -> None:
    message = r"Expected all tensors to be on the same device, but found .*Move them by \.to\(\)"
    with pytest.raises(RuntimeError, match=message):
        call(x)


def test_tensors_on_two_devices_are_named_with_their_devices() -> None:
    with pytest.raises(RuntimeError, match=r"add: .*found input on cpu, other on cpu:1"):
        _ = on_first(2) + on_second(2)


# Data

RAGGED: dict[str, Call] = {
    "shorter": lambda x: dg.tensor([[1.0, 2.0], [3.0]]),
    "longer": lambda x: dg.tensor([[1.0], [2.0, 3.0]]),
    "deep": lambda x: dg.tensor([[[1], [2]], [[3], [4, 5]]]),
    "empty": lambda x: dg.tensor([[1.0], []]),
    "as_tensor": lambda x: dg.as_tensor([[1, 2], [3]]),
    "new_tensor": lambda x: x.new_tensor([[1, 2], [3]]),
}


@cases(RAGGED)
def test_ragged_list_is_to_have_equal_rows(call: Call, x: dg.Tensor) -> None:
    message = (
        r"expected sequence of length \d at dim \d \(got \d\)\. All rows must have equal lengths"
    )
    with pytest.raises(ValueError, match=message):
        call(x)


UNEVENLY_NESTED: dict[str, Call] = {
    "number for a list": lambda x: dg.tensor([[1.0], 2.0]),
    "list for a number": lambda x: dg.tensor([1.0, [2.0]]),
}


@cases(UNEVENLY_NESTED)
def test_unevenly_nested_list_is_to_be_nested_alike(call: Call, x: dg.Tensor) -> None:
    with pytest.raises(TypeError, match="All rows must be nested as deep as the first"):
        call(x)


def test_list_of_tensors_is_to_be_stacked(x: dg.Tensor) -> None:
    with pytest.raises(ValueError, match=r"Use dg\.stack\(\) to put tensors together"):
        dg.tensor([x, x])


def test_data_of_another_kind_is_refused_with_what_is_data() -> None:
    with pytest.raises(RuntimeError, match="Pass a number, nested lists of numbers, or an array"):
        dg.tensor({})


# Arguments of operators

UNHASHABLE: dict[str, Call] = {
    "set of dims": lambda x: x.sum(dim={0}),
    "dict": lambda x: x.sum({}),
    "array": lambda x: x.sum(dim=np.array([0])),
    "set for a number": lambda x: dg.softmax(x, dim={0}),
    "set for a flag": lambda x: x.sum(0, keepdim={True}),
    "permute": lambda x: x.permute({0}),
    "reshape": lambda x: x.reshape({2}),
}


@cases(UNHASHABLE)
def test_unhashable_argument_names_what_can_be_one(call: Call, x: dg.Tensor) -> None:
    message = (
        r"argument '\w+' must be hashable, .* Pass numbers, strings, dtypes, or tuples of them"
    )
    with pytest.raises(TypeError, match=message):
        call(x)


NOT_BROADCAST: dict[str, Call] = {
    "add": lambda x: x + dg.ones(3),
    "mul": lambda x: dg.ones(2, 3) * dg.ones(4, 3),
    "more dims": lambda x: x - dg.ones(2, 3),
    "where": lambda x: dg.where(x > 0, dg.ones(3), 1.0),
    "comparison": lambda x: x < dg.ones(3),
    "pow": lambda x: x ** dg.ones(3),
}


@cases(NOT_BROADCAST)
def test_shapes_that_do_not_broadcast_are_to_be_reshaped(call: Call, x: dg.Tensor) -> None:
    message = r"do not broadcast\. Reshape one, or unsqueeze\(\) a dim of size 1"
    with pytest.raises(RuntimeError, match=message):
        call(x)


def test_shapes_that_do_not_broadcast_are_told_by_the_dim_that_differs() -> None:
    message = r"tensor a \(3\) must match the size of tensor b \(2\) at non-singleton dimension 1"
    with pytest.raises(RuntimeError, match=message):
        _ = dg.ones(2, 3) + dg.ones(2)


def test_failed_operator_notes_its_arguments() -> None:
    with pytest.raises(RuntimeError, match="do not broadcast") as raised:
        _ = dg.ones(2, 3) + dg.ones(2)
    note = "This happened in add(input: float32[2, 3], other: float32[2])."
    assert note in raised.value.__notes__


NO_TENSOR: dict[str, Call] = {
    "string first": lambda x: dg.add("a", x),
    "string second": lambda x: dg.add(x, "a"),
    "None": lambda x: dg.exp(None),
    "list": lambda x: dg.exp([1.0]),
    "reduction": lambda x: dg.sum(None),
    "dict as a bound": lambda x: x.clamp(min={}),
    "None in a list": lambda x: dg.cat([x, None]),
}


@cases(NO_TENSOR)
def test_argument_that_is_no_tensor_is_to_be_made_one(call: Call, x: dg.Tensor) -> None:
    message = r"argument '\w+' must be Tensor or a number, not \w+\. Make one by dg\.tensor"
    with pytest.raises(TypeError, match=message):
        call(x)


NO_OPERAND: dict[str, Call] = {
    "string": lambda x: x + "a",
    "None": lambda x: x * None,
    "list": lambda x: x - [1.0, 2.0],
    "on the left": lambda x: "a" + x,
}


@cases(NO_OPERAND)
def test_operand_that_is_no_tensor_is_refused_as_python_does(call: Call, x: dg.Tensor) -> None:
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for|can only concatenate"):
        call(x)


def test_tensor_where_a_list_belongs_is_to_be_put_into_one(x: dg.Tensor) -> None:
    with pytest.raises(TypeError, match=r"Put the tensors into a list; unbind\(\) makes one"):
        dg.cat(x)  # pyright: ignore[reportArgumentType]


# Nothing is half-written

REFUSED: dict[str, Call] = {
    f"{table}: {name}": call
    for table, calls in {
        "without gradient": WITHOUT_GRADIENT,
        "complex without gradient": COMPLEX_WITHOUT_GRADIENT,
        "wrong shape": WRONG_SHAPE,
        "complex mismatch": COMPLEX_MISMATCH,
        "integer gradient": INTEGER_GRADIENT,
        "no tensor as gradient": NO_TENSOR_AS_GRADIENT,
        "freed": FREED,
        "unused": UNUSED,
        "no grad input": NO_GRAD_INPUT,
        "untracked": UNTRACKED,
        "integer requires grad": INTEGER_REQUIRES_GRAD,
        "interior requires grad": INTERIOR_REQUIRES_GRAD,
        "wide": WIDE,
        "wide integer": WIDE_INTEGER,
        "no dtype": NO_DTYPE,
        "no device": NO_DEVICE,
        "missing device": MISSING_DEVICE,
        "two devices": TWO_DEVICES,
        "ragged": RAGGED,
        "unevenly nested": UNEVENLY_NESTED,
        "unhashable": UNHASHABLE,
        "not broadcast": NOT_BROADCAST,
        "no tensor": NO_TENSOR,
        "no operand": NO_OPERAND,
    }.items()
    for name, call in calls.items()
}
ANY_REFUSAL = (RuntimeError, TypeError, ValueError)


@cases(REFUSED)
def test_refused_call_leaves_the_tensor_as_it_was(call: Call, x: dg.Tensor) -> None:
    grad = x.grad
    with pytest.raises(ANY_REFUSAL, match=r"\w"):
        call(x)
    assert x.grad is grad
    assert_values(grad, [10, 20])
    assert_values(x, [1, 2])
    assert x.is_leaf and x.requires_grad and x._version == 0


@cases(REFUSED)
def test_refused_call_leaves_the_modes_as_they_were(call: Call, x: dg.Tensor) -> None:
    def modes() -> list[object]:
        x64 = jax.config.read("jax_enable_x64")
        grad_mode, inference = dg.is_grad_enabled(), dg.is_inference_mode_enabled()
        return [grad_mode, inference, dg.get_default_dtype(), x64]

    before = modes()
    with pytest.raises(ANY_REFUSAL, match=r"\w"):
        call(x)
    assert modes() == before


@cases(REFUSED)
def test_refused_call_may_be_followed_by_a_right_one(call: Call, x: dg.Tensor) -> None:
    with pytest.raises(ANY_REFUSAL, match=r"\w"):
        call(x)
    (x * x).sum().backward()
    assert_values(x.grad, [12, 24])


def test_refused_data_leaves_the_old_data(x: dg.Tensor) -> None:
    with pytest.raises(RuntimeError, match=r"Convert it by \.float\(\)"):
        x.data = integers()
    assert_values(x, [1, 2])


@pytest.mark.parametrize(
    "value, error",
    [(dg.ones(3), RuntimeError), (integers(), RuntimeError), (1.0, TypeError)],
    ids=["shape", "dtype", "type"],
)
def test_refused_grad_leaves_the_old_grad(value: Any, error: type[Exception], x: dg.Tensor) -> None:
    with pytest.raises(error, match=r"(Reshape it|Convert it by|Wrap it by)"):
        x.grad = value
    assert_values(x.grad, [10, 20])


def test_refused_operator_records_nothing(x: dg.Tensor) -> None:
    y = x.exp()
    with pytest.raises(RuntimeError, match="Reshape one"):
        _ = y + dg.ones(3)
    y.sum().backward()
    assert_values(x.grad, [10 + np.exp(1), 20 + np.exp(2)])


def test_backward_refused_for_its_gradient_frees_nothing(x: dg.Tensor) -> None:
    y = x * x
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        y.backward(dg.ones(3))
    y.backward(dg.ones(2))
    assert_values(x.grad, [12, 24])


def test_grad_refused_for_an_input_frees_nothing(x: dg.Tensor) -> None:
    loss = (x * x).sum()
    with pytest.raises(RuntimeError, match="Set requires_grad=True on it"):
        dg.autograd.grad(loss, constant())
    loss.backward()
    assert_values(x.grad, [12, 24])

"""The memory behind the graph: which arrays live how long, and what a step or a node costs.

Weak references are on the jax arrays, so a tensor that died while its array was saved counts as
alive. The garbage collector is off: only a last reference frees anything.
"""

import os
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import pytest

import dyngraph as dg
from dyngraph.ops import operator
from dyngraph.ops.operator import define
from tests.graph.helpers import assert_values, leaf, node_of, on_gradient

pytestmark = pytest.mark.usefixtures("no_gc")

Buffer = weakref.ref[jax.Array]


def buffer(tensor: dg.Tensor) -> Buffer:
    """A weak reference to the array that `tensor` holds."""
    return weakref.ref(tensor.detach().jax())


def living(buffers: list[Buffer]) -> int:
    """How many of the arrays are alive."""
    return sum(array() is not None for array in buffers)


def chain_of_saved(x: dg.Tensor) -> tuple[dg.Tensor, list[Buffer]]:
    """A loss whose graph saved three interior arrays, and these."""
    y = (x * 2).exp()
    z = y.sin()
    w = z * z
    return w.sum(), [buffer(y), buffer(z)]


# What a graph holds


def test_graph_keeps_the_arrays_it_saved() -> None:
    loss, buffers = chain_of_saved(leaf(1.0, 2.0))
    assert living(buffers) == 2
    assert loss.requires_grad


def test_dropping_the_loss_frees_every_saved_array() -> None:
    loss, buffers = chain_of_saved(leaf(1.0, 2.0))
    del loss
    assert living(buffers) == 0


def test_dropping_one_of_two_losses_keeps_what_the_other_needs() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    array = buffer(y)
    first, second = (y * y).sum(), y.sin().sum()
    del y, first
    assert array() is not None
    del second
    assert array() is None


def test_operator_that_saves_nothing_frees_its_input_with_the_tensor() -> None:
    y = leaf(1.0, 2.0) * 2
    array = buffer(y)
    z = y + 1
    assert array() is not None
    del y
    assert array() is None
    assert z.requires_grad


@pytest.mark.parametrize(
    "operator",
    [lambda y: -y, lambda y: y.sum(), lambda y: y.reshape(1, 2) * 3, lambda y: y * 3],
    ids=["neg", "sum", "reshape", "scale"],
)
def test_operator_keeps_no_input_that_its_gradient_does_not_need(
    operator: Callable[[dg.Tensor], dg.Tensor],
) -> None:
    y = leaf(1.0, 2.0) * 2
    array = buffer(y)
    z = operator(y)
    del y
    assert array() is None
    assert z.requires_grad


def test_operator_that_saves_its_result_frees_its_input() -> None:
    y = leaf(1.0, 2.0) * 2
    array = buffer(y)
    z = y.exp()
    del y
    assert array() is None
    assert z.requires_grad


def test_product_with_a_constant_frees_the_other_factor() -> None:
    y = leaf(1.0, 2.0) * 2
    array = buffer(y)
    z = y * dg.tensor([5.0, 6.0])
    del y
    assert array() is None
    assert z.requires_grad


def test_no_grad_saves_nothing() -> None:
    with dg.no_grad():
        loss, buffers = chain_of_saved(leaf(1.0, 2.0))
    assert living(buffers) == 0
    assert not loss.requires_grad


@pytest.mark.parametrize(
    "make",
    [
        lambda: dg.tensor([1.0, 2.0]),
        lambda: dg.zeros(2) + 1,
        lambda: leaf(1.0, 2.0).detach(),
        lambda: dg.no_grad()(lambda: leaf(1.0, 2.0) * 2)(),
        lambda: dg.inference_mode()(lambda: leaf(1.0, 2.0) * 2)(),
        lambda: leaf(1.0, 2.0) > 1,
    ],
    ids=["made", "computed", "detached", "no_grad", "inference_mode", "bool"],
)
def test_tensor_outside_autograd_has_no_autograd_meta(make: Callable[[], dg.Tensor]) -> None:
    tensor = make()
    assert not tensor.requires_grad and tensor.grad is None
    assert tensor._meta is None


def test_interior_tensor_needs_no_autograd_meta() -> None:
    y = leaf(1.0, 2.0) * 2
    y.sum().backward()
    assert y._meta is None


# Backward


def test_backward_frees_every_saved_array_while_the_loss_lives() -> None:
    loss, buffers = chain_of_saved(leaf(1.0, 2.0))
    loss.backward()
    assert living(buffers) == 0
    assert loss.grad_fn is not None


@pytest.mark.eager_only(reason="compiled, the nodes of a segment are freed together")
def test_backward_frees_saved_arrays_as_it_goes() -> None:
    x = leaf(1.0, 2.0)
    loss, buffers = chain_of_saved(x)
    alive: list[int] = []
    on_gradient(x, lambda: alive.append(living(buffers)))
    loss.backward()
    assert alive == [0]


@pytest.mark.eager_only(reason="compiled, the nodes of a segment are freed together")
def test_backward_keeps_what_nodes_to_come_need() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    z = y.exp()
    buffers = [buffer(y), buffer(z)]
    alive: list[int] = []
    on_gradient(y, lambda: alive.append(living(buffers)))
    loss = z.sum()
    del y, z
    loss.backward()
    assert alive == [1]


@pytest.mark.eager_only(reason="compiled, a segment's gradients are freed together")
def test_gradients_on_the_way_are_freed_as_they_are_used() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    seen: list[Buffer] = []
    y.register_hook(lambda grad: seen.append(buffer(grad)))
    alive: list[int] = []
    on_gradient(x, lambda: alive.append(living(seen)))
    y.exp().sum().backward()
    assert alive == [0]


def test_retain_graph_keeps_every_saved_array() -> None:
    loss, buffers = chain_of_saved(leaf(1.0, 2.0))
    loss.backward(retain_graph=True)
    assert living(buffers) == 2


def test_dropping_the_loss_after_retain_graph_frees_every_saved_array() -> None:
    loss, buffers = chain_of_saved(leaf(1.0, 2.0))
    loss.backward(retain_graph=True)
    del loss
    assert living(buffers) == 0


def test_backward_without_retain_graph_after_one_with_it_frees() -> None:
    loss, buffers = chain_of_saved(leaf(1.0, 2.0))
    loss.backward(retain_graph=True)
    loss.backward()
    assert living(buffers) == 0


def test_grad_frees_only_where_it_ran() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    z = y.exp()
    near, far = buffer(z), buffer(y)
    loss = z.sum()
    dg.autograd.grad(loss, y)
    del y, z
    assert near() is None and far() is not None


def test_create_graph_keeps_the_saved_arrays_for_the_gradients() -> None:
    x = leaf(1.0, 2.0)
    loss, buffers = chain_of_saved(x)
    (by_x,) = dg.autograd.grad(loss, x, create_graph=True)
    del loss
    assert living(buffers) > 0
    assert by_x.requires_grad


def test_dropping_the_gradients_of_create_graph_frees_every_saved_array() -> None:
    x = leaf(1.0, 2.0)
    loss, buffers = chain_of_saved(x)
    (by_x,) = dg.autograd.grad(loss, x, create_graph=True)
    del loss, by_x
    assert living(buffers) == 0


def test_third_derivative_frees_every_saved_array_when_dropped() -> None:
    x = leaf(1.0, 2.0)
    derivative, buffers = chain_of_saved(x)
    for _ in range(3):
        (derivative,) = dg.autograd.grad(derivative.sum(), x, create_graph=True)
        buffers.append(buffer(derivative))
    del derivative
    assert living(buffers) == 0


# A training loop


def resident_bytes() -> int:
    """What this process holds in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def training_steps() -> Iterator[None]:
    """A small model that learns: each item is one step."""
    dg.manual_seed(0)
    data, wanted = dg.randn(16, 4), dg.randn(16, 1)
    parameters = [dg.randn(4, 8, requires_grad=True), dg.randn(8, 1, requires_grad=True)]
    while True:
        loss = ((data @ parameters[0]).tanh() @ parameters[1] - wanted).square().mean()
        loss.backward()
        for p in parameters:
            assert p.grad is not None
            p.data = p.data - p.grad * 0.01
            p.grad = None
        yield


def growth(measure: Callable[[], int]) -> int:
    """By how much `measure` grows from step 200 to step 1000."""
    steps = training_steps()
    for _ in range(200):
        next(steps)
    before = measure()
    for _ in range(800):
        next(steps)
    return measure() - before


def test_number_of_live_arrays_is_flat_over_a_thousand_steps() -> None:
    assert growth(lambda: len(jax.live_arrays())) == 0


def test_number_of_python_objects_is_flat_over_a_thousand_steps() -> None:
    assert growth(sys.getallocatedblocks) < 100


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's /proc")
def test_resident_memory_is_flat_over_a_thousand_steps() -> None:
    assert growth(resident_bytes) < 400_000


# Deep graphs


def chain(length: int) -> dg.Tensor:
    y = leaf(1.0) * 1
    for _ in range(length):
        y = y + 1
    return y


def python_calls(action: Callable[[], object]) -> int:
    """How many functions, Python's own ones included, `action` calls: its work, without a clock."""
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def test_memory_of_a_chain_of_100_000_nodes_is_four_times_that_of_25_000() -> None:
    def blocks(length: int) -> int:
        before = sys.getallocatedblocks()
        y = chain(length)
        assert y.requires_grad
        return sys.getallocatedblocks() - before

    blocks(10)
    assert blocks(100_000) == pytest.approx(4 * blocks(25_000), rel=0.05)


def test_backward_of_a_chain_four_times_as_long_makes_four_times_as_many_calls() -> None:
    def calls(length: int) -> int:
        return python_calls(chain(length).backward)

    calls(10)
    assert calls(20_000) == pytest.approx(4 * calls(5_000), rel=0.02)


@pytest.mark.eager_only(reason="a compiled backward keeps what it called, in a bounded cache")
def test_chain_of_100_000_nodes_leaves_nothing_behind() -> None:
    chain(100_000).backward()  # fills Python's lists of tuples to be used again
    before = sys.getallocatedblocks()
    chain(100_000).backward()
    assert sys.getallocatedblocks() - before < 1000


@pytest.fixture
def shallow_stack() -> Iterator[None]:
    """Leaves Python 200 frames more than the test has."""
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    limit = sys.getrecursionlimit()
    chain(10).backward()  # a kernel's first call compiles it, which needs a deep stack
    dg.autograd.grad(chain(10).sin(), leaf(1.0), allow_unused=True)
    sys.setrecursionlimit(depth + 200)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def test_chain_of_100_000_nodes_is_built_run_and_freed_on_a_shallow_stack(
    shallow_stack: None,
) -> None:
    y = chain(100_000)
    node = weakref.ref(node_of(y))
    y.backward()
    del y
    assert node() is None


def test_topological_number_of_a_deep_chain_is_found_on_a_shallow_stack(
    shallow_stack: None,
) -> None:
    assert node_of(chain(20_000)).topological_nr == 20_001


def test_deep_chain_with_retain_grad_and_inputs_runs_on_a_shallow_stack(
    shallow_stack: None,
) -> None:
    x = leaf(1.0)
    y = x * 1
    y.retain_grad()
    z = y
    for _ in range(20_000):
        z = z + 1
    z.backward(inputs=[x])
    assert_values(y.grad, 1)


# Failures


def raising_hook(grad: dg.Tensor) -> None:
    raise ValueError("from the hook")


def failing_loss(x: dg.Tensor) -> tuple[dg.Tensor, list[Buffer]]:
    """A loss whose backward fails half-way, and the arrays that its graph saved."""
    y = x.exp()
    y.register_hook(raising_hook)
    z = y.exp()
    return z.sum(), [buffer(y), buffer(z)]


def test_exception_in_a_hook_names_the_node() -> None:
    loss, _ = failing_loss(leaf(1.0, 2.0))
    with pytest.raises(ValueError, match="from the hook") as raised:
        loss.backward()
    assert raised.value.__notes__ == ["This happened in backward, at ExpBackward0."]


def test_exception_in_a_hook_of_a_leaf_names_the_accumulation() -> None:
    x = leaf(1.0, 2.0)
    x.register_hook(raising_hook)
    with pytest.raises(ValueError, match="from the hook") as raised:
        (x * 2).sum().backward()
    (note,) = raised.value.__notes__
    assert note.endswith("AccumulateGrad.")


def test_engine_is_usable_after_an_exception_in_a_hook() -> None:
    x = leaf(1.0, 2.0)
    loss, _ = failing_loss(x)
    with pytest.raises(ValueError, match="from the hook"):
        loss.backward()
    (x * x).sum().backward()
    assert_values(x.grad, [2, 4])


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], dg.Tensor]:
    """An operator whose rule raises."""

    def rule(grad: jax.Array) -> jax.Array:
        raise ValueError("from the rule")

    monkeypatch.setattr(operator, "OPERATORS", {})
    return define("failing", lambda self: self, self=rule)


def test_exception_in_a_rule_names_the_node(failing: Callable[[Any], dg.Tensor]) -> None:
    loss = failing(leaf(1.0, 2.0)).sum()
    with pytest.raises(ValueError, match="from the rule") as raised:
        loss.backward()
    assert "This happened in backward, at FailingBackward0." in raised.value.__notes__


def test_engine_is_usable_after_an_exception_in_a_rule(
    failing: Callable[[Any], dg.Tensor],
) -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(ValueError, match="from the rule"):
        failing(x).sum().backward()
    (x * x).sum().backward()
    assert_values(x.grad, [2, 4])


def test_branch_without_the_failing_rule_runs_after_it_failed(
    failing: Callable[[Any], dg.Tensor],
) -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    with pytest.raises(ValueError, match="from the rule"):
        failing(y).sum().backward()
    y.sum().backward()
    assert_values(x.grad, y.detach().numpy())


def failure_of(loss: dg.Tensor, **how: bool) -> ValueError:
    """The exception that backward of `loss` raises, with its traceback."""
    try:
        loss.backward(**how)
    except ValueError as error:
        return error
    raise AssertionError("backward did not fail")


def test_gradients_of_a_failed_backward_live_as_long_as_its_exception() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    seen: list[Buffer] = []
    y.register_hook(lambda grad: seen.append(buffer(grad)))
    y.register_hook(raising_hook)
    loss = y.sum()
    error = failure_of(loss)
    assert living(seen) == 1
    del error
    assert living(seen) == 0


def test_failed_backward_frees_what_it_had_passed() -> None:
    loss, buffers = failing_loss(leaf(1.0, 2.0))
    failure_of(loss)
    assert [array() is None for array in buffers] == [False, True]


def test_failed_backward_with_retain_graph_keeps_every_saved_array() -> None:
    loss, buffers = failing_loss(leaf(1.0, 2.0))
    failure_of(loss, retain_graph=True)
    assert living(buffers) == 2


def test_dropping_a_loss_whose_backward_failed_frees_every_saved_array() -> None:
    loss, buffers = failing_loss(leaf(1.0, 2.0))
    failure_of(loss)
    del loss
    assert living(buffers) == 0

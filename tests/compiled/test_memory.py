"""What a compiled backward keeps: structures, never a node, a tensor or an array."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import jax
import pytest

import dyngraph as dg
from tests.compiled.helpers import SIGHTS, grad_of, leaf
from tests.graph.helpers import node_of

pytestmark = pytest.mark.usefixtures("no_gc")
both_modes = pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])


class Watched:
    """Weak references to the nodes, tensors and arrays of a graph, and to what hooks hold."""

    def __init__(self) -> None:
        self.alive: list[weakref.ref[Any]] = []

    def watch(self, *tensors: dg.Tensor) -> None:
        for tensor in tensors:
            self.alive += [weakref.ref(tensor), weakref.ref(tensor._cell.array)]
            if tensor.requires_grad:
                self.alive.append(weakref.ref(node_of(tensor)))

    def living(self) -> list[str]:
        return [type(o).__name__ for ref in self.alive if (o := ref()) is not None]


def plain(watched: Watched, start: float) -> dg.Tensor:
    x, z = leaf(start, 2.0), leaf(3.0, 4.0)
    y = x.exp()
    product = y * z
    watched.watch(x, z, y, product)
    return product.sin().sum()


def with_hook(watched: Watched, start: float) -> dg.Tensor:
    x = leaf(start, 2.0)
    y = x.exp()
    y.register_hook(lambda grad: watched.watch(grad))
    watched.watch(x, y)
    return (y * x).sum()


def with_retained(watched: Watched, start: float) -> dg.Tensor:
    x = leaf(start, 2.0)
    y = x.exp()
    y.retain_grad()
    watched.watch(x, y)
    return (y * x).sum()


def with_function(watched: Watched, start: float) -> dg.Tensor:
    class Double(dg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
            watched.watch(grad)
            return grad * 2

    x = leaf(start, 2.0)
    y = Double.apply(x.exp())
    watched.watch(x, y)
    return (y * x).sum()


def with_checkpoint(watched: Watched, start: float) -> dg.Tensor:
    def part(x: dg.Tensor) -> dg.Tensor:
        y = x.exp()
        watched.watch(y)
        return y.sin() * x

    x = leaf(start, 2.0)
    y = dg.utils.checkpoint.checkpoint(part, x, use_reentrant=False)
    watched.watch(x, y)
    return (y * x).sum()


def with_packed_values(watched: Watched, start: float) -> dg.Tensor:
    def unpack(packed: dg.Tensor) -> dg.Tensor:
        found = packed * 1
        watched.watch(packed, found)
        return found

    x = leaf(start, 2.0)
    with dg.autograd.graph.saved_tensors_hooks(lambda saved: saved.detach() + 0, unpack):
        y = x.exp().sin()
    watched.watch(x, y)
    return (y * x).sum()


GRAPHS = [plain, with_hook, with_retained, with_function, with_checkpoint, with_packed_values]
every_graph = pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)


@both_modes
@every_graph
def test_nothing_of_a_graph_is_alive_after_its_loss(
    graph: Callable[..., dg.Tensor], is_compiled: bool
) -> None:
    with dg.compiled_autograd(is_compiled):
        for sight in range(SIGHTS + 1):
            watched = Watched()
            loss = graph(watched, float(sight))
            loss.backward()
            del loss
            assert watched.living() == []


@both_modes
def test_nothing_is_alive_after_gradients_were_asked_and_dropped(is_compiled: bool) -> None:
    with dg.compiled_autograd(is_compiled):
        for sight in range(SIGHTS + 1):
            watched = Watched()
            x = leaf(float(sight), 2.0)
            y = x.exp()
            grads = dg.autograd.grad((y * x).sum(), [x, y])
            watched.watch(x, y, *grads)
            del x, y, grads
            assert watched.living() == []


@both_modes
def test_nothing_is_alive_after_a_recorded_backward_was_dropped(is_compiled: bool) -> None:
    with dg.compiled_autograd(is_compiled):
        for sight in range(SIGHTS + 1):
            watched = Watched()
            x = leaf(float(sight), 2.0)
            (first,) = dg.autograd.grad((x.exp() * x).sum(), x, create_graph=True)
            watched.watch(x, first)
            (second,) = dg.autograd.grad(first.sum(), x)
            watched.watch(second)
            del x, first, second
            assert watched.living() == []


@both_modes
def test_nothing_is_alive_after_a_hook_raised(is_compiled: bool) -> None:
    def fail(grad: dg.Tensor) -> None:
        raise ValueError("from the hook")

    with dg.compiled_autograd(is_compiled):
        for sight in range(SIGHTS):
            watched = Watched()
            x = leaf(float(sight), 2.0)
            y = x.exp()
            y.register_hook(fail)
            watched.watch(x, y)
            loss = (y.sin() * y).sum()
            with pytest.raises(ValueError, match="from the hook"):
                loss.backward()
            del x, y, loss
            assert watched.living() == []


@both_modes
def test_saved_tensors_are_freed_by_backward_while_the_loss_lives(is_compiled: bool) -> None:
    with dg.compiled_autograd(is_compiled):
        for sight in range(SIGHTS + 1):
            x = leaf(float(sight), 2.0)
            y = x.exp()
            array = weakref.ref(y._cell.array)
            loss = (y * y).sum()
            del y
            loss.backward()
            assert array() is None
            assert loss.grad_fn is not None


@both_modes
def test_retained_graph_keeps_what_it_saved(is_compiled: bool) -> None:
    with dg.compiled_autograd(is_compiled):
        for sight in range(SIGHTS + 1):
            x = leaf(float(sight), 2.0)
            y = x.exp()
            array = weakref.ref(y._cell.array)
            loss = (y * y).sum()
            del y
            loss.backward(retain_graph=True)
            assert array() is not None
            del loss
            assert array() is None


def test_number_of_arrays_is_flat_over_the_steps() -> None:
    x, counts = leaf(1.0, 2.0), []
    with dg.compiled_autograd():
        for _ in range(8):
            x.grad = None
            (x.exp() * x).sum().backward()
            counts.append(len(jax.live_arrays()))
    assert len(set(counts[2:])) == 1


def reachable(start: list[Any]) -> Iterator[Any]:
    """Everything that `start` refers to, within what this package made."""
    seen: dict[int, Any] = {}
    todo = start[:]
    while todo:
        thing = todo.pop()
        if id(thing) in seen or isinstance(thing, type(gc)) or callable(thing):
            continue
        seen[id(thing)] = thing
        yield thing
        todo.extend(gc.get_referents(thing))


def test_program_refers_to_no_array_node_or_tensor() -> None:
    x = leaf(1.0, 2.0)
    with dg.compiled_autograd():
        for _ in range(SIGHTS):
            (x.exp() * x + x.sin()).sum().backward()
    programs = dg.compiled.programs()
    assert programs
    parts = [getattr(p, name) for p in programs for name in ("calls", "avals", "outputs", "key")]
    kept = [t for t in reachable(parts) if isinstance(t, (jax.Array, dg.Tensor, type(x.grad_fn)))]
    assert [thing for thing in kept if thing is not None] == []


def test_clear_forgets_every_program() -> None:
    x = leaf(1.0, 2.0)
    with dg.compiled_autograd():
        for _ in range(SIGHTS):
            x.exp().sum().backward()
    programs = [weakref.ref(program) for program in dg.compiled.programs()]
    assert len(programs) == 2  # without a .grad to add to, and with one
    dg.compiled.clear()
    gc.collect()  # a jitted function is part of a cycle of JAX's
    assert [program() for program in programs] == [None, None]
    assert grad_of(x) is not None

"""When a backward compiles, when it is found again, and that it then does what an eager one
does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg
from dyngraph.autograd.graph import get_gradient_edge
from tests.compiled.helpers import (
    assert_same,
    compilations_of,
    grad_of,
    leaf,
    same_in_both_modes,
)
from tests.conftest import set_config


def step_on(x: dg.Tensor) -> None:
    x.grad = None
    (x.exp() * x.sin()).sum().backward()


# When


def test_second_sight_compiles_and_no_other() -> None:
    x = leaf(1.0, 2.0)
    assert compilations_of(lambda: step_on(x), 4) == [0, 1, 0, 0]


def test_compile_after_says_which_sight_compiles() -> None:
    x = leaf(1.0, 2.0)
    with set_config(compile_after=3):
        assert compilations_of(lambda: step_on(x), 4) == [0, 0, 1, 0]


def test_third_sight_is_a_hit_of_one_call() -> None:
    x = leaf(1.0, 2.0)
    compilations_of(lambda: step_on(x), 2)
    dg.compiled.reset()
    compilations_of(lambda: step_on(x), 1)
    stats = dg.compiled.stats()
    assert (stats.hits, stats.misses, stats.segments) == (1, 0, 1)


def test_nothing_is_compiled_where_the_mode_is_off() -> None:
    x = leaf(1.0, 2.0)
    for _ in range(3):
        step_on(x)
    assert dg.compiled.stats() == dg.compiled.Stats(0, 0, 0, 0, 0, 0, 0.0, 0, 0)


def test_other_leaves_of_the_same_shape_compile_nothing() -> None:
    assert compilations_of(lambda: step_on(leaf(1.0, 2.0)), 4) == [0, 1, 0, 0]


def test_other_shape_is_another_structure() -> None:
    sizes = iter([2, 2, 3, 3, 2, 3])
    steps = compilations_of(lambda: step_on(dg.ones(next(sizes), requires_grad=True)), 6)
    assert steps == [0, 1, 0, 1, 0, 0]


def test_other_dtype_is_another_structure() -> None:
    kinds = iter([dg.float32, dg.float32, dg.bfloat16, dg.bfloat16, dg.float32])
    made = compilations_of(lambda: step_on(dg.ones(2, dtype=next(kinds), requires_grad=True)), 5)
    assert made == [0, 1, 0, 1, 0]


def test_values_of_what_was_saved_do_not_matter() -> None:
    numbers = iter(range(1, 9))
    made = compilations_of(lambda: step_on(leaf(float(next(numbers)), 2.0)), 5)
    assert made == [0, 1, 0, 0, 0]


def test_float_factor_that_changes_every_step_compiles_nothing_more() -> None:
    x, factors = leaf(1.0, 2.0), iter(range(9))

    def step() -> None:
        x.grad = None
        (x.exp() * (0.1 * next(factors)) / 3.5).sum().backward()

    assert compilations_of(step, 5) == [0, 1, 0, 0, 0]


def test_grad_to_add_to_is_one_more_structure_and_no_other() -> None:
    x, number = leaf(1.0, 2.0), iter(range(99))

    def step() -> None:
        if next(number) % 3 == 0:
            x.grad = None
        x.exp().sum().backward()

    assert sum(compilations_of(step, 12)) == 2


def test_graph_that_changes_every_step_compiles_nothing() -> None:
    lengths = iter(range(1, 9))

    def step() -> None:
        y = leaf(1.0)
        for _ in range(next(lengths)):
            y = y.sin().exp()
        y.sum().backward()

    assert sum(compilations_of(step, 8)) == 0


# What a user asks for, the same in both modes

programs: dict[str, Callable[[], Any]] = {}


def program(function: Callable[[], Any]) -> Callable[[], Any]:
    programs[function.__name__] = function
    return function


@program
def one_leaf() -> Any:
    x = leaf(1.0, 2.0)
    (x.exp() * x).sum().backward()
    return x.grad


@program
def leaf_read_several_times() -> Any:
    x = leaf(1.0, 2.0)
    (x * x + x.sin() * x - x).sum().backward()
    return x.grad


@program
def several_roots() -> Any:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    z = x.exp()
    dg.autograd.backward([(z * y).sum(), z, x.sin().sum()], [None, dg.ones(2), None])
    return x.grad, y.grad


@program
def one_root_twice() -> Any:
    x = leaf(1.0, 2.0)
    y = x.exp()
    dg.autograd.backward([y, y], [dg.ones(2), dg.full((2,), 2.0)])
    return x.grad


@program
def leaf_as_a_root() -> Any:
    x = leaf(1.0, 2.0)
    x.backward(dg.tensor([3.0, 4.0]))
    return x.grad


@program
def leaf_as_a_root_beside_another() -> Any:
    x, y = leaf(1.0, 2.0), leaf(5.0, 6.0)
    dg.autograd.backward([x, (x * y).sum()], [dg.ones(2), None])
    return x.grad, y.grad


@program
def root_inside_another_roots_graph() -> Any:
    x = leaf(1.0, 2.0)
    y = x.exp()
    z = y.sin()
    dg.autograd.backward([z.sum(), y.sum()])
    return x.grad


@program
def gradient_to_start_from() -> Any:
    x = leaf(1.0, 2.0)
    x.exp().backward(dg.tensor([3.0, 4.0]))
    return x.grad


@program
def backward_with_inputs() -> Any:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x * y).sum().backward(inputs=[x])
    return x.grad, y.grad


@program
def backward_with_an_interior_input() -> Any:
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.sin().sum().backward(inputs=[y])
    return x.grad, y.grad


@program
def gradients_of_leaves() -> Any:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    return (*dg.autograd.grad((x * y).sum(), [y, x]), x.grad, y.grad)


@program
def gradients_by_name() -> Any:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    return dg.autograd.grad((x * y).sum(), {"b": y, "a": x})


@program
def gradients_of_what_is_inside() -> Any:
    x = leaf(1.0, 2.0)
    y = x.exp()
    z = y.sin()
    return dg.autograd.grad(z.sum(), [y, x, z])


@program
def gradient_of_the_root_itself() -> Any:
    x = leaf(1.0, 2.0)
    y = x.exp().sum()
    return dg.autograd.grad(y, [y, x])


@program
def gradient_of_one_of_two_outputs() -> Any:
    x = dg.tensor([[3.0, 1.0], [2.0, 5.0]], requires_grad=True)
    values, vectors = dg.linalg.eigh(x @ x.mT)
    return dg.autograd.grad(values.sum() + vectors.square().sum(), [values, x])


@program
def gradients_at_edges() -> Any:
    x = leaf(1.0, 2.0)
    y = x.exp()
    edge = get_gradient_edge(y)
    return dg.autograd.grad(y.sin().sum(), [edge, get_gradient_edge(x)])


@program
def root_given_by_its_edge() -> Any:
    x = leaf(1.0, 2.0)
    y = x.exp().sum()
    dg.autograd.backward(get_gradient_edge(y))
    return x.grad


@program
def input_that_is_not_reached() -> Any:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    return dg.autograd.grad(x.exp().sum(), [x, y], allow_unused=True)


@program
def materialized_gradients() -> Any:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    return dg.autograd.grad(x.exp().sum(), [y, x], materialize_grads=True)


@program
def one_input_asked_twice() -> Any:
    x = leaf(1.0, 2.0)
    return dg.autograd.grad(x.exp().sum(), [x, x])


@program
def retained_gradients() -> Any:
    x = leaf(1.0, 2.0)
    y = x.exp()
    z = y.sin()
    y.retain_grad()
    z.retain_grad()
    z.sum().backward()
    return x.grad, y.grad, z.grad


@program
def retained_gradient_of_a_tensor_that_died() -> Any:
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.retain_grad()
    z = y.sin().sum()
    del y
    z.backward()
    return x.grad


@program
def retained_gradient_that_adds_up() -> Any:
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.retain_grad()
    z = y.sin().sum()
    z.backward(retain_graph=True)
    z.backward()
    return x.grad, y.grad


@program
def retained_graph() -> Any:
    x = leaf(1.0, 2.0)
    loss = x.exp().sum()
    loss.backward(retain_graph=True)
    first = grad_of(x).clone()
    loss.backward(retain_graph=True)
    loss.backward()
    return first, x.grad


@program
def part_of_a_graph_that_was_retained() -> Any:
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.sin().sum().backward(retain_graph=True)
    y.cos().sum().backward()
    return x.grad


@program
def grad_that_is_there_is_added_to() -> Any:
    x = leaf(1.0, 2.0)
    x.grad = dg.tensor([10.0, 20.0])
    x.exp().sum().backward()
    return x.grad


@program
def one_of_two_grads_is_there() -> Any:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y.grad = dg.tensor([10.0, 20.0])
    (x * y).sum().backward()
    return x.grad, y.grad


@program
def grad_that_has_a_history() -> Any:
    x, factor = leaf(1.0, 2.0), leaf(2.0, 3.0)
    x.grad = factor * 2
    x.exp().sum().backward()
    return x.grad


@program
def node_without_a_gradient() -> Any:
    x = dg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    first, second = x.unbind()
    return dg.autograd.grad(first.sum(), [x, second], allow_unused=True)


@program
def constant_inputs() -> Any:
    x = leaf(1.0, 2.0)
    (x * dg.tensor([3.0, 4.0]) + 1.5).pow(2).sum().backward()
    return x.grad


@program
def views_and_writes() -> Any:
    x = leaf(1.0, 2.0, 3.0)
    y = x.sin()
    y[1:].mul_(3)
    y[0] = x[2]
    (y * y.detach()).sum().backward()
    return x.grad


@program
def complex_numbers() -> Any:
    x = dg.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    (x * x.exp()).abs().sum().backward()
    return x.grad


@program
def many_gradients_that_meet() -> Any:
    x = leaf(1.0, 2.0)
    y = x.exp()
    total = y * 0
    for i in range(20):
        total = total + y * float(i)
    total.sum().backward()
    return x.grad


@program
def two_leaves_of_one_gradient() -> Any:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x + y).backward(dg.tensor([5.0, 6.0]))
    return x.grad, y.grad


@program
def nothing_but_a_sum() -> Any:
    x = leaf(1.0, 2.0)
    (x + x).backward(dg.tensor([5.0, 6.0]))
    return x.grad


@pytest.mark.parametrize("name", programs)
def test_program_gives_what_it_gives_eagerly(name: str) -> None:
    same_in_both_modes(programs[name])


# Graphs that are nearly the same


@pytest.mark.parametrize(
    "graphs",
    [
        pytest.param(
            [lambda x, y: x.sin() * y.cos(), lambda x, y: y.sin() * x.cos()], id="leaves exchanged"
        ),
        pytest.param([lambda x, y: x * y, lambda x, y: x * x], id="one leaf twice"),
        pytest.param([lambda x, y: x / y, lambda x, y: y / x], id="arguments exchanged"),
        pytest.param(
            [lambda x, y: x.exp() * y.exp().detach(), lambda x, y: x.exp().detach() * y.exp()],
            id="another argument needs it",
        ),
        pytest.param(
            [lambda x, y: (x * y).sum(0) * x, lambda x, y: (x * y).sum() * x],
            id="another static argument",
        ),
        pytest.param(
            [
                lambda x, y: (x * y).chunk(2)[0].exp(),
                lambda x, y: (x * y).chunk(2)[1].exp(),
            ],
            id="another output",
        ),
        pytest.param(
            [lambda x, y: x.exp() + x.exp() * y, lambda x, y: (e := x.exp()) + e * y],
            id="one node or two",
        ),
    ],
)
@pytest.mark.usefixtures("at_once")
def test_graphs_that_differ_in_one_thing_are_told_apart(graphs: list[Callable[..., Any]]) -> None:
    def gradients() -> list[Any]:
        found = []
        for graph in [*graphs, *graphs]:
            x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
            graph(x, y).sum().backward()
            found.append((x.grad, y.grad))
        return found

    same_in_both_modes(gradients)


@pytest.mark.usefixtures("at_once")
def test_gradient_that_is_also_a_saved_tensor_is_told_apart_from_one_that_is_not() -> None:
    def gradients() -> list[Any]:
        found = []
        for start in (None, [5.0, 6.0], None):
            x = leaf(1.0, 2.0)
            y = x.exp()
            y.backward(y.detach() if start is None else dg.tensor(start))
            found.append(x.grad)
        return found

    same_in_both_modes(gradients)


@pytest.mark.usefixtures("at_once")
def test_retained_gradients_are_part_of_the_structure() -> None:
    def gradients() -> list[Any]:
        found = []
        for retains in (False, True, False, True):
            x = leaf(1.0, 2.0)
            y = x.exp()
            if retains:
                y.retain_grad()
            y.sin().sum().backward()
            found.append((x.grad, y.grad if retains else None))
        return found

    same_in_both_modes(gradients)


@pytest.mark.usefixtures("at_once")
def test_what_is_asked_is_part_of_the_structure() -> None:
    def gradients() -> list[Any]:
        found = []
        for which in (0, 1, 2, 0):
            x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
            z = x.exp() * y
            found.append(dg.autograd.grad(z.sum(), [[x], [y], [z, x]][which]))
        return found

    same_in_both_modes(gradients)


@pytest.mark.usefixtures("at_once")
def test_hook_that_comes_and_goes_is_part_of_the_structure() -> None:
    def gradients() -> list[Any]:
        found = []
        for is_hooked in (False, True, False):
            x = leaf(1.0, 2.0)
            y = x.exp()
            if is_hooked:
                y.register_hook(lambda grad: grad * 10)
            y.sin().sum().backward()
            found.append(x.grad)
        return found

    same_in_both_modes(gradients)


# Which objects `.grad` is


def test_grad_that_is_there_stays_the_same_tensor() -> None:
    x = leaf(1.0, 2.0)
    with dg.compiled_autograd():
        step_on(x)
        grad = x.grad
        for _ in range(4):
            x.exp().sum().backward()
            assert x.grad is grad


def test_grad_that_was_none_is_a_tensor_of_its_own() -> None:
    x, kept = leaf(1.0, 2.0), []
    with dg.compiled_autograd():
        for _ in range(4):
            step_on(x)
            kept.append(x.grad)
    assert len({id(grad) for grad in kept}) == 4
    assert_same(kept[1:], kept[:-1])


def test_grads_of_the_same_value_are_shared_as_eagerly() -> None:
    def shared() -> list[bool]:
        x, y, start = leaf(1.0, 2.0), leaf(3.0, 4.0), dg.tensor([5.0, 6.0])
        (x + y).backward(start)
        places = [t.untyped_storage().data_ptr() for t in (grad_of(x), grad_of(y), start)]
        return [places[0] == places[1], places[0] == places[2]]

    same_in_both_modes(shared)


def test_writing_to_one_grad_leaves_the_other_alone() -> None:
    def grads() -> Any:
        x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
        (x + y).backward(dg.tensor([5.0, 6.0]))
        grad_of(x).zero_()
        return x.grad, y.grad

    same_in_both_modes(grads)


def test_grad_that_someone_holds_is_not_given_away() -> None:
    x = leaf(1.0, 2.0)
    with dg.compiled_autograd():
        for _ in range(4):
            step_on(x)
            held = grad_of(x).detach()
            before = held.numpy().copy()
            x.grad = None
            x.exp().sum().backward()
            assert (held.numpy() == before).all()


def test_version_of_a_grad_counts_as_eagerly() -> None:
    def versions() -> list[int]:
        x, found = leaf(1.0, 2.0), []
        for _ in range(4):
            x.exp().sum().backward()
            found.append(grad_of(x)._version)
        return found

    same_in_both_modes(versions)


def test_write_to_a_grad_that_views_share_is_seen_by_the_view() -> None:
    def view() -> Any:
        x = leaf(1.0, 2.0)
        x.grad = dg.zeros(2)
        part = x.grad[1:]
        x.exp().sum().backward()
        return part

    same_in_both_modes(view)


def test_retained_graph_runs_again_after_a_hit() -> None:
    x = leaf(1.0, 2.0)
    with dg.compiled_autograd():
        loss = x.exp().sum()
        for _ in range(5):
            x.grad = None
            loss.backward(retain_graph=True)
    assert_same(x.grad, x.detach().exp())

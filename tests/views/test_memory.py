"""Who keeps bases and views alive: with the garbage collector off, in any order of dropping."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest

import dyngraph as dg
from tests.graph.helpers import Canary, assert_values, leaf, watch

pytestmark = pytest.mark.usefixtures("no_gc")

Family = dict[str, dg.Tensor]


def constants() -> Family:
    base = dg.ones(4)
    view = base[:3]
    return {"base": base, "view": view, "inner": view[1:], "sibling": base.view(2, 2)}


def recorded() -> Family:
    base = dg.ones(4, requires_grad=True) * 2
    view = base[:3]
    return {"base": base, "view": view, "inner": view[1:], "sibling": base.view(2, 2)}


def written_base() -> Family:
    family = recorded()
    family["base"].mul_(3)
    return family


def written_view() -> Family:
    family = recorded()
    family["view"].mul_(3)
    return family


def written_view_of_a_view() -> Family:
    family = recorded()
    family["inner"].exp_()
    return family


def written_everywhere() -> Family:
    family = recorded()
    for _ in range(2):
        for tensor in family.values():
            tensor.tanh_()
    return family


def regenerated() -> Family:
    family = written_view()
    assert all(tensor.grad_fn is not None for tensor in family.values())
    return family


def with_gradient_written_into_a_constant() -> Family:
    family = constants()
    family["inner"].mul_(leaf(2.0))
    assert all(tensor.requires_grad for tensor in family.values())
    return family


def read_after_a_write() -> Family:
    family = constants()
    family["view"].add_(1)
    assert all(tensor.sum().item() > 0 for tensor in family.values())
    return family


def with_losses() -> Family:
    family = written_view()
    return {
        "base": family["base"],
        "view": family["view"],
        "loss of the base": (family["base"] ** 2).sum(),
        "loss of the view": (family["view"] ** 2).sum(),
    }


def after_backward() -> Family:
    family = with_losses()
    family["loss of the base"].backward(retain_graph=True)
    family["loss of the view"].backward()
    return family


def with_retained_grads() -> Family:
    family = recorded()
    for tensor in family.values():
        tensor.retain_grad()
    family["view"].mul_(3)
    family["inner"].sum().backward()
    return family


def with_hooks() -> Family:
    family = recorded()
    for tensor in family.values():
        tensor.register_hook(lambda grad: grad * 2)
    family["view"].mul_(3)
    return family


def detached() -> Family:
    base = dg.ones(4, requires_grad=True) * 2
    alias = base.detach()
    alias.mul_(3)
    return {"base": base, "alias": alias, "view": alias[:2], "data": base.data}


def reshaped_in_place() -> Family:
    family = recorded()
    family["sibling"].t_()
    family["sibling"].mul_(2)
    return family


FAMILIES: dict[str, Callable[[], Family]] = {
    function.__name__.replace("_", " "): function
    for function in [
        constants,
        recorded,
        written_base,
        written_view,
        written_view_of_a_view,
        written_everywhere,
        regenerated,
        with_gradient_written_into_a_constant,
        read_after_a_write,
        with_losses,
        after_backward,
        with_retained_grads,
        with_hooks,
        detached,
        reshaped_in_place,
    ]
}
every_family = pytest.mark.parametrize("make", FAMILIES.values(), ids=FAMILIES)


@every_family
def test_base_and_views_are_freed_in_any_order_of_dropping(make: Callable[[], Family]) -> None:
    for order in permutations(range(4)):
        family = list(make().values())
        references = [weakref.ref(tensor) for tensor in family]
        for which in order:
            family[which] = dg.ones(())
        assert [reference() for reference in references] == [None] * 4, order


@every_family
def test_nodes_are_freed_in_any_order_of_dropping(make: Callable[[], Family]) -> None:
    for order in permutations(range(4)):
        family = list(make().values())
        nodes = [watch(tensor) for tensor in family if tensor.grad_fn is not None]
        for which in order:
            family[which] = dg.ones(())
        assert [node() for node in nodes] == [None] * len(nodes), order


def test_view_is_freed_while_its_base_lives() -> None:
    base = dg.ones(4)
    view = weakref.ref(base[:2])
    assert view() is None
    assert base._version == 0


def test_view_that_was_written_is_freed_while_its_base_lives() -> None:
    base = dg.ones(4, requires_grad=True) * 2
    view = base[:2]
    view.mul_(3)
    reference = weakref.ref(view)
    del view
    assert reference() is None
    assert base.requires_grad


def test_view_keeps_its_base() -> None:
    base = dg.ones(4)
    view = base[:2]
    reference = weakref.ref(base)
    del base
    assert reference() is not None and view._base is reference()
    del view
    assert reference() is None


def test_view_of_a_view_keeps_the_base_and_not_the_view_between() -> None:
    base = dg.ones(4)
    middle = base[:3]
    inner = middle[1:]
    between, root = weakref.ref(middle), weakref.ref(base)
    del base, middle
    assert between() is None and root() is not None
    assert inner._base is root()


def test_detached_tensor_does_not_keep_its_source() -> None:
    source = dg.ones(4)
    alias = source.detach()
    reference = weakref.ref(source)
    del source
    assert reference() is None
    assert_values(alias, [1, 1, 1, 1])


def test_node_before_a_write_is_kept_by_the_one_after_it() -> None:
    y = leaf(1.0, 2.0) * 2
    before = watch(y)
    y.mul_(3)
    after = watch(y)
    assert before() is not None
    del y
    assert before() is None and after() is None


def test_node_of_a_view_that_was_regenerated_is_freed() -> None:
    base = dg.ones(4, requires_grad=True) * 2
    view = base[:2]
    before = watch(view)
    base.mul_(3)
    assert view.grad_fn is not None
    assert before() is None


def test_result_saved_by_a_write_into_a_view_makes_no_cycle() -> None:
    base = dg.ones(4, requires_grad=True) * 2
    node = watch(base)
    view = base.view(2, 2)
    view.relu_()
    view.tanh_()
    del base, view
    assert node() is None


@pytest.mark.parametrize("name", ["exp_", "tanh_", "sigmoid_", "sqrt_", "relu_"])
def test_chain_of_writes_that_save_their_results_makes_no_cycle(name: str) -> None:
    y = leaf(1.0, 2.0) * 2
    nodes = []
    for _ in range(3):
        getattr(y, name)()
        nodes.append(watch(y))
    del y
    assert [node() for node in nodes] == [None] * 3


def test_view_whose_base_nobody_holds_has_its_gradient() -> None:
    x = dg.ones(4, requires_grad=True)
    view = (x * 2)[:2].view(-1)
    view.relu_()
    copy = view.clone()
    del view
    copy.sum().backward()
    assert_values(x.grad, [2, 2, 0, 0])


def test_refused_write_keeps_nothing() -> None:
    view: Any = (dg.ones(4, requires_grad=True) * 2).split(2)[0]
    reference, node = weakref.ref(view), watch(view)
    with pytest.raises(RuntimeError, match="multiple views"):
        view.mul_(3)
    del view
    assert reference() is None and node() is None


def test_refused_backward_keeps_nothing() -> None:
    y = leaf(1.0, 2.0) * 2
    loss = (y * y).sum()
    y.add_(1)
    reference, node = weakref.ref(y), watch(loss)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    del y, loss
    assert reference() is None and node() is None


def test_hook_that_holds_a_view_is_freed_with_the_node() -> None:
    x = dg.ones(4, requires_grad=True)
    base = x * 2
    view = base[:2]
    canary = Canary()

    def hook(grad: dg.Tensor, kept: Canary = canary) -> None:
        assert kept is not None

    view.register_hook(hook)
    reference = weakref.ref(canary)
    del canary, hook
    base.mul_(3)
    view.sum().backward()
    del base, view
    assert reference() is None


def test_long_chain_of_views_is_freed() -> None:
    x = dg.ones(2, requires_grad=True) * 1
    reference = weakref.ref(x)
    for _ in range(5_000):
        x = x[:]
    assert reference() is not None
    del x
    assert reference() is None


def test_long_chain_of_writes_is_freed() -> None:
    x = dg.ones(2, requires_grad=True) * 1
    node = watch(x)
    for _ in range(5_000):
        x[:1].add_(1)
    assert node() is not None
    del x
    assert node() is None


# Arrays (a tensor's cell holds the array of its storage)


def array_of(tensor: Any) -> weakref.ref[Any]:
    return weakref.ref(tensor._cell.array)


def test_write_frees_the_array_that_was_there() -> None:
    x = dg.ones(4)
    x.add_(1)
    array = array_of(x)
    x.add_(1)
    assert array() is None


def test_write_into_a_view_frees_the_array_that_was_there() -> None:
    x = dg.ones(4)
    x.add_(1)
    array = array_of(x)
    x[:2].add_(1)
    assert array() is None


def test_view_keeps_the_array_of_its_base_and_its_end_frees_it() -> None:
    base = dg.ones(4) * 2
    array = array_of(base)
    view = base[:2]
    del base
    assert array() is not None
    del view
    assert array() is None


def test_saved_array_lives_until_backward_though_its_tensor_was_written() -> None:
    with dg.autograd.graph.allow_mutation_on_saved_tensors():
        y = leaf(1.0, 2.0) * 2
        array = array_of(y)
        loss = (y * y).sum()
        y.zero_()
        assert array() is not None
        loss.backward()
        assert array() is None

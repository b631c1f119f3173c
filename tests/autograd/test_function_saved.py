"""What a Function's context saves: identity, history, versions, hooks, and when it is freed."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    saved_tensors_hooks,
)
from tests.autograd.functions import Double, DoubleInPlace, Exp, Product, Square, make, pass_on
from tests.graph.helpers import Canary, assert_values, leaf, node_of, watch

GRAPH_IS_FREED = "Trying to backward through the graph a second time"


def saving(choose: Any) -> Any:
    """A Function that doubles, and saves what `choose(x, y)` gives of its input and output."""

    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        y = x * 2
        ctx.save_for_backward(*choose(x, y))
        return y

    return make(forward, pass_on)


# --- what is given back ------------------------------------------------------------------------


def test_saved_leaf_is_the_leaf_itself() -> None:
    x = leaf(1.0, 2.0)
    y = saving(lambda x, y: (x,)).apply(x)
    assert y.grad_fn.saved_tensors[0] is x


def test_saved_constant_is_itself() -> None:
    c = dg.ones(2)
    first = make(lambda ctx, x, c: (ctx.save_for_backward(c), x * c)[1], lambda ctx, g: (g, None))
    assert first.apply(leaf(1.0, 2.0), c).grad_fn.saved_tensors[0] is c


def test_saved_interior_tensor_has_its_history() -> None:
    x = leaf(1.0, 2.0) * 3
    y = saving(lambda x, y: (x,)).apply(x)
    (saved,) = y.grad_fn.saved_tensors
    assert_values(saved, [3, 6])
    assert saved.grad_fn is x.grad_fn


def test_saved_output_has_the_function_as_its_history() -> None:
    y = saving(lambda x, y: (y,)).apply(leaf(1.0, 2.0))
    (saved,) = y.grad_fn.saved_tensors
    assert_values(saved, [2, 4])
    assert saved.grad_fn is y.grad_fn and saved.output_nr == 0


def test_saved_output_is_another_tensor_than_the_output() -> None:
    y = saving(lambda x, y: (y,)).apply(leaf(1.0, 2.0))
    assert y.grad_fn.saved_tensors[0] is not y


def test_saved_second_output_knows_its_number() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> Any:
        first, second = x * 2, x * 3
        ctx.save_for_backward(second)
        return first, second

    first, _ = make(forward, lambda ctx, a, b: a).apply(leaf(1.0, 2.0))
    (saved,) = first.grad_fn.saved_tensors
    assert saved.output_nr == 1
    assert_values(saved, [3, 6])


def test_saved_non_differentiable_output_has_no_history() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> Any:
        y, order = x.sort()
        ctx.mark_non_differentiable(order)
        ctx.save_for_backward(order)
        return y, order

    y, _ = make(forward, lambda ctx, g, _: g).apply(leaf(2.0, 1.0))
    (saved,) = y.grad_fn.saved_tensors
    assert saved.tolist() == [1, 0] and not saved.requires_grad


def test_nothing_saved_is_an_empty_tuple() -> None:
    assert Double.apply(leaf(1.0)).grad_fn.saved_tensors == ()


def test_none_can_be_saved() -> None:
    y = saving(lambda x, y: (None, x, None)).apply(leaf(1.0, 2.0))
    first, second, third = y.grad_fn.saved_tensors
    assert (first, third) == (None, None)
    assert_values(second, [1, 2])


def test_last_save_for_backward_counts() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.save_for_backward(x)
        ctx.save_for_backward(x, x)
        return x * 2

    assert len(make(forward, pass_on).apply(leaf(1.0)).grad_fn.saved_tensors) == 2


def test_saving_what_is_no_tensor_raises() -> None:
    with pytest.raises(TypeError, match="can only save variables, but argument 1 is of type int"):
        saving(lambda x, y: (x, 3)).apply(leaf(1.0))


def test_saving_what_is_no_tensor_matters_only_where_a_node_is_made() -> None:
    assert_values(saving(lambda x, y: (x, 3)).apply(dg.tensor(1.0)), 2)


def test_saved_tensors_are_readable_in_forward_only_afterwards() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.save_for_backward(x)
        assert ctx.saved_tensors == ()
        return x * 2

    make(forward, pass_on).apply(leaf(1.0))


def test_raw_saved_tensors_unpack_to_what_was_saved() -> None:
    x = leaf(1.0, 2.0)
    y = saving(lambda x, y: (x,)).apply(x)
    (raw,) = y.grad_fn._raw_saved_tensors
    assert isinstance(raw, dg.autograd.SavedTensor)
    assert raw.data is x


def test_raw_saved_tensors_take_hooks(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    y = Square.apply(x)
    y.grad_fn._raw_saved_tensors[0].register_hooks(lambda t: t * 10, lambda t: t)
    assert_values(gradient(y, x), [20, 40])


def test_saved_variables_is_the_old_name() -> None:
    node = saving(lambda x, y: (x,)).apply(leaf(1.0, 2.0)).grad_fn
    with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated"):
        (saved,) = node.saved_variables
    assert_values(saved, [1, 2])


# --- freed -------------------------------------------------------------------------------------


def test_second_backward_raises_where_something_was_saved(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    y = Square.apply(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match=GRAPH_IS_FREED):
        gradient(y, x)


def test_second_backward_runs_where_saved_tensors_are_not_read() -> None:
    x = leaf(1.0, 2.0)
    y = Double.apply(x)
    y.backward(dg.ones(2))
    y.backward(dg.ones(2))
    assert_values(x.grad, [4, 4])


def test_retained_graph_keeps_what_was_saved() -> None:
    x = leaf(1.0, 2.0)
    y = Square.apply(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert_values(x.grad, [4, 8])


def test_freed_tensors_cannot_be_read() -> None:
    y = Square.apply(leaf(1.0, 2.0))
    node = y.grad_fn
    y.sum().backward()
    with pytest.raises(RuntimeError, match=GRAPH_IS_FREED):
        _ = node.saved_tensors
    with pytest.raises(RuntimeError, match=GRAPH_IS_FREED):
        _ = node._raw_saved_tensors


def test_attributes_of_the_context_survive_backward() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.factor = 3
        return x * 3

    x = leaf(1.0)
    y = make(forward, lambda ctx, g: g * ctx.factor).apply(x)
    y.backward()
    y.backward()
    assert_values(x.grad, 6)


def test_context_that_escapes_its_backward_has_nothing_saved() -> None:
    kept: list[Any] = []

    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        kept.append(ctx)
        return grad * ctx.saved_tensors[0]

    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.save_for_backward(x)
        return x * x

    make(forward, backward).apply(leaf(2.0)).backward()
    with pytest.raises(RuntimeError, match=GRAPH_IS_FREED):
        _ = kept[0].saved_tensors


def test_context_that_escapes_its_forward_may_be_read_until_backward() -> None:
    kept: list[Any] = []

    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        kept.append(ctx)
        ctx.save_for_backward(x)
        return x * x

    x = leaf(2.0)
    y = make(forward, lambda ctx, g: g * 2 * ctx.saved_tensors[0]).apply(x)
    del y
    assert kept[0].saved_tensors[0] is x


def test_reading_frees_where_the_function_says_so() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        (x,) = ctx.saved_tensors
        with pytest.raises(RuntimeError, match="saved_tensors can only be accessed once"):
            _ = ctx.saved_tensors
        return grad * 2 * x

    x = leaf(3.0)
    make(forward, backward, clear_saved_tensors_on_access=True).apply(x).backward()
    assert_values(x.grad, 6)


# --- versions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [Square, Exp])
def test_saved_tensor_that_was_written_to_since_raises(gradient: Any, function: Any) -> None:
    x = leaf(1.0, 2.0)
    t = x * 1
    y = function.apply(t)
    (t if function is Square else y).mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        gradient(y, x)


def test_saved_leaf_that_was_written_under_no_grad_raises(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    y = Square.apply(x)
    with dg.no_grad():
        x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        gradient(y, x)


def test_write_by_a_later_function_is_seen(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    t = x * 1
    y = Square.apply(t)
    DoubleInPlace.apply(t)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        gradient(y, x)


def test_saved_view_sees_writes_to_its_base(gradient: Any) -> None:
    x = leaf(1.0, 2.0, 3.0)
    t = x * 1
    y = Square.apply(t[:2])
    t.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        gradient(y, x)


def test_saved_intermediate_sees_writes() -> None:
    kept: list[dg.Tensor] = []

    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        inner = x * 2
        kept.append(inner)
        ctx.save_for_backward(inner)
        return x * x

    y = make(forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(leaf(3.0))
    kept[0].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_write_between_saving_and_the_end_of_forward_counts_before() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        inner = x * 2
        ctx.save_for_backward(inner)
        inner.mul_(2)
        return x * x

    x = leaf(3.0)
    make(forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x).backward()
    assert_values(x.grad, 12)


def test_old_values_are_used_where_mutation_is_allowed() -> None:
    with allow_mutation_on_saved_tensors():
        x = leaf(1.0, 2.0)
        t = x * 1
        loss = Square.apply(t).sum()
        t.zero_()
        loss.backward()
    assert_values(x.grad, [2, 4])


def test_old_outputs_are_used_where_mutation_is_allowed() -> None:
    with allow_mutation_on_saved_tensors():
        x = leaf(1.0, 2.0)
        y = Exp.apply(x)
        (by_x,) = dg.autograd.grad(y.sum(), x, retain_graph=True)
        y.zero_()
        (again,) = dg.autograd.grad(y, x, dg.ones(2), allow_unused=True, materialize_grads=True)
    assert_values(by_x, np.exp([1, 2]))
    assert_values(again, [0, 0])


def test_old_values_are_used_in_double_backward_where_mutation_is_allowed() -> None:
    with allow_mutation_on_saved_tensors():
        x = leaf(1.0, 2.0)
        t = x * 1
        loss = Square.apply(t).sum()
        t.zero_()
        (by_x,) = dg.autograd.grad(loss, x, create_graph=True)
        (second,) = dg.autograd.grad(by_x.sum(), x)
    assert_values(by_x, [2, 4])
    assert_values(second, [2, 2])


# --- saved-tensor hooks ------------------------------------------------------------------------


def test_hooks_see_what_a_function_saves_and_nothing_of_its_forward(gradient: Any) -> None:
    calls: list[Any] = []

    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.save_for_backward(x, None, y := x.exp())
        return y * x

    def pack(t: dg.Tensor) -> dg.Tensor:
        calls.append(("pack", t.tolist()))
        return t

    def unpack(t: dg.Tensor) -> dg.Tensor:
        calls.append(("unpack", t.tolist()))
        return t

    x = leaf(0.0, 0.0)
    with saved_tensors_hooks(pack, unpack):
        y = make(forward, lambda ctx, g: g * ctx.saved_tensors[2]).apply(x)
    assert calls == [("pack", [0.0, 0.0]), ("pack", [1.0, 1.0])]
    calls.clear()
    assert_values(gradient(y, x), [1, 1])
    assert calls == [("unpack", [0.0, 0.0]), ("unpack", [1.0, 1.0])]


def test_hooks_are_called_again_for_each_reading() -> None:
    calls: list[str] = []
    with saved_tensors_hooks(lambda t: t, lambda t: (calls.append("unpack"), t)[1]):
        y = Square.apply(leaf(1.0, 2.0))
    for _ in range(2):
        _ = y.grad_fn.saved_tensors
    assert calls == ["unpack"] * 2


def test_hooks_apply_to_backward_that_is_recorded() -> None:
    calls: list[str] = []
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(
        lambda t: (calls.append("pack"), t)[1], lambda t: (calls.append("unpack"), t)[1]
    ):
        y = Exp.apply(x)
    assert calls == ["pack"]
    (by_x,) = dg.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = dg.autograd.grad(by_x.sum(), x)
    assert calls == ["pack", "unpack", "unpack"]
    assert_values(second, np.exp([1, 2]))


def test_hooks_entered_in_forward_do_not_pack_what_is_saved_after_it() -> None:
    calls: list[str] = []

    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        with saved_tensors_hooks(lambda t: (calls.append("pack"), t)[1], lambda t: t):
            ctx.save_for_backward(x)
        return x * 2

    make(forward, pass_on).apply(leaf(1.0))
    assert calls == []


def test_functions_run_where_hooks_are_disabled(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    with disable_saved_tensors_hooks("not in here"):
        y = Square.apply(x)
    assert_values(gradient(y, x), [2, 4])


def test_error_of_a_pack_hook_reaches_the_caller_of_apply() -> None:
    def fail(t: dg.Tensor) -> None:
        raise ValueError("no room")

    with saved_tensors_hooks(fail, lambda t: t), pytest.raises(ValueError, match="no room"):
        Square.apply(leaf(1.0))
    assert dg.is_grad_enabled()


# --- memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [Square, Exp, Double])
def test_output_frees_its_node_without_the_collector(no_gc: None, function: Any) -> None:
    y = function.apply(leaf(1.0, 2.0))
    node, tensor = watch(y), weakref.ref(y)
    del y
    assert node() is None and tensor() is None


def test_written_input_frees_its_node_without_the_collector(no_gc: None) -> None:
    y = leaf(1.0, 2.0) * 1
    DoubleInPlace.apply(y)
    node = watch(y)
    del y
    assert node() is None


def test_returned_input_frees_its_node_without_the_collector(no_gc: None) -> None:
    y = make(lambda ctx, x: x, pass_on).apply(leaf(1.0, 2.0))
    node = watch(y)
    del y
    assert node() is None


def test_attributes_of_the_context_are_freed_with_the_output(no_gc: None) -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.held = Canary()
        held.append(weakref.ref(ctx.held))
        return x * 2

    held: list[Any] = []
    y = make(forward, pass_on).apply(leaf(1.0))
    assert held[0]() is not None
    del y
    assert held[0]() is None


def test_context_is_freed_at_once_where_nothing_is_recorded(no_gc: None) -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.held = Canary()
        held.append(weakref.ref(ctx.held))
        return x * 2

    held: list[Any] = []
    y = make(forward, pass_on).apply(dg.ones(2))
    assert held[0]() is None and not y.requires_grad


def test_backward_frees_saved_tensors_while_the_output_lives(no_gc: None) -> None:
    t = leaf(1.0, 2.0) * 1
    tensor = weakref.ref(t)
    y = Square.apply(t).sum()
    del t
    y.backward()
    assert tensor() is None


def test_node_does_not_keep_interior_inputs_that_were_not_saved(no_gc: None) -> None:
    t = leaf(1.0, 2.0) * 1
    tensor = weakref.ref(t)
    y = Double.apply(t)
    del t
    assert tensor() is None and y.requires_grad


def test_failed_forward_keeps_nothing(no_gc: None) -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.save_for_backward(x)
        raise ValueError("from forward")

    t = leaf(1.0, 2.0) * 1
    node = watch(t)
    with pytest.raises(ValueError, match="from forward"):
        make(forward, pass_on).apply(t)
    del t
    assert node() is None


def test_second_derivative_frees_everything(no_gc: None) -> None:
    x = leaf(1.0, 2.0)
    y = Exp.apply(x)
    nodes = [watch(y)]
    (by_x,) = dg.autograd.grad(y.sum(), x, create_graph=True)
    nodes.append(watch(by_x))
    del y, by_x
    assert [node() for node in nodes] == [None, None]


def test_function_keeps_a_leaf_alive_until_backward(no_gc: None) -> None:
    x = leaf(1.0, 2.0)
    tensor = weakref.ref(x)
    y = Square.apply(x).sum()
    del x
    assert tensor() is not None
    y.backward()
    del y
    assert tensor() is None


def test_saved_values_live_until_their_second_derivative_has_run(no_gc: None) -> None:
    x = leaf(1.0, 2.0)
    t = x * 1
    (by_x,) = dg.autograd.grad(Product.apply(t, t * 1).sum(), x, create_graph=True)
    del t
    by_x.sum().backward()
    assert_values(x.grad, [2, 2])


def test_cycle_that_a_context_makes_is_collected() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.save_for_backward(x)
        ctx.own_output = x * 2
        return ctx.own_output

    y = make(forward, pass_on).apply(leaf(1.0))
    node = watch(y)
    del y
    gc.collect()
    assert node() is None


def test_cycle_through_metadata_is_collected() -> None:
    x = leaf(1.0)
    y = Square.apply(x)
    y.grad_fn.metadata["output"] = y
    node = watch(y)
    del y
    gc.collect()
    assert node() is None


@pytest.mark.parametrize("tensor_hook", [False, True])
@pytest.mark.parametrize("function", [Double, None], ids=["function", "operator"])
def test_hook_whose_closure_holds_its_tensor_is_collected(function: Any, tensor_hook: bool) -> None:
    x = leaf(1.0, 2.0)
    y = x * 2 if function is None else function.apply(x)
    canary = Canary()

    def hook(*args: Any, y: Any = y, canary: Any = canary) -> None:
        pass

    if tensor_hook:
        y.register_hook(hook)
    else:
        node_of(y).register_hook(hook)
    alive = weakref.ref(canary)
    del y, canary, hook
    gc.collect()
    assert alive() is None


def test_chain_of_10_000_functions_is_freed(no_gc: None) -> None:
    y = leaf(1.0)
    y = Double.apply(y)
    node = watch(y)
    same = make(lambda ctx, x: x.detach(), pass_on)
    for _ in range(10_000):
        y = same.apply(y)
    del y
    assert node() is None


def test_chain_of_10_000_functions_runs_backward(no_gc: None) -> None:
    x = leaf(1.0)
    y = x
    same = make(lambda ctx, x: x.detach(), pass_on)
    for _ in range(10_000):
        y = same.apply(y)
    y.backward()
    assert_values(x.grad, 1)


@pytest.mark.parametrize("tensor_hook", [False, True])
@pytest.mark.parametrize("function", [Double, None], ids=["function", "operator"])
def test_hook_whose_closure_holds_its_node_lives_with_the_graph(
    function: Any, tensor_hook: bool
) -> None:
    x = leaf(1.0, 2.0)
    y = x * 2 if function is None else function.apply(x)
    node, canary, calls = y.grad_fn, Canary(), []

    def hook(*args: Any, node: Any = node, canary: Any = canary) -> None:
        calls.append(None)

    (y if tensor_hook else node).register_hook(hook)  # type: ignore[union-attr]
    loss = y.sum()
    alive = weakref.ref(canary)
    del y, node, canary, hook
    gc.collect()
    loss.backward()
    assert len(calls) == 1 and alive() is not None
    del loss
    gc.collect()
    assert alive() is None

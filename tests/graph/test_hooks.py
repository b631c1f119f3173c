"""Hooks on tensors, nodes and groups of tensors: what they see, change and refuse, and when."""

import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg
from tests.graph.helpers import Canary, assert_values, leaf, node_of

Events = list[Any]


def grad_of(tensor: dg.Tensor) -> float | None:
    return None if tensor.grad is None else tensor.grad.item()


# Tensor.register_hook


def test_tensor_hook_receives_the_gradient() -> None:
    x, seen = leaf(1.0, 2.0), []
    y = x * 2
    y.register_hook(seen.append)
    (y * 3).sum().backward()
    assert [g.tolist() for g in seen] == [[3.0, 3.0]]


def test_tensor_hook_receives_the_sum_of_all_uses_once() -> None:
    x, seen = leaf(1.0), []
    x.register_hook(seen.append)
    (x * 2 + x * 3).backward()
    assert [g.item() for g in seen] == [5.0]


@pytest.mark.parametrize("returned", [None, 7.0])
def test_tensor_hook_result_replaces_the_gradient_unless_none(returned: float | None) -> None:
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda grad: None if returned is None else grad * returned)
    y.backward()
    assert_values(x.grad, 2.0 * (returned or 1.0))


def test_tensor_hooks_chain_in_order_of_registration() -> None:
    x = leaf(1.0)
    x.register_hook(lambda grad: grad * 2)
    x.register_hook(lambda grad: grad + 1)
    (x * 3).backward()
    assert_values(x.grad, 7.0)


def test_tensor_hook_on_a_leaf_changes_what_is_accumulated() -> None:
    x = leaf(1.0)
    x.register_hook(lambda grad: grad * 2)
    (x * 3).backward()
    (x * 3).backward()
    assert_values(x.grad, 12.0)


def test_tensor_hook_on_a_root_that_is_a_leaf_runs() -> None:
    x = leaf(1.0)
    x.register_hook(lambda grad: grad * 3)
    x.backward()
    assert_values(x.grad, 3.0)


def test_tensor_hook_on_a_leaf_may_be_registered_after_the_forward_pass() -> None:
    x, seen = leaf(1.0), []
    y = x * 2
    x.register_hook(seen.append)
    y.backward()
    assert len(seen) == 1


def test_tensor_hook_off_the_path_does_not_run() -> None:
    x, seen = leaf(1.0), []
    (x * 3).register_hook(seen.append)
    (x * 2).backward()
    assert seen == []


def test_tensor_hook_may_be_a_partial_without_a_name() -> None:
    x = leaf(1.0)
    x.register_hook(functools.partial(lambda factor, grad: grad * factor, 3))
    (x * 2).backward()
    assert_values(x.grad, 6.0)


@pytest.mark.parametrize(
    "hook, error, message",
    [
        (lambda grad: 3, TypeError, "hook returned 'int'"),
        (lambda grad: dg.ones(3), RuntimeError, "changed the size"),
    ],
    ids=["type", "size"],
)
def test_tensor_hook_without_a_name_has_readable_errors(
    hook: Callable[..., Any], error: type[Exception], message: str
) -> None:
    x = leaf(1.0)
    x.register_hook(functools.partial(hook))
    with pytest.raises(error, match=message):
        (x * 2).backward()


@pytest.mark.parametrize("returned, name", [(3, "int"), ("a", "str")])
def test_tensor_hook_that_returns_no_tensor_raises(returned: Any, name: str) -> None:
    x = leaf(1.0)
    x.register_hook(lambda grad: returned)
    with pytest.raises(TypeError, match=f"hook returned '{name}'"):
        (x * 2).backward()


@pytest.mark.parametrize("shape", [(3,), (1,)])
@pytest.mark.parametrize("where", ["leaf", "interior"])
def test_tensor_hook_that_returns_another_shape_raises(where: str, shape: tuple[int, ...]) -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    (x if where == "leaf" else y).register_hook(lambda grad: dg.ones(shape))
    with pytest.raises(RuntimeError, match="changed the size"):
        y.sum().backward()


def test_tensor_hook_that_returns_another_dtype_raises() -> None:
    x = leaf(1.0)
    x.register_hook(lambda grad: dg.ones((), dtype=dg.int32))
    with pytest.raises(RuntimeError, match="changed the type"):
        (x * 2).backward()


def test_tensor_hook_error_names_the_hook() -> None:
    def shrinks(grad: dg.Tensor) -> dg.Tensor:
        return grad.sum()

    x = leaf(1.0, 2.0)
    x.register_hook(shrinks)
    with pytest.raises(RuntimeError, match=r"shrinks.* changed the size"):
        x.sum().backward()


def test_tensor_hook_on_a_tensor_without_grad_raises() -> None:
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't"):
        dg.ones(2).register_hook(print)


def test_tensor_hook_on_a_result_of_no_grad_raises() -> None:
    x = leaf(1.0)
    with dg.no_grad():
        y = x * 2
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't"):
        y.register_hook(print)


def test_graph_is_usable_after_a_hook_failed() -> None:
    def fails(grad: dg.Tensor) -> None:
        raise KeyError("from the hook")

    x = leaf(1.0)
    y = x * 2
    handle = y.register_hook(fails)
    with pytest.raises(KeyError, match="from the hook"):
        y.backward(retain_graph=True)
    handle.remove()
    y.backward()
    assert_values(x.grad, 2.0)


def test_tensor_hook_receives_none_if_only_another_output_has_a_gradient() -> None:
    x, seen = leaf(1.0, 2.0, 3.0), []
    first, second, _ = x.unbind(0)
    first.register_hook(seen.append)
    second.register_hook(seen.append)
    (first * 2).backward()
    assert [g if g is None else g.item() for g in seen] == [2.0, None]


# Removal


REGISTER: dict[str, Callable[[dg.Tensor, dg.Tensor], Callable[..., Any]]] = {
    "tensor": lambda x, y: y.register_hook,
    "node": lambda x, y: node_of(y).register_hook,
    "node prehook": lambda x, y: node_of(y).register_prehook,
    "post accumulate": lambda x, y: x.register_post_accumulate_grad_hook,
}
every_kind = pytest.mark.parametrize("kind", REGISTER)


def registrar(kind: str) -> tuple[dg.Tensor, Callable[..., Any]]:
    x = leaf(1.0)
    y = x * 2
    return y, REGISTER[kind](x, y)


@every_kind
def test_removed_hook_does_not_run(kind: str) -> None:
    seen: Events = []
    y, register = registrar(kind)
    register(lambda *args: seen.append("kept"))
    register(lambda *args: seen.append("removed")).remove()
    y.backward()
    assert seen == ["kept"]


@every_kind
def test_removing_a_hook_twice_does_nothing(kind: str) -> None:
    _, register = registrar(kind)
    handle = register(print)
    handle.remove()
    handle.remove()


@every_kind
def test_handle_as_a_context_manager_removes_the_hook(kind: str) -> None:
    seen: Events = []
    y, register = registrar(kind)
    with register(lambda *args: seen.append(1)):
        y.backward(retain_graph=True)
    y.backward()
    assert seen == [1]


@every_kind
def test_hook_that_removes_itself_runs_once(kind: str) -> None:
    seen: Events = []
    y, register = registrar(kind)

    def once(*args: Any) -> None:
        seen.append("once")
        handle.remove()

    handle = register(once)
    register(lambda *args: seen.append("always"))
    y.backward(retain_graph=True)
    y.backward()
    assert seen == ["once", "always", "always"]


@every_kind
def test_hook_removed_by_an_earlier_hook_runs_for_the_last_time(kind: str) -> None:
    seen: Events = []
    y, register = registrar(kind)

    def first(*args: Any) -> None:
        seen.append("first")
        handle.remove()

    register(first)
    handle = register(lambda *args: seen.append("second"))
    y.backward(retain_graph=True)
    y.backward()
    assert seen == ["first", "second", "first"]


@every_kind
def test_hook_added_by_a_hook_first_runs_in_the_next_backward(kind: str) -> None:
    seen: Events = []
    y, register = registrar(kind)

    def first(*args: Any) -> None:
        seen.append("first")
        register(lambda *args: seen.append("added"))

    handle = register(first)
    y.backward(retain_graph=True)
    handle.remove()
    y.backward()
    assert seen == ["first", "added"]


# retain_grad


def test_retain_grad_keeps_the_gradient_of_an_interior_tensor() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward()
    assert_values(y.grad, [3.0, 3.0])


def test_retains_grad_says_whether_an_interior_tensor_keeps_its_gradient() -> None:
    y = leaf(1.0) * 2
    before = y.retains_grad
    y.retain_grad()
    assert (before, y.retains_grad) == (False, True)


def test_retain_grad_on_a_leaf_changes_nothing() -> None:
    x = leaf(1.0)
    x.retain_grad()
    (x * 2).backward()
    assert x.retains_grad is False
    assert_values(x.grad, 2.0)


def test_retain_grad_without_requires_grad_raises() -> None:
    with pytest.raises(RuntimeError, match=r"can't retain_grad on Tensor that has requires_grad"):
        dg.ones(2).retain_grad()


def test_retain_grad_twice_is_as_once() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    (y * 3).backward()
    assert_values(y.grad, 3.0)


def test_retained_gradients_of_two_backwards_add_up() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.backward(retain_graph=True)
    y.backward()
    assert_values(y.grad, 2.0)


def test_retained_gradient_is_not_changed_by_a_later_backward() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.backward(retain_graph=True)
    first = y.grad
    y.grad = None
    y.backward()
    assert_values(first, 1.0)


@pytest.mark.parametrize("retain_first", [True, False])
def test_retained_gradient_sees_every_tensor_hook(retain_first: bool) -> None:
    x = leaf(1.0)
    y = x * 2
    if retain_first:
        y.retain_grad()
    y.register_hook(lambda grad: grad * 10)
    if not retain_first:
        y.retain_grad()
    y.backward()
    assert_values(y.grad, 10.0)


def test_retained_gradient_does_not_see_node_prehooks() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    node_of(y).register_prehook(lambda grads: (grads[0] * 10,))
    y.backward()
    assert_values(y.grad, 1.0)
    assert_values(x.grad, 20.0)


def test_autograd_grad_fills_retained_gradients() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    dg.autograd.grad(y * 3, x)
    assert_values(y.grad, 3.0)


def test_retain_grad_does_not_need_the_tensor_to_live(no_gc: None) -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    z = y * 3
    del y
    z.backward()
    assert_values(x.grad, 6.0)


# register_post_accumulate_grad_hook


def test_post_accumulate_hook_receives_the_leaf_itself() -> None:
    x, seen = leaf(1.0), []
    x.register_post_accumulate_grad_hook(seen.append)
    (x * 2).backward()
    assert seen[0] is x


def test_post_accumulate_hook_sees_the_accumulated_gradient() -> None:
    x, seen = leaf(1.0), []
    x.register_post_accumulate_grad_hook(lambda x: seen.append(grad_of(x)))
    (x * 2).backward()
    (x * 3).backward()
    assert seen == [2.0, 5.0]


def test_post_accumulate_hook_may_clear_the_gradient() -> None:
    def clear(x: dg.Tensor) -> None:
        x.grad = None

    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(clear)
    (x * 2).backward()
    assert x.grad is None


def test_post_accumulate_hook_sees_what_tensor_hooks_made() -> None:
    x, seen = leaf(1.0), []
    x.register_post_accumulate_grad_hook(lambda x: seen.append(grad_of(x)))
    x.register_hook(lambda grad: grad * 10)
    (x * 2).backward()
    assert seen == [20.0]


def test_post_accumulate_hooks_run_in_order_of_registration() -> None:
    x, seen = leaf(1.0), []
    x.register_post_accumulate_grad_hook(lambda x: seen.append("first"))
    x.register_post_accumulate_grad_hook(lambda x: seen.append("second"))
    (x * 2).backward()
    assert seen == ["first", "second"]


def test_one_post_accumulate_hook_serves_several_tensors() -> None:
    seen: list[dg.Tensor] = []
    x, y = leaf(1.0), leaf(2.0)
    for tensor in (x, y):
        tensor.register_post_accumulate_grad_hook(seen.append)
    (x * y).backward()
    assert {id(tensor) for tensor in seen} == {id(x), id(y)}


def test_post_accumulate_hook_runs_once_when_a_leaf_is_used_twice() -> None:
    x, seen = leaf(1.0), []
    x.register_post_accumulate_grad_hook(seen.append)
    (x * 2 + x * 3).backward()
    assert len(seen) == 1


def test_post_accumulate_hook_that_returns_something_raises() -> None:
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda x: 3)
    with pytest.raises(TypeError, match="hook returned 'int'"):
        (x * 2).backward()


def test_post_accumulate_hook_on_an_interior_tensor_raises() -> None:
    with pytest.raises(RuntimeError, match="non-leaf"):
        (leaf(1.0) * 2).register_post_accumulate_grad_hook(print)


def test_post_accumulate_hook_on_a_tensor_without_grad_raises() -> None:
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't"):
        dg.ones(2).register_post_accumulate_grad_hook(print)


def test_post_accumulate_hook_of_a_leaf_outside_inputs_does_not_run() -> None:
    x, y, seen = leaf(1.0), leaf(2.0), []
    x.register_post_accumulate_grad_hook(lambda t: seen.append("x"))
    y.register_post_accumulate_grad_hook(lambda t: seen.append("y"))
    (x * y).backward(inputs=[y])
    assert seen == ["y"]


def test_post_accumulate_hook_is_freed_with_its_tensor(no_gc: None) -> None:
    x, target = leaf(1.0), Canary()
    x.register_post_accumulate_grad_hook(lambda x, held=target: None)
    watch = weakref.ref(target)
    x.sum().backward()
    del x, target
    assert watch() is None


# Node.register_hook and Node.register_prehook


def test_node_hook_receives_gradients_of_inputs_and_outputs() -> None:
    x, y, seen = leaf(1.0), leaf(5.0), []
    z = x * y
    node_of(z).register_hook(lambda inputs, outputs: seen.append((inputs, outputs)))
    (z * 3).backward()
    ((inputs, outputs),) = seen
    assert [g.item() for g in inputs] == [15.0, 3.0]
    assert [g.item() for g in outputs] == [3.0]


def test_node_hook_receives_none_for_an_input_without_gradient() -> None:
    x, seen = leaf(1.0), []
    y = x * dg.ones(())
    node_of(y).register_hook(lambda inputs, outputs: seen.append(inputs))
    y.backward()
    assert seen[0][0].item() == 1.0
    assert seen[0][1] is None


def test_node_hook_result_replaces_the_input_gradients() -> None:
    x, y = leaf(1.0), leaf(5.0)
    z = x * y
    node_of(z).register_hook(lambda inputs, outputs: (inputs[0] * 10, inputs[1]))
    z.backward()
    assert_values(x.grad, 50.0)
    assert_values(y.grad, 1.0)


@pytest.mark.parametrize("kind", ["tensor hook", "prehook", "node hook"])
def test_no_hook_may_make_up_a_gradient_that_is_absent(kind: str) -> None:
    x = leaf(1.0, 2.0)
    first, second = (x * 1).split(1)
    if kind == "tensor hook":
        second.register_hook(lambda grad: dg.ones(1))
    elif kind == "prehook":
        node_of(second).register_prehook(lambda grads: (dg.ones(1), dg.ones(1)))
    else:
        first = first * 2
        node_of(first).register_hook(lambda inputs, outputs: (dg.ones(1), dg.ones(1)))
    with pytest.raises(RuntimeError, match="can't replace a None gradient with a non-None value"):
        first.sum().backward()


def test_node_hook_may_replace_a_gradient_by_none() -> None:
    x, y = leaf(1.0), leaf(5.0)
    z = x * y
    node_of(z).register_hook(lambda inputs, outputs: (None, inputs[1]))
    z.backward()
    assert x.grad is None
    assert_values(y.grad, 1.0)


def test_node_hooks_chain_in_order_of_registration() -> None:
    x = leaf(1.0)
    y = x.exp()
    node_of(y).register_hook(lambda inputs, outputs: (inputs[0] * 0,))
    node_of(y).register_hook(lambda inputs, outputs: (inputs[0] + 1,))
    y.backward()
    assert_values(x.grad, 1.0)


@pytest.mark.parametrize("kind", ["node", "node prehook"])
@pytest.mark.parametrize("returned, name", [([None], "list"), (3, "int")])
def test_node_hook_that_returns_no_tuple_raises(kind: str, returned: Any, name: str) -> None:
    y, register = registrar(kind)
    register(lambda *args: returned)
    with pytest.raises(TypeError, match=f"expected tuple, but hook returned '{name}'"):
        y.backward()


@pytest.mark.parametrize("kind", ["node", "node prehook"])
def test_node_hook_that_returns_a_bare_tensor_raises(kind: str) -> None:
    y, register = registrar(kind)
    register(lambda *args: dg.ones(()))
    with pytest.raises(TypeError, match="expected tuple, but hook returned 'Tensor'"):
        y.backward()


@pytest.mark.parametrize("kind", ["node", "node prehook"])
def test_node_hook_that_returns_too_many_values_raises(kind: str) -> None:
    y, register = registrar(kind)
    register(lambda *args: (None,) * 5)
    with pytest.raises(RuntimeError, match="incorrect number of values"):
        y.backward()


def test_node_hook_that_returns_a_tuple_of_non_tensors_raises() -> None:
    x = leaf(1.0)
    y = x.exp()
    node_of(y).register_hook(lambda inputs, outputs: (3,))
    with pytest.raises(TypeError, match="hook returned 'int'"):
        y.backward()


def test_node_prehook_receives_the_output_gradients() -> None:
    x, seen = leaf(1.0), []
    y = x * 2
    node_of(y).register_prehook(seen.append)
    (y * 3).backward()
    assert [[g.item() for g in grads] for grads in seen] == [[3.0]]


def test_node_prehook_result_replaces_the_output_gradients() -> None:
    x = leaf(1.0)
    y = x * 2
    node_of(y).register_prehook(lambda grads: (grads[0] * 10,))
    y.backward()
    assert_values(x.grad, 20.0)


def test_node_prehook_may_replace_a_gradient_by_none() -> None:
    x = leaf(1.0)
    y = x * 2
    node_of(y).register_prehook(lambda grads: (None,))
    y.backward()
    assert x.grad is None


def test_node_prehook_has_one_gradient_for_each_output() -> None:
    x, seen = leaf(1.0, 2.0, 3.0), []
    first, _, third = x.unbind(0)
    node_of(first).register_prehook(seen.append)
    (first * 2 + third * 3).backward()
    assert [g if g is None else g.item() for g in seen[0]] == [2.0, None, 3.0]


def test_node_prehook_changes_the_gradients_of_several_outputs() -> None:
    x = leaf(1.0, 2.0)
    first, second = x.unbind(0)
    node_of(first).register_prehook(lambda grads: (grads[0] * 10, grads[1] * 100))
    (first + second).backward()
    assert_values(x.grad, [10.0, 100.0])


def test_node_hooks_of_an_accumulator_change_what_is_accumulated() -> None:
    x = leaf(1.0)
    node = node_of(x)
    node.register_prehook(lambda grads: (grads[0] * 10,))
    (x * 2).backward()
    assert_values(x.grad, 20.0)


def test_node_hook_of_an_accumulator_sees_the_accumulated_gradient() -> None:
    x, seen = leaf(1.0), []
    node = node_of(x)
    node.register_hook(lambda inputs, outputs: seen.append((grad_of(x), inputs)))
    x.register_hook(lambda grad: grad * 10)
    (x * 2).backward()
    assert seen == [(20.0, ())]


# Order


def test_events_at_an_interior_node_run_in_order() -> None:
    x, seen = leaf(1.0), []
    y = x * 2
    node_of(y).register_hook(lambda inputs, outputs: seen.append("node hook"))
    node_of(y).register_prehook(lambda grads: seen.append(("node prehook", grad_of(y))))
    y.retain_grad()
    y.register_hook(lambda grad: seen.append(("tensor hook", grad_of(y))))
    y.backward()
    assert seen == [("tensor hook", None), ("node prehook", 1.0), "node hook"]


def test_events_at_a_leaf_run_in_order() -> None:
    x, seen = leaf(1.0), []
    node = node_of(x)
    x.register_post_accumulate_grad_hook(lambda x: seen.append(("post accumulate", grad_of(x))))
    node.register_hook(lambda inputs, outputs: seen.append("node hook"))
    node.register_prehook(lambda grads: seen.append(("node prehook", grad_of(x))))
    x.register_hook(lambda grad: seen.append(("tensor hook", grad_of(x))))
    (x * 2).backward()
    assert seen == [
        ("tensor hook", None),
        ("node prehook", None),
        ("post accumulate", 2.0),
        "node hook",
    ]


def test_node_prehook_sees_what_tensor_hooks_made() -> None:
    x, seen = leaf(1.0), []
    y = x * 2
    node_of(y).register_prehook(lambda grads: seen.append(grads[0].item()))
    y.register_hook(lambda grad: grad * 10)
    y.backward()
    assert seen == [10.0]


def test_hooks_of_a_chain_run_from_the_output_to_the_input() -> None:
    x, seen = leaf(1.0), []
    y = x * 2
    z = y * 3
    for name, tensor in (("x", x), ("y", y), ("z", z)):
        tensor.register_hook(lambda grad, name=name: seen.append(name))
    z.backward()
    assert seen == ["z", "y", "x"]


# Captures


def test_captured_gradient_sees_tensor_hooks_of_a_leaf() -> None:
    x = leaf(1.0)
    x.register_hook(lambda grad: grad * 10)
    assert dg.autograd.grad(x * 2, x)[0].item() == 20.0


def test_captured_gradient_sees_tensor_hooks_of_an_interior_tensor() -> None:
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda grad: grad * 10)
    assert dg.autograd.grad(y * 3, y)[0].item() == 30.0


def test_captured_gradient_does_not_see_node_prehooks() -> None:
    x = leaf(1.0)
    y = x * 2
    node_of(y).register_prehook(lambda grads: (grads[0] * 10,))
    grad_y, grad_x = dg.autograd.grad(y * 3, (y, x))
    assert (grad_y.item(), grad_x.item()) == (3.0, 60.0)


def test_node_hooks_of_a_captured_accumulator_do_not_run() -> None:
    x, seen = leaf(1.0), []
    node = node_of(x)
    node.register_prehook(lambda grads: seen.append("prehook"))
    node.register_hook(lambda inputs, outputs: seen.append("hook"))
    dg.autograd.grad(x * 2, x)
    assert seen == []


def test_node_that_only_ends_a_path_runs_its_tensor_hooks_alone() -> None:
    x, seen = leaf(1.0), []
    y = x * 2
    z = y * 3
    for name, tensor in (("y", y), ("z", z)):
        tensor.register_hook(lambda grad, name=name: seen.append(f"{name} tensor"))
        node_of(tensor).register_prehook(lambda grads, name=name: seen.append(f"{name} prehook"))
        node_of(tensor).register_hook(lambda *args, name=name: seen.append(f"{name} hook"))
    dg.autograd.grad(z, y)
    assert seen == ["z tensor", "z prehook", "z hook", "y tensor"]


def test_backward_with_an_interior_input_stores_what_hooks_made() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda grad: grad * 10)
    (y * 3).backward(inputs=[x])
    assert_values(y.grad, 30.0)
    assert_values(x.grad, 60.0)


# register_multi_grad_hook


def multi(*args: Any, **kwargs: Any) -> Any:
    return dg.autograd.graph.register_multi_grad_hook(*args, **kwargs)


def test_multi_grad_hook_receives_all_gradients_in_order() -> None:
    seen: Events = []
    x, y, z = leaf(1.0), leaf(2.0), leaf(3.0)
    multi((x, y, z), seen.append)
    (z * 4 + x * 5 + y * 6).backward()
    assert [[g.item() for g in grads] for grads in seen] == [[5.0, 6.0, 4.0]]


def test_multi_grad_hook_receives_none_for_an_unused_tensor() -> None:
    seen: Events = []
    x, y = leaf(1.0), leaf(2.0)
    multi((x, y), seen.append)
    (y * 3).backward()
    assert [[g if g is None else g.item() for g in grads] for grads in seen] == [[None, 3.0]]


def test_multi_grad_hook_runs_once_each_backward() -> None:
    seen: Events = []
    x, y = leaf(1.0), leaf(2.0)
    multi((x, y), seen.append)
    for _ in range(3):
        (x * y).backward()
    assert len(seen) == 3


def test_multi_grad_hook_takes_interior_tensors() -> None:
    seen: Events = []
    x = leaf(1.0)
    y = x * 2
    multi((x, y), seen.append)
    (y * 3).backward()
    assert [g.item() for g in seen[0]] == [6.0, 3.0]


def test_multi_grad_hook_waits_only_for_tensors_on_a_path_to_inputs() -> None:
    seen: Events = []
    x, y = leaf(1.0), leaf(2.0)
    multi((x, y), seen.append)
    (x * y).backward(inputs=[y])
    assert [g if g is None else g.item() for g in seen[0]] == [None, 1.0]


def test_multi_grad_hook_sees_earlier_tensor_hooks_alone() -> None:
    seen: Events = []
    x, y = leaf(1.0), leaf(2.0)
    x.register_hook(lambda grad: grad * 10)
    multi((x, y), seen.append)
    x.register_hook(lambda grad: grad * 100)
    (x + y).backward()
    assert [g.item() for g in seen[0]] == [10.0, 1.0]


@pytest.mark.parametrize("mode", ["all", "any"])
def test_multi_grad_hook_result_is_ignored(mode: str) -> None:
    x, y = leaf(1.0), leaf(2.0)
    multi((x, y), lambda grads: 7, mode=mode)
    (x * 2 + y * 3).backward()
    assert_values(x.grad, 2.0)
    assert_values(y.grad, 3.0)


@pytest.mark.parametrize("mode", ["all", "any"])
def test_removed_multi_grad_hook_does_not_run(mode: str) -> None:
    seen: Events = []
    x, y = leaf(1.0), leaf(2.0)
    multi((x, y), seen.append, mode=mode).remove()
    (x * y).backward()
    assert seen == []


def test_multi_grad_any_hook_receives_the_first_gradient() -> None:
    seen: Events = []
    x = leaf(1.0)
    y = x * 2
    multi((x, y), seen.append, mode="any")
    (y * 3).backward()
    assert [g.item() for g in seen] == [3.0]


def test_multi_grad_any_hook_runs_once_each_backward() -> None:
    seen: Events = []
    x, y = leaf(1.0), leaf(2.0)
    multi((x, y), seen.append, mode="any")
    for _ in range(3):
        (x * y).backward()
    assert len(seen) == 3


def test_multi_grad_hook_with_an_unknown_mode_raises() -> None:
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        multi((leaf(1.0),), print, mode="some")


@pytest.mark.parametrize("mode", ["all", "any"])
def test_error_in_a_multi_grad_hook_reaches_the_caller(mode: str) -> None:
    def fails(grads: Any) -> None:
        raise KeyError("from the hook")

    x = leaf(1.0)
    multi((x,), fails, mode=mode)
    with pytest.raises(KeyError, match="from the hook"):
        (x * 2).backward()


# Memory


@pytest.mark.parametrize("kind", ["tensor", "node", "node prehook"])
def test_cycle_of_a_hook_and_its_node_is_collected(kind: str) -> None:
    def make() -> weakref.ref[Canary]:
        target = Canary()
        y, register = registrar(kind)
        node = node_of(y)
        register(lambda *args: (target, node))
        return weakref.ref(target)

    watch = make()
    gc.collect()
    assert watch() is None


def test_cycle_of_a_hook_and_its_leaf_is_collected() -> None:
    def make() -> weakref.ref[Canary]:
        target, x = Canary(), leaf(1.0)

        def hook(grad: dg.Tensor) -> None:
            _ = target, x

        x.register_hook(hook)
        return weakref.ref(target)

    watch = make()
    gc.collect()
    assert watch() is None

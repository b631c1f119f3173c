"""func.vmap: functions of one example, run for all at once."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import dyngraph as dg
import dyngraph.func as func

ROWS = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def rows(*, requires_grad: bool = False) -> dg.Tensor:
    return dg.tensor(ROWS, requires_grad=requires_grad)


def v() -> dg.Tensor:
    return dg.tensor([1.0, 2.0, 3.0])


def assert_values(tensor: dg.Tensor | None, expected: Any) -> None:
    assert tensor is not None
    np.testing.assert_allclose(tensor.detach().numpy(), np.asarray(expected), rtol=1e-5)


# --- which dims ---------------------------------------------------------------------------------


def test_function_sees_one_example() -> None:
    shapes: list[tuple[int, ...]] = []
    func.vmap(lambda x: (shapes.append(tuple(x.shape)), x)[1])(rows())
    assert shapes == [(3,)]


def test_function_runs_once() -> None:
    calls: list[int] = []
    func.vmap(lambda x: (calls.append(1), x)[1])(rows())
    assert calls == [1]


def test_in_dims_names_the_dim_of_examples() -> None:
    assert_values(func.vmap(lambda x: x.sum(), in_dims=1)(rows()), [5.0, 7.0, 9.0])


def test_negative_in_dims_count_from_the_end() -> None:
    assert_values(func.vmap(lambda x: x.sum(), in_dims=-1)(rows()), [5.0, 7.0, 9.0])


def test_in_dims_none_is_shared() -> None:
    found = func.vmap(lambda x, y: (x * y).sum(), in_dims=(0, None))(rows(), v())
    assert_values(found, [14.0, 32.0])


def test_in_dims_may_have_the_structure_of_the_inputs() -> None:
    given = {"x": rows(), "y": [v(), 2.0]}
    found = func.vmap(
        lambda d: (d["x"] * d["y"][0]).sum() * d["y"][1], in_dims=({"x": 0, "y": [None, None]},)
    )(given)
    assert_values(found, [28.0, 64.0])


def test_in_dims_may_end_above_the_leaves() -> None:
    found = func.vmap(lambda p, y: p[0] * p[1] + y, in_dims=(1, None))((rows(), rows()), v()[:2])
    assert_values(found, [[2.0, 18.0], [5.0, 27.0], [10.0, 38.0]])


def test_out_dims_names_the_dim_of_examples() -> None:
    assert func.vmap(lambda x: x * 2, out_dims=1)(rows()).shape == (3, 2)


def test_out_dims_for_each_output() -> None:
    first, second = func.vmap(lambda x: (x, x.sum()), out_dims=(-1, 0))(rows())
    assert first.shape == (3, 2) and second.shape == (2,)


def test_out_dims_may_be_a_tuple_of_one() -> None:
    assert func.vmap(lambda x: x, out_dims=(1,))(rows()).shape == (3, 2)


def test_out_dims_none_returns_what_is_the_same_for_all() -> None:
    first, second = func.vmap(lambda x: (x, v()), out_dims=(0, None))(rows())
    assert first.shape == (2, 3) and second.shape == (3,)


def test_output_that_is_the_same_for_all_is_repeated() -> None:
    assert_values(func.vmap(lambda x: v())(rows()), [[1.0, 2.0, 3.0]] * 2)


def test_outputs_have_their_structure() -> None:
    class Pair(NamedTuple):
        a: Any
        b: Any

    found = func.vmap(lambda x: Pair({"k": x}, [x.sum()]))(rows())
    assert isinstance(found, Pair)
    assert_values(found.b[0], [6.0, 15.0])


def test_keywords_are_shared() -> None:
    assert func.vmap(lambda x, by=1.0: x * by)(v(), by=v()).shape == (3, 3)


def test_no_examples_give_no_results() -> None:
    assert func.vmap(lambda x: x * 2)(dg.ones(0, 3)).shape == (0, 3)


def test_maps_nest() -> None:
    found = func.vmap(func.vmap(lambda x, y: x * y, (0, None)), (None, 0))(v(), v())
    assert_values(found, np.outer([1.0, 2, 3], [1.0, 2, 3]))


def test_map_nested_in_a_map_sees_the_outer_example() -> None:
    found = func.vmap(lambda row: func.vmap(lambda x: x * row.sum())(v()))(rows())
    assert_values(found, np.outer([6.0, 15.0], [1.0, 2.0, 3.0]))


@pytest.mark.parametrize("chunk_size", [1, 2, 5])
def test_chunks_give_the_same(chunk_size: int) -> None:
    found = func.vmap(lambda x: x.cumsum(0), in_dims=1, out_dims=1, chunk_size=chunk_size)(rows())
    assert_values(found, np.cumsum(ROWS, 0))


def test_dg_vmap_is_func_vmap() -> None:
    assert_values(dg.vmap(lambda x: x.sum())(rows()), [6.0, 15.0])


# --- what the function may do -------------------------------------------------------------------


def test_function_may_write_to_what_it_made() -> None:
    def function(x: dg.Tensor) -> dg.Tensor:
        y = x * 1
        y[0] = x[2]
        y[1:].mul_(x[1:])
        return y

    assert_values(func.vmap(function)(rows()), [[3.0, 4.0, 9.0], [6.0, 25.0, 36.0]])


def test_write_to_an_input_is_seen_outside() -> None:
    x = rows()
    func.vmap(lambda row: row.mul_(2), in_dims=1)(x)
    assert_values(x, np.array(ROWS) * 2)


def test_write_to_a_part_of_an_input_is_seen_outside() -> None:
    x = rows()
    func.vmap(lambda row: row[0].add_(10))(x)
    assert_values(x, [[11.0, 2.0, 3.0], [14.0, 5.0, 6.0]])


def test_write_of_a_shared_value_to_a_tensor_from_outside_happens_once() -> None:
    counter = dg.zeros(())
    func.vmap(lambda x: (counter.add_(1), x)[1])(rows())
    assert_values(counter, 1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: dg.zeros(3) + 1,
        lambda x: x.new_zeros(3) + 1,
        lambda x: dg.tensor([1.0, 1.0, 1.0]),
        lambda x: copy.deepcopy(dg.ones(3)),
        lambda x: dg.ones(3, 3).t()[0],
    ],
)
def test_function_may_write_what_differs_to_a_tensor_that_it_made(make: Any) -> None:
    assert_values(func.vmap(lambda x: make(x).mul_(x))(rows()), ROWS)


def test_function_may_index_by_what_differs() -> None:
    found = func.vmap(lambda i: v()[i] * 10)(dg.tensor([2, 0]))
    assert_values(found, [30.0, 10.0])


def test_function_may_go_backward_from_its_input() -> None:
    def slope(x: dg.Tensor) -> dg.Tensor:
        x = x.detach().requires_grad_()
        return dg.autograd.grad((x**3).sum(), x)[0]

    assert_values(func.vmap(slope)(rows()), 3 * np.square(ROWS))


def test_gradients_outside_may_be_mapped() -> None:
    x = v().requires_grad_()
    y = x**2
    found = func.vmap(lambda t: dg.autograd.grad(y, x, t, retain_graph=True)[0])(dg.eye(3))
    assert_values(found, np.diag([2.0, 4.0, 6.0]))


def test_gradients_outside_may_be_mapped_and_recorded() -> None:
    x = v().requires_grad_()
    y = x**3
    found = func.vmap(lambda t: dg.autograd.grad(y, x, t, create_graph=True)[0])(dg.eye(3))
    found.sum().backward()
    assert_values(x.grad, [6.0, 12.0, 18.0])


# --- derivatives through it ---------------------------------------------------------------------


def test_result_has_the_history_of_inputs() -> None:
    x = rows(requires_grad=True)
    func.vmap(lambda row: (row * row).sum(), in_dims=1)(x).sum().backward()
    assert_values(x.grad, 2 * np.array(ROWS))


def test_result_has_the_history_of_what_is_captured() -> None:
    w = v().requires_grad_()
    func.vmap(lambda row: (row * w).sum())(rows()).sum().backward()
    assert_values(w.grad, [5.0, 7.0, 9.0])


def test_result_has_the_history_of_what_is_computed_from_what_is_captured() -> None:
    w = v().requires_grad_()

    def function(row: dg.Tensor) -> dg.Tensor:
        return (row * (w * w)).sum() + w.prod()

    func.vmap(function)(rows()).sum().backward()
    assert_values(w.grad, np.array([5.0, 7, 9]) * [2, 4, 6] + 2 * np.array([6.0, 3, 2]))


def test_result_of_plain_tensors_has_no_history() -> None:
    assert not func.vmap(lambda row: row * 2)(rows()).requires_grad


def test_captured_leaf_is_returned_with_its_history() -> None:
    w = v().requires_grad_()
    func.vmap(lambda row: w)(rows()).sum().backward()
    assert_values(w.grad, [2.0, 2.0, 2.0])


def test_input_is_returned_with_its_history() -> None:
    x = rows(requires_grad=True)
    func.vmap(lambda row: row)(x).sum().backward()
    assert_values(x.grad, np.ones((2, 3)))


def test_write_to_an_input_is_recorded_outside() -> None:
    x = rows(requires_grad=True)
    y = x * 1
    func.vmap(lambda row: row.mul_(row.detach().clone()))(y)
    y.sum().backward()
    assert_values(x.grad, ROWS)


def test_second_derivative_goes_through() -> None:
    x, w = rows(requires_grad=True), v().requires_grad_()
    out = func.vmap(lambda row: (row**3 * w).sum())(x)
    (slope,) = dg.autograd.grad(out.sum(), x, create_graph=True)
    slope.sum().backward()
    assert_values(x.grad, 6 * np.array(ROWS) * [1.0, 2, 3])
    assert_values(w.grad, 3 * np.square(ROWS).sum(0))


def test_graph_behind_the_result_saves_no_tracer() -> None:
    x = rows(requires_grad=True)
    out = func.vmap(lambda row: (row.sin() * row).sum())(x)
    todo, seen = [out.grad_fn], []
    while todo:
        node = todo.pop()
        seen.append(node)
        todo += [n for n, _ in node.next_functions if n is not None]  # type: ignore[union-attr]
        for saved in getattr(node, "saved", None) or ():
            np.asarray(saved)
    assert len(seen) >= 4


def test_saved_value_that_was_written_to_is_refused_outside() -> None:
    def function(row: dg.Tensor) -> dg.Tensor:
        y = row.exp()
        squared = y * y
        y.mul_(2)
        return squared.sum()

    out = func.vmap(function)(rows(requires_grad=True))
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        out.sum().backward()


def test_hook_inside_is_called_outside_with_one_example() -> None:
    shapes: list[tuple[int, ...]] = []

    def function(row: dg.Tensor) -> dg.Tensor:
        y = row * row
        y.register_hook(lambda grad: (shapes.append(tuple(grad.shape)), grad * 10)[1])
        return y.sum()

    x = rows(requires_grad=True)
    func.vmap(function)(x).sum().backward()
    assert shapes == [(3,)]
    assert_values(x.grad, 20 * np.array(ROWS))


def test_values_packed_inside_are_unpacked_outside() -> None:
    def function(row: dg.Tensor) -> dg.Tensor:
        with dg.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
            return (row.sin() * row).sum()

    x = rows(requires_grad=True)
    func.vmap(function)(x).sum().backward()
    assert_values(x.grad, np.sin(ROWS) + np.array(ROWS) * np.cos(ROWS))


def test_gradient_of_a_mapped_complex_function() -> None:
    z = dg.tensor([3 + 4j, 1j])
    found = func.grad(lambda z: func.vmap(lambda z: z.abs() ** 2)(z).sum())(z)
    np.testing.assert_allclose(found.numpy(), [6 + 8j, 2j], rtol=1e-5)


def test_nothing_is_kept_of_a_mapped_function() -> None:
    x, kept = rows(requires_grad=True), []

    def function(row: dg.Tensor) -> dg.Tensor:
        y = row.sin()
        kept.append(weakref.ref(y))
        return (y * row).sum()

    gc.collect()
    gc.disable()
    try:
        out = func.vmap(function)(x)
        assert kept[0]() is None
        out.sum().backward()
    finally:
        gc.enable()


# --- random numbers -----------------------------------------------------------------------------


def test_random_numbers_may_be_the_same_for_all() -> None:
    found = func.vmap(lambda x: x * 0 + dg.rand(3), randomness="same")(rows())
    assert (found[0] == found[1]).all()


def test_random_numbers_may_differ() -> None:
    found = func.vmap(lambda x: x * 0 + dg.rand(3), randomness="different")(rows())
    assert (found[0] != found[1]).all()


def test_random_numbers_like_an_input_may_be_the_same_for_all() -> None:
    found = func.vmap(lambda x: x * 0 + dg.rand_like(x), randomness="same")(rows())
    assert (found[0] == found[1]).all()


def test_random_numbers_of_nested_maps_all_differ() -> None:
    inner = func.vmap(lambda x: x * 0 + dg.rand(()), randomness="different")
    found = func.vmap(inner, randomness="different")(rows())
    assert len(set(found.flatten().tolist())) == 6


def test_dropout_differs_from_example_to_example() -> None:
    found = func.vmap(lambda x: dg.nn.functional.dropout(x), randomness="different")(dg.ones(8, 16))
    assert len({tuple(row) for row in found.tolist()}) > 1


def test_same_random_numbers_in_chunks() -> None:
    found = func.vmap(lambda x: x * 0 + dg.rand(3), randomness="same", chunk_size=1)(rows())
    assert (found[0] == found[1]).all()


def test_random_numbers_are_refused_by_default() -> None:
    with pytest.raises(
        RuntimeError, match="called random operation while in randomness error mode"
    ):
        func.vmap(lambda x: x + dg.rand(3))(rows())


def test_inner_map_that_refuses_random_numbers_refuses_them() -> None:
    with pytest.raises(
        RuntimeError, match="called random operation while in randomness error mode"
    ):
        func.vmap(func.vmap(lambda x: x + dg.rand(())), randomness="same")(rows())


# --- refused ------------------------------------------------------------------------------------

untyped: Any = func  # for what no type checker lets pass


def same(x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: untyped.vmap(same)(), "got no inputs"),
        (lambda: untyped.vmap(same, in_dims=None)(v()), "expected `in_dims` to be int or"),
        (lambda: untyped.vmap(same, in_dims="a")(v()), "expected `in_dims` to be int or"),
        (lambda: untyped.vmap(same, in_dims=("a",))(v()), "in_dim must be either an integer"),
        (
            lambda: untyped.vmap(same, in_dims=(0, 0))(v()),
            "in_dims is not compatible with the struct",
        ),
        (lambda: untyped.vmap(same, in_dims=(None,))(v()), "at least one Tensor to vmap over"),
        (lambda: untyped.vmap(same)(1.0), "We cannot vmap over non-Tensor arguments"),
        (lambda: untyped.vmap(same, in_dims=2)(v()), "expected in_dim to satisfy -1 <= in_dim < 1"),
        (lambda: untyped.vmap(same)(dg.tensor(1.0)), "expected in_dim to satisfy -0 <= in_dim < 0"),
        (
            lambda: untyped.vmap(dg.add)(v(), dg.ones(4)),
            r"got sizes \[3, 4\] for the mapped dimens",
        ),
        (lambda: untyped.vmap(lambda x: 1)(v()), "must only return Tensors, got type .*int"),
        (
            lambda: untyped.vmap(lambda x: None)(v()),
            "must only return Tensors, got type .*NoneType",
        ),
        (
            lambda: untyped.vmap(lambda x: (x, x), out_dims=(0, 0, 0))(v()),
            "out_dims is not compatible",
        ),
        (lambda: untyped.vmap(same, out_dims=(0, 0))(v()), "out_dims is not compatible"),
        (lambda: untyped.vmap(same, out_dims="a")(v()), "`out_dims` must be an int, None"),
        (lambda: untyped.vmap(same, out_dims=None)(v()), "can not return a BatchedTensor when"),
        (lambda: untyped.vmap(same, chunk_size=0), "chunk_size should be None or greater than 0"),
    ],
)
def test_misuse_raises(call: Callable[[], Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call()


def test_out_dim_out_of_range_raises() -> None:
    with pytest.raises(IndexError, match="Dimension out of range"):
        func.vmap(same, out_dims=3)(v())


def test_unknown_randomness_raises() -> None:
    with pytest.raises(RuntimeError, match="Only allowed values for randomness"):
        untyped.vmap(same, randomness="often")(v())


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (lambda x: x * x.sum().item(), "you're calling .item.. on a Tensor"),
        (lambda x: x * float(x.sum()), "you're calling .item.. on a Tensor"),
        (lambda x: x if x.sum() > 0 else -x, "in some data-dependent control flow"),
        (lambda x: x.nonzero(), "dynamic shape|depends on values"),
        (lambda x: x[x > 0], "dynamic shape|depends on values"),
        (lambda x: x * dg.tensor(x.tolist()), "calling .tolist|data pointer"),
        (lambda x: x * dg.tensor(x.numpy()), "calling .numpy|data pointer"),
    ],
)
def test_values_are_refused(function: Callable[[Any], Any], match: str) -> None:
    with pytest.raises(RuntimeError, match=match):
        func.vmap(function)(rows())


@pytest.mark.parametrize(
    "write",
    [
        lambda outside, x: outside.add_(x),
        lambda outside, x: outside.copy_(x),
        lambda outside, x: outside[:2].mul_(x[:2]),
        lambda outside, x: outside.__setitem__(0, x[0]),
    ],
)
def test_write_of_what_differs_to_a_tensor_from_outside_raises(write: Callable[..., Any]) -> None:
    outside = v()
    with pytest.raises(RuntimeError, match=r"inplace arithmetic|doesn't match the broadcast shape"):
        func.vmap(lambda x: (write(outside, x), x)[1])(rows())


def test_refused_write_leaves_the_tensor_as_it_was() -> None:
    outside = v()
    with pytest.raises(RuntimeError, match=r"inplace arithmetic|doesn't match the broadcast shape"):
        func.vmap(lambda x: outside.add_(x))(rows())
    assert_values(outside, [1.0, 2.0, 3.0])


def test_write_to_an_input_that_is_a_leaf_raises() -> None:
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        func.vmap(lambda x: x.mul_(2))(rows(requires_grad=True))


def test_gradient_that_differs_is_not_added_to_a_leaf_from_outside() -> None:
    w = v().requires_grad_()
    with pytest.raises(RuntimeError, match=r"inplace arithmetic|backward.. called inside"):
        func.grad(func.vmap(lambda x: ((w * x).sum().backward(), x.sum())[1]))(rows())
    assert w.grad is None


def test_example_that_leaves_the_function_is_not_usable() -> None:
    leaked: list[dg.Tensor] = []
    func.vmap(lambda x: (leaked.append(x), x)[1])(rows())
    with pytest.raises(Exception, match=r"[Ll]eak|escaped from inside a function"):
        (leaked[0] * 2).numpy()

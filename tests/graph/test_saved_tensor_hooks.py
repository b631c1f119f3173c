"""Saved-tensor hooks: when pack and unpack are called, with what, and what they may do."""

from __future__ import annotations

import contextlib
import pathlib
import threading
import weakref
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    saved_tensors_hooks,
)
from tests.graph.helpers import assert_values, leaf, node_of, watch

MODIFIED = "modified by an inplace operation"
FROM_HOOK = "from the hook"


def same(value: Any) -> Any:
    return value


def noting(log: list[Any], note: Callable[[dg.Tensor], Any] = lambda t: t.tolist()) -> Any:
    """Hooks that leave all as it is and note their calls."""

    def pack(t: dg.Tensor) -> dg.Tensor:
        log.append(("pack", note(t)))
        return t

    def unpack(t: dg.Tensor) -> dg.Tensor:
        log.append(("unpack", note(t)))
        return t

    return saved_tensors_hooks(pack, unpack)


def failing(value: Any) -> Any:
    raise ValueError(FROM_HOOK)


# --- order and number of calls -----------------------------------------------------------------


def write_to_a_row(x: dg.Tensor, y: dg.Tensor) -> dg.Tensor:
    x = x * 1
    x[0].mul_(y)
    return x


# What PyTorch 2.13 packs of x, of shape (2, 2), y, of shape (2,), and results: their shapes.
X, Y, NUMBER = (2, 2), (2,), ()
CALLS: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "add": (lambda x, y: x + y, []),
    "mul": (lambda x, y: x * y, [Y, X]),
    "mul by a number": (lambda x, y: x * 2, []),
    "mul by a constant": (lambda x, y: x * dg.ones(2), [Y]),
    "div": (lambda x, y: x / y, [Y, X]),
    "square": (lambda x, y: x * x, [X, X]),
    "pow": (lambda x, y: x**y, [Y, X, X]),
    "pow of a number": (lambda x, y: x**3, [X]),
    "exp": (lambda x, y: x.exp(), [X]),
    "log": (lambda x, y: x.log(), [X]),
    "sqrt": (lambda x, y: x.sqrt(), [X]),
    "sin": (lambda x, y: x.sin(), [X]),
    "relu": (lambda x, y: x.relu(), [X]),
    "sigmoid": (lambda x, y: x.sigmoid(), [X]),
    "neg": (lambda x, y: -x, []),
    "sum": (lambda x, y: x.sum(), []),
    "mean": (lambda x, y: x.mean(0), []),
    "max": (lambda x, y: x.max(0)[0], [Y]),
    "maximum": (lambda x, y: dg.maximum(x, y), [Y, X]),
    "softmax": (lambda x, y: x.softmax(1), [X]),
    "logsumexp": (lambda x, y: x.logsumexp(1), [X, Y]),
    "matmul": (lambda x, y: x @ y, [X, Y]),
    "where": (lambda x, y: dg.where(x > 1, x, y), [X]),
    "clamp": (lambda x, y: x.clamp(0, 2), [X]),
    "cat": (lambda x, y: dg.cat([x[0], y]), []),
    "row": (lambda x, y: x[0], []),
    "transpose": (lambda x, y: x.t(), []),
    "norm": (lambda x, y: x.norm(), [X, NUMBER]),
    "std": (lambda x, y: x.std(), [X, NUMBER]),
    "addcmul": (lambda x, y: dg.addcmul(x, y, y), [Y, Y]),
    "mul_": (lambda x, y: (x * 1).mul_(y), [Y, X]),
    "exp_": (lambda x, y: (x * 1).exp_(), [X]),
    "write to a row": (write_to_a_row, [Y, Y]),
    "chain": (lambda x, y: (x * y).exp() * y, [Y, X, X, Y, X]),
}


@pytest.mark.parametrize("name", CALLS)
def test_pack_and_unpack_are_called_as_often_and_in_the_order_of_pytorch(name: str) -> None:
    program, expected = CALLS[name]
    x, y = dg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), leaf(2.0, 0.5)
    log: list[Any] = []
    with noting(log, lambda t: tuple(t.shape)):
        result = program(x, y)
    assert log == [("pack", shape) for shape in expected]
    log.clear()
    result.sum().backward()
    assert log == [("unpack", shape) for shape in expected]


def test_recorded_backward_unpacks_as_often_as_an_ordinary_one() -> None:
    log: list[Any] = []
    x, y = leaf(1.0, 2.0), leaf(3.0)
    with noting(log, lambda t: tuple(t.shape)):
        z = x * y
    log.clear()
    dg.autograd.grad(z.sum(), (x, y), create_graph=True)
    assert log == [("unpack", ()), ("unpack", (2,))]


def test_last_operator_is_unpacked_first() -> None:
    log: list[Any] = []
    x, y = leaf(1.0, 2.0), leaf(3.0)
    with noting(log, lambda t: tuple(t.shape)):
        z = (x * y) ** 3
    assert [shape for _, shape in log] == [(), (2,), (2,)]
    log.clear()
    z.sum().backward()
    assert [shape for _, shape in log] == [(2,), (), (2,)]


def test_nothing_is_packed_that_is_not_saved_for_backward() -> None:
    log: list[Any] = []
    x = leaf(1.0, 2.0)
    with noting(log):
        _ = dg.ones(2) * dg.ones(2)
        with dg.no_grad():
            _ = x * x
    assert log == []


def test_python_numbers_are_not_packed() -> None:
    log: list[Any] = []
    x = leaf(1.0, 2.0)
    with noting(log):
        _ = x * 2.0, 2.0 * x, x / 3.0
    assert log == []


def test_tensors_of_one_number_are_packed() -> None:
    log: list[Any] = []
    with noting(log):
        _ = leaf(1.0, 2.0) * dg.tensor(3.0)
    assert log == [("pack", 3.0)]


def test_hooks_are_called_again_in_each_backward() -> None:
    log: list[Any] = []
    x = leaf(1.0, 2.0)
    with noting(log):
        y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    assert [kind for kind, _ in log] == ["pack", "unpack", "unpack"]


def test_reading_a_saved_field_unpacks_it() -> None:
    log: list[Any] = []
    with noting(log):
        y = leaf(1.0, 2.0) ** 3
    assert_values(node_of(y)._saved_self, [1, 2])
    assert [kind for kind, _ in log] == ["pack", "unpack"]


def test_graph_that_is_dropped_is_never_unpacked() -> None:
    log: list[Any] = []
    with noting(log):
        y = leaf(1.0, 2.0) ** 3
    del y
    assert log == [("pack", [1.0, 2.0])]


# --- what the hooks see ------------------------------------------------------------------------


def test_pack_sees_the_tensors_themselves_with_their_history() -> None:
    seen: list[Any] = []
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda t: (seen.append(t), t)[1], same):
        y = x.exp()
        z = y * x
    assert seen[0] is y and seen[1] is x and seen[2] is y
    assert z.requires_grad


def test_hooks_run_unrecorded() -> None:
    seen: list[bool] = []
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(
        lambda t: (seen.append(dg.is_grad_enabled()), t)[1],
        lambda t: (seen.append(dg.is_grad_enabled()), t)[1],
    ):
        y = x**3
    y.sum().backward()
    assert seen == [False, False]


def test_operators_inside_a_hook_are_not_packed() -> None:
    log: list[Any] = []

    def pack(t: dg.Tensor) -> dg.Tensor:
        log.append("pack")
        _ = leaf(1.0) * leaf(2.0)
        return t

    with saved_tensors_hooks(pack, same):
        leaf(1.0, 2.0).exp()
    assert log == ["pack"]


def test_unpacked_leaf_is_a_leaf_with_the_same_accumulator() -> None:
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda t: t.clone(), same):
        y = x**3
    saved = node_of(y)._saved_self
    assert saved is not x and saved.is_leaf and saved.requires_grad
    assert dg.autograd.graph.get_gradient_edge(saved).node is node_of(y).next_functions[0][0]


def test_unpacked_interior_tensor_has_its_history() -> None:
    x = leaf(1.0, 2.0) * 1
    with saved_tensors_hooks(lambda t: t.clone(), same):
        y = x**3
    assert node_of(y)._saved_self.grad_fn is x.grad_fn


def test_unpacked_output_has_its_node_as_history() -> None:
    with saved_tensors_hooks(lambda t: t.clone(), same):
        y = leaf(1.0, 2.0).exp()
    assert node_of(y)._saved_result.grad_fn is y.grad_fn


def test_views_are_packed_as_views() -> None:
    seen: list[Any] = []
    v = (leaf(1.0, 2.0, 3.0) * 1)[:2]
    with saved_tensors_hooks(lambda t: (seen.append(t), t)[1], same):
        _ = v**3
    assert seen[0] is v and seen[0]._is_view()


def test_in_place_operator_packs_what_was_there() -> None:
    log: list[Any] = []
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    t = x * 1
    with noting(log):
        t.mul_(y)
    assert log == [("pack", [3.0, 4.0]), ("pack", [1.0, 2.0])]
    t.sum().backward()
    assert_values(y.grad, [1, 2])


def test_hooks_apply_in_forward_mode_and_tangents_come_back() -> None:
    log: list[Any] = []
    fwd = dg.autograd.forward_ad
    x = leaf(1.0, 2.0)
    with fwd.dual_level():
        d = fwd.make_dual(x, dg.tensor([1.0, 0.5]))
        with noting(log):
            y = d**3
        (by_x,) = dg.autograd.grad(y.sum(), x)
        assert_values(by_x, [3, 12])
        assert_values(fwd.unpack_dual(by_x).tangent, [6, 6])
    assert log.count(("pack", [1.0, 2.0])) >= 1


# --- what hooks are for ------------------------------------------------------------------------


def test_hooks_that_keep_numpy_arrays() -> None:
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda t: t.detach().numpy(), dg.tensor):
        y = (x * x).exp() * x
    y.sum().backward()
    assert_values(x.grad, np.exp([1, 4]) * [3, 9])


def test_hooks_that_write_to_disk(tmp_path: pathlib.Path) -> None:
    files: list[pathlib.Path] = []

    def pack(t: dg.Tensor) -> pathlib.Path:
        files.append(tmp_path / f"{len(files)}.npy")
        np.save(files[-1], t.detach().numpy())
        return files[-1]

    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(pack, lambda path: dg.tensor(np.load(path))):
        y = (x * x).exp()
    assert len(files) == 3
    y.sum().backward()
    assert_values(x.grad, np.exp([1, 4]) * [2, 4])


def test_hooks_that_compress() -> None:
    def pack(t: dg.Tensor) -> tuple[bytes, tuple[int, ...]]:
        return zlib.compress(t.detach().numpy().tobytes()), tuple(t.shape)

    def unpack(packed: tuple[bytes, tuple[int, ...]]) -> dg.Tensor:
        data, shape = packed
        return dg.tensor(np.frombuffer(zlib.decompress(data), np.float32).reshape(shape))

    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(pack, unpack):
        y = x**3
    y.sum().backward()
    assert_values(x.grad, [3, 12])


def test_hooks_that_quantize_change_the_gradient_by_what_they_lose() -> None:
    def pack(t: dg.Tensor) -> tuple[dg.Tensor, float]:
        step = t.detach().abs().max().item() / 127
        return (t.detach() / step).round().to(dg.int8), step

    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(pack, lambda packed: packed[0].float() * packed[1]):
        y = x * x
    y.sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), [2, 4], rtol=0.02)
    assert x.grad.tolist() != [2.0, 4.0]


@pytest.mark.parametrize("create_graph", [False, True])
def test_what_unpack_returns_is_what_the_gradient_is_made_of(create_graph: bool) -> None:
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda t: t * 10, same):
        y = x * x
    (by_x,) = dg.autograd.grad(y.sum(), x, create_graph=create_graph)
    assert_values(by_x, [20, 40])


# --- several pairs -----------------------------------------------------------------------------


def test_innermost_hooks_count() -> None:
    log: list[Any] = []
    x = leaf(1.0, 2.0)
    with noting(log, lambda t: "outer"):
        with noting(log, lambda t: "inner"):
            first = x.exp()
        second = x.exp()
    assert log == [("pack", "inner"), ("pack", "outer")]
    log.clear()
    (first + second).sum().backward()
    assert sorted(log) == [("unpack", "inner"), ("unpack", "outer")]


def test_one_object_may_be_entered_several_times() -> None:
    log: list[Any] = []
    hooks = noting(log)
    x = leaf(1.0, 2.0)
    with hooks, hooks:
        x.exp()
    x.exp()
    with hooks:
        x.exp()
    assert len(log) == 2


def test_hooks_end_with_their_block_when_it_fails() -> None:
    log: list[Any] = []
    with contextlib.suppress(ValueError), noting(log):
        raise ValueError
    leaf(1.0).exp()
    assert log == []


def test_hooks_concern_their_own_thread() -> None:
    log: list[Any] = []
    x = leaf(1.0, 2.0)
    with noting(log):
        thread = threading.Thread(target=x.exp)
        thread.start()
        thread.join()
    assert log == []


def test_hooks_entered_in_backward_end_with_it() -> None:
    log: list[Any] = []
    x = leaf(1.0, 2.0)
    y = x * x

    def hook(grad: dg.Tensor) -> None:
        noting(log).__enter__()

    y.register_hook(hook)
    y.sum().backward()
    x.exp()
    assert log == []


def test_hooks_left_in_backward_are_in_force_again_after_it() -> None:
    log: list[Any] = []
    hooks = noting(log)
    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(lambda grad: hooks.__exit__(None, None, None))
    with hooks:
        y.sum().backward()
        x.exp()
    assert [kind for kind, _ in log] == ["pack"]
    log.clear()
    x.exp()
    assert log == []


# --- failures ----------------------------------------------------------------------------------


def test_error_of_pack_reaches_the_caller_of_the_operator() -> None:
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(failing, same), pytest.raises(ValueError, match=FROM_HOOK):
        x.exp()
    assert dg.is_grad_enabled()
    x.exp().sum().backward()
    assert_values(x.grad, np.exp([1, 2]))


def test_error_of_pack_leaves_an_in_place_operator_undone() -> None:
    t = leaf(1.0, 2.0) * 1
    with saved_tensors_hooks(failing, same), pytest.raises(ValueError, match=FROM_HOOK):
        t.mul_(leaf(3.0, 4.0))
    assert_values(t, [1, 2])
    assert t._version == 0 and node_of(t).name() == "MulBackward0"


@pytest.mark.parametrize("create_graph", [False, True])
def test_error_of_unpack_reaches_the_caller_of_backward(create_graph: bool) -> None:
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(same, failing):
        y = x.exp()
    with pytest.raises(ValueError, match=FROM_HOOK):
        dg.autograd.grad(y.sum(), x, create_graph=create_graph)
    assert dg.is_grad_enabled()


def test_error_of_unpack_reaches_the_reader_of_a_saved_field() -> None:
    with saved_tensors_hooks(same, failing):
        y = leaf(1.0, 2.0).exp()
    with pytest.raises(ValueError, match=FROM_HOOK):
        _ = node_of(y)._saved_result


def test_backward_may_be_tried_again_after_unpack_failed() -> None:
    tries: list[int] = []

    def unpack(t: dg.Tensor) -> dg.Tensor:
        tries.append(1)
        return failing(t) if len(tries) == 1 else t

    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(same, unpack):
        y = x**3
    with pytest.raises(ValueError, match=FROM_HOOK):
        y.sum().backward()
    y.sum().backward()
    assert_values(x.grad, [3, 12])


@pytest.mark.parametrize("write", [lambda t: t.mul_(2), lambda t: t.detach().mul_(2)])
def test_pack_that_writes_to_its_argument_raises(write: Any) -> None:
    x = dg.ones(2)
    with (
        saved_tensors_hooks(write, same),
        pytest.raises(RuntimeError, match="pack hook is modifying its input in place"),
    ):
        _ = x * leaf(1.0, 2.0)


@pytest.mark.parametrize("value", [3, None, [1.0]])
@pytest.mark.parametrize("create_graph", [False, True])
def test_unpack_that_returns_no_tensor_raises(value: Any, create_graph: bool) -> None:
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(same, lambda t: value):
        y = x.exp()
    message = f"expected to be a Tensor but got result of type {type(value).__name__}"
    with pytest.raises(TypeError, match=message):
        dg.autograd.grad(y.sum(), x, create_graph=create_graph)


@pytest.mark.parametrize("create_graph", [False, True])
def test_unpacked_dtype_may_be_another_floating_one(create_graph: bool) -> None:
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda t: t.half(), same):
        y = x * x
    (by_x,) = dg.autograd.grad(y.sum(), x, create_graph=create_graph)
    assert_values(by_x, [2, 4])


@pytest.mark.parametrize("create_graph", [False, True])
def test_integers_unpacked_for_what_requires_grad_raise(create_graph: bool) -> None:
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda t: t.int(), same):
        y = x * x
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can"):
        dg.autograd.grad(y.sum(), x, create_graph=create_graph)


@pytest.mark.parametrize("create_graph", [False, True])
def test_unpacked_shape_is_broadcast_as_the_formula_does(create_graph: bool) -> None:
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(same, lambda t: t[:1]):
        y = x * x
    (by_x,) = dg.autograd.grad(y.sum(), x, create_graph=create_graph)
    assert_values(by_x, [2, 2])


@pytest.mark.parametrize(("pack", "unpack"), [(3, same), (same, None)])
def test_hooks_that_cannot_be_called_raise_on_entering(pack: Any, unpack: Any) -> None:
    with (
        pytest.raises(TypeError, match=r"must be callable|incompatible function arguments"),
        saved_tensors_hooks(pack, unpack),
    ):
        pass


# --- writes after packing ----------------------------------------------------------------------


def test_version_of_what_was_packed_is_not_checked() -> None:
    x = leaf(1.0, 2.0)
    t = x * 1
    with saved_tensors_hooks(lambda t: t.clone(), same):
        y = t * t
    t.mul_(3)
    y.sum().backward()
    assert_values(x.grad, [2, 4])


def test_tensor_that_pack_keeps_shows_later_writes() -> None:
    x = leaf(1.0, 2.0)
    t = x * 1
    with saved_tensors_hooks(same, same):
        y = t * t
    t.mul_(3)
    y.sum().backward()
    assert_values(x.grad, [6, 12])


def test_what_was_saved_without_hooks_is_still_checked() -> None:
    t = leaf(1.0, 2.0) * 1
    y = t * t
    with saved_tensors_hooks(same, same):
        t.mul_(3)
        with pytest.raises(RuntimeError, match=MODIFIED):
            y.sum().backward()


def test_hooks_inside_allow_mutation_pack_the_old_values() -> None:
    with allow_mutation_on_saved_tensors(), saved_tensors_hooks(lambda t: t.clone(), same):
        x = leaf(1.0, 2.0)
        t = x * 1
        y = t * t
        t.zero_()
        y.sum().backward()
    assert_values(x.grad, [2, 4])


def test_write_to_what_unpack_made_is_no_write_to_what_was_saved() -> None:
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda t: t.clone(), same):
        y = x**3
    with dg.no_grad():
        node_of(y)._saved_self.add_(1)
    assert x._version == 0
    assert_values(x, [1, 2])


def test_saved_index_does_not_save_the_tensor() -> None:
    log: list[Any] = []
    t = leaf(1.0, 2.0) * 1
    with noting(log):
        y = t[dg.tensor([1, 1])]
    assert log == [("pack", [1, 1])]
    t.mul_(2)
    y.sum().backward()


# --- second derivatives ------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [same, lambda t: t.clone(), lambda t: t.detach().numpy()])
def test_second_derivative_goes_through_packed_values(pack: Any) -> None:
    x = leaf(1.0, 2.0)
    unpack = same if isinstance(pack(dg.ones(1)), dg.Tensor) else dg.tensor
    with saved_tensors_hooks(pack, unpack):
        y = (x * x).exp()
    (by_x,) = dg.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = dg.autograd.grad(by_x.sum(), x)
    assert_values(by_x, np.exp([1, 4]) * [2, 4])
    assert_values(second, np.exp([1, 4]) * [6, 18])


def test_what_a_recorded_backward_saves_is_packed_too() -> None:
    packed: list[Any] = []
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda t: (packed.append(1), t)[1], same):
        y = x**3
        before = len(packed)
        (by_x,) = dg.autograd.grad(y.sum(), x, create_graph=True)
        assert len(packed) > before
        (second,) = dg.autograd.grad(by_x.sum(), x, create_graph=True)
    (third,) = dg.autograd.grad(second.sum(), x)
    assert_values(second, [6, 12])
    assert_values(third, [6, 6])


# --- register_hooks ----------------------------------------------------------------------------


@pytest.mark.parametrize("create_graph", [False, True])
def test_registered_hooks_pack_one_saved_tensor(create_graph: bool) -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    node_of(y)._raw_saved_self.register_hooks(lambda t: t * 2, same)
    node_of(y)._raw_saved_other.register_hooks(lambda t: t * 3, same)
    (by_x,) = dg.autograd.grad(y.sum(), x, create_graph=create_graph)
    assert_values(by_x, [5, 10])


def test_registered_pack_hook_is_called_at_once_with_a_detached_tensor() -> None:
    seen: list[Any] = []
    x = leaf(1.0, 2.0)
    y = x * x
    node_of(y)._raw_saved_self.register_hooks(lambda t: (seen.append(t), t)[1], same)
    assert seen[0] is not x and not seen[0].requires_grad
    assert_values(seen[0], [1, 2])


def test_registered_hooks_on_an_output() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    node_of(y)._raw_saved_result.register_hooks(lambda t: t.numpy(), dg.tensor)
    y.sum().backward()
    assert_values(x.grad, np.exp([1, 2]))


def test_registered_hook_switches_the_version_check_off() -> None:
    x = leaf(1.0, 2.0)
    t = x * 1
    y = t**3
    node_of(y)._raw_saved_self.register_hooks(lambda t: t.clone(), same)
    t.mul_(5)
    y.sum().backward()
    assert_values(x.grad, [3, 12])


@pytest.mark.parametrize("by_default", [False, True])
def test_registering_hooks_twice_raises(by_default: bool) -> None:
    with saved_tensors_hooks(same, same) if by_default else contextlib.nullcontext():
        y = leaf(1.0, 2.0) ** 3
    saved = node_of(y)._raw_saved_self
    if not by_default:
        saved.register_hooks(same, same)
    with pytest.raises(RuntimeError, match="whose hooks have already been set"):
        saved.register_hooks(same, same)


def test_registering_hooks_once_the_graph_is_freed_raises() -> None:
    y = leaf(1.0, 2.0) ** 3
    saved = node_of(y)._raw_saved_self
    y.sum().backward()
    with pytest.raises(RuntimeError, match="register_hooks on a saved tensor after it has been fr"):
        saved.register_hooks(same, same)


def test_registering_hooks_where_nothing_was_saved_raises() -> None:
    y = leaf(1.0, 2.0) * dg.ones(2)
    with pytest.raises(RuntimeError, match="saved tensor with value None is forbidden"):
        node_of(y)._raw_saved_self.register_hooks(same, same)


def test_registered_pack_hook_that_writes_raises() -> None:
    y = leaf(1.0, 2.0) ** 3
    with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        node_of(y)._raw_saved_self.register_hooks(lambda t: t.mul_(2), same)


def test_registered_pack_hook_that_fails_leaves_what_was_saved() -> None:
    x = leaf(1.0, 2.0)
    y = x**3
    with pytest.raises(ValueError, match=FROM_HOOK):
        node_of(y)._raw_saved_self.register_hooks(failing, same)
    y.sum().backward()
    assert_values(x.grad, [3, 12])


def test_registering_what_cannot_be_called_raises() -> None:
    y = leaf(1.0, 2.0) ** 3
    with pytest.raises(TypeError, match=r"must be callable|incompatible function arguments"):
        node_of(y)._raw_saved_self.register_hooks(3, same)


def test_saved_tensor_tells_its_unpack_hook() -> None:
    y = leaf(1.0, 2.0) ** 3
    saved = node_of(y)._raw_saved_self
    assert saved.unpack_hook is None
    saved.register_hooks(same, same)
    assert saved.unpack_hook is same


def test_saved_tensor_cannot_be_made_by_hand() -> None:
    with pytest.raises(RuntimeError, match="SavedTensor object from Python is forbidden"):
        dg.autograd.SavedTensor()


# --- disabled ----------------------------------------------------------------------------------


def test_disabled_hooks_raise_the_given_message_on_entering() -> None:
    with (
        disable_saved_tensors_hooks("not in here"),
        pytest.raises(RuntimeError, match="not in here"),
        saved_tensors_hooks(same, same),
    ):
        pass


def test_hooks_may_be_entered_again_after_the_block() -> None:
    with (
        contextlib.suppress(RuntimeError),
        disable_saved_tensors_hooks("no"),
        saved_tensors_hooks(same, same),
    ):
        pass
    with saved_tensors_hooks(same, same):
        pass


def test_disabling_inside_of_hooks_raises() -> None:
    with (
        saved_tensors_hooks(same, same),
        pytest.raises(RuntimeError, match="not here"),
        disable_saved_tensors_hooks("not here"),
    ):
        pass


def test_message_is_that_of_the_innermost_block() -> None:
    with disable_saved_tensors_hooks("outer"):
        with (
            disable_saved_tensors_hooks("inner"),
            pytest.raises(RuntimeError, match="inner"),
            saved_tensors_hooks(same, same),
        ):
            pass
        with pytest.raises(RuntimeError, match="outer"), saved_tensors_hooks(same, same):
            pass


def test_disabling_decorates_functions() -> None:
    @disable_saved_tensors_hooks("decorated")
    def function() -> None:
        with saved_tensors_hooks(same, same):
            pass

    with pytest.raises(RuntimeError, match="decorated"):
        function()
    with saved_tensors_hooks(same, same):
        pass


def test_programs_without_hooks_run_where_they_are_disabled() -> None:
    x = leaf(1.0, 2.0)
    with disable_saved_tensors_hooks("no"):
        y = x**3
        node_of(y)._raw_saved_self.register_hooks(same, same)
        y.sum().backward()
    assert_values(x.grad, [3, 12])


# --- memory ------------------------------------------------------------------------------------


class Box:
    """What a pack hook may keep a value in."""

    def __init__(self, tensor: dg.Tensor) -> None:
        self.tensor = tensor.detach()


def boxing(boxes: list[weakref.ref[Box]]) -> Any:
    """Hooks whose packed values can be watched."""

    def pack(t: dg.Tensor) -> Box:
        box = Box(t)
        boxes.append(weakref.ref(box))
        return box

    return saved_tensors_hooks(pack, lambda box: box.tensor)


def test_packed_values_are_freed_with_the_graph(no_gc: None) -> None:
    boxes: list[weakref.ref[Box]] = []
    with boxing(boxes):
        y = leaf(1.0, 2.0).exp() ** 3
    assert all(box() is not None for box in boxes)
    del y
    assert len(boxes) == 2 and all(box() is None for box in boxes)


def test_packed_values_are_freed_by_backward(no_gc: None) -> None:
    boxes: list[weakref.ref[Box]] = []
    x = leaf(1.0, 2.0)
    with boxing(boxes):
        y = x.exp() ** 3
    y.sum().backward()
    assert all(box() is None for box in boxes)


def test_packed_values_survive_a_backward_that_retains_the_graph(no_gc: None) -> None:
    boxes: list[weakref.ref[Box]] = []
    with boxing(boxes):
        y = leaf(1.0, 2.0) ** 3
    y.sum().backward(retain_graph=True)
    assert boxes[0]() is not None


def test_saved_output_that_pack_returns_makes_no_cycle(no_gc: None) -> None:
    with saved_tensors_hooks(same, same):
        y = leaf(1.0, 2.0).exp()
    node = watch(y)
    del y
    assert node() is None


def test_tensors_given_to_pack_are_not_kept(no_gc: None) -> None:
    with boxing([]):
        t = leaf(1.0, 2.0) * 1
        y = t**3
    tensor = weakref.ref(t)
    del t
    assert tensor() is None and y.requires_grad


def test_failed_unpack_keeps_nothing(no_gc: None) -> None:
    with saved_tensors_hooks(lambda t: t.clone(), failing):
        y = leaf(1.0, 2.0).exp()
    node = watch(y)
    with contextlib.suppress(ValueError):
        y.sum().backward()
    del y
    assert node() is None


def test_failed_pack_keeps_nothing(no_gc: None) -> None:
    t = leaf(1.0, 2.0) * 1
    node = watch(t)
    with contextlib.suppress(ValueError), saved_tensors_hooks(failing, same):
        t.exp()
    del t
    assert node() is None


# --- what need not be saved ----------------------------------------------------------------------


def test_factor_of_a_constant_may_be_written_afterwards() -> None:
    mu, x, loss = leaf(1.0), dg.empty(()), dg.tensor(0.0)
    for i in range(3):
        x.detach_()
        x.copy_(mu + i)
        loss = loss + x * dg.tensor(float(i))
    loss.backward()
    assert_values(mu.grad, 3.0)


@pytest.mark.parametrize("where, factor", [("forward", 2), ("backward", 4), ("both", 8)])
def test_second_derivative_reads_each_saved_tensor_once(where: str, factor: int) -> None:
    def hooks(place: str) -> Any:
        doubled = where in (place, "both")
        return saved_tensors_hooks(lambda t: 2 * t, same) if doubled else contextlib.nullcontext()

    x = leaf(1.0, 2.0)
    with hooks("forward"):
        y = (x**3).sum()
    with hooks("backward"):
        (grad,) = dg.autograd.grad(y, x, create_graph=True)
        grad.sum().backward()
    assert_values(x.grad, [6 * factor, 12 * factor])

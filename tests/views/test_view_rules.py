"""Which views may be written to: by how they were made, and in which mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import dyngraph as dg
from tests.graph.helpers import assert_values, leaf

SEVERAL = "the output of a function that returns multiple views"
NO_GRAD = "created in no_grad mode and is being modified inplace with grad mode enabled"
INFERENCE = "created in inference mode and is being modified inplace in normal mode"
LEAF = "a view of a leaf Variable that requires grad is being used in an in-place operation"


def interior() -> dg.Tensor:
    """Two, four times, with a history."""
    return dg.ones(4, requires_grad=True) * 2


# Functions that return several views

FORBIDDING: dict[str, Callable[[dg.Tensor], Sequence[dg.Tensor]]] = {
    "split": lambda x: x.split(2),
    "split of sizes": lambda x: x.split([1, 3]),
    "split_with_sizes": lambda x: x.split_with_sizes([1, 3]),
    "chunk": lambda x: x.chunk(2),
    "unbind": lambda x: x.unbind(),
    "iteration": lambda x: list(x),
}
ALLOWING: dict[str, Callable[[dg.Tensor], Sequence[dg.Tensor]]] = {
    "tensor_split": lambda x: x.tensor_split(2),
    "hsplit": lambda x: x.hsplit(2),
    "vsplit": lambda x: [part.view(-1) for part in x.view(2, 2).vsplit(2)],
}
forbidding = pytest.mark.parametrize("views_of", FORBIDDING.values(), ids=FORBIDDING)
allowing = pytest.mark.parametrize("views_of", ALLOWING.values(), ids=ALLOWING)
ViewsOf = Callable[[dg.Tensor], Sequence[dg.Tensor]]


@forbidding
def test_one_of_several_views_may_not_be_written(views_of: ViewsOf) -> None:
    view = views_of(interior())[0]
    with pytest.raises(RuntimeError, match=SEVERAL):
        view.mul_(3)


@forbidding
def test_view_of_one_of_several_views_may_not_be_written(views_of: ViewsOf) -> None:
    inner = views_of(interior())[0].unsqueeze(0)
    with pytest.raises(RuntimeError, match=SEVERAL):
        inner.mul_(3)


@forbidding
def test_one_of_several_views_may_not_change_its_shape(views_of: ViewsOf) -> None:
    view = views_of(interior())[0]
    with pytest.raises(RuntimeError, match=SEVERAL):
        view.unsqueeze_(0)


@forbidding
def test_refused_write_leaves_base_and_views_as_they_were(views_of: ViewsOf) -> None:
    base = interior()
    view = views_of(base)[0]
    with pytest.raises(RuntimeError, match=SEVERAL):
        view.mul_(3)
    assert_values(base, [2, 2, 2, 2])
    assert base._version == 0 and view.grad_fn is not None


@forbidding
def test_several_views_may_not_be_used_after_a_write_to_their_base(views_of: ViewsOf) -> None:
    base = interior()
    view = views_of(base)[0]
    base.mul_(3)
    with pytest.raises(RuntimeError, match=SEVERAL):
        _ = view * 2


@forbidding
def test_base_of_several_views_may_be_written_when_they_are_no_longer_used(
    views_of: ViewsOf,
) -> None:
    x = dg.ones(4, requires_grad=True)
    base = x * 2
    before = views_of(base)[0].sum()
    base.mul_(3)
    (before + base.sum()).backward()
    assert x.grad is not None
    assert x.grad[0].item() == 8 and x.grad[3].item() == 6


@forbidding
def test_several_views_of_a_constant_may_be_written_with_constants(views_of: ViewsOf) -> None:
    base = dg.ones(4)
    views_of(base)[0].mul_(3)
    assert base[0].item() == 3 and base[3].item() == 1


@forbidding
def test_several_views_of_a_constant_may_not_be_written_with_gradients(
    views_of: ViewsOf,
) -> None:
    view = views_of(dg.ones(4))[0]
    with pytest.raises(RuntimeError, match=SEVERAL):
        view.mul_(leaf(2.0))


@forbidding
def test_several_views_may_be_written_where_all_is_under_no_grad(views_of: ViewsOf) -> None:
    base = interior()
    with dg.no_grad():
        views_of(base)[0].mul_(3)
    assert base[0].item() == 6 and base[3].item() == 2


@forbidding
def test_several_views_of_a_view_may_not_be_written(views_of: ViewsOf) -> None:
    view = views_of(interior().view_as(dg.ones(4)))[0]
    with pytest.raises(RuntimeError, match=SEVERAL):
        view.mul_(3)


COPYING: dict[str, Callable[[dg.Tensor], Sequence[dg.Tensor]]] = {
    "unsafe_split": lambda x: x.unsafe_split(2),
    "unsafe_split_with_sizes": lambda x: x.unsafe_split_with_sizes([2, 2]),
    "unsafe_chunk": lambda x: x.unsafe_chunk(2),
}


@pytest.mark.parametrize("parts_of", COPYING.values(), ids=COPYING)
def test_unsafe_parts_are_no_views_and_may_be_written(parts_of: ViewsOf) -> None:
    x = dg.ones(4, requires_grad=True)
    first, second = parts_of(x * 2)
    assert not first._is_view() and first._base is None
    first.mul_(second)
    first.sum().backward()
    assert_values(x.grad, [4, 4, 4, 4])


@allowing
def test_views_made_one_by_one_may_be_written(views_of: ViewsOf) -> None:
    x = dg.ones(4, requires_grad=True)
    base = x * 2
    views_of(base)[0].mul_(3)
    base.sum().backward()
    assert_values(x.grad, [6, 6, 2, 2])


@allowing
def test_views_made_one_by_one_may_be_used_after_a_write_to_their_base(views_of: ViewsOf) -> None:
    x = dg.ones(4, requires_grad=True)
    base = x * 2
    views = views_of(base)
    base.mul_(3)
    views[1].sum().backward()
    assert_values(x.grad, [0, 0, 6, 6])


def test_write_to_the_base_before_several_views_are_taken() -> None:
    x = dg.ones(4, requires_grad=True)
    base = x * 2
    base.mul_(3)
    a, b = base.split(2)
    (a * b).sum().backward()
    assert_values(x.grad, [36, 36, 36, 36])


# Views made under no_grad


def made(mode: Any, base: dg.Tensor, view_of: Callable[[dg.Tensor], dg.Tensor]) -> dg.Tensor:
    """A view of `base`, made in `mode`."""
    with mode:
        return view_of(base)


ONE: dict[str, Callable[[dg.Tensor], dg.Tensor]] = {
    "slice": lambda x: x[:2],
    "view": lambda x: x.view(2, 2),
    "view_as": lambda x: x.view_as(x),
    "view of a view": lambda x: x.view(2, 2)[0],
    "first of unbind": lambda x: x.unbind()[0],
    "second of unbind": lambda x: x.unbind()[1],
}
every_view = pytest.mark.parametrize("view_of", ONE.values(), ids=ONE)
MODES = {"no_grad": (dg.no_grad, NO_GRAD), "inference_mode": (dg.inference_mode, INFERENCE)}
every_mode = pytest.mark.parametrize("mode, message", MODES.values(), ids=MODES)
ViewOf = Callable[[dg.Tensor], dg.Tensor]


@every_mode
@every_view
def test_view_from_another_mode_may_not_be_written(
    view_of: ViewOf, mode: Any, message: str
) -> None:
    view = made(mode(), interior(), view_of)
    with pytest.raises(RuntimeError, match=message):
        view.add_(1)


@every_mode
@every_view
def test_view_of_a_leaf_from_another_mode_may_not_be_written(
    view_of: ViewOf, mode: Any, message: str
) -> None:
    view = made(mode(), dg.ones(4, requires_grad=True), view_of)
    with pytest.raises(RuntimeError, match=message):
        view.add_(1)


@every_mode
@every_view
def test_view_of_a_constant_from_another_mode_may_be_written(
    view_of: ViewOf, mode: Any, message: str
) -> None:
    base = dg.zeros(4)
    view = made(mode(), base, view_of)
    view.add_(1)
    assert view._is_view() and base.sum().item() == view.numel()


@every_mode
def test_view_of_a_constant_from_another_mode_may_not_be_written_with_gradients(
    mode: Any, message: str
) -> None:
    view = made(mode(), dg.zeros(4), lambda x: x[:2])
    with pytest.raises(RuntimeError, match=message):
        view.add_(leaf(1.0))


@every_mode
def test_view_from_another_mode_may_not_be_used_after_a_write_to_its_base(
    mode: Any, message: str
) -> None:
    base = interior()
    view = made(mode(), base, lambda x: x[:2])
    base.mul_(3)
    with pytest.raises(RuntimeError, match=r"its base or another view of its base has been mod"):
        _ = view.grad_fn


@every_mode
def test_value_of_a_view_from_another_mode_may_be_read_after_a_write_to_its_base(
    mode: Any, message: str
) -> None:
    base = interior()
    view = made(mode(), base, lambda x: x[:2])
    base.mul_(3)
    with dg.no_grad():
        assert view.tolist() == [6, 6] and (view * 2).tolist() == [12, 12]


@every_mode
def test_view_from_another_mode_may_not_change_its_shape(mode: Any, message: str) -> None:
    view = made(mode(), interior().view(2, 2), lambda x: x[:1])
    with pytest.raises(RuntimeError, match=message):
        view.t_()


def test_view_that_changed_its_shape_under_no_grad_is_still_one_from_no_grad() -> None:
    view = made(dg.no_grad(), interior().view(2, 2), lambda x: x[:1].t_())
    with pytest.raises(RuntimeError, match=NO_GRAD):
        view.add_(1)


def test_view_that_changed_its_shape_under_no_grad_may_be_written_if_it_was_made_before() -> None:
    base = interior()
    view = base.view(2, 2)[:1]
    with dg.no_grad():
        view.t_()
    view.add_(1)
    assert_values(base, [3, 3, 2, 2])
    assert base.requires_grad


@every_mode
def test_view_of_a_view_from_another_mode_may_not_be_written(mode: Any, message: str) -> None:
    view = made(mode(), dg.zeros(2), lambda x: x.view(2))
    view.requires_grad_()
    with pytest.raises(RuntimeError, match="is a view of a view which was " + message):
        view.view(2).div_(2)


def test_view_made_and_written_under_no_grad_leaves_the_graph() -> None:
    x = dg.ones(4, requires_grad=True)
    with dg.no_grad():
        x[:2].mul_(3)
    assert_values(x, [3, 3, 1, 1])
    assert x.is_leaf and x.requires_grad


@every_mode
def test_view_from_another_mode_has_no_history(mode: Any, message: str) -> None:
    x = dg.ones(4, requires_grad=True)
    view = made(mode(), x * 2, lambda base: base[:2])
    assert view._is_view() and view.grad_fn is None
    (x.sum() + (view * 3).sum()).backward()
    assert_values(x.grad, [1, 1, 1, 1])


def test_view_made_under_no_grad_inside_enable_grad_may_be_written() -> None:
    base = interior()
    with dg.no_grad(), dg.enable_grad():
        view = base[:2]
    view.mul_(3)
    assert_values(base, [6, 6, 2, 2])


# Leaves

LEAF_VIEWS: dict[str, Callable[[dg.Tensor], dg.Tensor]] = {
    "slice": lambda x: x[:2],
    "view": lambda x: x.view(2, 2),
    "view of a view": lambda x: x.view(2, 2).t()[0],
    "expand": lambda x: x.expand(4),
}


@pytest.mark.parametrize("view_of", LEAF_VIEWS.values(), ids=LEAF_VIEWS)
def test_view_of_a_leaf_may_not_be_written(view_of: ViewOf) -> None:
    x = dg.ones(4, requires_grad=True)
    with pytest.raises(RuntimeError, match=LEAF):
        view_of(x).add_(1)
    assert_values(x, [1, 1, 1, 1])
    assert x._version == 0


def test_view_of_a_tensor_that_became_a_leaf_may_not_be_written() -> None:
    base = dg.ones(4)
    view = base[:2]
    base.requires_grad_()
    with pytest.raises(RuntimeError, match=LEAF):
        view.add_(1)


def test_view_that_became_a_leaf_may_not_be_written() -> None:
    view = dg.ones(4)[:2].requires_grad_()
    with pytest.raises(RuntimeError, match=LEAF):
        view.add_(1)


def test_view_of_a_leaf_may_not_be_written_by_what_it_was_assigned_to() -> None:
    x = dg.ones(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x[1] = 5.0


def test_view_of_a_leaf_that_stopped_requiring_grad_may_be_written() -> None:
    x = dg.ones(4, requires_grad=True)
    x.requires_grad_(False)
    x[:2].add_(1)
    assert_values(x, [2, 2, 1, 1])


@every_mode
def test_view_that_may_not_be_used_prints_so_and_requires_grad(mode: Any, message: str) -> None:
    base = dg.ones(1, requires_grad=True) * 1
    view = made(mode(), base, lambda x: x[:])
    base.mul_(2)
    assert repr(view) == "tensor([2.], grad_fn=<Invalid>)"
    assert view.requires_grad

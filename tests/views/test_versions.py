"""Versions: what counts as a write, who shares the count, and what backward does with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg
from dyngraph.autograd.graph import increment_version
from tests.graph.helpers import assert_values, leaf

MODIFIED = "modified by an inplace operation"


def test_new_tensor_has_version_0() -> None:
    assert dg.ones(2)._version == 0
    assert (leaf(1.0) * 2)._version == 0


def test_each_write_counts_one() -> None:
    x = dg.ones(2)
    x.add_(1).mul_(2)
    x += 1
    x[0] = 5
    assert x._version == 4


def test_write_of_the_same_values_counts() -> None:
    x = dg.ones(2)
    x.copy_(x.clone())
    assert x._version == 1


def test_write_under_no_grad_counts() -> None:
    x = leaf(1.0, 2.0)
    with dg.no_grad():
        x.add_(1)
    assert x._version == 1


def test_reading_counts_nothing() -> None:
    x = dg.ones(2, 2)
    x.numpy()
    x.tolist()
    _ = x[0], x.t(), x + 1, x.clone()
    assert x._version == 0


def test_operator_makes_a_tensor_with_its_own_count() -> None:
    x = dg.ones(2)
    copy = x.clone()
    x.add_(1)
    assert copy._version == 0 and (x + 1)._version == 0


def test_version_may_not_be_assigned() -> None:
    with pytest.raises(AttributeError, match="_version"):
        dg.ones(2)._version = 3  # pyright: ignore


SHARING: dict[str, Callable[[dg.Tensor], Any]] = {
    "slice": lambda x: x[:1],
    "view": lambda x: x.view(-1),
    "view of a view": lambda x: x.view(-1)[:1],
    "expand": lambda x: x.expand(3, 2),
    "one of several": lambda x: x.unbind()[0],
    "detach": lambda x: x.detach(),
    "detach of a view": lambda x: x[:1].detach(),
}
sharing = pytest.mark.parametrize("make", SHARING.values(), ids=SHARING)


@sharing
def test_view_and_detached_tensor_share_the_count(make: Callable[[dg.Tensor], Any]) -> None:
    x = dg.ones(2)
    x.add_(1)
    alias = make(x)
    assert alias._version == 1
    x.add_(1)
    assert alias._version == 2


@pytest.mark.parametrize("name", [name for name in SHARING if name != "expand"])
def test_write_into_a_view_counts_for_the_base(name: str) -> None:
    x = dg.ones(2)
    SHARING[name](x).add_(1)
    assert x._version == 1


def test_data_does_not_share_the_count() -> None:
    x = dg.ones(2)
    x.data.add_(1)
    assert x._version == 0


def test_view_keeps_what_it_showed_when_the_base_gets_other_data() -> None:
    base = dg.ones(2)
    view = base[:]
    base.data = dg.zeros(3)
    base.add_(5)
    assert_values(view, [1, 1])


def test_writes_into_a_grad_are_counted() -> None:
    x = leaf(1.0, 2.0)
    (x * 2).sum().backward()
    grad = x.grad
    assert grad is not None
    grad.zero_()
    assert grad._version == 1


# increment_version


def test_increment_version_counts_as_a_write() -> None:
    x = dg.ones(2)
    view = x[:1]
    increment_version(x)
    assert x._version == view._version == 1


def test_increment_version_takes_several_tensors() -> None:
    x, y = dg.ones(2), dg.ones(2)
    increment_version([x, y, x])
    assert (x._version, y._version) == (2, 1)


def test_increment_version_takes_a_leaf() -> None:
    x = leaf(1.0, 2.0)
    increment_version(x)
    assert x._version == 1


def test_increment_version_makes_backward_refuse_what_was_saved() -> None:
    y = leaf(1.0, 2.0) * 2
    loss = (y * y).sum()
    increment_version(y)
    with pytest.raises(RuntimeError, match=MODIFIED):
        loss.backward()


def test_increment_version_of_something_else_is_refused() -> None:
    with pytest.raises(RuntimeError, match="tensor"):
        increment_version([1])  # pyright: ignore


# _unsafe_preserve_version_counter


def test_preserved_version_is_as_before_after_the_block() -> None:
    x = dg.ones(2)
    x.add_(1)
    with dg.autograd._unsafe_preserve_version_counter(x):
        x.mul_(3).mul_(2)
    assert x._version == 1
    assert_values(x, [12, 12])


def test_versions_of_several_tensors_may_be_preserved() -> None:
    x, y = dg.ones(2), dg.ones(2)
    with dg.autograd._unsafe_preserve_version_counter((x, y)):
        x.add_(1)
        y.add_(1)
    assert x._version == y._version == 0


def test_write_with_a_preserved_version_is_not_checked_by_backward() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    loss = (y * y).sum()
    with dg.autograd._unsafe_preserve_version_counter(y), dg.no_grad():
        y.mul_(1)
    loss.backward()
    assert_values(x.grad, [8, 16])


# What backward checks


WRITES: dict[str, Callable[[dg.Tensor], object]] = {
    "in place": lambda y: y.add_(1),
    "augmented": lambda y: y.__iadd__(1),
    "by index": lambda y: y.__setitem__(0, 5.0),
    "by mask": lambda y: y.__setitem__(y > 2, 5.0),
    "into a view": lambda y: y[:1].add_(1),
    "into another part": lambda y: y[1:].zero_(),
    "into a view of a view": lambda y: y.view(2, 1)[0].zero_(),
    "into a detached tensor": lambda y: y.detach().add_(1),
    "copy": lambda y: y.copy_(dg.zeros(2)),
    "fill": lambda y: y.fill_(3),
    "random": lambda y: y.uniform_(),
    "of nothing": lambda y: y.add_(0),
}
every_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)


@every_write
def test_backward_refuses_an_argument_written_after_it_was_saved(
    write: Callable[[dg.Tensor], object],
) -> None:
    y = leaf(1.0, 2.0) * 2
    loss = (y * y).sum()
    write(y)
    with pytest.raises(RuntimeError, match=MODIFIED):
        loss.backward()


@every_write
def test_backward_refuses_a_result_written_after_it_was_saved(
    write: Callable[[dg.Tensor], object],
) -> None:
    y = leaf(1.0, 2.0).exp()
    loss = y.sum()
    write(y)
    with pytest.raises(RuntimeError, match=MODIFIED):
        loss.backward()


@every_write
def test_backward_refuses_what_was_saved_and_written_under_no_grad(
    write: Callable[[dg.Tensor], object],
) -> None:
    y = leaf(1.0, 2.0) * 2
    loss = (y * y).sum()
    with dg.no_grad():
        write(y)
    with pytest.raises(RuntimeError, match=MODIFIED):
        loss.backward()


@every_write
def test_backward_passes_by_what_was_written_but_not_saved(
    write: Callable[[dg.Tensor], object],
) -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    loss = (y + 1).sum()
    write(y)
    loss.backward()
    assert_values(x.grad, [2, 2])


@every_write
def test_write_before_the_tensor_is_saved_is_none_after(
    write: Callable[[dg.Tensor], object],
) -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    write(y)
    (y * y).sum().backward()
    assert x.grad is not None


def test_backward_refuses_a_leaf_written_after_it_was_saved() -> None:
    x = leaf(1.0, 2.0)
    loss = (x * x).sum()
    with dg.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        loss.backward()


def test_backward_refuses_a_constant_written_after_it_was_saved() -> None:
    x, factor = leaf(1.0, 2.0), dg.tensor([3.0, 4.0])
    loss = (x * factor).sum()
    factor.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        loss.backward()


def test_backward_refuses_a_base_saved_before_its_view_was_written() -> None:
    base = dg.ones(4, requires_grad=True) * 2
    view = base[:2]
    loss = (base * base).sum()
    view.mul_(3)
    with pytest.raises(RuntimeError, match=MODIFIED):
        loss.backward()


def test_backward_refuses_a_view_saved_before_its_base_was_written() -> None:
    base = dg.ones(4, requires_grad=True) * 2
    view = base[:2]
    loss = (view * view).sum()
    base.mul_(3)
    with pytest.raises(RuntimeError, match=MODIFIED):
        loss.backward()


def test_backward_refuses_a_view_saved_before_a_sibling_was_written() -> None:
    base = dg.ones(4, requires_grad=True) * 2
    view = base[:2]
    loss = (view * view).sum()
    base[2:].mul_(3)
    with pytest.raises(RuntimeError, match=MODIFIED):
        loss.backward()


def test_backward_refuses_an_index_written_after_it_was_saved() -> None:
    x, index = leaf(1.0, 2.0), dg.tensor([0, 0])
    loss = x.gather(0, index).sum()
    index.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        loss.backward()


def test_backward_refuses_a_tensor_written_after_it_was_saved_and_detached() -> None:
    x = leaf(1.0, 2.0)
    loss = (x**2).sum()
    x.detach().zero_()
    with pytest.raises(RuntimeError, match=MODIFIED):
        loss.backward()


def test_write_does_not_disturb_a_copy_that_was_saved() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    copy = y.clone()
    loss = (copy * copy).sum()
    y.zero_()
    loss.backward()
    assert_values(x.grad, [8, 16])


def test_reading_a_saved_tensor_that_was_written_is_refused() -> None:
    y = leaf(1.0, 2.0) * 2
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        _ = z.grad_fn._saved_self  # pyright: ignore


def test_saved_result_that_was_read_shares_the_count() -> None:
    y = leaf(1.0, 2.0).exp()
    saved = y.grad_fn._saved_result  # pyright: ignore
    with dg.no_grad():
        y += 1
    assert saved._version == y._version == 1


def test_refusal_names_both_versions() -> None:
    y = leaf(1.0, 2.0) * 2
    y.add_(1)
    loss = (y * y).sum()
    y.add_(1).add_(1)
    with pytest.raises(RuntimeError, match=r"version 3.*expected version 1"):
        loss.backward()


def test_refusal_names_the_shape() -> None:
    y = dg.ones(2, 3, requires_grad=True) * 2
    loss = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"\[2, 3\]"):
        loss.backward()


def test_refused_backward_leaves_no_grad() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    loss = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        loss.backward()
    assert x.grad is None


def test_write_between_two_passes_is_refused_by_the_second() -> None:
    x = leaf(1.0, 2.0)
    loss = (x * x).sum()
    loss.backward(retain_graph=True)
    with dg.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        loss.backward()
    assert_values(x.grad, [2, 4])


def test_write_after_backward_is_no_concern() -> None:
    x = leaf(1.0, 2.0)
    for _ in range(3):
        (x * x).sum().backward()
        with dg.no_grad():
            x.sub_(0.25 * x.grad)  # pyright: ignore
        x.grad = None
    assert_values(x, [0.125, 0.25])

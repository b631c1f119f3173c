"""allow_mutation_on_saved_tensors: backward uses what was saved, whatever was written since."""

from __future__ import annotations

import pytest

import dyngraph as dg
from dyngraph.autograd.graph import allow_mutation_on_saved_tensors
from tests.graph.helpers import assert_values, leaf

MODIFIED = "modified by an inplace operation"


def test_argument_saved_before_a_write_has_its_old_value() -> None:
    with allow_mutation_on_saved_tensors():
        x = leaf(1.0, 2.0)
        y = x * 2
        loss = (y * y).sum()
        y.mul_(10)
        loss.backward()
    assert_values(y, [20, 40])
    assert_values(x.grad, [8, 16])


def test_result_saved_before_a_write_has_its_old_value() -> None:
    with allow_mutation_on_saved_tensors():
        x = leaf(0.0, 0.0)
        y = x.exp()
        y.mul_(10)
        y.sum().backward()
    assert_values(x.grad, [10, 10])


def test_leaf_saved_before_a_write_has_its_old_value() -> None:
    with allow_mutation_on_saved_tensors():
        x = leaf(1.0, 2.0)
        loss = (x * x).sum()
        with dg.no_grad():
            x.mul_(10)
        loss.backward()
    assert_values(x.grad, [2, 4])


def test_base_saved_before_its_view_is_written_has_its_old_value() -> None:
    with allow_mutation_on_saved_tensors():
        x = dg.ones(3, requires_grad=True)
        base = x * 2
        view = base[:2]
        loss = (base * base).sum()
        view.mul_(10)
        loss.backward()
    assert_values(x.grad, [8, 8, 8])


def test_view_saved_before_its_base_is_written_has_its_old_value() -> None:
    with allow_mutation_on_saved_tensors():
        x = dg.ones(3, requires_grad=True)
        base = x * 2
        view = base[:2]
        loss = (view * view).sum()
        base.mul_(10)
        loss.backward()
    assert_values(x.grad, [8, 8, 0])


def test_several_views_saved_before_their_base_is_written_have_their_old_values() -> None:
    with allow_mutation_on_saved_tensors():
        x = dg.ones(4, requires_grad=True)
        base = x * 2
        a, b = base[:2], base[2:]
        loss = (a * b).sum()
        base.mul_(10)
        loss.backward()
    assert_values(x.grad, [4, 4, 4, 4])


def test_conjugate_saved_before_its_base_is_written_has_its_old_value() -> None:
    with allow_mutation_on_saved_tensors():
        x = dg.tensor([1 + 1j], requires_grad=True)
        y = x * 1
        conjugate = y.conj()
        loss = (conjugate * conjugate).sum()
        y.mul_(10)
        loss.real.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2 - 2j]


def test_tensor_saved_in_several_versions_has_each_value() -> None:
    with allow_mutation_on_saved_tensors():
        x = leaf(1.0)
        y = x * 2
        first = y * y
        y.mul_(10)
        second = y * y
        y.mul_(10)
        (first + second + y).backward()
    assert_values(x.grad, 8 + 800 + 200)


def test_tensor_saved_many_times_before_a_write_has_its_old_value() -> None:
    with allow_mutation_on_saved_tensors():
        x = leaf(1.0)
        y = x * 3
        loss = y * y + y.sin() * 0 + y * y
        y.mul_(10)
        loss.backward()
    assert_values(x.grad, 36)


def test_write_after_the_graph_is_gone_is_no_concern() -> None:
    with allow_mutation_on_saved_tensors():
        x = leaf(1.0)
        y = x * 2
        loss = y * y
        del loss
        y.mul_(10)
        (y * y).backward()
    assert_values(x.grad, 800)


def test_out_writes_are_allowed_too() -> None:
    with allow_mutation_on_saved_tensors():
        x = leaf(1.0, 2.0)
        y = x * 2
        loss = (y * y).sum()
        with dg.no_grad():
            dg.mul(y, 10, out=y)
        loss.backward()
    assert_values(x.grad, [8, 16])


def test_second_derivative_uses_the_old_values() -> None:
    with allow_mutation_on_saved_tensors():
        x = leaf(1.0, 2.0)
        y = x * 1
        loss = (y * y * y).sum()
        y.mul_(10)
        (grad,) = dg.autograd.grad(loss, x, create_graph=True)
        grad.sum().backward()
    assert_values(grad, [3, 12])
    assert_values(x.grad, [6, 12])


def test_leaf_that_requires_grad_may_still_not_be_written() -> None:
    with allow_mutation_on_saved_tensors():
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            leaf(1.0).add_(1)


def test_what_was_saved_before_the_block_is_still_checked() -> None:
    y = leaf(1.0, 2.0) * 2
    loss = (y * y).sum()
    with allow_mutation_on_saved_tensors():
        y.mul_(10)
        with pytest.raises(RuntimeError, match=MODIFIED):
            loss.backward()


def test_what_is_saved_after_the_block_is_checked_again() -> None:
    with allow_mutation_on_saved_tensors():
        pass
    y = leaf(1.0, 2.0) * 2
    loss = (y * y).sum()
    y.mul_(10)
    with pytest.raises(RuntimeError, match=MODIFIED):
        loss.backward()


def test_backward_after_the_block_is_checked() -> None:
    with allow_mutation_on_saved_tensors():
        y = leaf(1.0, 2.0) * 2
        loss = (y * y).sum()
        y.mul_(10)
    with pytest.raises(RuntimeError, match=MODIFIED):
        loss.backward()


def test_backward_after_the_block_of_what_was_not_written_runs() -> None:
    # PyTorch refuses any backward out of the block. Here nothing was lost.
    x = leaf(1.0, 2.0)
    with allow_mutation_on_saved_tensors():
        loss = (x * x).sum()
    loss.backward()
    assert_values(x.grad, [2, 4])


def test_blocks_do_not_nest() -> None:
    with allow_mutation_on_saved_tensors():
        with pytest.raises(RuntimeError, match="cannot be nested"):
            with allow_mutation_on_saved_tensors():
                pass


def test_block_may_be_entered_again_after_it_was_left_by_an_error() -> None:
    with pytest.raises(ZeroDivisionError, match="division"):
        with allow_mutation_on_saved_tensors():
            _ = 1 // 0
    with allow_mutation_on_saved_tensors():
        x = leaf(1.0)
        y = x * 2
        loss = y * y
        y.zero_()
        loss.backward()
    assert_values(x.grad, 8)

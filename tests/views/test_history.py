"""What an in-place write does to the graph: the base's history, and that of every view of it."""

from __future__ import annotations

import dyngraph as dg
from tests.graph.helpers import assert_values, leaf

NUMBERS = dg.tensor([1.0, 2.0, 3.0, 4.0])


def vector() -> dg.Tensor:
    """A leaf of four ones."""
    return dg.ones(4, requires_grad=True)


def name_of(tensor: dg.Tensor) -> str:
    assert tensor.grad_fn is not None
    return tensor.grad_fn.name()


# Without views


def test_write_is_recorded_after_what_was_there() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    before = y.grad_fn
    y.mul_(3)
    assert y.grad_fn is not None and y.grad_fn is not before
    assert y.grad_fn.next_functions[0][0] is before


def test_gradient_goes_through_each_write() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.mul_(3).add_(1).pow_(2)
    y.sum().backward()
    assert_values(x.grad, [84, 156])


def test_what_was_computed_before_a_write_keeps_its_gradient() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    before = y * 10
    y.mul_(3)
    (before + y).sum().backward()
    assert_values(x.grad, [26, 26])


def test_write_into_a_constant_makes_it_require_grad() -> None:
    x, y = leaf(1.0, 2.0), dg.zeros(2)
    y += x
    assert y.requires_grad and not y.is_leaf
    (y * y).sum().backward()
    assert_values(x.grad, [2, 4])


def test_write_into_a_constant_of_constants_records_nothing() -> None:
    x = dg.zeros(2)
    x.add_(5)
    assert x.is_leaf and not x.requires_grad


def test_constant_written_before_it_requires_grad_is_a_leaf() -> None:
    x = dg.zeros(2)
    x.add_(5)
    x.requires_grad = True
    x.sum().backward()
    assert_values(x.grad, [1, 1])


def test_base_whose_view_was_written_before_it_requires_grad_is_a_leaf() -> None:
    x = dg.zeros(2)
    x[:].add_(5)
    x.requires_grad = True
    x.sum().backward()
    assert_values(x.grad, [1, 1])


def test_rows_of_a_constant_filled_from_leaves() -> None:
    x, y, z = dg.zeros(3, 2), leaf(1.0, 2.0), leaf(3.0, 4.0)
    x[0] = y
    x[1] = 2 * z
    assert x.requires_grad and x.grad_fn is not None
    x.sum().backward()
    assert_values(y.grad, [1, 1])
    assert_values(z.grad, [2, 2])


# A write into a view


def test_write_into_a_view_is_a_CopySlices_of_the_base() -> None:
    base = vector() * 2
    base[:2].mul_(3)
    assert "CopySlices" in name_of(base)


def test_gradient_of_the_base_goes_through_the_write_into_its_view() -> None:
    x = vector()
    base = x * 1
    base[1:3].mul_(5)
    (base * NUMBERS).sum().backward()
    assert_values(x.grad, [1, 10, 15, 4])


def test_gradient_of_the_view_goes_through_the_write_into_it() -> None:
    x = vector()
    base = x * 1
    view = base[1:3]
    view.mul_(5)
    (view * dg.tensor([1.0, 10.0])).sum().backward()
    assert_values(x.grad, [0, 5, 50, 0])


def test_gradient_reaches_what_was_written() -> None:
    x, factor = vector(), leaf(2.0, 3.0)
    base = x * 1
    base[1:3].mul_(factor)
    (base * NUMBERS).sum().backward()
    assert_values(x.grad, [1, 4, 9, 4])
    assert_values(factor.grad, [2, 3])


def test_view_of_a_view_writes_to_the_base() -> None:
    x = vector()
    base = x * 1
    base.view(2, 2)[1].unsqueeze(0)[..., :1].mul_(7)
    (base * NUMBERS).sum().backward()
    assert_values(x.grad, [1, 2, 21, 4])


def test_view_of_a_view_that_was_written_has_both_gradients() -> None:
    x = vector()
    base = x * 1
    view = base.view(2, 2)
    view.mul_(3)
    part = view[0]
    part.mul_(5)
    base.sum().backward()
    assert_values(x.grad, [15, 15, 3, 3])


def test_writes_that_overlap_multiply_in_the_gradient() -> None:
    x = vector()
    base = x * 1
    base[:3].mul_(2)
    base[1:].mul_(3)
    base.view(2, 2)[:, 1].mul_(5)
    base.sum().backward()
    assert_values(x.grad, [2, 30, 6, 15])


def test_write_into_a_view_that_is_not_contiguous() -> None:
    x = dg.ones(2, 3, requires_grad=True)
    base = x * 1
    view = base.t()[1:]
    view.mul_(dg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    base.sum().backward()
    assert_values(x.grad, [[1, 1, 3], [1, 2, 4]])


def test_write_into_a_view_of_the_real_parts() -> None:
    x = dg.tensor([1 + 2j, 3 + 4j], requires_grad=True)
    base = x * 1
    base.real.mul_(5)
    assert base.tolist() == [5 + 2j, 15 + 4j]
    base.sum().real.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [5, 5]


def test_write_into_a_view_of_numbers_as_complex() -> None:
    x = dg.tensor([[1.0, 2.0]], requires_grad=True)
    base = x * 1
    dg.view_as_complex(base).mul_(1j)
    (base * dg.tensor([[1.0, 10.0]])).sum().backward()
    assert_values(base, [[-2, 1]])
    assert_values(x.grad, [[10, -1]])


def test_writes_through_views_of_another_dtype_have_the_gradient_of_the_operators() -> None:
    def gradient(*, in_place: bool) -> list[list[complex]]:
        x = dg.tensor([[1 + 2j, 3j], [2.0, 1 - 1j]], requires_grad=True)
        pairs = dg.view_as_real(x * 1).transpose(0, 1)
        if in_place:
            pairs += 1
            pairs[..., 0] *= 2
        else:
            pairs = (pairs + 1) * dg.tensor([2.0, 1.0])
        weights = 1 + dg.arange(8, dtype=dg.float32).reshape(2, 2, 2)
        (pairs * weights).sum().backward()
        assert x.grad is not None
        return x.grad.tolist()

    assert gradient(in_place=True) == gradient(in_place=False)


def test_gradient_for_the_base_does_not_run_through_what_was_written() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    written = y * 1
    seen: list[object] = []
    written.register_hook(seen.append)
    base = x * 1
    view = base.view(-1)
    view += written
    (grad,) = dg.autograd.grad(view.sum(), x)
    assert_values(grad, [1, 1])
    assert seen == []


def test_gradient_for_what_was_written_does_not_run_through_the_base() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    base = x * 1
    seen: list[object] = []
    base.register_hook(seen.append)
    view = base.view(-1)
    view += y
    (grad,) = dg.autograd.grad(view.sum(), y)
    assert_values(grad, [1, 1])
    assert seen == []


def test_write_into_a_view_keeps_gradients_to_the_rest_of_an_earlier_write() -> None:
    x, first, second = vector(), leaf(2.0, 2.0), leaf(3.0)
    base = x * 1
    base[:2].copy_(first)
    base[1:2].copy_(second)
    base.sum().backward()
    assert_values(x.grad, [0, 0, 1, 1])
    assert_values(first.grad, [1, 0])
    assert_values(second.grad, 1)


def test_write_of_a_part_into_another_part_of_its_base() -> None:
    x = vector()
    base = x * NUMBERS
    base[:2].mul_(base[2:].clone())
    base.sum().backward()
    assert_values(base, [3, 8, 3, 4])
    assert_values(x.grad, [3, 8, 6, 12])


def test_write_into_a_view_of_a_constant_makes_the_base_require_grad() -> None:
    x, base = leaf(3.0, 4.0), dg.zeros(4)
    view = base[1:3]
    view.add_(x)
    assert base.requires_grad and not base.is_leaf
    (base * NUMBERS).sum().backward()
    assert_values(x.grad, [2, 3])


def test_write_into_a_view_of_a_view_of_a_constant_makes_all_require_grad() -> None:
    x, base = leaf(3.0), dg.zeros(4)
    middle = base.view(2, 2)
    inner = middle[0]
    inner.add_(x)
    assert base.requires_grad and middle.requires_grad and inner.requires_grad


def test_write_into_a_view_leaves_what_was_computed_from_the_base_before() -> None:
    x = vector()
    base = x * 2
    before = base * 10
    base[:2].mul_(3)
    (before + base).sum().backward()
    assert_values(x.grad, [26, 26, 22, 22])


# Captured gradients, second derivatives


def test_node_captured_before_a_write_gets_the_gradient_of_the_value_it_made() -> None:
    x = vector()
    y = x * 2
    edge = dg.autograd.graph.get_gradient_edge(y)
    y.mul_(3)
    (grad,) = dg.autograd.grad(y.sum(), edge)
    assert_values(grad, [3, 3, 3, 3])


def test_tensor_captured_after_a_write_gets_the_gradient_of_its_new_value() -> None:
    y = vector() * 2
    y.mul_(3)
    (grad,) = dg.autograd.grad((y * NUMBERS).sum(), y)
    assert_values(grad, [1, 2, 3, 4])


def test_base_captured_after_a_write_into_its_view_gets_the_gradient_of_its_new_value() -> None:
    base = vector() * 2
    view = base[:2]
    view.mul_(3)
    (grad,) = dg.autograd.grad((base * NUMBERS).sum(), base)
    assert_values(grad, [1, 2, 3, 4])


def test_second_derivative_goes_through_a_write_into_a_view() -> None:
    x = leaf(1.0, 2.0, 3.0)
    base = x * 1
    base[1:].pow_(3)
    (grad,) = dg.autograd.grad(base.sum(), x, create_graph=True)
    grad.sum().backward()
    assert_values(grad, [1, 12, 27])
    assert_values(x.grad, [0, 12, 18])


def test_backward_twice_through_a_write_into_a_view_with_retain_graph() -> None:
    x = vector()
    base = x * 1
    base[1:].pow_(3)
    loss = base.sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert_values(x.grad, [2, 6, 6, 6])


def test_recurrence_written_into_rows_of_one_tensor() -> None:
    x = leaf(2.0)
    rows = dg.zeros(5)
    rows[0] = 1
    for i in range(4):
        rows[i + 1].copy_(rows[i].clone() * x)
    rows.sum().backward()
    assert_values(x.grad, 1 + 4 + 12 + 32)

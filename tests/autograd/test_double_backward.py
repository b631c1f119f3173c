"""create_graph: gradients that are themselves differentiated, to any order."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.autograd import grad
from tests.graph.helpers import assert_values, leaf

AGAIN = "Specify retain_graph=True if you need to backward through the graph a second time"
CYCLE = "create_graph=True will create a reference cycle between the parameter and its gradient"
ignore_cycle = pytest.mark.filterwarnings(f"ignore:Using backward.. with {CYCLE}")


def cube_sum(x: dg.Tensor) -> dg.Tensor:
    """sum(x³): gradient 3x², second derivative 6x, third 6."""
    return (x * x * x).sum()


def derivative(y: dg.Tensor, x: dg.Tensor) -> dg.Tensor:
    """The gradient of sum(y) with respect to x, as a tensor with history."""
    return grad(y.sum(), x, create_graph=True)[0]


def test_gradient_without_create_graph_has_no_history() -> None:
    x = leaf(1.0, 2.0)
    (by_x,) = grad(cube_sum(x), x)
    assert by_x.grad_fn is None and not by_x.requires_grad


def test_gradient_with_create_graph_has_history() -> None:
    x = leaf(1.0, 2.0)
    by_x = derivative(cube_sum(x), x)
    assert by_x.grad_fn is not None and by_x.requires_grad


def test_constant_gradient_has_no_history() -> None:
    x = leaf(1.0, 2.0)
    by_x = derivative(x * 3, x)
    assert by_x.grad_fn is None and not by_x.requires_grad


def test_second_derivative() -> None:
    x = leaf(1.0, 2.0)
    assert_values(grad(derivative(cube_sum(x), x).sum(), x)[0], [6, 12])


def test_third_derivative() -> None:
    x = leaf(1.0, 2.0)
    second = derivative(derivative(cube_sum(x), x), x)
    assert_values(grad(second.sum(), x)[0], [6, 6])


@pytest.mark.parametrize("order", range(1, 7))
def test_every_derivative_of_exp_is_exp(order: int) -> None:
    x = leaf(0.5, 1.0)
    y = x.exp()
    for _ in range(order):
        y = derivative(y, x)
    assert_values(y, np.exp([0.5, 1.0]))


X = 0.5
SECOND_DERIVATIVES: dict[str, tuple[Callable[[dg.Tensor], dg.Tensor], float]] = {
    "sin": (lambda x: x.sin(), -np.sin(X)),
    "cos": (lambda x: x.cos(), -np.cos(X)),
    "log": (lambda x: x.log(), -1 / X**2),
    "tanh": (lambda x: x.tanh(), -2 * np.tanh(X) / np.cosh(X) ** 2),
    "power": (lambda x: x**4, 12 * X**2),
    "quotient": (lambda x: 1 / x, 2 / X**3),
    "product": (lambda x: x * x.exp(), (2 + X) * np.exp(X)),
    "difference": (lambda x: x * x - x.exp(), 2 - np.exp(X)),
    "negation": (lambda x: -(x * x), -2),
    "self quotient": (lambda x: x.exp() / x, np.exp(X) * (X**2 - 2 * X + 2) / X**3),
}


@pytest.mark.parametrize("name", SECOND_DERIVATIVES)
def test_second_derivative_of(name: str) -> None:
    function, expected = SECOND_DERIVATIVES[name]
    x = leaf(X)
    assert_values(grad(derivative(function(x), x), x)[0], expected)


def test_mixed_derivative_is_symmetric() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    f = (x * x * y.exp()).sum()
    by_xy = grad(derivative(f, x).sum(), y, retain_graph=True)[0]
    by_yx = grad(derivative(f, y).sum(), x)[0]
    assert_values(by_xy, by_yx.numpy())


def test_hessian_vector_product() -> None:
    matrix = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 1.0], [4.0, 0.0, 5.0]], np.float32)
    a, x, v = dg.tensor(matrix.tolist()), leaf(1.0, 2.0, 3.0), dg.tensor([1.0, -1.0, 2.0])
    gradient = derivative((x * (a @ x)).sum(), x)
    (product,) = grad(gradient, x, v)
    assert_values(product, (matrix + matrix.T) @ v.numpy())


def test_hessian_row_by_row() -> None:
    x = leaf(2.0, 3.0)
    gradient = derivative(x[0] * x[0] * x[1], x)
    rows = [grad(gradient[i], x, retain_graph=True)[0].tolist() for i in range(2)]
    assert rows == [[6, 4], [4, 0]]


def test_second_derivative_through_matrix_products() -> None:
    x = dg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    second = grad(derivative((x @ x).sum(), x).sum(), x)[0]
    # The gradient at i, j is the sum of row j plus the sum of column i; their total is 4 sum(x).
    assert_values(second, [[4, 4], [4, 4]])


def test_second_derivative_through_broadcasting() -> None:
    x = leaf(2.0)
    y = x * x * x * dg.ones(2, 3)
    assert_values(grad(derivative(y, x), x)[0], 6 * 12)


def test_gradient_with_respect_to_a_grad_output() -> None:
    x, v = leaf(1.0, 2.0), leaf(5.0, 6.0)
    (by_x,) = grad(x * x, x, v, create_graph=True)
    assert_values(grad(by_x.sum(), v)[0], [2, 4])


def test_jacobian_vector_product_by_two_backward_passes() -> None:
    x, dummy = leaf(1.0, 2.0), leaf(0.0, 0.0)
    (by_x,) = grad(x.exp(), x, dummy, create_graph=True)
    (product,) = grad(by_x, dummy, dg.tensor([10.0, 100.0]))
    assert_values(product, np.exp([1, 2]) * [10, 100])


def test_loss_that_contains_a_gradient() -> None:
    x = leaf(1.0, 2.0)
    loss = cube_sum(x)
    penalty = derivative(loss, x)
    (loss + (penalty * penalty).sum()).backward()
    assert_values(x.grad, 3 * np.array([1, 4]) + 36 * np.array([1, 8]))


def test_gradient_of_an_interior_tensor_is_differentiable() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    by_y = derivative(y * y, y)
    assert_values(grad(by_y.sum(), x)[0], [4, 8])


def test_gradient_does_not_depend_on_another_tensor_made_from_the_leaf() -> None:
    x = leaf(1.0, 2.0)
    by_x = derivative(cube_sum(x), x)
    by_square = x * x
    with pytest.raises(RuntimeError, match=r"not have been used in the graph\. Set allow_unused"):
        grad(by_x.sum(), by_square)


def test_dependent_backward() -> None:
    x = leaf(2.0)
    y = x**2
    z = y**3
    grads = grad([y, z], x, create_graph=True)
    assert_values(grads[0], 4 + 6 * 2.0**5)
    assert_values(grad(grads[0], x)[0], 2 + 30 * 2.0**4)


def test_multi_output_node_in_a_second_derivative() -> None:
    x = leaf(2.0, 3.0)
    first, second = x.unbind()
    by_x = derivative(first * first * second, x)
    assert_values(grad(by_x[0], x)[0], [6, 4])


def test_unused_output_in_a_second_derivative_counts_as_zero() -> None:
    x = leaf(2.0, 3.0)
    first, _ = x.unbind()
    by_x = derivative(first * first * first, x)
    assert_values(grad(by_x.sum(), x)[0], [12, 0])


def test_create_graph_keeps_the_graph() -> None:
    x = leaf(1.0, 2.0)
    loss = cube_sum(x)
    grad(loss, x, create_graph=True)
    assert_values(grad(loss, x)[0], [3, 12])


def test_create_graph_with_retain_graph_false_frees_the_first_graph() -> None:
    x = leaf(1.0, 2.0)
    loss = cube_sum(x)
    grad(loss, x, create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError, match=AGAIN):
        grad(loss, x)


def test_second_derivative_frees_both_graphs() -> None:
    x = leaf(1.0, 2.0)
    loss = cube_sum(x)
    derivative(loss, x).sum().backward()
    with pytest.raises(RuntimeError, match=AGAIN):
        loss.backward()


def test_second_derivative_can_be_repeated_with_retain_graph() -> None:
    x = leaf(1.0, 2.0)
    by_x = derivative(cube_sum(x), x)
    grad(by_x.sum(), x, retain_graph=True)
    assert_values(grad(by_x.sum(), x)[0], [6, 12])


def test_backward_with_create_graph_warns() -> None:
    x = leaf(1.0, 2.0)
    with pytest.warns(UserWarning, match=CYCLE):
        cube_sum(x).backward(create_graph=True)


def test_grad_with_create_graph_does_not_warn() -> None:
    x = leaf(1.0, 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grad(cube_sum(x), x, create_graph=True)


@ignore_cycle
def test_backward_with_create_graph_leaves_a_grad_with_history() -> None:
    x = leaf(1.0, 2.0)
    cube_sum(x).backward(create_graph=True)
    assert x.grad is not None
    assert_values(grad(x.grad.sum(), x)[0], [6, 12])


@ignore_cycle
def test_create_graph_accumulates_into_a_new_grad() -> None:
    x = leaf(1.0, 2.0)
    cube_sum(x).backward()
    first = x.grad
    cube_sum(x).backward(create_graph=True)
    assert x.grad is not first
    assert_values(first, [3, 12])
    assert_values(x.grad, [6, 24])


@ignore_cycle
def test_accumulated_grads_differentiate_together() -> None:
    x = leaf(1.0, 2.0)
    cube_sum(x).backward(create_graph=True)
    (x * x).sum().backward(create_graph=True)
    assert x.grad is not None
    assert_values(grad(x.grad.sum(), x)[0], [8, 14])


def test_hook_is_recorded_with_create_graph() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    y.register_hook(lambda g: g * x)
    by_x = derivative(y, x)
    assert_values(by_x, [2, 8])
    assert_values(grad(by_x.sum(), x)[0], [4, 8])


def test_hook_runs_again_when_the_second_derivative_passes_it() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    log: list[list[float]] = []
    y.register_hook(lambda g: log.append(g.tolist()))
    by_x = derivative(y * y, x)
    grad(by_x.sum(), x)
    assert len(log) == 2


def test_second_derivative_of_a_shared_subexpression() -> None:
    x = leaf(0.5)
    y = x.exp()
    assert_values(grad(derivative(y * y + y, x), x)[0], 4 * np.exp(1) + np.exp(0.5))


def test_gradient_descent_steps_can_be_differentiated() -> None:
    rate, x = leaf(0.1), leaf(2.0)
    for _ in range(3):
        x = x - rate * derivative(x * x, x)
    # Each step multiplies x by 1 - 2 rate.
    assert_values(grad(x, rate)[0], 2 * 3 * 0.8**2 * -2)

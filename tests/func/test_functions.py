"""Functions and custom operators inside vmap and the other transformations."""

from typing import Any, ClassVar

import numpy as np
import pytest

import dyngraph as dg

func: Any = dg.func


class Cube(dg.autograd.Function):
    """x**3, which saves an input and an intermediate tensor."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * tangent


class Scaled(dg.autograd.Function):
    """x * w, saved the old way, with something that is no tensor."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, power: int) -> Any:
        ctx.power = power
        ctx.save_for_backward(x, w)
        return x * w**power

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, w = ctx.saved_tensors
        return grad * w**ctx.power, (grad * x * ctx.power * w ** (ctx.power - 1)).sum(), None


def rows() -> Any:
    return dg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def test_function_is_mapped() -> None:
    assert func.vmap(Cube.apply)(rows()).tolist() == (rows() ** 3).tolist()


def test_gradient_goes_through_the_mapped_call() -> None:
    x = rows().requires_grad_()
    func.vmap(Cube.apply)(x).sum().backward()
    assert x.grad.tolist() == (3 * rows() ** 2).tolist()


def test_gradient_inside_of_the_mapped_function() -> None:
    found = func.vmap(func.grad(lambda x: Cube.apply(x).sum()))(rows())
    assert found.tolist() == (3 * rows() ** 2).tolist()


def test_second_derivative_through_the_mapped_call() -> None:
    x = rows().requires_grad_()
    (g,) = dg.autograd.grad(func.vmap(Cube.apply)(x).sum(), x, create_graph=True)
    assert dg.autograd.grad(g.sum(), x)[0].tolist() == (6 * rows()).tolist()


def test_hessian_of_a_function() -> None:
    found = func.hessian(lambda x: Cube.apply(x).sum())(dg.tensor([1.0, 2.0]))
    assert found.tolist() == [[6.0, 0.0], [0.0, 12.0]]


def test_tangent_goes_through_the_mapped_call() -> None:
    _, tangent = func.jvp(func.vmap(Cube.apply), (rows(),), (dg.ones(3, 2),))
    assert tangent.tolist() == (3 * rows() ** 2).tolist()


def test_jacobian_by_forward_mode() -> None:
    found = func.jacfwd(Cube.apply)(dg.tensor([1.0, 2.0]))
    assert found.tolist() == [[3.0, 0.0], [0.0, 12.0]]


def test_shared_input_gets_the_sum_of_the_gradients() -> None:
    x: Any = rows().requires_grad_()
    w: Any = dg.tensor(2.0, requires_grad=True)
    func.vmap(lambda x: Scaled.apply(x, w, 2))(x).sum().backward()
    assert w.grad.item() == 4 * rows().sum().item()
    assert x.grad.tolist() == [[4.0, 4.0]] * 3


def test_gradient_for_a_shared_input_of_each_example() -> None:
    w = dg.tensor(2.0)
    grads = func.vmap(func.grad(lambda w, x: Scaled.apply(x, w, 2).sum()), (None, 0))(w, rows())
    assert grads.tolist() == (4 * rows().sum(1)).tolist()


def test_maps_in_each_other() -> None:
    assert func.vmap(func.vmap(Cube.apply))(rows()).tolist() == (rows() ** 3).tolist()


class Ruled(Cube):
    """With a rule of its own, which notes what it is told."""

    told: ClassVar[list[Any]] = []

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        Ruled.told.append((info.batch_size, info.randomness, in_dims, tuple(x.shape)))
        return Cube.apply(x), 0


def test_own_rule_is_told_of_the_batch() -> None:
    Ruled.told.clear()
    assert func.vmap(Ruled.apply)(rows()).tolist() == (rows() ** 3).tolist()
    assert Ruled.told == [(3, "error", (0,), (3, 2))]


def test_gradient_goes_through_an_own_rule() -> None:
    found = func.vmap(func.grad(lambda x: Ruled.apply(x).sum()))(rows())
    assert found.tolist() == (3 * rows() ** 2).tolist()


def test_own_rule_is_not_asked_where_nothing_is_mapped() -> None:
    Ruled.told.clear()
    constant = dg.ones(2)
    func.vmap(lambda x: x + Ruled.apply(constant))(rows())
    assert Ruled.told == []


def test_own_rule_may_return_an_output_without_batch() -> None:
    class Shape(dg.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 0 + 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return dg.full((2,), 2.0), None

    assert func.vmap(Shape.apply)(rows()).tolist() == [[2.0, 2.0]] * 3


def test_rule_and_generated_rule_are_refused() -> None:
    class Both(Ruled):
        generate_vmap_rule = True

    with pytest.raises(RuntimeError, match="both generate_vmap_rule=True and an overriden vmap"):
        func.vmap(Both.apply)(rows())


def test_rule_that_returns_no_dims_is_refused() -> None:
    class One(Cube):
        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return x

    with pytest.raises(RuntimeError, match="to have two returns"):
        func.vmap(One.apply)(rows())


def test_custom_operator_is_mapped_by_its_rule() -> None:
    op = dg.library.custom_op(
        "tests::mapped_sine",
        lambda x: dg.tensor(np.sin(x.detach().numpy())),
        mutates_args=(),
    )
    op.register_vmap(lambda info, in_dims, x: (op(x), in_dims[0]))
    assert func.vmap(op)(rows()).tolist() == np.sin(rows().numpy()).tolist()


def test_custom_operator_is_mapped_by_its_fake() -> None:
    op = dg.library.custom_op(
        "tests::faked_sine",
        lambda x: dg.tensor(np.sin(x.detach().numpy())),
        mutates_args=(),
    )
    op.register_fake(lambda x: dg.empty_like(x))
    assert func.vmap(op)(rows()).tolist() == np.sin(rows().numpy()).tolist()

"""Leaves that inference mode made, outside of it: what operators on them record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg
from dyngraph.autograd import forward_ad as fwd
from tests.graph.helpers import assert_values, leaf

SAVED = "Inference tensors cannot be saved for backward"


def inference_leaf(*shape: int) -> dg.Tensor:
    with dg.inference_mode():
        return dg.full(shape or (2,), 2.0, requires_grad=True)


ALONE: dict[str, Callable[[dg.Tensor], Any]] = {
    "of one": lambda x: x.exp(),
    "of one, which saves nothing": lambda x: x.sum(),
    "of itself twice": lambda x: x * x,
    "of itself twice, which saves nothing": lambda x: x + x,
    "of it and a constant": lambda x: x * x.detach(),
    "matrix product": lambda x: x @ x,
    "of a list": lambda x: dg.cat([x, x]),
    "einsum": lambda x: dg.einsum("i,i->", x, x),
    "of several results": lambda x: x.max(0)[0],
    "with numbers": lambda x: x.clamp(0, 1),
    "power": lambda x: x.pow(2),
    "layer": lambda x: dg.nn.functional.layer_norm(x, (2,)),
    "loss": lambda x: dg.nn.functional.cross_entropy(x.view(1, 2), dg.tensor([0])),
    "of a view": lambda x: x[:1] * x[1:],
}


@pytest.mark.parametrize("operator", ALONE.values(), ids=ALONE)
def test_operator_on_inference_tensors_alone_is_not_recorded(
    operator: Callable[[dg.Tensor], dg.Tensor],
) -> None:
    y = operator(inference_leaf())
    assert (y.requires_grad, y.is_leaf, y.is_inference()) == (False, True, False)


def test_result_of_inference_tensors_alone_can_not_go_backward() -> None:
    with pytest.raises(RuntimeError, match="does not require grad"):
        inference_leaf().exp().sum().backward()


def test_operator_is_not_recorded_where_normal_mode_is_inside_inference_mode() -> None:
    x = inference_leaf()
    with dg.inference_mode(), dg.inference_mode(False):
        y = x.exp()
    assert (y.requires_grad, y.is_inference()) == (False, False)


VIEWS: dict[str, Callable[[dg.Tensor], Any]] = {
    "view": lambda x: x.view(4, 1),
    "reshape": lambda x: x.reshape(4),
    "slice": lambda x: x[:1],
    "select": lambda x: x[0],
    "transpose": lambda x: x.t(),
    "expand": lambda x: x.expand(3, 2, 2),
    "as_strided": lambda x: x.as_strided((2,), (1,)),
    "split": lambda x: x.split(1)[0],
    "iteration": lambda x: next(iter(x)),
    "detach": lambda x: x.detach(),
    "view_as": lambda x: x.view_as(dg.ones(4)),
}


@pytest.mark.parametrize("show", VIEWS.values(), ids=VIEWS)
def test_view_outside_is_an_inference_tensor_that_is_not_recorded(
    show: Callable[[dg.Tensor], dg.Tensor],
) -> None:
    view = show(inference_leaf(2, 2))
    assert (view.requires_grad, view.is_leaf, view.is_inference()) == (False, True, True)


def test_view_outside_meets_a_normal_constant_unrecorded() -> None:
    assert not (inference_leaf()[:1] * dg.ones(1)).requires_grad


WITH_NORMAL: dict[str, Callable[[dg.Tensor], dg.Tensor]] = {
    "constant": lambda x: x + dg.ones(2),
    "constant that is saved": lambda x: x * dg.ones(2),
    "leaf": lambda x: x + leaf(1.0, 1.0),
    "number": lambda x: x * 1,
    "divided by a number": lambda x: x / 1.0,
    "mask": lambda x: dg.where(dg.tensor([True, True]), x, x),
    "index": lambda x: x[dg.tensor([0, 1])],
    "written": lambda x: dg.zeros(2).add_(x),
}


@pytest.mark.parametrize("operator", WITH_NORMAL.values(), ids=WITH_NORMAL)
def test_operator_with_a_normal_tensor_is_recorded(
    operator: Callable[[dg.Tensor], dg.Tensor],
) -> None:
    x = inference_leaf()
    operator(x).sum().backward()
    assert_values(x.grad, [1, 1])


@pytest.mark.parametrize(
    "operator",
    [lambda x: x * leaf(1.0, 1.0), lambda x: leaf(1.0, 1.0).clone().mul_(x)],
    ids=["operator", "write"],
)
def test_inference_tensor_that_requires_grad_may_not_be_saved_either(
    operator: Callable[[dg.Tensor], object],
) -> None:
    with pytest.raises(RuntimeError, match=SAVED):
        operator(inference_leaf())


@pytest.mark.parametrize(
    "copy", [lambda x: x.clone(), lambda x: x.half()], ids=["clone", "conversion"]
)
def test_copy_is_a_normal_tensor_with_a_history(copy: Callable[[dg.Tensor], dg.Tensor]) -> None:
    x = inference_leaf()
    y = copy(x)
    (y * y).sum().backward()
    assert not y.is_inference()
    assert_values(x.grad, [4, 4])


# --- Functions and custom operators ---------------------------------------------------------------


class Double(dg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        return grad * 2


class Saving(Double):
    @staticmethod
    def forward(ctx: Any, x: dg.Tensor, *others: dg.Tensor) -> dg.Tensor:
        ctx.save_for_backward(x, *others)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: dg.Tensor) -> Any:
        return grad * 2, None


def test_function_of_an_inference_leaf_is_recorded() -> None:
    x = inference_leaf()
    Double.apply(x).sum().backward()
    assert_values(x.grad, [2, 2])


def test_function_may_not_save_the_inference_leaf_that_it_is_recorded_for() -> None:
    with pytest.raises(RuntimeError, match=SAVED):
        Saving.apply(inference_leaf())


def test_function_of_a_normal_leaf_may_not_save_an_inference_tensor() -> None:
    with pytest.raises(RuntimeError, match=SAVED):
        Saving.apply(leaf(1.0, 2.0), inference_leaf().detach())


def test_function_that_is_not_recorded_may_save_inference_tensors() -> None:
    assert_values(Saving.apply(inference_leaf().detach()), [4, 4])


def test_checkpoint_may_not_keep_an_inference_leaf() -> None:
    with pytest.raises(RuntimeError, match=SAVED):
        dg.utils.checkpoint.checkpoint(lambda x: x * 2, inference_leaf(), use_reentrant=False)


def test_custom_operator_on_inference_tensors_alone_is_not_recorded_itself() -> None:
    @dg.library.custom_op("inference_leaves::exp", mutates_args=())
    def exp(x: dg.Tensor) -> dg.Tensor:
        return x.exp()

    exp.register_autograd(lambda ctx, grad: grad)
    assert not exp(inference_leaf()).requires_grad


# --- transforms and forward mode ------------------------------------------------------------------


def test_mapped_function_of_an_inference_leaf_has_no_history() -> None:
    y = dg.func.vmap(lambda x: x * x)(inference_leaf())
    assert not y.requires_grad
    assert_values(y, [4, 4])


def test_operator_on_inference_tensors_alone_passes_no_tangent_on() -> None:
    x = inference_leaf()
    with fwd.dual_level():
        dual = fwd.make_dual(x, dg.ones(2))
        assert fwd.unpack_dual(dual.exp()).tangent is None
        assert fwd.unpack_dual(dual[:1]).tangent is None


def test_operator_on_an_inference_tensor_and_a_normal_one_passes_tangents_on() -> None:
    x = inference_leaf().detach()
    with fwd.dual_level():
        dual = fwd.make_dual(x, dg.ones(2))
        assert_values(fwd.unpack_dual(dual * dg.ones(2)).tangent, [1, 1])
        assert_values(fwd.unpack_dual(dual * 3).tangent, [3, 3])

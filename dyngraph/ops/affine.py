"""Affine maps: products of matrices and vectors that are added to something.

What is added broadcasts to the product's shape, and has the gradient of all that it was added to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from dyngraph.kernels import same
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out, write_out
from dyngraph.ops.products import (
    batched_product,
    matrix_by_vector,
    matrix_product,
    rows,
    same_dtype,
)
from dyngraph.tensor import Tensor

# --- products that are added ------------------------------------------------------------------


def _expanded(self: Any, shape: tuple[int, ...]) -> Any:
    """Raises where what a product is added to does not broadcast to its shape."""
    for back in range(1, self.ndim + 1):
        n = self.shape[-back]
        if back > len(shape) or n not in (1, shape[-back]):
            raise RuntimeError(
                f"The expanded size of the tensor ({shape[-back] if back <= len(shape) else 1}) "
                f"must match the existing size ({n}) at non-singleton dimension "
                f"{len(shape) - back}.  Target sizes: {list(shape)}.  Tensor sizes: "
                f"{list(self.shape)}"
            )
    return jnp.broadcast_to(self, shape)


def _sum_of(self: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """`beta * self + alpha * product`, where beta = 0 leaves out NaN and infinity too."""
    same_dtype(self, product)
    self = _expanded(self, product.shape)
    beta, alpha = jnp.asarray(beta).astype(self.dtype), jnp.asarray(alpha).astype(self.dtype)
    return jnp.where(beta == 0, jnp.zeros((), self.dtype), beta * self) + alpha * product


def _addmm_plain(self: Any, mat1: Any, mat2: Any) -> Any:
    product = matrix_product(mat1, mat2)
    same_dtype(self, product)
    return _expanded(self, product.shape) + product


_addmm = define(
    "addmm",
    _addmm_plain,
    self=same,
    mat1=lambda grad, mat2: grad @ jnp.conj(mat2).T,
    mat2=lambda grad, mat1: jnp.conj(mat1).T @ grad,
)


def _define_added(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    return define(name, function, beta=None, alpha=None)


_addmm_scaled = _define_added(
    "addmm",
    lambda self, mat1, mat2, beta, alpha: _sum_of(self, matrix_product(mat1, mat2), beta, alpha),
)
_addmv = _define_added(
    "addmv",
    lambda self, mat, vec, beta, alpha: _sum_of(self, matrix_by_vector(mat, vec), beta, alpha),
)
_baddbmm = _define_added(
    "baddbmm",
    lambda self, batch1, batch2, beta, alpha: _sum_of(
        self, batched_product(batch1, batch2), beta, alpha
    ),
)
_addbmm = _define_added(
    "addbmm",
    lambda self, batch1, batch2, beta, alpha: _sum_of(
        self, batched_product(batch1, batch2).sum(0), beta, alpha
    ),
)


@takes_out
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)`; the input broadcasts to the product's shape.

    >>> dg.addmm(dg.ones(1), dg.ones(2, 3), dg.ones(3, 1), alpha=10)
    tensor([[31.],
            [31.]])
    """
    if type(beta) is int and beta == 1 and type(alpha) is int and alpha == 1:
        return _addmm(input, mat1, mat2)
    return _addmm_scaled(input, mat1, mat2, beta, alpha)


@takes_out
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * (mat @ vec)`; the input broadcasts to the product's shape.

    >>> dg.addmv(dg.ones(2), dg.ones(2, 3), dg.ones(3))
    tensor([4., 4.])
    """
    return _addmv(input, mat, vec, beta, alpha)


@takes_out
def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * bmm(batch1, batch2)`; the input broadcasts to the product's shape.

    >>> dg.baddbmm(dg.ones(1), dg.ones(2, 1, 3), dg.ones(2, 3, 1)).flatten()
    tensor([4., 4.])
    """
    return _baddbmm(input, batch1, batch2, beta, alpha)


@takes_out
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * bmm(batch1, batch2).sum(0)`: a batch of products, added up.

    >>> dg.addbmm(dg.ones(1), dg.ones(2, 1, 3), dg.ones(2, 3, 1))
    tensor([[7.]])
    """
    return _addbmm(input, batch1, batch2, beta, alpha)


# --- affine maps ------------------------------------------------------------------------------


def _product(self: Any, weight: Any) -> Any:
    """(..., k) and (m, k) give (..., m); a weight (k) gives (...)."""
    if self.dtype != weight.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {self.dtype} != {weight.dtype}. "
            "Convert one of them by .to()."
        )
    if weight.ndim not in (1, 2) or not self.ndim:
        raise RuntimeError(
            f"linear() expects a weight of shape (out, in) or (in), got {list(weight.shape)}, "
            f"and an input of shape (..., in), got {list(self.shape)}"
        )
    if self.shape[-1] != weight.shape[-1]:
        shape = (math.prod(self.shape[:-1]), self.shape[-1])
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({shape[0]}x{shape[1]} and "
            f"{weight.shape[-1]}x{1 if weight.ndim == 1 else weight.shape[0]})"
        )
    return self @ weight.T


def _affine(bias: Any, self: Any, weight: Any) -> Any:
    product = _product(self, weight)
    if bias.dtype != product.dtype:
        raise RuntimeError(
            f"linear() expects a bias of the input's dtype {product.dtype}, got {bias.dtype}. "
            "Convert it by .to()."
        )
    if bias.ndim > 1 or (bias.ndim and bias.shape[0] not in (1, product.shape[-1])):
        raise RuntimeError(
            f"The expanded size of the tensor ({product.shape[-1]}) must match the existing size "
            f"({bias.shape[-1]}) at non-singleton dimension {product.ndim - 1}.  Target sizes: "
            f"{list(product.shape)}.  Tensor sizes: {list(bias.shape)}"
        )
    return product + bias


def _linear_of_self(grad: Any, weight: Any) -> Any:
    weight = jnp.conj(weight)
    return grad @ weight if weight.ndim == 2 else grad[..., None] * weight


def _linear_of_weight(grad: Any, self: Any, weight_shape: Any) -> Any:
    if len(weight_shape) == 1:
        return grad.reshape(-1) @ jnp.conj(rows(self))
    return rows(grad).T @ jnp.conj(rows(self))


# The inputs stand in the order of addmm(bias, input, weight), as the edges of its node do.
_linear_rules: dict[str, Any] = {"self": _linear_of_self, "weight": _linear_of_weight}
_linear_bias = define("linear", _affine, node="AddmmBackward0", bias=same, **_linear_rules)
_linear = define("linear", _product, node="MmBackward0", **_linear_rules)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Any = None) -> Tensor:
    """The affine map `input @ weight.T + bias`: (..., in), (out, in) and (out) give (..., out).

    One node, named as the product it is: AddmmBackward0 with a bias, MmBackward0 without. Raises
    RuntimeError where shapes or dtypes do not fit.

    >>> dg.nn.functional.linear(dg.ones(2), dg.tensor([[1.0, 2.0]]), dg.tensor([0.5]))
    tensor([3.5000])
    """
    if out is not None:
        return write_out(linear, out, (input, weight, bias), {})
    return _linear(input, weight) if bias is None else _linear_bias(bias, input, weight)


def _outer_product(vec1: Any, vec2: Any) -> Any:
    for name, vector in (("vec1", vec1), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vector.ndim}-D")
    return vec1[:, None] * vec2


_addr = _define_added(
    "addr",
    lambda self, vec1, vec2, beta, alpha: _sum_of(self, _outer_product(vec1, vec2), beta, alpha),
)


@takes_out
def addr(input: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * outer(vec1, vec2)`; the input broadcasts to the product's shape.

    >>> dg.addr(dg.ones(1), dg.tensor([1.0, 2.0]), dg.tensor([3.0, 4.0]))
    tensor([[4., 5.],
            [7., 9.]])
    """
    return _addr(input, vec1, vec2, beta, alpha)


def _bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    if (
        input1.shape[:-1] != input2.shape[:-1]
        or weight.ndim != 3
        or (input1.shape[-1], input2.shape[-1]) != weight.shape[1:]
        or (bias is not None and bias.shape != weight.shape[:1])
    ):
        raise RuntimeError(
            "bilinear(): expected input1 (..., n), input2 (..., m), weight (out, n, m) and bias "
            f"(out), got shapes {list(input1.shape)}, {list(input2.shape)}, {list(weight.shape)} "
            f"and {None if bias is None else list(bias.shape)}"
        )
    out = jnp.einsum("...i,oij,...j->...o", input1, weight, input2)
    return out if bias is None else out + bias


bilinear = define(
    "bilinear",
    _bilinear,
    node="TrilinearBackward0",
    doc="""`input1 @ weight[o] @ input2 + bias[o]` for each output o: a form linear in both inputs.

    `input1: (..., n), input2: (..., m), weight: (out, n, m), bias: (out) -> (..., out)`. Raises
    RuntimeError where shapes do not fit.

    >>> dg.bilinear(dg.tensor([2.0]), dg.tensor([3.0]), dg.ones(1, 1, 1))
    tensor([6.])
    """,
)


__all__ = [
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
    "bilinear",
]

METHODS = (
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
)
"""The functions of this file that are methods of Tensor too."""

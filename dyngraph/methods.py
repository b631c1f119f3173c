"""The one knot: operators make tensors, and here they become the methods of Tensor.

`methods.pyi`, by which type checkers know the methods, is written by `generated`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from dyngraph import backward as _backward
from dyngraph.dispatch import write_dispatcher
from dyngraph.ops import (
    arithmetic,
    assignment,
    choosing,
    comparison,
    in_place,
    indexing,
    powers,
    products,
    reduction,
    rounding,
)
from dyngraph.tensor import Tensor

FAMILIES = """
    arithmetic powers trigonometry special rounding complexes choosing comparison
    activation piecewise_linear
    reduction extremes quantiles moments norms scans softmaxes
    shape permutation repetition joining parts diagonals padding
    where_safe indexing gathering scattering slices masks sorting searching
    histograms
    products affine contractions grouped embeddings dropouts normalization channel_normalization
    attention losses class_losses
    placing differences distances copies gamma_functions bessel_functions
    orthogonal_polynomials matrices triangular factorizations indefinite
    decompositions fourier convolution pooling max_pooling resampling patches
    margin_losses sequence_losses cells masked_reductions masked_moments
    conversion from_data interchange filled ranges windows random distributions
    memory_formats memory assignment in_place random_in_place random_slopes
    dropout_forms channel_dropouts gumbel fractional_pooling layouts
    segments recurrent low_rank native_losses native_layers
""".split()


def bind_operators() -> None:
    """Binds what each family of operators lists in its `METHODS` and `PROPERTIES`."""
    for family in FAMILIES:
        module = importlib.import_module(f"dyngraph.ops.{family}")
        for name in module.METHODS:
            setattr(Tensor, name, getattr(module, name))
        for name, function in getattr(module, "PROPERTIES", {}).items():
            accessors = function if isinstance(function, tuple) else (function,)
            setattr(Tensor, name, property(*accessors, doc=accessors[0].__doc__))


def python_operator(operator: Callable[..., Any], *, reflected: bool = False) -> Any:
    """A binary operator as a special method: `__add__`, or `__radd__` when reflected."""
    spec, table = operator.spec, operator.table  # type: ignore[attr-defined]
    first, second = ("input" if n == "self" else n for n in spec.inputs)
    signature = f"{second}, {first}" if reflected else f"{first}, {second}"
    differentiable = operator.differentiable  # type: ignore[attr-defined]
    return write_dispatcher(
        spec, signature, table=table, python_operator=True, differentiable=differentiable
    )


def bind_python_operators() -> None:
    """Binds `+`, `<`, `@`, `[]` and the others."""
    both: dict[str, Callable[..., Any]] = {
        "add": arithmetic.add,
        "sub": arithmetic.sub,
        "mul": arithmetic.mul,
        "truediv": arithmetic.div,
        "floordiv": arithmetic.floor_divide,
        "mod": arithmetic.remainder,
        "and": comparison.bitwise_and,
        "or": comparison.bitwise_or,
        "xor": comparison.bitwise_xor,
        "lshift": comparison.bitwise_left_shift,
        "rshift": comparison.bitwise_right_shift,
    }
    for name, operator in both.items():
        setattr(Tensor, f"__{name}__", python_operator(operator))
        setattr(Tensor, f"__r{name}__", python_operator(operator, reflected=True))
        setattr(Tensor, f"__i{name}__", in_place.AUGMENTED[name])
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Tensor, f"__{name}__", python_operator(getattr(comparison, name)))
    special: dict[str, Callable[..., Any]] = {
        "__pow__": powers.pow,
        "__ipow__": in_place.AUGMENTED["pow"],
        "__rpow__": _power_of,
        "__matmul__": products.matmul,
        "__rmatmul__": _matrix_product_of,
        "__neg__": arithmetic.neg,
        "__pos__": arithmetic.positive,
        "__abs__": arithmetic.abs,
        "__invert__": comparison.bitwise_not,
        "__round__": _rounded,
        "__getitem__": indexing.getitem,
        "__setitem__": assignment.setitem,
        "__contains__": reduction.contains,
    }
    for name, function in special.items():
        setattr(Tensor, name, function)


def _power_of(self: Tensor, base: Any) -> Tensor:
    return powers.pow(base, self)


def _matrix_product_of(self: Tensor, other: Any) -> Tensor:
    return products.matmul(other, self)


def _rounded(self: Tensor, decimals: int = 0) -> Tensor:
    return rounding.round(self, decimals=decimals)


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Adds the gradients of this tensor into the `.grad` of the leaves that it was made from.

    `gradient` is the gradient to start from; a tensor of one element starts from 1. See
    `dyngraph.autograd.backward` for the rest.

    >>> x = dg.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    _backward.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The elements where `condition` holds, and those of `other` elsewhere.

    >>> x = dg.tensor([-1.0, 2.0])
    >>> x.where(x > 0, 0.0)
    tensor([0., 2.])
    """
    return choosing.where(condition, self, other)


bind_operators()
bind_python_operators()
Tensor.backward = backward  # type: ignore[attr-defined]
Tensor.where = where  # type: ignore[attr-defined]

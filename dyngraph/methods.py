"""The one knot: operators make tensors, and here they become the methods of Tensor."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from dyngraph import backward as _backward
from dyngraph.dispatch import write_dispatcher
from dyngraph.ops import indexing, linalg, pointwise, reduction
from dyngraph.tensor import Tensor

FAMILIES = ("pointwise", "reduction", "shape", "indexing", "linalg", "nn", "creation", "conversion", "random")


def bind_operators() -> None:
    """Binds what each family of operators lists in its `METHODS` and `PROPERTIES`."""
    for family in FAMILIES:
        module = importlib.import_module(f"dyngraph.ops.{family}")
        for name in module.METHODS:
            setattr(Tensor, name, getattr(module, name))
        for name, function in getattr(module, "PROPERTIES", {}).items():
            setattr(Tensor, name, property(function, doc=function.__doc__))


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
        "add": pointwise._add,
        "sub": pointwise._sub,
        "mul": pointwise.mul,
        "truediv": pointwise.true_divide,
        "floordiv": pointwise.floor_divide,
        "mod": pointwise.remainder,
        "and": pointwise.bitwise_and,
        "or": pointwise.bitwise_or,
        "xor": pointwise.bitwise_xor,
        "lshift": pointwise.bitwise_left_shift,
        "rshift": pointwise.bitwise_right_shift,
    }
    for name, operator in both.items():
        setattr(Tensor, f"__{name}__", python_operator(operator))
        setattr(Tensor, f"__r{name}__", python_operator(operator, reflected=True))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Tensor, f"__{name}__", python_operator(getattr(pointwise, name)))
    special: dict[str, Callable[..., Any]] = {
        "__pow__": pointwise.pow,
        "__rpow__": lambda self, base: pointwise.pow(base, self),
        "__matmul__": linalg.matmul,
        "__rmatmul__": lambda self, other: linalg.matmul(other, self),
        "__neg__": pointwise.neg,
        "__pos__": pointwise.positive,
        "__abs__": pointwise.abs,
        "__invert__": pointwise.bitwise_not,
        "__round__": lambda self, decimals=0: pointwise.round(self, decimals=decimals),
        "__getitem__": indexing.getitem,
        "__contains__": reduction.contains,
    }
    for name, function in special.items():
        setattr(Tensor, name, function)


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


bind_operators()
bind_python_operators()
Tensor.backward = backward  # type: ignore[attr-defined]

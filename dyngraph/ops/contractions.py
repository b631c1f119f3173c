"""Products summed over chosen dims: `einsum`, `tensordot`, and the Kronecker and cross products.

Operands of one product have one dtype, as in PyTorch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp

from dyngraph.ops.arguments import with_parameters
from dyngraph.ops.host_values import described
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.ops.products import same_dtype
from dyngraph.ops.rules import transposed
from dyngraph.tensor import Tensor, canonical_dim


def _contract(*operands: Any, equation: str) -> Any:
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        few = "fewer" if len(operands) < len(terms) else "more"
        raise RuntimeError(
            f"einsum(): {few} operands were provided than specified in the equation: "
            f"{len(operands)} for {equation!r}"
        )
    for operand in operands[1:]:
        same_dtype(operands[0], operand, "einsum(): operands must have the same dtype")
    if "..." in equation:
        return jnp.einsum(equation, *operands)
    sizes: dict[str, int] = {}
    for i, (term, operand) in enumerate(zip(terms, operands, strict=True)):
        if len(term) != operand.ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(term)}) does not match "
                f"the number of dimensions ({operand.ndim}) for operand {i} and no ellipsis was "
                "given"
            )
        for label, size in zip(term, operand.shape, strict=True):
            seen = sizes.get(label, 1)
            if size != seen and 1 not in (size, seen):
                raise RuntimeError(
                    f"einsum(): subscript {label} has size {size} for operand {i} which doesn't "
                    f"broadcast with previously seen size {seen}"
                )
            sizes[label] = max(size, seen) if 0 not in (size, seen) else 0
    for label in right:
        if label not in sizes:
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input "
                "operand"
            )
    if not arrow:
        right = "".join(sorted(label for label in sizes if left.count(label) == 1))
    # A dim of size 1 that broadcasts is taken out, since JAX's einsum would refuse it.
    given = []
    for i, operand in enumerate(operands):
        out = [d for d, label in enumerate(terms[i]) if operand.shape[d] == 1 != sizes[label]]
        terms[i] = "".join(label for d, label in enumerate(terms[i]) if d not in out)
        given.append(jnp.squeeze(operand, out))
    return jnp.einsum(f"{','.join(terms)}->{right}", *given)


@functools.cache
def _einsum_operator(count: int) -> Callable[..., Any]:
    """The contraction of `count` operands: linear in each, so its rule is a transposition."""
    names = [f"operand{i}" for i in range(count)]

    def rule(place: int) -> Callable[..., Any]:
        def transpose(grad: Any, shape: Any, equation: str, *others: Any) -> Any:
            fixed = [jnp.conj(other).astype(grad.dtype) for other in others]

            def of_one(operand: Any) -> Any:
                return _contract(*fixed[:place], operand, *fixed[place:], equation=equation)

            return transposed(of_one, shape, grad)

        others = [n for n in names if n != names[place]]
        return with_parameters(transpose, ["grad", f"{names[place]}_shape", "equation", *others])

    rules: dict[str, Any] = {name: rule(place) for place, name in enumerate(names)}
    return define(
        "einsum",
        with_parameters(_contract, names, ["equation"]),
        signature=", ".join([*names, "equation"]),
        doc="A contraction, see `einsum`.",
        **rules,
    )


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Products, summed over the subscripts that the result of `equation` leaves out.

    `"ij,jk->ik"` multiplies matrices. Without `->` the result has the subscripts that occur once,
    in alphabetical order; `...` stands for any dims. The operands may come as a list, and instead
    of an equation each may be followed by a list of ints: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.
    Raises RuntimeError where operands don't fit the equation.

    >>> dg.einsum("i,i->", dg.tensor([1.0, 2.0]), dg.tensor([3.0, 4.0]))
    tensor(11.)
    """
    if not isinstance(equation, str):
        equation, operands = _from_lists((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not operands:
        raise ValueError("einsum(): must provide at least one operand")
    return _einsum_operator(len(operands))(*operands, equation)


def _from_lists(arguments: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Equation and operands of the form that gives each operand's subscripts as a list of ints."""

    def term(subscripts: Sequence[Any]) -> str:
        return "".join(
            "..." if s is Ellipsis else chr(ord("A") + s if s < 26 else ord("a") + s - 26)
            for s in subscripts
        )

    count = len(arguments) // 2
    operands, terms = arguments[: 2 * count : 2], arguments[1 : 2 * count : 2]
    equation = ",".join(term(t) for t in terms)
    if len(arguments) % 2:
        equation += "->" + term(arguments[-1])
    return equation, tuple(operands)


def _tensordot(a: Any, b: Any, *, dims: Any) -> Any:
    if isinstance(dims, int):
        if dims < 0 or dims > min(a.ndim, b.ndim):
            raise RuntimeError(
                f"tensordot expects dims >= 0 and at most the operands' number of dims, got {dims}"
            )
        pairs = [(a.ndim - dims + i, i) for i in range(dims)]
    else:
        first, second = ([d] if isinstance(d, int) else d for d in dims)
        if len(first) != len(second):
            raise RuntimeError(
                "both dimension lists should have same length, got "
                f"{list(first)} and {list(second)}"
            )
        pairs = [
            (canonical_dim(m, a.ndim), canonical_dim(n, b.ndim))
            for m, n in zip(first, second, strict=True)
        ]
    for m, n in pairs:
        if a.shape[m] != b.shape[n] and 1 not in (a.shape[m], b.shape[n]):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a.shape[m]} in dim {m} "
                f"and second has size {b.shape[n]} in dim {n}"
            )
    same_dtype(a, b)
    for m, n in pairs:  # a dim of size 1 broadcasts: the other is summed first
        if a.shape[m] != b.shape[n]:
            if a.shape[m] == 1:
                b = b.sum(n, keepdims=True)
            else:
                a = a.sum(m, keepdims=True)
    return jnp.tensordot(a, b, ([m for m, _ in pairs], [n for _, n in pairs]))


tensordot = define(
    "tensordot",
    _tensordot,
    signature="a, b, dims=2",
    a=lambda grad, b, a_shape, dims: transposed(
        lambda a: _tensordot(a, jnp.conj(b), dims=dims), a_shape, grad
    ),
    b=lambda grad, a, b_shape, dims: transposed(
        lambda b: _tensordot(jnp.conj(a), b, dims=dims), b_shape, grad
    ),
    doc="""Sums products over several dims: the last `dims` of `a` with the first of `b`.

    `dims` may also be two lists of dims to pair. Raises RuntimeError where their sizes differ.

    >>> dg.tensordot(dg.ones(2, 3, 4), dg.ones(3, 4, 5), 2).shape
    dyngraph.Size([2, 5])
    """,
)


def _kron_of_self(grad: Any, other: Any, self_shape: Any) -> Any:
    return transposed(lambda s: jnp.kron(s, jnp.conj(other).astype(s.dtype)), self_shape, grad)


def _kron_of_other(grad: Any, self: Any, other_shape: Any) -> Any:
    return transposed(lambda o: jnp.kron(jnp.conj(self).astype(o.dtype), o), other_shape, grad)


kron = define(
    "kron",
    lambda self, other: jnp.kron(self, other),
    self=_kron_of_self,
    other=_kron_of_other,
    doc="""The Kronecker product: each element of the first operand times all of the second.

    >>> dg.kron(dg.tensor([1.0, 10.0]), dg.tensor([1.0, 2.0]))
    tensor([ 1.,  2., 10., 20.])
    """,
)


def _cross(self: Any, other: Any, *, dim: int) -> Any:
    if self.ndim != other.ndim:
        raise RuntimeError(
            "linalg.cross: inputs must have the same number of dimensions, got shapes "
            f"{list(self.shape)} and {list(other.shape)}"
        )
    at = canonical_dim(dim, self.ndim)
    if self.shape[at] != 3 or other.shape[at] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {self.shape[at]} and "
            f"{other.shape[at]}"
        )
    self, other = jnp.broadcast_arrays(self, other)
    return jnp.cross(self, other, axis=at)


_cross_operator = define(
    "linalg_cross",
    _cross,
    signature="self, other, dim",
    self=lambda grad, other, dim: _cross(jnp.conj(other), grad, dim=dim % grad.ndim),
    other=lambda grad, self, dim: _cross(grad, jnp.conj(self), dim=dim % grad.ndim),
)


@takes_out
def cross(input: Any, other: Any, dim: int | None = None) -> Tensor:
    """The cross product of vectors of three along `dim`, by default the first dim of size 3.

    The other dims broadcast. Raises RuntimeError where there is no such dim.

    >>> dg.cross(dg.tensor([1.0, 0.0, 0.0]), dg.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    if dim is None:
        shape = described(input).shape
        dim = next((d for d, n in enumerate(shape) if n == 3), None)
        if dim is None:
            raise RuntimeError(f"no dimension of size 3 in input of shape {list(shape)}")
    return _cross_operator(input, other, dim)


__all__ = [
    "cross",
    "einsum",
    "kron",
    "tensordot",
]

METHODS = (
    "cross",
    "kron",
)
"""The functions of this file that are methods of Tensor too."""

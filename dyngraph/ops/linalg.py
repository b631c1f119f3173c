"""Products of matrices and vectors.

Operands of one product have one dtype: nothing is promoted, as in PyTorch. Products run at JAX's
default precision (`jax.default_matmul_precision`). In the rules, `jnp.conj` is what PyTorch's
convention of complex gradients asks for; on real values it is nothing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph.ops.indexing import array_of, with_parameters
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor, canonical_dim

# --- what products share ----------------------------------------------------------------------


def _same_dtype(
    self: Any, other: Any, text: str = "expected m1 and m2 to have the same dtype"
) -> None:
    if self.dtype != other.dtype:
        raise RuntimeError(
            f"{text}, but got: {self.dtype} != {other.dtype}. Convert one of them by .to()."
        )


def _times(a: Any, b: Any) -> str:
    return f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]})"


def transposed(function: Callable[[Any], Any], shape: tuple[int, ...], grad: Any) -> Any:
    """What a function, linear in an input of `shape`, does to gradients of its result."""
    (result,) = jax.linear_transpose(function, jax.ShapeDtypeStruct(shape, grad.dtype))(grad)
    return result


def rows(array: Any) -> Any:
    """All dims but the last as one."""
    return array.reshape(-1, array.shape[-1])


# --- matrix times matrix ----------------------------------------------------------------------


def _mm(self: Any, mat2: Any) -> Any:
    for name, matrix in (("self", self), ("mat2", mat2)):
        if matrix.ndim != 2:
            raise RuntimeError(
                f"{name} must be a matrix, got a tensor of shape {list(matrix.shape)}"
            )
    _same_dtype(self, mat2)
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(_times(self.shape, mat2.shape))
    return self @ mat2


mm = define(
    "mm",
    _mm,
    self=lambda grad, mat2: grad @ jnp.conj(mat2).T,
    mat2=lambda grad, self: jnp.conj(self).T @ grad,
    doc="""The product of two matrices: (n, k) and (k, m) give (n, m).

    Raises RuntimeError for other shapes, and for operands of two dtypes.

    >>> dg.mm(dg.tensor([[1.0, 2.0]]), dg.tensor([[3.0], [4.0]]))
    tensor([[11.]])
    """,
)


def _bmm(self: Any, mat2: Any) -> Any:
    for name, batch in (("batch1", self), ("batch2", mat2)):
        if batch.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor, got shape {list(batch.shape)}")
    expected = [self.shape[0], self.shape[2]]
    if list(mat2.shape[:2]) != expected:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {expected} but got: "
            f"{list(mat2.shape[:2])}."
        )
    _same_dtype(self, mat2)
    return self @ mat2


bmm = define(
    "bmm",
    _bmm,
    self=lambda grad, mat2: grad @ jnp.conj(mat2).mT,
    mat2=lambda grad, self: jnp.conj(self).mT @ grad,
    doc="""The products of two batches of matrices: (b, n, k) and (b, k, m) give (b, n, m).

    Raises RuntimeError for other shapes, and for operands of two dtypes.

    >>> dg.bmm(dg.ones(2, 1, 3), dg.ones(2, 3, 1)).shape
    dyngraph.Size([2, 1, 1])
    """,
)


def _batched(self: Any, other: Any) -> Any:
    """(..., n, k) and (..., k, m) give (..., n, m); leading dims broadcast."""
    a = (self.shape[-2] if self.ndim > 1 else 1, self.shape[-1])
    b = other.shape[-2:]
    if a[1] != b[0]:
        if other.ndim == 2:
            raise RuntimeError(_times((math.prod(self.shape[:-1]), a[1]), b))
        batch = math.prod(self.shape[:-2])
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {[batch, a[1]]} but "
            f"got: {[math.prod(other.shape[:-2]), b[0]]}."
        )
    for back in range(3, 1 + min(self.ndim, other.ndim)):
        m, n = self.shape[-back], other.shape[-back]
        if m != n and 1 not in (m, n):
            raise RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at "
                f"non-singleton dimension {max(self.ndim, other.ndim) - back}, as leading dims "
                "broadcast."
            )
    _same_dtype(self, other)
    return self @ other


_matmul_batches = define(
    "matmul",
    _batched,
    node="BmmBackward0",
    self=lambda grad, other: grad @ jnp.conj(other).mT,
    other=lambda grad, self: jnp.conj(self).mT @ grad,
)
_matmul_rows = define(
    "matmul",
    _batched,
    node="MmBackward0",
    self=lambda grad, other: grad @ jnp.conj(other).T,
    other=lambda grad, self: jnp.conj(rows(self)).T @ rows(grad),
    doc="(..., n, k) and (k, m): one product of all rows.",
)


# --- with vectors -----------------------------------------------------------------------------


def _mv(self: Any, vec: Any) -> Any:
    """(..., n, k) and (k) give (..., n)."""
    count = math.prod(self.shape[:-1])
    if self.shape[-1] != vec.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({count}), mat ({count}x{self.shape[-1]}), vec "
            f"({vec.shape[0]})"
        )
    _same_dtype(self, vec, "addmv input tensors must have the same dtype")
    return self @ vec


def _strict_mv(self: Any, vec: Any) -> Any:
    if self.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(
            "vector + matrix @ vector expected, got shapes "
            f"{list(self.shape)} and {list(vec.shape)}"
        )
    return _mv(self, vec)


_mv_rules: dict[str, Any] = {
    "self": lambda grad, vec: grad[..., None] * jnp.conj(vec),
    "vec": lambda grad, self: grad.reshape(-1) @ jnp.conj(rows(self)),
}
mv = define(
    "mv",
    _strict_mv,
    **_mv_rules,
    doc="""The product of a matrix and a vector: (n, k) and (k) give (n).

    Raises RuntimeError for other shapes, and for operands of two dtypes.

    >>> dg.mv(dg.tensor([[1.0, 2.0], [3.0, 4.0]]), dg.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """,
)
_matmul_vector = define("matmul", _mv, node="MvBackward0", **_mv_rules)
_vector_matmul = define(
    "matmul",
    _batched,
    node="MmBackward0",
    self=lambda grad, other: jnp.einsum("...m,...km->k", grad, jnp.conj(other)),
    other=lambda grad, self: jnp.conj(self)[:, None] * grad[..., None, :],
    doc="(k) and (..., k, m) give (..., m).",
)


def _vectors(self: Any, other: Any) -> None:
    if self.ndim != 1 or other.ndim != 1:
        raise RuntimeError(
            f"1D tensors expected, but got {self.ndim}D and {other.ndim}D tensors. Use matmul()."
        )
    _same_dtype(self, other, "dot : expected both vectors to have same dtype")
    if self.shape != other.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {list(self.shape)} and src "
            f"{list(other.shape)} to have the same number of elements, but got {self.size} and "
            f"{other.size} elements respectively"
        )


def _dot(self: Any, tensor: Any) -> Any:
    _vectors(self, tensor)
    return self @ tensor


dot = define(
    "dot",
    _dot,
    self=lambda grad, tensor: grad * jnp.conj(tensor),
    tensor=lambda grad, self: grad * jnp.conj(self),
    doc="""The sum of the products of two vectors' elements, neither of them conjugated.

    Raises RuntimeError where they are not vectors of one length and dtype.

    >>> dg.dot(dg.tensor([1.0, 2.0]), dg.tensor([3.0, 4.0]))
    tensor(11.)
    """,
)


def _vdot(self: Any, other: Any) -> Any:
    _vectors(self, other)
    return jnp.conj(self) @ other


vdot = define(
    "vdot",
    _vdot,
    self=lambda grad, other: jnp.conj(grad) * other,
    other=lambda grad, self: grad * self,
    doc="""The inner product of two vectors: the first one's conjugate times the second.

    Raises RuntimeError where they are not vectors of one length and dtype.

    >>> dg.vdot(dg.tensor([1j]), dg.tensor([1j]))
    tensor(1.+0.j)
    """,
)


def matmul(input: Any, other: Any) -> Tensor:
    """The product that `@` is: of matrices, vectors, and batches of matrices that broadcast.

    (..., n, k) and (..., k, m) give (..., n, m); a vector is a row on the left and a column on the
    right, and its dim is gone from the result. Raises RuntimeError where shapes do not fit, for
    operands of two dtypes, and for tensors without dims.

    >>> dg.matmul(dg.ones(4, 2, 3), dg.ones(3)).shape
    dyngraph.Size([4, 2])
    """
    try:
        m, n = input.ndim, other.ndim
    except AttributeError:
        raise TypeError(
            f"matmul(): arguments must be Tensors or arrays, got {type(input).__name__} and "
            f"{type(other).__name__}"
        ) from None
    if m == 2 and n == 2:
        return mm(input, other)
    if m == 0 or n == 0:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D. Use * "
            "for a product with a number."
        )
    if n == 1:
        return dot(input, other) if m == 1 else _matmul_vector(input, other)
    if m == 1:
        return _vector_matmul(input, other)
    return _matmul_rows(input, other) if n == 2 else _matmul_batches(input, other)


def _inner(self: Any, other: Any) -> Any:
    if self.ndim and other.ndim and self.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(self.shape)} and {list(other.shape)}"
        )
    _same_dtype(self, other)
    return jnp.inner(self, other)


inner = define(
    "inner",
    _inner,
    self=lambda grad, other, self_shape: transposed(
        lambda s: jnp.inner(s, jnp.conj(other).astype(s.dtype)), self_shape, grad
    ),
    other=lambda grad, self, other_shape: transposed(
        lambda o: jnp.inner(jnp.conj(self).astype(o.dtype), o), other_shape, grad
    ),
    doc="""The sum of products over both last dims: (..., k) and (..., k).

    The result has the other dims of the first operand, then those of the second. Raises
    RuntimeError where the last dims differ.

    >>> dg.inner(dg.tensor([[1.0, 2.0], [3.0, 4.0]]), dg.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """,
)


def _outer(self: Any, vec2: Any) -> Any:
    for name, vector in (("self", self), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {vector.ndim}-D")
    return self[:, None] * vec2


outer = define(
    "outer",
    _outer,
    self=lambda grad, vec2: grad @ jnp.conj(vec2).astype(grad.dtype),
    vec2=lambda grad, self: jnp.conj(self).astype(grad.dtype) @ grad,
    doc="""All products of an element of one vector with one of the other: (n) and (m) give (n, m).

    >>> dg.outer(dg.tensor([1.0, 2.0]), dg.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """,
)

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
    _same_dtype(self, product)
    self = _expanded(self, product.shape)
    beta, alpha = jnp.asarray(beta).astype(self.dtype), jnp.asarray(alpha).astype(self.dtype)
    return jnp.where(beta == 0, jnp.zeros((), self.dtype), beta * self) + alpha * product


def _addmm_plain(self: Any, mat1: Any, mat2: Any) -> Any:
    product = _mm(mat1, mat2)
    _same_dtype(self, product)
    return _expanded(self, product.shape) + product


_addmm = define(
    "addmm",
    _addmm_plain,
    self=lambda grad: grad,
    mat1=lambda grad, mat2: grad @ jnp.conj(mat2).T,
    mat2=lambda grad, mat1: jnp.conj(mat1).T @ grad,
)


def _define_added(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    return define(name, function, beta=None, alpha=None)


_addmm_scaled = _define_added(
    "addmm",
    lambda self, mat1, mat2, beta, alpha: _sum_of(self, _mm(mat1, mat2), beta, alpha),
)
_addmv = _define_added(
    "addmv",
    lambda self, mat, vec, beta, alpha: _sum_of(self, _strict_mv(mat, vec), beta, alpha),
)
_baddbmm = _define_added(
    "baddbmm",
    lambda self, batch1, batch2, beta, alpha: _sum_of(self, _bmm(batch1, batch2), beta, alpha),
)
_addbmm = _define_added(
    "addbmm",
    lambda self, batch1, batch2, beta, alpha: _sum_of(
        self, _bmm(batch1, batch2).sum(0), beta, alpha
    ),
)


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)`; the input broadcasts to the product's shape.

    >>> dg.addmm(dg.ones(1), dg.ones(2, 3), dg.ones(3, 1), alpha=10)
    tensor([[31.],
            [31.]])
    """
    if type(beta) is int and beta == 1 and type(alpha) is int and alpha == 1:
        return _addmm(input, mat1, mat2)
    return _addmm_scaled(input, mat1, mat2, beta, alpha)


def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * (mat @ vec)`; the input broadcasts to the product's shape.

    >>> dg.addmv(dg.ones(2), dg.ones(2, 3), dg.ones(3))
    tensor([4., 4.])
    """
    return _addmv(input, mat, vec, beta, alpha)


def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * bmm(batch1, batch2)`; the input broadcasts to the product's shape.

    >>> dg.baddbmm(dg.ones(1), dg.ones(2, 1, 3), dg.ones(2, 3, 1)).flatten()
    tensor([4., 4.])
    """
    return _baddbmm(input, batch1, batch2, beta, alpha)


def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * bmm(batch1, batch2).sum(0)`: a batch of products, added up.

    >>> dg.addbmm(dg.ones(1), dg.ones(2, 1, 3), dg.ones(2, 3, 1))
    tensor([[7.]])
    """
    return _addbmm(input, batch1, batch2, beta, alpha)


# --- contractions -----------------------------------------------------------------------------


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
        _same_dtype(operands[0], operand, "einsum(): operands must have the same dtype")
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
        if a.shape[m] != b.shape[n]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a.shape[m]} in dim {m} "
                f"and second has size {b.shape[n]} in dim {n}"
            )
    _same_dtype(a, b)
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


def _trace(self: Any) -> Any:
    if self.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
    return jnp.trace(self)


trace = define(
    "trace",
    _trace,
    self=lambda grad, self_shape: grad * jnp.eye(*self_shape, dtype=grad.dtype),
    doc="""The sum of a matrix's diagonal; RuntimeError for other shapes.

    >>> dg.trace(dg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
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


def cross(input: Any, other: Any, dim: int | None = None) -> Tensor:
    """The cross product of vectors of three along `dim`, by default the first dim of size 3.

    The other dims broadcast. Raises RuntimeError where there is no such dim.

    >>> dg.cross(dg.tensor([1.0, 0.0, 0.0]), dg.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    if dim is None:
        shape = array_of(input).shape
        dim = next((d for d, n in enumerate(shape) if n == 3), None)
        if dim is None:
            raise RuntimeError(f"no dimension of size 3 in input of shape {list(shape)}")
    return _cross_operator(input, other, dim)


__all__ = [
    "addbmm",
    "addmm",
    "addmv",
    "baddbmm",
    "bmm",
    "cross",
    "dot",
    "einsum",
    "inner",
    "kron",
    "matmul",
    "mm",
    "mv",
    "outer",
    "tensordot",
    "trace",
    "vdot",
]

METHODS = (
    "addbmm",
    "addmm",
    "addmv",
    "baddbmm",
    "bmm",
    "cross",
    "dot",
    "inner",
    "kron",
    "matmul",
    "mm",
    "mv",
    "outer",
    "trace",
    "vdot",
)

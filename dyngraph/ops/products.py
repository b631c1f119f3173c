"""Products of matrices and vectors.

Operands of one product have one dtype: nothing is promoted, as in PyTorch. Products run at JAX's
default precision (`jax.default_matmul_precision`). In the rules, `jnp.conj` is what PyTorch's
convention of complex gradients asks for; on real values it is nothing.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out, write_out
from dyngraph.ops.rules import transposed
from dyngraph.tensor import Tensor

# --- what products share ----------------------------------------------------------------------


def same_dtype(
    self: Any, other: Any, text: str = "expected m1 and m2 to have the same dtype"
) -> None:
    if self.dtype != other.dtype:
        raise RuntimeError(
            f"{text}, but got: {self.dtype} != {other.dtype}. Convert one of them by .to()."
        )


def _times(a: Any, b: Any) -> str:
    return (
        f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]}): the first "
        f"has {a[1]} columns, the second {b[0]} rows. Transpose or reshape one of them."
    )


def rows(array: Any) -> Any:
    """All dims but the last as one."""
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


# --- matrix times matrix ----------------------------------------------------------------------


def matrix_product(self: Any, mat2: Any) -> Any:
    for name, matrix in (("self", self), ("mat2", mat2)):
        if matrix.ndim != 2:
            raise RuntimeError(
                f"{name} must be a matrix, got a tensor of shape {list(matrix.shape)}. Use "
                "matmul() for other shapes."
            )
    same_dtype(self, mat2)
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(_times(self.shape, mat2.shape))
    return self @ mat2


mm = define(
    "mm",
    matrix_product,
    self=lambda grad, mat2: grad @ jnp.conj(mat2).T,
    mat2=lambda grad, self: jnp.conj(self).T @ grad,
    doc="""The product of two matrices: (n, k) and (k, m) give (n, m).

    Raises RuntimeError for other shapes, and for operands of two dtypes.

    >>> dg.mm(dg.tensor([[1.0, 2.0]]), dg.tensor([[3.0], [4.0]]))
    tensor([[11.]])
    """,
)


def batched_product(self: Any, mat2: Any) -> Any:
    for name, batch in (("batch1", self), ("batch2", mat2)):
        if batch.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor, got shape {list(batch.shape)}")
    expected = [self.shape[0], self.shape[2]]
    if list(mat2.shape[:2]) != expected:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {expected} but got: "
            f"{list(mat2.shape[:2])}."
        )
    same_dtype(self, mat2)
    return self @ mat2


bmm = define(
    "bmm",
    batched_product,
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
    same_dtype(self, other)
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
            f"({vec.shape[0]}). Transpose the matrix, or reshape one of them."
        )
    same_dtype(self, vec, "addmv input tensors must have the same dtype")
    return self @ vec


def matrix_by_vector(self: Any, vec: Any) -> Any:
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
    matrix_by_vector,
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
    same_dtype(self, other, "dot : expected both vectors to have same dtype")
    if self.shape != other.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {list(self.shape)} and src "
            f"{list(other.shape)} to have the same number of elements, but got {self.size} and "
            f"{other.size} elements respectively. Reshape or slice one of them."
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


def matmul(input: Any, other: Any, *, out: Any = None) -> Tensor:
    """The product that `@` is: of matrices, vectors, and batches of matrices that broadcast.

    (..., n, k) and (..., k, m) give (..., n, m); a vector is a row on the left and a column on the
    right, and its dim is gone from the result. Raises RuntimeError where shapes do not fit, for
    operands of two dtypes, and for tensors without dims.

    >>> dg.matmul(dg.ones(4, 2, 3), dg.ones(3)).shape
    dyngraph.Size([4, 2])
    """
    if out is not None:
        return write_out(matmul, out, (input, other), {})
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
    same_dtype(self, other)
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


@takes_out
def ger(input: Tensor, vec2: Tensor) -> Tensor:
    """`outer`, by the name that BLAS has for it.

    >>> dg.ger(dg.tensor([1.0, 2.0]), dg.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    return outer(input, vec2)


__all__ = [
    "bmm",
    "dot",
    "ger",
    "inner",
    "matmul",
    "mm",
    "mv",
    "outer",
    "vdot",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""

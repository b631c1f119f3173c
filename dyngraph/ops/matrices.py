"""Functions of square matrices: determinant, inverse, powers, products.

Leading dims are batches. Whether a matrix is singular is known by its values only, so that those
functions that raise for it wait for the result; the `_ex` ones return it as `info` instead.
"""

from __future__ import annotations

import itertools
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.errors import LinAlgError
from dyngraph.ops.arguments import define_variadic, is_inexact, widened
from dyngraph.ops.host_values import array_of
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.tensor import Tensor
from dyngraph.tracing import Tracer

# --- arguments --------------------------------------------------------------------------------


def require_matrices(where: str, array: Any, name: str = "A") -> None:
    """RuntimeError unless `array` is matrices of floating point or complex numbers."""
    if array.ndim < 2:
        raise RuntimeError(
            f"{where}: The input tensor {name} must have at least 2 dimensions, got shape "
            f"{list(array.shape)}."
        )
    if not is_inexact(array):
        raise RuntimeError(
            f"{where}: Expected a floating point or complex tensor as input. Got {array.dtype}. "
            "Convert it first, for example by .float()."
        )
    if array.dtype.itemsize == 2:
        raise RuntimeError(
            f"{where}: Low precision dtypes not supported. Got {array.dtype}. Convert it by "
            ".float()."
        )


def require_square(where: str, array: Any, name: str = "A") -> None:
    """RuntimeError unless `array` is square matrices of floating point or complex numbers."""
    require_matrices(where, array, name)
    m, n = array.shape[-2:]
    if m != n:
        raise RuntimeError(
            f"{where}: {name} must be batches of square matrices, but they are {m} by {n} matrices"
        )


def adjoint(array: Any) -> Any:
    """The conjugate transpose of matrices."""
    return jnp.conj(jnp.swapaxes(array, -1, -2))


def with_batch(array: Any, batch: Any) -> Any:
    """Matrices, broadcast to these leading dims."""
    return jnp.broadcast_to(array, (*batch, *array.shape[-2:]))


def same_batch(a: Any, b: Any) -> tuple[Any, Any]:
    """Two batches of matrices, broadcast against each other in their leading dims."""
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return with_batch(a, batch), with_batch(b, batch)


def first_failure(info: Any) -> tuple[str, int] | None:
    """Which matrix of a batch failed (as the start of a message), and its info; None if none did.

    Under a JAX trace the values are not known, and nothing is found.
    """
    array = array_of(info)
    if isinstance(array, Tracer):
        return None
    values = np.asarray(array).ravel()
    failed = np.flatnonzero(values)
    if not failed.size:
        return None
    which = f"(Batch element {failed[0]}): " if array.ndim else ""
    return which, int(values[failed[0]])


def zero_pivot(factors: Any) -> Any:
    """The place, from 1, of the first 0 on the diagonal of U in an LU factorization; 0 if none."""
    zero = jnp.diagonal(factors, axis1=-2, axis2=-1) == 0
    if not zero.shape[-1]:
        return jnp.zeros(zero.shape[:-1], jnp.int32)
    return jnp.where(zero.any(-1), zero.argmax(-1) + 1, 0).astype(jnp.int32)


def diagonal_matrices(values: Any) -> Any:
    """Matrices with `values` on their diagonals."""
    return values[..., None] * jnp.eye(values.shape[-1], dtype=values.dtype)


# --- determinants -----------------------------------------------------------------------------


def _det(A: Any) -> Any:
    require_square("linalg.det", A)
    return jnp.linalg.det(A) if A.size else jnp.ones(A.shape[:-2], A.dtype)


det = define(
    "linalg_det",
    lambda self: _det(self),
    doc="""The determinant of square matrices; its gradient is right for singular ones too.

    >>> dg.det(dg.tensor([[2.0, 1.0], [0.0, -1.0]]))
    tensor(-2.)
    """,
)


def _slogdet(A: Any) -> Any:
    require_square("linalg.slogdet", A)
    sign, logarithm = jnp.linalg.slogdet(A)
    return sign, logarithm


slogdet = define(
    "linalg_slogdet",
    lambda self: _slogdet(self),
    outputs=("sign", "logabsdet"),
    returns="slogdet",
    doc="""The sign of the determinant, and the logarithm of its size, which does not overflow.

    A singular matrix gives 0 and -inf.

    >>> dg.slogdet(dg.tensor([[2.0, 0.0], [0.0, -1.0]]))
    slogdet(sign=tensor(-1.), logabsdet=tensor(0.6931))
    """,
)


def _logdet(self: Any) -> Any:
    require_square("logdet", self)
    sign, logarithm = jnp.linalg.slogdet(self)
    if jnp.iscomplexobj(self):
        return logarithm + jnp.log(sign)
    return jnp.where(sign == -1, jnp.nan, logarithm)


logdet = define(
    "logdet",
    _logdet,
    doc="""The logarithm of the determinant: NaN where it is negative, -inf where it is 0.

    >>> dg.logdet(dg.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor(0.6931)
    """,
)


# --- inverse ----------------------------------------------------------------------------------


def _inverse(self: Any) -> tuple[Any, Any]:
    require_square("linalg.inv", self)
    factors, _, permutation = jax.lax.linalg.lu(self)
    identity = jnp.broadcast_to(jnp.eye(self.shape[-1], dtype=self.dtype), self.shape)
    swapped = jnp.take_along_axis(identity, permutation[..., None], -2)
    lower = jax.lax.linalg.triangular_solve(
        factors, swapped, left_side=True, lower=True, unit_diagonal=True
    )
    inverse = jax.lax.linalg.triangular_solve(factors, lower, left_side=True, lower=False)
    return inverse, zero_pivot(factors)


_inv_ex = define(
    "linalg_inv_ex",
    _inverse,
    outputs=("inverse", "info"),
    returns="inv_ex",
    # d(A^-1) = -A^-1 dA A^-1
    self=lambda grads, inverse: -adjoint(inverse) @ grads[0] @ adjoint(inverse),
)


@takes_out
def inv_ex(A: Any, *, check_errors: bool = False) -> Any:
    """The inverse, and `info`: 0, or the place of the 0 on U's diagonal that makes A singular.

    Raises LinAlgError for a singular matrix where `check_errors` is set.

    >>> dg.linalg.inv_ex(dg.tensor([[2.0, 0.0], [0.0, 0.0]])).info
    tensor(2)
    """
    result = _inv_ex(A)
    failure = first_failure(result.info) if check_errors else None
    if failure is not None:
        which, place = failure
        raise LinAlgError(
            f"linalg.inv: {which}The diagonal element {place} is zero, the inversion could not be "
            "completed because the input matrix is singular."
        )
    return result


@takes_out
def inverse(input: Any) -> Tensor:
    """The inverse of square matrices; LinAlgError for a singular one.

    >>> dg.inverse(dg.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return inv_ex(input, check_errors=True).inverse


# --- powers and products ----------------------------------------------------------------------


def _matrix_power(self: Any, *, n: int) -> Any:
    require_square("linalg.matrix_power", widened(self))
    return jnp.linalg.matrix_power(widened(self), n).astype(self.dtype)


_power = define("linalg_matrix_power", _matrix_power)


@takes_out
def matrix_power(input: Any, n: int) -> Tensor:
    """The product of `n` copies of square matrices; of the inverse's where `n` is negative.

    >>> dg.matrix_power(dg.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    n = operator.index(n)
    return _power(input, n) if n >= 0 else _power(inverse(input), -n)


def _exponential(self: Any) -> Any:
    require_square("linalg.matrix_exp", widened(self))
    return jax.scipy.linalg.expm(widened(self)).astype(self.dtype) if self.size else self


matrix_exp = define(
    "linalg_matrix_exp",
    _exponential,
    doc="""The matrix exponential: the sum of A^k / k!.

    >>> dg.matrix_exp(dg.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """,
)


def _chain(*tensors: Any) -> Any:
    for place, tensor in enumerate(tensors):
        ends = place in (0, len(tensors) - 1)
        if tensor.ndim != 2 and not (ends and tensor.ndim == 1):
            raise RuntimeError(
                f"multi_dot(): tensor {place} must be 2D{' or 1D' if ends else ''} but got "
                f"{tensor.ndim}D"
            )
    for place, (a, b) in enumerate(itertools.pairwise(tensors)):
        if a.shape[-1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {place} and {place + 1} with shapes {list(a.shape)} and "
                f"{list(b.shape)} cannot be multiplied"
            )
    return jnp.linalg.multi_dot(tensors)


_multi_dot = define_variadic("linalg_multi_dot", _chain)


@takes_out
def multi_dot(tensors: Any) -> Tensor:
    """The product of several matrices, in the order of multiplications that costs least.

    The first and the last may be vectors.

    >>> dg.linalg.multi_dot([dg.ones(2, 3), dg.ones(3, 4), dg.ones(4)])
    tensor([12., 12.])
    """
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    return _multi_dot(tensors)


@takes_out
def chain_matmul(*matrices: Any) -> Tensor:
    """The product of several matrices, in the order of multiplications that costs least.

    >>> dg.chain_matmul(dg.ones(1, 3), dg.ones(3, 2))
    tensor([[3., 3.]])
    """
    if len(matrices) == 1:
        return matrices[0]
    return multi_dot(matrices)


__all__ = [
    "chain_matmul",
    "det",
    "inverse",
    "logdet",
    "matrix_exp",
    "matrix_power",
    "slogdet",
]

METHODS = tuple(n for n in __all__ if n != "chain_matmul")
"""The functions of this file that are methods of Tensor too."""

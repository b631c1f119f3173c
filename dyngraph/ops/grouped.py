"""Products of groups of matrices: rows that each group has in another number, as experts have."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor


def _check(mat_a: Any, mat_b: Any, offs: Any) -> None:
    for name, matrix in (("mat_a", mat_a), ("mat_b", mat_b)):
        if matrix.ndim not in (2, 3):
            raise RuntimeError(f"grouped_mm: {name} has to be 2 or 3d, got {matrix.ndim}d")
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError(
            "grouped_mm: contraction dimension of mat_a and mat_b must match, got shapes "
            f"{list(mat_a.shape)} and {list(mat_b.shape)}"
        )
    if (
        mat_a.dtype != mat_b.dtype
        or mat_a.dtype.kind == "c"
        or not jnp.issubdtype(mat_a.dtype, jnp.floating)
    ):
        raise RuntimeError(
            "grouped_mm: expected mat_a and mat_b of one floating point dtype, got "
            f"{mat_a.dtype} and {mat_b.dtype}"
        )
    if (offs is None) != (mat_a.ndim == mat_b.ndim == 3):
        raise RuntimeError(
            "grouped_mm: Have to provide offsets if there is a 2d matrix, or no offset if both "
            "matrices are 3d"
        )
    groups = [m.shape[0] for m in (mat_a, mat_b) if m.ndim == 3]
    groups += [] if offs is None else [offs.shape[0]]
    if len(set(groups)) > 1:
        raise RuntimeError(
            f"grouped_mm: matrix batch sizes have to match, and the number of offsets, got {groups}"
        )
    if offs is not None and (offs.ndim != 1 or offs.dtype != jnp.int32):
        raise RuntimeError(
            f"grouped_mm: Offsets have to be int32 and of one dim, got {offs.dtype} and "
            f"{offs.ndim} dims. Convert them by .int()."
        )


_GROUPS_SUMMED = jax.lax.RaggedDotDimensionNumbers(
    dot_dimension_numbers=(((1,), (0,)), ((), ())),
    lhs_ragged_dimensions=[1],
    rhs_group_dimensions=[],
)


def _dense(mat_a: Any, mat_b: Any, offs: Any) -> Any:
    """The product of each group among zeros, added up where the groups are not summed over."""
    if mat_a.ndim == 3:
        count = mat_b.shape[1]
    else:
        count = mat_a.shape[0 if mat_b.ndim == 3 else 1]
    place, ends = jnp.arange(count), offs[:, None]
    inside = (jnp.roll(ends, 1, 0).at[0].set(0) <= place) & (place < ends)
    if mat_a.ndim == mat_b.ndim:
        return jnp.where(inside[:, None], mat_a, 0) @ mat_b
    if mat_a.ndim == 3:
        mat_b = jnp.where(inside[:, None], mat_b, 0)
    else:
        mat_a = jnp.where(inside[..., None], mat_a, 0)
    return jnp.einsum("gmk,gkn->mn", mat_a, mat_b)


@jax.custom_batching.custom_vmap
def _sparse(mat_a: Any, mat_b: Any, offs: Any) -> Any:
    """Nothing but the groups. JAX maps and transposes it in some cases only, `_dense` in all."""
    sizes = jnp.diff(offs, prepend=0)
    if mat_a.ndim == mat_b.ndim:
        return jax.lax.ragged_dot_general(mat_a, mat_b, sizes, _GROUPS_SUMMED)
    if mat_b.ndim == 3:
        return jax.lax.ragged_dot(mat_a, mat_b, sizes)
    return jax.lax.ragged_dot(mat_b.mT, mat_a.mT, sizes).mT


@_sparse.def_vmap
def _(size: int, mapped: list[bool], *arguments: Any) -> tuple[Any, bool]:
    return jax.vmap(_dense, [0 if m else None for m in mapped], axis_size=size)(*arguments), True


@jax.custom_jvp
def _ragged(mat_a: Any, mat_b: Any, offs: Any) -> Any:
    return _sparse(mat_a, mat_b, offs)


@_ragged.defjvp
def _(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    mat_a, mat_b, offs = primals
    tangent = _dense(tangents[0], mat_b, offs) + _dense(mat_a, tangents[1], offs)
    return _ragged(*primals), tangent


def _grouped(mat_a: Any, mat_b: Any, offs: Any = None) -> Any:
    _check(mat_a, mat_b, offs)
    if offs is None:
        return jnp.matmul(mat_a, mat_b)
    return _ragged(mat_a, mat_b, offs)


_grouped_mm = define(
    "grouped_mm",
    _grouped,
    mat_a=lambda grad, mat_b, offs: _grouped(grad, mat_b.mT, offs),
    mat_b=lambda grad, mat_a, offs: _grouped(mat_a.mT, grad, offs),
    offs=None,
)


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """A product for each of g groups, which end at `offs`: int32, (g,).

    A dim of a matrix of two dims is cut into groups: rows of `mat_a`, (m, k) by (g, k, n) to (m,
    n); columns of `mat_b`, (g, m, k) by (k, n) to (m, n); or what is summed over, (m, k) by (k, n)
    to (g, m, n). Without `offs` it is a product of (g, m, k) by (g, k, n). What is beyond the last
    group is 0. Unlike PyTorch's it takes strides of any kind. Raises RuntimeError where shapes and
    dtypes do not fit, for a `bias`, and for an `out_dtype` other than the input's.

    >>> x, w = dg.ones(3, 2), dg.tensor([[[1.0], [1.0]], [[2.0], [2.0]]])
    >>> offs = dg.tensor([1, 3], dtype=dg.int32)
    >>> dg.nn.functional.grouped_mm(x, w, offs=offs).flatten()
    tensor([2., 4., 4.])
    """
    if bias is not None:
        raise RuntimeError("grouped_mm: Bias not supported yet. Add it to the result.")
    if out_dtype is not None and out_dtype != mat_a.dtype:
        raise RuntimeError(
            f"grouped_mm: output dtype must match mat_a dtype {mat_a.dtype}, got {out_dtype}. "
            "Convert the result."
        )
    return _grouped_mm(mat_a, mat_b, offs)


__all__: list[str] = []  # these are functions of nn.functional
METHODS = ()

"""Rows of the operators that rearrange elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy import linalg

from tests.opinfo import OpInfo, call, complex_normal, integers, normal


def varargs(function: Callable[..., Any]) -> Callable[..., Any]:
    """A jnp function of an array and ints, which come one by one or as a tuple."""
    return lambda x, *ints: function(x, ints[0] if isinstance(ints[0], (tuple, list)) else ints)


def squeezed(x: Any, dim: Any = None) -> Any:
    dims = range(x.ndim) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    return jnp.squeeze(x, tuple(d for d in dims if x.shape[d] == 1))


def flattened(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    end = end_dim % x.ndim + 1
    return x.reshape((*x.shape[:start_dim], -1, *x.shape[end:]))


def expanded(x: Any, sizes: Any) -> Any:
    own = (1,) * (len(sizes) - x.ndim) + x.shape
    return jnp.broadcast_to(x, [m if n == -1 else n for m, n in zip(own, sizes, strict=True)])


def windows(x: Any, dimension: int, size: int, step: int) -> Any:
    starts = range(0, x.shape[dimension] - size + 1, step)
    parts = [
        jnp.moveaxis(jnp.take(x, np.arange(s, s + size), dimension), dimension, -1) for s in starts
    ]
    return jnp.stack(parts, dimension)


def in_parts(x: Any, size: Any, dim: int = 0) -> Any:
    length = x.shape[dim]
    stops = np.cumsum(size)[:-1] if isinstance(size, list) else np.arange(size, length, size)
    return jnp.split(x, stops, dim)


def embedded(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    length = x.shape[-1] + abs(offset)
    place = np.eye(length, k=offset)[max(-offset, 0) :][
        : x.shape[-1]
    ]  # row i has a 1 at its column
    rows = np.eye(length)[max(-offset, 0) :][: x.shape[-1]]
    matrices = jnp.einsum("...i,ij,ik->...jk", x, rows, place)
    return jnp.moveaxis(matrices, (-2, -1), (dim1, dim2))


matrix, cube, vector, scalar = normal(2, 3), normal(2, 3, 4), normal(4), np.array(0.7, np.float32)

ROWS = [
    OpInfo(
        "reshape",
        [call(matrix, 3, 2), call(cube, (-1, 4)), call(normal(1), ()), call(integers(9, 6), -1)],
        varargs(jnp.reshape),
    ),
    OpInfo("view", [call(matrix, 3, 2), call(cube, [4, -1])], varargs(jnp.reshape)),
    OpInfo("view_as", [call(matrix, integers(2, 6))], lambda x, y: x.reshape(y.shape)),
    OpInfo("reshape_as", [call(matrix, integers(2, 6))], lambda x, y: x.reshape(y.shape)),
    OpInfo("flatten", [call(cube), call(cube, 1), call(cube, 0, 1)], flattened),
    OpInfo("ravel", [call(cube)], jnp.ravel),
    OpInfo(
        "unflatten",
        [call(normal(2, 6), 1, (3, -1)), call(normal(6), -1, [2, 3])],
        lambda x, dim, sizes: x.reshape((*x.shape[: dim % x.ndim], *sizes)),
    ),
    OpInfo(
        "squeeze",
        [call(normal(1, 2, 1)), call(normal(1, 2, 1), -1), call(normal(1, 2, 1), dim=(0, 1))],
        squeezed,
    ),
    OpInfo(
        "unsqueeze", [call(matrix, 0), call(matrix, dim=-1)], lambda x, dim: jnp.expand_dims(x, dim)
    ),
    OpInfo("transpose", [call(cube, 0, -1), call(complex_normal(2, 3), 0, 1)], jnp.swapaxes),
    OpInfo("swapaxes", [call(cube, 0, 1)], jnp.swapaxes),
    OpInfo("swapdims", [call(cube, 0, 1)], jnp.swapaxes),
    OpInfo("permute", [call(cube, 2, 0, 1), call(cube, (1, -1, 0))], varargs(jnp.transpose)),
    OpInfo("movedim", [call(cube, 0, -1), call(cube, (0, 1), (2, 0))], jnp.moveaxis),
    OpInfo("moveaxis", [call(cube, 0, 1)], jnp.moveaxis),
    OpInfo("t", [call(matrix), call(vector)], jnp.transpose),
    OpInfo("T", [call(matrix), call(cube)], jnp.transpose),
    OpInfo("mT", [call(cube)], lambda x: jnp.swapaxes(x, -1, -2)),
    OpInfo("H", [call(complex_normal(2, 3))], lambda x: jnp.conj(x.T)),
    OpInfo(
        "mH", [call(cube), call(complex_normal(2, 3))], lambda x: jnp.conj(jnp.swapaxes(x, -1, -2))
    ),
    OpInfo("adjoint", [call(complex_normal(2, 3))], lambda x: jnp.conj(x.T)),
    OpInfo(
        "expand",
        [call(normal(2, 1), 2, 3), call(normal(2, 1), (4, -1, 3)), call(scalar, 2)],
        varargs(expanded),
    ),
    OpInfo(
        "expand_as",
        [call(normal(1, 3), integers(2, 2, 3))],
        lambda x, y: jnp.broadcast_to(x, y.shape),
    ),
    OpInfo("broadcast_to", [call(normal(1, 3), (2, 2, 3))], jnp.broadcast_to),
    OpInfo("broadcast_tensors", [call(normal(2, 1), normal(3))], jnp.broadcast_arrays),
    OpInfo("repeat", [call(matrix, 2, 1), call(matrix, (2, 3, 2))], varargs(jnp.tile)),
    OpInfo("tile", [call(matrix, 2), call(vector, (2, 2))], varargs(jnp.tile)),
    OpInfo(
        "repeat_interleave",
        [
            call(matrix, 2),
            call(matrix, 3, 0),
            call(matrix, 2, dim=-1),
            call(vector, np.array([2, 0, 1, 3])),
            call(matrix, np.array([1, 2]), 0),
        ],
        lambda x, n, dim=None: jnp.repeat(x, n if isinstance(n, int) else np.asarray(n), dim),
    ),
    OpInfo(
        "cat",
        [
            call([matrix, matrix]),
            call([matrix, normal(2, 1), normal(2, 2)], 1),
            call([vector, integers(5, 2)], dim=-1),
            call([vector]),
        ],
        lambda tensors, dim=0: jnp.concatenate(tensors, dim),
    ),
    OpInfo("concat", [call([matrix, matrix], 1)], jnp.concatenate),
    OpInfo("concatenate", [call((matrix, matrix), 1)], jnp.concatenate),
    OpInfo(
        "stack",
        [call([matrix, normal(2, 3)]), call([vector, normal(4), normal(4)], dim=-1)],
        lambda tensors, dim=0: jnp.stack(tensors, dim),
    ),
    OpInfo("hstack", [call([vector, vector]), call([matrix, matrix])], jnp.hstack),
    OpInfo("vstack", [call([vector, vector]), call([matrix, matrix])], jnp.vstack),
    OpInfo("row_stack", [call([vector, vector])], jnp.vstack),
    OpInfo("dstack", [call([vector, vector]), call([matrix, matrix])], jnp.dstack),
    OpInfo("column_stack", [call([normal(2), matrix])], jnp.column_stack),
    OpInfo("block_diag", [call(matrix, vector, scalar)], linalg.block_diag),
    OpInfo(
        "meshgrid",
        [call(vector, normal(2), normal(3)), call([vector, normal(2)], indexing="xy")],
        lambda *v, indexing="ij": jnp.meshgrid(
            *(v[0] if isinstance(v[0], list) else v), indexing=indexing
        ),
    ),
    OpInfo(
        "cartesian_prod",
        [call(vector, normal(2))],
        lambda x, y: jnp.stack([jnp.repeat(x, len(y)), jnp.tile(y, len(x))], 1),
    ),
    OpInfo("atleast_1d", [call(scalar), call(matrix)], jnp.atleast_1d),
    OpInfo("atleast_2d", [call(scalar, vector)], jnp.atleast_2d),
    OpInfo(
        "atleast_3d",
        [call(scalar), call(vector), call(matrix)],
        jnp.atleast_3d,
    ),
    OpInfo("split", [call(normal(5, 2), 2), call(normal(2, 5), [1, 4], 1)], in_parts),
    OpInfo("split_with_sizes", [call(normal(5), [2, 3])], in_parts),
    OpInfo(
        "chunk",
        [call(normal(2, 5), 2, 1), call(normal(4), 3)],
        lambda x, n, dim=0: in_parts(x, math.ceil(x.shape[dim] / n), dim),
    ),
    OpInfo(
        "tensor_split",
        [call(normal(7), 3), call(normal(2, 5), (1, 3), 1), call(normal(4), np.array([1, 3]))],
        lambda x, n, dim=0: jnp.array_split(x, n if isinstance(n, int) else list(map(int, n)), dim),
        second=False,
    ),
    OpInfo("hsplit", [call(normal(2, 4), 2)], jnp.hsplit),
    OpInfo("vsplit", [call(normal(2, 4), 2)], jnp.vsplit),
    OpInfo("dsplit", [call(normal(1, 2, 4), 2)], jnp.dsplit),
    OpInfo(
        "unbind",
        [call(matrix), call(matrix, dim=-1)],
        lambda x, dim=0: list(jnp.moveaxis(x, dim, 0)),
    ),
    OpInfo(
        "narrow",
        [call(normal(5, 2), 0, 1, 3), call(normal(2, 5), -1, -2, 2)],
        lambda x, dim, start, n: jnp.take(
            x, np.arange(start % x.shape[dim], start % x.shape[dim] + n), dim
        ),
    ),
    OpInfo(
        "select",
        [call(matrix, 0, 1), call(cube, -2, -1)],
        lambda x, dim, index: jnp.take(x, index % x.shape[dim], dim),
    ),
    OpInfo("unfold", [call(normal(5), 0, 2, 2), call(normal(2, 5), 1, 3, 1)], windows),
    OpInfo("flip", [call(cube, 0, 2), call(cube, [1])], varargs(jnp.flip)),
    OpInfo("fliplr", [call(matrix)], jnp.fliplr),
    OpInfo("flipud", [call(matrix)], jnp.flipud),
    OpInfo("roll", [call(matrix, 2), call(matrix, (1, -1), (0, 1)), call(cube, 1, 2)], jnp.roll),
    OpInfo("rot90", [call(matrix), call(cube, 3, (1, 2)), call(matrix, -2)], jnp.rot90),
    OpInfo("tril", [call(matrix), call(cube, -1)], jnp.tril),
    OpInfo(
        "triu", [call(matrix), call(cube, diagonal=1)], lambda x, diagonal=0: jnp.triu(x, diagonal)
    ),
    OpInfo("diag", [call(vector, 1), call(matrix, -1)], jnp.diag),
    OpInfo("diagflat", [call(matrix, 1)], jnp.diagflat),
    OpInfo(
        "diagonal",
        [call(matrix), call(cube, 1, 0, 2), call(cube, -1, dim1=2, dim2=1)],
        lambda x, offset=0, dim1=0, dim2=1: jnp.diagonal(x, offset, dim1, dim2),
    ),
    OpInfo(
        "diag_embed",
        [call(matrix), call(vector, -1), call(matrix, 1, 0, 2), call(matrix, 1, 2, 0)],
        embedded,
    ),
    OpInfo("clone", [call(matrix), call(integers(4, 2))], lambda x: x),
    OpInfo("contiguous", [call(matrix)], lambda x: x, gradient=False),
]

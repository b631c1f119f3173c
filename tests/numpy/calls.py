"""Sample calls for every function of `jax.numpy`: drawn from its signature, or written here."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

import numpy as np
from tests.opinfo import between, booleans, call, complex_normal, integers, normal, positive, spread

UNIT = between(0.1, 0.9, 2, 3)
MATRIX = UNIT[:, :2] + 2 * np.eye(2, dtype=np.float32)
SYMMETRIC = (MATRIX @ MATRIX.T).astype(np.float32)
LINE = spread(4)
BLOCK = spread(2, 3)
INTEGERS = integers(5, 2, 3)
MASK = np.array([True, False, True, True])
TUPLE = (BLOCK, normal(2, 3))
REPEATED = np.array([3.0, 1.0, 3.0, 2.0], np.float32)

CALLS = {
    "acosh": call(1 + positive(2, 3)),
    "arange": call(0.0, 1.0, 0.25),
    "arccosh": call(1 + positive(2, 3)),
    "argpartition": call(BLOCK, 1),
    "argwhere": call(LINE > 0),
    "array": call([BLOCK, BLOCK]),
    "array_split": call(LINE, 3),
    "asarray": call(BLOCK),
    "astype": call(BLOCK, "float16"),
    "atleast_1d": call(BLOCK),
    "atleast_2d": call(LINE, BLOCK),
    "atleast_3d": call(BLOCK),
    "bartlett": call(4),
    "bincount": call(np.array([0, 2, 2]), np.array([1.0, 2.0, 3.0], np.float32)),
    "bitwise_count": call(INTEGERS),
    "bitwise_invert": call(INTEGERS),
    "bitwise_left_shift": call(INTEGERS, 1),
    "bitwise_not": call(INTEGERS),
    "bitwise_and": call(INTEGERS, 3),
    "bitwise_or": call(INTEGERS, 3),
    "bitwise_xor": call(INTEGERS, 3),
    "bitwise_right_shift": call(INTEGERS, 1),
    "blackman": call(4),
    "block": call([[BLOCK, BLOCK], [BLOCK, BLOCK]]),
    "broadcast_arrays": call(BLOCK, BLOCK[:1]),
    "broadcast_to": call(BLOCK, (2, 2, 3)),
    "choose": call(np.array([0, 1, 0]), [BLOCK[0], BLOCK[1]]),
    "clip": call(BLOCK, -0.2, 0.2),
    "column_stack": call(TUPLE),
    "compress": call(MASK, LINE),
    "concat": call(TUPLE),
    "concatenate": call(TUPLE, 1),
    "cross": call(BLOCK, normal(2, 3)),
    "delete": call(LINE, np.array([1, 2])),
    "diag_indices": call(3),
    "dsplit": call(spread(2, 1, 2), 2),
    "dstack": call(TUPLE),
    "einsum": call("ij,kj->ik", *TUPLE),
    "empty": call((2, 3)),
    "empty_like": call(BLOCK),
    "expand_dims": call(BLOCK, (0, 2)),
    "extract": call(MASK, LINE),
    "eye": call(3, k=1),
    "fft.fft": call(normal(2, 4)),
    "fft.fftfreq": call(4),
    "fft.ifft": call(complex_normal(2, 4)),
    "fft.irfft": call(complex_normal(2, 3)),
    "fft.rfftfreq": call(4, d=0.5),
    "fill_diagonal": call(BLOCK, positive(2), inplace=False),
    "flatnonzero": call(LINE > 0),
    "frombuffer": call(b"\x01\x02", np.uint8),
    "fromstring": call("1 2", sep=" "),
    "full": call((2, 3), np.float32(2)),
    "full_like": call(BLOCK, 2.0),
    "gcd": call(INTEGERS, 4),
    "geomspace": call(positive(3), 4.0, 5),
    "hamming": call(4),
    "hanning": call(4),
    "hsplit": call(spread(2, 4), [1, 3]),
    "hstack": call(TUPLE),
    "identity": call(3),
    "indices": call((2, 3)),
    "insert": call(LINE, 1, 7.0),
    "interp": call(UNIT, np.array([0.0, 0.5, 1.0], np.float32), normal(3)),
    "intersect1d": call(REPEATED, REPEATED[1:]),
    "invert": call(INTEGERS),
    "isneginf": call(BLOCK),
    "isposinf": call(BLOCK),
    "ix_": call(np.array([0, 1]), np.array([2])),
    "kaiser": call(4, 2.0),
    "lcm": call(INTEGERS, 4),
    "ldexp": call(BLOCK, np.array([1, 2, 3])),
    "left_shift": call(INTEGERS, 1),
    "lexsort": call([BLOCK[0], BLOCK[1]]),
    "linalg.cholesky": call(SYMMETRIC),
    "linalg.cond": call(MATRIX),
    "linalg.cross": call(BLOCK, normal(2, 3)),
    "linalg.det": call(MATRIX),
    "linalg.eig": call(MATRIX),
    "linalg.eigh": call(SYMMETRIC),
    "linalg.eigvals": call(MATRIX),
    "linalg.eigvalsh": call(SYMMETRIC),
    "linalg.inv": call(MATRIX),
    "linalg.matrix_power": call(MATRIX, 3),
    "linalg.matrix_rank": call(MATRIX),
    "linalg.multi_dot": call([MATRIX, BLOCK, BLOCK.T.copy()]),
    "linalg.pinv": call(BLOCK),
    "linalg.qr": call(MATRIX),
    "linalg.slogdet": call(MATRIX),
    "linalg.solve": call(MATRIX, positive(2, 3)),
    "linalg.svd": call(BLOCK, full_matrices=False),
    "linalg.tensorinv": call(MATRIX, 1),
    "linalg.tensorsolve": call(MATRIX, positive(2)),
    "linspace": call(positive(3), 4.0, 5),
    "logspace": call(UNIT[0], 1.0, 4),
    "meshgrid": call(LINE, BLOCK[0]),
    "moveaxis": call(BLOCK, 0, 1),
    "ones": call((2, 3)),
    "ones_like": call(BLOCK),
    "nonzero": call(LINE > 0),
    "outer": call(LINE, BLOCK),
    "packbits": call(booleans(2, 9)),
    "pad": call(BLOCK, ((1, 0), (0, 2)), constant_values=1.0),
    "partition": call(BLOCK, 1),
    "percentile": call(BLOCK, 30.0, axis=1),
    "permute_dims": call(BLOCK, (1, 0)),
    "place": call(BLOCK, BLOCK > 0, positive(3), inplace=False),
    "poly": call(normal(3)),
    "polyfit": call(LINE, positive(4), 2),
    "put": call(BLOCK, np.array([0, 4]), positive(2), inplace=False),
    "put_along_axis": call(BLOCK, np.array([[0], [2]]), positive(2, 1), 1, inplace=False),
    "quantile": call(BLOCK, UNIT[0, :2]),
    "nanpercentile": call(BLOCK, 30.0),
    "nanquantile": call(BLOCK, 0.3, axis=0),
    "ravel_multi_index": call((np.array([0, 1]), np.array([2, 0])), (2, 3)),
    "repeat": call(LINE, np.array([0, 2, 1, 1])),
    "reshape": call(BLOCK, (3, -1)),
    "resize": call(BLOCK, (3, 3)),
    "right_shift": call(INTEGERS, 1),
    "roll": call(BLOCK, 1, axis=1),
    "rollaxis": call(BLOCK, 1),
    "roots": call(np.array([1.0, -3.0, 2.0], np.float32)),
    "select": call([BLOCK > 0, BLOCK < -0.2], [BLOCK, positive(2, 3)], 0.5),
    "setdiff1d": call(REPEATED, REPEATED[:1]),
    "setxor1d": call(REPEATED, REPEATED[:2]),
    "split": call(LINE, [1, 3]),
    "stack": call(TUPLE, axis=1),
    "swapaxes": call(BLOCK, 0, 1),
    "take": call(BLOCK, np.array([2, 0]), axis=1),
    "take_along_axis": call(BLOCK, np.array([[0], [2]]), axis=1),
    "tile": call(BLOCK, (2, 1)),
    "top_k": call(BLOCK, 2),
    "tri": call(3),
    "tril_indices": call(3),
    "tril_indices_from": call(MATRIX),
    "trim_zeros": call(np.array([0.0, 1.0, 2.0, 0.0], np.float32)),
    "triu_indices": call(3),
    "triu_indices_from": call(MATRIX),
    "union1d": call(REPEATED, LINE),
    "unique": call(REPEATED, return_counts=True),
    "unique_all": call(REPEATED),
    "unique_counts": call(REPEATED),
    "unique_inverse": call(REPEATED),
    "unique_values": call(REPEATED),
    "unpackbits": call(np.array([3, 200], np.uint8)),
    "unravel_index": call(np.array([1, 5]), (2, 3)),
    "vsplit": call(BLOCK, 2),
    "vstack": call(TUPLE),
    "where": call(BLOCK > 0, BLOCK, 0.5),
    "zeros": call((2, 3)),
    "zeros_like": call(BLOCK),
}
"""Calls of functions that take more than float arrays, or whose domain asks for others."""


def drawn(function: Any) -> Any:
    """A call with float arrays between 0.1 and 0.9 for every required parameter.

    None for a function that takes others.
    """
    if isinstance(function, jnp.ufunc):
        return call(*(between(0.1, 0.9, 2, 3) for _ in range(function.nin)))
    required = [
        p
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if not required or any(p.annotation not in ("ArrayLike", "Array", ArrayLike) for p in required):
        return None
    for shape in ((2, 3), (3, 3), (4,)):
        arrays = [between(0.1, 0.9, *shape) for _ in required]
        try:
            jax.eval_shape(function, *arrays)
        except Exception:  # whichever way this function refuses a shape
            continue
        return call(*arrays)
    return None

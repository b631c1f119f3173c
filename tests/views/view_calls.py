"""The operators that give one view, each with numpy's own view: what views are tested on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

import dyngraph as dg

FLOAT = np.float32
COMPLEX = np.complex64


class View(NamedTuple):
    """A view operator: the base's shape, the operator, and the same on numpy's arrays."""

    shape: tuple[int, ...]
    of: Callable[[Any], Any]
    twin: Callable[[np.ndarray], np.ndarray]
    dtype: Any = FLOAT


def strided(a: np.ndarray, shape: Sequence[int], strides: Sequence[int], offset: int) -> Any:
    """numpy's as_strided with strides and offset in elements of the contiguous `a`."""
    size = a.itemsize
    return as_strided(a.reshape(-1)[offset:], shape, [step * size for step in strides])


def parts(a: np.ndarray, part: int) -> np.ndarray:
    """A view of the real (0) or imaginary (1) parts."""
    return a.view(FLOAT).reshape(*a.shape, 2)[..., part]


VIEWS: dict[str, View] = {
    "integer": View((2, 3, 4), lambda x: x[1], lambda a: a[1]),
    "negative integer": View((2, 3), lambda x: x[:, -1], lambda a: a[:, -1]),
    "integers": View((2, 3), lambda x: x[1, 2], lambda a: a[1, 2 : 2 + 1].reshape(())),
    "slice": View((4, 3), lambda x: x[1:3], lambda a: a[1:3]),
    "slice with a step": View((5, 3), lambda x: x[1::2, ::2], lambda a: a[1::2, ::2]),
    "slice of nothing": View((4,), lambda x: x[3:1], lambda a: a[3:1]),
    "slice beyond the end": View((4,), lambda x: x[2:99], lambda a: a[2:99]),
    "everything": View((2, 3), lambda x: x[:], lambda a: a[:]),
    "Ellipsis": View((2, 3), lambda x: x[...], lambda a: a[...]),
    "Ellipsis and slice": View((2, 3, 4), lambda x: x[..., 1:3], lambda a: a[..., 1:3]),
    "None": View((2, 3), lambda x: x[None, :, None], lambda a: a[None, :, None]),
    "mixed index": View((2, 3, 4), lambda x: x[0, ..., None, 1:], lambda a: a[0, ..., None, 1:]),
    "select": View((2, 3), lambda x: x.select(1, -2), lambda a: a[:, 1]),
    "select function": View((2, 3), lambda x: dg.select(x, 0, 1), lambda a: a[1]),
    "narrow": View((4, 3), lambda x: x.narrow(0, 1, 2), lambda a: a[1:3]),
    "narrow from the end": View((4,), lambda x: x.narrow(0, -2, 2), lambda a: a[2:]),
    "transpose": View((2, 3, 4), lambda x: x.transpose(0, -1), lambda a: a.swapaxes(0, 2)),
    "t": View((2, 3), lambda x: x.t(), lambda a: a.T),
    "T": View((2, 3), lambda x: x.T, lambda a: a.T),
    "mT": View((2, 3, 4), lambda x: x.mT, lambda a: a.swapaxes(1, 2)),
    "H": View((2, 3), lambda x: x.H, lambda a: a.T),
    "mH": View((2, 3, 4), lambda x: x.mH, lambda a: a.swapaxes(1, 2)),
    "adjoint": View((2, 3), lambda x: x.adjoint(), lambda a: a.T),
    "permute": View((2, 3, 4), lambda x: x.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "movedim": View((2, 3, 4), lambda x: x.movedim(0, 2), lambda a: np.moveaxis(a, 0, 2)),
    "moveaxis": View((2, 3), lambda x: x.moveaxis((0, 1), (1, 0)), lambda a: a.T),
    "swapaxes": View((2, 3), lambda x: x.swapaxes(0, 1), lambda a: a.T),
    "swapdims": View((2, 3), lambda x: x.swapdims(0, 1), lambda a: a.T),
    "view": View((2, 3, 4), lambda x: x.view(6, -1), lambda a: a.reshape(6, 4)),
    "view of dims that fit": View(
        (2, 3, 4),
        lambda x: x.transpose(0, 1).view(3, 2, 2, 2),
        lambda a: strided(a, (3, 2, 2, 2), (4, 12, 2, 1), 0),
    ),
    "view_as": View((2, 3), lambda x: x.view_as(dg.ones(6)), lambda a: a.reshape(6)),
    "reshape": View((2, 3), lambda x: x.reshape(3, 2), lambda a: a.reshape(3, 2)),
    "reshape_as": View((2, 3), lambda x: x.reshape_as(dg.ones(3, 2)), lambda a: a.reshape(3, 2)),
    "reshape of a slice": View(
        (4, 3, 2), lambda x: x[::2].reshape(2, 6), lambda a: strided(a, (2, 6), (12, 1), 0)
    ),
    "flatten": View((2, 3, 4), lambda x: x.flatten(1), lambda a: a.reshape(2, 12)),
    "ravel": View((2, 3), lambda x: x.ravel(), lambda a: a.reshape(6)),
    "unflatten": View((2, 6), lambda x: x.unflatten(1, (2, 3)), lambda a: a.reshape(2, 2, 3)),
    "squeeze": View((1, 3, 1), lambda x: x.squeeze(), lambda a: a.reshape(3)),
    "squeeze of a dim": View((1, 3, 1), lambda x: x.squeeze(0), lambda a: a.reshape(3, 1)),
    "squeeze of a dim that stays": View((2, 3), lambda x: x.squeeze(0), lambda a: a[:]),
    "squeeze of dims": View((1, 3, 1), lambda x: x.squeeze((0, 2)), lambda a: a.reshape(3)),
    "unsqueeze": View((2, 3), lambda x: x.unsqueeze(1), lambda a: a[:, None]),
    "unsqueeze at the end": View((2, 3), lambda x: x.unsqueeze(-1), lambda a: a[..., None]),
    "diagonal": View((3, 3), lambda x: x.diagonal(), lambda a: strided(a, (3,), (4,), 0)),
    "diagonal above": View((3, 4), lambda x: x.diagonal(1), lambda a: strided(a, (3,), (5,), 1)),
    "diagonal of dims": View(
        (2, 3, 4), lambda x: x.diagonal(-1, 1, 2), lambda a: strided(a, (2, 2), (12, 5), 4)
    ),
    "unfold": View((6,), lambda x: x.unfold(0, 2, 2), lambda a: a.reshape(3, 2)),
    "unfold of a dim": View(
        (2, 5), lambda x: x.unfold(1, 2, 3), lambda a: strided(a, (2, 2, 2), (5, 3, 1), 0)
    ),
    "as_strided": View(
        (3, 4), lambda x: x.as_strided((2, 2), (5, 2), 1), lambda a: strided(a, (2, 2), (5, 2), 1)
    ),
    "expand by a dim of size 1": View((2, 3), lambda x: x.expand(1, 2, 3), lambda a: a[None]),
    "expand_as of the same shape": View((2,), lambda x: x.expand_as(dg.ones(2)), lambda a: a[:]),
    "atleast_3d": View((2, 3), lambda x: dg.atleast_3d(x), lambda a: a[..., None]),
    "view of a view": View((4, 6), lambda x: x[1:3].t()[::2].view(3, 2), lambda a: a[1:3].T[::2]),
    "select of a tensor of one dim": View((3,), lambda x: x[1], lambda a: a[1:2].reshape(())),
}
OF_COMPLEX: dict[str, View] = {
    "real": View((2, 3), lambda x: x.real, lambda a: parts(a, 0), COMPLEX),
    "imag": View((2, 3), lambda x: x.imag, lambda a: parts(a, 1), COMPLEX),
    "view_as_real": View(
        (2, 3), lambda x: dg.view_as_real(x), lambda a: a.view(FLOAT).reshape(2, 3, 2), COMPLEX
    ),
    "view_as_complex": View(
        (3, 2), lambda x: dg.view_as_complex(x), lambda a: a.view(COMPLEX).reshape(3)
    ),
    "slice of complex": View((3, 2), lambda x: x[1:], lambda a: a[1:], COMPLEX),
}
OF_BITS: dict[str, View] = {
    "same width": View((2, 3), lambda x: x.view(dg.int32), lambda a: a.view(np.int32)),
    "half the width": View((2, 3), lambda x: x.view(dg.int16), lambda a: a.view(np.int16)),
    "bytes": View((2,), lambda x: x.view(dg.uint8), lambda a: a.view(np.uint8)),
    "twice the width": View(
        (2, 4), lambda x: x.view(dg.int32), lambda a: a.view(np.int32), np.int16
    ),
}
OVERLAPPING: dict[str, View] = {
    "expand": View((3, 1), lambda x: x.expand(2, 3, 4), lambda a: np.broadcast_to(a, (2, 3, 4))),
    "expand with -1": View((3, 1), lambda x: x.expand(-1, 2), lambda a: np.broadcast_to(a, (3, 2))),
    "expand_as": View(
        (1, 3), lambda x: x.expand_as(dg.ones(2, 3)), lambda a: np.broadcast_to(a, (2, 3))
    ),
    "broadcast_to": View(
        (3,), lambda x: x.broadcast_to((2, 3)), lambda a: np.broadcast_to(a, (2, 3))
    ),
    "first of broadcast_tensors": View(
        (3,),
        lambda x: dg.broadcast_tensors(x, dg.ones(2, 1))[0],
        lambda a: np.broadcast_to(a, (2, 3)),
    ),
    "first of meshgrid": View(
        (3,),
        lambda x: dg.meshgrid(x, dg.ones(2), indexing="ij")[0],
        lambda a: np.broadcast_to(a[:, None], (3, 2)),
    ),
    "unfold": View((4,), lambda x: x.unfold(0, 2, 1), lambda a: strided(a, (3, 2), (1, 1), 0)),
    "as_strided": View(
        (4,), lambda x: x.as_strided((2, 3), (1, 1)), lambda a: strided(a, (2, 3), (1, 1), 0)
    ),
}
WRITABLE = VIEWS | {f"complex: {name}": view for name, view in OF_COMPLEX.items()}
NUMERIC = WRITABLE | {f"overlapping: {name}": view for name, view in OVERLAPPING.items()}
ALL = NUMERIC | {f"bits: {name}": view for name, view in OF_BITS.items()}


def numbered(shape: tuple[int, ...], dtype: Any = FLOAT) -> np.ndarray:
    """1, 2, 3, ...; complex numbers have other imaginary parts."""
    values = np.arange(1, np.prod(shape) + 1).reshape(shape)
    return (values * (1 + 0.5j) if dtype is COMPLEX else values).astype(dtype)


def assert_same(tensor: dg.Tensor, array: np.ndarray) -> None:
    assert tuple(tensor.shape) == array.shape
    np.testing.assert_allclose(
        np.asarray(tensor.detach().resolve_conj().tolist()), array, rtol=1e-6
    )

"""Windows that taper a signal: `hann_window`, `kaiser_window` and their like.

Harris 1978, "On the use of windows for harmonic analysis with the discrete Fourier transform",
https://doi.org/10.1109/PROC.1978.10837. Numbers are computed in double precision on the host.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dyngraph import dtypes
from dyngraph.ops.arguments import titled
from dyngraph.ops.factory_arguments import place_of
from dyngraph.ops.from_data import from_values
from dyngraph.ops.literals import fit_numbers
from dyngraph.tensor import Tensor

Shape = Callable[[np.ndarray], np.ndarray]
"""The value of a window at places that run from 0 at its beginning to 1 at its end."""


# --- shapes -----------------------------------------------------------------------------------


def cosines(coefficients: Sequence[float]) -> Shape:
    """The sum of (-1)^i a_i cos(2 pi i place)."""
    return lambda place: sum(
        (a * (-1) ** i * np.cos(2 * math.pi * i * place) for i, a in enumerate(coefficients)),
        start=np.zeros_like(place),
    )


def triangle(place: np.ndarray) -> np.ndarray:
    """1 in the middle, 0 at both ends."""
    return 1 - np.abs(2 * place - 1)


def bessel(beta: float) -> Shape:
    """Kaiser's: the modified Bessel function I0 of `beta` times half a circle, 1 in the middle."""
    return lambda place: (
        np.i0(beta * np.sqrt(np.maximum(1 - (2 * place - 1) ** 2, 0))) / np.i0(beta)
    )


def sampled(shape: Shape, count: int, *, periodic: bool) -> np.ndarray:
    """`count` values of a window; the end of a periodic one is the beginning of the next."""
    if count == 1:
        return np.ones(1)
    return shape(np.arange(count) / (count if periodic else count - 1))


# --- functions --------------------------------------------------------------------------------


def _window(
    name: str, shape: Shape, length: Any, periodic: Any, dtype: Any, device: Any, grad: bool
) -> Tensor:
    try:
        count = operator.index(length)
    except TypeError:
        raise TypeError(
            f"{name}(): argument 'window_length' (position 1) must be int, not "
            f"{type(length).__name__}"
        ) from None
    if count < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={count}")
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if not wanted.is_floating_point:
        raise RuntimeError(
            f"{name} expects floating point dtypes, got {wanted}. Convert the window afterwards."
        )
    values = sampled(shape, count, periodic=bool(periodic))
    return from_values(name, fit_numbers(values, wanted), wanted, place_of(device), grad)


def _define_window(name: str, shape: Shape, doc: str) -> Callable[..., Tensor]:
    def function(
        window_length: int,
        periodic: bool = True,
        *,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
    ) -> Tensor:
        return _window(name, shape, window_length, periodic, dtype, device, requires_grad)

    return titled(function, name, doc)


bartlett_window = _define_window(
    "bartlett_window",
    triangle,
    """A triangle from 0 over 1 to 0; a periodic one lacks the 0 at its end.

    >>> dg.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """,
)

blackman_window = _define_window(
    "blackman_window",
    cosines((0.42, 0.5, 0.08)),
    """A sum of two cosines, with side lobes lower than `hann_window` has.

    >>> dg.blackman_window(4)[1:]
    tensor([0.3400, 1.0000, 0.3400])
    """,
)

hann_window = _define_window(
    "hann_window",
    cosines((0.5, 0.5)),
    """A cosine from 0 over 1 to 0; a periodic one, for `stft`, lacks the 0 at its end.

    Raises RuntimeError for a negative length and a dtype that is not floating point.

    >>> dg.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """,
)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """`alpha - beta * cos(...)`: a cosine that does not quite reach 0, for a low first side lobe.

    >>> dg.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    shape = cosines((float(alpha), float(beta)))
    return _window("hamming_window", shape, window_length, periodic, dtype, device, requires_grad)


def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Near the window with most of its energy in the main lobe, which a larger `beta` widens.

    Kaiser and Schafer 1980, https://doi.org/10.1109/TASSP.1980.1163349.

    >>> dg.kaiser_window(3, periodic=False, beta=3.0)
    tensor([0.2049, 1.0000, 0.2049])
    """
    shape = bessel(float(beta))
    return _window("kaiser_window", shape, window_length, periodic, dtype, device, requires_grad)


__all__ = [
    "bartlett_window",
    "blackman_window",
    "hamming_window",
    "hann_window",
    "kaiser_window",
]
METHODS = ()
"""The functions of this file that are methods of Tensor too."""

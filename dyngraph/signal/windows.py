"""PyTorch's `torch.signal.windows`: windows of `M` values, symmetric unless told.

With `sym=False` a window is periodic: its end is the beginning of the next. Dtypes are float32 and
float64. The shapes are those of `dyngraph.ops.windows`, and of Harris 1978,
https://doi.org/10.1109/PROC.1978.10837.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dyngraph import dtypes
from dyngraph.ops.arguments import titled
from dyngraph.ops.factory_arguments import place_of
from dyngraph.ops.from_data import from_values
from dyngraph.ops.literals import fit_numbers
from dyngraph.ops.windows import Shape, bessel, cosines, sampled, triangle
from dyngraph.tensor import Tensor


def _count(name: str, M: Any, dtype: Any) -> tuple[int, dtypes.dtype]:
    """The length and the dtype; ValueError for ones that PyTorch refuses."""
    count = operator.index(M)
    if count < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={count}")
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if wanted.name not in ("float32", "float64"):
        raise ValueError(
            f"{name} expects float32 or float64 dtypes, got: {wanted}. Convert the window "
            "afterwards."
        )
    return count, wanted


def _made(values: np.ndarray, dtype: dtypes.dtype, device: Any, requires_grad: bool) -> Tensor:
    return from_values("", fit_numbers(values, dtype), dtype, place_of(device), requires_grad)


def _places(count: int, *, sym: bool) -> np.ndarray:
    """The distance of each value from the middle of the window, in values."""
    last = count - 1 if sym or count <= 1 else count
    return np.arange(count) - last / 2


def _tapered(
    name: str, shape: Shape, M: Any, sym: bool, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    count, wanted = _count(name, M, dtype)
    return _made(sampled(shape, count, periodic=not sym), wanted, device, requires_grad)


def _define_window(name: str, shape: Shape, doc: str) -> Callable[..., Tensor]:
    def window(
        M: int,
        *,
        sym: bool = True,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        return _tapered(name, shape, M, sym, dtype, device, requires_grad)

    return titled(window, name, doc)


bartlett = _define_window(
    "bartlett",
    triangle,
    """A triangle from 0 over 1 to 0.

    >>> dg.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """,
)
blackman = _define_window(
    "blackman",
    cosines((0.42, 0.5, 0.08)),
    """`general_cosine` with the coefficients 0.42, 0.5 and 0.08.

    >>> dg.signal.windows.blackman(5)[1:4]
    tensor([0.3400, 1.0000, 0.3400])
    """,
)
hamming = _define_window(
    "hamming",
    cosines((0.54, 0.46)),
    """`general_hamming` with alpha 0.54.

    >>> dg.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """,
)
hann = _define_window(
    "hann",
    cosines((0.5, 0.5)),
    """`general_hamming` with alpha 0.5: a cosine from 0 over 1 to 0.

    >>> dg.signal.windows.hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """,
)
nuttall = _define_window(
    "nuttall",
    cosines((0.3635819, 0.4891775, 0.1365995, 0.0106411)),
    """`general_cosine` with four coefficients that keep all side lobes below -98 dB.

    Nuttall 1981, https://doi.org/10.1109/TASSP.1981.1163506.

    >>> dg.signal.windows.nuttall(3)
    tensor([3.6280e-04, 1.0000e+00, 3.6280e-04])
    """,
)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Half a sine wave, of which the values stand in the middle of `M` equal parts.

    >>> dg.signal.windows.cosine(2)
    tensor([0.7071, 0.7071])
    """
    count, wanted = _count("cosine", M, dtype)
    parts = count if sym or count <= 1 else count + 1
    values = np.sin(math.pi * (np.arange(count) + 0.5) / max(parts, 1))
    return _made(values, wanted, device, requires_grad)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`exp(-distance / tau)`, from the middle or, in a periodic window, from `center`.

    Raises ValueError for a `tau` that is not positive, and a `center` in a symmetric window.

    >>> dg.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    count, wanted = _count("exponential", M, dtype)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows. Pass sym=False.")
    places = _places(count, sym=sym) if center is None else np.arange(count) - center
    return _made(np.exp(-np.abs(places) / tau), wanted, device, requires_grad)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A bell curve of deviation `std`, with 1 in the middle.

    Raises ValueError where `std` is not positive.

    >>> dg.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    count, wanted = _count("gaussian", M, dtype)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    values = np.exp(-((_places(count, sym=sym) / std) ** 2) / 2)
    return _made(values, wanted, device, requires_grad)


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The sum of (-1)^i a_i cos(2 pi i n / N), N being M - 1, or M for a periodic window.

    Raises ValueError without coefficients, TypeError where they are no list.

    >>> dg.signal.windows.general_cosine(3, a=[0.75, 0.25])
    tensor([0.5000, 1.0000, 0.5000])
    """
    _count("general_cosine", M, dtype)
    if not isinstance(a, Iterable):
        raise TypeError(f"Coefficients must be a list/tuple, got {type(a).__name__}")
    coefficients = [float(value) for value in a]
    if not coefficients:
        raise ValueError("Coefficients cannot be empty: expected at least one number.")
    shape = cosines(coefficients)
    return _tapered("general_cosine", shape, M, sym, dtype, device, requires_grad)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`general_cosine` with the coefficients `alpha` and `1 - alpha`.

    >>> dg.signal.windows.general_hamming(3, alpha=0.75)
    tensor([0.5000, 1.0000, 0.5000])
    """
    shape = cosines((float(alpha), 1 - float(alpha)))
    return _tapered("general_hamming", shape, M, sym, dtype, device, requires_grad)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Near the window with most of its energy in the main lobe, which a larger `beta` widens.

    Raises ValueError for a negative `beta`.

    >>> dg.signal.windows.kaiser(3, beta=3.0)
    tensor([0.2049, 1.0000, 0.2049])
    """
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _tapered("kaiser", bessel(float(beta)), M, sym, dtype, device, requires_grad)


__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]

"""Discrete Fourier transforms.

The transforms are linear, so that their backward saves nothing. `dyngraph.fft` has the functions of
these kernels; the short-time transform is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from dyngraph import dtypes
from dyngraph.ops import complexes
from dyngraph.ops.arguments import as_ints, is_inexact
from dyngraph.ops.host_values import array_of
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor, canonical_dim

_OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The norm that scales the inverse transform as the transform is scaled by the key."""


def _prepared(name: str, array: Any, *, real: bool = False) -> Any:
    """Integers as the default dtype; RuntimeError for dtypes that there is no transform of."""
    if not is_inexact(array):
        return array.astype(dtypes.get_default_dtype().dtype)
    if array.dtype.itemsize == 2:
        raise RuntimeError(f"{name}: Unsupported dtype {array.dtype}. Convert it by .float().")
    if real and jnp.iscomplexobj(array):
        raise RuntimeError(f"{name} expects a real input tensor, but got {array.dtype}")
    return array


def _check_norm(norm: str | None) -> None:
    if norm not in _OPPOSITE:
        raise RuntimeError(
            f'Invalid normalization mode: "{norm}", expected "forward", "backward" or "ortho"'
        )


def _dims_and_sizes(array: Any, s: Any, dim: Any, *, last: str = "") -> tuple[Any, Any]:
    """The dims to transform, from the front, and the length of each signal.

    `last` is the name of a transform whose output is real: it guesses the last length.
    """
    sizes = None if s is None else as_ints(s)
    if dim is None:
        if sizes is not None and len(sizes) > array.ndim:
            raise RuntimeError(
                f"Got shape with {len(sizes)} values but input tensor only has {array.ndim} "
                "dimensions."
            )
        dims = tuple(range(array.ndim))[-len(sizes) if sizes else 0 :] if sizes != () else ()
    else:
        dims = tuple(canonical_dim(d, array.ndim) for d in as_ints(dim))
        if len(set(dims)) < len(dims):
            raise RuntimeError(f"FFT dims must be unique, got {dims}")
        if sizes is not None and len(sizes) != len(dims):
            raise RuntimeError(
                "When given, dim and shape arguments must have the same length, got "
                f"{len(dims)} and {len(sizes)}"
            )
    lengths = [array.shape[d] for d in dims]
    if last and lengths:
        lengths[-1] = 2 * (lengths[-1] - 1)
    if sizes is not None:
        lengths = [n if given == -1 else given for n, given in zip(lengths, sizes, strict=True)]
    for n in lengths:
        if n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return dims, tuple(lengths)


def _transform(
    name: str, function: Callable[..., Any], *, real: bool = False, to_real: bool = False
) -> Callable[..., Any]:
    """The kernel of a transform over several dims, from jnp's."""

    def kernel(self: Any, *, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
        _check_norm(norm)
        array = _prepared(name, self, real=real)
        dims, lengths = _dims_and_sizes(array, s, dim, last=name if to_real else "")
        if not dims:
            if real or to_real:
                raise RuntimeError(f"{name} must transform at least one axis")
            return array.astype(jnp.result_type(array, jnp.complex64))
        return function(array, lengths, dims, norm or "backward")

    kernel.__module__ = __name__
    return kernel


def _hermitian(array: Any, lengths: Any, dims: Any, norm: str) -> Any:
    return jnp.fft.irfftn(jnp.conj(array), lengths, dims, _OPPOSITE[norm])


def _inverse_hermitian(array: Any, lengths: Any, dims: Any, norm: str) -> Any:
    return jnp.conj(jnp.fft.rfftn(array, lengths, dims, _OPPOSITE[norm]))


def _define(name: str, function: Callable[..., Any], **options: bool) -> Callable[..., Tensor]:
    return define(f"fft_{name}", _transform(name, function, **options))


complex_transform = _define("fftn", jnp.fft.fftn)
inverse_transform = _define("ifftn", jnp.fft.ifftn)
real_transform = _define("rfftn", jnp.fft.rfftn, real=True)
inverse_real_transform = _define("irfftn", jnp.fft.irfftn, to_real=True)
hermitian_transform = _define("hfftn", _hermitian, to_real=True)
inverse_hermitian_transform = _define("ihfftn", _inverse_hermitian, real=True)


# --- short-time -------------------------------------------------------------------------------


def _full_window(window: Any, win_length: int, n_fft: int, dtype: Any) -> Any:
    """The window, zeros on both sides of it up to `n_fft`."""
    if window is None:
        window = jnp.ones(win_length, dtype)
    if window.shape != (win_length,):
        raise RuntimeError(
            f"expected a 1D window tensor of size equal to win_length={win_length}, but got window "
            f"with size {list(window.shape)}"
        )
    before = (n_fft - win_length) // 2
    return jnp.pad(window, (before, n_fft - win_length - before))


def _check_lengths(where: str, n_fft: int, hop_length: int, win_length: int, limit: int) -> None:
    if not 0 < n_fft <= limit:
        raise RuntimeError(f"{where}: expected 0 < n_fft <= {limit}, but got n_fft={n_fft}")
    if hop_length <= 0:
        raise RuntimeError(f"{where}: expected hop_length > 0, but got hop_length={hop_length}")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(
            f"{where}: expected 0 < win_length <= n_fft, but got win_length={win_length}"
        )


def _stft(
    self: Any,
    window: Any = None,
    *,
    n_fft: int,
    hop_length: int,
    win_length: int,
    center: bool,
    pad_mode: str,
    normalized: bool,
    onesided: bool | None,
) -> Any:
    array = _prepared("stft", self)
    if array.ndim not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, but got {array.ndim}D")
    if center:
        around = [(0, 0)] * (array.ndim - 1) + [(n_fft // 2, n_fft // 2)]
        mode = {"replicate": "edge", "circular": "wrap"}.get(pad_mode, pad_mode)
        array = jnp.pad(array, around, mode=mode)
    length = array.shape[-1]
    _check_lengths("stft", n_fft, hop_length, win_length, length)
    taps = _full_window(window, win_length, n_fft, array.dtype)
    starts = jnp.arange(0, length - n_fft + 1, hop_length)
    frames = array[..., starts[:, None] + jnp.arange(n_fft)] * taps
    is_complex = jnp.iscomplexobj(frames)
    if onesided is None:
        onesided = not is_complex
    elif onesided and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    transform = jnp.fft.rfft if onesided else jnp.fft.fft
    spectrum = transform(frames, norm="ortho" if normalized else "backward")
    return jnp.swapaxes(spectrum, -1, -2)


_stft_operator = define(
    "stft",
    _stft,
    signature="self, window, n_fft, hop_length, win_length, center, pad_mode, normalized, onesided",
)


def stft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The spectra of windows of a signal: (..., time) -> (..., frequency, frame).

    Frames of `n_fft` begin every `hop_length` (by default a quarter of it); with `center` each lies
    around its place, and the signal is padded for that. Real signals have `n_fft // 2 + 1`
    frequencies unless `onesided` is False. Raises RuntimeError where `return_complex` is not given
    for a real signal; False gives the parts along a last dim.

    >>> dg.stft(dg.ones(8), 4, center=False, return_complex=True).shape
    dyngraph.Size([3, 5])
    """
    real = not (_is_complex(input) or (window is not None and _is_complex(window)))
    if return_complex is None:
        if real:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will "
                "further require that return_complex=True in a future PyTorch release."
            )
        return_complex = True
    spectrum = _stft_operator(
        input,
        window,
        n_fft,
        n_fft // 4 if hop_length is None else hop_length,
        n_fft if win_length is None else win_length,
        center,
        pad_mode,
        normalized,
        onesided,
    )
    return spectrum if return_complex else complexes.view_as_real(spectrum)


def _is_complex(value: Any) -> bool:
    return bool(jnp.iscomplexobj(array_of(value)))


def _istft(
    self: Any,
    window: Any = None,
    *,
    n_fft: int,
    hop_length: int,
    win_length: int,
    center: bool,
    normalized: bool,
    onesided: bool | None,
    length: int | None,
    return_complex: bool,
) -> Any:
    if not jnp.iscomplexobj(self):
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
        )
    if self.ndim not in (2, 3):
        raise RuntimeError(f"istft: expected a tensor with 2 or 3 dims, but got {self.ndim}")
    count, frames = self.shape[-2:]
    onesided = count != n_fft if onesided is None else onesided
    if count != (n_fft // 2 + 1 if onesided else n_fft):
        raise RuntimeError(
            "istft: expected the frequency dimension (3rd to the last) of the input tensor to "
            f"match n_fft={n_fft}, but got {count}"
        )
    _check_lengths("istft", n_fft, hop_length, win_length, n_fft)
    taps = _full_window(window, win_length, n_fft, self.real.dtype)
    spectra = jnp.swapaxes(self, -1, -2)
    scale = "ortho" if normalized else "backward"
    if return_complex:
        pieces = jnp.fft.ifft(spectra, norm=scale)
    elif onesided:
        pieces = jnp.fft.irfft(spectra, n_fft, norm=scale)
    else:
        pieces = jnp.fft.ifft(spectra, norm=scale).real
    total = n_fft + hop_length * (frames - 1)
    places = jnp.arange(frames)[:, None] * hop_length + jnp.arange(n_fft)
    signal = jnp.zeros((*self.shape[:-2], total), (pieces * taps).dtype)
    signal = signal.at[..., places].add(pieces * taps)
    envelope = jnp.zeros(total, taps.dtype).at[places].add(taps * taps)
    start = n_fft // 2 if center else 0
    stop = start + length if length is not None else total - start
    signal, envelope = signal[..., start:stop], envelope[start:stop]
    signal = signal / jnp.where(envelope == 0, 1, envelope)
    missing = stop - start - signal.shape[-1]
    return jnp.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, max(missing, 0))])


_istft_operator = define(
    "istft",
    _istft,
    signature=(
        "self, window, n_fft, hop_length, win_length, center, normalized, onesided, length, "
        "return_complex"
    ),
)


def istft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal of which `stft` gave these spectra: overlapping frames, over the window's squares.

    >>> x = dg.arange(8.0)
    >>> dg.istft(dg.stft(x, 4, return_complex=True), 4)
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    return _istft_operator(
        input,
        window,
        n_fft,
        n_fft // 4 if hop_length is None else hop_length,
        n_fft if win_length is None else win_length,
        center,
        normalized,
        onesided,
        length,
        return_complex,
    )


__all__ = [
    "istft",
    "stft",
]

METHODS = ("istft", "stft")
"""The functions of this file that are methods of Tensor too."""

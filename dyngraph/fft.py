"""PyTorch's `torch.fft`: transforms of one, two or several dims.

The `norm` of each says where the scale is: "backward" (the default) puts 1/n on the inverse
transform, "forward" on the transform, "ortho" 1/sqrt(n) on both. `n` or `s` cuts or pads with zeros
first. Integers give the default dtype's transform; RuntimeError for 16-bit floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dyngraph import dtypes
from dyngraph.ops import fourier, from_data, permutation
from dyngraph.ops.arguments import distinct_dims
from dyngraph.ops.host_values import array_of
from dyngraph.tensor import Tensor


def _one(transform: Any, input: Any, n: int | None, dim: int, norm: str | None) -> Tensor:
    if not array_of(input).ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return transform(input, None if n is None else (n,), (dim,), norm)


# --- one dim ----------------------------------------------------------------------------------


def fft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The spectrum of signals: the sums of x_t exp(-2 pi i k t / n).

    >>> dg.fft.fft(dg.tensor([1.0, 2.0]))
    tensor([ 3.+0.j, -1.+0.j])
    """
    return _one(fourier.complex_transform, input, n, dim, norm)


def ifft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The signals of which `fft` gives these spectra.

    >>> dg.fft.ifft(dg.tensor([3.0, -1.0]))
    tensor([1.+0.j, 2.+0.j])
    """
    return _one(fourier.inverse_transform, input, n, dim, norm)


def rfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The spectrum of real signals: its first n // 2 + 1 values, which tell the others.

    >>> dg.fft.rfft(dg.tensor([1.0, 2.0, 3.0]))
    tensor([ 6.0000+0.0000j, -1.5000+0.8660j])
    """
    return _one(fourier.real_transform, input, n, dim, norm)


def irfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The real signals of which `rfft` gives these spectra; `n` is by default even.

    >>> dg.fft.irfft(dg.tensor([3.0, -1.0]))
    tensor([1., 2.])
    """
    return _one(fourier.inverse_real_transform, input, n, dim, norm)


def hfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The real spectrum of signals with x_-t = conj(x_t), of which half is given.

    >>> dg.fft.hfft(dg.tensor([1.0, 2.0]))
    tensor([ 3., -1.])
    """
    return _one(fourier.hermitian_transform, input, n, dim, norm)


def ihfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Half of the Hermitian signals of which `hfft` gives these real spectra.

    >>> dg.fft.ihfft(dg.tensor([3.0, -1.0]))
    tensor([1.-0.j, 2.-0.j])
    """
    return _one(fourier.inverse_hermitian_transform, input, n, dim, norm)


# --- several dims -----------------------------------------------------------------------------


def fft2(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """`fftn` over two dims, by default the last ones.

    >>> dg.fft.fft2(dg.ones(4, 4)).shape
    dyngraph.Size([4, 4])
    """
    return fourier.complex_transform(input, s, dim, norm)


def fftn(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] | None = None,
    norm: str | None = None,
) -> Tensor:
    """The spectrum over several dims; all, or as many of the last as `s` has, without `dim`.

    >>> dg.fft.fftn(dg.ones(4, 4)).shape
    dyngraph.Size([4, 4])
    """
    return fourier.complex_transform(input, s, dim, norm)


def ifft2(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """`ifftn` over two dims, by default the last ones.

    >>> dg.fft.ifft2(dg.ones(4, 4)).shape
    dyngraph.Size([4, 4])
    """
    return fourier.inverse_transform(input, s, dim, norm)


def ifftn(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] | None = None,
    norm: str | None = None,
) -> Tensor:
    """The signals of which `fftn` gives these spectra.

    >>> dg.fft.ifftn(dg.ones(4, 4)).shape
    dyngraph.Size([4, 4])
    """
    return fourier.inverse_transform(input, s, dim, norm)


def rfft2(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """`rfftn` over two dims, by default the last ones.

    >>> dg.fft.rfft2(dg.ones(4, 4)).shape
    dyngraph.Size([4, 3])
    """
    return fourier.real_transform(input, s, dim, norm)


def rfftn(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] | None = None,
    norm: str | None = None,
) -> Tensor:
    """The spectrum of real signals over several dims, halved in the last.

    >>> dg.fft.rfftn(dg.ones(4, 4)).shape
    dyngraph.Size([4, 3])
    """
    return fourier.real_transform(input, s, dim, norm)


def irfft2(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """`irfftn` over two dims, by default the last ones.

    >>> dg.fft.irfft2(dg.ones(4, 4)).shape
    dyngraph.Size([4, 6])
    """
    return fourier.inverse_real_transform(input, s, dim, norm)


def irfftn(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] | None = None,
    norm: str | None = None,
) -> Tensor:
    """The real signals of which `rfftn` gives these spectra.

    >>> dg.fft.irfftn(dg.ones(4, 4)).shape
    dyngraph.Size([4, 6])
    """
    return fourier.inverse_real_transform(input, s, dim, norm)


def hfft2(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """`hfftn` over two dims, by default the last ones.

    >>> dg.fft.hfft2(dg.ones(4, 4)).shape
    dyngraph.Size([4, 6])
    """
    return fourier.hermitian_transform(input, s, dim, norm)


def hfftn(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] | None = None,
    norm: str | None = None,
) -> Tensor:
    """The real spectrum of Hermitian signals over several dims, halved in the last.

    >>> dg.fft.hfftn(dg.ones(4, 4)).shape
    dyngraph.Size([4, 6])
    """
    return fourier.hermitian_transform(input, s, dim, norm)


def ihfft2(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """`ihfftn` over two dims, by default the last ones.

    >>> dg.fft.ihfft2(dg.ones(4, 4)).shape
    dyngraph.Size([4, 3])
    """
    return fourier.inverse_hermitian_transform(input, s, dim, norm)


def ihfftn(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] | None = None,
    norm: str | None = None,
) -> Tensor:
    """Half of the Hermitian signals of which `hfftn` gives these real spectra.

    >>> dg.fft.ihfftn(dg.ones(4, 4)).shape
    dyngraph.Size([4, 3])
    """
    return fourier.inverse_hermitian_transform(input, s, dim, norm)


# --- frequencies ------------------------------------------------------------------------------


def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The frequencies of the values of `fft`, for `n` samples `d` apart.

    >>> dg.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    steps = [*range((n + 1) // 2), *range(-(n // 2), 0)]
    return _frequencies(steps, n, d, dtype, device, requires_grad)


def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The frequencies of the values of `rfft`, for `n` samples `d` apart.

    >>> dg.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return _frequencies(range(n // 2 + 1), n, d, dtype, device, requires_grad)


def _frequencies(
    steps: Sequence[int], n: int, d: float, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    values = [k / (n * d) for k in steps]
    return from_data.tensor(
        values,
        dtype=dtype or dtypes.get_default_dtype(),
        device=device,
        requires_grad=requires_grad,
    )


def fftshift(input: Any, dim: Any = None) -> Tensor:
    """The values rolled by half, so that frequency 0 comes to the middle; along all dims or `dim`.

    >>> dg.fft.fftshift(dg.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _rolled(input, dim, 0)


def ifftshift(input: Any, dim: Any = None) -> Tensor:
    """The inverse of `fftshift`.

    >>> dg.fft.ifftshift(dg.tensor([-1, 0, 1]))
    tensor([ 0,  1, -1])
    """
    return _rolled(input, dim, 1)


def _rolled(input: Any, dim: Any, more: int) -> Tensor:
    shape = array_of(input).shape
    dims = tuple(range(len(shape))) if dim is None else distinct_dims(dim, len(shape))
    return permutation.roll(input, tuple((shape[d] + more) // 2 for d in dims), dims)


__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

"""PyTorch's `torch.fft`: transforms of one, two or several dims.

The `norm` of each says where the scale is: "backward" (the default) puts 1/n on the inverse
transform, "forward" on the transform, "ortho" 1/sqrt(n) on both. `n` or `s` cuts or pads with zeros
first. Integers give the default dtype's transform; RuntimeError for 16-bit floats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dyngraph import dtypes
from dyngraph.ops import fourier, from_data, permutation
from dyngraph.ops.arguments import distinct_dims, titled
from dyngraph.ops.host_values import described
from dyngraph.ops.out import takes_out
from dyngraph.tensor import Tensor

# --- one dim ----------------------------------------------------------------------------------


def _along_one_dim(name: str, transform: Callable[..., Tensor], doc: str) -> Callable[..., Tensor]:
    def function(
        input: Any, n: int | None = None, dim: int = -1, norm: str | None = None
    ) -> Tensor:
        if not described(input).ndim:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        return transform(input, None if n is None else (n,), (dim,), norm)

    return takes_out(titled(function, name, doc))


fft = _along_one_dim(
    "fft",
    fourier.complex_transform,
    """The spectrum of signals: the sums of x_t exp(-2 pi i k t / n).

    >>> dg.fft.fft(dg.tensor([1.0, 2.0]))
    tensor([ 3.+0.j, -1.+0.j])
    """,
)

ifft = _along_one_dim(
    "ifft",
    fourier.inverse_transform,
    """The signals of which `fft` gives these spectra.

    >>> dg.fft.ifft(dg.tensor([3.0, -1.0]))
    tensor([1.+0.j, 2.+0.j])
    """,
)

rfft = _along_one_dim(
    "rfft",
    fourier.real_transform,
    """The spectrum of real signals: its first n // 2 + 1 values, which tell the others.

    >>> dg.fft.rfft(dg.tensor([1.0, 2.0, 3.0]))
    tensor([ 6.0000+0.0000j, -1.5000+0.8660j])
    """,
)

irfft = _along_one_dim(
    "irfft",
    fourier.inverse_real_transform,
    """The real signals of which `rfft` gives these spectra; `n` is by default even.

    >>> dg.fft.irfft(dg.tensor([3.0, -1.0]))
    tensor([1., 2.])
    """,
)

hfft = _along_one_dim(
    "hfft",
    fourier.hermitian_transform,
    """The real spectrum of signals with x_-t = conj(x_t), of which half is given.

    >>> dg.fft.hfft(dg.tensor([1.0, 2.0]))
    tensor([ 3., -1.])
    """,
)

ihfft = _along_one_dim(
    "ihfft",
    fourier.inverse_hermitian_transform,
    """Half of the Hermitian signals of which `hfft` gives these real spectra.

    >>> dg.fft.ihfft(dg.tensor([3.0, -1.0]))
    tensor([1.-0.j, 2.-0.j])
    """,
)


# --- several dims -----------------------------------------------------------------------------


def _over_dims(
    name: str, transform: Callable[..., Tensor], dims: Sequence[int] | None, doc: str
) -> Callable[..., Tensor]:
    def function(
        input: Any,
        s: Sequence[int] | None = None,
        dim: Sequence[int] | None = dims,
        norm: str | None = None,
    ) -> Tensor:
        return transform(input, s, dim, norm)

    return takes_out(titled(function, name, doc))


fft2 = _over_dims(
    "fft2",
    fourier.complex_transform,
    (-2, -1),
    """`fftn` over two dims, by default the last ones.

    >>> dg.fft.fft2(dg.ones(4, 4)).shape
    dyngraph.Size([4, 4])
    """,
)

fftn = _over_dims(
    "fftn",
    fourier.complex_transform,
    None,
    """The spectrum over several dims; all, or as many of the last as `s` has, without `dim`.

    >>> dg.fft.fftn(dg.ones(4, 4)).shape
    dyngraph.Size([4, 4])
    """,
)

ifft2 = _over_dims(
    "ifft2",
    fourier.inverse_transform,
    (-2, -1),
    """`ifftn` over two dims, by default the last ones.

    >>> dg.fft.ifft2(dg.ones(4, 4)).shape
    dyngraph.Size([4, 4])
    """,
)

ifftn = _over_dims(
    "ifftn",
    fourier.inverse_transform,
    None,
    """The signals of which `fftn` gives these spectra.

    >>> dg.fft.ifftn(dg.ones(4, 4)).shape
    dyngraph.Size([4, 4])
    """,
)

rfft2 = _over_dims(
    "rfft2",
    fourier.real_transform,
    (-2, -1),
    """`rfftn` over two dims, by default the last ones.

    >>> dg.fft.rfft2(dg.ones(4, 4)).shape
    dyngraph.Size([4, 3])
    """,
)

rfftn = _over_dims(
    "rfftn",
    fourier.real_transform,
    None,
    """The spectrum of real signals over several dims, halved in the last.

    >>> dg.fft.rfftn(dg.ones(4, 4)).shape
    dyngraph.Size([4, 3])
    """,
)

irfft2 = _over_dims(
    "irfft2",
    fourier.inverse_real_transform,
    (-2, -1),
    """`irfftn` over two dims, by default the last ones.

    >>> dg.fft.irfft2(dg.ones(4, 4)).shape
    dyngraph.Size([4, 6])
    """,
)

irfftn = _over_dims(
    "irfftn",
    fourier.inverse_real_transform,
    None,
    """The real signals of which `rfftn` gives these spectra.

    >>> dg.fft.irfftn(dg.ones(4, 4)).shape
    dyngraph.Size([4, 6])
    """,
)

hfft2 = _over_dims(
    "hfft2",
    fourier.hermitian_transform,
    (-2, -1),
    """`hfftn` over two dims, by default the last ones.

    >>> dg.fft.hfft2(dg.ones(4, 4)).shape
    dyngraph.Size([4, 6])
    """,
)

hfftn = _over_dims(
    "hfftn",
    fourier.hermitian_transform,
    None,
    """The real spectrum of Hermitian signals over several dims, halved in the last.

    >>> dg.fft.hfftn(dg.ones(4, 4)).shape
    dyngraph.Size([4, 6])
    """,
)

ihfft2 = _over_dims(
    "ihfft2",
    fourier.inverse_hermitian_transform,
    (-2, -1),
    """`ihfftn` over two dims, by default the last ones.

    >>> dg.fft.ihfft2(dg.ones(4, 4)).shape
    dyngraph.Size([4, 3])
    """,
)

ihfftn = _over_dims(
    "ihfftn",
    fourier.inverse_hermitian_transform,
    None,
    """Half of the Hermitian signals of which `hfftn` gives these real spectra.

    >>> dg.fft.ihfftn(dg.ones(4, 4)).shape
    dyngraph.Size([4, 3])
    """,
)


# --- frequencies ------------------------------------------------------------------------------


def _frequencies(
    name: str, steps: Callable[[int], Iterable[int]], doc: str
) -> Callable[..., Tensor]:
    def function(
        n: int,
        d: float = 1.0,
        *,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        return from_data.tensor(
            [k / (n * d) for k in steps(n)],
            dtype=dtype or dtypes.get_default_dtype(),
            device=device,
            requires_grad=requires_grad,
        )

    return takes_out(titled(function, name, doc))


fftfreq = _frequencies(
    "fftfreq",
    lambda n: [*range((n + 1) // 2), *range(-(n // 2), 0)],
    """The frequencies of the values of `fft`, for `n` samples `d` apart.

    >>> dg.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """,
)

rfftfreq = _frequencies(
    "rfftfreq",
    lambda n: range(n // 2 + 1),
    """The frequencies of the values of `rfft`, for `n` samples `d` apart.

    >>> dg.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """,
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
    shape = described(input).shape
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

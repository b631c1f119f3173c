"""Rows of the operators in `dyngraph/ops/fourier.py`, under their names in `dyngraph.fft`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp

from tests.opinfo import OpInfo, Sample, call, complex_normal, normal

OPPOSITE = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def one(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, n=None, dim=-1, norm=None: function(x, n, dim, norm)


def several(function: Callable[..., Any], dims: Sequence[int] | None = None) -> Callable[..., Any]:
    return lambda x, s=None, dim=dims, norm=None: function(x, s, dim, norm)


def hfftn(x: Any, s: Any, axes: Any, norm: Any) -> Any:
    return jnp.fft.irfftn(jnp.conj(x), s, axes, OPPOSITE[norm])


def ihfftn(x: Any, s: Any, axes: Any, norm: Any) -> Any:
    return jnp.conj(jnp.fft.rfftn(x, s, axes, OPPOSITE[norm]))


def frames(x: Any, n_fft: int, hop: int, window: Any) -> Any:
    starts = range(0, x.shape[-1] - n_fft + 1, hop)
    columns = [jnp.fft.rfft(x[..., i : i + n_fft] * window) for i in starts]
    return jnp.stack(columns, -1)


def row(name: str, samples: Sequence[Sample], reference: Callable[..., Any]) -> OpInfo:
    """A row of a linear function: of a few the second derivative is enough."""
    return OpInfo(
        f"fft.{name}",
        samples,
        reference,
        second=name in ("fft", "irfft"),
        no_half="" if name.endswith("shift") else "Unsupported dtype",
        refuses_empty="Invalid number of data points",
    )


last_two = (-2, -1)

ROWS: list[OpInfo] = [
    row("fft", [call(normal(2, 3)), call(complex_normal(3, 2), 4, 0, "ortho")], one(jnp.fft.fft)),
    row("ifft", [call(complex_normal(2, 3), 2, norm="forward")], one(jnp.fft.ifft)),
    row("rfft", [call(normal(2, 3)), call(normal(4), 3, norm="forward")], one(jnp.fft.rfft)),
    row("irfft", [call(complex_normal(2, 3)), call(normal(3), 5)], one(jnp.fft.irfft)),
    row("hfft", [call(complex_normal(2, 3), norm="ortho")], one(jnp.fft.hfft)),
    row("ihfft", [call(normal(2, 4), None, 0)], one(jnp.fft.ihfft)),
    row("fft2", [call(normal(2, 2, 3))], several(jnp.fft.fft2, last_two)),
    row("ifft2", [call(complex_normal(2, 3), (2, 2))], several(jnp.fft.ifft2, last_two)),
    row("rfft2", [call(normal(3, 2), (4, 3))], several(jnp.fft.rfft2, last_two)),
    row("irfft2", [call(complex_normal(2, 3), norm="ortho")], several(jnp.fft.irfft2, last_two)),
    row("hfft2", [call(complex_normal(2, 3))], several(hfftn, last_two)),
    row("ihfft2", [call(normal(2, 3))], several(ihfftn, last_two)),
    row("fftn", [call(normal(2, 2, 3), (3, 2))], several(jnp.fft.fftn)),
    row("ifftn", [call(complex_normal(2, 3), None, (0,))], several(jnp.fft.ifftn)),
    row("rfftn", [call(normal(2, 3), norm="ortho")], several(jnp.fft.rfftn)),
    row("irfftn", [call(complex_normal(2, 3))], several(jnp.fft.irfftn)),
    row("hfftn", [call(complex_normal(2, 3), None, (1, 0))], several(hfftn)),
    row("ihfftn", [call(normal(2, 3))], several(ihfftn)),
    row("fftshift", [call(normal(3, 2)), call(normal(2, 3), 1)], jnp.fft.fftshift),
    row("ifftshift", [call(normal(3, 2), (0,))], jnp.fft.ifftshift),
    OpInfo(
        "stft",
        [call(normal(2, 8), 4, 2, 4, normal(4), False, return_complex=True)],
        lambda x, n_fft, hop, length, window, center, **_: frames(x, n_fft, hop, window),
        no_half="Unsupported dtype",
    ),
    OpInfo(
        "istft",
        [call(complex_normal(4, 2), 4, 2, center=False, onesided=False)],
        lambda z, n_fft, hop, **_: (
            sum(jnp.pad(jnp.fft.ifft(z[:, k]).real, (hop * k, hop * (1 - k))) for k in range(2))
            / jnp.array([1, 1, 2, 2, 1, 1])
        ),
        second=False,  # linear
        no_empty="the twin is written for this size",
    ),
]

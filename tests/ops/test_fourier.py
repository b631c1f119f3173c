"""What the rows can't say of Fourier transforms: errors, frequencies, the inverse of stft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from tests.opinfo import normal

ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no points": (
        lambda: dg.fft.fft(dg.ones(3), n=0),
        RuntimeError,
        r"Invalid number of data points \(0\) specified",
    ),
    "dim": (lambda: dg.fft.fft(dg.ones(3), dim=2), IndexError, "Dimension out of range"),
    "no dims": (lambda: dg.fft.fft(dg.tensor(1.0)), IndexError, "tensor has no dimensions"),
    "norm": (
        lambda: dg.fft.fft(dg.ones(3), norm="x"),
        RuntimeError,
        'Invalid normalization mode: "x"',
    ),
    "complex": (
        lambda: dg.fft.rfft(dg.ones(3, dtype=dg.complex64)),
        RuntimeError,
        "expects a real input tensor",
    ),
    "dims named twice": (
        lambda: dg.fft.fftn(dg.ones(3, 3), dim=(0, 0)),
        RuntimeError,
        "FFT dims must be unique",
    ),
    "too many sizes": (
        lambda: dg.fft.fftn(dg.ones(3, 3), s=(1, 1, 1)),
        RuntimeError,
        "Got shape with 3 values but input tensor only has 2 dimensions",
    ),
    "sizes and dims": (
        lambda: dg.fft.fftn(dg.ones(3, 3), s=(1,), dim=(0, 1)),
        RuntimeError,
        "dim and shape arguments must have the same length",
    ),
    "16 bits": (
        lambda: dg.fft.fft(dg.ones(3, dtype=dg.bfloat16)),
        RuntimeError,
        "Unsupported dtype bfloat16",
    ),
    "stft": (
        lambda: dg.stft(dg.ones(8), 4),
        RuntimeError,
        "requires the return_complex parameter",
    ),
    "stft, window": (
        lambda: dg.stft(dg.ones(8), 4, window=dg.ones(3), return_complex=True),
        RuntimeError,
        "expected a 1D window tensor of size equal to win_length=4",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_wrong_argument_raises(case: str) -> None:
    call, error, message = ERRORS[case]
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("n", [4, 5])
def test_frequencies_are_those_of_numpy(n: int) -> None:
    np.testing.assert_allclose(dg.fft.fftfreq(n, 0.5).numpy(), np.fft.fftfreq(n, 0.5))
    np.testing.assert_allclose(dg.fft.rfftfreq(n, 0.5).numpy(), np.fft.rfftfreq(n, 0.5))


def test_integers_are_transformed_as_floats() -> None:
    assert dg.fft.fft(dg.tensor([1, 2])).dtype == dg.complex64


def test_istft_inverts_stft() -> None:
    x, window = dg.tensor(normal(2, 20)), dg.tensor(np.hanning(8).astype(np.float32) + 0.1)
    spectra = dg.stft(x, 8, 3, window=window, return_complex=True)
    back = dg.istft(spectra, 8, 3, window=window, length=20)
    np.testing.assert_allclose(back.numpy(), x.numpy(), rtol=1e-4, atol=1e-4)

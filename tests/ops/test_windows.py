"""Windows of signals: lengths 0 and 1, periodic and symmetric ones, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg

w = dg.signal.windows

TOP = ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window")
PLAIN = "bartlett blackman cosine exponential gaussian hamming hann kaiser nuttall".split()

# Numbers of five values that PyTorch 2.13 printed.
SYMMETRIC: dict[str, tuple[Callable[[], Any], list[float]]] = {
    "bartlett": (lambda: w.bartlett(5), [0.0, 0.5, 1.0, 0.5, 0.0]),
    "blackman": (lambda: w.blackman(5), [0.0, 0.34, 1.0, 0.34, 0.0]),
    "cosine": (lambda: w.cosine(5), [0.3090, 0.8090, 1.0, 0.8090, 0.3090]),
    "exponential": (lambda: w.exponential(5, tau=2.0), [0.3679, 0.6065, 1.0, 0.6065, 0.3679]),
    "gaussian": (lambda: w.gaussian(5, std=2.0), [0.6065, 0.8825, 1.0, 0.8825, 0.6065]),
    "general_cosine": (
        lambda: w.general_cosine(5, a=[0.46, 0.23, 0.31]),
        [0.54, 0.15, 1.0, 0.15, 0.54],
    ),
    "general_hamming": (lambda: w.general_hamming(5, alpha=0.6), [0.2, 0.6, 1.0, 0.6, 0.2]),
    "hamming": (lambda: w.hamming(5), [0.08, 0.54, 1.0, 0.54, 0.08]),
    "hann": (lambda: w.hann(5), [0.0, 0.5, 1.0, 0.5, 0.0]),
    "kaiser": (lambda: w.kaiser(5, beta=3.0), [0.2049, 0.7269, 1.0, 0.7269, 0.2049]),
    "nuttall": (lambda: w.nuttall(5), [3.628e-4, 0.22698, 1.0, 0.22698, 3.628e-4]),
}


@pytest.mark.parametrize(("make", "values"), SYMMETRIC.values(), ids=SYMMETRIC.keys())
def test_symmetric_window_has_pytorchs_values(make: Callable[[], Any], values: list[float]) -> None:
    np.testing.assert_allclose(make().numpy(), values, atol=5e-5)


@pytest.mark.parametrize("name", PLAIN)
def test_periodic_window_is_a_symmetric_one_without_its_end(name: str) -> None:
    make = getattr(w, name)
    np.testing.assert_allclose(make(6, sym=False).numpy(), make(7).numpy()[:6], atol=1e-6)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hann", "kaiser"])
def test_window_of_torch_is_that_of_signal(name: str) -> None:
    ours = getattr(dg, f"{name}_window")
    assert ours(6).tolist() == getattr(w, name)(6, sym=False).tolist()
    assert ours(6, False).tolist() == getattr(w, name)(6).tolist()


@pytest.mark.parametrize("name", TOP)
def test_window_of_length_0_is_empty_and_of_length_1_is_1(name: str) -> None:
    assert getattr(dg, name)(0).shape == (0,)
    assert getattr(dg, name)(1).tolist() == [1.0]


@pytest.mark.parametrize("name", PLAIN)
def test_window_of_signal_of_length_0_is_empty_and_of_length_1_is_1(name: str) -> None:
    assert getattr(w, name)(0).shape == (0,)
    assert getattr(w, name)(1).tolist() == [1.0]


def test_hamming_window_takes_both_coefficients() -> None:
    np.testing.assert_allclose(dg.hamming_window(4, True, 0.6, 0.3), [0.3, 0.6, 0.9, 0.6], 1e-6)


def test_exponential_window_falls_off_from_its_center() -> None:
    window = w.exponential(3, center=0, sym=False).numpy()
    np.testing.assert_allclose(window, np.exp([0.0, -1.0, -2.0]), rtol=1e-6)


def test_window_takes_dtype_and_requires_grad() -> None:
    window = dg.hann_window(3, dtype=dg.float16, requires_grad=True)
    assert window.dtype == dg.float16
    assert window.is_leaf
    assert window.requires_grad


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "negative": (lambda: dg.hann_window(-1), RuntimeError, "non-negative window_length"),
    "fraction": (lambda: dg.hann_window(2.5), TypeError, "must be int, not float"),  # type: ignore
    "integers": (
        lambda: dg.kaiser_window(3, dtype=dg.int32),
        RuntimeError,
        "floating point dtypes, got dyngraph.int32. Convert the window",
    ),
    "signal, negative": (lambda: w.hann(-1), ValueError, "non-negative window length"),
    "signal, half": (
        lambda: w.hann(3, dtype=dg.float16),
        ValueError,
        "Convert the window afterwards",
    ),
    "tau": (lambda: w.exponential(3, tau=0.0), ValueError, "Tau must be positive"),
    "center": (lambda: w.exponential(3, center=1.0), ValueError, "Pass sym=False"),
    "std": (lambda: w.gaussian(3, std=-1.0), ValueError, "deviation must be positive"),
    "beta": (lambda: w.kaiser(3, beta=-1.0), ValueError, "beta must be non-negative"),
    "no coefficients": (lambda: w.general_cosine(3, a=[]), ValueError, "at least one number"),
    "one coefficient": (
        lambda: w.general_cosine(3, a=3.0),  # type: ignore[arg-type]
        TypeError,
        "must be a list",
    ),
}


@pytest.mark.parametrize(("call", "error", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_window_that_pytorch_refuses_raises(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()

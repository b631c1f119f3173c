"""`arange`, `linspace` and `logspace`: dtypes, ends, errors.

Values and error types were recorded from PyTorch 2.13.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dyngraph as dg


@pytest.mark.parametrize(
    "arguments, dtype, expected",
    [
        ((0, 1, 0.1), None, [0.1 * i for i in range(10)]),
        ((0.5, 3), dg.int32, [0, 1, 2]),
        ((3,), dg.float16, [0.0, 1.0, 2.0]),
        ((0, 5, 2), dg.uint8, [0, 2, 4]),
        ((5, 0, -2), dg.int8, [5, 3, 1]),
        ((True,), None, [0]),
    ],
)
def test_arange_element_is_start_plus_multiple_of_step(
    arguments: Any, dtype: Any, expected: Any
) -> None:
    x = dg.arange(*arguments, dtype=dtype)
    np.testing.assert_array_equal(x.numpy(), np.array(expected, x.dtype.dtype))


def test_arange_takes_tensors_and_keywords() -> None:
    assert dg.arange(dg.tensor(3)).tolist() == [0, 1, 2]
    assert dg.arange(0, dg.tensor(2.0)).dtype == dg.float32
    assert dg.arange(end=2).tolist() == [0, 1]
    assert dg.arange(start=1, end=3).tolist() == [1, 2]


@pytest.mark.parametrize("end", [float("inf"), float("nan")])
def test_arange_to_no_finite_number_raises(end: float) -> None:
    with pytest.raises(RuntimeError, match="unsupported range"):
        dg.arange(end)


def test_linspace_of_integers_cuts_off() -> None:
    assert dg.linspace(0, 10, 4, dtype=dg.int32).tolist() == [0, 3, 6, 10]


def test_linspace_of_complex_numbers() -> None:
    assert dg.linspace(0, 1j, 3).tolist() == [0j, 0.5j, 1j]


def test_logspace_raises_its_base_to_the_numbers() -> None:
    assert dg.logspace(0, 3, 4, base=2).tolist() == [1.0, 2.0, 4.0, 8.0]
    assert dg.logspace(0, 2, 3).tolist() == [1.0, 10.0, 100.0]

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


@pytest.mark.filterwarnings("ignore:range\\(\\) is deprecated")
@pytest.mark.parametrize(
    ("args", "values"),
    [((1, 4), [1, 2, 3, 4]), ((0, 1, 0.5), [0, 0.5, 1]), ((5, 1, -3), [5, 2])],
)
def test_range_has_its_end(args: tuple[float, ...], values: list[float]) -> None:
    made = dg.range(*args)
    assert (made.tolist(), made.dtype) == (values, dg.float32)


def test_range_is_deprecated() -> None:
    with pytest.warns(UserWarning, match=r"Use arange\(\), whose end is not"):
        assert dg.range(1, 2, dtype=dg.int32).tolist() == [1, 2]


@pytest.mark.filterwarnings("ignore:range\\(\\) is deprecated")
def test_range_that_does_not_end_raises() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'end'"):
        dg.range(4)
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        dg.range(1, 2, 0)
    with pytest.raises(RuntimeError, match="inconsistent with step sign"):
        dg.range(2, 1)
    with pytest.raises(RuntimeError, match="Both bounds must be finite"):
        dg.range(1, float("inf"))

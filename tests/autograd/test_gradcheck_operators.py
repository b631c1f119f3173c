"""gradcheck on operators of every family: a sample of the table's rows, checked in every way.

`tests/ops` holds the gradient of every row against finite differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.autograd import gradcheck, gradgradcheck
from tests.opinfo import OpInfo
from tests.ops.test_operators import WITH_GRADIENT, arrays_of, flat, is_float, operator

SMOOTH = {
    row.name: row for row, _ in WITH_GRADIENT if not row.no_differences and row.direction is None
}
EVERY = 24


@pytest.mark.parametrize("row", list(SMOOTH.values())[::EVERY], ids=lambda row: row.name)
def test_operator_passes(row: OpInfo, x64: None) -> None:
    sample = next(s for s in row.samples if any(map(is_float, arrays_of(s)[0])))
    arrays, rebuild = arrays_of(sample)

    def func(*inputs: dg.Tensor) -> list[Any]:
        return flat(operator(row.name)(*rebuild(list(inputs)), **sample.kwargs))

    def as_input(array: np.ndarray) -> dg.Tensor:
        if not is_float(array):
            return dg.tensor(array)
        wide = np.complex128 if array.dtype.kind == "c" else np.float64
        return dg.tensor(array.astype(wide), requires_grad=True)

    inputs = [as_input(a) for a in arrays]
    assert gradcheck(
        func,
        inputs,
        fast_mode=True,
        check_forward_ad=True,
        check_batched_grad=True,
        check_batched_forward_grad=True,
    )
    if row.second:
        assert gradgradcheck(func, inputs, fast_mode=True)

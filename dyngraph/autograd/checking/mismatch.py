"""Mismatch: where two Jacobians differ, and how that is told."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyngraph.autograd.checking.jacobians import Point
from dyngraph.dtypes import dtype
from dyngraph.printing import format_tensor


class Pair(NamedTuple):
    """Which Jacobian is compared: that of one output for one input, made in one way.

    `part` is "real" or "imaginary" where only that part of complex outputs (in forward mode: of
    complex inputs) is looked at.
    """

    output: int
    input: int
    forward: bool = False
    part: str | None = None

    def title(self) -> str:
        """The first line of what is said of it."""
        parts = "inputs" if self.forward else "outputs"
        prefix = (
            f"While considering the {self.part} part of complex {parts} only, " if self.part else ""
        )
        mode = "computed with forward mode " if self.forward else ""
        return (
            f"{prefix}Jacobian {mode}mismatch for output {self.output} with respect to input "
            f"{self.input},\n"
        )


def is_close(analytical: np.ndarray, numerical: np.ndarray, rtol: float, atol: float) -> bool:
    """Whether they agree, where a NaN agrees with nothing."""
    return bool(np.allclose(analytical, numerical, rtol, atol))


def both(analytical: np.ndarray, numerical: np.ndarray) -> str:
    """Two Jacobians as text."""
    return (
        f"numerical:{format_tensor(numerical, suffixes=())}\n"
        f"analytical:{format_tensor(analytical, suffixes=())}\n"
    )


@np.errstate(invalid="ignore")
def difference(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """How far the elements are apart: NaN where both are infinite."""
    return np.abs(one - other)


def largest_difference(
    analytical: np.ndarray, numerical: np.ndarray, point: Point, pair: Pair
) -> str:
    """The largest difference between two Jacobians and where it is, as a sentence."""
    apart = difference(analytical, numerical)
    row, column = np.unravel_index(np.argmax(apart), apart.shape)
    at = [
        [int(i) for i in np.unravel_index(place, tensor.shape)]
        for place, tensor in ((row, point.inputs[pair.input]), (column, point.outputs[pair.output]))
    ]
    return (
        f"The largest difference is {apart[row, column]:.6g}, at [{row}, {column}]: the "
        f"derivative of element {at[1]} of output {pair.output} with respect to element {at[0]} of "
        f"input {pair.input}.\n"
    )


def of_low_precision(point: Point, pair: Pair) -> str:
    """What an output of less than 64 bits explains; empty where it has them."""
    found: dtype = point.outputs[pair.output].dtype
    if found.itemsize >= (16 if found.is_complex else 8):
        return ""
    return (
        f"Output {pair.output} is {found}, which is too coarse for finite differences. Make "
        "tensors inside func with dtype=x.dtype, and convert nothing to less than 64 bits.\n"
    )

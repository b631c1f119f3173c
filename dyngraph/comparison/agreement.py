"""How far gradients are from each other: as numbers, and in units in the last place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np


class Agreement(NamedTuple):
    """The greatest difference of any element, absolute, relative to the greatest element of its
    gradient, and in units in the last place of the larger of the two; infinite where one is no
    number and the other is."""

    absolute: float
    relative: float
    ulp: float


def agreement(found: Sequence[Any], expected: Sequence[Any]) -> Agreement:
    """Of gradients with those expected.

    >>> from dyngraph.comparison.agreement import agreement
    >>> agreement([np.float32([1.0, 2.0])], [np.float32([1.0, 2.0 + 2**-22])]).ulp
    1.0
    """
    worst = [0.0, 0.0, 0.0]
    for mine, its in zip(found, expected, strict=True):
        measured = _of_one(np.asarray(mine), np.asarray(its))
        worst = [max(pair) for pair in zip(worst, measured, strict=True)]
    return Agreement(*worst)


def _of_one(found: np.ndarray, expected: np.ndarray) -> Agreement:
    if found.shape != expected.shape:
        return Agreement(np.inf, np.inf, np.inf)
    if not found.size:
        return Agreement(0.0, 0.0, 0.0)
    precision = jnp.finfo(expected.dtype)
    mine, its = _real(found), _real(expected)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        difference = np.abs(mine - its)
        difference[(mine == its) | (np.isnan(mine) & np.isnan(its))] = 0.0
        difference[np.isnan(difference)] = np.inf
        larger = np.maximum(np.abs(mine), np.abs(its))
        larger = np.maximum(larger, float(precision.tiny))
        unit = np.exp2(np.floor(np.log2(larger))) * float(precision.eps)
        ulp = np.where(difference > 0, difference / unit, 0.0)
        ulp[np.isnan(ulp)] = np.inf
        scale = np.abs(its[np.isfinite(its)]).max(initial=0.0)
        worst = float(difference.max())
        relative = worst / scale if scale else (0.0 if worst == 0 else float("inf"))
    return Agreement(worst, float(relative), float(ulp.max()))


def _real(array: np.ndarray) -> np.ndarray:
    """As 64-bit floats; the two parts of complex numbers one after the other."""
    if np.iscomplexobj(array):
        array = np.stack([np.real(array), np.imag(array)])
    return np.atleast_1d(array.astype(np.float64))

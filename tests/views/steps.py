"""Views that random programs take: the same on a Tensor and on numpy's arrays.

The set is small and chains of views are short, so that few kernels are ever compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import settings

# How many programs run: CI's profile is the one with more examples.
PROGRAMS = 2_000 if settings().max_examples >= 60 else 200


class ViewStep(NamedTuple):
    """A view: of which arrays it may be taken, on Tensors, and on arrays."""

    fits: Callable[[np.ndarray], bool]
    of: Callable[[Any], Any]
    twin: Callable[[np.ndarray], np.ndarray]


def diagonal(a: np.ndarray) -> np.ndarray:
    """numpy's diagonal, made writable: it is a view."""
    view = a.diagonal()
    view.flags.writeable = True
    return view


def by_index(index: Any, fits: Callable[[np.ndarray], bool]) -> ViewStep:
    return ViewStep(fits, lambda x: x[index], lambda a: a[index])


VIEW_STEPS: dict[str, ViewStep] = {
    "first": by_index((0, ...), lambda a: a.ndim > 0),
    "last": by_index((..., -1), lambda a: a.ndim > 1),
    "tail": by_index(slice(1, None), lambda a: a.ndim > 0 and a.shape[0] > 1),
    "every second": by_index((..., slice(None, None, 2)), lambda a: a.ndim > 0 and a.shape[-1] > 2),
    "transposed": ViewStep(
        lambda a: a.ndim > 1, lambda x: x.transpose(0, -1), lambda a: a.swapaxes(0, -1)
    ),
    "flat": ViewStep(
        lambda a: a.ndim > 1 and a.flags.c_contiguous,
        lambda x: x.view(-1),
        lambda a: a.reshape(-1),
    ),
    "diagonal": ViewStep(lambda a: a.ndim == 2, lambda x: x.diagonal(), diagonal),
    "unsqueezed": ViewStep(lambda a: a.ndim < 2, lambda x: x.unsqueeze(0), lambda a: a[None]),
}
LONGEST_CHAIN = 3


def fits_into(source: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a tensor of one shape may be written into one of the other."""
    try:
        return np.broadcast_shapes(source, target) == target
    except ValueError:
        return False

"""Numbers in a row: `arange`, `range`, `linspace`, `logspace`.

Every number is computed from its place in double precision, not from the number before it.
"""

from __future__ import annotations

import functools
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import dtypes
from dyngraph.ops.factory_arguments import number, place_of
from dyngraph.ops.filled import MAX_FILLERS
from dyngraph.ops.from_data import from_values
from dyngraph.ops.literals import fit_numbers
from dyngraph.ops.operator import UNSET
from dyngraph.ops.out import takes_out
from dyngraph.tensor import Tensor, wrap


@takes_out
def arange(
    start: Any = UNSET,
    end: Any = UNSET,
    step: Any = 1,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Numbers from `start` (0 if there is one argument) to before `end`, `step` apart.

    Integers where all arguments are, else the default dtype. Element i is start + i * step,
    computed in double precision. Raises RuntimeError for a step of 0 or away from `end`, and for a
    bound that is not finite.

    >>> dg.arange(5)
    tensor([0, 1, 2, 3, 4])
    >>> dg.arange(0, 1, 0.25)
    tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    if end is UNSET:
        start, end = (0, start) if start is not UNSET else (0, UNSET)
    if end is UNSET:
        raise TypeError("arange() missing 1 required positional argument: 'end'")
    start = 0 if start is UNSET else start
    start, end, step = numbers = _bounds("arange", start, end, step)
    integers = all(isinstance(v, int) for v in numbers)
    inferred = dtypes.default_int() if integers else dtypes.get_default_dtype()
    wanted = inferred if dtype is None else dtypes.as_dtype(dtype)
    if wanted == dtypes.bool:
        raise NotImplementedError(
            "arange() counts in numbers, not in bool. Compare the result with 0."
        )
    count = -((start - end) // step) if integers else math.ceil((end - start) / step)
    if not integers or count == 0 or wanted.is_differentiable:
        return _from_host(start + step * np.arange(count), wanted, device, requires_grad)
    ends = fit_numbers([start, start + step * (count - 1)], wanted)
    count_up = _counter(count, wanted.dtype, place_of(device))
    if start == 0 and step == 1:
        return wrap(count_up(), requires_grad=requires_grad)
    return wrap(count_up(ends[0], wanted.dtype.type(step)), requires_grad=requires_grad)


@takes_out
def range(
    start: Any = UNSET,
    end: Any = UNSET,
    step: Any = 1,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """`arange` with `end` among the numbers, and in the default dtype; PyTorch has deprecated it.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     dg.range(1, 3)
    tensor([1., 2., 3.])
    """
    warnings.warn(
        "range() is deprecated, since its end is among the numbers, unlike that of Python's range. "
        "Use arange(), whose end is not.",
        UserWarning,
        stacklevel=3,
    )
    if end is UNSET:
        raise TypeError("range() missing 1 required positional argument: 'end'")
    start = 0 if start is UNSET else start
    start, end, step = _bounds("range", start, end, step)
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    places = np.arange(math.floor((end - start) / step) + 1)
    return _from_host(start + step * places, wanted, device, requires_grad)


def _bounds(where: str, start: Any, end: Any, step: Any) -> list[Any]:
    """Both bounds and the step as Python numbers; RuntimeError where they do not go together."""
    bounds = [("start", start), ("end", end), ("step", step)]
    start, end, step = numbers = [number(where, name, v) for name, v in bounds]
    if not all(isinstance(v, (int, float)) for v in numbers):
        raise RuntimeError(f"{where}() expects real numbers, got complex ones.")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}. Both bounds must be finite.")
    if (end - start) * step < 0:
        raise RuntimeError(
            f"upper bound and lower bound inconsistent with step sign: {start} to {end} by {step}"
        )
    return numbers


@functools.lru_cache(MAX_FILLERS)
def _counter(count: int, dtype: Any, place: Any) -> Callable[..., Any]:
    return jax.jit(
        lambda start=0, step=1: start + step * jnp.arange(count, dtype=dtype), out_shardings=place
    )


def _from_host(values: Any, dtype: dtypes.dtype, device: Any, requires_grad: bool) -> Tensor:
    return from_values("", fit_numbers(values, dtype), dtype, place_of(device), requires_grad)


def _line(where: str, start: Any, end: Any, steps: Any) -> np.ndarray:
    """`steps` numbers from `start` to `end`, counted from both ends as PyTorch does."""
    start, end = number(where, "start", start), number(where, "end", end)
    count = operator.index(steps)
    if count < 0:
        raise RuntimeError(f"number of steps must be non-negative, got {count} (negative)")
    if count == 1:
        return np.array([start])
    places = np.arange(count)
    step = (end - start) / max(count - 1, 1)
    return np.where(places < count / 2, start + places * step, end - places[::-1] * step)


def _line_dtype(dtype: Any, values: np.ndarray) -> dtypes.dtype:
    if dtype is not None:
        return dtypes.as_dtype(dtype)
    default = dtypes.get_default_dtype()
    return default.to_complex() if values.dtype.kind == "c" else default


@takes_out
def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """`steps` numbers at equal distances, `start` and `end` among them, in the default dtype.

    >>> dg.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    values = _line("linspace", start, end, steps)
    return _from_host(values, _line_dtype(dtype, values), device, requires_grad)


@takes_out
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """`base` to the power of each number of `linspace(start, end, steps)`.

    >>> dg.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    values = np.power(float(base), _line("logspace", start, end, steps))
    return _from_host(values, _line_dtype(dtype, values), device, requires_grad)


__all__ = [
    "arange",
    "linspace",
    "logspace",
    "range",
]

METHODS = ()
"""The functions of this file that are methods of Tensor too."""

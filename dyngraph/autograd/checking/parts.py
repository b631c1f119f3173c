"""Parts: a function of complex numbers as functions of their real and their imaginary parts.

# Note [Complex numbers]
Finite differences know real functions. So a complex output is looked at as two real ones, its real
and its imaginary part; for forward mode, a complex input moves along one of its axes at a time.
What backward gives for a complex input, the derivative along the real axis plus 1j times that along
the imaginary one, is compared as a complex number.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dyngraph.autograd.checking.jacobians import Point, as_tuple
from dyngraph.ops.complexes import imag, real
from dyngraph.tensor import Tensor


def parts_of_outputs(point: Point) -> Iterator[tuple[str | None, Point]]:
    """The point, or where outputs are complex, that of the imaginary and that of the real parts."""
    if not any(o.is_complex() for o in point.outputs):
        yield None, point
        return

    def part_of_outputs(take: Callable[[Any], Any], *inputs: Any) -> tuple[Any, ...]:
        outputs = as_tuple(point.func(*inputs))
        return tuple(take(o) if o.is_complex() else o for o in outputs)

    for name, take in (("imaginary", imag), ("real", real)):
        yield name, Point.of(functools.partial(part_of_outputs, take), point.inputs)


def parts_of_inputs(point: Point) -> Iterator[tuple[str | None, Point]]:
    """The point, or where inputs are complex, those of functions of one part of each of them."""
    inputs = point.inputs
    places = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.is_complex()]
    if not places:
        yield None, point
        return

    def with_imaginary_part(*parts: Any) -> Any:
        return point.func(*_replaced(parts, places, lambda i: real(inputs[i]) + parts[i] * 1j))

    def with_real_part(*parts: Any) -> Any:
        return point.func(*_replaced(parts, places, lambda i: parts[i] + imag(inputs[i]) * 1j))

    yield (
        "imaginary",
        Point.of(with_imaginary_part, _replaced(inputs, places, lambda i: imag(inputs[i]))),
    )
    yield "real", Point.of(with_real_part, _replaced(inputs, places, lambda i: real(inputs[i])))


def _replaced(
    values: Sequence[Any], places: Sequence[int], new: Callable[[int], Any]
) -> tuple[Any, ...]:
    return tuple(new(i) if i in places else value for i, value in enumerate(values))

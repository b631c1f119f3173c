"""A line search for the strong Wolfe conditions (Nocedal and Wright, 2006, algorithms 3.5, 3.6),
with the choices of PyTorch's LBFGS, so that it evaluates at the same points."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple


class Point(NamedTuple):
    """A step along the direction: the loss, the gradient and its slope there."""

    step: float
    loss: float
    grad: Any
    slope: float


ENOUGH_DECREASE, ENOUGH_CURVATURE = 1e-4, 0.9


def strong_wolfe(
    evaluate: Callable[[float], Point],
    start: Point,
    step: float,
    *,
    longest: float,
    tolerance_change: float,
    most: int,
) -> tuple[Point, int]:
    """A point that fulfils the conditions, or the best one found, and how many were evaluated.

    `start` is the point of no step, `step` the first to try; `longest` is the greatest entry of the
    direction, and `most` how many further points may be evaluated.
    """
    before, point, count = start, evaluate(step), 1
    bracket: list[Point] = []
    tried = 0
    while tried < most:
        if _is_too_high(point, start) or (tried > 1 and point.loss >= before.loss):
            bracket = [before, point]
            break
        if _is_flat(point, start):
            return point, count
        if point.slope >= 0:
            bracket = [before, point]
            break
        low, high = point.step + 0.01 * (point.step - before.step), point.step * 10
        step = interpolate(before, point, (low, high))
        before, point = point, evaluate(step)
        count += 1
        tried += 1
    if not bracket:
        bracket = [start, point]
    return _zoom(evaluate, start, bracket, count, longest, tolerance_change, most - tried)


def _zoom(
    evaluate: Callable[[float], Point],
    start: Point,
    bracket: list[Point],
    count: int,
    longest: float,
    tolerance_change: float,
    most: int,
) -> tuple[Point, int]:
    """The better end of the bracket, after it was made smaller as often as needed."""
    low, high = sorted(bracket, key=_loss)
    last_count, is_stuck = count + most, False
    while count < last_count and abs(high.step - low.step) * longest >= tolerance_change:
        left, right = sorted((low.step, high.step))
        step, margin = interpolate(low, high, (left, right)), 0.1 * (right - left)
        if min(right - step, step - left) >= margin:
            is_stuck = False
        elif is_stuck or step >= right or step <= left:
            near_right = abs(step - right) < abs(step - left)
            step, is_stuck = (right - margin if near_right else left + margin), False
        else:
            is_stuck = True
        point = evaluate(step)
        count += 1
        if _is_too_high(point, start) or point.loss >= low.loss:
            low, high = sorted((low, point), key=_loss)
        elif _is_flat(point, start):
            return point, count
        else:
            if point.slope * (high.step - low.step) >= 0:
                high = low
            low = point
    return low, count


def _loss(point: Point) -> float:
    return point.loss


def _is_too_high(point: Point, start: Point) -> bool:
    return point.loss > start.loss + ENOUGH_DECREASE * point.step * start.slope


def _is_flat(point: Point, start: Point) -> bool:
    return abs(point.slope) <= -ENOUGH_CURVATURE * start.slope


def interpolate(one: Point, other: Point, bounds: tuple[float, float]) -> float:
    """Where the cubic through two points, with their slopes, is least, within the bounds."""
    low, high = bounds
    if one.step == other.step:
        return (low + high) / 2.0
    d = one.slope + other.slope - 3 * (one.loss - other.loss) / (one.step - other.step)
    square = d * d - one.slope * other.slope
    if not square >= 0:
        return (low + high) / 2.0
    root = math.sqrt(square)
    left, right = (one, other) if one.step <= other.step else (other, one)
    denominator = right.slope - left.slope + 2 * root
    if denominator == 0:
        return (low + high) / 2.0
    part = (right.slope + root - d) / denominator
    return min(max(right.step - (right.step - left.step) * part, low), high)

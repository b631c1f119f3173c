"""Comparison: the Jacobians of a function by its derivatives against those by finite differences.

# Note [Fast mode]
The slow way compares whole Jacobians J, element by element. The fast way compares v^T J u for
random u and v: one product J u by finite differences, against v^T J by one backward, times u. An
error of `atol` in each element adds up to atol * sum(u) * sum(v), so that is what is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dyngraph.autograd.checking.jacobians import (
    Direction,
    Point,
    by_backward,
    by_forward_mode,
    numerical,
    unit_directions,
    unit_vectors,
)
from dyngraph.autograd.checking.mismatch import (
    Pair,
    both,
    difference,
    is_close,
    largest_difference,
    of_low_precision,
)
from dyngraph.errors import GradcheckError
from dyngraph.tensor import Tensor


class Tolerances(NamedTuple):
    """How exact derivatives must be, and how they are looked at."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_grad_dtypes: bool
    fast_mode: bool


class Comparison:
    """One way to differentiate a function at a point, compared with finite differences.

    `point` has real outputs for backward, real inputs for forward mode; `part` says of what they
    are the part.
    """

    def __init__(
        self, point: Point, tolerances: Tolerances, *, forward: bool, part: str | None = None
    ) -> None:
        self.point = point
        self.given = tolerances
        self.forward = forward
        self.part = part
        self.moving = point.moving()
        self.recorded = point.recorded()

    def run(self) -> None:
        """Raises GradcheckError where the derivatives differ."""
        if self.given.fast_mode:
            self._run_fast()
        else:
            self._run_slowly()

    def _pair(self, output: int, input: int) -> Pair:
        return Pair(output, input, self.forward, self.part)

    def _input(self, place: int) -> Tensor:
        return self.point.inputs[place]

    def _numerical(self, place: int, directions: Any) -> list[np.ndarray | None]:
        return numerical(self.point, self._input(place), directions, self.given.eps)

    # --- element by element -------------------------------------------------------------------

    def _run_slowly(self) -> None:
        expected = {i: self._numerical(i, self._units(i)) for i in self.moving}
        if not self.recorded:
            for i, jacobians in expected.items():
                self._expect_zeros(i, jacobians, 0.0)
            return
        for output, found in self._analytical():
            for i, analytical in found.items():
                of_output = expected[i][output]
                assert of_output is not None, "an output that requires grad is differentiable"
                if not is_close(analytical, of_output, self.given.rtol, self.given.atol):
                    pair = self._pair(output, i)
                    raise GradcheckError(
                        pair.title()
                        + both(analytical, of_output)
                        + largest_difference(analytical, of_output, self.point, pair)
                        + of_low_precision(self.point, pair)
                    )

    def _units(self, place: int) -> Iterator[Direction]:
        return unit_directions(self._input(place).numel())

    def _analytical(self) -> Iterator[tuple[int, dict[int, np.ndarray]]]:
        """For each output that requires grad, its whole Jacobians for the inputs."""
        if self.forward:
            columns = {
                i: by_forward_mode(
                    self.point, i, self._units(i), check_grad_dtypes=self.given.check_grad_dtypes
                )
                for i in self.moving
            }
            for output in self.recorded:
                found = {i: column[output] for i, column in columns.items()}
                yield output, {i: j for i, j in found.items() if j is not None}
            return
        for output in self.recorded:
            count = self.point.outputs[output].numel()
            found = self._backward_twice(output, list(unit_vectors(count)))
            yield output, dict(zip(self.moving, found, strict=True))

    def _backward_twice(self, output: int, gradients: list[np.ndarray]) -> list[np.ndarray]:
        """The Jacobians of one output by backward, which must give the same again."""
        wanted = [self._input(i) for i in self.moving]
        first = by_backward(self.point.outputs[output], wanted, gradients)
        again = by_backward(self.point.outputs[output], wanted, gradients)
        for i, one, other in zip(self.moving, first, again, strict=True):
            if self.given.check_grad_dtypes and not one.has_right_dtype:
                raise GradcheckError(
                    f"Gradient has dtype mismatch: that of output {output} for input {i} is not "
                    f"{self._input(i).dtype}"
                )
            if not one.has_right_size:
                raise GradcheckError(
                    f"Analytical gradient has incorrect size: that of output {output} for input "
                    f"{i} is not {list(self._input(i).shape)}"
                )
            apart = difference(one.jacobian, other.jacobian).max(initial=0.0)
            if apart > self.given.nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and "
                    f"grad_output multiple times gives different values: those of output {output} "
                    f"for input {i} differ by up to {apart:.6g}. The tolerance for "
                    f"nondeterminism was {self.given.nondet_tol}. If backward is meant to be "
                    "random, pass a larger nondet_tol."
                )
        return [one.jacobian for one in first]

    def _expect_zeros(
        self, place: int, jacobians: list[np.ndarray | None], tolerance: float
    ) -> None:
        for output, jacobian in enumerate(jacobians):
            if jacobian is not None and not np.all(np.abs(jacobian) <= tolerance):
                raise GradcheckError(
                    "Numerical gradient for function expected to be zero, because no output "
                    f"requires grad, but output {output} changes with input {place}. Is it "
                    "detached, or computed from values that were taken out by item() or numpy()?"
                )

    # --- along random directions, see Note [Fast mode] ----------------------------------------

    def _run_fast(self) -> None:
        draw = np.random.default_rng(0)
        inputs = {i: Direction(*(_unit(draw, self._input(i)) for _ in "ri")) for i in self.moving}
        expected = {i: self._numerical(i, [u]) for i, u in inputs.items()}
        if not self.recorded:
            for i, jacobians in expected.items():
                self._expect_zeros(i, jacobians, self.given.nondet_tol)
            return
        if self.forward:
            found = {i: self._forward_product(i, u) for i, u in inputs.items()}
            weights = dict.fromkeys(self.recorded)
        else:
            weights = {o: _unit(draw, self.point.outputs[o]) for o in self.recorded}
            rows = {o: self._backward_twice(o, [v]) for o, v in weights.items()}
            found = {
                i: {o: _along(rows[o][place][:, 0], u) for o in self.recorded}
                for place, (i, u) in enumerate(inputs.items())
            }
        for i, u in inputs.items():
            for output, v in weights.items():
                product = expected[i][output]
                assert product is not None, "an output that requires grad is differentiable"
                product = product[0] if v is None else _dot(product[0], v)
                total = u.real.sum() + (u.imag.sum() if self._input(i).is_complex() else 0.0)
                atol = self.given.atol * float(total) * (1.0 if v is None else float(v.sum()))
                if not is_close(found[i][output], product, self.given.rtol, atol):
                    self._raise_in_full(self._pair(output, i), found[i][output], product)

    def _forward_product(self, place: int, direction: Direction) -> dict[int, np.ndarray]:
        products = by_forward_mode(
            self.point, place, [direction], check_grad_dtypes=self.given.check_grad_dtypes
        )
        return {o: p[0] for o in self.recorded if (p := products[o]) is not None}

    def _raise_in_full(self, pair: Pair, product: np.ndarray, expected: np.ndarray) -> None:
        """Raises for a difference that the fast way has found, with the whole Jacobians."""
        of_input = self._numerical(pair.input, self._units(pair.input))[pair.output]
        if self.forward:
            analytical = by_forward_mode(self.point, pair.input, self._units(pair.input))[
                pair.output
            ]
        else:
            output = self.point.outputs[pair.output]
            gradients = unit_vectors(output.numel())
            analytical = by_backward(output, [self._input(pair.input)], gradients)[0].jacobian
        assert of_input is not None and analytical is not None
        message = (
            pair.title()
            + both(np.asarray(product), np.asarray(expected))
            + "The above quantities are computed in fast mode: the Jacobians multiplied by random "
            "vectors. In slow mode they are\n"
            + both(analytical, of_input)
            + largest_difference(analytical, of_input, self.point, pair)
            + of_low_precision(self.point, pair)
        )
        if is_close(analytical, of_input, self.given.rtol, self.given.atol):
            message += (
                "Fast gradcheck failed but element-wise differences are small: it passes with "
                "fast_mode=False.\n"
            )
        raise GradcheckError(message)


def _unit(draw: np.random.Generator, like: Tensor) -> np.ndarray:
    """A random vector of length 1, without negative elements."""
    vector = draw.random(like.numel())
    return vector / np.linalg.norm(vector)


def _along(row: np.ndarray, direction: Direction) -> np.ndarray:
    """A row of a Jacobian times a direction of its input."""
    if np.iscomplexobj(row):
        return _dot(np.real(row), direction.real) + 1j * _dot(np.imag(row), direction.imag)
    return _dot(row, direction.real)


@np.errstate(invalid="ignore")  # where both infinities are in it, the sum is NaN
def _dot(row: np.ndarray, weights: np.ndarray) -> Any:
    return row @ weights

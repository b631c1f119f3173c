"""Jacobians of a function at a point: by finite differences, by backward and by forward mode.

All are numpy arrays with a row for each element of an input, or each direction in which the input
moves, and a column for each element of an output. A result that is None belongs to an output that
is no floating point or complex number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dyngraph import dtypes
from dyngraph.autograd import forward_ad
from dyngraph.autograd.checking.precision import place
from dyngraph.backward import grad
from dyngraph.errors import GradcheckError
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, new_tensor


class Point(NamedTuple):
    """A function, the inputs where it is looked at, and what it returned there."""

    func: Callable[..., Any]
    inputs: tuple[Any, ...]
    outputs: tuple[Tensor, ...]

    @classmethod
    def of(cls, func: Callable[..., Any], inputs: tuple[Any, ...]) -> Point:
        """The point at `inputs`; raises TypeError where `func` returns something else than
        tensors."""
        outputs = as_tuple(func(*inputs))
        for i, output in enumerate(outputs):
            if not isinstance(output, Tensor):
                raise TypeError(
                    f"func returned {type(output).__name__} as output {i}: expected a tensor, or a "
                    "tuple of tensors. Check a function that leaves it out."
                )
        return cls(func, inputs, outputs)

    def moving(self) -> list[int]:
        """The places of the inputs that require grad."""
        return differentiable(self.inputs)

    def recorded(self) -> list[int]:
        """The places of the outputs that require grad."""
        return differentiable(self.outputs)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """A list or tuple as a tuple, everything else as a tuple of it."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def differentiable(values: Sequence[Any]) -> list[int]:
    """The places of the tensors that require grad."""
    return [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad]


def array_of(tensor: Tensor) -> np.ndarray:
    """The elements as numpy has them."""
    return np.asarray(tensor._cell.array)


def tensor_of(value: np.ndarray, like: Tensor) -> Tensor:
    """A tensor of given elements, with the shape and dtype of another, and where that one is."""
    array = like._cell.array
    return new_tensor(cell_of(place(value.astype(array.dtype).reshape(array.shape), array)))


class Direction(NamedTuple):
    """Where an input moves: along the real axis, and, if it is complex, along the imaginary one."""

    real: np.ndarray
    imag: np.ndarray


def unit_vectors(count: int) -> Iterator[np.ndarray]:
    """One for each element: 1 there, 0 elsewhere."""
    for i in range(count):
        vector = np.zeros(count)
        vector[i] = 1.0
        yield vector


def unit_directions(count: int) -> Iterator[Direction]:
    """One for each element of an input."""
    return (Direction(v, v) for v in unit_vectors(count))


def _rows(
    found: Sequence[Sequence[np.ndarray | None]], outputs: Sequence[Tensor]
) -> list[np.ndarray | None]:
    """A Jacobian for each output, from what was found for all of them along each direction."""
    jacobians: list[np.ndarray | None] = []
    for i, output in enumerate(outputs):
        rows = [row[i] for row in found]
        if not output.dtype.is_differentiable:
            jacobians.append(None)
        else:
            jacobians.append(np.stack(rows) if rows else np.zeros((0, output.numel())))  # type: ignore[arg-type]
    return jacobians


# --- finite differences -------------------------------------------------------------------------


def numerical(
    point: Point, moved: Tensor, directions: Iterable[Direction], eps: float
) -> list[np.ndarray | None]:
    """For each output its derivatives along directions of one tensor, by central differences.

    A complex tensor gives the derivative along the real axis plus 1j times that along the
    imaginary one. `moved` is written to in place, so that it need not be one of the inputs.
    """
    found = []
    for real, imag in directions:
        along = _difference(point, moved, real * eps, eps)
        if moved.is_complex():
            along_imag = _difference(point, moved, imag * (1j * eps), eps)
            pairs = zip(along, along_imag, strict=True)
            along = [None if a is None or b is None else a + 1j * b for a, b in pairs]
        found.append(along)
    return _rows(found, point.outputs)


def _difference(
    point: Point, moved: Tensor, step: np.ndarray, eps: float
) -> list[np.ndarray | None]:
    memory = moved.data  # its writes are not counted as writes to the tensor
    array = moved._cell.array
    start = np.asarray(array)
    step = step.reshape(start.shape)

    def outputs_at(value: np.ndarray) -> list[np.ndarray]:
        memory._write(place(value.astype(start.dtype), array))
        # as arrays, now: an output may be a view of the input
        return [array_of(o) for o in as_tuple(point.func(*point.inputs))]

    try:
        below, above = outputs_at(start - step), outputs_at(start + step)
    finally:
        memory._write(array)
    derivatives: list[np.ndarray | None] = []
    for a, b in zip(below, above, strict=True):
        _check_alike(a, b, step, eps)
        derivatives.append(_slope(a, b, eps) if dtypes.of(a.dtype).is_differentiable else None)
    return derivatives


@np.errstate(invalid="ignore")  # where both are infinite, it is NaN
def _slope(below: np.ndarray, above: np.ndarray, eps: float) -> np.ndarray:
    wide = np.complex128 if dtypes.of(below.dtype).is_complex else np.float64
    return (above.astype(wide) - below.astype(wide)).reshape(-1) / (2 * eps)


def _check_alike(a: np.ndarray, b: np.ndarray, step: np.ndarray, eps: float) -> None:
    """Raises AssertionError where an output changes shape or dtype with the input's value."""
    for what, one, other in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)):
        if one != other:
            moved = [tuple(map(int, i)) for i in np.argwhere(step)]
            where = f"on index {moved[0]} " if len(moved) == 1 else ""
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are perturbed "
                f"{where}by {eps}, but got: {what}s {one} and {other}. Check it at a point round "
                f"which the {what} does not change."
            )


# --- backward -----------------------------------------------------------------------------------


class ByBackward(NamedTuple):
    """The Jacobian of one output for one input, and whether backward gave the right kind."""

    jacobian: np.ndarray
    has_right_size: bool
    has_right_dtype: bool


def by_backward(
    output: Tensor, inputs: Sequence[Tensor], gradients: Iterable[np.ndarray]
) -> list[ByBackward]:
    """For each input a column for each gradient of `output`: its product with the Jacobian."""
    found: list[tuple[Tensor | None, ...]] = [
        grad(output, inputs, tensor_of(g, output), retain_graph=True, allow_unused=True)
        for g in gradients
    ]
    results = []
    for position, like in enumerate(inputs):
        columns = [grads[position] for grads in found]
        jacobian = np.zeros((like.numel(), len(columns)), array_of(like).dtype)
        fits = [c is None or c.shape == like.shape for c in columns]
        for j, column in enumerate(columns):
            if column is not None and fits[j]:
                jacobian[:, j] = array_of(column).reshape(-1)
        has_right_dtype = all(c is None or c.dtype == like.dtype for c in columns)
        results.append(ByBackward(jacobian, all(fits), has_right_dtype))
    return results


# --- forward mode -------------------------------------------------------------------------------


def by_forward_mode(
    point: Point, moved: int, directions: Iterable[Direction], *, check_grad_dtypes: bool = False
) -> list[np.ndarray | None]:
    """For each output its derivatives along directions of one real input, by forward mode.

    The other inputs that require grad have tangents of zeros.
    """
    found = []
    with forward_ad.dual_level():
        zeros = {i: np.zeros(point.inputs[i].shape) for i in point.moving()}
        for direction in directions:
            outputs = run_dual(point, {**zeros, moved: direction.real})
            if check_grad_dtypes:
                for primal, tangent in map(forward_ad.unpack_dual, outputs):
                    if tangent is not None and tangent.is_complex() != primal.is_complex():
                        raise GradcheckError(
                            f"Forward AD gradient has dtype mismatch: a tangent of {tangent.dtype} "
                            f"for an output of {primal.dtype}."
                        )
            found.append([_tangent_array(o) for o in outputs])
    return _rows(found, point.outputs)


def run_dual(point: Point, tangents: dict[int, np.ndarray]) -> tuple[Tensor, ...]:
    """The outputs where inputs carry tangents, inside an open level.

    As in PyTorch, inputs that require grad are detached, those without a tangent too.
    """
    inputs = list(point.inputs)
    for i in point.moving():
        inputs[i] = point.inputs[i].detach()
        if i in tangents:
            inputs[i] = forward_ad.make_dual(inputs[i], tensor_of(tangents[i], inputs[i]))
    return as_tuple(point.func(*inputs))


def _tangent_array(output: Tensor) -> np.ndarray:
    tangent = forward_ad.unpack_dual(output).tangent
    return np.zeros(output.numel()) if tangent is None else array_of(tangent).reshape(-1)

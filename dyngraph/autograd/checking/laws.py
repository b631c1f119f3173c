"""Laws that derivatives obey beside being right: they are linear in the gradient that comes in,
take an absent one for zeros, and give for a batch what they give one by one.

Each function raises GradcheckError where its law is broken.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.autograd import forward_ad
from dyngraph.autograd.checking.jacobians import Point, array_of, as_tuple, run_dual, tensor_of
from dyngraph.backward import grad
from dyngraph.errors import GradcheckError
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, new_tensor

BATCH = 2


def zero_for_zero(point: Point, *, masked: bool | None) -> None:
    """Gradients of zeros give zeros; with `masked`, nearly zeros."""
    outputs = [point.outputs[i] for i in point.recorded()]
    if not outputs:
        return
    moving = point.moving()
    zeros = [tensor_of(np.zeros(o.shape), o) for o in outputs]
    found = grad(outputs, [point.inputs[i] for i in moving], zeros, allow_unused=True)
    for i, gradient in zip(moving, found, strict=True):
        if gradient is None:
            continue
        value = array_of(gradient)
        if not (np.allclose(value, 0) if masked else np.all(value == 0)):
            raise GradcheckError(
                f"backward not multiplied by grad_output: with gradients of zeros, that of input "
                f"{i} is {gradient}, not zeros. Multiply what backward returns by the gradient "
                "that it is given."
            )


# --- absent gradients and tangents --------------------------------------------------------------


def undefined_for_zeros_backward(point: Point) -> None:
    """Backward works where outputs have no gradient: all of them, and each in turn."""
    count = len(point.recorded())
    choices: list[Sequence[int]] = [range(count)]
    if count > 1:
        choices += [[i] for i in range(count)]
    wanted = [point.inputs[i] for i in point.moving()]
    for without in choices:
        outputs = [o for o in as_tuple(point.func(*point.inputs)) if o.requires_grad]
        roots = [_cut(o) if i in without else o for i, o in enumerate(outputs)]
        zeros = [tensor_of(np.zeros(o.shape), o) for o in roots]
        try:
            found = grad(roots, wanted, zeros, allow_unused=True) if roots else ()
        except RuntimeError as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads, but it raised: "
                f"{error}\nBackward is called with None for an output that no loss depends on. "
                "Treat None as zeros, or pass check_undefined_grad=False."
            ) from error
        except Exception as error:
            error.add_note(
                "gradcheck gave backward None for an output that no loss depends on. Treat None as "
                "zeros, or pass check_undefined_grad=False."
            )
            raise
        if any(g is not None and np.any(array_of(g) != 0) for g in found):
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are "
                "undefined or zero. Treat None as zeros in backward, or pass "
                "check_undefined_grad=False."
            )


def _cut(tensor: Tensor) -> Tensor:
    """The same value, behind which backward goes on without a gradient."""
    cut = tensor.view_as(tensor)
    assert cut.grad_fn is not None
    cut.grad_fn.register_prehook(lambda grads: (None,) * len(grads))
    return cut


def undefined_for_zeros_forward(point: Point) -> None:
    """An input without a tangent is like one with a tangent of zeros."""
    draw = np.random.default_rng(0)
    moving = point.moving()
    tangents = {i: draw.random(point.inputs[i].shape) for i in moving}
    with forward_ad.dual_level():
        for i in moving:
            zeros = run_dual(point, {**tangents, i: np.zeros(point.inputs[i].shape)})
            absent = run_dual(point, {j: t for j, t in tangents.items() if j != i})
            for place, (one, other) in enumerate(zip(zeros, absent, strict=True)):
                expected = forward_ad.unpack_dual(one).tangent
                found = forward_ad.unpack_dual(other).tangent
                if expected is None or found is None:
                    continue
                if not np.allclose(array_of(expected), array_of(found)):
                    raise GradcheckError(
                        f"Mismatch in tangent values for output {place} when input {i} has an "
                        f"undefined tangent value. Got: {found.detach()}\nbut expected, as for a "
                        f"tangent of zeros: {expected.detach()}\nTreat None as zeros in jvp, or "
                        "pass check_undefined_grad=False."
                    )


# --- batches ------------------------------------------------------------------------------------


def batched_backward(point: Point, place: int) -> None:
    """A batch of gradients of one output gives what backward gives for each."""
    output, moving = point.outputs[place], point.moving()
    backward = functools.partial(
        grad, output, [point.inputs[i] for i in moving], retain_graph=True, allow_unused=True
    )
    starts = [tensor_of(s, output) for s in _draw(output)]
    one_by_one = [backward(s) for s in starts]
    batch = new_tensor(cell_of(jnp.stack([s._cell.array for s in starts])))
    in_batch = functools.partial(backward, batch, is_grads_batched=True)
    together = _together(in_batch, "check_batched_grad")
    for i, result, *each in zip(moving, together, *one_by_one, strict=True):
        if result is not None:
            expected = np.stack([array_of(e) for e in each])
            _compare_batch(place, i, array_of(result), expected, "check_batched_grad")


def batched_forward(point: Point) -> None:
    """A batch of tangents of one input gives what forward mode gives for each."""
    for i in point.moving():
        like = point.inputs[i]
        along = functools.partial(_tangents, point, i)
        starts = [tensor_of(s, like)._cell.array for s in _draw(like)]
        one_by_one = [along(s) for s in starts]
        in_batch = functools.partial(jax.vmap(along), jnp.stack(starts))
        together = _together(in_batch, "check_batched_forward_grad")
        for place, (result, *each) in enumerate(zip(together, *one_by_one, strict=True)):
            expected = np.stack([np.asarray(e) for e in each])
            _compare_batch(place, i, np.asarray(result), expected, "check_batched_forward_grad")


def _tangents(point: Point, moved: int, start: jax.Array) -> list[jax.Array]:
    """The tangents of all outputs where one input has the tangent `start`."""
    inputs = [x.detach() if isinstance(x, Tensor) else x for x in point.inputs]
    with forward_ad.dual_level():
        inputs[moved] = forward_ad.make_dual(inputs[moved], new_tensor(cell_of(start)))
        outputs = as_tuple(point.func(*inputs))
        found = [forward_ad.unpack_dual(o).tangent for o in outputs]
    return [
        jnp.zeros(o.shape, o.dtype.dtype) if t is None else t._cell.array
        for o, t in zip(outputs, found, strict=True)
    ]


def _draw(like: Tensor) -> list[np.ndarray]:
    """Random elements for a tensor, once for each of a batch."""
    draw = np.random.default_rng(0)
    values = [draw.standard_normal(like.shape) for _ in range(BATCH)]
    if like.is_complex():
        values = [v + 1j * draw.standard_normal(like.shape) for v in values]
    return values


def _together(run: Callable[[], Any], option: str) -> Any:
    """What `run` gives under `jax.vmap`; for one element it has just worked."""
    try:
        return run()
    except Exception as error:
        raise GradcheckError(
            f"While computing batched gradients, got: {error}\ngradcheck or gradgradcheck failed "
            "while testing batched gradient computation, which runs under jax.vmap: derivatives "
            f"written by hand must not ask for values. Or pass {option}=False."
        ) from error


def _compare_batch(
    place: int, moved: int, found: np.ndarray, expected: np.ndarray, option: str
) -> None:
    if not np.allclose(found, expected):
        raise GradcheckError(
            f"For output {place} and input {moved}:\ngradcheck or gradgradcheck failed while "
            f"testing batched gradient computation. Got:\n{found}\nExpected:\n{expected}\nA "
            f"derivative written by hand mixes the batch's entries. Or pass {option}=False."
        )

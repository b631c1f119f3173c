"""Forward mode as transforms of functions: jvp, linearize."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from dyngraph import tangents as levels
from dyngraph.autograd.forward_ad import make_dual, unpack_dual
from dyngraph.func import trees
from dyngraph.func.argnums import Argnums, check_outputs, places_of, replaced, split_aux
from dyngraph.func.reverse import vjp
from dyngraph.ops.filled import zeros_like
from dyngraph.ops.from_data import tensor as as_tensor
from dyngraph.tensor import Tensor

__all__ = ["jvp", "linearize"]

_WHERE = "jvp(f, primals, tangents)"


@contextmanager
def _level() -> Iterator[None]:
    """A level of forward mode, inside those that are open."""
    enabled = levels.is_enabled()
    levels.nest_level()
    levels.set_enabled(True)
    try:
        yield
    finally:
        levels.exit_level()
        levels.set_enabled(enabled)


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """`func(*primals)`, and how it changes where `primals` move along `tangents`.

    Both are tuples of the same structure. With `has_aux`, `func` returns `(output, aux)`, and the
    result is `(output, tangent of output, aux)`. With `strict`, an output that does not depend on
    `primals` raises; else its tangent is zero.

    Raises RuntimeError where structures or shapes differ, or something is no tensor.

    >>> dg.func.jvp(dg.sin, (dg.tensor([0.0, 1.0]),), (dg.tensor([2.0, 0.0]),))
    (tensor([0.0000, 0.8415]), tensor([2., 0.]))
    """
    return jvp_at(func, primals, tangents, None, strict=strict, has_aux=has_aux)


def jvp_at(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    tangents: Any,
    argnums: Argnums | None,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """As `jvp`, for the arguments at `argnums`, None meaning all."""
    if not isinstance(args, tuple):
        raise RuntimeError(
            f"{_WHERE}: Expected primals to be a tuple, got {type(args).__name__}. E.g. it should "
            "be valid to call f(*primals)."
        )
    places = tuple(range(len(args))) if argnums is None else places_of(argnums, len(args))
    leaves, spec = trees.flatten(tuple(args[i] for i in places))
    moving = trees.match(spec, tangents)
    if moving is None:
        raise RuntimeError(
            f"{_WHERE}: Expected primals and tangents to have the same python structure. For "
            "example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
            f"structure {spec} and tangents with structure {trees.flatten(tangents)[1]}"
        )
    _check_tensors(leaves, "primals")
    _check_tensors(moving, "tangents")
    with _level():
        duals = [make_dual(p, t) for p, t in zip(leaves, moving, strict=True)]
        output, aux = func(*replaced(args, places, trees.unflatten(spec, duals))), None
        if has_aux:
            output, aux = split_aux(output, _WHERE)
        outputs, out_spec = trees.flatten(output)
        check_outputs(outputs, _WHERE)
        pairs = [unpack_dual(out) for out in outputs]
        aux = trees.map_leaves(lambda x: unpack_dual(x)[0] if isinstance(x, Tensor) else x, aux)
    if strict and any(tangent is None for _, tangent in pairs):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. "
            "This is not allowed with strict=True."
        )
    made = [zeros_like(p.detach()) if t is None else t for p, t in pairs]
    results = trees.unflatten(out_spec, [p for p, _ in pairs]), trees.unflatten(out_spec, made)
    return (*results, aux) if has_aux else results


def _check_tensors(leaves: Sequence[Any], what: str) -> None:
    if not leaves:
        raise RuntimeError(f"{_WHERE}: Expected {what} to contain at least one Tensor.")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{_WHERE}: Expected {what} to only contain Tensors, got {type(leaf).__name__}. "
                "Make tensors by dg.tensor(...)."
            )


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """`func(*primals)`, and the function from tangents of `primals` to those of the output.

    As `jvp`, but `func` runs once however many tangents there are. What that function does is the
    backward of the backward, which is linear in what it is given.

    Raises RuntimeError in that function where tangents have another structure, shape or dtype than
    `primals`.

    >>> output, push = dg.func.linearize(dg.sin, dg.tensor([0.0, 1.0]))
    >>> push(dg.tensor([2.0, 0.0]))
    tensor([2., 0.])
    """
    output, pull = vjp(func, *primals)
    outputs, out_spec = trees.flatten(output)
    leaves, spec = trees.flatten(primals)
    # some rules ask where the gradient is 0, where they must not divide
    probes = trees.unflatten(out_spec, [_nowhere_zero(out) for out in outputs])
    _, push_probes = vjp(pull, probes)

    def push(*tangents: Any) -> Any:
        moving = trees.match(spec, tangents)
        if moving is None:
            raise RuntimeError(
                f"Expected the tangents {trees.flatten(tangents)[1]} to have the same argspec as "
                f"the primals {spec}. Pass one tangent for each primal."
            )
        for position, (tangent, primal) in enumerate(zip(moving, leaves, strict=True)):
            _check_like(position, tangent, primal)
        return push_probes(trees.unflatten(spec, moving))[0]

    return output, push


def _check_like(position: int, tangent: Tensor, primal: Tensor) -> None:
    for what in ("shape", "device", "dtype"):
        own, expected = getattr(tangent, what), getattr(primal, what)
        if own != expected:
            raise RuntimeError(
                f"tangent:{position} with {what} {own} in flattened pytree doesn't match the "
                f"{what} {expected} of the corresponding primal. Convert it by .to() or reshape it."
            )


def _nowhere_zero(like: Tensor) -> Tensor:
    values = np.sin(1 + np.arange(like.numel(), dtype=np.float32)).reshape(like.shape)
    return as_tensor(values).to(like.dtype)

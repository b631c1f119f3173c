"""Jacobians and Hessians as transforms of functions: jacrev, jacfwd, hessian."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dyngraph.func import trees
from dyngraph.func.argnums import Argnums, check_real, places_of
from dyngraph.func.forward import jvp_at
from dyngraph.func.mapping import vmap
from dyngraph.func.reverse import vjp_at
from dyngraph.ops.filled import zeros
from dyngraph.ops.joining import cat
from dyngraph.tensor import Tensor

__all__ = ["hessian", "jacfwd", "jacrev"]


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """The function that gives the Jacobian of `func`, by reverse mode: one backward per output
    element, all at once.

    The result has the structure of the output, and in each place that of the arguments at
    `argnums`; each Jacobian has the output's dims, then the input's. `chunk_size` bounds how many
    rows are computed at once. With `has_aux`, `func` returns `(output, aux)`, and the new function
    `(Jacobian, aux)`.

    Raises RuntimeError for complex inputs and outputs; ValueError for a `chunk_size` below 1.

    >>> dg.func.jacrev(lambda x: x * x)(dg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(
            f"jacrev: `chunk_size` should be greater than 0, got {chunk_size}. Pass how many rows "
            "may be computed at once."
        )

    @functools.wraps(func)
    def jacobian(*args: Any) -> Any:
        check_real("jacrev", trees.flatten(args)[0], inputs=True)
        output, pull, *aux = vjp_at(func, args, argnums, has_aux=has_aux)
        outputs, out_spec = trees.flatten(output)
        check_real("jacrev", outputs, inputs=False)
        primals, spec = _primals(args, argnums)
        parts: list[list[Tensor]] = []
        for basis in _bases(outputs, chunk_size):
            cotangents = trees.unflatten(out_spec, basis)
            if chunk_size == 1:
                one = trees.map_leaves(lambda t: t.squeeze(0), cotangents)
                rows = [t.unsqueeze(0) for t in trees.flatten(pull(one))[0]]
            else:
                rows = trees.flatten(vmap(pull)(cotangents))[0]
            parts.append(rows)
        columns = [cat(p) for p in zip(*parts, strict=True)] if len(parts) > 1 else parts[0]
        sizes = [out.numel() for out in outputs]
        by_input = [column.split(sizes) for column in columns]
        by_output = [
            trees.unflatten(
                spec,
                [
                    rows[i].reshape(*out.shape, *primal.shape)
                    for rows, primal in zip(by_input, primals, strict=True)
                ],
            )
            for i, out in enumerate(outputs)
        ]
        result = trees.unflatten(out_spec, by_output)
        return (result, *aux) if has_aux else result

    return jacobian


def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """As `jacrev`, by forward mode: one run of `func` per input element, all at once.

    `randomness` is that of the `vmap` over these. Raises RuntimeError for complex inputs and
    outputs.

    >>> dg.func.jacfwd(lambda x: x * x)(dg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def jacobian(*args: Any) -> Any:
        check_real("jacfwd", trees.flatten(args)[0], inputs=True)
        primals, spec = _primals(args, argnums)
        sizes = [primal.numel() for primal in primals]
        (basis,) = _bases(primals, None)
        wrapped = trees.unflatten(spec, basis)
        tangents = (wrapped,) if isinstance(argnums, int) else wrapped

        def push(tangents: Any) -> Any:
            output, tangent, *aux = jvp_at(func, args, tangents, argnums, has_aux=has_aux)
            check_real("jacfwd", trees.flatten(output)[0], inputs=False)
            return (tangent, *aux)

        columns, *aux = vmap(push, randomness=randomness)(tangents)
        outputs, out_spec = trees.flatten(columns)
        by_output = [
            trees.unflatten(
                spec,
                [
                    part.reshape(*part.shape[:-1], *primal.shape)
                    for part, primal in zip(
                        column.movedim(0, -1).split(sizes, -1), primals, strict=True
                    )
                ],
            )
            for column in outputs
        ]
        result = trees.unflatten(out_spec, by_output)
        if has_aux:
            return result, trees.map_leaves(lambda x: x[0], aux[0])
        return result

    return jacobian


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The function that gives the Hessian of `func`: `jacfwd` of its `jacrev`.

    >>> dg.func.hessian(lambda x: (x**3).sum())(dg.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def _primals(args: tuple[Any, ...], argnums: Argnums) -> tuple[list[Tensor], trees.Spec]:
    """The tensors to differentiate for, and the structure of each row of the Jacobian."""
    places = places_of(argnums, len(args))
    if isinstance(argnums, int):
        return trees.flatten(args[places[0]])
    return trees.flatten(tuple(args[i] for i in places))


def _bases(tensors: Sequence[Tensor], chunk_size: int | None) -> Iterator[list[Tensor]]:
    """The unit vectors of the space of all tensors together, at most `chunk_size` of them at once:
    for each tensor its part of them."""
    sizes = [t.numel() for t in tensors]
    total = sum(sizes)
    step = total if chunk_size is None else chunk_size
    for start in range(0, max(total, 1), max(step, 1)):
        count = min(step, total - start)
        parts, offset = [], 0
        for tensor, size in zip(tensors, sizes, strict=True):
            part = zeros(count, size, dtype=tensor.dtype, device=tensor.device)
            part.diagonal(start - offset).fill_(1)
            parts.append(part.view(count, *tensor.shape))
            offset += size
        yield parts

"""Reverse mode as transforms of functions: grad, grad_and_value, vjp."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dyngraph.func import trees
from dyngraph.func.argnums import Argnums, check_outputs, places_of, replaced, split_aux
from dyngraph.func.levels import Level, gradients
from dyngraph.tensor import Tensor

__all__ = ["grad", "grad_and_value", "vjp"]


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """The function that gives the gradient of `func`, which returns one number as a tensor.

    The gradient is for the argument at `argnums`, or a tuple of them for a tuple of positions; an
    argument may be a structure of tensors. With `has_aux`, `func` returns `(output, aux)`, and the
    new function `(gradient, aux)`. `func` may do what any program may: write in place, use views,
    call `autograd.grad`. What it takes from outside is constant to it, and the result is
    differentiable with respect to that.

    The gradient of a complex input is the conjugate of `jax.grad`'s, as everywhere.

    Raises RuntimeError where the output is no tensor without dims, or `argnums` names no argument;
    ValueError where it names what is no tensor.

    >>> dg.func.grad(lambda x: (x**3).sum())(dg.tensor([1.0, 2.0]))
    tensor([ 3., 12.])
    >>> dg.func.grad(dg.func.grad(dg.sin))(dg.tensor(0.0))
    tensor(-0.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable:
    """As `grad`, but the new function returns `(gradient, output)`, or `(gradient, (output, aux))`.

    >>> dg.func.grad_and_value(lambda x: (x * x).sum())(dg.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """
    where = "grad_and_value(f)(*args)"

    @functools.wraps(func)
    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        places = places_of(argnums, len(args))
        wanted = args[argnums] if isinstance(argnums, int) else tuple(args[i] for i in places)
        aux = None
        with Level() as level:
            leaves, spec = trees.flatten(wanted)
            inputs = [level.stand_in(x) for x in leaves]
            given = trees.unflatten(spec, inputs)
            values = [given] if isinstance(argnums, int) else given
            output = func(*replaced(args, places, values), **kwargs)
            if has_aux:
                output, aux = split_aux(output, where)
            if not isinstance(output, Tensor):
                raise RuntimeError(
                    f"{where}: Expected f(*args) to return a Tensor, got {type(output).__name__}. "
                    "Return other values as aux, with has_aux=True."
                )
            if output.ndim:
                raise RuntimeError(
                    f"{where}: Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{output.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            found = gradients(
                [output],
                inputs,
                None,
                retain_graph=True,
                create_graph=level.is_seen_outside([output, *inputs]),
            )
            output, aux = level.outside(output), _outside(level, aux)
            result = trees.unflatten(spec, [level.outside(g) for g in found])
        return result, ((output, aux) if has_aux else output)

    return gradient_and_value


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """`func(*primals)`, and the function from cotangents of its outputs to those of `primals`.

    That function takes what looks like the output and returns a tuple, one for each of `primals`;
    it may be called many times, and mapped by `vmap`. With `has_aux`, `func` returns `(output,
    aux)`, and the result is `(output, function, aux)`.

    Raises RuntimeError where outputs are not floating point or complex tensors, and the function
    where cotangents have another structure or shape than the outputs; ValueError where a primal is
    no tensor.

    >>> output, pull = dg.func.vjp(dg.sin, dg.tensor([0.0, 1.0]))
    >>> pull(dg.tensor([1.0, 0.0]))
    (tensor([1., 0.]),)
    """
    return vjp_at(func, primals, None, has_aux=has_aux)


def vjp_at(
    func: Callable[..., Any], args: tuple[Any, ...], argnums: Argnums | None, *, has_aux: bool
) -> tuple[Any, ...]:
    """As `vjp`, for the arguments at `argnums`, None meaning all."""
    where, aux = "vjp(f, *primals)", None
    places = tuple(range(len(args))) if argnums is None else places_of(argnums, len(args))
    with Level() as level:
        leaves, primals_spec = trees.flatten(tuple(args[i] for i in places))
        inputs = [level.stand_in(x) for x in leaves]
        output = func(*replaced(args, places, trees.unflatten(primals_spec, inputs)))
        if has_aux:
            output, aux = split_aux(output, where)
        outputs, spec = trees.flatten(output)
        check_outputs(outputs, where)
        for out in outputs:
            if not out.dtype.is_differentiable:
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got "
                    f"Tensor with dtype {out.dtype}. Return it as aux, with has_aux=True."
                )
        seen_outside = level.is_seen_outside([*outputs, *inputs])
    results = trees.unflatten(spec, [level.outside(out) for out in outputs])

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given = trees.match(spec, cotangents)
        if given is None:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {trees.flatten(cotangents)[1]}, primal "
                f"output: {spec}. Pass one cotangent for each output."
            )
        with level.reopened(create_graph) as again:
            found = gradients(
                outputs,
                inputs,
                given,
                retain_graph=retain_graph,
                create_graph=again.records_outside
                and (seen_outside or again.is_seen_outside(given)),
            )
        grads = trees.unflatten(primals_spec, [again.outside(g) for g in found])
        return grads[0] if isinstance(argnums, int) else grads

    return (results, pull, _outside(level, aux)) if has_aux else (results, pull)


def _outside(level: Level, aux: Any) -> Any:
    return trees.map_leaves(lambda x: level.outside(x) if isinstance(x, Tensor) else x, aux)

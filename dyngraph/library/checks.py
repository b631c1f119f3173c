"""Whether a custom operator does as it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from dyngraph.backward import grad
from dyngraph.library.operators import CustomOpDef, on_arrays, tensors_of


def opcheck(
    op: CustomOpDef,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = (
        "test_schema",
        "test_autograd_registration",
        "test_faketensor",
    ),
    raise_exception: bool = True,
) -> dict[str, Any]:
    """Whether the operator does as it says, for these arguments: for each check "SUCCESS", or the
    error.

    "test_schema": it writes only to what it names, and returns no memory of its arguments.
    "test_autograd_registration": where an argument requires grad, backward runs.
    "test_faketensor": the fake's shapes and dtypes are those of the results.
    The first error is raised, unless `raise_exception` is off. Derivatives are not compared: use
    `autograd.gradcheck`.

    >>> double = dg.library.custom_op("examples::double", lambda x: x * 2, mutates_args=())
    >>> dg.library.opcheck(double, (dg.ones(2),), test_utils="test_schema")
    {'test_schema': 'SUCCESS'}
    """
    found: dict[str, Any] = {}
    for name in [test_utils] if isinstance(test_utils, str) else test_utils:
        if name not in _CHECKS:
            raise ValueError(f"opcheck: {name!r} is no check: expected some of {list(_CHECKS)}")
        try:
            _CHECKS[name](op, args, kwargs or {})
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise
            found[name] = error
    return found


def _check_schema(op: CustomOpDef, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    bound = op._signature.bind(*args, **kwargs)
    given = [(n, t) for n, value in bound.arguments.items() for t in tensors_of(value)]
    versions = [t._version for _, t in given]
    op(*args, **kwargs)
    for (name, tensor), version in zip(given, versions, strict=True):
        if tensor._version != version and name not in op._written:
            raise RuntimeError(
                f"opcheck: Argument {name} of {op._qualname} is not defined as mutable but was "
                "mutated. Name it in mutates_args."
            )


def _check_autograd(op: CustomOpDef, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    results = [r for r in tensors_of(op(*args, **kwargs)) if r.requires_grad]
    if results:
        inputs = [t for t in tensors_of((args, kwargs)) if t.requires_grad]
        grad([r.sum() for r in results], inputs, allow_unused=True)


def _check_fake(op: CustomOpDef, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if op._fake is None:
        raise RuntimeError(
            f"opcheck: there was no fake impl registered for {op._qualname}. Add one by "
            "register_fake()."
        )
    arrays = [t._cell.array for t in tensors_of((args, kwargs))]
    expected = jax.tree.leaves(jax.eval_shape(on_arrays(op._fake, args, kwargs), *arrays))
    results = list(tensors_of(op(*args, **kwargs)))
    got = [(tuple(r.shape), r._cell.held.dtype) for r in results]
    said = [(e.shape, e.dtype) for e in expected]
    if got != said:
        raise RuntimeError(
            f"opcheck: {op._qualname} returned {got}, but its fake impl says {said}."
        )


_CHECKS: dict[str, Callable[[CustomOpDef, tuple[Any, ...], dict[str, Any]], None]] = {
    "test_schema": _check_schema,
    "test_autograd_registration": _check_autograd,
    "test_faketensor": _check_fake,
}

"""What dyngraph needs of JAX's tracing machinery: which inputs a traced function reads.

The one file that imports `jax.extend` and `jax.interpreters`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.core import Tracer as Tracer
from jax.extend.core import ClosedJaxpr as ClosedJaxpr, jaxpr_as_fun as jaxpr_as_fun
from jax.interpreters.partial_eval import dce_jaxpr


class LiveFunction(NamedTuple):
    """A traced function without the arguments that it does not read.

    A jaxpr holds no closure, so what the function was made from is not kept alive.
    """

    call: Callable[..., Any]
    live: tuple[bool, ...]


def without_constants(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same with its constants as arguments, before the others."""
    jaxpr = closed.jaxpr
    inputs = [*jaxpr.constvars, *jaxpr.invars]
    return ClosedJaxpr(jaxpr.replace(constvars=[], invars=inputs), [])


def without_dead_inputs(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[bool]]:
    """The same without the arguments that it does not read, and which ones it does."""
    jaxpr, live = dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
    return ClosedJaxpr(jaxpr, closed.consts), list(live)


def trace_live(function: Callable[..., Any], arguments: Sequence[Any]) -> LiveFunction:
    """Traces `function(*arguments)`, which returns a flat list, and drops its dead arguments.

    Arguments are arrays or `jax.ShapeDtypeStruct`s; `call` takes the live ones in their order.
    """
    closed, live = without_dead_inputs(jax.make_jaxpr(function)(*arguments))
    return LiveFunction(jaxpr_as_fun(closed), tuple(live))

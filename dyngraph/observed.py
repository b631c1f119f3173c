"""Calls in the modes that look at them: forward mode, and functions that are mapped.

A dispatcher that finds one of these modes on comes here; the call then runs with the mode off, and
what the mode wants to know is read from what was made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dyngraph import batches, forward, modes
from dyngraph.kernels import OperatorSpec
from dyngraph.tensor import Tensor


def run_observed(
    write: Callable[..., Any],
    call: Callable[..., Any],
    spec: OperatorSpec | None,
    given: Mapping[str, Any],
) -> Any:
    """One call of an operator; `spec` is None where it is never recorded.

    `call(**given)` is the call, `given` its inputs, then its static arguments. `write` writes the
    function that runs an operator.
    """
    if modes.get_flags() & modes.FORWARD:
        return forward.run_dual(write, call, spec, given)
    return observe(lambda: call(**given), list(given.values()))


def unobserved(run: Callable[[], Any]) -> Any:
    """`run()` with the observing modes off."""
    flags = modes.get_flags()
    modes.set_flags(flags & ~modes.OBSERVED)
    try:
        return run()
    finally:
        modes.set_flags(flags)


def observe(run: Callable[[], Any], inputs: Sequence[Any]) -> Any:
    """`run()`, which records one operator; then the modes that are on look at its results."""
    results = unobserved(run)
    if results is NotImplemented:
        return results
    tensors = [results] if isinstance(results, Tensor) else results
    if modes.get_flags() & modes.MAPPED:
        batches.note(
            [x for x in inputs if isinstance(x, Tensor)],
            [t for t in tensors if isinstance(t, Tensor)],
        )
    return results

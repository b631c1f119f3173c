"""StepProgram: a traced step, as one XLA call between reading its sources and writing its effects.

Invariant: a StepProgram holds its jaxpr, and weakly what the step reaches; no array but the
constants of the trace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph.compiled.fusion import compiler_options
from dyngraph.donation import take
from dyngraph.steps.conditions import Conditions
from dyngraph.steps.effects import Call, Grad
from dyngraph.steps.recorded import Recorded
from dyngraph.steps.sources import Found, Sources, grad_of
from dyngraph.steps.trace import Traced
from dyngraph.storage import Storage, cell_of
from dyngraph.tensor import Tensor, new_tensor
from dyngraph.tracing import ClosedJaxpr, jaxpr_as_fun, without_dead_inputs


class StepProgram:
    """What a step does when it is called with arguments of one kind.

    `jaxpr` is what was traced, one equation a kernel call; `seconds` is how long the first call
    took, compilation and all.

    >>> double = dg.compile(lambda x: x * 2)
    >>> _ = [double(dg.ones(2)) for _ in range(2)]
    >>> double.programs
    [<StepProgram: 1 kernels, 1 inputs, 0 of them overwritten, 1 outputs>]
    """

    def __init__(self, name: str, traced: Traced, sources: Sources, conditions: Conditions) -> None:
        self.jaxpr, live = without_dead_inputs(traced.jaxpr)
        self.effects = traced.effects
        self.sources = sources
        self.conditions = conditions
        self.seconds = 0.0
        self.versions: list[int | None] = []
        rewritten = {written.cell for written in self.effects.written}
        count = len(sources.cells) + len(sources.grads) + len(sources.arguments)
        cells = [i for i in range(count) if live[i]]
        self.donated = [i for i in cells if i in rewritten]
        self.kept = [i for i in cells if i not in rewritten]
        self.others = [i for i, reads in enumerate(live[count:]) if reads]
        self.options = compiler_options(len(self.jaxpr.eqns), self.jaxpr.in_avals)
        self.returns_grads = any([type(result) is Grad for result in self.effects.results])
        self.forgotten = self._forgotten()
        order = [*self.donated, *self.kept]
        places = sorted(range(len(order)), key=order.__getitem__)
        self._jitted = _jit(self.jaxpr, places, self.options)
        self._recorded = Recorded(name, traced.jaxpr) if self.effects.is_recorded else None

    def look(self, given: Sequence[Tensor]) -> Found | str:
        """What goes into a call with these tensors among its arguments; or, where this program
        does not serve it, why not."""
        found = self.sources.find(given)
        if found is None:
            return "something that the step read, or a .grad, is gone"
        return self.conditions.why_not(given, found, self.versions) or found

    def run(
        self,
        given: Sequence[Tensor],
        found: Found,
        arrays: Sequence[Any],
        written: MutableMapping[Storage, int | None] | None = None,
    ) -> Any:
        """One call of the step: `arrays` are those among its arguments, `found` what `look` has
        found. `written` are the versions that programs of the same step have left Storages with,
        where there are several."""
        start = time.perf_counter()
        cells, leaves = found
        numbers = [*self.sources.numbers(), *arrays]
        grads = [grad_of(leaf) for leaf in leaves] if self.returns_grads else []
        if self._recorded is not None:
            results = self._recorded([*_tensors(given, cells, leaves), *map(_tensor, numbers)])
            self.seconds = self.seconds or time.perf_counter() - start
            return self._finish(Call(given, cells, leaves, grads, results))
        if self.seconds:  # it has run before, so it will not fail for what is wrong with it
            for number in self.forgotten:
                leaves[number].need_meta().grad = None
        results = self._jitted(
            take([cells[i] for i in self.donated], made=self._made(cells, written)),
            [cells[i].array for i in self.kept],
            [numbers[i] for i in self.others],
        )
        self.seconds = self.seconds or time.perf_counter() - start
        returned = self._finish(Call(given, cells, leaves, grads, results))
        if written is not None:
            written.update([(cells[i], cells[i].version) for i in self.donated])
        return returned

    def _made(
        self, cells: Sequence[Storage], written: Mapping[Storage, int | None] | None
    ) -> list[bool]:
        """Of which of the donated arrays a program is known to have made them."""
        versions = self.versions or [None] * len(cells)
        made = [versions[i] == cells[i].version is not None for i in self.donated]
        if written is None or all(made):
            return made
        return [
            known or written.get(cells[i]) == cells[i].version is not None
            for known, i in zip(made, self.donated, strict=True)
        ]

    def _finish(self, call: Call) -> Any:
        returned = call.finish(self.effects, self.sources)
        self.versions = [cell.version for cell in call.cells]
        return returned

    def _forgotten(self) -> list[int]:
        """The leaves whose `.grad` the step replaces without reading it: its memory is free before
        the new one is made."""
        read, first = {*self.donated, *self.kept}, len(self.sources.cells)
        kept = [n for i, n in enumerate(self.sources.grads, first) if i in read]
        replaced = [number for number, _ in self.effects.grads if isinstance(number, int)]
        return [number for number in replaced if number not in kept]

    def hlo(self) -> str:
        """The program as XLA compiled it; compiles it anew."""
        return self._compiled().as_text()

    def cost(self) -> dict[str, float]:
        """XLA's own estimate: floating point operations, bytes accessed; compiles it anew."""
        found = self._compiled().cost_analysis()
        return dict(found[0] if isinstance(found, list) else found or {})

    def _compiled(self) -> Any:
        function = jax.jit(jaxpr_as_fun(self.jaxpr), compiler_options=self.options)
        return function.lower(*self.jaxpr.in_avals).compile()

    def __repr__(self) -> str:
        return (
            f"<StepProgram: {len(self.jaxpr.eqns)} kernels, {len(self.jaxpr.in_avals)} inputs, "
            f"{len(self.donated)} of them overwritten, {len(self.jaxpr.out_avals)} outputs>"
        )


def _tensors(
    given: Sequence[Tensor], cells: Sequence[Storage], leaves: Sequence[Tensor]
) -> list[Tensor]:
    """The tensors that the Storages belong to: arguments and leaves with their place in the
    graph."""
    known = {id(tensor._cell): tensor for tensor in [*leaves, *given]}
    return [known[id(cell)] if id(cell) in known else new_tensor(cell) for cell in cells]


def _tensor(number: Any) -> Tensor:
    return new_tensor(cell_of(jnp.asarray(number)))


def _jit(jaxpr: ClosedJaxpr, order: Sequence[int], options: dict[str, Any]) -> Callable[..., Any]:
    """The jaxpr as a function of three lists; `order` puts the first two together."""
    function = jaxpr_as_fun(jaxpr)

    def step(donated: list[Any], kept: list[Any], others: list[Any]) -> list[Any]:
        cells = [*donated, *kept]
        return function(*[cells[i] for i in order], *others)

    return jax.jit(step, donate_argnums=0, compiler_options=options)

"""The ways of taking a function's gradients that are compared."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from dyngraph import modes
from dyngraph.backward import grad
from dyngraph.comparison.arguments import Arguments
from dyngraph.comparison.listing import lines_of
from dyngraph.comparison.rounds import Stopwatch
from dyngraph.comparison.sizes import (
    MOST_CALLS,
    Sizes,
    compile_program,
    compiled_sizes,
    distinct_bytes,
    programs_of,
)
from dyngraph.compiled.program import Program
from dyngraph.compiled.toggle import compiled_autograd
from dyngraph.configuration import config
from dyngraph.graph import engine
from dyngraph.random import default_generator
from dyngraph.steps.step import compile
from dyngraph.tensor import Tensor, wrap
from dyngraph.viz.outline import visits
from dyngraph.viz.picture import saved_bytes


class Subject(NamedTuple):
    """What is compared: the function of tensors, the one of arrays, and what both are called
    with."""

    of_tensors: Callable[..., Any]
    of_arrays: Callable[..., Any]
    arguments: Arguments

    def loss(
        self, wanted: Any, others: Any, *, requires_grad: bool = True
    ) -> tuple[Tensor, list[Tensor]]:
        """The function's result, and the leaves that it is differentiated by."""
        leaves, args = self.arguments.tensors(wanted, others, requires_grad=requires_grad)
        loss = self.of_tensors(*args)
        if not isinstance(loss, Tensor) or loss.ndim:
            shown = f"{list(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
            raise RuntimeError(
                f"dg.compare: the function returned {shown}, expected a tensor without dims, "
                "which backward starts from. Return .sum() or .mean() of it."
            )
        return loss, leaves

    def pure(self, wanted: Any, others: Any) -> Any:
        """The function's result, of arrays."""
        return self.of_arrays(*self.arguments.filled(wanted, others))


Result = tuple[Any, list[Any]]
"""The value, and the gradients, as arrays."""


class Way(ABC):
    """One way: `first` makes what it needs and runs, `again` runs later calls; `settles` is how
    many calls it takes until nothing is compiled any more."""

    name: ClassVar[str]
    meaning: ClassVar[str]
    has_gradients: ClassVar[bool] = True
    settles: int = 2

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        arguments = subject.arguments
        self.wanted = arguments.arrays(arguments.wanted)
        self.others = arguments.arrays(arguments.others)
        self.parts: dict[str, float] = {}

    def first(self) -> Result:
        """The first call."""
        return self.again()

    @abstractmethod
    def again(self) -> Result:
        """A later call."""

    @abstractmethod
    def sizes(self) -> Sizes:
        """How large its program is."""


def gradients(loss: Tensor, leaves: list[Tensor], *, keep: bool = False) -> Result:
    """The value and the gradients by the Engine; zeros where the loss does not depend on one."""
    if not loss.requires_grad:
        return loss._cell.array, [jnp.zeros_like(leaf._cell.array) for leaf in leaves]
    found = grad(loss, leaves, retain_graph=keep, materialize_grads=True)
    return loss._cell.array, [g._cell.array for g in found]


class DefineByRun(Way):
    """The function on tensors, then the Engine through the graph that grew."""

    name = "define-by-run"
    meaning = "the function on tensors, then backward through its graph, kernel by kernel"

    def again(self) -> Result:
        with modes.enable_grad(), compiled_autograd(False):
            return gradients(*self.subject.loss(self.wanted, self.others))

    def sizes(self) -> Sizes:
        with modes.enable_grad():
            loss, _ = self.subject.loss(self.wanted, self.others)
            roots = [(loss.grad_fn, 0)]
        return Sizes(nodes=len(visits(roots)), saved_bytes=saved_bytes(roots))


class CompiledBackward(Way):
    """The same with the compiled backward."""

    name = "compiled backward"
    meaning = "the same, the kernels of the backward compiled together"

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self.settles = max(config.compile_after, config.compile_whole_after) + 2
        self.programs: list[Program] = []

    def again(self) -> Result:
        with modes.enable_grad(), compiled_autograd():
            return gradients(*self.subject.loss(self.wanted, self.others))

    def sizes(self) -> Sizes:
        def run(runner: Any) -> None:
            before = engine.get_runner()
            engine.set_runner(runner)
            try:
                with modes.enable_grad():
                    gradients(*self.subject.loss(self.wanted, self.others))
            finally:
                engine.set_runner(before)

        self.programs = programs = programs_of(run)
        with modes.enable_grad():
            loss, _ = self.subject.loss(self.wanted, self.others)
            roots = [(loss.grad_fn, 0)]
        calls = sum(map(len, programs))
        found: dict[str, Any] = {}
        if len(programs) == 1 and calls <= MOST_CALLS:
            found = compiled_sizes(compile_program(programs[0]))
        return Sizes(
            nodes=len(visits(roots)),
            programs=len(programs),
            calls=calls,
            equations=sum(len(lines_of(p.jaxpr)) for p in programs),
            saved_bytes=saved_bytes(roots),
            **found,
        )


class CompiledCall(Way):
    """Forward and backward in one call that `dg.compile` has compiled."""

    name = "dg.compile"
    meaning = "the function on tensors and backward through its graph, one program by dg.compile"

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self.step = compile(self.run)

    def run(self, wanted: list[Tensor], others: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Value and gradients, as tensors without a history."""
        arrays = [[tensor._cell.array for tensor in tensors] for tensors in (wanted, others)]
        value, grads = gradients(*self.subject.loss(*arrays))
        return wrap(value), [wrap(array) for array in grads]

    def first(self) -> Result:
        timer, state = Stopwatch(), default_generator.get_state()
        jax.block_until_ready(self.again())
        self.parts["as written"] = timer.lap()
        default_generator.set_state(state)  # the program draws what the first call drew
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # why it is not compiled is told below
            result = jax.block_until_ready(self.again())
            self.parts["trace and compile"] = timer.lap()
            if not self.step.programs:
                self.again()  # by now it has given up
                raise RuntimeError(self.step.explain()[-1])
        return result

    def again(self) -> Result:
        with modes.enable_grad(), compiled_autograd(False):
            value, grads = self.step([*map(wrap, self.wanted)], [*map(wrap, self.others)])
        return value._cell.array, [grad._cell.array for grad in grads]

    def sizes(self) -> Sizes:
        program = self.step.programs[-1]
        sizes = compiled_sizes(compile_program(program))
        return Sizes(equations=len(lines_of(program.jaxpr)), **sizes)


class ForwardAlone(Way):
    """The function on tensors under `no_grad`: what recording and backward are added to."""

    name = "forward under no_grad"
    meaning = "the function on tensors, nothing recorded"
    has_gradients = False

    def again(self) -> Result:
        with modes.no_grad():
            loss, _ = self.subject.loss(self.wanted, self.others, requires_grad=False)
        return loss._cell.array, []

    def sizes(self) -> Sizes:
        return Sizes(nodes=0, saved_bytes=0)


class Jitted(Way):
    """A function of arrays, traced whole and compiled by XLA."""

    compiled: Any
    traced: Any

    @abstractmethod
    def function(self, wanted: list[Any], others: list[Any]) -> Result:
        """Value and gradients, of arrays that may be tracers."""

    def first(self) -> Result:
        timer = Stopwatch()
        traced = jax.jit(self.function).trace(self.wanted, self.others)
        self.parts["trace"] = timer.lap()
        self.compiled = traced.lower().compile()
        self.parts["compile"] = timer.lap()
        self.traced = traced
        return self.again()

    def again(self) -> Result:
        return self.compiled(self.wanted, self.others)

    def sizes(self) -> Sizes:
        return Sizes(equations=len(lines_of(self.traced.jaxpr)), **compiled_sizes(self.compiled))


class WholeStep(Jitted):
    """The function on tensors and the Engine's walk, traced into one program."""

    name = "define-by-run in jax.jit"
    meaning = "the function on tensors and backward through its graph, traced by jax.jit as one"

    def function(self, wanted: list[Any], others: list[Any]) -> Result:
        with modes.enable_grad(), compiled_autograd(False):
            return gradients(*self.subject.loss(wanted, others))


class JaxGrad(Way):
    """`jax.value_and_grad`, operator by operator."""

    name = "jax.grad"
    meaning = "jax.value_and_grad of the function of arrays, not jitted"

    def again(self) -> Result:
        return jax.value_and_grad(self.subject.pure)(self.wanted, self.others)

    def sizes(self) -> Sizes:
        """What a call saved for backward; the equations too, where it can be traced."""
        _, pull = self.pull()
        return Sizes(saved_bytes=distinct_bytes(jax.tree.leaves(pull)))

    def pull(self) -> Any:
        """The value, and the function that gives the gradients."""
        return jax.vjp(lambda wanted: self.subject.pure(wanted, self.others), self.wanted)


class JaxJit(Jitted):
    """`jax.jit` of `jax.value_and_grad`."""

    name = "jax.jit(jax.grad)"
    meaning = "jax.jit(jax.value_and_grad) of the function of arrays"

    def function(self, wanted: list[Any], others: list[Any]) -> Result:
        return jax.value_and_grad(self.subject.pure)(wanted, others)


WAYS: dict[str, type[Way]] = {
    "eager": DefineByRun,
    "compiled": CompiledBackward,
    "no_grad": ForwardAlone,
    "step": CompiledCall,
    "traced": WholeStep,
    "jax.grad": JaxGrad,
    "jax.jit": JaxJit,
}
"""By the names that `compare(..., modes=...)` takes."""

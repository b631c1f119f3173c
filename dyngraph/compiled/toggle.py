"""The switch of the compiled backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from dyngraph import modes
from dyngraph.compiled.backward import run_compiled
from dyngraph.configuration import config
from dyngraph.graph import engine
from dyngraph.graph.engine import GraphTask
from dyngraph.graph.node import Edge
from dyngraph.values import PENDING


class compiled_autograd(modes.ModeSwitch):  # noqa: N801 - it is used as a function is
    """Inside, the kernels of a backward are compiled into one XLA program, or into few.

    A context manager and a decorator, for the thread that it is used in; `compiled_autograd(False)`
    switches it off. Gradients, hooks, side effects and errors are those of an ordinary backward.
    `dg.config.compiled_autograd = True`, or the environment variable DYNGRAPH_COMPILED_AUTOGRAD=1,
    switches it on for all threads that are in no such block.

    >>> x = dg.tensor([2.0, 3.0], requires_grad=True)
    >>> with dg.compiled_autograd():
    ...     (x.exp() * x).sum().backward()
    >>> x.grad
    tensor([22.1672, 80.3421])
    """

    def __init__(self, enabled: bool = True) -> None:
        super().__init__()
        self.enabled = enabled
        self.before: list[engine.Runner | None] = []

    def __enter__(self) -> Self:
        self.before.append(engine.get_runner())
        engine.set_runner(run_compiled if self.enabled else GraphTask.run)
        return self

    def __exit__(self, *exception: object) -> None:
        engine.set_runner(self.before.pop())

    def clone(self) -> compiled_autograd:
        return compiled_autograd(self.enabled)


def is_enabled() -> bool:
    """Whether a backward of this thread would run compiled."""
    runner = engine.get_runner()
    return config.compiled_autograd if runner is None else runner is run_compiled


def _run_as_configured(task: GraphTask, edges: Sequence[Edge], gradients: Sequence[Any]) -> None:
    compiled = config.compiled_autograd or task.values is PENDING
    (run_compiled if compiled else GraphTask.run)(task, edges, gradients)


engine.default_runner = _run_as_configured

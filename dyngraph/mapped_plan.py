"""MappedPlan: the backward plan of a node of all examples, made from that of one example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph.kernels import BackwardPlan, Target


def mapped_plan(
    plan: BackwardPlan, batched: tuple[bool, ...], apart: tuple[bool, ...]
) -> BackwardPlan:
    """`plan` for all examples; see `MappedPlan`."""
    try:
        return plan.mapped[batched, apart]
    except KeyError:
        made = plan.mapped[batched, apart] = MappedPlan(plan, batched, apart)
        return made


class MappedPlan(BackwardPlan):
    """The plan of a node of all examples: that of one example under `jax.vmap`.

    `batched` says which saved values differ from example to example, `apart` for which of its
    inputs each example has a gradient of its own; others get the sum.
    """

    __slots__ = ("apart", "axes", "example")

    def __init__(
        self, plan: BackwardPlan, batched: tuple[bool, ...], apart: tuple[bool, ...]
    ) -> None:
        super().__init__(plan.kernel, plan.needed, plan.sources)
        self.example = plan
        self.axes = tuple(0 if b else None for b in batched)
        self.apart = apart
        self.passes_on = plan.passes_on and all(apart)

    def make(self, targets: tuple[Target, ...], absent: Any) -> Callable[..., Any]:
        of_example = self.example.function(
            tuple(
                target if target is None or not apart else _example(target)
                for target, apart in zip(targets, self.apart, strict=True)
            ),
            None if absent is None else tuple(None if a is None else _example(a) for a in absent),
        )

        def backward(*values: Any) -> tuple[Any, ...]:
            axes = (*self.axes, *[0] * (len(values) - len(self.axes)))
            found = jax.vmap(of_example, in_axes=axes)(*values)
            return tuple(
                g if g is None or apart else jnp.sum(g, 0)
                for g, apart in zip(found, self.apart, strict=True)
            )

        return backward


def _example(meta: tuple[tuple[int, ...], Any]) -> tuple[tuple[int, ...], Any]:
    shape, dtype = meta
    return shape[1:], dtype

"""Arguments: what a compared function is called with, as tensors or as arrays.

Every call gets tensors of its own over the same arrays, so what one call writes in place no other
call sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.func import trees
from dyngraph.func.argnums import Argnums, places_of
from dyngraph.kernels import is_differentiable
from dyngraph.tensor import Tensor, wrap


class Arguments:
    """The arguments of a function as leaves: arrays, those of them whose gradient is taken, and
    the rest, which every way of calling passes as it is.

    `wanted` and `others` are the places of the first two among all leaves.
    """

    def __init__(self, args: Sequence[Any], argnums: Argnums | None) -> None:
        self.leaves: list[Any] = []
        specs = []
        chosen = range(len(args)) if argnums is None else places_of(argnums, len(args))
        self.wanted: list[int] = []
        self.others: list[int] = []
        for place, arg in enumerate(args):
            leaves, spec = trees.flatten(arg)
            specs.append(spec)
            for leaf in leaves:
                array = _array_of(leaf)
                if array is not None:
                    is_wanted = place in chosen and is_differentiable(array.dtype)
                    (self.wanted if is_wanted else self.others).append(len(self.leaves))
                self.leaves.append(leaf if array is None else array)
        self.spec = trees.Spec(tuple, None, tuple(specs))
        if not self.wanted:
            raise RuntimeError(
                "dg.compare: none of the arguments that gradients are taken for has a floating "
                "point or complex tensor or array in it. Pass tensors or arrays of floats, and "
                "name their positions in argnums."
            )

    def arrays(self, places: Sequence[int]) -> list[jax.Array]:
        """The arrays at some places."""
        return [self.leaves[i] for i in places]

    def filled(self, wanted: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments, with these in the place of the arrays."""
        leaves = list(self.leaves)
        for places, values in ((self.wanted, wanted), (self.others, others)):
            for place, value in zip(places, values, strict=True):
                leaves[place] = value
        return trees.unflatten(self.spec, leaves)

    def tensors(
        self, wanted: Sequence[Any], others: Sequence[Any], *, requires_grad: bool
    ) -> tuple[list[Tensor], tuple[Any, ...]]:
        """New tensors over arrays: those whose gradient is taken, and the arguments with them."""
        leaves = [wrap(array, requires_grad=requires_grad) for array in wanted]
        return leaves, self.filled(leaves, [wrap(array) for array in others])


def _array_of(leaf: Any) -> Any:
    """The array of a leaf; None where it is none."""
    if isinstance(leaf, Tensor):
        return leaf.detach()._cell.array
    if isinstance(leaf, jax.Array):
        return leaf
    return jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else None

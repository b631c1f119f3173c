"""A Function's own rule for batches: inside `func.vmap` it runs on all examples at once.

The call leaves the mapped function, and its outputs are led back in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from dyngraph.batches import Batch, current_batch, open_batch
from dyngraph.errors import FunctionError
from dyngraph.lifting import enter_batch, leave_batch
from dyngraph.tensor import Tensor


class VmapInfo(NamedTuple):
    """What `Function.vmap` is told of the batch."""

    batch_size: int
    randomness: str


def apply_rule(cls: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[bool, Any]:
    """Whether an argument differs from example to example; then also the outputs of one example."""
    batch = current_batch()
    assert batch is not None
    pairs = [leave_batch(a) if isinstance(a, Tensor) else (a, False) for a in args]
    if not any(batched for _, batched in pairs):
        return False, None
    dims = tuple([0 if batched else None for _, batched in pairs])
    whole = [value for value, _ in pairs]
    if cls.generate_vmap_rule:
        raise FunctionError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and "
            "an overriden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            "overriden vmap staticmethod to avoid ambiguity."
        )
    open_batch(batch.outer)
    try:
        info = VmapInfo(batch.size, batch.randomness)
        outputs = _batch_first(cls, cls.vmap(info, dims, *whole, **kwargs), batch)
    finally:
        open_batch(batch)
    return True, jax.tree.map(lambda o: enter_batch(o) if isinstance(o, Tensor) else o, outputs)


def _batch_first(cls: Any, answer: Any, batch: Batch) -> Any:
    """The outputs of a user's rule, all with the batch as dim 0."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise FunctionError(
            f"Expected the vmap staticmethod of {cls.__name__} to have two returns, an (output, "
            f"out_dims), got {type(answer).__name__}."
        )
    outputs, dims = answer
    if not isinstance(outputs, tuple):
        return _moved(outputs, dims, batch.size)
    if not isinstance(dims, tuple):
        dims = (dims,) * len(outputs)
    if len(dims) != len(outputs):
        raise FunctionError(
            f"The vmap staticmethod of {cls.__name__} returned {len(outputs)} outputs and "
            f"{len(dims)} out_dims. Return one dim, or None, for each output."
        )
    return tuple([_moved(o, d, batch.size) for o, d in zip(outputs, dims, strict=True)])


def _moved(output: Any, dim: int | None, size: int) -> Any:
    if not isinstance(output, Tensor):
        return output
    return output.expand(size, *output.shape) if dim is None else output.movedim(dim, 0)

"""`dyngraph.utils`: what stands beside tensors and the graph."""

from __future__ import annotations

import weakref

from dyngraph.tensor import LEAF, Tensor
from dyngraph.utils import checkpoint as checkpoint, data as data


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchanges all that two tensors are: value, history, `.grad`, hooks and attributes.

    Whoever holds one of them then has the other. Raises RuntimeError while a graph leads to one of
    them as a leaf, or their views are alive, because these would see the other.

    >>> a, b = dg.zeros(2), dg.ones(3)
    >>> dg.utils.swap_tensors(a, b)
    >>> a
    tensor([1., 1., 1.])
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        meta = tensor._meta
        if meta is not None and meta.accumulator is not None and meta.accumulator() is not None:
            raise RuntimeError(
                f"swap_tensors(): a graph leads to {name}, a leaf, so its gradient would go to the "
                "other tensor. Drop what was computed from it first."
            )
        if any(reference() is not None for reference, _ in tensor._cell.views or ()):
            raise RuntimeError(
                f"swap_tensors(): {name} has views, which would become views of the other tensor. "
                "Drop them first."
            )
    for tensor in (t1, t2):
        if tensor.retains_grad:
            tensor._stop_retaining()
    for slot in ("_cell", "_edge", "_meta", "_view", "__dict__"):
        first, second = getattr(t1, slot), getattr(t2, slot)
        setattr(t1, slot, second)
        setattr(t2, slot, first)
    for tensor in (t1, t2):
        if tensor._view is not None:
            tensor._cell.looking = weakref.ref(tensor)
        if tensor.retains_grad and tensor._edge is not LEAF:
            tensor._retain()


__all__ = ["checkpoint", "data", "swap_tensors"]

"""prefetch: batches on their device before they are used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import jax
import numpy as np

from dyngraph import devices
from dyngraph.tensor import Tensor, wrap
from dyngraph.utils.data.ahead import read_ahead
from dyngraph.utils.data.collation import is_array, tensor_of

__all__ = ["Prefetcher", "prefetch"]


def prefetch(iterable: Iterable[Any], size: int = 2, device: Any = None) -> Prefetcher:
    """The batches of `iterable`, of which a thread reads up to `size` ahead and moves them to
    `device` (a device, its name, or a `jax.sharding.Sharding`; None: JAX's default device).

    A batch is a pytree: arrays of numpy, JAX and PyTorch in it become tensors. An error is raised
    where its batch would have come. A loop that is left early ends the thread. `state_dict()` is
    that of the iterable as of the last batch that was given out, whatever was read ahead.

    Raises ValueError for a size that is not positive.

    >>> for batch in dg.utils.data.prefetch([np.ones(2, np.float32), np.zeros(2, np.float32)]):
    ...     print(batch)
    tensor([1., 1.])
    tensor([0., 0.])
    """
    return Prefetcher(iterable, size, device)


class Prefetcher:
    """What `prefetch` gives: an iterable of batches."""

    def __init__(self, iterable: Iterable[Any], size: int, device: Any) -> None:
        if size < 1:
            raise ValueError(f"prefetch: size must be positive, got {size}")
        self.iterable = iterable
        self.size = size
        self.place = devices.as_jax_device(device)
        self._state: Any = None

    def __len__(self) -> int:
        return len(self.iterable)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        has_state = hasattr(self.iterable, "state_dict")
        batches = read_ahead(self._moved(has_state), self.size)
        try:
            for batch, state in batches:
                self._state = state
                yield batch
            self._state = None
        finally:
            batches.close()  # type: ignore[attr-defined]

    def _moved(self, has_state: bool) -> Iterator[tuple[Any, Any]]:
        """Batches on their device, each with the state of what they came from."""
        source = iter(self.iterable)
        try:
            for batch in source:
                state = self.iterable.state_dict() if has_state else None  # type: ignore[attr-defined]
                yield jax.tree.map(self._move, batch), state
        finally:
            if hasattr(source, "close"):
                source.close()  # type: ignore[attr-defined]

    def _move(self, leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            array = leaf._cell.array
        elif not is_array(leaf):
            return leaf
        elif isinstance(leaf, (np.ndarray, jax.Array)):
            array = leaf
        else:
            array = tensor_of(leaf)._cell.array
        return wrap(jax.device_put(array, self.place))

    def state_dict(self) -> Any:
        """The state of the iterable as of the last batch that was given out."""
        return self.iterable.state_dict() if self._state is None else self._state  # type: ignore[attr-defined]

    def load_state_dict(self, state_dict: Any) -> None:
        """Has the next pass give what was left then."""
        self._state = None
        self.iterable.load_state_dict(state_dict)  # type: ignore[attr-defined]

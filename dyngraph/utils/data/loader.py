"""DataLoader: batches of a dataset's samples, in an order that can be gone on with."""

from __future__ import annotations

import collections
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from typing import Any

from dyngraph import dtypes
from dyngraph.ops.from_data import tensor
from dyngraph.random import Generator
from dyngraph.utils.data.ahead import read_ahead
from dyngraph.utils.data.collation import default_collate, default_convert
from dyngraph.utils.data.datasets import IterableDataset, TensorDataset
from dyngraph.utils.data.drawing import draw
from dyngraph.utils.data.samplers import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    count_batches,
    generator_of,
    is_drawn,
    start,
)

__all__ = ["DataLoader"]


class DataLoader:
    """Batches of the samples of a dataset.

    The dataset is anything with `__getitem__` and `__len__`, or an iterable: lists of numpy arrays,
    the datasets of this package, of PyTorch and of grain. `batch_size` samples are made one batch
    by `collate_fn`, by default `default_collate`; with `batch_size=None`, each sample is one.
    Order and batches come from `sampler` or `batch_sampler`, otherwise samples are read in order,
    or, with `shuffle`, in a random one that `generator` draws. `drop_last` leaves out a last batch
    that is shorter.

    `num_workers` threads read up to `prefetch_factor` batches each before they are asked for (an
    iterable is read by one thread), after `worker_init_fn(number)`; `timeout` is for how many
    seconds to wait for a batch. `pin_memory` and `persistent_workers` are taken for compatibility.

    `state_dict()` says how far the loader is, in plain numbers; after `load_state_dict()` the next
    pass gives the batches that were left, bit for bit. Samplers with a randomness of their own, and
    iterables without a state, are to give the same again.

    Raises ValueError for options that exclude each other, or are out of range.

    >>> loader = dg.utils.data.DataLoader(range(5), batch_size=2)
    >>> list(loader)
    [tensor([0, 1]), tensor([2, 3]), tensor([4])]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        generator: Generator | None = None,
    ) -> None:
        self.dataset: Any = dataset
        is_map = hasattr(dataset, "__getitem__") and not isinstance(dataset, IterableDataset)
        self.reads_on = not is_map
        _check(self.reads_on, batch_size, shuffle, sampler, batch_sampler, drop_last=drop_last)
        if num_workers < 0 or timeout < 0:
            raise ValueError(
                "num_workers and timeout options should be non-negative, got "
                f"num_workers={num_workers}, timeout={timeout}"
            )
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified when num_workers > 0: without "
                "threads nothing is read ahead."
            )
        if prefetch_factor is not None and prefetch_factor <= 0:
            raise ValueError(f"prefetch_factor option should be positive, got {prefetch_factor}")
        self.num_workers = num_workers
        self.prefetch_factor = 2 if prefetch_factor is None else prefetch_factor
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.pin_memory, self.persistent_workers = pin_memory, persistent_workers
        self.generator = generator
        if sampler is None and not self.reads_on:
            source = self.dataset
            sampler = SequentialSampler(source)
            if shuffle:
                sampler = RandomSampler(source, generator=generator)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        elif batch_size is not None and sampler is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler = sampler, batch_sampler
        if collate_fn is None:
            in_batches = batch_size is not None or batch_sampler is not None
            collate_fn = default_collate if in_batches else default_convert
        self.collate_fn = collate_fn
        self._epoch: dict[str, Any] | None = None
        self._resumed: dict[str, Any] | None = None

    def __len__(self) -> int:
        if not self.reads_on:
            return len(self._index_sampler)
        count = len(self.dataset)
        if self.batch_size is None:
            return count
        return count_batches(count, self.batch_size, drop_last=self.drop_last)

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    # --- one pass ---------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        resumed, self._resumed = self._resumed, None
        if resumed is None:
            words = None
            if not self.reads_on and is_drawn(self._index_sampler):
                words = draw(generator_of(self._index_sampler))
            resumed = {"words": words, "batches": 0, "source": None}
        self._epoch = resumed
        return self._pass(resumed)

    def _pass(self, resumed: dict[str, Any]) -> Iterator[Any]:
        """The batches that are left of a pass; `_epoch` then says where it is."""
        make: Any = self._read_on if self.reads_on else self._read_by_position
        batches, done = make(resumed), resumed["batches"]
        try:
            for batch, source in batches:
                done += 1
                self._epoch = {"words": resumed["words"], "batches": done, "source": source}
                yield batch
            self._epoch = None
        finally:
            batches.close()

    def _read_by_position(self, resumed: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
        order = start(self._index_sampler, resumed["words"])
        order = itertools.islice(order, resumed["batches"], None)
        if not self.num_workers:
            for place in order:
                yield self._fetch(place), None
            return
        numbers, lock = itertools.count(), threading.Lock()

        def begin() -> None:
            with lock:
                number = next(numbers)
            if self.worker_init_fn is not None:
                self.worker_init_fn(number)

        pool = futures.ThreadPoolExecutor(self.num_workers, "DataLoader", begin)
        pending: collections.deque[futures.Future[Any]] = collections.deque()
        try:
            while True:
                for place in itertools.islice(
                    order, self.num_workers * self.prefetch_factor - len(pending)
                ):
                    pending.append(pool.submit(self._fetch, place))
                if not pending:
                    return
                yield self._result(pending.popleft()), None
        finally:
            pool.shutdown(cancel_futures=True)

    def _result(self, future: futures.Future[Any]) -> Any:
        try:
            return future.result(self.timeout or None)
        except futures.TimeoutError:
            if future.done():
                raise
            raise RuntimeError(
                f"DataLoader timed out after {self.timeout} seconds. Pass a longer timeout, or "
                "more workers."
            ) from None

    def _fetch(self, place: Any) -> Any:
        """One batch, or one sample where there are no batches."""
        dataset, collate = self.dataset, self.collate_fn
        if self.batch_sampler is None:
            return collate(dataset[place])
        if type(dataset) is TensorDataset and collate is default_collate:
            return dataset.batch(place)
        read_all = getattr(dataset, "__getitems__", None)
        if read_all is not None:
            return collate(read_all(place))
        return collate([dataset[i] for i in place])

    def _read_on(self, resumed: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
        batches = self._read_samples(resumed)
        if not self.num_workers:
            return batches
        return read_ahead(batches, self.num_workers * self.prefetch_factor)  # type: ignore[return-value]

    def _read_samples(self, resumed: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
        """Batches of an iterable, each with the state of its iterator, where that has one."""
        samples = iter(self.dataset)
        skipped = resumed["batches"]
        if resumed["source"] is not None:
            _method(samples, "load_state_dict", "set_state")(resumed["source"])
            skipped = 0
        size = 1 if self.batch_size is None else self.batch_size
        for _ in itertools.islice(samples, skipped * size):
            pass
        read_state = _method(samples, "state_dict", "get_state")
        while group := list(itertools.islice(samples, size)):
            if len(group) < size and self.drop_last:
                return
            batch = self.collate_fn(group[0] if self.batch_size is None else group)
            yield batch, None if read_state is None else read_state()

    # --- going on ---------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """How far the loader is: plain numbers, lists and dicts."""
        generator = self.generator
        state = None if generator is None else generator.get_state().tolist()
        return {"epoch": self._epoch, "generator": state}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Has the next pass give what was left of the one that `state_dict` was taken in.

        Raises KeyError for what is no state of a loader, RuntimeError for one with a generator
        where this has none.
        """
        epoch, generator = state_dict["epoch"], state_dict["generator"]
        if generator is not None:
            if self.generator is None:
                raise RuntimeError(
                    "DataLoader.load_state_dict: the state has that of a generator, but this "
                    "loader has none. Make it with generator=dg.Generator()."
                )
            self.generator.set_state(tensor(generator, dtype=dtypes.uint8))
        self._resumed = self._epoch = epoch


def _method(source: Any, *names: str) -> Any:
    """The first of these methods that an iterator has."""
    return next((getattr(source, n) for n in names if hasattr(source, n)), None)


def _check(
    reads_on: bool,
    batch_size: int | None,
    shuffle: bool | None,
    sampler: Any,
    batch_sampler: Any,
    *,
    drop_last: bool,
) -> None:
    """Raises ValueError for options that exclude each other."""
    if reads_on:
        given = {"shuffle": shuffle, "sampler": sampler, "batch_sampler": batch_sampler}
        for name, value in given.items():
            if value:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                    f"{name}={value}. An iterable has an order of its own."
                )
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle: it says the order.")
    if batch_sampler is not None and (
        batch_size != 1 or shuffle or sampler is not None or drop_last
    ):
        raise ValueError(
            "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
            "drop_last: it says what is in each batch."
        )
    if batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )
    if batch_size is not None and (not isinstance(batch_size, int) or batch_size <= 0):
        raise ValueError(
            f"batch_size should be a positive integer value, but got batch_size={batch_size}"
        )

"""Samplers: in which order samples are read, and in which batches.

The order of a random sampler follows from one draw of its generator: `__iter__` makes that draw,
and `order` gives the order that follows from it, so that a loader can go on where it was.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

import numpy as np

from dyngraph.random import Generator
from dyngraph.tensor import Tensor
from dyngraph.utils.data.drawing import numbers

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


class Sampler:
    """Positions to read, one after the other: a subclass has `__iter__`, and may have `__len__`."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler):
    """Every sample, in order.

    >>> list(dg.utils.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class _Drawn(Sampler):
    """A sampler whose order is drawn."""

    generator: Generator | None

    def __iter__(self) -> Iterator[int]:
        return self.order(numbers(self.generator))

    def order(self, rng: np.random.Generator) -> Iterator[int]:
        """The order that follows from the generator."""
        raise NotImplementedError


class RandomSampler(_Drawn):
    """The samples in a random order; with `replacement`, each drawn from all.

    `num_samples` is how many to draw, by default as many as there are. Raises ValueError for one
    that is not positive, TypeError for a `replacement` that is no bool.

    >>> sampler = dg.utils.data.RandomSampler(range(4), generator=dg.Generator().manual_seed(0))
    >>> sorted(sampler)
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        if num_samples is not None and (not isinstance(num_samples, int) or num_samples <= 0):
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator

    @property
    def num_samples(self) -> int:
        """How many are drawn."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __len__(self) -> int:
        return self.num_samples

    def order(self, rng: np.random.Generator) -> Iterator[int]:
        """The order that follows from the generator."""
        count, wanted = len(self.data_source), self.num_samples
        if not count:
            return iter(())
        if self.replacement:
            return iter(rng.integers(count, size=wanted).tolist())
        rounds = (rng.permutation(count).tolist() for _ in itertools.count())
        return itertools.islice(itertools.chain.from_iterable(rounds), wanted)


class SubsetRandomSampler(_Drawn):
    """The given positions, in a random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __len__(self) -> int:
        return len(self.indices)

    def order(self, rng: np.random.Generator) -> Iterator[int]:
        """The order that follows from the generator."""
        return iter([self.indices[i] for i in rng.permutation(len(self.indices)).tolist()])


class WeightedRandomSampler(_Drawn):
    """Positions drawn with given weights, which need not add up to 1.

    Raises ValueError for weights that are no vector of at least one, and counts that are not
    positive or, without `replacement`, more than the weights that are not 0.

    >>> list(dg.utils.data.WeightedRandomSampler([0.0, 3.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.weights = np.asarray(
            weights.detach().numpy() if isinstance(weights, Tensor) else weights, np.float64
        )
        if self.weights.ndim != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape "
                f"{list(self.weights.shape)}"
            )
        if not replacement and num_samples > np.count_nonzero(self.weights):
            raise ValueError(
                f"num_samples={num_samples} can't be drawn without replacement from "
                f"{np.count_nonzero(self.weights)} weights that are not 0. Draw fewer, or pass "
                "replacement=True."
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __len__(self) -> int:
        return self.num_samples

    def order(self, rng: np.random.Generator) -> Iterator[int]:
        """The order that follows from the generator."""
        chances = self.weights / self.weights.sum()
        drawn = rng.choice(len(chances), self.num_samples, self.replacement, chances)
        return iter(drawn.tolist())


class BatchSampler(Sampler):
    """Lists of `batch_size` positions; the last may be shorter, unless `drop_last`.

    Raises ValueError for a size that is no positive integer, or a `drop_last` that is no bool.

    >>> list(dg.utils.data.BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        return batched(self.sampler, self.batch_size, drop_last=self.drop_last)

    def __len__(self) -> int:
        return count_batches(len(self.sampler), self.batch_size, drop_last=self.drop_last)  # type: ignore[arg-type]


def batched(items: Iterable[Any], size: int, *, drop_last: bool) -> Iterator[list[Any]]:
    """Lists of `size` items, and unless `drop_last` one of what is left."""
    rest = iter(items)
    while batch := list(itertools.islice(rest, size)):
        if len(batch) == size or not drop_last:
            yield batch


def count_batches(items: int, size: int, *, drop_last: bool) -> int:
    """How many lists `batched` gives."""
    return items // size if drop_last else -(-items // size)


def start(sampler: Any, words: list[int]) -> Iterator[Any]:
    """A pass through a sampler, random ones in the order that follows from `words`."""
    if isinstance(sampler, BatchSampler):
        inner = start(sampler.sampler, words)
        return batched(inner, sampler.batch_size, drop_last=sampler.drop_last)
    if isinstance(sampler, _Drawn):
        return sampler.order(np.random.default_rng(words))
    return iter(sampler)


def generator_of(sampler: Any) -> Generator | None:
    """The generator that a sampler draws from; None for the default one."""
    if isinstance(sampler, BatchSampler):
        return generator_of(sampler.sampler)
    return sampler.generator if isinstance(sampler, _Drawn) else None


def is_drawn(sampler: Any) -> bool:
    """Whether the order of a sampler is drawn."""
    if isinstance(sampler, BatchSampler):
        return is_drawn(sampler.sampler)
    return isinstance(sampler, _Drawn)

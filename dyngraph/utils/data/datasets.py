"""Datasets: what samples are read from, by position or one after the other."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dyngraph.random import Generator
from dyngraph.tensor import Tensor
from dyngraph.utils.data.drawing import numbers

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]


class Dataset:
    """Samples by position: a subclass has `__getitem__`, and `__len__` for most uses.

    `a + b` has the samples of both. Anything with these two methods serves as a dataset.
    """

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Samples one after the other: a subclass has `__iter__`. `a + b` gives those of both."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Any) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Samples that are tuples: one row of each tensor, which all have the same first size.

    >>> dg.utils.data.TensorDataset(dg.arange(3.0), dg.ones(3))[1]
    (tensor(1.), tensor(1.))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(t.shape[0] != tensors[0].shape[0] for t in tensors):
            raise AssertionError(
                f"Size mismatch between tensors: their first sizes are "
                f"{[t.shape[0] for t in tensors]}. Pass one row of each for every sample."
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]

    def batch(self, indices: Sequence[int]) -> list[Tensor]:
        """What collated samples would be, read at once."""
        place = np.asarray(indices)
        return [tensor[place] for tensor in self.tensors]


class StackDataset(Dataset):
    """Samples of several datasets side by side: tuples, or dicts where these are given by name.

    Raises ValueError for datasets of different lengths, or none.

    >>> dg.utils.data.StackDataset(image=[1, 2], label=["a", "b"])[1]
    {'image': 2, 'label': 'b'}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError(
                "StackDataset expects its datasets either by position or by name, and at least one."
            )
        self.datasets: Any = kwargs or args
        lengths = [len(d) for d in (kwargs.values() if kwargs else args)]
        if len(set(lengths)) > 1:
            raise ValueError(f"Size mismatch between datasets: their lengths are {lengths}.")
        self._length = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset):
    """The samples of several datasets, one dataset after the other.

    >>> list(dg.utils.data.ConcatDataset([[1, 2], [3]]))
    [1, 2, 3]
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable. Pass one at least.")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError(
                "ConcatDataset does not support IterableDataset. Chain them by ChainDataset."
            )
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        length = len(self)
        if not -length <= index < length:
            raise IndexError(f"index {index} is out of range for a dataset of {length} samples")
        place = index % length
        which = bisect.bisect_right(self.cumulative_sizes, place)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][place - before]


class ChainDataset(IterableDataset):
    """The samples of several iterable datasets, one dataset after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)


class Subset(Dataset):
    """The samples of a dataset at `indices`.

    >>> list(dg.utils.data.Subset("abcd", [3, 0]))
    ['d', 'a']
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any, lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset]:
    """The dataset in parts of these lengths, drawn at random without overlap.

    Lengths are counts, which add up to that of the dataset, or fractions, which add up to 1: then
    what rounding leaves over goes to the parts in turn. Raises ValueError where they do not.

    >>> parts = dg.utils.data.random_split(range(10), [0.7, 0.3], dg.Generator().manual_seed(0))
    >>> [len(part) for part in parts], sorted(i for part in parts for i in part)
    ([7, 3], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    count = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        wrong = [f for f in lengths if not 0 <= f <= 1]
        if wrong:
            raise ValueError(f"random_split: fractions must lie between 0 and 1, got {wrong}")
        sizes = [math.floor(count * f) for f in lengths]
        for i in range(count - sum(sizes)):
            sizes[i % len(sizes)] += 1
    else:
        sizes = [int(n) for n in lengths]
    if sum(sizes) != count:
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset: they add up to "
            f"{sum(sizes)}, and it has {count} samples."
        )
    order = numbers(generator).permutation(count).tolist()
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - n : end]) for n, end in zip(sizes, ends, strict=True)]

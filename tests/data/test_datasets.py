"""Datasets, and how samples become batches."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.utils import data


def test_datasets_add_up() -> None:
    class Letters(data.Dataset):
        def __init__(self, letters: str) -> None:
            self.letters = letters

        def __getitem__(self, i: int) -> str:
            return self.letters[i]

        def __len__(self) -> int:
            return len(self.letters)

    both = Letters("ab") + Letters("c")
    assert ([both[i] for i in range(3)], len(both), both[-1]) == (["a", "b", "c"], 3, "c")
    assert both.cumulative_sizes == [2, 3]
    with pytest.raises(IndexError, match="index 3 is out of range for a dataset of 3"):
        both[3]


def test_iterable_datasets_are_chained() -> None:
    class Count(data.IterableDataset):
        def __iter__(self) -> Any:
            return iter([1, 2])

    assert list(Count() + Count()) == [1, 2, 1, 2]
    with pytest.raises(AssertionError, match="Chain them by ChainDataset"):
        data.ConcatDataset([Count()])


def test_subset_takes_positions_and_lists_of_them() -> None:
    subset = data.Subset(data.TensorDataset(dg.arange(5.0)), [4, 2])
    assert (len(subset), subset[1][0].item()) == (2, 2.0)
    assert subset[[0, 1]][0].tolist() == [4.0, 2.0]


def test_random_split_has_every_sample_once() -> None:
    parts = data.random_split(range(7), [0.5, 0.25, 0.25], dg.Generator().manual_seed(0))
    assert [len(part) for part in parts] == [4, 2, 1]
    assert sorted(i for part in parts for i in part) == list(range(7))
    again = data.random_split(range(7), [4, 2, 1], dg.Generator().manual_seed(0))
    assert [part.indices for part in again] == [part.indices for part in parts]


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "split": (lambda: data.random_split(range(3), [1, 1]), ValueError, "they add up to 2"),
    "rows": (lambda: data.TensorDataset(dg.ones(2), dg.ones(3)), AssertionError, r"\[2, 3\]"),
    "stack": (lambda: data.StackDataset([1], [1, 2]), ValueError, r"lengths are \[1, 2\]"),
    "none": (lambda: data.ConcatDataset([]), AssertionError, "Pass one at least"),
    "method": (lambda: data.Dataset()[0], NotImplementedError, "should implement __getitem__"),
}


@pytest.mark.parametrize(("make", "kind", "message"), BAD.values(), ids=BAD.keys())
def test_datasets_refuse_what_does_not_fit(make: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


class Sample(NamedTuple):
    image: Any
    label: Any


def test_containers_are_collated_part_by_part() -> None:
    samples = [
        OrderedDict(s=Sample(np.full(2, i, np.float32), i), t=(0.5, "name"), flag=True)
        for i in range(2)
    ]
    batch = data.default_collate(samples)
    assert type(batch) is OrderedDict
    assert batch["s"].image.tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert batch["s"].label.tolist() == [0, 1]
    assert (batch["t"][0].tolist(), batch["t"][1]) == ([0.5, 0.5], ["name", "name"])
    assert (batch["t"][0].dtype, batch["flag"].dtype) == (dg.float32, dg.bool)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, np.complex64])
def test_arrays_keep_their_dtype(dtype: Any) -> None:
    batch = data.default_collate([np.ones(2, dtype), np.zeros(2, dtype)])
    assert (batch.dtype.name, batch.tolist()) == (np.dtype(dtype).name, [[1, 1], [0, 0]])


def test_tensors_that_require_grad_are_stacked_with_their_history() -> None:
    x = dg.ones(2, requires_grad=True)
    data.default_collate([x, x * 2]).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0]


UNEQUAL: dict[str, tuple[Any, type[Exception], str]] = {
    "tensors": ([dg.ones(2), dg.ones(3)], RuntimeError, "each tensor to be equal size"),
    "arrays": ([np.ones(2), np.ones(3)], RuntimeError, "Pad them, or pass a collate_fn"),
    "lists": ([[1], [1, 2]], RuntimeError, "should be of equal size"),
    "objects": ([object()], TypeError, "must contain tensors, numpy arrays"),
}


@pytest.mark.parametrize(("batch", "kind", "message"), UNEQUAL.values(), ids=UNEQUAL.keys())
def test_what_makes_no_batch_is_refused(batch: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        data.default_collate(batch)


def test_conversion_keeps_containers() -> None:
    found = data.default_convert(Sample(np.ones(1, np.float32), [b"x", np.int32(3)]))
    assert (found.image.tolist(), found.label[0], found.label[1].item()) == ([1.0], b"x", 3)

"""DataLoader: order, batches, threads, and going on where it was."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import grain
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg
from dyngraph.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

SAMPLES = [np.full(2, i, np.float32) for i in range(7)]


def seeded(seed: int = 0) -> dg.Generator:
    return dg.Generator().manual_seed(seed)


def values(loader: Any) -> list[Any]:
    return [batch.tolist() for batch in loader]


@pytest.mark.parametrize(("drop_last", "sizes"), [(False, [3, 3, 1]), (True, [3, 3])])
def test_samples_come_in_order_and_in_batches(drop_last: bool, sizes: list[int]) -> None:
    loader = DataLoader(SAMPLES, batch_size=3, drop_last=drop_last)
    batches = list(loader)
    assert [len(batch) for batch in batches] == sizes
    assert len(loader) == len(sizes)
    assert batches[0].tolist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]


def test_shuffled_passes_differ_and_follow_the_generator() -> None:
    loader = DataLoader(range(20), batch_size=20, shuffle=True, generator=seeded())
    first, second = values(loader) + values(loader)
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second
    assert values(DataLoader(range(20), 20, shuffle=True, generator=seeded())) == [first]


def test_default_generator_is_drawn_from_once_a_pass() -> None:
    dg.manual_seed(1)
    first = values(DataLoader(range(20), 20, shuffle=True))
    assert "draws=1" in repr(dg.default_generator)
    dg.manual_seed(1)
    assert values(DataLoader(range(20), 20, shuffle=True)) == first


def test_tensor_dataset_is_read_a_batch_at_a_time() -> None:
    dataset = TensorDataset(dg.arange(4.0), dg.arange(8).view(4, 2))
    first, second = next(iter(DataLoader(dataset, batch_size=3)))
    assert (first.tolist(), second.tolist()) == ([0.0, 1.0, 2.0], [[0, 1], [2, 3], [4, 5]])


def test_without_batches_samples_come_as_they_are() -> None:
    assert values(DataLoader(SAMPLES, batch_size=None))[1] == [1.0, 1.0]
    assert list(DataLoader(["a", "b"], batch_size=None)) == ["a", "b"]


def test_samplers_and_collation_are_the_caller_s() -> None:
    assert values(DataLoader(range(9), 2, sampler=[4, 3, 2])) == [[4, 3], [2]]
    batches = BatchSampler([8, 7, 6], 2, drop_last=True)
    assert values(DataLoader(range(9), batch_sampler=batches)) == [[8, 7]]
    assert list(DataLoader(range(3), 3, collate_fn=sum)) == [3]


class Stream(IterableDataset):
    """Numbers up to a count, one after the other."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.count))

    def __len__(self) -> int:
        return self.count


@pytest.mark.parametrize("workers", [0, 2])
def test_iterables_are_read_on(workers: int) -> None:
    loader = DataLoader(Stream(5), batch_size=2, num_workers=workers)
    assert values(loader) == values(loader) == [[0, 1], [2, 3], [4]]
    assert len(loader) == 3
    assert values(DataLoader(iter([1.0, 2.0]), batch_size=2, num_workers=workers)) == [[1.0, 2.0]]


def test_grain_datasets_are_read() -> None:
    source = grain.MapDataset.source(SAMPLES).map(lambda x: x + 1)
    assert values(DataLoader(source, batch_size=4))[0][0] == [1.0, 1.0]
    assert values(DataLoader(source.to_iter_dataset(), batch_size=4))[1][2] == [7.0, 7.0]


# --- threads ----------------------------------------------------------------------------------


def test_threads_give_the_same_batches_in_order() -> None:
    names = set()

    class Slow:
        def __len__(self) -> int:
            return 12

        def __getitem__(self, i: int) -> int:
            names.add(threading.current_thread().name)
            return i

    began: list[int] = []
    loader = DataLoader(Slow(), batch_size=2, num_workers=3, worker_init_fn=began.append)
    assert values(loader) == values(DataLoader(range(12), batch_size=2))
    assert threading.current_thread().name not in names
    assert sorted(began) == list(range(len(began)))


class Failing:
    """Fails at sample 5."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> int:
        if i == 5:
            raise LookupError("sample 5 is bad")
        return i


@pytest.mark.parametrize("workers", [0, 2])
def test_error_comes_where_its_batch_would_have(workers: int) -> None:
    before = threading.active_count()
    batches = iter(DataLoader(Failing(), batch_size=2, num_workers=workers))
    assert [next(batches).tolist(), next(batches).tolist()] == [[0, 1], [2, 3]]
    with pytest.raises(LookupError, match="sample 5 is bad"):
        next(batches)
    assert threading.active_count() == before


@pytest.mark.parametrize("dataset", [range(100), Stream(100)])
def test_loop_that_is_left_early_leaves_no_thread(dataset: Any) -> None:
    before = threading.active_count()
    for _ in DataLoader(dataset, num_workers=2):
        break
    assert threading.active_count() == before


def test_slow_batch_times_out() -> None:
    go_on = threading.Event()

    class Stuck:
        def __len__(self) -> int:
            return 1

        def __getitem__(self, i: int) -> int:
            go_on.wait()
            return i

    batches = iter(DataLoader(Stuck(), num_workers=1, timeout=0.01))
    threading.Timer(0.1, go_on.set).start()
    with pytest.raises(RuntimeError, match=r"timed out after 0\.01 seconds"):
        next(batches)


# --- going on ---------------------------------------------------------------------------------


def make(kind: str) -> DataLoader:
    """A loader of a kind, as a program would make it anew."""
    if kind == "iterable":
        return DataLoader(Stream(9), batch_size=2)
    if kind == "iterable, read ahead":
        return DataLoader(Stream(9), batch_size=2, num_workers=1)
    if kind == "grain":
        dataset = grain.MapDataset.range(9).shuffle(seed=3).to_iter_dataset()
        return DataLoader(dataset, batch_size=2)
    if kind == "weighted":
        sampler = WeightedRandomSampler(np.arange(9.0), 9, generator=seeded(4))
        return DataLoader(range(9), batch_size=2, sampler=sampler, generator=sampler.generator)
    workers = 2 if kind == "threads" else 0
    return DataLoader(range(9), 2, shuffle=True, num_workers=workers, generator=seeded(2))


KINDS = ["shuffled", "threads", "weighted", "iterable", "iterable, read ahead", "grain"]


@pytest.mark.parametrize("kind", KINDS)
def test_state_goes_on_bit_for_bit(kind: str) -> None:
    loader = make(kind)
    list(loader)
    batches = iter(loader)
    for _ in range(2):
        next(batches)
    state = json.loads(json.dumps(loader.state_dict()))
    expected = [batch.tolist() for batch in batches] + values(loader)
    again = make(kind)
    again.load_state_dict(state)
    assert values(again) + values(again) == expected
    assert len(expected) == 8


def test_state_between_passes_starts_the_next() -> None:
    loader = make("shuffled")
    list(loader)
    again = make("shuffled")
    again.load_state_dict(loader.state_dict())
    assert values(again) == values(loader)


def test_state_with_a_generator_needs_one() -> None:
    with pytest.raises(RuntimeError, match=r"generator=dg\.Generator\(\)"):
        DataLoader(range(9)).load_state_dict(make("shuffled").state_dict())


# --- bad input --------------------------------------------------------------------------------

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "size": ({"batch_size": 0}, "batch_size should be a positive integer"),
    "workers": ({"num_workers": -1}, "should be non-negative"),
    "ahead": ({"prefetch_factor": 2}, "only be specified when num_workers > 0"),
    "order": ({"sampler": [0], "shuffle": True}, "mutually exclusive with shuffle"),
    "batches": ({"batch_sampler": [[0]], "batch_size": 2}, "mutually exclusive with batch_size"),
    "drop": ({"batch_size": None, "drop_last": True}, "mutually exclusive with drop_last"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DataLoader(range(3), **options)


def test_iterable_has_an_order_of_its_own() -> None:
    with pytest.raises(ValueError, match="expected unspecified shuffle option"):
        DataLoader(Stream(3), shuffle=True)


# --- samplers ---------------------------------------------------------------------------------


def test_random_sampler_draws_as_many_as_it_is_told() -> None:
    assert len(list(RandomSampler(range(3), num_samples=7, generator=seeded()))) == 7
    drawn = list(RandomSampler(range(3), True, 50, seeded()))
    assert set(drawn) == {0, 1, 2}
    assert list(RandomSampler([])) == []


def test_subset_sampler_draws_from_its_positions() -> None:
    assert sorted(SubsetRandomSampler([5, 7, 9], seeded())) == [5, 7, 9]


def test_weights_are_chances() -> None:
    drawn = list(WeightedRandomSampler([1.0, 0.0, 3.0], 4000, generator=seeded()))
    assert 1 not in drawn
    assert abs(drawn.count(2) / 4000 - 0.75) < 0.03
    assert sorted(WeightedRandomSampler(dg.ones(4), 4, replacement=False)) == [0, 1, 2, 3]


SAMPLERS: dict[str, tuple[Any, str]] = {
    "count": (lambda: RandomSampler(range(2), num_samples=0), "num_samples should be a positive"),
    "weights": (lambda: WeightedRandomSampler([[1.0]], 1), "weights should be a 1d sequence"),
    "too many": (lambda: WeightedRandomSampler([1.0, 0.0], 2, False), "Draw fewer, or pass"),
    "size": (lambda: BatchSampler(range(2), 0, False), "batch_size should be a positive"),
    "last": (lambda: BatchSampler(range(2), 1, None), "drop_last should be a boolean"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("make_sampler", "message"), SAMPLERS.values(), ids=SAMPLERS.keys())
def test_samplers_refuse_what_does_not_fit(make_sampler: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_sampler()


def test_jax_arrays_are_samples() -> None:
    assert values(DataLoader(list(jnp.arange(3)), batch_size=3)) == [[0, 1, 2]]

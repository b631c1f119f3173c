"""prefetch: batches on their device before they are used."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import grain
import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import dyngraph as dg
from dyngraph.utils.data import DataLoader, prefetch


def test_leaves_of_any_library_become_tensors_on_the_device() -> None:
    class Foreign:
        """Speaks DLPack as PyTorch's tensors do."""

        def __init__(self) -> None:
            self.array = np.full(2, 3, np.float32)

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__()

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    batch = {"n": np.ones(2, np.int32), "j": jax.numpy.zeros(1), "t": dg.ones(1), "f": Foreign()}
    (found,) = prefetch([{**batch, "name": "text"}], device="cpu:1")
    assert found["name"] == "text"
    assert {str(found[key].device) for key in batch} == {"cpu:1"}
    assert [found[key].tolist() for key in batch] == [[1, 1], [0.0], [1.0], [3.0, 3.0]]


def test_batches_are_spread_by_a_sharding() -> None:
    mesh = Mesh(np.array(jax.devices()[:2]), ("batch",))
    place = NamedSharding(mesh, PartitionSpec("batch"))
    (found,) = prefetch([np.arange(4, dtype=np.float32)], device=place)
    assert found.jax().sharding == place


def test_so_many_batches_are_read_ahead() -> None:
    read: list[int] = []
    reached = threading.Event()

    def source() -> Iterator[Any]:
        for i in range(10):
            read.append(i)
            if i == 3:
                reached.set()
            yield np.zeros(1, np.float32)

    batches = iter(prefetch(source(), size=3))
    next(batches)
    assert reached.wait(5)
    batches.close()  # type: ignore[attr-defined]
    assert read == [0, 1, 2, 3]


def test_every_pass_reads_anew() -> None:
    batches = prefetch(DataLoader(range(4), batch_size=2))
    assert [b.tolist() for b in batches] == [b.tolist() for b in batches] == [[0, 1], [2, 3]]
    assert len(batches) == 2


def test_error_comes_after_the_batches_before_it() -> None:
    def source() -> Iterator[Any]:
        yield np.zeros(1, np.float32)
        raise LookupError("the file ends here")

    before = threading.active_count()
    batches = iter(prefetch(source()))
    assert next(batches).tolist() == [0.0]
    with pytest.raises(LookupError, match="the file ends here"):
        next(batches)
    assert threading.active_count() == before


def test_loop_that_is_left_early_ends_thread_and_source() -> None:
    closed = []

    def source() -> Iterator[Any]:
        try:
            while True:
                yield np.zeros(1, np.float32)
        finally:
            closed.append(threading.current_thread().name)

    before = threading.active_count()
    for _ in prefetch(source()):
        break
    assert threading.active_count() == before
    assert len(closed) == 1


def test_state_is_that_of_what_was_given_out() -> None:
    def make() -> Any:
        generator = dg.Generator().manual_seed(0)
        loader = DataLoader(range(12), batch_size=2, shuffle=True, generator=generator)
        return prefetch(loader, size=4)

    batches = make()
    running = iter(batches)
    next(running)
    next(running)
    state = batches.state_dict()
    expected = [batch.tolist() for batch in running]
    again = make()
    again.load_state_dict(state)
    assert [batch.tolist() for batch in again] == expected
    assert len(expected) == 4


def test_grain_loaders_are_read() -> None:
    loader = grain.DataLoader(
        data_source=range(4),  # type: ignore[arg-type]
        sampler=grain.samplers.SequentialSampler(4, grain.sharding.NoSharding()),
        operations=[grain.transforms.Batch(2)],
        worker_count=0,
    )
    assert [batch.tolist() for batch in prefetch(loader)] == [[0, 1], [2, 3]]


def test_size_must_be_positive() -> None:
    with pytest.raises(ValueError, match="size must be positive, got 0"):
        prefetch([], size=0)

"""x[index] = value: which elements change, what may be assigned, where the gradient goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from tests.graph.helpers import assert_values, leaf


def grid() -> np.ndarray:
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


# Each index as numpy takes it; lists of integers and masks become tensors for `dg`.
BASIC: dict[str, Any] = {
    "integer": 1,
    "negative integer": -1,
    "integers": (1, 2, 3),
    "integer in the middle": (slice(None), 1),
    "slice": slice(1, 2),
    "open slice": slice(1, None),
    "slice with a step": (slice(None), slice(None), slice(0, 4, 2)),
    "slice from the end": (slice(None), slice(-2, -1)),
    "empty slice": slice(2, 2),
    "slice beyond the end": (slice(None), slice(1, 10)),
    "everything": slice(None),
    "ellipsis": ...,
    "empty tuple": (),
    "ellipsis and integer": (..., 1),
    "integer, ellipsis, slice": (0, ..., slice(1, 3)),
    "new axis": None,
    "new axis after an integer": (0, None),
    "new axis between slices": (slice(None), None, slice(0, 2)),
}
ADVANCED: dict[str, Any] = {
    "integers of one dim": [1, 0],
    "negative integers": [-1],
    "two arrays": ([0, 1], [2, 0]),
    "arrays that broadcast": ([[0], [1]], [2, 0]),
    "array after a slice": (slice(None), [2, 0]),
    "array between slices": (slice(None), [2, 0], slice(1, 3)),
    "arrays apart": ([0, 1], slice(None), [3, 1]),
    "array and integer": ([0, 1], 2),
    "array and ellipsis": (..., [3, 1]),
    "array and new axis": (None, [1, 0]),
    "array of two dims": [[1], [0]],
    "mask of all dims": (grid() % 3 == 0).tolist(),
    "mask of the first dim": [False, True],
    "mask of the second dim": (slice(None), [True, False, True]),
    "mask and array": ([True, True], [0, 2]),
    "mask of nothing": [False, False],
    "True": True,
    "False": False,
}


def for_dg(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(map(for_dg, index))
    return dg.tensor(index) if isinstance(index, list) else index


def for_numpy(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(map(for_numpy, index))
    return np.array(index) if isinstance(index, list) else index


ALL = BASIC | ADVANCED
# The index False assigns nothing at all.
CHOSEN = {name: index for name, index in ADVANCED.items() if name != "False"}
WRITING = BASIC | CHOSEN
every_index = pytest.mark.parametrize("index", ALL.values(), ids=ALL)


@every_index
def test_number_is_assigned_to_the_elements(index: Any) -> None:
    expected, x = grid(), dg.tensor(grid())
    expected[for_numpy(index)] = -1
    x[for_dg(index)] = -1
    assert_values(x, expected)


@every_index
def test_tensor_is_assigned_to_the_elements(index: Any) -> None:
    expected, x = grid(), dg.tensor(grid())
    value = -grid()[for_numpy(index)] - 1
    expected[for_numpy(index)] = value
    x[for_dg(index)] = dg.tensor(value)
    assert_values(x, expected)


@every_index
def test_assignment_is_seen_by_what_shares_the_storage(index: Any) -> None:
    expected, x = grid(), dg.tensor(grid())
    alias = x.view(-1)
    expected[for_numpy(index)] = -1
    x[for_dg(index)] = -1
    assert_values(alias, expected.reshape(-1))


# Where an index names a place twice, what stays has the gradient here; PyTorch gives it to both.
DISTINCT = {name: index for name, index in WRITING.items() if name != "array of two dims"}


@pytest.mark.parametrize("index", DISTINCT.values(), ids=DISTINCT)
def test_gradient_of_the_elements_goes_to_the_value(index: Any) -> None:
    chosen = grid()[for_numpy(index)]
    x = dg.tensor(grid(), requires_grad=True)
    value = dg.tensor(chosen + 0.5, requires_grad=True)
    y = x * 1
    y[for_dg(index)] = value
    (y * dg.tensor(grid())).sum().backward()
    left = grid()
    left[for_numpy(index)] = 0
    assert_values(x.grad, left)
    assert_values(value.grad, chosen)


@every_index
def test_assigning_a_number_stops_the_gradient_of_the_elements(index: Any) -> None:
    x = dg.tensor(grid(), requires_grad=True)
    y = x * 1
    y[for_dg(index)] = 2.0
    (y * dg.tensor(grid())).sum().backward()
    left = grid()
    left[for_numpy(index)] = 0
    assert_values(x.grad, left)


@pytest.mark.parametrize("index", BASIC.values(), ids=BASIC)
def test_assignment_raises_the_version_by_one(index: Any) -> None:
    x = dg.tensor(grid())
    x[index] = -1
    assert x._version == 1


@pytest.mark.parametrize("index", CHOSEN.values(), ids=CHOSEN)
def test_assignment_to_chosen_elements_raises_the_version_by_one(index: Any) -> None:
    x = dg.tensor(grid())
    x[for_dg(index)] = -1
    assert x._version == 1


def test_assigning_to_nothing_by_False_writes_nothing() -> None:
    x = dg.tensor(grid())
    x[False] = -1
    assert x._version == 0


def test_assigning_to_an_empty_slice_counts_as_a_write() -> None:
    x = dg.tensor(grid())
    x[2:] = -1
    assert x._version == 1


VALUES: dict[str, tuple[Callable[[], Any], Any]] = {
    "0-d tensor": (lambda: dg.tensor(5.0), [[5, 5], [5, 5]]),
    "row": (lambda: dg.tensor([5.0, 6.0]), [[5, 6], [5, 6]]),
    "column": (lambda: dg.tensor([[5.0], [6.0]]), [[5, 5], [6, 6]]),
    "leading dims of size 1": (lambda: dg.tensor([[[5.0, 6.0]]]), [[5, 6], [5, 6]]),
    "bool": (lambda: True, [[1, 1], [1, 1]]),
    "integer": (lambda: 5, [[5, 5], [5, 5]]),
    "tensor of integers": (lambda: dg.tensor([5, 6]), [[5, 6], [5, 6]]),
    "tensor of bools": (lambda: dg.tensor([True, False]), [[1, 0], [1, 0]]),
    "half-precision tensor": (lambda: dg.tensor([5.0, 6.0]).to(dg.bfloat16), [[5, 6], [5, 6]]),
}
every_value = pytest.mark.parametrize("value, expected", VALUES.values(), ids=VALUES)


@every_value
def test_value_is_broadcast_and_converted(value: Callable[[], Any], expected: Any) -> None:
    x = dg.zeros(2, 2)
    x[:] = value()
    assert_values(x, expected)


def test_floats_assigned_to_integers_lose_their_fraction() -> None:
    x = dg.tensor([0, 0])
    x[:] = dg.tensor([1.7, -1.7])
    assert x.tolist() == [1, -1]


def test_number_assigned_to_integers_loses_its_fraction() -> None:
    x = dg.tensor([0, 0])
    x[0] = 1.7
    assert x.tolist() == [1, 0]


def test_number_assigned_to_bools_is_true_if_not_zero() -> None:
    x = dg.tensor([False, True, False])
    x[0] = 2
    x[1] = 0
    assert x.tolist() == [True, False, False]


def test_real_value_assigned_to_complex_gets_a_real_gradient() -> None:
    value = leaf(1.0, 2.0)
    x = dg.zeros(3, dtype=dg.complex64)
    x[1:] = value
    (x * (2 + 1j)).sum().real.backward()
    assert_values(value.grad, [2, 2])


def test_gradient_of_a_broadcast_value_is_summed() -> None:
    value = leaf(1.0, 2.0)
    x = dg.zeros(3, 2)
    x[1:] = value
    (x * dg.tensor([[1.0, 1.0], [2.0, 3.0], [4.0, 5.0]])).sum().backward()
    assert_values(value.grad, [6, 8])


def test_gradient_goes_to_the_value_assigned_last_to_an_element() -> None:
    first, second = leaf(1.0), leaf(2.0)
    x = dg.zeros(3)
    x[:2] = first
    x[1:] = second
    (x * dg.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert_values(first.grad, 1)
    assert_values(second.grad, 110)


def test_assignment_makes_a_constant_require_grad() -> None:
    x = dg.zeros(3)
    x[1] = leaf(5.0)
    assert x.requires_grad and not x.is_leaf


def test_assignment_to_a_constant_of_a_constant_records_nothing() -> None:
    x = dg.zeros(3)
    x[1] = 5.0
    assert not x.requires_grad and x.is_leaf


def test_assigned_value_is_a_snapshot() -> None:
    x, value = dg.zeros(2, 2), dg.ones(2)
    x[0] = value
    value.zero_()
    assert_values(x, [[1, 1], [0, 0]])


def test_assignment_of_its_own_part_reads_before_it_writes() -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    y[:2] = y[2:] * 10
    (y * dg.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert_values(y, [30, 40, 3, 4])
    assert_values(x.grad, [0, 0, 13, 24])


def test_repeated_index_adds_up_with_accumulate() -> None:
    x, value = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * 1
    y.index_put_((dg.tensor([0, 0]),), value, accumulate=True)
    (y * dg.tensor([10.0, 1.0])).sum().backward()
    assert_values(y, [8, 2])
    assert_values(x.grad, [10, 1])
    assert_values(value.grad, [10, 10])


def test_loop_of_assignments_has_the_gradient_of_the_recurrence() -> None:
    x = leaf(2.0)
    y = dg.zeros(4)
    y[0] = x
    for i in range(1, 4):
        y[i] = y[i - 1].clone() * x
    y.sum().backward()
    assert_values(x.grad, 1 + 4 + 12 + 32)


def test_masked_assignment_under_no_grad_leaves_the_graph_as_it_was() -> None:
    x = leaf(-1.0, 2.0)
    y = x * 3
    with dg.no_grad():
        y[y < 0] = 0.0
    y.sum().backward()
    assert_values(y, [0, 6])
    assert_values(x.grad, [3, 3])


REFUSED: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "too many values": (slice(0, 2), dg.ones(3), RuntimeError, "shape mismatch|expand|broadcast"),
    "more dims": (0, dg.ones(2, 3, 4), RuntimeError, "shape mismatch|expand|broadcast|match"),
    "index out of range": (5, 1.0, IndexError, "out of (range|bounds)"),
    "index below the range": (-4, 1.0, IndexError, "out of (range|bounds)"),
    "too many indices": ((0, 0), 1.0, IndexError, "too many indices"),
    "float as an index": (1.0, 1.0, IndexError, "only integers|valid ind"),
    "tensor of floats": (dg.tensor([1.0]), 1.0, IndexError, "tensors used as indices"),
    "mask of another shape": (dg.tensor([True]), 1.0, IndexError, "shape of the mask"),
    "array out of range": (dg.tensor([3]), 1.0, IndexError, "out of (range|bounds)"),
}


@pytest.mark.parametrize("index, value, error, match", REFUSED.values(), ids=REFUSED)
def test_refused_assignment_writes_nothing(
    index: Any, value: Any, error: type[Exception], match: str
) -> None:
    x = dg.zeros(3)
    with pytest.raises(error, match=match):
        x[index] = value
    assert_values(x, [0, 0, 0])

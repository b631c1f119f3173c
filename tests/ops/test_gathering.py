"""What the rows can't say of gathering, scattering and masks: errors, node names, edge values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg

ERRORS: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "gather": (lambda x: x.gather(0, dg.tensor([[3]])), RuntimeError, "index 3 is out of bounds"),
    "gather negative": (
        lambda x: x.gather(0, dg.tensor([[-1]])),
        RuntimeError,
        "index -1 is out of bounds",
    ),
    "gather ndim": (
        lambda x: x.gather(0, dg.tensor([0])),
        RuntimeError,
        "same number of dimensions as input",
    ),
    "gather size": (
        lambda x: x.gather(0, dg.tensor([[0, 0, 0]])),
        RuntimeError,
        r"index \[1, 3\] to be no larger than self \[3, 2\] apart from dimension 0",
    ),
    "gather dtype": (
        lambda x: x.gather(0, dg.tensor([[0.0]])),
        RuntimeError,
        "Expected dtype int32/int64 for index",
    ),
    "gather dim": (
        lambda x: x.gather(2, dg.tensor([[0]])),
        IndexError,
        "Dimension out of range",
    ),
    "scatter dtype": (
        lambda x: x.scatter(0, dg.tensor([[0]]), dg.tensor([[1]])),
        RuntimeError,
        "Expected self.dtype to be equal to src.dtype",
    ),
    "scatter_reduce": (
        lambda x: x.scatter_reduce(0, dg.tensor([[0]]), x, "max"),
        RuntimeError,
        "reduce argument must be either sum, prod, mean, amax or amin",
    ),
    "index_select": (
        lambda x: x.index_select(1, dg.tensor([2])),
        IndexError,
        "index out of range in self",
    ),
    "index_select vector": (
        lambda x: x.index_select(1, dg.tensor([[0]])),
        IndexError,
        "Index is supposed to be a vector",
    ),
    "index_add": (
        lambda x: x.index_add(0, dg.tensor([0, 1]), x),
        RuntimeError,
        r"Number of indices \(2\) should be equal to source.size\(dim\): \(3\)",
    ),
    "take": (lambda x: x.take(dg.tensor([6])), IndexError, "access index 6 on a tensor of 6"),
    "masked_fill": (
        lambda x: x.masked_fill(dg.tensor([1, 0]), 0.0),
        RuntimeError,
        "only supports boolean masks",
    ),
    "masked_select": (
        lambda x: x.masked_select(dg.tensor([1, 0])),
        RuntimeError,
        "expected BoolTensor for mask",
    ),
    "masked_scatter": (
        lambda x: x.masked_scatter(x == x, dg.ones(2)),
        RuntimeError,
        "too few elements for the places of the mask, got 6 places and 2",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_wrong_index_raises(case: str) -> None:
    call, error, message = ERRORS[case]
    with pytest.raises(error, match=message):
        call(dg.ones(3, 2))


NODES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "masked_fill": (lambda x: x.masked_fill(x > 0, 1.0), "MaskedFillBackward0"),
    "scatter": (lambda x: x.scatter(0, dg.tensor([[0]]), 1.0), "ScatterBackward1"),
}


@pytest.mark.parametrize("case", NODES)
def test_node_has_the_name_that_pytorch_gives_it(case: str) -> None:
    call, name = NODES[case]
    assert call(dg.ones(3, 2, requires_grad=True)).grad_fn.name() == name


def test_product_scattered_with_zeros_has_the_gradient_of_the_others() -> None:
    x = dg.tensor([0.0, 1.0, 2.0, 3.0], requires_grad=True)
    src = dg.tensor([0.0, 2.0, 0.0, 0.0, 2.0], requires_grad=True)
    index = dg.tensor([0, 0, 1, 1, 2])
    x.scatter_reduce(0, index, src, "prod").sum().backward()
    assert x.grad is not None
    assert src.grad is not None
    assert x.grad.tolist() == [0.0, 0.0, 2.0, 1.0]
    assert src.grad.tolist() == [0.0, 0.0, 0.0, 0.0, 2.0]


def test_empty_index_of_gather_may_have_any_shape_and_dtype() -> None:
    x = dg.tensor([1.0, 2.0], requires_grad=True)
    taken = dg.gather(x, 0, dg.zeros(2, 0, dtype=dg.uint8))
    assert taken.shape == (2, 0)
    taken.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("shape", "dim", "index", "expected"),
    [
        ((2, 2), 0, [[0, 0], [0, 1]], [[2.0, 1.0], [0.0, 1.0]]),
        ((2, 2), 1, [[0, 0], [0, 1]], [[2.0, 0.0], [1.0, 1.0]]),
        ((2, 2), -1, [[0, 0], [0, 1]], [[2.0, 0.0], [1.0, 1.0]]),
        ((), 0, [0, 0], 2.0),
        ((2,), 0, 1, [0.0, 1.0]),
        ((), 0, 0, 1.0),
    ],
    ids=["dim 0", "dim 1", "negative dim", "input of one number", "index of one number", "both"],
)
def test_gather_takes_sparse_grad_and_has_its_gradient(
    shape: Any, dim: int, index: Any, expected: Any
) -> None:
    x = dg.zeros(shape, requires_grad=True)
    x.gather(dim, dg.tensor(index), sparse_grad=True).sum().backward()
    assert x.grad is not None
    assert x.grad.to_dense().tolist() == expected


@pytest.mark.parametrize("reduce", ["amin", "amax"])
@pytest.mark.parametrize("method", ["scatter_reduce", "index_reduce"])
def test_gradient_of_equal_values_written_to_one_place_is_shared(method: str, reduce: str) -> None:
    x = dg.tensor([1.0, 1.0], requires_grad=True)
    source = dg.tensor([1.0, 1.0, 1.0], requires_grad=True)
    getattr(x, method)(0, dg.tensor([0, 0, 0]), source, reduce).sum().backward()
    assert x.grad is not None and source.grad is not None
    assert x.grad.tolist() == [0.25, 1.0]
    assert source.grad.tolist() == [0.25] * 3

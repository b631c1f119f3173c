"""What the rows can't say of indexing: errors, node names, edge values from PyTorch 2.13."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.ops import indexing

ERRORS: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "int": (lambda x: x[3], IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
    "int of dim 1": (lambda x: x[0, -3], IndexError, "index -3 is out of bounds for dimension 1"),
    "list": (lambda x: x[:, [0, 2]], IndexError, "index 2 is out of bounds for dimension 1"),
    "tensor": (lambda x: x[dg.tensor([-4])], IndexError, "index -4 is out of bounds"),
    "too many": (lambda x: x[0, 0, 0], IndexError, "too many indices for tensor of dimension 2"),
    "too many arrays": (lambda x: x[0, [0], [0]], IndexError, "too many indices"),
    "0-d": (lambda x: x.sum()[0], IndexError, "invalid index of a 0-dim tensor"),
    "0-d slice": (lambda x: x.sum()[:], IndexError, r"slice\(\) cannot be applied to a 0-dim"),
    "negative step": (lambda x: x[::-1], ValueError, "step must be greater than zero"),
    "float": (lambda x: x[1.5], IndexError, "only integers, slices"),
    "float tensor": (lambda x: x[dg.tensor([1.0])], IndexError, "must be long, int, byte or bool"),
    "float slice": (lambda x: x[:1.5], TypeError, "slice indices must be integers or None"),
    "mask": (lambda x: x[[True, False]], IndexError, r"The shape of the mask \[2\] at index 0"),
    "broadcast": (lambda x: x[[0, 1], [0, 1, 1]], IndexError, r"shapes \[2\], \[3\]"),
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
    "topk": (lambda x: x.topk(3), RuntimeError, "selected index k out of range"),
    "kthvalue": (lambda x: x.kthvalue(0), RuntimeError, "selected number k out of range"),
    "bincount": (
        lambda x: dg.bincount(dg.tensor([-1])),
        RuntimeError,
        "only supports 1-d non-negative integral inputs",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_wrong_index_raises(case: str) -> None:
    call, error, message = ERRORS[case]
    with pytest.raises(error, match=message):
        call(dg.ones(3, 2))


NODES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "int": (lambda x: x[0], "SelectBackward0"),
    "0-d tensor": (lambda x: x[dg.tensor(1)], "SelectBackward0"),
    "slice": (lambda x: x[1:], "SliceBackward0"),
    "whole slice": (lambda x: x[:], "SliceBackward0"),
    "None": (lambda x: x[None], "UnsqueezeBackward0"),
    "Ellipsis": (lambda x: x[...], "AliasBackward0"),
    "empty tuple": (lambda x: x[()], "AliasBackward0"),
    "int last": (lambda x: x[1:3, 0], "SelectBackward0"),
    "step last": (lambda x: x[0, ::2], "SliceBackward0"),
    "slice last": (lambda x: x[0, 1:], "SliceBackward0"),
    "int of size 1": (lambda x: x[:1][0], "SelectBackward0"),
    "list": (lambda x: x[[0, 1]], "IndexBackward0"),
    "mask": (lambda x: x[x > 0], "IndexBackward0"),
    "masked_fill": (lambda x: x.masked_fill(x > 0, 1.0), "MaskedFillBackward0"),
    "scatter": (lambda x: x.scatter(0, dg.tensor([[0]]), 1.0), "ScatterBackward1"),
}


@pytest.mark.parametrize("case", NODES)
def test_node_has_the_name_that_pytorch_gives_it(case: str) -> None:
    call, name = NODES[case]
    assert call(dg.ones(3, 2, requires_grad=True)).grad_fn.name() == name


def test_another_int_runs_the_same_kernel() -> None:
    x = dg.ones(11, 3)
    assert (x[0].shape, x[1:3].shape) == ((3,), (2, 3))
    before = len(indexing._select.table), len(indexing._slice.table)  # type: ignore[attr-defined]
    for i in range(1, 9):
        assert (x[i].shape, x[-i].shape, x[i : i + 2].shape) == ((3,), (3,), (2, 3))
    after = len(indexing._select.table), len(indexing._slice.table)  # type: ignore[attr-defined]
    assert after == before


def test_int_beside_array_selects_before_the_array_indexes() -> None:
    x = dg.tensor(np.arange(24).reshape(2, 3, 4))
    assert x[0, :, [1, 2]].tolist() == [[1, 2], [5, 6], [9, 10]]


def test_arrays_with_a_slice_between_put_their_dims_first() -> None:
    assert dg.zeros(2, 3, 4)[[0, 1, 1], :, [[1], [2]]].shape == (2, 3, 3)


@pytest.mark.parametrize(("flag", "count"), [(True, 1), (False, 0)])
def test_bool_adds_a_dim(flag: bool, count: int) -> None:
    assert dg.zeros(3, 2)[flag].shape == (count, 3, 2)
    assert dg.zeros(3, 2)[0, flag].shape == (count, 2)


def test_mask_of_two_dims_takes_two_dims() -> None:
    x = dg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x[dg.tensor([[True, False], [False, True]])]
    assert y.tolist() == [1.0, 4.0]
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_mask_of_bytes_warns() -> None:
    with pytest.warns(UserWarning, match="please use a dtype bool instead"):
        y = dg.tensor([1.0, 2.0])[dg.tensor([0, 1], dtype=dg.uint8)]
    assert y.tolist() == [2.0]


def test_slice_bounds_may_be_tensors_and_are_read_each_time() -> None:
    x, n = dg.tensor([1, 2, 3]), dg.tensor(1)
    assert x[:n].tolist() == [1]
    assert x[: n + 1].tolist() == [1, 2]


def test_gradient_of_overwritten_value_is_zero() -> None:
    values = dg.tensor([1.0, 2.0], requires_grad=True)
    out = dg.zeros(2).index_put((dg.tensor([0, 0]),), values)
    kept = out[0].item()
    out.sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [float(v == kept) for v in (1.0, 2.0)]


def test_product_scattered_with_zeros_has_the_gradient_of_the_others() -> None:
    x = dg.tensor([0.0, 1.0, 2.0, 3.0], requires_grad=True)
    src = dg.tensor([0.0, 2.0, 0.0, 0.0, 2.0], requires_grad=True)
    index = dg.tensor([0, 0, 1, 1, 2])
    x.scatter_reduce(0, index, src, "prod").sum().backward()
    assert x.grad is not None
    assert src.grad is not None
    assert x.grad.tolist() == [0.0, 0.0, 2.0, 1.0]
    assert src.grad.tolist() == [0.0, 0.0, 0.0, 0.0, 2.0]


def test_nan_sorts_as_the_largest() -> None:
    x = dg.tensor([1.0, float("nan"), -1.0, 3.0])
    assert x.sort().indices.tolist() == [2, 0, 3, 1]
    assert x.sort(descending=True).indices.tolist() == [1, 3, 0, 2]
    assert x.topk(2).indices.tolist() == [1, 3]
    assert x.topk(2, largest=False).indices.tolist() == [2, 0]


def test_equal_values_keep_their_order() -> None:
    x = dg.tensor([2, 1, 2, 1])
    assert x.argsort(stable=True).tolist() == [1, 3, 0, 2]
    assert x.argsort(descending=True, stable=True).tolist() == [0, 2, 1, 3]


def test_nonzero_as_tuple_indexes() -> None:
    x = dg.tensor([[0, 1], [2, 0]])
    assert x[x.nonzero(as_tuple=True)].tolist() == [1, 2]


def test_unique_gives_values_inverse_and_counts() -> None:
    values, inverse, counts = dg.tensor([[3, 1], [3, 2]]).unique(
        return_inverse=True, return_counts=True
    )
    assert values.tolist() == [1, 2, 3]
    assert inverse.tolist() == [[2, 0], [2, 1]]
    assert counts.tolist() == [1, 1, 2]


def test_bincount_adds_weights() -> None:
    assert dg.bincount(dg.tensor([1, 3, 1]), dg.tensor([0.5, 1.0, 2.0])).tolist() == [0, 2.5, 0, 1]


def test_searchsorted_in_rows() -> None:
    rows = dg.tensor([[1.0, 3.0], [2.0, 4.0]])
    assert dg.searchsorted(rows, dg.tensor([[2.0], [2.0]])).tolist() == [[1], [0]]


def test_contradictory_sides_raise() -> None:
    with pytest.raises(RuntimeError, match="side and right can't be set to opposites"):
        dg.searchsorted(dg.ones(1), dg.ones(1), side="left", right=True)


def test_triangle_indices() -> None:
    assert dg.tril_indices(2, 3, -1).tolist() == [[1], [0]]
    assert dg.triu_indices(2, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]

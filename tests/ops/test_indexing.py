"""What the rows can't say of `x[...]`: errors, node names, edge values from PyTorch 2.13."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.ops import basic_indexing

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
}


@pytest.mark.parametrize("case", NODES)
def test_node_has_the_name_that_pytorch_gives_it(case: str) -> None:
    call, name = NODES[case]
    assert call(dg.ones(3, 2, requires_grad=True)).grad_fn.name() == name


def test_another_int_runs_the_same_kernel() -> None:
    x = dg.ones(11, 3)
    assert (x[0].shape, x[1:3].shape) == ((3,), (2, 3))
    before = len(basic_indexing._select.table), len(basic_indexing._slice.table)  # type: ignore[attr-defined]
    for i in range(1, 9):
        assert (x[i].shape, x[-i].shape, x[i : i + 2].shape) == ((3,), (3,), (2, 3))
    after = len(basic_indexing._select.table), len(basic_indexing._slice.table)  # type: ignore[attr-defined]
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


@pytest.mark.parametrize(
    "part",
    [lambda x: x.diagonal(), lambda x: x.select(0, 1), lambda x: x[:, 2]],
    ids=["diagonal", "select", "slice"],
)
def test_gradient_of_a_view_may_be_an_expanded_scalar(part: Callable[[Any], Any]) -> None:
    x = dg.zeros(3, 3, requires_grad=True)
    (grad,) = dg.autograd.grad(part(x), x, dg.tensor(2.0).expand(3))
    expected = dg.zeros(3, 3)
    part(expected).fill_(2.0)
    assert grad.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [dg.float32, dg.complex64], ids=["real", "complex"])
def test_gradient_of_a_column_is_in_that_column(dtype: Any) -> None:
    x = dg.ones(2, 3, dtype=dtype, requires_grad=True)
    x.select(1, 2).sum().abs().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[0, 0, 1], [0, 0, 1]]


def test_long_column_taken_by_a_list_has_its_gradient() -> None:
    x = dg.zeros(1 << 16, 1, requires_grad=True)
    x[:, [0]].sum().backward()
    assert x.grad is not None
    assert bool((x.grad == 1).all())


def test_positions_taken_twice_get_the_sum_of_their_gradients() -> None:
    x = dg.zeros(2, 2, requires_grad=True)
    x[[0, 1, 1, 0, 1], [0, 0, 1, 0, 1]].sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[2.0, 0.0], [1.0, 2.0]]

"""What the rows can't say of products: PyTorch's errors and node names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg


def ones(*shape: int) -> Any:
    return dg.ones(shape)


def grouped(a: Any, b: Any, ends: Any = None, dtype: Any = dg.int32) -> Any:
    offs = None if ends is None else dg.tensor(ends, dtype=dtype)
    return dg.nn.functional.grouped_mm(a, b, offs=offs)


ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "matrices": (
        lambda: ones(2, 3) @ ones(4, 5),
        r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)",
    ),
    "rows": (lambda: ones(2, 2, 3) @ ones(4, 5), r"cannot be multiplied \(4x3 and 4x5\)"),
    "vector and matrix": (lambda: ones(3) @ ones(4, 5), r"cannot be multiplied \(1x3 and 4x5\)"),
    "vectors": (lambda: ones(3) @ ones(4), "same number of elements, but got 3 and 4"),
    "matrix and vector": (
        lambda: ones(2, 3) @ ones(4),
        r"size mismatch, got input \(2\), mat \(2x3\), vec \(4\)",
    ),
    "batches": (
        lambda: ones(2, 2, 3) @ ones(2, 4, 5),
        r"first two dimensions of batch2 tensor to be: \[2, 3\] but got: \[2, 4\]",
    ),
    "leading dims": (
        lambda: ones(2, 2, 3) @ ones(3, 3, 5),
        r"size of tensor a \(2\) must match the size of tensor b \(3\)",
    ),
    "0-d": (lambda: ones() @ ones(3), "at least 1D, but they are 0D and 1D"),
    "dtypes": (
        lambda: ones(2, 3) @ dg.ones(3, 2, dtype=dg.int32),
        "expected m1 and m2 to have the same dtype, but got: float32 != int32",
    ),
    "mm": (lambda: dg.mm(ones(3), ones(3, 2)), "self must be a matrix"),
    "bmm": (lambda: dg.bmm(ones(2, 3), ones(3, 2)), "batch1 must be a 3D tensor"),
    "mv": (lambda: dg.mv(ones(3), ones(3)), r"vector \+ matrix @ vector expected"),
    "dot": (lambda: dg.dot(ones(2, 2), ones(3)), "1D tensors expected, but got 2D and 1D"),
    "inner": (lambda: dg.inner(ones(2, 3), ones(2, 4)), "the last dimension must match"),
    "outer": (lambda: dg.outer(ones(2, 2), ones(3)), "Expected 1-D argument self, but got 2-D"),
    "addmm": (
        lambda: dg.addmm(ones(5), ones(2, 3), ones(3, 4)),
        r"expanded size of the tensor \(4\) must match the existing size \(5\)",
    ),
    "einsum size": (
        lambda: dg.einsum("ij,jk->ik", ones(2, 3), ones(4, 5)),
        "subscript j has size 4 for operand 1 .* broadcast with previously seen size 3",
    ),
    "einsum output": (
        lambda: dg.einsum("ij->iz", ones(2, 3)),
        "output subscript z does not appear in the equation",
    ),
    "einsum count": (lambda: dg.einsum("ij,jk", ones(2, 3)), "fewer operands were provided"),
    "einsum ndim": (
        lambda: dg.einsum("ijk", ones(2, 3)),
        r"number of subscripts in the equation \(3\) does not match the number of dimensions \(2\)",
    ),
    "tensordot": (
        lambda: dg.tensordot(ones(2, 3), ones(4, 5), 1),
        "contracted dimensions need to match, but first has size 3 in dim 1",
    ),
    "tensordot lists": (
        lambda: dg.tensordot(ones(2, 3), ones(4, 5), ([0], [0, 1])),
        "both dimension lists should have same length",
    ),
    "grouped dims": (lambda: grouped(ones(2), ones(2, 2), [1]), "mat_a has to be 2 or 3d, got 1d"),
    "grouped sizes": (
        lambda: grouped(ones(2, 3), ones(1, 2, 2), [2]),
        "contraction dimension of mat_a and mat_b must match",
    ),
    "grouped dtypes": (
        lambda: grouped(ones(2, 2), ones(2, 2).half(), [2]),
        "of one floating point dtype, got float32 and float16",
    ),
    "grouped without ends": (
        lambda: grouped(ones(2, 2), ones(2, 2)),
        "Have to provide offsets if there is a 2d matrix",
    ),
    "grouped count": (
        lambda: grouped(ones(2, 2), ones(2, 2, 2), [2]),
        r"matrix batch sizes have to match, and the number of offsets, got \[2, 1\]",
    ),
    "grouped ends": (
        lambda: grouped(ones(2, 2), ones(1, 2, 2), [2], dg.int16),
        r"Offsets have to be int32 .* Convert them by \.int\(\)",
    ),
    "grouped bias": (
        lambda: dg.nn.functional.grouped_mm(ones(1, 2, 2), ones(1, 2, 2), bias=ones(2)),
        "Add it to the result",
    ),
    "grouped out_dtype": (
        lambda: dg.nn.functional.grouped_mm(ones(1, 2, 2), ones(1, 2, 2), out_dtype=dg.bfloat16),
        "Convert the result",
    ),
    "trace": (lambda: dg.trace(ones(2)), "expected a matrix, but got tensor with dim 1"),
    "cross": (lambda: dg.cross(ones(2, 4), ones(2, 4)), "no dimension of size 3 in input"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_operands_that_do_not_fit_raise(case: str) -> None:
    call, message = ERRORS[case]
    with pytest.raises(RuntimeError, match=message):
        call()


@pytest.mark.parametrize(
    ("left", "right", "name"),
    [
        ((2, 3), (3, 4), "MmBackward0"),
        ((5, 2, 3), (5, 3, 4), "BmmBackward0"),
        ((2, 3), (3,), "MvBackward0"),
        ((3,), (3,), "DotBackward0"),
        ((5, 2, 3), (3, 4), "MmBackward0"),
        ((5, 2, 3), (3,), "MvBackward0"),
    ],
)
def test_matmul_is_recorded_as_the_product_that_it_is(left: Any, right: Any, name: str) -> None:
    product = dg.ones(left, requires_grad=True) @ dg.ones(right)
    assert product.grad_fn is not None
    assert product.grad_fn.name() == name


def test_beta_of_zero_leaves_out_nan() -> None:
    nan = dg.full((1, 1), float("nan"))
    assert dg.addmm(nan, ones(1, 2), ones(2, 1), beta=0).item() == 2.0


def test_einsum_broadcasts_a_dim_of_one() -> None:
    assert dg.einsum("ij,ij->i", ones(2, 3), ones(1, 3)).tolist() == [3.0, 3.0]


def test_einsum_takes_lists_of_subscripts() -> None:
    a, b = dg.tensor([[1.0, 2.0]]), dg.tensor([[3.0], [4.0]])
    assert dg.einsum(a, [0, 1], b, [1, 2], [0, 2]).tolist() == [[11.0]]


def test_matmul_saves_only_the_operand_that_the_other_gradient_needs() -> None:
    a = dg.ones(2, 3, requires_grad=True)
    node = (a @ dg.ones(3, 4)).grad_fn
    assert node is not None
    assert node._saved_self is None  # type: ignore[attr-defined]
    assert node._saved_mat2.shape == (3, 4)  # type: ignore[attr-defined]


def test_rows_beyond_the_last_group_are_0() -> None:
    assert grouped(ones(3, 2), ones(1, 2, 1), [2]).tolist() == [[2.0], [2.0], [0.0]]


@pytest.mark.parametrize(
    ("a", "b"), [((4, 2), (2, 2, 3)), ((2, 3, 2), (2, 4)), ((2, 4), (4, 3))], ids=str
)
def test_grouped_products_are_mapped(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    examples, other = dg.randn(3, *a), dg.randn(*b)

    def one(example: Any) -> Any:
        return grouped(example, other, [1, 3])

    assert dg.allclose(dg.func.vmap(one)(examples), dg.stack([one(e) for e in examples]))

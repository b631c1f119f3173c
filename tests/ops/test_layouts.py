"""What programs ask of a tensor's memory: its layout, strides of its own, and which kind it is."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import dyngraph as dg

KINDS = """
    is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_nested is_quantized is_sparse is_sparse_csr
    is_vulkan is_xla is_xpu
""".split()


@pytest.mark.parametrize("name", KINDS)
def test_tensor_is_of_no_kind_that_jax_lacks(name: str) -> None:
    assert getattr(dg.ones(2), name) is False


def test_layout_is_strided() -> None:
    x = dg.ones(2, 3)
    assert x.layout is dg.strided and repr(x.layout) == "dyngraph.strided"
    assert (x.dense_dim(), x.sparse_dim()) == (2, 0)


def test_layout_is_the_same_after_pickling() -> None:
    assert pickle.loads(pickle.dumps(dg.strided)) is dg.strided


def test_pinning_changes_nothing() -> None:
    x = dg.ones(2)
    assert x.pin_memory() is x and not x.is_pinned() and not x.is_distributed()


def test_same_size_asks_for_the_shape_only() -> None:
    assert dg.ones(2, 1).is_same_size(dg.zeros(2, 1, dtype=dg.int32))
    assert not dg.is_same_size(dg.ones(2, 1), dg.ones(2))
    with pytest.raises(TypeError, match=r"must be Tensor, not int\. Compare"):
        dg.ones(2).is_same_size(2)  # type: ignore[arg-type]


@pytest.mark.parametrize("stride", [(3, 1), (1, 2), (4, 1), (0, 1)])
def test_empty_strided_has_the_strides(stride: tuple[int, int]) -> None:
    for x in (
        dg.empty_strided((2, 3), stride, dtype=dg.int32),
        dg.ones(1, dtype=dg.int32).new_empty_strided((2, 3), stride),
    ):
        assert (x.shape, x.stride(), x.dtype) == ((2, 3), stride, dg.int32)
        assert x.is_leaf and not x._is_view()


def test_empty_strided_is_written_like_other_tensors() -> None:
    x = dg.empty_strided((2, 2), (1, 2)).fill_(1.0)
    x[0, 1] = 5.0
    assert x.tolist() == [[1, 5], [1, 1]]


def test_empty_strided_may_require_grad() -> None:
    x = dg.empty_strided((2, 2), (1, 2), requires_grad=True)
    (x * 3).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[3, 3], [3, 3]]


def test_empty_strided_needs_a_stride_for_each_dim() -> None:
    with pytest.raises(RuntimeError, match="Pass one stride for each dim"):
        dg.empty_strided((2, 3), (1,))


def test_where_as_a_method_keeps_the_tensor_where_the_condition_holds() -> None:
    x = dg.tensor([-1.0, 2.0], requires_grad=True)
    y = x.where(x > 0, 7.0)
    y.sum().backward()
    assert y.tolist() == [7, 2]
    assert x.grad is not None and x.grad.tolist() == [0, 1]


def test_empty_permuted_lies_in_memory_as_it_is_told() -> None:
    x = dg.empty_permuted((2, 3, 5, 7), (0, 2, 3, 1), dtype=dg.int32)
    assert (x.stride(), x.dim_order(), x.dtype) == ((105, 1, 21, 3), (0, 2, 3, 1), dg.int32)


@pytest.mark.parametrize("layout", [(0, 0), (0,), (0, 2), (0, -1)])
def test_empty_permuted_names_each_dim_once(layout: tuple[int, ...]) -> None:
    with pytest.raises(RuntimeError, match="must name each of the 2 dims of size once, from 0"):
        dg.empty_permuted((2, 3), layout)


FORMATS = ("channels_last", "channels_last_3d", "contiguous_format", "preserve_format")


@pytest.mark.parametrize("name", FORMATS)
def test_memory_format_is_the_same_after_pickling(name: str) -> None:
    given = getattr(dg, name)
    assert pickle.loads(pickle.dumps(given)) is given
    assert repr(given) == f"dyngraph.{name}"


MAKERS = {
    "clone": lambda x, f: x.clone(memory_format=f),
    "contiguous": lambda x, f: x.contiguous(memory_format=f),
    "to": lambda x, f: x.to(memory_format=f),
    "empty_like": lambda x, f: dg.empty_like(x, memory_format=f),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_memory_format_changes_nothing(make: Any) -> None:
    x = dg.zeros(2, 3, 4, 5)
    made = make(x, dg.channels_last)
    assert made.tolist() == x.tolist()
    assert made.stride() == x.stride()


def test_strides_say_whether_a_tensor_has_a_format() -> None:
    rows = dg.ones(2, 3, 4, 5)
    images = dg.ones(2, 4, 5, 3).permute(0, 3, 1, 2)
    formats = (dg.contiguous_format, dg.channels_last, dg.channels_last_3d)
    assert [rows.is_contiguous(f) for f in formats] == [True, False, False]
    assert [images.is_contiguous(memory_format=f) for f in formats] == [False, True, False]


def test_format_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match=r"must be dyngraph.memory_format, not str. Pass for"):
        dg.ones(2).is_contiguous(memory_format="channels_last")


# Shape, order of permutation, and the order of dims that PyTorch 2.13 told.
ORDERS = [
    ((2, 3, 5, 7), (1, 0, 3, 2), (1, 0, 3, 2)),
    ((2, 1, 3), (0, 2, 1), (0, 1, 2)),
    ((1, 2, 1, 3), (0, 3, 2, 1), (0, 2, 3, 1)),
    ((0, 3), (1, 0), (0, 1)),
    ((), (), ()),
]


@pytest.mark.parametrize(("shape", "permutation", "order"), ORDERS)
def test_dim_order_goes_by_strides(
    shape: tuple[int, ...], permutation: tuple[int, ...], order: tuple[int, ...]
) -> None:
    assert dg.ones(shape).permute(permutation).dim_order() == order


def test_dim_order_that_is_open_is_refused_where_asked() -> None:
    x = dg.ones(1, 2, 3, 4)
    formats = [dg.contiguous_format, dg.channels_last]
    assert x.dim_order(ambiguity_check=formats) == (0, 1, 2, 3)
    with pytest.raises(RuntimeError, match="Leave out ambiguity_check"):
        x.dim_order(ambiguity_check=True)
    with pytest.raises(RuntimeError, match=r"its shape is \[1, 1, 1, 1\]"):
        dg.ones(1, 1, 1, 1).dim_order(ambiguity_check=formats)
    with pytest.raises(TypeError, match="must be a bool or a list of memory formats, got 'rows'"):
        x.dim_order(ambiguity_check="rows")  # type: ignore[arg-type]


def test_dense_tensor_is_dense() -> None:
    x = dg.ones(2, requires_grad=True)
    assert x.to_dense() is x
    assert x.to_dense(dg.float16).dtype == dg.float16
    assert not x.is_shared()


def test_device_and_sign_are_told() -> None:
    assert dg.get_device(dg.ones(2, device="cpu")) == -1
    assert dg.is_signed(dg.ones(2)) and not dg.is_signed(dg.ones(2).bool())

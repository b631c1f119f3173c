"""What programs ask of a tensor's memory: its layout, strides of its own, and which kind it is."""

from __future__ import annotations

import pickle

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

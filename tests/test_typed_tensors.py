"""`FloatTensor` and its like, as PyTorch's."""

from typing import Any

import jax
import numpy as np
import pytest

import dyngraph as dg


def test_sequence_gives_its_values() -> None:
    assert dg.IntTensor([1.5, 2]).tolist() == [1, 2]
    assert dg.BoolTensor(np.array([1, 0])).tolist() == [True, False]


@pytest.mark.parametrize(
    ("args", "shape"), [((), (0,)), ((2, 3), (2, 3)), ((dg.Size([2]),), (2,)), (((1, 2),), (2,))]
)
def test_sizes_give_an_empty_tensor(args: tuple[Any, ...], shape: tuple[int, ...]) -> None:
    made = dg.HalfTensor(*args)
    assert (made.shape, made.dtype) == (shape, dg.float16)


def test_tensor_gives_another_over_the_same_memory() -> None:
    x = dg.zeros(2, requires_grad=True)
    y = dg.FloatTensor(x)
    y[0] = 5.0
    assert (x.tolist(), y.requires_grad) == ([5.0, 0.0], False)


def test_tensor_of_another_dtype_raises() -> None:
    with pytest.raises(TypeError, match=r"of dtype dyngraph\.float32, got dyngraph\.float16"):
        dg.FloatTensor(dg.ones(2, dtype=dg.float16))


@pytest.mark.parametrize(
    ("args", "match"),
    [((5.0,), r"got float\)\. For a number"), (("a",), r"got str"), (([1], [2]), "into a list")],
)
def test_other_arguments_raise(args: tuple[Any, ...], match: str) -> None:
    with pytest.raises(TypeError, match=match):
        dg.FloatTensor(*args)


def test_isinstance_asks_for_the_dtype() -> None:
    x = dg.nn.Parameter(dg.ones(2))
    assert isinstance(x, dg.FloatTensor)
    assert not isinstance(x, dg.BFloat16Tensor)
    assert not isinstance(np.ones(2, np.float32), dg.FloatTensor)


def test_long_is_64_bits() -> None:
    with pytest.raises(TypeError, match="int64 needs 64-bit types"):
        dg.LongTensor([1])
    with jax.enable_x64(True):
        assert isinstance(dg.tensor([1]), dg.LongTensor)


def test_type_takes_such_a_class() -> None:
    assert dg.ones(2).type(dg.IntTensor).dtype is dg.int32

"""Operators that give a view: each one shares its base's elements as numpy's view does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import dyngraph as dg

FLOAT = np.float32
COMPLEX = np.complex64


class View(NamedTuple):
    """A view operator: the base's shape, the operator, and the same on numpy's arrays."""

    shape: tuple[int, ...]
    of: Callable[[Any], Any]
    twin: Callable[[np.ndarray], np.ndarray]
    dtype: Any = FLOAT


def strided(a: np.ndarray, shape: Sequence[int], strides: Sequence[int], offset: int) -> Any:
    """numpy's as_strided with strides and offset in elements of the contiguous `a`."""
    size = a.itemsize
    return as_strided(a.reshape(-1)[offset:], shape, [step * size for step in strides])


def parts(a: np.ndarray, part: int) -> np.ndarray:
    """A view of the real (0) or imaginary (1) parts."""
    return a.view(FLOAT).reshape(*a.shape, 2)[..., part]


VIEWS: dict[str, View] = {
    "integer": View((2, 3, 4), lambda x: x[1], lambda a: a[1]),
    "negative integer": View((2, 3), lambda x: x[:, -1], lambda a: a[:, -1]),
    "integers": View((2, 3), lambda x: x[1, 2], lambda a: a[1, 2 : 2 + 1].reshape(())),
    "slice": View((4, 3), lambda x: x[1:3], lambda a: a[1:3]),
    "slice with a step": View((5, 3), lambda x: x[1::2, ::2], lambda a: a[1::2, ::2]),
    "slice of nothing": View((4,), lambda x: x[3:1], lambda a: a[3:1]),
    "slice beyond the end": View((4,), lambda x: x[2:99], lambda a: a[2:99]),
    "everything": View((2, 3), lambda x: x[:], lambda a: a[:]),
    "Ellipsis": View((2, 3), lambda x: x[...], lambda a: a[...]),
    "Ellipsis and slice": View((2, 3, 4), lambda x: x[..., 1:3], lambda a: a[..., 1:3]),
    "None": View((2, 3), lambda x: x[None, :, None], lambda a: a[None, :, None]),
    "mixed index": View((2, 3, 4), lambda x: x[0, ..., None, 1:], lambda a: a[0, ..., None, 1:]),
    "select": View((2, 3), lambda x: x.select(1, -2), lambda a: a[:, 1]),
    "select function": View((2, 3), lambda x: dg.select(x, 0, 1), lambda a: a[1]),
    "narrow": View((4, 3), lambda x: x.narrow(0, 1, 2), lambda a: a[1:3]),
    "narrow from the end": View((4,), lambda x: x.narrow(0, -2, 2), lambda a: a[2:]),
    "transpose": View((2, 3, 4), lambda x: x.transpose(0, -1), lambda a: a.swapaxes(0, 2)),
    "t": View((2, 3), lambda x: x.t(), lambda a: a.T),
    "T": View((2, 3), lambda x: x.T, lambda a: a.T),
    "mT": View((2, 3, 4), lambda x: x.mT, lambda a: a.swapaxes(1, 2)),
    "H": View((2, 3), lambda x: x.H, lambda a: a.T),
    "mH": View((2, 3, 4), lambda x: x.mH, lambda a: a.swapaxes(1, 2)),
    "adjoint": View((2, 3), lambda x: x.adjoint(), lambda a: a.T),
    "permute": View((2, 3, 4), lambda x: x.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "movedim": View((2, 3, 4), lambda x: x.movedim(0, 2), lambda a: np.moveaxis(a, 0, 2)),
    "moveaxis": View((2, 3), lambda x: x.moveaxis((0, 1), (1, 0)), lambda a: a.T),
    "swapaxes": View((2, 3), lambda x: x.swapaxes(0, 1), lambda a: a.T),
    "swapdims": View((2, 3), lambda x: x.swapdims(0, 1), lambda a: a.T),
    "view": View((2, 3, 4), lambda x: x.view(6, -1), lambda a: a.reshape(6, 4)),
    "view of dims that fit": View(
        (2, 3, 4),
        lambda x: x.transpose(0, 1).view(3, 2, 2, 2),
        lambda a: strided(a, (3, 2, 2, 2), (4, 12, 2, 1), 0),
    ),
    "view_as": View((2, 3), lambda x: x.view_as(dg.ones(6)), lambda a: a.reshape(6)),
    "reshape": View((2, 3), lambda x: x.reshape(3, 2), lambda a: a.reshape(3, 2)),
    "reshape_as": View((2, 3), lambda x: x.reshape_as(dg.ones(3, 2)), lambda a: a.reshape(3, 2)),
    "reshape of a slice": View(
        (4, 3, 2), lambda x: x[::2].reshape(2, 6), lambda a: strided(a, (2, 6), (12, 1), 0)
    ),
    "flatten": View((2, 3, 4), lambda x: x.flatten(1), lambda a: a.reshape(2, 12)),
    "ravel": View((2, 3), lambda x: x.ravel(), lambda a: a.reshape(6)),
    "unflatten": View((2, 6), lambda x: x.unflatten(1, (2, 3)), lambda a: a.reshape(2, 2, 3)),
    "squeeze": View((1, 3, 1), lambda x: x.squeeze(), lambda a: a.reshape(3)),
    "squeeze of a dim": View((1, 3, 1), lambda x: x.squeeze(0), lambda a: a.reshape(3, 1)),
    "squeeze of a dim that stays": View((2, 3), lambda x: x.squeeze(0), lambda a: a[:]),
    "squeeze of dims": View((1, 3, 1), lambda x: x.squeeze((0, 2)), lambda a: a.reshape(3)),
    "unsqueeze": View((2, 3), lambda x: x.unsqueeze(1), lambda a: a[:, None]),
    "unsqueeze at the end": View((2, 3), lambda x: x.unsqueeze(-1), lambda a: a[..., None]),
    "diagonal": View((3, 3), lambda x: x.diagonal(), lambda a: strided(a, (3,), (4,), 0)),
    "diagonal above": View((3, 4), lambda x: x.diagonal(1), lambda a: strided(a, (3,), (5,), 1)),
    "diagonal of dims": View(
        (2, 3, 4), lambda x: x.diagonal(-1, 1, 2), lambda a: strided(a, (2, 2), (12, 5), 4)
    ),
    "unfold": View((6,), lambda x: x.unfold(0, 2, 2), lambda a: a.reshape(3, 2)),
    "unfold of a dim": View(
        (2, 5), lambda x: x.unfold(1, 2, 3), lambda a: strided(a, (2, 2, 2), (5, 3, 1), 0)
    ),
    "as_strided": View(
        (3, 4), lambda x: x.as_strided((2, 2), (5, 2), 1), lambda a: strided(a, (2, 2), (5, 2), 1)
    ),
    "expand by a dim of size 1": View((2, 3), lambda x: x.expand(1, 2, 3), lambda a: a[None]),
    "expand_as of the same shape": View((2,), lambda x: x.expand_as(dg.ones(2)), lambda a: a[:]),
    "atleast_3d": View((2, 3), lambda x: dg.atleast_3d(x), lambda a: a[..., None]),
    "view of a view": View((4, 6), lambda x: x[1:3].t()[::2].view(3, 2), lambda a: a[1:3].T[::2]),
    "select of a tensor of one dim": View((3,), lambda x: x[1], lambda a: a[1:2].reshape(())),
}
OF_COMPLEX: dict[str, View] = {
    "real": View((2, 3), lambda x: x.real, lambda a: parts(a, 0), COMPLEX),
    "imag": View((2, 3), lambda x: x.imag, lambda a: parts(a, 1), COMPLEX),
    "view_as_real": View(
        (2, 3), lambda x: dg.view_as_real(x), lambda a: a.view(FLOAT).reshape(2, 3, 2), COMPLEX
    ),
    "view_as_complex": View(
        (3, 2), lambda x: dg.view_as_complex(x), lambda a: a.view(COMPLEX).reshape(3)
    ),
    "slice of complex": View((3, 2), lambda x: x[1:], lambda a: a[1:], COMPLEX),
}
OF_BITS: dict[str, View] = {
    "same width": View((2, 3), lambda x: x.view(dg.int32), lambda a: a.view(np.int32)),
    "half the width": View((2, 3), lambda x: x.view(dg.int16), lambda a: a.view(np.int16)),
    "bytes": View((2,), lambda x: x.view(dg.uint8), lambda a: a.view(np.uint8)),
    "twice the width": View(
        (2, 4), lambda x: x.view(dg.int32), lambda a: a.view(np.int32), np.int16
    ),
}
OVERLAPPING: dict[str, View] = {
    "expand": View((3, 1), lambda x: x.expand(2, 3, 4), lambda a: np.broadcast_to(a, (2, 3, 4))),
    "expand with -1": View((3, 1), lambda x: x.expand(-1, 2), lambda a: np.broadcast_to(a, (3, 2))),
    "expand_as": View(
        (1, 3), lambda x: x.expand_as(dg.ones(2, 3)), lambda a: np.broadcast_to(a, (2, 3))
    ),
    "broadcast_to": View(
        (3,), lambda x: x.broadcast_to((2, 3)), lambda a: np.broadcast_to(a, (2, 3))
    ),
    "first of broadcast_tensors": View(
        (3,),
        lambda x: dg.broadcast_tensors(x, dg.ones(2, 1))[0],
        lambda a: np.broadcast_to(a, (2, 3)),
    ),
    "first of meshgrid": View(
        (3,),
        lambda x: dg.meshgrid(x, dg.ones(2), indexing="ij")[0],
        lambda a: np.broadcast_to(a[:, None], (3, 2)),
    ),
    "unfold": View((4,), lambda x: x.unfold(0, 2, 1), lambda a: strided(a, (3, 2), (1, 1), 0)),
    "as_strided": View(
        (4,), lambda x: x.as_strided((2, 3), (1, 1)), lambda a: strided(a, (2, 3), (1, 1), 0)
    ),
}
# name: (shape, operator, numpy's views)
SEVERAL: dict[str, tuple[tuple[int, ...], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "unbind": ((2, 3), lambda x: x.unbind(), lambda a: list(a)),
    "unbind of a dim": ((2, 3), lambda x: x.unbind(1), lambda a: list(a.T)),
    "iteration": ((2, 3), lambda x: list(x), lambda a: list(a)),
    "split": ((5, 2), lambda x: x.split(2), lambda a: [a[:2], a[2:4], a[4:]]),
    "split of a dim": ((2, 3), lambda x: x.split(2, dim=1), lambda a: [a[:, :2], a[:, 2:]]),
    "split of sizes": ((3, 2), lambda x: x.split([1, 2]), lambda a: [a[:1], a[1:]]),
    "split_with_sizes": ((3,), lambda x: x.split_with_sizes([2, 1]), lambda a: [a[:2], a[2:]]),
    "tensor_split": ((5,), lambda x: x.tensor_split(2), lambda a: [a[:3], a[3:]]),
    "tensor_split at indices": (
        (5,),
        lambda x: x.tensor_split((1, 3)),
        lambda a: [a[:1], a[1:3], a[3:]],
    ),
    "chunk": ((5,), lambda x: x.chunk(2), lambda a: [a[:3], a[3:]]),
    "hsplit": ((2, 4), lambda x: x.hsplit(2), lambda a: np.hsplit(a, 2)),
    "vsplit": ((4, 2), lambda x: x.vsplit(2), lambda a: np.vsplit(a, 2)),
    "dsplit": ((1, 2, 4), lambda x: x.dsplit(2), lambda a: np.dsplit(a, 2)),
}

WRITABLE = VIEWS | {f"complex: {name}": view for name, view in OF_COMPLEX.items()}
NUMERIC = WRITABLE | {f"overlapping: {name}": view for name, view in OVERLAPPING.items()}
ALL = NUMERIC | {f"bits: {name}": view for name, view in OF_BITS.items()}


def over(table: dict[str, View]) -> pytest.MarkDecorator:
    """Runs a test for each view of `table`, under its name."""
    return pytest.mark.parametrize("view", table.values(), ids=table.keys())


several = pytest.mark.parametrize("shape, of, twin", SEVERAL.values(), ids=SEVERAL)


def numbered(shape: tuple[int, ...], dtype: Any = FLOAT) -> np.ndarray:
    """1, 2, 3, ...; complex numbers have other imaginary parts."""
    values = np.arange(1, np.prod(shape) + 1).reshape(shape)
    return (values * (1 + 0.5j) if dtype is COMPLEX else values).astype(dtype)


def assert_same(tensor: dg.Tensor, array: np.ndarray) -> None:
    assert tuple(tensor.shape) == array.shape
    np.testing.assert_allclose(
        np.asarray(tensor.detach().resolve_conj().tolist()), array, rtol=1e-6
    )


# What a view is


@over(ALL)
def test_values_are_those_of_the_base(view: View) -> None:
    a = numbered(view.shape, view.dtype)
    assert_same(view.of(dg.tensor(a)), view.twin(a).reshape(view.of(dg.tensor(a)).shape))


@over(NUMERIC)
def test_result_is_a_view_of_the_base(view: View) -> None:
    base = dg.tensor(numbered(view.shape, view.dtype))
    result = view.of(base)
    assert result._is_view() and result._base is base
    assert not base._is_view() and base._base is None


@over(NUMERIC)
def test_view_of_a_view_has_the_root_as_its_base(view: View) -> None:
    base = dg.tensor(numbered(view.shape, view.dtype))
    assert view.of(base.view_as(base))._base is base


@over(ALL)
def test_view_shares_the_storage(view: View) -> None:
    base = dg.tensor(numbered(view.shape, view.dtype))
    result = view.of(base)
    assert result.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()


@over(NUMERIC)
def test_place_in_the_storage_is_that_of_numpy(view: View) -> None:
    a = numbered(view.shape, view.dtype)
    result, twin = view.of(dg.tensor(a)), view.twin(a)
    if twin.shape == tuple(result.shape):
        strides = [step // twin.itemsize for step in twin.strides]
        sizes = twin.shape
        # The stride of a dim of size 1 means nothing.
        assert [s for s, n in zip(result.stride(), sizes) if n > 1] == [
            s for s, n in zip(strides, sizes) if n > 1
        ]
    if twin.size:
        start = twin.__array_interface__["data"][0] - a.__array_interface__["data"][0]
        assert result.storage_offset() == start // twin.itemsize


@over(NUMERIC)
def test_view_is_contiguous_where_numpy_says_so(view: View) -> None:
    a = numbered(view.shape, view.dtype)
    result, twin = view.of(dg.tensor(a)), view.twin(a)
    if twin.shape == tuple(result.shape):
        assert result.is_contiguous() == twin.flags.c_contiguous


# Writing


@over(WRITABLE)
def test_write_into_the_view_is_seen_in_the_base(view: View) -> None:
    a = numbered(view.shape, view.dtype)
    base = dg.tensor(a)
    view.of(base).mul_(10)
    twin = view.twin(a)
    twin *= 10
    assert_same(base, a)


@over(ALL)
def test_write_into_the_base_is_seen_in_the_view(view: View) -> None:
    a = numbered(view.shape, view.dtype)
    base = dg.tensor(a)
    result = view.of(base)
    base.mul_(10)
    a *= 10
    assert_same(result, view.twin(a).reshape(result.shape))


@over(WRITABLE)
def test_write_into_the_view_is_seen_in_a_sibling(view: View) -> None:
    a = numbered(view.shape, view.dtype)
    base = dg.tensor(a)
    sibling = base.view(-1)
    view.of(base).add_(10)
    twin = view.twin(a)
    twin += 10
    assert_same(sibling, a.reshape(-1))


@over(WRITABLE)
def test_write_into_a_sibling_is_seen_in_the_view(view: View) -> None:
    a = numbered(view.shape, view.dtype)
    base = dg.tensor(a)
    result = view.of(base)
    base.view(-1)[1:].zero_()
    a.reshape(-1)[1:] = 0
    assert_same(result, view.twin(a).reshape(result.shape))


@over(WRITABLE)
def test_different_values_written_into_the_view_go_to_their_places(view: View) -> None:
    a = numbered(view.shape, view.dtype)
    base = dg.tensor(a)
    result, twin = view.of(base), view.twin(a)
    values = -numbered(tuple(result.shape), FLOAT)
    result.copy_(dg.tensor(values))
    twin[...] = values.reshape(twin.shape)
    assert_same(base, a)


@over(WRITABLE)
def test_writes_into_the_view_are_counted_for_the_base(view: View) -> None:
    base = dg.tensor(numbered(view.shape, view.dtype))
    result = view.of(base)
    result.add_(1)
    base.add_(1)
    assert result._version == base._version == 2


@over(OF_BITS)
def test_bits_share_storage_and_count_but_have_no_history(view: View) -> None:
    base = dg.tensor(numbered(view.shape, view.dtype))
    bits = view.of(base)
    bits.zero_()
    assert base.tolist() == np.zeros(view.shape).tolist()
    assert base._version == bits._version == 1
    assert not bits._is_view() and bits._base is None


def test_bits_of_a_leaf_do_not_require_grad() -> None:
    assert not dg.ones(2, requires_grad=True).view(dg.int32).requires_grad


def test_bits_written_into_a_view_are_those_of_the_base() -> None:
    base = dg.ones(2)
    base.view(dg.int32)[0] = 0x40000000
    assert base.tolist() == [2, 1]


# Gradients


@over(NUMERIC)
def test_gradient_of_the_view_adds_up_in_the_base(view: View) -> None:
    x = dg.tensor(numbered(view.shape, view.dtype), requires_grad=True)
    result = view.of(x * 1)
    weights = numbered(tuple(result.shape))
    (result * dg.tensor(weights)).sum().real.backward()
    expected = np.zeros(view.shape, view.dtype)
    if result.is_complex() != x.is_complex():
        view.twin(expected)[...] = weights
    else:
        places = view.twin(np.arange(x.numel()).reshape(view.shape))
        np.add.at(expected.reshape(-1), places.reshape(weights.shape), weights)
    assert x.grad is not None
    assert_same(x.grad, expected)


@over(WRITABLE)
def test_gradient_of_the_base_goes_through_a_write_into_the_view(view: View) -> None:
    x = dg.tensor(numbered(view.shape, view.dtype), requires_grad=True)
    base = x * 1
    result = view.of(base)
    result.mul_(3)
    weights = numbered(view.shape)
    total = (base * dg.tensor(weights)).sum()
    (dg.view_as_real(total).sum() if total.is_complex() else total).backward()
    factors = np.ones(view.shape, view.dtype) * (1 + 1j if view.dtype is COMPLEX else 1)
    factors = factors.astype(view.dtype)
    twin = view.twin(factors)
    twin *= 3
    assert x.grad is not None
    assert_same(x.grad, factors * weights)


@over(WRITABLE)
def test_gradient_of_the_view_goes_through_a_write_into_the_base(view: View) -> None:
    x = dg.tensor(numbered(view.shape, view.dtype), requires_grad=True)
    base = x * 1
    result = view.of(base)
    base.mul_(3)
    (grad,) = dg.autograd.grad(result.sum().real, x)
    (plain,) = dg.autograd.grad(view.of(x * 1).sum().real, x)
    assert_same(grad, 3 * np.asarray(plain.tolist()))


@over(WRITABLE)
def test_gradient_reaches_the_values_written_into_the_view(view: View) -> None:
    base = dg.tensor(numbered(view.shape, view.dtype), requires_grad=True) * 1
    result = view.of(base)
    values = dg.tensor(numbered(tuple(result.shape)), requires_grad=True)
    result.copy_(values)
    weights = numbered(tuple(result.shape))
    (view.of(base) * dg.tensor(weights)).sum().real.backward()
    assert values.grad is not None
    assert_same(values.grad, weights)


# Operators with several views


@several
def test_values_of_several_views_are_those_of_the_base(shape: Any, of: Any, twin: Any) -> None:
    a = numbered(shape)
    results = of(dg.tensor(a))
    assert len(results) == len(twin(a))
    for result, part in zip(results, twin(a)):
        assert_same(result, part)


@several
def test_several_views_have_the_base(shape: Any, of: Any, twin: Any) -> None:
    base = dg.tensor(numbered(shape))
    assert all(result._is_view() and result._base is base for result in of(base))


@several
def test_several_views_lie_where_those_of_numpy_lie(shape: Any, of: Any, twin: Any) -> None:
    a = numbered(shape)
    origin = a.__array_interface__["data"][0]
    for result, part in zip(of(dg.tensor(a)), twin(a)):
        assert result.storage_offset() * 4 == part.__array_interface__["data"][0] - origin
        assert result.is_contiguous() == part.flags.c_contiguous


@several
def test_writes_into_several_views_of_a_constant_are_seen_in_the_base(
    shape: Any, of: Any, twin: Any
) -> None:
    a = numbered(shape)
    base = dg.tensor(a)
    for factor, (result, part) in enumerate(zip(of(base), twin(a)), 2):
        result.mul_(factor)
        part *= factor
    assert_same(base, a)


@several
def test_write_into_the_base_is_seen_in_several_views(shape: Any, of: Any, twin: Any) -> None:
    a = numbered(shape)
    base = dg.tensor(a)
    results = of(base)
    base.add_(10)
    a += 10
    for result, part in zip(results, twin(a)):
        assert_same(result, part)


@several
def test_gradients_of_several_views_add_up_in_the_base(shape: Any, of: Any, twin: Any) -> None:
    x = dg.tensor(numbered(shape), requires_grad=True)
    results = of(x * 1)
    sum((result * factor).sum() for factor, result in enumerate(results, 2)).backward()
    expected = np.zeros(shape, FLOAT)
    for factor, part in enumerate(twin(expected), 2):
        part += factor
    assert x.grad is not None
    assert_same(x.grad, expected)


# Conjugates


CONJUGATES: dict[str, Callable[[dg.Tensor], dg.Tensor]] = {
    "conj": lambda x: x.conj(),
    "H": lambda x: x.H,
    "mH": lambda x: x.mH,
    "adjoint": lambda x: x.adjoint(),
}
conjugates = pytest.mark.parametrize("of", CONJUGATES.values(), ids=CONJUGATES)


@conjugates
def test_conjugate_is_a_view(of: Callable[[dg.Tensor], dg.Tensor]) -> None:
    x = dg.tensor([[1 + 2j, 3j]])
    assert of(x)._is_view() and of(x)._base is x


@conjugates
def test_write_into_a_conjugate_conjugates_into_the_base(
    of: Callable[[dg.Tensor], dg.Tensor],
) -> None:
    x = dg.tensor([[1 + 2j, 3j]])
    of(x).add_(1j)
    assert x.tolist() == [[1 + 1j, 2j]]


@conjugates
def test_write_into_the_base_is_seen_conjugated(of: Callable[[dg.Tensor], dg.Tensor]) -> None:
    x = dg.tensor([[1 + 2j, 3j]])
    conjugate = of(x)
    x.add_(1j)
    assert conjugate.resolve_conj().reshape(-1).tolist() == [1 - 3j, -4j]


def test_conjugate_of_a_real_tensor_is_itself() -> None:
    x = dg.ones(2)
    assert x.conj() is x


# Where there is nothing to change

UNCHANGED: dict[str, Callable[[dg.Tensor], dg.Tensor]] = {
    "contiguous": lambda x: x.contiguous(),
    "to the same dtype": lambda x: x.to(dg.float32),
    "to the same device": lambda x: x.to(x.device),
    "float": lambda x: x.float(),
    "real": lambda x: x.real,
    "resolve_conj": lambda x: x.resolve_conj(),
    "conj_physical of real": lambda x: x.conj_physical(),
    "type_as": lambda x: x.type_as(dg.ones(1)),
    "cpu": lambda x: x.cpu(),
    "flatten of one dim": lambda x: x.flatten(),
    "atleast_1d": lambda x: dg.atleast_1d(x),
}


@pytest.mark.parametrize("of", UNCHANGED.values(), ids=UNCHANGED)
def test_tensor_itself_comes_back_where_nothing_changes(
    of: Callable[[dg.Tensor], dg.Tensor],
) -> None:
    x = dg.ones(2)
    assert of(x) is x


# What copies

COPIES: dict[str, Callable[[dg.Tensor], dg.Tensor]] = {
    "index array": lambda x: x[dg.tensor([0, 1])],
    "list": lambda x: x[[0, 1]],
    "mask": lambda x: x[x > 0],
    "array and slice": lambda x: x[:, dg.tensor([0, 1])],
    "index_select": lambda x: x.index_select(0, dg.tensor([0])),
    "gather": lambda x: x.gather(0, dg.tensor([[0, 1, 0]])),
    "take": lambda x: x.take(dg.tensor([0])),
    "clone": lambda x: x.clone(),
    "contiguous": lambda x: x.t().contiguous(),
    "reshape": lambda x: x.t().reshape(6),
    "flatten": lambda x: x.t().flatten(),
    "ravel": lambda x: x.t().ravel(),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1, 0),
    "repeat": lambda x: x.repeat(1, 1),
    "tril": lambda x: x.tril(),
    "to with copy": lambda x: x.to(dg.float32, copy=True),
    "negative": lambda x: -x,
    "cat": lambda x: dg.cat([x]),
    "stack": lambda x: dg.stack([x]),
}


@pytest.mark.parametrize("of", COPIES.values(), ids=COPIES)
def test_what_is_no_view_copies(of: Callable[[dg.Tensor], dg.Tensor]) -> None:
    x = dg.tensor(numbered((2, 3)))
    copy = of(x)
    before = copy.tolist()
    x.zero_()
    assert copy.tolist() == before
    assert not copy._is_view() or copy._base is not x


# Refused views

REFUSED: dict[str, Callable[[dg.Tensor], object]] = {
    "view of what is not contiguous": lambda x: x.t().view(6),
    "view of another size": lambda x: x.view(4),
    "expand to a smaller size": lambda x: x.expand(1, 3),
    "narrow beyond the end": lambda x: x.narrow(0, 1, 2),
    "as_strided beyond the end": lambda x: x.as_strided((7,), (1,)),
    "unfold longer than the dim": lambda x: x.unfold(0, 3, 1),
    "view of a dtype that does not fit": lambda x: x[:, :1].view(dg.complex64),
    "view_as_complex of a dim of size 3": lambda x: dg.view_as_complex(x),
    "view_as_real of real": lambda x: dg.view_as_real(x),
    "imag of real": lambda x: x.imag,
    "split of sizes that do not add up": lambda x: x.split([1, 2]),
}


@pytest.mark.parametrize("of", REFUSED.values(), ids=REFUSED)
def test_view_that_does_not_fit_is_refused(of: Callable[[dg.Tensor], object]) -> None:
    with pytest.raises(RuntimeError, match=r"\w"):
        of(dg.tensor(numbered((2, 3))))


def test_view_of_what_is_not_contiguous_names_reshape() -> None:
    with pytest.raises(RuntimeError, match=r"Use .*reshape"):
        dg.ones(2, 3).t().view(6)

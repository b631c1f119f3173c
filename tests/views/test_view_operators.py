"""Operators that give a view: each one shares its base's elements as numpy's view does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import dyngraph as dg
from tests.views.view_calls import (
    ALL,
    COMPLEX,
    FLOAT,
    NUMERIC,
    OF_BITS,
    WRITABLE,
    View,
    assert_same,
    numbered,
)


def over(table: dict[str, View]) -> pytest.MarkDecorator:
    """Runs a test for each view of `table`, under its name."""
    return pytest.mark.parametrize("view", table.values(), ids=table.keys())


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

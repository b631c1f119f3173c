"""Random programs of views and writes, on numpy's arrays and on Tensors: the same values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, note, settings, strategies as st

import dyngraph as dg
from tests.views.steps import LONGEST_CHAIN, PROGRAMS, VIEW_STEPS, fits_into

BASES = [(4,), (3, 4), (2, 3, 4)]
MOST_ALIVE = 8


@dataclass
class Pair:
    """A Tensor, the array that it mirrors, and the count of writes, which those share that share
    one storage."""

    tensor: Any
    array: np.ndarray
    writes: list[int]
    chain: int = 0


# Writes of a number

Write = Callable[[Any, int], object]


def put_twice(a: np.ndarray, k: int) -> None:
    np.add.at(a, [0, 0], k)


# name: (number of dims at least, on Tensors, on arrays)
WRITES: dict[str, tuple[int, Write, Write]] = {
    "add": (0, lambda x, k: x.add_(k), lambda a, k: a.__iadd__(k)),
    "negate": (0, lambda x, k: x.neg_(), lambda a, k: a.__imul__(-1)),
    "fill": (0, lambda x, k: x.fill_(k), lambda a, k: a.fill(k)),
    "zero": (0, lambda x, k: x.zero_(), lambda a, k: a.fill(0)),
    "clamp": (0, lambda x, k: x.clamp_(-5, 5), lambda a, k: np.clip(a, -5, 5, out=a)),
    "augmented": (0, lambda x, k: x.__isub__(k), lambda a, k: a.__isub__(k)),
    "set first": (1, lambda x, k: x.__setitem__(0, k), lambda a, k: a.__setitem__(0, k)),
    "set tail": (
        1,
        lambda x, k: x.__setitem__(slice(1, None), k),
        lambda a, k: a.__setitem__(slice(1, None), k),
    ),
    "set last": (
        1,
        lambda x, k: x.__setitem__((..., -1), k),
        lambda a, k: a.__setitem__((..., -1), k),
    ),
    "set by mask": (
        0,
        lambda x, k: x.__setitem__(x > 0, k),
        lambda a, k: a.__setitem__(a > 0, k),
    ),
    "set by array": (
        1,
        lambda x, k: x.__setitem__(dg.tensor([-1, 0]), k),
        lambda a, k: a.__setitem__([-1, 0], k),
    ),
    "add twice to the first": (
        1,
        lambda x, k: x.index_put_((dg.tensor([0, 0]),), dg.tensor(float(k)), accumulate=True),
        put_twice,
    ),
    "add under no_grad": (0, dg.no_grad()(lambda x, k: x.add_(k)), lambda a, k: a.__iadd__(k)),
    "add in inference mode": (
        0,
        dg.inference_mode()(lambda x, k: x.add_(k)),
        lambda a, k: a.__iadd__(k),
    ),
    "out": (0, lambda x, k: dg.add(x, k, out=x), lambda a, k: np.add(a, k, out=a)),
}
# Writes of another tensor
FROM_ANOTHER: dict[str, tuple[Callable[[Any, Any], object], Callable[[Any, Any], object]]] = {
    "copy": (lambda x, y: x.copy_(y), lambda a, b: a.__setitem__(..., b)),
    "set all": (lambda x, y: x.__setitem__(..., y), lambda a, b: a.__setitem__(..., b)),
    "add another": (lambda x, y: x.add_(y), lambda a, b: a.__iadd__(b)),
    "subtract another": (lambda x, y: x.__isub__(y), lambda a, b: a.__isub__(b)),
}
# New tensors, of a new storage unless the counter is the old one
ALIASES: dict[str, Callable[[Pair], Pair]] = {
    "detach": lambda pair: Pair(pair.tensor.detach(), pair.array, pair.writes, pair.chain),
    "data": lambda pair: Pair(pair.tensor.data, pair.array, [0], pair.chain),
    "clone": lambda pair: Pair(pair.tensor.contiguous().clone(), pair.array.copy(order="C"), [0]),
    "doubled": lambda pair: Pair(
        (pair.tensor * 2).contiguous(), np.array(pair.array * 2, np.float32, order="C"), [0]
    ),
}
# Changes of shape in place: as which view, and by which method
IN_PLACE_VIEWS: dict[str, tuple[str, Callable[[Any], object]]] = {
    "transposed in place": ("transposed", lambda x: x.transpose_(0, -1)),
    "unsqueezed in place": ("unsqueezed", lambda x: x.unsqueeze_(0)),
}
NAMES = [*VIEW_STEPS, *WRITES, *FROM_ANOTHER, *ALIASES, *IN_PLACE_VIEWS, "new"]
NUMBERS = range(-3, 4)
# A step: what to do, to which of the tensors, with which other, with which number.
Step = tuple[str, int, int, int]


def decode(number: int) -> Step:
    """A step from one number, as drawing one is faster than drawing four."""
    rest, name = divmod(number, len(NAMES))
    rest, which = divmod(rest, MOST_ALIVE)
    number, whither = divmod(rest, MOST_ALIVE)
    return NAMES[name], which, whither, NUMBERS[number]


steps = st.integers(0, len(NAMES) * MOST_ALIVE**2 * len(NUMBERS) - 1).map(decode)
programs = st.lists(steps, max_size=30) | st.lists(steps, min_size=12, max_size=30)


def base(which: int) -> Pair:
    shape = BASES[which % len(BASES)]
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 3
    return Pair(dg.tensor(array), array, [0])


def take(pairs: list[Pair], step: Step) -> None:
    """Does one step to the tensors that are alive, on both sides."""
    name, which, whither, number = step
    pair = pairs[which % len(pairs)]
    if name in VIEW_STEPS:
        view = VIEW_STEPS[name]
        if pair.chain < LONGEST_CHAIN and view.fits(pair.array):
            tensor, array = view.of(pair.tensor), view.twin(pair.array)
            pairs.append(Pair(tensor, array, pair.writes, pair.chain + 1))
    elif name in WRITES:
        dims, write, twin = WRITES[name]
        if pair.array.ndim >= dims:
            write(pair.tensor, number)
            twin(pair.array, number)
            pair.writes[0] += 1
    elif name in FROM_ANOTHER:
        other = pairs[whither % len(pairs)]
        if fits_into(other.array.shape, pair.array.shape):
            source, values = other.tensor, other.array
            if np.shares_memory(pair.array, values):
                source, values = source.clone(), values.copy()
            FROM_ANOTHER[name][0](pair.tensor, source)
            FROM_ANOTHER[name][1](pair.array, values)
            pair.writes[0] += 1
    elif name in ALIASES:
        pairs.append(ALIASES[name](pair))
    elif name in IN_PLACE_VIEWS:
        view, change = VIEW_STEPS[IN_PLACE_VIEWS[name][0]], IN_PLACE_VIEWS[name][1]
        if pair.chain < LONGEST_CHAIN and view.fits(pair.array):
            change(pair.tensor)
            pair.array = view.twin(pair.array)
            pair.chain += 1
            pair.writes[0] += 1
    else:
        pairs.append(base(number))
    if len(pairs) > MOST_ALIVE:
        del pairs[which % MOST_ALIVE]


def owner(array: np.ndarray) -> np.ndarray:
    """The array whose memory `array` is a view of."""
    return array if array.base is None else array.base


@settings(max_examples=PROGRAMS)
@given(programs)
def test_programs_of_views_and_writes_give_the_values_of_numpy(program: list[Step]) -> None:
    note(f"{program}")
    pairs = [base(0)]
    for step in program:
        take(pairs, step)
        for pair in pairs:
            values = pair.tensor.numpy()
            if not np.array_equal(values, pair.array):  # much faster than what says how
                np.testing.assert_allclose(values, pair.array, rtol=1e-6, strict=True)
            assert pair.tensor._version == pair.writes[0]


@given(programs)
def test_programs_of_views_share_storage_where_numpy_shares_memory(program: list[Step]) -> None:
    note(f"{program}")
    pairs = [base(1)]
    for step in program:
        take(pairs, step)
    for one in pairs:
        root = owner(one.array)
        start = one.array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        assert one.tensor.storage_offset() == start // one.array.itemsize
        assert one.tensor.is_contiguous() == one.array.flags.c_contiguous
        for other in pairs:
            shared = one.tensor.untyped_storage().data_ptr()
            shares = shared == other.tensor.untyped_storage().data_ptr()
            assert shares == (root is owner(other.array))

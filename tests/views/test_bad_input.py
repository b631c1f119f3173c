"""Writes that are refused: PyTorch's type of error and condition, and nothing is half-written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg
from tests.graph.helpers import assert_values, leaf
from tests.views.calls import DIFFERENTIABLE, RANDOM, Call, as_tensors

Write = Callable[[dg.Tensor], object]


def cases(name: str, table: dict[str, Any]) -> pytest.MarkDecorator:
    """Runs a test for each value of `table`, under the value's name."""
    return pytest.mark.parametrize(name, table.values(), ids=table.keys())


WRITES: dict[str, Write] = {
    "method": lambda x: x.add_(1),
    "augmented": lambda x: x.__imul__(2),
    "setitem": lambda x: x.__setitem__(0, 5.0),
    "setitem of a slice": lambda x: x.__setitem__(slice(1), 5.0),
    "setitem of a mask": lambda x: x.__setitem__(x > 0, 5.0),
    "setitem of an index array": lambda x: x.__setitem__(dg.tensor([0]), 5.0),
    "copy": lambda x: x.copy_(dg.zeros(())),
    "fill": lambda x: x.fill_(1),
    "zero": lambda x: x.zero_(),
    "with a gradient": lambda x: x.add_(leaf(1.0)),
    "of nothing": lambda x: x.add_(0),
    "shape": lambda x: x.unsqueeze_(0),
}
LEAF = "a leaf Variable that requires grad"
VIEW_OF_LEAF = "a view of a leaf Variable that requires grad"

# Leaves and their views


@cases("write", WRITES)
def test_leaf_may_not_be_written_while_recording(write: Write) -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=LEAF):
        write(x)
    assert_values(x, [1, 2])
    assert x._version == 0 and x.is_leaf


@pytest.mark.parametrize("name, call", DIFFERENTIABLE.items(), ids=DIFFERENTIABLE)
def test_leaf_may_not_be_written_by_any_method(name: str, call: Call) -> None:
    x = dg.tensor(call.values, requires_grad=True)
    args, kwargs = as_tensors(call)
    with pytest.raises(RuntimeError, match=LEAF):
        getattr(x, name)(*args, **kwargs)
    assert x._version == 0


@pytest.mark.parametrize("name, bounds", RANDOM.items(), ids=RANDOM)
def test_leaf_may_not_be_filled_with_random_numbers(name: str, bounds: tuple[Any, ...]) -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=LEAF):
        getattr(x, name)(*bounds[0])
    assert_values(x, [1, 2])


@cases("write", WRITES)
def test_view_of_a_leaf_may_not_be_written_while_recording(write: Write) -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=VIEW_OF_LEAF):
        write(x[:])
    assert_values(x, [1, 2])
    assert x._version == 0 and x.is_leaf


@cases("write", {name: WRITES[name] for name in WRITES if name not in ("shape", "with a gradient")})
def test_leaf_may_be_written_under_no_grad(write: Write) -> None:
    x = leaf(1.0, 2.0)
    with dg.no_grad():
        write(x)
    assert x._version == 1 and x.is_leaf and x.requires_grad


# Views that overlap themselves

OVERLAPPING: dict[str, Callable[[dg.Tensor], dg.Tensor]] = {
    "expand": lambda x: x.expand(3, 2),
    "expand_as": lambda x: x.expand_as(dg.ones(3, 2)),
    "broadcast_to": lambda x: x.broadcast_to((3, 2)),
    "part of an expanded": lambda x: x.expand(3, 2)[:, :1],
    "transposed": lambda x: x.expand(3, 2).t(),
    "as_strided": lambda x: x.as_strided((2, 2), (0, 1)),
}
ELEMENTWISE: dict[str, Write] = {
    "add": lambda x: x.add_(1),
    "mul by a tensor": lambda x: x.mul_(dg.ones(x.shape)),
    "copy": lambda x: x.copy_(dg.ones(x.shape)),
    "random": lambda x: x.normal_(),
    "cumsum": lambda x: x.cumsum_(0),
    "out": lambda x: dg.add(dg.ones(x.shape), 1, out=x),
}


@cases("write", ELEMENTWISE)
@cases("view_of", OVERLAPPING)
def test_view_that_overlaps_itself_is_to_be_cloned(
    view_of: Callable[[dg.Tensor], dg.Tensor], write: Write
) -> None:
    base = dg.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match=r"more than one element of the written-to.*clone\(\)"):
        write(view_of(base))
    assert_values(base, [1, 2])


@cases("view_of", OVERLAPPING)
def test_view_that_overlaps_itself_may_be_filled_with_one_value(
    view_of: Callable[[dg.Tensor], dg.Tensor],
) -> None:
    base = dg.tensor([1.0, 2.0])
    view = view_of(base)
    view.fill_(7)
    assert base[0].item() == 7 and view.min().item() == 7


NOT_OVERLAPPING: dict[str, Callable[[], dg.Tensor]] = {
    "expanded by dims of size 1": lambda: dg.ones(2).expand(1, 2),
    "expanded to the same shape": lambda: dg.ones(2).expand(2),
    "row of an expanded": lambda: dg.ones(2).expand(3, 2)[0],
    "expanded to no elements": lambda: dg.ones(1).expand(0),
}


@cases("make", NOT_OVERLAPPING)
def test_expanded_view_that_does_not_overlap_may_be_written(
    make: Callable[[], dg.Tensor],
) -> None:
    view = make()
    view.add_(1)
    assert (view == 2).all()


# Views of functions that return several, and of other modes

REFUSED_VIEWS: dict[str, tuple[Callable[[dg.Tensor], dg.Tensor], str]] = {
    "split": (lambda x: x.split(1)[0], "inplace operation by an out-of-place one"),
    "chunk": (lambda x: x.chunk(2)[0], "inplace operation by an out-of-place one"),
    "unbind": (lambda x: x.view(2, 1).unbind()[0], "inplace operation by an out-of-place one"),
    "no_grad": (dg.no_grad()(lambda x: x[:1]), r"both.*no_grad block"),
    "inference_mode": (
        dg.inference_mode()(lambda x: x[:1]),
        r"both.*inference_mode block",
    ),
}


@cases("write", {name: write for name, write in WRITES.items() if name != "with a gradient"})
@cases("case", REFUSED_VIEWS)
def test_view_that_may_not_be_written_names_the_remedy(
    case: tuple[Callable[[dg.Tensor], dg.Tensor], str], write: Write
) -> None:
    view_of, remedy = case
    base = leaf(1.0, 2.0) * 2
    view = view_of(base)
    with pytest.raises(RuntimeError, match=remedy):
        write(view)
    assert_values(base, [2, 4])
    assert base._version == 0


def test_part_of_complex_numbers_may_be_written_through_windows() -> None:
    base = dg.tensor([1 + 1j, 2 + 2j, 3 + 3j])
    base.real.unfold(0, 1, 1).zero_()
    assert base.tolist() == [1j, 2j, 3j]


def test_part_of_windows_of_complex_numbers_is_to_be_cloned() -> None:
    base = dg.tensor([1 + 1j, 2 + 2j])
    with pytest.raises(RuntimeError, match="clone"):
        base.unfold(0, 1, 1).real.zero_()
    assert base.tolist() == [1 + 1j, 2 + 2j]


# Inference tensors


@cases("write", WRITES)
def test_inference_tensor_is_to_be_cloned(write: Write) -> None:
    with dg.inference_mode():
        x = dg.ones(2)
    with pytest.raises(RuntimeError, match=r"Inplace update to inference tensor.*clone"):
        write(x)


# Shapes

WRONG_SHAPE: dict[str, tuple[Write, str]] = {
    "longer": (lambda x: x.add_(dg.ones(3)), "must match|broadcast"),
    "more dims": (lambda x: x.add_(dg.ones(3, 2)), "doesn't match the broadcast shape"),
    "one more dim of size 1": (lambda x: x.mul_(dg.ones(1, 2)), "doesn't match the broadcast"),
    "augmented": (lambda x: x.__iadd__(dg.ones(3, 2)), "doesn't match the broadcast shape"),
    "second of two": (lambda x: x.addcmul_(dg.ones(2), dg.ones(3, 2)), "doesn't match the broad"),
    "comparison": (lambda x: x.eq_(dg.ones(3, 2)), "doesn't match the broadcast shape"),
    "copy": (lambda x: x.copy_(dg.ones(3)), "must match|broadcast"),
    "copy of more dims": (lambda x: x.copy_(dg.ones(3, 2)), "must match|broadcast|number of sizes"),
    "setitem": (lambda x: x.__setitem__(slice(None), dg.ones(3)), "shape mismatch|must match|exp"),
    "mask": (lambda x: x.masked_fill_(dg.tensor([True] * 3), 0), "must match|broadcast"),
    "fill": (lambda x: x.fill_(dg.ones(2)), "0-dimension"),
}


@cases("case", WRONG_SHAPE)
def test_write_that_does_not_fit_the_shape_is_refused(case: tuple[Write, str]) -> None:
    write, message = case
    x = dg.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match=message):
        write(x)
    assert_values(x, [1, 2])
    assert x._version == 0


def test_tensor_of_size_1_does_not_grow_by_a_write() -> None:
    x = dg.ones(1)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.add_(dg.ones(3))
    assert_values(x, [1])


# dtypes

NO_CAST: dict[str, tuple[Callable[[], dg.Tensor], Write]] = {
    "float into integer": (lambda: dg.tensor([1, 2]), lambda x: x.add_(1.5)),
    "float tensor into integer": (lambda: dg.tensor([1, 2]), lambda x: x.mul_(dg.ones(2))),
    "division of integers": (lambda: dg.tensor([1, 2]), lambda x: x.div_(2)),
    "augmented division": (lambda: dg.tensor([1, 2]), lambda x: x.__itruediv__(2)),
    "function of integers": (lambda: dg.tensor([1, 2]), lambda x: x.exp_()),
    "integer into bool": (lambda: dg.tensor([True, False]), lambda x: x.add_(1)),
    "complex into float": (lambda: dg.ones(2), lambda x: x.mul_(1j)),
    "complex tensor into float": (lambda: dg.ones(2), lambda x: x.add_(dg.tensor([1j, 2j]))),
}


@cases("case", NO_CAST)
def test_result_of_a_wider_kind_is_refused(
    case: tuple[Callable[[], dg.Tensor], Write],
) -> None:
    make, write = case
    x = make()
    with pytest.raises(RuntimeError, match=r"result type .* can't be cast to the desired output"):
        write(x)
    assert x.tolist() == make().tolist()
    assert x._version == 0


CASTS: dict[str, tuple[Callable[[], dg.Tensor], Write, list[Any]]] = {
    "number": (lambda: dg.tensor([1, 2]), lambda x: x.add_(1), [2, 3]),
    "bool into integer": (
        lambda: dg.tensor([1, 2]),
        lambda x: x.add_(dg.tensor([True, False])),
        [2, 2],
    ),
    "integer into float": (lambda: dg.ones(2), lambda x: x.mul_(dg.tensor([2, 3])), [2, 3]),
    "float into half": (
        lambda: dg.ones(2).to(dg.bfloat16),
        lambda x: x.add_(dg.tensor([1.0, 2.0])),
        [2, 3],
    ),
    "float into complex": (
        lambda: dg.tensor([1j, 2j]),
        lambda x: x.add_(1.5),
        [1.5 + 1j, 1.5 + 2j],
    ),
    "comparison into integer": (lambda: dg.tensor([1, 2]), lambda x: x.gt_(1), [0, 1]),
    "floor of integers": (lambda: dg.tensor([5, 7]), lambda x: x.floor_divide_(2), [2, 3]),
}


@cases("case", CASTS)
def test_result_of_the_same_kind_is_converted(
    case: tuple[Callable[[], dg.Tensor], Write, list[Any]],
) -> None:
    make, write, expected = case
    x = make()
    dtype = x.dtype
    write(x)
    assert x.dtype == dtype and x.tolist() == expected


# What was saved


@cases("write", {name: write for name, write in WRITES.items() if name != "shape"})
def test_tensor_modified_before_backward_is_refused(write: Write) -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    loss = (y * y).sum()
    write(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    assert x.grad is None


# A refusal is followed by a right call


@cases("write", WRITES)
def test_refused_write_leaves_the_graph_usable(write: Write) -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    with pytest.raises(RuntimeError, match=LEAF):
        write(x)
    y.mul_(3)
    y.sum().backward()
    assert_values(x.grad, [6, 12])


@cases("case", WRONG_SHAPE)
def test_write_refused_for_its_shape_records_nothing(case: tuple[Write, str]) -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    node = y.grad_fn
    with pytest.raises(RuntimeError, match=case[1]):
        case[0](y)
    assert y.grad_fn is node
    y.sum().backward()
    assert_values(x.grad, [2, 2])


def test_argument_that_is_no_tensor_is_refused() -> None:
    x = dg.ones(2)
    with pytest.raises(TypeError, match=r"\w"):
        x.add_("a")  # pyright: ignore
    with pytest.raises(TypeError, match=r"\w"):
        x.copy_([1.0, 2.0])  # pyright: ignore
    assert_values(x, [1, 1])

"""What the dispatcher looks up instead of computing it, and what keeps its reads of slots fast."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import pytest

import dyngraph as dg
from dyngraph import dispatch
from dyngraph.kernels import PlansByShape
from dyngraph.storage import PendingStorage, Storage, ViewStorage

SIZES = (1, 2, 3, 4, 3, 1, 4, 2)


def shapes_of_nodes(run: Callable[[dg.Tensor], dg.Tensor]) -> list[tuple[int, ...]]:
    """For leaves of all sizes, the shape that the node of `run` says its result has."""
    results = [run(dg.ones(size, 2, requires_grad=True)) for size in SIZES]
    return [tuple(r.grad_fn._input_metadata[0].shape) for r in results]  # type: ignore[union-attr]


def test_metadata_stay_right_when_what_is_looked_up_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dispatch, "MAX_AVALS", 2)
    dispatch.known_outputs.clear()
    assert shapes_of_nodes(lambda x: x * 2) == [(size, 2) for size in SIZES]
    assert len(dispatch.known_outputs) <= 2


def test_metadata_tell_dtypes_of_one_shape_apart() -> None:
    halves, singles = (dg.ones(3, dtype=d, requires_grad=True) for d in (dg.float16, dg.float32))
    nodes = [(x + x).grad_fn for x in (halves, singles, halves)]
    found = [node._input_metadata[0].dtype for node in nodes if node is not None]
    assert found == [dg.float16, dg.float32, dg.float16]


def test_plans_by_shape_stay_right_when_what_is_looked_up_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PlansByShape, "MOST_KNOWN", 2)
    for size in SIZES:
        x = dg.ones(size, requires_grad=True)
        dg.logcumsumexp(x, 0)[-1].backward()
        assert x.grad is not None
        assert x.grad.tolist() == pytest.approx([1 / size] * size)


def test_a_plan_tells_numbers_from_tensors_of_their_value() -> None:
    """The gradient of a 32-bit input is 32-bit, whether a weak or a strong dtype met it."""
    x = dg.ones(2, dtype=dg.float16, requires_grad=True)
    weak, strong = dg.from_jax_array(jnp.asarray(3.0)), dg.tensor(3.0)
    assert dg.hypot(x, weak).dtype == dg.float16
    assert dg.hypot(x, strong.expand(2)).dtype == dg.float32
    (dg.hypot(x, weak).sum() + dg.hypot(x, strong.expand(2)).sum()).backward()
    assert x.grad is not None
    assert x.grad.dtype == dg.float16


@pytest.mark.parametrize("kind", [dg.Tensor, dg.nn.Parameter, Storage, PendingStorage])
def test_what_dispatchers_read_has_no_getattr(kind: type) -> None:
    """Python 3.11 reads the slots of a class with `__getattr__` four times slower."""
    assert not hasattr(kind, "__getattr__")


def test_the_cell_of_a_view_fills_itself() -> None:
    base = dg.zeros(2)
    view = base[0]
    base.fill_(3)
    assert type(view._cell) is ViewStorage
    assert view._cell.is_empty()
    assert view.item() == 3


@pytest.mark.parametrize("name", ["add", "sub", "div"])
def test_common_arithmetic_runs_in_one_frame(name: str) -> None:
    assert "out = forward(x0, x1)" in getattr(dg, name).source

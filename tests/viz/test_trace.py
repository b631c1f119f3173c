"""`dg.viz.trace`: a backward as it ran."""

from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.viz.diagram import STATES
from dyngraph.viz.outline import DONE, NOW
from tests.conftest import set_config
from tests.viz.pictures import Parsed
from tests.viz.test_graph import Square


def leaf(*values: float) -> dg.Tensor:
    return dg.tensor(values, requires_grad=True)


def names(trace: dg.viz.Trace) -> list[str]:
    return [step.name for step in trace.steps]


def test_steps_are_the_nodes_in_the_order_in_which_they_ran() -> None:
    x = leaf(1.0, 2.0)
    trace = dg.viz.trace((x.sin() * x.cos()).sum())
    assert [step.order for step in trace.steps] == list(range(5))
    assert names(trace) == [
        "SumBackward0",
        "MulBackward0",
        "CosBackward0",
        "SinBackward0",
        "AccumulateGrad",
    ]


def test_gradients_are_those_of_an_ordinary_backward() -> None:
    x, y = leaf(1.0, 2.0), leaf(1.0, 2.0)
    dg.viz.trace(x.sin().exp().sum())
    y.sin().exp().sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), y.grad.numpy())


def test_norms_are_of_what_arrived_and_of_what_was_passed_on() -> None:
    x = leaf(3.0, 4.0)
    steps = dg.viz.trace((x * x).sum()).steps
    assert steps[1].arrived == pytest.approx(np.sqrt(2))
    assert steps[1].passed == pytest.approx(5 * np.sqrt(2))  # x to each of the two inputs
    assert steps[2].arrived == pytest.approx(10.0)
    assert steps[2].passed is None


def test_hooks_run_and_are_steps_in_python() -> None:
    x, seen = leaf(1.0, 2.0), []
    y = x.sin()
    y.register_hook(lambda grad: seen.append(grad))
    trace = dg.viz.trace(Square.apply(y).sum())
    assert len(seen) == 1
    python = {step.name for step in trace.steps if step.kind == "Python"}
    assert python == {"SinBackward0", "SquareBackward"}


def test_the_birth_of_nan_is_found() -> None:
    x = leaf(0.0, 1.0)
    trace = dg.viz.trace((x.sqrt() * dg.tensor([0.0, 1.0])).exp().sum())
    assert [step.born for step in trace.steps] == ["", "", "", "NaN", ""]
    assert trace.first_nan is trace.steps[3]
    assert "NaN born here" in str(trace)


def test_transfers_between_devices_are_told() -> None:
    x = leaf(1.0, 2.0)
    trace = dg.viz.trace(x.to("cpu:1").sum())
    assert [step.moved != "" for step in trace.steps] == [False, True, False]


def test_an_error_of_backward_is_raised_with_its_node() -> None:
    y = leaf(1.0, 2.0).exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="expected version 0") as caught:
        dg.viz.trace(y.sum())
    assert caught.value.__notes__ == ["This happened in backward, at ExpBackward0."]


def test_the_graph_is_freed_unless_it_is_kept() -> None:
    y = leaf(1.0, 2.0).exp().sum()
    dg.viz.trace(y, retain_graph=True)
    dg.viz.trace(y)
    with pytest.raises(RuntimeError, match="a second time"):
        dg.viz.trace(y)


def test_a_step_is_marked_in_the_picture() -> None:
    x = leaf(3.0, 4.0)
    picture = dg.viz.trace((x * x).sum()).step(1)
    states = {box.title: box.state for box in picture.shown.boxes if box.state}
    assert states == {"SumBackward0": DONE, "MulBackward0": NOW}
    texts = [text for text, _ in Parsed(picture.svg()).texts]
    assert "step 1: grad norm 1.414" in texts
    assert STATES[NOW] in picture.svg()


def test_a_step_that_is_not_there_raises() -> None:
    trace = dg.viz.trace(leaf(1.0).sum())
    with pytest.raises(IndexError, match="a number from 0 to 1"):
        trace.step(2)


def test_a_step_of_a_folded_graph_marks_the_box_that_it_is_in() -> None:
    y = leaf(1.0)
    for _ in range(200):
        y = y.sin().cos()
    picture = dg.viz.trace(y.sum()).step(50)
    assert [box.kind for box in picture.shown.boxes if box.state == NOW] == ["folded"]


def test_timeline_cuts_nothing_off() -> None:
    x = leaf(0.0, 1.0)
    parsed = Parsed(dg.viz.trace((x.sqrt() * dg.tensor([0.0, 1.0])).exp().sum()).svg())
    assert len(parsed.texts) > 8
    assert all(parsed.whole.holds(extent) for _, extent in parsed.texts)


def test_a_compiled_backward_has_its_parts_as_steps() -> None:
    def loss() -> dg.Tensor:
        return Square.apply(leaf(1.0, 2.0).sin()).exp().sum()

    with set_config(compile_after=1), dg.compiled_autograd():
        trace = dg.viz.trace(loss())
    assert [(step.kind, step.name) for step in trace.steps if step.within is None] == [
        ("Python", "the walk"),
        ("compiled", "a compiled part of 2 calls"),
        ("Python", "a backward in Python of SquareBackward"),
        ("compiled", "a compiled part of 1 call"),
    ]
    inside = [(step.within, step.name) for step in trace.steps if step.within is not None]
    assert inside == [
        (1, "SumBackward0"),
        (1, "ExpBackward0"),
        (4, "SquareBackward"),
        (6, "SinBackward0"),
        (6, "AccumulateGrad"),
    ]
    assert all((step.seconds is None) == (step.within is not None) for step in trace.steps)


def hooked() -> dg.Tensor:
    """A loss whose graph has a hook, a Function, a node that passes gradients on, and a leaf that
    is used twice."""
    x, w = leaf(0.0, 4.0), leaf(0.5, 0.25)
    y = x.sqrt() + w
    y.register_hook(lambda grad: grad * 2)
    return (Square.apply(y) * w).exp().sum()


def norms(trace: dg.viz.Trace) -> dict[int, tuple[float | None, float | None, str, str]]:
    """What is told of each node, by its place in the graph."""
    found = [s for s in trace.steps if s.order is not None and (s.arrived or s.passed)]
    return {s.order: (s.arrived, s.passed, s.born, s.kind) for s in found if s.order is not None}


@pytest.mark.parametrize("after", [1, 100], ids=["compiled", "kernel by kernel"])
def test_nodes_of_a_compiled_backward_have_the_norms_of_an_ordinary_one(after: int) -> None:
    plain = norms(dg.viz.trace(hooked()))
    with set_config(compile_after=after), dg.compiled_autograd():
        compiled = norms(dg.viz.trace(hooked()))
    assert [*compiled] == [*plain] == list(range(8))
    for order, (arrived, passed, born, kind) in plain.items():
        assert compiled[order] == (pytest.approx(arrived), pytest.approx(passed), born, kind)
    assert plain[6][2] == "Inf"


def test_a_trace_compiles_nothing_that_a_backward_would_not() -> None:
    with set_config(compile_after=1), dg.compiled_autograd():
        hooked().backward()
        before = dg.compiled.stats()
        dg.viz.trace(hooked())
        after = dg.compiled.stats()
    assert (after.compilations, after.misses) == (before.compilations, before.misses)
    assert after.segments - before.segments == 2


def test_a_backward_whose_structure_is_known_is_traced_node_by_node() -> None:
    with set_config(compile_after=1), dg.compiled_autograd():
        for _ in range(2):
            leaf(1.0, 2.0).sin().exp().sum().backward()
        trace = dg.viz.trace(leaf(1.0, 2.0).sin().exp().sum())
    assert [step.order for step in trace.steps if step.within is not None] == [0, 1, 2, 3]


def test_the_nodes_of_a_long_backward_stand_below_their_pieces() -> None:
    y = leaf(1.0, 2.0)
    for _ in range(40):
        y = y.sin().cos()
    with dg.compiled_autograd():
        trace = dg.viz.trace(y.sum())
    parts = [i for i, step in enumerate(trace.steps) if step.within is None]
    assert len(parts) > 2
    assert [s.order for s in trace.steps if s.order is not None] == list(range(82))
    for i, step in enumerate(trace.steps):
        assert step.within is None or step.within == max(p for p in parts if p < i)


def test_all_nodes_of_a_compiled_part_are_marked_in_its_picture() -> None:
    with set_config(compile_after=1), dg.compiled_autograd():
        trace = dg.viz.trace(leaf(1.0, 2.0).sin().sum())
    states = [box.state for box in trace.step(1).shown.boxes if box.order is not None]
    assert states == [NOW, NOW, NOW]
    states = [box.state for box in trace.step(3).shown.boxes if box.order is not None]
    assert states == [DONE, NOW, ""]


def test_a_backward_inside_a_backward_is_in_the_time_of_its_node() -> None:
    def run_another(grad: dg.Tensor) -> None:
        with dg.enable_grad():
            leaf(1.0).exp().backward()

    y = leaf(1.0, 2.0).sin()
    y.register_hook(run_another)
    trace = dg.viz.trace(y.sum())
    assert [(step.name, step.within) for step in trace.steps] == [
        ("SumBackward0", None),
        ("ExpBackward0", 3),
        ("AccumulateGrad", 3),
        ("SinBackward0", None),
        ("AccumulateGrad", None),
    ]


def test_a_hook_may_run_a_recorded_backward_inside_a_compiled_one() -> None:
    def second_order(grad: dg.Tensor) -> None:
        with dg.enable_grad():
            z = leaf(3.0)
            (slope,) = dg.autograd.grad((z**3).sum(), z, create_graph=True)
            slopes.append(dg.autograd.grad(slope.sum(), z)[0].item())

    slopes: list[float] = []
    y = leaf(1.0, 2.0).sin()
    y.register_hook(second_order)
    with set_config(compile_after=1), dg.compiled_autograd():
        trace = dg.viz.trace(y.exp().sum())
    assert slopes == [18.0]
    assert [s.order for s in trace.steps if s.within is not None and s.order is not None] == [
        *range(4)
    ]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled", "ignore:Error detected")
def test_anomaly_mode_stops_a_traced_backward(compiled: bool) -> None:
    with dg.autograd.detect_anomaly(), dg.compiled_autograd(compiled):
        y = (leaf(0.0, 1.0).sqrt() * dg.tensor([0.0, 1.0])).sum()
        with pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan"):
            dg.viz.trace(y)


def test_callbacks_that_hooks_queue_run_at_the_end() -> None:
    done: list[Any] = []
    x = leaf(1.0, 2.0)
    y = x.sin()
    y.register_hook(
        lambda grad: dg.autograd.Variable._execution_engine.queue_callback(lambda: done.append(1))
    )
    dg.viz.trace(y.sum())
    assert done == [1]


def test_a_trace_of_a_tensor_without_history_raises() -> None:
    with pytest.raises(ValueError, match="has no backward graph: it does not require grad"):
        dg.viz.trace(dg.ones(2).sum())


def test_norms_of_large_and_of_small_gradients_are_told() -> None:
    x = leaf(1.0, 1.0)
    for gradient in (3e30, 3e-30):
        trace = dg.viz.trace(x * 1.0, dg.tensor([gradient, 0.0]))
        assert trace.steps[0].arrived == pytest.approx(gradient)

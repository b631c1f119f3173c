"""Anomaly mode: how it is switched, where it stops, and what it says of the forward call."""

from __future__ import annotations

import inspect
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.autograd import detect_anomaly, set_detect_anomaly
from tests.autograd.functions import make
from tests.graph.helpers import assert_values, leaf, node_of, watch

COSTS_TIME = "Anomaly Detection has been enabled"
NO_INFORMATION = "No forward pass information available. Enable detect anomaly during forward"
HERE = Path(__file__).name
NAN, INF = float("nan"), float("inf")


def state() -> tuple[bool, bool]:
    return dg.is_anomaly_enabled(), dg.is_anomaly_check_nan_enabled()


@pytest.fixture
def watched() -> Iterator[None]:
    """Runs the test in anomaly mode."""
    with set_detect_anomaly(True):
        yield


inside = pytest.mark.usefixtures("watched")


def refuse(ctx: Any, *grads: Any) -> Any:
    raise ValueError("from backward")


Failing = make(lambda ctx, x: x * 1, refuse, "Failing")
MakesNan = make(lambda ctx, x: x * 1, lambda ctx, grad: grad * NAN, "MakesNan")


def line() -> int:
    """The line that calls this."""
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


def warning_of(error: type[Exception], run: Any, match: str | None = None) -> Any:
    """The one warning, of which node failed, that comes with an error of `run()`."""
    with pytest.warns(UserWarning, match="Error detected in") as caught:
        with pytest.raises(error, match=match):
            run()
    return caught[0]


# --- switching ---------------------------------------------------------------------------------


def test_mode_is_off_and_would_check_for_nan() -> None:
    assert state() == (False, True)


def test_detect_anomaly_is_on_in_its_block_and_warns_of_its_cost() -> None:
    with pytest.warns(UserWarning, match=COSTS_TIME), detect_anomaly():
        assert state() == (True, True)
    assert state() == (False, True)


def test_warning_of_the_cost_points_to_the_caller() -> None:
    with pytest.warns(UserWarning, match=COSTS_TIME) as caught:
        detect_anomaly()
    assert Path(caught[0].filename).name == HERE


def test_detect_anomaly_without_the_check_for_nan() -> None:
    with pytest.warns(UserWarning, match=COSTS_TIME), detect_anomaly(check_nan=False):
        assert state() == (True, False)
    assert state() == (False, True)


def test_set_detect_anomaly_switches_at_once() -> None:
    set_detect_anomaly(True)
    assert state() == (True, True)
    set_detect_anomaly(True, check_nan=False)
    assert state() == (True, False)
    set_detect_anomaly(False)
    assert state() == (False, True)


def test_set_detect_anomaly_is_a_context_manager_without_a_warning() -> None:
    with warnings.catch_warnings(action="error"), set_detect_anomaly(True, check_nan=False):
        assert state() == (True, False)
    assert state() == (False, True)


def test_blocks_nest() -> None:
    with set_detect_anomaly(True):
        with set_detect_anomaly(False):
            assert state() == (False, True)
        with set_detect_anomaly(True, False):
            assert state() == (True, False)
        assert state() == (True, True)
    assert state() == (False, True)


def test_block_ends_when_it_fails() -> None:
    with pytest.raises(ValueError, match="inside"), set_detect_anomaly(True):
        raise ValueError("inside")
    assert state() == (False, True)


def test_set_anomaly_enabled_is_a_plain_switch() -> None:
    dg.set_anomaly_enabled(True)
    assert state() == (True, True)
    dg.set_anomaly_enabled(True, False)
    assert state() == (True, False)
    dg.set_anomaly_enabled(False)
    assert state() == (False, True)


@pytest.mark.parametrize("switch", [detect_anomaly, lambda: set_detect_anomaly(True)])
@pytest.mark.filterwarnings(f"ignore:{COSTS_TIME}")
def test_both_decorate_functions(switch: Any) -> None:
    @switch()
    def function() -> tuple[bool, bool]:
        return state()

    assert state() == (False, True)
    assert function() == function() == (True, True)
    assert state() == (False, True)


def test_infinity_has_a_switch_of_its_own() -> None:
    x = leaf(0.0, 1.0)
    with set_detect_anomaly(True):
        x.sqrt().sum().backward()
    assert_values(x.grad, [INF, 0.5])
    with set_detect_anomaly(True, check_inf=True):
        warning_of(RuntimeError, lambda: x.sqrt().sum().backward(), "returned inf values in its 0t")


def test_infinity_may_be_looked_for_without_nan() -> None:
    x = leaf(0.0, 1.0)
    with set_detect_anomaly(True, check_nan=False, check_inf=True):
        MakesNan.apply(x).sum().backward()
        warning_of(RuntimeError, lambda: x.sqrt().sum().backward(), "returned inf values in its 0t")


def test_threads_have_the_mode_of_their_own() -> None:
    seen: list[Any] = []
    with set_detect_anomaly(True):
        thread = threading.Thread(target=lambda: seen.append(state()))
        thread.start()
        thread.join()
    assert seen == [(False, True)]


# --- stopping at NaN ---------------------------------------------------------------------------


@inside
@pytest.mark.parametrize("create_graph", [False, True])
def test_nan_stops_backward_and_names_node_and_output(create_graph: bool) -> None:
    x = leaf(1.0, 2.0)
    y = MakesNan.apply(x)
    message = r"Function 'MakesNanBackward' returned nan values in its 0th output\."
    warning_of(
        RuntimeError,
        lambda: dg.autograd.grad(y.sum(), x, create_graph=create_graph),
        message,
    )


@inside
def test_nan_names_the_output_that_has_it() -> None:
    second = make(lambda ctx, x, y: x + y, lambda ctx, grad: (grad, grad * NAN))
    y = second.apply(leaf(1.0, 2.0), leaf(1.0, 2.0))
    warning_of(RuntimeError, y.sum().backward, "returned nan values in its 1th output")


@inside
def test_exception_names_the_line_of_the_forward_call() -> None:
    y, number = leaf(0.0, 1.0).sqrt(), line()
    z = (y * 0).sum()
    warning_of(RuntimeError, z.backward, rf"forward call is at \S*{HERE}:{number}\.")


@inside
def test_nan_of_a_gradient_that_was_given_is_told_apart() -> None:
    y = leaf(1.0, 2.0) * 2
    warning_of(
        RuntimeError,
        lambda: y.backward(dg.tensor([NAN, 1.0])),
        "was given has nan already: it comes from a hook, or from the gradient that backward star",
    )


@inside
@pytest.mark.parametrize("kind", ["tensor hook", "prehook"])
def test_nan_of_a_hook_is_told_apart(kind: str) -> None:
    y = leaf(1.0, 2.0) * 2
    if kind == "tensor hook":
        y.register_hook(lambda grad: grad * NAN)
    else:
        node_of(y).register_prehook(lambda grads: (grads[0] * NAN,))
    warning_of(RuntimeError, y.sum().backward, "The gradient that it was given has nan already")


@inside
def test_nan_of_a_post_hook_is_found() -> None:
    y = leaf(1.0, 2.0).exp()
    node_of(y).register_hook(lambda inputs, outputs: (inputs[0] * NAN,))
    warning_of(RuntimeError, y.sum().backward, "'ExpBackward0' returned nan values")


@inside
def test_nan_that_a_post_hook_removes_does_not_stop_backward() -> None:
    x = leaf(1.0, 2.0)
    y = MakesNan.apply(x)
    node_of(y).register_hook(lambda inputs, outputs: (dg.ones(2),))
    y.sum().backward()
    assert_values(x.grad, [1, 1])


@inside
def test_nan_in_a_root_that_no_node_made_is_passed_on() -> None:
    x = leaf(1.0, 2.0)
    x.backward(dg.tensor([NAN, 1.0]))
    assert_values(x.grad, [NAN, 1])


@inside
def test_nan_in_forward_mode_backward_is_found() -> None:
    x = leaf(1.0, 2.0)
    with dg.autograd.forward_ad.dual_level():
        y = MakesNan.apply(x)
        warning_of(RuntimeError, y.sum().backward, "'MakesNanBackward' returned nan values")


def test_nothing_stops_where_the_mode_does_not_check_for_nan() -> None:
    x = leaf(1.0, 2.0)
    with set_detect_anomaly(True, check_nan=False):
        MakesNan.apply(x).sum().backward()
    assert_values(x.grad, [NAN, NAN])


def test_mode_of_backward_decides_not_that_of_forward() -> None:
    x = leaf(1.0, 2.0)
    with set_detect_anomaly(True):
        y = MakesNan.apply(x)
    y.sum().backward()
    assert_values(x.grad, [NAN, NAN])


@inside
def test_programs_without_nan_give_the_same_gradients() -> None:
    x = leaf(1.0, 2.0)
    ((x * x).exp() * x).sum().backward()
    assert_values(x.grad, np.exp([1, 4]) * [3, 9])


@inside
def test_none_gradients_are_no_anomaly() -> None:
    x = leaf(1.0, 2.0)
    make(lambda ctx, x: x * 1, lambda ctx, grad: None).apply(x).sum().backward()
    assert x.grad is None


# --- 0 times infinity --------------------------------------------------------------------------


@inside
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(lambda x: dg.where(x > 0, x.sqrt(), dg.zeros(2)), id="where"),
        pytest.param(lambda x: x.sqrt() * (x > 0).float(), id="mask"),
        pytest.param(lambda x: x.log().masked_fill(x <= 0, 0.0), id="masked_fill"),
        pytest.param(lambda x: x.sqrt()[1:], id="slice"),
    ],
)
def test_zero_times_infinity_is_recognized_and_its_remedy_named(program: Any) -> None:
    y = program(leaf(0.0, 1.0))
    warning_of(
        RuntimeError, y.sum().backward, r"is 0 there.*0 times an infinite derivative.*where_safe"
    )


@inside
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(MakesNan.apply, id="of a Function"),
        pytest.param(lambda x: (-x).sqrt(), id="of the derivative"),
        pytest.param(lambda x: dg.where(x > 0, (-x).sqrt(), x), id="below a where"),
    ],
)
def test_other_nans_are_not_taken_for_it(program: Any) -> None:
    y = program(leaf(1.0, 2.0))
    warning_of(RuntimeError, y.sum().backward, "returned nan values.* Look at the values")


# --- what the warning says ---------------------------------------------------------------------


@inside
def test_warning_shows_the_forward_call_of_the_node_that_failed() -> None:
    def forward_line() -> tuple[dg.Tensor, int]:
        return Failing.apply(leaf(1.0, 2.0)), line()

    y, number = forward_line()
    text = str(warning_of(ValueError, y.sum().backward).message)
    assert "Error detected in FailingBackward. Traceback of forward call that caused" in text
    assert f'{HERE}", line {number}, in forward_line' in text
    assert "Failing.apply(leaf(1.0, 2.0))" in text


@inside
def test_warning_shows_only_frames_of_the_user() -> None:
    y = Failing.apply(leaf(1.0, 2.0).exp())
    text = str(warning_of(ValueError, y.sum().backward).message)
    assert str(Path(dg.__file__).parent) not in text
    assert text.count(HERE) == 1


@inside
def test_warning_points_to_the_line_of_backward() -> None:
    y = Failing.apply(leaf(1.0, 2.0)).sum()
    run, number = lambda: y.backward(), line()
    warning = warning_of(ValueError, run)
    assert (Path(warning.filename).name, warning.lineno) == (HERE, number)


def test_warning_says_that_nothing_is_known_of_a_forward_outside_the_mode() -> None:
    y = Failing.apply(leaf(1.0, 2.0))
    with set_detect_anomaly(True):
        text = str(warning_of(ValueError, y.sum().backward).message)
    assert f"Error detected in FailingBackward. {NO_INFORMATION}" in text


@inside
def test_errors_of_hooks_are_told_too() -> None:
    def hook(grad: dg.Tensor) -> None:
        raise ValueError("from the hook")

    y = leaf(1.0, 2.0).exp()
    y.register_hook(hook)
    text = str(warning_of(ValueError, y.sum().backward, "from the hook").message)
    assert "Error detected in ExpBackward0" in text


@inside
def test_error_of_double_backward_shows_both_forward_calls() -> None:
    inner = make(lambda ctx, grad, x: grad * 2 * x, refuse, "Inner")

    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        return inner.apply(grad, *ctx.saved_tensors)

    x = leaf(1.0, 2.0)
    y, number = make(forward, backward, "Outer").apply(x), line()
    (by_x,) = dg.autograd.grad(y.sum(), x, create_graph=True)
    with (
        pytest.warns(UserWarning, match=r"Error detected|Previous calculation") as caught,
        pytest.raises(ValueError, match="from backward"),
    ):
        by_x.sum().backward()
    text = "".join(str(w.message) for w in caught)
    first, _, rest = text.partition("Previous calculation was induced by OuterBackward")
    assert "Error detected in InnerBackward" in first and "in backward" in first
    assert "Traceback of forward call that induced the previous calculation" in rest
    assert f"line {number}," in rest


@inside
def test_operator_of_a_recorded_backward_tells_what_induced_it() -> None:
    x = leaf(1.0, 4.0)
    (by_x,) = dg.autograd.grad((x**1.5).sum(), x, create_graph=True)
    by_x.register_hook(lambda grad: grad * NAN)
    with (
        pytest.warns(UserWarning, match=r"Error detected|Previous calculation") as caught,
        pytest.raises(RuntimeError, match="returned nan"),
    ):
        by_x.sum().backward()
    text = "".join(str(w.message) for w in caught)
    assert "Previous calculation was induced by PowBackward0" in text


@inside
def test_modified_saved_tensor_tells_where_it_was_saved() -> None:
    t = leaf(1.0, 2.0) * 1
    y, number = t * t, line()
    t.add_(1)
    message = rf"modified by an inplace operation.*It was saved at \S*{HERE}:{number}\."
    warning_of(RuntimeError, y.sum().backward, message)


def test_modified_saved_tensor_names_anomaly_mode_as_the_way_to_know() -> None:
    t = leaf(1.0, 2.0) * 1
    y = t * t
    t.add_(1)
    with pytest.raises(RuntimeError, match=r"set_detect_anomaly\(True"):
        y.sum().backward()


@inside
def test_modified_saved_tensor_of_a_function_tells_where_it_was_saved() -> None:
    square = make(
        lambda ctx, x: (ctx.save_for_backward(x), x * x)[1],
        lambda ctx, grad: grad * ctx.saved_tensors[0],
    )
    t = leaf(1.0, 2.0) * 1
    y, number = square.apply(t), line()
    t.add_(1)
    warning_of(RuntimeError, y.sum().backward, rf"It was saved at \S*{HERE}:{number}\.")


@inside
def test_error_before_any_node_ran_has_no_such_warning() -> None:
    y = leaf(1.0, 2.0) * 2
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
        y.backward()


# --- metadata ----------------------------------------------------------------------------------


@inside
def test_node_keeps_the_forward_call_in_its_metadata() -> None:
    y = leaf(1.0, 2.0).exp()
    assert HERE in "".join(node_of(y).metadata["traceback_"])


def test_node_made_outside_the_mode_keeps_none() -> None:
    assert "traceback_" not in node_of(leaf(1.0, 2.0).exp()).metadata


@inside
def test_metadata_that_a_user_cleared_is_no_trouble() -> None:
    y = Failing.apply(leaf(1.0, 2.0))
    node_of(y).metadata.clear()
    text = str(warning_of(ValueError, y.sum().backward).message)
    assert NO_INFORMATION in text


@inside
def test_metadata_that_a_user_overwrote_raises_where_it_is_read() -> None:
    y = Failing.apply(leaf(1.0, 2.0))
    node_of(y).metadata["traceback_"] = 3
    with pytest.raises(TypeError, match="itera"):
        y.sum().backward()


@inside
def test_metadata_of_the_user_stays() -> None:
    y = leaf(1.0, 2.0).exp()
    node_of(y).metadata["mine"] = 1
    y.sum().backward()
    assert node_of(y).metadata["mine"] == 1


# --- memory ------------------------------------------------------------------------------------


@inside
def test_node_of_the_forward_call_is_freed_with_its_tensor(no_gc: None) -> None:
    y = leaf(1.0, 2.0).exp()
    node = watch(y)
    del y
    assert node() is None


@inside
def test_parent_of_a_recorded_backward_is_freed_with_the_gradient(no_gc: None) -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    node = watch(y)
    (by_x,) = dg.autograd.grad(y.sum(), x, create_graph=True)
    del y
    assert node() is not None
    del by_x
    assert node() is None


@inside
def test_failed_double_backward_frees_everything(no_gc: None) -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    nodes = [watch(y)]
    (by_x,) = dg.autograd.grad(y.sum(), x, create_graph=True)
    nodes.append(watch(by_x))
    by_x.register_hook(lambda grad: grad * NAN)
    warning_of(RuntimeError, by_x.sum().backward, "returned nan")
    del y, by_x
    assert [node() for node in nodes] == [None, None]


@pytest.mark.parametrize("mode", [False, True], ids=["plain", "anomaly mode"])
@pytest.mark.filterwarnings("ignore:Error detected")
def test_kept_error_of_a_failed_backward_keeps_no_gradients(no_gc: None, mode: bool) -> None:
    arrays: list[weakref.ref[Any]] = []

    def program() -> None:
        with set_detect_anomaly(mode):
            t = leaf(1.0, 2.0) * 1
            y = t * t
            z = y.exp()
            for tensor in (y, z):
                tensor.register_hook(lambda grad: arrays.append(weakref.ref(grad._cell.array)))
            t.add_(1)
            (z * 2).sum().backward()

    try:
        program()
    except RuntimeError as error:
        sys.last_value = error  # as a notebook does
    try:
        assert [array() for array in arrays] == [None, None]
    finally:
        del sys.last_value


@pytest.mark.filterwarnings("ignore:Error detected")
@pytest.mark.parametrize("mode", [False, True], ids=["plain", "anomaly mode"])
def test_backward_runs_again_after_it_failed(mode: bool) -> None:
    tries: list[int] = []

    def sometimes(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        tries.append(1)
        return refuse(ctx) if len(tries) == 1 else grad

    x = leaf(1.0, 2.0)
    with set_detect_anomaly(mode):
        y = make(lambda ctx, x: x * 1, sometimes).apply(x).sum()
        with pytest.raises(ValueError, match="from backward"):
            y.backward(retain_graph=True)
        assert x.grad is None
        y.backward()
    assert_values(x.grad, [1, 1])


@inside
def test_warning_that_is_an_error_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    y = leaf(1.0) + 1
    z = y**2
    y += 1
    with warnings.catch_warnings(action="error"):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.backward()
    assert "Error detected in PowBackward0" in capsys.readouterr().err

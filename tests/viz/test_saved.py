"""`dg.viz.saved`, `dg.viz.memory` and `dg.grad_report`: bytes and gradients in numbers."""

import gc
import xml.etree.ElementTree as ET
from functools import partial

import jax
import numpy as np
import pytest

import dyngraph as dg
from dyngraph.utils.checkpoint import (
    checkpoint as any_checkpoint,
    create_selective_checkpoint_contexts,
)
from tests.conftest import set_config
from tests.viz.pictures import SVG, Parsed

N = 100
checkpoint = partial(any_checkpoint, use_reentrant=False)


def leaf() -> dg.Tensor:
    return dg.ones(N, requires_grad=True)


# --- saved ----------------------------------------------------------------------------------------


def test_a_buffer_that_several_nodes_keep_is_counted_once() -> None:
    x = leaf()
    report = dg.viz.saved(x.sin() + x.cos())
    (buffer,) = report.buffers
    assert report.total == buffer.nbytes == 4 * N
    assert [*map(str, buffer.keepers)] == ["#1 CosBackward0.self", "#2 SinBackward0.self"]


def test_names_tell_who_else_holds_a_buffer() -> None:
    x = leaf()
    y = x.exp()
    report = dg.viz.saved(y.exp())
    assert [b.holders for b in report.buffers] == [(), ("y",)]
    assert report.freed_with_graph == 4 * N


def test_a_leaf_without_a_name_is_a_leaf() -> None:
    y = leaf().sin()
    assert dg.viz.saved(y).buffers[0].holders == ("a leaf",)


def test_buffers_come_with_the_largest_first() -> None:
    y = (leaf().exp() * 2.0).sum() * dg.ones((), requires_grad=True)
    sizes = [buffer.nbytes for buffer in dg.viz.saved(y).buffers]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) > 2


def test_a_checkpoint_keeps_less_and_says_so() -> None:
    x = leaf()

    def block(x: dg.Tensor) -> dg.Tensor:
        return x.sin().exp().sin()

    before = dg.viz.saved(block(x))
    after = dg.viz.saved(checkpoint(block, x))
    assert (before.total, after.total) == (2 * 4 * N, 4 * N)
    assert after.recomputed == 3
    assert before.compared_with(after).rows[-1] == ("in all", "800 B", "400 B", "-400 B")


def test_a_checkpoint_keeps_its_arguments() -> None:
    x, y = leaf(), dg.ones(N)
    z = checkpoint(lambda x, y, *, scale: (x * y).sin() * scale, x, y, scale=dg.ones(N) * 2)
    kept = {str(b.keepers[0]): b.holders for b in dg.viz.saved(z).buffers}
    assert kept == {
        "#0-#2 checkpoint.args[0]": ("x",),
        "#0-#2 checkpoint.args[1]": ("y",),
        "#0-#2 checkpoint.scale": (),
    }


def test_a_checkpoint_inside_another_keeps_nothing_by_itself() -> None:
    x = leaf()

    def inner(h: dg.Tensor) -> dg.Tensor:
        return h.sin().cos()

    y = checkpoint(lambda x: checkpoint(inner, x.exp()).sin(), x)
    buffers = dg.viz.saved(y).buffers
    assert [[*map(str, b.keepers)] for b in buffers] == [["#0-#3 checkpoint.args[0]"]]


def test_results_that_a_policy_keeps_are_counted() -> None:
    x = leaf()
    contexts = partial(create_selective_checkpoint_contexts, ["exp"])
    y = checkpoint(lambda x: x.sin().exp().cos(), x, context_fn=contexts)
    kept = [str(b.keepers[0]) for b in dg.viz.saved(y).buffers]
    assert kept == ["#0-#2 checkpoint.args[0]", "#0-#2 checkpoint.exp (policy)"]


def test_what_a_checkpoint_keeps_is_in_the_total_of_the_picture() -> None:
    x = leaf()
    y = checkpoint(lambda x: x.sin().exp(), x)
    assert dg.viz.graph(y).saved_bytes == x.nbytes


def test_what_is_packed_is_counted_where_it_is_an_array() -> None:
    with dg.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
        y = leaf().exp()
    assert [(b.value, b.nbytes) for b in dg.viz.saved(y).buffers] == [("float16[100]", 2 * N)]


def test_a_freed_graph_keeps_nothing() -> None:
    y = leaf().exp().sum()
    y.backward()
    assert dg.viz.saved(y).total == 0


def test_saved_of_a_tensor_without_history_raises() -> None:
    with pytest.raises(ValueError, match="has no backward graph"):
        dg.viz.saved(dg.ones(2))


def test_values_of_a_mapped_function_are_nowhere_yet() -> None:
    found: list[str] = []

    def square(x: dg.Tensor) -> dg.Tensor:
        y = x * x
        found.extend(buffer.device for buffer in dg.viz.saved(y).buffers)
        return y

    dg.vmap(square)(leaf())
    assert found == ["nowhere yet"]


def test_chart_of_buffers_has_a_bar_for_each_and_cuts_nothing_off() -> None:
    x = leaf()
    report = dg.viz.saved((x.exp() * x.sin()).sum())
    svg = report.svg()
    parsed = Parsed(svg)
    assert all(parsed.whole.holds(extent) for _, extent in parsed.texts)
    found = ET.fromstring(svg).iter(f"{SVG}rect")
    assert sum(r.get("class") == "dyngraph-bar" for r in found) == len(report.buffers)


# --- memory ---------------------------------------------------------------------------------------


def test_live_bytes_at_the_end_are_those_that_jax_knows_of() -> None:
    gc.collect()
    x = leaf()
    with dg.viz.memory() as used:
        y = (x * 2).exp().sin()
        y.sum().backward()
    live = {id(a): a.nbytes for a in jax.live_arrays()}
    assert used.samples[-1].nbytes == sum(live.values())
    assert used.samples[-1].nbytes - used.start >= 2 * 4 * N  # y and x.grad


def test_samples_follow_forward_and_backward() -> None:
    x = leaf()
    with dg.viz.memory() as used:
        x.exp().sum().backward()
    assert [(s.phase, s.what) for s in used.samples] == [
        ("forward", "exp"),
        ("forward", "sum"),
        ("backward", "SumBackward0"),
        ("backward", "ExpBackward0"),
        ("backward", "AccumulateGrad"),
        ("forward", "the end"),
    ]


def test_a_tensor_that_is_made_inside_is_counted_when_it_is_used() -> None:
    with dg.viz.memory() as used:
        x = leaf()
        y = x.exp()
    assert used.samples[0].nbytes - used.start == 2 * 4 * N
    del y


def test_sums_of_gradients_are_counted() -> None:
    x = leaf()
    x.sum().backward()
    with dg.viz.memory() as used:
        x.sum().backward()
        y = x.exp()
        live = {id(a): a.nbytes for a in jax.live_arrays()}
        assert used.samples[-1].nbytes == sum(live.values())
    del y


def test_a_compiled_backward_is_followed() -> None:
    x = leaf()
    with set_config(compile_after=1), dg.compiled_autograd(), dg.viz.memory() as used:
        x.exp().sum().backward()
    assert used.samples[-2].what.startswith("a compiled part of ")
    assert used.samples[-2].nbytes - used.start >= 4 * N  # x.grad


def test_peak_is_what_lived_at_most() -> None:
    x = leaf()
    with dg.viz.memory() as used:
        y = x.exp()
        del y
        x.sin()
    assert used.peak - used.start == 4 * N


def test_memory_leaves_no_mode_behind_and_counts_no_more() -> None:
    with pytest.raises(ValueError, match="in the block"), dg.viz.memory() as used:
        raise ValueError("in the block")
    leaf().exp()
    assert len(used.samples) == 1


def test_live_bytes_are_told_by_device() -> None:
    with dg.viz.memory() as used:
        there = leaf().detach().to("cpu:1").exp()
    assert there.device.index == 1
    assert len(used.by_device) >= 2


def test_curve_of_live_bytes_cuts_nothing_off() -> None:
    x = leaf()
    with dg.viz.memory() as used:
        x.exp().sum().backward()
    for over in ("events", "seconds"):
        parsed = Parsed(used.svg(over))
        assert all(parsed.whole.holds(extent) for _, extent in parsed.texts)


def test_curve_over_something_else_raises() -> None:
    with dg.viz.memory() as used:
        pass
    with pytest.raises(ValueError, match="expected 'events' or 'seconds'"):
        used.svg("bytes")


def test_table_of_samples_tells_changes() -> None:
    x = leaf()
    with dg.viz.memory() as used:
        y = x.exp()
    assert y.shape == (N,)
    assert used.table().rows[0][1:3] == ("forward", "exp")
    assert used.table().rows[0][4] == "400 B"


# --- grad_report ----------------------------------------------------------------------------------


def with_grad(*values: float) -> dg.Tensor:
    tensor = dg.zeros(len(values), requires_grad=True)
    tensor.grad = dg.tensor(values)
    return tensor


def test_report_measures_gradients() -> None:
    values = np.array([0.0, 3.0, -4.0, 0.0], np.float32)
    w = with_grad(*values)
    (row,) = dg.grad_report({"w": w}).grads
    assert row.norm == pytest.approx(np.linalg.norm(values))
    assert (row.largest, row.zeros, row.nan, row.inf) == (4.0, 0.5, 0, 0)


def test_report_counts_nan_and_infinite_elements() -> None:
    w = with_grad(1.0, np.nan, np.inf, -np.inf)
    (row,) = dg.grad_report([w]).grads
    assert (row.name, row.nan, row.inf) == ("w", 1, 2)


def test_norm_of_large_elements_does_not_overflow() -> None:
    w = with_grad(3e30, 4e30, 0.0, 0.0)
    assert dg.grad_report([w]).grads[0].norm == pytest.approx(5e30)


def test_report_lists_tensors_without_a_gradient() -> None:
    report = dg.grad_report([dg.ones(2, requires_grad=True)])
    assert report.grads[0][:3] == ("[0]", "none", None)
    assert str(report).endswith("1 of 1 have no gradient")


def test_report_of_several_devices() -> None:
    w = with_grad(1.0, 2.0)
    v = w.detach().to("cpu:1").requires_grad_()
    v.grad = dg.ones(2).to("cpu:1")
    assert [g.device for g in dg.grad_report({"w": w, "v": v}).grads] == ["cpu", "cpu:1"]


def test_report_of_something_else_raises() -> None:
    with pytest.raises(TypeError, match="Pass model, "):
        dg.grad_report(3)

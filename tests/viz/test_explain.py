"""`dg.explain_grad`: why a tensor got no gradient, or zeros."""

import re

import pytest

import dyngraph as dg
from tests.viz.test_graph import Square

HERE = re.escape(__file__)


def leaf(*values: float) -> dg.Tensor:
    return dg.tensor(values or (1.0, 2.0), requires_grad=True)


def said(explanation: object) -> str:
    return str(explanation)


def test_a_gradient_that_is_there() -> None:
    x = leaf(3.0, 4.0)
    loss = (x * x).sum()
    loss.backward()
    assert (
        said(dg.explain_grad(loss, x)) == "A gradient reaches x.\n"
        "- path: SumBackward0 → MulBackward0 → AccumulateGrad\n"
        "- its .grad has norm 10"
    )


def test_a_backward_that_has_not_run() -> None:
    x = leaf()
    explanation = dg.explain_grad(x.sin().sum(), x)
    assert explanation.reached
    assert "backward() has not run on this graph yet" in said(explanation)


def test_an_interior_tensor_that_retains_no_gradient() -> None:
    y = leaf().sin()
    loss = y.sum()
    loss.backward()
    assert "call y.retain_grad() before backward()" in said(dg.explain_grad(loss, y))


def test_a_gradient_that_was_set_to_none() -> None:
    x = leaf()
    loss = x.sin().sum()
    loss.backward()
    x.grad = None
    assert ".grad was set to None since" in said(dg.explain_grad(loss, x))


def test_the_node_that_makes_a_gradient_zero() -> None:
    x = leaf(-1.0, -2.0)
    loss = (x.exp() - 5).relu().sum()
    loss.backward(retain_graph=True)
    explanation = dg.explain_grad(loss, x)
    assert explanation.fact == "The gradient of x is 0 in all its elements."
    assert "ReluBackward0 (#1) makes it 0" in said(explanation)


def test_a_backward_that_a_hook_runs_is_not_taken_for_the_graphs() -> None:
    def run_another(grad: dg.Tensor) -> None:
        with dg.enable_grad():
            (dg.ones(2, requires_grad=True) * 0).sum().backward()

    x = dg.tensor([-1.0, -2.0], requires_grad=True)
    y = x * 2
    y.register_hook(run_another)
    loss = y.relu().sum()
    loss.backward(retain_graph=True)
    found = dg.explain_grad(loss, x).details
    assert [detail for detail in found if "makes it 0" in detail] == [
        "ReluBackward0 (#1) makes it 0: it was given a gradient of norm 1.414"
    ]


def test_zeros_of_a_freed_graph() -> None:
    x = leaf(-1.0, -2.0)
    loss = (x.exp() - 5).relu().sum()
    loss.backward()
    assert "pass retain_graph=True there to look" in said(dg.explain_grad(loss, x))


def test_explaining_leaves_the_gradient_as_it_is() -> None:
    x = leaf(-1.0, -2.0)
    loss = x.relu().sum()
    loss.backward(retain_graph=True)
    dg.explain_grad(loss, x)
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 0.0]
    loss.backward()


def test_a_nan_gradient_is_not_zero() -> None:
    x = leaf(0.0, 0.0)
    loss = (x.sqrt() * 0).sum()
    loss.backward()
    assert "2 elements of it are NaN or Inf" in said(dg.explain_grad(loss, x))


def test_integers() -> None:
    x = dg.tensor([1, 2])
    loss = leaf().sum()
    assert "it is int32, and only floating point" in said(dg.explain_grad(loss, x))


def test_a_loss_without_a_graph() -> None:
    x = leaf()
    with dg.no_grad():
        loss = x.sum()
    explanation = dg.explain_grad(loss, x)
    assert (
        explanation.fact
        == "No gradient reaches x: the loss has no graph, it does not require grad."
    )
    assert "dg.viz.provenance()" in said(explanation)


def test_a_loss_of_inference_mode() -> None:
    x = leaf()
    with dg.inference_mode():
        loss = x.sum()
    assert "made inside inference_mode()" in said(dg.explain_grad(loss, x))


def test_a_loss_of_integers() -> None:
    x = leaf()
    assert "argmax(), comparisons and casts" in said(dg.explain_grad(x.argmax(), x))


def test_a_tensor_that_does_not_require_grad_but_is_used() -> None:
    x, w = dg.ones(2), leaf()
    loss = (x * w).sum()
    text = said(dg.explain_grad(loss, x))
    assert "x does not require grad: set requires_grad=True" in text
    assert "MulBackward0 (#1) has its value as 'self', as a constant" in text


def test_detach_is_seen_where_the_value_was_saved() -> None:
    x, w = leaf(), leaf()
    loss = (x.detach() * w).sum()
    text = said(dg.explain_grad(loss, x))
    assert "has its value as 'self', as a constant: what was used there is detach()" in text
    assert text.endswith("leaves that are reached: w")


def test_writes_in_place_are_told() -> None:
    x, w = leaf(), leaf()
    with dg.no_grad():
        x.add_(1)
    assert re.search(
        rf"x was written to in place 1 times, last at {HERE}:\d+",
        said(dg.explain_grad(w.sum(), x)),
    )


def test_arguments_must_be_tensors() -> None:
    with pytest.raises(TypeError, match="loss must be a Tensor, not float"):
        dg.explain_grad(1.0, leaf())  # type: ignore[arg-type]


# --- with a record of the forward pass ----------------------------------------------------------


def test_record_finds_detach() -> None:
    x, w = leaf(), leaf()
    with dg.viz.provenance() as record:
        y = x.exp().detach()
        loss = (y.sin() * w).sum()
    text = said(dg.explain_grad(loss, x, record))
    assert re.search(rf"cut by detach\(\) or .data: between exp at {HERE}:\d+ and sin at", text)


def test_record_finds_no_grad() -> None:
    x, w = leaf(), leaf()
    with dg.viz.provenance() as record:
        with dg.no_grad():
            y = x.exp()
        loss = (y * w).sum()
    assert re.search(
        rf"cut in exp at {HERE}:\d+: no_grad\(\) was on", said(dg.explain_grad(loss, x, record))
    )


def test_record_finds_a_cast_to_integers() -> None:
    x, w = leaf(), leaf()
    with dg.viz.provenance() as record:
        loss = (x.exp().int() * w).sum()
    assert re.search(
        rf"cut in \w+ at {HERE}:\d+: int32 values have none", said(dg.explain_grad(loss, x, record))
    )


@pytest.mark.parametrize(
    ("leave", "how"),
    [
        (lambda x: x.sum().item(), ".item()"),
        (lambda x: float(x.sum()), ".item()"),
        (lambda x: dg.from_numpy(x.detach().numpy() * 2), ".numpy()"),
        (lambda x: dg.tensor(x.tolist()), ".tolist()"),
    ],
    ids=["item", "float", "numpy", "tolist"],
)
def test_record_finds_the_way_out(leave: object, how: str) -> None:
    x, w = leaf(), leaf()
    with dg.viz.provenance() as record:
        loss = (w * leave(x)).sum()  # type: ignore[operator]
    text = said(dg.explain_grad(loss, x, record))
    assert re.search(rf"left the graph by {re.escape(how)} at {HERE}:\d+", text)


def test_record_says_when_a_value_is_not_used() -> None:
    x, w = leaf(), leaf()
    with dg.viz.provenance() as record:
        x.exp()
        loss = w.sum()
    assert "no value that was made from it gets to the loss" in said(
        dg.explain_grad(loss, x, record)
    )


def test_record_follows_a_function() -> None:
    x, w = leaf(), leaf()
    with dg.viz.provenance() as record:
        loss = (Square.apply(x) * w).sum()
    assert dg.explain_grad(loss, x, record).reached


def test_record_keeps_no_array(no_gc: None) -> None:
    x = leaf()
    with dg.viz.provenance() as record, dg.viz.memory() as used:
        y = x.exp().sin()
        del y
    assert used.samples[-1].nbytes == used.start
    assert len(record.calls) == 2

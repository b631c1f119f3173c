"""`dg.viz.graph`: its boxes and arrows are the graph's nodes and edges, in every form."""

import stat
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dyngraph as dg
from dyngraph.utils.checkpoint import checkpoint
from dyngraph.viz.outline import visits
from tests.viz.pictures import Parsed


def leaf(*values: float) -> dg.Tensor:
    return dg.tensor(values, requires_grad=True)


# --- the graphs that the introductions to autograd draw -----------------------------------------


def test_graph_of_a_matrix_product_and_a_sum() -> None:
    a, b = dg.ones(2, 3, requires_grad=True), dg.ones(3, 2, requires_grad=True)
    c = a @ b
    loss = c.sum()
    assert (
        dg.viz.graph(loss).text()
        == """\
[0] loss            -> [1]  (float32[])  (GraphRoot)
[1] SumBackward0    -> [2] float32[2, 2]
[2] MmBackward0     -> [3] float32[2, 3], [4] float32[3, 2]  (makes c)  \
(saved self: float32[2, 3], 24 B)  (saved mat2: float32[3, 2], 24 B)
[3] AccumulateGrad  -> [5]
[4] AccumulateGrad  -> [6]
[5] a               (float32[2, 3])
[6] b               (float32[3, 2])
4 nodes, 48 B saved"""
    )


def test_graph_of_a_sum_that_is_doubled() -> None:
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    c = a + b
    d = c * 2
    e = d.sum()
    assert (
        dg.viz.graph(e, saved=False, shapes=False).text()
        == """\
[0] e               -> [1]  (float32[])  (GraphRoot)
[1] SumBackward0    -> [2]
[2] MulBackward0    -> [3]  (makes d)
[3] AddBackward0    -> [4], [5]  (makes c)
[4] AccumulateGrad  -> [6]
[5] AccumulateGrad  -> [7]
[6] a               (float32[2])
[7] b               (float32[2])
5 nodes, 4 B saved"""
    )


def test_graph_of_a_chain_of_scalars_as_mermaid() -> None:
    x = dg.tensor(3.0, requires_grad=True)
    a = x * 2
    b = a + 1
    loss = b**2
    assert (
        dg.viz.graph(loss, saved=False).mermaid()
        == """\
flowchart TD
  n0["loss<br/>float32[]<br/>GraphRoot"]:::root
  n1["PowBackward0"]:::operator
  n2["AddBackward0<br/>makes b"]:::operator
  n3["MulBackward0<br/>makes a"]:::operator
  n4["AccumulateGrad"]:::AccumulateGrad
  n5(["x<br/>float32[]"]):::leaf
  n0 --> n1
  n1 -->|"float32[]"| n2
  n2 -->|"float32[]"| n3
  n3 -->|"float32[]"| n4
  n4 --> n5
  classDef root fill:#fef3c7,stroke:#d97706,color:#1f2937
  classDef operator fill:#eff6ff,stroke:#3b82f6,color:#1f2937
  classDef AccumulateGrad fill:#dcfce7,stroke:#16a34a,color:#1f2937
  classDef leaf fill:#f7fee7,stroke:#65a30d,color:#1f2937
"""
    )


def test_graph_of_a_tensor_that_is_used_twice_as_dot() -> None:
    a = leaf(1.0, 2.0)
    c = a + a
    assert (
        dg.viz.graph(c).dot()
        == """\
digraph backward {
  node [shape=box, style="filled,rounded", fontname="Helvetica", fontsize=11]
  edge [fontname="Helvetica", fontsize=9]
  n0 [label="c\\nfloat32[2]\\nGraphRoot", fillcolor="#fef3c7", color="#d97706"]
  n1 [label="AddBackward0", fillcolor="#eff6ff", color="#3b82f6"]
  n2 [label="AccumulateGrad", fillcolor="#dcfce7", color="#16a34a"]
  n3 [label="a\\nfloat32[2]", fillcolor="#f7fee7", color="#65a30d"]
  n0 -> n1
  n1 -> n2 [label="float32[2]"]
  n1 -> n2 [label="float32[2]"]
  n2 -> n3
}
"""
    )


# --- boxes and arrows -----------------------------------------------------------------------------


def some_loss() -> dg.Tensor:
    x, w = dg.ones(2, 6, requires_grad=True), leaf(1.0, 2.0)
    a, b, c = x.chunk(3, 1)
    return ((a * b).sin() + a.cos() * c).sum(1).mul(w).sum() + x.sum() * w.sum()


def test_arrows_are_the_edges_of_the_graph() -> None:
    loss = some_loss()
    picture = dg.viz.graph(loss)
    order = visits([(loss.grad_fn, 0)])
    edges = Counter(
        (order.index(node), order.index(below), nr)
        for node in order
        for below, nr in node.next_functions
        if below is not None
    )
    boxes = picture.shown.boxes
    drawn = Counter(
        (boxes[a.source].order, boxes[a.target].order, a.output_nr)
        for a in picture.shown.arrows
        if boxes[a.source].order is not None and boxes[a.target].order is not None
    )
    assert drawn == edges
    assert len(edges) > 15


def test_each_node_is_one_box() -> None:
    loss = some_loss()
    shown = dg.viz.graph(loss).shown.boxes
    titles = [box.title for box in shown if box.order is not None]
    order = visits([(loss.grad_fn, 0)])
    assert titles == [node.name().rpartition("::")[2] for node in order]
    assert titles.count("AccumulateGrad") == 2


def test_svg_has_all_boxes_and_arrows() -> None:
    picture = dg.viz.graph(some_loss())
    parsed = Parsed(picture.svg())
    assert len(parsed.boxes) == len(picture.shown.boxes)
    assert len(parsed.arrows) == len(picture.shown.arrows)


def test_order_of_boxes_is_that_in_which_backward_runs() -> None:
    loss = some_loss()
    order = visits([(loss.grad_fn, 0)])
    ran: list[Any] = []
    for node in order:
        node.register_hook(lambda *_, node=node: ran.append(node))
    loss.backward()
    assert ran == order


def test_several_roots_are_drawn_in_one_picture() -> None:
    x = leaf(1.0)
    y, z = x.sin(), x.cos()
    kinds = Counter(box.kind for box in dg.viz.graph([y, z]).shown.boxes)
    assert kinds == {"root": 2, "operator": 2, "AccumulateGrad": 1, "leaf": 1}


def test_a_node_can_be_the_root() -> None:
    y = leaf(1.0).sin()
    assert y.grad_fn is not None
    text = dg.viz.graph(y.grad_fn, saved=False).text()
    assert text.startswith("[0] SinBackward0")


def test_a_leaf_is_drawn_with_its_accumulator() -> None:
    x = leaf(1.0)
    assert [b.title for b in dg.viz.graph(x).shown.boxes] == ["x", "AccumulateGrad", "x"]


class Square(dg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * grad


def kinds_of(tensor: dg.Tensor) -> list[tuple[str, str]]:
    boxes = dg.viz.graph(tensor).shown.boxes
    return [(box.title, box.kind) for box in boxes if box.order is not None]


def test_kinds_of_nodes() -> None:
    x = leaf(1.0, 2.0)
    y = checkpoint(lambda x: x.sin(), Square.apply(x), use_reentrant=False)
    z = checkpoint(lambda x: x.cos(), y, use_reentrant=True)
    assert kinds_of(z) == [
        ("CheckpointFunctionBackward", "checkpoint"),
        ("SinBackward0", "checkpoint"),
        ("SquareBackward", "Function"),
        ("AccumulateGrad", "AccumulateGrad"),
    ]


def lines_of(tensor: dg.Tensor, place: int) -> list[str]:
    return next(box.lines for box in dg.viz.graph(tensor).shown.boxes if box.order == place)


def test_what_a_checkpoint_recomputes_is_said() -> None:
    y = checkpoint(lambda x: x.sin(), leaf(1.0, 2.0), use_reentrant=False)
    assert lines_of(y, 0) == ["saved self: recomputed"]


def test_what_a_hook_packed_is_said() -> None:
    with dg.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
        y = leaf(1.0, 2.0).sin()
    assert lines_of(y, 0) == ["saved self: float16[2], 4 B (packed)"]


def test_hooks_are_counted() -> None:
    x = leaf(1.0, 2.0)
    y = x.sin()
    y.register_hook(lambda grad: None)
    y.register_hook(lambda grad: None)
    y.retain_grad()
    y.grad_fn.register_prehook(lambda grads: None)  # type: ignore[union-attr]
    y.grad_fn.register_hook(lambda inputs, outputs: None)  # type: ignore[union-attr]
    x.register_post_accumulate_grad_hook(lambda leaf: None)
    assert lines_of(y, 0)[1:] == ["2 tensor hooks", "1 pre-hook", "1 hook", "retains grad"]
    assert lines_of(y, 1) == ["1 post-accumulate hook"]


def test_a_saved_tensor_that_was_modified_is_marked() -> None:
    y = leaf(1.0, 2.0).exp()
    y.add_(1)
    (box,) = [b for b in dg.viz.graph(y).shown.boxes if b.title == "ExpBackward0"]
    assert box.lines == ["saved result: float32[2], 8 B, modified: version 0, now 1"]
    assert box.warnings == set(box.lines)


def test_a_freed_graph_is_drawn_and_marked() -> None:
    y = leaf(1.0, 2.0).sin().sum()
    y.backward()
    picture = dg.viz.graph(y)
    assert [box.freed for box in picture.shown.boxes] == [False, False, True, False, False]
    assert "freed" in picture.text()
    assert "freed" in [text for text, _ in Parsed(picture.svg()).texts]


def test_a_node_of_several_outputs_numbers_what_arrives() -> None:
    a, b = dg.ones(2, 4, requires_grad=True).chunk(2, 1)
    texts = [text for text, _ in Parsed(dg.viz.graph(a * b).svg()).texts]
    assert {"0: float32[2, 2]", "1: float32[2, 2]"} <= set(texts)


# --- names ----------------------------------------------------------------------------------------


class Model:
    """Something with the parameters of a module."""

    def __init__(self) -> None:
        self.weight = leaf(1.0, 2.0)

    def named_parameters(self) -> list[tuple[str, dg.Tensor]]:
        return [("weight", self.weight)]


def leaf_names(picture: Any) -> list[str]:
    return [box.title for box in picture.shown.boxes if box.kind == "leaf"]


def test_leaves_are_called_as_the_callers_variables_are() -> None:
    model, parts, table = Model(), [leaf(1.0, 2.0)], {"b": leaf(1.0, 2.0)}
    y = model.weight * parts[0] + table["b"]
    assert sorted(leaf_names(dg.viz.graph(y))) == ["model.weight", "parts[0]", "table['b']"]


def test_a_variable_names_a_tensor_before_a_list_that_holds_it() -> None:
    parts = [leaf(1.0, 2.0)]
    x = parts[0]
    assert leaf_names(dg.viz.graph(x.sin())) == ["x"]


@pytest.mark.parametrize(
    "given",
    [lambda x: {"weight": x}, lambda x: [("weight", x)], lambda x: Model()],
    ids=["dict", "pairs", "module"],
)
def test_given_names_come_first(given: Callable[[dg.Tensor], Any]) -> None:
    x = leaf(1.0, 2.0)
    names = given(x)
    x = names.weight if isinstance(names, Model) else x
    assert leaf_names(dg.viz.graph(x.sin(), names)) == ["weight"]


@pytest.mark.parametrize("names", [[1], [("x", 1)], {1: dg.ones(1)}])
def test_names_of_something_else_raise(names: Any) -> None:
    with pytest.raises(TypeError, match="expected pairs of a name and a Tensor"):
        dg.viz.graph(leaf(1.0).sin(), names)


def test_names_are_escaped_in_every_form() -> None:
    x = leaf(1.0, 2.0)
    picture = dg.viz.graph(x.sin(), {'<b>"]\\x"&': x}, saved=False)
    assert '<b>"]\\x"&' in [text for text, _ in Parsed(picture.svg()).texts]
    assert "#60;b#62;#34;]#92;x#34;#38;" in picture.mermaid()
    assert '<b>\\"]\\\\x\\"&' in picture.dot()


def test_long_names_are_shortened_in_the_middle() -> None:
    x = leaf(1.0, 2.0)
    (name,) = leaf_names(dg.viz.graph(x.sin(), {"a" * 50 + "z" * 50: x}))
    assert name == "a" * 20 + "…" + "z" * 19


# --- what it is and is not ------------------------------------------------------------------------


def test_a_notebook_gets_svg_and_text() -> None:
    picture = dg.viz.graph(leaf(1.0).sin())
    bundle = picture._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg")
    assert bundle["text/plain"] == repr(picture) == picture.text()


def test_a_picture_keeps_neither_nodes_nor_arrays(no_gc: None) -> None:
    y = leaf(1.0, 2.0).sin()
    node = weakref.ref(y.grad_fn)
    array = weakref.ref(y.grad_fn.saved[0])  # type: ignore[union-attr, attr-defined]
    picture = dg.viz.graph(y)
    del y
    assert node() is None
    assert array() is None
    assert picture.svg()


@pytest.mark.parametrize(
    ("name", "start"),
    [("g.svg", "<svg"), ("g.mmd", "flowchart"), ("g.dot", "digraph"), ("g.txt", "[0] output")],
)
def test_save_writes_what_the_ending_says(tmp_path: Path, name: str, start: str) -> None:
    dg.viz.graph(leaf(1.0).sin()).save(tmp_path / name)
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


def test_save_refuses_another_ending(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Let it end in one of"):
        dg.viz.graph(leaf(1.0).sin()).save(tmp_path / "g.png")


def test_a_tensor_without_history_raises() -> None:
    with pytest.raises(ValueError, match="has no backward graph: it does not require grad"):
        dg.viz.graph(dg.ones(2))


def test_something_else_raises() -> None:
    with pytest.raises(TypeError, match="Pass the loss, or its grad_fn"):
        dg.viz.graph(3.0)  # type: ignore[arg-type]


def test_nothing_raises() -> None:
    with pytest.raises(ValueError, match="Pass at least one"):
        dg.viz.graph([])


# --- Graphviz -------------------------------------------------------------------------------------


def test_engine_dot_raises_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="Install Graphviz, or leave out `engine`"):
        dg.viz.graph(leaf(1.0).sin(), engine="dot").svg()


def test_unknown_engine_raises() -> None:
    with pytest.raises(ValueError, match="expected 'auto', 'dot' or 'own'"):
        dg.viz.graph(leaf(1.0).sin(), engine="neato").svg()


@pytest.fixture
def dot_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a program `dot` of a given text on the PATH."""

    def install(text: str) -> None:
        program = tmp_path / "dot"
        program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IEXEC)
        monkeypatch.setenv("PATH", str(tmp_path))

    return install


def test_a_picture_uses_graphviz_where_it_is(dot_program: Callable[[str], None]) -> None:
    lines = ["graph 1 3 5"]
    lines += [f"node {i} 2 {4 - i} 1 0.8 x solid box black grey" for i in range(4)]
    lines += [f"edge {i} {i + 1} 4 2 1 2 1 2 1 2 1 solid black" for i in range(3)]
    dot_program("\n".join(f"echo '{line}'" for line in [*lines, "stop"]))
    boxes = Parsed(dg.viz.graph(leaf(1.0).sin()).svg()).boxes
    middle = (boxes[0].left + boxes[0].right) / 2
    assert [(b.left + b.right) / 2 for b in boxes] == pytest.approx([middle] * 4, abs=0.2)
    # boxes of two lines less and one line less in cells of one inch
    assert boxes[3].top - boxes[0].top == pytest.approx(3 * 72 + 7.5, abs=0.2)


def test_where_graphviz_fails_the_own_layout_is_used(dot_program: Callable[[str], None]) -> None:
    y = leaf(1.0).sin()
    own = dg.viz.graph(y, engine="own").svg()
    dot_program("exit 1")
    assert dg.viz.graph(y).svg() == own

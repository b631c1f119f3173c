"""Pictures of the graphs that three introductions to autograd draw: the same nodes, the same edges.

`drawn` has the arrows of each text's own diagram, one a line, in its order of nodes. A leaf's
accumulator is called there by its leaf; a node that makes a tensor with a name, by both.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg
from dyngraph.viz.outline import ACCUMULATE, LEAF, ROOT


def leaf(*values: float) -> dg.Tensor:
    return dg.tensor(values, requires_grad=True)


def matrix_product() -> Any:
    a, b = dg.ones(2, 3, requires_grad=True), dg.ones(3, 2, requires_grad=True)
    c = a @ b
    loss = c.sum()
    return dg.viz.graph(loss)


def added_to_itself() -> Any:
    a = leaf(1.0, 2.0, 3.0)
    c = a + a
    return dg.viz.graph(c)


def followed_line_by_line() -> Any:
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    c = a + b
    d = c * 2
    e = d.sum()
    return dg.viz.graph(e)


def exercise() -> Any:
    a, b = leaf(1.0, 2.0, 3.0), leaf(4.0, 5.0, 6.0)
    c = a * b
    d = c.sum()
    e = a.exp()
    f = e.sum()
    loss = d + f
    return dg.viz.graph(loss)


def written_view() -> Any:
    x = leaf(1.0, 2.0, 3.0)
    z = x.clone()  # a view of the leaf itself may not be written to
    y = z[0]
    y *= 2
    loss = y.sum()
    return dg.viz.graph(loss)


def constant_factor() -> Any:
    x, w = leaf(1.0, 2.0, 3.0), dg.ones(3)
    y = x * w
    return dg.viz.graph(y)


def relu_chain() -> Any:
    x = dg.tensor(2.0, requires_grad=True)
    a = x * 3
    b = a.relu()
    loss = b.sum()
    return dg.viz.graph(loss)


def power() -> Any:
    x = leaf(1.0, 2.0, 3.0, 4.0, 5.0)
    y = x.pow(2)
    return dg.viz.graph(y)


def chain_of_scalars() -> Any:
    x = dg.tensor(3.0, requires_grad=True)
    a = x * 2
    b = a + 1
    loss = b**2
    return dg.viz.graph(loss)


DRAWN = {
    # the first text, section 7.1
    matrix_product: """
        GraphRoot --> SumBackward0
        SumBackward0 --> MmBackward0 (c)
        MmBackward0 (c) --> AccumulateGrad a
        MmBackward0 (c) --> AccumulateGrad b
    """,
    # 7.3.1, "a DAG, not a tree"
    added_to_itself: """
        GraphRoot --> AddBackward0
        AddBackward0 --> AccumulateGrad a
        AddBackward0 --> AccumulateGrad a
    """,
    # 7.4.5
    followed_line_by_line: """
        GraphRoot --> SumBackward0
        SumBackward0 --> MulBackward0 (d)
        MulBackward0 (d) --> AddBackward0 (c)
        AddBackward0 (c) --> AccumulateGrad a
        AddBackward0 (c) --> AccumulateGrad b
    """,
    # 7.11, as its hint says: two edges lead to the accumulator of a
    exercise: """
        GraphRoot --> AddBackward0
        AddBackward0 --> SumBackward0 (d)
        AddBackward0 --> SumBackward0 (f)
        SumBackward0 (d) --> MulBackward0 (c)
        SumBackward0 (f) --> ExpBackward0 (e)
        MulBackward0 (c) --> AccumulateGrad a
        MulBackward0 (c) --> AccumulateGrad b
        ExpBackward0 (e) --> AccumulateGrad a
    """,
    # the second text: an input without a gradient has no edge
    constant_factor: """
        GraphRoot --> MulBackward0
        MulBackward0 --> AccumulateGrad x
    """,
    relu_chain: """
        GraphRoot --> SumBackward0
        SumBackward0 --> ReluBackward0 (b)
        ReluBackward0 (b) --> MulBackward0 (a)
        MulBackward0 (a) --> AccumulateGrad x
    """,
    power: """
        GraphRoot --> PowBackward0
        PowBackward0 --> AccumulateGrad x
    """,
    # the third text
    chain_of_scalars: """
        GraphRoot --> PowBackward0
        PowBackward0 --> AddBackward0 (b)
        AddBackward0 (b) --> MulBackward0 (a)
        MulBackward0 (a) --> AccumulateGrad x
    """,
}


def arrows_in(text: str) -> Counter[tuple[str, str]]:
    """The arrows of a diagram: source and target."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return Counter((source, target) for source, _, target in (x.partition(" --> ") for x in lines))


def arrows_of(picture: Any) -> Counter[tuple[str, str]]:
    """The arrows of a picture, but those from an accumulator to its leaf."""
    boxes = picture.shown.boxes
    leaves = {a.source: boxes[a.target].title for a in picture.shown.arrows}
    names = []
    for i, box in enumerate(boxes):
        made = [line.removeprefix("makes ") for line in box.lines if line.startswith("makes ")]
        if box.kind == ACCUMULATE:
            names.append(f"{box.title} {leaves[i]}")
        elif box.kind == ROOT:
            names.append("GraphRoot")
        else:
            names.append(f"{box.title} ({made[0]})" if made else box.title)
    kinds = [box.kind for box in boxes]
    return Counter(
        (names[a.source], names[a.target]) for a in picture.shown.arrows if kinds[a.target] != LEAF
    )


@pytest.mark.parametrize("program", DRAWN, ids=lambda program: program.__name__)
def test_picture_has_the_nodes_and_edges_that_the_text_draws(program: Callable[[], Any]) -> None:
    picture, drawn = program(), arrows_in(DRAWN[program])
    assert arrows_of(picture) == drawn
    nodes = {name for pair in drawn for name in pair}
    leaves = {name for name in nodes if name.startswith("AccumulateGrad")}
    assert len(picture.shown.boxes) == len(nodes) + len(leaves)  # each leaf has a box of its own


@pytest.mark.parametrize("program", DRAWN, ids=lambda program: program.__name__)
def test_svg_shows_them_too(program: Callable[[], Any]) -> None:
    drawn = arrows_in(DRAWN[program])
    svg = program().svg()
    for name in {name.partition(" ")[0] for pair in drawn for name in pair}:
        assert f">{name}</text>" in svg


def test_what_the_texts_say_is_saved_stands_in_the_boxes() -> None:
    saved = {
        box.title: [line for line in box.lines if line.startswith("saved")]
        for picture in (matrix_product(), power(), exercise())
        for box in picture.shown.boxes
    }
    assert saved["MmBackward0"] == [
        "saved self: float32[2, 3], 24 B",
        "saved mat2: float32[3, 2], 24 B",
    ]
    assert saved["PowBackward0"] == ["saved self: float32[5], 20 B"]
    assert saved["MulBackward0"] == [
        "saved self: float32[3], 12 B",
        "saved other: float32[3], 12 B",
    ]
    assert saved["ExpBackward0"] == ["saved result: float32[3], 12 B"]


def test_a_view_that_is_written_to_is_drawn_through_its_base() -> None:
    titles = [box.title for box in written_view().shown.boxes if box.order is not None]
    assert titles == [
        "SumBackward0",
        "AsStridedBackward0",
        "CopySlices",
        "MulBackward0",
        "SelectBackward0",
        "CloneBackward0",
        "AccumulateGrad",
    ]

"""Large graphs: folded into few boxes, in a time that grows with the graph."""

from collections import Counter

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.graph.node import Node
from dyngraph.graph.passing import PassNode


def chain(length: int) -> dg.Tensor:
    """A loop whose body is three operators, with a shared leaf."""
    w = dg.tensor([0.5], requires_grad=True)
    y = dg.tensor([1.0], requires_grad=True)
    for _ in range(length):
        y = (y * w).sin() + 1
    return y


@pytest.fixture(scope="module")
def folded() -> dg.viz.GraphPicture:
    return dg.viz.graph(chain(2000), saved=False)


def test_a_body_that_repeats_is_one_box(folded: dg.viz.GraphPicture) -> None:
    (box,) = [b for b in folded.shown.boxes if b.kind == "folded"]
    times, _, nodes = box.title.partition(" × ")
    assert int(times) * int(nodes.partition(" ")[0]) == len(box.members)
    assert len(box.members) > 5950
    assert sorted(box.lines) == ["2 × AddBackward0", "2 × MulBackward0", "2 × SinBackward0"]


def test_folded_boxes_stand_for_all_nodes(folded: dg.viz.GraphPicture) -> None:
    members = [i for box in folded.shown.boxes for i in box.members]
    single = [box for box in folded.shown.boxes if not box.members]
    assert len(members) + len(single) == len(folded.whole.boxes)
    assert folded.shown.nodes == 6002


def test_folded_arrows_count_the_edges_that_they_stand_for(folded: dg.viz.GraphPicture) -> None:
    place: dict[int, int] = {}
    for i, box in enumerate(folded.shown.boxes):
        place.update(dict.fromkeys(box.members, i))
    single = [i for i in range(len(folded.whole.boxes)) if i not in place]
    kept = [i for i, box in enumerate(folded.shown.boxes) if not box.members]
    place.update(zip(single, kept, strict=True))
    edges = Counter(
        (place[a.source], place[a.target])
        for a in folded.whole.arrows
        if place[a.source] != place[a.target]
    )
    drawn: Counter[tuple[int, int]] = Counter()
    for arrow in folded.shown.arrows:
        drawn[arrow.source, arrow.target] += arrow.count
    assert drawn == edges


def test_arrows_of_a_folded_picture_lead_down(folded: dg.viz.GraphPicture) -> None:
    assert all(arrow.source < arrow.target for arrow in folded.shown.arrows)


def test_inside_shows_one_body(folded: dg.viz.GraphPicture) -> None:
    number = next(i for i, box in enumerate(folded.shown.boxes) if box.members)
    inside = folded.inside(number)
    assert Counter(box.title for box in inside.shown.boxes) == {
        "AddBackward0": 2,
        "MulBackward0": 2,
        "SinBackward0": 2,
    }
    assert len(inside.shown.arrows) == 5


def test_inside_of_a_node_raises(folded: dg.viz.GraphPicture) -> None:
    with pytest.raises(ValueError, match="nothing is folded into it"):
        folded.inside(0)


def test_what_does_not_repeat_is_folded_with_its_neighbours() -> None:
    y = dg.tensor([1.0], requires_grad=True)
    for i in range(500):
        y = y.sin() if (i * i) % 7 < 3 else y.cos() if i % 11 < 5 else -y
    picture = dg.viz.graph(y, limit=40)
    assert 10 < len(picture.shown.boxes) <= 40
    assert picture.shown.nodes == 501


def test_a_graph_of_many_nodes_without_order_is_a_picture() -> None:
    x = dg.tensor([1.0], requires_grad=True)
    ys = [x.sin() if i % 3 else x.cos() for i in range(3000)]
    picture = dg.viz.graph(ys)
    assert len(picture.shown.boxes) <= 300
    assert picture.svg()


@pytest.fixture(scope="module")
def large() -> Node:
    """The first of 100,000 nodes, which pass a gradient on."""
    node, _ = dg.tensor([1.0], requires_grad=True).gradient_edge()
    assert node is not None
    for _ in range(99_999):
        node = PassNode((node, 0), (((1,), np.dtype("float32")),))
    return node


def test_a_graph_of_a_hundred_thousand_nodes_is_a_small_picture(large: Node) -> None:
    picture = dg.viz.graph(large)
    assert picture.shown.nodes == 100_000
    assert len(picture.shown.boxes) < 20
    assert len(picture.svg()) + len(picture.mermaid()) + len(picture.text()) < 20_000


def test_the_bytes_of_a_hundred_thousand_nodes_are_told(large: Node) -> None:
    assert dg.viz.saved(large).total == 0


# --- scopes ---------------------------------------------------------------------------------------


def tower(x: dg.Tensor, *, layers: int) -> dg.Tensor:
    with dg.viz.scope("tower"):
        for i in range(layers):
            with dg.viz.scope(f"layer {i}"):
                for _ in range(20):
                    x = x.sin().cos()
    return x


def titles(picture: dg.viz.GraphPicture) -> list[str]:
    return [box.title for box in picture.shown.boxes]


def test_scopes_are_folded_as_small_as_the_limit_allows() -> None:
    y = tower(dg.ones(1, requires_grad=True), layers=3).sum()
    layers = ["layer 2", "layer 1", "layer 0"]
    assert titles(dg.viz.graph(y, limit=20)) == ["y", "SumBackward0", *layers]
    assert titles(dg.viz.graph(y, limit=4)) == ["y", "SumBackward0", "tower"]


def test_what_is_outside_of_scopes_stays_as_it_is() -> None:
    y = tower(dg.ones(1, requires_grad=True), layers=2)
    z = tower(y.exp(), layers=1).tanh()
    expected = ["z", "TanhBackward0", "layer 0", "ExpBackward0", "layer 1", "layer 0"]
    assert titles(dg.viz.graph(z, limit=20)) == expected


def test_a_leaf_of_several_scopes_stays_by_itself() -> None:
    x = w = dg.ones(1, requires_grad=True)
    v = dg.ones(1, requires_grad=True)
    for name in ("first", "second"):
        with dg.viz.scope(name):
            for _ in range(10):
                x = x.sin() * w
    with dg.viz.scope("third"):
        z = x * v
    picture = dg.viz.graph(z, limit=8)
    assert titles(picture) == ["z", "third", "second", "first", "AccumulateGrad"]
    assert {a.target for a in picture.shown.arrows if a.source == 2} == {3, 4}


def test_inside_of_a_scope_are_its_nodes() -> None:
    y = tower(dg.ones(1, requires_grad=True), layers=2)
    inside = dg.viz.graph(y, limit=5).inside(1)
    assert Counter(titles(inside)) == {"SinBackward0": 20, "CosBackward0": 20}


def two_layers() -> dg.nn.Module:
    nn = dg.nn
    return nn.Sequential(nn.Sequential(nn.Tanh(), nn.Sigmoid()), nn.Tanh())


def test_modules_are_folded_by_their_names_and_classes() -> None:
    model = two_layers()
    with dg.viz.modules(model):
        y = model(dg.ones(1, requires_grad=True)).sin()
    ends = ["y", "SinBackward0"]
    assert titles(dg.viz.graph(y, limit=3)) == [*ends, "Sequential"]
    nodes = ["TanhBackward0", "SigmoidBackward0"]  # modules of one node
    assert titles(dg.viz.graph(y, limit=5)) == [*ends, *nodes, "0.0 (Tanh)"]


def test_modules_leave_no_hook_behind() -> None:
    model = two_layers()
    with dg.viz.modules(model):
        pass
    hooks = [(m._forward_pre_hooks, m._forward_hooks) for m in model.modules()]
    assert not any(pre or post for pre, post in hooks)


def test_a_module_that_fails_closes_its_scope() -> None:
    model = two_layers()
    with dg.viz.modules(model), pytest.raises(TypeError, match="must be Tensor"):
        model(None)
    y = dg.ones(1, requires_grad=True).sin().cos()
    assert titles(dg.viz.graph(y, limit=3))[0] != "Sequential"
    assert dg.viz.graph(y).whole.boxes[1].scopes == ()


def test_modules_of_something_else_raise() -> None:
    with pytest.raises(TypeError, match="that is no module"), dg.viz.modules(3):
        pass

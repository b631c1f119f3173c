"""Large graphs: folded into few boxes, in a time that grows with the graph."""

from collections import Counter
from typing import Any

import pytest

import dyngraph as dg


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


def test_inside_of_a_scope_are_its_nodes() -> None:
    y = tower(dg.ones(1, requires_grad=True), layers=2)
    inside = dg.viz.graph(y, limit=5).inside(1)
    assert Counter(titles(inside)) == {"SinBackward0": 20, "CosBackward0": 20}


class Handle:
    def __init__(self, hooks: list[object], hook: object) -> None:
        self.hooks, self.hook = hooks, hook

    def remove(self) -> None:
        self.hooks.remove(self.hook)


class Layer:
    """A module as far as `dg.viz.modules` asks."""

    def __init__(self, name: str = "") -> None:
        self.children = {name: Layer()} if name else {}
        self.pre: list[Any] = []
        self.post: list[Any] = []

    def named_modules(self) -> list[tuple[str, "Layer"]]:
        return [("", self), *self.children.items()]

    def register_forward_pre_hook(self, hook: object) -> Handle:
        self.pre.append(hook)
        return Handle(self.pre, hook)

    def register_forward_hook(self, hook: object, *, always_call: bool) -> Handle:
        assert always_call
        self.post.append(hook)
        return Handle(self.post, hook)

    def __call__(self, x: dg.Tensor) -> dg.Tensor:
        for hook in self.pre:
            hook(self, (x,))
        for child in self.children.values():
            x = child(x).exp()
        y = x.sin().cos().tanh()
        for hook in self.post:
            hook(self, (x,), y)
        return y


def test_modules_are_folded_by_their_names() -> None:
    model = Layer("first")
    with dg.viz.modules(model):
        y = model(dg.ones(1, requires_grad=True))
    assert titles(dg.viz.graph(y, limit=6)) == ["y", "Layer", "first", "leaf"]
    assert titles(dg.viz.graph(y, limit=3)) == ["y", "Layer", "leaf"]


def test_modules_leave_no_hook_behind() -> None:
    model = Layer("first")
    with dg.viz.modules(model):
        pass
    assert model.pre == model.post == []


def test_modules_of_something_else_raise() -> None:
    with pytest.raises(TypeError, match="that is no module"), dg.viz.modules(3):
        pass

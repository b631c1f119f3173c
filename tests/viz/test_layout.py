"""Pictures are readable: nothing overlaps, nothing is cut off, no arrow crosses a box."""

import random

import pytest

import dyngraph as dg
from dyngraph.viz.drawing import Drawing
from dyngraph.viz.graphviz import _answer
from dyngraph.viz.layout import Layout, Line, Size, lay_out
from dyngraph.viz.lettering import escape, in_bytes, in_seconds, width_of
from tests.viz.pictures import Parsed, Rectangle, along


def random_graph(seed: int) -> tuple[list[Size], list[Line], list[list[float]]]:
    """Boxes of many sizes, with arrows near and far, several entries and shared ends."""
    rng = random.Random(seed)
    count = rng.randrange(20, 50)
    entries = [rng.choice([[0.0], [-40.0, 40.0]]) for _ in range(count)]
    sizes = []
    for mine in entries:
        width = rng.uniform(100, 220)
        sizes.append(Size(width, rng.uniform(24, 90), width + rng.choice([0, 30]) * len(mine)))
    lines = []
    for target in range(1, count):
        for position in range(rng.randrange(1, 4)):
            source = max(rng.randrange(target) if rng.random() < 0.3 else target - 1, 0)
            lines.append(Line(source, position, target, rng.randrange(len(entries[target]))))
    return sizes, lines, entries


def rectangles(layout: Layout, sizes: list[Size]) -> list[Rectangle]:
    return [
        Rectangle(p.x - s.width / 2, p.y, p.x + s.width / 2, p.y + s.height)
        for p, s in zip(layout.places, sizes, strict=True)
    ]


@pytest.fixture(params=range(4), ids="graph{}".format)
def laid_out(request: pytest.FixtureRequest) -> tuple[Layout, list[Size], list[Line]]:
    sizes, lines, entries = random_graph(request.param)
    return lay_out(sizes, lines, entries), sizes, lines


Laid = tuple[Layout, list[Size], list[Line]]


def test_boxes_do_not_overlap(laid_out: Laid) -> None:
    layout, sizes, _ = laid_out
    boxes = rectangles(layout, sizes)
    assert not [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)]


def test_no_arrow_crosses_a_box(laid_out: Laid) -> None:
    layout, sizes, lines = laid_out
    boxes = rectangles(layout, sizes)
    crossed = [
        (line, box)
        for line, path in zip(lines, layout.paths, strict=True)
        for x, y in along(path)
        for box in boxes
        if box.has(x, y)
    ]
    assert crossed == []


def test_arrows_start_at_their_source_and_end_at_their_target(laid_out: Laid) -> None:
    layout, sizes, lines = laid_out
    boxes = rectangles(layout, sizes)
    for line, path, end in zip(lines, layout.paths, layout.ends, strict=True):
        x, y = next(along(path))
        source, target = boxes[line.source], boxes[line.target]
        assert source.left < x < source.right
        assert y == pytest.approx(source.bottom, abs=0.1)
        assert target.left < end.x < target.right
        assert end.y == target.top


def test_arrows_lead_down(laid_out: Laid) -> None:
    layout, _, lines = laid_out
    assert all(layout.places[a.source].y < layout.places[a.target].y for a in lines)


def test_everything_is_inside_the_picture(laid_out: Laid) -> None:
    layout, sizes, _ = laid_out
    whole = Rectangle(-0.01, -0.01, layout.width + 0.01, layout.height + 0.01)
    assert all(whole.holds(box) for box in rectangles(layout, sizes))


def branches() -> dg.Tensor:
    """Diamonds, a shared leaf, a node of several outputs, a long way round, hooks."""
    x, w = dg.randn(2, 6, requires_grad=True), dg.randn(2, requires_grad=True)
    a, b, c = x.chunk(3, 1)
    y = (a * b).sin() + a.cos() * c
    y.register_hook(lambda grad: grad)
    return (y.sum(1) * w + w).sum() + x.sum()


@pytest.fixture(scope="module")
def picture() -> Parsed:
    return Parsed(dg.viz.graph(branches(), engine="own").svg())


def test_boxes_of_a_picture_do_not_overlap(picture: Parsed) -> None:
    assert len(picture.boxes) > 15
    pairs = [(a, b) for i, a in enumerate(picture.boxes) for b in picture.boxes[:i]]
    assert not any(a.overlaps(b) for a, b in pairs)


def test_labels_overlap_neither_boxes_nor_each_other(picture: Parsed) -> None:
    assert len(picture.labels) > 10
    rest = [*picture.boxes, *picture.labels]
    assert not [(a, b) for a in picture.labels for b in rest if a is not b and a.overlaps(b)]


def test_no_text_is_cut_off(picture: Parsed) -> None:
    assert all(picture.whole.holds(extent) for _, extent in picture.texts)


def test_texts_of_a_box_are_inside_it(picture: Parsed) -> None:
    homes = [*picture.boxes, *picture.labels]
    legend = max(box.bottom for box in picture.boxes)
    graph = [extent for _, extent in picture.texts if extent.top < legend]
    assert all(any(home.holds(extent) for home in homes) for extent in graph)


def test_no_arrow_of_a_picture_crosses_a_label_of_another_place(picture: Parsed) -> None:
    # an arrow may cross the label that stands on its own last part
    for path in picture.arrows:
        crossed = [n for n in picture.labels if any(n.has(x, y, 2) for x, y in along(path))]
        assert len(crossed) <= 1


def test_picture_brings_no_style_sheet_no_script_and_no_identifier() -> None:
    svg = dg.viz.graph(branches(), engine="own").svg()
    assert not any(word in svg for word in ("<style", "<script", " id=", "href"))


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "0.977 KiB"), (1 << 20, "1 MiB"), (-2048, "-2 KiB")],
)
def test_bytes_read(count: int, text: str) -> None:
    assert in_bytes(count) == text


@pytest.mark.parametrize(("seconds", "text"), [(2.0, "2 s"), (0.002, "2 ms"), (2e-6, "2 us")])
def test_seconds_read(seconds: float, text: str) -> None:
    assert in_seconds(seconds) == text


def test_unknown_letters_are_taken_as_wide() -> None:
    assert width_of("图", 10) == 10.0


def test_escape_leaves_no_control_character() -> None:
    assert escape('a<b>\x00"\n') == "a&lt;b&gt;·&quot;·"


def test_drawing_without_parts_is_a_picture() -> None:
    assert Parsed(Drawing().svg(10, 10, "nothing")).whole == Rectangle(-12, -12, 22, 22)


PLAIN = """graph 1 3.5 2.5
node 0 1.75 2.2 1.4 0.6 "" solid box black lightgrey
node 1 0.75 0.3 1.4 0.6 "" solid box black lightgrey
node 2 2.75 0.3 1.4 0.6 "" solid box black lightgrey
edge 0 1 4 1.75 1.9 1.5 1.5 0.75 1 0.75 0.6 solid black
edge 0 2 4 1.75 1.9 2 1.5 2.75 1 2.75 0.6 solid black
stop
"""


def test_what_graphviz_answers_becomes_a_layout() -> None:
    sizes = [Size(90, 16.2, 100)] * 3
    lines = [Line(0, 0, 2, 0), Line(0, 1, 1, 0)]
    layout = _answer(PLAIN, sizes, lines, [[0.0]] * 3)
    boxes = rectangles(layout, sizes)
    assert layout.width == pytest.approx(252)
    assert [box.left + 45 for box in boxes] == pytest.approx([126, 54, 198])
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert [list(along(p))[-1][0] for p in layout.paths] == pytest.approx([198, 54])
    assert [end.y for end in layout.ends] == pytest.approx([boxes[2].top, boxes[1].top])

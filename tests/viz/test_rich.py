"""What a notebook shows for a tensor, a node, a table."""

import xml.etree.ElementTree as ET
from typing import Any

import dyngraph as dg
from dyngraph.viz.charts import MOST_POINTS
from dyngraph.viz.memory import Sample
from dyngraph.viz.table import MOST_ROWS, Table


def html_of(value: Any) -> str:
    html = value._repr_html_()
    ET.fromstring(f"<div>{html}</div>")  # well formed
    return html


def test_a_tensor_shows_its_values_and_its_place_in_the_graph() -> None:
    x = dg.tensor([1.0, 2.0], requires_grad=True)
    html = html_of(x * 2)
    assert "tensor([2., 4.], grad_fn=&lt;MulBackward0&gt;)" in html
    for fact in ("shape</b> [2]", "dtype</b> float32", "size</b> 8 B", "grad_fn</b> MulBackward0"):
        assert fact in html


def test_a_leaf_shows_its_gradient_and_its_version() -> None:
    x = dg.tensor([1.0, 2.0], requires_grad=True)
    x.sum().backward()
    with dg.no_grad():
        x.add_(1)
    html = html_of(x)
    assert "grad</b> float32[2]" in html
    assert "version</b> 1" in html


def test_a_node_shows_its_next_functions_and_what_it_saved() -> None:
    x = dg.tensor([1.0, 2.0], requires_grad=True)
    html = html_of((x * dg.ones(2)).grad_fn)
    for part in ("MulBackward0", "AccumulateGrad", "needs no gradient", "saved other: float32[2]"):
        assert part in html


def test_a_freed_node_says_so() -> None:
    y = dg.tensor([1.0, 2.0], requires_grad=True).sin()
    y.sum().backward()
    assert "freed" in html_of(y.grad_fn)


def test_a_table_lines_up_its_columns() -> None:
    table = Table(("name", "n"), [("a", 1), ("long name", 20.5), ("none", None)], "3 rows")
    assert (
        str(table)
        == """\
name          n
a             1
long name  20.5
none
3 rows"""
    )
    assert "<td" in html_of(table)


def test_an_explanation_is_a_list_whose_lines_wrap() -> None:
    x = dg.tensor([1.0, 2.0], requires_grad=True)
    html = html_of(dg.explain_grad((x * 2).sum(), x))
    assert "<li>path: SumBackward0 → MulBackward0 → AccumulateGrad</li>" in html


# --- pictures that are wider than a cell ----------------------------------------------------------


def wide_graph() -> dg.viz.GraphPicture:
    x = dg.ones(2, requires_grad=True)
    parts = [(x * dg.ones(2, requires_grad=True)).sin() for _ in range(12)]
    return dg.viz.graph(parts)


def test_a_wide_picture_is_fitted_into_its_cell_and_unfolds() -> None:
    forms = wide_graph()._repr_mimebundle_()
    html = forms["text/html"]
    ET.fromstring(f"<div>{html}</div>")
    assert html.index("<details>") < html.index('<svg style="max-width:100%;height:auto"')
    assert "details[open] + div > svg { max-width: none !important; }" in html
    assert "<details>" not in forms["image/svg+xml"]


def test_a_picture_that_is_read_in_a_cell_has_no_frame() -> None:
    forms = dg.viz.graph(dg.ones(2, requires_grad=True).sin())._repr_mimebundle_()
    assert [*forms] == ["image/svg+xml", "text/plain"]


def test_a_picture_by_itself_has_its_own_size() -> None:
    assert "max-width" not in wide_graph().svg()


def test_charts_are_fitted_and_tables_scroll() -> None:
    x = dg.ones(2, requires_grad=True)
    for report in (dg.viz.saved(x.sin()), dg.viz.trace(x.sin().sum())):
        html = html_of(report)
        assert '<div><svg style="max-width:100%;height:auto"' in html
        assert '<div style="overflow-x:auto"><table>' in html


# --- what is large --------------------------------------------------------------------------------


def test_a_long_table_shows_its_ends() -> None:
    table = Table(("place", "name"), [(i, f"row {i}") for i in range(100_000)], "the note")
    lines = str(table).splitlines()
    assert len(lines) == 1 + MOST_ROWS + 1 + 1
    assert (lines[1].split()[0], lines[-2].split()[0]) == ("0", "99999")
    assert f"… {100_000 - MOST_ROWS} more …" in lines[1 + MOST_ROWS // 2]
    assert len(html_of(table)) < 100_000
    assert len(table.rows) == 100_000


def test_a_curve_of_many_points_keeps_its_peak() -> None:
    used = dg.viz.memory()
    used.samples = [Sample(i / 1e6, "forward", "mul", i % 1000) for i in range(100_000)]
    svg = used.svg()
    assert svg.count("<rect") < MOST_POINTS + 10
    assert "live bytes over events: 0 B at the start, 999 B at most" in svg
    assert "mul: 999 B at " in svg


def test_a_bar_names_the_first_of_many_keepers() -> None:
    x = dg.ones(2, requires_grad=True)
    report = dg.viz.saved([x.sin() for _ in range(500)])
    assert len(report.buffers[0].keepers) == 500
    assert "and 480 more" in report.svg()
    assert "SinBackward0.self and 498 more" in str(report)
    assert len(html_of(report)) < 5000

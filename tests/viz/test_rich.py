"""What a notebook shows for a tensor, a node, a table."""

import xml.etree.ElementTree as ET
from typing import Any

import dyngraph as dg
from dyngraph.viz.table import Table


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

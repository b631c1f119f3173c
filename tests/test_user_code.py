"""How messages name a line of the user's: a file's, or that of a notebook's cell."""

import linecache
import types
from collections.abc import Iterator
from typing import Any

import IPython
import pytest
from IPython.core.compilerop import CachingCompiler

import dyngraph as dg
from dyngraph.user_code import shown_place
from dyngraph.utils.checkpoint import CheckpointError, checkpoint

CELLS = {
    1: "import dyngraph as dg\nx = dg.tensor([0.0, 1.0], requires_grad=True)",
    2: "y = x.exp()\ny.add_(1)\nx.detach().mul_(1)",
    3: "def root_of(x):\n    return x.sqrt().sum()",
    4: "def f(x):\n    x = x * 2\n    return x.sum() * (2 if x.sum() > 0 else 1)",
    5: "def g(x):\n    w.mul_(2)\n    return (w * x).sum()\nw = dg.ones(2)",
    6: "ran = []\ndef h(x):\n    ran.append(1)\n    return x.sum().exp() if ran[1:] else x.sin()",
}


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What these cells define, compiled as a notebook does."""
    compiler = CachingCompiler()
    monkeypatch.setattr(IPython, "get_ipython", lambda: types.SimpleNamespace(compile=compiler))
    scope: dict[str, Any] = {}
    for number, text in CELLS.items():
        exec(compile(text, compiler.cache(text, number), "exec"), scope)
    yield scope
    linecache.clearcache()


def test_a_line_of_a_file_is_named_by_both(cells: dict[str, Any]) -> None:
    assert shown_place("/here/train.py", 3) == "/here/train.py:3"


@pytest.mark.parametrize("file", ["<ipython-input-3-0a1b>", "/tmp/ipython-input-3-12.py"])
def test_a_cell_of_an_older_ipython_is_named(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = types.SimpleNamespace(compile=compile)
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    assert shown_place(file, 7) == "cell In[3], line 7"


def test_error_names_the_cell_that_wrote_to_a_saved_tensor(cells: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError, match=r"It was last written at cell In\[2\], line 2\. "):
        cells["y"].sum().backward()


def test_explanation_names_the_cell_that_wrote(cells: dict[str, Any]) -> None:
    found = dg.explain_grad(dg.ones(1, requires_grad=True).sum(), cells["x"])
    assert any("last at cell In[2], line 3" in detail for detail in found.details)


def test_record_of_a_forward_names_cells(cells: dict[str, Any]) -> None:
    with dg.viz.provenance() as record:
        cells["root_of"](cells["x"])
    assert {call.place for call in record.calls} == {"cell In[3], line 2"}


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_anomaly_mode_names_cells(cells: dict[str, Any], capsys: Any) -> None:
    with dg.autograd.detect_anomaly():
        loss = cells["root_of"](cells["x"]) * 0
        with pytest.raises(RuntimeError, match=r"call is at cell In\[3\], line 2\."):
            loss.backward()
    shown = 'the error:\n  File "cell In[3]", line 2, in root_of\n    return x.sqrt().sum()\n'
    assert capsys.readouterr().err.partition("caused ")[2].strip() == shown.strip()


def test_value_that_tracing_has_not_is_asked_for_in_a_cell(cells: dict[str, Any]) -> None:
    result = dg.compare(cells["f"], cells["x"], modes=["eager", "jax.jit"], rounds=1)
    (error,) = [row.error for row in result.rows if row.error]
    assert "at cell In[4], line 3: `return x.sum() * (2 if x.sum() > 0 else 1)`" in error


def test_a_pure_function_that_writes_names_its_cell(cells: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError, match=r"at cell In\[5\], line 2 changed the value"):
        dg.to_jax(cells["g"])(cells["x"].detach().jax())


def test_operators_of_a_checkpoint_that_differs_name_cells(cells: dict[str, Any]) -> None:
    y = checkpoint(cells["h"], cells["x"], use_reentrant=False, debug=True)
    with pytest.raises(CheckpointError, match=r"sin\(float32\[2\]\) at cell In\[6\], line 4"):
        y.sum().backward()

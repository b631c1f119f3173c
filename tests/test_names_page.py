"""docs/names.md is what its script writes, and every place that it names is there."""

from __future__ import annotations

import ast
import functools
import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "docs" / "names.py"


def script() -> Any:
    spec = importlib.util.spec_from_file_location("docs_names", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NAMES = script()
SECTIONS = NAMES.concepts()


@functools.cache
def symbols(file: str) -> set[str]:
    """The classes, functions, members and names of a file, which is read and not imported."""
    found: set[str] = set()

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(prefix + node.name)
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{node.name}.")
            for part in ast.walk(node) if isinstance(node, ast.FunctionDef) and prefix else ():
                if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                    found.add(prefix + part.attr)
            if isinstance(node, ast.AnnAssign):
                found.add(prefix + ast.unparse(node.target))
            if isinstance(node, ast.Assign):
                found.update(prefix + ast.unparse(target) for target in node.targets)

    visit(ast.parse((ROOT / "dyngraph" / file).read_text(encoding="utf-8")).body, "")
    return found


@pytest.mark.parametrize("section", SECTIONS)
def test_every_place_that_the_page_names_exists(section: str) -> None:
    missing = []
    for concept in SECTIONS[section]:
        file, _, symbol = concept.where.partition("::")
        if not (ROOT / "dyngraph" / file).is_file() or (symbol and symbol not in symbols(file)):
            missing.append(concept.where)
    assert not missing, "docs/names.py names what is gone: write its new place"


def test_page_is_what_the_script_writes() -> None:
    written = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
    assert written == NAMES.page(), "run python docs/names.py"


def test_every_concept_of_the_introductions_is_there() -> None:
    page = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
    for name in """
        grad_fn next_functions AccumulateGrad SavedVariable save_for_backward needs_input_grad
        InputBuffer GraphTask ReadyQueue topological_nr register_hook version_counter AutogradMeta
        retain_graph create_graph checkpoint compiled_autograd saved_tensors_hooks gradcheck
        set_detect_anomaly derivatives.yaml is_leaf no_grad detach sequence_nr InputMetadata
        MmBackward0 ForwardGrad GraphRoot saved_version_ FakeTensor AOTAutograd CopySlices
    """.split():
        assert name in page, name

"""docs/names.md is what its script writes, and every place that it names is there."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
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


INTRODUCTIONS = {
    "how the graph is built": """
        requires_grad; loss.backward; .grad; a @ b; GraphRoot; SumBackward0; MmBackward0; grad_fn;
        AccumulateGrad; TensorImpl; autograd_meta_; AutogradMetaInterface; AutogradMeta; name_;
        grad_; grad_fn_; grad_accumulator_; fw_grad_; ForwardGrad; hooks_; FunctionPreHook; leaf;
        interior; weak_ptr; shared_ptr; next_edges; lazy; materialize_autograd_meta; inference;
        is_leaf; jvp; AddBackward0; Node; Edge; apply; variable_list; next_edges_; edge_list;
        sequence_nr_; topological_nr_; input_nr; DAG; implicitly summed; chain rule; thread-local;
        priority; VariableType; derivatives.yaml; gen_variable_type.py; collect_next_edges;
        set_next_edges; get_autograd_meta; SavedVariable; redispatch; set_history;
        compute_requires_grad; dispatcher; retain_graph; GraphTask; Engine; higher order;
        MulBackward0; data_; saved_version_; kernel; weak_grad_fn_; output_nr_; is_inplace_on_view_;
        saved_original_; is_output_; SavedVariableHooks; version_counter; current_version; unpack;
        circular reference; register_hooks; modified by an inplace operation; saved_tensors_hooks;
        pack_hook; unpack_hook; offload; int8; torch.utils.checkpoint.checkpoint;
        activation_checkpoint; CheckpointFunction; RNG state; AMP; cpu_offload; FSDP;
        optimizer.zero_grad; gradient accumulation; try_get_grad_accumulator; set_grad_accumulator;
        retain_grad; reset_data; torch.autograd.grad; set_to_none; no_grad; inference_mode;
        AutogradState; key_set_; DispatchKey; DispatchKeySet; fallthrough; custom_op;
        torch.autograd.Function; ctx; save_for_backward; saved_tensors; torch.library; FakeTensor;
        Inductor; graph break; detach; tensor.data; set_grad_enabled; requires_grad_; enable_grad;
        H2D; profiler; BatchNorm; running stats; register_hook; clip_grad_norm_; gradient clipping;
        clamp; FunctionPostHook; work-stealing; ExpBackward0; Compiled Autograd; FX graph; Triton;
        torch._dynamo.config.compiled_autograd; AOTAutograd; Dynamo; LSTM; set_detect_anomaly; NaN;
        gradcheck; _record_memory_history; mixed precision; define-by-run; tf.cond; lax.scan;
        jax.grad; function transforms; pure function; torch.randn""",
    "the notions of autograd": """
        metadata; Storage; storage_offset; strides; view; slice; transpose; contiguous; VJP;
        Jacobian; upstream gradient; nn.Parameter; ReluBackward0; zero_grad; saved tensors;
        version counter; _saved_self; _saved_result; PowBackward0; in-place; torch.no_grad;
        torch.inference_mode; model.train; model.eval; Dropout; running_mean; running_var;
        inference tensor; autograd.Function; ctx.saved_tensors; offloading;
        activation checkpointing""",
    "what the forward pass writes down": """
        define-by-run; dynamic graph; next_functions; AccumulateGrad; leaf; non-leaf;
        optimizer.zero_grad; does not require grad; backward through the graph a second time;
        gradient checkpointing;
        a leaf Variable that requires grad is being used in an in-place operation; Node;
        derivatives.yaml; dispatcher""",
}


def words(text: str) -> set[str]:
    """What the site's search takes a text apart into."""
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    separator = re.search(r"separator: '(.*)'", config)
    assert separator is not None
    found = (re.sub(r"^\W+|\W+$", "", word) for word in re.split(separator[1], text.lower()))
    return {word for word in found if word}


@functools.cache
def pages() -> list[set[str]]:
    """The words of each page of docs/."""
    return [words(path.read_text(encoding="utf-8")) for path in (ROOT / "docs").glob("*.md")]


@pytest.mark.parametrize("introduction", INTRODUCTIONS)
def test_each_concept_of_an_introduction_is_found_by_its_name(introduction: str) -> None:
    names = [" ".join(name.split()) for name in INTRODUCTIONS[introduction].split(";")]
    missing = [name for name in names if not any(words(name) <= page for page in pages())]
    assert not missing, "give them their place in docs/concepts.txt"

"""Writes docs/names.md: `python docs/names.py`. Where what PyTorch's autograd calls so is here."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))
PAGE = DOCS / "names.md"


class Concept(NamedTuple):
    """What it is called in PyTorch (its C++ names too), where it is here, and what it is."""

    name: str
    where: str
    what: str


HEAD = """\
# PyTorch's name, ours, where in the code

Written by `python docs/names.py`; do not edit. Paths are below `dyngraph/`; a symbol follows `::`.
Where the two differ, the name in the first column is PyTorch's, and the symbol is ours.
"""

# One a line: PyTorch's name | file::symbol | what it is.
CONCEPTS = """
## Tensors
Tensor, torch.Tensor, Variable | tensor.py::Tensor | a handle over a Storage and a place in the graph
requires_grad, requires_grad_ | tensor.py::Tensor.requires_grad | whether gradients are wanted; makes a leaf of a tensor
is_leaf, leaf | tensor.py::Tensor.is_leaf | made by the user, not by a recorded operator
grad, .grad | tensor.py::Tensor.grad | where backward accumulates
grad_fn | tensor.py::Tensor.grad_fn | the node that made the tensor
retain_grad, retains_grad | tensor.py::Tensor.retain_grad | keeps the gradient of an interior tensor
detach | ops/memory.py::detach | the same memory, without history
AutogradMeta, materialize_autograd_meta, get_autograd_meta | tensor.py::AutogradMeta | gradient, hooks and accumulator, made when first needed by `Tensor.need_meta`
grad_accumulator | tensor.py::AutogradMeta.accumulator | the leaf's AccumulateGrad, held weakly
gradient_edge, set_gradient_edge, output_nr | tensor.py::Tensor.gradient_edge | the node and output number that a gradient of the tensor goes to
StorageImpl, untyped_storage | storage.py::Storage | a cell with the current array; arrays are immutable
version_counter, _version, current_version, bump_version | storage.py::Storage.count_write | counts in-place writes; None for inference tensors
data, variable_data, set_data | ops/memory.py::PROPERTIES | the value without history, for reading and setting
no_grad, GradMode, AutoGradMode | modes.py::no_grad | operators are not recorded
enable_grad | modes.py::enable_grad | they are again
set_grad_enabled | modes.py::set_grad_enabled | either, by a flag
inference_mode, InferenceMode | modes.py::inference_mode | nothing is recorded, and new tensors have no version
dispatcher, dispatch key, AutogradXxx, after_autograd_keyset | dispatch.py::write_dispatcher | the one path of every call: mode, kernel, record
derivatives.yaml, VariableType.cpp | ops/operator.py::define | an operator and its rules, in one block

## The graph
Node, autograd::Node, Function (in old texts), subgraph | graph/node.py::Node | one step of backward
MulBackward0, AddBackward0, MmBackward0, PowBackward0, ReluBackward0, SumBackward0 | operator_node.py::node_class | the node classes of operators, made by `define`
Edge, next_edge, gradient edge, GradientEdge | graph/node.py::Edge | a node and the number of its input gradient, a plain tuple
next_functions, next_edges, collect_next_edges | graph/node.py::Node.next_functions | where the gradients of the inputs go
InputMetadata, _input_metadata | graph/node.py::InputMetadata | what a gradient must look like that arrives at a node
sequence_nr, _sequence_nr | graph/node.py::Node._sequence_nr | the order of making, which is the Engine's priority
topological_nr, topological order | graph/node.py::Node.topological_nr | the length of the longest path to a leaf
AccumulateGrad | graph/accumulate.py::AccumulateGrad | the node of a leaf, which adds into `.grad`
GraphRoot | graph/engine.py::GraphTask.run | the roots' gradients are put in buffers; there is no node for them
CopySlices | views.py::copy_slices | the history of a base that was written through a view
UndefinedGrad, absent gradients | kernels.py::fill_absent | gradients that did not come
metadata, node.metadata | graph/node.py::Node.metadata | a dict of the node's own
name() | graph/node.py::Node.name | PyTorch's name of the node
graph_desc | graph/node.py::graph_desc | a graph as text

## What is saved
SavedVariable, SavedTensor | graph/saved.py::SavedTensor | the handle of a value that a node saved
_saved_self, _saved_other, _saved_result, saved tensors | operator_node.py::OperatorNode.saved_field | what a node saved, by field
_raw_saved_self | operator_node.py::OperatorNode.raw_saved_field | its handle
saved_version_, version check | operator_node.py::OperatorNode.check_version | raises where what was saved was written to since
release_variables, retain_graph | operator_node.py::OperatorNode.release | frees what was saved
unpack, SavedVariable::unpack | operator_node.py::OperatorNode.unpack | the saved value with its history
saved_tensors_hooks, pack_hook, unpack_hook, register_hooks | graph/packing.py::saved_tensors_hooks | what packs and unpacks saved tensors
save_on_cpu, offload | autograd/graph.py::save_on_cpu | such hooks that keep them in host memory
disable_saved_tensors_hooks | graph/packing.py::disable_saved_tensors_hooks | refuses such hooks
allow_mutation_on_saved_tensors | graph/mutation.py::allow_mutation_on_saved_tensors | saved values stay as they were when written to
activation memory, saved bytes | comparison/sizes.py::saved_bytes | the bytes that wait for backward, each buffer once

## The Engine
Engine, Engine::execute, _engine_run_backward | graph/engine.py::execute | runs a GraphTask in this thread
backward, torch.autograd.backward, run_backward | backward.py::backward | gradients into the leaves
grad, torch.autograd.grad | backward.py::grad | gradients as results
GraphTask | graph/engine.py::GraphTask | one backward: what it needs, what has arrived
exec_info, will_engine_execute_node | graph/engine.py::GraphTask.will_run | whether a node lies on the way to what is asked
dependencies, compute_dependencies | graph/engine.py::GraphTask.count_dependencies | how many gradients a node waits for
InputBuffer | graph/engine.py::InputBuffer | where the gradients of a node meet and are added
ReadyQueue | graph/engine.py::ReadyQueue | the nodes whose gradients have all arrived, the one made last first
evaluate_function, call_function | graph/engine.py::GraphTask.run | takes a node, runs it, hands its gradients on
validate_outputs | values.py::check_gradient | checks what hooks return
captures, inputs= | graph/engine.py::GraphTask.capture | gradients that are results
accumulate_grad, gradient accumulation | values.py::ArrayValues.accumulate | adds into `.grad`
create_graph, double backward, higher order | values.py::recorded_backward | a node's backward as an operator, which is recorded
is_grads_batched | backward.py::_run_batched | several backwards at once, by `jax.vmap` over the Engine's walk
materialize_grads, allow_unused | backward.py::_zeros_like | what stands for a gradient that is not there
queue_callback | graph/engine.py::queue_callback | runs at the end of the current backward
reentrant backward, ReentrantBackward | graph/engine.py::_execute_on_new_stack | a backward within a backward, however deep
device threads, set_multithreading_enabled | modes.py::set_multithreading_enabled | a switch without effect: XLA runs kernels beside Python

## Hooks
register_hook, tensor hook | tensor.py::Tensor.register_hook | sees, and may replace, the gradient of a tensor
register_post_accumulate_grad_hook | tensor.py::Tensor.register_post_accumulate_grad_hook | runs when a leaf's `.grad` is complete
Node.register_hook, post hook | graph/node.py::Node.register_hook | runs after a node
Node.register_prehook, pre hook | graph/node.py::Node.register_prehook | runs before a node
register_multi_grad_hook | autograd/graph.py::register_multi_grad_hook | runs when the gradients of several tensors are there
RemovableHandle | graph/hooks.py::RemovableHandle | takes a hook out again

## Views and in-place writes
view, DifferentiableViewMeta, _base, _is_view | views.py::View | where a tensor looks that shares memory
as_view, create_view | views.py::as_view | makes a result a view
CreationMeta, check_inplace | writing.py::_check_write | which writes are refused
in-place, op_, rebase_history | writing.py::rebase | gives a tensor the history of what was written
version increment, increment_version | autograd/graph.py::increment_version | counts a write that autograd did not see
regenerate grad_fn of a view, view replay | views.py::View.update | a view's history after its base was written to
as_strided | ops/placing.py::as_strided | a view by strides

## Functions and operators of one's own
autograd.Function, THPFunction | autograd/function.py::Function | a forward and a backward written by hand
ctx, FunctionCtx, PyNode | autograd/function_node.py::FunctionCtx | what forward and backward share: the node itself
apply, Function.apply | autograd/function.py::Function.apply | runs forward and records the node
save_for_backward | autograd/function_node.py::FunctionCtx.save_for_backward | saves tensors with version checks and hooks
saved_tensors, ctx.saved_tensors | autograd/function_node.py::BackwardCFunction.saved_tensors | what was saved
needs_input_grad | autograd/function_node.py::BackwardCFunction.needs_input_grad | for which arguments a gradient is wanted
mark_dirty | autograd/function_node.py::FunctionCtx.mark_dirty | arguments that forward wrote to
mark_non_differentiable | autograd/function_node.py::FunctionCtx.mark_non_differentiable | results without a gradient
set_materialize_grads | autograd/function_node.py::FunctionCtx.set_materialize_grads | whether absent gradients come as zeros
once_differentiable | autograd/function.py::once_differentiable | a backward that is not differentiated again
setup_context | autograd/function.py::Function.setup_context | the second form of a Function
generate_vmap_rule, Function.vmap | autograd/function_batch.py | a Function under vmap
torch.library.custom_op | library/operators.py::custom_op | an operator with any body
register_autograd, register_fake, FakeTensor, opcheck | library/operators.py::register_autograd | its derivative, and its shapes without values

## Checks
gradcheck | autograd/gradcheck.py::gradcheck | derivatives against finite differences
gradgradcheck | autograd/gradcheck.py::gradgradcheck | second derivatives
anomaly mode, detect_anomaly, set_detect_anomaly | autograd/anomaly_mode.py::detect_anomaly | remembers where nodes were made, stops at NaN
checkpoint, torch.utils.checkpoint, activation checkpointing | utils/checkpoint.py::checkpoint | computes again in backward instead of saving
selective checkpoint, CheckpointPolicy | utils/checkpoint_policies.py::CheckpointPolicy | which operators are kept

## Forward mode and transforms
forward-mode AD, ForwardGrad, dual numbers, jvp | forward.py::run_dual | tangents beside values
dual_level | autograd/forward_ad.py::dual_level | where tangents live
make_dual, unpack_dual | autograd/forward_ad.py::make_dual | a tensor with a tangent, and back
fw_grad, _fw_grad | tangents.py::Tangent | the tangent that a tensor carries
functional.jacobian, functional.hessian | autograd/functional.py::jacobian | by rows or vectorized
torch.func.grad | func/reverse.py::grad | the gradient as a function
torch.func.vmap, BatchedTensor | func/mapping.py::vmap | a function over a batch
functional_call, stateless | func/modules.py::functional_call | a module with other parameters
functionalize | func/functional_form.py::functionalize | a function without writes

## Compiled
compiled autograd, compiled_autograd, torch._dynamo.compiled_autograd | compiled/toggle.py::compiled_autograd | the backward as few XLA programs
AutogradCompilerCall, cache key, CacheNode | compiled/walk.py::walk | the structure of a graph as a key
compiled_autograd.py, AOTAutograd, joint graph | compiled/program.py::Program | what was traced, as a jaxpr
graph break | compiled/recording.py::RecordedValues.settle | Python that runs between compiled parts
"""


def concepts() -> dict[str, list[Concept]]:
    """The concepts by section."""
    sections: dict[str, list[Concept]] = {}
    for line in CONCEPTS.strip().splitlines():
        if line.startswith("## "):
            sections[line[3:]] = []
        elif line:
            sections[next(reversed(sections))].append(Concept(*line.split(" | ")))
    return sections


MODULES = """
    autograd autograd.graph autograd.function autograd.forward_ad autograd.functional
    utils.checkpoint func library random compiled interop
""".split()
"""Modules whose names are listed one by one, with their files."""
OPERATORS = "dyngraph nn.functional linalg fft special masked signal.windows".split()
"""Modules of operators, which are listed by the file that they are in."""


def names_of(module: str) -> Iterator[tuple[str, str]]:
    """Each public name of a module with the file that defines it, below `dyngraph/`."""
    dotted = "dyngraph" if module == "dyngraph" else f"dyngraph.{module}"
    space = importlib.import_module(dotted)
    for name in space.__all__:
        value: Any = getattr(space, name)
        home = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
        if isinstance(home, str) and home.startswith("dyngraph"):
            path = home.split(".")[1:]
            root = DOCS.parent / "dyngraph"
            file = "/".join(path) + ("/__init__.py" if root.joinpath(*path).is_dir() else ".py")
            yield name, file.removeprefix("/")


def page() -> str:
    """The text of the page."""
    lines = [HEAD]
    for title, found in concepts().items():
        lines += [f"## {title}", "", "| PyTorch's | where | what |", "| --- | --- | --- |"]
        for name, where, what in found:
            shown = ", ".join(_code(part) for part in name.split(", "))
            lines.append(f"| {shown} | `{where}` | {what} |")
        lines.append("")
    lines += ["## Public names, module by module", ""]
    lines.append("`torch.X` is `dyngraph.X`; `torch.utils.checkpoint.X` is `dyngraph.utils...`.\n")
    for module in MODULES:
        lines += [f"### `{module}`", "", "| name | file |", "| --- | --- |"]
        lines += [f"| `{name}` | `{file}` |" for name, file in names_of(module)]
        lines.append("")
    lines += ["## Operators, file by file", ""]
    for module in OPERATORS:
        files = defaultdict(list)
        for name, file in names_of(module):
            files[file].append(name)
        prefix = "torch" if module == "dyngraph" else f"torch.{module}"
        lines += [f"### `{prefix}`", "", "| file | names |", "| --- | --- |"]
        lines += [f"| `{f}` | {', '.join(f'`{n}`' for n in files[f])} |" for f in sorted(files)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _code(name: str) -> str:
    """A name as code; a phrase as it is."""
    return name if " " in name or name.isalpha() and name.islower() else f"`{name}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")

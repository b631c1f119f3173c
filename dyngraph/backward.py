"""backward() and grad(): check what is asked, send a GraphTask through the Engine, hand back
results."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph import devices, dtypes
from dyngraph.errors import NoGradientPathError, UnusedInputError
from dyngraph.graph import engine
from dyngraph.graph.node import Edge, GradientEdge, Node, Values
from dyngraph.lifting import run_mapped, spread_all
from dyngraph.placement import place_of, put
from dyngraph.storage import cell_of
from dyngraph.tangents import share_tangent
from dyngraph.tensor import Tensor, new_tensor
from dyngraph.values import ARRAYS, PENDING, TENSORS, values_of

Root = Tensor | GradientEdge
Roots = Root | Sequence[Root]


def backward(
    tensors: Roots,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Adds the gradients of `tensors` into the `.grad` of the leaves that they were made from.

    `grad_tensors` are the gradients to start from, one for each of `tensors`; a tensor of one
    element starts from 1. `retain_graph` keeps what was saved for another backward; it is on by
    default with `create_graph`, which records the backward itself, for higher derivatives. With
    `inputs` only these tensors (or `GradientEdge`s of leaves) get a gradient.

    Raises RuntimeError where a root has no graph, needs a gradient and has none, or was given one
    of the wrong shape, and where the graph was freed by an earlier backward.

    >>> x = dg.tensor([1.0, 2.0], requires_grad=True)
    >>> dg.autograd.backward([x.sum(), (x * x).sum()])
    >>> x.grad
    tensor([3., 5.])
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "backward(). Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    roots = as_tuple(tensors)
    gradients = as_tuple(grad_tensors) if grad_tensors is not None else (None,) * len(roots)
    how = values_of(create_graph=create_graph)
    edges, values = check_roots(roots, gradients, how, batched=False)
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the "
            "parameter and its gradient which can cause a memory leak. Use autograd.grad when "
            "creating the graph to avoid this, or set .grad to None afterwards.",
            UserWarning,
            stacklevel=2,
        )
    targets: list[Node] = []
    if inputs is not None:
        wanted = as_tuple(inputs.values() if isinstance(inputs, Mapping) else inputs)
        if not wanted:
            raise RuntimeError(
                "`inputs` argument to `backward()` cannot be empty. Leave it out to accumulate "
                "into all leaves."
            )
        targets = [_target(i, position) for position, i in enumerate(wanted)]
    keep_graph = create_graph if retain_graph is None else retain_graph
    task = engine.GraphTask(how, keep_graph=keep_graph, targets=targets)
    engine.execute(task, edges, values, create_graph=create_graph)


def grad(
    outputs: Roots,
    inputs: Any,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of `outputs` for each of `inputs`; `.grad` is left alone.

    A tuple in the order of `inputs`, or a dict where these are one. `grad_outputs` are the
    gradients to start from; with `is_grads_batched` each has one more dim in front, and so have
    the results. An input that the outputs do not depend on raises RuntimeError, unless
    `allow_unused` (None for it) or `materialize_grads` (zeros) is set. Otherwise as `backward`.

    >>> x = dg.tensor([1.0, 2.0], requires_grad=True)
    >>> dg.autograd.grad((x**3).sum(), x)
    (tensor([ 3., 12.]),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if materialize_grads and any(isinstance(i, GradientEdge) for i in as_tuple(inputs)):
        raise RuntimeError(
            "materialize_grads cannot be used when the given input is a GradientEdge. Pass the "
            "tensor, or allow_unused=True."
        )
    names = list(inputs) if isinstance(inputs, Mapping) else None
    wanted = as_tuple(inputs.values() if isinstance(inputs, Mapping) else inputs)
    roots = as_tuple(outputs)
    gradients = as_tuple(grad_outputs) if grad_outputs is not None else (None,) * len(roots)
    how = values_of(create_graph=create_graph)
    if is_grads_batched and how is PENDING:
        how = ARRAYS
    edges, values = check_roots(roots, gradients, how, batched=is_grads_batched)
    if not wanted:
        raise RuntimeError(
            "`inputs` argument to `grad()` cannot be empty. Pass at least one tensor."
        )
    captures = [_capture_edge(i, position) for position, i in enumerate(wanted)]
    keep_graph = create_graph if retain_graph is None else retain_graph

    def run(values: Sequence[Any], *, keep_graph: bool) -> list[Any]:
        task = engine.GraphTask(how, keep_graph=keep_graph, asked=captures)
        engine.execute(task, edges, values, create_graph=create_graph)
        return [task.captured.get(i) for i in range(len(captures))]

    if not is_grads_batched:
        results = run(values, keep_graph=keep_graph)
    else:
        results = _run_batched(run, values, how, keep_graph=keep_graph)
    found: list[Tensor | None] = []
    for position, (result, like) in enumerate(zip(results, wanted, strict=True)):
        if result is not None:
            found.append(how.wrap(result))
        elif materialize_grads:
            found.append(_zeros_like(like, values if is_grads_batched else None))
        elif allow_unused:
            found.append(None)
        else:
            raise UnusedInputError(position)
    return dict(zip(names, found, strict=True)) if names is not None else tuple(found)


def _run_batched(run: Any, values: Sequence[Any], how: Values, *, keep_graph: bool) -> list[Any]:
    """One backward for the whole batch: the Engine's walk, mapped."""
    present: list[bool] = []

    def walk(*batch: Tensor) -> list[Tensor]:
        given = [t._cell.array for t in batch] if how is ARRAYS else batch
        results = run(given, keep_graph=keep_graph)
        present[:] = [r is not None for r in results]
        return [how.wrap(r) for r in results if r is not None]

    tensors = [how.wrap(value) for value in values]
    size = len(tensors[0])
    found = iter(spread_all(run_mapped(walk, tensors, size), size))
    results = [next(found) if there else None for there in present]
    return [r if r is None or how is not ARRAYS else r._cell.array for r in results]


def as_tuple(value: Any) -> tuple[Any, ...]:
    """One tensor or edge as a tuple of it; a sequence as a tuple of its items (a string is
    none)."""
    if isinstance(value, (Tensor, GradientEdge, str)):
        return (value,)
    return tuple(value)


def check_roots(
    roots: Sequence[Any], gradients: Sequence[Any], how: Values, *, batched: bool
) -> tuple[list[Edge], list[Any]]:
    """Edges to start from, and the values to start with; raises for what can't be one."""
    if len(gradients) != len(roots):
        raise RuntimeError(
            f"got {len(roots)} tensors and {len(gradients)} gradients. Pass one gradient for each "
            "tensor, None for a scalar that starts from 1."
        )
    edges: list[Edge] = []
    values: list[Any] = []
    for position, (root, gradient) in enumerate(zip(roots, gradients, strict=True)):
        if isinstance(root, GradientEdge):
            edge: Edge = (root.node, root.output_nr)
            meta = root.node.output_metadata()[root.output_nr]
            shape, dtype = tuple(meta.shape), meta.dtype.dtype
            place = meta.device.jax
        elif isinstance(root, Tensor):
            if root._edge is None:
                raise NoGradientPathError(position)
            edge = root.gradient_edge()
            array = root._cell.held
            shape, dtype, place = array.shape, array.dtype, place_of(array)
        else:
            raise TypeError(
                f"element {position} to differentiate is {type(root).__name__}: expected a "
                "Tensor or a GradientEdge"
            )
        edges.append(edge)
        if gradient is None:
            one = _one(position, shape, dtype, place)
            values.append(one if how is ARRAYS or how is PENDING else new_tensor(cell_of(one)))
        else:
            value = _checked(position, gradient, shape, dtype, place, batched=batched)
            values.append(_handled(value, how))
    return edges, values


def _handled(gradient: Tensor, how: Values) -> Any:
    """A gradient to start from as `how` handles it."""
    if how is ARRAYS:
        return gradient._cell.array
    if how is PENDING:
        return gradient._cell.held
    if how is TENSORS:
        return gradient
    dual = gradient.detach()
    share_tangent(gradient, dual)
    return dual


def _one(position: int, shape: tuple[int, ...], dtype: Any, place: Any) -> Any:
    """The number 1, which a scalar root starts with; raises for a root that is none.

    `place` is the device or the sharding of the root; None for a tracer.
    """
    if any([n != 1 for n in shape]):
        raise RuntimeError(
            "grad can be implicitly created only for scalar outputs, but element "
            f"{position} has shape {list(shape)}. Reduce it first, by sum() or mean(), or pass "
            "its gradient."
        )
    if dtype.kind == "c":
        raise RuntimeError(
            "grad can be implicitly created only for real scalar outputs but got "
            f"{dtypes.of(dtype)}. Pass the gradient, or take a real function of it such as abs()."
        )
    return jnp.ones(shape, dtype) if place is None else _one_at(shape, dtype, place)


@functools.lru_cache(64)
def _one_at(shape: tuple[int, ...], dtype: Any, place: Any) -> Any:
    """The number 1 at a place, made once."""
    with jax.ensure_compile_time_eval():  # it is kept, so it must be no tracer
        return put(jnp.ones(shape, dtype), place)


def _checked(
    position: int,
    gradient: Any,
    shape: tuple[int, ...],
    dtype: Any,
    place: Any,
    *,
    batched: bool,
) -> Tensor:
    """The gradient that a root was given, in its dtype and where it is; raises for what can't be
    one."""
    if not isinstance(gradient, Tensor):
        raise TypeError(
            f"gradients can be either Tensors or None, but got {type(gradient).__name__} at "
            f"position {position}. Wrap it by dg.tensor(...)."
        )
    array = gradient._cell.held
    given = array.shape[1:] if batched else array.shape
    if given != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{position}] has a shape of {list(array.shape)} and "
            f"output[{position}] has a shape of {list(shape)}."
            + (
                " If you only want one gradient, leave out is_grads_batched=True: with it we "
                "interpret the first dimension of each grad_output as the batch."
                if batched
                else ""
            )
        )
    if (array.dtype.kind == "c") != (dtype.kind == "c"):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. "
            f"Mismatch in dtype: grad_output[{position}] has a dtype of {gradient.dtype} and "
            f"output[{position}] has a dtype of {dtypes.of(dtype)}."
        )
    if not gradient.dtype.is_differentiable:
        raise RuntimeError(
            f"grad_output[{position}] has {gradient.dtype}, but output[{position}] has "
            f"{dtypes.of(dtype)}: expected a floating point gradient. Convert it by .to()."
        )
    if array.dtype != dtype:
        gradient = gradient.to(dtypes.of(dtype))
        array = gradient._cell.held
    if put(array, place) is not array:
        gradient = gradient.to(devices.of(put(array, place)))
    return gradient


def _capture_edge(wanted: Any, position: int) -> Edge:
    if isinstance(wanted, GradientEdge):
        return wanted.node, wanted.output_nr
    if not isinstance(wanted, Tensor):
        raise RuntimeError(
            f"all inputs have to be Tensors or GradientEdges, but got {type(wanted).__name__} at "
            f"position {position}"
        )
    if wanted._edge is None:
        raise RuntimeError(
            f"One of the differentiated Tensors does not require grad: inputs[{position}]. Set "
            "requires_grad=True on it before the forward pass."
        )
    return wanted.gradient_edge()


def _target(wanted: Any, position: int) -> Node:
    """The node to run so that `wanted` gets its `.grad`."""
    if isinstance(wanted, Tensor):
        wanted.retain_grad()
    node, _ = _capture_edge(wanted, position)
    assert node is not None
    return node


def _zeros_like(wanted: Tensor, batch: Sequence[Any] | None) -> Tensor:
    front = (len(batch[0]),) if batch else ()
    zeros = jnp.zeros((*front, *wanted.shape), wanted.dtype.dtype)
    return new_tensor(cell_of(put(zeros, place_of(wanted._cell.array))))

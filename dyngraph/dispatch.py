"""The one path of every call: unwrap, run the kernel, wrap, record.

# Note [Dispatchers are written out]
For each operator this file writes the Python function that runs it, with its inputs unrolled, the way
`namedtuple` writes a class. A call then costs one Python frame: no loop, no argument tuple, nothing
inspected. `TEMPLATE` below is that function; everything that is rare lives in named functions here.
Read the result for one operator with `print(dg.mul.source)`.
"""

from __future__ import annotations

import functools
import linecache
import operator
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import devices, dtypes, modes
from dyngraph.errors import GraphFreedError, InferenceTensorError, SavedTensorModifiedError
from dyngraph.graph.node import NO_EDGE, InputMetadata, Node, Values, creation_numbers
from dyngraph.graph.saved import SavedTensor
from dyngraph.kernels import BackwardPlan, Kernel, OperatorSpec, Target, is_differentiable
from dyngraph.storage import Storage
from dyngraph.tensor import LEAF, Tensor, leaf_edge, new_tensor

MAX_KERNELS = 2048
"""How many sets of static arguments an operator keeps kernels for."""
MAX_SCALARS = 8192
SMALL_BYTES = 1 << 20


# --- nodes -----------------------------------------------------------------------------------


class OperatorNode(Node):
    """The node of a recorded operator: its backward plan, and what that plan saved.

    `owners` and `versions` tell whether a saved value has been written to since; constants have no
    owner. After `release`, `saved` is None.
    """

    __slots__ = ("outputs", "owners", "plan", "saved", "versions")

    spec: ClassVar[OperatorSpec]

    outputs: tuple[tuple[tuple[int, ...], Any], ...]
    plan: BackwardPlan
    saved: tuple[Any, ...] | None
    owners: tuple[Storage | None, ...]
    versions: tuple[int, ...]

    def apply(self, grads: Sequence[Any], values: Values) -> Sequence[Any]:
        saved = self.saved
        if saved is None:
            raise GraphFreedError(self.name())
        for owner, version in zip(self.owners, self.versions, strict=True):
            if owner is not None and owner.version != version:
                self.check_version(self.owners.index(owner))
        absent = None
        if any([g is None for g in grads]):
            if all([g is None for g in grads]):
                return (None,) * len(self.edges)
            pairs = zip(grads, self.outputs, strict=True)
            absent = tuple([meta if g is None else None for g, meta in pairs])
            grads = [g for g in grads if g is not None]
        targets = tuple([None if n is None else n.outputs[nr] for n, nr in self.edges])
        if values.recorded:
            unpacked = [self.unpack(i) for i in range(len(saved))]
            backward = _recorded_backward(self.plan, targets, absent, len(grads))
            return backward(*unpacked, *grads)
        return self.plan.jitted(targets, absent)(*saved, *grads)

    def release(self) -> None:
        if self.saved:
            self.saved = None
            self.owners = self.versions = ()

    def output_metadata(self) -> tuple[InputMetadata, ...]:
        device = self._device()
        return tuple(InputMetadata(s, dtypes.of(d), device) for s, d in self.outputs)

    def _device(self) -> devices.device:
        """Where the outputs live: where the first leaf does, as operators never mix devices."""
        node: Any = self
        while isinstance(node, OperatorNode):
            for value in node.saved or ():
                if isinstance(value, jax.Array) and value.ndim:
                    return devices.of(value)
            node = next(n for n, _ in node.edges if n is not None)
        return node.output_metadata()[0].device

    def check_version(self, position: int) -> None:
        """Raises where the saved value at `position` was written in place after it was saved."""
        owner = self.owners[position]
        if owner is not None and owner.version != self.versions[position]:
            assert self.saved is not None and owner.version is not None
            raise SavedTensorModifiedError(
                self.name(),
                self.field_names()[self.plan.sources[position]],
                self.saved[position].shape,
                self.versions[position],
                owner.version,
            )

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The names of what can be saved: inputs, then outputs."""
        return (*cls.spec.inputs, *cls.spec.output_names)

    def unpack(self, position: int) -> Tensor | None:
        """The saved value as a tensor with the history it had when it was saved."""
        # Note [Outputs are saved without history]
        # A node that held a tensor which it made would be a cycle. So arrays are saved, and the
        # history is put back here: an input's is this node's own edge, an output's this node.
        if self.saved is None:
            raise GraphFreedError(self.name())
        self.check_version(position)
        value, owner, spec = self.saved[position], self.owners[position], self.spec
        if value is None:
            return None
        cell = owner if owner is not None and owner.array is value else Storage(value)
        source = self.plan.sources[position]
        if source >= len(spec.inputs):
            return new_tensor(cell, (self, source - len(spec.inputs)))
        name = spec.inputs[source]
        if name not in spec.differentiable:
            return new_tensor(cell)
        edge = self.edges[spec.differentiable.index(name)]
        return new_tensor(cell, None if edge[0] is None else edge)

    def saved_field(self, name: str) -> Any:
        """What `_saved_<name>` shows: a tensor, the leaf itself where a leaf was saved, or None."""
        position = self._position_of(name)
        if position is None:
            return None
        tensor = self.unpack(position)
        node = tensor.grad_fn if tensor is not None else None
        leaf = getattr(node, "variable", None)
        return leaf if leaf is not None and leaf._cell is self.owners[position] else tensor

    def raw_saved_field(self, name: str) -> SavedTensor | None:
        """What `_raw_saved_<name>` shows: the handle of a saved tensor."""
        position = self._position_of(name)
        return None if position is None else SavedTensor(self, position)

    def _position_of(self, name: str) -> int | None:
        source = self.field_names().index(name)
        if self.saved is None and source in self.plan.sources:
            raise GraphFreedError(self.name())
        return self.plan.sources.index(source) if source in self.plan.sources else None

    def static(self, name: str) -> Any:
        """What `_saved_<name>` shows of a static argument."""
        return self.plan.kernel.statics[name]


def node_class(spec: OperatorSpec) -> type[OperatorNode]:
    """The Node class of an operator, with its `_saved_*` fields."""
    body: dict[str, Any] = {"__slots__": (), "spec": spec, "__module__": __name__}
    for name in spec.saved_names:
        body[f"_saved_{name}"] = property(lambda self, name=name: self.saved_field(name))
        body[f"_raw_saved_{name}"] = property(lambda self, name=name: self.raw_saved_field(name))
    for name in spec.statics:
        body[f"_saved_{name}"] = property(lambda self, name=name: self.static(name))
    return type(spec.node_name, (OperatorNode,), body)


# --- gradients as arrays, and as tensors ------------------------------------------------------


@jax.jit
def _sum_arrays(*parts: jax.Array) -> jax.Array:
    return functools.reduce(operator.add, parts)


def _chunks_of_two_four(parts: Sequence[Any], add: Callable[..., Any]) -> Any:
    """The sum from left to right, by calls of 2, 4, 8 or 16 terms: each count compiles a kernel."""
    parts = list(parts)
    while len(parts) > 1:
        count = 1 << min(len(parts).bit_length() - 1, 4)
        parts[:count] = [add(*parts[:count])]
    return parts[0]


class ArrayValues:
    """Gradients are jax arrays: an ordinary backward, where nothing is recorded."""

    recorded = False

    def total(self, parts: Sequence[jax.Array]) -> jax.Array:
        return _chunks_of_two_four(parts, _sum_arrays)

    def is_small(self, value: jax.Array) -> bool:
        return value.nbytes <= SMALL_BYTES

    def wrap(self, value: jax.Array) -> Tensor:
        return new_tensor(Storage(value))

    def unwrap(self, tensor: Any, like: jax.Array | None, where: str) -> jax.Array:
        return check_gradient(tensor, like, where)._cell.array

    def accumulate(self, variable: Tensor, value: jax.Array) -> None:
        meta = variable.need_meta()
        grad = meta.grad
        value = place_like(value, variable._cell.array)
        if grad is None:
            meta.grad = new_tensor(Storage(value))
        elif grad._edge is not None:
            meta.grad = new_tensor(Storage(_sum_arrays(grad._cell.array, value)))
        else:
            grad._cell.write(_sum_arrays(grad._cell.array, value))

    def retain(self, tensor: Tensor, value: jax.Array) -> None:
        tensor.need_meta().grad = new_tensor(Storage(value))


class TensorValues:
    """Gradients are tensors: `create_graph=True`, where backward is recorded as it runs."""

    recorded = True

    def total(self, parts: Sequence[Tensor]) -> Tensor:
        return _chunks_of_two_four(parts, add_gradients)

    def is_small(self, value: Tensor) -> bool:
        return value.nbytes <= SMALL_BYTES

    def wrap(self, value: Tensor) -> Tensor:
        return value

    def unwrap(self, tensor: Any, like: Tensor | None, where: str) -> Tensor:
        return check_gradient(tensor, None if like is None else like._cell.array, where)

    def accumulate(self, variable: Tensor, value: Tensor) -> None:
        meta = variable.need_meta()
        meta.grad = value if meta.grad is None else add_gradients(meta.grad, value)

    def retain(self, tensor: Tensor, value: Tensor) -> None:
        tensor.need_meta().grad = value


ARRAYS, TENSORS = ArrayValues(), TensorValues()


def current_values() -> Values:
    """How gradients are handled here: recorded if grad mode is on."""
    return TENSORS if modes.local.flags == modes.GRAD else ARRAYS


Node.current_values = staticmethod(current_values)


def check_gradient(tensor: Any, like: jax.Array | None, where: str) -> Tensor:
    """A hook's answer, moved to the device of `like`; raises where it is no fitting tensor."""
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"hook '{where}' returned {type(tensor).__name__}: expected a Tensor, or None to leave "
            "the gradient as it is."
        )
    if like is None:
        return tensor
    array = tensor._cell.array
    if array.shape != like.shape:
        raise RuntimeError(
            f"hook '{where}' has changed the size of value: got shape {list(array.shape)}, expected "
            f"{list(like.shape)}. Return a gradient of the tensor's own shape."
        )
    if array.dtype != like.dtype:
        raise RuntimeError(
            f"hook '{where}' has changed the type of value (was {dtypes.of(like.dtype)} got "
            f"{dtypes.of(array.dtype)}). Convert what it returns by .to()."
        )
    moved = place_like(array, like)
    return tensor if moved is array else new_tensor(Storage(moved))


def place_like(array: Any, like: Any) -> Any:
    """`array` on the device of `like`; a tracer stays what it is."""
    if isinstance(array, jax.core.Tracer) or isinstance(like, jax.core.Tracer):
        return array
    return array if array.sharding == like.sharding else jax.device_put(array, like.sharding)


# --- inputs -----------------------------------------------------------------------------------

_scalars: OrderedDict[Any, jax.Array] = OrderedDict()


def scalar_array(value: Any) -> jax.Array:
    """A weakly typed 0-d array of a Python number, kept: jit takes it faster than the number."""
    key = (type(value), value, jax.config.jax_enable_x64)  # type: ignore[attr-defined]
    array = _scalars.get(key)
    if array is None or value == 0 or value != value:  # 0.0 and -0.0 are one key, NaN is none
        try:
            array = jnp.asarray(value)
        except OverflowError:
            raise OverflowError(
                f"the integer {value} does not fit 32 bits, which JAX uses while x64 is off. Call "
                "jax.config.update('jax_enable_x64', True), or pass a float."
            ) from None
        _scalars[key] = array
        if len(_scalars) > MAX_SCALARS:
            _scalars.popitem(last=False)
    return array


def lift(value: Any, where: str, parameter: str) -> Any:
    """The array of an input that is no Tensor: a Python number, a jax or numpy array."""
    kind = type(value)
    if kind is float or kind is int or kind is bool or kind is complex:
        return scalar_array(value)
    if isinstance(value, (jax.Array, np.ndarray, np.generic)):
        return jnp.asarray(value)
    if isinstance(value, (float, int, complex)):
        return jnp.asarray(value)
    raise TypeError(
        f"{where}(): argument '{parameter}' must be Tensor or a number, not {kind.__name__}. "
        "Make one by dg.tensor(...)."
    )


class Table(dict[tuple[Any, ...], Kernel]):
    """An operator's kernels by static arguments."""

    __slots__ = ("spec",)

    def __init__(self, spec: OperatorSpec) -> None:
        self.spec = spec

    def find(self, statics: tuple[Any, ...]) -> Kernel:
        """The kernel for `statics`, which may hold lists and tensors of one element."""
        frozen = tuple(freeze(s) for s in statics)
        try:
            kernel = self.get(frozen)
        except TypeError:
            for name, value in zip(self.spec.statics, frozen, strict=True):
                try:
                    hash(value)
                except TypeError:
                    raise TypeError(
                        f"{self.spec.name}(): argument '{name}' must be hashable, because it is part "
                        f"of the compiled kernel; got {value!r} ({type(value).__name__}). Pass "
                        "numbers, strings, dtypes, or tuples of them."
                    ) from None
            raise
        if kernel is None:
            kernel = self[frozen] = Kernel(self.spec, frozen)
            if len(self) > MAX_KERNELS:
                del self[next(iter(self))]
        return kernel


def freeze(static: Any) -> Any:
    """A static argument as what can be a key: lists become tuples, integer tensors numbers."""
    if isinstance(static, (list, tuple)):
        return tuple(freeze(s) for s in static)
    if isinstance(static, (Tensor, jax.Array, np.ndarray, np.generic)) and static.ndim == 0:
        return static.item()
    if isinstance(static, slice):
        return slice(freeze(static.start), freeze(static.stop), freeze(static.step))
    return static


# --- what goes wrong --------------------------------------------------------------------------


def recover(error: Exception, call: Callable[..., Any], spec: OperatorSpec, given: Mapping) -> Any:
    """Runs the call again with scalars moved to the others' device, or raises a clearer error."""
    tensors = {n: v for n, v in given.items() if isinstance(v, Tensor)}
    places = OrderedDict((v.device, None) for v in tensors.values() if v.ndim)
    if len({v.device for v in tensors.values()}) > 1:
        if len(places) == 1:
            (place,) = places
            moved = {n: v.to(place) for n, v in tensors.items() if v.device != place}
            return call(**{**given, **moved})
        raise RuntimeError(
            f"{spec.name}: Expected all tensors to be on the same device, but found "
            f"{', '.join(f'{n} on {v.device}' for n, v in tensors.items())}. Move them by .to()."
        ) from None
    message = str(error)
    if "ncompatible shapes for broadcasting" in message or "ot broadcast" in message:
        error = _broadcast_error(tensors, message)
    shown = [
        f"{n}: {v.dtype.name}{list(v.shape)}" if isinstance(v, Tensor) else f"{n}={v!r}"
        for n, v in given.items()
    ]
    error.add_note(f"This happened in {spec.name}({', '.join(shown)}).")
    raise error.with_traceback(None) from None


def _broadcast_error(tensors: Mapping[str, Tensor], message: str) -> RuntimeError:
    shapes = {n: v.shape for n, v in tensors.items()}
    for (a, sa), (b, sb) in zip(list(shapes.items()), list(shapes.items())[1:], strict=False):
        for back in range(1, min(len(sa), len(sb)) + 1):
            m, n = sa[-back], sb[-back]
            if m != n and 1 not in (m, n):
                dim = max(len(sa), len(sb)) - back
                return RuntimeError(
                    f"The size of tensor {a} ({m}) must match the size of tensor {b} ({n}) at "
                    f"non-singleton dimension {dim}. Shapes {list(sa)} and {list(sb)} do not "
                    "broadcast; reshape() one of them, or expand a dim of size 1."
                )
    return RuntimeError(message)


def refuse_inference(name: str) -> None:
    """Raises because an operator that is recorded would save an inference tensor."""
    raise InferenceTensorError(name)


# --- the dispatcher ---------------------------------------------------------------------------

PARAMETERS = {"self": "input"}
"""PyTorch's functions call `input` what its rules and saved fields call `self`."""

_UNWRAP = """
    if isinstance({p}, Tensor):
        c{i} = {p}._cell; x{i} = c{i}.array; v{i} = c{i}.version{edge}
    else:
        c{i} = None; v{i} = 0; x{i} = lift({p}, where, {p!r}){no_edge}"""

_RUN = """
    try:
        out = kernel.forward({xs})
    except Exception as error:
        return recover(error, call, spec, {given})"""

_WRAP_ONE = """
    cell = new(Storage); cell.array = out; cell.version = 0 if flags < INFERENCE else None
    result = new(Tensor); result._cell = cell; result._edge = None; result._meta = None"""

_RECORD_ONE = """
        node.outputs = ((out.shape, out.dtype),)
        result._edge = (node, 0)"""

_WRAP_MANY = """
    version = 0 if flags < INFERENCE else None
    cells = [None if o is None else Storage(o, version) for o in out]
    results = [None if c is None else new_tensor(c) for c in cells]"""

_RECORD_MANY = """
        node.outputs = attach(node, out, results)"""

_RECORD = """
    if flags == GRAD and ({any_edge}):
        needs = 0{edges}
        plan = kernel.plans[needs]
        if plan.by_shape:
            plan = plan.select({xs})
        node = new(node_class)
        node.plan = plan
        node.edges = ({ns},)
        node.extra = None
        pick = plan.pick
        if pick is None:
            node.saved = node.owners = node.versions = ()
        else:
            node.saved = pick({xs}, {out})
            node.owners = pick({cs}, {cell})
            node.versions = versions = pick({vs}, {zero})
            if None in versions:
                refuse_inference(where)
        node.sequence_nr = next(creation_numbers)"""

_EDGE = """
        if e{i} is None:
            n{i} = NO_EDGE
        else:
            needs |= {bit}
            n{i} = leaf_edge({p}) if e{i} is LEAF else e{i}"""


def write_dispatcher(
    spec: OperatorSpec,
    signature: str,
    namespace: Mapping[str, Any] | None = None,
    *,
    prologue: str = "",
    statics: Sequence[str] | None = None,
    differentiable: bool = True,
    optional: Sequence[str] = (),
    result_type: type | None = None,
) -> Callable[..., Any]:
    """The function that runs an operator: parameters as in `signature`, named as in `spec`.

    `statics` are the expressions of the static arguments, by default their names; `prologue` runs
    before all else. Inputs in `optional` may be None.
    """
    inputs = tuple(PARAMETERS.get(n, n) for n in spec.inputs)
    optional = [PARAMETERS.get(n, n) for n in optional]
    many = spec.outputs is not None
    recorded = [PARAMETERS.get(n, n) for n in spec.differentiable] if differentiable else []
    indices = range(len(inputs))

    def joined(letter: str) -> str:
        return ", ".join(f"{letter}{i}" for i in indices)

    parts = [f"def {spec.name}({signature}):", prologue, "\n    flags = local.flags"]
    for i, p in enumerate(inputs):
        has_edge = p in recorded
        unwrap = _UNWRAP.format(
            p=p,
            i=i,
            edge=f"; e{i} = {p}._edge" if has_edge else "",
            no_edge=f"; e{i} = None" if has_edge else "",
        )
        if p in optional:
            nothing = f"c{i} = x{i} = None; v{i} = 0" + (f"; e{i} = None" if has_edge else "")
            unwrap = unwrap.replace("\n    else:", f"\n    elif {p} is None:\n        {nothing}\n    else:")
        parts.append(unwrap)
    keys = list(spec.statics) if statics is None else list(statics)
    if keys:
        key = f"({', '.join(keys)},)"
        parts.append(
            f"\n    try:\n        kernel = table[{key}]\n    except (KeyError, TypeError):"
            f"\n        kernel = table.find({key})"
        )
    given = ", ".join(f"{p!r}: {p}" for p in (*inputs, *(spec.statics if statics is None else ())))
    parts.append(_RUN.format(xs=joined("x"), given="{" + given + "}"))
    parts.append(_WRAP_MANY if many else _WRAP_ONE)
    if recorded:
        places = [inputs.index(p) for p in recorded]
        edges = "".join(
            _EDGE.format(i=i, bit=1 << bit, p=inputs[i]) for bit, i in enumerate(places)
        )
        zero = "*[0] * len(out)" if many else "0"
        parts.append(
            _RECORD.format(
                any_edge=" or ".join(f"e{i} is not None" for i in places),
                edges=edges,
                ns=", ".join(f"n{i}" for i in places),
                xs=joined("x"),
                cs=joined("c"),
                vs=joined("v"),
                out="*out" if many else "out",
                cell="*cells" if many else "cell",
                zero=zero,
            )
        )
        parts.append(_RECORD_MANY if many else _RECORD_ONE)
    if not many:
        parts.append("\n    return result\n")
    elif result_type is None:
        parts.append("\n    return tuple(results)\n")
    else:
        parts.append("\n    return result_type(*results)\n")
    source = "".join(parts)
    table = Table(spec)
    scope: dict[str, Any] = {
        **_SCOPE,
        **(namespace or {}),
        "spec": spec,
        "table": table,
        "where": spec.name,
        "node_class": node_class(spec) if recorded else None,
        "result_type": result_type,
    }
    if not keys:
        scope["kernel"] = table.find(())
    filename = f"<dispatcher of {spec.name}>"
    exec(compile(source, filename, "exec"), scope)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    function = scope[spec.name]
    call = scope["call"] = lambda **arguments: function(**arguments)
    function.source = source
    function.spec = spec
    function.table = table
    return function


def attach(node: OperatorNode, outs: Sequence[Any], results: Sequence[Tensor | None]) -> Any:
    """Makes `node` the grad_fn of those results that can have a gradient; returns their metadata."""
    metadata = []
    for out, result in zip(outs, results, strict=True):
        if result is not None and is_differentiable(out.dtype):
            result._edge = (node, len(metadata))
            metadata.append((out.shape, out.dtype))
    return tuple(metadata)


_SCOPE: dict[str, Any] = {
    "__name__": "dyngraph",
    "GRAD": modes.GRAD,
    "INFERENCE": modes.INFERENCE,
    "LEAF": LEAF,
    "NO_EDGE": NO_EDGE,
    "Storage": Storage,
    "Tensor": Tensor,
    "attach": attach,
    "creation_numbers": creation_numbers,
    "leaf_edge": leaf_edge,
    "lift": lift,
    "local": modes.local,
    "new": object.__new__,
    "new_tensor": new_tensor,
    "recover": recover,
    "refuse_inference": refuse_inference,
}


# --- backward as an operator ------------------------------------------------------------------


def _recorded_backward(
    plan: BackwardPlan, targets: tuple[Target, ...], absent: Any, gradients: int
) -> Callable[..., Any]:
    """A plan's backward kernel as an operator of its own, so that it records a node when it runs."""
    try:
        return plan.operators[targets, absent]
    except KeyError:
        pass
    function = plan.function(targets, absent)
    places = [i for i, target in enumerate(targets) if target is not None]

    def needed_only(*values: Any) -> tuple[Any, ...]:
        results = function(*values)
        return tuple(results[i] for i in places)

    forward = plan.kernel.spec
    spec = OperatorSpec(
        forward.node_name,
        needed_only,
        inputs=[f"value{i}" for i in range(len(plan.sources) + gradients)],
        outputs=[f"grad_{forward.differentiable[i]}" for i in places],
    )
    run = write_dispatcher(spec, ", ".join(spec.inputs), optional=spec.inputs)

    def backward(*values: Any) -> list[Any]:
        results = iter(run(*values))
        return [None if target is None else next(results) for target in targets]

    plan.operators[targets, absent] = backward
    return backward


def _variadic_sum(*parts: Any) -> Any:
    return functools.reduce(operator.add, parts)


@functools.cache
def _adder(count: int) -> Callable[..., Tensor]:
    names = [f"part{i}" for i in range(count)]
    rules = dict.fromkeys(names, lambda grad: grad)
    spec = OperatorSpec("add", _variadic_sum, inputs=names, rules=rules)
    return write_dispatcher(spec, ", ".join(names))


def add_gradients(*parts: Tensor) -> Tensor:
    """The recorded sum of gradients that met."""
    return _adder(len(parts))(*parts)

"""The one path of every call: unwrap, run the kernel, wrap, record.

# Note [Dispatchers are written out]
The Python function that runs an operator is written for it, with its inputs unrolled, the way
`namedtuple` writes a class. A call then costs one Python frame: no loop, no argument tuple, nothing
inspected. `dispatch_source` has the text, and what that text calls is here.
`print(dg.mul.source)` shows the result for one operator.
"""

from __future__ import annotations

import functools
import linecache
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import modes, observed
from dyngraph.dispatch_source import PARAMETERS, DeferredSource, DispatcherSource
from dyngraph.errors import InferenceTensorError
from dyngraph.graph.node import NO_EDGE, creation_numbers
from dyngraph.kernels import Kernel, OperatorSpec, is_differentiable
from dyngraph.operator_node import OperatorNode, node_class
from dyngraph.pending import PUT_OFF
from dyngraph.sequence import NOTES
from dyngraph.storage import PendingStorage, Storage, are_inference, cell_of
from dyngraph.tensor import LEAF, Tensor, leaf_edge, new_tensor

MAX_KERNELS = 2048
"""How many sets of static arguments an operator keeps kernels for."""
MAX_SCALARS = 8192


# --- inputs -----------------------------------------------------------------------------------

_scalars: dict[Any, jax.Array] = {}
_config = jax.config


def lift(value: Any, where: str, parameter: str) -> Any:
    """The array of an input that is no Tensor: a Python number, a jax or numpy array."""
    try:
        return _scalars[value, value.__class__, _config.jax_enable_x64]  # type: ignore[attr-defined]
    except (KeyError, TypeError):
        pass
    if isinstance(value, (bool, int, float, complex)):
        return scalar_array(value)
    if isinstance(value, jax.Array):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return jnp.asarray(value)
    raise TypeError(
        f"{where}(): argument '{parameter}' must be Tensor or a number, not "
        f"{type(value).__name__}. Make one by dg.tensor(...)."
    )


def scalar_array(value: bool | int | float | complex) -> jax.Array:
    """A weakly typed 0-d array of a Python number, kept: jit takes it faster than the number."""
    kind, x64 = type(value), jax.config.jax_enable_x64  # type: ignore[attr-defined]
    # 0.0 and -0.0 are equal, so such zeros are kept by what they look like
    key = (repr(value) if value == 0 and kind in (float, complex) else value, kind, x64)
    array = _scalars.get(key)
    if array is None:
        try:
            with jax.ensure_compile_time_eval():  # a tracer must not stay in the table
                array = jnp.asarray(value)
        except OverflowError:
            raise OverflowError(
                f"the integer {value} does not fit 32 bits, which JAX uses while x64 is off. Call "
                "jax.config.update('jax_enable_x64', True), or pass a float."
            ) from None
        if len(_scalars) >= MAX_SCALARS:
            del _scalars[next(iter(_scalars))]
        _scalars[key] = array
    return array


class Table(dict[tuple[Any, ...], Kernel]):
    """An operator's kernels by static arguments, and the class of its nodes."""

    __slots__ = ("node_class", "spec")

    def __init__(self, spec: OperatorSpec) -> None:
        self.spec = spec
        self.node_class = node_class(spec)

    def __missing__(self, statics: tuple[Any, ...]) -> Kernel:
        return self.find(statics)

    def find(self, statics: tuple[Any, ...]) -> Kernel:
        """The kernel for `statics`, which may hold lists and tensors of one element.

        For statics without these the table's own `[]` is faster.
        """
        frozen = tuple(freeze(s) for s in statics)
        try:
            kernel = self.get(frozen)
        except TypeError:
            for name, value in zip(self.spec.statics, frozen, strict=True):
                try:
                    hash(value)
                except TypeError:
                    raise TypeError(
                        f"{self.spec.name}(): argument '{name}' must be hashable, because it is "
                        f"part of the compiled kernel; got {value!r} ({type(value).__name__}). "
                        "Pass numbers, strings, dtypes, or tuples of them."
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
    if hasattr(error, PUT_OFF):  # it is that of a call made before, which ran now
        raise error
    tensors = {n: v for n, v in given.items() if isinstance(v, Tensor)}
    places = OrderedDict((v.device, None) for v in tensors.values() if v.ndim)
    if len({v.device for v in tensors.values()}) > 1:
        if len(places) < 2:  # 0-d tensors follow the others, or the first of themselves
            place = next(iter(places or (v.device for v in tensors.values())))
            moved = {n: v.to(place) for n, v in tensors.items() if v.device != place}
            return call(**{**given, **moved})
        raise RuntimeError(
            f"{spec.name}: Expected all tensors to be on the same device, but found "
            f"{', '.join(f'{n} on {v.device}' for n, v in tensors.items())}. Move them by .to()."
        ) from None
    message = str(error)
    from_jax = not isinstance(error, RuntimeError)
    if from_jax and ("ncompatible shapes for" in message or "ot broadcast" in message):
        error = _broadcast_error(tensors, message)
    shown = [
        f"{n}: {v.dtype.name}{list(v.shape)}" if isinstance(v, Tensor) else f"{n}={v!r}"
        for n, v in given.items()
    ]
    name = "getitem" if spec.name.startswith("getitem_") else spec.name
    raise plain(error, f"This happened in {name}({', '.join(shown)}).") from None


def plain(error: Exception, *notes: str) -> Exception:
    """An error of a kernel without what JAX says of its own frames, and with other notes."""
    own = [n for n in getattr(error, "__notes__", ()) if "JAX has removed" not in n]
    error.__notes__ = [*own, *notes]
    return error.with_traceback(None)


def _broadcast_error(tensors: Mapping[str, Tensor], message: str) -> RuntimeError:
    shapes = {n: v.shape for n, v in tensors.items()}
    for (a, sa), (b, sb) in zip(list(shapes.items()), list(shapes.items())[1:], strict=False):
        for back in range(1, min(len(sa), len(sb)) + 1):
            m, n = sa[-back], sb[-back]
            if m != n and 1 not in (m, n):
                dim = max(len(sa), len(sb)) - back
                return RuntimeError(
                    f"The size of tensor a ({m}) must match the size of tensor b ({n}) at "
                    f"non-singleton dimension {dim}: the shapes of '{a}', {list(sa)}, and '{b}', "
                    f"{list(sb)}, do not broadcast. Reshape one, or unsqueeze() a dim of size 1."
                )
    return RuntimeError(message)


COPIES = ("clone", "to_copy")
"""Operators that make a normal tensor of an inference tensor, and are recorded all the same."""


def is_recorded(spec: OperatorSpec, guards: Sequence[Any], cells: Sequence[Storage | None]) -> bool:
    """Whether a call with an inference tensor gets a node: not where all its tensors are such.

    `guards` are those that the node would have, `cells` those of the inputs, None for a number,
    which PyTorch makes a normal tensor of in arithmetic; as one it counts unless an inference
    tensor was saved. Raises where one was saved beside normal tensors.
    """
    pairs = zip(guards[::2], guards[1::2], strict=True)
    saves = any(owner is not None and version is None for owner, version in pairs)
    if are_inference(cells):
        return spec.name in COPIES or (None in cells and not saves)
    if saves:
        raise InferenceTensorError(spec.node_name)
    return True


# --- the metadata of a node -------------------------------------------------------------------

MAX_AVALS = 4096
known_outputs: dict[int, Outputs] = {}
"""What `outputs_of` gave, by the aval's id: one lookup takes half the time of reading it."""
_avals: dict[int, Any] = {}
_outputs: dict[tuple[Any, ...], Outputs] = {}
_learning = threading.Lock()


class Outputs(tuple[tuple[tuple[int, ...], Any], ...]):
    """The `outputs` of operators' nodes. Equal ones are one object, hashed and compared as such:
    the keys of graphs are full of them."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__
    __ne__ = object.__ne__


def one_outputs(outputs: tuple[Any, ...]) -> Outputs:
    """The Outputs that equal these."""
    found = _outputs.get(outputs)
    if found is None:
        with _learning:
            if len(_outputs) >= MAX_AVALS:
                _outputs.clear()
            found = _outputs.setdefault(outputs, Outputs(outputs))
    return found


def outputs_of(aval: Any) -> Outputs:
    """The `outputs` of a node with one: all results of one compiled kernel share their aval."""
    outputs = one_outputs(((aval.shape, aval.dtype),))
    with _learning:
        if len(_avals) >= MAX_AVALS:
            known_outputs.clear()  # first: what is known has an aval that lives, and keeps its id
            _avals.clear()
        _avals[id(aval)] = aval
        known_outputs[id(aval)] = outputs
    return outputs


# --- the dispatcher ---------------------------------------------------------------------------


def write_dispatcher(
    spec: OperatorSpec,
    signature: str,
    namespace: Mapping[str, Any] | None = None,
    *,
    prologue: str = "",
    differentiable: bool = True,
    optional: Sequence[str] = (),
    result_type: type | None = None,
    table: Table | None = None,
    python_operator: bool = False,
    kept: bool = False,
    write: type[DispatcherSource] = DispatcherSource,
) -> Callable[..., Any]:
    """The function that runs an operator; see `DispatcherSource` for the arguments.

    `namespace` holds what `signature` and `prologue` name. With `table` the kernels are another
    dispatcher's. The function calls another one in deferred mode, which is written when it is
    needed.
    """
    source = write(
        spec,
        signature,
        prologue=prologue,
        recorded=differentiable,
        optional=optional,
        named=result_type is not None,
        python_operator=python_operator,
        kept=kept,
    ).text()
    table = Table(spec) if table is None else table
    scope: dict[str, Any] = {
        **_SCOPE,
        **(namespace or {}),
        "spec": spec,
        "table": table,
        "where": spec.name,
        "node_class": table.node_class,
        "result_type": result_type,
    }
    if not spec.statics:
        table.find(()).bind(scope)
    if write is DeferredSource:
        scope["note"] = NOTES[len(spec.inputs)]
    filename = f"<{'deferred ' if write is DeferredSource else ''}dispatcher of {spec.name}>"
    exec(compile(source, filename, "exec"), scope)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    function = scope["call"] = scope[f"_{spec.name}"]
    function.__name__ = function.__qualname__ = spec.name
    function.source = source
    function.spec = spec
    function.table = table
    names = [PARAMETERS.get(n, n) for n in (*spec.inputs, *spec.statics)]
    same_operator = functools.partial(
        write_dispatcher,
        spec,
        namespace=namespace,
        differentiable=differentiable,
        result_type=result_type,
        table=table,
    )
    function.with_kept = functools.cache(
        lambda: same_operator(
            signature=", ".join([*names, "kept"]), optional=spec.inputs, kept=True
        )
    )

    def deferred(*arguments: Any) -> Any:
        run = scope["deferred"] = same_operator(
            signature=", ".join([*names, "kept"] if kept else names),
            optional=optional,
            python_operator=python_operator,
            kept=kept,
            write=DeferredSource,
        )
        return run(*arguments)

    scope["deferred"] = deferred
    return function


def define_dispatcher(spec: OperatorSpec) -> Callable[..., Any]:
    """The function that runs an operator with its arguments in the order of its spec."""
    names = (*spec.inputs, *spec.statics)
    return write_dispatcher(spec, ", ".join(PARAMETERS.get(n, n) for n in names))


def attach(node: OperatorNode, outs: Sequence[Any], results: Sequence[Tensor | None]) -> Any:
    """Makes `node` the grad_fn of those results that can have a gradient; returns their
    metadata."""
    metadata = []
    for out, result in zip(outs, results, strict=True):
        if result is not None and is_differentiable(out.dtype):
            result._known_edge = (node, len(metadata))
            metadata.append((out.shape, out.dtype))
    return one_outputs(tuple(metadata))


OPERANDS = (float, int, complex, jax.Array, np.ndarray, np.generic)
_SCOPE: dict[str, Any] = {
    "__name__": "dyngraph",
    "LEAF": LEAF,
    "NO_EDGE": NO_EDGE,
    "OPERANDS": OPERANDS,
    "PendingStorage": PendingStorage,
    "Storage": Storage,
    "Tensor": Tensor,
    "attach": attach,
    "cell_of": cell_of,
    "creation_numbers": creation_numbers,
    "get_flags": modes.get_flags,
    "is_recorded": is_recorded,
    "known_outputs": known_outputs,
    "leaf_edge": leaf_edge,
    "lift": lift,
    "new": object.__new__,
    "new_tensor": new_tensor,
    "outputs_of": outputs_of,
    "recover": recover,
    "run_observed": functools.partial(observed.run_observed, write_dispatcher),
}

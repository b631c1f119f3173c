"""The one path of every call: unwrap, run the kernel, wrap, record.

# Note [Dispatchers are written out]
For each operator this file writes the Python function that runs it, with its inputs unrolled, the
way `namedtuple` writes a class. A call then costs one Python frame: no loop, no argument tuple,
nothing inspected. `TEMPLATE` below is that function; everything that is rare lives in named
functions here. Read the result for one operator with `print(dg.mul.source)`.
"""

from __future__ import annotations

import linecache
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import modes
from dyngraph.errors import InferenceTensorError
from dyngraph.graph.node import NO_EDGE, creation_numbers
from dyngraph.kernels import Kernel, OperatorSpec, is_differentiable, saved_source
from dyngraph.operator_node import OperatorNode, node_class
from dyngraph.storage import Storage
from dyngraph.tensor import LEAF, Tensor, leaf_edge, new_tensor

MAX_KERNELS = 2048
"""How many sets of static arguments an operator keeps kernels for."""
MAX_SCALARS = 8192
MAX_BRANCHED = 3
"""Up to how many differentiable inputs a dispatcher has a branch for each set of them."""


# --- inputs -----------------------------------------------------------------------------------

_scalars: dict[Any, jax.Array] = {}


def lift(value: Any, where: str, parameter: str) -> Any:
    """The array of an input that is no Tensor: a Python number, a jax or numpy array."""
    try:
        return _scalars[value, value.__class__, jax.config.jax_enable_x64]  # type: ignore[attr-defined]
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
                        f"{self.spec.name}(): argument '{name}' must be hashable, because it is "
                        f"part "
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
    from_jax = not isinstance(error, RuntimeError)
    if from_jax and ("ncompatible shapes for" in message or "ot broadcast" in message):
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
                    f"The size of tensor a ({m}) must match the size of tensor b ({n}) at "
                    f"non-singleton dimension {dim}: the shapes of '{a}', {list(sa)}, and '{b}', "
                    f"{list(sb)}, do not broadcast. Reshape one, or unsqueeze() a dim of size 1."
                )
    return RuntimeError(message)


def check_inference(node: OperatorNode) -> None:
    """Raises where `node` has saved an inference tensor."""
    owners, versions = node.guards[::2], node.guards[1::2]
    if any(o is not None and v is None for o, v in zip(owners, versions, strict=True)):
        raise InferenceTensorError(node.name())


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
        out = {forward}({xs})
    except Exception as error:
        return recover(error, call, spec, {given})"""

_WRAP_ONE = """
    cell = new(Storage); cell.array = out; cell.version = 0 if flags < {INFERENCE} else None
    result = new(Tensor); result._cell = cell; result._edge = None; result._meta = None"""

_RECORD_ONE = """
        node.outputs = ((out.shape, out.dtype),)
        result._edge = (node, 0)"""

_WRAP_MANY = """
    version = 0 if flags < {INFERENCE} else None
    cells = [None if o is None else Storage(o, version) for o in out]
    results = [None if c is None else new_tensor(c) for c in cells]"""

_RECORD_MANY = """
        node.outputs = attach(node, out, results)"""

_RECORD = """
    if flags == {GRAD} and {any_edge}:
        {edges}
        plan = {plans}[needs]{select}
        node = new(node_class)
        node.plan = plan
        node.edges = ({ns},)
        node.extra = None
{save}
        if {any_inference}:
            check_inference(node)
        node.sequence_nr = next(creation_numbers)"""

_SAVE = """
        {branch}:
            node.saved = {values}; node.guards = {guards}"""

_PICK = """
        if plan.pick is None:
            node.saved = node.guards = ()
        else:
            node.saved, node.guards = plan.pick({xs}, {cs}, {vs}, out, {cell})"""

_SELECT = """
        if plan.by_shape:
            plan = plan.select({xs})"""

_RECORD_LIKE = """
        node.outputs = (n{i}[0].outputs[n{i}[1]],)
        result._edge = (node, 0)"""

_ONLY_EDGE = """needs = 1
        n{i} = leaf_edge({p}) if e{i} is LEAF else e{i}"""

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
    differentiable: bool = True,
    optional: Sequence[str] = (),
    result_type: type | None = None,
    table: Table | None = None,
    python_operator: bool = False,
) -> Callable[..., Any]:
    """The function that runs an operator: parameters as in `signature`, named as in `spec`.

    `prologue` runs before all else. Inputs in `optional` may be None. With `table` the kernels are
    another dispatcher's. A `python_operator`, such as `__add__`, answers operands that are neither
    tensors nor numbers by NotImplemented, so that Python asks the other operand.
    """
    inputs = tuple(PARAMETERS.get(n, n) for n in spec.inputs)
    optional = [PARAMETERS.get(n, n) for n in optional]
    many = spec.outputs is not None
    recorded = [PARAMETERS.get(n, n) for n in spec.differentiable] if differentiable else []
    indices = range(len(inputs))

    def joined(letter: str) -> str:
        return ", ".join(f"{letter}{i}" for i in indices)

    parts = [f"def {spec.name}({signature}):", prologue, "\n    flags = get_flags()"]
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
            unwrap = unwrap.replace(
                "\n    else:", f"\n    elif {p} is None:\n        {nothing}\n    else:"
            )
        if python_operator:
            unwrap = unwrap.replace(
                "\n    else:",
                f"\n    elif not isinstance({p}, OPERANDS):\n        return NotImplemented\n    "
                f"else:",
            )
        parts.append(unwrap)
    if spec.statics:
        key = f"({', '.join(spec.statics)},)"
        parts.append(
            f"\n    try:\n        kernel = table[{key}]\n    except (KeyError, TypeError):"
            f"\n        kernel = table.find({key})"
        )
    given = ", ".join(f"{p!r}: {p}" for p in (*inputs, *spec.statics))
    parts.append(_RUN.format(
            xs=joined("x"),
            given="{" + given + "}",
            forward="kernel.forward" if spec.statics else "forward",
        ))
    parts.append((_WRAP_MANY if many else _WRAP_ONE).format(INFERENCE=modes.INFERENCE))
    if recorded:
        places = [inputs.index(p) for p in recorded]
        if len(places) == 1:
            edges = _ONLY_EDGE.format(i=places[0], p=recorded[0])
        else:
            edges = "needs = 0" + "".join(
                _EDGE.format(i=i, bit=1 << bit, p=inputs[i]) for bit, i in enumerate(places)
            )
        by_hand = all(n in spec.rules for n in spec.differentiable)
        parts.append(
            _RECORD.format(
                GRAD=modes.GRAD,
                any_edge=f"e{places[0]} is not None"
                if len(places) == 1
                else f"({' or '.join(f'e{i} is not None' for i in places)})",
                edges=edges,
                ns=", ".join(f"n{i}" for i in places),
                xs=joined("x"),
                any_inference=" or ".join(f"v{i} is None" for i in indices),
                save=_saving(spec)
                if by_hand and len(recorded) <= MAX_BRANCHED
                else _PICK.format(
                    xs=joined("x"),
                    cs=joined("c"),
                    vs=joined("v"),
                    cell="cells" if many else "cell",
                ).removeprefix("\n"),
                plans="kernel.plans" if spec.statics else "plans",
                select="" if by_hand else _SELECT.format(xs=joined("x")),
            )
        )
        parts.append(
            _RECORD_MANY
            if many
            else _RECORD_LIKE.format(i=places[0])
            if spec.elementwise
            else _RECORD_ONE
        )
    if not many:
        parts.append("\n    return result\n")
    elif result_type is None:
        parts.append("\n    return tuple(results)\n")
    else:
        parts.append("\n    return result_type(*results)\n")
    source = "".join(parts)
    table = Table(spec) if table is None else table
    scope: dict[str, Any] = {
        **_SCOPE,
        **(namespace or {}),
        "spec": spec,
        "table": table,
        "where": spec.name,
        "node_class": table.node_class if recorded else None,
        "result_type": result_type,
    }
    if not spec.statics:
        table.find(()).bind(scope)
    filename = f"<dispatcher of {spec.name}>"
    exec(compile(source, filename, "exec"), scope)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    function = scope[spec.name]
    scope["call"] = function
    function.source = source
    function.spec = spec
    function.table = table
    return function


def _saving(spec: OperatorSpec) -> str:
    """The code that saves, a branch for each set of inputs that need a gradient."""
    ways = {
        needs: saved_source(spec, spec.saved_by_rules(needs))
        for needs in range(1, 1 << len(spec.differentiable))
    }
    if len(set(ways.values())) == 1:
        (way,) = set(ways.values())
        return "        node.saved = {}; node.guards = {}".format(*way)
    last = max(ways)
    lines = []
    for needs, (values, guards) in ways.items():
        branch = "else" if needs == last else f"{'el' if lines else ''}if needs == {needs}"
        lines.append(_SAVE.format(branch=branch, values=values, guards=guards))
    return "".join(lines).removeprefix("\n")


def attach(node: OperatorNode, outs: Sequence[Any], results: Sequence[Tensor | None]) -> Any:
    """Makes `node` the grad_fn of those results that can have a gradient; returns their
    metadata."""
    metadata = []
    for out, result in zip(outs, results, strict=True):
        if result is not None and is_differentiable(out.dtype):
            result._edge = (node, len(metadata))
            metadata.append((out.shape, out.dtype))
    return tuple(metadata)


OPERANDS = (float, int, complex, jax.Array, np.ndarray, np.generic)
_SCOPE: dict[str, Any] = {
    "__name__": "dyngraph",
    "LEAF": LEAF,
    "NO_EDGE": NO_EDGE,
    "OPERANDS": OPERANDS,
    "Storage": Storage,
    "Tensor": Tensor,
    "attach": attach,
    "check_inference": check_inference,
    "creation_numbers": creation_numbers,
    "get_flags": modes.get_flags,
    "leaf_edge": leaf_edge,
    "lift": lift,
    "new": object.__new__,
    "new_tensor": new_tensor,
    "recover": recover,
}

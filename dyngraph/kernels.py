"""The pure half of an operator: its jitted forward and backward kernels, and what these must save.

Arrays in, arrays out; tensors, modes and the graph are not known here.

# Note [How a backward kernel is found]
A `Kernel` is an operator with its static arguments: one `jax.jit` object. What goes on behind it
when it is recorded is a `BackwardPlan`, one for each set of inputs that need a gradient. The plan
says which values to save, and makes the jitted function from them and the incoming gradients to the
outgoing ones. Where every needed input has a rule written by hand, the rules' parameters name what
is saved. Otherwise the rule is `jax.vjp` of the kernel, and what it reads depends on the inputs'
shapes, so there is one plan for each of these: the traced backward without its dead arguments.
"""

from __future__ import annotations

import inspect
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import dtypes
from dyngraph.tracing import trace_live
from dyngraph.viewing import Viewing

Rule = Callable[..., Any]
Target = tuple[tuple[int, ...], Any] | None
"""Shape and dtype of an input that needs a gradient; None for one that does not."""


class JointRule:
    """The rule of several inputs, whose gradients share most of what they compute.

    The function gives them all in a dict, by name. A kernel calls it once.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Mapping[str, Any]]) -> None:
        self.function = function

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def __call__(self, grad: Any, *values: Any) -> Mapping[str, Any]:
        return self.function(grad, *values)


class OperatorSpec:
    """What `define` was told: the function, its inputs and statics by name, and its rules.

    `jitted` is the function jitted, where it is already.
    """

    __slots__ = (
        "differentiable",
        "function",
        "inputs",
        "jitted",
        "jvps",
        "name",
        "node_name",
        "outputs",
        "passes_on",
        "rule_names",
        "rules",
        "statics",
        "viewing",
    )

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        inputs: Sequence[str],
        statics: Sequence[str] = (),
        rules: Mapping[str, Rule | None] | None = None,
        outputs: Sequence[str] | None = None,
        node_name: str | None = None,
        passes_on: bool = False,
        viewing: Viewing | None = None,
        jitted: Callable[..., Any] | None = None,
    ) -> None:
        rules = rules or {}
        self.name = name
        self.function = function
        self.inputs = tuple(inputs)
        self.statics = tuple(statics)
        self.outputs = tuple(outputs) if outputs is not None else None
        self.node_name = node_name or _node_name(name)
        self.passes_on = passes_on
        self.viewing = viewing
        self.jitted = jitted
        unknown = [n for n in rules if n not in self.inputs]
        if unknown:
            raise TypeError(f"{name} has a rule for {unknown}, but its inputs are {self.inputs}")
        self.differentiable = tuple(n for n in self.inputs if rules.get(n, jax.vjp) is not None)
        self.rules = {n: rule for n, rule in rules.items() if rule is not None}
        self.rule_names = {n: self._names_of(n, rule) for n, rule in self.rules.items()}
        self.jvps: dict[tuple[int, ...], Any] = {}  # see dyngraph.forward

    def _names_of(self, wanted: str, rule: Rule) -> tuple[str, ...]:
        """What a rule asks for beside the gradient: the names of its parameters."""
        names = tuple(inspect.signature(rule).parameters)[1:]
        known = {*self.inputs, *self.statics, *self.output_names, f"{wanted}_shape"}
        for name in names:
            if name not in known:
                raise TypeError(
                    f"the rule of {self.name} for {wanted!r} names {name!r}, which is neither an "
                    f"argument, an output nor {wanted}_shape: expected one of {sorted(known)}"
                )
        return names

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names by which rules ask for what the function returned."""
        return self.outputs or ("result",)

    def saved_by_rules(self, needs: int) -> tuple[int, ...]:
        """What the rules of the needed inputs name, as positions of inputs, then of outputs."""
        asked = {
            name
            for i, wanted in enumerate(self.differentiable)
            if needs >> i & 1
            for name in self.rule_names[wanted]
        }
        available = (*self.inputs, *self.output_names)
        return tuple(i for i, name in enumerate(available) if name in asked)

    @property
    def shape_names(self) -> tuple[str, ...]:
        """The inputs whose shape their rule names."""
        return tuple(n for n, names in self.rule_names.items() if f"{n}_shape" in names)

    @property
    def saved_names(self) -> tuple[str, ...]:
        """Every name that some rule saves, in the order of inputs, then outputs."""
        asked = {name for names in self.rule_names.values() for name in names}
        if not self.rules or len(self.rules) < len(self.differentiable):
            asked.update(self.inputs)
        return tuple(n for n in (*self.inputs, *self.output_names) if n in asked)


class Kernel:
    """An operator with its static arguments: the jitted function, and its backward plans."""

    __slots__ = ("__weakref__", "_scopes", "forward", "function", "plans", "spec", "statics")

    def __init__(self, spec: OperatorSpec, statics: tuple[Any, ...]) -> None:
        self.spec = spec
        self.statics = dict(zip(spec.statics, statics, strict=True))

        def function(*inputs: Any) -> Any:
            return spec.function(*inputs, **self.statics)

        function.__name__ = function.__qualname__ = spec.name
        self.function = function
        self._scopes: list[dict[str, Any]] = []
        self.reset()
        _kernels.add(self)

    def reset(self) -> None:
        """Starts afresh, with nothing compiled."""
        self.forward = self.spec.jitted or jax.jit(self.function)
        self.plans = _Plans(self)
        for scope in self._scopes:
            self._fill(scope)

    def bind(self, scope: dict[str, Any]) -> None:
        """Keeps `forward` and `plans` in the globals of a dispatcher, which are read fastest."""
        self._scopes.append(scope)
        self._fill(scope)

    def _fill(self, scope: dict[str, Any]) -> None:
        scope["kernel"], scope["forward"], scope["plans"] = self, self.forward, self.plans


_kernels: weakref.WeakSet[Kernel] = weakref.WeakSet()


def forget_compiled() -> None:
    """Makes every kernel compile again: the default dtype, which they may have read, has
    changed."""
    for kernel in list(_kernels):
        kernel.reset()


dtypes.on_new_default.append(forget_compiled)


class _Plans(dict[int, "BackwardPlan | PlansByShape"]):
    """Backward plans by the bits of the differentiable inputs that need a gradient."""

    __slots__ = ("kernel",)

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def __missing__(self, needs: int) -> BackwardPlan | PlansByShape:
        spec = self.kernel.spec
        needed = [n for i, n in enumerate(spec.differentiable) if needs >> i & 1]
        by_hand = all(n in spec.rules for n in needed)
        plan = RulePlan(self.kernel, needed) if by_hand else PlansByShape(self.kernel, needed)
        return self.setdefault(needs, plan)


def same(grad: Any) -> Any:
    """The rule of an input whose gradient is the output's: it costs no kernel unless it must be
    fit."""
    return grad


class BackwardPlan(ABC):
    """What to save for backward, and the jitted function that reads it.

    `sources` says where each saved value comes from: the position of an input, or the number of
    inputs plus the position of an output. `pick(*inputs, *outputs)` selects them; it is None where
    nothing is saved.
    """

    __slots__ = (
        "_functions",
        "kernel",
        "kernels",
        "mapped",
        "needed",
        "operators",
        "passes_on",
        "pick",
        "sources",
    )

    by_shape = False
    kernels: dict[Any, Callable[..., Any]]
    """What `jitted` has made, by its arguments: the Engine looks here first."""
    passes_on: bool
    """Whether every gradient is the output's own."""

    def __init__(self, kernel: Kernel, needed: Sequence[str], sources: Sequence[int]) -> None:
        self.kernel = kernel
        self.needed = tuple(needed)
        self.sources = tuple(sources)
        self.pick = _picker(kernel.spec, self.sources)
        self.kernels: dict[Any, Callable[..., Any]] = {}
        self._functions: dict[Any, Callable[..., Any]] = {}
        self.operators: dict[Any, Callable[..., Any]] = {}
        self.mapped: dict[Any, BackwardPlan] = {}
        self.passes_on = False

    def jitted(self, targets: tuple[Target, ...], absent: Any) -> Callable[..., Any]:
        """The kernel `(*saved, *gradients present) -> a gradient or None for each target`.

        `absent` is None where every output has a gradient, otherwise a tuple with shape and dtype
        of those outputs that have none, and None for those that have.
        """
        try:
            return self.kernels[targets, absent]
        except KeyError:
            # another thread may have been faster: all call the same kernel
            made = jax.jit(self.function(targets, absent))
            return self.kernels.setdefault((targets, absent), made)

    def function(self, targets: tuple[Target, ...], absent: Any) -> Callable[..., Any]:
        """The same, not jitted."""
        try:
            return self._functions[targets, absent]
        except KeyError:
            made = self.make(targets, absent)
            made.__name__ = made.__qualname__ = self.kernel.spec.node_name
            vars(made).update(plan=self, targets=targets)  # to tell kernels apart by
            return self._functions.setdefault((targets, absent), made)

    @abstractmethod
    def make(self, targets: tuple[Target, ...], absent: Any) -> Callable[..., Any]:
        """Builds that function."""


class RulePlan(BackwardPlan):
    """The plan of rules written by hand: saved is what their parameters name."""

    __slots__ = ("names",)

    def __init__(self, kernel: Kernel, needed: Sequence[str]) -> None:
        spec = kernel.spec
        sources = spec.saved_by_rules(sum(1 << spec.differentiable.index(n) for n in needed))
        self.names = tuple((*spec.inputs, *spec.output_names)[i] for i in sources)
        super().__init__(kernel, needed, sources)
        self.passes_on = all(spec.rules[n] is same for n in needed)

    def make(self, targets: tuple[Target, ...], absent: Any) -> Callable[..., Any]:
        spec, names, statics = self.kernel.spec, self.names, self.kernel.statics
        rules = [
            None if target is None else (spec.rules[n], spec.rule_names[n], n, target)
            for n, target in zip(spec.differentiable, targets, strict=True)
        ]

        def backward(*values: Any) -> tuple[Any, ...]:
            known = {**statics, **dict(zip(names, values, strict=False))}
            grads = fill_absent(values[len(names) :], absent)
            grad = grads[0] if spec.outputs is None else grads
            results = []
            joint: dict[Any, Mapping[str, Any]] = {}
            for row in rules:
                if row is None:
                    results.append(None)
                    continue
                rule, asked, name, (shape, dtype) = row
                known[f"{name}_shape"] = shape
                found = joint[rule] if rule in joint else rule(grad, *(known[n] for n in asked))
                if isinstance(rule, JointRule):
                    joint[rule] = found
                    found = found[name]
                results.append(fit(found, shape, dtype))
            return tuple(results)

        return backward


def weak_type(array: Any) -> bool:
    """Whether an array has the dtype of a Python number, which gives way to others."""
    return array.__class__ is not np.ndarray and array.weak_type


class PlansByShape:
    """Plans of the default rule, `jax.vjp` of the kernel: one for each set of input shapes."""

    __slots__ = ("_known", "_plans", "kernel", "needed")

    by_shape = True
    MOST_KNOWN = 256
    """For how many sets of avals the plan is found by their ids."""

    def __init__(self, kernel: Kernel, needed: Sequence[str]) -> None:
        self.kernel = kernel
        self.needed = tuple(needed)
        self._plans: dict[Any, TracedPlan] = {}
        self._known: dict[Any, tuple[TracedPlan, Any]] = {}

    def select(self, *inputs: Any) -> TracedPlan:
        """The plan for these inputs, traced when their shapes and dtypes are new."""
        try:
            avals = [x if x is None else x.aval for x in inputs]
        except AttributeError:  # numpy's
            return self._find(inputs)
        # All results of one compiled kernel share their aval, and ids are hashed much faster.
        key = tuple([id(aval) for aval in avals])
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= self.MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = self._find(inputs), avals  # which keeps their ids theirs
        return known[0]

    def _find(self, inputs: Sequence[Any]) -> TracedPlan:
        key = tuple([x if x is None else (x.shape, x.dtype, weak_type(x)) for x in inputs])
        try:
            return self._plans[key]
        except KeyError:
            plan = TracedPlan(self.kernel, self.needed, inputs)
            return self._plans.setdefault(key, plan)


class TracedPlan(BackwardPlan):
    """The plan of the default rule for inputs of given shapes: saved is what the trace reads."""

    __slots__ = ("avals", "reads_gradient", "traced")

    def __init__(self, kernel: Kernel, needed: Sequence[str], inputs: Sequence[Any]) -> None:
        self.kernel = kernel
        self.needed = tuple(needed)
        self.avals = [
            x if x is None else jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=weak_type(x))
            for x in inputs
        ]
        places = [i for i, aval in enumerate(self.avals) if aval is not None]
        gradients = [jax.ShapeDtypeStruct(o.shape, o.dtype) for o in self._outputs()]
        self.traced = trace_live(self._vjp, [*(self.avals[p] for p in places), *gradients])
        self.reads_gradient = self.traced.live[len(places) :]
        live = zip(places, self.traced.live, strict=False)
        super().__init__(kernel, needed, [place for place, reads in live if reads])

    def _outputs(self) -> list[Any]:
        """Shapes and dtypes of the outputs that can have a gradient."""
        outs = jax.eval_shape(self.kernel.function, *self.avals)
        outs = outs if isinstance(outs, (tuple, list)) else [outs]
        return [o for o in outs if is_differentiable(o.dtype)]

    def _vjp(self, *values: Any) -> list[Any]:
        """The gradients of the needed inputs from all inputs and all gradients."""
        count = sum(aval is not None for aval in self.avals)
        given = iter(values[:count])
        inputs = [None if aval is None else next(given) for aval in self.avals]
        places = [self.kernel.spec.inputs.index(n) for n in self.needed]

        def of_needed(*needed: Any) -> list[Any]:
            for place, value in zip(places, needed, strict=True):
                inputs[place] = value
            outs = self.kernel.function(*inputs)
            outs = outs if isinstance(outs, (tuple, list)) else [outs]
            return [o for o in outs if is_differentiable(o.dtype)]

        outs, vjp = jax.vjp(of_needed, *(inputs[p] for p in places))
        # Note [Complex gradients]
        # PyTorch's gradient is the conjugate of JAX's cotangent; for real values both are the same.
        grads = vjp(
            [jnp.conj(g).astype(o.dtype) for g, o in zip(values[count:], outs, strict=True)]
        )
        return [jnp.conj(g) for g in grads]

    def make(self, targets: tuple[Target, ...], absent: Any) -> Callable[..., Any]:
        traced, saved = self.traced, len(self.sources)

        def backward(*values: Any) -> tuple[Any, ...]:
            grads = fill_absent(values[saved:], absent)
            read = [g for g, reads in zip(grads, self.reads_gradient, strict=True) if reads]
            results = iter(traced.call(*values[:saved], *read))
            return tuple(None if t is None else fit(next(results), *t) for t in targets)

        return backward


def is_differentiable(dtype: Any) -> bool:
    """Whether values of this dtype have gradients: floating point and complex ones."""
    return dtype.kind in "fc" or jnp.issubdtype(dtype, jnp.inexact)


def fill_absent(present: Sequence[Any], absent: Any) -> Sequence[Any]:
    """All gradients, in order: those that are present, and zeros for the absent ones."""
    if absent is None:
        return present
    given = iter(present)
    return [next(given) if a is None else jnp.zeros(*a) for a in absent]


def fit(grad: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Sums a gradient down to the shape that was broadcast, and casts it to the input's dtype."""
    if grad.shape != shape:
        extra = grad.ndim - len(shape)
        stretched = tuple(
            i for i in range(grad.ndim) if i < extra or (shape[i - extra] == 1 != grad.shape[i])
        )
        summed = jnp.sum(grad, stretched, keepdims=True)
        if extra < 0 or summed.shape[extra:] != shape:
            raise RuntimeError(
                f"invalid gradient: got {list(grad.shape)} but expected shape compatible with "
                f"{list(shape)}. The tensor that it is for was turned in place, by t_() or its "
                "like, while that was not recorded: turn it while grad mode is on."
            )
        grad = summed.reshape(shape)
    if grad.dtype != dtype:
        if grad.dtype.kind == "c" and dtype.kind != "c":
            grad = grad.real
        grad = grad.astype(dtype)
    return grad


def _node_name(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.split("_")) + "Backward0"


def saved_source(spec: OperatorSpec, sources: Sequence[int]) -> tuple[str, str]:
    """Source text of two tuples: the values to save, and their guards, an owner and a version each.

    Inputs are x0, x1, ... with owners c0, ... and versions v0, ...; the output is `out`, with owner
    `cell`, or `cells` where there are several. Outputs are at version 0: they are new.
    """
    values, guards = "", ""
    for source in sources:
        place = source - len(spec.inputs)
        if place < 0:
            values += f"x{source}, "
            guards += f"c{source}, v{source}, "
        elif spec.outputs is None:
            values += "out, "
            guards += "cell, 0, "
        else:
            values += f"out[{place}], "
            guards += f"cells[{place}], 0, "
    return f"({values})", f"({guards})"


def _picker(spec: OperatorSpec, sources: Sequence[int]) -> Callable[..., tuple[Any, Any]] | None:
    """A function that gives the saved values and their guards; None where there are none."""
    if not sources:
        return None
    inputs = range(len(spec.inputs))
    arguments = [f"{letter}{i}" for letter in "xcv" for i in inputs]
    arguments += ["out", "cell" if spec.outputs is None else "cells"]
    return eval(f"lambda {', '.join(arguments)}: ({', '.join(saved_source(spec, sources))})")

"""`define`: declares an operator from one pure JAX function.

    mul = define(
        "mul", lambda self, other: jnp.multiply(self, other),
        self=lambda grad, other: grad * other,
        other=lambda grad, self: grad * self,
    )

The function's positional parameters are its inputs (arrays, or Python numbers), its keyword-only
ones are static: they are part of the compiled kernel. A keyword of `define` that names an input is
the rule for its gradient: what the rule's parameters name is what is saved; None says that the
input has no gradient. An input without a rule has JAX's.
"""

from __future__ import annotations

import inspect
import re
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

from dyngraph.dispatch import write_dispatcher
from dyngraph.dispatch_source import PARAMETERS
from dyngraph.kernels import OperatorSpec, Rule
from dyngraph.ops.out import OPERATORS as TAKE_OUT, write_out
from dyngraph.viewing import Viewing
from dyngraph.views import as_view, as_views
from dyngraph.writing import run_in_place

OPERATORS: dict[str, Callable[..., Any]] = {}
"""Every operator by name."""

UNSET: Any = type("Unset", (), {"__repr__": lambda self: "<unset>"})()
_NUMPY_NAMES = {"dim": "axis", "keepdim": "keepdims"}


def define(
    name: str,
    function: Callable[..., Any],
    *,
    signature: str | None = None,
    outputs: Sequence[str] | None = None,
    returns: str | None = None,
    differentiable: bool = True,
    node: str | None = None,
    passes_on: bool = False,
    viewing: Viewing | None = None,
    inplace: bool = False,
    otherwise: tuple[str, Any, Callable[..., Any]] | None = None,
    doc: str = "",
    **rules: Rule | None,
) -> Callable[..., Any]:
    """Declares an operator and returns the function that runs it on tensors.

    `signature` gives the public parameters where their order or defaults differ from `function`'s.
    `outputs` names the outputs of a function that returns a tuple, `returns` the named tuple that
    carries them. `passes_on=True` says that the output is the first input, so that no kernel runs.
    `viewing` makes the result a view: it says how to write back to the input.
    `differentiable=False` is for functions without a gradient: nothing is recorded. The function
    takes `out=` where `name` is among `out.OPERATORS`: functions that call it are to take it
    themselves. `inplace=True` gives it an argument `inplace`, which has the result written to the
    first input. `otherwise` is a keyword of the public function that its kernel does not have, the
    keyword's default, and the operator that runs where another value is given, after the others.
    Raises TypeError for a rule that names what it can't have.
    """
    parameters = inspect.signature(function).parameters.values()
    inputs = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
    statics = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    spec = OperatorSpec(
        name,
        function,
        inputs=[p.name for p in inputs],
        statics=[p.name for p in statics],
        rules=rules,
        outputs=outputs,
        node_name=node,
        passes_on=passes_on,
        viewing=viewing,
    )
    text, defaults, prologue = _public_signature(
        signature, [*inputs, *statics], [p.name for p in statics]
    )
    if inplace:
        given = ", ".join(p.name for p in (*inputs[1:], *statics))
        text += ", inplace=False"
        prologue += f"\n    if inplace:\n        return run_in_place(call, input, {given})"
    names = [PARAMETERS.get(p.name, p.name) for p in (*inputs, *statics)]
    scope, elsewhere = {**defaults, **_NAMES}, ""
    if otherwise is not None:
        keyword, scope["default"], scope["otherwise"] = otherwise
        names.append(keyword)
        text += f", *, {keyword}=default"
        call = f"otherwise({', '.join(names)})"
        elsewhere = f"\n    if {keyword} is not default:\n        return {call}"
    if name in TAKE_OUT:
        text, prologue = _taking_out(text, prologue, names)
    result_type = namedtuple(returns, outputs or ()) if returns else None
    run = write_dispatcher(
        spec,
        text,
        scope,
        prologue=prologue + elsewhere,
        differentiable=differentiable,
        optional=[p.name for p in inputs if p.default is None],
        result_type=result_type,
    )
    run.differentiable = differentiable  # type: ignore[attr-defined]
    run.__module__ = function.__module__
    run.__qualname__ = name
    run.__doc__ = doc or inspect.getdoc(function)
    OPERATORS[name] = run
    return run


def _public_signature(
    given: str | None, parameters: Sequence[inspect.Parameter], statics: Sequence[str]
) -> tuple[str, dict[str, Any], str]:
    """The parameter list as source text, the defaults it names, and the code that reads aliases."""
    defaults = {
        f"default_{p.name}": p.default
        for p in parameters
        if p.default is not inspect.Parameter.empty
    }
    if given is None:
        pieces = [
            p.name if f"default_{p.name}" not in defaults else f"{p.name}=default_{p.name}"
            for p in parameters
        ]
    else:
        pieces = [piece.strip() for piece in given.split(",")]
    prologue = ""
    starred = [piece[1:] for piece in pieces if piece.startswith("*") and piece != "*"]
    for piece in starred:  # several numbers, or one tuple, which may be named
        pieces[pieces.index(f"*{piece}")] = f"{piece}=(), *more"
        prologue += f"\n    if more:\n        {piece} = ({piece}, *more)"
    aliases = [n for n in statics if n in _NUMPY_NAMES and n not in starred]
    for static in aliases:
        alias = _NUMPY_NAMES[static]
        prologue += f"\n    if {alias} is not UNSET:\n        {static} = {alias}"
    required = [n for n in aliases if n in pieces]
    if required:  # an alias may stand for it, so Python can't ask for it: the code does
        for place in range(pieces.index(required[0]), len(pieces)):
            if pieces[place].isidentifier():
                prologue += (
                    f"\n    if {pieces[place]} is UNSET:\n        missing(where, {pieces[place]!r})"
                )
                pieces[place] += "=UNSET"
    if aliases:
        if "*" not in pieces and not starred:
            pieces.append("*")
        pieces += [f"{_NUMPY_NAMES[n]}=UNSET" for n in aliases]
    text = re.sub(r"\bself\b", "input", ", ".join(pieces))
    return text.replace("default_input", "default_self"), defaults, prologue


def _taking_out(text: str, prologue: str, names: Sequence[str]) -> tuple[str, str]:
    """Parameters and prologue of a function that takes `out=` too."""
    if not any(piece.startswith("*") for piece in text.split(", ")):
        text += ", *"
    given = ", ".join(f"{n!r}: {n}" for n in names)
    prologue += f"\n    if out is not None:\n        return write_out(call, out, (), {{{given}}})"
    return f"{text}, out=None", prologue


def missing(where: str, parameter: str) -> None:
    """Raises as Python does for an argument that was left out."""
    raise TypeError(f"{where}() missing 1 required positional argument: '{parameter}'")


_NAMES = {
    "UNSET": UNSET,
    "as_view": as_view,
    "as_views": as_views,
    "missing": missing,
    "run_in_place": run_in_place,
    "write_out": write_out,
}

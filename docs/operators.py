"""Writes docs/operators.md from the operators themselves: `python docs/operators.py`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import dyngraph as dg

PAGE = Path(__file__).with_suffix(".md")
HEAD = """\
# Operators

Written by `python docs/operators.py`; do not edit. One line a function: what its gradient is made
of, and what it keeps for backward.

- **by hand**: the rule is a formula, which saves what it names. **JAX's**: the rule is `jax.vjp` of
  the kernel, which saves what its trace reads, for the inputs that need a gradient. Inputs that are
  not named have no gradient.
- **made of**: the function calls these operators, and each has its own node.
- *result*, or the name of an output, is what the operator returned. Shapes are not saved.

Where gradients could be chosen otherwise, [conventions.md](conventions.md) says how they are.
`dyngraph.numpy` has every function of `jax.numpy` with JAX's own rule, as `dyngraph.special` and
`dyngraph.nn.functional` have those of `jax.scipy.special` and `jax.nn` that PyTorch lacks; which
these are depends on the installed jax, and they are not listed here.
"""
NAMESPACES = {
    "dyngraph": dg,
    "dyngraph.nn.functional": dg.nn.functional,
    "dyngraph.linalg": dg.linalg,
    "dyngraph.fft": dg.fft,
    "dyngraph.special": dg.special,
    "dyngraph.masked": dg.masked,
    "dyngraph.signal.windows": dg.signal.windows,
}
KNOWN = {n for space in NAMESPACES.values() for n in space.__all__} | set(vars(dg.Tensor))


HOMES = tuple(f"dyngraph.{room}" for room in ("ops", "nn", "linalg", "fft", "signal", "special"))


def is_operator(value: Any) -> bool:
    """Whether it is a function that computes on tensors."""
    home = getattr(value, "__module__", None) or ""
    return inspect.isfunction(value) and (home.startswith(HOMES) or hasattr(value, "spec"))


def signature(function: Callable[..., Any]) -> str:
    """The parameters with their defaults, without annotations."""
    parts, seen_star = [], False
    parameters = inspect.signature(function).parameters
    aliases = {"axis": "dim", "keepdims": "keepdim"}  # numpy's names
    for p in parameters.values():
        if p.name == "more" or aliases.get(p.name) in parameters:
            continue
        if p.kind is p.KEYWORD_ONLY and not seen_star:
            parts.append("*")
            seen_star = True
        seen_star = seen_star or p.kind is p.VAR_POSITIONAL
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        required = (
            p.default is p.empty or repr(p.default) == "<unset>"
        )  # numpy's name may stand for it
        default = "" if required else f"={shown(p.default)}"
        parts.append(f"{star}{p.name}{default}")
    return ", ".join(parts)


def shown(default: Any) -> str:
    return default.__name__ if inspect.isfunction(default) else repr(default)


def public(name: str) -> str:
    return "input" if name == "self" else name


def gradient_of(operator: Any) -> tuple[str, str]:
    """What the rules of one operator are, and what they save."""
    spec = operator.spec
    if not operator.differentiable or not spec.differentiable:
        return "none", ""
    by_hand = [n for n in spec.differentiable if n in spec.rules]
    by_jax = [n for n in spec.differentiable if n not in spec.rules]
    kinds = []
    if by_hand:
        kinds.append("by hand: " + ", ".join(map(public, by_hand)))
    if by_jax:
        kinds.append("JAX's: " + ", ".join(map(public, by_jax)))
    known = (*spec.inputs, *spec.output_names)
    asked = {n for wanted in by_hand for n in spec.rule_names[wanted]}
    saved = [public(n) if n in spec.inputs else f"*{n}*" for n in known if n in asked]
    if by_jax:
        saved.append("what the trace reads")
    return "; ".join(kinds), ", ".join(saved) or "nothing"


def names_in(code: CodeType) -> list[str]:
    """The names that a function's code and the comprehensions in it use."""
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return [*code.co_names, *(name for c in inner for name in names_in(c))]


def is_from_jax(function: Callable[..., Any]) -> bool:
    """Whether it was made from what the installed jax offers, which differs with its version."""
    return "recorded" in function.__code__.co_freevars


def family(function: Callable[..., Any]) -> str:
    """The file that a function is in; those on masked tensors count as one."""
    return function.__module__.replace("masked_moments", "masked_reductions")


def named_by(function: Callable[..., Any]) -> list[Any]:
    """The operators that a function's code names: directly, in a module, a closure or a helper."""
    found: dict[Any, None] = {}
    values: list[Any]
    todo, seen = [function], {function}
    while todo:
        current = todo.pop()
        if wrapped := getattr(current, "__wrapped__", None):
            found[wrapped] = None
        names, scope = names_in(current.__code__), current.__globals__
        values = [scope.get(name) for name in names]
        values += [cell.cell_contents for cell in current.__closure__ or ()]
        rooms = [v for v in values if inspect.ismodule(v) and v.__name__.startswith("dyngraph")]
        values += [getattr(room, name, None) for room in rooms for name in names]
        for value in values:
            if not is_operator(value) or value in seen:
                continue
            seen.add(value)
            helper = value.__name__ not in KNOWN and family(value) == family(current)
            if helper and not hasattr(value, "spec"):
                todo.append(value)
            else:
                found[value] = None
    return list(found)


def described(function: Callable[..., Any]) -> tuple[str, str]:
    """What the gradient of a function is made of, and what is saved for it."""
    if hasattr(function, "spec"):
        return gradient_of(function)
    used = named_by(function)
    nodes = [f for f in used if hasattr(f, "spec")]
    if nodes and all(f.__module__ == function.__module__ for f in nodes):
        rows = sorted(dict.fromkeys(gradient_of(f) for f in nodes))
        return "<br>".join(kind for kind, _ in rows), "<br>".join(saved for _, saved in rows)
    if any(f.__qualname__.startswith("define_variadic") for f in used):
        return "a rule for each tensor", ""
    names = sorted({f.__name__ for f in used if f in nodes or f.__name__ in KNOWN})
    return ("made of " + ", ".join(names), "") if names else ("", "")


def line(name: str, function: Callable[..., Any]) -> str:
    kind, saved = described(function)
    text = f"`{name}({signature(function)})`".replace("|", "\\|")
    return f"| {text} | {kind} | {saved} |"


def section(title: str, functions: dict[str, Callable[..., Any]]) -> str:
    rows = [line(name, functions[name]) for name in sorted(functions)]
    return "\n".join(
        [f"## {title}", "", "| function | gradient | saved |", "| --- | --- | --- |", *rows, ""]
    )


def page() -> str:
    """The text of docs/operators.md."""
    sections = [HEAD]
    for title, namespace in NAMESPACES.items():
        functions = {n: getattr(namespace, n) for n in namespace.__all__}
        listed = {n: f for n, f in functions.items() if is_operator(f) and not is_from_jax(f)}
        sections.append(section(f"`{title}`", listed))
    methods = {
        name: value
        for name, value in vars(dg.Tensor).items()
        if is_operator(value) and not hasattr(dg, name) and not name.startswith("__")
    }
    sections.append(section("Methods of `Tensor` that are no functions", methods))
    return re.sub(r" at 0x[0-9a-f]+", "", "\n".join(sections))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}", file=sys.stderr)

"""The text of the function that runs an operator: what `dispatch.write_dispatcher` compiles.

The text names values by letter and input: x0 is the array of the first input, c0 the Storage that
owns it, v0 its version, e0 the edge of its tensor, n0 that edge as the node keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dyngraph import modes
from dyngraph.kernels import OperatorSpec, saved_source

PARAMETERS = {"self": "input"}
"""PyTorch's functions call `input` what its rules and saved fields call `self`."""
MAX_BRANCHED = 3
"""Up to how many differentiable inputs the text has a branch for each set of them."""


class DispatcherSource:
    """Writes the text for one operator.

    `signature` is the parameter list, `prologue` what runs first. `recorded`: whether calls can be
    recorded. Inputs in `optional` may be None. The results of an operator with several outputs are
    a tuple, or a `result_type` where `named`. One with `kept` runs no kernel: its last argument,
    `kept`, is what that would give. A `python_operator` gives back NotImplemented for
    operands that are neither tensors nor numbers.
    """

    slot = "array"
    call = "{forward}({values})"
    cell = "Storage(); cell.array = out"
    metadata = "known_outputs.get(id(out.aval)) or outputs_of(out.aval)"
    """What another text of the same operator has otherwise."""

    def __init__(
        self,
        spec: OperatorSpec,
        signature: str,
        *,
        prologue: str = "",
        recorded: bool = True,
        optional: Sequence[str] = (),
        named: bool = False,
        python_operator: bool = False,
        kept: bool = False,
    ) -> None:
        clashes = [n for n in (*spec.inputs, *spec.statics) if re.fullmatch(r"[cenvx]\d+", n)]
        if clashes:
            raise TypeError(f"{spec.name}: {clashes} are the dispatcher's own names; choose others")
        self.spec = spec
        self.signature = signature
        self.prologue = prologue
        self.optional = {PARAMETERS.get(n, n) for n in optional}
        self.named = named
        self.kept = kept
        self.python_operator = python_operator
        self.inputs = [PARAMETERS.get(n, n) for n in spec.inputs]
        self.places = [spec.inputs.index(n) for n in spec.differentiable] if recorded else []
        self.many = spec.outputs is not None

    def text(self) -> str:
        """The whole function."""
        blocks = [
            f"def _{self.spec.name}({self.signature}):{self.prologue}",
            "    flags = get_flags()",
            self.observed(),
            *(self.unwrap(i, p) for i, p in enumerate(self.inputs)),
            self.run(),
            self.wrap(),
            *([self.record()] if self.places else []),
            self.result(),
        ]
        return "\n".join(blocks) + "\n"

    def observed(self) -> str:
        """The way in modes that look at the call, which run this function again with them off."""
        others = modes.OBSERVED & ~modes.DEFERRED
        return (
            f"    if flags >= {modes.FORWARD}:\n"
            f"        if not flags & {others}:\n"
            f"            return deferred({', '.join(self.names())})\n"
            f"        return run_observed(call, {bool(self.places)}, {self.given()})"
        )

    def given(self) -> str:
        """Source of a dict of the call's own arguments: inputs, then statics."""
        return f"{{{', '.join(f'{n!r}: {n}' for n in self.names())}}}"

    def names(self) -> tuple[str, ...]:
        """The call's own arguments."""
        return (*self.inputs, *self.spec.statics, *(["kept"] if self.kept else []))

    def unwrap(self, i: int, p: str) -> str:
        """Input `p`: its array, and what recording would ask of it."""
        no_edge = f"; e{i} = None" if i in self.places else ""
        lines = [
            f"    if isinstance({p}, Tensor):",
            f"        c{i} = {p}._cell; x{i} = c{i}.{self.slot}; v{i} = c{i}.version",
        ]
        if i in self.places:
            lines += [
                "        try:",
                f"            e{i} = {p}._known_edge",
                "        except AttributeError:",
                f"            e{i} = {p}._edge",
            ]
        if p in self.optional:
            lines += [f"    elif {p} is None:", f"        c{i} = x{i} = None; v{i} = 0{no_edge}"]
        if self.python_operator:
            lines += [
                f"    elif not isinstance({p}, OPERANDS):",
                "        return NotImplemented",
            ]
        lines += [
            "    else:",
            f"        c{i} = None; v{i} = 0; x{i} = lift({p}, where, {p!r}){no_edge}",
        ]
        return "\n".join(lines)

    def run(self) -> str:
        """The kernel's call; none where the array is passed on as it is."""
        statics = self.spec.statics
        lines = []
        if statics:
            key = f"({', '.join(statics)},)"
            lines = [
                "    try:",
                f"        kernel = table[{key}]",
                "    except TypeError:",
                f"        kernel = table.find({key})",
            ]
        if self.kept or self.spec.passes_on:
            return "\n".join([*lines, f"    out = {'kept' if self.kept else 'x0'}"])
        forward = "kernel.forward" if statics else "forward"
        lines += [
            "    try:",
            f"        out = {self.call.format(forward=forward, values=self.all('x'))}",
            "    except Exception as error:",
            f"        return recover(error, call, spec, {self.given()})",
        ]
        return "\n".join(lines)

    def wrap(self) -> str:
        """New tensors of the kernel's results."""
        version = f"0 if flags < {modes.INFERENCE} else None"
        if self.many:
            return (
                f"    version = {version}\n"
                f"    cells = [None if o is None else cell_of(o, version) for o in out]\n"
                "    results = [None if c is None else new_tensor(c) for c in cells]"
            )
        return (
            f"    cell = {self.cell}; cell.version = {version}; "
            "cell.views = None\n"
            "    result = new(Tensor); result._cell = cell; result._known_edge = None; "
            "result._meta = result._view = None"
        )

    def record(self) -> str:
        """The node behind the results, if an input needs a gradient."""
        needs_any = " or ".join(f"e{i} is not None" for i in self.places)
        if len(self.places) > 1:
            needs_any = f"({needs_any})"
        normal = " and ".join(f"v{i} is not None" for i in range(len(self.inputs)))
        by_hand = all(n in self.spec.rules for n in self.spec.differentiable)
        lines = [
            f"    if flags == {modes.GRAD} and {needs_any}:",
            *self.edges(),
            f"        plan = {'kernel.' if self.spec.statics else ''}plans[needs]",
        ]
        if not by_hand:
            lines += [
                "        if plan.by_shape:",
                f"            plan = plan.select({self.all('x')})",
            ]
        lines += [
            *(self.save() if by_hand and len(self.places) <= MAX_BRANCHED else self.pick()),
            f"        if {normal} or is_recorded(spec, guards, ({self.all('c')},)):",
            "            node = node_class()",
        ]
        outputs = "attach(node, out, results)" if self.many else self.metadata
        edges = f"({', '.join(f'n{i}' for i in self.places)},)"
        lines.append(
            f"            node.record = "
            f"({edges}, next(creation_numbers), {outputs}, None, plan, saved, guards)"
        )
        if not self.many:
            lines.append("            result._known_edge = (node, 0)")
        return "\n".join(lines)

    def edges(self) -> list[str]:
        """Where the gradients go, and the bits of the inputs that need one."""
        if len(self.places) == 1:
            (i,) = self.places
            p = self.inputs[i]
            return ["        needs = 1", f"        n{i} = leaf_edge({p}) if e{i} is LEAF else e{i}"]
        lines = ["        needs = 0"]
        for bit, i in enumerate(self.places):
            lines += [
                f"        if e{i} is None:",
                f"            n{i} = NO_EDGE",
                "        else:",
                f"            needs |= {hex(1 << bit)}",
                f"            n{i} = leaf_edge({self.inputs[i]}) if e{i} is LEAF else e{i}",
            ]
        return lines

    def save(self) -> list[str]:
        """What the hand-written rules read, in a branch for each set of needed inputs."""
        ways = {
            needs: saved_source(self.spec, self.spec.saved_by_rules(needs))
            for needs in range(1, 1 << len(self.places))
        }
        if len(set(ways.values())) == 1:
            return ["        " + self.set_saved(*ways[1])]
        lines = []
        for needs, (values, guards) in ways.items():
            word = "if" if needs == 1 else "elif"
            lines += [
                "        else:" if needs == max(ways) else f"        {word} needs == {needs}:",
                f"            {self.set_saved(values, guards)}",
            ]
        return lines

    def set_saved(self, values: str, guards: str) -> str:
        """Sets what the node will save."""
        return f"saved = {values}; guards = {guards}"

    def pick(self) -> list[str]:
        """What the plan says; for the default rule it depends on the inputs' shapes."""
        cell = "cells" if self.many else "cell"
        known = f"{self.all('x')}, {self.all('c')}, {self.all('v')}, out, {cell}"
        return [
            "        if plan.pick is None:",
            "            saved = guards = ()",
            "        else:",
            f"            saved, guards = plan.pick({known})",
        ]

    def result(self) -> str:
        """What the call gives back."""
        viewing = self.spec.viewing
        if viewing is not None:
            shown = "tuple(results)" if self.many else "result"
            others = "".join(f"x{i}, " for i in range(1, len(self.inputs)))
            make = f"as_views({self.inputs[0]}, results, kernel, flags)"
            if not self.many:
                make = f"as_view({self.inputs[0]}, result, kernel, ({others}), flags)"
            return f"    if c0 is not None:\n        {make}\n    return {shown}"
        if not self.many:
            return "    return result"
        return "    return result_type(*results)" if self.named else "    return tuple(results)"

    def all(self, letter: str) -> str:
        """The values of one letter, for all inputs."""
        return ", ".join(f"{letter}{i}" for i in range(len(self.inputs)))


class DeferredSource(DispatcherSource):
    """Writes the text that notes the kernel's call: see Note [Kernels are put off].

    It runs where no other mode looks at the call but the one that packs what is saved.
    """

    slot = "held"
    call = "note({forward}, {values})"
    metadata = "((out.shape, out.dtype),)"

    @property
    def cell(self) -> str:  # type: ignore[override]
        if self.spec.passes_on:
            return "cell_of(out)"
        return "PendingStorage(); cell.held = out"

    def observed(self) -> str:
        return f"    flags &= {modes.GRAD | modes.INFERENCE}"

    def pick(self) -> list[str]:
        return [*super().pick(), "        saved = [*saved]"]

    def set_saved(self, values: str, guards: str) -> str:
        return super().set_saved(f"[{values[1:-1]}]", guards)

"""Conditions: what of the world outside has gone into a traced step as a constant.

A program serves a call only where all of this is as it was: otherwise the step is traced anew.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from dyngraph.steps.reached import Reached
from dyngraph.steps.sources import Found, Sources, grad_of
from dyngraph.storage import Storage
from dyngraph.tensor import LEAF, Tensor


class Conditions:
    """The conditions of a step that was just traced, with `given` as its tensor arguments."""

    def __init__(
        self, sources: Sources, found: Found, given: Sequence[Tensor], reached: Reached
    ) -> None:
        self.sources = sources
        self.kinds = [_kind(cell) for cell in found.cells]
        self.leaves = [_state_of_leaf(leaf) for leaf in found.leaves]
        own = {id(tensor) for tensor in given}
        self.tensors = [
            (weakref.ref(t), weakref.ref(t._cell)) for t in reached.tensors if id(t) not in own
        ]
        self.own = {id(cell): reference for reference in sources.cells if (cell := reference())}
        self.own |= {id(c): weakref.ref(c) for t in given if (c := t._cell) in reached.cells}
        self.shared = self._shared(given)
        self.modules = [
            (weakref.ref(m), _state_of_module(m), _options_of(m)) for m in reached.modules
        ]
        self.optimizers = [(weakref.ref(o), _state_of_optimizer(o)) for o in reached.optimizers]
        self.forms = [owner().lifted(key)[0] for owner, key in sources.lifted]  # type: ignore[union-attr]

    def settle(self) -> None:
        """Leaves out what the step itself has changed while it was traced, such as a count of
        calls."""
        for module, _, options in self.modules:
            now = {} if module() is None else _options_of(module())
            for name in [name for name, value in options.items() if now.get(name) != value]:
                del options[name]

    def why_not(
        self, given: Sequence[Tensor], found: Found, versions: Sequence[int | None]
    ) -> str | None:
        """What is not as it was; None where all is.

        `versions` are those that the last call of the program has left the Storages with.
        """
        cells, leaves = found
        if [cell.version for cell in cells] != versions:
            for cell, kind in zip(cells, self.kinds, strict=True):
                now = _kind(cell)
                if now != kind:
                    return f"a tensor that the step reads was {_shown(kind)}, is {_shown(now)}"
        for number, leaf in enumerate(leaves):
            if _state_of_leaf(leaf) != self.leaves[number]:
                was, now = self.leaves[number], _state_of_leaf(leaf)
                what = "requires_grad" if was[0] != now[0] else "a .grad"
                i = 0 if was[0] != now[0] else 1
                return f"{what} of a tensor of shape {list(leaf.shape)}: was {was[i]}, is {now[i]}"
        for reference, cell in self.tensors:
            tensor = reference()
            if tensor is not None and tensor._cell is not cell():
                return f"a tensor of shape {list(tensor.shape)} has other memory now"
        if self._shared(given) != self.shared:
            return "an argument shares memory with what the step reads, or does no more"
        for module, was, options in self.modules:
            now = None if module() is None else _state_of_module(module())
            if now != was:
                return _of_modules(module(), was, now)
            attributes = vars(module())
            for name, value in options.items():
                if attributes.get(name) != value:
                    what = f"{name} of a {type(module()).__name__}"
                    return f"{what} was {value!r}, is {attributes.get(name)!r}"
        for optimizer, was in self.optimizers:
            if optimizer() is None:
                return "an optimizer is gone"
            if _state_of_optimizer(optimizer()) != was:
                name = type(optimizer()).__name__
                return f"what {name} has compiled in, its parameters, or their state changed"
        forms = [owner().lifted(key)[0] for owner, key in self.sources.lifted]  # type: ignore[union-attr]
        if forms != self.forms:
            return "an option of an optimizer is of another kind now"
        return None

    def _shared(self, given: Sequence[Tensor]) -> list[int]:
        """Which arguments have a Storage that the step reaches without them too."""
        return [
            place
            for place, tensor in enumerate(given)
            if (reference := self.own.get(id(tensor._cell))) and reference() is tensor._cell
        ]


def _kind(cell: Storage) -> tuple[Any, ...]:
    array = cell.array
    return array.shape, array.dtype, array.weak_type, cell.version is None


def _shown(kind: tuple[Any, ...]) -> str:
    return f"{kind[1].name}[{','.join(map(str, kind[0]))}]"


def _state_of_leaf(leaf: Tensor) -> tuple[bool, bool]:
    return leaf._edge is LEAF, grad_of(leaf) is not None


def _state_of_module(module: Any) -> tuple[Any, ...]:
    return (
        module.training,
        tuple(map(id, module._parameters.values())),
        tuple(map(id, module._buffers.values())),
    )


_SIMPLE = (int, float, str, bool, type(None))


def _options_of(module: Any) -> dict[str, Any]:
    """The attributes of a module that are Python's numbers, words, or None."""
    return {name: value for name, value in vars(module).items() if type(value) in _SIMPLE}


def _of_modules(module: Any, was: tuple[Any, ...], now: tuple[Any, ...] | None) -> str:
    name = type(module).__name__
    if now is None:
        return "a module is gone"
    if was[0] != now[0]:
        return f"training of a {name} was {was[0]}, is {now[0]}"
    return f"a {name} has other parameters or buffers"


def _state_of_optimizer(optimizer: Any) -> tuple[Any, ...]:
    groups = [tuple(map(id, group["params"])) for group in optimizer.param_groups]
    tensors = [  # parameters may share one, and do so no more
        tuple(map(id, state.values())) if isinstance(state, dict) else id(state)
        for state in optimizer.state.values()
    ]
    return groups, tensors, optimizer.compiled_in()

"""Modules that hold modules: in a row, in a list, in a dict."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

from dyngraph.nn.modules.module import Module

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


class _Row(Module):
    """Modules by number, which are their names."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def _key(self, idx: Any) -> str:
        """The name of the module at a place, which may count from the end."""
        place, count = operator.index(idx), len(self)
        if not -count <= place < count:
            raise IndexError(f"index {place} is out of range, there are {count} modules")
        return list(self._modules)[place]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx: int | slice) -> None:
        keys = list(self._modules)[idx] if isinstance(idx, slice) else [self._key(idx)]
        for key in keys:
            delattr(self, key)
        self._modules = {str(i): m for i, m in enumerate(self._modules.values())}

    def append(self, module: Module) -> Self:
        """Adds a module at the end, and returns the container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds modules at the end, and returns the container; TypeError for no iterable."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend should be called with an iterable, but got "
                f"{type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Adds a module before the one at `index`."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._modules = {str(i): m for i, m in enumerate(modules)}

    def pop(self, key: int | slice) -> Any:
        """Takes out and returns the module, or modules, at a place."""
        module = self[key]
        del self[key]
        return module

    if TYPE_CHECKING:

        def __getitem__(self, idx: Any) -> Any: ...


class Sequential(_Row):
    """Calls its modules one after the other, each with what the one before it returned.

    They are given as arguments, or with names in an OrderedDict.

    >>> model = dg.nn.Sequential(dg.nn.ReLU(), dg.nn.Flatten(0))
    >>> model(dg.tensor([[-1.0, 1.0]]))
    tensor([0., 1.])
    >>> model[0]
    ReLU()
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = len(args) == 1 and isinstance(args[0], OrderedDict)
        for name, module in args[0].items() if named else enumerate(args):
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input

    if not TYPE_CHECKING:

        def __getitem__(self, idx: int | slice) -> Any:
            if isinstance(idx, slice):
                return type(self)(OrderedDict(list(self._modules.items())[idx]))
            return self._modules[self._key(idx)]

    def insert(self, index: int, module: Module) -> Self:
        """Adds a module before the one at `index`, and returns the container; IndexError where
        that is beyond the end."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}, got {type(module)}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        super().insert(index, module)
        return self

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *_checked(other))

    def __iadd__(self, other: Sequential) -> Self:
        return self.extend(_checked(other))

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*(list(self) * _count(other)))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        return self.extend(list(self) * (_count(other) - 1))


def _checked(other: Any) -> Sequential:
    if not isinstance(other, Sequential):
        raise ValueError(
            f"add operator supports only objects of Sequential class, but {type(other)} is given."
        )
    return other


def _count(other: Any) -> int:
    if not isinstance(other, int):
        raise TypeError(f"unsupported operand type(s) for *: Sequential and {type(other)}")
    if other <= 0:
        raise ValueError(f"Non-positive multiplication factor {other} for Sequential")
    return other


class ModuleList(_Row):
    """A list of modules, which belong to the module that has it as an attribute.

    >>> layers = dg.nn.ModuleList([dg.nn.ReLU() for _ in range(3)])
    >>> layers.append(dg.nn.Tanh())
    ModuleList(
      (0-2): 3 x ReLU()
      (3): Tanh()
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    if not TYPE_CHECKING:

        def __getitem__(self, idx: int | slice) -> Any:
            if isinstance(idx, slice):
                return type(self)(list(self._modules.values())[idx])
            return self._modules[self._key(idx)]

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        blocks: list[tuple[int, int, str]] = []  # first, last, text
        for place, module in enumerate(self):
            text = repr(module)
            if blocks and blocks[-1][2] == text:
                blocks[-1] = (blocks[-1][0], place, text)
            else:
                blocks.append((place, place, text))
        if not blocks:
            return f"{self._get_name()}()"
        lines = [
            f"({first}): {text}"
            if first == last
            else f"({first}-{last}): {last - first + 1} x {text}"
            for first, last, text in blocks
        ]
        inner = "\n".join(lines).replace("\n", "\n  ")
        return f"{self._get_name()}(\n  {inner}\n)"


class ModuleDict(Module):
    """A dict of modules, which belong to the module that has it as an attribute.

    >>> heads = dg.nn.ModuleDict({"relu": dg.nn.ReLU()})
    >>> heads["tanh"] = dg.nn.Tanh()
    >>> list(heads)
    ['relu', 'tanh']
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Takes all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Takes out and returns a module."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Any]:
        """The names and the modules."""
        return self._modules.items()

    def values(self) -> ValuesView[Any]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds modules by name, from a mapping or pairs; TypeError or ValueError for others."""
        for key, module in pairs_of(modules, "ModuleDict"):
            self[key] = module


def pairs_of(given: Any, name: str) -> list[tuple[str, Any]]:
    """The names and values that `update` of a module named `name` was given."""
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{name}.update should be called with an iterable of key/value pairs, but got "
            f"{type(given).__name__}"
        )
    if hasattr(given, "items"):
        return list(given.items())  # type: ignore[attr-defined]
    pairs = list(given)
    for place, pair in enumerate(pairs):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{name} update sequence element #{place} should be Iterable; is "
                f"{type(pair).__name__}"
            )
        if len(pair) != 2:  # type: ignore[arg-type]
            raise ValueError(
                f"{name} update sequence element #{place} has length {len(pair)}; 2 is required"  # type: ignore[arg-type]
            )
    return pairs

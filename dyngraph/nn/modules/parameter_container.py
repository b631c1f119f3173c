"""Parameters in a list, and in a dict, which belong to the module that has it as an attribute.

A tensor that is put in becomes a Parameter; anything else stays what it is.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, KeysView
from typing import Any, NoReturn, Self

from dyngraph.nn.modules.container import pairs_of
from dyngraph.nn.modules.module import Module
from dyngraph.nn.parameter import Parameter
from dyngraph.tensor import Tensor

__all__ = ["ParameterDict", "ParameterList"]


def _as_parameter(value: Any) -> Any:
    is_plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if is_plain else value


def _described(name: Any, value: Any, *, type_name: bool) -> str:
    if not isinstance(value, Tensor):
        return f"  ({name}): Object of type: {type(value).__name__}"
    what = "Parameter" if isinstance(value, Parameter) else "Tensor"
    kind = value.type() if type_name else value.dtype
    size = "x".join(str(n) for n in value.shape)
    place = f" ({value.device})" if value.device.type != "cpu" else ""
    return f"  ({name}): {what} containing: [{kind} of size {size}{place}]"


class ParameterList(Module):
    """A list of parameters.

    >>> scales = dg.nn.ParameterList([dg.ones(2), dg.ones(2)])
    >>> [name for name, _ in scales.named_parameters()]
    ['0', '1']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _key(self, idx: Any) -> str:
        place = operator.index(idx)
        if not -len(self) <= place < len(self):
            raise IndexError(f"index {place} is out of range, there are {len(self)} parameters")
        return str(place % len(self))

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(self[i] for i in range(*idx.indices(len(self))))
        return getattr(self, self._key(idx))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, self._key(idx), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def append(self, value: Any) -> Self:
        """Adds a parameter at the end, and returns the list."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Adds parameters at the end, and returns the list; TypeError for no iterable."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_described(i, p, type_name=False) for i, p in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict of parameters, in the order in which they were put in.

    >>> scales = dg.nn.ParameterDict({"left": dg.ones(2)})
    >>> scales["left"].requires_grad
    True
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if not isinstance(key, str):
            raise TypeError(f"Index given to ParameterDict must be a string, got {key!r}")
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"Index given to ParameterDict must be a string, got {key!r}")
        self._keys[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """A dict of the same parameters."""
        return ParameterDict(self.items())

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter of that name, `default` being put in where there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Takes all parameters out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Takes out and returns a parameter."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Takes out and returns the last name and parameter."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter of that name, `default` where there is none."""
        if key not in self:
            return default
        return self[key]

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dict with `default` under each of `keys`."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._keys.keys()

    def items(self) -> list[tuple[str, Any]]:
        """The names and the parameters."""
        return [(key, self[key]) for key in self._keys]

    def values(self) -> list[Any]:
        """The parameters."""
        return [self[key] for key in self._keys]

    def update(self, parameters: Any) -> None:
        """Adds parameters by name, from a mapping or pairs; TypeError or ValueError for others."""
        pairs = pairs_of(parameters, "ParameterDict")
        if type(parameters) is dict:  # PyTorch's order, from when dicts had none
            pairs.sort(key=lambda pair: pair[0])
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(_described(key, p, type_name=True) for key, p in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: ParameterDict) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        return ParameterDict(other) | self

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

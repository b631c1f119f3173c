"""`layer`: the class decorator of modules that only keep what they are made with."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, dataclass_transform

from dyngraph.nn.modules.module import Module


@dataclass_transform(eq_default=False)
def layer(cls: Any) -> Any:
    """Writes `__init__` from the annotated names of a `Layer`, which become attributes."""
    return dataclasses.dataclass(eq=False, repr=False)(cls)


class Layer(Module):
    """A Module whose annotated names are the arguments of `__init__`, in their order.

    `check` raises for those that do not fit, and completes the others. Its text shows those in
    `shown`, all where that is None; `inplace` only where it is set.
    """

    shown: ClassVar[tuple[str, ...] | None] = None

    def __post_init__(self, *args: Any) -> None:
        Module.__init__(self)
        self.check(*args)

    def check(self) -> None:
        """Raises where the arguments do not fit."""

    def extra_repr(self) -> str:
        names = self.shown
        if names is None:
            names = tuple(f.name for f in dataclasses.fields(self))  # type: ignore[arg-type]
        shown = [
            f"{name}={getattr(self, name)!r}" for name in names if name != "inplace" or self.inplace
        ]
        return ", ".join(shown)

"""Watch: notes what a step reaches, while it runs as it is written."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any, Self

from dyngraph.observed import Interceptor
from dyngraph.pure import Pure
from dyngraph.steps.reached import Reached, root_of
from dyngraph.storage import Place, Storage
from dyngraph.tensor import LEAF, Tensor
from dyngraph.tracing import Tracer


class Watch(Pure):
    """Inside, `found` comes to hold what operators read, what is written, whose `.grad` is asked
    for or set, and which generators, modules and optimizers are used.

    `made` are the Storages of operators' results.
    """

    is_differentiated = False

    def __init__(self, name: str) -> None:
        super().__init__(name, lambda cls, args, kwargs: cls._apply(*args, **kwargs))
        self.found = Reached()
        self.made: list[weakref.ref[Storage]] = []
        self._looker: _Looker | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        self._looker = _Looker(self).__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._looker is not None
        self._looker.__exit__(*exception)
        self._looker = None  # it knows this Watch: together they would be a cycle
        super().__exit__(*exception)

    def note_tensor(self, tensor: Tensor) -> None:
        """Notes a tensor that an operator reads."""
        self.found.tensors.add(tensor)
        self.note_cell(tensor._cell)

    def note_cell(self, cell: Storage) -> None:
        """Notes a Storage that is read or written; one with a tracer is known, or of inside."""
        if type(cell) is Place:
            return
        root = root_of(cell)
        if not isinstance(root.array, Tracer):
            self.found.cells.add(root)

    def write(self, cell: Storage, array: Any) -> Any:
        self.note_cell(cell)
        return array

    def renew(self, cell: Storage, array: Any) -> None:
        self.note_cell(cell)
        cell.array = array

    def note_grad(self, tensor: Any) -> None:
        self.note_leaf(tensor)

    def note_memory(self, tensor: Any) -> None:
        self.note_cell(tensor._cell)

    def note_leaf(self, tensor: Any) -> None:
        if tensor.is_leaf:
            self.found.leaves.add(tensor)

    def note_flag(self, tensor: Any) -> None:
        self.note_leaf(tensor)

    def note_module(self, module: Any) -> None:
        self.found.modules.add(module)

    def note_optimizer(self, optimizer: Any) -> None:
        self.found.optimizers.add(optimizer)

    def take(self, generator: Any, *, is_default: bool) -> tuple[Any, Any] | None:
        self.found.generators.add(generator)
        return None

    def note_seed(self, generator: Any, seed: int, count: int, *, restored: bool) -> None:
        self.found.generators.add(generator)

    def lift(self, owner: Any, key: Any, array: Any) -> Any:
        self.found.lifted[id(owner), key] = weakref.ref(owner), key
        return array

    def is_outside(self, array: Any) -> bool:
        return True


class _Looker(Interceptor):
    """Shows a Watch what each operator is given, and what it makes."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def intercept(self, op: Any, given: Mapping[str, Any], run: Callable[[], Any]) -> Any:
        for value in given.values():
            if isinstance(value, Tensor):
                self.watch.note_tensor(value)
                if value._edge is LEAF:
                    self.watch.note_leaf(value)
        results = run()
        if results is not NotImplemented:
            for result in [results] if isinstance(results, Tensor) else results:
                if result is not None:
                    self.watch.made.append(weakref.ref(result._cell))
        return results

"""Tree: what a module is made of, by name: its children, its parameters, its buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

from dyngraph.nn.parameter import Parameter
from dyngraph.tensor import Tensor

if TYPE_CHECKING:
    from dyngraph.nn.modules.module import Module


class Tree:
    """The part of Module that finds what it is made of."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

    # --- everything, in the order of registration ---------------------------------------------

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once; without `recurse` only this module's own.

        >>> [p.shape for p in dg.nn.Linear(2, 3).parameters()]
        [dyngraph.Size([3, 2]), dyngraph.Size([3])]
        """
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their names, `prefix` in front; tied ones under each of their names
        with `remove_duplicate=False`.

        >>> [name for name, _ in dg.nn.Sequential(dg.nn.Linear(2, 3)).named_parameters()]
        ['0.weight', '0.bias']
        """
        return self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once; without `recurse` only this module's own."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names, as `named_parameters`.

        >>> [name for name, _ in dg.nn.BatchNorm1d(2).named_buffers()]
        ['running_mean', 'running_var', 'num_batches_tracked']
        """
        return self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        found: set[int] = set()
        modules: Any = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or id(member) in found:
                    continue
                if remove_duplicate:
                    found.add(id(member))
                yield path + ("." if path else "") + name, member

    def children(self) -> Iterator[Module]:
        """The modules that are attributes of this one, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules that are attributes of this one, with their names, each once.

        >>> [name for name, _ in dg.nn.Sequential(dg.nn.ReLU(), dg.nn.Tanh()).named_children()]
        ['0', '1']
        """
        found: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in found:
                found.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it, each once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module, called `prefix`, and all below it, with their paths.

        >>> [path for path, _ in dg.nn.Sequential(dg.nn.ReLU()).named_modules()]
        ['', '0']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)  # type: ignore[arg-type]
        yield prefix, self  # type: ignore[misc]
        for name, module in self._modules.items():
            if module is not None:
                path = prefix + ("." if prefix else "") + name
                yield from module.named_modules(memo, path, remove_duplicate)

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Calls `fn` with every module below this one, and then with this one; returns it.

        >>> def set_to_one(module):
        ...     if isinstance(module, dg.nn.Linear):
        ...         dg.nn.init.ones_(module.weight)
        >>> dg.nn.Linear(2, 1, bias=False).apply(set_to_one)(dg.ones(2)).tolist()
        [2.0]
        """
        for module in self.children():
            module.apply(fn)
        fn(self)  # type: ignore[arg-type]
        return self

    # --- one thing, by its path ---------------------------------------------------------------

    def get_submodule(self, target: str) -> Module:
        """The module at a path such as `"encoder.0"`; itself for `""`.

        Raises AttributeError where nothing is there, or no module.
        """
        module: Any = self
        for name in target.split(".") if target else ():
            module = _attribute(module, name)
            if not _is_module(module):
                raise AttributeError(f"`{name}` is not an nn.Module (on the path `{target}`)")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module at a path, in place of the one there; with `strict` there must be one.

        Raises ValueError for an empty path or no module, AttributeError where what is there is no
        module.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not _is_module(module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if (strict or hasattr(parent, name)) and not _is_module(_attribute(parent, name)):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path; AttributeError where nothing is there, or no parameter.

        >>> dg.nn.Sequential(dg.nn.Linear(2, 3)).get_parameter("0.bias").shape
        dyngraph.Size([3])
        """
        path, _, name = target.rpartition(".")
        parameter = _attribute(self.get_submodule(path), name)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path; AttributeError where nothing is there, or no buffer."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        buffer = _attribute(module, name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer


def _is_module(value: Any) -> bool:
    return isinstance(value, Tree)


def _attribute(module: Any, name: str) -> Any:
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return getattr(module, name)

"""Parametrizations: a tensor of a module that is computed, by modules, from others.

The module's class is replaced by one of its own, in which the tensor's name is a property. What it
is computed from is in `module.parametrizations[name]`, as `original`, or `original0`, `original1`
and so on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from dyngraph import modes
from dyngraph.nn.modules.container import ModuleDict, ModuleList
from dyngraph.nn.modules.conversion import become
from dyngraph.nn.modules.module import Module
from dyngraph.nn.parameter import Parameter
from dyngraph.tensor import Tensor

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


class _Cache:
    """Parametrized tensors by module and name, while `depth` blocks of `cached` are open."""

    def __init__(self) -> None:
        self.depth = 0
        self.tensors: dict[tuple[int, str], Tensor] = {}


_cache = _Cache()


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Inside, each parametrized tensor is computed once, when it is first asked for.

    >>> layer = dg.nn.utils.parametrizations.weight_norm(dg.nn.Linear(2, 1))
    >>> with dg.nn.utils.parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    _cache.depth += 1
    try:
        yield
    finally:
        _cache.depth -= 1
        if not _cache.depth:
            _cache.tensors = {}


class ParametrizationList(ModuleList):
    """The modules that compute a tensor, one after the other, and the tensors that they start from.

    `right_inverse` of the modules, the last first, finds these from the tensor. Raises ValueError
    for no modules, and where something has another shape or dtype, unless `unsafe`.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new: Any = original
        with modes.no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, Tensor | Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if isinstance(new, Tensor) else len(new)
        if isinstance(new, Tensor):
            if new.dtype != dtype or new.device != original.device:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype or the "
                    f"device: {dtype} on {original.device}, got {new.dtype} on {new.device}"
                )
            become(original, new.detach())
            _register(self, "original", original)
        else:
            for i, each in enumerate(new):
                if not isinstance(each, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors. Got "
                        f"element {i} of the sequence with type {type(each).__name__}."
                    )
                if isinstance(original, Parameter):
                    each = Parameter(each, original.requires_grad)
                _register(self, f"original{i}", each.requires_grad_(original.requires_grad))
        if not unsafe:
            _check("Registering a parametrization", self(), shape, dtype)

    def originals(self) -> list[Tensor]:
        """The tensors that the first module takes."""
        names = ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]
        return [getattr(self, name) for name in names]

    def right_inverse(self, value: Tensor) -> None:
        """Sets what the tensor is computed from, so that it is `value`; RuntimeError where a module
        has no `right_inverse`, ValueError where one returns what does not fit."""
        with modes.no_grad():
            found: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                found = module.right_inverse(found)
        if self.is_tensor:
            found = [found]
        if not isinstance(found, Sequence) or len(found) != self.ntensors:
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got "
                f"{type(found).__name__}"
                + (f" of length {len(found)}." if isinstance(found, Sequence) else ".")
            )
        for original, new in zip(self.originals(), found, strict=True):
            if not isinstance(new, Tensor):
                raise ValueError(
                    f"`right_inverse` should return a tensor. Got {type(new).__name__}"
                )
            if new.dtype != original.dtype:
                raise ValueError(
                    f"The tensor returned by `right_inverse` has dtype {new.dtype} while the "
                    f"original has dtype {original.dtype}"
                )
            become(original, new.detach())

    def forward(self) -> Any:
        modules = list(self)
        value = modules[0](*self.originals())
        for module in modules[1:]:
            value = module(value)
        return value


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check(what: str, value: Any, shape: Any, dtype: Any) -> None:
    """Raises ValueError where a parametrized tensor is not what the unparametrized one was."""
    if not isinstance(value, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
    for name, was, now in (("dtype", dtype, value.dtype), ("shape", shape, value.shape)):
        if was != now:
            raise ValueError(
                f"{what} may not change the {name} of the tensor, unless `unsafe` flag is "
                f"enabled: it was {was}, and would be {now}."
            )


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Makes a parameter or buffer of `module` the result of a module, and returns `module`.

    What it is computed from is trained instead. Its `right_inverse(tensor)`, where there is one,
    finds that from the present value, and from a value that is assigned. A second parametrization
    takes the first's result. Raises ValueError where the module has no such tensor, and where shape
    or dtype would change, unless `unsafe`.

    >>> class Symmetric(dg.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = dg.nn.Linear(2, 2)
    >>> _ = dg.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all())
    True
    >>> list(layer.state_dict())
    ['bias', 'parametrizations.weight.original']
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            before = getattr(module, tensor_name)
            after: Any = parametrization(before)
            _check("Registering a parametrization", after, before.shape, before.dtype)
            if hasattr(parametrization, "right_inverse"):
                with contextlib.suppress(NotImplementedError):
                    inverse = parametrization.right_inverse(after)
                    _check("'right_inverse'", inverse, before.shape, before.dtype)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.__class__ = _class_of_its_own(type(module))
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _parametrized(tensor_name))
    module.parametrizations[tensor_name] = made
    return module


def _class_of_its_own(cls: type) -> type:
    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        copy = object.__new__(type(self))
        memo[id(self)] = copy
        copy.__dict__ = deepcopy(self.__dict__, memo)
        return copy

    def __getstate__(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(): save "
            "that, and load it into a module that is parametrized in the same way."
        )

    attributes: dict[str, Any] = {"__getstate__": __getstate__}
    if not hasattr(cls, "__deepcopy__"):
        attributes["__deepcopy__"] = __deepcopy__
    return type(f"Parametrized{cls.__name__}", (cls,), attributes)


def _parametrized(name: str) -> property:
    def get(self: Any) -> Any:
        modules = self.parametrizations[name]
        if not _cache.depth:
            return modules()
        key = (id(self), name)
        if key not in _cache.tensors:
            _cache.tensors[key] = modules()
        return _cache.tensors[key]

    def set(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, set)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the tensor of that name, or any, is parametrized."""
    found = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return bool(found) if tensor_name is None else tensor_name in found


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Makes the tensor a parameter or buffer again, and returns `module`: with its present value,
    or, with `leave_parametrized=False`, with what it was computed from.

    Raises ValueError where it is not parametrized, or was computed from several that are to stay.

    >>> layer = dg.nn.utils.parametrizations.weight_norm(dg.nn.Linear(2, 1))
    >>> dg.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    Linear(in_features=2, out_features=1, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    modules = module.parametrizations[tensor_name]
    if modules.is_tensor:
        original = modules.original
        if leave_parametrized:
            with modes.no_grad():
                become(original, getattr(module, tensor_name).detach())
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that the module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Gives `to_module` the parametrizations of the other's tensors, or of one, and what these are
    computed from; returns it."""
    if not is_parametrized(from_module):
        return to_module
    for name in [tensor_name] if tensor_name else list(from_module.parametrizations):
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for key, tensor in {**source._parameters, **source._buffers}.items():
            setattr(target, key, tensor)
    return to_module

"""Module: what has parameters, buffers and children as its attributes, and computes by `forward`.

Parameters, buffers and children are kept in dicts of their own and found by `__getattr__`; all else
are ordinary attributes.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Self

from dyngraph.nn.modules.calling import Calling
from dyngraph.nn.modules.conversion import Conversion
from dyngraph.nn.modules.hooks import (
    GLOBAL,
    ModuleHooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    registered,
)
from dyngraph.nn.modules.state import State
from dyngraph.nn.modules.tree import Tree
from dyngraph.nn.parameter import Buffer, Parameter
from dyngraph.tensor import Tensor

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_HOOKS = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class Module(Calling, State, Tree, Conversion):
    """Base class of neural networks: a subclass assigns what it is made of, and defines `forward`.

    Parameters and modules that are assigned to attributes are found by `parameters()`,
    `state_dict()` and the others; a tensor that is no parameter is registered by
    `register_buffer`. `Calling` runs the module and its hooks, `State` saves and loads it, `Tree`
    finds its parts, `Conversion` converts them.

    >>> class Line(dg.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.slope = dg.nn.Parameter(dg.tensor(2.0))
    ...
    ...     def forward(self, x):
    ...         return self.slope * x
    >>> line = Line()
    >>> line(dg.tensor(3.0)).backward()
    >>> line.slope.grad
    tensor(3.)
    """

    training: bool
    call_super_init: ClassVar[bool] = False
    """Whether `__init__` calls that of the next class in line, with what it was given."""
    dump_patches: ClassVar[bool] = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and kwargs:
            raise TypeError(
                f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                f"'{next(iter(kwargs))}'"
            )
        if not self.call_super_init and args:
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but "
                f"{len(args) + 1} were given"
            )
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        state["_is_full_backward_hook"] = None
        for name in _HOOKS:
            state[name] = ModuleHooks()
        state["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # --- registration -------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Makes a Parameter, or None for one that may come, an attribute.

        Raises KeyError for a name that is taken, empty or has a dot, TypeError for what is no
        Parameter, ValueError for one that has a history.
        """
        self._check_name("parameter", name, self.__dict__.get("_parameters"))
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_typename(param)}' object to parameter '{name}' "
                "(nn.Parameter or None required). Wrap it by nn.Parameter(...)."
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                f"created explicitly. To express '{name}' as a function of another Tensor, compute "
                "the value in the forward() method."
            )
        if param is not None:
            param = registered(GLOBAL.parameter_registration, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Makes a tensor that is no parameter an attribute that is part of the state_dict, unless
        `persistent=False`, and is converted with the module.

        Raises KeyError for a name that is taken, empty or has a dot, TypeError for no tensor.

        >>> module = dg.nn.Module()
        >>> module.register_buffer("mean", dg.zeros(2))
        >>> module.mean
        tensor([0., 0.])
        """
        self._check_name("buffer", name, self.__dict__.get("_buffers"))
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(tensor)}' object to buffer '{name}' (Tensor or None "
                "required). Make one by dg.tensor(...)."
            )
        self._buffers[name] = registered(GLOBAL.buffer_registration, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Makes a module an attribute, a child.

        Raises KeyError for a name that is taken, empty or has a dot, TypeError for no module.
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self._check_name("module", name, self.__dict__.get("_modules"))
        self._modules[name] = registered(GLOBAL.module_registration, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """`add_module` by another name."""
        self.add_module(name, module)

    def _check_name(self, what: str, name: Any, members: dict[str, Any] | None) -> None:
        if members is None:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {_typename(name)}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if name not in members and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    # --- attributes ---------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        if "_modules" in state:  # set last by __init__
            if name in state["_parameters"]:
                return state["_parameters"][name]
            if name in state["_buffers"]:
                return state["_buffers"][name]
            if name in state["_modules"]:
                return state["_modules"][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        parameters, modules = state.get("_parameters"), state.get("_modules")
        buffers = state.get("_buffers")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as parameter '{name}' (nn.Parameter or "
                    "None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module) or (modules is not None and name in modules):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            if value is not None and not isinstance(value, Module):
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as child module '{name}' (nn.Module or "
                    "None expected)"
                )
            if value is not None:
                self._forget(name, "_parameters", "_buffers")
            modules[name] = registered(GLOBAL.module_registration, self, name, value)
        elif isinstance(value, Buffer) or (buffers is not None and name in buffers):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as buffer '{name}' (nn.Buffer, Tensor or "
                    "None expected)"
                )
            self._set_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _forget(self, name: str, *members: str) -> None:
        """Takes a name out of the attributes and of some members, before it becomes another's."""
        self.__dict__.pop(name, None)
        for each in members:
            self.__dict__[each].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _set_buffer(self, name: str, value: Any) -> None:
        persistent = getattr(value, "persistent", name not in self._non_persistent_buffers_set)
        own = type(self).register_buffer
        if own is Module.register_buffer or "persistent" in inspect.signature(own).parameters:
            self.register_buffer(name, value, persistent)
        elif persistent:
            self.register_buffer(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements "
                "register_buffer() without the persistent argument is not allowed."
            )

    def __delattr__(self, name: str) -> None:
        for members in (self._parameters, self._buffers, self._modules):
            if name in members:
                del members[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        members = (self._parameters, self._buffers, self._modules)
        names = {*super().__dir__(), *(name for each in members for name in each)}
        return sorted(name for name in names if not name[0].isdigit())

    # --- modes and gradients ------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Puts this module and all below it in training mode, or out of it; ValueError for no
        bool.

        >>> dg.nn.Dropout(0.5).train(False)(dg.ones(2))
        tensor([1., 1.])
        """
        if not isinstance(mode, bool):
            raise ValueError(f"training mode is expected to be boolean, got {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Puts this module and all below it in evaluation mode: `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets whether the parameters require grad."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of the parameters, or makes them zeros.

        >>> layer = dg.nn.Linear(2, 1)
        >>> layer(dg.ones(2)).sum().backward()
        >>> layer.zero_grad(set_to_none=False)
        >>> layer.weight.grad
        tensor([[0., 0.]])
        """
        for parameter in self.parameters():
            grad = parameter.grad
            if set_to_none:
                parameter.grad = None
            elif grad is not None:
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # --- as text, and pickled -----------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What the module's text says of itself; to be overridden."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        own = extra.split("\n") if extra else []
        children = [
            f"({name}): " + repr(module).replace("\n", "\n  ")
            for name, module in self._modules.items()
        ]
        if len(own) == 1 and not children:
            return f"{self._get_name()}({extra})"
        lines = "".join(f"  {line}\n" for line in (*own, *children))
        return f"{self._get_name()}(\n{lines})" if lines else f"{self._get_name()}()"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _typename(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")

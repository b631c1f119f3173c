"""State: a module's state_dict, which names its parameters and persistent buffers, and loading
one."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import numpy as np

from dyngraph import modes
from dyngraph.graph.hooks import RemovableHandle
from dyngraph.nn.modules.hooks import ModuleHooks, WrappedHook
from dyngraph.nn.parameter import Parameter
from dyngraph.ops.from_data import as_tensor
from dyngraph.ops.in_place import copy_
from dyngraph.tensor import Tensor

EXTRA_STATE = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` returns: the keys that it did not find, and those of no use."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )

    __str__ = __repr__


class StateDict(OrderedDict[str, Any]):
    """Tensors by name; `_metadata` holds, by the path of each module, the version of its format."""

    _metadata: dict[str, dict[str, Any]]


class State:
    """The part of Module that gives and takes its state."""

    _version: ClassVar[int] = 1
    """The format of what the module saves, raised when a name in it changes."""
    _state_dict_hooks: ModuleHooks
    _state_dict_pre_hooks: ModuleHooks
    _load_state_dict_pre_hooks: ModuleHooks
    _load_state_dict_post_hooks: ModuleHooks

    if TYPE_CHECKING:
        _parameters: dict[str, Any]
        _buffers: dict[str, Tensor | None]
        _non_persistent_buffers_set: set[str]
        _modules: dict[str, Any]

    # --- saving -------------------------------------------------------------------------------

    def state_dict(
        self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Parameters and persistent buffers by name, as detached tensors over the same memory.

        With `keep_vars` they are the tensors themselves. They are put into `destination` where
        there is one, each name with `prefix` in front.

        >>> dg.nn.Linear(2, 1, bias=False).state_dict().keys()
        odict_keys(['weight'])
        """
        if destination is None:
            destination = StateDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}{name}."
                module.state_dict(destination=destination, prefix=path, keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            answer = hook(self, destination, prefix, metadata)
            if answer is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = answer
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Puts this module's own tensors into `destination`, without those of its children."""
        for name, tensor in self._own_state().items():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not State.get_extra_state:
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def _own_state(self) -> dict[str, Tensor]:
        members = itertools.chain(
            self._parameters.items(),
            ((n, b) for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set),
        )
        return {name: member for name, member in members if member is not None}

    def get_extra_state(self) -> Any:
        """What else is to be in the state_dict, as `_extra_state`; to be overridden, together with
        `set_extra_state`."""
        raise RuntimeError("get_extra_state() is called where a class defines it, and only there.")

    def set_extra_state(self, state: Any) -> None:
        """Takes what `get_extra_state` gave; to be overridden."""
        raise RuntimeError("set_extra_state() is called where a class defines it, and only there.")

    # --- loading ------------------------------------------------------------------------------

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copies the values of `state_dict` into the parameters and buffers of the same names.

        They may be tensors, numpy arrays or jax arrays, as those of a PyTorch state_dict. With
        `assign`, the tensors themselves become parameters and buffers. Raises RuntimeError for a
        shape that differs and, unless `strict=False`, for missing and unexpected names, after
        everything that fits has been loaded; TypeError for what is no mapping.

        >>> layer = dg.nn.Linear(2, 1, bias=False)
        >>> layer.load_state_dict({"weight": np.ones((1, 2), np.float32)})
        <All keys matched successfully>
        >>> layer(dg.ones(2)).tolist()
        [2.0]
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        loading = _Loading(state_dict, assign=assign)
        loading.load(self, loading.state_dict, "")
        errors = loading.errors
        found = IncompatibleKeys(loading.missing, loading.unexpected)
        if strict:
            for what, names in (("Unexpected", found[1]), ("Missing", found[0])):
                if names:
                    quoted = ", ".join(f'"{name}"' for name in names)
                    errors.insert(0, f"{what} key(s) in state_dict: {quoted}. ")
        if errors:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                + "\n\t".join(errors)
            )
        return found

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Loads this module's own tensors, those under `prefix`, without those of its children.

        A class whose format changed overrides it and looks at `local_metadata["version"]`, which
        is missing where the file is older than versions.
        """
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        own = self._own_state()
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in own.items():
            key = prefix + name
            if key in state_dict:
                error = self._load_tensor(name, key, tensor, state_dict[key], assign=assign)
                if error is not None:
                    error_msgs.append(error)
            elif strict:
                missing_keys.append(key)
        extra = prefix + EXTRA_STATE
        if type(self).set_extra_state is not State.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        for key in state_dict if strict else ():
            if key.startswith(prefix) and key != extra:
                name, *rest = key.removeprefix(prefix).split(".", 1)
                if name not in (self._modules if rest else own):
                    unexpected_keys.append(key)

    def _load_tensor(
        self, name: str, key: str, tensor: Tensor, value: Any, *, assign: bool
    ) -> str | None:
        """Gives a parameter or buffer its value; what went wrong, where something did."""
        if not isinstance(value, Tensor | np.ndarray | jax.Array):
            return (
                f'While copying the parameter named "{key}", expected a Tensor or an array from '
                f"checkpoint but received {type(value)}"
            )
        if tensor.ndim == 0 and tuple(value.shape) == (1,):
            value = value[0]
        if tuple(value.shape) != tuple(tensor.shape):
            return (
                f"size mismatch for {key}: copying a param with shape {list(value.shape)} from "
                f"checkpoint, the shape in current model is {list(tensor.shape)}."
            )
        try:
            with modes.no_grad():
                value = value if isinstance(value, Tensor) else as_tensor(value)
                if assign:
                    if isinstance(tensor, Parameter) and not isinstance(value, Parameter):
                        value = Parameter(value, tensor.requires_grad)
                    elif isinstance(tensor, Parameter):
                        value.requires_grad_(tensor.requires_grad)
                    setattr(self, name, value)
                else:
                    copy_(tensor, value)
        except Exception as error:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{list(tensor.shape)} and whose dimensions in the checkpoint are "
                f"{list(value.shape)}, an exception occurred : {error.args}."
            )
        return None

    # --- hooks --------------------------------------------------------------------------------

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, prefix, keep_vars)` before the module puts its state into a
        state_dict."""
        return self._state_dict_pre_hooks.register(hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata)` after the module put its state
        into a state_dict, which the hook may change; it must return None."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return self._state_dict_hooks.register(hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`register_state_dict_post_hook`, whose hook may return another state_dict."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return self._state_dict_hooks.register(hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)` before the module loads its state; it may change all of
        these."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        wrapped = WrappedHook(hook, self if with_module else None)
        return self._load_state_dict_pre_hooks.register(wrapped)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, incompatible_keys)` after the module and its children loaded their
        state; it may change the lists, and must return None."""
        return self._load_state_dict_post_hooks.register(hook)


class _Loading:
    """One `load_state_dict`: what there is to load, and what was found amiss so far."""

    def __init__(self, state_dict: Mapping[str, Any], *, assign: bool) -> None:
        self.metadata = getattr(state_dict, "_metadata", None)
        self.state_dict = StateDict(state_dict)  # hooks may change it
        if self.metadata is not None:
            self.state_dict._metadata = self.metadata
        self.assign = assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []

    def load(self, module: Any, state_dict: dict[str, Any], prefix: str) -> None:
        metadata = {} if self.metadata is None else self.metadata.get(prefix[:-1], {})
        if self.assign:
            metadata["assign_to_params_buffers"] = True
        module._load_from_state_dict(
            state_dict, prefix, metadata, True, self.missing, self.unexpected, self.errors
        )
        for name, child in module._modules.items():
            if child is not None:
                path = f"{prefix}{name}."
                below = {k: v for k, v in state_dict.items() if k.startswith(path)}
                self.load(child, below, path)
        found = IncompatibleKeys(self.missing, self.unexpected)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, found) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected "
                    "to return new values, if incompatible_keys need to be modified, it should be "
                    "done inplace."
                )

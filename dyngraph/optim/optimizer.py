"""Optimizer: parameters in groups, each with its options, and what is kept of every parameter.

Invariant: `state` has an entry for exactly the parameters that a step has moved, and no parameter
is in two groups.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from dyngraph import modes
from dyngraph.graph.hooks import HookList, RemovableHandle
from dyngraph.placement import place_beside
from dyngraph.pure import current_pure
from dyngraph.tensor import Tensor

Group = dict[str, Any]

_HOOKS = (
    "_step_pre_hooks",
    "_step_post_hooks",
    "_state_dict_pre_hooks",
    "_state_dict_post_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
_pre_hooks_of_all = HookList()
_post_hooks_of_all = HookList()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(optimizer, args, kwargs)` before every step of every optimizer.

    >>> handle = dg.optim.register_optimizer_step_pre_hook(lambda *call: print("a step"))
    >>> dg.optim.SGD([dg.ones(2, requires_grad=True)], lr=0.1).step()
    a step
    >>> handle.remove()
    """
    return _pre_hooks_of_all.add(hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(optimizer, args, kwargs)` after every step of every optimizer."""
    return _post_hooks_of_all.add(hook)


class Optimizer:
    """The base of all optimizers, PyTorch's own subclasses included: a subclass defines `step`.

    `params` are tensors, pairs of a name and a tensor, or dicts with "params" and options of their
    own; `defaults` are the options of groups that do not say theirs.

    Raises ValueError for an empty list, for tensors that an operator made and for one that is in
    two groups, and TypeError for what is no tensor.
    """

    _step_pre_hooks: HookList
    _step_post_hooks: HookList
    _state_dict_pre_hooks: HookList
    _state_dict_post_hooks: HookList
    _load_state_dict_pre_hooks: HookList
    _load_state_dict_post_hooks: HookList
    _opt_called: bool
    param_groups: list[Group]
    state: defaultdict[Any, Any]
    defaults: dict[str, Any]

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                "but got a Tensor. Pass [tensor]."
            )
        self.defaults = defaults
        self._make_hooks()
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError(
                "optimizer got an empty parameter list. Pass the tensors to be moved; a generator "
                "that was read before is empty."
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in vars(cls):
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]

    def _make_hooks(self) -> None:
        for name in _HOOKS:
            if name not in self.__dict__:
                setattr(self, name, HookList())

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hooks()

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(lines) + "\n)"

    # --- groups ----------------------------------------------------------------------------------

    def add_param_group(self, param_group: Group) -> None:
        """Adds a dict with "params" and, where they differ from the defaults, options.

        >>> opt = dg.optim.SGD([dg.ones(2, requires_grad=True)], lr=0.1)
        >>> opt.add_param_group({"params": dg.ones(3, requires_grad=True), "lr": 0.01})
        >>> [group["lr"] for group in opt.param_groups]
        [0.1, 0.01]
        """
        if not isinstance(param_group, dict):
            raise TypeError(
                f"param_group must be a dict, but got {type(param_group).__name__}. Pass "
                "{'params': [...]} with the options of the group."
            )
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the order "
                "of tensors in sets will change between runs. Please use a list instead."
            )
        entries = [params] if isinstance(params, Tensor) else list(params)
        names = [entry[0] for entry in entries if isinstance(entry, tuple)]
        tensors = [entry[1] if isinstance(entry, tuple) else entry for entry in entries]
        if names and len(names) != len(entries):
            raise ValueError(
                "all optimizer params should be with/without names. Some param names are missing: "
                f"{len(names)} of {len(entries)} entries are pairs of a name and a tensor."
            )
        for tensor in tensors:
            self._check_param(tensor)
        param_group["params"] = tensors
        if names:
            param_group["param_names"] = names
        self._check_against_others(param_group)
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        self.param_groups.append(param_group)

    def _check_param(self, tensor: Any) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(
                "optimizer can only optimize Tensors, but one of the params is "
                f"{type(tensor).__name__}. Make it one by dg.tensor(..., requires_grad=True)."
            )
        if not (tensor.is_leaf or tensor.retains_grad):
            raise ValueError(
                "can't optimize a non-leaf Tensor: an operator made this one, "
                f"{tensor.grad_fn}. Pass the leaf that it was made from, or detach() it."
            )

    def _check_against_others(self, param_group: Group) -> None:
        tensors = param_group["params"]
        if len({id(tensor) for tensor in tensors}) != len(tensors):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters: each is moved "
                "once in a step. In PyTorch's future this will be an error.",
                stacklevel=4,
            )
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                how = "with" if "param_names" in param_group else "without"
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param "
                    f"group {how} names to the optimizer."
                )
        taken = {id(p) for group in self.param_groups for p in group["params"]}
        if not taken.isdisjoint(id(tensor) for tensor in tensors):
            raise ValueError(
                "some parameters appear in more than one parameter group. Leave them out of one."
            )

    # --- steps -----------------------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters, or fills them with zeros."""
        pure = current_pure()
        if pure is not None:
            pure.note_optimizer(self)
        for group in self.param_groups:
            for tensor in group["params"]:
                grad = None if tensor._meta is None else tensor._meta.grad
                if grad is None:
                    continue
                if set_to_none:
                    tensor.grad = None
                else:
                    if grad._edge is not None:
                        grad = tensor.grad = grad.detach()
                    with modes.no_grad():
                        grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Moves every parameter that has a gradient; `closure` computes the loss and gradients."""
        raise NotImplementedError(f"{type(self).__name__} defines no step()")

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` before each step; it may return others."""
        return self._step_pre_hooks.add(hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` after each step."""
        return self._step_post_hooks.add(hook)

    # --- as a part of a compiled step -------------------------------------------------------------

    def compiled_in(self) -> list[Any]:
        """What a compiled step with this optimizer has in it as Python's values: it serves as long
        as they are equal."""
        return [
            {name: v for name, v in group.items() if name != "params" and not _is_tensor(v)}
            for group in self.param_groups
        ]

    def lifted(self, key: Any) -> tuple[Any, Any]:
        """The numbers that `pure.lift` was given for `key`, as they are now: `(form, array)`. A
        compiled step takes another array, but no other form."""
        raise KeyError(key)

    # --- saving ----------------------------------------------------------------------------------

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer)` before `state_dict()`."""
        return _add(self._state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` after `state_dict()`; it may return another."""
        return _add(self._state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` before loading; it may return another."""
        return _add(self._load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer)` after loading."""
        return _add(self._load_state_dict_post_hooks, hook, prepend)

    def state_dict(self) -> dict[str, Any]:
        """State and options in PyTorch's layout, parameters by their place; it shares the tensors.

        >>> p = dg.ones(2, requires_grad=True)
        >>> dg.optim.SGD([p], lr=0.1).state_dict()["param_groups"][0]["params"]
        [0]
        """
        for hook in self._state_dict_pre_hooks.values():
            hook(self)
        places: dict[int, int] = {}
        groups = []
        start = 0
        for group in self.param_groups:
            for i, tensor in enumerate(group["params"], start):
                places.setdefault(id(tensor), i)
            start += len(group["params"])
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [places[id(tensor)] for tensor in group["params"]]
            groups.append(packed)
        state = {
            places[id(key)] if isinstance(key, Tensor) else key: value
            for key, value in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        for hook in self._state_dict_post_hooks.values():
            result = hook(self, result) or result
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from what `state_dict` gave, of this optimizer or of PyTorch's of its name.

        Tensors get the parameter's dtype and device, and are copies. Raises ValueError where the
        groups do not fit, and changes nothing then.
        """
        state_dict = state_dict.copy()
        for hook in self._load_state_dict_pre_hooks.values():
            state_dict = hook(self, state_dict) or state_dict
        saved_groups = deepcopy(state_dict["param_groups"])
        self._check_groups(saved_groups)
        own = [p for group in self.param_groups for p in group["params"]]
        saved = [place for group in saved_groups for place in group["params"]]
        params = dict(zip(saved, own, strict=True))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = _fit(value, params[key])
            else:
                state[key] = value
        for group, new in zip(self.param_groups, saved_groups, strict=True):
            new["params"] = group["params"]
            if "param_names" in group:
                new.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._load_state_dict_post_hooks.values():
            hook(self)

    def _check_groups(self, saved: list[Group]) -> None:
        if len(saved) != len(self.param_groups):
            raise ValueError(
                f"loaded state dict has a different number of parameter groups: {len(saved)}, "
                f"expected {len(self.param_groups)}. Load it into an optimizer made as the saved "
                "one was."
            )
        for i, (group, new) in enumerate(zip(self.param_groups, saved, strict=True)):
            if len(group["params"]) != len(new["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    f"optimizer's group: group {i} has {len(new['params'])} parameters, expected "
                    f"{len(group['params'])}."
                )


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """`step` with the hooks of the optimizer and of all around it."""
    if hasattr(step, "hooked"):
        return step

    @functools.wraps(step)
    def run(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if type(self).step is not run:  # a subclass's step, which has run the hooks, calls this one
            return step(self, *args, **kwargs)
        pure = current_pure()
        if pure is not None:
            pure.note_optimizer(self)
        before = self._step_pre_hooks
        if before or _pre_hooks_of_all:
            for hook in itertools.chain(_pre_hooks_of_all.values(), before.values()):
                answer = hook(self, (self, *args), kwargs)
                if answer is None:
                    continue
                if not (isinstance(answer, tuple) and len(answer) == 2):
                    raise RuntimeError(
                        f"{type(self).__name__}.step: a pre-hook must return None or a tuple of "
                        f"(new_args, new_kwargs), but got {answer!r}."
                    )
                (_, *args), kwargs = answer  # type: ignore[assignment]
        result = step(self, *args, **kwargs)
        self._opt_called = True
        after = self._step_post_hooks
        if after or _post_hooks_of_all:
            for hook in itertools.chain(after.values(), _post_hooks_of_all.values()):
                hook(self, (self, *args), kwargs)
        return result

    run.hooked = True  # type: ignore[attr-defined]
    return run


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _add(hooks: HookList, hook: Callable[..., Any], prepend: bool) -> RemovableHandle:
    handle = hooks.add(hook)
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _fit(value: Any, param: Tensor, key: str = "") -> Any:
    """A copy of a parameter's state, with its dtype and device; a count of steps keeps its own."""
    if isinstance(value, Tensor):
        with modes.no_grad():
            if key == "step":
                return value.clone()
            place = place_beside(param._cell.array, value.shape)
            if param.is_floating_point():
                return value.to(dtype=param.dtype, device=place, copy=True)
            return value.to(device=place, copy=True)
    if isinstance(value, dict):
        return {name: _fit(part, param, name) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_fit(part, param) for part in value)
    return value

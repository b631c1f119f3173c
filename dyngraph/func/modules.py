"""Modules as functions of their parameters: functional_call, stack_module_state.

A module is whatever has `named_parameters()` and `named_buffers()` and can be called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dyngraph.ops.joining import stack
from dyngraph.tensor import Tensor

__all__ = ["functional_call", "stack_module_state"]


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """`module(*args, **kwargs)` with other parameters and buffers, by name, while it runs.

    Names that are not given keep their value. What the module assigns to a given name while it runs
    is put into the dict. With `tie_weights`, a value is given to all names that are one tensor in
    the module; with `strict`, every name of the module must be given, and no other.

    Raises ValueError where a name is given twice, also by tied names, or something is no dict;
    RuntimeError where `strict` finds missing or unexpected names.

    >>> class Line:
    ...     weight = dg.tensor(2.0)
    ...     def named_parameters(self, **options):
    ...         return iter([("weight", self.weight)])
    ...     def named_buffers(self, **options):
    ...         return iter([])
    ...     def __call__(self, x):
    ...         return self.weight * x
    >>> dg.func.functional_call(Line(), {"weight": dg.tensor(5.0)}, dg.tensor(3.0))
    tensor(15.)
    """
    given = _one_dict(parameter_and_buffer_dicts)
    own = _named_tensors(module)
    values = _with_tied(given, own) if tie_weights else dict(given)
    if strict:
        _check_names(module, values, own)
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    places = {name: _place(module, name) for name in values}
    before = {name: holder[key] for name, (holder, key) in places.items() if key in holder}
    try:
        for name, (holder, key) in places.items():
            holder[key] = values[name]
        return module(*arguments, **(kwargs or {}))
    finally:
        for name, (holder, key) in places.items():
            if name in given and isinstance(parameter_and_buffer_dicts, dict):
                parameter_and_buffer_dicts[name] = holder[key]
            if name in before:
                holder[key] = before[name]
            else:
                del holder[key]


def _one_dict(dicts: Any) -> dict[str, Tensor]:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(dicts).__name__}"
        )
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    counts = Counter(name for d in dicts for name in d)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise ValueError(
            f"{repeated} appeared in multiple dictionaries; behavior of functional call is "
            "ambiguous. Give each name once."
        )
    return {name: value for d in dicts for name, value in d.items()}


def _named_tensors(module: Any) -> dict[str, Tensor]:
    """Every name of the module's parameters and buffers, also several of one tensor."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _with_tied(given: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What is given, also for names of the same tensor."""
    names_of: dict[int, list[str]] = {}
    for name, tensor in own.items():
        names_of.setdefault(id(tensor), []).append(name)
    values = dict(given)
    for tied in names_of.values():
        found = [given[name] for name in tied if name in given]
        if len({id(value) for value in found}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(tied)}, which are tied. "
                "Consider using tie_weights=False"
            )
        if found:
            values.update(dict.fromkeys(tied, found[0]))
    return values


def _check_names(module: Any, values: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    unexpected = [repr(name) for name in values if name not in own]
    missing = [repr(name) for name in own if name not in values]
    problems = [
        f"{what} key(s): {', '.join(names)}."
        for what, names in (("Unexpected", unexpected), ("Missing", missing))
        if names
    ]
    if problems:
        raise RuntimeError(
            f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(problems)
        )


def _place(module: Any, name: str) -> tuple[dict[str, Any], str]:
    """The dict that holds what is called `name`, and its key there."""
    *path, key = name.split(".")
    for part in path:
        module = getattr(module, part)
    for holder in ("_parameters", "_buffers"):
        found = vars(module).get(holder)
        if isinstance(found, dict) and key in found:
            return found, key
    return vars(module), key


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of several modules of one class, each name stacked: what
    `vmap` of `functional_call` maps over.

    Stacked parameters are leaves, which require grad where the modules' do. Raises RuntimeError for
    no modules, for modules of different classes or modes, and where one name requires grad in some
    of them only.

    >>> class Line:
    ...     training = True
    ...     def __init__(self, weight):
    ...         self.weight = dg.tensor(weight)
    ...     def named_parameters(self):
    ...         return iter([("weight", self.weight)])
    ...     def named_buffers(self):
    ...         return iter([])
    >>> dg.func.stack_module_state([Line(1.0), Line(2.0)])
    ({'weight': tensor([1., 2.])}, {})
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({bool(model.training) for model in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode. Call "
            "train() or eval() of each."
        )
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    return _stacked(parameters), _stacked(buffers)


def _stacked(states: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: _stacked_leaf(name, [state[name] for state in states]) for name in states[0]}


def _stacked_leaf(name: str, tensors: Sequence[Tensor]) -> Tensor:
    requires_grad = tensors[0].requires_grad
    if any(t.requires_grad != requires_grad for t in tensors):
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    result = stack(tensors)
    return result.detach().requires_grad_() if requires_grad else result

"""as_functions: a Module as a pure function of its arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dyngraph.func.modules import functional_call
from dyngraph.interop.leaves import arrays_of
from dyngraph.interop.to_jax import to_jax
from dyngraph.nn.modules.module import Module


def as_functions(module: Module) -> tuple[dict[str, dict[str, Any]], Callable[..., Any]]:
    """A module's arrays, and the pure function that computes with them: `(variables, apply)`.

    `variables` is `{"params": {name: array}, "buffers": {name: array}}`. `apply(variables, *args,
    key=None, mutable=False, **kwargs)` goes through `jax.jit`, `grad` and the like, as by `to_jax`;
    random operators draw from `key`. With `mutable`, it returns the output and the buffers after
    the call, for modules that change them; otherwise these changes are lost.

    >>> import jax
    >>> class Line(dg.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.slope = dg.nn.Parameter(dg.tensor(2.0))
    ...
    ...     def forward(self, x):
    ...         return self.slope * x
    >>> variables, apply = dg.interop.as_functions(Line())
    >>> jax.grad(lambda params: apply({"params": params}, 3.0))(variables["params"])
    {'slope': Array(3., dtype=float32)}
    """
    variables = {
        "params": arrays_of(dict(module.named_parameters())),
        "buffers": arrays_of(dict(module.named_buffers())),
    }

    def call(tensors: Any, args: Any, kwargs: Any) -> Any:
        buffers = dict(tensors["buffers"])
        output = functional_call(module, buffers | tensors["params"], args, kwargs)
        return output, buffers

    without_key, with_key = to_jax(call), to_jax(call, takes_key=True)

    def apply(
        variables: Mapping[str, Any],
        *args: Any,
        key: Any = None,
        mutable: bool = False,
        **kwargs: Any,
    ) -> Any:
        given = {"params": dict(variables["params"]), "buffers": dict(variables.get("buffers", {}))}
        if key is None:
            output, buffers = without_key(given, args, kwargs)
        else:
            output, buffers = with_key(key, given, args, kwargs)
        return (output, buffers) if mutable else output

    return variables, apply

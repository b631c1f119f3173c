"""The older weight norm and spectral norm: a hook before `forward` computes the tensor and makes it
an attribute. `parametrizations` has the newer ones.
"""

from __future__ import annotations

import warnings
from typing import Any

from dyngraph import modes
from dyngraph.nn import functional as F
from dyngraph.nn.modules.module import Module
from dyngraph.nn.parameter import Parameter
from dyngraph.nn.utils import norms
from dyngraph.nn.utils.parametrizations import output_dim
from dyngraph.ops.norms import norm_except_dim
from dyngraph.tensor import Tensor

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]


class _Norm:
    """A hook that computes the attribute `name` of a module from its parameters."""

    def __init__(self, name: str, dim: int) -> None:
        self.name = name
        self.dim = dim

    def compute_weight(self, module: Any, *, iterate: bool) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} computes nothing")

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, iterate=module.training))

    def register(self, module: Any) -> None:
        if any(
            type(hook) is type(self) and hook.name == self.name
            for hook in module._forward_pre_hooks.values()
        ):
            raise RuntimeError(
                f"Cannot register two {self.called} hooks on the same parameter {self.name}"
            )
        module.register_forward_pre_hook(self)

    called = ""


class WeightNorm(_Norm):
    """Computes a weight from its lengths `<name>_g` and its directions `<name>_v`."""

    called = "weight_norm"

    def compute_weight(self, module: Any, *, iterate: bool = False) -> Tensor:
        v, g = getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g")
        return norms.weight_norm(v, g, dim=self.dim)


class SpectralNorm(_Norm):
    """Computes a weight from `<name>_orig`, its vectors being `<name>_u` and `<name>_v`."""

    called = "spectral_norm"

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__(name, dim)
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def compute_weight(self, module: Any, *, iterate: bool) -> Tensor:
        weight, u, v = (getattr(module, f"{self.name}_{key}") for key in ("orig", "u", "v"))
        if iterate:
            arrays = [t._cell.array for t in (weight, u, v)]
            steps = self.n_power_iterations
            for tensor, array in zip(
                (u, v), norms.power_method(*arrays, self.dim, steps, self.eps, True), strict=True
            ):
                tensor._write(array)
        return norms.spectral_norm(weight, u.clone(), v.clone(), dim=self.dim)


def _take_out(module: Any, kind: type[_Norm], name: str) -> Any:
    for number, hook in list(module._forward_pre_hooks.items()):
        if type(hook) is kind and hook.name == name:
            del module._forward_pre_hooks[number]
            return hook
    raise ValueError(f"{kind.called} of '{name}' not found in {module}")


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Trains a parameter's lengths and directions apart, as `<name>_g` and `<name>_v`; returns
    `module`. Deprecated in favor of `parametrizations.weight_norm`.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = dg.nn.utils.weight_norm(dg.nn.Linear(2, 1))
    >>> list(layer.state_dict())
    ['bias', 'weight_g', 'weight_v']
    """
    warnings.warn(
        "`nn.utils.weight_norm` is deprecated in favor of `nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    norm = WeightNorm(name, -1 if dim is None else dim)
    norm.register(module)
    weight = getattr(module, name).detach()
    delattr(module, name)
    module.register_parameter(f"{name}_g", Parameter(norm_except_dim(weight, 2, norm.dim)))
    module.register_parameter(f"{name}_v", Parameter(weight))
    setattr(module, name, norm.compute_weight(module))
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Makes the tensor a parameter again, with its present value; ValueError where it is not
    normed."""
    norm = _take_out(module, WeightNorm, name)
    with modes.no_grad():
        weight = norm.compute_weight(module)
    for key in (name, f"{name}_g", f"{name}_v"):
        delattr(module, key)
    setattr(module, name, Parameter(weight))
    return module


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divides a parameter, `<name>_orig` from now on, by its largest singular value, which steps in
    each forward pass of the training find; returns `module`. The arguments are those of
    `parametrizations.spectral_norm`, which is the newer form.

    >>> list(dg.nn.utils.spectral_norm(dg.nn.Linear(2, 1)).state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    norm = SpectralNorm(name, n_power_iterations, output_dim(module, dim), eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    norm.register(module)
    rows = weight.shape[norm.dim]
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.detach())
    with modes.no_grad():
        for key, size in (("u", rows), ("v", weight.numel() // rows)):
            drawn = weight.new_empty(size).normal_(0, 1)
            module.register_buffer(f"{name}_{key}", F.normalize(drawn, dim=0, eps=eps))
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Makes the tensor a parameter again, with its present value; ValueError where it is not
    normed."""
    norm = _take_out(module, SpectralNorm, name)
    with modes.no_grad():
        weight = norm.compute_weight(module, iterate=False)
    for key in (name, f"{name}_orig", f"{name}_u", f"{name}_v"):
        delattr(module, key)
    module.register_parameter(name, Parameter(weight))
    return module

"""Optimizers that follow the gradient or its sign: SGD, ASGD, Rprop, Muon."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from dyngraph.optim.adam import after, before
from dyngraph.optim.checks import check, check_not_negative, check_rate
from dyngraph.optim.need_optax import need_optax
from dyngraph.optim.optimizer import Group
from dyngraph.optim.transformed import TransformedOptimizer
from dyngraph.optim.transforms import asgd, damped_trace, muon, rprop


class SGD(TransformedOptimizer):
    """Gradient descent with momentum, as `torch.optim.SGD`: the same options and numbers.

    >>> p = dg.tensor([1.0, 2.0], requires_grad=True)
    >>> opt = dg.optim.SGD([p], lr=0.1)
    >>> (p * p).sum().backward()
    >>> opt.step()
    >>> p
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    numbers = ("lr", "momentum", "dampening", "weight_decay")
    switches = ("momentum", "dampening", "weight_decay")
    fixed = ("maximize", "nesterov")
    field_names: ClassVar = {"trace": "momentum_buffer"}
    shared_names = ()

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_not_negative(momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                "Nesterov momentum requires a momentum and zero dampening, got "
                f"momentum={momentum} and dampening={dampening}."
            )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def _is_started(self, group: Group, state: dict[str, Any]) -> bool:
        return not group["momentum"] or state.get("momentum_buffer") is not None

    @staticmethod
    def transformation(h: Any) -> Any:
        optax, steps = need_optax(), []
        if h.momentum is not None:
            plain = h.dampening is None
            steps = [optax.trace(h.momentum, h.nesterov) if plain else damped_trace(h)]
        return optax.chain(*before(h), *steps, *after(h))


class ASGD(TransformedOptimizer):
    """Averaged gradient descent, as `torch.optim.ASGD`; the averages are `state[p]["ax"]`."""

    numbers = ("lr", "lambd", "alpha", "t0", "weight_decay")
    shared_names = ("step", "eta", "mu")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        check_not_negative(weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    @staticmethod
    def transformation(h: Any) -> Any:
        return need_optax().chain(*before(h), asgd(h))


class Rprop(TransformedOptimizer):
    """Steps that grow while the sign of the gradient stays, as `torch.optim.Rprop`."""

    numbers = ("lr", "etas", "step_sizes")
    switches = ()

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check(0 < etas[0] < 1 < etas[1], "Invalid eta values", etas, "0 < first < 1 < second")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    @staticmethod
    def transformation(h: Any) -> Any:
        optax = need_optax()
        return optax.chain(*([optax.scale(-1.0)] if h.maximize else []), rprop(h))


class Muon(TransformedOptimizer):
    """Steps along orthogonal matrices, as `torch.optim.Muon`, for parameters of two dims."""

    numbers = ("lr", "weight_decay", "momentum", "ns_coefficients", "eps")
    fixed = ("nesterov", "ns_steps", "adjust_lr_fn")
    shared_names = ()

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_rate(lr, "Learning rate should be >= 0 but is")
        check(momentum >= 0, "momentum should be >= 0 but is", momentum, "0 or more")
        check(weight_decay >= 0, "weight decay should be >= 0 but is", weight_decay, "0 or more")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                f"Adjust learning rate function {adjust_lr_fn} is not supported. Pass 'original' "
                "or 'match_rms_adamw'."
            )
        check(ns_steps < 100, "Number of steps must be less than 100", ns_steps, "some 5")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)

    def _check_param(self, tensor: Any) -> None:
        super()._check_param(tensor)
        if tensor.ndim != 2:
            raise ValueError(
                "Muon only supports 2D parameters whereas we found a parameter with size: "
                f"{tensor.size()}. Move it by another optimizer, such as AdamW."
            )
        if tensor.is_complex():
            raise RuntimeError("Muon does not support complex parameters. Use another optimizer.")

    @staticmethod
    def transformation(h: Any) -> Any:
        optax = need_optax()
        steps = [muon(h)]
        if h.weight_decay is not None:
            steps.append(optax.add_decayed_weights(-h.lr * h.weight_decay))
        return optax.chain(*steps)

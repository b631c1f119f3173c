"""Adam and its relatives: steps scaled by running moments of the gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar

from dyngraph.optim.checks import check_betas, check_not_negative, check_rate
from dyngraph.optim.need_optax import need_optax
from dyngraph.optim.optimizer import Group
from dyngraph.optim.transformed import TransformedOptimizer
from dyngraph.optim.transforms import scale_by_adam, scale_by_nadam, scale_by_radam
from dyngraph.tensor import Tensor


def before(h: Any, *, decoupled: bool = False) -> list[Any]:
    """What comes first in every chain: the sign, and weight decay that is part of the gradient."""
    optax = need_optax()
    steps = [optax.scale(-1.0)] if h.maximize else []
    if h.weight_decay is not None and not decoupled:
        steps.append(optax.add_decayed_weights(h.weight_decay))
    return steps


def after(h: Any, *, decoupled: bool = False) -> list[Any]:
    """What comes last: weight decay that is not, and the rate."""
    optax = need_optax()
    decays = decoupled and h.weight_decay is not None
    steps = [optax.add_decayed_weights(h.weight_decay)] if decays else []
    return [*steps, optax.scale(-h.lr)]


class _Moments(TransformedOptimizer):
    """What optimizers with two betas have in common."""

    numbers = ("lr", "betas", "eps", "weight_decay")

    @staticmethod
    def derived(group: Group) -> dict[str, Any]:
        betas = [b.item() if isinstance(b, Tensor) else b for b in group["betas"]]
        return {
            "complements": [1.0 - beta for beta in betas],
            "logs": [math.log(beta) if beta else -math.inf for beta in betas],
        }

    @staticmethod
    def _check(lr: Any, betas: Any, eps: Any, weight_decay: Any) -> None:
        check_rate(lr)
        check_not_negative(epsilon=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)


class Adam(_Moments):
    """Adam, as `torch.optim.Adam`: the same options, defaults and numbers.

    `foreach`, `fused` and `capturable` change nothing: a step is always one call.

    >>> p = dg.tensor([1.0, 2.0], requires_grad=True)
    >>> opt = dg.optim.Adam([p], lr=0.1)
    >>> (p * p).sum().backward()
    >>> opt.step()
    >>> p
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    fixed = ("maximize", "amsgrad", "decoupled_weight_decay")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        self._check(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": tuple(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    @staticmethod
    def transformation(h: Any) -> Any:
        apart = h.decoupled_weight_decay
        return need_optax().chain(
            *before(h, decoupled=apart), scale_by_adam(h), *after(h, decoupled=apart)
        )


class AdamW(Adam):
    """Adam with weight decay apart from the gradient, as `torch.optim.AdamW`."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )


class NAdam(_Moments):
    """Adam with Nesterov's momentum, as `torch.optim.NAdam`."""

    numbers = ("lr", "betas", "eps", "weight_decay", "momentum_decay")
    fixed = ("maximize", "decoupled_weight_decay")
    shared_names = ("step", "mu_product")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 2e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        self._check(lr, betas, eps, weight_decay)
        check_not_negative(momentum_decay=momentum_decay)
        defaults = {
            "lr": lr,
            "betas": tuple(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    @staticmethod
    def transformation(h: Any) -> Any:
        apart = h.decoupled_weight_decay
        return need_optax().chain(
            *before(h, decoupled=apart), scale_by_nadam(h), *after(h, decoupled=apart)
        )


class RAdam(_Moments):
    """Adam that starts without its second moment, as `torch.optim.RAdam`."""

    fixed = ("maximize", "decoupled_weight_decay")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        self._check(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": tuple(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    @staticmethod
    def transformation(h: Any) -> Any:
        apart = h.decoupled_weight_decay
        return need_optax().chain(
            *before(h, decoupled=apart), scale_by_radam(h), *after(h, decoupled=apart)
        )


class Adamax(_Moments):
    """Adam with the greatest gradient in place of the second moment, as `torch.optim.Adamax`."""

    field_names: ClassVar = {"count": "step", "mu": "exp_avg", "nu": "exp_inf"}

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 2e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        self._check(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": tuple(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    @staticmethod
    def transformation(h: Any) -> Any:
        optax = need_optax()
        return optax.chain(*before(h), optax.scale_by_adamax(*h.betas, h.eps), *after(h))


class Lion(_Moments):
    """Lion (Chen and others, 2023), which PyTorch has not: the numbers of `optax.lion`, whose
    weight decay is `weight_decay`."""

    numbers = ("lr", "betas", "weight_decay")
    field_names: ClassVar = {"count": "step", "mu": "exp_avg"}

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-4,
        betas: tuple[Any, Any] = (0.9, 0.99),
        weight_decay: float = 0,
        *,
        maximize: bool = False,
    ) -> None:
        self._check(lr, betas, 0.0, weight_decay)
        defaults = {
            "lr": lr,
            "betas": tuple(betas),
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    @staticmethod
    def transformation(h: Any) -> Any:
        optax = need_optax()
        lion = optax.scale_by_lion(*h.betas)
        return optax.chain(*before(h, decoupled=True), lion, *after(h, decoupled=True))

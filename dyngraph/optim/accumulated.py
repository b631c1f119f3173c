"""Optimizers that scale each element by its own past gradients: Adagrad, Adadelta, RMSprop,
Adafactor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from dyngraph.optim.adam import after, before
from dyngraph.optim.checks import check, check_not_negative, check_rate
from dyngraph.optim.need_optax import need_optax
from dyngraph.optim.transformed import TransformedOptimizer
from dyngraph.optim.transforms import adafactor, count_steps, scale_by_adagrad


class Adagrad(TransformedOptimizer):
    """As `torch.optim.Adagrad`: the same options and numbers."""

    numbers = ("lr", "lr_decay", "eps", "weight_decay", "initial_accumulator_value")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_not_negative(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    @staticmethod
    def transformation(h: Any) -> Any:
        return need_optax().chain(*before(h), scale_by_adagrad(h), *after(h))


class Adadelta(TransformedOptimizer):
    """As `torch.optim.Adadelta`: the same options and numbers."""

    numbers = ("lr", "rho", "eps", "weight_decay")
    field_names: ClassVar = {"e_g": "square_avg", "e_x": "acc_delta"}

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check(0 <= rho <= 1, "Invalid rho value", rho, "0 <= rho <= 1")
        check_not_negative(epsilon=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    @staticmethod
    def transformation(h: Any) -> Any:
        optax = need_optax()
        adadelta = optax.scale_by_adadelta(h.rho, h.eps)
        return optax.chain(*before(h), count_steps(), adadelta, *after(h))


class RMSprop(TransformedOptimizer):
    """As `torch.optim.RMSprop`: the same options and numbers."""

    numbers = ("lr", "alpha", "eps", "weight_decay", "momentum")
    switches = ("weight_decay", "momentum")
    fixed = ("maximize", "centered")
    field_names: ClassVar = {"nu": "square_avg", "mu": "grad_avg", "trace": "momentum_buffer"}

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_not_negative(epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    @staticmethod
    def transformation(h: Any) -> Any:
        optax = need_optax()
        scale = optax.scale_by_stddev if h.centered else optax.scale_by_rms
        steps = [count_steps(), scale(h.alpha, h.eps, eps_in_sqrt=False)]
        if h.momentum is not None:
            steps.append(optax.trace(h.momentum))
        return optax.chain(*before(h), *steps, *after(h))


class Adafactor(TransformedOptimizer):
    """As `torch.optim.Adafactor`: of a matrix, the second moments of rows and columns only."""

    numbers = ("lr", "beta2_decay", "eps", "d", "weight_decay")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_rate(lr, "Learning rate should be >= 0 but is")
        check(beta2_decay <= 0, "beta2_decay should be <= 0 but is", beta2_decay, "0 or less")
        check(eps[0] is None or eps[0] >= 0, "epsilon1 should be >= 0 but is", eps[0], "0 or more")
        check(eps[1] >= 0, "epsilon2 should be >= 0 but is", eps[1], "0 or more")
        check(d >= 1, "Clipping threshold d should be >= 1 but is", d, "1 or more")
        check(weight_decay >= 0, "weight_decay should be >= 0 but is", weight_decay, "0 or more")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check_param(self, tensor: Any) -> None:
        super()._check_param(tensor)
        if tensor.is_complex():
            raise RuntimeError(
                "Adafactor does not support complex parameters. Use another optimizer."
            )

    @staticmethod
    def transformation(h: Any) -> Any:
        optax = need_optax()
        return optax.chain(*([optax.scale(-1.0)] if h.maximize else []), adafactor(h))

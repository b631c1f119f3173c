"""PyTorch's `torch.autograd.grad_mode`: the modes of `dyngraph.modes` under their public names."""

from __future__ import annotations

from dyngraph.modes import (
    ModeSwitch,
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
    set_multithreading_enabled as set_multithreading_enabled,
)

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class enforce_grad_layout_policy(ModeSwitch):  # noqa: N801 - PyTorch's name
    """A switch that PyTorch has for the strides of `.grad`; here a gradient is contiguous either
    way.

    >>> with dg.autograd.grad_mode.enforce_grad_layout_policy(False):
    ...     pass
    """

    def __init__(self, enable: bool = True) -> None:
        super().__init__()
        self.enable = enable

    def clone(self) -> enforce_grad_layout_policy:
        return enforce_grad_layout_policy(self.enable)

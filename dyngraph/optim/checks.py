"""Checks of options, with PyTorch's errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dyngraph.tensor import Tensor


def check_rate(lr: Any, message: str = "Invalid learning rate") -> None:
    """Raises ValueError for a negative rate, and for a tensor of more than one element."""
    if isinstance(lr, Tensor):
        if lr.numel() != 1:
            raise ValueError(
                f"Tensor lr must be 1-element, got {lr.numel()}. Pass a number for all parameters, "
                "or groups with rates of their own."
            )
        lr = lr.item()
    check(lr >= 0, message, lr, "0 or more")


def check_betas(betas: Sequence[Any]) -> None:
    """Raises ValueError where one is not in [0, 1)."""
    for i, beta in enumerate(betas):
        check(0 <= beta < 1, f"Invalid beta parameter at index {i}", beta, "0 <= beta < 1")


def check_not_negative(**values: Any) -> None:
    """Raises ValueError for a negative value, called as its name says."""
    for name, value in values.items():
        check(value >= 0, f"Invalid {name} value", value, "0 or more")


def check(fine: Any, message: str, value: Any, expected: str) -> None:
    """Raises ValueError with the value, unless it is fine."""
    if not bool(fine):
        raise ValueError(f"{message}: {value}, expected {expected}.")

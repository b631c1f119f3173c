"""PyTorch's anomaly mode: errors of backward say which forward call they come from."""

from __future__ import annotations

import warnings
from typing import Any, Self

from dyngraph.graph import anomaly
from dyngraph.modes import ModeSwitch

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly(ModeSwitch):  # noqa: N801 - PyTorch's name
    """Switches anomaly mode on or off: at once when called, until the block's end in a `with`.

    Nodes that are made while it is on remember the user's frames of their forward call. A backward
    that fails warns with these; and it fails, with RuntimeError, at the first node that returns
    NaN (unless `check_nan` is off) or, with `check_inf`, an infinity. Both cost time.

    >>> x = dg.tensor([0.0], requires_grad=True)
    >>> with dg.autograd.set_detect_anomaly(True, check_nan=False):
    ...     (x.sqrt() * 0).sum().backward()
    >>> x.grad
    tensor([nan])
    """

    def __init__(self, mode: bool, check_nan: bool = True, *, check_inf: bool = False) -> None:
        super().__init__()
        self.mode = bool(mode)
        self.checks = tuple(
            kind for kind, checked in (("nan", check_nan), ("inf", check_inf)) if checked
        )
        self.before: list[tuple[bool, tuple[str, ...]]] = []
        self.first = (anomaly.is_enabled(), anomaly.get_checks())
        anomaly.set_enabled(self.mode, self.checks)

    def __enter__(self) -> Self:
        self.before.append(self.first)
        anomaly.set_enabled(self.mode, self.checks)
        return self

    def __exit__(self, *exception: object) -> None:
        anomaly.set_enabled(*self.before.pop())

    def clone(self) -> set_detect_anomaly:
        return set_detect_anomaly(self.mode, "nan" in self.checks, check_inf="inf" in self.checks)

    def __call__(self, function: Any) -> Any:
        anomaly.set_enabled(*self.first)  # a decorator must not have switched anything yet
        return super().__call__(function)


class detect_anomaly(ModeSwitch):  # noqa: N801 - PyTorch's name
    """Anomaly mode inside: see `set_detect_anomaly`. A context manager, and a decorator.

    Warns that it costs time.

    >>> import warnings
    >>> x = dg.tensor([0.0], requires_grad=True)
    >>> with warnings.catch_warnings(action="ignore"), dg.autograd.detect_anomaly():
    ...     (x.sqrt() * 0).sum().backward()
    Traceback (most recent call last):
    ...
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output...
    """

    def __init__(self, check_nan: bool = True, *, check_inf: bool = False) -> None:
        super().__init__()
        self.check_nan, self.check_inf = check_nan, check_inf
        self.before: list[tuple[bool, tuple[str, ...]]] = []
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            UserWarning,
            stacklevel=2,
        )

    def __enter__(self) -> Self:
        self.before.append((anomaly.is_enabled(), anomaly.get_checks()))
        checks = (("nan", self.check_nan), ("inf", self.check_inf))
        anomaly.set_enabled(True, [kind for kind, checked in checks if checked])
        return self

    def __exit__(self, *exception: object) -> None:
        anomaly.set_enabled(*self.before.pop())

    def clone(self) -> set_detect_anomaly:
        return set_detect_anomaly(True, self.check_nan, check_inf=self.check_inf)


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on in this thread.

    >>> dg.is_anomaly_enabled()
    False
    """
    return anomaly.is_enabled()


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, which is on in this thread, stops at NaN.

    >>> with dg.autograd.set_detect_anomaly(True):
    ...     dg.is_anomaly_check_nan_enabled()
    True
    """
    return "nan" in anomaly.get_checks()


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switches anomaly mode on or off in this thread; see `autograd.set_detect_anomaly`.

    >>> dg.set_anomaly_enabled(True)
    >>> dg.is_anomaly_enabled()
    True
    >>> dg.set_anomaly_enabled(False)
    """
    anomaly.set_enabled(mode, ("nan",) if check_nan else ())

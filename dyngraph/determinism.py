"""Whether results must be the same in each run.

XLA's kernels are so on CPU and TPU. On GPU some add in any order, unless a flag was set when XLA
started.
"""

from __future__ import annotations

import os
import warnings
from typing import NamedTuple

import jax

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_deterministic_debug_mode",
    "use_deterministic_algorithms",
]
FLAG = "--xla_gpu_deterministic_ops"
LEVELS = ("default", "warn", "error")


class _Asked(NamedTuple):
    enabled: bool = False
    warn_only: bool = False


_asked = _Asked()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Says whether results must be the same in each run, in this process.

    On CPU and TPU they are, and nothing changes. Raises RuntimeError on GPU, where XLA was started
    without the flag that makes them so, or warns with `warn_only`; TypeError for a mode that is no
    bool.

    >>> dg.use_deterministic_algorithms(True)
    >>> dg.are_deterministic_algorithms_enabled()
    True
    >>> dg.use_deterministic_algorithms(False)
    """
    global _asked
    if not isinstance(mode, bool):
        raise TypeError(
            f"use_deterministic_algorithms(): argument 'mode' must be bool, not "
            f"{type(mode).__name__}."
        )
    if mode and jax.default_backend() == "gpu" and f"{FLAG}=true" not in _flags():
        message = (
            "XLA was started without deterministic kernels, and chooses them when it starts. Set "
            f"the environment variable XLA_FLAGS={FLAG}=true before the program starts."
        )
        if not warn_only:
            raise RuntimeError(message)
        warnings.warn(message, UserWarning, stacklevel=2)
    _asked = _Asked(mode, mode and warn_only)


def _flags() -> str:
    return os.environ.get("XLA_FLAGS", "").lower().replace(f"{FLAG}=1", f"{FLAG}=true")


def are_deterministic_algorithms_enabled() -> bool:
    """Whether results were asked to be the same in each run.

    >>> dg.are_deterministic_algorithms_enabled()
    False
    """
    return _asked.enabled


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether there is only a warning where they cannot be.

    >>> dg.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _asked.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`use_deterministic_algorithms` by a level: 0 or "default" for off, 1 or "warn", 2 or "error".

    Raises TypeError for another type, RuntimeError for another level.

    >>> dg.set_deterministic_debug_mode("default")
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    named = isinstance(debug_mode, str)
    level = LEVELS.index(debug_mode) if debug_mode in LEVELS else debug_mode
    if level not in (0, 1, 2):
        expected = "one of `default`, `warn`, `error`" if named else "0, 1, or 2"
        raise RuntimeError(
            f"invalid value of debug_mode, expected {expected}, but got {debug_mode}"
        )
    use_deterministic_algorithms(level > 0, warn_only=level == 1)  # type: ignore[operator]


def get_deterministic_debug_mode() -> int:
    """The level that `set_deterministic_debug_mode` sets.

    >>> dg.get_deterministic_debug_mode()
    0
    """
    return 0 if not _asked.enabled else 1 if _asked.warn_only else 2

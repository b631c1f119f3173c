"""`dg.config`: what can be set for the whole process; each setting has an environment variable."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple


class Setting(NamedTuple):
    """One setting: its default, what it may be, and what it means."""

    default: Any
    check: Callable[[Any], bool]
    expected: str
    meaning: str


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


_SETTINGS = {
    "compiled_autograd": Setting(
        False,
        _is_bool,
        "True or False",
        "Whether backward runs compiled in threads that are in no `compiled_autograd()` block.",
    ),
    "compile_after": Setting(
        2,
        _is_count,
        "an int of at least 1",
        "In which backward that has it a sequence of kernels is compiled.",
    ),
    "compile_whole_after": Setting(
        16,
        _is_count,
        "an int of at least 1",
        "After how many backwards a sequence in pieces is compiled whole; they must be two thirds "
        "of the last ones.",
    ),
    "compile_in_background": Setting(
        False,
        _is_bool,
        "True or False",
        "Whether a thread of its own compiles, while steps go on kernel by kernel.",
    ),
    "compiled_cache_size": Setting(
        1024, _is_count, "an int of at least 1", "How many compiled programs are kept."
    ),
    "fusion": Setting(
        "auto",
        lambda value: value in ("auto", True, False),
        "'auto', True or False",
        "Whether XLA fuses the kernels of a compiled program on CPU; 'auto' decides by its sizes.",
    ),
}

SETTING_NAMES = tuple(_SETTINGS)


class Config:
    """The settings, as attributes; setting one to a wrong value raises ValueError.

    >>> dg.config.compile_after
    2
    """

    def __init__(self) -> None:
        for name, setting in _SETTINGS.items():
            variable = f"DYNGRAPH_{name.upper()}"
            text = os.environ.get(variable)
            value = setting.default if text is None else _read(text, setting.default)
            if not setting.check(value):
                raise ValueError(f"{variable} is {text!r}: expected {setting.expected}")
            self.__dict__[name] = value

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _SETTINGS:
            raise AttributeError(
                f"dyngraph has no setting {name!r}: expected one of {', '.join(_SETTINGS)}"
            )
        setting = _SETTINGS[name]
        if not setting.check(value):
            raise ValueError(f"dg.config.{name} = {value!r}: expected {setting.expected}")
        self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"dyngraph has no setting {name!r}: expected one of {', '.join(_SETTINGS)}"
        )

    def __repr__(self) -> str:
        lines = [
            f"{name} = {self.__dict__[name]!r}  # {setting.meaning}"
            for name, setting in _SETTINGS.items()
        ]
        return "\n".join(lines)


_WORDS = {"1": True, "true": True, "yes": True, "on": True}
_WORDS |= {"0": False, "false": False, "no": False, "off": False}


def _read(text: str, default: Any) -> Any:
    """The value that an environment variable's text stands for."""
    word = text.strip().lower()
    if isinstance(default, int) and not isinstance(default, bool):
        return int(word) if word.isdigit() else word
    return _WORDS.get(word, word)


config = Config()

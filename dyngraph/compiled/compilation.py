"""Compiling a Program now, or in a thread of its own while steps go on without it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax

from dyngraph.compiled import report
from dyngraph.compiled.program import Program
from dyngraph.configuration import config

_lock = threading.Lock()
_waiting: set[Program] = set()
_pool: ThreadPoolExecutor | None = None


def compile_now(program: Program, arrays: Sequence[Any]) -> list[Any] | None:
    """Compiles and runs a Program: its results. None where it is left to the background."""
    if not config.compile_in_background:
        return program.compile(arrays)
    global _pool
    with _lock:
        if program not in _waiting:
            _waiting.add(program)
            _pool = _pool or ThreadPoolExecutor(1, thread_name_prefix="dyngraph-compile")
            x64 = jax.config.read("jax_enable_x64")
            _pool.submit(_compile_apart, program, list(arrays), x64)
    return None


def _compile_apart(program: Program, arrays: list[Any], x64: bool) -> None:
    try:
        with jax.enable_x64(x64):
            program.compile(arrays)
    except Exception as error:
        report.note_failure(len(program), error)
    finally:
        arrays.clear()
        with _lock:
            _waiting.discard(program)


def wait_for_compilations() -> None:
    """Returns when nothing is being compiled in the background any more."""
    done: Callable[[], None] = lambda: None  # noqa: E731
    if _pool is not None:
        _pool.submit(done).result()

"""First steps: what compiling costs in a new process that finds no cache of compiled kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

_PROGRAM = """
import time
began = time.perf_counter()
import jax, jax.numpy as jnp
import dyngraph as dg
from bench import workloads
from bench.__main__ import {make}
step = {make}()[{which!r}]
ready = time.perf_counter()
step()
first = time.perf_counter()
step()
second = time.perf_counter()
print(ready - began, first - ready, second - first)
"""


class Cold(NamedTuple):
    """Seconds until the program is ready to run, and of its first and second step."""

    name: str
    start: float
    first: float
    second: float


def measure(name: str, make: str, which: str) -> Cold:
    """Runs the candidate `which` of `bench.__main__.<make>` twice, in a process of its own."""
    environment = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    out = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(make=make, which=which)],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    ).stdout
    return Cold(name, *(float(value) for value in out.split()[-3:]))

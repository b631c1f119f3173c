"""The doctor: what is installed, which devices there are, and whether a kernel runs on each.

python -m dyngraph doctor [--json]
"""

from __future__ import annotations

import glob
import importlib.metadata
import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from dyngraph.compiled import compiled_autograd
from dyngraph.configuration import SETTING_NAMES, config
from dyngraph.tensor import wrap

OK, NOTE, BROKEN = "ok", "note", "broken"
MARKS = {OK: "  ", NOTE: "! ", BROKEN: "X "}
OLDEST = {"python": (3, 11), "jax": (0, 10), "jaxlib": (0, 10), "numpy": (2, 0)}
"""What the package needs at least."""
ACCELERATORS = {
    "/dev/nvidia[0-9]*": ("an NVIDIA GPU", "gpu", "cuda12"),
    "/dev/accel[0-9]*": ("a TPU", "tpu", "tpu"),
}
"""Device files, what they tell of, JAX's platform, and the extra that brings its plugin."""
MORE_SWITCHES = {"DYNGRAPH_LOGS": "which logs are written, such as compiled"}
ROWS = 64
CONFIG: Any = jax.config


class Finding(NamedTuple):
    """One line: its section, what was looked at, what was found, and how that is."""

    section: str
    what: str
    found: str
    state: str = OK


def examine() -> list[Finding]:
    """Everything that the doctor looks at.

    >>> from dyngraph.doctor import examine
    >>> [f.found for f in examine() if f.state == "broken"]
    []
    """
    return [
        *_versions(),
        *_extras(),
        *_devices(),
        *_settings(),
        *_caches(),
        *_switches(),
        *_kernels(),
    ]


def _versions() -> Iterator[Finding]:
    versions = {
        "python": platform.python_version(),
        **{name: _version(name) for name in ("dyngraph", "jax", "jaxlib", "numpy")},
    }
    for name, version in versions.items():
        oldest = OLDEST.get(name)
        if version is None:
            # a checkout that is on the path without being installed has no metadata
            state = NOTE if name == "dyngraph" else BROKEN
            yield Finding("versions", name, "not installed", state)
        elif oldest and _numbers(version)[:2] < oldest:
            needed = ".".join(map(str, oldest))
            yield Finding("versions", name, f"{version}, expected {needed} or newer", BROKEN)
        else:
            yield Finding("versions", name, version)
    yield Finding("versions", "from", os.path.dirname(__file__))
    pair = versions["jax"], versions["jaxlib"]
    if None not in pair and _numbers(pair[0])[:2] != _numbers(pair[1])[:2]:  # type: ignore[arg-type]
        text = f"jax {pair[0]} with jaxlib {pair[1]}: expected the same version of both"
        yield Finding("versions", "pair", f"{text}. pip install -U jax jaxlib", BROKEN)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _extras() -> Iterator[Finding]:
    """The optional packages, by the extra that brings them."""
    found: dict[str, list[str]] = {}
    try:
        required = importlib.metadata.requires("dyngraph") or []
    except importlib.metadata.PackageNotFoundError:
        return
    for text in required:
        name = re.match(r"[\w.\-]+", text)
        extra = re.search(r"extra\s*==\s*['\"]([\w\-]+)['\"]", text)
        if name and extra and name[0] not in ("dyngraph", "jax"):
            found.setdefault(extra[1], []).append(name[0])
    for extra, names in found.items():
        have = {name: _version(name) for name in dict.fromkeys(names)}
        shown = [f"{name} {version}" for name, version in have.items() if version]
        missing = [name for name, version in have.items() if not version]
        if missing:
            shown.append(f"missing: {', '.join(missing)}")
        yield Finding("extras", extra, ", ".join(shown))


def _devices() -> Iterator[Finding]:
    for device in jax.devices():
        stats = device.memory_stats() or {}
        limit = stats.get("bytes_limit")
        memory = f", {limit / 2**30:.0f} GiB for JAX" if limit else ""
        yield Finding("devices", str(device), f"{device.device_kind}{memory}")
    platforms = {device.platform for device in jax.devices()}
    for files, (what, name, extra) in ACCELERATORS.items():
        if glob.glob(files) and platforms == {"cpu"} and not os.environ.get("JAX_PLATFORMS"):
            text = f"there is {what}, which JAX does not see: pip install 'dyngraph[{extra}]'"
            yield Finding("devices", name, text, NOTE)


def _settings() -> Iterator[Finding]:
    x64 = CONFIG.jax_enable_x64
    said = "on: 64-bit dtypes" if x64 else "off: ints have 32 bits, a 64-bit dtype raises"
    yield Finding("settings", "jax_enable_x64", said)
    for name in ("jax_default_matmul_precision", "jax_disable_jit", "jax_debug_nans"):
        value = getattr(CONFIG, name)
        state = NOTE if name == "jax_disable_jit" and value else OK
        yield Finding("settings", name, str(value), state)
    for name in SETTING_NAMES:
        yield Finding("settings", f"dg.config.{name}", repr(getattr(config, name)))


def _caches() -> Iterator[Finding]:
    folder = CONFIG.jax_compilation_cache_dir
    if not folder:
        text = "not set: each process compiles anew; JAX_COMPILATION_CACHE_DIR=folder keeps kernels"
        yield Finding("caches", "compiled kernels", text)
        return
    if "://" in folder:
        yield Finding("caches", "compiled kernels", folder)
        return
    if not os.path.isdir(folder):
        yield Finding("caches", "compiled kernels", f"{folder}, which is made when first used")
    elif not os.access(folder, os.W_OK):
        text = f"{folder} can't be written to: nothing is kept. Choose another, or allow it"
        yield Finding("caches", "compiled kernels", text, BROKEN)
    else:
        sizes = [entry.stat().st_size for entry in os.scandir(folder) if entry.is_file()]
        text = f"{folder}: {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB"
        yield Finding("caches", "compiled kernels", text)
    seconds = CONFIG.jax_persistent_cache_min_compile_time_secs
    if seconds > 0.1:
        text = (
            f"only what compiles in over {seconds:g} s, which most kernels do not: "
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 keeps them all"
        )
        yield Finding("caches", "what is kept", text, NOTE)


def _switches() -> Iterator[Finding]:
    """Environment variables that change what dyngraph, JAX and XLA do."""
    known = {f"DYNGRAPH_{name.upper()}" for name in SETTING_NAMES} | set(MORE_SWITCHES)
    for name, value in sorted(os.environ.items()):
        if name.startswith("DYNGRAPH_") and name not in known:
            text = f"{value}: no such switch; there are {', '.join(sorted(known))}"
            yield Finding("environment", name, text, NOTE)
        elif name.startswith(("DYNGRAPH_", "JAX_", "XLA_", "CUDA_VISIBLE", "TPU_")):
            yield Finding("environment", name, value)


def _kernels() -> Iterator[Finding]:
    """One kernel and its backward on each device, and once compiled."""
    for device in jax.local_devices():
        yield _try(f"on {device}", lambda device=device: _matmul(device))
    yield _try("compiled backward", lambda: _compiled(jax.local_devices()[0]))


def _try(what: str, run: Callable[[], str]) -> Finding:
    try:
        return Finding("kernels", what, run())
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        return Finding("kernels", what, f"{type(error).__name__}: {reason}", BROKEN)


def _matmul(device: Any) -> str:
    """A product and its gradient, and how long they take when compiled."""
    given = np.arange(ROWS * ROWS, dtype=np.float32).reshape(ROWS, ROWS) / ROWS**2
    found, seconds = given, []
    for _ in range(2):
        start = time.perf_counter()
        x = wrap(jax.device_put(given, device), requires_grad=True)
        (x @ x).sum().backward()
        assert x.grad is not None
        found = np.asarray(x.grad._cell.array)
        seconds.append(time.perf_counter() - start)
    ones = np.ones_like(given)
    expected = ones @ given.T + given.T @ ones
    worst = float(np.abs(found - expected).max() / np.abs(expected).max())
    if not worst < 1e-2:  # tensor cores round to 10 bits
        raise ArithmeticError(f"its gradient is wrong by {worst:.1e} of the greatest entry")
    first, later = (1e3 * s for s in seconds)
    return f"right to {worst:.0e}; forward and backward {first:.0f} ms first, {later:.2f} ms later"


def _compiled(device: Any) -> str:
    """The same gradient by the compiled backward."""
    grads = []
    for enabled in (False, True, True):
        x = wrap(jax.device_put(np.array([0.5, 2.0], np.float32), device), requires_grad=True)
        with compiled_autograd(enabled):
            (x * x.exp()).sum().backward()
        assert x.grad is not None
        grads.append(np.asarray(x.grad._cell.array))
    if not np.allclose(grads[0], grads[2], rtol=1e-5):
        raise ArithmeticError(f"it gives {grads[2]}, expected {grads[0]}")
    return "gives the eager gradient"


def verdict(findings: list[Finding]) -> str:
    """The last line."""
    broken = [f for f in findings if f.state == BROKEN]
    if broken:
        names = ", ".join(f"{f.section}: {f.what}" for f in broken)
        return f"broken ({len(broken)}): {names}"
    notes = sum(f.state == NOTE for f in findings)
    return "all is well" + (f"; {notes} to look at, marked !" if notes else "")


def main(arguments: list[str]) -> int:
    """Prints what was found: 1 where something is broken, else 0."""
    unknown = [a for a in arguments if a != "--json"]
    if unknown:
        print(f"python -m dyngraph doctor [--json]: {unknown[0]!r} is unknown", file=sys.stderr)
        return 2
    findings = examine()
    if arguments:
        print(json.dumps([f._asdict() for f in findings], indent=1))
    else:
        print(_text(findings))
    return int(any(f.state == BROKEN for f in findings))


def _text(findings: list[Finding]) -> str:
    lines, section = [], None
    width = max(len(f.what) for f in findings)
    for f in findings:
        if f.section != section:
            section = f.section
            lines.append(section)
        lines.append(f"  {MARKS[f.state]}{f.what:{width}}  {f.found}")
    return "\n".join([*lines, "", verdict(findings)])

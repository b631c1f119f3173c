"""What every test stands on: JAX's environment, hypothesis profiles, shared fixtures."""

import os
from importlib.metadata import version

# JAX reads these once, when it is first imported; what the caller has set wins. Four CPU devices
# serve the tests of placement and sharding; one thread a kernel keeps parallel test processes out
# of each other's way and sums in one order. Most of the tests' time is compilation, of kernels that
# run once: so they are compiled quickly, not well.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "4")
XLA_FLAGS = [
    "--xla_cpu_multi_thread_eigen=false",
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_parallel_codegen_split_count=1",  # no threads for kernels of a few lines
]
if version("jaxlib") < "0.11":  # a later XLA has no other emitters, and refuses the flag
    XLA_FLAGS.append("--xla_cpu_use_fusion_emitters=false")  # half the time, and the same kernels
os.environ.setdefault("XLA_FLAGS", " ".join(XLA_FLAGS))

import contextlib
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import jax
import pytest

import dyngraph as dg
from dyngraph.graph import engine
from tests.opinfo import OpInfo

# The first call of a kernel compiles it, so no example has a deadline.
hypothesis.settings.register_profile("dev", max_examples=20, deadline=None)
hypothesis.settings.register_profile(
    "ci", max_examples=60, deadline=None, derandomize=True, print_blob=True
)
hypothesis.settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev")
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts together what is asked of one row, so that one process does it and compiles once."""
    rows: dict[tuple[object, str], int] = {}

    def place_of_row(item: pytest.Item) -> int:
        callspec = getattr(item, "callspec", None)
        row = callspec.params.get("row") if callspec else None
        key = (item.path, row.name if isinstance(row, OpInfo) else item.nodeid)
        return rows.setdefault(key, len(rows))

    items.sort(key=place_of_row)


def pytest_collection_finish() -> None:
    """Leaves modules and tests, which stay, out of every later garbage collection; and has these
    less often, since JAX makes many objects that it keeps."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


# What is asked of an ordinary backward is asked of a compiled one too: each test in these folders
# and files runs as it is, and once more with every backward compiled on first sight.
IN_BOTH_MODES = "graph autograd views utils func test_seeds.py".split()
COMPILED_EXAMPLES = 20
"""How many programs that hypothesis draws are compiled for a test: each is another to XLA."""
EAGER = pytest.param("eager", id="eager")
COMPILED = pytest.param(
    "compiled", id="compiled", marks=pytest.mark.filterwarnings("ignore:.*not seen before")
)


@pytest.hookimpl(trylast=True)  # so that both runs of a test come one after the other
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    test = metafunc.definition
    if test.path.relative_to(Path(__file__).parent).parts[0] in IN_BOTH_MODES:
        modes = [EAGER] if test.get_closest_marker("eager_only") else [EAGER, COMPILED]
        metafunc.parametrize("backward_mode", modes, indirect=True)


NO_BACKWARD = "calls no backward"
_without_backward: set[str] = set()
"""The tests that ran and called no backward: there is nothing to be compiled in them."""


@pytest.fixture(autouse=True)
def backward_mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """How backwards run in this test and in its threads: "eager", or "compiled" on first sight."""
    mode = getattr(request, "param", "eager")
    test = request.node.nodeid.removesuffix(f"{mode}]")
    if mode == "eager":
        with set_config(compiled_autograd=False), noting_backwards() as backwards:
            yield mode
        if not backwards:
            _without_backward.add(test)
        return
    if test in _without_backward:
        pytest.skip(NO_BACKWARD)
    with set_config(compiled_autograd=True, compile_after=1), fewer_examples(request.function):
        yield mode


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Counts tests that need no second run by themselves: they are not skipped."""
    if report.skipped and isinstance(report.longrepr, tuple) and NO_BACKWARD in report.longrepr[2]:
        return "in one mode only", "", "ONE MODE"
    return None


@contextlib.contextmanager
def set_config(**settings: Any) -> Iterator[None]:
    """Inside, `dg.config` has these settings."""
    before = {name: getattr(dg.config, name) for name in settings}
    for name, value in settings.items():
        setattr(dg.config, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(dg.config, name, value)


@contextlib.contextmanager
def noting_backwards() -> Iterator[list[bool]]:
    """Inside, a backward of any thread is noted in the list."""
    noted: list[bool] = []
    make = engine.GraphTask.__init__

    def note_and_make(self: engine.GraphTask, values: Any, **options: Any) -> None:
        noted[:] = [True]
        make(self, values, **options)

    engine.GraphTask.__init__ = note_and_make
    try:
        yield noted
    finally:
        engine.GraphTask.__init__ = make


@contextlib.contextmanager
def fewer_examples(test: Any) -> Iterator[None]:
    """Inside, a hypothesis test tries its first examples only; and all, once one has failed, to
    find the smallest."""
    handle = getattr(test, "hypothesis", None)
    if handle is None:
        yield
        return
    inner, left = handle.inner_test, COMPILED_EXAMPLES

    def first_examples(*args: Any, **kwargs: Any) -> None:
        nonlocal left
        if left:
            left -= 1
            try:
                inner(*args, **kwargs)
            except Exception:
                left = -1
                raise

    handle.inner_test = first_examples
    try:
        yield
    finally:
        handle.inner_test = inner


def modes_in_force() -> dict[str, object]:
    """Every switch that a context manager or setter can leave behind, by name."""
    return {
        "grad mode": dg.is_grad_enabled(),
        "inference mode": dg.is_inference_mode_enabled(),
        "forward mode's level": dg.autograd.forward_ad._current_level,
        "forward mode": dg.autograd.forward_ad._is_fwd_grad_enabled(),
        "anomaly mode": (dg.is_anomaly_enabled(), dg.is_anomaly_check_nan_enabled()),
        "compiled backward": (engine.get_runner(), repr(dg.config)),
        "default dtype": dg.get_default_dtype(),
        "jax_enable_x64": jax.config.read("jax_enable_x64"),
    }


@pytest.fixture(autouse=True)
def modes_are_restored() -> Iterator[None]:
    """Fails a test which leaves a mode other than it found it."""
    before = modes_in_force()
    yield
    after = modes_in_force()
    left = [
        f"{mode}: {was} before, {after[mode]} after"
        for mode, was in before.items()
        if after[mode] != was
    ]
    if left:
        # The tests that follow in this process are not to fail for it.
        dg.set_grad_enabled(True)
        dg.set_anomaly_enabled(False)
        dg.set_default_dtype(dg.float32)
        pytest.fail(f"the test left a mode switched: {'; '.join(left)}")


@pytest.fixture
def no_gc() -> Iterator[None]:
    """Runs the test without the garbage collector: only a last reference frees anything."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@pytest.fixture
def x64() -> Iterator[None]:
    """Runs the test with 64-bit dtypes switched on in JAX, and off again after it."""
    with jax.enable_x64(True):
        yield

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
]
if version("jaxlib") < "0.11":  # a later XLA has no other emitters, and refuses the flag
    XLA_FLAGS.append("--xla_cpu_use_fusion_emitters=false")  # half the time, and the same kernels
os.environ.setdefault("XLA_FLAGS", " ".join(XLA_FLAGS))

import gc
from collections.abc import Iterator

import hypothesis
import jax
import pytest

import dyngraph as dg
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


def modes_in_force() -> dict[str, object]:
    """Every switch that a context manager or setter can leave behind, by name."""
    return {
        "grad mode": dg.is_grad_enabled(),
        "inference mode": dg.is_inference_mode_enabled(),
        "forward mode's level": dg.autograd.forward_ad._current_level,
        "forward mode": dg.autograd.forward_ad._is_fwd_grad_enabled(),
        "anomaly mode": (dg.is_anomaly_enabled(), dg.is_anomaly_check_nan_enabled()),
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

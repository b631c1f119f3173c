"""Programs of several processes: two go backward together, and starts that can't succeed."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import dyngraph as dg
from tests.sharding.helpers import data_mesh, sharding, spec_of

ROOT = Path(__file__).parents[2]
ROWS = np.arange(12, dtype=np.float32).reshape(4, 3) / 12
PROGRAM = """
import json, sys
import numpy as np
import dyngraph as dg

dg.sharding.start(timeout=60)
mesh = dg.sharding.mesh(data=-1)
weight = dg.sharding.replicate(dg.ones(3), mesh).requires_grad_()
index = dg.sharding.process_index()
rows = np.array(json.loads(sys.argv[1]), np.float32)[2 * index : 2 * index + 2]
x = dg.sharding.from_local(rows, mesh, "data")
((x @ weight) ** 2).mean().backward()
found = {
    "shape": list(x.shape),
    "first": dg.sharding.is_first_process(),
    "gradient": weight.grad.tolist(),
    "text": repr(x),
}
try:
    x.tolist()
except RuntimeError as error:
    found["error"] = str(error)
try:
    dg.sharding.replicate(dg.tensor(float(index)), mesh)
except RuntimeError as error:
    found["differs"] = str(error)
found["whole"] = dg.sharding.replicate(x, mesh).tolist()
dg.sharding.stop()
print("found", json.dumps(found))
"""


@pytest.fixture(scope="module")
def found() -> list[dict[str, Any]]:
    """What each of two processes, of one CPU device each, has found."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "JAX_NUM_CPU_DEVICES": "1",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": "2",
    }
    command = [sys.executable, "-c", PROGRAM, json.dumps(ROWS.tolist())]
    processes = [
        subprocess.Popen(
            command,
            env=environment | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        texts = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (_, errors) in zip(processes, texts, strict=True):
        assert process.returncode == 0, errors
    return [json.loads(out.rpartition("found ")[2]) for out, _ in texts]


def test_parts_of_two_processes_are_one_batch(found: Any) -> None:
    assert [each["shape"] for each in found] == [[4, 3]] * 2


def test_one_of_them_is_the_first(found: Any) -> None:
    assert [each["first"] for each in found] == [True, False]


def test_gradient_is_summed_over_processes(found: Any) -> None:
    expected = 2 * ROWS.T @ ROWS.sum(1) / 4
    for each in found:
        np.testing.assert_allclose(each["gradient"], expected, rtol=1e-5)


def test_text_of_a_tensor_with_parts_elsewhere_says_where(found: Any) -> None:
    assert found[0]["text"] == "tensor(..., size=(4, 3), sharding=P('data') over (data=2))"


def test_value_of_a_tensor_with_parts_elsewhere_is_refused(found: Any) -> None:
    assert "Call dg.sharding.replicate(tensor, mesh) first" in found[1]["error"]


def test_values_that_differ_between_processes_are_refused(found: Any) -> None:
    assert "Call dg.manual_seed() with one number" in found[0]["differs"]


def test_replicated_tensor_has_its_value_in_each_process(found: Any) -> None:
    assert [each["whole"] for each in found] == [ROWS.tolist()] * 2


# --- one process ------------------------------------------------------------------------------


def test_part_of_one_process_is_the_whole() -> None:
    x = sharding.from_local(ROWS, data_mesh(), "data")
    assert (x.tolist(), spec_of(x)) == (ROWS.tolist(), P("data"))


@pytest.fixture
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_launcher")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("localhost:1",), ValueError, "no process_count and no process_index"),
        (("localhost", 2, 0), ValueError, "set MASTER_PORT"),
        (("localhost:1", 2, 2), ValueError, "expected 0 to 1. Number them from 0"),
        (("localhost:1", 2, 0), RuntimeError, "Call it before tensors are made"),
    ],
)
def test_start_that_can_not_succeed(arguments: Any, error: type[Exception], message: str) -> None:
    dg.ones(1)
    with pytest.raises(error, match=message):
        sharding.start(*arguments)


@pytest.mark.usefixtures("no_launcher")
def test_start_reads_the_launchers_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "7")
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("MASTER_PORT", "1")
    with pytest.raises(ValueError, match="process_index 7 of 4"):
        sharding.start()

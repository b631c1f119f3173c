"""A training run that is killed goes on from its last file, and ends with the same numbers."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import dyngraph as dg

STEPS = 30

Training = dict[str, Any]


def start() -> Training:
    """Parameters, an optimizer and a scheduler, and the generator that draws data and noise."""
    generator = dg.Generator().manual_seed(0)
    params = {"w": dg.ones(3, 2), "b": dg.zeros(2)}
    for p in params.values():
        p.requires_grad_()
    optimizer = dg.optim.AdamW(list(params.values()), lr=0.05)
    scheduler = dg.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    parts = {"params": params, "optimizer": optimizer, "scheduler": scheduler}
    return {"step": 0, "generator": generator, **parts}


def save(training: Training, path: Path) -> None:
    state = {
        "step": training["step"],
        "params": {name: p.detach() for name, p in training["params"].items()},
        "generator": training["generator"].get_state(),
        "optimizer": training["optimizer"].state_dict(),
        "scheduler": training["scheduler"].state_dict(),
    }
    dg.save(state, path)


def resume(path: Path) -> Training:
    """The training as the file has it; from the start where there is none."""
    training = start()
    if not path.exists():
        return training
    state = dg.load(path)
    with dg.no_grad():
        for name, p in training["params"].items():
            p.copy_(state["params"][name])
    training["step"] = state["step"]
    training["generator"].set_state(state["generator"])
    training["optimizer"].load_state_dict(state["optimizer"])
    training["scheduler"].load_state_dict(state["scheduler"])
    return training


def advance(training: Training) -> None:
    """One step, with data drawn for it."""
    p, generator = training["params"], training["generator"]
    x = dg.randn(4, 3, generator=generator)
    loss = (x @ p["w"] + p["b"]).tanh().sum()
    loss.backward()
    training["optimizer"].step()
    training["optimizer"].zero_grad()
    training["scheduler"].step()
    training["step"] += 1


def train(path: Path) -> None:
    """A step for each line on standard input; says when it is saved."""
    training = resume(path)
    for _ in sys.stdin:
        advance(training)
        save(training, path)
        print(training["step"], flush=True)


def test_run_that_is_killed_at_random_steps_ends_with_the_same_parameters(tmp_path: Path) -> None:
    whole = start()
    for _ in range(STEPS):
        advance(whole)
    path, draws = tmp_path / "state", np.random.default_rng()
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.test_resuming", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent.parent,
        )
        count = int(draws.integers(3, STEPS // 3))
        with process, process.stdin as steps, process.stdout as done:  # type: ignore[union-attr]
            steps.write("step\n" * count)
            steps.flush()
            for _ in range(count - 1):
                done.readline()
            time.sleep(draws.uniform(0, 0.01))  # into the last step, or the writing of its file
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        assert 0 < dg.load(path)["step"] < STEPS
    resumed = resume(path)
    while resumed["step"] < STEPS:
        advance(resumed)
    assert resumed["step"] == STEPS
    for name, p in whole["params"].items():
        assert p.detach().numpy().tobytes() == resumed["params"][name].detach().numpy().tobytes()
    assert repr(resumed["generator"]) == repr(whole["generator"])
    assert resumed["scheduler"].get_last_lr() == whole["scheduler"].get_last_lr()


def test_half_written_file_is_never_the_one_that_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "state"
    dg.save([dg.zeros(4)], path)
    whole = path.read_bytes()
    beside = tmp_path / ".state.0.tmp"
    beside.write_bytes(whole[: len(whole) // 2])  # as a killed process leaves it
    assert dg.load(path)[0].tolist() == [0, 0, 0, 0]
    dg.save([dg.ones(4)], path)
    assert dg.load(path)[0].tolist() == [1, 1, 1, 1]
    assert sorted(os.listdir(tmp_path)) == [".state.0.tmp", "state"]


if __name__ == "__main__":
    train(Path(sys.argv[1]))

"""The demo: what it learns is the same in every mode, and a run goes on where it was saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import dyngraph as dg
from dyngraph.demo.__main__ import PROBLEMS, main
from dyngraph.demo.problem import Problem
from dyngraph.demo.training import (
    EAGER,
    MODES,
    Session,
    disagreement,
    load_session,
    make_trainer,
    save_session,
)

SMALL = {
    "lstm": {"batch": 4, "hidden": 8},
    "gpt": {"batch": 2, "hidden": 16, "layers": 1},
    "cnn": {"hidden": 2},
}
every_model = pytest.mark.parametrize("model", PROBLEMS)
every_mode = pytest.mark.parametrize("mode", MODES)


def make(model: str) -> Problem:
    dg.manual_seed(0)
    return PROBLEMS[model][0](**SMALL[model])  # type: ignore[arg-type]


def start(model: str, mode: str) -> Session:
    return Session(make_trainer(make(model), mode), np.random.default_rng(0), dg.manual_seed(0), 0)


def run(session: Session, steps: int) -> list[float]:
    problem = session.trainer.problem
    losses = [session.trainer.step(problem.batch(session.draws)) for _ in range(steps)]
    session.trainer.put_into_model()
    return losses


def parameters(session: Session) -> list[np.ndarray]:
    return [p.detach().numpy() for p in session.trainer.problem.model.parameters()]


@every_model
def test_modes_learn_the_same(model: str) -> None:
    losses = {mode: run(start(model, mode), 3) for mode in MODES}
    for mode in MODES:
        np.testing.assert_allclose(losses[mode], losses[EAGER], rtol=1e-5)


@every_model
def test_gradients_are_those_of_jax(model: str) -> None:
    problem = make(model)
    batch = problem.batch(np.random.default_rng(1))
    assert disagreement(problem, batch, EAGER) < 1e-5


@every_model
def test_steps_make_the_loss_smaller(model: str) -> None:
    problem = make(model)
    trainer = make_trainer(problem, EAGER)
    batch = problem.batch(np.random.default_rng(1))
    losses = [trainer.step(batch) for _ in range(10)]
    assert losses[-1] < losses[0]


@every_mode
def test_resumed_run_is_that_which_never_stopped(mode: str, tmp_path: Path) -> None:
    file = tmp_path / "run.safetensors"
    straight = start("cnn", mode)
    run(straight, 4)
    stopped = start("cnn", mode)
    run(stopped, 2)
    save_session(file, stopped._replace(done=2))
    resumed = load_session(file, start("cnn", mode))
    assert resumed.done == 2
    run(resumed, 2)
    for got, want in zip(parameters(resumed), parameters(straight), strict=True):
        np.testing.assert_array_equal(got, want)


def test_run_of_another_mode_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.safetensors"
    save_session(file, start("cnn", "jax"))
    with pytest.raises(SystemExit, match="holds a run of 'jax', and this one is of 'eager'"):
        load_session(file, start("cnn", EAGER))


def test_run_of_another_model_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.safetensors"
    save_session(file, start("lstm", EAGER))
    with pytest.raises(SystemExit, match=r"first names.*this one is of 'handwritten digits"):
        load_session(file, start("cnn", EAGER))


def test_arrays_and_programs_are_as_many_after_more_steps() -> None:
    session = start("gpt", "compiled")
    counts: list[Any] = []
    for _ in range(3):
        run(session, 20)
        counts.append((len(jax.live_arrays()), dg.compiled.stats().compilations))
    assert counts[2] == counts[1]


def test_main_ends_with_a_table_of_all_modes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "run.safetensors")
    small = ["--model=cnn", "--hidden=2", "--compare=2"]
    main([*small, "--steps=2", f"--save={file}"])
    main([*small, "--steps=3", f"--resume={file}"])
    shown = capsys.readouterr().out
    assert "going on from step 2" in shown
    rows = [line.split()[0] for line in shown.splitlines()[-4:]]
    assert rows == list(MODES)

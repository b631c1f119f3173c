"""`Optax` moves parameters as the transformation alone does, and saves its state."""

import ast
import copy
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import dyngraph as dg

NAMES = ["w", "b"]
SHAPES = [(2, 3), (4,)]


def gradients(step: int) -> list[np.ndarray]:
    draws = np.random.default_rng(step)
    return [draws.standard_normal(shape).astype(np.float32) for shape in SHAPES]


def tensors() -> list[dg.Tensor]:
    return [dg.tensor(array, requires_grad=True) for array in gradients(99)]


def advance(params: list[dg.Tensor], optimizer: Any, step: int, **extra: Any) -> None:
    for p, grad in zip(params, gradients(step), strict=True):
        p.grad = dg.tensor(grad)
    optimizer.step(**extra)


TRANSFORMATIONS = {
    "clipped": lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(1e-2)),
    "scheduled": lambda: optax.sgd(optax.cosine_decay_schedule(0.1, 10), momentum=0.9),
    "accumulated": lambda: optax.MultiSteps(optax.adam(1e-2), 2),
    "masked": lambda: optax.masked(optax.sgd(0.1), {"w": True, "b": False}),
    "partitioned": lambda: optax.multi_transform(
        {"slow": optax.sgd(0.1), "fast": optax.adam(0.1)}, {"w": "slow", "b": "fast"}
    ),
    "with a value": lambda: optax.chain(
        optax.sgd(0.1), optax.contrib.reduce_on_plateau(patience=1)
    ),
}


@pytest.mark.parametrize("kind", TRANSFORMATIONS)
def test_parameters_move_as_by_the_transformation_alone(kind: str) -> None:
    tx = optax.with_extra_args_support(TRANSFORMATIONS[kind]())
    params = tensors()
    named = kind in ("masked", "partitioned")
    optimizer = dg.optim.Optax(dict(zip(NAMES, params, strict=True)) if named else params, tx)
    extra = {"value": 1.0} if kind == "with a value" else {}

    def tree(arrays: Any) -> Any:
        leaves = [jnp.asarray(a) for a in arrays]
        return dict(zip(NAMES, leaves, strict=True)) if named else leaves

    arrays: Any = tree(gradients(99))
    state, update = tx.init(arrays), jax.jit(tx.update)
    for step in range(3):
        advance(params, optimizer, step, **extra)
        updates, state = update(tree(gradients(step)), state, arrays, **extra)
        arrays = optax.apply_updates(arrays, updates)
    for p, expected in zip(params, [arrays[n] for n in NAMES] if named else arrays, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_parameter_without_a_gradient_stays_with_its_moments() -> None:
    params = tensors()
    optimizer = dg.optim.Optax(params, optax.adam(0.1))
    advance(params, optimizer, 0)
    optimizer.zero_grad()
    params[0].grad = dg.tensor(gradients(1)[0])
    before = params[1].tolist(), params[1]._version
    state = optimizer.state["group 0"]
    kept = {name: state[name].tolist() for name in ("0.mu.1", "0.nu.1")}
    moved = state["0.mu.0"].tolist()
    optimizer.step()
    assert (params[1].tolist(), params[1]._version) == before
    assert {name: state[name].tolist() for name in kept} == kept
    assert state["0.mu.0"].tolist() != moved


def test_injected_rate_is_the_groups_and_a_scheduler_changes_it() -> None:
    p = dg.tensor([1.0], requires_grad=True)
    optimizer = dg.optim.Optax([p], optax.inject_hyperparams(optax.sgd)(learning_rate=0.5))
    scheduler = dg.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    for expected in (0.5, 0.25):
        p.grad = dg.ones(1)
        optimizer.step()
        assert p.tolist() == [expected]
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.125


def test_line_search_gets_its_function() -> None:
    p = dg.tensor([3.0, -2.0], requires_grad=True)
    optimizer = dg.optim.Optax([p], optax.lbfgs())
    for _ in range(3):
        optimizer.zero_grad()
        loss = ((p - 1) ** 2).sum()
        loss.backward()
        optimizer.step(value=loss, value_fn=sum_of_squares)
    np.testing.assert_allclose(p.tolist(), [1, 1], atol=1e-5)


def sum_of_squares(params: list[jax.Array]) -> jax.Array:
    return ((params[0] - 1) ** 2).sum()


def test_groups_have_transformations_of_their_own() -> None:
    p, q = (dg.ones(1, requires_grad=True) for _ in range(2))
    groups = [{"params": [p]}, {"params": [q], "tx": optax.sgd(0.25)}]
    optimizer = dg.optim.Optax(groups, optax.sgd(0.5))
    p.grad = q.grad = dg.ones(1)
    optimizer.step()
    assert (p.tolist(), q.tolist()) == ([0.5], [0.75])
    assert all("tx" not in group for group in optimizer.state_dict()["param_groups"])


def test_loaded_state_goes_on_bit_for_bit() -> None:
    first, second = tensors(), tensors()
    optimizer, other = (dg.optim.Optax(ps, optax.adam(0.1)) for ps in (first, second))
    advance(first, optimizer, 0)
    with dg.no_grad():
        for p, q in zip(first, second, strict=True):
            q.copy_(p)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for params, opt in ((first, optimizer), (second, other)):
        advance(params, opt, 1)
    assert [p.tolist() for p in first] == [q.tolist() for q in second]


def test_state_of_another_transformation_is_refused() -> None:
    optimizer = dg.optim.Optax(tensors(), optax.adam(0.1))
    saved = dg.optim.Optax(tensors(), optax.sgd(0.1, momentum=0.9)).state_dict()
    with pytest.raises(ValueError, match=r"the state of another transformation.*0.count"):
        optimizer.load_state_dict(saved)


def test_what_is_no_transformation_is_refused() -> None:
    with pytest.raises(TypeError, match="expected an optax GradientTransformation, got function"):
        dg.optim.Optax(tensors(), optax.adam)


def test_without_optax_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(ImportError, match=r"pip install 'dyngraph\[optim\]'"):
        dg.optim.SGD(tensors(), lr=0.1)


OPTIONAL = {"optax", "safetensors"}


def test_no_file_imports_an_optional_package_outside_a_function() -> None:
    package = Path(dg.__file__).parent
    for path in [*package.glob("optim/**/*.py"), package / "saving.py"]:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [getattr(node, "module", None), *(alias.name for alias in node.names)]
                assert OPTIONAL.isdisjoint(names), path


def test_schedule_of_optax_sets_the_rates_of_an_epoch() -> None:
    optimizer = dg.optim.SGD(tensors(), lr=2.0)
    schedule = optax.linear_schedule(1.0, 0.0, 4)
    scheduler = dg.optim.lr_scheduler.OptaxLR(optimizer, schedule, relative=True)
    found = []
    for _ in range(3):
        found += scheduler.get_last_lr()
        optimizer.step()
        scheduler.step()
    assert found == [2.0, 1.5, 1.0]
    assert "_schedules" not in scheduler.state_dict()


SCHEDULERS: dict[str, Any] = {
    "MultiStepLR": lambda s, opt: s.MultiStepLR(opt, [1, 3]),
    "LambdaLR": lambda s, opt: s.LambdaLR(opt, lambda epoch: 1 / (1 + epoch)),
    "CyclicLR": lambda s, opt: s.CyclicLR(opt, 0.01, 0.1, 3, cycle_momentum=False),
    "SequentialLR": lambda s, opt: s.SequentialLR(
        opt, [s.ConstantLR(opt, 0.1, 3), s.ExponentialLR(opt, 0.9)], [2]
    ),
    "ReduceLROnPlateau": lambda s, opt: s.ReduceLROnPlateau(opt, patience=0),
}


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_scheduler_goes_on_from_a_saved_state(kind: str, tmp_path: Any) -> None:
    def make() -> tuple[Any, Any]:
        optimizer = dg.optim.SGD([dg.ones(1, requires_grad=True)], lr=1.0)
        return optimizer, SCHEDULERS[kind](dg.optim.lr_scheduler, optimizer)

    def go(optimizer: Any, scheduler: Any, count: int) -> None:
        for _ in range(count):
            optimizer.step()
            scheduler.step(*([1.0] if kind == "ReduceLROnPlateau" else []))

    optimizer, scheduler = make()
    go(optimizer, scheduler, 2)
    dg.save([optimizer.state_dict(), scheduler.state_dict()], tmp_path / "state")
    other, later = make()
    for part, state in zip((other, later), dg.load(tmp_path / "state"), strict=True):
        part.load_state_dict(state)
    for pair in ((optimizer, scheduler), (other, later)):
        go(*pair, 2)
    assert later.get_last_lr() == scheduler.get_last_lr()
    assert later.state_dict() == scheduler.state_dict()

"""What is run with PyTorch and with dyngraph: optimizers with options, and schedulers.

`lib` is torch or dyngraph. `record.py` runs it with torch and writes the figures.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

STEPS = 20
EPOCHS = 14
SHAPES = ((3, 2), (4,), (2, 1, 2))
MATRICES = ((3, 2), (2, 4))

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {"lr": 0.1}),
    "SGD momentum": ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    "SGD nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    "SGD dampening": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    "Adam": ("Adam", {}),
    "Adam amsgrad": ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1}),
    "Adam betas": ("Adam", {"lr": 0.1, "betas": (0.0, 0.5), "maximize": True}),
    "AdamW": ("AdamW", {}),
    "AdamW amsgrad": ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True}),
    "NAdam": ("NAdam", {}),
    "NAdam decoupled": ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    "RAdam": ("RAdam", {"lr": 0.1}),
    "RAdam betas": ("RAdam", {"lr": 0.1, "betas": (0.9, 0.9), "weight_decay": 0.1}),
    "Adamax": ("Adamax", {}),
    "Adamax decay": ("Adamax", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    "RMSprop": ("RMSprop", {}),
    "RMSprop centered": ("RMSprop", {"centered": True, "momentum": 0.9, "weight_decay": 0.1}),
    "Adagrad": ("Adagrad", {}),
    "Adagrad decay": ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    "Adadelta": ("Adadelta", {}),
    "Adadelta decay": ("Adadelta", {"rho": 0.5, "weight_decay": 0.1, "maximize": True}),
    "ASGD": ("ASGD", {}),
    "ASGD averages": ("ASGD", {"lr": 0.1, "lambd": 0.1, "t0": 5, "weight_decay": 0.1}),
    "Rprop": ("Rprop", {}),
    "Rprop etas": ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (0.01, 0.3)}),
    "Adafactor": ("Adafactor", {}),
    "Adafactor decay": ("Adafactor", {"lr": 0.1, "weight_decay": 0.1, "eps": (1e-3, 1e-2)}),
    "Muon": ("Muon", {"lr": 0.1}),
}
LINE_SEARCHES: dict[str, dict[str, Any]] = {
    "LBFGS strong_wolfe": {"line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 7},
    "LBFGS plain": {"lr": 1e-3},
}

SCHEDULES: dict[str, Callable[[Any, Any], Any]] = {
    "LambdaLR": lambda s, opt: s.LambdaLR(opt, [lambda e: 0.95**e, lambda e: 1 / (e + 1)]),
    "MultiplicativeLR": lambda s, opt: s.MultiplicativeLR(opt, lambda e: 1 - e / 100),
    "StepLR": lambda s, opt: s.StepLR(opt, 3),
    "MultiStepLR": lambda s, opt: s.MultiStepLR(opt, [2, 5, 5]),
    "ConstantLR": lambda s, opt: s.ConstantLR(opt),
    "LinearLR": lambda s, opt: s.LinearLR(opt, 0.2, 0.9, 7),
    "ExponentialLR": lambda s, opt: s.ExponentialLR(opt, 0.8),
    "PolynomialLR": lambda s, opt: s.PolynomialLR(opt, 6, 2.0),
    "CosineAnnealingLR": lambda s, opt: s.CosineAnnealingLR(opt, 5, 0.01),
    "CosineAnnealingWarmRestarts": lambda s, opt: s.CosineAnnealingWarmRestarts(opt, 3, 2, 0.01),
    "OneCycleLR": lambda s, opt: s.OneCycleLR(opt, [0.5, 1.0], EPOCHS),
    "OneCycleLR three_phase": lambda s, opt: s.OneCycleLR(
        opt, 0.5, epochs=2, steps_per_epoch=7, three_phase=True, anneal_strategy="linear"
    ),
    "CyclicLR": lambda s, opt: s.CyclicLR(opt, 0.01, 0.1, 3),
    "CyclicLR triangular2": lambda s, opt: s.CyclicLR(opt, 0.01, 0.1, 3, 4, "triangular2"),
    "CyclicLR exp_range": lambda s, opt: s.CyclicLR(opt, 0.01, 0.1, 3, None, "exp_range", 0.9),
    "ReduceLROnPlateau": lambda s, opt: s.ReduceLROnPlateau(opt, patience=1, cooldown=1),
    "SequentialLR": lambda s, opt: s.SequentialLR(
        opt, [s.ConstantLR(opt, 0.1, 3), s.ExponentialLR(opt, 0.9), s.StepLR(opt, 2)], [3, 8]
    ),
    "ChainedScheduler": lambda s, opt: s.ChainedScheduler(
        [s.ConstantLR(opt, 0.1, 3), s.ExponentialLR(opt, 0.9)], opt
    ),
}
SWA = {"SWALR cos": (0.05, 6, "cos"), "SWALR linear": (0.05, 6, "linear"), "SWALR 0": (0.05, 0)}
LOSSES = [3, 2, 2, 2, 2, 1.99999, 1, 1, 1, 1, 1, 1, 1, 1]


def shapes_of(name: str) -> tuple[tuple[int, ...], ...]:
    return MATRICES if name == "Muon" else SHAPES


def start(name: str, dtype: str = "float64") -> list[np.ndarray]:
    """The parameters before the first step."""
    draws = np.random.default_rng(0)
    return [draws.standard_normal(shape).astype(dtype) for shape in shapes_of(name)]


def gradients(name: str, step: int, dtype: str = "float64") -> list[np.ndarray]:
    """The gradients of a step, which do not depend on the parameters."""
    draws = np.random.default_rng(1 + step)
    return [
        (draws.standard_normal(array.shape) + 0.3 * array).astype(dtype) for array in start(name)
    ]


def parameters(lib: Any, name: str, dtype: str = "float64") -> list[Any]:
    return [lib.tensor(array, requires_grad=True) for array in start(name, dtype)]


def advance(lib: Any, name: str, params: list[Any], optimizer: Any, step: int) -> None:
    """One step with the gradients of that step."""
    dtype = str(params[0].dtype).split(".")[-1]
    for p, grad in zip(params, gradients(name, step, dtype), strict=True):
        p.grad = lib.tensor(grad)
    optimizer.step()


def flat(tensors: list[Any]) -> np.ndarray:
    return np.concatenate([t.detach().numpy().astype("float64").ravel() for t in tensors])


def trajectory(lib: Any, name: str) -> tuple[np.ndarray, Any]:
    """All parameters after each step, (STEPS, n), and the optimizer."""
    kind, options = CASES[name]
    params = parameters(lib, name)
    optimizer = getattr(lib.optim, kind)(params, **options)
    rows = []
    for step in range(STEPS):
        advance(lib, name, params, optimizer, step)
        rows.append(flat(params))
    return np.stack(rows), optimizer


def state_of(optimizer: Any) -> dict[str, np.ndarray]:
    """The state of the parameters by place and name."""
    return {
        f"{place} {name}": value.detach().numpy().astype("float64")
        for place, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }


def line_search(lib: Any, name: str) -> tuple[np.ndarray, Any]:
    """The losses of Rosenbrock's function before each of 5 steps, then the parameters."""
    p = lib.tensor(np.array([-1.5, 2.0]), requires_grad=True)
    q = lib.tensor(np.array([[0.5]]), requires_grad=True)
    optimizer = lib.optim.LBFGS([p, q], **LINE_SEARCHES[name])

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2 + (q**2).sum() * (1 + p[0] ** 2)
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(5)]
    return np.concatenate([losses, flat([p, q])]), optimizer


def rates(lib: Any, name: str, kind: str = "SGD") -> tuple[np.ndarray, Any]:
    """Rate and momentum (or first beta) of two groups before each epoch, (EPOCHS, 4)."""
    tensors = [lib.tensor(np.ones(2, "float32"), requires_grad=True) for _ in range(2)]
    options = {"momentum": 0.9} if kind == "SGD" else {}
    groups = [{"params": tensors[:1]}, {"params": tensors[1:], "lr": 0.3}]
    optimizer = getattr(lib.optim, kind)(groups, lr=0.1, **options)
    if name in SWA:
        scheduler = lib.optim.swa_utils.SWALR(optimizer, *SWA[name])
    else:
        scheduler = SCHEDULES[name](lib.optim.lr_scheduler, optimizer)
    rows = []
    for epoch in range(EPOCHS):
        found = optimizer.param_groups
        momenta = [g["momentum"] if kind == "SGD" else g["betas"][0] for g in found]
        rows.append([g["lr"] for g in found] + momenta)
        optimizer.step()
        scheduler.step(*([LOSSES[epoch]] if name == "ReduceLROnPlateau" else []))
    return np.array(rows), scheduler


def averages(lib: Any, kind: str) -> np.ndarray:
    """The averages after each of four models that follow each other, (4, 3)."""
    utils = lib.optim.swa_utils
    functions = {"swa": utils.get_swa_multi_avg_fn(), "ema": utils.get_ema_multi_avg_fn(0.75)}
    model = lib.nn.Linear(2, 1)
    average = utils.AveragedModel(model, multi_avg_fn=functions[kind])
    rows, draws = [], np.random.default_rng(0)
    for _ in range(4):
        with lib.no_grad():
            model.weight.copy_(lib.tensor(draws.standard_normal((1, 2)).astype("float32")))
            model.bias.copy_(lib.tensor(draws.standard_normal(1).astype("float32")))
        average.update_parameters(model)
        rows.append(flat(list(average.module.parameters())))
    return np.stack(rows)

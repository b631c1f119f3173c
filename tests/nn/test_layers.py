"""Each layer does what PyTorch 2.13's does with the same state_dict; see `record_layers`."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

import dyngraph as dg
from dyngraph import nn
from tests.nn.layer_cases import CASES, Case, is_differentiable, made, weights_of

HERE = Path(__file__).parent
FIGURES = dict(np.load(HERE / "layers.npz"))
TEXTS = json.loads((HERE / "layers.json").read_text())

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def recorded(prefix: str) -> dict[str, np.ndarray]:
    return {n.removeprefix(prefix): v for n, v in FIGURES.items() if n.startswith(prefix)}


@every_case
def test_layer_does_what_pytorch_does(case: Case) -> None:
    module = made(case, nn, dg.tensor)
    module.load_state_dict(recorded(f"{case.name}/state/"))
    for mode in ("train", "eval"):
        expected = recorded(f"{case.name}/{mode}/")
        if not expected:
            continue
        module.train(mode == "train")
        module.zero_grad()
        inputs = [
            dg.tensor(value, requires_grad=is_differentiable(case, place))
            for place, value in enumerate(case.inputs)
        ]
        output = module(*inputs)
        output = output[0] if isinstance(output, tuple) else output
        if output.requires_grad:
            output.backward(dg.tensor(weights_of(output.shape)))
        found = {"output": output.detach()}
        found |= {f"input{i}": x.grad for i, x in enumerate(inputs) if x.grad is not None}
        found |= {f"grad.{n}": p.grad for n, p in module.named_parameters() if p.grad is not None}
        found |= {f"buffer.{n}": b for n, b in module.named_buffers()}
        assert found.keys() == expected.keys()
        for name, value in found.items():
            np.testing.assert_allclose(
                value.numpy(), expected[name], rtol=2e-5, atol=1e-5, err_msg=f"{mode}: {name}"
            )


@every_case
def test_state_dict_has_pytorchs_keys(case: Case) -> None:
    assert list(made(case, nn, dg.tensor).state_dict()) == TEXTS["cases"][case.name]["keys"]


@every_case
def test_text_is_pytorchs(case: Case) -> None:
    assert repr(made(case, nn, dg.tensor)) == TEXTS["cases"][case.name]["text"]


@pytest.mark.parametrize("layer", TEXTS["signatures"])
def test_signature_is_pytorchs(layer: str) -> None:
    cls = getattr(nn, layer)
    parameters = list(inspect.signature(cls.__init__).parameters.values())
    assert [str(p.replace(annotation=p.empty)) for p in parameters] == TEXTS["signatures"][layer]

"""Records what PyTorch's layers do: `python -m tests.nn.record_layers`, with torch 2.13.

Writes `layers.npz`: per case and mode the output, the gradients of inputs and parameters, and the
buffers after it; and `layers.json`: per case the state_dict's keys and the text, per layer the
signature.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from tests.nn.layer_cases import CASES, Case, is_differentiable, made, weights_of

HERE = Path(__file__).parent


def record(case: Case, mode: str, module: Any, figures: dict[str, np.ndarray]) -> None:
    module.train(mode == "train")
    module.zero_grad()
    inputs = [
        torch.tensor(value, requires_grad=is_differentiable(case, place))
        for place, value in enumerate(case.inputs)
    ]
    output = module(*inputs)
    output = output[0] if isinstance(output, tuple) else output
    if output.requires_grad:
        output.backward(torch.tensor(weights_of(tuple(output.shape))))
    found = {"output": output.detach()}
    found |= {f"input{i}": x.grad for i, x in enumerate(inputs) if x.grad is not None}
    found |= {f"grad.{n}": p.grad for n, p in module.named_parameters() if p.grad is not None}
    found |= {f"buffer.{n}": b for n, b in module.named_buffers()}
    figures.update({f"{case.name}/{mode}/{n}": v.numpy().copy() for n, v in found.items()})


def signature(layer: str) -> list[str]:
    parameters = list(inspect.signature(getattr(torch.nn, layer).__init__).parameters.values())
    return [str(p.replace(annotation=p.empty)) for p in parameters]


def main() -> None:
    torch.manual_seed(0)
    figures: dict[str, np.ndarray] = {}
    texts: dict[str, Any] = {"source": f"torch {torch.__version__}", "cases": {}}
    for case in CASES:
        module = made(case, torch.nn, torch.tensor)
        state = {name: value.numpy().copy() for name, value in module.state_dict().items()}
        figures.update({f"{case.name}/state/{name}": value for name, value in state.items()})
        texts["cases"][case.name] = {"keys": list(state), "text": repr(module)}
        for mode, wanted in (("train", case.in_training), ("eval", case.in_evaluation)):
            if wanted:
                record(case, mode, module, figures)
    texts["signatures"] = {layer: signature(layer) for layer in sorted({c.layer for c in CASES})}
    np.savez_compressed(HERE / "layers.npz", allow_pickle=False, **figures)
    (HERE / "layers.json").write_text(json.dumps(texts, indent=1) + "\n")


if __name__ == "__main__":
    main()

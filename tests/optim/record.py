"""Writes `torch.npz`: what PyTorch 2.13.0 on a CPU computes for the cases of `cases.py`.

python -m tests.optim.record
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from tests.optim import cases

TARGET = Path(__file__).with_name("torch.npz")


def record() -> dict[str, Any]:
    """The figures by name."""
    figures: dict[str, Any] = {"version": np.array(torch.__version__)}
    for name in cases.CASES:
        figures[name], optimizer = cases.trajectory(torch, name)
        for key, value in cases.state_of(optimizer).items():
            figures[f"{name}: {key}"] = value
    for name in cases.LINE_SEARCHES:
        figures[name], _ = cases.line_search(torch, name)
    for name in (*cases.SCHEDULES, *cases.SWA):
        figures[name], _ = cases.rates(torch, name)
    for name in ("OneCycleLR", "CyclicLR"):
        figures[f"{name} of Adam"], _ = cases.rates(torch, name, "Adam")
    for kind in ("swa", "ema"):
        figures[f"averages {kind}"] = cases.averages(torch, kind)
    return figures


if __name__ == "__main__":
    np.savez_compressed(TARGET, **record())

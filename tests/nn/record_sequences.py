"""Records `sequences.npz` from PyTorch: `python -m tests.nn.record_sequences`, with torch 2.13.

For each case: the keys and shapes of its state_dict, the values of it, results and gradients.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from tests.nn.sequence_cases import CASES, draws, flat, run


def main() -> None:
    recorded = {}
    for name, case in CASES.items():
        module = case.make(torch.nn)
        state = {
            key: 0.5 * torch.tensor(draws(key, 0, tuple(value.shape)))
            for key, value in module.state_dict().items()
        }
        module.load_state_dict(state)
        results, grads = run(torch, module, name)
        recorded[f"{name}/keys"] = np.array([f"{k} {[*v.shape]}" for k, v in state.items()])
        recorded[f"{name}/state"] = flat([*state.values()])
        recorded[f"{name}/results"] = flat(results)
        recorded[f"{name}/grads"] = flat(grads)
    np.savez_compressed(Path(__file__).with_name("sequences.npz"), **recorded)
    print(f"{len(CASES)} cases from torch {torch.__version__}")


if __name__ == "__main__":
    main()

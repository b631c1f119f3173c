"""Records what PyTorch 2.13 does under autocast on CPU: `python -m tests.amp.record_autocast`.

Writes `autocast.json`: per expression the dtypes of its value for float32 and for bfloat16 inputs,
None where PyTorch refuses them; the loss and the gradients of a network; and a scaler's steps.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from tests.amp.autocast_cases import CASES, dtype_of, inputs, network, scaled_steps, step


def recorded(case: str, given_in: Any) -> str | None:
    given = inputs(torch, given_in)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        try:
            return dtype_of(case, given)
        except (RuntimeError, NotImplementedError):
            return None


def main() -> None:
    found: dict[str, Any] = {"source": f"torch {torch.__version__}"}
    dtypes = torch.float32, torch.bfloat16
    found["dtypes"] = {case: [recorded(case, dtype) for dtype in dtypes] for case in CASES}
    figures = step(torch, network(torch), torch.autocast("cpu"))
    found["step"] = [[str(f.dtype).partition(".")[2], f.tolist()] for f in figures]
    found["scaler"] = scaled_steps(torch)
    text = json.dumps(found, indent=1)
    (Path(__file__).parent / "autocast.json").write_text(text + "\n")


if __name__ == "__main__":
    main()

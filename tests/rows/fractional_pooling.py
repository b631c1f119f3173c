"""Rows of the operators in `dyngraph/ops/fractional_pooling.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, between, call, functional, spread
from tests.references import positions_of, windows_folded


def starts(draw: float, size: int, out: int, kernel: int) -> list[int]:
    """Where windows begin, as PyTorch places them: steps rounded down, the last at the end."""
    step = np.float32((size - kernel) / max(out - 1, 1))
    places = [int((i + draw) * step) - int(draw * step) for i in range(out - 1)]
    return [*places, size - kernel]


def fractional(dims: int, order: tuple[int, ...]) -> Callable[..., Any]:
    """Plane by plane, each with the windows that its own draws give."""

    def reference(
        x: Any,
        kernel: int,
        out: tuple[int, ...],
        _ratio: Any = None,
        return_indices: bool = False,
        *,
        _random_samples: np.ndarray,
    ) -> Any:
        def plane(values: Any, draws: np.ndarray) -> Any:
            def cut(i: int, n: int) -> list[tuple[int, int, int]]:
                begins = starts(draws[order[i]], n, out[i], kernel)
                return [(s, s + kernel, 1) for s in begins]

            return windows_folded(values, dims, cut, jnp.max)

        planes = x.reshape(-1, *x.shape[-dims:])
        draws = _random_samples.reshape(-1, dims)
        rows = [plane(v, d) for v, d in zip(planes, draws, strict=True)]
        values = jnp.stack(rows).reshape(*x.shape[:-dims], *out)
        return (values, positions_of(values, x, dims)) if return_indices else values

    return reference


SHAPES: dict[str, Any] = {"refuses_empty": "non-zero size for non-batch dimensions"}

ROWS: list[OpInfo] = [
    functional(
        "fractional_max_pool2d",
        [
            call(
                spread(1, 2, 6, 5),
                2,
                (3, 2),
                None,
                True,
                _random_samples=between(0, 1, 1, 2, 2),
            )
        ],
        fractional(2, (1, 0)),
        **SHAPES,
    ),
    functional(
        "fractional_max_pool3d",
        [call(spread(1, 4, 3, 5), 2, (2, 1, 3), _random_samples=between(0, 1, 1, 1, 3))],
        fractional(3, (0, 1, 2)),
        **SHAPES,
    ),
]

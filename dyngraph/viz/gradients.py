"""Gradients: `grad_report`, a table of the gradients of many tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dyngraph.placement import words
from dyngraph.tensor import Tensor
from dyngraph.viz.figures import Figures, measured
from dyngraph.viz.lettering import described
from dyngraph.viz.names import names_of, pairs_of
from dyngraph.viz.table import Table


class GradRow(NamedTuple):
    """What the gradient of one tensor is like; numbers are None where there is none.

    `zeros` is the share of elements that are 0, from 0 to 1; `nan` and `inf` are counts.
    """

    name: str
    value: str
    norm: float | None
    largest: float | None
    zeros: float | None
    nan: int | None
    inf: int | None
    device: str


@jax.jit
def _measure(arrays: Sequence[jax.Array]) -> jax.Array:
    """The figures of each array."""
    return jnp.stack([measured(array) for array in arrays])


class GradReport(Table):
    """The table of `grad_report`; `grads` are its rows as `GradRow`s."""

    def __init__(self, grads: list[GradRow]) -> None:
        self.grads = grads
        rows = [
            (
                g.name,
                g.value,
                g.norm,
                g.largest,
                None if g.zeros is None else f"{g.zeros:.0%}",
                g.nan,
                g.inf,
                g.device,
            )
            for g in grads
        ]
        without = sum([g.norm is None for g in grads])
        note = f"{without} of {len(grads)} have no gradient" if without else ""
        headings = ("tensor", "gradient", "norm", "max", "zeros", "NaN", "Inf", "device")
        super().__init__(headings, rows, note)


def grad_report(params: Any) -> GradReport:
    """The gradients of tensors: norm, largest element, share of zeros, how many are NaN or Inf.

    `params` is a module, a dict from names to tensors, pairs of both, or tensors, which are called
    as the caller's variables are. One kernel measures all that are on a device. Raises TypeError
    for what is no tensor.

    >>> w, b = dg.ones(2, 2, requires_grad=True), dg.zeros(2, requires_grad=True)
    >>> (w.relu().sum() + (b * dg.tensor([0.0, 3.0])).sum()).backward()
    >>> dg.grad_report({"w": w, "b": b})
    tensor  gradient       norm  max  zeros  NaN  Inf  device
    w       float32[2, 2]     2    1  0%       0    0  cpu
    b       float32[2]        3    3  50%      0    0  cpu
    """
    tensors = _named(params)
    metas = {i: tensor._meta for i, (_, tensor) in enumerate(tensors)}
    grads = {i: m.grad for i, m in metas.items() if m is not None and m.grad is not None}
    places: dict[Any, list[int]] = {}
    for i, grad in grads.items():
        places.setdefault(frozenset(grad._cell.array.devices()), []).append(i)
    found: dict[int, Any] = {}
    for numbers in places.values():
        table = _measure([grads[i]._cell.array for i in numbers])
        found.update(zip(numbers, jax.device_get(table), strict=True))
    rows = []
    for i, (name, tensor) in enumerate(tensors):
        if i not in found:
            rows.append(GradRow(name, "none", None, None, None, None, None, _place(tensor)))
            continue
        figures = Figures(*map(float, found[i]))
        value = described(grads[i].shape, grads[i].dtype)
        share = figures.zeros / max(grads[i].numel(), 1)
        counts, place = (int(figures.nan), int(figures.inf)), _place(grads[i])
        rows.append(GradRow(name, value, figures.norm, figures.largest, share, *counts, place))
    return GradReport(rows)


def _place(tensor: Tensor) -> str:
    """The device of a tensor, or how it is spread over several."""
    place = tensor.sharding
    return str(tensor.device) if place is None or place.num_devices == 1 else words(place)


def _named(params: Any) -> list[tuple[str, Tensor]]:
    if isinstance(params, Tensor):
        params = [params]
    items: list[Any] = []
    if not isinstance(params, Mapping) and not hasattr(params, "named_parameters"):
        if not isinstance(params, Iterable):
            raise TypeError(
                f"grad_report(): expected tensors or a module, got {type(params).__name__}. Pass "
                "model, model.parameters(), or a dict from names to tensors."
            )
        params = items = list(params)
    if items and all([isinstance(item, Tensor) for item in items]):
        names = names_of(None)
        return [(names.of(t) or f"[{i}]", t) for i, t in enumerate(items)]
    return list(pairs_of(params))

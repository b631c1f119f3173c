"""Sequences of unequal length, packed and padded.

Packed, the steps of all sequences follow each other: first every sequence's first step, then the
second of those that have one, the longest sequence first. Padded is (time, batch, ...). `sizes`
says how many sequences have each step.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from dyngraph.ops.operator import define


def _pack(input: Any, places: Any) -> Any:
    return input.reshape(-1, *input.shape[2:])[places]


def _pad(data: Any, rows: Any, value: Any) -> Any:
    absent = (rows < 0).reshape(*rows.shape, *[1] * (data.ndim - 1))
    return jnp.where(absent, jnp.asarray(value).astype(data.dtype), data[rows])


pack_rows = define("_pack_padded_sequence", _pack, node="PackPaddedSequenceBackward0", places=None)
"""The steps at `places` of (time * batch)."""

pad_rows = define(
    "_pad_packed_sequence", _pad, node="PadPackedSequenceBackward0", rows=None, value=None
)
"""The row of `data` for each (time, batch), and `value` where that is -1."""


def active(sizes: np.ndarray) -> np.ndarray:
    """Which sequences have each step: (time, batch)."""
    return np.arange(sizes[0]) < sizes[:, None]


def places_of(sizes: np.ndarray) -> np.ndarray:
    """Where the packed steps stand in the padded ones, counted through (time * batch)."""
    return np.flatnonzero(active(sizes)).astype(np.int32)


def rows_of(sizes: np.ndarray, times: int) -> np.ndarray:
    """Which packed step stands at each of the padded ones, (times, batch); -1 where none does."""
    rows = np.full((times, sizes[0]), -1, np.int32)
    there = active(sizes)
    rows[: len(sizes)][there] = np.arange(there.sum())
    return rows


__all__: list[str] = []  # `nn.utils.rnn` and `ops.recurrent` call them
METHODS: tuple[str, ...] = ()

"""Random orders of samples: numpy's generator, seeded by one draw of dyngraph's."""

from __future__ import annotations

import numpy as np

from dyngraph.random import Generator, default_generator


def draw(generator: Generator | None) -> list[int]:
    """Numbers to seed from, which count as one draw of the generator."""
    key, count = (default_generator if generator is None else generator).take()
    return [*np.asarray(key).tolist(), int(count)]


def numbers(generator: Generator | None) -> np.random.Generator:
    """A generator of numpy's for one order."""
    return np.random.default_rng(draw(generator))

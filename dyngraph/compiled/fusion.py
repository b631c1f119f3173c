"""Whether XLA fuses the kernels of a Program on CPU.

# Note [When fusion hurts]
On CPU, XLA's fusion copies what one kernel makes into all kernels that read it. In a long unrolled
recurrence copies meet copies: the backward of an LSTM over 64 steps, 2,289 calls on arrays of 8 KB,
takes 50 s to compile and runs seven times longer than without fusion; over 20 steps (705 calls)
8 s and twice as long; over 10 (345) 2 s against 1 s, and 1.15 times as long; over 4 (129) it is
1.15 times as fast. Where arrays are large, reading them once is worth more: a GPT's backward, 115
calls on 370 KB each, is 1.2 times as fast with fusion. So long programs on small arrays go without.

A whole program that is made of pieces has a barrier behind each of them, so nothing is copied from
one into another: XLA fuses within them, and the LSTM takes 0.7 to 0.9 of its time without fusion.
XLA on CPU would take the barriers out before it fuses, so the passes that do are disabled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax

from dyngraph.configuration import config

LONG = 256
"""From how many calls on a program on small arrays is not fused."""
SMALL_BYTES = 1 << 16
"""What counts as small: the mean of what its kernels read."""


def compiler_options(
    calls: int, avals: Sequence[Any], *, of_pieces: bool = False
) -> dict[str, Any]:
    """The options, for `jax.jit`, that XLA compiles a program of so many calls with.

    `avals` are what goes in; `of_pieces` says that its calls are those of whole pieces.
    """
    if jax.default_backend() != "cpu":
        return {}
    without = [] if is_fused(calls, avals, of_pieces=of_pieces) else ["fusion"]
    if of_pieces:
        without += ["optimization-barrier-expander", "cse_barrier_expander"]
    return {"xla_disable_hlo_passes": ",".join(without)} if without else {}


def is_fused(calls: int, avals: Sequence[Any], *, of_pieces: bool = False) -> bool:
    """Whether such a program is to be fused: as `config.fusion` says, or by the rule."""
    if config.fusion != "auto":
        return config.fusion
    if of_pieces or calls <= LONG:
        return True
    sizes = [math.prod(a.shape) * a.dtype.itemsize for a in avals]
    return sum(sizes) > SMALL_BYTES * len(sizes)

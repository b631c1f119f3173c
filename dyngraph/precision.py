"""How precisely float32 matrices are multiplied: PyTorch's words for JAX's setting.

The setting is JAX's own, `jax_default_matmul_precision`, for the whole process. It changes only
when the user says so here, and what was compiled under the old one is then compiled anew.
"""

from __future__ import annotations

import warnings

import jax

from dyngraph.kernels import forget_compiled

__all__ = ["get_float32_matmul_precision", "set_float32_matmul_precision"]

JAX_WORDS = {"highest": "highest", "high": "high", "medium": "bfloat16"}
"""JAX's "high" is TF32 on GPU and three bfloat16 products on TPU."""
MEANINGS = {
    "highest": "highest",
    "float32": "highest",
    "high": "high",
    "tensorfloat32": "high",
    "bfloat16_3x": "high",
    "bfloat16": "medium",
    "fastest": "medium",
}
UNSET = {"cpu": "highest", "gpu": "high", "tpu": "medium"}
"""What JAX does on a kind of device where nothing is set, and for "default"."""


def set_float32_matmul_precision(precision: str) -> None:
    """Sets how precise products of float32 matrices, and convolutions, are: "highest", "high" or
    "medium".

    It sets `jax_default_matmul_precision`, for JAX's own functions too. CPUs always compute in
    float32. Raises RuntimeError for what is no string; warns of another word, and does nothing.

    >>> import jax
    >>> dg.set_float32_matmul_precision("high")
    >>> dg.get_float32_matmul_precision()
    'high'
    >>> jax.config.update("jax_default_matmul_precision", None)
    """
    if not isinstance(precision, str):
        raise RuntimeError(
            f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}. Pass "
            "'highest', 'high' or 'medium'."
        )
    if precision not in JAX_WORDS:
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; "
            "set_float32_matmul_precision has no effect.",
            UserWarning,
            stacklevel=2,
        )
        return
    if jax.config.jax_default_matmul_precision != JAX_WORDS[precision]:  # type: ignore[attr-defined]
        jax.config.update("jax_default_matmul_precision", JAX_WORDS[precision])
        forget_compiled()


def get_float32_matmul_precision() -> str:
    """How precise products of float32 matrices are; where nothing was set, what JAX does on the
    default device.

    >>> dg.get_float32_matmul_precision()
    'highest'
    """
    now = jax.config.jax_default_matmul_precision  # type: ignore[attr-defined]
    return MEANINGS.get(str(now).lower()) or UNSET.get(jax.default_backend(), "highest")

"""optax, which the optimizers are made of: an optional dependency, looked for on first use."""

from __future__ import annotations

from typing import Any


def need_optax() -> Any:
    """The module; ImportError that names the extra where it is not installed."""
    try:
        import optax
    except ImportError:
        raise ImportError(
            "dyngraph.optim's optimizers are made of optax, which is not installed. Run "
            "`pip install 'dyngraph[optim]'`."
        ) from None
    return optax

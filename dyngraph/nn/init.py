"""Initial values, written into tensors, unrecorded; each returns the tensor that it wrote to.

The names, the defaults and the distributions are PyTorch's; the draws come from dyngraph's
generators. The formulas by fan are those of Glorot and Bengio (2010) and He et al. (2015).
"""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph import modes
from dyngraph.ops.in_place import fill_, zero_
from dyngraph.ops.random_in_place import draw_into, normal_ as _normal, uniform_ as _uniform
from dyngraph.random import Generator
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, new_tensor
from dyngraph.writing import assign

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

_LINEAR = "linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d".split()


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights are wider before a nonlinearity; `param` is the negative slope of
    `"leaky_relu"`. Raises ValueError for an unknown name, or a slope that is no number.

    >>> dg.nn.init.calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity in _LINEAR or nonlinearity == "sigmoid":
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(
        f"Unsupported nonlinearity {nonlinearity}. Expected one of {', '.join(_LINEAR)}, sigmoid, "
        "tanh, relu, leaky_relu, selu."
    )


_are_skipped: ContextVar[bool] = ContextVar("dyngraph_init_skipped", default=False)


@contextlib.contextmanager
def skipped() -> Iterator[None]:
    """Inside, `uniform_`, `normal_`, `constant_` and what is made of them write nothing."""
    token = _are_skipped.set(True)
    try:
        yield
    finally:
        _are_skipped.reset(token)


# --- one distribution -------------------------------------------------------------------------


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Uniform draws from [a, b).

    >>> float(dg.nn.init.uniform_(dg.empty(3), 5, 5).sum())
    15.0
    """
    if _are_skipped.get():
        return tensor
    with modes.no_grad():
        return _uniform(tensor, a, b, generator=generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Draws of the normal distribution.

    >>> float(dg.nn.init.normal_(dg.empty(3), 5, 0).sum())
    15.0
    """
    if _are_skipped.get():
        return tensor
    with modes.no_grad():
        return _normal(tensor, mean, std, generator=generator)


def _truncated(
    key: Any, mean: Any, std: Any, low: Any, high: Any, shape: Any, dtype: Any
) -> jax.Array:
    scaled = (low - mean) / std, (high - mean) / std
    draws = mean + std * jax.random.truncated_normal(key, *scaled, shape, dtype)
    return jnp.clip(draws, low, high).astype(dtype)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Draws of the normal distribution that lie in [a, b]; warns where that is in its far tail.

    >>> bool((dg.nn.init.trunc_normal_(dg.empty(3), std=5.0).abs() <= 2).all())
    True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of "
            "values may be incorrect.",
            UserWarning,
            stacklevel=2,
        )
    with modes.no_grad():
        return draw_into("trunc_normal_", tensor, generator, _truncated, mean, std, a, b)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """The number `val` everywhere.

    >>> dg.nn.init.constant_(dg.empty(3), 0.5)
    tensor([0.5000, 0.5000, 0.5000])
    """
    if _are_skipped.get():
        return tensor
    with modes.no_grad():
        return fill_(tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """Ones everywhere."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros everywhere."""
    with modes.no_grad():
        return zero_(tensor)


# --- by fan -----------------------------------------------------------------------------------


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many numbers each output sums, and how many outputs each input reaches."""
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, got "
            f"shape {list(tensor.shape)}"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    fans = ("fan_in", "fan_out")
    if mode.lower() not in fans:
        raise ValueError(f"Mode {mode} not supported, please use one of {list(fans)}")
    return _calculate_fan_in_and_fan_out(tensor)[fans.index(mode.lower())]


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Uniform draws from [-a, a), a = gain * sqrt(6 / (fan_in + fan_out)).

    >>> bool((dg.nn.init.xavier_uniform_(dg.empty(3, 3)).abs() <= 1).all())
    True
    """
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal draws, of standard deviation gain * sqrt(2 / (fan_in + fan_out))."""
    std = gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform draws from [-b, b), b = gain * sqrt(3 / fan), the gain that of `nonlinearity` with
    negative slope `a`, the fan `"fan_in"` or `"fan_out"`. Warns for a tensor without elements.

    >>> bool((dg.nn.init.kaiming_uniform_(dg.empty(3, 3), a=1.0).abs() <= 1).all())
    True
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else uniform_(tensor, -_ROOT_3 * std, _ROOT_3 * std, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal draws, of standard deviation gain / sqrt(fan), as `kaiming_uniform_`."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


_ROOT_3 = math.sqrt(3.0)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", UserWarning, stacklevel=3)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


# --- matrices ---------------------------------------------------------------------------------


def _write(name: str, tensor: Tensor, array: jax.Array) -> Tensor:
    with modes.no_grad():
        return assign(tensor, new_tensor(cell_of(array)), name)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix; ValueError where there are not 2 dims.

    >>> dg.nn.init.eye_(dg.empty(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.ndim != 2:
        raise ValueError(
            f"Only tensors with 2 dimensions are supported, got shape {list(tensor.shape)}"
        )
    return _write("eye_", tensor, jnp.eye(*tensor.shape, dtype=tensor._cell.held.dtype))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution's weight that passes its input on, as far as there are channels.

    Raises ValueError where there are not 3 to 5 dims, or `groups` does not divide the first.

    >>> dg.nn.init.dirac_(dg.empty(1, 1, 3))
    tensor([[[0., 1., 0.]]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError(
            f"Only tensors with 3, 4, or 5 dimensions are supported, got shape {list(tensor.shape)}"
        )
    out, channels, *window = tensor.shape
    if out % groups:
        raise ValueError(f"dim 0 must be divisible by groups, got {out} and {groups}")
    own = jnp.arange(out) % (out // groups)
    rows = jnp.nonzero(own < channels)[0]
    centre = tuple(n // 2 for n in window)
    zeros = jnp.zeros(tensor.shape, tensor._cell.held.dtype)
    return _write("dirac_", tensor, zeros.at[(rows, own[rows], *centre)].set(1))


def _orthogonal(key: Any, gain: Any, shape: Any, dtype: Any) -> jax.Array:
    rows, columns = shape[0], math.prod(shape[1:])
    wide = rows < columns
    drawn = jax.random.normal(key, (columns, rows) if wide else (rows, columns), jnp.float32)
    q, r = jnp.linalg.qr(drawn)
    q = q * jnp.sign(jnp.diagonal(r))  # so that the distribution is uniform: Mezzadri (2007)
    return (gain * (q.T if wide else q)).reshape(shape).astype(dtype)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """A matrix with orthonormal rows, or columns where there are fewer, times `gain`; the dims
    after the first count as one. Raises ValueError for fewer than 2 dims.

    >>> m = dg.nn.init.orthogonal_(dg.empty(2, 3))
    >>> bool(((m @ m.T - dg.eye(2)).abs() < 1e-5).all())
    True
    """
    if tensor.ndim < 2:
        raise ValueError(
            f"Only tensors with 2 or more dimensions are supported, got shape {list(tensor.shape)}"
        )
    if tensor.numel() == 0:
        return tensor
    with modes.no_grad():
        return draw_into("orthogonal_", tensor, generator, _orthogonal, gain)


def _sparse(key: Any, std: Any, zeros: Any, shape: Any, dtype: Any) -> jax.Array:
    values, order = jax.random.split(key)
    draws = std * jax.random.normal(values, shape, dtype)
    ranks = jnp.argsort(jnp.argsort(jax.random.uniform(order, shape), axis=0), axis=0)
    return jnp.where(ranks < zeros, 0, draws).astype(dtype)


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Normal draws, of which in each column a share `sparsity`, drawn too, is zero; ValueError
    where there are not 2 dims (Martens, 2010).

    >>> (dg.nn.init.sparse_(dg.empty(4, 2), 0.5) == 0).sum(0)
    tensor([2, 2])
    """
    if tensor.ndim != 2:
        raise ValueError(
            f"Only tensors with 2 dimensions are supported, got shape {list(tensor.shape)}"
        )
    zeros = math.ceil(sparsity * tensor.shape[0])
    with modes.no_grad():
        return draw_into("sparse_", tensor, generator, _sparse, std, zeros)


# --- older names --------------------------------------------------------------------------------


def _older(function: Callable[..., Any]) -> Callable[..., Any]:
    name = function.__name__
    old = name.removesuffix("_")

    @functools.wraps(function)
    def deprecated(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{name}`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = old
    deprecated.__doc__ = f"The older name of `{name}`, with a FutureWarning."
    return deprecated


uniform = _older(uniform_)
normal = _older(normal_)
constant = _older(constant_)
eye = _older(eye_)
dirac = _older(dirac_)
xavier_uniform = _older(xavier_uniform_)
xavier_normal = _older(xavier_normal_)
kaiming_uniform = _older(kaiming_uniform_)
kaiming_normal = _older(kaiming_normal_)
orthogonal = _older(orthogonal_)
sparse = _older(sparse_)

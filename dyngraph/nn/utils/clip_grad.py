"""Clipping of gradients. Each function runs one kernel over all gradients of a device."""

from __future__ import annotations

import functools
import math
import types
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph.placement import place_beside, place_of, put
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, new_tensor

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]

Tensors = Tensor | Iterable[Tensor]


def _norm(arrays: Sequence[jax.Array], order: float) -> jax.Array:
    """The norm of all elements of all arrays, in the dtype that they promote to."""
    dtype = jnp.result_type(*[a.real.dtype for a in arrays])
    sizes = [jnp.abs(a).astype(jnp.promote_types(a.real.dtype, jnp.float32)) for a in arrays]
    sizes = [s for s in sizes if s.size]
    if math.isinf(order):
        end, meet = (jnp.max, jnp.maximum) if order > 0 else (jnp.min, jnp.minimum)
        total = functools.reduce(meet, [end(s) for s in sizes]) if sizes else jnp.zeros(())
    elif order == 0:  # the norm of the norms counts tensors, not elements
        total = sum((jnp.any(s != 0).astype(jnp.float32) for s in sizes), jnp.zeros(()))
    elif order == 2:
        total = jnp.sqrt(sum((jnp.sum(s * s) for s in sizes), jnp.zeros(())))
    else:
        total = sum((jnp.sum(s**order) for s in sizes), jnp.zeros(())) ** (1 / order)
    return total.astype(dtype)


def _scaled(arrays: Sequence[jax.Array], total: Any, max_norm: Any) -> list[jax.Array]:
    factor = jnp.minimum(max_norm / (total + 1e-6), 1.0)
    return [(a * factor).astype(a.dtype) for a in arrays]


def _clipped(arrays: Sequence[jax.Array], max_norm: Any, order: float) -> tuple[Any, list[Any]]:
    total = _norm(arrays, order)
    return total, _scaled(arrays, total, max_norm)


_norm_kernel = jax.jit(_norm, static_argnames="order")
_scale_kernel = jax.jit(_scaled)
_clip_kernel = jax.jit(_clipped, static_argnames="order")
_clamp_kernel = jax.jit(lambda arrays, limit: [jnp.clip(a, -limit, limit) for a in arrays])


def _listed(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _grads(parameters: Iterable[Tensor]) -> list[Tensor]:
    return [grad for p in parameters if (grad := p.grad) is not None]


def _by_device(tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    """The tensors in groups that one kernel can take."""
    groups: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault(place_of(tensor._cell.array), []).append(tensor)
    if len(groups) < 2:
        return list(groups.values())
    of_devices: dict[Any, list[Tensor]] = {}
    for place, group in groups.items():
        of_devices.setdefault(place and frozenset(place.device_set), []).extend(group)
    return list(of_devices.values())


def _arrays(tensors: Sequence[Tensor]) -> list[jax.Array]:
    return [tensor._cell.array for tensor in tensors]


def _write(tensors: Sequence[Tensor], arrays: Sequence[jax.Array]) -> None:
    for tensor, array in zip(tensors, arrays, strict=True):
        tensor._write(array)


def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all elements of all tensors, as a tensor of no dims.

    `foreach` changes nothing: there is always one kernel for all. Raises RuntimeError for a norm
    that is not finite, with `error_if_nonfinite`.

    >>> dg.nn.utils.get_total_norm([dg.tensor([3.0]), dg.tensor([4.0])])
    tensor(5.)
    """
    listed = _listed(tensors)
    groups = _by_device(listed)
    norms = [_norm_kernel(_arrays(group), order=float(norm_type)) for group in groups]
    if len(norms) > 1:
        place = place_of(norms[0])
        norms = [_norm_kernel([put(norm, place) for norm in norms], order=float(norm_type))]
    total = norms[0] if norms else jnp.zeros(())
    if error_if_nonfinite:
        _check_finite(total, norm_type)
    return new_tensor(cell_of(total))


def _check_finite(total: jax.Array, norm_type: float) -> None:
    if not math.isfinite(total):
        raise RuntimeError(
            f"The total norm of order {float(norm_type)} for gradients from `parameters` is "
            f"non-finite ({float(total)}), so it cannot be clipped. To scale the gradients by it "
            "anyway, set `error_if_nonfinite=False`"
        )


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Multiplies the gradients by max_norm / total_norm where that is below 1.

    >>> p = dg.nn.Parameter(dg.ones(2))
    >>> p.grad = dg.tensor([3.0, 4.0])
    >>> dg.nn.utils.clip_grads_with_norm_(p, 2.5, dg.tensor(5.0))
    >>> p.grad
    tensor([1.5000, 2.0000])
    """
    for group in _by_device(_grads(_listed(parameters))):
        arrays = _arrays(group)
        total = put(total_norm._cell.array, place_beside(arrays[0], ()))
        _write(group, _scale_kernel(arrays, total, float(max_norm)))


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales the gradients so that the norm of all together is at most `max_norm`; returns the norm
    that they had.

    `foreach` changes nothing: there is always one kernel for all. Raises RuntimeError for a norm
    that is not finite, with `error_if_nonfinite`; the gradients then stay what they are. Warns for
    a generator of no parameters.

    >>> p = dg.nn.Parameter(dg.ones(2))
    >>> p.grad = dg.tensor([3.0, 4.0])
    >>> dg.nn.utils.clip_grad_norm_([p], 2.5)
    tensor(5.)
    >>> p.grad
    tensor([1.5000, 2.0000])
    """
    listed = _listed(parameters)
    if not listed and isinstance(parameters, types.GeneratorType):
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.",
            UserWarning,
            stacklevel=2,
        )
    grads = _grads(listed)
    if len(_by_device(grads)) != 1:
        total = get_total_norm(grads, norm_type, error_if_nonfinite)
        clip_grads_with_norm_(listed, max_norm, total)
        return total
    norm, clipped = _clip_kernel(_arrays(grads), float(max_norm), order=float(norm_type))
    if error_if_nonfinite:
        _check_finite(norm, norm_type)
    _write(grads, clipped)
    return new_tensor(cell_of(norm))


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """The older name of `clip_grad_norm_`, with a FutureWarning."""
    warnings.warn(
        "`nn.utils.clip_grad_norm` is now deprecated in favor of `nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **kwargs)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Moves each element of the gradients into [-clip_value, clip_value].

    >>> p = dg.nn.Parameter(dg.ones(2))
    >>> p.grad = dg.tensor([3.0, -0.5])
    >>> dg.nn.utils.clip_grad_value_(p, 1.0)
    >>> p.grad
    tensor([ 1.0000, -0.5000])
    """
    for group in _by_device(_grads(_listed(parameters))):
        _write(group, _clamp_kernel(_arrays(group), float(clip_value)))

"""Devices: PyTorch's device objects, mapped to JAX's."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import jax
from jax import Device
from jax.sharding import Sharding

from dyngraph.tracing import Tracer

__all__ = ["device", "get_default_device", "set_default_device"]

_PLATFORMS = {"cpu": "cpu", "cuda": "cuda", "gpu": "cuda", "tpu": "tpu", "rocm": "rocm"}


class device:  # noqa: N801 - PyTorch's name
    """Where a tensor lives: `device("cpu")`, `device("cuda", 1)`, `device("tpu:0")`.

    `gpu` is another word for `cuda`. In a `with` it is where tensors are made that say no device.
    Raises RuntimeError for a name or an index that this process
    does not have.

    >>> dg.device("cpu")
    device(type='cpu')
    >>> dg.tensor(1.0, device="cpu").device.type
    'cpu'
    """

    __slots__ = ("index", "type")

    def __init__(self, type: Any, index: int | None = None) -> None:
        if isinstance(type, device):
            self.type, self.index = type.type, type.index
            return
        if isinstance(type, Device):
            self.type, self.index = _PLATFORMS.get(type.platform, type.platform), _index_of(type)
            return
        if not isinstance(type, str):
            raise TypeError(
                f"device() expects a name such as 'cpu' or 'cuda:0', got {type!r} "
                f"({type.__class__.__name__}). Pass a string, a device or a Device."
            )
        name, _, number = type.partition(":")
        if number and index is not None:
            raise RuntimeError(
                f"{type!r} already has an index; got index={index} as well. Drop one."
            )
        if name not in _PLATFORMS or (":" in type and not number.isdigit()):
            raise RuntimeError(
                f"Invalid device string: {type!r}. Expected one of {', '.join(_PLATFORMS)}, "
                "with an optional index as in 'cuda:0'."
            )
        if index is not None and not isinstance(index, int):
            raise TypeError(
                f"device(): argument 'index' must be int, not {index.__class__.__name__}. "
                "Pass a number, or write it into the name as in 'cuda:0'."
            )
        self.type = _PLATFORMS[name]
        self.index = int(number) if number else index

    @property
    def jax(self) -> Any:
        """The JAX device; RuntimeError where this process has none of that kind."""
        try:
            found = jax.devices(self.type)
        except RuntimeError:
            found = []
        index = self.index or 0
        if not 0 <= index < len(found):
            have = ", ".join(str(device(d)) for d in jax.devices())
            raise RuntimeError(
                f"device {self} is not available: this process has {have}. "
                "Install jax for that accelerator (such as jax[cuda12]), or pass one of these."
            )
        return found[index]

    def __enter__(self) -> device:
        base, *inner = _defaults.get()
        _defaults.set((base, *inner, _present(self)))
        return self

    def __exit__(self, *exception: object) -> None:
        _defaults.set(_defaults.get()[:-1])

    def __str__(self) -> str:
        return str(self.type) if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))


# --- the default ----------------------------------------------------------------------------------

_defaults: ContextVar[tuple[device | None, ...]] = ContextVar("dyngraph_devices", default=(None,))
"""What `set_default_device` was given, then the devices whose blocks are open."""


def _present(named: Any) -> device:
    """The device of a name; RuntimeError where this process has none such."""
    found = device(named)
    assert found.jax is not None
    return found


def set_default_device(device: Any) -> None:
    """Makes this the device of tensors that are made without `device=`, in this thread; None: JAX's
    default one, to which they are not bound.

    Raises RuntimeError for a name or an index that this process does not have.

    >>> dg.set_default_device("cpu")
    >>> dg.get_default_device()
    device(type='cpu')
    >>> dg.set_default_device(None)
    """
    named = None if device is None else _present(device)
    _defaults.set((named, *_defaults.get()[1:]))


def get_default_device() -> device:
    """The device of tensors that are made without `device=`.

    >>> with dg.device("cpu"):
    ...     dg.get_default_device()
    device(type='cpu')
    """
    return default() or device(jax.config.jax_default_device or jax.devices()[0])  # type: ignore[attr-defined]


def default() -> device | None:
    """The default device that was set; None stands for JAX's."""
    return _defaults.get()[-1]


def _index_of(found: Any) -> int | None:
    position = jax.devices(found.platform).index(found)
    return None if found.platform == "cpu" and position == 0 else position


def of(array: jax.Array) -> device:
    """The device of an array: of the first shard, where it is spread over several; JAX's default
    one for a tracer, which is nowhere yet."""
    if isinstance(array, Tracer):
        return device(jax.config.jax_default_device or jax.devices()[0])  # type: ignore[attr-defined]
    return device(min(array.devices(), key=lambda d: d.id))


def as_jax_device(value: Any) -> Any:
    """The JAX device that `value` names; None stays None, which is JAX's default device, and a
    sharding, which names several, what it is."""
    return value if value is None or isinstance(value, Sharding) else device(value).jax

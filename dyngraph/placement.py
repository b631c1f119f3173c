"""Placement: the devices that an array is on, and that what belongs to it is put on as well.

# Note [What belongs to a spread array is spread as it is]
XLA chooses how its results are spread over devices. For a gradient, and for the result of an
in-place write, that choice is the tensor's: they are put where it is. Eagerly an array is moved,
where XLA has not put it there itself; in a program that is not compiled yet the move is a
constraint, which XLA sees when it chooses.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec, Sharding

from dyngraph.pending import Pending, resolved
from dyngraph.sequence import are_many, note
from dyngraph.tracing import Tracer


def place_of(array: Any) -> Any:
    """The sharding of an array; None for a tracer, which is nowhere yet."""
    return None if isinstance(array, Tracer) else array.sharding


def put(array: Any, place: Any) -> Any:
    """`array` at a device or a sharding, itself if it is there; a tracer stays what it is."""
    if place is None or isinstance(array, Tracer):
        return array
    if array.__class__ is Pending:
        if _is_for(array, place):
            return note(constraint(place), array)
    elif array.sharding == place:
        return array
    return array if is_at(array, place) else jax.device_put(resolved(array), place)


def is_at(array: Any, place: Any) -> bool:
    """Whether an array that is no tracer is at a device, or spread as a sharding says."""
    if isinstance(place, jax.Device):
        return array.devices() == {place}
    own = array.sharding
    return own == place or (
        own.num_devices == place.num_devices and own.is_equivalent_to(place, array.ndim)
    )


def spread_of(array: Any) -> NamedSharding | None:
    """How an array is spread over several devices, where that can be asked of XLA; None for one
    device, and for what has no value yet."""
    if not are_many() or array.__class__ is Pending or isinstance(array, Tracer):
        return None
    place = array.sharding
    return place if can_constrain(place) else None


def can_constrain(place: Sharding) -> bool:
    """Whether it is spread over a mesh that leaves it to XLA how results are."""
    return (
        type(place) is NamedSharding
        and place.num_devices > 1
        and all(t is AxisType.Auto for t in place.mesh.axis_types)
    )


def _is_for(pending: Pending, place: Any) -> bool:
    """Whether what is pending will be on just the devices of a sharding."""
    sequence = pending.sequence
    return can_constrain(place) and sequence is not None and sequence.devices == place.device_set


@functools.lru_cache(maxsize=1024)
def constraint(place: NamedSharding) -> Callable[..., Any]:
    """The kernel that has its argument spread like this."""

    def constrain(array: Any) -> Any:
        return jax.lax.with_sharding_constraint(array, place)

    return jax.jit(constrain)


def place_beside(array: Any, shape: Sequence[int]) -> Any:
    """Where an array of this shape is on the devices of `array`: spread as that is where the shapes
    are equal, else a copy of it on each device. None where `array` is a tracer."""
    devices = devices_of(array)
    if devices is None or len(devices) == 1:
        return next(iter(devices), None) if devices else None
    place = array.sharding
    if tuple(shape) == array.shape or type(place) is not NamedSharding:
        return place
    return NamedSharding(place.mesh, PartitionSpec())


def devices_of(array: Any) -> Any:
    """The devices that an array is on; None for a tracer."""
    if array.__class__ is Pending and array.sequence is not None and array.sequence.devices:
        return array.sequence.devices  # its sharding would have it computed
    return None if isinstance(array, Tracer) else array.sharding.device_set


def words(place: Sharding) -> str:
    """A sharding in words: `P('data', None) over (data=4, model=2)`."""
    if not isinstance(place, NamedSharding):
        return repr(place)
    sizes = ", ".join(f"{name}={size}" for name, size in place.mesh.shape.items())
    return f"P({', '.join(map(repr, place.spec))}) over ({sizes})"


__all__: list[str] = []

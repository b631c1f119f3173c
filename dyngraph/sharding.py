"""Sharding: tensors spread over the devices of a mesh, and programs of several processes.

JAX does the work: a mesh is `jax.sharding.Mesh`, a placement `jax.sharding.NamedSharding`, and XLA
splits each kernel by how its inputs are spread and adds what devices tell each other. Numbers are
those of one device, up to the order of sums.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from dyngraph import modes
from dyngraph.nn import Module
from dyngraph.nn.modules.conversion import become
from dyngraph.ops.conversion import convert
from dyngraph.ops.from_data import as_tensor
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, new_tensor

__all__ = [
    "from_local",
    "fully_shard",
    "is_first_process",
    "mesh",
    "placement",
    "process_count",
    "process_index",
    "replicate",
    "shard",
    "shard_",
    "start",
    "stop",
]

Axis = str | tuple[str, ...] | None
T = TypeVar("T")

# --- meshes and placements --------------------------------------------------------------------


def mesh(devices: Any = None, /, **axes: int) -> Mesh:
    """The devices in a grid with named axes: `mesh(data=4, model=2)` has 4 rows of 2 devices.

    One size may be -1: as many as there are. `devices`, by default all that JAX has, are used from
    the first on. Raises RuntimeError where the product of the sizes does not divide their number,
    ValueError for sizes that are none.

    >>> dg.sharding.mesh(data=-1, model=1).axis_names
    ('data', 'model')
    """
    devices = list(jax.devices() if devices is None else devices)
    called = f"mesh({', '.join(f'{name}={size}' for name, size in axes.items())})"
    if not axes or any([type(size) is not int or size == 0 or size < -1 for size in axes.values()]):
        raise ValueError(
            f"{called} has no such sizes: expected an axis or more, each with a number of devices "
            "or -1. Write for example mesh(data=4, model=2)."
        )
    sizes = list(axes.values())
    if sizes.count(-1) > 1:
        raise ValueError(f"{called} leaves two sizes open, expected one -1. Give the other one.")
    fixed = math.prod([size for size in sizes if size != -1])
    if len(devices) % fixed:
        raise RuntimeError(
            f"{called} needs a multiple of {fixed} devices, but there are {len(devices)} "
            f"({devices[0].platform}): expected sizes whose product divides that. Choose other "
            "sizes, or pass the devices to use first. A CPU counts as several where "
            f"JAX_NUM_CPU_DEVICES={fixed} is set before JAX starts."
        )
    sizes = [len(devices) // fixed if size == -1 else size for size in sizes]
    return jax.make_mesh(
        tuple(sizes),
        tuple(axes),
        axis_types=(AxisType.Auto,) * len(sizes),
        devices=devices[: math.prod(sizes)],
    )


def placement(mesh: Mesh, *axes: Axis) -> NamedSharding:
    """How a tensor is spread over a mesh: for each dim the axis of the mesh that splits it.

    None, and a dim that is not named, is not split; a tuple of axes splits a dim by all of them.
    Along axes that are not named every device has a copy. `Tensor.to`, `Module.to` and
    `utils.data.Prefetcher` take it in place of a device. Raises ValueError for names that the mesh
    has not.

    >>> mesh = dg.sharding.mesh(data=1)
    >>> dg.ones(2, 3).to(dg.sharding.placement(mesh, None, "data")).sharding.spec
    P(None, 'data')
    """
    if not isinstance(mesh, Mesh):
        raise TypeError(
            f"expected a mesh, got {type(mesh).__name__}. Make one by dg.sharding.mesh(data=4)."
        )
    if any([kind is not AxisType.Auto for kind in mesh.axis_types]):
        raise ValueError(
            f"the axes of the mesh have types {mesh.axis_types}, expected Auto, so that XLA "
            "chooses how results are spread. Make it by dg.sharding.mesh(data=4)."
        )
    names = [n for axis in axes for n in (axis if isinstance(axis, tuple) else (axis,)) if n]
    for name in names:
        if name not in mesh.axis_names:
            raise ValueError(
                f"the mesh has no axis {name!r}, expected one of {list(mesh.axis_names)}. Name the "
                "axis in dg.sharding.mesh()."
            )
        if names.count(name) > 1:
            raise ValueError(
                f"the axis {name!r} can't split two dims, got {axes}. Name another one, or None."
            )
    kept = list(axes)
    while kept and kept[-1] is None:  # as JAX writes it, so that equal ones are found equal
        kept.pop()
    return NamedSharding(mesh, PartitionSpec(*kept))


def _placement_of(tensor: Tensor, mesh: Mesh, axes: tuple[Axis, ...]) -> NamedSharding:
    """The placement, once it is known that the tensor can be spread like that."""
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"expected a Tensor, got {type(tensor).__name__}. Make it one by dg.as_tensor()."
        )
    place = placement(mesh, *axes)
    if len(axes) > tensor.ndim:
        raise ValueError(
            f"{len(axes)} axes {axes} for a tensor of shape {list(tensor.shape)}, expected at most "
            f"one a dim. Leave out {len(axes) - tensor.ndim}."
        )
    for dim, axis in enumerate(axes):
        parts = _size(mesh, axis)
        if tensor.shape[dim] % parts:
            raise ValueError(
                f"dim {dim} of shape {list(tensor.shape)} can't be split into {parts} equal parts "
                f"along {axis!r}. Pad it to a multiple of {parts}, or pass None for this dim."
            )
    return place


def _size(mesh: Mesh, axis: Axis) -> int:
    names = axis if isinstance(axis, tuple) else (axis,)
    return math.prod([mesh.shape[name] for name in names if name])


@contextlib.contextmanager
def _same_in_each_process() -> Iterator[None]:
    """Inside, JAX's error for values that differ between processes says what to do."""
    try:
        yield
    except AssertionError as error:
        if jax.process_count() == 1:
            raise
        raise RuntimeError(
            "a tensor to be spread over the devices of several processes has other values in each: "
            "expected the same. Call dg.manual_seed() with one number before the model is made, or "
            "pass the part of each process to from_local()."
        ) from error


# --- tensors and modules ----------------------------------------------------------------------


def shard(tensor: Tensor, mesh: Mesh, *axes: Axis) -> Tensor:
    """The tensor spread over a mesh, as `placement(mesh, *axes)` says; itself if it is so.

    It is recorded: the gradient comes back to where the tensor is. Raises ValueError where a dim
    does not divide by the devices along its axis.

    >>> mesh = dg.sharding.mesh(data=1)
    >>> x = dg.ones(4, 2, requires_grad=True)
    >>> (dg.sharding.shard(x, mesh, "data") * 2).sum().backward()
    >>> x.grad.sharding == x.sharding
    True
    """
    place = _placement_of(tensor, mesh, axes)
    with _same_in_each_process():
        return convert(tensor, None, place)


def shard_(tensor: Tensor, mesh: Mesh, *axes: Axis) -> Tensor:
    """Spreads a leaf, such as a parameter, over a mesh in place; its `.grad` too.

    It stays the leaf that an optimizer has, whose state is spread with it. Raises RuntimeError for
    a tensor that an operator made, and for a view.

    >>> layer = dg.nn.Linear(4, 2)
    >>> layer.weight is dg.sharding.shard_(layer.weight, dg.sharding.mesh(model=1), None, "model")
    True
    """
    place = _placement_of(tensor, mesh, axes)
    if not tensor.is_leaf or tensor._view is not None:
        kind = "a view" if tensor.is_leaf else f"the result of {tensor.grad_fn!r}"
        raise RuntimeError(
            f"shard_() spreads leaves in place, but this tensor of shape {list(tensor.shape)} is "
            f"{kind}. Use shard(), which returns another tensor."
        )
    with modes.no_grad(), _same_in_each_process():
        for own in (tensor, tensor.grad):
            if own is not None:
                become(own, convert(own, None, place))
    return tensor


def replicate(what: T, mesh: Mesh) -> T:
    """A whole copy on each device of a mesh: a module's parameters and buffers, in place; a tensor,
    or the tensors in dicts, lists and tuples, as others.

    With the batch spread along an axis this is data parallel training: each device computes with
    its part, and XLA sums the gradients.

    >>> net = dg.sharding.replicate(dg.nn.Linear(4, 2), dg.sharding.mesh(data=1))
    >>> net.weight.sharding.is_fully_replicated
    True
    """
    place = placement(mesh)
    tree = dict(what) if isinstance(what, Mapping) else what
    with _same_in_each_process():
        if isinstance(what, Module):
            return what.to(place)
        return jax.tree.map(lambda x: x.to(place) if isinstance(x, Tensor) else x, tree)


def fully_shard(
    module: Module, mesh: Mesh, axis: str | tuple[str, ...] = "data", *, min_size: int = 1024
) -> Module:
    """Spreads each parameter of a module over the devices along an axis, in place.

    It is split along its longest dim that divides evenly; parameters of fewer than `min_size`
    elements, those without such a dim, and buffers have a copy on each device. XLA gathers a
    parameter where a kernel reads it. Gradients and the optimizer's state are spread as the
    parameters are, so a device keeps its part of all of them.

    >>> net = dg.sharding.fully_shard(dg.nn.Linear(64, 32), dg.sharding.mesh(data=1))
    >>> net.weight.sharding.spec, net.bias.sharding.spec
    (P(None, 'data'), P())
    """
    if not isinstance(module, Module):
        raise TypeError(
            f"fully_shard() takes a module, got {type(module).__name__}. Spread a tensor by "
            "shard_()."
        )
    placement(mesh, axis)
    parts = _size(mesh, axis)
    for parameter in module.parameters():
        dims = [dim for dim, length in enumerate(parameter.shape) if length % parts == 0]
        axes: list[Axis] = []
        if dims and parameter.numel() >= min_size:
            axes = [None] * max(dims, key=lambda dim: parameter.shape[dim]) + [axis]
        shard_(parameter, mesh, *axes)
    for part in module.modules():
        buffers = part._buffers
        buffers.update({n: b.to(placement(mesh)) for n, b in buffers.items() if b is not None})
    return module


# --- several processes ------------------------------------------------------------------------


def start(
    address: str | None = None,
    process_count: int | None = None,
    process_index: int | None = None,
    *,
    local_device_ids: Any = None,
    timeout: int = 300,
) -> None:
    """Joins this process with the others of one program: afterwards `mesh` has the devices of all.

    `address` is "host:port" of the first process. What is not given is read from the environment:
    MASTER_ADDR and MASTER_PORT, WORLD_SIZE, RANK, LOCAL_RANK, which torchrun sets; else JAX finds
    it on a cluster that it knows, such as Slurm or TPU pods. To be called before anything is
    computed. Waits at most `timeout` seconds for the others.

    Raises RuntimeError where it is too late or was called before, ValueError where something is
    missing or does not fit.
    """
    if jax.distributed.is_initialized():
        raise RuntimeError("start() was called before in this process. Call stop() first.")
    environment = os.environ
    if address is None and "MASTER_ADDR" in environment:
        address = f"{environment['MASTER_ADDR']}:{environment.get('MASTER_PORT', '')}"
    if process_count is None and "WORLD_SIZE" in environment:
        process_count = int(environment["WORLD_SIZE"])
    if process_index is None and "RANK" in environment:
        process_index = int(environment["RANK"])
    if local_device_ids is None and "LOCAL_RANK" in environment:
        local_device_ids = [int(environment["LOCAL_RANK"])]
    _check_start(address, process_count, process_index)
    try:
        jax.distributed.initialize(
            address,
            process_count,
            process_index,
            local_device_ids,
            initialization_timeout=timeout,
        )
    except RuntimeError as error:
        if "before any JAX" not in str(error):
            raise
        raise RuntimeError(
            "start() came after JAX had looked for its devices, expected before: it has those of "
            "this process only. Call it before tensors are made and before jax.devices()."
        ) from error
    except ValueError as error:
        raise ValueError(
            f"start() does not know the other processes ({error}). Pass address='host:port', "
            "process_count and process_index, or set MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK."
        ) from error


def _check_start(address: str | None, count: int | None, index: int | None) -> None:
    given = {"address": address, "process_count": count, "process_index": index}
    missing = [name for name, value in given.items() if value is None]
    if 0 < len(missing) < len(given):
        raise ValueError(
            f"start() has no {' and no '.join(missing)}, expected all of {', '.join(given)} or "
            "none. Pass them, or set MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK."
        )
    if address is not None and not address.rpartition(":")[2].isdigit():
        raise ValueError(
            f"address {address!r} has no port, expected 'host:port'. Pass one that is free on the "
            "first process's machine, or set MASTER_PORT."
        )
    if count is not None and index is not None and not 0 <= index < count:
        raise ValueError(
            f"process_index {index} of {count} processes, expected 0 to {count - 1}. Number them "
            "from 0."
        )


def stop() -> None:
    """Leaves the program that `start` joined, once all processes have come here."""
    jax.distributed.shutdown()


def process_index() -> int:
    """The number of this process among all, from 0; PyTorch's rank.

    >>> dg.sharding.process_index()
    0
    """
    return jax.process_index()


def process_count() -> int:
    """How many processes there are; PyTorch's world size.

    >>> dg.sharding.process_count()
    1
    """
    return jax.process_count()


def is_first_process() -> bool:
    """Whether this is the process to print and to write files.

    >>> dg.sharding.is_first_process()
    True
    """
    return jax.process_index() == 0


def from_local(array: Any, mesh: Mesh, *axes: Axis) -> Tensor:
    """One tensor over all processes, of the part that each of them has; a batch, mostly.

    array: a tensor or an array with the rows, or whatever the axes split, that belong to this
    process's devices. Along a dim that is not split, every process passes the same. With one
    process it is the whole, as `shard` takes it.

    >>> mesh = dg.sharding.mesh(data=1)
    >>> dg.sharding.from_local(np.ones((4, 2), np.float32), mesh, "data").shape
    dyngraph.Size([4, 2])
    """
    local = np.asarray(as_tensor(array).detach()._cell.array)
    place = placement(mesh, *axes)
    return new_tensor(cell_of(jax.make_array_from_process_local_data(place, local)))

"""PyTorch's `torch.autograd.graph`: nodes, gradient edges, and hooks over several tensors."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import jax

from dyngraph.graph import engine
from dyngraph.graph.hooks import RemovableHandle
from dyngraph.graph.mutation import (
    allow_mutation_on_saved_tensors as allow_mutation_on_saved_tensors,
)
from dyngraph.graph.node import GradientEdge as GradientEdge, Node as Node, graph_desc as graph_desc
from dyngraph.graph.packing import (
    disable_saved_tensors_hooks as disable_saved_tensors_hooks,
    saved_tensors_hooks as saved_tensors_hooks,
)
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, gradient_edge as get_gradient_edge, new_tensor
from dyngraph.views import counter_of

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "graph_desc",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class MultiHandle:
    """The handle of a hook over several tensors."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Takes the hook off all its tensors."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: str = "all"
) -> MultiHandle:
    """Calls `fn` once a backward, when the gradients of several tensors are known.

    With `mode="all"` it is called with the list of their gradients after the last one arrived, None
    for those that this backward does not reach; with `"any"`, with the first gradient. What it
    returns is ignored. Raises ValueError for another mode.

    >>> x, y = dg.ones(2, requires_grad=True), dg.ones(2, requires_grad=True)
    >>> handle = dg.autograd.graph.register_multi_grad_hook([x, y], print)
    >>> (x * 2 + y).sum().backward()
    [tensor([2., 2.]), tensor([1., 1.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    if mode == "any":
        ran: weakref.WeakSet[engine.GraphTask] = weakref.WeakSet()

        @functools.wraps(fn)
        def first(grad: Any) -> None:
            task = engine.current_task()
            with lock:
                if task in ran:
                    return
                ran.add(task)
            fn(grad)

        return MultiHandle([t.register_hook(first) for t in tensors if t.requires_grad])

    arrived: weakref.WeakKeyDictionary[engine.GraphTask, dict[int, Any]]
    arrived = weakref.WeakKeyDictionary()
    nodes = [get_gradient_edge(t).node for t in tensors]

    def at(position: int) -> Callable[[Any], None]:
        def hook(grad: Any) -> None:
            task = engine.current_task()
            with lock:
                grads = arrived.setdefault(task, {})
                grads[position] = grad
                complete = len(grads) == sum(map(task.will_run, nodes))
            if complete:
                fn([grads.get(i) for i in range(len(nodes))])

        return hook

    return MultiHandle([t.register_hook(at(i)) for i, t in enumerate(tensors)])


class save_on_cpu(saved_tensors_hooks):  # noqa: N801 - PyTorch's name
    """Inside, what is saved for backward waits on the first CPU device, and comes back when it is
    read.

    With `pin_memory`, in page-locked memory of the CPU where the device has such a place (JAX's
    memory kind "pinned_host"), from which it comes back faster. `device_type` is ignored: JAX
    knows where an array is. What is on the first CPU device already is not copied.

    >>> x = dg.tensor([2.0, 3.0], requires_grad=True)
    >>> with dg.autograd.graph.save_on_cpu():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([4., 6.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[Any, jax.Array]:
            array = tensor._cell.array
            place = array.sharding
            host = jax.local_devices(backend="cpu")[0]
            if place.device_set == {host}:
                return place, array
            if pin_memory and any("pinned_host" in _memory_kinds(d) for d in place.device_set):
                return place, jax.device_put(array, place.with_memory_kind("pinned_host"))
            return place, jax.device_put(array, host)

        def unpack(packed: tuple[Any, jax.Array]) -> Tensor:
            place, array = packed
            return new_tensor(cell_of(jax.device_put(array, place)))

        super().__init__(pack, unpack)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Raises the version of one or several tensors, as an in-place write to them would.

    Raises RuntimeError for anything that is no tensor.

    >>> x = dg.ones(2)
    >>> dg.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for each in _tensors("increment_version", tensor):
        root, family = counter_of(each)
        root.count_write(family)


class _unsafe_preserve_version_counter:  # noqa: N801 - PyTorch's name
    """Inside, writes to the given tensors leave their versions as they are.

    Backward then can't see that they were written to: what was saved of them before keeps its old
    value, as always, but is not refused.

    >>> x = dg.ones(2)
    >>> with dg.autograd._unsafe_preserve_version_counter(x):
    ...     _ = x.add_(1)
    >>> x._version
    0
    """

    def __init__(self, tensors: Tensor | Iterable[Tensor]) -> None:
        self.tensors = _tensors("_unsafe_preserve_version_counter", tensors)
        self.versions = [t._version for t in self.tensors]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        for tensor, version in zip(self.tensors, self.versions, strict=True):
            root, family = counter_of(tensor)
            root.set_version(version, family)


def _tensors(where: str, given: Any) -> tuple[Tensor, ...]:
    tensors = (given,) if isinstance(given, Tensor) else tuple(given)
    for each in tensors:
        if not isinstance(each, Tensor):
            raise RuntimeError(
                f"{where} expects each element of the iterable to be a tensor, got "
                f"{type(each).__name__}."
            )
    return tensors


def _memory_kinds(device: Any) -> set[str]:
    return {memory.kind for memory in device.addressable_memories()}

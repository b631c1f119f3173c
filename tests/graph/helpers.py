"""What the tests of the backward graph share: making leaves, comparing values, watching events."""

import threading
import weakref
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

import dyngraph as dg


def leaf(*values: float) -> dg.Tensor:
    """A leaf that requires grad: of shape () for one value, (n,) for n of them."""
    return dg.tensor(values[0] if len(values) == 1 else list(values), requires_grad=True)


def assert_values(tensor: dg.Tensor | None, expected: ArrayLike) -> None:
    """`tensor` is float32 with the shape of `expected`, and close to it."""
    assert tensor is not None
    expected = np.asarray(expected, np.float32)
    np.testing.assert_allclose(tensor.detach().numpy(), expected, rtol=1e-5, strict=True)


def node_of(tensor: dg.Tensor) -> dg.autograd.graph.Node:
    """The grad_fn of an interior tensor, the accumulation node of a leaf."""
    return dg.autograd.graph.get_gradient_edge(tensor).node


def on_gradient(tensor: dg.Tensor, action: Callable[[], object]) -> None:
    """Call `action` when the gradient of `tensor` is known, and leave that gradient as it is."""

    def hook(grad: dg.Tensor) -> None:
        action()

    tensor.register_hook(hook)


def log_gradients(log: list[str], **tensors: dg.Tensor) -> None:
    """Append the name of each tensor to `log` when its gradient is known."""
    for name, tensor in tensors.items():
        on_gradient(tensor, partial(log.append, name))


def queue_callback(callback: Callable[[], object]) -> None:
    """Have `callback` called at the end of the backward pass that is running."""
    dg.autograd.Variable._execution_engine.queue_callback(callback)


class Canary:
    """A plain object whose weak reference tells when its only holder was freed."""


def watch(tensor: dg.Tensor) -> weakref.ref[Canary]:
    """A weak reference that dies together with the node of `tensor`."""
    canary = Canary()
    node_of(tensor).metadata["canary"] = canary
    return weakref.ref(canary)


def run_threads(work: Callable[[int], object], count: int = 8) -> list[BaseException]:
    """Run work(0), work(1), ... at the same time, each on its thread; what they raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(count)

    def body(index: int) -> None:
        start.wait()
        try:
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=body, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    return errors

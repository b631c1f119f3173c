"""SavedTensor: the handle of one value that a node saved for backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from dyngraph.graph.packing import Hooks, Packed, checked


class Saving(Protocol):
    """A node that saves: what a SavedTensor asks of it."""

    saved: Any
    """A tuple of what is saved; None once it is freed."""

    def show(self, position: int) -> Any:
        """The saved tensor as users see it."""
        ...

    def pack(self, position: int, tensor: Any, hooks: Hooks) -> None:
        """Keeps what a pack hook makes of a saved value."""
        ...


class SavedTensor:
    """One saved value of a node, found by `node._raw_saved_<field>`; it can't be made by hand.

    The node holds a snapshot of the array, which an in-place write can't change; the version that
    it was saved at is compared when it is read, so that a program which would be wrong in PyTorch
    raises here too.
    """

    __slots__ = ("_node", "_position")

    def __init__(self, node: Saving | None = None, position: int | None = 0) -> None:
        if node is None:
            raise RuntimeError(
                "Trying to create a SavedTensor object from Python is forbidden. Nodes make them: "
                "see node._raw_saved_<field>."
            )
        self._node = node
        self._position = position  # None: no gradient needs this field

    @property
    def _value(self) -> Any:
        """What the node keeps: an array, None, or `Packed`."""
        saved = self._node.saved
        return None if saved is None or self._position is None else saved[self._position]

    def unpack(self) -> Any:
        """The saved tensor with its history; raises once the graph is freed or the value
        changed."""
        return None if self._position is None else self._node.show(self._position)

    @property
    def data(self) -> Any:
        """The saved tensor; None once the graph is freed."""
        return None if self._value is None else self.unpack()

    @property
    def unpack_hook(self) -> Any:
        """The hook that unpacks the value; None for one that was saved as it is."""
        value = self._value
        return value.unpack_hook if type(value) is Packed else None

    def register_hooks(
        self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]
    ) -> None:
        """Packs the value by `pack_hook(tensor)`, to be unpacked by `unpack_hook(packed)`.

        Raises RuntimeError where it has hooks already, where it is None, and once the graph is
        freed; else as `graph.saved_tensors_hooks`.

        >>> x = dg.tensor([2.0], requires_grad=True)
        >>> y = x.detach() * x
        >>> y.grad_fn._raw_saved_self.register_hooks(lambda t: t.numpy(), dg.tensor)
        >>> y.backward()
        >>> x.grad
        tensor([2.])
        """
        hooks = checked(pack_hook, unpack_hook)
        if self._node.saved is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed: an earlier "
                "backward() or grad() freed it. Specify retain_graph=True there, or register the "
                "hooks before."
            )
        value = self._value
        if value is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with value None is forbidden: there is "
                "nothing to pack."
            )
        if type(value) is Packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: "
                "only one pair of hooks is allowed at a time; inside saved_tensors_hooks() all "
                "saved tensors have one."
            )
        assert self._position is not None
        self._node.pack(self._position, self.unpack().detach(), hooks)

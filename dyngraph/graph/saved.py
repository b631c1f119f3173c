"""SavedTensor: the handle of one value that a node saved for backward."""

from __future__ import annotations

from typing import Any, Protocol


class Saving(Protocol):
    """A node that saves: what a SavedTensor asks of it."""

    saved: tuple[Any, ...] | None

    def show(self, position: int) -> Any: ...


class SavedTensor:
    """One saved value of a node, found by `node._raw_saved_<field>`; it can't be made by hand.

    The node holds a snapshot of the array, which an in-place write can't change; the version that
    it was saved at is compared when it is read, so that a program which would be wrong in PyTorch
    raises here too.
    """

    __slots__ = ("_node", "_position")

    def __init__(self, node: Saving | None = None, position: int = 0) -> None:
        if node is None:
            raise RuntimeError(
                "Trying to create a SavedTensor object from Python is forbidden. Nodes make them: "
                "see node._raw_saved_<field>."
            )
        self._node = node
        self._position = position

    def unpack(self) -> Any:
        """The saved tensor with its history; raises once the graph is freed or the value
        changed."""
        return self._node.show(self._position)

    @property
    def data(self) -> Any:
        """The saved tensor; None once the graph is freed."""
        return None if self._node.saved is None else self.unpack()

    @property
    def unpack_hook(self) -> Any:
        """The hook that unpacks the value: None, as it was saved as it is."""
        return None

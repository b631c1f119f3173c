"""The errors that dyngraph raises of its own: each says what happened, what was expected, what to
do.

They derive from the types that PyTorch raises, so `except RuntimeError` works in ported code.
Errors of one call's arguments (a wrong dim, a ragged list) are raised where they are found.
"""

from __future__ import annotations

from dyngraph.user_code import shown_place

__all__ = [
    "CheckpointError",
    "FunctionError",
    "GradcheckError",
    "GraphFreedError",
    "InPlaceError",
    "InferenceTensorError",
    "LeafError",
    "LinAlgError",
    "NoGradientPathError",
    "SavedTensorModifiedError",
    "UnusedInputError",
]


class GradcheckError(RuntimeError):
    """`gradcheck` or `gradgradcheck` found a derivative wrong, or not as derivatives must be."""


class GraphFreedError(RuntimeError):
    """A node's saved tensors were released by an earlier backward."""

    def __init__(self, node: str) -> None:
        super().__init__(
            "Trying to backward through the graph a second time (or directly access saved "
            f"tensors after they have already been freed): an earlier backward freed what {node} "
            "had saved. Specify retain_graph=True if you need to backward through the graph a "
            "second time, in the first call; detach() state that is carried over from an "
            "earlier training step."
        )


class SavedTensorModifiedError(RuntimeError):
    """A saved tensor was written in place between forward and backward."""

    def __init__(
        self,
        node: str,
        field: str,
        kind: str,
        saved: int,
        current: int,
        written_at: tuple[str, int] | None,
        saved_at: tuple[str, int] | None,
    ) -> None:
        place = ""
        if written_at is not None:
            place = f"It was last written at {shown_place(*written_at)}. "
        if saved_at is not None:
            place += f"It was saved at {shown_place(*saved_at)}. "
        super().__init__(
            "one of the variables needed for gradient computation has been modified by an "
            f"inplace operation: what {node} saved as {field!r}, {kind}, is at version {current}; "
            f"expected version {saved} instead. {place}Write to a clone() of it, or use the "
            "out-of-place operator."
            + (
                ""
                if saved_at
                else " Anomaly mode (set_detect_anomaly(True)) tells where it was saved."
            )
        )


class CheckpointError(RuntimeError):
    """A checkpointed function did something else when it ran again."""


class FunctionError(RuntimeError):
    """A custom Function did, or returned, what autograd can't make sense of."""


class InPlaceError(RuntimeError):
    """A tensor can't be written to, or not by that value."""

    @classmethod
    def leaf(cls, *, view: bool) -> InPlaceError:
        """A leaf that requires grad, or a view of one, is written to while recording."""
        what = "a view of a leaf" if view else "a leaf"
        return cls(
            f"{what} Variable that requires grad is being used in an in-place operation. Its "
            "gradient would be that of the value before or after the write, so it is refused: "
            "write under no_grad(), or to a clone() of it."
        )

    @classmethod
    def view(cls, made: str, place: str | None, *, indirect: bool) -> InPlaceError:
        """A view is written to, or used after a write to its base, and was `made` in a way that
        does not allow it; `place` says of which node's outputs it is one."""
        what = "its base or another view of its base has been" if indirect else "is being"
        if made == "several":
            return cls(
                f"{place or 'A tensor'} is a view and {what} modified inplace. This view is the "
                "output of a function that returns multiple views. Such functions do not allow the "
                "output views to be modified inplace. Replace the inplace operation by an "
                "out-of-place one, or take the views one by one."
            )
        if made == "function":
            return cls(
                f"{place or 'A tensor'} is a view and {what} modified inplace. This view was "
                "created inside a custom Function (or because an input was returned as-is) and the "
                "autograd logic to handle view+inplace would override the custom backward "
                "associated with the custom Function, leading to incorrect gradients. This "
                "behavior is forbidden. You can fix this by cloning the output of the custom "
                "Function."
            )
        subject = "A view" if place is None else f"{place} is a view of a view which"
        mode, normal = {
            "no_grad": ("no_grad mode", "with grad mode enabled"),
            "inference_mode": ("inference mode", "in normal mode"),
        }[made]
        return cls(
            f"{subject} was created in {mode} and {what} modified inplace {normal}. Whether that "
            "is to be recorded is ambiguous, so it is refused. Move the view and the inplace "
            f"operation either both inside the {made} block, if it is not to be, or both outside."
        )

    @classmethod
    def inference(cls) -> InPlaceError:
        """An inference tensor is written to outside inference mode."""
        return cls(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make "
            "a clone() of it to get a normal tensor before doing inplace update."
        )

    @classmethod
    def overlap(cls) -> InPlaceError:
        """A tensor is written to that shows an element more than once."""
        return cls(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )

    @classmethod
    def out(cls, where: str) -> InPlaceError:
        """A function with `out=` would be recorded."""
        return cls(
            f"{where}(): functions with out=... arguments don't support automatic differentiation, "
            "but one of the arguments requires grad. Call it under no_grad(), or without out."
        )

    @classmethod
    def shape(cls, where: str, own: tuple[int, ...], result: tuple[int, ...]) -> InPlaceError:
        """The result is larger than the tensor."""
        return cls(
            f"output with shape {list(own)} doesn't match the broadcast shape {list(result)}: "
            f"{where}() in place can't change the shape. Use the out-of-place operator, or reshape "
            "the other tensor."
        )

    @classmethod
    def dtype(cls, own: str, result: str) -> InPlaceError:
        """The result's dtype does not fit the tensor's."""
        return cls(
            f"result type {result} can't be cast to the desired output type {own}. Convert the "
            "tensor first, or use the out-of-place operator."
        )


class InferenceTensorError(RuntimeError):
    """An inference tensor was used where autograd needs a version counter."""

    def __init__(self, operation: str) -> None:
        super().__init__(
            f"Inference tensors cannot be saved for backward: {operation} needs one for its "
            "gradient. To work around you can make a clone() of it outside inference_mode to get a "
            "normal tensor, or make it under no_grad() instead."
        )


class LeafError(RuntimeError):
    """`requires_grad` was set on a tensor that an operator made."""

    def __init__(self, *, flag: bool) -> None:
        remedy = (
            "It requires grad already."
            if flag
            else "If you want to use a computed variable in a subgraph that doesn't require "
            "differentiation use var_no_grad = var.detach()."
        )
        super().__init__(f"you can only change requires_grad flags of leaf variables. {remedy}")


class NoGradientPathError(RuntimeError):
    """backward() or grad() was called on a tensor without history."""

    def __init__(self, position: int) -> None:
        super().__init__(
            f"element {position} of tensors does not require grad and does not have a grad_fn: "
            "no operator between it and a tensor with requires_grad=True was recorded. Make an "
            "input with requires_grad=True, and look for detach(), no_grad() or an integer cast "
            "on the way."
        )


class UnusedInputError(RuntimeError):
    """grad() was asked for the gradient of a tensor that the outputs do not depend on."""

    def __init__(self, position: int) -> None:
        super().__init__(
            f"The differentiated Tensor at index {position} appears to not "
            "have been used in the graph. Set allow_unused=True if this is the desired behavior "
            "(None is returned for it), or materialize_grads=True to get zeros."
        )


class LinAlgError(RuntimeError):
    """The values of a matrix do not allow the computation: singular, or not positive-definite."""


class TraceableError(TypeError):
    """A hook or a Function that is marked traceable looked at a value."""

    def __init__(self, name: str, file: str, line: int) -> None:
        super().__init__(
            f"{name!r} is marked traceable, but needs the value of a gradient, at "
            f"{shown_place(file, line)}: "
            "expected operators on tensors alone, since it is traced, not called. Take the mark "
            "away, then it runs as Python between two compiled parts; or choose by dg.where(...) "
            "instead of `if`, and print from a hook without the mark."
        )

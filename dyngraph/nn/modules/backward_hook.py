"""BackwardHook: full backward hooks of one call of a module.

Its inputs and its outputs each pass an identity node. That of the outputs tells the gradients with
which the backward of the module begins; that of the inputs those with which it ends, and there the
hooks run. Neither node knows a tensor.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dyngraph import modes
from dyngraph.autograd.function import Function
from dyngraph.graph.node import Node
from dyngraph.tensor import Tensor

Gradients = tuple[Any, ...]
Hook = Callable[..., Any]


class BackwardHookFunction(Function):
    """The identity, on any number of tensors."""

    traceable = True

    @staticmethod
    def forward(ctx: Any, *args: Tensor) -> tuple[Tensor, ...]:
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        return grads


class Places(NamedTuple):
    """Which of the arguments, or outputs, of a module are tensors."""

    indices: list[int]
    length: int

    def spread(self, grads: Gradients) -> Gradients:
        """Gradients of the tensors as gradients of all, None where there is no tensor."""
        found = dict(zip(self.indices, grads, strict=True))
        return tuple(found.get(i) for i in range(self.length))

    def gather(self, grads: Gradients) -> Gradients:
        """The gradients of the tensors."""
        return tuple(grads[i] for i in self.indices)


class BackwardHook:
    """Runs hooks with a module's gradients, once its inputs and outputs are behind nodes."""

    def __init__(self, module: Any, hooks: Sequence[Hook], pre_hooks: Sequence[Hook]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: Gradients | None = None
        self.has_inputs = False
        self.input_count = 0

    def on_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of the module, those that are tensors behind a node."""
        self.input_count = len(args)
        passed, places, node = _behind_node(args)
        if node is not None:
            self.has_inputs = True
            node.register_hook(lambda grads, _: self._after_backward(places, grads))
        return passed

    def on_outputs(self, result: Any) -> Any:
        """The output of the module, or the tuple of its outputs, behind a node."""
        is_tuple = isinstance(result, tuple)
        passed, places, node = _behind_node(result if is_tuple else (result,))
        if node is not None:
            node.register_hook(lambda _, grads: self._before_backward(places, grads))
        return passed if is_tuple else passed[0]

    def _before_backward(self, places: Places, grads: Gradients) -> Gradients:
        found = places.spread(grads)
        for hook in self.pre_hooks:
            answer = hook(self.module, found)
            found = _checked("pre hook", "grad_output", answer, found)
        self.grad_outputs = found
        if not self.has_inputs:
            self._run_without_inputs(found)
        return places.gather(found)

    def _run_without_inputs(self, grad_outputs: Gradients) -> None:
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module "
            "outputs since no inputs require gradients: grad_input is None for all of them.",
            UserWarning,
            stacklevel=2,
        )
        for hook in self.hooks:
            answer = hook(self.module, (None,) * self.input_count, grad_outputs)
            if answer is not None and any(grad is not None for grad in answer):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )
        self.grad_outputs = None

    def _after_backward(self, places: Places, grads: Gradients) -> Gradients | None:
        grad_outputs = self.grad_outputs
        if grad_outputs is None:  # this backward pass did not begin at the outputs
            return None
        found = places.spread(grads)
        for hook in self.hooks:
            answer = hook(self.module, found, grad_outputs)
            found = _checked("hook", "grad_input", answer, found)
        self.grad_outputs = None
        return places.gather(found)


def _behind_node(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Places, Node | None]:
    """`args` with its tensors behind one node, which tensors they are, and the node.

    There is no node where nothing is recorded.
    """
    places = Places([i for i, a in enumerate(args) if isinstance(a, Tensor)], len(args))
    tensors = places.gather(args)
    if not modes.is_recording() or not any(t.requires_grad for t in tensors):
        return args, places, None
    passed = BackwardHookFunction.apply(*tensors)
    node = next(t.grad_fn for t in passed if t.grad_fn is not None)
    whole = list(args)
    for place, tensor in zip(places.indices, passed, strict=True):
        whole[place] = tensor
    named = type(args) is not tuple  # a named tuple takes its fields one by one
    return (type(args)(*whole) if named else tuple(whole)), places, node


def _checked(what: str, name: str, answer: Any, before: Gradients) -> Gradients:
    """What a hook made of gradients: `answer`, or those before where it is None."""
    if answer is None:
        return before
    if isinstance(answer, Tensor) and len(before) == 1:
        return (answer,)
    if len(answer) != len(before):
        raise RuntimeError(
            f"Backward {what} returned an invalid number of {name}, got {len(answer)}, but "
            f"expected {len(before)}. Return a tuple of one for each, or None."
        )
    return tuple(answer)

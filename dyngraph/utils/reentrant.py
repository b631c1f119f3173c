"""PyTorch's older checkpoint: a Function that runs unrecorded, and in backward once more, with a
backward of its own."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from dyngraph import autocasting, modes
from dyngraph.autograd.function import Function
from dyngraph.backward import backward
from dyngraph.graph import engine
from dyngraph.random import default_generator, fork_rng
from dyngraph.tensor import Tensor
from dyngraph.utils.recomputation import TENSOR, filled


class CheckpointFunction(Function):
    """The Function behind `checkpoint(use_reentrant=True)`."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.random_state = default_generator.get_state() if preserve_rng_state else None
        ctx.autocast = autocasting.state()
        ctx.inputs = [TENSOR if isinstance(a, Tensor) else a for a in args]
        ctx.save_for_backward(*[a for a in args if isinstance(a, Tensor)])
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if engine.current_task().needed is not None:
            raise RuntimeError(
                "When use_reentrant=True, checkpoint is incompatible with .grad() or passing an "
                "`inputs` parameter to .backward(). To resolve this error, you can either set "
                "use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        inputs = detach_variable(tuple(filled(ctx.inputs, ctx.saved_tensors)))
        again = autocasting.restored(ctx.autocast)
        with fork_rng(enabled=ctx.random_state is not None), modes.enable_grad(), again:
            if ctx.random_state is not None:
                default_generator.set_state(ctx.random_state)
            outputs = ctx.run_function(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [
            (o, g)
            for o, g in zip(outputs, grads, strict=True)
            if isinstance(o, Tensor) and o.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *[i.grad if isinstance(i, Tensor) else None for i in inputs])


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs, the tensors without history, requiring grad as they did.

    Raises RuntimeError for what is no tuple.

    >>> x = dg.ones(2, requires_grad=True) * 2
    >>> dg.utils.checkpoint.detach_variable((x, 3))
    (tensor([2., 2.], requires_grad=True), 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        [i.detach().requires_grad_(i.requires_grad) if isinstance(i, Tensor) else i for i in inputs]
    )


def check_backward_validity(inputs: Sequence[Any]) -> None:
    """Warns where no tensor of `inputs` requires grad: a reentrant checkpoint gives none then.

    >>> dg.utils.checkpoint.check_backward_validity([dg.ones(2, requires_grad=True)])
    """
    if not any(i.requires_grad for i in inputs if isinstance(i, Tensor)):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None",
            UserWarning,
            stacklevel=2,
        )

"""What the functions of `autograd.functional` share: their arguments, their checks, their zeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dyngraph.backward import grad
from dyngraph.ops.filled import ones_like, zeros_like
from dyngraph.tensor import Tensor


def as_tuple(value: Any, what: str, where: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Whether it is a tuple, and the tuple."""
    is_tuple = isinstance(value, tuple)
    tensors = value if is_tuple else (value,)
    for position, each in enumerate(tensors):
        if not isinstance(each, Tensor):
            given = f"the value at index {position}" if is_tuple else f"the given {what}"
            raise TypeError(
                f"The {what} given to {where} must be either a Tensor or a tuple of Tensors but "
                f"{given} has type {type(each).__name__}. Make tensors by dg.tensor(...)."
            )
    return is_tuple, tensors


def copies(
    tensors: Sequence[Tensor], *, create_graph: bool, need_graph: bool
) -> tuple[Tensor, ...]:
    """What the function is run on: views of its inputs, or leaves."""
    return tuple(
        t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_(need_graph)
        for t in tensors
    )


def settled(tensors: Sequence[Tensor], *, create_graph: bool) -> tuple[Tensor, ...]:
    return tuple(t if create_graph else t.detach() for t in tensors)


def as_given(tensors: Sequence[Any], *, is_tuple: bool) -> Any:
    return tuple(tensors) if is_tuple else tensors[0]


def _check_v(v: Sequence[Tensor], others: Sequence[Tensor], *, is_tuple: bool) -> None:
    """Raises where the vector does not look like what it is multiplied by."""
    if len(v) != len(others):
        if is_tuple:
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(others)} but got {len(v)}."
            )
        raise RuntimeError(f"The given v should contain a single Tensor, got {len(v)}.")
    for position, (own, other) in enumerate(zip(v, others, strict=True)):
        if own.shape != other.shape:
            raise RuntimeError(
                f"{f'Entry {position} in ' if is_tuple else ''}v has invalid size: should be "
                f"{list(other.shape)} but got {list(own.shape)}."
            )


def vector_of(
    v: Any, where: str, others: Sequence[Tensor], *, is_tuple: bool, create_graph: bool
) -> tuple[Tensor, ...]:
    """The vector `v`, checked against what it is multiplied by; None means 1 for one element."""
    if v is None:
        if len(others) != 1 or others[0].numel() != 1:
            of = "user-provided function returns" if where == "vjp" else "input to"
            raise RuntimeError(
                f"The vector v can only be None if the {of} "
                f"{'' if where == 'vjp' else 'the user-provided function is '}a single Tensor "
                "with a single element. Pass a vector of the same sizes."
            )
        return (ones_like(others[0].detach()),)
    _, tensors = as_tuple(v, "v", where)
    vector = copies(tensors, create_graph=create_graph, need_graph=False)
    _check_v(vector, others, is_tuple=is_tuple)
    return vector


NOT_STRICT = "This is not allowed in strict mode."


def check_requires_grad(tensors: Sequence[Tensor | None], kind: str, *, strict: bool) -> None:
    """With `strict`, raises for a tensor without a history: the derivative would be zero."""
    for i, tensor in enumerate(tensors if strict else ()):
        if tensor is None:
            raise RuntimeError(
                f"The output of the user-provided function is independent of input {i}. "
                f"{NOT_STRICT}"
            )
        if tensor.requires_grad:
            continue
        raise RuntimeError(
            {
                "outputs": f"Output {i} of the user-provided function does not require gradients. "
                "The outputs must be computed in a differentiable manner from the input when "
                "running in strict mode.",
                "grad_inputs": f"The gradient with respect to input {i} is independent of the "
                f"inputs of the user-provided function. {NOT_STRICT}",
                "jacobian": "While computing the hessian, found that the jacobian of the "
                f"user-provided function with respect to input {i} is independent of the input. "
                f"{NOT_STRICT} You should ensure that your function is twice differentiable and "
                "that the jacobian depends on the inputs, which a linear function violates.",
                "hessian": "The hessian of the user-provided function with respect to input "
                f"{i} is independent of the input. {NOT_STRICT} You should ensure that your "
                "function is thrice differentiable and that the hessian depends on the inputs.",
            }[kind]
        )


def gradients(
    outputs: Sequence[Tensor | None],
    inputs: Sequence[Tensor],
    grad_outputs: Sequence[Tensor] | None = None,
    **options: Any,
) -> tuple[Tensor | None, ...]:
    """`autograd.grad` from those outputs that have a history; None where there is no way."""
    places = [i for i, out in enumerate(outputs) if out is not None and out.requires_grad]
    if not places:
        return (None,) * len(inputs)
    given = None if grad_outputs is None else [grad_outputs[i] for i in places]
    roots = [out for out in outputs if out is not None and out.requires_grad]
    return grad(roots, inputs, given, allow_unused=True, **options)


_NO_WAY = {
    "back": "The output of the user-provided function is independent of input {i}.",
    "back_trick": "The gradient with respect to the input is independent of entry {i} in the "
    "grad_outputs when using the double backward trick to compute forward mode gradients.",
    "double_back": "The jacobian of the user-provided function is independent of input {i}.",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {i} in "
    "the grad_jacobian.",
}
_NO_HISTORY = {
    "double_back": "The jacobian of the user-provided function is independent of input {i} when "
    "create_graph=True.",
    "double_back_trick": "The hessian of the user-provided function is independent of input {i} "
    "when create_graph=True.",
}


def with_zeros(
    found: Sequence[Tensor | None],
    likes: Sequence[Tensor],
    stage: str,
    *,
    strict: bool,
    create_graph: bool,
) -> tuple[Tensor, ...]:
    """The gradients, with zeros where there is none; `strict` raises there."""
    results = []
    for i, (result, like) in enumerate(zip(found, likes, strict=True)):
        if strict and result is None:
            raise RuntimeError(f"{_NO_WAY[stage].format(i=i)} {NOT_STRICT}")
        if strict and create_graph and result is not None and not result.requires_grad:
            text = _NO_HISTORY.get(stage, _NO_WAY[stage])
            raise RuntimeError(f"{text.format(i=i)} {NOT_STRICT}")
        results.append(zeros_like(like.detach()) if result is None else result)
    return tuple(results)

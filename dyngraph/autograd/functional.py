"""PyTorch's `torch.autograd.functional`: products with Jacobians and Hessians, and these
themselves.

Every function runs `func` on copies of its inputs. Results have a history where `create_graph` asks
for one; with `strict`, what would be zero for want of a dependence raises.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from dyngraph import modes
from dyngraph.autograd.forward_ad import dual_level, make_dual, unpack_dual
from dyngraph.autograd.functional_arguments import (
    NOT_STRICT,
    as_given,
    as_tuple,
    check_requires_grad,
    copies,
    gradients,
    settled,
    vector_of,
    with_zeros,
)
from dyngraph.lifting import run_mapped, spread_all
from dyngraph.ops.filled import zeros, zeros_like
from dyngraph.ops.joining import stack
from dyngraph.tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = Tensor | tuple[Tensor, ...]
REVERSE, FORWARD = "reverse-mode", "forward-mode"
OUTPUTS = "outputs of the user-provided function"


# --- products -----------------------------------------------------------------------------------


def vjp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """`func(*inputs)`, and the product of a vector `v`, like the outputs, with its Jacobian.

    Raises RuntimeError where `v` does not look like the outputs, or is left out though these have
    more than one element; TypeError where something is neither a tensor nor a tuple of them.

    >>> dg.autograd.functional.vjp(lambda x: x * x, dg.tensor([1.0, 2.0]), dg.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with modes.enable_grad():
        is_tuple, given = as_tuple(inputs, "inputs", "vjp")
        given = copies(given, create_graph=create_graph, need_graph=True)
        outputs_are_tuple, outputs = as_tuple(func(*given), OUTPUTS, "vjp")
        check_requires_grad(outputs, "outputs", strict=strict)
        vector = vector_of(v, "vjp", outputs, is_tuple=outputs_are_tuple, create_graph=create_graph)
    with modes.set_grad_enabled(create_graph or modes.is_grad_enabled()):
        found = gradients(outputs, given, vector, create_graph=create_graph)
        product = with_zeros(found, given, "back", strict=strict, create_graph=create_graph)
    return _results(outputs, product, outputs_are_tuple, is_tuple, create_graph=create_graph)


def jvp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """`func(*inputs)`, and the product of its Jacobian with a vector `v`, like the inputs.

    It is the backward of the backward; `dg.func.jvp` is forward mode, which needs no graph. Raises
    as `vjp`, where `v` is compared with the inputs.

    >>> dg.autograd.functional.jvp(lambda x: x * x, dg.tensor([1.0, 2.0]), dg.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with modes.enable_grad():
        is_tuple, given = as_tuple(inputs, "inputs", "jvp")
        given = copies(given, create_graph=create_graph, need_graph=True)
        vector = vector_of(v, "jvp", given, is_tuple=is_tuple, create_graph=create_graph)
        outputs_are_tuple, outputs = as_tuple(func(*given), OUTPUTS, "jvp")
        check_requires_grad(outputs, "outputs", strict=strict)
        probes = [zeros_like(out.detach()).requires_grad_() for out in outputs]
        back = gradients(outputs, given, probes, create_graph=True)
        check_requires_grad(back, "grad_inputs", strict=strict)
    with modes.set_grad_enabled(create_graph or modes.is_grad_enabled()):
        found = gradients(back, probes, vector, create_graph=create_graph)
        product = with_zeros(found, outputs, "back_trick", strict=strict, create_graph=create_graph)
    return _results(
        outputs, product, outputs_are_tuple, outputs_are_tuple, create_graph=create_graph
    )


def vhp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """`func(*inputs)`, one number, and the product of a vector `v` with its Hessian.

    Raises as `vjp`, where `v` is compared with the inputs, and RuntimeError where `func` returns
    more than one element.

    >>> dg.autograd.functional.vhp(lambda x: (x**3).sum(), dg.tensor([1.0, 2.0]), dg.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with modes.enable_grad():
        is_tuple, given, vector, outputs, slope = _first_derivative(
            "vhp", func, inputs, v, create_graph=create_graph, strict=strict
        )
    with modes.set_grad_enabled(create_graph or modes.is_grad_enabled()):
        found = gradients(slope, given, vector, create_graph=create_graph)
        product = with_zeros(found, given, "double_back", strict=strict, create_graph=create_graph)
    return _results(outputs, product, False, is_tuple, create_graph=create_graph)


def hvp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """As `vhp`, with the product of the Hessian and `v`.

    The Hessian is symmetric where it is continuous, and `vhp` takes one backward less.

    >>> dg.autograd.functional.hvp(lambda x: (x**3).sum(), dg.tensor([1.0, 2.0]), dg.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with modes.enable_grad():
        is_tuple, given, vector, outputs, slope = _first_derivative(
            "hvp", func, inputs, v, create_graph=create_graph, strict=strict
        )
        probes = [zeros_like(x.detach()).requires_grad_() for x in given]
        back = gradients(slope, given, probes, create_graph=True)
        check_requires_grad(slope, "hessian", strict=strict)
    with modes.set_grad_enabled(create_graph or modes.is_grad_enabled()):
        found = gradients(back, probes, vector, create_graph=create_graph)
        product = with_zeros(
            found, given, "double_back_trick", strict=strict, create_graph=create_graph
        )
    return _results(outputs, product, False, is_tuple, create_graph=create_graph)


def _first_derivative(
    where: str,
    func: Callable[..., Any],
    inputs: Any,
    v: Any,
    *,
    create_graph: bool,
    strict: bool,
) -> tuple[Any, ...]:
    """Whether the inputs are a tuple, what the function ran on, `v`, its output, its gradient."""
    is_tuple, given = as_tuple(inputs, "inputs", where)
    given = copies(given, create_graph=create_graph, need_graph=True)
    vector = vector_of(v, where, given, is_tuple=is_tuple, create_graph=create_graph)
    outputs_are_tuple, outputs = as_tuple(func(*given), OUTPUTS, where)
    check_requires_grad(outputs, "outputs", strict=strict)
    _check_one_number(where, outputs, is_tuple=outputs_are_tuple)
    slope = gradients(outputs, given, create_graph=True)
    check_requires_grad(slope, "jacobian", strict=strict)
    return is_tuple, given, vector, outputs, slope


def _check_one_number(where: str, outputs: Sequence[Tensor], *, is_tuple: bool) -> None:
    if is_tuple:
        raise RuntimeError(
            f"The function given to {where} should return a single Tensor, got a tuple of "
            f"{len(outputs)}."
        )
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {where} should contain a single "
            f"element, got shape {list(outputs[0].shape)}. Reduce it, by sum() or mean()."
        )


def _results(
    outputs: Sequence[Tensor],
    product: Sequence[Tensor],
    outputs_are_tuple: bool,
    product_is_tuple: bool,
    *,
    create_graph: bool,
) -> tuple[Any, Any]:
    return (
        as_given(settled(outputs, create_graph=create_graph), is_tuple=outputs_are_tuple),
        as_given(settled(product, create_graph=create_graph), is_tuple=product_is_tuple),
    )


# --- matrices -----------------------------------------------------------------------------------


def jacobian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = REVERSE,
) -> Any:
    """The Jacobian of `func`, with the output's dims, then the input's; a tuple of these for
    several outputs, for several inputs, or of tuples for both.

    Reverse mode goes backward once for each output element; with `vectorize`, for all at once.
    `strategy="forward-mode"` runs `func` for all input elements at once, and needs `vectorize`.

    Raises TypeError where something is neither a tensor nor a tuple of them, RuntimeError and
    NotImplementedError for options that do not go together, AssertionError for another strategy.

    >>> dg.autograd.functional.jacobian(lambda x: x * x, dg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in (FORWARD, REVERSE):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode", got '
            f"{strategy!r}. If your function has more outputs than inputs, forward mode is faster."
        )
    where = "autograd.functional.jacobian"
    if strategy == FORWARD:
        if create_graph:
            raise NotImplementedError(
                f'{where}: `create_graph=True` and `strategy="forward-mode"` are not supported '
                'together. Please either set `create_graph=False` or `strategy="reverse-mode"`.'
            )
        if strict:
            raise RuntimeError(
                f'{where}: `strict=True` and `strategy="forward-mode"` are not supported together. '
                'Please either set `strict=False` or `strategy="reverse-mode"`.'
            )
        if not vectorize:
            raise NotImplementedError(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only "
                "implemented for `vectorize=True`. Pass it, or dg.func.jacfwd()."
            )
        return _forward_jacobian(func, inputs)
    if vectorize and strict:
        raise RuntimeError(
            f"{where}: `strict=True` and `vectorized=True` are not supported together. Please "
            "either set `strict=False` or `vectorize=False`."
        )
    with modes.enable_grad():
        is_tuple, given = as_tuple(inputs, "inputs", "jacobian")
        given = copies(given, create_graph=create_graph, need_graph=True)
        outputs_are_tuple, outputs = as_tuple(func(*given), OUTPUTS, "jacobian")
        check_requires_grad(outputs, "outputs", strict=strict)
        if vectorize:
            rows = _all_rows(outputs, given, create_graph=create_graph)
        else:
            rows = [
                _rows(i, out, given, create_graph=create_graph, strict=strict)
                for i, out in enumerate(outputs)
            ]
    blocks = [
        settled(
            [row.reshape(*out.shape, *x.shape) for row, x in zip(of_output, given, strict=True)],
            create_graph=create_graph,
        )
        for out, of_output in zip(outputs, rows, strict=True)
    ]
    return as_given([as_given(b, is_tuple=is_tuple) for b in blocks], is_tuple=outputs_are_tuple)


def _all_rows(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], *, create_graph: bool
) -> list[list[Tensor]]:
    """For each output, and each input, the gradients of all elements, from one backward."""
    sizes = [out.numel() for out in outputs]
    flat = [out.reshape(-1) for out in outputs]
    found = gradients(
        flat, inputs, _bases(outputs), create_graph=create_graph, is_grads_batched=True
    )
    columns = [
        (zeros_like(x.detach()).expand(sum(sizes), *x.shape) if g is None else g).split(sizes)
        for g, x in zip(found, inputs, strict=True)
    ]
    return [list(of_output) for of_output in zip(*columns, strict=True)]


def _rows(
    number: int, output: Tensor, inputs: Sequence[Tensor], *, create_graph: bool, strict: bool
) -> list[Tensor]:
    """For each input the gradients of all elements of one output, one backward each."""
    rows: list[list[Tensor]] = [[] for _ in inputs]
    for element in output.reshape(-1).unbind():
        found = gradients((element,), inputs, retain_graph=True, create_graph=create_graph)
        for place, (result, like) in enumerate(zip(found, inputs, strict=True)):
            if strict and result is None:
                raise RuntimeError(
                    f"Output {number} of the user-provided function is independent of input "
                    f"{place}. {NOT_STRICT}"
                )
            if strict and create_graph and result is not None and not result.requires_grad:
                raise RuntimeError(
                    "The jacobian of the user-provided function is independent of input "
                    f"{number}. This is not allowed in strict mode when create_graph=True."
                )
            rows[place].append(zeros_like(like.detach()) if result is None else result)
    return [stack(r) for r in rows]


def _bases(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The unit vectors of the space of all tensors together: of each one the part of it, flat."""
    sizes = [t.numel() for t in tensors]
    parts = []
    for tensor, start in zip(tensors, itertools.accumulate(sizes, initial=0), strict=False):
        part = zeros(sum(sizes), tensor.numel(), dtype=tensor.dtype, device=tensor.device)
        part.diagonal(-start).fill_(1)
        parts.append(part)
    return parts


def _forward_jacobian(func: Callable[..., Any], inputs: Any) -> Any:
    """The Jacobian by forward mode, for all elements of the inputs at once."""
    is_tuple, given = as_tuple(inputs, "inputs", "jacobian")
    sizes = [x.numel() for x in given]
    shapes: list[Any] = []
    outputs_are_tuple = False

    def push(*directions: Tensor) -> list[Tensor]:
        nonlocal outputs_are_tuple
        with dual_level():
            duals = [
                make_dual(x, direction.view_as(x))
                for x, direction in zip(given, directions, strict=True)
            ]
            outputs_are_tuple, outputs = as_tuple(func(*duals), OUTPUTS, "jacobian")
            pairs = [unpack_dual(out) for out in outputs]
        shapes.extend(out.shape for out in outputs)
        return [zeros_like(p.detach()) if t is None else t for p, t in pairs]

    columns = spread_all(run_mapped(push, _bases(given), sum(sizes)), sum(sizes))
    blocks = [
        as_given(
            [
                part.reshape(*shape, *x.shape)
                for part, x in zip(column.movedim(0, -1).split(sizes, -1), given, strict=True)
            ],
            is_tuple=is_tuple,
        )
        for column, shape in zip(columns, shapes, strict=True)
    ]
    return as_given(blocks, is_tuple=outputs_are_tuple)


def hessian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = REVERSE,
) -> Any:
    """The Hessian of `func`, which returns one number: a matrix for one input, a tuple of tuples of
    these for several.

    It is the Jacobian of the Jacobian; `outer_jacobian_strategy` and `vectorize` are those of the
    outer one. Raises as `jacobian`, and RuntimeError where `func` returns more than one element.

    >>> dg.autograd.functional.hessian(lambda x: (x**3).sum(), dg.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    is_tuple, given = as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in (FORWARD, REVERSE):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode", got '
            f"{outer_jacobian_strategy!r}."
        )

    def one_number(*tensors: Tensor) -> Tensor:
        outputs_are_tuple, outputs = as_tuple(func(*tensors), OUTPUTS, "hessian")
        check_requires_grad(outputs, "outputs", strict=strict)
        _check_one_number("hessian", outputs, is_tuple=outputs_are_tuple)
        return outputs[0].squeeze()

    def slope(*tensors: Tensor) -> Any:
        if outer_jacobian_strategy == FORWARD:
            tensors = tuple(t.requires_grad_() for t in tensors)
        result = jacobian(one_number, tensors, create_graph=True)
        check_requires_grad(result, "jacobian", strict=strict)
        return result

    result = jacobian(
        slope,
        given,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return result if is_tuple else result[0][0]

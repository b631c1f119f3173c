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
from dyngraph.backward import grad
from dyngraph.lifting import run_mapped
from dyngraph.ops.filled import ones_like, zeros, zeros_like
from dyngraph.ops.joining import stack
from dyngraph.tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = Tensor | tuple[Tensor, ...]
REVERSE, FORWARD = "reverse-mode", "forward-mode"
OUTPUTS = "outputs of the user-provided function"


# --- what goes in and comes out -----------------------------------------------------------------


def _as_tuple(value: Any, what: str, where: str) -> tuple[bool, tuple[Tensor, ...]]:
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


def _copies(
    tensors: Sequence[Tensor], *, create_graph: bool, need_graph: bool
) -> tuple[Tensor, ...]:
    """What the function is run on: views of its inputs, or leaves."""
    return tuple(
        t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_(need_graph)
        for t in tensors
    )


def _settled(tensors: Sequence[Tensor], *, create_graph: bool) -> tuple[Tensor, ...]:
    return tuple(t if create_graph else t.detach() for t in tensors)


def _as_given(tensors: Sequence[Any], *, is_tuple: bool) -> Any:
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


def _vector(
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
    _, tensors = _as_tuple(v, "v", where)
    vector = _copies(tensors, create_graph=create_graph, need_graph=False)
    _check_v(vector, others, is_tuple=is_tuple)
    return vector


_NOT_STRICT = "This is not allowed in strict mode."


def _check_requires_grad(tensors: Sequence[Tensor | None], kind: str, *, strict: bool) -> None:
    """With `strict`, raises for a tensor without a history: the derivative would be zero."""
    for i, tensor in enumerate(tensors if strict else ()):
        if tensor is None:
            raise RuntimeError(
                f"The output of the user-provided function is independent of input {i}. "
                f"{_NOT_STRICT}"
            )
        if tensor.requires_grad:
            continue
        raise RuntimeError(
            {
                "outputs": f"Output {i} of the user-provided function does not require gradients. "
                "The outputs must be computed in a differentiable manner from the input when "
                "running in strict mode.",
                "grad_inputs": f"The gradient with respect to input {i} is independent of the "
                f"inputs of the user-provided function. {_NOT_STRICT}",
                "jacobian": "While computing the hessian, found that the jacobian of the "
                f"user-provided function with respect to input {i} is independent of the input. "
                f"{_NOT_STRICT} You should ensure that your function is twice differentiable and "
                "that the jacobian depends on the inputs, which a linear function violates.",
                "hessian": "The hessian of the user-provided function with respect to input "
                f"{i} is independent of the input. {_NOT_STRICT} You should ensure that your "
                "function is thrice differentiable and that the hessian depends on the inputs.",
            }[kind]
        )


def _gradients(
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


def _with_zeros(
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
            raise RuntimeError(f"{_NO_WAY[stage].format(i=i)} {_NOT_STRICT}")
        if strict and create_graph and result is not None and not result.requires_grad:
            text = _NO_HISTORY.get(stage, _NO_WAY[stage])
            raise RuntimeError(f"{text.format(i=i)} {_NOT_STRICT}")
        results.append(zeros_like(like.detach()) if result is None else result)
    return tuple(results)


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
        is_tuple, given = _as_tuple(inputs, "inputs", "vjp")
        given = _copies(given, create_graph=create_graph, need_graph=True)
        outputs_are_tuple, outputs = _as_tuple(func(*given), OUTPUTS, "vjp")
        _check_requires_grad(outputs, "outputs", strict=strict)
        vector = _vector(v, "vjp", outputs, is_tuple=outputs_are_tuple, create_graph=create_graph)
    with modes.set_grad_enabled(create_graph or modes.is_grad_enabled()):
        found = _gradients(outputs, given, vector, create_graph=create_graph)
        product = _with_zeros(found, given, "back", strict=strict, create_graph=create_graph)
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
        is_tuple, given = _as_tuple(inputs, "inputs", "jvp")
        given = _copies(given, create_graph=create_graph, need_graph=True)
        vector = _vector(v, "jvp", given, is_tuple=is_tuple, create_graph=create_graph)
        outputs_are_tuple, outputs = _as_tuple(func(*given), OUTPUTS, "jvp")
        _check_requires_grad(outputs, "outputs", strict=strict)
        probes = [zeros_like(out.detach()).requires_grad_() for out in outputs]
        back = _gradients(outputs, given, probes, create_graph=True)
        _check_requires_grad(back, "grad_inputs", strict=strict)
    with modes.set_grad_enabled(create_graph or modes.is_grad_enabled()):
        found = _gradients(back, probes, vector, create_graph=create_graph)
        product = _with_zeros(
            found, outputs, "back_trick", strict=strict, create_graph=create_graph
        )
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
        found = _gradients(slope, given, vector, create_graph=create_graph)
        product = _with_zeros(found, given, "double_back", strict=strict, create_graph=create_graph)
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
        back = _gradients(slope, given, probes, create_graph=True)
        _check_requires_grad(slope, "hessian", strict=strict)
    with modes.set_grad_enabled(create_graph or modes.is_grad_enabled()):
        found = _gradients(back, probes, vector, create_graph=create_graph)
        product = _with_zeros(
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
    is_tuple, given = _as_tuple(inputs, "inputs", where)
    given = _copies(given, create_graph=create_graph, need_graph=True)
    vector = _vector(v, where, given, is_tuple=is_tuple, create_graph=create_graph)
    outputs_are_tuple, outputs = _as_tuple(func(*given), OUTPUTS, where)
    _check_requires_grad(outputs, "outputs", strict=strict)
    _check_one_number(where, outputs, is_tuple=outputs_are_tuple)
    slope = _gradients(outputs, given, create_graph=True)
    _check_requires_grad(slope, "jacobian", strict=strict)
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
        _as_given(_settled(outputs, create_graph=create_graph), is_tuple=outputs_are_tuple),
        _as_given(_settled(product, create_graph=create_graph), is_tuple=product_is_tuple),
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
        is_tuple, given = _as_tuple(inputs, "inputs", "jacobian")
        given = _copies(given, create_graph=create_graph, need_graph=True)
        outputs_are_tuple, outputs = _as_tuple(func(*given), OUTPUTS, "jacobian")
        _check_requires_grad(outputs, "outputs", strict=strict)
        if vectorize:
            rows = _all_rows(outputs, given, create_graph=create_graph)
        else:
            rows = [
                _rows(i, out, given, create_graph=create_graph, strict=strict)
                for i, out in enumerate(outputs)
            ]
    blocks = [
        _settled(
            [row.reshape(*out.shape, *x.shape) for row, x in zip(of_output, given, strict=True)],
            create_graph=create_graph,
        )
        for out, of_output in zip(outputs, rows, strict=True)
    ]
    return _as_given([_as_given(b, is_tuple=is_tuple) for b in blocks], is_tuple=outputs_are_tuple)


def _all_rows(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], *, create_graph: bool
) -> list[list[Tensor]]:
    """For each output, and each input, the gradients of all elements, from one backward."""
    sizes = [out.numel() for out in outputs]
    flat = [out.reshape(-1) for out in outputs]
    found = _gradients(
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
        found = _gradients((element,), inputs, retain_graph=True, create_graph=create_graph)
        for place, (result, like) in enumerate(zip(found, inputs, strict=True)):
            if strict and result is None:
                raise RuntimeError(
                    f"Output {number} of the user-provided function is independent of input "
                    f"{place}. {_NOT_STRICT}"
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
    is_tuple, given = _as_tuple(inputs, "inputs", "jacobian")
    sizes = [x.numel() for x in given]
    outputs: tuple[Tensor, ...] = ()
    outputs_are_tuple = False

    def push(*directions: Tensor) -> list[Tensor]:
        nonlocal outputs, outputs_are_tuple
        with dual_level():
            duals = [
                make_dual(x, direction.view_as(x))
                for x, direction in zip(given, directions, strict=True)
            ]
            outputs_are_tuple, outputs = _as_tuple(func(*duals), OUTPUTS, "jacobian")
            pairs = [unpack_dual(out) for out in outputs]
        return [zeros_like(p.detach()) if t is None else t for p, t in pairs]

    found = run_mapped(push, _bases(given), sum(sizes))
    blocks = []
    for (tangents, batched), out in zip(found, outputs, strict=True):
        columns = tangents if batched else tangents.expand(sum(sizes), *out.shape)
        parts = columns.movedim(0, -1).split(sizes, -1)
        blocks.append(
            _as_given(
                [p.reshape(*out.shape, *x.shape) for p, x in zip(parts, given, strict=True)],
                is_tuple=is_tuple,
            )
        )
    return _as_given(blocks, is_tuple=outputs_are_tuple)


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
    is_tuple, given = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in (FORWARD, REVERSE):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode", got '
            f"{outer_jacobian_strategy!r}."
        )

    def one_number(*tensors: Tensor) -> Tensor:
        outputs_are_tuple, outputs = _as_tuple(func(*tensors), OUTPUTS, "hessian")
        _check_requires_grad(outputs, "outputs", strict=strict)
        _check_one_number("hessian", outputs, is_tuple=outputs_are_tuple)
        return outputs[0].squeeze()

    def slope(*tensors: Tensor) -> Any:
        if outer_jacobian_strategy == FORWARD:
            tensors = tuple(t.requires_grad_() for t in tensors)
        result = jacobian(one_number, tensors, create_graph=True)
        _check_requires_grad(result, "jacobian", strict=strict)
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

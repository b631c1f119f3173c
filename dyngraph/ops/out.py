"""out=: the results of a function, written into tensors that are given.

The function runs as it does without; what it returns is then checked, and assigned to the tensors.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from dyngraph import modes
from dyngraph.errors import InPlaceError
from dyngraph.tangents import are_carried, tangents_of
from dyngraph.tensor import Tensor
from dyngraph.views import counter_of
from dyngraph.writing import assign, check_out

OPERATORS = frozenset(
    """
    abs acos acosh add addcdiv addcmul all amax amin aminmax angle any argmax argmin asin asinh
    atan atan2 atanh avg_pool2d avg_pool3d bitwise_and bitwise_left_shift bitwise_not
    bitwise_or bitwise_right_shift bitwise_xor bmm ceil cholesky_inverse cholesky_solve clamp
    complex copysign cos cosh cummax cummin cumprod cumsum deg2rad digamma div dot eq erf erfc
    erfinv exp exp2 expm1 float_power floor floor_divide fmax fmin fmod frac frexp gcd ge gelu
    geqrf gt hardshrink heaviside hypot i0 igamma igammac inner isneginf isposinf kron
    kthvalue lcm le lerp lgamma linalg_det linalg_householder_product linalg_slogdet
    linalg_svdvals log log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp
    logical_and logical_not logical_or logical_xor logit logsigmoid logsumexp lt maximum mean
    minimum mm mul mv mvlgamma nan_to_num nansum ne neg nextafter normalize ormqr outer polar
    prod rad2deg reciprocal remainder round rsqrt sgn sigmoid sign signbit sin sinc sinh
    slice_scatter softmax softplus softshrink special_entr special_erfcx special_i0e
    special_i1 special_i1e special_log_ndtr special_ndtr special_ndtri special_xlog1py
    special_zeta sqrt square sub sum tan tanh tensordot threshold topk tril triu trunc vdot xlogy
    """.split()
)
"""The operators whose function, as `define` writes it, takes `out=`: those of PyTorch's that do."""

R = TypeVar("R")


def takes_out(function: Callable[..., R]) -> Callable[..., R]:
    """The function with a keyword `out` more, for functions that are not written by `define`.

    The functions that make tensors of no others, which have both `dtype` and `device`, take these
    from the tensor given.
    """
    signature = inspect.signature(function)
    makes = {"dtype", "device"} <= set(signature.parameters)

    @functools.wraps(function)
    def run(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is None:
            return function(*args, **kwargs)
        if makes:
            return _make_out(function, out, args, kwargs)
        return write_out(function, out, args, kwargs)

    run.__signature__ = _with_out(signature)  # type: ignore[attr-defined]
    return run


def _with_out(signature: inspect.Signature) -> inspect.Signature:
    out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Any")
    parameters = list(signature.parameters.values())
    keywords = [p for p in parameters if p.kind is p.VAR_KEYWORD]
    others = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
    return signature.replace(parameters=[*others, out, *keywords])


def write_out(
    function: Callable[..., Any],
    out: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    warns: bool = True,
) -> Any:
    """`function(*args, **kwargs)` written to `out`, a tensor, or a tuple of them for several
    results; returns these.

    Raises RuntimeError where the call would be recorded, where a tensor may not be written to, or
    has a narrower kind of dtype; then nothing is written. A tensor of another shape is resized.
    """
    where = function.__name__
    outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    if not all(isinstance(o, Tensor) for o in outs):
        raise TypeError(
            f"{where}(): argument 'out' must be Tensor or a tuple of Tensors, not "
            f"{type(out).__name__}. Make one by dg.empty(0)."
        )
    if modes.is_recording() and any(o._edge is not None for o in outs):
        raise InPlaceError.out(where)
    results = function(*args, **kwargs)
    made = (results,) if isinstance(results, Tensor) else tuple(results)
    if isinstance(results, Tensor) != isinstance(out, Tensor) or len(made) != len(outs):
        wanted = "Tensor" if isinstance(results, Tensor) else f"a tuple of {len(made)} Tensors"
        raise TypeError(f"{where}(): argument 'out' must be {wanted}, for its result.")
    if any(m is not None and m._edge is not None for m in made):
        raise InPlaceError.out(where)
    if are_carried() and any(t is not None and tangents_of(t) for t in (*outs, *made)):
        raise RuntimeError(
            f"Trying to use forward AD with {where} that does not support it because it is an out= "
            "function. Call it without out."
        )
    pairs = [(o, m) for o, m in zip(outs, made, strict=True) if m is not None]
    with modes.no_grad():
        for o, m in pairs:
            check_out(o, m)
        for o, m in pairs:
            shape = m._cell.held.shape
            if o._cell.held.shape != shape:
                if warns and o._cell.held.size:
                    warnings.warn(_RESIZED.format(list(o.shape), list(shape)), stacklevel=3)
                _resize(o, shape)
            assign(o, m, where, overlap=True)
    if isinstance(out, Tensor):
        return out
    return getattr(type(results), "_make", tuple)(outs)


_RESIZED = (
    "An output with one or more elements was resized since it had shape {}, which does not match "
    "the required output shape {}. This behavior is deprecated. Pass a tensor of this shape, or "
    "one without elements, such as dg.empty(0)."
)


def _resize(tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Gives the tensor another shape, which counts as no write: that of the values follows."""
    edge, version = tensor._edge, tensor._cell.version
    tensor._edge = None
    try:
        tensor.resize_(shape)
    finally:
        tensor._edge = edge
    if version is not None:
        root, family = counter_of(tensor)
        root.set_version(version, family)


def _make_out(
    function: Callable[..., Any], out: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """`write_out` of a function that makes a tensor, in the dtype and at the place of `out`."""
    if isinstance(out, Tensor):
        dtype = kwargs.get("dtype")
        if dtype is not None and dtype != out.dtype:
            raise RuntimeError(
                f"dtype {dtype} does not match dtype of out parameter ({out.dtype}). Leave it out."
            )
        kwargs = {**kwargs, "dtype": out.dtype, "device": kwargs.get("device") or out.device}
    return write_out(function, out, args, kwargs, warns=False)

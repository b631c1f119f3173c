"""In-place forms, `op_`, of the operators: each is its operator, written back.

See Note [Writing is computing and putting back].
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from dyngraph.dispatch import OPERANDS
from dyngraph.errors import InPlaceError
from dyngraph.ops.conversion import beside
from dyngraph.ops.dropouts import dropout
from dyngraph.ops.factory_arguments import read_size
from dyngraph.ops.filled import zeros
from dyngraph.ops.joining import cat
from dyngraph.ops.operator import UNSET
from dyngraph.ops.permutation import swapaxes, swapdims, t, transpose
from dyngraph.ops.placing import as_strided, fill
from dyngraph.ops.repetition import expand
from dyngraph.ops.shape import squeeze, unsqueeze
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, wrap
from dyngraph.viewing import contiguous_stride
from dyngraph.views import memory_of
from dyngraph.writing import assign, overwritten, snapshot, turn

FORMS: dict[str, str] = {
    "arithmetic": "abs absolute add addcdiv addcmul copysign div divide floor_divide fmod gcd "
    "lcm lerp mul multiply neg negative remainder sgn sign sub subtract true_divide",
    "trigonometry": "acos acosh arccos arccosh arcsin arcsinh arctan2 arctan arctanh asin asinh "
    "atan2 atan atanh cos cosh deg2rad rad2deg sin sinh tan tanh",
    "affine": "addbmm addmm addmv addr baddbmm",
    "comparison": "bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift "
    "bitwise_xor eq ge greater greater_equal gt le less less_equal logical_and "
    "logical_not logical_or logical_xor lt ne not_equal",
    "rounding": "ceil fix floor frac ldexp nextafter round trunc",
    "choosing": "clamp clamp_max clamp_min clip heaviside nan_to_num",
    "complexes": "conj_physical",
    "scans": "cumprod cumsum",
    "special": "digamma erf erfc erfinv lgamma logit sinc",
    "powers": "exp2 exp expm1 float_power hypot log10 log1p log2 log pow reciprocal rsqrt sqrt "
    "square xlogy",
    "gamma_functions": "igamma igammac mvlgamma polygamma",
    "bessel_functions": "i0",
    "slices": "index_add index_copy index_fill index_reduce",
    "indexing": "index_put",
    "masks": "masked_fill masked_scatter",
    "placing": "put",
    "activation": "sigmoid",
    "piecewise_linear": "relu",
    "norms": "renorm",
    "scattering": "scatter scatter_add scatter_reduce",
    "diagonals": "tril triu",
}
"""The operators that have an in-place form among the methods, by the file that they are in."""
FUNCTIONS = {"activation": "celu elu selu", "piecewise_linear": "hardtanh leaky_relu threshold"}
"""Those whose in-place form is a function only."""


def in_place(function: Callable[..., Any], doc: str = "") -> Callable[..., Tensor]:
    """The in-place form of an operator.

    It is written out with the operator's parameters, as a dispatcher is: passing them on by
    `*args, **kwargs` takes a microsecond.
    """
    name, signature = f"{function.__name__}_", _own_signature(function)
    others = [p for p in signature.parameters.values() if p.name != "input"]
    declared, passed = ["input"], ["snapshot(input)"]
    for p in others:
        if p.kind is p.KEYWORD_ONLY and "*" not in declared:
            declared.append("*")
        declared.append(p.name if p.default is p.empty else f"{p.name}=defaults[{p.name!r}]")
        passed.append(f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else p.name)
    scope = {
        "__name__": __name__,
        "assign": assign,
        "defaults": {p.name: p.default for p in others},
        "function": function,
        "snapshot": snapshot,
    }
    exec(
        f"def {name}({', '.join(declared)}):\n"
        f"    return assign(input, function({', '.join(passed)}), {name!r})",
        scope,
    )
    run = scope[name]
    run.__signature__ = signature
    run.__doc__ = doc or f"`{function.__name__}`, written to the tensor itself."
    return run


def _own_signature(function: Callable[..., Any]) -> inspect.Signature:
    signature = inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.name not in ("inplace", "out")]
    return signature.replace(parameters=kept)


def _turning(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The in-place form of an operator that shows the same memory in another shape."""

    def run(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return turn(input, function(input, *args, **kwargs))

    run.__name__ = run.__qualname__ = f"{function.__name__}_"
    run.__module__ = __name__
    run.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    run.__doc__ = f"`{function.__name__}` of the tensor itself: its shape changes, no value does."
    return run


squeeze_, unsqueeze_ = _turning(squeeze), _turning(unsqueeze)
t_, transpose_ = _turning(t), _turning(transpose)
swapaxes_, swapdims_ = _turning(swapaxes), _turning(swapdims)
as_strided_ = _turning(as_strided)


# --- whole values -----------------------------------------------------------------------------


def copy_(input: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Writes the values of `src`, broadcast and in the tensor's own dtype and place.

    >>> dg.zeros(2, 2).copy_(dg.tensor([1, 2]))
    tensor([[1., 2.],
            [1., 2.]])
    """
    if not isinstance(src, Tensor):
        raise TypeError(
            f"copy_(): argument 'src' must be Tensor, not {type(src).__name__}. Wrap it by "
            "dg.tensor(...), or use fill_() for a number."
        )
    if not _broadcasts(src._cell.held.shape, input._cell.held.shape):
        raise InPlaceError.shape("copy_", tuple(input.shape), tuple(src.shape))
    src = beside(src, input)
    return assign(input, overwritten(snapshot(input), src), "copy_")


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(n in (1, wanted) for n, wanted in pairs)


def fill_(input: Tensor, value: Any) -> Tensor:
    """Writes a number, or a tensor without dims, to every element.

    >>> dg.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    return assign(input, fill(snapshot(input), value), "fill_", overlap=True)


def zero_(input: Tensor) -> Tensor:
    """Writes 0 to every element.

    >>> dg.ones(2).zero_()
    tensor([0., 0.])
    """
    return fill_(input, 0)


# --- memory of another size -------------------------------------------------------------------


def resize_(input: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Makes the tensor show the first elements of its memory in another shape.

    Where the memory is too short, it is replaced by a longer one with zeros at the end, which no
    view may share. Raises RuntimeError for a tensor that requires grad.

    >>> dg.tensor([1, 2, 3, 4]).resize_(2)
    tensor([1, 2])
    """
    if input.requires_grad:
        raise RuntimeError(
            "cannot resize variables that require grad. Use reshape(), or write under no_grad() to "
            "a detach() of it."
        )
    shape = read_size("resize_", size, UNSET)
    if shape == input._cell.held.shape:
        return input
    count, (root, _) = int(np.prod(shape)), memory_of(input)
    if count <= root.array.size:
        return turn(input, as_strided(input, shape, contiguous_stride(shape)))
    cells = [reference() for reference, _ in root.views or ()]
    if any(cell is not None and cell is not input._cell for cell in cells):
        raise RuntimeError(
            f"resize_(): {count} elements do not fit the memory of {root.array.size}, which other "
            "tensors share. Make a new tensor, and copy_() the elements there."
        )
    flat = input.detach().reshape(-1)
    longer = cat([flat, zeros(count - flat.numel(), dtype=input.dtype, device=input.device)])
    version = input._cell.version
    input._cell, input._view = cell_of(longer.reshape(shape)._cell.array, version), None
    input._cell.count_write()
    return input


def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """`resize_` to the shape of another tensor."""
    return resize_(input, the_template.shape)


# --- Python functions -------------------------------------------------------------------------


def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replaces each element by `callable` of it, in Python: slow, for tensors without gradient.

    >>> dg.tensor([1.0, 2.0]).apply_(lambda v: v * 10)
    tensor([10., 20.])
    """
    return _mapped("apply_", input, (), callable)


def map_(input: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replaces each element by `callable` of it and of the other tensor's, in Python.

    >>> dg.tensor([1.0, 2.0]).map_(dg.tensor([3.0, 4.0]), lambda a, b: a * b)
    tensor([3., 8.])
    """
    return _mapped("map_", input, (tensor,), callable)


def map2_(input: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replaces each element by `callable` of it and of two other tensors', in Python."""
    return _mapped("map2_", input, (x, y), callable)


def _mapped(
    name: str, input: Tensor, others: tuple[Tensor, ...], function: Callable[..., Any]
) -> Tensor:
    if input.requires_grad or any(t.requires_grad for t in others):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() "
            "instead."
        )
    shape = tuple(input.shape)
    lists = [expand(t, shape).reshape(-1).tolist() for t in (input, *others)]
    values = np.array([function(*row) for row in zip(*lists, strict=True)])
    dtype = input.dtype.dtype
    made = wrap(jnp.asarray(values.astype(dtype).reshape(shape)))
    return assign(input, made, name)


def share_memory_(input: Tensor) -> Tensor:
    """The tensor itself: processes do not share JAX's arrays."""
    return input


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.dropout`, written to the tensor itself."""
    return dropout(input, p, train, inplace=True)


def detach_(input: Tensor) -> Tensor:
    """Takes the tensor out of its graph, as the method of this name does."""
    return input.detach_()


if TYPE_CHECKING:  # the forms are made below

    def __getattr__(name: str) -> Callable[..., Tensor]: ...


for _family, _names in (*FORMS.items(), *FUNCTIONS.items()):
    _module = importlib.import_module(f"dyngraph.ops.{_family}")
    for _name in _names.split():
        globals()[f"{_name}_"] = in_place(getattr(_module, _name))

_AUGMENTED = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}


def _augmented(write: Callable[..., Tensor]) -> Callable[..., Any]:
    """The method behind an augmented assignment, such as `+=`."""

    def run(input: Tensor, other: Any) -> Any:
        if not isinstance(other, (Tensor, *OPERANDS)):
            return NotImplemented
        return write(input, other)

    return run


AUGMENTED = {name: _augmented(globals()[f"{form}_"]) for name, form in _AUGMENTED.items()}
"""The in-place forms behind `+=`, `&=` and the others, by the operator's name in Python."""

_PUBLIC = """
    abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_
    asin_ asinh_ atan_ atanh_ ceil_ celu_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_
    cos_ cosh_ deg2rad_ detach_ dropout_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_ floor_ frac_
    gcd_ i0_ index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_
    rad2deg_ reciprocal_ relu_ resize_as_ round_ rsqrt_ selu_ sigmoid_ sin_ sinc_ sinh_ sqrt_
    square_ tan_ tanh_ threshold_ trunc_ xlogy_ zero_
"""
__all__ = [*_PUBLIC.split()]  # pyright: ignore[reportUnsupportedDunderAll]
METHODS = (
    *(f"{name}_" for names in FORMS.values() for name in names.split()),
    "apply_",
    "as_strided_",
    "copy_",
    "fill_",
    "map2_",
    "map_",
    "resize_",
    "resize_as_",
    "share_memory_",
    "squeeze_",
    "swapaxes_",
    "swapdims_",
    "t_",
    "transpose_",
    "unsqueeze_",
    "zero_",
)
"""The methods of Tensor that this file has."""

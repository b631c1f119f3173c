"""A sample call of every method of PyTorch's that writes into its tensor: what `op_` is tested on.

In a call a list of numbers stands for a tensor of them; everything else is passed on as it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import dyngraph as dg


class Call(NamedTuple):
    """The values to write into, and the arguments of the method."""

    values: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def call(values: Any, *args: Any, **kwargs: Any) -> Call:
    """A sample call."""
    return Call(values, args, kwargs)


def as_tensors(call: Call, *, leaves: bool = False) -> tuple[list[Any], dict[str, Any]]:
    """The call's arguments; those of floats as leaves that require grad, if asked for."""

    def convert(value: Any) -> Any:
        if not isinstance(value, list):
            return tuple(map(convert, value)) if isinstance(value, tuple) else value
        tensor = dg.tensor(value)
        return tensor.requires_grad_() if leaves and tensor.is_floating_point() else tensor

    kwargs = {name: convert(value) for name, value in call.kwargs.items()}
    return [convert(value) for value in call.args], kwargs


A = [[0.9, -0.6, 0.3], [-0.2, 0.7, -0.8]]
B = [[1.5, 0.4, -1.1], [2.5, -0.7, 0.6]]
ROW = [0.5, -1.5, 2.5]
SQUARE = [[0.9, -0.6, 0.3], [-0.2, 0.7, -0.8], [0.1, 0.4, 1.2]]
POSITIVE = [[1.3, 0.4, 2.2], [0.7, 1.9, 0.5]]
UNIT = [[0.2, 0.7, 0.4], [0.9, 0.3, 0.6]]
OVER_ONE = [[1.3, 1.4, 2.2], [1.7, 1.9, 3.5]]
COUNTS = [[4, 6, 2], [5, 9, 7]]
OTHER_COUNTS = [[2, 3, 4], [10, 6, 1]]
FLAGS = [[True, False, True], [False, False, True]]
COMPLEX = [1 + 2j, -0.5 + 0.5j]
BATCH = [[[0.5, 1.0], [-1.0, 0.2]], [[0.3, -0.4], [0.8, 1.1]]]
MATRIX = [[0.4, -0.9], [1.2, 0.3]]

# Methods whose value and gradient are those of the method of that name without the underscore.
DIFFERENTIABLE: dict[str, Call] = {
    "abs_": call(A),
    "absolute_": call(A),
    "acos_": call(A),
    "acosh_": call(OVER_ONE),
    "add_": call(A, ROW, alpha=2),
    "addbmm_": call(MATRIX, BATCH, BATCH, beta=0.5),
    "addcdiv_": call(A, B, POSITIVE, value=0.5),
    "addcmul_": call(A, B, ROW, value=2),
    "addmm_": call(MATRIX, MATRIX, MATRIX, alpha=3),
    "addmv_": call([0.5, 1.5], MATRIX, [1.0, -2.0]),
    "addr_": call(A, [1.0, 2.0], ROW),
    "arccos_": call(A),
    "arccosh_": call(OVER_ONE),
    "arcsin_": call(A),
    "arcsinh_": call(A),
    "arctan2_": call(A, B),
    "arctan_": call(A),
    "arctanh_": call(A),
    "asin_": call(A),
    "asinh_": call(A),
    "atan2_": call(A, B),
    "atan_": call(A),
    "atanh_": call(A),
    "baddbmm_": call(BATCH, BATCH, BATCH),
    "ceil_": call(A),
    "clamp_": call(A, -0.5, 0.5),
    "clamp_max_": call(A, 0.5),
    "clamp_min_": call(A, ROW),
    "clip_": call(A, min=-0.5),
    "copysign_": call(A, B),
    "cos_": call(A),
    "cosh_": call(A),
    "cumprod_": call(A, 1),
    "cumsum_": call(A, 0),
    "deg2rad_": call(A),
    "digamma_": call(POSITIVE),
    "div_": call(A, B),
    "divide_": call(A, 2.0),
    "erf_": call(A),
    "erfc_": call(A),
    "erfinv_": call(A),
    "exp2_": call(A),
    "exp_": call(A),
    "expm1_": call(A),
    "fix_": call(B),
    "floor_": call(B),
    "fmod_": call(B, POSITIVE),
    "frac_": call(B),
    "hypot_": call(A, B),
    "i0_": call(A),
    "index_add_": call(SQUARE, 0, [2, 0], A, alpha=2),
    "index_copy_": call(SQUARE, 0, [2, 0], A),
    "index_fill_": call(A, 1, [0, 2], -1.5),
    "index_put_": call(SQUARE, ([0, 0, 2], [1, 1, 0]), ROW, accumulate=True),
    "index_reduce_": call(SQUARE, 0, [2, 0], A, "amax"),
    "lerp_": call(A, B, UNIT),
    "lgamma_": call(POSITIVE),
    "log10_": call(POSITIVE),
    "log1p_": call(A),
    "log2_": call(POSITIVE),
    "log_": call(POSITIVE),
    "logit_": call(UNIT, 0.01),
    "masked_fill_": call(A, FLAGS, 3.0),
    "masked_scatter_": call(A, FLAGS, ROW),
    "mul_": call(A, ROW),
    "multiply_": call(A, B),
    "mvlgamma_": call(OVER_ONE, 2),
    "nan_to_num_": call([1.0, float("nan"), float("inf")], 0.5, 7.0),
    "neg_": call(A),
    "negative_": call(A),
    "polygamma_": call(POSITIVE, 1),
    "pow_": call(POSITIVE, B),
    "put_": call(A, [1, 4], [7.0, 8.0]),
    "rad2deg_": call(A),
    "reciprocal_": call(B),
    "relu_": call(A),
    "remainder_": call(B, POSITIVE),
    "renorm_": call(B, 2, 0, 1.0),
    "round_": call(B),
    "rsqrt_": call(POSITIVE),
    "scatter_": call(A, 1, [[2, 0], [0, 1]], [[5.0, 6.0], [7.0, 8.0]]),
    "scatter_add_": call(A, 1, [[2, 2, 0], [0, 1, 1]], B),
    "scatter_reduce_": call(A, 1, [[2, 2, 0], [0, 1, 1]], B, "sum"),
    "sigmoid_": call(A),
    "sign_": call(A),
    "sin_": call(A),
    "sinc_": call(A),
    "sinh_": call(A),
    "sqrt_": call(POSITIVE),
    "square_": call(A),
    "sub_": call(A, B, alpha=3),
    "subtract_": call(A, ROW),
    "tan_": call(A),
    "tanh_": call(A),
    "tril_": call(A),
    "triu_": call(A, 1),
    "true_divide_": call(A, POSITIVE),
    "trunc_": call(B),
    "xlogy_": call(A, POSITIVE),
}

# The same without a gradient worth comparing: integers, bools, and what PyTorch has no rule for.
WITHOUT_GRADIENT: dict[str, Call] = {
    "bitwise_and_": call(COUNTS, OTHER_COUNTS),
    "bitwise_left_shift_": call(COUNTS, 2),
    "bitwise_not_": call(FLAGS),
    "bitwise_or_": call(COUNTS, OTHER_COUNTS),
    "bitwise_right_shift_": call(COUNTS, [1, 0, 2]),
    "bitwise_xor_": call(FLAGS, [True, True, False]),
    "conj_physical_": call(COMPLEX),
    "eq_": call(A, 0.9),
    "floor_divide_": call(B, POSITIVE),
    "gcd_": call(COUNTS, OTHER_COUNTS),
    "ge_": call(A, B),
    "greater_": call(A, 0.5),
    "greater_equal_": call(COUNTS, OTHER_COUNTS),
    "gt_": call(A, B),
    "heaviside_": call([-1.0, 0.0, 2.0], [0.5, 0.5, 0.5]),
    "igamma_": call(POSITIVE, OVER_ONE),
    "igammac_": call(POSITIVE, OVER_ONE),
    "lcm_": call(COUNTS, OTHER_COUNTS),
    "ldexp_": call(A, [1, 2, 3]),
    "le_": call(A, B),
    "less_": call(A, 0.5),
    "less_equal_": call(COUNTS, OTHER_COUNTS),
    "logical_and_": call(COUNTS, FLAGS),
    "logical_not_": call(FLAGS),
    "logical_or_": call([0.0, 2.0, 0.0], [0.0, 0.0, 3.0]),
    "logical_xor_": call([0, 2, 0], [0, 1, 3]),
    "lt_": call(A, B),
    "ne_": call(A, 0.9),
    "nextafter_": call(A, B),
    "not_equal_": call(COUNTS, OTHER_COUNTS),
    "sgn_": call(COMPLEX),
}
TWINS = DIFFERENTIABLE | WITHOUT_GRADIENT

# Variants of these methods that behave in another way.
VARIANTS: dict[str, tuple[str, Call]] = {
    "add_ of a number": ("add_", call(COUNTS, 3)),
    "add_ of a scalar tensor": ("add_", call([2.0, 3.0], 0.5)),
    "clamp_ of integers": ("clamp_", call(COUNTS, 3, 6)),
    "copysign_ of a number": ("copysign_", call(A, -1.0)),
    "cumsum_ from the right": ("cumsum_", call(A, -1)),
    "div_ towards zero": ("div_", call([7.0, -7.0], 2, rounding_mode="trunc")),
    "index_put_ of one value": ("index_put_", call(A, ([0, 1],), [5.0])),
    "index_put_ of a mask": ("index_put_", call(A, (FLAGS,), [5.0, 6.0, 7.0])),
    "lerp_ by a number": ("lerp_", call(A, B, 0.25)),
    "mul_ of integers": ("mul_", call(COUNTS, OTHER_COUNTS)),
    "mul_ of complex": ("mul_", call(COMPLEX, 2j)),
    "pow_ by a number": ("pow_", call(A, 2)),
    "put_ accumulating": ("put_", call(A, [1, 1], [7.0, 8.0], accumulate=True)),
    "round_ to decimals": ("round_", call([1.26, -2.34], decimals=1)),
    "scatter_ of a number": ("scatter_", call(A, 0, [[1, 0, 1]], 4.0)),
    "scatter_ with reduce": ("scatter_", call(A, 0, [[1, 0, 1]], 4.0, reduce="multiply")),
    "scatter_reduce_ without itself": (
        "scatter_reduce_",
        call(A, 1, [[2, 2], [0, 1]], POSITIVE, "amax", include_self=False),
    ),
}

# Random methods, with the bounds of what they draw.
RANDOM: dict[str, tuple[tuple[Any, ...], float, float]] = {
    "bernoulli_": ((0.3,), 0, 1),
    "cauchy_": ((), -float("inf"), float("inf")),
    "exponential_": ((2.0,), 0, float("inf")),
    "geometric_": ((0.5,), 1, float("inf")),
    "log_normal_": ((), 0, float("inf")),
    "normal_": ((1.0, 2.0), -20, 20),
    "random_": ((3, 9), 3, 8),
    "uniform_": ((-1.0, 2.0), -1, 2),
}

# Methods which are tested one by one: they set values of their own, call Python for each element,
# want a 64-bit dtype, or change what the tensor is rather than its values.
ONE_BY_ONE = frozenset(
    "apply_ as_strided_ copy_ detach_ fill_ fill_diagonal_ float_power_ map_ map2_ requires_grad_"
    " resize_ resize_as_ set_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_ zero_".split()
)
# What PyTorch has besides belongs to sparse tensors and to shared memory.
NOT_HERE = frozenset(
    "resize_as_sparse_ share_memory_ sparse_resize_ sparse_resize_and_clear_".split()
)

"""What neural networks are made of: affine maps, normalisation, attention, losses, padding.

These are the functions of `dyngraph.nn.functional`. Normalisations and softmaxes of 16-bit inputs
are computed in float32 and cast back.

# Note [What normalisation saves]
Only its input: mean and deviation are computed again in backward, inside one kernel, where they
cost a pass over data that is read anyway. So second derivatives see them as functions of the input.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import dtypes
from dyngraph.ops.indexing import array_of, on_host, outside
from dyngraph.ops.linalg import rows
from dyngraph.ops.operator import define
from dyngraph.ops.pointwise import neg
from dyngraph.random import draw_key
from dyngraph.storage import Storage
from dyngraph.tensor import Tensor, canonical_dim, new_tensor

# --- shared -----------------------------------------------------------------------------------


def _wide(array: Any) -> Any:
    """16-bit floats as float32, anything else as it is."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 else array


def _require_float(where: str, array: Any) -> None:
    if not jnp.issubdtype(array.dtype, jnp.inexact):
        raise RuntimeError(
            f"{where}() is not implemented for {array.dtype}: expected a floating point dtype. "
            "Convert the input by .float()."
        )


def _axis(dim: int, ndim: int) -> Any:
    """`dim` counted from the front; a tensor without dims is reduced over none."""
    axis = canonical_dim(dim, ndim)
    return axis if ndim else ()


_REDUCTIONS = ("none", "mean", "sum")


def _reduced(loss: Any, reduction: str) -> Any:
    if reduction not in _REDUCTIONS:
        raise ValueError(
            f"{reduction} is not a valid value for reduction: expected 'none', 'mean' or 'sum'"
        )
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def _of_each(grad: Any, reduction: str, count: int) -> Any:
    """The gradient of each element's loss, from that of the reduced loss."""
    return grad / count if reduction == "mean" else grad


def _pair_size(self: Any, target: Any) -> int:
    return math.prod(np.broadcast_shapes(self.shape, target.shape))


def _warn_unequal(where: str, self: Any, target: Any) -> None:
    if self.shape != target.shape:
        warnings.warn(
            f"{where}: Using a target size ({list(target.shape)}) that is different to the input "
            f"size ({list(self.shape)}). This will likely lead to incorrect results due to "
            "broadcasting. Please ensure they have the same size.",
            UserWarning,
            stacklevel=2,
        )


# --- softmax ----------------------------------------------------------------------------------


def _softmax_input(where: str, self: Any, dtype: Any) -> Any:
    if dtype is not None:
        return self.astype(dtypes.as_dtype(dtype).dtype)
    _require_float(where, self)
    return self


def _softmax(self: Any, *, dim: int, dtype: Any = None) -> Any:
    self = _softmax_input("softmax", self, dtype)
    return jax.nn.softmax(_wide(self), axis=_axis(dim, self.ndim)).astype(self.dtype)


def _softmax_rule(grad: Any, result: Any, dim: int) -> Any:
    grad, wide = _wide(grad), _wide(result)
    axis = _axis(dim, grad.ndim)
    return wide * (grad - jnp.sum(grad * wide, axis, keepdims=True))


softmax = define(
    "softmax",
    _softmax,
    signature="self, dim, dtype=None",
    self=_softmax_rule,
    doc="""Exponentials along `dim`, scaled to sum to 1; `dtype` converts the input first.

    Raises RuntimeError for integers without `dtype`.

    >>> dg.softmax(dg.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """,
)


def _log_softmax(self: Any, *, dim: int, dtype: Any = None) -> Any:
    self = _softmax_input("log_softmax", self, dtype)
    return jax.nn.log_softmax(_wide(self), axis=_axis(dim, self.ndim)).astype(self.dtype)


def _log_softmax_rule(grad: Any, result: Any, dim: int) -> Any:
    grad, wide = _wide(grad), _wide(result)
    axis = _axis(dim, grad.ndim)
    return grad - jnp.exp(wide) * jnp.sum(grad, axis, keepdims=True)


log_softmax = define(
    "log_softmax",
    _log_softmax,
    signature="self, dim, dtype=None",
    self=_log_softmax_rule,
    doc="""The logarithm of `softmax`, without the underflow; `dtype` converts the input first.

    Raises RuntimeError for integers without `dtype`.

    >>> dg.log_softmax(dg.tensor([0.0, 0.0]), 0)
    tensor([-0.6931, -0.6931])
    """,
)


def softmin(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """The softmax of `-input`: the smallest value gets the largest share.

    >>> dg.nn.functional.softmin(dg.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """
    return softmax(neg(input), dim, dtype)


# --- activations with parameters --------------------------------------------------------------

threshold = define(
    "threshold",
    lambda self, threshold, value: jnp.where(
        self > threshold, self, jnp.asarray(value).astype(self.dtype)
    ),
    self=lambda grad, self, threshold: jnp.where(self > threshold, grad, 0),
    threshold=None,
    value=None,
    doc="""The input where it is above `threshold`, and `value` where it is not.

    >>> dg.threshold(dg.tensor([1.0, 3.0]), 2.0, 0.0)
    tensor([0., 3.])
    """,
)


def _halves(self: Any, dim: int) -> Any:
    axis = canonical_dim(dim, self.ndim)
    if not self.ndim or self.shape[axis] % 2:
        size = self.shape[axis] if self.ndim else 1
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {size}")
    return jnp.split(self, 2, axis)


def _glu(self: Any, *, dim: int = -1) -> Any:
    first, second = _halves(self, dim)
    return first * jax.nn.sigmoid(second)


def _glu_rule(grad: Any, self: Any, dim: int) -> Any:
    first, second = _halves(self, dim)
    gate = jax.nn.sigmoid(second)
    return jnp.concatenate([grad * gate, grad * first * gate * (1 - gate)], axis=dim)


glu = define(
    "glu",
    _glu,
    signature="self, dim=-1",
    self=_glu_rule,
    doc="""The first half of the input along `dim`, times the sigmoid of the second half.

    Dauphin et al. 2017, https://arxiv.org/abs/1612.08083. RuntimeError where the size is odd.

    >>> dg.nn.functional.glu(dg.tensor([4.0, 0.0]))
    tensor([2.])
    """,
)

# --- affine maps ------------------------------------------------------------------------------


def _product(self: Any, weight: Any) -> Any:
    """(..., k) and (m, k) give (..., m); a weight (k) gives (...)."""
    if self.dtype != weight.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {self.dtype} != {weight.dtype}. "
            "Convert one of them by .to()."
        )
    if weight.ndim not in (1, 2) or not self.ndim:
        raise RuntimeError(
            f"linear() expects a weight of shape (out, in) or (in), got {list(weight.shape)}, "
            f"and an input of shape (..., in), got {list(self.shape)}"
        )
    if self.shape[-1] != weight.shape[-1]:
        shape = (math.prod(self.shape[:-1]), self.shape[-1])
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({shape[0]}x{shape[1]} and "
            f"{weight.shape[-1]}x{1 if weight.ndim == 1 else weight.shape[0]})"
        )
    return self @ weight.T


def _affine(bias: Any, self: Any, weight: Any) -> Any:
    product = _product(self, weight)
    if bias.dtype != product.dtype:
        raise RuntimeError(
            f"linear() expects a bias of the input's dtype {product.dtype}, got {bias.dtype}. "
            "Convert it by .to()."
        )
    if bias.ndim > 1 or (bias.ndim and bias.shape[0] not in (1, product.shape[-1])):
        raise RuntimeError(
            f"The expanded size of the tensor ({product.shape[-1]}) must match the existing size "
            f"({bias.shape[-1]}) at non-singleton dimension {product.ndim - 1}.  Target sizes: "
            f"{list(product.shape)}.  Tensor sizes: {list(bias.shape)}"
        )
    return product + bias


def _linear_of_self(grad: Any, weight: Any) -> Any:
    weight = jnp.conj(weight)
    return grad @ weight if weight.ndim == 2 else grad[..., None] * weight


def _linear_of_weight(grad: Any, self: Any, weight_shape: Any) -> Any:
    if len(weight_shape) == 1:
        return grad.reshape(-1) @ jnp.conj(rows(self))
    return rows(grad).T @ jnp.conj(rows(self))


# The inputs stand in the order of addmm(bias, input, weight), as the edges of its node do.
_linear_rules: dict[str, Any] = {"self": _linear_of_self, "weight": _linear_of_weight}
_linear_bias = define(
    "linear", _affine, node="AddmmBackward0", bias=lambda grad: grad, **_linear_rules
)
_linear = define("linear", _product, node="MmBackward0", **_linear_rules)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The affine map `input @ weight.T + bias`: (..., in), (out, in) and (out) give (..., out).

    One node, named as the product it is: AddmmBackward0 with a bias, MmBackward0 without. Raises
    RuntimeError where shapes or dtypes do not fit.

    >>> dg.nn.functional.linear(dg.ones(2), dg.tensor([[1.0, 2.0]]), dg.tensor([0.5]))
    tensor([3.5000])
    """
    return _linear(input, weight) if bias is None else _linear_bias(bias, input, weight)


def _embedding_kernel(weight: Any, indices: Any, *, padding_idx: int, by_frequency: bool) -> Any:
    if weight.ndim != 2:
        raise RuntimeError(f"'weight' must be 2-D, got shape {list(weight.shape)}")
    if indices.dtype not in (np.int32, np.int64):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got {indices.dtype} instead. Convert it by .long()."
        )
    return weight[indices]


def _embedding_rule(
    grad: Any, indices: Any, weight_shape: Any, padding_idx: int, by_frequency: bool
) -> Any:
    flat, grad = indices.reshape(-1), grad.reshape(-1, weight_shape[1])
    if padding_idx >= 0:
        grad = jnp.where((flat == padding_idx)[:, None], 0, grad)
    if by_frequency:
        counts = jnp.zeros(weight_shape[0], grad.dtype).at[flat].add(1)
        grad = grad / counts[flat][:, None]
    return jnp.zeros(weight_shape, grad.dtype).at[flat].add(grad)


_embedding = define(
    "embedding",
    _embedding_kernel,
    signature="weight, indices, padding_idx, by_frequency",
    weight=_embedding_rule,
    indices=None,
)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight`, (count, size), at the positions `input`: (...) gives (..., size).

    The row `padding_idx` gets no gradient; `scale_grad_by_freq` divides by how often a row was
    read. Gradients are dense whatever `sparse` says. Raises IndexError for positions that are
    negative or too large.

    >>> table = dg.tensor([[0.0, 0.0], [1.0, 2.0]])
    >>> dg.nn.functional.embedding(dg.tensor([1, 0]), table)
    tensor([[1., 2.],
            [0., 0.]])
    """
    if max_norm is not None:
        raise NotImplementedError(
            "embedding() does not rescale rows in place: max_norm must be None. Rescale the weight "
            "under no_grad() before the call."
        )
    count = array_of(weight).shape[0]
    if padding_idx is None:
        padding_idx = -1
    elif not -count <= padding_idx < count:
        raise AssertionError(
            f"Padding_idx must be within num_embeddings: got {padding_idx} for {count} rows"
        )
    else:
        padding_idx %= count
    bad = outside(input, 0, count)
    if bad is not None:
        raise IndexError(
            f"index out of range in self: index {bad} is out of bounds for {count} rows of weight"
        )
    return _embedding(weight, input, padding_idx, bool(scale_grad_by_freq))


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Class numbers as rows of zeros with a one: (...) gives (..., num_classes), integers.

    Without `num_classes` there are as many as the largest number asks for. Raises RuntimeError for
    numbers that are no class.

    >>> dg.nn.functional.one_hot(dg.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    array = array_of(tensor)
    if array.dtype.kind not in "iu":
        raise RuntimeError(
            f"one_hot is only applicable to index tensor of type LongTensor, got {array.dtype}. "
            "Convert it by .long()."
        )
    bad = outside(tensor, 0, np.iinfo(np.int32).max)
    if bad is not None:
        raise RuntimeError(f"Class values must be non-negative, got {bad}.")
    if num_classes < 0:
        if not array.size:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        num_classes = int(on_host("one_hot without num_classes", tensor).max()) + 1
    elif (bad := outside(tensor, 0, num_classes)) is not None:
        raise RuntimeError(
            f"Class values must be smaller than num_classes: got {bad} for {num_classes} classes."
        )
    return _one_hot(tensor, num_classes)


_one_hot = define(
    "one_hot",
    lambda self, *, num_classes: jax.nn.one_hot(
        self, num_classes, dtype=dtypes.default_int().dtype
    ),
    signature="self, num_classes",
    differentiable=False,
)

# --- dropout ----------------------------------------------------------------------------------


def _dropped(values: Any, key: Any, p: Any) -> Any:
    """Values times 1 / (1 - p), or 0 with probability p: linear in them, so its own derivative."""
    keep = 1 - jnp.asarray(p, np.float32)
    scale = jnp.where(keep > 0, 1 / jnp.where(keep > 0, keep, 1), 0)
    mask = jax.random.bernoulli(jax.random.wrap_key_data(key), keep, values.shape)
    return jnp.where(mask, values * scale.astype(values.dtype), 0)


# The mask is not saved, but drawn again from its key.
_dropout = define(
    "dropout",
    lambda self, key, p: _dropped(self, key, p),
    node="NativeDropoutBackward0",
    self=lambda grad, key, p: _dropped(grad, key, p),
    key=None,
    p=None,
)


def _draw() -> Tensor:
    """A fresh key as the integers it is made of, which are saved as any other tensor is."""
    return new_tensor(Storage(jax.random.key_data(draw_key())))


def _check_probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each element with probability `p` and scales the others by 1 / (1 - p).

    Without `training` it is the input itself. Draws from the default generator. Raises ValueError
    for a `p` that is no probability.

    >>> dg.nn.functional.dropout(dg.ones(3), 0.5, training=False)
    tensor([1., 1., 1.])
    """
    _check_probability(p)
    if not training or p == 0:
        return input
    return _dropout(input, _draw(), float(p))


# --- normalisation ----------------------------------------------------------------------------


def _normalized(wide: Any, axes: Any, eps: Any) -> tuple[Any, Any]:
    """`wide` with mean 0 and deviation 1 over `axes`, and what it was scaled by."""
    centered = wide - wide.mean(axes, keepdims=True)
    scale = jax.lax.rsqrt((centered * centered).mean(axes, keepdims=True) + eps)
    return centered * scale, scale


def _normalized_grad(grad: Any, normal: Any, scale: Any, axes: Any) -> Any:
    """The gradient of what was normalised, from that of the result."""
    # Ioffe and Szegedy 2015, https://arxiv.org/abs/1502.03167, section 3, with all terms collected.
    along = (grad * normal).mean(axes, keepdims=True)
    return scale * (grad - grad.mean(axes, keepdims=True) - normal * along)


def _last_dims(where: str, self: Any, shape: Sequence[int], *parameters: Any) -> tuple[int, ...]:
    _require_float(where, self)
    if not shape or self.ndim < len(shape) or self.shape[self.ndim - len(shape) :] != tuple(shape):
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape "
            f"[*{''.join(f', {n}' for n in shape)}], but got input of size{list(self.shape)}"
        )
    for parameter in parameters:
        if parameter is not None and parameter.shape != tuple(shape):
            raise RuntimeError(
                "Expected weight and bias to be of same shape as normalized_shape, but got "
                f"{list(parameter.shape)} and normalized_shape = {list(shape)}"
            )
    return tuple(range(self.ndim - len(shape), self.ndim))


def _layer_norm(
    self: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5, *, normalized_shape: Any
) -> Any:
    axes = _last_dims("layer_norm", self, normalized_shape, weight, bias)
    out, _ = _normalized(_wide(self), axes, eps)
    out = out if weight is None else out * weight
    return (out if bias is None else out + bias).astype(self.dtype)


def _layer_norm_rule(grad: Any, self: Any, weight: Any, eps: Any, normalized_shape: Any) -> Any:
    axes = _last_dims("layer_norm", self, normalized_shape)
    normal, scale = _normalized(_wide(self), axes, eps)
    return _normalized_grad(grad if weight is None else grad * weight, normal, scale, axes)


def _as_shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


_native_layer_norm = define(
    "layer_norm",
    _layer_norm,
    signature="self, normalized_shape, weight, bias, eps",
    node="NativeLayerNormBackward0",
    self=_layer_norm_rule,
    weight=lambda grad, self, eps, normalized_shape: (
        grad * _normalized(_wide(self), _last_dims("layer_norm", self, normalized_shape), eps)[0]
    ),
    bias=lambda grad: grad,
    eps=None,
)


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The input with mean 0 and variance 1 over its last dims, times `weight` plus `bias`.

    `normalized_shape` names these dims by their sizes, and is the shape of `weight` and `bias`. Ba
    et al. 2016, https://arxiv.org/abs/1607.06450. Raises RuntimeError where shapes do not fit.

    >>> dg.layer_norm(dg.tensor([1.0, 3.0]), (2,))
    tensor([-1.0000,  1.0000])
    """
    return _native_layer_norm(input, _as_shape(normalized_shape), weight, bias, eps)


def _rms(self: Any, normalized_shape: Any, eps: Any, weight: Any = None) -> tuple[Any, Any, Any]:
    """The input over its root mean square, what it was multiplied by, and the axes."""
    axes = _last_dims("rms_norm", self, normalized_shape, weight)
    wide = _wide(self)
    if eps is None:
        eps = jnp.finfo(self.dtype).eps
    scale = jax.lax.rsqrt((wide * wide).mean(axes, keepdims=True) + eps)
    return wide * scale, scale, axes


def _rms_norm(self: Any, weight: Any = None, eps: Any = None, *, normalized_shape: Any) -> Any:
    out, _, _ = _rms(self, normalized_shape, eps, weight)
    return (out if weight is None else out * weight).astype(self.dtype)


def _rms_norm_rule(grad: Any, self: Any, weight: Any, eps: Any, normalized_shape: Any) -> Any:
    normal, scale, axes = _rms(self, normalized_shape, eps)
    grad = grad if weight is None else grad * weight
    return scale * (grad - normal * (grad * normal).mean(axes, keepdims=True))


_native_rms_norm = define(
    "rms_norm",
    _rms_norm,
    signature="self, normalized_shape, weight, eps",
    self=_rms_norm_rule,
    weight=lambda grad, self, eps, normalized_shape: grad * _rms(self, normalized_shape, eps)[0],
    eps=None,
)


def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """The input over the root of its mean square over its last dims, times `weight`.

    `eps` is added to the mean square; by default it is that of the dtype. Zhang and Sennrich 2019,
    https://arxiv.org/abs/1910.07467. Raises RuntimeError where shapes do not fit.

    >>> dg.rms_norm(dg.tensor([3.0, 3.0]), (2,))
    tensor([1., 1.])
    """
    return _native_rms_norm(input, _as_shape(normalized_shape), weight, eps)


def _channels(self: Any, *parameters: Any) -> tuple[tuple[int, ...], list[Any]]:
    """All axes but the second, and parameters of one value a channel, made to broadcast."""
    if self.ndim < 2:
        raise ValueError(
            f"expected an input of shape (batch, channels, ...), got {list(self.shape)}"
        )
    for parameter in parameters:
        if parameter is not None and parameter.shape != (self.shape[1],):
            raise RuntimeError(
                "expected weight, bias and running statistics to contain "
                f"{self.shape[1]} elements, one a channel, got shape {list(parameter.shape)}"
            )
    axes = (0, *range(2, self.ndim))
    return axes, [_a_channel(p, self.ndim) for p in parameters]


def _a_channel(parameter: Any, ndim: int) -> Any:
    return None if parameter is None else parameter.reshape(1, -1, *[1] * (ndim - 2))


def _batch_norm(self: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5) -> Any:
    _require_float("batch_norm", self)
    axes, (weight, bias) = _channels(self, weight, bias)
    if self.size == self.shape[1]:
        raise ValueError(
            "Expected more than 1 value per channel when training, got input size "
            f"{list(self.shape)}"
        )
    out, _ = _normalized(_wide(self), axes, eps)
    out = out if weight is None else out * weight
    return (out if bias is None else out + bias).astype(self.dtype)


def _batch_norm_rule(grad: Any, self: Any, weight: Any, eps: Any) -> Any:
    axes, (weight,) = _channels(self, weight)
    normal, scale = _normalized(_wide(self), axes, eps)
    return _normalized_grad(grad if weight is None else grad * weight, normal, scale, axes)


def _sum_to_channels(grad: Any) -> Any:
    return grad.sum((0, *range(2, grad.ndim)))


_batch_norm_training = define(
    "batch_norm",
    _batch_norm,
    node="NativeBatchNormBackward0",
    self=_batch_norm_rule,
    weight=lambda grad, self, eps: _sum_to_channels(
        grad * _normalized(_wide(self), _channels(self)[0], eps)[0]
    ),
    bias=_sum_to_channels,
    eps=None,
)


def _with_statistics(self: Any, mean: Any, var: Any, eps: Any) -> tuple[Any, Any]:
    _, (mean, var) = _channels(self, mean, var)
    scale = jax.lax.rsqrt(_wide(var) + eps)
    return (_wide(self) - mean) * scale, scale


def _batch_norm_eval(
    self: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    eps: Any = 1e-5,
) -> Any:
    _require_float("batch_norm", self)
    out, _ = _with_statistics(self, running_mean, running_var, eps)
    _, (weight, bias) = _channels(self, weight, bias)
    out = out if weight is None else out * weight
    return (out if bias is None else out + bias).astype(self.dtype)


def _batch_norm_eval_rule(grad: Any, running_var: Any, weight: Any, eps: Any) -> Any:
    scale = jax.lax.rsqrt(_wide(running_var) + eps)
    return grad * _a_channel(scale if weight is None else scale * weight, grad.ndim)


_batch_norm_fixed = define(
    "batch_norm",
    _batch_norm_eval,
    node="NativeBatchNormBackward0",
    self=_batch_norm_eval_rule,
    running_mean=None,
    running_var=None,
    weight=lambda grad, self, running_mean, running_var, eps: _sum_to_channels(
        grad * _with_statistics(self, running_mean, running_var, eps)[0]
    ),
    bias=_sum_to_channels,
    eps=None,
)


@jax.jit
def _moved_statistics(array: Any, mean: Any, var: Any, momentum: Any) -> tuple[Any, Any]:
    """Running mean and variance after a batch; the variance is the unbiased one."""
    axes = (0, *range(2, array.ndim))
    wide = _wide(array)
    count = array.size // array.shape[1]
    new_var = wide.var(axes) * (count / (count - 1))
    return (
        ((1 - momentum) * mean + momentum * wide.mean(axes)).astype(mean.dtype),
        ((1 - momentum) * var + momentum * new_var).astype(var.dtype),
    )


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of (batch, channels, ...) with mean 0 and variance 1, by `weight` plus `bias`.

    When `training`, by the batch's own mean and variance, of which `momentum` goes into the running
    ones, in place; otherwise by the running ones. Ioffe and Szegedy 2015,
    https://arxiv.org/abs/1502.03167. Raises ValueError for a single value a channel in training,
    RuntimeError where shapes do not fit.

    >>> x = dg.tensor([[1.0], [3.0]])
    >>> dg.nn.functional.batch_norm(x, None, None, training=True).flatten()
    tensor([-1.0000,  1.0000])
    """
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError(
                "Expected running_mean and running_var to be defined when training=False. Pass "
                "them, or training=True."
            )
        return _batch_norm_fixed(input, running_mean, running_var, weight, bias, eps)
    result = _batch_norm_training(input, weight, bias, eps)
    if running_mean is not None and running_var is not None:
        mean, var = running_mean._cell, running_var._cell
        new_mean, new_var = _moved_statistics(input._cell.array, mean.array, var.array, momentum)
        mean.write(new_mean)
        var.write(new_var)
    return result


def _groups(self: Any, num_groups: int) -> Any:
    if self.ndim < 2 or self.shape[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(self.shape)} and num_groups={num_groups}"
        )
    return _wide(self).reshape(self.shape[0], num_groups, -1)


def _group_norm(
    self: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5, *, num_groups: int
) -> Any:
    _require_float("group_norm", self)
    out = _normalized(_groups(self, num_groups), 2, eps)[0].reshape(self.shape)
    _, (weight, bias) = _channels(self, weight, bias)
    out = out if weight is None else out * weight
    return (out if bias is None else out + bias).astype(self.dtype)


def _group_norm_rule(grad: Any, self: Any, weight: Any, eps: Any, num_groups: int) -> Any:
    normal, scale = _normalized(_groups(self, num_groups), 2, eps)
    if weight is not None:
        grad = grad * _a_channel(weight, grad.ndim)
    return _normalized_grad(grad.reshape(normal.shape), normal, scale, 2).reshape(self.shape)


_native_group_norm = define(
    "group_norm",
    _group_norm,
    signature="self, num_groups, weight, bias, eps",
    node="NativeGroupNormBackward0",
    self=_group_norm_rule,
    weight=lambda grad, self, eps, num_groups: _sum_to_channels(
        grad * _normalized(_groups(self, num_groups), 2, eps)[0].reshape(grad.shape)
    ),
    bias=_sum_to_channels,
    eps=None,
)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Groups of channels of (batch, channels, ...) with mean 0 and variance 1 in each sample.

    `weight` and `bias` have one value a channel. Wu and He 2018, https://arxiv.org/abs/1803.08494.
    Raises RuntimeError where the groups do not divide the channels.

    >>> dg.group_norm(dg.tensor([[1.0, 3.0, 5.0, 5.0]]), 2)
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
    """
    return _native_group_norm(input, num_groups, weight, bias, eps)


def _safe_norm(values: Any, dim: int, p: float = 2.0) -> Any:
    """The p-norm along `dim`, which it keeps, with gradient 0 at 0."""
    size = jnp.abs(values)
    if p == math.inf:
        return size.max(dim, keepdims=True)
    if p == 1:
        return size.sum(dim, keepdims=True)
    nonzero = jnp.where(size == 0, 1, size)
    total = jnp.where(size == 0, 0, nonzero * nonzero if p == 2 else nonzero**p)
    total = total.sum(dim, keepdims=True)
    some = jnp.where(total == 0, 1, total)
    return jnp.where(total == 0, 0, jnp.sqrt(some) if p == 2 else some ** (1 / p))


def _normalize(self: Any, eps: Any = 1e-12, *, p: float = 2.0, dim: int = 1) -> Any:
    return self / jnp.maximum(_safe_norm(self, canonical_dim(dim, self.ndim), p), eps)


normalize = define(
    "normalize",
    _normalize,
    signature="self, p=2.0, dim=1, eps=1e-12",
    eps=None,
    doc="""The input over its `p`-norm along `dim`, or over `eps` where that is larger.

    >>> dg.nn.functional.normalize(dg.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """,
)


def _cosine(first: Any, second: Any, eps: Any, *, dim: int) -> Any:
    _require_float("cosine_similarity", first)
    first, second = jnp.broadcast_arrays(first, second)
    axis = canonical_dim(dim, first.ndim)
    first = first / jnp.maximum(_safe_norm(first, axis), eps)
    second = second / jnp.maximum(_safe_norm(second, axis), eps)
    return (first * second).sum(axis)


_cosine_similarity = define(
    "cosine_similarity", _cosine, signature="first, second, dim, eps", eps=None
)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`; other dims broadcast.

    A norm below `eps` counts as `eps`, so that with a vector of zeros it is 0.

    >>> dg.cosine_similarity(dg.tensor([[1.0, 0.0]]), dg.tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """
    return _cosine_similarity(x1, x2, dim, eps)


# --- padding ----------------------------------------------------------------------------------


def _pad_pairs(pad: Sequence[int], ndim: int) -> list[tuple[int, int]]:
    """(before, after) for each dim, from PyTorch's list, which begins at the last dim."""
    if len(pad) % 2 or len(pad) > 2 * ndim:
        raise RuntimeError(
            f"Padding length should be even and at most twice the number of dims ({ndim}), got "
            f"{list(pad)}"
        )
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    return [(0, 0)] * (ndim - len(pairs)) + pairs[::-1]


def _pad_constant(self: Any, value: Any, *, pad: Any) -> Any:
    widths = [(a, b, 0) for a, b in _pad_pairs(pad, self.ndim)]
    return jax.lax.pad(self, jnp.asarray(value).astype(self.dtype), widths)


_constant_pad = define(
    "constant_pad_nd",
    _pad_constant,
    signature="self, pad, value",
    self=lambda grad, pad: _pad_constant(grad, 0, pad=[-n for n in pad]),
    value=None,
)

_PAD_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _pad_otherwise(self: Any, *, pad: Any, mode: str) -> Any:
    pairs = _pad_pairs(pad, self.ndim)
    for dim, (pair, size) in enumerate(zip(pairs, self.shape, strict=True)):
        limit = {"reflect": size - 1, "circular": size}.get(mode)
        if limit is not None and max(pair) > limit:
            raise RuntimeError(
                f"Padding size should be less than the corresponding input dimension, but got: "
                f"padding {pair} at dimension {dim} of input {list(self.shape)}"
            )
    cut = tuple(
        slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, self.shape, strict=True)
    )
    wide = [(max(a, 0), max(b, 0)) for a, b in pairs]
    return jnp.pad(self[cut], wide, mode=_PAD_MODES[mode])


_pad_by_mode = define("pad", _pad_otherwise, signature="self, pad, mode")


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Tensor:
    """Adds elements at both ends of the last dims; negative widths take elements away.

    `pad` is (before, after) of the last dim, then of the one before, and so on. `mode`: constant
    (`value`, by default 0), reflect, replicate or circular. Raises RuntimeError where a reflection
    is wider than its dim.

    >>> dg.nn.functional.pad(dg.tensor([1.0, 2.0]), (1, 2), value=9.0)
    tensor([9., 1., 2., 9., 9.])
    """
    if mode == "constant":
        return _constant_pad(input, tuple(pad), 0 if value is None else value)
    if mode not in _PAD_MODES:
        raise NotImplementedError(
            f"Unrecognised padding mode {mode}: expected constant, reflect, replicate or circular"
        )
    if value is not None and value != 0:
        raise ValueError(f'Padding mode "{mode}" doesn\'t take in value argument, got {value}')
    return _pad_by_mode(input, tuple(pad), mode)


# --- losses: numbers --------------------------------------------------------------------------


def _mse(self: Any, target: Any, *, reduction: str = "mean") -> Any:
    _warn_unequal("mse_loss", self, target)
    difference = self - target
    return _reduced(difference * difference, reduction)


def _mse_rule(grad: Any, self: Any, target: Any, reduction: str) -> Any:
    return _of_each(grad, reduction, _pair_size(self, target)) * 2 * (self - target)


mse_loss = define(
    "mse_loss",
    _mse,
    signature="self, target, reduction='mean'",
    self=_mse_rule,
    target=lambda grad, self, target, reduction: -_mse_rule(grad, self, target, reduction),
    doc="""Squared differences, as their mean, their sum, or each ("none").

    Raises ValueError for another `reduction`; warns where the shapes differ.

    >>> dg.nn.functional.mse_loss(dg.tensor([1.0, 2.0]), dg.tensor([1.0, 4.0]))
    tensor(2.)
    """,
)


def _l1(self: Any, target: Any, *, reduction: str = "mean") -> Any:
    _warn_unequal("l1_loss", self, target)
    return _reduced(jnp.abs(self - target), reduction)


def _l1_rule(grad: Any, self: Any, target: Any, reduction: str) -> Any:
    return _of_each(grad, reduction, _pair_size(self, target)) * jnp.sign(self - target)


l1_loss = define(
    "l1_loss",
    _l1,
    signature="self, target, reduction='mean'",
    self=_l1_rule,
    target=lambda grad, self, target, reduction: -_l1_rule(grad, self, target, reduction),
    doc="""Absolute differences, as their mean, their sum, or each ("none"); gradient 0 at 0.

    >>> dg.nn.functional.l1_loss(dg.tensor([1.0, 2.0]), dg.tensor([1.0, 4.0]))
    tensor(1.)
    """,
)


def _smooth_l1(self: Any, target: Any, beta: Any = 1.0, *, reduction: str = "mean") -> Any:
    _warn_unequal("smooth_l1_loss", self, target)
    size = jnp.abs(self - target)
    near = 0.5 * size * size / jnp.where(beta == 0, 1, beta)
    return _reduced(jnp.where(size < beta, near, size - 0.5 * beta), reduction)


def _smooth_l1_rule(grad: Any, self: Any, target: Any, beta: Any, reduction: str) -> Any:
    difference = self - target
    slope = jnp.where(
        jnp.abs(difference) < beta,
        difference / jnp.where(beta == 0, 1, beta),
        jnp.sign(difference),
    )
    return _of_each(grad, reduction, difference.size) * slope


smooth_l1_loss = define(
    "smooth_l1_loss",
    _smooth_l1,
    signature="self, target, reduction='mean', beta=1.0",
    self=_smooth_l1_rule,
    target=lambda grad, self, target, beta, reduction: (
        -_smooth_l1_rule(grad, self, target, beta, reduction)
    ),
    beta=None,
    doc="""Squared differences over `2 * beta` where they are below `beta`, else absolute ones.

    Girshick 2015, https://arxiv.org/abs/1504.08083.

    >>> dg.nn.functional.smooth_l1_loss(dg.tensor([1.0, 2.0]), dg.tensor([1.0, 4.0]), "none")
    tensor([0.0000, 1.5000])
    """,
)


def _huber(self: Any, target: Any, delta: Any = 1.0, *, reduction: str = "mean") -> Any:
    _warn_unequal("huber_loss", self, target)
    size = jnp.abs(self - target)
    return _reduced(
        jnp.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta)), reduction
    )


def _huber_rule(grad: Any, self: Any, target: Any, delta: Any, reduction: str) -> Any:
    slope = jnp.clip(self - target, -delta, delta)
    return _of_each(grad, reduction, slope.size) * slope


huber_loss = define(
    "huber_loss",
    _huber,
    signature="self, target, reduction='mean', delta=1.0",
    self=_huber_rule,
    target=lambda grad, self, target, delta, reduction: (
        -_huber_rule(grad, self, target, delta, reduction)
    ),
    delta=None,
    doc="""Half the squared difference up to `delta`, and a line of slope `delta` beyond.

    Huber 1964, https://doi.org/10.1214/aoms/1177703732.

    >>> dg.nn.functional.huber_loss(dg.tensor([1.0, 2.0]), dg.tensor([1.0, 4.0]), "none")
    tensor([0.0000, 1.5000])
    """,
)

# --- losses: probabilities --------------------------------------------------------------------


def _check_bce(where: str, self: Any, target: Any) -> None:
    if self.shape != target.shape:
        raise ValueError(
            f"{where}: Using a target size ({list(target.shape)}) that is different to the input "
            f"size ({list(self.shape)}) is deprecated. Please ensure they have the same size."
        )


def _bce(self: Any, target: Any, weight: Any = None, *, reduction: str = "mean") -> Any:
    _check_bce("binary_cross_entropy", self, target)
    log_p = jnp.maximum(jnp.log(self), -100)
    log_q = jnp.maximum(jnp.log1p(-self), -100)
    loss = -(target * log_p + (1 - target) * log_q)
    return _reduced(loss if weight is None else loss * weight, reduction)


def _bce_rule(grad: Any, self: Any, target: Any, weight: Any, reduction: str) -> Any:
    slope = (self - target) / jnp.maximum((1 - self) * self, 1e-12)
    slope = slope if weight is None else slope * weight
    return _of_each(grad, reduction, slope.size) * slope


def _bce_target_rule(grad: Any, self: Any, weight: Any, reduction: str) -> Any:
    slope = jnp.maximum(jnp.log1p(-self), -100) - jnp.maximum(jnp.log(self), -100)
    slope = slope if weight is None else slope * weight
    return _of_each(grad, reduction, slope.size) * slope


binary_cross_entropy = define(
    "binary_cross_entropy",
    _bce,
    signature="self, target, weight=None, reduction='mean'",
    self=_bce_rule,
    target=_bce_target_rule,
    weight=None,
    doc="""`-(target * log(input) + (1 - target) * log(1 - input))`, for probabilities as input.

    Logarithms count as at least -100. Raises ValueError where the shapes differ; for scores rather
    than probabilities take `binary_cross_entropy_with_logits`.

    >>> dg.nn.functional.binary_cross_entropy(dg.tensor([0.5]), dg.tensor([1.0]))
    tensor(0.6931)
    """,
)


def _bce_logits(
    self: Any, target: Any, weight: Any = None, pos_weight: Any = None, *, reduction: str = "mean"
) -> Any:
    _check_bce("binary_cross_entropy_with_logits", self, target)
    balance = 1 if pos_weight is None else 1 + (pos_weight - 1) * target
    loss = (1 - target) * self + balance * jax.nn.softplus(-self)
    return _reduced(loss if weight is None else loss * weight, reduction)


def _bce_logits_rule(
    grad: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: str
) -> Any:
    share = target if pos_weight is None else pos_weight * target
    slope = (share + 1 - target) * jax.nn.sigmoid(self) - share
    slope = slope if weight is None else slope * weight
    return _of_each(grad, reduction, self.size) * slope


def _bce_logits_target_rule(
    grad: Any, self: Any, weight: Any, pos_weight: Any, reduction: str
) -> Any:
    slope = -self if pos_weight is None else (pos_weight - 1) * jax.nn.softplus(-self) - self
    slope = slope if weight is None else slope * weight
    return _of_each(grad, reduction, self.size) * slope


binary_cross_entropy_with_logits = define(
    "binary_cross_entropy_with_logits",
    _bce_logits,
    signature="self, target, weight=None, reduction='mean', pos_weight=None",
    self=_bce_logits_rule,
    target=_bce_logits_target_rule,
    weight=None,
    pos_weight=None,
    doc="""`binary_cross_entropy` of the input's sigmoid, without its overflow.

    `pos_weight` weighs the targets that are 1. Raises ValueError where the shapes differ.

    >>> loss = dg.nn.functional.binary_cross_entropy_with_logits
    >>> loss(dg.tensor([0.0]), dg.tensor([1.0]))
    tensor(0.6931)
    """,
)


def _kl_div(self: Any, target: Any, *, reduction: str = "mean", log_target: bool = False) -> Any:
    if log_target:
        loss = jnp.exp(target) * (target - self)
    else:
        loss = jax.scipy.special.xlogy(target, target) - target * self
    if reduction == "batchmean":
        return loss.sum() / (loss.shape[0] if loss.ndim else 1)
    return _reduced(loss, reduction)


def _kl_div_rule(grad: Any, target: Any, self_shape: Any, reduction: str, log_target: bool) -> Any:
    shape = np.broadcast_shapes(self_shape, target.shape)
    if reduction == "batchmean":
        grad = grad / (shape[0] if shape else 1)
    grad = jnp.broadcast_to(_of_each(grad, reduction, math.prod(shape)), shape)
    return -grad * (jnp.exp(target) if log_target else target)


kl_div = define(
    "kl_div",
    _kl_div,
    signature="self, target, reduction='mean', log_target=False",
    self=_kl_div_rule,
    doc="""`target * (log(target) - input)`: the divergence from log-probabilities `input`.

    With `log_target` the target is one of log-probabilities too. `reduction="batchmean"` is the
    divergence a sample; "mean" divides by all elements. Kullback and Leibler 1951.

    >>> dg.nn.functional.kl_div(dg.zeros(1, 2), dg.ones(1, 2), reduction="batchmean")
    tensor(0.)
    """,
)

# --- losses: classes --------------------------------------------------------------------------


def _class_mask(target: Any, classes: int, axis: int) -> Any:
    """Where an input (batch, classes, ...) stands at its target's class."""
    shape = [1] * (target.ndim + 1)
    shape[axis] = classes
    return jnp.expand_dims(target, axis) == jnp.arange(classes, dtype=target.dtype).reshape(shape)


def _class_weights(self_shape: Any, target: Any, weight: Any, ignore_index: int, dtype: Any) -> Any:
    """The weight of each target: 0 where it is ignored."""
    counts = target != ignore_index
    if weight is None:
        return counts.astype(dtype)
    return jnp.where(counts, weight[jnp.where(counts, target, 0)], 0)


def _check_classes(self: Any, target: Any, weight: Any) -> int:
    """The axis of the classes."""
    _require_float("nll_loss", self)
    axis = 0 if self.ndim == 1 else 1
    if not self.ndim:
        raise ValueError("Expected at least one dim of classes, got an input without dims")
    if target.dtype.kind not in "iu":
        raise RuntimeError(
            f"expected scalar type Long but found {target.dtype}: class numbers are integers. "
            "Convert the target by .long()."
        )
    expected = self.shape[:axis] + self.shape[axis + 1 :]
    if target.shape != expected:
        raise ValueError(
            f"Expected target size {list(expected)}, got {list(target.shape)}, for an input of "
            f"shape {list(self.shape)}"
        )
    if weight is not None and weight.shape != (self.shape[axis],):
        raise RuntimeError(
            f"weight tensor should be defined either for all {self.shape[axis]} classes or no "
            f"classes but got weight tensor of shape: {list(weight.shape)}"
        )
    return axis


def _nll(self: Any, target: Any, weight: Any = None, *, ignore_index: int, reduction: str) -> Any:
    axis = _check_classes(self, target, weight)
    weights = _class_weights(self.shape, target, weight, ignore_index, self.dtype)
    safe = jnp.where(target == ignore_index, 0, target)
    picked = jnp.take_along_axis(self, jnp.expand_dims(safe, axis), axis).squeeze(axis)
    # An ignored target must not let through an infinity: 0 * inf is NaN.
    loss = -jnp.where(weights == 0, 0, picked) * weights
    if reduction == "mean":
        return loss.sum() / weights.sum()
    return _reduced(loss, reduction)


def _nll_rule(
    grad: Any, target: Any, weight: Any, self_shape: Any, ignore_index: int, reduction: str
) -> Any:
    axis = 0 if len(self_shape) == 1 else 1
    weights = _class_weights(self_shape, target, weight, ignore_index, grad.dtype)
    grad = grad / weights.sum() if reduction == "mean" else grad
    grad = jnp.expand_dims(-grad * weights, axis)
    return jnp.where(_class_mask(target, self_shape[axis], axis), grad, 0)


_nll_loss = define(
    "nll_loss",
    _nll,
    signature="self, target, weight, ignore_index, reduction",
    self=_nll_rule,
    target=None,
    weight=None,
)


def _check_targets(input: Any, target: Any, ignore_index: int) -> None:
    """Raises where a class number is out of bounds."""
    shape = array_of(input).shape
    if not shape:
        return
    classes = shape[0 if len(shape) == 1 else 1]
    bad = outside(target, 0, classes)
    if bad is not None and bad == ignore_index:
        values = on_host("nll_loss", target)
        bad = outside(values[values != ignore_index], 0, classes)
    if bad is not None:
        raise IndexError(f"Target {bad} is out of bounds. There are {classes} classes, from 0.")


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-probability of each target's class: (batch, classes, ...), (batch, ...).

    A mean is weighted by the targets' `weight`s; targets equal to `ignore_index` count for nothing.
    Raises IndexError for a target that is no class, ValueError where shapes do not fit.

    >>> log_p = dg.log_softmax(dg.zeros(1, 2), 1)
    >>> dg.nn.functional.nll_loss(log_p, dg.tensor([0]))
    tensor(0.6931)
    """
    _check_targets(input, target, ignore_index)
    return _nll_loss(input, target, weight, ignore_index, reduction)


def _smooth_nll(
    self: Any,
    target: Any,
    weight: Any = None,
    smoothing: Any = 0.0,
    *,
    ignore_index: int,
    reduction: str,
) -> Any:
    """Cross entropy against targets that give `smoothing` of their mass to all classes alike."""
    axis = _check_classes(self, target, weight)
    hard = _nll(self, target, weight, ignore_index=ignore_index, reduction=reduction)
    weights = _class_weights(self.shape, target, weight, ignore_index, self.dtype)
    scaled = self if weight is None else self * _a_class(weight, self.ndim)
    smooth = -jnp.where(target == ignore_index, 0, scaled.sum(axis))
    smooth = smooth.sum() / weights.sum() if reduction == "mean" else _reduced(smooth, reduction)
    return (1 - smoothing) * hard + smoothing / self.shape[axis] * smooth


def _a_class(weight: Any, ndim: int) -> Any:
    return weight if ndim == 1 else weight.reshape(1, -1, *[1] * (ndim - 2))


_smooth_nll_loss = define(
    "smooth_nll_loss",
    _smooth_nll,
    signature="self, target, weight, smoothing, ignore_index, reduction",
    target=None,
    weight=None,
    smoothing=None,
)


def _soft_nll(
    self: Any, target: Any, weight: Any = None, smoothing: Any = 0.0, *, reduction: str
) -> Any:
    """Cross entropy against probabilities."""
    axis = 0 if self.ndim == 1 else 1
    classes = self.shape[axis]
    target = target * (1 - smoothing) + smoothing / classes
    loss = -self * target
    loss = (loss if weight is None else loss * _a_class(weight, self.ndim)).sum(axis)
    return loss.sum() / max(loss.size, 1) if reduction == "mean" else _reduced(loss, reduction)


_soft_nll_loss = define(
    "soft_nll_loss",
    _soft_nll,
    signature="self, target, weight, smoothing, reduction",
    weight=None,
    smoothing=None,
)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The loss of scores (batch, classes, ...) against classes (batch, ...) or probabilities.

    It is `nll_loss(log_softmax(input, 1), target)`. A floating point target of the input's shape is
    one of probabilities. `label_smoothing` spreads that share of each target over all classes
    (Szegedy et al. 2016, https://arxiv.org/abs/1512.00567). Raises IndexError for a target that is
    no class, ValueError where shapes do not fit.

    >>> dg.nn.functional.cross_entropy(dg.zeros(1, 2), dg.tensor([1]))
    tensor(0.6931)
    """
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    ndim = array_of(input).ndim
    log_p = log_softmax(input, 0 if ndim <= 1 else 1)
    if jnp.issubdtype(array_of(target).dtype, jnp.floating):
        if array_of(target).shape != array_of(input).shape:
            raise RuntimeError(
                f"Expected class probabilities of the input's shape {list(array_of(input).shape)}, "
                f"got {list(array_of(target).shape)}. Class numbers must be integers."
            )
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _soft_nll_loss(log_p, target, weight, label_smoothing, reduction)
    _check_targets(input, target, ignore_index)
    if label_smoothing:
        return _smooth_nll_loss(log_p, target, weight, label_smoothing, ignore_index, reduction)
    return _nll_loss(log_p, target, weight, ignore_index, reduction)


# --- attention --------------------------------------------------------------------------------


def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    scale: Any = None,
    dropout_key: Any = None,
    dropout_p: Any = None,
    *,
    is_causal: bool,
    enable_gqa: bool,
) -> Any:
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            "Expected query, key, and value to be at least 2 dimensional, got shapes "
            f"{list(query.shape)}, {list(key.shape)}, {list(value.shape)}"
        )
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise RuntimeError(
            "Expected query (..., L, E), key (..., S, E) and value (..., S, Ev), got shapes "
            f"{list(query.shape)}, {list(key.shape)} and {list(value.shape)}"
        )
    if enable_gqa:
        if query.shape[-3] % key.shape[-3] or query.shape[-3] % value.shape[-3]:
            raise RuntimeError(
                "Expected the number of heads of query to be a multiple of that of key and value, "
                f"got {query.shape[-3]}, {key.shape[-3]} and {value.shape[-3]}"
            )
        key = jnp.repeat(key, query.shape[-3] // key.shape[-3], axis=-3)
        value = jnp.repeat(value, query.shape[-3] // value.shape[-3], axis=-3)
    dtype = query.dtype
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = _wide(query) @ _wide(key).mT * scale
    if is_causal:
        lower = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        scores = jnp.where(lower, scores, -jnp.inf)
    if attn_mask is not None:
        if attn_mask.dtype == bool:
            scores = jnp.where(attn_mask, scores, -jnp.inf)
        else:
            scores = scores + attn_mask
    # Rows that see nothing get 0, and not the NaN of 0 / 0.
    top = jax.lax.stop_gradient(scores.max(-1, keepdims=True))
    shares = jnp.exp(scores - jnp.where(jnp.isfinite(top), top, 0))
    total = shares.sum(-1, keepdims=True)
    shares = shares / jnp.where(total == 0, 1, total)
    if dropout_key is not None:
        shares = _dropped(shares, dropout_key, dropout_p)
    return (shares @ _wide(value)).astype(dtype)


# The rule is JAX's: it saves query, key and value, and computes the shares again in backward.
_sdpa = define(
    "scaled_dot_product_attention",
    _attention,
    signature=(
        "query, key, value, attn_mask, scale, dropout_key, dropout_p, is_causal, enable_gqa"
    ),
    scale=None,
    dropout_key=None,
    dropout_p=None,
)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`softmax(query @ key.mT * scale + mask) @ value`: (..., L, E), (..., S, E), (..., S, Ev).

    `scale` is 1 / sqrt(E) by default. A boolean `attn_mask` says what may be seen, another is
    added; `is_causal` lets position i see 0 to i; a row that sees nothing gives 0. `enable_gqa`
    repeats the heads of key and value. `dropout_p` applies whenever it is not 0. Vaswani et al.
    2017, https://arxiv.org/abs/1706.03762. Raises RuntimeError where shapes or dtypes do not fit.

    >>> q = dg.ones(1, 2)
    >>> dg.nn.functional.scaled_dot_product_attention(q, q, dg.tensor([[5.0]]))
    tensor([[5.]])
    """
    _check_probability(dropout_p)
    if is_causal and attn_mask is not None:
        raise RuntimeError(
            "Explicit attn_mask should not be set when is_causal=True. Pass one of them."
        )
    drawn = _draw() if dropout_p > 0 else None
    return _sdpa(
        query,
        key,
        value,
        attn_mask,
        scale,
        drawn,
        None if drawn is None else float(dropout_p),
        bool(is_causal),
        bool(enable_gqa),
    )


__all__ = [
    "cosine_similarity",
    "group_norm",
    "layer_norm",
    "log_softmax",
    "rms_norm",
    "softmax",
    "threshold",
]

METHODS = ("log_softmax", "softmax")

"""The functions of neural networks, by PyTorch's names: activations, layers, losses, attention.

Functions of `jax.nn` that PyTorch does not have stand beside them, by JAX's names.
"""

from dyngraph.nn.from_jax import (
    dot_product_attention,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    log1mexp,
    log_sigmoid,
    logmeanexp,
    logsumexp,
    soft_sign,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    standardize,
    swish,
)
from dyngraph.ops.activation import (
    celu,
    elu,
    gelu,
    glu,
    hardswish,
    logsigmoid,
    mish,
    selu,
    sigmoid,
    silu,
    softplus,
    softsign,
    tanhshrink,
)
from dyngraph.ops.affine import (
    bilinear,
    linear,
)
from dyngraph.ops.attention import (
    multi_head_attention_forward,
    scaled_dot_product_attention,
)
from dyngraph.ops.channel_dropouts import (
    alpha_dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from dyngraph.ops.channel_normalization import (
    batch_norm,
    group_norm,
)
from dyngraph.ops.class_losses import (
    cross_entropy,
    linear_cross_entropy,
    nll_loss,
)
from dyngraph.ops.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_tbc,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from dyngraph.ops.distances import (
    pairwise_distance,
    pdist,
)
from dyngraph.ops.dropouts import (
    dropout,
)
from dyngraph.ops.embeddings import (
    embedding,
    embedding_bag,
    one_hot,
)
from dyngraph.ops.fractional_pooling import (
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
)
from dyngraph.ops.grouped import (
    grouped_mm,
)
from dyngraph.ops.gumbel import (
    gumbel_softmax,
)
from dyngraph.ops.in_place import (
    celu_,
    elu_,
    hardtanh_,
    leaky_relu_,
    relu_,
    selu_,
    threshold_,
)
from dyngraph.ops.interpolation import (
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from dyngraph.ops.local_normalization import (
    instance_norm,
    local_response_norm,
)
from dyngraph.ops.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    gaussian_nll_loss,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)
from dyngraph.ops.margin_losses import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from dyngraph.ops.max_pooling import (
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
)
from dyngraph.ops.norm_pooling import (
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
)
from dyngraph.ops.normalization import (
    layer_norm,
    rms_norm,
)
from dyngraph.ops.norms import (
    cosine_similarity,
    normalize,
)
from dyngraph.ops.padding import (
    pad,
)
from dyngraph.ops.patches import (
    channel_shuffle,
    fold,
    native_channel_shuffle,
    pixel_shuffle,
    pixel_unshuffle,
    unfold,
)
from dyngraph.ops.piecewise_linear import (
    hardshrink,
    hardsigmoid,
    hardtanh,
    leaky_relu,
    prelu,
    relu,
    relu6,
    softshrink,
    threshold,
)
from dyngraph.ops.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
)
from dyngraph.ops.random_slopes import (
    rrelu,
    rrelu_,
)
from dyngraph.ops.resampling import (
    affine_grid,
    grid_sample,
)
from dyngraph.ops.sequence_losses import (
    ctc_loss,
)
from dyngraph.ops.softmaxes import (
    log_softmax,
    softmax,
    softmin,
)
from dyngraph.ops.trigonometry import (
    tanh,
)
from dyngraph.ops.unpooling import (
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "affine_grid",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "dot_product_attention",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "grid_sample",
    "group_norm",
    "grouped_mm",
    "gumbel_softmax",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "hinge_embedding_loss",
    "huber_loss",
    "identity",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "linear_cross_entropy",
    "local_response_norm",
    "log1mexp",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsigmoid",
    "logsumexp",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mse_loss",
    "multi_head_attention_forward",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "native_channel_shuffle",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "scaled_dot_product_attention",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "soft_sign",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

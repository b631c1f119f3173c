"""The functions of neural networks, by PyTorch's names: activations, layers, losses, attention."""

from dyngraph.ops.activation import (
    celu,
    elu,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    logsigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softplus,
    softshrink,
    softsign,
    tanhshrink,
    threshold,
)
from dyngraph.ops.affine import (
    linear,
)
from dyngraph.ops.attention import (
    scaled_dot_product_attention,
)
from dyngraph.ops.class_losses import (
    cross_entropy,
    nll_loss,
)
from dyngraph.ops.dropouts import (
    dropout,
)
from dyngraph.ops.embeddings import (
    embedding,
    one_hot,
)
from dyngraph.ops.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    smooth_l1_loss,
)
from dyngraph.ops.normalization import (
    batch_norm,
    group_norm,
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
from dyngraph.ops.softmaxes import (
    log_softmax,
    softmax,
    softmin,
)
from dyngraph.ops.trigonometry import (
    tanh,
)

__all__ = [
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "elu",
    "embedding",
    "gelu",
    "glu",
    "group_norm",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "mish",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "relu",
    "relu6",
    "rms_norm",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
]

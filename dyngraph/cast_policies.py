"""In which precision operators compute under autocast: PyTorch's lists, by the names here.

A policy says to which dtype an operator's floating point inputs are cast, or None for as they are.
An operator without one runs on what it is given. The lists of CPU and of accelerators differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dyngraph.dtypes import dtype, float32

Policy = Callable[[Mapping[str, Any], Sequence[dtype], dtype], dtype | None]
"""Of the arguments by name, the dtypes of the inputs to cast, and the lower precision."""


def lower(given: Mapping[str, Any], present: Sequence[dtype], fast: dtype) -> dtype:
    """The lower precision."""
    return fast


def full(given: Mapping[str, Any], present: Sequence[dtype], fast: dtype) -> dtype:
    """float32."""
    return float32


def full_unless_asked(
    given: Mapping[str, Any], present: Sequence[dtype], fast: dtype
) -> dtype | None:
    """float32, where the call names no dtype of its own."""
    return float32 if given.get("dtype") is None else None


def full_unless_circular(
    given: Mapping[str, Any], present: Sequence[dtype], fast: dtype
) -> dtype | None:
    """float32 for padding whose gradients are sums, None for circular padding."""
    return None if given.get("mode") == "circular" else float32


def widest(given: Mapping[str, Any], present: Sequence[dtype], fast: dtype) -> dtype:
    """float32 where an input has it."""
    return float32 if float32 in present else fast


def as_first(given: Mapping[str, Any], present: Sequence[dtype], fast: dtype) -> dtype:
    """The dtype of the first input."""
    return present[0]


def refused(given: Mapping[str, Any], present: Sequence[dtype], fast: dtype) -> dtype:
    """Raises: the operator's gradients overflow in the lower precision."""
    raise RuntimeError(
        "binary_cross_entropy and BCELoss are unsafe to autocast on an accelerator: their inputs "
        "come from a sigmoid, which the lower precision rounds to 0 or 1. Use "
        "binary_cross_entropy_with_logits or BCEWithLogitsLoss, which take the scores before the "
        "sigmoid."
    )


def _table(policies: Mapping[Policy, str]) -> dict[str, Policy]:
    return {name: policy for policy, names in policies.items() for name in names.split()}


CONTRACTIONS = """
    addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d
    conv_transpose3d dot_product_attention einsum grouped_mm linalg_matrix_power linalg_multi_dot
    linalg_vecdot linear lstm_layer matmul mm prelu rnn_relu_layer rnn_tanh_layer
    scaled_dot_product_attention
"""
LOSSES = """
    binary_cross_entropy_with_logits cosine_embedding_loss hinge_embedding_loss huber_loss kl_div
    l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss
    poisson_nll_loss smooth_l1_loss smooth_nll_loss soft_margin_loss soft_nll_loss
    triplet_margin_loss
"""

ON_CPU = _table(
    {
        lower: CONTRACTIONS,
        full: LOSSES
        + """
        adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy cdist
        cholesky_inverse cholesky_solve cross_entropy_loss ctc_loss fft_fftn fft_hfftn fft_ifftn
        fft_ihfftn fft_irfftn fft_rfftn geqrf grid_sampler istft linalg_cholesky_ex linalg_det
        linalg_eig linalg_eigh linalg_householder_product linalg_inv_ex linalg_ldl_factor_ex
        linalg_ldl_solve linalg_lstsq linalg_lu_factor_ex linalg_lu_solve linalg_matrix_rank
        linalg_pinv linalg_qr linalg_slogdet linalg_solve_ex linalg_svd linalg_svdvals lobpcg
        local_response_norm logdet max_pool3d max_pool3d_with_indices max_unpool nanquantile ormqr
        pdist polar quantile stft trace view_as_complex
        """,
        full_unless_asked: "prod",
        full_unless_circular: "pad",
        widest: "cat index_copy stack",
        as_first: "gru_layer",
    }
)
ON_ACCELERATORS = _table(
    {
        lower: CONTRACTIONS + "addmv addr gru_layer mv thnn_fused_gru_cell thnn_fused_lstm_cell",
        full: LOSSES
        + """
        acos asin cdist cosh cosine_similarity erfinv exp expm1 group_norm interpolate layer_norm
        log log10 log1p log2 logsumexp nuclear_norm pdist pow reciprocal renorm rms_norm rsqrt sinh
        softplus tan
        """,
        full_unless_asked: "cumprod cumsum linalg_vector_norm log_softmax prod softmax sum",
        widest: """
        addcdiv addcmul atan2 bilinear dot grid_sampler index_put linalg_cross scatter_add tensordot
        vdot
        """,
        refused: "binary_cross_entropy",
    }
)

"""dyngraph: define-by-run automatic differentiation on JAX, with PyTorch's autograd semantics."""

import dyngraph.methods  # binds the operators to Tensor
from dyngraph import autograd as autograd
from dyngraph import nn as nn
from dyngraph import random as random
from dyngraph.devices import (
    device as device,
)
from dyngraph.dtypes import (
    bfloat16 as bfloat16,
)
from dyngraph.dtypes import (
    bool as bool,
)
from dyngraph.dtypes import (
    complex64 as complex64,
)
from dyngraph.dtypes import (
    complex128 as complex128,
)
from dyngraph.dtypes import (
    dtype as dtype,
)
from dyngraph.dtypes import (
    finfo as finfo,
)
from dyngraph.dtypes import (
    float16 as float16,
)
from dyngraph.dtypes import (
    float32 as float32,
)
from dyngraph.dtypes import (
    float64 as float64,
)
from dyngraph.dtypes import (
    get_default_dtype as get_default_dtype,
)
from dyngraph.dtypes import (
    iinfo as iinfo,
)
from dyngraph.dtypes import (
    int8 as int8,
)
from dyngraph.dtypes import (
    int16 as int16,
)
from dyngraph.dtypes import (
    int32 as int32,
)
from dyngraph.dtypes import (
    int64 as int64,
)
from dyngraph.dtypes import (
    promote_types as promote_types,
)
from dyngraph.dtypes import (
    set_default_dtype as set_default_dtype,
)
from dyngraph.dtypes import (
    uint8 as uint8,
)
from dyngraph.dtypes import (
    uint16 as uint16,
)
from dyngraph.dtypes import (
    uint32 as uint32,
)
from dyngraph.dtypes import (
    uint64 as uint64,
)
from dyngraph.modes import (
    enable_grad as enable_grad,
)
from dyngraph.modes import (
    inference_mode as inference_mode,
)
from dyngraph.modes import (
    is_grad_enabled as is_grad_enabled,
)
from dyngraph.modes import (
    is_inference_mode_enabled as is_inference_mode_enabled,
)
from dyngraph.modes import (
    no_grad as no_grad,
)
from dyngraph.modes import (
    set_grad_enabled as set_grad_enabled,
)
from dyngraph.ops.creation import (
    arange as arange,
)
from dyngraph.ops.creation import (
    as_tensor as as_tensor,
)
from dyngraph.ops.creation import (
    asarray as asarray,
)
from dyngraph.ops.creation import (
    empty as empty,
)
from dyngraph.ops.creation import (
    empty_like as empty_like,
)
from dyngraph.ops.creation import (
    eye as eye,
)
from dyngraph.ops.creation import (
    from_jax_array as from_jax_array,
)
from dyngraph.ops.creation import (
    from_numpy as from_numpy,
)
from dyngraph.ops.creation import (
    full as full,
)
from dyngraph.ops.creation import (
    full_like as full_like,
)
from dyngraph.ops.creation import (
    linspace as linspace,
)
from dyngraph.ops.creation import (
    logspace as logspace,
)
from dyngraph.ops.creation import (
    ones as ones,
)
from dyngraph.ops.creation import (
    ones_like as ones_like,
)
from dyngraph.ops.creation import (
    scalar_tensor as scalar_tensor,
)
from dyngraph.ops.creation import (
    tensor as tensor,
)
from dyngraph.ops.creation import (
    zeros as zeros,
)
from dyngraph.ops.creation import (
    zeros_like as zeros_like,
)
from dyngraph.ops.indexing import (
    argsort as argsort,
)
from dyngraph.ops.indexing import (
    argwhere as argwhere,
)
from dyngraph.ops.indexing import (
    bincount as bincount,
)
from dyngraph.ops.indexing import (
    bucketize as bucketize,
)
from dyngraph.ops.indexing import (
    gather as gather,
)
from dyngraph.ops.indexing import (
    index_add as index_add,
)
from dyngraph.ops.indexing import (
    index_copy as index_copy,
)
from dyngraph.ops.indexing import (
    index_fill as index_fill,
)
from dyngraph.ops.indexing import (
    index_put as index_put,
)
from dyngraph.ops.indexing import (
    index_select as index_select,
)
from dyngraph.ops.indexing import (
    isin as isin,
)
from dyngraph.ops.indexing import (
    kthvalue as kthvalue,
)
from dyngraph.ops.indexing import (
    masked_fill as masked_fill,
)
from dyngraph.ops.indexing import (
    masked_scatter as masked_scatter,
)
from dyngraph.ops.indexing import (
    masked_select as masked_select,
)
from dyngraph.ops.indexing import (
    nonzero as nonzero,
)
from dyngraph.ops.indexing import (
    scatter as scatter,
)
from dyngraph.ops.indexing import (
    scatter_add as scatter_add,
)
from dyngraph.ops.indexing import (
    scatter_reduce as scatter_reduce,
)
from dyngraph.ops.indexing import (
    searchsorted as searchsorted,
)
from dyngraph.ops.indexing import (
    sort as sort,
)
from dyngraph.ops.indexing import (
    take as take,
)
from dyngraph.ops.indexing import (
    take_along_dim as take_along_dim,
)
from dyngraph.ops.indexing import (
    topk as topk,
)
from dyngraph.ops.indexing import (
    tril_indices as tril_indices,
)
from dyngraph.ops.indexing import (
    triu_indices as triu_indices,
)
from dyngraph.ops.indexing import (
    unique as unique,
)
from dyngraph.ops.linalg import (
    addbmm as addbmm,
)
from dyngraph.ops.linalg import (
    addmm as addmm,
)
from dyngraph.ops.linalg import (
    addmv as addmv,
)
from dyngraph.ops.linalg import (
    baddbmm as baddbmm,
)
from dyngraph.ops.linalg import (
    bmm as bmm,
)
from dyngraph.ops.linalg import (
    cross as cross,
)
from dyngraph.ops.linalg import (
    dot as dot,
)
from dyngraph.ops.linalg import (
    einsum as einsum,
)
from dyngraph.ops.linalg import (
    inner as inner,
)
from dyngraph.ops.linalg import (
    kron as kron,
)
from dyngraph.ops.linalg import (
    matmul as matmul,
)
from dyngraph.ops.linalg import (
    mm as mm,
)
from dyngraph.ops.linalg import (
    mv as mv,
)
from dyngraph.ops.linalg import (
    outer as outer,
)
from dyngraph.ops.linalg import (
    tensordot as tensordot,
)
from dyngraph.ops.linalg import (
    trace as trace,
)
from dyngraph.ops.linalg import (
    vdot as vdot,
)
from dyngraph.ops.nn import (
    cosine_similarity as cosine_similarity,
)
from dyngraph.ops.nn import (
    group_norm as group_norm,
)
from dyngraph.ops.nn import (
    layer_norm as layer_norm,
)
from dyngraph.ops.nn import (
    log_softmax as log_softmax,
)
from dyngraph.ops.nn import (
    rms_norm as rms_norm,
)
from dyngraph.ops.nn import (
    softmax as softmax,
)
from dyngraph.ops.nn import (
    threshold as threshold,
)
from dyngraph.ops.pointwise import (
    abs as abs,
)
from dyngraph.ops.pointwise import (
    absolute as absolute,
)
from dyngraph.ops.pointwise import (
    acos as acos,
)
from dyngraph.ops.pointwise import (
    acosh as acosh,
)
from dyngraph.ops.pointwise import (
    add as add,
)
from dyngraph.ops.pointwise import (
    addcdiv as addcdiv,
)
from dyngraph.ops.pointwise import (
    addcmul as addcmul,
)
from dyngraph.ops.pointwise import (
    angle as angle,
)
from dyngraph.ops.pointwise import (
    arccos as arccos,
)
from dyngraph.ops.pointwise import (
    arccosh as arccosh,
)
from dyngraph.ops.pointwise import (
    arcsin as arcsin,
)
from dyngraph.ops.pointwise import (
    arcsinh as arcsinh,
)
from dyngraph.ops.pointwise import (
    arctan as arctan,
)
from dyngraph.ops.pointwise import (
    arctan2 as arctan2,
)
from dyngraph.ops.pointwise import (
    arctanh as arctanh,
)
from dyngraph.ops.pointwise import (
    asin as asin,
)
from dyngraph.ops.pointwise import (
    asinh as asinh,
)
from dyngraph.ops.pointwise import (
    atan as atan,
)
from dyngraph.ops.pointwise import (
    atan2 as atan2,
)
from dyngraph.ops.pointwise import (
    atanh as atanh,
)
from dyngraph.ops.pointwise import (
    bitwise_and as bitwise_and,
)
from dyngraph.ops.pointwise import (
    bitwise_left_shift as bitwise_left_shift,
)
from dyngraph.ops.pointwise import (
    bitwise_not as bitwise_not,
)
from dyngraph.ops.pointwise import (
    bitwise_or as bitwise_or,
)
from dyngraph.ops.pointwise import (
    bitwise_right_shift as bitwise_right_shift,
)
from dyngraph.ops.pointwise import (
    bitwise_xor as bitwise_xor,
)
from dyngraph.ops.pointwise import (
    ceil as ceil,
)
from dyngraph.ops.pointwise import (
    celu as celu,
)
from dyngraph.ops.pointwise import (
    clamp as clamp,
)
from dyngraph.ops.pointwise import (
    clamp_max as clamp_max,
)
from dyngraph.ops.pointwise import (
    clamp_min as clamp_min,
)
from dyngraph.ops.pointwise import (
    clip as clip,
)
from dyngraph.ops.pointwise import (
    complex as complex,
)
from dyngraph.ops.pointwise import (
    conj as conj,
)
from dyngraph.ops.pointwise import (
    copysign as copysign,
)
from dyngraph.ops.pointwise import (
    cos as cos,
)
from dyngraph.ops.pointwise import (
    cosh as cosh,
)
from dyngraph.ops.pointwise import (
    deg2rad as deg2rad,
)
from dyngraph.ops.pointwise import (
    digamma as digamma,
)
from dyngraph.ops.pointwise import (
    div as div,
)
from dyngraph.ops.pointwise import (
    divide as divide,
)
from dyngraph.ops.pointwise import (
    eq as eq,
)
from dyngraph.ops.pointwise import (
    erf as erf,
)
from dyngraph.ops.pointwise import (
    erfc as erfc,
)
from dyngraph.ops.pointwise import (
    erfinv as erfinv,
)
from dyngraph.ops.pointwise import (
    exp as exp,
)
from dyngraph.ops.pointwise import (
    exp2 as exp2,
)
from dyngraph.ops.pointwise import (
    expm1 as expm1,
)
from dyngraph.ops.pointwise import (
    fix as fix,
)
from dyngraph.ops.pointwise import (
    float_power as float_power,
)
from dyngraph.ops.pointwise import (
    floor as floor,
)
from dyngraph.ops.pointwise import (
    floor_divide as floor_divide,
)
from dyngraph.ops.pointwise import (
    fmax as fmax,
)
from dyngraph.ops.pointwise import (
    fmin as fmin,
)
from dyngraph.ops.pointwise import (
    fmod as fmod,
)
from dyngraph.ops.pointwise import (
    frac as frac,
)
from dyngraph.ops.pointwise import (
    ge as ge,
)
from dyngraph.ops.pointwise import (
    greater as greater,
)
from dyngraph.ops.pointwise import (
    greater_equal as greater_equal,
)
from dyngraph.ops.pointwise import (
    gt as gt,
)
from dyngraph.ops.pointwise import (
    hardshrink as hardshrink,
)
from dyngraph.ops.pointwise import (
    hypot as hypot,
)
from dyngraph.ops.pointwise import (
    imag as imag,
)
from dyngraph.ops.pointwise import (
    isclose as isclose,
)
from dyngraph.ops.pointwise import (
    isfinite as isfinite,
)
from dyngraph.ops.pointwise import (
    isinf as isinf,
)
from dyngraph.ops.pointwise import (
    isnan as isnan,
)
from dyngraph.ops.pointwise import (
    isneginf as isneginf,
)
from dyngraph.ops.pointwise import (
    isposinf as isposinf,
)
from dyngraph.ops.pointwise import (
    isreal as isreal,
)
from dyngraph.ops.pointwise import (
    le as le,
)
from dyngraph.ops.pointwise import (
    lerp as lerp,
)
from dyngraph.ops.pointwise import (
    less as less,
)
from dyngraph.ops.pointwise import (
    less_equal as less_equal,
)
from dyngraph.ops.pointwise import (
    lgamma as lgamma,
)
from dyngraph.ops.pointwise import (
    log as log,
)
from dyngraph.ops.pointwise import (
    log1p as log1p,
)
from dyngraph.ops.pointwise import (
    log2 as log2,
)
from dyngraph.ops.pointwise import (
    log10 as log10,
)
from dyngraph.ops.pointwise import (
    logaddexp as logaddexp,
)
from dyngraph.ops.pointwise import (
    logaddexp2 as logaddexp2,
)
from dyngraph.ops.pointwise import (
    logical_and as logical_and,
)
from dyngraph.ops.pointwise import (
    logical_not as logical_not,
)
from dyngraph.ops.pointwise import (
    logical_or as logical_or,
)
from dyngraph.ops.pointwise import (
    logical_xor as logical_xor,
)
from dyngraph.ops.pointwise import (
    logit as logit,
)
from dyngraph.ops.pointwise import (
    lt as lt,
)
from dyngraph.ops.pointwise import (
    maximum as maximum,
)
from dyngraph.ops.pointwise import (
    minimum as minimum,
)
from dyngraph.ops.pointwise import (
    mul as mul,
)
from dyngraph.ops.pointwise import (
    multiply as multiply,
)
from dyngraph.ops.pointwise import (
    nan_to_num as nan_to_num,
)
from dyngraph.ops.pointwise import (
    ne as ne,
)
from dyngraph.ops.pointwise import (
    neg as neg,
)
from dyngraph.ops.pointwise import (
    negative as negative,
)
from dyngraph.ops.pointwise import (
    not_equal as not_equal,
)
from dyngraph.ops.pointwise import (
    polar as polar,
)
from dyngraph.ops.pointwise import (
    positive as positive,
)
from dyngraph.ops.pointwise import (
    pow as pow,
)
from dyngraph.ops.pointwise import (
    rad2deg as rad2deg,
)
from dyngraph.ops.pointwise import (
    real as real,
)
from dyngraph.ops.pointwise import (
    reciprocal as reciprocal,
)
from dyngraph.ops.pointwise import (
    relu as relu,
)
from dyngraph.ops.pointwise import (
    remainder as remainder,
)
from dyngraph.ops.pointwise import (
    round as round,
)
from dyngraph.ops.pointwise import (
    rsqrt as rsqrt,
)
from dyngraph.ops.pointwise import (
    rsub as rsub,
)
from dyngraph.ops.pointwise import (
    selu as selu,
)
from dyngraph.ops.pointwise import (
    sgn as sgn,
)
from dyngraph.ops.pointwise import (
    sigmoid as sigmoid,
)
from dyngraph.ops.pointwise import (
    sign as sign,
)
from dyngraph.ops.pointwise import (
    signbit as signbit,
)
from dyngraph.ops.pointwise import (
    sin as sin,
)
from dyngraph.ops.pointwise import (
    sinc as sinc,
)
from dyngraph.ops.pointwise import (
    sinh as sinh,
)
from dyngraph.ops.pointwise import (
    sqrt as sqrt,
)
from dyngraph.ops.pointwise import (
    square as square,
)
from dyngraph.ops.pointwise import (
    sub as sub,
)
from dyngraph.ops.pointwise import (
    subtract as subtract,
)
from dyngraph.ops.pointwise import (
    tan as tan,
)
from dyngraph.ops.pointwise import (
    tanh as tanh,
)
from dyngraph.ops.pointwise import (
    true_divide as true_divide,
)
from dyngraph.ops.pointwise import (
    trunc as trunc,
)
from dyngraph.ops.pointwise import (
    where as where,
)
from dyngraph.ops.pointwise import (
    xlogy as xlogy,
)
from dyngraph.ops.random import (
    bernoulli as bernoulli,
)
from dyngraph.ops.random import (
    multinomial as multinomial,
)
from dyngraph.ops.random import (
    normal as normal,
)
from dyngraph.ops.random import (
    poisson as poisson,
)
from dyngraph.ops.random import (
    rand as rand,
)
from dyngraph.ops.random import (
    rand_like as rand_like,
)
from dyngraph.ops.random import (
    randint as randint,
)
from dyngraph.ops.random import (
    randint_like as randint_like,
)
from dyngraph.ops.random import (
    randn as randn,
)
from dyngraph.ops.random import (
    randn_like as randn_like,
)
from dyngraph.ops.random import (
    randperm as randperm,
)
from dyngraph.ops.reduction import (
    all as all,
)
from dyngraph.ops.reduction import (
    allclose as allclose,
)
from dyngraph.ops.reduction import (
    amax as amax,
)
from dyngraph.ops.reduction import (
    amin as amin,
)
from dyngraph.ops.reduction import (
    aminmax as aminmax,
)
from dyngraph.ops.reduction import (
    any as any,
)
from dyngraph.ops.reduction import (
    argmax as argmax,
)
from dyngraph.ops.reduction import (
    argmin as argmin,
)
from dyngraph.ops.reduction import (
    count_nonzero as count_nonzero,
)
from dyngraph.ops.reduction import (
    cummax as cummax,
)
from dyngraph.ops.reduction import (
    cummin as cummin,
)
from dyngraph.ops.reduction import (
    cumprod as cumprod,
)
from dyngraph.ops.reduction import (
    cumsum as cumsum,
)
from dyngraph.ops.reduction import (
    equal as equal,
)
from dyngraph.ops.reduction import (
    logcumsumexp as logcumsumexp,
)
from dyngraph.ops.reduction import (
    logsumexp as logsumexp,
)
from dyngraph.ops.reduction import (
    max as max,
)
from dyngraph.ops.reduction import (
    mean as mean,
)
from dyngraph.ops.reduction import (
    median as median,
)
from dyngraph.ops.reduction import (
    min as min,
)
from dyngraph.ops.reduction import (
    nanmean as nanmean,
)
from dyngraph.ops.reduction import (
    nanmedian as nanmedian,
)
from dyngraph.ops.reduction import (
    nanquantile as nanquantile,
)
from dyngraph.ops.reduction import (
    nansum as nansum,
)
from dyngraph.ops.reduction import (
    norm as norm,
)
from dyngraph.ops.reduction import (
    prod as prod,
)
from dyngraph.ops.reduction import (
    quantile as quantile,
)
from dyngraph.ops.reduction import (
    std as std,
)
from dyngraph.ops.reduction import (
    std_mean as std_mean,
)
from dyngraph.ops.reduction import (
    sum as sum,
)
from dyngraph.ops.reduction import (
    var as var,
)
from dyngraph.ops.reduction import (
    var_mean as var_mean,
)
from dyngraph.ops.shape import (
    adjoint as adjoint,
)
from dyngraph.ops.shape import (
    atleast_1d as atleast_1d,
)
from dyngraph.ops.shape import (
    atleast_2d as atleast_2d,
)
from dyngraph.ops.shape import (
    atleast_3d as atleast_3d,
)
from dyngraph.ops.shape import (
    block_diag as block_diag,
)
from dyngraph.ops.shape import (
    broadcast_tensors as broadcast_tensors,
)
from dyngraph.ops.shape import (
    broadcast_to as broadcast_to,
)
from dyngraph.ops.shape import (
    cartesian_prod as cartesian_prod,
)
from dyngraph.ops.shape import (
    cat as cat,
)
from dyngraph.ops.shape import (
    chunk as chunk,
)
from dyngraph.ops.shape import (
    clone as clone,
)
from dyngraph.ops.shape import (
    column_stack as column_stack,
)
from dyngraph.ops.shape import (
    concat as concat,
)
from dyngraph.ops.shape import (
    concatenate as concatenate,
)
from dyngraph.ops.shape import (
    diag as diag,
)
from dyngraph.ops.shape import (
    diag_embed as diag_embed,
)
from dyngraph.ops.shape import (
    diagflat as diagflat,
)
from dyngraph.ops.shape import (
    diagonal as diagonal,
)
from dyngraph.ops.shape import (
    dsplit as dsplit,
)
from dyngraph.ops.shape import (
    dstack as dstack,
)
from dyngraph.ops.shape import (
    flatten as flatten,
)
from dyngraph.ops.shape import (
    flip as flip,
)
from dyngraph.ops.shape import (
    fliplr as fliplr,
)
from dyngraph.ops.shape import (
    flipud as flipud,
)
from dyngraph.ops.shape import (
    hsplit as hsplit,
)
from dyngraph.ops.shape import (
    hstack as hstack,
)
from dyngraph.ops.shape import (
    meshgrid as meshgrid,
)
from dyngraph.ops.shape import (
    moveaxis as moveaxis,
)
from dyngraph.ops.shape import (
    movedim as movedim,
)
from dyngraph.ops.shape import (
    narrow as narrow,
)
from dyngraph.ops.shape import (
    permute as permute,
)
from dyngraph.ops.shape import (
    ravel as ravel,
)
from dyngraph.ops.shape import (
    repeat_interleave as repeat_interleave,
)
from dyngraph.ops.shape import (
    reshape as reshape,
)
from dyngraph.ops.shape import (
    roll as roll,
)
from dyngraph.ops.shape import (
    rot90 as rot90,
)
from dyngraph.ops.shape import (
    row_stack as row_stack,
)
from dyngraph.ops.shape import (
    select as select,
)
from dyngraph.ops.shape import (
    split as split,
)
from dyngraph.ops.shape import (
    split_with_sizes as split_with_sizes,
)
from dyngraph.ops.shape import (
    squeeze as squeeze,
)
from dyngraph.ops.shape import (
    stack as stack,
)
from dyngraph.ops.shape import (
    swapaxes as swapaxes,
)
from dyngraph.ops.shape import (
    swapdims as swapdims,
)
from dyngraph.ops.shape import (
    t as t,
)
from dyngraph.ops.shape import (
    tensor_split as tensor_split,
)
from dyngraph.ops.shape import (
    tile as tile,
)
from dyngraph.ops.shape import (
    transpose as transpose,
)
from dyngraph.ops.shape import (
    tril as tril,
)
from dyngraph.ops.shape import (
    triu as triu,
)
from dyngraph.ops.shape import (
    unbind as unbind,
)
from dyngraph.ops.shape import (
    unflatten as unflatten,
)
from dyngraph.ops.shape import (
    unsqueeze as unsqueeze,
)
from dyngraph.ops.shape import (
    vsplit as vsplit,
)
from dyngraph.ops.shape import (
    vstack as vstack,
)
from dyngraph.printing import (
    set_printoptions as set_printoptions,
)
from dyngraph.random import (
    Generator as Generator,
)
from dyngraph.random import (
    default_generator as default_generator,
)
from dyngraph.random import (
    get_rng_state as get_rng_state,
)
from dyngraph.random import (
    initial_seed as initial_seed,
)
from dyngraph.random import (
    manual_seed as manual_seed,
)
from dyngraph.random import (
    seed as seed,
)
from dyngraph.random import (
    set_rng_state as set_rng_state,
)
from dyngraph.tensor import (
    Size as Size,
)
from dyngraph.tensor import (
    Tensor as Tensor,
)
from dyngraph.tensor import (
    is_complex as is_complex,
)
from dyngraph.tensor import (
    is_floating_point as is_floating_point,
)
from dyngraph.tensor import (
    is_inference as is_inference,
)
from dyngraph.tensor import (
    is_tensor as is_tensor,
)
from dyngraph.tensor import (
    numel as numel,
)

__all__ = [
    "Generator",
    "Size",
    "Tensor",
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "adjoint",
    "all",
    "allclose",
    "amax",
    "amin",
    "aminmax",
    "angle",
    "any",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "as_tensor",
    "asarray",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "baddbmm",
    "bernoulli",
    "bfloat16",
    "bincount",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "block_diag",
    "bmm",
    "bool",
    "broadcast_tensors",
    "broadcast_to",
    "bucketize",
    "cartesian_prod",
    "cat",
    "ceil",
    "celu",
    "chunk",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "clone",
    "column_stack",
    "complex",
    "complex128",
    "complex64",
    "concat",
    "concatenate",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "cosine_similarity",
    "count_nonzero",
    "cross",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "default_generator",
    "deg2rad",
    "device",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "digamma",
    "div",
    "divide",
    "dot",
    "dsplit",
    "dstack",
    "dtype",
    "einsum",
    "empty",
    "empty_like",
    "enable_grad",
    "eq",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "eye",
    "finfo",
    "fix",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float16",
    "float32",
    "float64",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "from_jax_array",
    "from_numpy",
    "full",
    "full_like",
    "gather",
    "ge",
    "get_default_dtype",
    "get_rng_state",
    "greater",
    "greater_equal",
    "group_norm",
    "gt",
    "hardshrink",
    "hsplit",
    "hstack",
    "hypot",
    "iinfo",
    "imag",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_select",
    "inference_mode",
    "initial_seed",
    "inner",
    "int16",
    "int32",
    "int64",
    "int8",
    "is_complex",
    "is_floating_point",
    "is_grad_enabled",
    "is_inference",
    "is_inference_mode_enabled",
    "is_tensor",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "kron",
    "kthvalue",
    "layer_norm",
    "le",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "linspace",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logcumsumexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "logspace",
    "logsumexp",
    "lt",
    "manual_seed",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "matmul",
    "max",
    "maximum",
    "mean",
    "median",
    "meshgrid",
    "min",
    "minimum",
    "mm",
    "moveaxis",
    "movedim",
    "mul",
    "multinomial",
    "multiply",
    "mv",
    "nan_to_num",
    "nanmean",
    "nanmedian",
    "nanquantile",
    "nansum",
    "narrow",
    "ne",
    "neg",
    "negative",
    "no_grad",
    "nonzero",
    "norm",
    "normal",
    "not_equal",
    "numel",
    "ones",
    "ones_like",
    "outer",
    "permute",
    "poisson",
    "polar",
    "positive",
    "pow",
    "prod",
    "promote_types",
    "quantile",
    "rad2deg",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "ravel",
    "real",
    "reciprocal",
    "relu",
    "remainder",
    "repeat_interleave",
    "reshape",
    "rms_norm",
    "roll",
    "rot90",
    "round",
    "row_stack",
    "rsqrt",
    "rsub",
    "scalar_tensor",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "searchsorted",
    "seed",
    "select",
    "selu",
    "set_default_dtype",
    "set_grad_enabled",
    "set_printoptions",
    "set_rng_state",
    "sgn",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "softmax",
    "sort",
    "split",
    "split_with_sizes",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "std_mean",
    "sub",
    "subtract",
    "sum",
    "swapaxes",
    "swapdims",
    "t",
    "take",
    "take_along_dim",
    "tan",
    "tanh",
    "tensor",
    "tensor_split",
    "tensordot",
    "threshold",
    "tile",
    "topk",
    "trace",
    "transpose",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "true_divide",
    "trunc",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unbind",
    "unflatten",
    "unique",
    "unsqueeze",
    "var",
    "var_mean",
    "vdot",
    "vsplit",
    "vstack",
    "where",
    "xlogy",
    "zeros",
    "zeros_like",
]

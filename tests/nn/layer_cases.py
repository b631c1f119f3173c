"""The layers that are compared with PyTorch: how each is made, and what it is called with.

The figures are recorded by `python -m tests.nn.record_layers`, which needs torch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """A layer, `nn.<layer>(*args, **kwargs)`, called with `inputs`."""

    name: str
    layer: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inputs: tuple[np.ndarray, ...]
    in_training: bool
    in_evaluation: bool
    wrapped: tuple[str, ...]  # the name of a function of nn.utils, and its other arguments


_draws = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return _draws.standard_normal(shape).astype(np.float32)


def uniform(*shape: int) -> np.ndarray:
    return _draws.uniform(0.1, 0.9, shape).astype(np.float32)


def signs(*shape: int) -> np.ndarray:
    return np.where(_draws.random(shape) < 0.5, -1, 1).astype(np.float32)


def integers(high: int, *shape: int) -> np.ndarray:
    return _draws.integers(0, high, shape)


class Table:
    """The cases, in the order in which they were added."""

    def __init__(self) -> None:
        self.cases: list[Case] = []

    def add(
        self,
        layer: str,
        args: Any,
        *inputs: np.ndarray,
        train: bool = True,
        eval: bool = False,
        wrapped: tuple[str, ...] = (),
        **kwargs: Any,
    ) -> None:
        """Adds a case; `train` and `eval` say in which modes its figures are recorded."""
        args = args if isinstance(args, tuple) else (args,)
        number = sum(case.layer == layer for case in self.cases)
        name = f"{layer}_{number}" if number else layer
        self.cases.append(Case(name, layer, args, kwargs, inputs, train, eval, wrapped))


table = Table()
add = table.add

add("Identity", (), normal(2, 3))
add("Linear", (3, 4), normal(2, 3))
add("Linear", (3, 4), normal(3), bias=False)
add("Bilinear", (2, 3, 4), normal(5, 2), normal(5, 3))
add("Embedding", (5, 3, 1), integers(5, 2, 4), norm_type=1.0)
add("Embedding", (5, 3), integers(5, 4), max_norm=1.0, scale_grad_by_freq=True)
add("EmbeddingBag", (5, 3), integers(5, 2, 4), padding_idx=-1)
add("EmbeddingBag", (5, 3), integers(5, 6), np.array([0, 2]), mode="max")
add("Flatten", (), normal(2, 3, 2))
add("Unflatten", (1, (2, 3)), normal(2, 6))

for dims in (1, 2, 3):
    image = (2, 4, 5, 6, 4)[: 2 + dims]
    add(f"Conv{dims}d", (4, 2, 3), normal(*image), stride=2, padding=1)
    add(f"ConvTranspose{dims}d", (4, 2, 3), normal(*image), stride=2, output_padding=1)
add("Conv1d", (4, 4, 3), normal(4, 6), dilation=2, groups=2, padding="same", bias=False)
for mode in ("reflect", "replicate", "circular"):
    add("Conv2d", (4, 2, (3, 2)), normal(2, 4, 5, 6), padding=(1, 2), padding_mode=mode)
add("ConvTranspose2d", (4, 2, 3), normal(4, 3, 2), padding=1, groups=2, dilation=(1, 2))
add("Unfold", 2, normal(1, 2, 3, 3), padding=1, stride=2)
add("Fold", ((3, 3), 2), normal(1, 8, 4))

for dims in (1, 2, 3):
    image = (2, 5, 6, 4)[: 1 + dims]
    add(f"MaxPool{dims}d", 2, normal(1, *image), padding=1, ceil_mode=True)
    add(f"AvgPool{dims}d", 2, normal(1, *image), padding=1, count_include_pad=False)
    add(f"LPPool{dims}d", (2.0, 2), uniform(*image), stride=1)
    add(f"AdaptiveMaxPool{dims}d", 3, normal(1, *image))
    add(f"AdaptiveAvgPool{dims}d", 3, normal(*image))
    places = np.arange(2 * 2**dims).reshape(2, *[2] * dims) % 2**dims * (4**dims // 2**dims)
    add(f"MaxUnpool{dims}d", 2, normal(2, *[2] * dims), places)
add("MaxPool2d", (3, 2), normal(1, 2, 6, 5), dilation=(1, 2))
add("AvgPool2d", ((2, 3), 2), normal(2, 4, 5), divisor_override=5)
add("FractionalMaxPool2d", 2, normal(1, 2, 5, 5), output_size=3, _random_samples=uniform(1, 2, 2))
add(
    "FractionalMaxPool3d",
    2,
    normal(1, 1, 4, 4, 4),
    output_ratio=0.5,
    _random_samples=uniform(1, 1, 3),
)

for dims in (1, 2, 3):
    image, sides = (1, 2, 4, 3, 3)[: 2 + dims], (1, 2, 0, 1, 1, 1)[: 2 * dims]
    for kind in ("Circular", "Reflection", "Replication", "Zero"):
        add(f"{kind}Pad{dims}d", (sides,), normal(*image))
    add(f"ConstantPad{dims}d", (1, 2.5), normal(*image))

for dims in (1, 2, 3):
    image = (3, 2, 4, 3, 2)[: 2 + dims]
    add(f"BatchNorm{dims}d", 2, normal(*image), eval=True)
    add(f"InstanceNorm{dims}d", 2, normal(*image), eval=True, affine=True, track_running_stats=True)
add("BatchNorm1d", 2, normal(4, 2), eval=True, momentum=None, affine=False)
add("BatchNorm1d", 2, normal(4, 2), eval=True, track_running_stats=False, bias=False)
add("InstanceNorm2d", 2, normal(2, 3, 3))
add("LayerNorm", ((3, 2),), normal(2, 3, 2))
add("LayerNorm", 3, normal(2, 3), eps=0.1, bias=False)
add("GroupNorm", (2, 4), normal(2, 4, 3))
add("GroupNorm", (2, 4), normal(2, 4), affine=False)
add("RMSNorm", 3, normal(2, 3))
add("LocalResponseNorm", 3, normal(2, 4, 3), alpha=0.1, k=2.0)

add("Dropout", 0.3, normal(2, 3), train=False, eval=True)
add("Dropout1d", 0.3, normal(2, 3, 2), train=False, eval=True)
add("Dropout2d", 0.3, normal(2, 3, 2, 2), train=False, eval=True)
add("Dropout3d", 0.3, normal(2, 3, 1, 2, 2), train=False, eval=True)
add("AlphaDropout", 0.3, normal(2, 3), train=False, eval=True)
add("FeatureAlphaDropout", 0.3, normal(2, 3), train=False, eval=True)

for (
    name
) in """CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish ReLU
    ReLU6 SELU SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink PReLU""".split():
    add(name, (), 2 * normal(2, 4))
add("RReLU", (), normal(2, 4), train=False, eval=True)
add("PReLU", 3, normal(2, 3, 2))
add("Threshold", (0.2, -3.0), normal(2, 4))
add("GLU", 0, normal(2, 4))
add("GELU", (), normal(2, 4), approximate="tanh")
add("ELU", (), normal(2, 4), alpha=0.5)
for name in ("Softmax", "Softmin", "LogSoftmax"):
    add(name, (), normal(2, 4), dim=1)
add("Softmax2d", (), normal(3, 2, 2))

add("PixelShuffle", 2, normal(1, 4, 2, 2))
add("PixelUnshuffle", 2, normal(1, 1, 4, 2))
add("ChannelShuffle", 2, normal(1, 4, 2, 1))
add("Upsample", (), normal(1, 2, 3), scale_factor=1.5)
add("Upsample", (4,), normal(1, 2, 3), mode="linear", align_corners=True)
add("UpsamplingNearest2d", (), normal(1, 1, 2, 2), scale_factor=2)
add("UpsamplingBilinear2d", (3,), normal(1, 1, 2, 2))
add("CosineSimilarity", (), normal(2, 3), normal(2, 3))
add("PairwiseDistance", 1.0, normal(2, 3), normal(2, 3), keepdim=True)

for name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss"):
    add(name, (), normal(2, 3), normal(2, 3))
add("SmoothL1Loss", (), normal(2, 3), normal(2, 3), beta=0.3, reduction="none")
add("HuberLoss", (), normal(2, 3), normal(2, 3), delta=0.3, reduction="sum")
add("PoissonNLLLoss", (), normal(2, 3), uniform(2, 3), full=True)
add("GaussianNLLLoss", (), normal(2, 3), normal(2, 3), uniform(2, 3), full=True)
add("KLDivLoss", (), -uniform(2, 3), uniform(2, 3), reduction="batchmean")
add("KLDivLoss", (), -uniform(2, 3), -uniform(2, 3), log_target=True, reduction="sum")
add("BCELoss", (), uniform(2, 3), uniform(2, 3))
add("BCELoss", (), uniform(2, 3), uniform(2, 3), weight=uniform(3), reduction="sum")
add("BCEWithLogitsLoss", (), normal(2, 3), uniform(2, 3), pos_weight=uniform(3))
add("NLLLoss", (), normal(4, 3), integers(3, 4), weight=uniform(3), ignore_index=1)
add("CrossEntropyLoss", (), normal(4, 3), integers(3, 4), label_smoothing=0.2, weight=uniform(3))
add("CrossEntropyLoss", (), normal(2, 3, 2), uniform(2, 3, 2), reduction="sum")
add("LinearCrossEntropyLoss", (2, 3), normal(4, 2), integers(3, 4), bias=True)
add("HingeEmbeddingLoss", (), normal(4), signs(4))
add("CosineEmbeddingLoss", (), normal(4, 3), normal(4, 3), signs(4), margin=0.1)
add("MarginRankingLoss", (), normal(4), normal(4), signs(4), margin=0.1)
add("SoftMarginLoss", (), normal(4), signs(4))
add("MultiMarginLoss", 2, normal(4, 3), integers(3, 4), weight=uniform(3))
add("MultiLabelMarginLoss", (), normal(2, 3), np.array([[1, 2, -1], [0, -1, 1]]))
add("MultiLabelSoftMarginLoss", (), normal(2, 3), integers(2, 2, 3).astype(np.float32))
add("TripletMarginLoss", (), normal(4, 3), normal(4, 3), normal(4, 3), swap=True)
add("TripletMarginWithDistanceLoss", (), normal(4, 3), normal(4, 3), normal(4, 3), margin=0.5)
add("CTCLoss", (), normal(5, 2, 3), np.array([[1, 2], [2, 1]]), np.array([5, 4]), np.array([2, 1]))
add(
    "AdaptiveLogSoftmaxWithLoss",
    (4, 6, [2, 4]),
    normal(5, 4),
    np.array([0, 1, 3, 5, 2]),
    div_value=2,
)

add("Linear", (3, 4), normal(2, 3), wrapped=("parametrizations.weight_norm",))
add("Linear", (3, 4), normal(2, 3), eval=True, wrapped=("parametrizations.spectral_norm",))
add("Linear", (3, 3), normal(2, 3), wrapped=("parametrizations.orthogonal",))
add("Linear", (3, 3), normal(2, 3), wrapped=("parametrizations.orthogonal", "weight", "cayley"))
add("Linear", (3, 4), normal(2, 3), wrapped=("parametrizations.orthogonal",))
add("ConvTranspose1d", (2, 3, 2), normal(1, 2, 4), wrapped=("parametrizations.spectral_norm",))
add("Linear", (3, 4), normal(2, 3), wrapped=("weight_norm",))
add("Linear", (3, 4), normal(2, 3), eval=True, wrapped=("spectral_norm",))

CASES = table.cases


def is_differentiable(case: Case, place: int) -> bool:
    """Whether an input gets a gradient: a float, and of a loss the first only."""
    is_float = case.inputs[place].dtype == np.float32
    return is_float and (place == 0 or not case.layer.endswith("Loss"))


def made(case: Case, nn: Any, as_tensor: Callable[[Any], Any]) -> Any:
    """The layer of a case, from the `nn` of PyTorch or of dyngraph."""
    kwargs = {
        name: as_tensor(value) if isinstance(value, np.ndarray) else value
        for name, value in case.kwargs.items()
    }
    module = getattr(nn, case.layer)(*case.args, **kwargs)
    if case.wrapped:
        name, *args = case.wrapped
        with warnings.catch_warnings(action="ignore", category=FutureWarning):
            module = attrgetter(name)(nn.utils)(module, *args)
    return module


def weights_of(shape: tuple[int, ...]) -> np.ndarray:
    """The gradient with which a backward pass begins."""
    return np.cos(np.arange(int(np.prod(shape)))).astype(np.float32).reshape(shape)

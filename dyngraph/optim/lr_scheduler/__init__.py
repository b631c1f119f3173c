"""PyTorch's `torch.optim.lr_scheduler`: learning rates that change from epoch to epoch."""

from dyngraph.optim.lr_scheduler.combined import (
    ChainedScheduler as ChainedScheduler,
    OptaxLR as OptaxLR,
    ReduceLROnPlateau as ReduceLROnPlateau,
    SequentialLR as SequentialLR,
)
from dyngraph.optim.lr_scheduler.cycles import (
    CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts,
    CyclicLR as CyclicLR,
    OneCycleLR as OneCycleLR,
)
from dyngraph.optim.lr_scheduler.factors import (
    ConstantLR as ConstantLR,
    CosineAnnealingLR as CosineAnnealingLR,
    ExponentialLR as ExponentialLR,
    LambdaLR as LambdaLR,
    LinearLR as LinearLR,
    MultiplicativeLR as MultiplicativeLR,
    MultiStepLR as MultiStepLR,
    PolynomialLR as PolynomialLR,
    StepLR as StepLR,
)
from dyngraph.optim.lr_scheduler.scheduler import LRScheduler as LRScheduler

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "OptaxLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

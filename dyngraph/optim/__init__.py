"""PyTorch's `torch.optim`, made of optax: one jitted call moves all parameters of all groups."""

from dyngraph.optim import lr_scheduler as lr_scheduler, swa_utils as swa_utils
from dyngraph.optim.accumulated import (
    Adadelta as Adadelta,
    Adafactor as Adafactor,
    Adagrad as Adagrad,
    RMSprop as RMSprop,
)
from dyngraph.optim.adam import (
    Adam as Adam,
    Adamax as Adamax,
    AdamW as AdamW,
    Lion as Lion,
    NAdam as NAdam,
    RAdam as RAdam,
)
from dyngraph.optim.descent import ASGD as ASGD, SGD as SGD, Muon as Muon, Rprop as Rprop
from dyngraph.optim.lbfgs import LBFGS as LBFGS
from dyngraph.optim.optimizer import (
    Optimizer as Optimizer,
    register_optimizer_step_post_hook as register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook as register_optimizer_step_pre_hook,
)
from dyngraph.optim.wrapped import Optax as Optax

__all__ = [
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "LBFGS",
    "Lion",
    "Muon",
    "NAdam",
    "Optax",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "lr_scheduler",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "swa_utils",
]

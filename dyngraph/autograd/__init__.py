"""PyTorch's `torch.autograd`: backward, grad, the modes, and the graph's own names."""

from dyngraph.autograd import (
    anomaly_mode as anomaly_mode,
    forward_ad as forward_ad,
    function as function,
    functional as functional,
    grad_mode as grad_mode,
    graph as graph,
)
from dyngraph.autograd.anomaly_mode import (
    detect_anomaly as detect_anomaly,
    set_detect_anomaly as set_detect_anomaly,
)
from dyngraph.autograd.function import (
    Function as Function,
    NestedIOFunction as NestedIOFunction,
)
from dyngraph.autograd.grad_mode import enforce_grad_layout_policy as enforce_grad_layout_policy
from dyngraph.autograd.gradcheck import gradcheck as gradcheck, gradgradcheck as gradgradcheck
from dyngraph.autograd.graph import (
    _unsafe_preserve_version_counter as _unsafe_preserve_version_counter,
)
from dyngraph.autograd.variable import Variable as Variable
from dyngraph.backward import backward as backward, grad as grad
from dyngraph.graph.saved import SavedTensor as SavedTensor
from dyngraph.modes import (
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    is_multithreading_enabled as is_multithreading_enabled,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
    set_multithreading_enabled as set_multithreading_enabled,
)

__all__ = [
    "Function",
    "NestedIOFunction",
    "SavedTensor",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_multithreading_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

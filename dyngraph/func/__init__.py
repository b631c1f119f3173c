"""PyTorch's `torch.func`: derivatives and maps as transforms of functions, which nest in each
other."""

from dyngraph.batches import current_batch as current_batch
from dyngraph.func.forward import jvp as jvp, linearize as linearize
from dyngraph.func.functional_form import functionalize as functionalize
from dyngraph.func.jacobians import hessian as hessian, jacfwd as jacfwd, jacrev as jacrev
from dyngraph.func.mapping import vmap as vmap
from dyngraph.func.modules import (
    functional_call as functional_call,
    stack_module_state as stack_module_state,
)
from dyngraph.func.reverse import grad as grad, grad_and_value as grad_and_value, vjp as vjp

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]

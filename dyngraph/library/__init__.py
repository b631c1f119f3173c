"""PyTorch's `torch.library`: custom operators, and checks of them."""

from dyngraph.library.checks import opcheck as opcheck
from dyngraph.library.operators import (
    CustomOpDef as CustomOpDef,
    custom_op as custom_op,
    register_autograd as register_autograd,
    register_fake as register_fake,
    register_kernel as register_kernel,
    register_vmap as register_vmap,
)

__all__ = [
    "CustomOpDef",
    "custom_op",
    "opcheck",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
]

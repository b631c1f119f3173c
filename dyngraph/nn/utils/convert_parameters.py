"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from dyngraph.ops.joining import cat
from dyngraph.ops.memory import detach
from dyngraph.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements in one row, recorded; TypeError where the parameters are on several devices.

    >>> dg.nn.utils.parameters_to_vector([dg.ones(2, 1), dg.zeros(1)])
    tensor([1., 1., 0.])
    """
    listed = list(parameters)
    _check_devices(listed)
    return cat([parameter.reshape(-1) for parameter in listed])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Makes the parameters look at the memory of a vector, each at the part that comes next, unseen
    by autograd; TypeError for no tensor, and where the parameters are on several devices.

    >>> weight = dg.nn.Parameter(dg.zeros(2, 1))
    >>> dg.nn.utils.vector_to_parameters(dg.tensor([1.0, 2.0]), [weight])
    >>> weight.tolist()
    [[1.0], [2.0]]
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected Tensor, but got: {type(vec).__name__}")
    listed = list(parameters)
    _check_devices(listed)
    row, first = detach(vec), 0
    for parameter in listed:
        last = first + parameter.numel()
        parameter.data = row[first:last].view(parameter.shape)
        first = last


def _check_devices(parameters: list[Tensor]) -> None:
    devices = {str(parameter.device) for parameter in parameters}
    if len(devices) > 1:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported: "
            f"{', '.join(sorted(devices))}"
        )

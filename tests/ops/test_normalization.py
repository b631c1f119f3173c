"""What the rows can't say of normalisation: errors, running statistics, 16-bit inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg
from dyngraph.nn import functional as F

ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "layer_norm": (
        lambda: F.layer_norm(dg.ones(2, 3), (2,)),
        RuntimeError,
        r"Given normalized_shape=\[2\], expected input with shape \[\*, 2\]",
    ),
    "batch_norm": (
        lambda: F.batch_norm(dg.ones(1, 3), None, None, training=True),
        ValueError,
        "Expected more than 1 value per channel when training",
    ),
    "batch_norm without statistics": (
        lambda: F.batch_norm(dg.ones(2, 3), None, None),
        RuntimeError,
        "Expected running_mean and running_var to be defined",
    ),
    "group_norm": (
        lambda: F.group_norm(dg.ones(2, 3), 2),
        RuntimeError,
        "channels in input to be divisible by num_groups",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_wrong_arguments_raise(case: str) -> None:
    call, error, message = ERRORS[case]
    with pytest.raises(error, match=message):
        call()


def test_training_moves_the_running_statistics() -> None:
    mean, var = dg.zeros(1), dg.ones(1)
    F.batch_norm(dg.tensor([[1.0], [3.0]]), mean, var, training=True, momentum=0.5)
    assert (mean.tolist(), var.tolist()) == ([1.0], [1.5])  # var of the batch, unbiased: 2
    assert (mean._version, var._version) == (1, 1)


def test_batch_norm_by_running_statistics() -> None:
    x = dg.tensor([[2.0, 1.0], [4.0, 1.0]], requires_grad=True)
    mean, var = dg.tensor([1.0, 0.0]), dg.tensor([4.0, 1.0])
    y = F.batch_norm(x, mean, var, dg.tensor([2.0, 1.0]), eps=0.0)
    assert y.tolist() == [[1.0, 1.0], [3.0, 1.0]]
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_sixteen_bits_are_normalised_in_thirty_two() -> None:
    x = dg.full((1, 4096), 30.0, dtype=dg.float16)
    assert F.rms_norm(x, (4096,)).dtype == dg.float16
    assert F.rms_norm(x, (4096,))[0, 0].item() == 1.0


def test_group_norm_of_an_empty_batch_is_empty() -> None:
    assert dg.nn.functional.group_norm(dg.ones(0, 4, 3), 2).shape == (0, 4, 3)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 0)])
@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_of_no_elements_has_their_shape(shape: tuple[int, ...], training: bool) -> None:
    # PyTorch 2.13 asks for no channels here, and leaves the statistics as they are.
    mean, var = dg.zeros(3), dg.ones(3)
    x = dg.zeros(shape, requires_grad=True)
    y = F.batch_norm(x, mean, var, dg.ones(3), dg.zeros(3), training=training)
    y.sum().backward()
    assert x.grad is not None
    assert (y.shape, x.grad.shape) == (shape, shape)
    assert (mean.tolist(), var.tolist()) == ([0.0] * 3, [1.0] * 3)

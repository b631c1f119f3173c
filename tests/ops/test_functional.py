"""What the rows can't say of softmax, linear maps and padding: errors, edges, saved tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.nn import functional as F

ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "softmax of ints": (lambda: dg.softmax(dg.tensor([1]), 0), RuntimeError, r"Convert .* \.float"),
    "softmax dim": (lambda: dg.softmax(dg.ones(2), 1), IndexError, "Dimension out of range"),
    "glu": (lambda: F.glu(dg.ones(3)), RuntimeError, "Halving dimension must be even"),
    "linear": (
        lambda: F.linear(dg.ones(2, 3), dg.ones(4, 5)),
        RuntimeError,
        r"cannot be multiplied \(2x3 and 5x4\)",
    ),
    "linear bias": (
        lambda: F.linear(dg.ones(2, 3), dg.ones(4, 3), dg.ones(5)),
        RuntimeError,
        r"expanded size of the tensor \(4\) must match the existing size \(5\)",
    ),
    "pad": (
        lambda: F.pad(dg.ones(3), (3, 0), "reflect"),
        RuntimeError,
        "Padding size should be less than the corresponding input dimension",
    ),
    "pad mode": (lambda: F.pad(dg.ones(3), (1, 0), "x"), NotImplementedError, "padding mode x"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_wrong_arguments_raise(case: str) -> None:
    call, error, message = ERRORS[case]
    with pytest.raises(error, match=message):
        call()


def test_linear_has_the_edges_of_addmm() -> None:
    bias, x, weight = (dg.ones(s, requires_grad=True) for s in ((2,), (4, 3), (2, 3)))
    node = F.linear(x, weight, bias).grad_fn
    assert node is not None
    assert node.name() == "AddmmBackward0"
    leaves = [n.variable for n, _ in node.next_functions]  # type: ignore[union-attr]
    assert [leaf is t for leaf, t in zip(leaves, (bias, x, weight))] == [True] * 3


def test_softmax_saves_only_its_result() -> None:
    node = dg.softmax(dg.ones(2, requires_grad=True), 0).grad_fn
    assert node is not None
    assert node._saved_result.tolist() == [0.5, 0.5]  # type: ignore[attr-defined]
    assert not hasattr(node, "_saved_self")


def test_norm_of_zeros_has_gradient_zero() -> None:
    x = dg.zeros(1, 2, requires_grad=True)
    F.cosine_similarity(x, dg.ones(1, 2)).sum().backward(retain_graph=True)
    assert x.grad is not None
    assert np.isfinite(x.grad.tolist()).all()


def test_public_names_are_sorted_and_there() -> None:
    assert list(F.__all__) == sorted(F.__all__)
    assert [n for n in F.__all__ if not hasattr(F, n)] == []

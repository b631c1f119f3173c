"""autograd.functional: products with Jacobians and Hessians, and these themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.autograd import functional as af

X = [0.5, -1.0]


def x() -> dg.Tensor:
    return dg.tensor(X)


def two(a: dg.Tensor, b: dg.Tensor) -> tuple[dg.Tensor, dg.Tensor]:
    """Jacobians: diag(2 a b), diag(a^2); [b, b], [a, a] as rows of sums."""
    return a * a * b, (a * b).sum()


def cube(a: dg.Tensor) -> dg.Tensor:
    return (a**3).sum()


def mixed(a: dg.Tensor, b: dg.Tensor) -> dg.Tensor:
    return (a * a * b).sum()


def assert_tree(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert isinstance(found, (tuple, list)) and len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            assert_tree(f, e)
    else:
        np.testing.assert_allclose(found.detach().numpy(), np.asarray(expected), rtol=1e-5)


# --- Jacobians ----------------------------------------------------------------------------------

WAYS: dict[str, dict[str, Any]] = {
    "loop": {},
    "vectorized": {"vectorize": True},
    "recorded": {"vectorize": True, "create_graph": True},
    "forward": {"vectorize": True, "strategy": "forward-mode"},
}
every_way = pytest.mark.parametrize("way", WAYS)


@every_way
def test_jacobian_of_one_tensor_has_the_outputs_dims_then_the_inputs(way: str) -> None:
    found = af.jacobian(lambda a: dg.stack([a, a * a, a**3]), x(), **WAYS[way])
    assert found.shape == (3, 2, 2)
    assert_tree(found, np.stack([np.diag([1, 1]), np.diag([1.0, -2]), np.diag([0.75, 3])]))


@every_way
def test_jacobian_of_tuples_is_a_tuple_of_tuples(way: str) -> None:
    b = dg.tensor([2.0, 3.0])
    expected = (
        (np.diag([2.0, -6.0]), np.diag([0.25, 1.0])),
        (np.array([2.0, 3.0]), np.array(X)),
    )
    assert_tree(af.jacobian(two, (x(), b), **WAYS[way]), expected)


@every_way
def test_jacobian_of_a_tuple_of_one_is_a_tuple(way: str) -> None:
    assert_tree(af.jacobian(lambda a: (a * 2,), (x(),), **WAYS[way]), ((np.diag([2, 2]),),))


@every_way
def test_jacobian_for_an_input_that_is_not_used_is_zero(way: str) -> None:
    found = af.jacobian(lambda a, b: a * 3, (x(), dg.ones(3)), **WAYS[way])
    assert_tree(found, (np.diag([3, 3]), np.zeros((2, 3))))


def test_jacobian_of_scalars_has_no_dims() -> None:
    assert_tree(af.jacobian(lambda a: a * a, dg.tensor(3.0)), np.asarray(6.0))


@pytest.mark.parametrize("vectorize", [False, True])
def test_jacobian_with_create_graph_has_a_history(vectorize: bool) -> None:
    a = x().requires_grad_()
    found = af.jacobian(lambda a: a**3, a, create_graph=True, vectorize=vectorize)
    found.sum().backward()
    assert_tree(a.grad, [3.0, -6.0])


def test_jacobian_without_create_graph_has_no_history() -> None:
    a = x().requires_grad_()
    assert not af.jacobian(lambda a: a**3, a).requires_grad


def test_jacobian_runs_under_no_grad() -> None:
    with dg.no_grad():
        assert_tree(af.jacobian(lambda a: a * a, x()), np.diag([1.0, -2.0]))


def test_jacobian_runs_the_function_on_copies() -> None:
    a = x()
    af.jacobian(lambda b: b * 2, a)
    assert not a.requires_grad


def test_vectorized_jacobian_calls_hooks_once_for_all_rows() -> None:
    calls: list[tuple[int, ...]] = []

    def function(a: dg.Tensor) -> dg.Tensor:
        b = a * a
        b.register_hook(lambda grad: calls.append(tuple(grad.shape)))
        return b

    af.jacobian(function, x(), vectorize=True)
    assert calls == [(2,)]


# --- Hessians -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"vectorize": True},
        {"vectorize": True, "outer_jacobian_strategy": "forward-mode"},
    ],
    ids=["loop", "vectorized", "forward"],
)
def test_hessian_of_tuples_is_a_tuple_of_tuples(options: dict[str, Any]) -> None:
    b = dg.tensor([2.0, 3.0])
    expected = (
        (np.diag([4.0, 6.0]), np.diag([1.0, -2.0])),
        (np.diag([1.0, -2.0]), np.zeros((2, 2))),
    )
    assert_tree(af.hessian(mixed, (x(), b), **options), expected)


def test_hessian_of_one_tensor_is_a_tensor() -> None:
    assert_tree(af.hessian(cube, x()), np.diag([3.0, -6.0]))


def test_hessian_with_create_graph_has_a_history() -> None:
    a = x().requires_grad_()
    af.hessian(cube, a, create_graph=True).sum().backward()
    assert_tree(a.grad, [6.0, 6.0])


# --- products -----------------------------------------------------------------------------------


def test_vjp_gives_output_and_product() -> None:
    assert_tree(af.vjp(lambda a: a * a, x(), dg.tensor([1.0, 10.0])), ([0.25, 1.0], [1.0, -20.0]))


def test_vjp_of_one_element_needs_no_vector() -> None:
    assert_tree(af.vjp(cube, x()), (-0.875, [0.75, 3.0]))


def test_vjp_of_tuples_gives_tuples() -> None:
    b, v = dg.tensor([2.0, 3.0]), (dg.ones(2), dg.tensor(2.0))
    expected = (([0.5, 3.0], -2.0), ([6.0, 0.0], [1.25, -1.0]))
    assert_tree(af.vjp(two, (x(), b), v), expected)


def test_jvp_gives_output_and_product() -> None:
    assert_tree(af.jvp(lambda a: a * a, x(), dg.tensor([1.0, 10.0])), ([0.25, 1.0], [1.0, -20.0]))


def test_jvp_of_one_element_needs_no_vector() -> None:
    assert_tree(af.jvp(lambda a: a * dg.ones(2), dg.tensor([3.0])), ([3.0, 3.0], [1.0, 1.0]))


@pytest.mark.parametrize("product", [af.vhp, af.hvp])
def test_products_with_the_hessian(product: Callable[..., Any]) -> None:
    b, v = dg.tensor([2.0, 3.0]), (dg.tensor([1.0, 0.0]), dg.tensor([0.0, 1.0]))
    assert_tree(product(mixed, (x(), b), v), (3.5, ([4.0, -2.0], [1.0, 0.0])))


@pytest.mark.parametrize("product", [af.vjp, af.jvp, af.vhp, af.hvp])
def test_products_with_create_graph_have_a_history(product: Callable[..., Any]) -> None:
    a = dg.tensor(2.0, requires_grad=True)
    _, found = product(lambda a: a**4, a, dg.tensor(1.0), create_graph=True)
    (slope,) = dg.autograd.grad(found, a)
    assert slope.item() == 48.0


@pytest.mark.parametrize("product", [af.vjp, af.jvp, af.vhp, af.hvp])
def test_products_without_create_graph_have_none(product: Callable[..., Any]) -> None:
    a = dg.tensor(2.0, requires_grad=True)
    output, found = product(lambda a: a**4, a, dg.tensor(1.0))
    assert not output.requires_grad and not found.requires_grad


@pytest.mark.parametrize("product", [af.vjp, af.vhp, af.hvp])
def test_products_for_an_input_that_is_not_used_are_zero(product: Callable[..., Any]) -> None:
    v = None if product is af.vjp else (dg.ones(2), dg.ones(2))
    _, (_, found) = product(lambda a, b: (a**2).sum(), (x(), x()), v)
    assert_tree(found, [0.0, 0.0])


# --- refused ------------------------------------------------------------------------------------


any_: Any = af  # for what no type checker lets pass


def independent(a: dg.Tensor) -> dg.Tensor:
    return dg.ones(2)


def linear(a: dg.Tensor) -> dg.Tensor:
    return a.sum()


def detached(a: dg.Tensor, b: dg.Tensor) -> dg.Tensor:
    return (a * a).sum()


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (
            lambda: any_.jacobian(lambda a: 1, x()),
            TypeError,
            "outputs of the user-provided function",
        ),
        (
            lambda: any_.jacobian(lambda a: (a, 1), x()),
            TypeError,
            "the value at index 1 has type",
        ),
        (lambda: any_.jacobian(lambda a: a, 1.0), TypeError, "the given inputs has type"),
        (lambda: any_.vjp(lambda a: a, [x()]), TypeError, "inputs given to vjp must be either"),
        (lambda: any_.vjp(lambda a: a, x(), [x()]), TypeError, "v given to vjp must be either"),
        (
            lambda: any_.vjp(lambda a: a, x()),
            RuntimeError,
            "v can only be None if the user-provided",
        ),
        (lambda: any_.jvp(lambda a: a, x()), RuntimeError, "v can only be None if the input to"),
        (lambda: any_.vhp(cube, x()), RuntimeError, "v can only be None if the input to"),
        (
            lambda: any_.vjp(lambda a: a, x(), dg.ones(3)),
            RuntimeError,
            r"v has invalid size: should be .*2.* but got .*3",
        ),
        (
            lambda: any_.vjp(lambda a: (a, a), x(), (x(), dg.ones(3))),
            RuntimeError,
            "Entry 1 in v has invalid size",
        ),
        (
            lambda: any_.vjp(lambda a: (a, a), x(), (x(),)),
            RuntimeError,
            "v is a tuple of invalid length: should be 2 but got 1",
        ),
        (
            lambda: any_.vjp(lambda a: a, x(), (x(), x())),
            RuntimeError,
            "v should contain a single Tensor",
        ),
        (lambda: any_.vhp(lambda a: a, x(), x()), RuntimeError, "vhp should contain a single"),
        (
            lambda: any_.hvp(lambda a: (a.sum(),), x(), x()),
            RuntimeError,
            "return a single Tensor",
        ),
        (lambda: any_.hessian(lambda a: a, x()), RuntimeError, "should contain a single"),
        (
            lambda: any_.hessian(lambda a: (a.sum(),), x()),
            RuntimeError,
            "return a single Tensor",
        ),
        (lambda: any_.jacobian(cube, x(), strategy="sideways"), AssertionError, "forward-mode"),
        (
            lambda: any_.hessian(cube, x(), outer_jacobian_strategy="sideways"),
            AssertionError,
            "forward-mode",
        ),
        (
            lambda: any_.jacobian(cube, x(), strategy="forward-mode"),
            NotImplementedError,
            "only implemented for `vectorize=True`|vectorize=True",
        ),
        (
            lambda: any_.jacobian(cube, x(), create_graph=True, strategy="forward-mode"),
            NotImplementedError,
            "not supported together",
        ),
        (
            lambda: any_.jacobian(cube, x(), strict=True, strategy="forward-mode"),
            RuntimeError,
            "not supported together",
        ),
        (
            lambda: any_.jacobian(cube, x(), strict=True, vectorize=True),
            RuntimeError,
            "not supported together",
        ),
    ],
)
def test_misuse_raises(call: Callable[[], Any], kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        call()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (
            lambda: any_.vjp(independent, x(), x(), strict=True),
            "Output 0 .* does not require grad",
        ),
        (
            lambda: any_.jacobian(independent, x(), strict=True),
            "Output 0 .* does not require grad",
        ),
        (lambda: any_.jacobian(detached, (x(), x()), strict=True), "Output 0 .* of input 1"),
        (lambda: any_.vjp(detached, (x(), x()), strict=True), "is independent of input 1"),
        (
            lambda: any_.jvp(detached, (x(), x()), (x(), x()), strict=True),
            "is independent of input 1|independent of the inputs",
        ),
        (
            lambda: any_.jacobian(linear, x(), strict=True, create_graph=True),
            "independent of input 0.* when create_graph=True",
        ),
        (lambda: any_.hessian(linear, x(), strict=True), "the jacobian of the user-provided"),
        (lambda: any_.vhp(linear, x(), x(), strict=True), "the jacobian of the user-provided"),
        (lambda: any_.hvp(linear, x(), x(), strict=True), "the jacobian of the user-provided"),
    ],
)
def test_strict_refuses_what_would_be_zero(call: Callable[[], Any], match: str) -> None:
    with pytest.raises(RuntimeError, match=match):
        call()

"""func.functional_call, func.stack_module_state and func.functionalize."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
import dyngraph.func as func


class Part:
    """As much of a module as these functions need."""

    training = True

    def __init__(self, **tensors: Any) -> None:
        self.__dict__.update(tensors)

    def _named(self, buffers: bool, prefix: str = "") -> Iterator[tuple[str, dg.Tensor]]:
        for name, value in vars(self).items():
            if isinstance(value, Part):
                yield from value._named(buffers, f"{prefix}{name}.")
            elif isinstance(value, dg.Tensor) and (name == "steps") == buffers:
                yield prefix + name, value

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, dg.Tensor]]:
        return self._named(False)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, dg.Tensor]]:
        return self._named(True)


class Line(Part):
    def __call__(self, x: Any, *, by: float = 1.0) -> Any:
        return (self.weight * x + self.bias) * by  # type: ignore[attr-defined]


class Counting(Part):
    def __call__(self, x: Any) -> Any:
        self.steps = self.steps + 1  # type: ignore[attr-defined, has-type]
        return self.inner(x) * self.scale  # type: ignore[attr-defined]


X = dg.tensor(3.0)


def line(weight: float = 2.0, *, requires_grad: bool = True) -> Line:
    return Line(
        weight=dg.tensor(weight, requires_grad=requires_grad),
        bias=dg.tensor(1.0, requires_grad=requires_grad),
    )


def counting() -> Counting:
    return Counting(inner=line(), scale=dg.tensor(10.0), steps=dg.tensor(0.0))


def test_call_uses_what_is_given() -> None:
    assert func.functional_call(line(), {"weight": dg.tensor(5.0)}, X).item() == 16.0


def test_module_is_afterwards_what_it_was() -> None:
    module = line()
    before = dict(vars(module))
    func.functional_call(module, {"weight": dg.tensor(5.0), "bias": dg.tensor(0.0)}, (X,))
    assert all(vars(module)[name] is value for name, value in before.items())


def test_module_is_what_it_was_though_it_raises() -> None:
    module = line()
    before = module.weight  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="unexpected keyword"):
        func.functional_call(module, {"weight": dg.tensor(5.0)}, X, {"off": 1})
    assert module.weight is before  # type: ignore[attr-defined]


def test_call_takes_keywords() -> None:
    assert func.functional_call(line(), {}, X, {"by": 2.0}).item() == 14.0


def test_call_takes_several_dicts() -> None:
    dicts = ({"weight": dg.tensor(5.0)}, {"bias": dg.tensor(0.0)})
    assert func.functional_call(line(), dicts, X).item() == 15.0


def test_names_lead_into_parts() -> None:
    found = func.functional_call(counting(), {"inner.weight": dg.tensor(5.0)}, X)
    assert found.item() == 160.0


def test_what_the_module_assigns_is_in_the_dict() -> None:
    module, state = counting(), {"steps": dg.tensor(5.0)}
    func.functional_call(module, state, X)
    assert state["steps"].item() == 6.0 and module.steps.item() == 0.0  # type: ignore[attr-defined]


def test_tied_names_get_one_value() -> None:
    shared = dg.tensor(2.0)
    module = Line(weight=shared, bias=shared)
    assert func.functional_call(module, {"weight": dg.tensor(5.0)}, X).item() == 20.0
    untied = func.functional_call(module, {"weight": dg.tensor(5.0)}, X, tie_weights=False)
    assert untied.item() == 17.0


def test_gradient_is_for_what_is_given() -> None:
    def loss(state: dict[str, dg.Tensor]) -> dg.Tensor:
        return func.functional_call(line(), state, X)

    found = func.grad(loss)({"weight": dg.tensor(5.0), "bias": dg.tensor(0.0)})
    assert found["weight"].item() == 3.0 and found["bias"].item() == 1.0


def test_ensemble_is_mapped_over_stacked_state() -> None:
    models = [line(1.0), line(2.0), line(3.0)]
    parameters, buffers = func.stack_module_state(models)
    mapped = func.vmap(lambda p, b, x: func.functional_call(models[0], (p, b), x), (0, 0, None))
    found = mapped(parameters, buffers, X)
    np.testing.assert_allclose(found.detach().numpy(), [4.0, 7.0, 10.0])
    found.sum().backward()
    np.testing.assert_allclose(parameters["weight"].grad.numpy(), [3.0] * 3)  # type: ignore[union-attr]


def test_per_sample_gradients() -> None:
    # "Per-sample-gradients", the tutorial of torch.func
    module = line()
    state = {name: tensor.detach() for name, tensor in module.named_parameters()}

    def loss(state: dict[str, dg.Tensor], x: dg.Tensor, y: dg.Tensor) -> dg.Tensor:
        return (func.functional_call(module, state, x) - y) ** 2

    x, y = dg.tensor([1.0, 2.0]), dg.tensor([0.0, 0.0])
    found = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(state, x, y)
    np.testing.assert_allclose(found["weight"].numpy(), [6.0, 20.0])


def test_stacked_state_is_leaves_that_require_grad_as_the_modules() -> None:
    parameters, buffers = func.stack_module_state([counting(), counting()])
    assert parameters["inner.weight"].is_leaf and parameters["inner.weight"].requires_grad
    assert not parameters["scale"].requires_grad
    assert buffers["steps"].shape == (2,)


def test_functionalize_keeps_writes_to_inputs() -> None:
    x = dg.ones(2)
    assert func.functionalize(lambda x: x.mul_(3))(x).tolist() == [3.0, 3.0]
    assert x.tolist() == [3.0, 3.0]


untyped: Any = func  # for what no type checker lets pass


def in_evaluation() -> Line:
    module = line()
    module.training = False
    return module


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (
            lambda: untyped.functional_call(line(), {"wei": X}, X, strict=True),
            RuntimeError,
            r"(?s)Unexpected key\(s\): 'wei'.*Missing key\(s\)",
        ),
        (
            lambda: untyped.functional_call(line(), 3, X),
            ValueError,
            "to be a dict, or a list/tuple",
        ),
        (lambda: untyped.functional_call(line(), [3], X), ValueError, "to be dictionaries"),
        (
            lambda: untyped.functional_call(line(), [{"bias": X}, {"bias": X}], X),
            ValueError,
            "appeared in multiple dictionaries",
        ),
        (
            lambda: untyped.functional_call(
                Line(weight=X, bias=X), {"weight": X, "bias": X * 2}, X
            ),
            ValueError,
            "got multiple values for keys",
        ),
        (lambda: untyped.stack_module_state([]), RuntimeError, "at least one model, got 0"),
        (
            lambda: untyped.stack_module_state([line(), counting()]),
            RuntimeError,
            "all models to be of the same class",
        ),
        (
            lambda: untyped.stack_module_state([line(), in_evaluation()]),
            RuntimeError,
            "the same training/eval mode",
        ),
        (
            lambda: untyped.stack_module_state([line(), line(requires_grad=False)]),
            RuntimeError,
            "the same .requires_grad",
        ),
        (
            lambda: untyped.functionalize(lambda x: x, remove="views"),
            RuntimeError,
            "invalid argument for remove",
        ),
    ],
)
def test_misuse_raises(call: Callable[[], Any], kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        call()

"""Hooks of modules: their order, what they get, and what they may change, in PyTorch's way."""

from typing import Any

import pytest

import dyngraph as dg
from dyngraph import nn
from dyngraph.nn.modules import module as module_file
from tests.conftest import COMPILED, EAGER

both_modes = pytest.mark.parametrize("backward_mode", [EAGER, COMPILED], indirect=True)


class Product(nn.Module):
    def forward(self, x: dg.Tensor, y: dg.Tensor, *, scale: float = 1.0) -> dg.Tensor:
        return x * y * scale


def arguments() -> tuple[dg.Tensor, dg.Tensor]:
    return dg.tensor([2.0], requires_grad=True), dg.tensor([3.0], requires_grad=True)


def test_forward_hooks_run_in_order_global_ones_first() -> None:
    seen: list[str] = []
    module = Product()
    module.register_forward_hook(lambda *_: seen.append("own"))
    module.register_forward_hook(lambda *_: seen.append("prepended"), prepend=True)
    module.register_forward_pre_hook(lambda *_: seen.append("pre"))
    with (
        module_file.register_module_forward_hook(lambda *_: seen.append("global")),
        module_file.register_module_forward_pre_hook(lambda *_: seen.append("global pre")),
    ):
        module(*arguments())
    assert seen == ["global pre", "pre", "global", "prepended", "own"]


def test_hooks_replace_arguments_and_output() -> None:
    module = Product()
    module.register_forward_pre_hook(
        lambda _, args, kwargs: (args, {"scale": 10.0}), with_kwargs=True
    )
    module.register_forward_hook(
        lambda _, args, kwargs, output: output + kwargs["scale"], with_kwargs=True
    )
    assert module(*arguments()).item() == 70.0


def test_removed_hook_runs_no_more() -> None:
    module = Product()
    with module.register_forward_hook(lambda *_: dg.zeros(1)):
        assert module(*arguments()).item() == 0.0
    assert module(*arguments()).item() == 6.0


def test_hook_that_is_always_called_sees_that_forward_raised() -> None:
    module, seen = Product(), []
    module.register_forward_hook(lambda _, args, output: seen.append(output), always_call=True)
    module.register_forward_hook(lambda *_: seen.append("not called"))
    with pytest.raises(TypeError, match="positional argument"):
        module(dg.ones(1))
    assert seen == [None]


def test_error_of_an_always_called_hook_is_a_warning_where_forward_raised() -> None:
    module = Product()
    module.register_forward_hook(lambda *_: 1 / 0, always_call=True)
    with (
        pytest.warns(UserWarning, match="silenced as another error was raised"),
        pytest.raises(TypeError, match="positional argument"),
    ):
        module(dg.ones(1))


@both_modes
def test_backward_hooks_get_and_change_the_modules_gradients(backward_mode: str) -> None:
    module, seen = Product(), []
    module.register_full_backward_pre_hook(lambda _, grads: (grads[0] * 10,))

    def hook(module: nn.Module, inputs: Any, outputs: Any) -> Any:
        seen.append(([g and g.item() for g in inputs], outputs[0].item()))
        return inputs[0] + 1, inputs[1]

    module.register_full_backward_hook(hook)
    for _ in range(2):
        x, y = arguments()
        (module(x, y) * 2).backward()
        assert x.grad is not None and x.grad.item() == 61.0
        assert y.grad is not None and y.grad.item() == 40.0
    assert seen == [([60.0, 40.0], 20.0)] * 2


@both_modes
def test_module_with_hooks_trains_as_one_without(backward_mode: str) -> None:
    dg.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    x = dg.randn(5, 3)

    def gradients() -> list[Any]:
        model.zero_grad()
        model(x).square().sum().backward()
        return [p.grad.tolist() for p in model.parameters() if p.grad is not None]

    plain = gradients()
    model[1].register_full_backward_hook(lambda *_: None)
    model[2].register_full_backward_pre_hook(lambda *_: None)
    assert gradients() == plain


def test_backward_hook_runs_where_no_input_needs_a_gradient() -> None:
    layer, seen = nn.Linear(2, 1), []
    layer.register_full_backward_hook(lambda _, inputs, outputs: seen.append(inputs))
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        layer(dg.ones(1, 2)).sum().backward()
    assert seen == [(None,)]


def test_gradient_of_one_output_only_is_none_for_the_other() -> None:
    class Two(nn.Module):
        def forward(self, x: dg.Tensor) -> tuple[dg.Tensor, dg.Tensor]:
            return x * 2, x * 3

    module, seen = Two(), []
    module.register_full_backward_hook(lambda _, inputs, outputs: seen.append(outputs))
    x, _ = arguments()
    module(x)[0].backward()
    assert seen[0][0].item() == 1.0 and seen[0][1] is None


def test_global_backward_hooks_see_every_module() -> None:
    seen: list[str] = []
    model = nn.Sequential(nn.Tanh(), nn.ReLU())
    with module_file.register_module_full_backward_hook(
        lambda module, *_: seen.append(repr(module).partition("(")[0])
    ):
        model(dg.ones(1, requires_grad=True)).backward()
    assert seen == ["ReLU", "Tanh", "Sequential"]


def test_hook_may_look_at_second_derivatives() -> None:
    module = Product()
    module.register_full_backward_hook(lambda _, inputs, outputs: (inputs[0] * 2, inputs[1]))
    x, y = arguments()
    (grad,) = dg.autograd.grad(module(x, x * y), x, create_graph=True)
    grad.backward()  # grad = 2 x y + x y, from the hook's doubling of the first input's
    assert x.grad is not None and x.grad.item() == 9.0


@pytest.mark.parametrize(
    ("hook", "match"),
    [
        (lambda _, inputs, outputs: inputs[:1], "invalid number of grad_input, got 1"),
        (lambda _, inputs, outputs: (*inputs, None), "invalid number of grad_input, got 3"),
    ],
)
def test_backward_hook_must_return_all_gradients(hook: Any, match: str) -> None:
    module = Product()
    module.register_full_backward_hook(hook)
    with pytest.raises(RuntimeError, match=match):
        module(*arguments()).backward()


def test_pre_hook_with_kwargs_must_return_both() -> None:
    module = Product()
    module.register_forward_pre_hook(lambda *_: (1, 2, 3), with_kwargs=True)
    with pytest.raises(RuntimeError, match=r"a tuple of \(new_args, new_kwargs\)"):
        module(*arguments())


def test_full_and_other_backward_hooks_exclude_each_other() -> None:
    module = Product()
    module.register_backward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="Please use only one of them"):
        module.register_full_backward_hook(lambda *_: None)


def test_older_backward_hook_gets_the_gradients_of_the_outputs_node() -> None:
    module, seen = Product(), []
    module.register_backward_hook(lambda _, inputs, outputs: seen.append(outputs[0].item()))
    module(*arguments()).backward()
    assert seen == [1.0]

"""Module: what is registered, found, converted, copied and pickled, as PyTorch's does."""

import copy
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg
from dyngraph import nn
from dyngraph.nn.modules import module as module_file


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(dg.ones(2))
        self.register_buffer("mean", dg.zeros(2))
        self.register_buffer("scratch", dg.zeros(2), persistent=False)

    def forward(self, x: dg.Tensor) -> dg.Tensor:
        return x * self.scale + self.mean


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Inner()
        self.second = self.first
        self.weight = nn.Parameter(dg.ones(2))

    def forward(self, x: dg.Tensor) -> dg.Tensor:
        return self.first(x) * self.weight


def names(pairs: Any) -> list[str]:
    return [name for name, _ in pairs]


def test_parameters_are_named_by_path_own_ones_first() -> None:
    assert names(Outer().named_parameters()) == ["weight", "first.scale"]


def test_shared_parts_are_found_once_or_under_each_name() -> None:
    model = Outer()
    assert names(model.named_modules()) == ["", "first"]
    everything = names(model.named_parameters(remove_duplicate=False))
    assert everything == ["weight", "first.scale", "second.scale"]
    assert names(model.named_children()) == ["first"]


def test_parameters_without_recursion_are_the_modules_own() -> None:
    assert names(Outer().named_parameters(recurse=False)) == ["weight"]
    assert names(Outer().named_buffers()) == ["first.mean", "first.scratch"]


def test_things_are_found_by_path() -> None:
    model = Outer()
    assert model.get_submodule("first") is model.first
    assert model.get_parameter("first.scale") is model.first.scale
    assert model.get_buffer("first.mean") is model.first.mean
    model.set_submodule("first", nn.Identity())
    assert repr(model.first) == "Identity()"


def test_parameter_that_becomes_a_buffer_is_no_parameter_any_more() -> None:
    module = Inner()
    module.mean = nn.Parameter(dg.ones(2))
    assert names(module.named_parameters()) == ["scale", "mean"]
    del module.mean
    module.mean = nn.Buffer(dg.ones(2), persistent=False)
    assert names(module.named_parameters()) == ["scale"]
    assert list(module.state_dict()) == ["scale"]


def test_tensor_that_is_assigned_to_a_buffer_is_the_buffer() -> None:
    module = Inner()
    module.mean = value = dg.ones(2)
    assert dict(module.named_buffers())["mean"] is value


def test_conversion_keeps_the_parameter_and_converts_its_gradient() -> None:
    model = Outer()
    weight = model.weight
    model(dg.ones(2)).sum().backward()
    model.to(dg.bfloat16)
    assert model.weight is weight and weight.dtype == dg.bfloat16
    assert weight.grad is not None and weight.grad.dtype == dg.bfloat16
    assert model.first.mean.dtype == dg.bfloat16


def test_a_converted_model_trains() -> None:
    model = Outer()
    model(dg.ones(2)).sum().backward()
    model.zero_grad()
    model.half()
    model(dg.ones(2, dtype=dg.float16)).sum().backward()
    assert model.weight.grad is not None and model.weight.grad.dtype == dg.float16


def test_copy_has_parameters_of_its_own_and_the_same_sharing() -> None:
    model = Outer()
    model(dg.ones(2)).sum().backward()
    other = copy.deepcopy(model)
    with dg.no_grad():
        model.weight.fill_(7)
    assert other.weight.tolist() == [1.0, 1.0] and other.weight.grad is None
    assert other.second is other.first and isinstance(other.weight, nn.Parameter)


def test_pickled_module_comes_back() -> None:
    model = Outer()
    model.register_forward_hook(print)
    other = pickle.loads(pickle.dumps(model))
    assert names(other.named_parameters()) == names(model.named_parameters())
    assert other.first.scale.requires_grad and len(other._forward_hooks) == 1


def test_modes_and_requires_grad_reach_all_below() -> None:
    model = Outer().eval().requires_grad_(False)
    assert not model.first.training
    assert not any(p.requires_grad for p in model.parameters())


def test_text_shows_what_is_inside() -> None:
    assert repr(nn.Sequential(nn.Linear(1, 2), Outer())) == (
        "Sequential(\n"
        "  (0): Linear(in_features=1, out_features=2, bias=True)\n"
        "  (1): Outer(\n"
        "    (first): Inner()\n"
        "    (second): Inner()\n"
        "  )\n"
        ")"
    )


def test_names_of_parts_are_listed() -> None:
    assert {"weight", "first", "forward"} <= set(dir(Outer()))


def test_registration_hooks_see_and_replace() -> None:
    def zeros(module: nn.Module, name: str, parameter: nn.Parameter) -> nn.Parameter:
        return nn.Parameter(dg.zeros_like(parameter))

    with module_file.register_module_parameter_registration_hook(zeros):
        assert Inner().scale.tolist() == [0.0, 0.0]
    assert Inner().scale.tolist() == [1.0, 1.0]


@pytest.mark.usefixtures("no_gc")
def test_module_with_hooks_is_freed_with_its_last_reference() -> None:
    model = Outer()
    for hook in (print, repr):
        model.register_full_backward_hook(lambda *_: None)
        model.register_forward_hook(lambda *_: None)
        model.first.register_full_backward_pre_hook(lambda *_: None)
        assert hook
    loss = model(dg.ones(2, requires_grad=True)).sum()
    loss.backward()
    alive = weakref.ref(model.weight), weakref.ref(model)
    del model, loss
    assert [reference() for reference in alive] == [None, None]


class NoInit(nn.Module):
    def __init__(self) -> None:
        self.weight = nn.Parameter(dg.ones(1))


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (lambda: nn.Module(3), TypeError, "takes 1 positional argument but 2 were given"),
        (lambda: nn.Module(bias=1), TypeError, "unexpected keyword argument 'bias'"),
        (NoInit, AttributeError, r"before Module.__init__\(\) call"),
        (lambda: nn.Module()(1), NotImplementedError, 'missing the required "forward"'),
        (lambda: Outer().nothing, AttributeError, "'Outer' object has no attribute 'nothing'"),
        (lambda: setattr(Outer(), "weight", 3), TypeError, "as parameter 'weight'"),
        (lambda: setattr(Outer(), "first", 3), TypeError, "as child module 'first'"),
        (lambda: setattr(Inner(), "mean", 3), TypeError, "as buffer 'mean'"),
        (lambda: Inner().register_buffer("a.b", None), KeyError, 'contain "\\."'),
        (lambda: Inner().register_buffer("", None), KeyError, "be empty string"),
        (lambda: Inner().register_buffer("scale", None), KeyError, "'scale' already exists"),
        (
            lambda: Inner().register_parameter("new", dg.ones(1)),  # type: ignore[arg-type]
            TypeError,
            "nn.Parameter or None required",
        ),
        (
            lambda: setattr(Inner(), "new", nn.Parameter(dg.tensor([1]))),
            RuntimeError,
            "floating point and complex dtype can require gradients",
        ),
        (lambda: Outer().add_module("new", 3), TypeError, "is not a Module subclass"),  # type: ignore[arg-type]
        (lambda: Outer().get_submodule("third"), AttributeError, "no attribute `third`"),
        (lambda: Outer().get_submodule("weight"), AttributeError, "is not an nn.Module"),
        (lambda: Outer().get_parameter("first.mean"), AttributeError, "not an nn.Parameter"),
        (lambda: Outer().get_buffer("weight"), AttributeError, "`weight` is not a buffer"),
        (lambda: Outer().train(1), ValueError, "expected to be boolean"),  # type: ignore[arg-type]
        (lambda: Outer().to(dg.int32), TypeError, "only accepts floating point or complex dtypes"),
        (lambda: nn.Parameter([1.0]), TypeError, "Parameter data has to be a tensor"),  # type: ignore[arg-type]
    ],
)
def test_misuse_raises(call: Callable[[], Any], kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        call()

"""Containers of modules and of parameters, as PyTorch's."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg
from dyngraph import nn


def texts(modules: Any) -> str:
    return " ".join(repr(module) for module in modules)


def test_sequential_is_sliced_added_repeated_and_cut() -> None:
    model = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Identity())
    assert texts(model[1:]) == "Tanh() Identity()"
    assert texts(model + nn.Sequential(nn.ELU())).endswith("ELU(alpha=1.0)")
    assert texts(nn.Sequential(nn.ReLU()) * 2) == "ReLU() ReLU()"
    assert repr(model.pop(1)) == "Tanh()" and list(model._modules) == ["0", "1"]
    model.insert(0, nn.Tanh())
    assert texts(model) == "Tanh() ReLU() Identity()" and repr(model[-1]) == "Identity()"


def test_named_parts_of_sequential_are_attributes() -> None:
    model = nn.Sequential(OrderedDict(first=nn.ReLU(), last=nn.Tanh()))
    assert repr(model.last) == "Tanh()" and repr(model[0]) == "ReLU()"


def test_list_of_modules_is_changed_as_a_list() -> None:
    layers = nn.ModuleList([nn.ReLU()])
    layers.extend([nn.Tanh(), nn.Tanh()])
    layers.insert(1, nn.Identity())
    layers[0] = nn.ELU()
    del layers[-1]
    layers += [nn.ReLU()]
    assert texts(layers) == "ELU(alpha=1.0) Identity() Tanh() ReLU()"
    assert list(layers._modules) == ["0", "1", "2", "3"]


def test_dict_of_modules_keeps_its_order() -> None:
    heads = nn.ModuleDict([("b", nn.ReLU()), ("a", nn.Tanh())])
    heads.update({"c": nn.Identity()})
    assert list(heads) == ["b", "a", "c"] and "b" in heads and len(heads) == 3
    assert repr(heads.pop("b")) == "ReLU()" and texts(heads.values()) == "Tanh() Identity()"


def test_list_of_parameters_makes_parameters() -> None:
    scales = nn.ParameterList([dg.ones(2)])
    scales.append(dg.zeros(1)).append("text")
    assert [type(p) for p in scales] == [nn.Parameter, nn.Parameter, str]
    assert repr(scales) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [dyngraph.float32 of size 2]\n"
        "    (1): Parameter containing: [dyngraph.float32 of size 1]\n"
        "    (2): Object of type: str\n"
        ")"
    )
    assert len(scales[:2]) == 2


def test_dict_of_parameters_sorts_a_plain_dict() -> None:
    scales = nn.ParameterDict({"b": dg.ones(1), "a": dg.ones(1)})
    scales.update({"c": dg.zeros(1)})
    assert list(scales) == ["a", "b", "c"]
    assert [name for name, _ in scales.named_parameters()] == ["a", "b", "c"]
    assert scales.popitem()[0] == "c" and scales.get("c") is None
    assert list(scales | nn.ParameterDict({"d": dg.ones(1)})) == ["a", "b", "d"]


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (lambda: nn.Sequential(3), TypeError, "int is not a Module subclass"),
        (lambda: nn.Sequential()[0], IndexError, "index 0 is out of range"),
        (lambda: nn.Sequential() + 3, ValueError, "only objects of Sequential"),  # type: ignore[operator]
        (lambda: nn.Sequential() * 0, ValueError, "Non-positive multiplication factor"),
        (lambda: nn.ModuleList().extend(3), TypeError, "called with an iterable, but got int"),  # type: ignore[arg-type]
        (lambda: nn.ModuleDict(3), TypeError, "iterable of key/value pairs"),  # type: ignore[arg-type]
        (lambda: nn.ModuleDict([("a",)]), ValueError, "has length 1; 2 is required"),
        (lambda: nn.ParameterList()(1), RuntimeError, "should not be called"),
        (lambda: nn.ParameterList(dg.ones(2)), TypeError, "with an iterable, but got Tensor"),
        (lambda: nn.ParameterDict()[3], TypeError, "must be a string"),  # type: ignore[index]
    ],
)
def test_misuse_raises(call: Callable[[], Any], kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        call()

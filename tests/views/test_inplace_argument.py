"""inplace= of nn.functional, and in-place forms as functions: `relu_`, `exp_`, `dropout_`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from tests.graph.helpers import assert_values, leaf

F = dg.nn.functional
VALUES = [-4.0, -0.5, 0.5, 7.0]

# The functions of nn.functional that have `inplace`, with their other arguments.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "alpha_dropout": (0.5, True),
    "celu": (2.0,),
    "dropout": (0.5, True),
    "elu": (2.0,),
    "hardsigmoid": (),
    "hardswish": (),
    "hardtanh": (-2.0, 3.0),
    "leaky_relu": (0.2,),
    "mish": (),
    "relu": (),
    "relu6": (),
    "rrelu": (0.1, 0.3, True),
    "selu": (),
    "silu": (),
    "threshold": (0.1, 9.0),
}
# Those that have a form with an underscore in nn.functional, and in the package.
FORMS = ("celu", "elu", "hardtanh", "leaky_relu", "relu", "rrelu", "selu", "threshold")
PACKAGE_FORMS = ("alpha_dropout", "celu", "dropout", "relu", "rrelu", "selu", "threshold")
# torch's functions with an underscore that are methods as well, but for those of sparse tensors.
METHODS = """
    abs acos acosh addmv arccos arccosh arcsin arcsinh arctan arctanh as_strided asin asinh atan
    atanh ceil clamp clamp_max clamp_min clip conj_physical cos cosh deg2rad detach erf erfc exp
    exp2 expm1 fill fix floor frac gcd i0 index_put lcm ldexp log log10 log1p log2 logit nan_to_num
    neg negative rad2deg reciprocal resize_as round rsqrt sigmoid sin sinc sinh sqrt square tan tanh
    trunc xlogy zero
""".split()
METHOD_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "addmv": (np.ones((4, 2), np.float32), np.ones(2, np.float32)),
    "as_strided": ((2,), (2,)),
    "clamp": (-1, 1),
    "clamp_max": (1,),
    "clamp_min": (1,),
    "clip": (-1, 1),
    "fill": (3.0,),
    "gcd": (np.array([2, 4, 6, 8], np.int32),),
    "index_put": ((np.array([1, 2], np.int32),), np.ones(2, np.float32)),
    "lcm": (np.array([2, 4, 6, 8], np.int32),),
    "ldexp": (np.array([2, 1, 0, 1], np.int32),),
    "resize_as": (np.ones(3, np.float32),),
    "xlogy": (np.ones(4, np.float32),),
}
every_function = pytest.mark.parametrize("name", ARGUMENTS)


def as_tensor(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(as_tensor, value))
    return dg.tensor(value) if isinstance(value, np.ndarray) else value


def run(name: str, x: dg.Tensor, **inplace: bool) -> dg.Tensor:
    """The function of nn.functional, drawing the same each time."""
    dg.manual_seed(3)
    return getattr(F, name)(x, *ARGUMENTS[name], **inplace)


@every_function
def test_result_is_the_tensor_with_the_values_of_the_function(name: str) -> None:
    x = dg.tensor(VALUES)
    assert run(name, x, inplace=True) is x
    assert_values(x, run(name, dg.tensor(VALUES)).numpy())
    assert x._version == 1


@every_function
def test_write_through_a_view_is_seen_by_its_base(name: str) -> None:
    base = dg.tensor([9.0, *VALUES])
    run(name, base[1:], inplace=True)
    assert_values(base, [9, *run(name, dg.tensor(VALUES)).tolist()])


@every_function
def test_gradient_is_that_of_the_function(name: str) -> None:
    expected, x = leaf(*VALUES), leaf(*VALUES)
    run(name, expected * 2).sum().backward()
    y = x * 2
    run(name, y, inplace=True)
    y.sum().backward()
    assert expected.grad is not None
    assert_values(x.grad, expected.grad.numpy())


@every_function
def test_leaf_that_requires_grad_is_refused(name: str) -> None:
    x = leaf(*VALUES)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        run(name, x, inplace=True)
    assert_values(x, VALUES)


@every_function
def test_leaf_may_be_written_under_no_grad(name: str) -> None:
    x = leaf(*VALUES)
    with dg.no_grad():
        run(name, x, inplace=True)
    assert x.is_leaf and x._version == 1


def test_dropout_that_drops_nothing_writes_nothing() -> None:
    x = leaf(*VALUES)
    assert F.dropout(x, 0.5, False, True) is x and F.dropout(x, 0.0, True, True) is x
    assert x._version == 0


def written(function: Callable[..., Any], name: str) -> list[float]:
    x = dg.tensor(VALUES)
    dg.manual_seed(3)
    assert function(x, *ARGUMENTS[name]) is x
    return x.tolist()


@pytest.mark.parametrize("name", FORMS)
def test_form_with_an_underscore_writes_to_the_tensor(name: str) -> None:
    expected = run(name, dg.tensor(VALUES)).tolist()
    assert written(getattr(F, f"{name}_"), name) == expected


@pytest.mark.parametrize("name", PACKAGE_FORMS)
def test_form_of_the_package_writes_to_the_tensor(name: str) -> None:
    expected = run(name, dg.tensor(VALUES)).tolist()
    assert written(getattr(dg, f"{name}_"), name) == expected


@pytest.mark.parametrize("name", METHODS)
def test_form_of_the_package_does_what_the_method_does(name: str) -> None:
    values = [1, 2, 3, 4] if name in ("gcd", "lcm") else [0.1, 0.2, 0.3, 0.4]
    if name == "acosh" or name == "arccosh":
        values = [1.1, 1.2, 1.3, 1.4]
    args = as_tensor(METHOD_ARGUMENTS.get(name, ()))
    x, expected = dg.tensor(values), dg.tensor(values)
    assert getattr(dg, f"{name}_")(x, *args) is x
    getattr(expected, f"{name}_")(*args)
    assert x.tolist() == expected.tolist()
    assert x._version == expected._version


def test_rows_of_a_table_are_shortened_in_place() -> None:
    table = dg.tensor([[3.0, 4.0], [6.0, 8.0]])
    assert dg.embedding_renorm_(table, dg.tensor([1]), 1.0, 2.0) is table
    assert_values(table, [[3, 4], [0.6, 0.8]])


def test_table_that_is_a_view_is_shortened_in_its_base() -> None:
    base = dg.tensor([[3.0, 4.0], [6.0, 8.0]])
    F.embedding(dg.tensor([0]), base[1:], max_norm=1.0)
    assert_values(base, [[3, 4], [0.6, 0.8]])


def test_leaf_is_shortened_by_embedding_alone() -> None:
    table = leaf(3.0, 4.0).reshape(1, 2).detach().requires_grad_()
    F.embedding(dg.tensor([0]), table, max_norm=1.0)
    assert_values(table, [[0.6, 0.8]])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        dg.embedding_renorm_(table, dg.tensor([0]), 0.1, 2.0)

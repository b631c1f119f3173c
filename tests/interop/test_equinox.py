"""Equinox modules as dyngraph's, and back."""

from __future__ import annotations

import sys
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg
from dyngraph.interop import equinox

X = np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)


class Net(eqx.Module):
    """Arrays of several kinds, a function, and a layer with randomness."""

    layer: eqx.nn.Linear
    dropout: eqx.nn.Dropout
    counts: Any
    activation: Any

    def __init__(self) -> None:
        self.layer = eqx.nn.Linear(2, 3, key=jax.random.key(0))
        self.dropout = eqx.nn.Dropout(0.5)
        self.counts = jnp.arange(3)
        self.activation = jnp.tanh

    def __call__(self, x: Any, key: Any = None) -> Any:
        return self.dropout(self.activation(self.layer(x)) + self.counts, key=key)


def on_batch(module: Any, x: Any, key: Any = None) -> Any:
    keys = None if key is None else jax.random.split(key, len(x))
    return jax.vmap(module, in_axes=(0, None if key is None else 0))(x, keys)


@pytest.fixture(scope="module")
def net() -> Any:
    return equinox.from_equinox(Net(), call=on_batch)


def test_names_are_paths_and_integers_are_buffers(net: Any) -> None:
    assert [name for name, _ in net.named_parameters()] == ["layer.weight", "layer.bias"]
    assert [name for name, _ in net.named_buffers()] == ["counts"]


def test_gradients_are_equinox_s(net: Any) -> None:
    net.eval()
    net.zero_grad()
    (net(dg.tensor(X)) ** 2).sum().backward()
    module = equinox.to_equinox(net)
    expected = eqx.filter_grad(lambda m: (on_batch(m, X) ** 2).sum())(module)
    np.testing.assert_allclose(net.layer.weight.grad, expected.layer.weight, rtol=1e-5)
    np.testing.assert_allclose(net.layer.bias.grad, expected.layer.bias, rtol=1e-5)


def test_key_is_an_argument_in_training(net: Any) -> None:
    net.train()
    out = net(dg.tensor(X), key=jax.random.key(1))
    np.testing.assert_allclose(
        out.detach(), on_batch(equinox.to_equinox(net), X, jax.random.key(1)), rtol=1e-6
    )
    assert not (out == net(dg.tensor(X), key=jax.random.key(2))).all()


def test_trained_values_are_in_the_module(net: Any) -> None:
    with dg.no_grad():
        net.layer.bias.fill_(3.0)
    assert equinox.to_equinox(net).layer.bias.tolist() == [3.0] * 3


def test_state_comes_back_as_tensors() -> None:
    module, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, "batch", mode="batch")
    call = lambda m, x, s: jax.vmap(  # noqa: E731
        m, axis_name="batch", in_axes=(0, None), out_axes=(0, None)
    )(x, s)
    norm = equinox.from_equinox(module, call=call)
    x = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
    out, after = norm(dg.tensor(x), state)
    expected, expected_state = call(module, x, state)
    np.testing.assert_allclose(out.detach(), expected, rtol=1e-5, atol=1e-6)
    for found, value in zip(
        jax.tree.leaves(dg.interop.arrays_of(after)), jax.tree.leaves(expected_state), strict=True
    ):
        np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-6)


def test_dyngraph_module_is_an_equinox_module() -> None:
    class Line(dg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.slope = dg.nn.Parameter(dg.tensor(2.0))
            self.register_buffer("calls", dg.zeros(()))

        def forward(self, x: Any) -> Any:
            self.calls.add_(1)
            return self.slope * x

    module = equinox.to_equinox(Line())
    assert float(eqx.filter_jit(module)(3.0)) == 6.0
    assert float(eqx.filter_grad(lambda m: m(3.0))(module).params["slope"]) == 3.0
    assert float(module.call(3.0, mutable=True)[1].buffers["calls"]) == 1.0


def test_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "equinox", None)
    with pytest.raises(ImportError, match=r"pip install 'dyngraph\[equinox\]'"):
        equinox.from_equinox(None)

"""Flax modules as dyngraph's, trained as Flax trains them; and back."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen, nnx

import dyngraph as dg
from dyngraph.interop import flax

X = np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32)
Y = X[:, :1] * X[:, 1:]
STEPS = 50


class Net(nnx.Module):
    """Has all that nnx keeps: parameters, batch statistics, keys and counts."""

    def __init__(self, rngs: Any) -> None:
        self.first = nnx.Linear(2, 8, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.rest = nnx.List([nnx.Linear(8, 1, rngs=rngs)])

    def __call__(self, x: Any, double: bool = False) -> Any:
        x = self.dropout(jax.nn.relu(self.norm(self.first(x))))
        return self.rest[0](x) * (2 if double else 1)


class LinenNet(linen.Module):
    """The same in linen."""

    @linen.compact
    def __call__(self, x: Any, train: bool) -> Any:
        x = linen.BatchNorm(use_running_average=not train)(linen.Dense(4)(x))
        return linen.Dense(1)(linen.Dropout(0.5, deterministic=not train)(x))


@pytest.fixture(scope="module")
def flax_run() -> tuple[Any, list[float]]:
    """The module after 50 steps of Flax and optax alone, and the losses."""
    module = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(module, optax.sgd(0.05), wrt=nnx.Param)

    @nnx.jit
    def step(module: Any, optimizer: Any) -> Any:
        loss, grads = nnx.value_and_grad(lambda m: jnp.mean((m(X) - Y) ** 2))(module)
        optimizer.update(module, grads)
        return loss

    losses = [float(step(module, optimizer)) for _ in range(STEPS)]
    return module, losses


def train(module: Any) -> list[float]:
    """The losses of 50 steps by dyngraph's backward and the same optax transformation."""
    parameters = list(module.parameters())
    transform = optax.sgd(0.05)
    state = transform.init([p.detach().jax() for p in parameters])
    update = jax.jit(transform.update)
    losses = []
    for _ in range(STEPS):
        module.zero_grad()
        loss = ((module(dg.tensor(X)) - dg.tensor(Y)) ** 2).mean()
        loss.backward()
        updates, state = update([p.grad.jax() for p in parameters], state)
        with dg.no_grad():
            for parameter, change in zip(parameters, updates, strict=True):
                parameter.add_(dg.interop.tensors_of(change))
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("backward_mode", ["eager", "compiled"], indirect=True)
def test_nnx_module_trains_as_with_flax_alone(flax_run: tuple[Any, list[float]]) -> None:
    trained, losses = flax_run
    module = flax.from_nnx(Net(nnx.Rngs(0)))
    np.testing.assert_allclose(train(module), losses, rtol=1e-5)
    assert losses[-1] < losses[0] / 2
    back = flax.to_nnx(module)
    for found, expected in zip(
        jax.tree.leaves(nnx.state(back)), jax.tree.leaves(nnx.state(trained)), strict=True
    ):
        if jnp.issubdtype(found.dtype, jnp.floating):
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
        else:
            assert (found == expected).all()


@pytest.fixture(scope="module")
def net() -> Any:
    return flax.from_nnx(Net(nnx.Rngs(0)), static_argnames="double")


def test_names_are_paths(net: Any) -> None:
    assert [name for name, _ in net.named_parameters()] == [
        "first.bias",
        "first.kernel",
        "norm.bias",
        "norm.scale",
        "rest.0.bias",
        "rest.0.kernel",
    ]
    assert [name for name, _ in net.named_buffers()] == [
        "dropout.rngs.count",
        "dropout.rngs.key",
        "norm.mean",
        "norm.var",
    ]


def test_state_dict_goes_on_bit_for_bit(net: Any) -> None:
    other = flax.from_nnx(Net(nnx.Rngs(1)), static_argnames="double")
    net(dg.tensor(X))
    other.load_state_dict(net.state_dict())
    assert (net(dg.tensor(X)) == other(dg.tensor(X))).all()


def test_eval_is_nnx_s(net: Any) -> None:
    count = net.state_dict()["dropout.rngs.count"].item()
    net.eval()
    module = flax.to_nnx(net)
    np.testing.assert_allclose(net(dg.tensor(X)).detach(), module(X), rtol=1e-5)
    assert net.state_dict()["dropout.rngs.count"].item() == count
    net.train()
    assert not (net(dg.tensor(X)) == net(dg.tensor(X))).all()


def test_static_argument_reaches_the_module(net: Any) -> None:
    net.eval()
    doubled = net(dg.tensor(X), double=True)
    assert (doubled == net(dg.tensor(X)) * 2).all()
    net.train()


def test_copies_are_apart(net: Any) -> None:
    copied = copy.deepcopy(net)
    before = net.state_dict()["norm.mean"].tolist()
    copied(dg.tensor(X))
    assert net.state_dict()["norm.mean"].tolist() == before
    assert copied.state_dict()["norm.mean"].tolist() != before


def test_values_go_into_another_nnx_module(net: Any) -> None:
    module = Net(nnx.Rngs(5))
    assert flax.to_nnx(net, into=module) is module
    assert (module.first.kernel[...] == net.first.kernel.detach().jax()).all()


def test_imported_module_is_a_pure_function_too(net: Any) -> None:
    net.eval()
    variables, apply = dg.interop.as_functions(net)
    found = jax.jit(apply)(variables, X)
    np.testing.assert_allclose(found, net(dg.tensor(X)).detach(), rtol=1e-6)
    net.train()


def test_buffers_of_a_module_that_is_closed_over_are_refused(net: Any) -> None:
    before = net.state_dict()["norm.mean"].tolist()
    with pytest.raises(RuntimeError, match="changed the value of a Tensor from outside"):
        jax.jit(dg.to_jax(net))(X)
    assert net.state_dict()["norm.mean"].tolist() == before


def linen_net() -> tuple[Any, Any]:
    module = LinenNet()
    return module, module.init(jax.random.key(0), X, train=False)


def test_linen_module_has_linen_s_gradients_and_statistics() -> None:
    module, variables = linen_net()
    net = flax.from_linen(module, variables, options=lambda training: {"train": training})
    net.eval()
    (net(dg.tensor(X)) ** 2).sum().backward()
    expected = jax.grad(
        lambda params: (module.apply({**variables, "params": params}, X, train=False) ** 2).sum()
    )(variables["params"])
    for name, parameter in net.named_parameters():
        layer, kind = name.split(".")
        assert parameter.grad is not None
        np.testing.assert_allclose(parameter.grad, expected[layer][kind], rtol=1e-4, atol=1e-5)


def test_linen_module_in_training_updates_statistics_and_draws_keys() -> None:
    module, variables = linen_net()
    options = lambda training: {"train": training}  # noqa: E731
    net = flax.from_linen(module, variables, options=options, rngs="dropout")
    first = net(dg.tensor(X))
    assert not (first == net(dg.tensor(X))).all()
    found = flax.to_variables(net)["batch_stats"]["BatchNorm_0"]["mean"]
    hidden = X @ variables["params"]["Dense_0"]["kernel"]
    np.testing.assert_allclose(found, hidden.mean(0) * (1 - 0.99**2), rtol=1e-4, atol=1e-6)
    back, _ = flax.to_linen(net)
    assert back is module


def test_linen_variables_without_params_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Pass what module\.init"):
        flax.from_linen(LinenNet(), {"batch_stats": {}})
    with pytest.raises(TypeError, match=r"to_linen\(\) gives module and variables"):
        flax.to_variables(dg.nn.Module())  # type: ignore[arg-type]


class Counting(dg.nn.Module):
    """A dyngraph Module with a parameter, a buffer that it changes, and randomness."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = dg.nn.Parameter(dg.tensor([[1.0], [2.0]]))
        self.register_buffer("calls", dg.zeros(()))

    def forward(self, x: Any) -> Any:
        self.calls.add_(1)
        return dg.nn.functional.dropout(x @ self.weight, 0.5, self.training)


EXPECTED = X @ np.array([[1.0], [2.0]], np.float32)


def test_module_is_functions_of_its_arrays() -> None:
    module = Counting().eval()
    variables, apply = dg.interop.as_functions(module)
    out, buffers = jax.jit(lambda v: apply(v, X, mutable=True))(variables)
    np.testing.assert_allclose(out, EXPECTED, rtol=1e-6)
    assert (float(buffers["calls"]), module.calls.item()) == (1.0, 0.0)
    grads = jax.grad(lambda p: apply({**variables, "params": p}, X).sum())(variables["params"])
    np.testing.assert_allclose(grads["weight"][:, 0], X.sum(0), rtol=1e-5)


def test_module_with_randomness_draws_from_the_key() -> None:
    variables, apply = dg.interop.as_functions(Counting())
    one = apply(variables, X, key=jax.random.key(0))
    assert (one == apply(variables, X, key=jax.random.key(0))).all()
    with pytest.raises(RuntimeError, match="takes_key=True"):
        apply(variables, X)


def test_module_is_a_linen_module() -> None:
    module, variables = flax.to_linen(Counting().eval())
    out, changed = module.apply(variables, X, mutable=["buffers"])
    np.testing.assert_allclose(out, EXPECTED, rtol=1e-6)
    assert float(changed["buffers"]["calls"]) == 1.0
    initial = module.init(jax.random.key(0), X)
    assert jax.tree.structure(initial) == jax.tree.structure(variables)


def test_module_is_an_nnx_module() -> None:
    module = flax.to_nnx(Counting(), rngs=nnx.Rngs(0))
    first = module(X)
    assert not (first == module(X)).all()
    assert float(module.buffers["calls"][...]) == 2.0
    grads = nnx.grad(lambda m: m(X).sum())(module)
    assert grads["params"]["weight"][...].shape == (2, 1)


def test_imported_module_is_pickled() -> None:
    module = flax.from_nnx(nnx.Linear(2, 1, rngs=nnx.Rngs(0)))
    module(dg.tensor(X))
    again = pickle.loads(pickle.dumps(module))
    assert (again(dg.tensor(X)) == module(dg.tensor(X))).all()


def test_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flax", None)
    with pytest.raises(ImportError, match=r"pip install 'dyngraph\[flax\]'"):
        flax.from_nnx(None)

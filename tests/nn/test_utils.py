"""nn.utils: clipping, vectors of parameters, parametrizations."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph import nn
from dyngraph.nn import utils
from dyngraph.nn.utils import clip_grad, parametrize


def parameters() -> list[nn.Parameter]:
    """Two parameters with the gradients (3, 0) and (4)."""
    made = [nn.Parameter(dg.zeros(2)), nn.Parameter(dg.zeros(1)), nn.Parameter(dg.zeros(1))]
    made[0].grad, made[1].grad = dg.tensor([3.0, 0.0]), dg.tensor([4.0])
    return made


def gradients(of: list[nn.Parameter]) -> list[Any]:
    return [p.grad.tolist() for p in of if p.grad is not None]


# The norms are those of numpy.linalg.norm, but for 0, which counts gradients as PyTorch's does.
@pytest.mark.parametrize(
    ("order", "norm"), [(2.0, 5.0), (1.0, 7.0), (float("inf"), 4.0), (3.0, 91 ** (1 / 3)), (0, 2)]
)
def test_gradients_are_clipped_to_a_norm(order: float, norm: float) -> None:
    made = parameters()
    found = utils.clip_grad_norm_(made, 1.0, order)
    assert found.item() == pytest.approx(norm)
    factor = 1 / (norm + 1e-6)
    np.testing.assert_allclose(np.concatenate(gradients(made)), [3 * factor, 0, 4 * factor])


def test_small_gradients_stay_as_they_are() -> None:
    made = parameters()
    utils.clip_grad_norm_(iter(made), 10.0)
    assert gradients(made) == [[3.0, 0.0], [4.0]]


def test_clipping_is_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = []
    clip = clip_grad._clip_kernel
    monkeypatch.setattr(
        clip_grad, "_clip_kernel", lambda *a, **k: kernels.append(1) or clip(*a, **k)
    )
    for other in ("_norm_kernel", "_scale_kernel"):
        monkeypatch.setattr(clip_grad, other, None)
    utils.clip_grad_norm_(parameters(), 2.0)
    assert kernels == [1]


def test_nonfinite_norm_raises_and_leaves_the_gradients() -> None:
    made = parameters()
    made[1].grad = dg.tensor([float("nan")])
    with pytest.raises(RuntimeError, match="is non-finite"):
        utils.clip_grad_norm_(made, 1.0, error_if_nonfinite=True)
    assert gradients(made)[0] == [3.0, 0.0]
    assert np.isnan(utils.clip_grad_norm_(made, 1.0).item())


def test_no_gradients_have_norm_zero() -> None:
    assert utils.clip_grad_norm_([nn.Parameter(dg.ones(1))], 1.0).item() == 0.0
    with pytest.warns(UserWarning, match="empty generator"):
        utils.clip_grad_norm_((p for p in []), 1.0)


def test_gradients_on_several_devices_are_clipped_together() -> None:
    made = parameters()
    made[1].data = made[1].to("cpu:1").detach()
    made[1].grad = dg.tensor([4.0], device="cpu:1")
    assert utils.clip_grad_norm_(made, 2.5).item() == 5.0
    np.testing.assert_allclose(np.concatenate(gradients(made)), [1.5, 0, 2.0], rtol=1e-6)


def test_norm_of_half_precision_does_not_overflow() -> None:
    large = dg.full((4,), 300.0, dtype=dg.float16)
    assert utils.get_total_norm([large]).item() == 600.0


def test_gradients_are_clipped_by_value() -> None:
    made = parameters()
    utils.clip_grad_value_(made, 3.5)
    assert gradients(made) == [[3.0, 0.0], [3.5]]


def test_clipped_gradient_counts_a_write() -> None:
    made = parameters()
    grad = made[0].grad
    assert grad is not None
    before = grad._version
    utils.clip_grad_norm_(made, 1.0)
    assert made[0].grad is grad and grad._version == before + 1


def test_parameters_become_a_vector_and_come_back() -> None:
    layer = nn.Linear(2, 1)
    vector = utils.parameters_to_vector(layer.parameters())
    utils.vector_to_parameters(vector * 2, layer.parameters())
    assert utils.parameters_to_vector(layer.parameters()).tolist() == (vector * 2).tolist()
    assert layer.weight.is_leaf and layer.weight.requires_grad


# --- parametrizations ------------------------------------------------------------------------


class Double(nn.Module):
    def forward(self, x: dg.Tensor) -> dg.Tensor:
        return x * 2

    def right_inverse(self, x: dg.Tensor) -> dg.Tensor:
        return x / 2


class Grown(nn.Module):
    def forward(self, x: dg.Tensor) -> dg.Tensor:
        return dg.cat([x, x])


def doubled() -> Any:
    layer = nn.Linear(2, 1)
    with dg.no_grad():
        layer.weight.fill_(4)
    return parametrize.register_parametrization(layer, "weight", Double())


def test_parametrized_tensor_keeps_its_value_and_trains_what_it_is_made_of() -> None:
    layer = doubled()
    assert layer.weight.tolist() == [[4.0, 4.0]]
    original = layer.parametrizations.weight.original
    assert original.tolist() == [[2.0, 2.0]]
    layer(dg.ones(1, 2)).sum().backward()
    assert original.grad.tolist() == [[2.0, 2.0]]
    assert [name for name, _ in layer.named_parameters()] == [
        "bias",
        "parametrizations.weight.original",
    ]


def test_value_that_is_assigned_goes_through_the_inverse() -> None:
    layer = doubled()
    layer.weight = dg.ones(1, 2)
    assert layer.parametrizations.weight.original.tolist() == [[0.5, 0.5]]


def test_second_parametrization_takes_the_firsts_result() -> None:
    layer = doubled()
    parametrize.register_parametrization(layer, "weight", Double())
    assert layer.weight.tolist() == [[8.0, 8.0]]


def test_parametrization_is_removed_with_the_value_or_without() -> None:
    for leave, value in ((True, 4.0), (False, 2.0)):
        layer = doubled()
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=leave)
        assert type(layer) is nn.Linear and layer.weight.tolist() == [[value, value]]
        assert isinstance(layer.weight, nn.Parameter)


def test_cached_tensor_is_computed_once() -> None:
    layer = doubled()
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight


def test_spectral_norm_steps_in_training_only() -> None:
    layer = utils.parametrizations.spectral_norm(nn.Linear(3, 3))
    u = layer.parametrizations.weight[0]._u.copy_(dg.tensor([1.0, 0.0, 0.0]))  # not settled yet
    before = u.tolist()
    layer.eval()(dg.ones(1, 3))
    assert u.tolist() == before
    layer.train()(dg.ones(1, 3))
    assert u.tolist() != before


def test_older_weight_norm_loads_into_the_newer() -> None:
    layer = utils.parametrizations.weight_norm(nn.Linear(2, 1, bias=False))
    state = {"weight_g": [[5.0]], "weight_v": [[3.0, 4.0]]}
    layer.load_state_dict({name: np.array(value, np.float32) for name, value in state.items()})
    np.testing.assert_allclose(layer.weight.detach().numpy(), [[3.0, 4.0]], rtol=1e-6)


def test_older_norms_are_taken_off_with_the_value_as_it_is() -> None:
    layer = utils.spectral_norm(nn.Linear(2, 2)).eval()
    layer(dg.ones(1, 2))
    before = layer.weight.tolist()
    utils.remove_spectral_norm(layer)
    assert layer.weight.tolist() == before and not layer._forward_pre_hooks
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight"]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (
            lambda: parametrize.register_parametrization(nn.Linear(1, 1), "w", Double()),
            "does not have a parameter, a buffer",
        ),
        (
            lambda: parametrize.register_parametrization(nn.Linear(1, 1), "weight", Grown()),
            "may not change the shape",
        ),
        (
            lambda: parametrize.remove_parametrizations(nn.Linear(1, 1), "weight"),
            "does not have a parametrization",
        ),
        (
            lambda: utils.parametrizations.orthogonal(nn.Linear(1, 1), orthogonal_map="qr"),
            "orthogonal_map has to be one of",
        ),
        (
            lambda: utils.parametrizations.spectral_norm(nn.Linear(1, 1), n_power_iterations=0),
            "n_power_iterations to be positive",
        ),
        (lambda: utils.remove_weight_norm(nn.Linear(1, 1)), "weight_norm of 'weight' not found"),
    ],
)
def test_misuse_raises(call: Callable[[], Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call()

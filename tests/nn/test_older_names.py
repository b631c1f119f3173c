"""Names of PyTorch's that are kept for older programs, and the fusing of normalizations."""

import pytest

import dyngraph as dg
from dyngraph import nn

OLDER = """
    constant dirac eye kaiming_normal kaiming_uniform normal orthogonal sparse uniform xavier_normal
    xavier_uniform
""".split()


@pytest.mark.parametrize("name", OLDER)
def test_older_initializer_warns_and_does_the_same(name: str) -> None:
    arguments = {"constant": (2.0,), "sparse": (0.5,)}.get(name, ())
    shape = (2, 2, 1) if name == "dirac" else (2, 2)
    dg.manual_seed(0)
    expected = getattr(nn.init, f"{name}_")(dg.empty(shape), *arguments)
    dg.manual_seed(0)
    with pytest.warns(FutureWarning, match=rf"`nn\.init\.{name}` is now deprecated in favor of"):
        found = getattr(nn.init, name)(dg.empty(shape), *arguments)
    assert found.tolist() == expected.tolist()


def test_older_clipping_warns_and_does_the_same() -> None:
    p = nn.Parameter(dg.ones(2))
    p.grad = dg.tensor([3.0, 4.0])
    with pytest.warns(FutureWarning, match="deprecated in favor of `nn.utils.clip_grad_norm_`"):
        assert nn.utils.clip_grad_norm(p, 2.5).item() == 5.0
    assert p.grad.tolist() == pytest.approx([1.5, 2.0])


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (4, [0.484901, 0.742175, 0.807924, 0.812496, 0.787847, 1.087421]),
        (1, [0.502973, 0.647322, 0.697104, 0.685753, 0.655997, 0.622782]),
    ],
)
def test_cross_map_normalization_is_pytorchs(size: int, expected: list[float]) -> None:
    """Figures of torch 2.13's `CrossMapLRN2d(size, 0.5, 0.75, 2.0)` for the channels 1 to 6."""
    norm = nn.CrossMapLRN2d(size, 0.5, 0.75, 2.0)
    found = norm(dg.arange(1.0, 7.0).reshape(1, 6, 1, 1)).flatten().tolist()
    assert found == pytest.approx(expected, rel=1e-5)


def test_cross_map_normalization_of_other_dims_raises() -> None:
    with pytest.raises(ValueError, match="Expected input to be 4D, got 3D"):
        nn.CrossMapLRN2d(1)(dg.ones(1, 1, 1))


# --- fusing -------------------------------------------------------------------------------------


def trained(norm: nn.Module) -> nn.Module:
    """A normalization with statistics and parameters of its own, in evaluation."""
    for k, tensor in enumerate(norm.state_dict().values()):
        if tensor.is_floating_point():
            tensor.copy_((dg.arange(tensor.numel()) + k + 1) / 4)
    return norm.eval()


@pytest.mark.parametrize(
    ("conv", "transposed"),
    [(nn.Conv2d(2, 3, 2, bias=False), False), (nn.ConvTranspose2d(2, 3, 2), True)],
)
def test_fused_convolution_does_what_both_do(conv: nn.Module, transposed: bool) -> None:
    bn, x = trained(nn.BatchNorm2d(3)), dg.arange(18.0).reshape(1, 2, 3, 3) / 9
    conv.eval()
    fused = nn.utils.fuse_conv_bn_eval(conv, bn, transposed)
    assert fused(x).allclose(bn(conv(x)), rtol=1e-4, atol=1e-5)
    assert fused.weight.requires_grad and fused is not conv


def test_fused_linear_layer_does_what_both_do() -> None:
    linear, bn = nn.Linear(3, 2).eval(), trained(nn.BatchNorm1d(2))
    x = dg.arange(6.0).reshape(2, 3)
    assert nn.utils.fuse_linear_bn_eval(linear, bn)(x).allclose(bn(linear(x)), rtol=1e-4, atol=1e-5)


def test_fusing_in_training_raises() -> None:
    with pytest.raises(AssertionError, match=r"Fusion only for eval! Call \.eval"):
        nn.utils.fuse_conv_bn_eval(nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1))


def test_fusing_without_statistics_raises() -> None:
    bn = nn.BatchNorm1d(1, track_running_stats=False).eval()
    with pytest.raises(AssertionError, match="made without track_running_stats"):
        nn.utils.fuse_conv_bn_eval(nn.Conv1d(1, 1, 1).eval(), bn)


def test_fusing_a_linear_layer_with_other_features_raises() -> None:
    with pytest.raises(AssertionError, match=r"linear.out_features=2 and bn.num_features=3"):
        nn.utils.fuse_linear_bn_eval(nn.Linear(1, 2).eval(), nn.BatchNorm1d(3).eval())

"""Lazy layers become ordinary ones at their first call, as PyTorch's."""

import copy
import pickle
from typing import Any

import pytest

import dyngraph as dg
from dyngraph import nn
from dyngraph.nn.modules.lazy import LazyModuleMixin
from dyngraph.nn.parameter import is_lazy

UNUSED = "Attempted to use an uninitialized parameter or buffer.*Call the module with a batch first"

LAYERS = [
    (lambda: nn.LazyLinear(3), lambda: nn.Linear(2, 3), (4, 2)),
    (lambda: nn.LazyLinear(3, bias=False), lambda: nn.Linear(2, 3, bias=False), (2,)),
    (lambda: nn.LazyConv1d(4, 2, groups=2), lambda: nn.Conv1d(2, 4, 2, groups=2), (1, 2, 3)),
    (lambda: nn.LazyConv2d(3, 2, 2), lambda: nn.Conv2d(2, 3, 2, 2), (1, 2, 2, 2)),
    (lambda: nn.LazyConv3d(3, 1, bias=False), lambda: nn.Conv3d(2, 3, 1, bias=False), (2, 1, 1, 1)),
    (lambda: nn.LazyConvTranspose1d(3, 2), lambda: nn.ConvTranspose1d(2, 3, 2), (2, 3)),
    (
        lambda: nn.LazyConvTranspose2d(4, 2, 2, 0, 1, 2),
        lambda: nn.ConvTranspose2d(2, 4, 2, 2, 0, 1, 2),
        (1, 2, 2, 2),
    ),
    (lambda: nn.LazyConvTranspose3d(3, 1), lambda: nn.ConvTranspose3d(2, 3, 1), (1, 2, 1, 1, 1)),
    (lambda: nn.LazyBatchNorm1d(), lambda: nn.BatchNorm1d(2), (3, 2)),
    (
        lambda: nn.LazyBatchNorm2d(1e-3, None, bias=False),
        lambda: nn.BatchNorm2d(2, 1e-3, None, bias=False),
        (1, 2, 2, 2),
    ),
    (
        lambda: nn.LazyBatchNorm3d(affine=False),
        lambda: nn.BatchNorm3d(2, affine=False),
        (1, 2, 1, 1, 2),
    ),
    (
        lambda: nn.LazyInstanceNorm1d(),
        lambda: nn.InstanceNorm1d(2, affine=True, track_running_stats=True),
        (1, 2, 3),
    ),
    (
        lambda: nn.LazyInstanceNorm2d(track_running_stats=False),
        lambda: nn.InstanceNorm2d(2, affine=True),
        (1, 2, 2, 2),
    ),
    (
        lambda: nn.LazyInstanceNorm3d(affine=False),
        lambda: nn.InstanceNorm3d(2, track_running_stats=True),
        (1, 2, 1, 1, 2),
    ),
]


@pytest.mark.parametrize(("lazy", "ordinary", "shape"), LAYERS)
def test_first_call_makes_the_ordinary_layer(lazy: Any, ordinary: Any, shape: Any) -> None:
    dg.manual_seed(0)
    expected = ordinary()
    dg.manual_seed(0)
    layer = lazy()
    x = dg.ones(shape)
    assert layer(x).tolist() == expected(x).tolist()
    assert (type(layer), repr(layer)) == (type(expected), repr(expected))
    assert layer.state_dict().keys() == expected.state_dict().keys()
    assert not layer._forward_pre_hooks
    assert vars(layer).keys() == vars(expected).keys()


def test_text_before_the_first_call_is_pytorchs() -> None:
    assert repr(nn.LazyLinear(3)) == "LazyLinear(in_features=0, out_features=3, bias=True)"
    assert repr(nn.LazyConv2d(3, 2)) == "LazyConv2d(0, 3, kernel_size=(2, 2), stride=(1, 1))"


def test_uninitialized_parameter_is_a_parameter_without_shape() -> None:
    weight = nn.LazyLinear(3).weight
    assert isinstance(weight, nn.Parameter) and isinstance(weight, nn.UninitializedParameter)
    assert weight.requires_grad and weight.is_leaf and weight.grad is None
    assert (repr(weight), weight.dtype) == ("<UninitializedParameter>", dg.float32)


@pytest.mark.parametrize(
    "use",
    [
        lambda w: w + 1,
        lambda w: w.zero_(),
        lambda w: w.numel(),
        lambda w: len(w),
        lambda w: nn.init.ones_(w),
        lambda w: nn.Parameter(w),
        lambda w: dg.nn.utils.parameters_to_vector([w]),
    ],
)
def test_using_an_uninitialized_parameter_raises(use: Any) -> None:
    with pytest.raises(ValueError, match=UNUSED):
        use(nn.UninitializedParameter())


def test_using_one_in_deferred_mode_raises_at_once() -> None:
    with dg.deferred(), pytest.raises(ValueError, match=UNUSED):
        dg.mul(nn.UninitializedParameter(), 2)


def test_asking_for_the_shape_raises() -> None:
    with pytest.raises(RuntimeError, match=r"Can't access the shape.*Call `forward`"):
        nn.UninitializedBuffer().shape  # noqa: B018


def test_optimizer_made_before_the_first_call_moves_the_parameters() -> None:
    net = nn.Sequential(nn.LazyLinear(2), nn.LazyBatchNorm1d())
    optimizer = dg.optim.SGD(net.parameters(), lr=0.1)
    net(dg.ones(3, 2)).sum().backward()
    before = net[1].bias.tolist()
    optimizer.step()
    assert net[1].bias.tolist() != before


def test_conversion_before_the_first_call_holds_after_it() -> None:
    layer = nn.LazyBatchNorm1d().to(dg.bfloat16)
    assert is_lazy(layer.weight)
    assert layer.weight.dtype is dg.bfloat16  # type: ignore[union-attr]
    layer(dg.ones(2, 3, dtype=dg.bfloat16))
    assert {t.dtype.name for t in layer.state_dict().values()} == {"bfloat16", "int32"}


def test_loading_an_ordinary_state_gives_the_shapes() -> None:
    source, layer = nn.Linear(2, 3), nn.LazyLinear(3)
    layer.load_state_dict(source.state_dict())
    assert type(layer) is nn.LazyLinear and not is_lazy(layer.weight)
    assert layer(dg.ones(2)).tolist() == source(dg.ones(2)).tolist()
    assert repr(layer) == repr(source)


def test_loaded_state_for_other_inputs_raises() -> None:
    layer = nn.LazyLinear(3)
    layer.load_state_dict(nn.Linear(2, 3).state_dict())
    with pytest.raises(AssertionError, match=r"inferred from input: 4 is not equal.*other inputs"):
        layer(dg.ones(4))


def test_uninitialized_state_is_loaded_into_a_lazy_layer() -> None:
    state = nn.LazyBatchNorm1d().state_dict()
    assert [name for name, value in state.items() if is_lazy(value)] == [
        "weight",
        "bias",
        "running_mean",
        "running_var",
    ]
    layer = nn.LazyBatchNorm1d()
    layer.load_state_dict(state)
    assert is_lazy(layer.weight)


def test_uninitialized_state_is_refused_by_an_ordinary_layer() -> None:
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        nn.Linear(2, 3).load_state_dict(nn.LazyLinear(3).state_dict())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_lazy_too(copied: Any) -> None:
    layer = copied(nn.Sequential(nn.LazyLinear(3, dtype=dg.float16)))
    assert layer[0].weight.dtype is dg.float16
    layer(dg.ones(2, dtype=dg.float16))
    assert type(layer[0]) is nn.Linear


def test_input_of_other_dims_raises() -> None:
    with pytest.raises(RuntimeError, match=r"Expected 3D \(unbatched\) or 4D \(batched\) input"):
        nn.LazyConv2d(3, 2)(dg.ones(1, 1, 1, 1, 1))


def test_channels_that_groups_do_not_divide_raise() -> None:
    with pytest.raises(ValueError, match="divisible by groups, got 3 and 2"):
        nn.LazyConv1d(4, 1, groups=2)(dg.ones(3, 2))


class Scale(LazyModuleMixin, nn.Module):
    """A lazy module that stays of its class."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.UninitializedParameter()
        self.calls = 0

    def initialize_parameters(self, input: dg.Tensor, *, fill: bool = True) -> None:
        self.calls += 1
        if fill:
            self.weight.materialize(input.shape)
            nn.init.ones_(self.weight)

    def forward(self, input: dg.Tensor, *, fill: bool = True) -> dg.Tensor:
        return input * self.weight


def test_module_that_becomes_nothing_else_is_initialized_once() -> None:
    scale = Scale()
    scale(dg.ones(2))
    scale(dg.ones(2))
    assert (type(scale), scale.calls) == (Scale, 1)


def test_parameters_that_stay_uninitialized_raise() -> None:
    with pytest.raises(RuntimeError, match="Scale has not been fully initialized"):
        Scale()(dg.ones(2), fill=False)


def test_lazy_module_without_an_initialization_raises() -> None:
    class Bare(LazyModuleMixin, nn.Module):
        pass

    with pytest.raises(NotImplementedError, match=r"not implemented for Bare\. Define it"):
        Bare()(dg.ones(2))


def test_lazy_layer_in_a_compiled_step_is_ordinary_from_the_second_call_on() -> None:
    layer = nn.LazyLinear(2)
    step = dg.compile(lambda x: layer(x).sum().detach())
    values = [step(dg.ones(1, 3)).item() for _ in range(3)]
    assert values[0] == pytest.approx(values[2], abs=1e-6)
    assert len(step.programs) == 1

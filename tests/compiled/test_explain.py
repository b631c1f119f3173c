"""What `stats`, `explain` and the log say."""

import logging
from collections.abc import Callable

import pytest

import dyngraph as dg
from tests.compiled.helpers import leaf


def explained(*losses: Callable[[dg.Tensor], dg.Tensor]) -> str:
    """The last event after a compiled backward of each."""
    with dg.compiled_autograd():
        for loss in losses:
            x = dg.ones(4, requires_grad=True)
            dg.autograd.grad(loss(x), x)
    return dg.compiled.explain()[-1]


def test_nothing_has_run_at_first() -> None:
    assert str(dg.compiled.explain()) == "The compiled backward has not run yet."


def test_first_structure_is_the_first_of_its_kind() -> None:
    assert explained(lambda x: x.exp().sum()) == "new: 2 calls, the first of their kind"


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        (
            lambda x: x.exp().sum(),
            lambda x: x.sin().sum(),
            "call 1 was ExpBackward0, is SinBackward0",
        ),
        (
            lambda x: x.exp().sum(),
            lambda x: x.exp()[:2].sum(),
            "call 0 of SumBackward0: for float32[2] instead of float32[4]",
        ),
        (
            lambda x: x.reshape(2, 2).softmax(0).max(),
            lambda x: x.reshape(2, 2).softmax(1).max(),
            "call 1 of SoftmaxBackward0: dim was 0, is 1",
        ),
        (lambda x: x.exp().sum(), lambda x: x.exp().exp().sum(), "there were 2"),
    ],
    ids=["operator", "shape", "static argument", "length"],
)
def test_miss_says_what_differs(
    one: Callable[..., dg.Tensor], other: Callable[..., dg.Tensor], difference: str
) -> None:
    assert explained(one, other).endswith(difference)


def test_grad_that_is_there_is_said() -> None:
    x = leaf(1.0, 2.0)
    with dg.compiled_autograd():
        for _ in range(2):
            x.exp().sum().backward()
    assert "1 leaf has a .grad to add to (0 before)" in dg.compiled.explain()[-1]


def test_python_step_says_what_it_is_and_where() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.register_hook(lambda grad: None)
    with dg.compiled_autograd():
        y.sum().backward()
    assert (
        "split: a tensor hook of ExpBackward0 is Python, which runs every time"
        in dg.compiled.explain()
    )


def test_compilation_is_told_with_its_time() -> None:
    with dg.compiled_autograd():
        for _ in range(2):
            dg.autograd.grad((x := leaf(1.0)).exp(), x)
    assert dg.compiled.explain()[-1].startswith("compiled: 1 calls, ")


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_event_that_comes_again_is_counted() -> None:
    with dg.compiled_autograd(), dg.autograd.detect_anomaly():
        for _ in range(3):
            dg.autograd.grad((x := leaf(1.0)).exp(), x)
    assert dg.compiled.explain()[-1].endswith("(3 times)")


def test_log_has_the_events(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "dyngraph.compiled"):
        explained(lambda x: x.exp().sum())
    assert caplog.messages == ["new: 2 calls, the first of their kind"]


def test_stats_count_hits_and_misses() -> None:
    with dg.compiled_autograd():
        for _ in range(4):
            dg.autograd.grad((x := leaf(1.0)).exp(), x)
    stats = dg.compiled.stats()
    assert (stats.hits, stats.misses, stats.compilations, stats.segments) == (3, 1, 1, 3)


def test_reset_keeps_what_is_compiled() -> None:
    with dg.compiled_autograd():
        for _ in range(3):
            dg.autograd.grad((x := leaf(1.0)).exp(), x)
        dg.compiled.reset()
        dg.autograd.grad((x := leaf(1.0)).exp(), x)
    assert (dg.compiled.stats().hits, dg.compiled.stats().compilations) == (1, 0)

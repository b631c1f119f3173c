"""What holds where nothing else is said: the default device, the precision of matrix products,
determinism. The tests run with four CPU devices."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import pytest

import dyngraph as dg

SECOND = dg.device("cpu:1")


@pytest.fixture
def second() -> Iterator[None]:
    """Makes cpu:1 the default device."""
    dg.set_default_device("cpu:1")
    yield
    dg.set_default_device(None)


# --- the default device ---------------------------------------------------------------------------


@pytest.mark.usefixtures("second")
@pytest.mark.parametrize(
    "make",
    [
        lambda: dg.tensor([1.0]),
        lambda: dg.as_tensor([1.0]),
        lambda: dg.zeros(2),
        lambda: dg.full((2,), 1.0),
        lambda: dg.eye(2),
        lambda: dg.arange(3),
        lambda: dg.randn(2),
        lambda: dg.randint(3, (2,)),
        lambda: dg.nn.Linear(2, 2).weight,
        lambda: dg.FloatTensor([1.0]),
    ],
)
def test_tensors_are_made_on_the_default_device(make: Callable[[], dg.Tensor]) -> None:
    assert make().device == SECOND


@pytest.mark.usefixtures("second")
@pytest.mark.parametrize(
    "make", [dg.zeros_like, dg.randn_like, lambda x: x + 1, lambda x: x.new_zeros(2), dg.clone]
)
def test_what_is_made_like_a_tensor_stays_with_it(make: Callable[[dg.Tensor], dg.Tensor]) -> None:
    assert make(dg.ones(2, device="cpu:2")).device == dg.device("cpu:2")


@pytest.mark.usefixtures("second")
def test_device_argument_goes_before_the_default() -> None:
    assert dg.ones(2, device="cpu").device == dg.device("cpu")


def test_what_is_like_a_tensor_that_is_bound_to_no_device_is_not_either() -> None:
    x = dg.ones(2)
    with SECOND:
        assert dg.zeros_like(x).device == x.device


@pytest.mark.usefixtures("second")
def test_device_as_a_context_goes_before_the_default() -> None:
    with dg.device("cpu:2") as inner:
        assert (dg.ones(1).device, dg.get_default_device()) == (inner, inner)
        with dg.device("cpu:3"):
            assert dg.ones(1).device == dg.device("cpu:3")
    assert dg.get_default_device() == SECOND


def test_without_a_default_device_tensors_are_bound_to_none() -> None:
    dg.set_default_device(None)
    assert dg.get_default_device() == dg.device("cpu")
    assert not dg.ones(1)._cell.array.committed


@pytest.mark.usefixtures("second")
def test_default_device_belongs_to_one_thread() -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(dg.ones(1).device))
    thread.start()
    thread.join()
    assert found == [dg.device("cpu")]


def test_default_device_that_is_not_there_raises() -> None:
    with pytest.raises(RuntimeError, match=r"device cpu:9 is not available.*pass one of these"):
        dg.set_default_device("cpu:9")
    assert dg.get_default_device() == dg.device("cpu")


def test_compiled_step_makes_its_tensors_on_the_default_device_of_the_call() -> None:
    step = dg.compile(lambda: dg.ones(2) * 2)
    places = [step().device for _ in range(2)]
    with SECOND:
        places += [step().device for _ in range(2)]
    assert places == [dg.device("cpu")] * 2 + [SECOND] * 2


# --- the precision of matrix products -------------------------------------------------------------


@pytest.fixture
def precision() -> Iterator[None]:
    """Puts JAX's setting back."""
    yield
    jax.config.update("jax_default_matmul_precision", None)


def product_as_compiled() -> str:
    """The kernel of a product, as XLA gets it."""
    x = dg.ones(2, 2)
    forward = dg.mm.table.find(()).forward  # type: ignore[attr-defined]
    return str(jax.make_jaxpr(forward)(x._cell.array, x._cell.array))


@pytest.mark.usefixtures("precision")
@pytest.mark.parametrize(
    ("word", "compiled"), [("highest", "HIGHEST"), ("high", "HIGH"), ("medium", "DEFAULT")]
)
def test_precision_is_part_of_what_is_compiled(word: str, compiled: str) -> None:
    assert "Precision" not in product_as_compiled()
    dg.set_float32_matmul_precision(word)
    assert dg.get_float32_matmul_precision() == word
    assert f"precision=(Precision.{compiled}" in product_as_compiled()


@pytest.mark.usefixtures("precision")
def test_backward_that_was_compiled_before_is_compiled_anew() -> None:
    w = dg.ones(2, 2, requires_grad=True)

    def programs() -> list[str]:
        with dg.compiled_autograd():
            for _ in range(3):
                (w @ w).sum().backward()
        return [str(program.jaxpr) for program in dg.compiled.programs()]

    programs()
    dg.set_float32_matmul_precision("high")
    assert "Precision.HIGH," in programs()[-1]


@pytest.mark.usefixtures("precision")
def test_compiled_step_is_traced_anew() -> None:
    step = dg.compile(lambda x: x @ x)
    for _ in range(2):
        step(dg.ones(2, 2))
    dg.set_float32_matmul_precision("high")
    for _ in range(2):
        step(dg.ones(2, 2))
    assert "Precision.HIGH," in str(step.programs[-1].jaxpr)


def test_unset_precision_is_that_of_the_device() -> None:
    assert dg.get_float32_matmul_precision() == "highest"


@pytest.mark.usefixtures("precision")
def test_precision_set_in_jax_is_read_back() -> None:
    with jax.default_matmul_precision("tensorfloat32"):
        assert dg.get_float32_matmul_precision() == "high"


def test_unknown_precision_warns_and_changes_nothing() -> None:
    with pytest.warns(UserWarning, match="low is not one of 'highest', 'high', or 'medium'"):
        dg.set_float32_matmul_precision("low")
    assert dg.get_float32_matmul_precision() == "highest"


def test_precision_that_is_no_string_raises() -> None:
    with pytest.raises(RuntimeError, match=r"expects a str, but got int\. Pass 'highest'"):
        dg.set_float32_matmul_precision(3)  # type: ignore[arg-type]


# --- determinism ----------------------------------------------------------------------------------


@pytest.fixture
def determinism() -> Iterator[None]:
    """Switches determinism off again."""
    yield
    dg.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("determinism")
@pytest.mark.parametrize(
    ("level", "expected"),
    [("default", (0, False, False)), (1, (1, True, True)), ("error", (2, True, False))],
)
def test_debug_mode_sets_what_is_asked(level: Any, expected: Any) -> None:
    dg.set_deterministic_debug_mode(level)
    found = dg.are_deterministic_algorithms_enabled()
    warn_only = dg.is_deterministic_algorithms_warn_only_enabled()
    assert (dg.get_deterministic_debug_mode(), found, warn_only) == expected


@pytest.mark.usefixtures("determinism")
def test_gpu_without_the_flag_raises_or_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setenv("XLA_FLAGS", "")
    with pytest.raises(RuntimeError, match="XLA_FLAGS=--xla_gpu_deterministic_ops=true"):
        dg.use_deterministic_algorithms(True)
    assert not dg.are_deterministic_algorithms_enabled()
    with pytest.warns(UserWarning, match="XLA_FLAGS=--xla_gpu_deterministic_ops=true"):
        dg.use_deterministic_algorithms(True, warn_only=True)
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_deterministic_ops=true")
    dg.use_deterministic_algorithms(True)
    assert dg.get_deterministic_debug_mode() == 2


def test_mode_that_is_no_bool_raises() -> None:
    with pytest.raises(TypeError, match="argument 'mode' must be bool, not int"):
        dg.use_deterministic_algorithms(1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("level", "error", "match"),
    [
        (7, RuntimeError, "expected 0, 1, or 2, but got 7"),
        ("off", RuntimeError, "expected one of `default`, `warn`, `error`, but got off"),
        (1.5, TypeError, "debug_mode must be str or int"),
    ],
)
def test_unknown_debug_mode_raises(level: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        dg.set_deterministic_debug_mode(level)

"""Generators and draws: what `tests/test_random.py` leaves open."""

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import dyngraph as dg
from dyngraph.random import draw_key, fold


@pytest.fixture(autouse=True)
def seed() -> None:
    dg.manual_seed(0)


# Generators


@pytest.mark.parametrize("value", [0, 5, 2**32 - 1])
def test_stream_is_the_jax_key_of_the_seed_folded_with_the_number_of_the_draw(value: int) -> None:
    key = jax.random.key(value, impl="threefry2x32")
    generator = dg.Generator().manual_seed(value)
    for number in range(3):
        expected = jax.random.normal(jax.random.fold_in(key, number), (4,))
        assert dg.randn(4, generator=generator).tolist() == expected.tolist()


def test_draw_key_counts_as_a_draw() -> None:
    first, second = draw_key(), draw_key()
    assert jax.random.key_data(first).tolist() != jax.random.key_data(second).tolist()
    generator = dg.Generator().manual_seed(0)
    assert jax.random.key_data(draw_key(generator)).tolist() == jax.random.key_data(first).tolist()


def test_stream_goes_on_beyond_32_bits() -> None:
    generator = dg.Generator().manual_seed(1)
    state = np.array([1, 2**32 - 1], np.uint64).view(np.uint8)
    generator.set_state(dg.tensor(state))
    last, following = (fold(*generator.take()) for _ in range(2))
    first = fold(*dg.Generator().manual_seed(1).take())
    made = {tuple(jax.random.key_data(k).tolist()) for k in (last, following, first)}
    assert len(made) == 3
    generator.set_state(dg.tensor(np.array([1, 2**32], np.uint64).view(np.uint8)))
    again = fold(*generator.take())
    assert jax.random.key_data(again).tolist() == jax.random.key_data(following).tolist()


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_seed_beyond_64_bits_raises(value: int) -> None:
    with pytest.raises(ValueError, match="does not fit 64 bits"):
        dg.manual_seed(value)


def test_seeds_that_differ_in_the_upper_word_differ() -> None:
    first = dg.rand(3, generator=dg.Generator().manual_seed(1)).tolist()
    assert dg.rand(3, generator=dg.Generator().manual_seed(2**32 + 1)).tolist() != first


def test_state_of_another_length_raises() -> None:
    with pytest.raises(RuntimeError, match="Expected a generator state of size 16"):
        dg.set_rng_state(dg.zeros(3, dtype=dg.uint8))


@pytest.mark.parametrize(
    "clone",
    [dg.Generator.clone_state, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))],
    ids=["clone_state", "deepcopy", "pickle"],
)
def test_copy_of_a_generator_goes_on_by_itself(clone: Callable[..., dg.Generator]) -> None:
    generator = dg.Generator().manual_seed(3)
    dg.rand(2, generator=generator)
    other = clone(generator)
    expected = dg.rand(2, generator=generator).tolist()
    assert dg.rand(2, generator=other).tolist() == expected


def test_threads_draw_different_numbers() -> None:
    taken: list[int] = []

    def work() -> None:
        for _ in range(200):
            taken.append(int(generator.take()[1]))

    generator = dg.Generator()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(800))


def test_generator_that_is_none_raises() -> None:
    number: Any = 3
    with pytest.raises(TypeError, match="'generator' must be Generator"):
        dg.rand(2, generator=number)


def test_draws_do_not_depend_on_the_device() -> None:
    here = dg.randn(3, generator=dg.Generator().manual_seed(1))
    there = dg.randn(3, generator=dg.Generator("cpu:1").manual_seed(1), device="cpu:2")
    assert there.device == dg.device("cpu:2")
    assert there.tolist() == here.tolist()


def test_first_draw_inside_a_trace_leaves_no_tracer_behind() -> None:
    generator = dg.Generator().manual_seed(1)
    traced = jax.jit(lambda: dg.rand(3, generator=generator).jax())()
    expected = dg.rand(3, generator=dg.Generator().manual_seed(1))
    assert traced.tolist() == expected.tolist()
    dg.rand(3, generator=generator)


# Draws


@pytest.mark.parametrize(
    "draw",
    [
        lambda d: dg.rand(2, device=d),
        lambda d: dg.normal(0.0, 1.0, (2,), device=d),
        lambda d: dg.randint(3, (2,), device=d),
        lambda d: dg.randperm(2, device=d),
        lambda d: dg.randn_like(dg.ones(2), device=d),
        lambda d: dg.randn_like(dg.ones(2, device=d)),
        lambda d: dg.bernoulli(dg.ones(2, device=d)),
        lambda d: dg.bernoulli(dg.ones(2, device=d), 0.5),
        lambda d: dg.normal(dg.ones(2, device=d)),
        lambda d: dg.multinomial(dg.ones(2, device=d), 1),
    ],
)
def test_draw_is_on_its_device(draw: Callable[..., dg.Tensor]) -> None:
    assert draw("cpu:1").device == dg.device("cpu:1")


@pytest.mark.parametrize("draw", [dg.rand, dg.randn])
def test_floating_draws_refuse_integers(draw: Callable[..., dg.Tensor]) -> None:
    with pytest.raises(NotImplementedError, match="Use randint"):
        draw(2, dtype=dg.int32)


def test_complex_rand_has_both_parts_uniform() -> None:
    x = dg.rand(100, dtype=dg.complex64).numpy()
    assert np.real(x).std() > 0.2 and np.imag(x).std() > 0.2
    assert (np.real(x) != np.imag(x)).all()


def test_randint_takes_its_bounds_by_keyword() -> None:
    assert dg.randint(high=1, size=(2,)).tolist() == [0, 0]
    assert dg.randint(low=4, high=5, size=(2,)).tolist() == [4, 4]


def test_randint_reaches_the_ends_of_a_small_dtype() -> None:
    x = dg.randint(0, 256, (5000,), dtype=dg.uint8).numpy()
    assert (x.min(), x.max()) == (0, 255)


@pytest.mark.parametrize(
    "low, high, dtype", [(0, 300, dg.uint8), (-1, 2, dg.bool), (0, 2**40, None)]
)
def test_randint_beyond_its_dtype_raises(low: int, high: int, dtype: Any) -> None:
    with pytest.raises(RuntimeError, match="out of bounds for"):
        dg.randint(low, high, (2,), dtype=dtype)


def test_randint_without_a_size_raises() -> None:
    with pytest.raises(TypeError, match=r"\(high, size\) or \(low, high, size\)"):
        dg.randint(5)


def test_randperm_of_more_than_the_dtype_holds_raises() -> None:
    with pytest.raises(RuntimeError, match="wider dtype"):
        dg.randperm(300, dtype=dg.uint8)


def test_normal_has_the_dtype_of_its_first_tensor() -> None:
    half, single = dg.zeros(2, dtype=dg.float16), dg.ones(2)
    assert dg.normal(half, single).dtype == dg.float16
    assert dg.normal(0.0, half).dtype == dg.float16


def test_normal_broadcasts_its_tensors() -> None:
    assert dg.normal(dg.zeros(2, 1), dg.ones(3)).shape == (2, 3)
    with pytest.raises(RuntimeError, match="shapes that broadcast"):
        dg.normal(dg.zeros(2), dg.ones(3))


def test_normal_of_numbers_needs_a_size_and_of_tensors_takes_none() -> None:
    with pytest.raises(TypeError, match="numbers and a size"):
        dg.normal(0.0, 1.0)
    with pytest.raises(TypeError, match="numbers and a size"):
        dg.normal(dg.zeros(2), 1.0, (2,))


def test_normal_of_a_negative_deviation_among_others_raises() -> None:
    with pytest.raises(RuntimeError, match="all elements of std >= 0"):
        dg.normal(dg.zeros(2), dg.tensor([1.0, -1.0]))


@pytest.mark.parametrize("p", [2.0, -0.5, float("nan")])
def test_bernoulli_of_no_probability_raises(p: float) -> None:
    with pytest.raises(RuntimeError, match="Expected p_in >= 0"):
        dg.bernoulli(dg.tensor([0.5, p]))
    with pytest.raises(RuntimeError, match=r"p to be in \[0, 1\]"):
        dg.bernoulli(dg.ones(2), p)


def test_bernoulli_of_integers_needs_a_probability() -> None:
    assert dg.bernoulli(dg.tensor([5, 5]), 1.0).tolist() == [1, 1]
    with pytest.raises(NotImplementedError, match="floating point tensor"):
        dg.bernoulli(dg.tensor([1]))


def test_poisson_has_its_rate_as_mean() -> None:
    x = dg.poisson(dg.full((10_000,), 3.0))
    assert x.dtype == dg.float32
    assert x.mean().item() == pytest.approx(3.0, abs=0.1)
    with pytest.raises(RuntimeError, match="non-negative"):
        dg.poisson(dg.tensor([-1.0]))


def test_multinomial_draws_for_each_row() -> None:
    x = dg.multinomial(dg.tensor([[0.0, 1.0], [1.0, 0.0]]), 3, replacement=True)
    assert x.tolist() == [[1, 1, 1], [0, 0, 0]]
    assert x.dtype == dg.tensor(1).dtype


def test_multinomial_without_replacement_prefers_heavy_weights() -> None:
    weights = dg.tensor([[1.0, 3.0]] * 4000)
    first = dg.multinomial(weights, 2).numpy()[:, 0]
    assert first.mean() == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize(
    "weights, count, message",
    [
        ([1.0, 2.0], 0, "n_sample <= 0"),
        ([[[1.0]]], 1, "must be 1 or 2 dim"),
        ([1, 2], 1, "only supports floating-point dtypes"),
        ([1.0, -2.0], 1, "`inf`, `nan` or element < 0"),
        ([1.0, float("nan")], 1, "`inf`, `nan` or element < 0"),
        ([0.0, 0.0], 1, "sum of probabilities <= 0"),
    ],
)
def test_multinomial_of_bad_weights_raises(weights: Any, count: int, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        dg.multinomial(dg.tensor(weights), count)


def test_draws_have_no_gradient() -> None:
    x = dg.full((2,), 0.5, requires_grad=True)
    assert not any(y.requires_grad for y in (dg.bernoulli(x), dg.normal(x), dg.poisson(x)))


def test_draws_are_inference_tensors_under_inference_mode() -> None:
    with dg.inference_mode():
        assert dg.rand(2).is_inference()


def test_binomial_has_its_mean_and_variance() -> None:
    x = dg.binomial(dg.full((10_000,), 10.0), dg.tensor(0.3))
    assert (x.shape, x.dtype) == ((10_000,), dg.float32)
    assert x.mean().item() == pytest.approx(3.0, abs=0.1)
    assert x.var().item() == pytest.approx(2.1, abs=0.15)


def test_binomial_of_what_is_out_of_bounds_counts_as_the_nearest() -> None:
    drawn = dg.binomial(dg.tensor([4.0, 4.0, -1.0]), dg.tensor([1.5, -0.5, 0.5]))
    assert drawn.tolist() == [4.0, 0.0, 0.0]


def test_binomial_draws_from_its_generator() -> None:
    count, prob = dg.full((20,), 9.0), dg.tensor(0.5)
    first, same, other = (
        dg.binomial(count, prob, dg.Generator().manual_seed(s)) for s in (1, 1, 2)
    )
    assert first.tolist() == same.tolist() != other.tolist()


def test_binomial_of_other_dtypes_or_shapes_raises() -> None:
    with pytest.raises(ValueError, match=r"floating-point dtypes for count.* Convert it by"):
        dg.binomial(dg.tensor([1]), dg.tensor([0.5]))
    with pytest.raises(ValueError, match="floating-point dtypes for prob"):
        dg.binomial(dg.ones(1), dg.tensor([1]))
    with pytest.raises(RuntimeError, match="count and prob of one dtype"):
        dg.binomial(dg.ones(1), dg.ones(1).half())
    with pytest.raises(RuntimeError, match="count and prob of shapes that broadcast"):
        dg.binomial(dg.ones(2), dg.ones(3))
    with pytest.raises(TypeError, match="must be Tensor, not float"):
        dg.binomial(3.0, dg.ones(3))  # type: ignore[arg-type]

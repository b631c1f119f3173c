"""Random tensors: seeds and generator states repeat draws, and draws have their distribution."""

from collections.abc import Callable

import numpy as np
import pytest

import dyngraph as dg

DRAWS: dict[str, Callable[..., dg.Tensor]] = {
    "rand": lambda **options: dg.rand(20, **options),
    "randn": lambda **options: dg.randn(20, **options),
    "randint": lambda **options: dg.randint(0, 1000, (20,), **options),
    "randperm": lambda **options: dg.randperm(20, **options),
    "normal": lambda **options: dg.normal(0.0, 1.0, (20,), **options),
    "normal of tensors": lambda **options: dg.normal(dg.zeros(20), dg.ones(20), **options),
    "bernoulli": lambda **options: dg.bernoulli(dg.full((60,), 0.5), **options),
    "rand_like": lambda **options: dg.rand_like(dg.ones(20), **options),
    "randn_like": lambda **options: dg.randn_like(dg.ones(20), **options),
    "randint_like": lambda **options: dg.randint_like(dg.ones(20), 0, 1000, **options),
}
every_draw = pytest.mark.parametrize("draw", DRAWS)
WITH_GENERATOR = [name for name in DRAWS if not name.endswith("_like")]
every_draw_from_a_generator = pytest.mark.parametrize("draw", WITH_GENERATOR)


@pytest.fixture(autouse=True)
def seed() -> None:
    dg.manual_seed(0)


# Seeds and states


@every_draw
def test_equal_seeds_give_equal_draws(draw: str) -> None:
    dg.manual_seed(7)
    first = DRAWS[draw]().tolist()
    dg.manual_seed(7)
    assert DRAWS[draw]().tolist() == first


def test_unequal_seeds_give_unequal_draws() -> None:
    draws = []
    for value in range(5):
        dg.manual_seed(value)
        draws.append(tuple(dg.rand(3).tolist()))
    assert len(set(draws)) == 5


@every_draw
def test_consecutive_draws_are_unequal(draw: str) -> None:
    assert DRAWS[draw]().tolist() != DRAWS[draw]().tolist()


def test_manual_seed_returns_the_default_generator() -> None:
    assert dg.manual_seed(5) is dg.default_generator
    assert dg.initial_seed() == dg.default_generator.initial_seed() == 5


def test_negative_seeds_repeat_too() -> None:
    dg.manual_seed(-1)
    first = dg.rand(3).tolist()
    dg.manual_seed(-1)
    assert dg.rand(3).tolist() == first


def test_seed_draws_a_seed_that_repeats() -> None:
    chosen = dg.seed()
    first = dg.rand(3).tolist()
    assert dg.initial_seed() == chosen
    dg.manual_seed(chosen)
    assert dg.rand(3).tolist() == first


def test_restored_state_repeats_a_sequence_of_different_draws() -> None:
    dg.rand(3)
    state = dg.get_rng_state()
    first = [draw().tolist() for draw in DRAWS.values()]
    dg.set_rng_state(state)
    assert [draw().tolist() for draw in DRAWS.values()] == first


def test_saved_state_does_not_move_with_later_draws() -> None:
    state = dg.get_rng_state()
    first = [dg.rand(2).tolist() for _ in range(3)]
    for _ in range(2):
        dg.set_rng_state(state)
        assert [dg.rand(2).tolist() for _ in range(3)] == first


def test_state_is_a_tensor_of_bytes() -> None:
    assert dg.get_rng_state().dtype == dg.uint8


def test_state_of_another_dtype_raises() -> None:
    with pytest.raises(TypeError, match="RNG state must be a"):
        dg.set_rng_state(dg.zeros(3))


def test_fork_rng_restores_the_state() -> None:
    dg.manual_seed(1)
    expected = dg.rand(3).tolist()
    dg.manual_seed(1)
    with dg.random.fork_rng():
        dg.manual_seed(99)
        dg.rand(5)
    assert dg.rand(3).tolist() == expected


def test_fork_rng_restores_the_state_after_an_exception() -> None:
    dg.manual_seed(1)
    expected = dg.rand(3).tolist()
    dg.manual_seed(1)

    def fails() -> None:
        with dg.random.fork_rng():
            dg.rand(5)
            raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        fails()
    assert dg.rand(3).tolist() == expected


def test_fork_rng_starts_from_the_state_outside() -> None:
    dg.manual_seed(1)
    expected = dg.rand(3).tolist()
    dg.manual_seed(1)
    with dg.random.fork_rng():
        assert dg.rand(3).tolist() == expected


def test_fork_rng_that_is_not_enabled_does_nothing() -> None:
    dg.manual_seed(1)
    first = dg.rand(3).tolist()
    dg.manual_seed(1)
    with dg.random.fork_rng(enabled=False):
        dg.rand(3)
    assert dg.rand(3).tolist() != first


def test_random_module_has_the_functions_of_the_package() -> None:
    for name in ("manual_seed", "get_rng_state", "set_rng_state", "initial_seed", "seed"):
        assert getattr(dg.random, name) is getattr(dg, name)


# Generators


@every_draw_from_a_generator
def test_generators_of_equal_seeds_give_equal_draws(draw: str) -> None:
    first = dg.Generator().manual_seed(4)
    second = dg.Generator().manual_seed(4)
    assert DRAWS[draw](generator=first).tolist() == DRAWS[draw](generator=second).tolist()


@every_draw_from_a_generator
def test_draw_from_a_generator_leaves_the_default_one_alone(draw: str) -> None:
    dg.manual_seed(1)
    expected = dg.rand(3).tolist()
    dg.manual_seed(1)
    DRAWS[draw](generator=dg.Generator())
    assert dg.rand(3).tolist() == expected


def test_manual_seed_leaves_other_generators_alone() -> None:
    generator = dg.Generator().manual_seed(4)
    expected = dg.rand(3, generator=generator).tolist()
    generator.manual_seed(4)
    dg.manual_seed(4)
    assert dg.rand(3, generator=generator).tolist() == expected


def test_consecutive_draws_from_a_generator_are_unequal() -> None:
    generator = dg.Generator()
    assert dg.rand(3, generator=generator).tolist() != dg.rand(3, generator=generator).tolist()


def test_generator_returns_itself_when_seeded() -> None:
    generator = dg.Generator()
    assert generator.manual_seed(4) is generator
    assert generator.initial_seed() == 4


def test_generator_draws_a_seed_that_it_reports() -> None:
    generator = dg.Generator()
    assert generator.seed() == generator.initial_seed()


def test_state_of_a_generator_repeats_its_draws() -> None:
    generator = dg.Generator().manual_seed(4)
    dg.rand(3, generator=generator)
    state = generator.get_state()
    expected = dg.rand(3, generator=generator).tolist()
    generator.set_state(state)
    assert dg.rand(3, generator=generator).tolist() == expected


def test_state_of_one_generator_may_be_set_in_another() -> None:
    first, second = dg.Generator().manual_seed(4), dg.Generator().manual_seed(5)
    second.set_state(first.get_state())
    assert dg.rand(3, generator=first).tolist() == dg.rand(3, generator=second).tolist()


# Distributions


def test_rand_is_uniform_from_zero_to_before_one() -> None:
    x = dg.rand(20_000).numpy()
    assert x.min() >= 0.0 and x.max() < 1.0
    assert x.mean() == pytest.approx(0.5, abs=0.01)
    assert x.var() == pytest.approx(1 / 12, abs=0.005)


def test_randn_has_mean_zero_and_variance_one() -> None:
    x = dg.randn(20_000).numpy()
    assert x.mean() == pytest.approx(0.0, abs=0.03)
    assert x.var() == pytest.approx(1.0, abs=0.05)
    assert abs(x).max() > 3.0


def test_complex_randn_has_variance_one_in_all() -> None:
    x = dg.randn(20_000, dtype=dg.complex64).numpy()
    assert (abs(x) ** 2).mean() == pytest.approx(1.0, abs=0.05)
    assert np.real(x).var() == pytest.approx(0.5, abs=0.05)


def test_randint_reaches_low_but_not_high() -> None:
    assert set(dg.randint(2, 5, (500,)).tolist()) == {2, 3, 4}


def test_randint_starts_at_zero_by_default() -> None:
    assert set(dg.randint(3, (500,)).tolist()) == {0, 1, 2}


@pytest.mark.parametrize("low, high", [(5, 5), (5, 2)])
def test_randint_of_an_empty_range_raises(low: int, high: int) -> None:
    with pytest.raises(RuntimeError, match="to be less than"):
        dg.randint(low, high, (2,))


def test_normal_has_its_mean_and_deviation() -> None:
    x = dg.normal(5.0, 2.0, (20_000,)).numpy()
    assert x.mean() == pytest.approx(5.0, abs=0.06)
    assert x.std() == pytest.approx(2.0, abs=0.06)


def test_normal_takes_a_mean_and_a_deviation_for_each_element() -> None:
    mean, std = dg.tensor([0.0, 100.0]), dg.tensor([0.0, 1.0])
    first, second = dg.normal(mean, std).tolist()
    assert first == 0.0
    assert abs(second - 100.0) < 10.0
    assert dg.normal(mean, 1.0).shape == dg.normal(0.0, std).shape == dg.normal(mean).shape == (2,)


def test_normal_of_a_negative_deviation_raises() -> None:
    with pytest.raises(RuntimeError, match="std >= 0"):
        dg.normal(0.0, -1.0, (3,))


def test_bernoulli_gives_zeros_and_ones_in_the_dtype_of_its_probabilities() -> None:
    x = dg.bernoulli(dg.full((100,), 0.5))
    assert x.dtype == dg.float32
    assert set(x.tolist()) == {0.0, 1.0}


def test_bernoulli_gives_ones_with_their_probability() -> None:
    assert dg.bernoulli(dg.tensor([0.0, 1.0])).tolist() == [0.0, 1.0]
    assert dg.bernoulli(dg.full((20_000,), 0.3)).mean().item() == pytest.approx(0.3, abs=0.02)


def test_bernoulli_takes_one_probability_for_all() -> None:
    x = dg.bernoulli(dg.zeros(20_000), 0.3)
    assert x.mean().item() == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("size", [0, 1, 50])
def test_randperm_is_a_permutation(size: int) -> None:
    assert sorted(dg.randperm(size).tolist()) == list(range(size))


def test_randperm_shuffles() -> None:
    assert dg.randperm(50).tolist() != list(range(50))


def test_randperm_puts_each_number_first_equally_often() -> None:
    firsts = [dg.randperm(4)[0].item() for _ in range(400)]
    assert np.bincount(firsts).min() > 50


def test_multinomial_draws_with_its_weights() -> None:
    drawn = dg.multinomial(dg.tensor([0.0, 1.0, 3.0]), 8_000, replacement=True)
    counts = np.bincount(drawn.tolist(), minlength=3) / 8_000
    np.testing.assert_allclose(counts, [0.0, 0.25, 0.75], atol=0.03)


def test_multinomial_without_replacement_draws_each_index_once() -> None:
    assert sorted(dg.multinomial(dg.tensor([1.0, 2.0, 3.0]), 3).tolist()) == [0, 1, 2]


def test_multinomial_of_more_than_there_are_raises() -> None:
    with pytest.raises(RuntimeError, match="without replacement"):
        dg.multinomial(dg.tensor([1.0, 2.0]), 3)


# Shapes, dtypes, history


def test_sizes_may_be_numbers_or_a_tuple() -> None:
    for make in (dg.rand, dg.randn):
        assert make(2, 3).shape == make((2, 3)).shape == (2, 3)
        assert make(0).shape == (0,)


def test_float_draws_have_the_default_dtype() -> None:
    for x in (dg.rand(2), dg.randn(2), dg.normal(0.0, 1.0, (2,))):
        assert x.dtype == dg.float32


def test_integer_draws_have_the_dtype_of_python_integers() -> None:
    for x in (dg.randint(0, 3, (2,)), dg.randperm(3)):
        assert x.dtype == dg.tensor(1).dtype


def test_draws_take_a_dtype() -> None:
    assert dg.rand(2, dtype=dg.float16).dtype == dg.float16
    assert dg.randint(0, 3, (2,), dtype=dg.int32).dtype == dg.int32
    assert dg.randint(0, 3, (2,), dtype=dg.float32).dtype == dg.float32
    assert dg.randperm(3, dtype=dg.int32).dtype == dg.int32


@pytest.mark.parametrize("make", ["rand_like", "randn_like"])
def test_like_draws_take_shape_and_dtype_but_no_history(make: str) -> None:
    x = dg.ones(2, 3, dtype=dg.float16, requires_grad=True)
    y = getattr(dg, make)(x)
    assert (y.shape, y.dtype, y.requires_grad) == (x.shape, dg.float16, False)
    assert getattr(dg, make)(x, dtype=dg.float32).dtype == dg.float32


def test_randint_like_takes_shape_and_dtype() -> None:
    x = dg.randint_like(dg.ones(200), 1, 3)
    assert (x.dtype, set(x.tolist())) == (dg.float32, {1.0, 2.0})
    assert set(dg.randint_like(dg.ones(200), 2).tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("make", ["rand", "randn"])
def test_draws_may_require_grad(make: str) -> None:
    x = getattr(dg, make)(2, requires_grad=True)
    assert x.requires_grad and x.is_leaf
    (x * 3).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0]


def test_integer_draws_refuse_to_require_grad() -> None:
    with pytest.raises(RuntimeError, match="floating point and complex dtype can require grad"):
        dg.randint(0, 3, (2,), requires_grad=True)

"""`dg.compare`: what it finds agrees with JAX, and what a way can't do does not lose the others."""

from __future__ import annotations

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg
import dyngraph.numpy as dnp
from dyngraph.comparison import Comparison
from dyngraph.comparison.agreement import agreement
from dyngraph.comparison.listing import Listing
from dyngraph.comparison.rounds import spread, take_turns

W = np.array([[0.5, -1.0], [0.25, 2.0], [1.0, 0.0]], np.float32)
X = np.array([[1.0, 2.0, 3.0], [-1.0, 0.5, 0.0]], np.float32)


def loss(w: Any, x: Any) -> Any:
    return (x @ w).tanh().square().mean()


def loss_in_jnp(w: Any, x: Any) -> Any:
    return jnp.mean(jnp.tanh(x @ w) ** 2)


@pytest.fixture(scope="module")
def found() -> Comparison:
    return dg.compare(loss, W, X, argnums=0, twin=loss_in_jnp, rounds=2)


def test_every_way_has_the_gradient_of_jax(found: Comparison) -> None:
    expected = jax.grad(loss_in_jnp)(W, X)
    for row in found:
        if row.mode != "no_grad":
            assert row.gradients is not None
            np.testing.assert_allclose(row.gradients[0], expected, rtol=1e-5, atol=1e-6)


def test_every_way_is_timed(found: Comparison) -> None:
    assert {row.mode: len(row.times) for row in found} == dict.fromkeys(dg_modes(), 2)


def dg_modes() -> list[str]:
    return ["eager", "compiled", "no_grad", "step", "traced", "jax.grad", "jax.jit"]


def test_agreement_is_with_the_first_way(found: Comparison) -> None:
    assert found["eager"].agreement is None
    measured = found["jax.jit"].agreement
    assert measured is not None
    assert measured.absolute < 1e-6


def test_graph_is_counted(found: Comparison) -> None:
    # mean, pow, tanh, mm and one AccumulateGrad: x needs no gradient
    assert found["eager"].sizes.nodes == 5


def test_compiled_backward_counts_its_kernel_calls(found: Comparison) -> None:
    assert found["compiled"].sizes.calls == 4


def test_saved_bytes_are_those_of_each_buffer_once(found: Comparison) -> None:
    # x for mm (24), the results of mm and tanh of shape (2, 2) for tanh and square
    assert found["eager"].sizes.saved_bytes in (24 + 16, 24 + 32)


def test_jitted_ways_tell_equations_instructions_and_memory(found: Comparison) -> None:
    for mode in ("step", "traced", "jax.jit"):
        sizes = found[mode].sizes
        assert sizes.equations is not None
        assert sizes.equations > 5
        assert sizes.instructions is not None
        assert sizes.instructions > 5
        assert sizes.argument_bytes == W.nbytes + X.nbytes
    assert set(found["traced"].parts) == set(found["jax.jit"].parts) == {"trace", "compile"}
    assert set(found["step"].parts) == {"as written", "trace and compile"}


def test_a_step_that_gives_its_tensors_away_is_not_compiled_and_says_so() -> None:
    kept: list[Any] = []

    def keeping(w: Any) -> Any:
        kept.append(w * 2)
        return w.sin().sum()

    found = dg.compare(keeping, W, modes=["eager", "step"], rounds=1)
    assert found["step"].error is not None
    assert "runs as written: " in found["step"].error


def test_a_compiled_call_draws_what_a_call_as_written_draws() -> None:
    found = dg.compare(lambda w: (w * dg.rand(3, 2)).sum(), W, modes=["eager", "step"], rounds=1)
    np.testing.assert_array_equal(found["step"].gradients, found["eager"].gradients)


def test_listings_are_the_backward_alone_and_both(found: Comparison) -> None:
    assert [x.title for x in found.listings] == ["The backward alone", "Forward and backward"]


def test_listing_marks_what_differs(found: Comparison) -> None:
    marks = [pair.mark for pair in found.listings[1].pairs]
    assert set(marks) <= {" ", "~", "<", ">"}
    dots = [p for p in found.listings[1].pairs if "dot_general" in p.left and p.mark == " "]
    assert dots


def test_text_has_a_line_for_each_way(found: Comparison) -> None:
    lines = str(found).splitlines()
    for row in found:
        assert any(line.startswith(row.name) for line in lines)


def test_notebook_gets_html_and_text(found: Comparison) -> None:
    bundle = found._repr_mimebundle_()
    assert bundle["text/plain"] == str(found)
    assert bundle["text/html"].count("<tr title=") == len(found)


def test_json_has_the_figures(found: Comparison) -> None:
    figures = json.loads(found.json())
    assert figures == json.loads(json.dumps(found.to_dict()))
    assert figures["baseline"] == "eager"
    assert figures["rows"][0]["sizes"]["nodes"] == 5


def test_row_is_found_by_mode_or_name(found: Comparison) -> None:
    assert found["jax.jit"] is found["jax.jit(jax.grad)"]
    with pytest.raises(KeyError, match=r"expected one of eager, compiled"):
        found["torch"]


def halved(x: Any) -> Any:
    while x.sum() > 1:
        x = x / 2
    return x.square().sum()


def test_control_flow_on_values_is_said_in_the_row_of_jit() -> None:
    found = dg.compare(halved, dg.ones(3), modes=["eager", "jax.grad", "jax.jit"], rounds=1)
    assert found["jax.grad"].agreement == (0.0, 0.0, 0.0)
    why = found["jax.jit"].error
    assert why is not None
    assert "`while x.sum() > 1:`" in why
    assert "can't: what it does depends on a value" in str(found)
    assert "depends on a value" in found._repr_html_()


def test_function_over_a_namespace_gets_each_worlds_own() -> None:
    seen = []

    def norm(lib: Any, x: Any) -> Any:
        seen.append((lib, isinstance(x, dg.Tensor)))
        return lib.sum(x * x)

    dg.compare(norm, X, namespaces=(dnp, jnp), modes=["eager", "jax.jit"], rounds=1)
    assert set(seen) == {(dnp, True), (jnp, False)}


def test_random_draws_of_first_calls_are_the_same() -> None:
    def noisy(x: Any) -> Any:
        return (x * dg.rand(3)).sum()

    state = dg.get_rng_state()
    found = dg.compare(noisy, dg.ones(3), modes=["eager", "jax.jit"], rounds=1)
    assert found["jax.jit"].agreement == (0.0, 0.0, 0.0)
    assert (dg.get_rng_state() == state).all()


def test_structures_of_tensors_are_arguments() -> None:
    def fit(p: Any, power: int) -> Any:
        return ((p["w"] ** power) * p["n"]).sum()

    parameters = {"w": dg.tensor([2.0, 3.0]), "n": dg.tensor([1, 2])}
    found = dg.compare(fit, parameters, 2, modes=["eager", "jax.jit"], rounds=1)
    assert found["eager"].gradients is not None
    assert [g.tolist() for g in found["eager"].gradients] == [[4.0, 12.0]]
    assert found["jax.jit"].agreement == (0.0, 0.0, 0.0)


def test_gradients_of_complex_arguments_agree() -> None:
    z = dg.tensor([1 + 2j, -0.5 + 1j])
    found = dg.compare(
        lambda z: (z * z).real.sum(), z, modes=["eager", "jax.jit", "jax.grad"], rounds=1
    )
    for mode in ("jax.jit", "jax.grad"):
        measured = found[mode].agreement
        assert measured is not None
        assert measured.absolute < 1e-6


def test_arguments_are_not_written_to() -> None:
    x = dg.ones(2)

    def writes(x: Any, y: Any) -> Any:
        y.mul_(2)
        return (x * y).sum()

    found = dg.compare(writes, dg.ones(2), x, argnums=0, modes=["eager", "jax.jit"], rounds=2)
    assert x.tolist() == [1.0, 1.0]
    assert found["jax.jit"].agreement == (0.0, 0.0, 0.0)


def test_what_every_way_fails_at_is_raised() -> None:
    with pytest.raises(RuntimeError, match=r"returned \[2\], expected a tensor without dims"):
        dg.compare(lambda x: x * 2, dg.ones(2), modes=["eager", "traced"], rounds=1)


def test_failure_of_one_way_is_in_its_row() -> None:
    def broken(x: Any) -> Any:
        raise KeyError("gone")

    found = dg.compare(
        lambda x: x.sum(), dg.ones(2), twin=broken, modes=["eager", "jax.grad"], rounds=1
    )
    assert found["jax.grad"].error == "KeyError: 'gone'"
    assert len(found["eager"].times) == 1


def test_mode_that_is_not_there_raises() -> None:
    with pytest.raises(ValueError, match=r"\['torch'\]: expected some of eager"):
        dg.compare(loss, W, X, modes=["torch"])


def test_arguments_without_floats_raise() -> None:
    with pytest.raises(RuntimeError, match=r"Pass tensors or arrays of floats"):
        dg.compare(loss, dg.tensor([1]))


# --- parts ------------------------------------------------------------------------------------


def test_ulp_counts_representable_numbers() -> None:
    x = np.float32(1.5)
    three_on = np.nextafter(np.nextafter(np.nextafter(x, x + 1), x + 1), x + 1)
    assert agreement([three_on], [x]).ulp == 3


def test_nan_agrees_with_nan_only() -> None:
    nan, one = np.array([np.nan], np.float32), np.array([1.0], np.float32)
    assert agreement([nan], [nan]) == (0, 0, 0)
    assert agreement([nan], [one]).absolute == np.inf


def test_infinity_agrees_with_itself() -> None:
    inf = np.array([np.inf, 1.0], np.float32)
    assert agreement([inf], [inf]) == (0, 0, 0)
    assert agreement([inf], [-inf]).absolute == np.inf


def test_equal_programs_have_no_marks() -> None:
    def by_jit(x: Any) -> Any:
        return jax.jit(jnp.sin)(x) * 2

    left = jax.make_jaxpr(by_jit)(1.0)
    right = jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
    listing = Listing("", ("a", "b"), left, right)
    assert [pair.mark for pair in listing.pairs] == [" ", " "]
    assert listing.pairs[1].left == "c:f32[] = mul b 2.0"


def test_bodies_of_loops_are_shown_indented() -> None:
    closed = jax.make_jaxpr(lambda x: jax.lax.fori_loop(0, 3, lambda i, y: jnp.cos(y), x))(1.0)
    listing = Listing("", ("a", "b"), closed, closed)
    assert any(pair.left.startswith("  ") and "cos" in pair.left for pair in listing.pairs)


def test_turns_begin_with_another_each_round() -> None:
    order: list[str] = []
    runs = {name: lambda name=name: order.append(name) for name in "ab"}
    take_turns(runs, rounds=2, seconds=60)
    assert order == ["a", "b", "b", "a"]


def test_budget_leaves_one_round() -> None:
    times = take_turns({"a": lambda: None}, rounds=50, seconds=0.0)
    assert len(times["a"]) == 1


def test_spread_is_median_and_quartiles() -> None:
    assert spread([1.0, 2.0, 3.0, 4.0, 5.0]) == (3.0, 2.0, 4.0)

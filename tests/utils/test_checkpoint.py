"""Checkpoints: the gradients are those without one, what is kept is the inputs."""

import contextlib
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import dyngraph as dg

ck: Any = dg.utils.checkpoint
checkpoint: Any = partial(ck.checkpoint, use_reentrant=False)
reentrant: Any = partial(ck.checkpoint, use_reentrant=True)
both = pytest.mark.parametrize("run", [checkpoint, reentrant], ids=["hooks", "reentrant"])


class Counted:
    """x -> sin(exp(x)), which counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return x.exp().sin()


def leaf() -> Any:
    return dg.tensor([0.5, 1.0], requires_grad=True)


def gradient(run: Callable[[Any], Any]) -> list[float]:
    x = leaf()
    run(x).sum().backward()
    return x.grad.tolist()


def plain(x: Any) -> Any:
    return x.exp().sin()


PLAIN = gradient(plain)


def saved_bytes(run: Callable[[Any], Any]) -> int:
    """The bytes of what is saved while `run` runs on a leaf."""
    kept: list[Any] = []
    with dg.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        run(leaf())
    return sum(t.nbytes for t in kept)


# --- values -----------------------------------------------------------------------------------


@both
def test_gradient_is_that_without_a_checkpoint(run: Any) -> None:
    assert gradient(lambda x: run(plain, x)) == PLAIN


@both
def test_value_is_that_without_a_checkpoint(run: Any) -> None:
    assert run(plain, leaf()).tolist() == plain(leaf()).tolist()


@both
def test_function_runs_a_second_time_in_backward(run: Any) -> None:
    function, x = Counted(), leaf()
    y = run(function, x)
    assert function.calls == 1
    y.sum().backward()
    assert function.calls == 2


def test_nested_checkpoints_give_the_gradient() -> None:
    assert gradient(lambda x: checkpoint(lambda x: checkpoint(plain, x * 1) * 1, x)) == PLAIN


def test_reentrant_in_a_checkpoint_by_hooks() -> None:
    assert gradient(lambda x: checkpoint(lambda x: reentrant(plain, x * 1), x)) == PLAIN


def test_three_levels_of_checkpoints_give_the_gradient() -> None:
    def thrice(x: Any) -> Any:
        return checkpoint(lambda x: checkpoint(lambda x: checkpoint(plain, x), x), x)

    assert gradient(thrice) == PLAIN


def test_closures_get_their_gradient() -> None:
    w = leaf()
    checkpoint(lambda x: x * w.exp(), dg.ones(2)).sum().backward()
    assert w.grad.tolist() == w.exp().tolist()


def test_second_derivative_goes_through() -> None:
    def second(run: Callable[[Any], Any]) -> list[float]:
        x = leaf()
        (g,) = dg.autograd.grad(run(x).sum(), x, create_graph=True)
        return dg.autograd.grad(g.sum(), x)[0].tolist()

    assert second(lambda x: checkpoint(plain, x)) == second(plain)


def test_autograd_grad_goes_through() -> None:
    x = leaf()
    assert dg.autograd.grad(checkpoint(plain, x).sum(), x)[0].tolist() == PLAIN


@both
def test_several_outputs_and_other_arguments(run: Any) -> None:
    def function(x: Any, n: int, names: Any) -> Any:
        return x.exp() * n, names[0], x.sin()

    x = leaf()
    first, name, second = run(function, x, 3, ["a", None])
    (first + second).sum().backward()
    assert name == "a"
    assert x.grad.tolist() == (x.exp() * 3 + x.cos()).tolist()


def test_none_among_the_arguments() -> None:
    assert gradient(lambda x: checkpoint(lambda n, x: plain(x), None, x)) == PLAIN


def test_keyword_arguments_are_passed_on_both_times() -> None:
    x = leaf()
    checkpoint(lambda x, *, k: (x * k).exp(), x, k=2.0).sum().backward()
    assert x.grad.tolist() == ((x * 2).exp() * 2).tolist()


def test_keyword_tensor_gets_its_gradient() -> None:
    k = leaf()
    checkpoint(lambda x, k: x * k.exp(), dg.ones(2), k=k).sum().backward()
    assert k.grad.tolist() == k.exp().tolist()


def test_nested_structures_of_outputs() -> None:
    x = leaf()
    result = checkpoint(lambda x: {"a": [x.exp(), 1], "b": x.sin()}, x)
    (result["a"][0] + result["b"]).sum().backward()
    assert x.grad.tolist() == (x.exp() + x.cos()).tolist()


@both
def test_part_of_the_inputs_requires_grad(run: Any) -> None:
    x, constant = leaf(), dg.ones(2)
    run(lambda c, x: c * x.exp(), constant, x).sum().backward()
    assert constant.grad is None
    assert x.grad.tolist() == x.exp().tolist()


@both
def test_nothing_is_recorded_under_no_grad(run: Any) -> None:
    function = Counted()
    with dg.no_grad(), warnings.catch_warnings():
        assert not run(function, leaf()).requires_grad
    assert function.calls == 1


def test_detached_result_has_no_graph() -> None:
    assert not checkpoint(lambda x: x.detach(), leaf()).requires_grad


def test_input_returned_as_it_is() -> None:
    x = leaf()
    checkpoint(lambda x: x, x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_in_place_writes_inside() -> None:
    def function(x: Any) -> Any:
        y = x * 1
        y.mul_(2)
        return y.sin()

    assert gradient(lambda x: checkpoint(function, x)) == gradient(function)


def test_input_written_in_place_before_backward_is_refused() -> None:
    x = leaf() * 1
    y = checkpoint(plain, x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_kept_graph_runs_again() -> None:
    function, x = Counted(), leaf()
    y = checkpoint(function, x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert function.calls == 3
    assert x.grad.tolist() == [2 * g for g in PLAIN]


@both
def test_second_backward_of_a_freed_graph_is_refused(run: Any) -> None:
    y = run(plain, leaf()).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_backward_in_the_checkpointed_function() -> None:
    def function(x: Any) -> Any:
        with dg.enable_grad():
            (inner,) = dg.autograd.grad(x.exp().sin().sum(), x, retain_graph=True)
        return x * inner.detach()

    x = leaf()
    checkpoint(function, x).sum().backward()
    assert x.grad.tolist() == PLAIN


def test_custom_function_inside() -> None:
    class Exp(dg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

    assert gradient(lambda x: checkpoint(lambda x: Exp.apply(x).sin(), x)) == PLAIN


def test_saved_tensor_can_be_looked_at_outside_of_backward() -> None:
    function = Counted()
    y = checkpoint(function, leaf())
    assert y.grad_fn._saved_self.tolist() == y.grad_fn._saved_self.tolist()
    assert function.calls == 3
    y.sum().backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        y.grad_fn._saved_self  # noqa: B018


# --- random numbers ---------------------------------------------------------------------------


@both
def test_random_draws_are_the_same_in_both_runs(run: Any) -> None:
    x = leaf()
    y = run(lambda x: x * dg.rand(2), x)
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx((y / x).tolist())


@both
def test_later_draws_are_not_moved_by_backward(run: Any) -> None:
    def draws(backward: bool) -> list[float]:
        dg.manual_seed(3)
        y = run(lambda x: x * dg.rand(2), leaf()).sum()
        if backward:
            y.backward()
        return dg.rand(2).tolist()

    assert draws(True) == draws(False)


@both
def test_random_state_need_not_be_preserved(run: Any) -> None:
    x = leaf()
    y = run(lambda x: x * dg.rand(2), x, preserve_rng_state=False)
    y.sum().backward()
    assert x.grad.tolist() != pytest.approx((y / x).tolist())


# --- when the second run ends -----------------------------------------------------------------


class Tail:
    """exp, then what backward does not need, which it counts."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        y = x.exp()
        self.calls += 1
        return y + 1


def test_second_run_ends_with_the_last_tensor_that_is_needed() -> None:
    tail = Tail()
    checkpoint(tail, leaf()).sum().backward()
    assert tail.calls == 1


@pytest.mark.parametrize("how", ["argument", "context"])
def test_early_stop_can_be_switched_off(how: str) -> None:
    tail, x = Tail(), leaf()
    if how == "argument":
        y = checkpoint(tail, x, early_stop=False)
    else:
        with ck.set_checkpoint_early_stop(False):
            y = checkpoint(tail, x)
    y.sum().backward()
    assert tail.calls == 2
    assert x.grad.tolist() == x.exp().tolist()


def test_function_that_catches_exceptions_is_stopped_too() -> None:
    def function(x: Any) -> Any:
        try:
            return x.exp() + 1
        except Exception:
            return x

    x = leaf()
    checkpoint(function, x).sum().backward()
    assert x.grad.tolist() == x.exp().tolist()


# --- memory -----------------------------------------------------------------------------------


def test_only_the_input_is_saved_outside() -> None:
    assert saved_bytes(lambda x: checkpoint(lambda x: plain(plain(x)), x)) == leaf().nbytes


def test_inner_results_are_freed(no_gc: None) -> None:
    kept: list[Any] = []

    def function(x: Any) -> Any:
        y = x.exp()
        kept.append(weakref.ref(y._cell))
        return y.sin().sum()

    y = checkpoint(function, leaf())
    assert kept[0]() is None
    y.backward()
    assert [reference() for reference in kept] == [None, None]


def test_dropped_result_frees_the_region(no_gc: None) -> None:
    class Function:
        def __call__(self, x: Any) -> Any:
            return plain(x)

    function = Function()
    reference = weakref.ref(function)
    y = checkpoint(function, leaf())
    del function
    assert reference() is not None
    del y
    assert reference() is None


def test_inputs_of_an_inner_region_are_not_kept(no_gc: None) -> None:
    kept: list[Any] = []

    def outer(x: Any) -> Any:
        y = x * 2
        kept.append(weakref.ref(y._cell))
        return checkpoint(plain, y)

    y = checkpoint(outer, leaf())
    assert kept[0]() is None
    y.sum().backward()


# --- functions that differ when they run again ------------------------------------------------


class Changing:
    """Another function at the second call."""

    def __init__(self, first: Callable[[Any], Any], second: Callable[[Any], Any]) -> None:
        self.functions = [first, second]

    def __call__(self, x: Any) -> Any:
        return self.functions.pop(0)(x)


def test_more_saved_tensors_the_second_time() -> None:
    function = Changing(plain, lambda x: plain(x).exp())
    y = checkpoint(function, leaf(), early_stop=False)
    with pytest.raises(ck.CheckpointError, match="trying to save more tensors"):
        y.sum().backward()


def test_fewer_saved_tensors_the_second_time() -> None:
    y = checkpoint(Changing(plain, lambda x: x.exp()), leaf())
    with pytest.raises(ck.CheckpointError, match="A different number of tensors was saved"):
        y.sum().backward()


def test_other_shapes_the_second_time() -> None:
    y = checkpoint(Changing(plain, lambda x: plain(x[:1])), leaf())
    with pytest.raises(ck.CheckpointError, match="have different metadata") as caught:
        y.sum().backward()
    assert "[2]" in str(caught.value)
    assert "[1]" in str(caught.value)


def test_determinism_check_can_be_left_out() -> None:
    x = leaf()
    y = checkpoint(Changing(plain, lambda x: plain(x[:1])), x, determinism_check="none")
    y.sum().backward()
    assert x.grad.tolist() == [PLAIN[0], PLAIN[0]]


@pytest.mark.parametrize("how", ["argument", "context"])
def test_debug_lists_the_operators_of_both_runs(how: str) -> None:
    function = Changing(plain, lambda x: x.exp())
    with ck.set_checkpoint_debug_enabled(True if how == "context" else None):
        y = checkpoint(function, leaf(), debug=how == "argument")
    with pytest.raises(ck.CheckpointError, match="executed during recomputation") as caught:
        y.sum().backward()
    first, second = str(caught.value).split("Operations executed during recomputation")
    assert "sin(float32[2])" in first
    assert "exp(float32[2])" in second
    assert "sin(float32[2])" not in second


def test_region_is_usable_after_a_failed_second_run() -> None:
    class Once:
        failed = False

        def __call__(self, x: Any) -> Any:
            if dg.is_grad_enabled() and self.failed is None:
                self.failed = True
                raise ValueError("not now")
            if self.failed is False:
                self.failed = None  # type: ignore[assignment]
            return plain(x)

    x = leaf()
    y = checkpoint(Once(), x).sum()
    with pytest.raises(ValueError, match="not now"):
        y.backward()
    y.backward()
    assert x.grad.tolist() == PLAIN


# --- selective ----------------------------------------------------------------------------------


def policy(kept: str, seen: list[str]) -> Any:
    def decide(ctx: Any, op: Any, *inputs: Any, **options: Any) -> Any:
        seen.append(op.__name__)
        found = ck.CheckpointPolicy
        return found.MUST_SAVE if op.__name__ == kept else found.PREFER_RECOMPUTE

    return partial(ck.create_selective_checkpoint_contexts, decide)


@pytest.mark.parametrize("kept", ["exp", "sin", "none"])
def test_gradient_with_kept_results(kept: str) -> None:
    contexts = policy(kept, [])
    assert gradient(lambda x: checkpoint(plain, x, context_fn=contexts)) == PLAIN


def test_policy_is_asked_of_each_operator_in_the_first_run() -> None:
    seen: list[str] = []
    gradient(lambda x: checkpoint(plain, x, context_fn=policy("exp", seen)))
    assert seen == ["exp", "sin"]


def test_policy_sees_the_result() -> None:
    seen = []

    def decide(ctx: Any, op: Any, *inputs: Any, **options: Any) -> bool:
        seen.append((ctx.is_recompute, ctx.op_output.shape, inputs[0].shape))
        return False

    contexts = partial(ck.create_selective_checkpoint_contexts, decide)
    gradient(lambda x: checkpoint(plain, x, context_fn=contexts))
    assert seen == [(False, (2,), (2,))] * 2


@pytest.mark.parametrize("kept", [True, False])
def test_kept_operators_are_not_computed_again(kept: bool, monkeypatch: Any) -> None:
    computed: list[str] = []
    contexts = partial(ck.create_selective_checkpoint_contexts, ["exp"] if kept else [])
    x = leaf()
    y = checkpoint(plain, x, context_fn=contexts)
    scope: Any = dg.exp.__globals__
    kernel = scope["forward"]

    def counted(array: Any) -> Any:
        computed.append("exp")
        return kernel(array)

    monkeypatch.setitem(scope, "forward", counted)
    y.sum().backward()
    assert computed == ([] if kept else ["exp"])
    assert x.grad.tolist() == PLAIN


@pytest.mark.parametrize("entry", ["exp", dg.exp], ids=["name", "function"])
def test_list_of_operators_to_keep(entry: Any) -> None:
    contexts = partial(ck.create_selective_checkpoint_contexts, [entry])
    assert gradient(lambda x: checkpoint(plain, x, context_fn=contexts)) == PLAIN


def test_kept_result_that_was_written_is_refused() -> None:
    inner: list[Any] = []

    def function(x: Any) -> Any:
        inner.append(x.exp())
        return inner[-1].sin()

    contexts = partial(ck.create_selective_checkpoint_contexts, ["exp"])
    y = checkpoint(function, leaf(), context_fn=contexts)
    with dg.no_grad():
        inner[0].add_(1)
    with pytest.raises(RuntimeError, match="has been mutated"):
        y.sum().backward()


def test_kept_result_that_was_written_may_be_allowed() -> None:
    inner: list[Any] = []

    def function(x: Any) -> Any:
        inner.append(x.exp())
        return inner[-1].sin()

    contexts = partial(ck.create_selective_checkpoint_contexts, ["exp"], True)
    x = leaf()
    y = checkpoint(function, x, context_fn=contexts)
    with dg.no_grad():
        inner[0].add_(1)
    y.sum().backward()
    assert x.grad.tolist() == PLAIN


def test_policy_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match="either a function or a list"):
        ck.create_selective_checkpoint_contexts(3)


# --- sequences ----------------------------------------------------------------------------------


@pytest.mark.parametrize("segments", [1, 2, 3])
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_sequence_in_segments(segments: int, use_reentrant: bool) -> None:
    steps = [dg.exp, dg.sin, dg.exp]
    found = gradient(
        lambda x: ck.checkpoint_sequential(steps, segments, x, use_reentrant=use_reentrant)
    )
    assert found == gradient(lambda x: x.exp().sin().exp())


# --- bad input ----------------------------------------------------------------------------------


def test_choice_between_the_variants_should_be_made() -> None:
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        ck.checkpoint(plain, leaf())


def test_choice_should_be_made_for_sequences_too() -> None:
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        ck.checkpoint_sequential([dg.exp], 1, leaf())


BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "keywords, reentrant": (
        lambda: reentrant(plain, leaf(), k=1),
        ValueError,
        "Unexpected keyword arguments: k",
    ),
    "contexts, reentrant": (
        lambda: reentrant(plain, leaf(), context_fn=lambda: None),
        ValueError,
        "only supported when use_reentrant=False",
    ),
    "debug, reentrant": (
        lambda: reentrant(plain, leaf(), debug=True),
        ValueError,
        "only supported when use_reentrant=False",
    ),
    "keywords of a sequence": (
        lambda: ck.checkpoint_sequential([plain], 1, leaf(), use_reentrant=False, k=1),
        ValueError,
        "Unexpected keyword arguments: k",
    ),
    "unknown check": (
        lambda: checkpoint(plain, leaf(), determinism_check="deep"),
        ValueError,
        "determinism_check should be one of",
    ),
    "debug and contexts": (
        lambda: checkpoint(plain, leaf(), debug=True, context_fn=policy("exp", [])),
        ValueError,
        "incompatible with non-default context_fn",
    ),
    "groups in each other": (
        lambda: ck.GraphExecGroup().__enter__() and ck.GraphExecGroup().__enter__(),
        RuntimeError,
        "cannot be nested",
    ),
    "list to detach": (
        lambda: ck.detach_variable([leaf()]),
        RuntimeError,
        "Only tuple of tensors is supported",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()
    ck.GraphExecGroup().__exit__()


def test_reentrant_refuses_grad() -> None:
    x = leaf()
    y = reentrant(plain, x).sum()
    with pytest.raises(RuntimeError, match=r"incompatible with \.grad"):
        dg.autograd.grad(y, x)


def test_reentrant_without_an_output_that_requires_grad() -> None:
    y = reentrant(lambda x: x.detach(), leaf())
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        y.sum().backward()


def test_reentrant_warns_where_no_input_requires_grad() -> None:
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        reentrant(plain, dg.ones(2))


def test_context_that_swallows_an_error_is_refused() -> None:
    def fail(x: Any) -> Any:
        raise KeyError("lost")

    def contexts() -> Any:
        return contextlib.suppress(KeyError), contextlib.nullcontext()

    with pytest.raises(RuntimeError, match="suppressed an exception"):
        checkpoint(fail, leaf(), context_fn=contexts)


def test_group_shares_the_second_run() -> None:
    function, x = Counted(), leaf()

    def two(x: Any) -> Any:
        return function(x), x.cos()

    y, z = checkpoint(two, x)
    with ck.GraphExecGroup():
        y.sum().backward()
        z.sum().backward()
    assert function.calls == 2


def test_saved_tensor_read_twice_in_a_group_is_refused() -> None:
    y = checkpoint(plain, leaf()).sum()
    with ck.GraphExecGroup():
        y.backward(retain_graph=True)
        with pytest.raises(ck.CheckpointError, match="already unpacked once"):
            y.backward()


# --- inside one XLA program -----------------------------------------------------------------------


def test_recomputation_survives_in_one_compiled_program() -> None:
    def step(run: Callable[[Any], Any]) -> Callable[[jax.Array], Any]:
        def gradient(a: jax.Array) -> tuple[jax.Array, jax.Array]:
            x = dg.as_tensor(a).requires_grad_()
            y = run(x)
            (grad,) = dg.autograd.grad(y.sum(), x)
            return y.detach().jax(), grad.jax()

        return gradient

    def count(run: Callable[[Any], Any]) -> int:
        compiled = jax.jit(step(run)).lower(jnp.ones(2)).compile()
        return (compiled.as_text() or "").count("tanh(")

    def twice(x: Any) -> Any:
        return x.tanh().sin().tanh()

    assert count(lambda x: checkpoint(twice, x)) > count(twice)

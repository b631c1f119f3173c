"""The interface of optimizers: groups, steps, hooks, state, copies, and what they refuse."""

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import dyngraph as dg
from dyngraph.optim import update

Change = Callable[[], Any]


def leaf(*values: float) -> dg.Tensor:
    return dg.tensor(list(values), requires_grad=True)


def with_grad(*values: float) -> dg.Tensor:
    p = leaf(*values)
    p.grad = dg.ones(len(values))
    return p


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        (lambda p: [], ValueError, "empty parameter list. Pass the tensors"),
        (lambda p: p, TypeError, r"iterable of Tensors or dicts.*Pass \[tensor\]"),
        (lambda p: [p * 2], ValueError, "can't optimize a non-leaf Tensor.*Pass the leaf"),
        (lambda p: [{"params": [p]}, {"params": [p]}], ValueError, "more than one parameter group"),
        (lambda p: [1.0], TypeError, "can only optimize Tensors, but one of the params is float"),
        (lambda p: [{"params": {p}}], TypeError, "Please use a list instead"),
        (lambda p: [("p", p), leaf(1.0)], ValueError, "Some param names are missing: 1 of 2"),
        (
            lambda p: [{"params": [("p", p)]}, {"params": [leaf(1.0)]}],
            ValueError,
            "cannot add param group without names",
        ),
    ],
)
def test_parameters_are_refused_as_in_pytorch(params: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        dg.optim.SGD(params(leaf(1.0, 2.0)), lr=0.1)


def test_parameter_given_twice_in_a_group_warns_and_moves_once() -> None:
    p = with_grad(1.0)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = dg.optim.SGD([p, p], lr=0.5)
    optimizer.step()
    assert p.tolist() == [0.5]


@pytest.mark.parametrize(
    ("kind", "options", "match"),
    [
        ("SGD", {"lr": -1.0}, "Invalid learning rate: -1.0, expected 0 or more"),
        ("SGD", {"momentum": -1.0}, "Invalid momentum value: -1.0"),
        ("SGD", {"nesterov": True}, "Nesterov momentum requires a momentum"),
        ("Adam", {"betas": (0.9, 1.0)}, "Invalid beta parameter at index 1: 1.0"),
        ("Adam", {"eps": -1.0}, "Invalid epsilon value"),
        ("Adam", {"lr": dg.ones(2)}, "Tensor lr must be 1-element, got 2"),
        ("Adam", {"differentiable": True}, "differentiable=True: a step is not recorded"),
        ("Adadelta", {"rho": 2.0}, "Invalid rho value: 2.0"),
        ("Rprop", {"etas": (1.5, 1.2)}, "Invalid eta values"),
        ("Adafactor", {"d": 0.5}, "d should be >= 1 but is: 0.5"),
        ("Muon", {}, "only supports 2D parameters"),
    ],
)
def test_options_are_refused_as_in_pytorch(kind: str, options: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        getattr(dg.optim, kind)([leaf(1.0)], **options)


def test_lbfgs_takes_one_group_and_needs_a_closure() -> None:
    optimizer = dg.optim.LBFGS([leaf(1.0)])
    with pytest.raises(ValueError, match="doesn't support per-parameter options"):
        optimizer.add_param_group({"params": [leaf(1.0)]})
    with pytest.raises(TypeError, match="needs a closure"):
        optimizer.step()


def test_inference_tensor_is_refused_outside_inference_mode() -> None:
    with dg.inference_mode():
        p = dg.ones(2)
    p._meta = with_grad(1.0, 1.0)._meta
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        dg.optim.SGD([p], lr=0.1).step()


# --- steps ---------------------------------------------------------------------------------------


def test_parameter_without_a_gradient_stays_as_it_is_with_its_state() -> None:
    p, q = with_grad(1.0), with_grad(1.0)
    optimizer = dg.optim.Adam([p, q], lr=0.1)
    optimizer.step()
    q.grad = None
    value, version = q.tolist(), q._version
    state = {name: (t.tolist(), t._version) for name, t in optimizer.state[q].items()}
    optimizer.step()
    assert (q.tolist(), q._version) == (value, version)
    assert {n: (t.tolist(), t._version) for n, t in optimizer.state[q].items()} == state
    assert [optimizer.state[t]["step"].item() for t in (p, q)] == [2, 1]


def test_parameter_that_joins_later_takes_the_steps_it_would_have_taken_alone() -> None:
    p, q, alone = with_grad(1.0), leaf(1.0), with_grad(1.0)
    optimizer = dg.optim.Adam([p, q], lr=0.1)
    optimizer.step()
    assert q not in optimizer.state
    q.grad = dg.ones(1)
    optimizer.step()
    dg.optim.Adam([alone], lr=0.1).step()
    assert q.tolist() == alone.tolist()


def test_gradients_that_come_and_go_move_each_parameter_as_alone_and_stop_compiling() -> None:
    starts = [1.0, 2.0, 3.0, 4.0, 5.0]
    params, alone = [[leaf(v) for v in starts] for _ in range(2)]
    optimizer = dg.optim.Adam(params, lr=0.1)
    others = [dg.optim.Adam([p], lr=0.1) for p in alone]
    draws = np.random.default_rng(0)
    compiled: list[str] = []
    for step in range(16):
        present = draws.random(len(params)) < 0.5
        for p, q, is_there in zip(params, alone, present, strict=True):
            p.grad = q.grad = dg.tensor([float(step)]) if is_there else None
        for other in others:
            other.step()
        with count_compilations() as found:
            optimizer.step()
        compiled += found if step >= 14 else []
    np.testing.assert_allclose([p.item() for p in params], [q.item() for q in alone], rtol=1e-6)
    assert compiled == []


def test_step_raises_the_version_once_so_that_a_saved_parameter_is_missed() -> None:
    p = with_grad(1.0, 2.0)
    loss = (p * p).sum()
    dg.optim.SGD([p], lr=0.1).step()
    assert p._version == 1
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        loss.backward()


def test_closure_runs_with_grad_mode_and_its_loss_is_returned() -> None:
    p = leaf(2.0)
    optimizer = dg.optim.SGD([p], lr=0.25)

    def closure() -> dg.Tensor:
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with dg.no_grad():
        assert optimizer.step(closure).item() == 4
    assert p.tolist() == [1.0]


def test_zero_grad_forgets_gradients_or_fills_them() -> None:
    p = with_grad(1.0)
    optimizer = dg.optim.SGD([p], lr=0.1)
    grad = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert grad is not None and p.grad is grad and grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert p.grad is None


def test_rate_that_is_a_tensor_is_read_at_each_step() -> None:
    p, rate = with_grad(1.0), dg.tensor(0.5)
    optimizer = dg.optim.SGD([p], lr=rate)
    optimizer.step()
    rate.fill_(0.25)
    optimizer.step()
    assert p.tolist() == [0.25]


def test_view_as_a_parameter_writes_into_its_base() -> None:
    base = dg.zeros(4)
    p = base[1:3].detach().requires_grad_()
    p.grad = dg.ones(2)
    dg.optim.SGD([p], lr=1.0).step()
    assert base.tolist() == [0.0, -1.0, -1.0, 0.0]


def test_parameters_on_two_devices_are_moved_each_on_its_own() -> None:
    first, second = (dg.ones(2, device=f"cpu:{i}").requires_grad_() for i in (1, 2))
    optimizer = dg.optim.Adam([first, second], lr=0.5)
    for _ in range(2):
        for p in (first, second):
            p.grad = dg.ones(2, device=p.device)
        optimizer.step()
    np.testing.assert_allclose(first.tolist(), [0.0, 0.0], atol=1e-6)
    assert second.tolist() == first.tolist()
    assert [str(p.device) for p in (first, second)] == ["cpu:1", "cpu:2"]


def test_state_of_a_parameter_on_several_devices_is_spread_as_it_is() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), "x")
    place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    p = dg.from_jax_array(jax.device_put(np.ones(4, np.float32), place), requires_grad=True)
    optimizer = dg.optim.Adam([p], lr=0.5)
    for _ in range(2):
        p.grad = dg.from_jax_array(jax.device_put(np.ones(4, np.float32), place))
        optimizer.step()
    assert p.detach().jax().sharding == place
    assert optimizer.state[p]["exp_avg"].jax().sharding == place
    np.testing.assert_allclose(p.tolist(), [0.0] * 4, atol=1e-6)


def test_gradient_that_is_gone_is_noticed_before_anything_moves() -> None:
    params = [dg.ones(1, device=f"cpu:{i}").requires_grad_() for i in (1, 2)]
    optimizer = dg.optim.SGD(params, lr=0.5)
    for p in params:
        p.grad = dg.ones(1, device=p.device)
    optimizer.step()
    optimizer.step()
    params[1].grad = None
    optimizer.step()
    assert [p.tolist() for p in params] == [[-0.5], [0.0]]


# --- one call, and what it overwrites ------------------------------------------------------------


def test_two_hundred_parameters_are_moved_by_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    params = [with_grad(float(i)) for i in range(200)]
    groups = [{"params": params[:150]}, {"params": params[150:], "lr": 0.5}]
    optimizer = dg.optim.SGD(groups, lr=0.1)
    optimizer.step()
    calls, run = [], update.run
    monkeypatch.setattr("dyngraph.optim.transformed.run", lambda *a: calls.append(a) or run(*a))
    with jax.log_compiles(False), count_compilations() as compiled:
        for group in optimizer.param_groups:
            group["lr"] *= 0.5
        optimizer.step()
    assert len(calls) == 1
    assert compiled == []
    assert [p.tolist()[0] for p in params[148:152]] == pytest.approx(
        [148 - 0.15, 149 - 0.15, 150 - 0.75, 151 - 0.75]
    )


class count_compilations:  # noqa: N801 - used as a context manager
    """Lists every program that is compiled inside."""

    def __enter__(self) -> list[str]:
        self.found: list[str] = []
        self.active = True
        jax.monitoring.register_event_duration_secs_listener(self._note)
        return self.found

    def _note(self, event: str, *_: Any, **__: Any) -> None:
        if self.active and "backend_compile" in event:
            self.found.append(event)

    def __exit__(self, *_: object) -> None:
        self.active = False


def test_update_writes_to_the_memory_of_what_it_replaces() -> None:
    p = dg.ones(1024, requires_grad=True)
    p.grad = dg.ones(1024)
    optimizer = dg.optim.SGD([p], lr=0.1, momentum=0.9)
    for _ in range(2):
        optimizer.step()
    place = p.data_ptr()
    optimizer.step()
    assert p.data_ptr() == place


def saved_by_a_node(p: dg.Tensor) -> Any:
    """What a node has saved, asked for when it is looked at."""

    class Saved:
        def __init__(self) -> None:
            self.product = p * p

        def __getitem__(self, i: int) -> Any:
            (grad,) = dg.autograd.grad(self.product, p, dg.ones_like(p))
            return grad[i] / 2

    return Saved()


@pytest.mark.parametrize(
    "hold",
    [
        lambda p: p.detach().jax(),
        lambda p: p.detach().numpy(),
        lambda p: np.from_dlpack(p.detach()),
        lambda p: copy.deepcopy(p),
        lambda p: saved_by_a_node(p),
        lambda p: p.detach().clone(),
        lambda p: dg.as_tensor(p.detach().jax(), device="cpu"),
    ],
    ids=["jax", "numpy", "dlpack", "deepcopy", "saved", "clone", "as_tensor"],
)
def test_what_still_holds_the_old_value_keeps_it(hold: Any) -> None:
    p = dg.ones(1024, requires_grad=True)
    p.grad = dg.ones(1024)
    optimizer = dg.optim.SGD([p], lr=0.5)
    optimizer.step()
    with dg.autograd.graph.allow_mutation_on_saved_tensors():
        held = hold(p)
        optimizer.step()
        assert float(held[0]) == 0.5
    assert p[0].item() == 0.0


def test_state_that_was_copied_keeps_its_value() -> None:
    p = with_grad(1.0)
    optimizer = dg.optim.Adam([p], lr=0.1)
    optimizer.step()
    before = copy.deepcopy(optimizer.state_dict())
    kept = before["state"][0]["exp_avg"].tolist()
    optimizer.step()
    assert before["state"][0]["exp_avg"].tolist() == kept
    assert optimizer.state[p]["exp_avg"].tolist() != kept


def test_array_that_no_update_has_made_is_not_overwritten() -> None:
    array = jax.numpy.ones(1024)
    alias = jax.device_put(array, jax.devices()[0])  # another object, the same memory
    p = dg.from_jax_array(alias, requires_grad=True)
    del alias
    p.grad = dg.ones(1024)
    dg.optim.SGD([p], lr=0.1).step()
    assert float(array[0]) == 1.0


def test_views_of_a_parameter_see_the_step() -> None:
    p = with_grad(1.0, 2.0)
    first = p.detach()[:1]
    dg.optim.SGD([p], lr=0.5).step()
    assert first.tolist() == [0.5]


# --- hooks, printing, copies ---------------------------------------------------------------------


def test_hooks_run_around_a_step_from_all_to_one_and_back() -> None:
    events: list[str] = []

    def note(name: str) -> Callable[..., None]:
        return lambda optimizer, args, kwargs: events.append(name)

    optimizer = dg.optim.SGD([with_grad(1.0)], lr=0.1)
    handles = [
        dg.optim.register_optimizer_step_pre_hook(note("all before")),
        dg.optim.register_optimizer_step_post_hook(note("all after")),
        optimizer.register_step_pre_hook(note("before")),
        optimizer.register_step_post_hook(note("after")),
    ]
    optimizer.step()
    assert events == ["all before", "before", "after", "all after"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(events) == 4


def test_pre_hook_replaces_the_arguments_of_a_step() -> None:
    optimizer = dg.optim.SGD([leaf(1.0)], lr=0.1)
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: ((opt, lambda: "new"), kwargs))
    assert optimizer.step() == "new"
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        optimizer.step()


def test_state_dict_hooks_see_and_replace_it() -> None:
    optimizer = dg.optim.SGD([leaf(1.0)], lr=0.1)
    optimizer.register_state_dict_post_hook(lambda opt, state: {**state, "extra": 1})
    assert optimizer.state_dict()["extra"] == 1
    optimizer.register_load_state_dict_pre_hook(
        lambda opt, state: {**state, "param_groups": [{"lr": 0.7, "params": [0]}]}
    )
    seen: list[float] = []
    optimizer.register_load_state_dict_post_hook(lambda opt: seen.append(opt.param_groups[0]["lr"]))
    optimizer.load_state_dict(optimizer.state_dict())
    assert seen == [0.7]


def test_subclass_of_optimizer_runs_its_own_step_with_hooks() -> None:
    class Halve(dg.optim.Optimizer):
        def step(self, closure: Any = None) -> None:
            with dg.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        p.mul_(group["factor"])

    p, steps = leaf(4.0), []
    optimizer = Halve([p], {"factor": 0.5})
    optimizer.register_step_post_hook(lambda *_: steps.append(1))
    optimizer.step()
    assert p.tolist() == [2.0] and steps == [1]


def test_repr_lists_the_options_of_each_group() -> None:
    optimizer = dg.optim.Rprop([leaf(1.0)], lr=0.5)
    assert repr(optimizer).splitlines()[:3] == [
        "Rprop (",
        "Parameter Group 0",
        "    capturable: False",
    ]
    assert "    lr: 0.5" in repr(optimizer)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copy_goes_on_by_itself_from_where_the_optimizer_was(duplicate: Any) -> None:
    p = with_grad(1.0)
    optimizer = dg.optim.Adam([p], lr=0.1)
    optimizer.step()
    twin = duplicate(optimizer)
    (q,) = twin.param_groups[0]["params"]
    q.grad = dg.ones(1)
    optimizer.step()
    assert q.tolist() != p.tolist()
    twin.step()
    assert q.tolist() == p.tolist()


# --- state_dict ----------------------------------------------------------------------------------


def test_loaded_state_goes_on_bit_for_bit() -> None:
    p, q = with_grad(1.0, 2.0), with_grad(5.0, 5.0)
    optimizer, other = dg.optim.NAdam([p], lr=0.1), dg.optim.NAdam([q], lr=0.9)
    for _ in range(3):
        optimizer.step()
    with dg.no_grad():
        q.copy_(p)
    other.load_state_dict(optimizer.state_dict())
    optimizer.step()
    other.step()
    assert q.tolist() == p.tolist()
    assert other.param_groups[0]["lr"] == 0.1


def test_state_dict_of_pytorch_loads() -> None:
    p, q = with_grad(1.0), with_grad(1.0)
    optimizer, other = dg.optim.Adam([p], lr=0.1), dg.optim.Adam([q])
    optimizer.step()
    saved = optimizer.state_dict()
    # Where PyTorch keeps a step count for each parameter, in a tensor of its own.
    saved["state"][0] = {name: t.clone() for name, t in saved["state"][0].items()}
    with dg.no_grad():
        q.copy_(p)
    other.load_state_dict(saved)
    optimizer.step()
    other.step()
    assert q.tolist() == p.tolist()


def test_options_that_an_older_state_has_not_are_the_defaults() -> None:
    optimizer = dg.optim.AdamW([with_grad(1.0)])
    saved = optimizer.state_dict()
    del saved["param_groups"][0]["decoupled_weight_decay"]
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["decoupled_weight_decay"] is True
    optimizer.step()


def test_parameters_loaded_with_one_count_of_steps_are_moved_together() -> None:
    params = [with_grad(1.0), with_grad(2.0)]
    optimizer = dg.optim.Adam(params)
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    assert optimizer.state[params[0]]["step"] is optimizer.state[params[1]]["step"]


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        ([], "different number of parameter groups: 0, expected 1"),
        ([{"params": [0, 1]}], "group 0 has 2 parameters, expected 1"),
    ],
)
def test_state_of_other_groups_is_refused_and_nothing_changes(groups: Any, match: str) -> None:
    optimizer = dg.optim.SGD([leaf(1.0)], lr=0.1)
    with pytest.raises(ValueError, match=match):
        optimizer.load_state_dict({"state": {}, "param_groups": groups})
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_names_of_parameters_are_kept_with_their_group() -> None:
    optimizer = dg.optim.SGD([("weight", leaf(1.0)), ("bias", leaf(2.0))], lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


# --- training ------------------------------------------------------------------------------------


@pytest.mark.parametrize("backward_mode", ["eager", "compiled"], indirect=True)
@pytest.mark.filterwarnings("ignore:.*not seen before")
def test_line_is_fitted_with_accumulated_gradients(backward_mode: str) -> None:
    x = dg.linspace(-1, 1, 8)
    slope, offset = leaf(0.0), leaf(0.0)
    optimizer = dg.optim.SGD([slope, offset], lr=0.2, momentum=0.5)
    scheduler = dg.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
    for _ in range(40):
        for part in (x[:4], x[4:]):
            ((slope * part + offset - (3 * part - 1)) ** 2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
    np.testing.assert_allclose([slope.item(), offset.item()], [3, -1], atol=0.05)


def test_scheduler_before_the_first_step_warns() -> None:
    optimizer = dg.optim.SGD([leaf(1.0)], lr=0.1)
    scheduler = dg.optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()
    optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()

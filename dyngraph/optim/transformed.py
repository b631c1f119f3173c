"""TransformedOptimizer: PyTorch's named optimizers, each an optax transformation underneath.

Invariant: `state[p]` is PyTorch's, by name. A number in it, such as the count of steps, is one
tensor for all parameters that have taken their steps together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import batches, modes
from dyngraph.errors import InPlaceError
from dyngraph.optim.need_optax import need_optax
from dyngraph.optim.optimizer import Group, Optimizer
from dyngraph.optim.options import Fixed, lower
from dyngraph.optim.update import Inputs, Rule, run, start, take
from dyngraph.storage import Storage, write_all
from dyngraph.tensor import Tensor, new_tensor


class Cohort(NamedTuple):
    """Parameters of one group that are moved alike, and the tensors of numbers that they share."""

    rule: Rule
    params: list[Tensor]
    states: list[dict[str, Tensor]]
    shared: dict[str, Tensor]
    numbers: Any
    tensors: list[Any]


class TransformedOptimizer(Optimizer):
    """The base of PyTorch's named optimizers.

    A subclass has a `transformation`, and says which options are numbers that it reads.
    """

    numbers: ClassVar[tuple[str, ...]] = ("lr", "weight_decay")
    switches: ClassVar[tuple[str, ...]] = ("weight_decay",)
    """Numbers that are None for the transformation when they are zero: without their operators."""
    fixed: ClassVar[tuple[str, ...]] = ("maximize",)
    """Options that are compiled in."""
    field_names: ClassVar[Mapping[str, str]] = {}
    """PyTorch's names for fields of the optax state."""
    shared_names: ClassVar[tuple[str, ...]] = ("step",)
    """The numbers in a parameter's state."""

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        need_optax()
        if defaults.get("differentiable"):
            raise ValueError(
                "differentiable=True: a step is not recorded, expected False. Differentiate "
                "through an optax update of your own in a function of dyngraph.func."
            )
        super().__init__(params, defaults)
        self._forget()

    def _forget(self) -> None:
        """Forgets what is only remembered to save time."""
        self._made: dict[Storage, tuple[int | None, Any]] = {}
        self._lowered: dict[Any, Any] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._forget()
        self._share_numbers()

    @staticmethod
    def transformation(h: Any) -> Any:
        """The optax transformation for options `h`, as `options.lift_all` gives them."""
        raise NotImplementedError

    @staticmethod
    def derived(group: Group) -> dict[str, Any]:
        """Further numbers that the transformation reads, computed from a group's in Python."""
        return {}

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Moves every parameter that has a gradient, all of them by one jitted call.

        `closure` computes the loss, calls backward, and returns the loss, which is returned.
        """
        loss = None
        if closure is not None:
            with modes.enable_grad():
                loss = closure()
        with modes.no_grad():
            self._update()
        return loss

    # --- one update ------------------------------------------------------------------------------

    def _update(self) -> None:
        by_place: dict[Any, list[Cohort]] = defaultdict(list)
        users: Counter[int] = Counter()
        for i, group in enumerate(self.param_groups):
            waiting, members = self._members(group)
            for state in waiting:
                users.update(id(state[name]) for name in self.shared_names if name in state)
            for (place, first, *_), params in members.items():
                cohort = self._cohort(i, group, params, first)
                users.update(map(id, cohort.shared.values()))
                by_place[place].append(cohort)
        for cohorts in by_place.values():
            self._run(cohorts, users)

    def _members(
        self, group: Group
    ) -> tuple[list[dict[str, Tensor]], dict[tuple[Any, ...], list[Tensor]]]:
        """The states of parameters without gradients, and the other parameters by what they have
        in common: where they are, whether this is their first step, and the shared numbers."""
        waiting, fresh = [], defaultdict(list)
        members: dict[tuple[Any, ...], list[Tensor]] = defaultdict(list)
        flags, states = modes.get_flags(), self.state
        shared_names = self.shared_names
        for p in dict.fromkeys(group["params"]):
            meta = p._meta
            if meta is None or meta.grad is None:
                if p in states:
                    waiting.append(states[p])
                continue
            cell = p._cell
            _check_writable(p, meta.grad, flags)
            known = self._made.get(cell)
            place = _place(cell.array) if known is None else known[1]
            state = states.get(p) or {}
            if not self._is_started(group, state):
                fresh[place].append(p)
                continue
            members[(place, False, *[id(state[name]) for name in shared_names])].append(p)
        for place, params in fresh.items():
            self._start(group, params)
            members[(place, True)] = params
        return waiting, members

    def _is_started(self, group: Group, state: dict[str, Any]) -> bool:
        """Whether a parameter has all the state that its steps need."""
        return bool(state)

    def _start(self, group: Group, params: list[Tensor]) -> None:
        """Gives parameters the state that they have before their first step."""
        rule, numbers, tensors = self._rule(-1, group, first=True)
        own, shared = start(
            rule, [p._cell.array for p in params], Inputs([], {}, numbers, tensors)
        )
        together = {name: new_tensor(Storage(array)) for name, array in shared.items()}
        for i, p in enumerate(params):
            parts = {name: new_tensor(Storage(a[i])) for name, a in own.items() if a[i] is not None}
            self.state[p].update(together | parts)

    def _cohort(self, index: int, group: Group, params: list[Tensor], first: bool) -> Cohort:
        rule, numbers, tensors = self._rule(index, group, first=first)
        states = [self.state.get(p) or {} for p in params]
        shared = {name: states[0][name] for name in self.shared_names if states}
        return Cohort(rule, params, states, shared, numbers, tensors)

    def _rule(self, index: int, group: Group, *, first: bool) -> tuple[Rule, Any, list[Any]]:
        """What is compiled for the group, and the inputs that its options are."""
        values: dict[str, Any] = {name: group[name] for name in self.numbers}
        for name in self.switches:
            if not isinstance(values[name], Tensor) and not values[name]:
                values[name] = None
        values |= self.derived(group)
        numbers: list[float] = []
        tensors: list[Any] = []
        forms = [lower(value, numbers, tensors) for value in values.values()]
        for name in self.fixed:
            values[name] = group[name]
            forms.append(Fixed(group[name]))
        forms.append(lower(float(first), numbers, tensors))
        known = self._lowered.get(index)
        if known is None or known[0] != numbers:
            with jax.ensure_compile_time_eval():  # it is kept, so it must be no tracer
                known = self._lowered[index] = numbers, jnp.asarray(np.array(numbers, np.float64))
        return Rule(type(self), tuple(values), tuple(forms)), known[1], tensors

    def _run(self, cohorts: list[Cohort], users: Counter[int]) -> None:
        param_cells = [[p._cell for p in c.params] for c in cohorts]
        state_cells = [self._state_cells(c) for c in cohorts]
        replaced = [
            (self._take_params(cells), {name: _take(some) for name, some in own.items()})
            for cells, own in zip(param_cells, state_cells, strict=True)
        ]
        inputs = [
            Inputs(
                [p._meta.grad._cell.array for p in c.params],  # type: ignore[union-attr]
                {name: tensor._cell.array for name, tensor in c.shared.items()},
                c.numbers,
                c.tensors,
            )
            for c in cohorts
        ]
        results = run(tuple([c.rule for c in cohorts]), replaced, inputs)
        for cohort, cells, own, result in zip(
            cohorts, param_cells, state_cells, results, strict=True
        ):
            moved, states, shared = result
            self._write_params(cohort.params, cells, moved)
            for name, some in own.items():
                pairs = [(c, a) for c, a in zip(some, states[name], strict=True) if c is not None]
                write_all([c for c, _ in pairs], [a for _, a in pairs])
            _write_shared(cohort, shared, users)

    def _state_cells(self, cohort: Cohort) -> dict[str, list[Storage | None]]:
        names = dict.fromkeys(name for state in cohort.states for name in state)
        own = {}
        for name in names:
            if name not in cohort.shared:
                tensors = [state.get(name) for state in cohort.states]
                own[name] = [None if t is None else t._cell for t in tensors]
        return own

    def _take_params(self, cells: list[Storage]) -> list[Any]:
        made = self._made
        return take(cells, [c in made and made[c][0] == c.version for c in cells])

    def _write_params(self, params: list[Tensor], cells: list[Storage], arrays: list[Any]) -> None:
        plain = [p._view is None for p in params]
        write_all(
            [c for c, is_plain in zip(cells, plain, strict=True) if is_plain],
            [a for a, is_plain in zip(arrays, plain, strict=True) if is_plain],
        )
        for p, cell, array, is_plain in zip(params, cells, arrays, plain, strict=True):
            if not is_plain:
                p._write(array)
            known = self._made.get(cell)
            place = _place(array) if known is None else known[1]
            self._made[cell] = cell.version, place

    # --- numbers that parameters share -----------------------------------------------------------

    def _share_numbers(self) -> None:
        """Makes one tensor of equal numbers in the states of a group, after loading."""
        for group in self.param_groups:
            tensors: dict[tuple[str, float], Tensor] = {}
            for p in group["params"]:
                state = self.state.get(p)
                for name in self.shared_names if state else ():
                    value = float(state[name])  # type: ignore[index]
                    if (name, value) not in tensors:
                        array = jnp.asarray(np.float32(value))
                        tensors[name, value] = new_tensor(Storage(array))
                    state[name] = tensors[name, value]  # type: ignore[index]


def _write_shared(cohort: Cohort, shared: dict[str, Any], users: Counter[int]) -> None:
    """Writes to the tensors of the numbers; gives the cohort others, if it has not all users."""
    for name, array in shared.items():
        tensor = cohort.shared[name]
        if users[id(tensor)] == 1:
            tensor._write(array)
            continue
        tensor = new_tensor(Storage(array))
        for state in cohort.states:
            state[name] = tensor


def _take(cells: list[Storage | None]) -> list[Any]:
    if None not in cells:
        return take(cells)  # type: ignore[arg-type]
    arrays = iter(take([cell for cell in cells if cell is not None]))
    return [None if cell is None else next(arrays) for cell in cells]


def _check_writable(param: Tensor, grad: Tensor, flags: int) -> None:
    if param._cell.version is None and not flags & modes.INFERENCE:
        raise InPlaceError.inference()
    if flags & modes.MAPPED:
        batches.check_write(param._cell, grad._cell.array)


def _place(array: Any) -> Any:
    """The devices that an array is on; arrays on others need a call of their own."""
    return frozenset(array.devices()) if isinstance(array, jax.Array) else None

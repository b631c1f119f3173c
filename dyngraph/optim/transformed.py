"""TransformedOptimizer: PyTorch's named optimizers, each an optax transformation underneath.

Invariant: `state[p]` is PyTorch's, by name. A number in it, such as the count of steps, is one
tensor for all parameters that have taken their steps together.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import modes
from dyngraph.donation import take
from dyngraph.optim.cohorts import (
    NEVER,
    Cohort,
    Found,
    check_writable,
    has_grad,
    versions_of,
    write_params,
)
from dyngraph.optim.need_optax import need_optax
from dyngraph.optim.optimizer import Group, Optimizer
from dyngraph.optim.options import Fixed, lower
from dyngraph.optim.update import Inputs, Lists, Rule, run, start
from dyngraph.placement import place_beside, put, spread_of
from dyngraph.pure import current_pure
from dyngraph.storage import cell_of, write_all
from dyngraph.tensor import Tensor, new_tensor
from dyngraph.tracing import Tracer

MOST_STRUCTURES = 8
"""So many combinations of parameters with gradients are compiled for an optimizer."""


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
        self._found: Found | None = None
        self._is_stale = False  # what was found is not so any more, but its versions are
        self._structures: set[Any] = set()
        self._rules: list[Any] = []

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # an older state has not all options
            for name, default in self.defaults.items():
                group.setdefault(name, default)
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

    def begin(self) -> None:
        """Gives parameters with a gradient the state that they have before their first step, where
        they have none."""
        self._found = self._find()

    def _update(self) -> None:
        found = self._found
        lists = [group["params"] for group in self.param_groups]
        states = list(self.state.values())
        if found is None or self._is_stale or not found.holds(lists, states):
            found = self._found = self._find()
        elif modes.get_flags() & modes.MAPPED:
            for p in itertools.chain.from_iterable(lists):
                check_writable(p)
        grads = [[cohort.grads() for cohort in cohorts] for cohorts in found.calls]
        if any([None in some for some in grads]):  # one is gone since then
            found = self._found = self._find()
            grads = [[cohort.grads() for cohort in cohorts] for cohorts in found.calls]
        changed = [
            self._run(cohorts, some, found.users)
            for cohorts, some in zip(found.calls, grads, strict=True)
        ]
        self._is_stale = any(changed)

    def _find(self) -> Found:
        """Looks at every parameter, and gives those that have none their state."""
        versions = versions_of(self._found)
        lists, idle, users = [], [], Counter[int]()
        cohorts: list[tuple[Any, Cohort]] = []
        for i, group in enumerate(self.param_groups):
            lists.append(list(group["params"]))
            unique = dict.fromkeys(group["params"])
            idle += [p for p in unique if not has_grad(p)]
            members = self._members(group, [p for p in unique if has_grad(p)])
            for (place, first, *_), params in members.items():
                states = [self.state.get(p) or {} for p in params]
                cohort = Cohort(i, params, states, self.shared_names)
                cohort.first = first
                cohort.versions = [versions.get(cell, NEVER) for cell in cohort.cells]
                cohorts.append((place, cohort))
        calls = self._calls(cohorts)
        for cohort in itertools.chain.from_iterable(calls):
            users.update(map(id, cohort.shared.values()))
        for state in filter(None, map(self.state.get, idle)):
            users.update(id(state[name]) for name in self.shared_names)
        return Found(lists, list(self.state.values()), idle, calls, users)

    def _calls(self, cohorts: list[tuple[Any, Cohort]]) -> list[list[Cohort]]:
        """The cohorts by what is moved by one call: all that are in one place.

        Each structure compiles. Where the gradients that are there differ from step to step, as of
        experts that few examples reach, every parameter gets a call of its own, which compiles once
        for each shape.
        """
        structure = tuple([tuple(map(id, cohort.params)) for _, cohort in cohorts])
        if structure not in self._structures and len(self._structures) >= MOST_STRUCTURES:
            return [[part] for _, cohort in cohorts for part in cohort.split()]
        self._structures.add(structure)
        by_place: dict[Any, list[Cohort]] = defaultdict(list)
        for place, cohort in cohorts:
            by_place[place].append(cohort)
        return list(by_place.values())

    def _members(self, group: Group, params: list[Tensor]) -> dict[tuple[Any, ...], list[Tensor]]:
        """Parameters by what a cohort has in common: where they are, whether this is their first
        step, and the numbers that they share."""
        fresh: dict[Any, list[Tensor]] = defaultdict(list)
        members: dict[tuple[Any, ...], list[Tensor]] = defaultdict(list)
        for p in params:
            check_writable(p)
            place, state = _place(p._cell.array), self.state.get(p) or {}
            if self._is_started(group, state):
                _follow(p, state)
                key = place, False, *[id(state[name]) for name in self.shared_names]
                members[key].append(p)
            else:
                fresh[place].append(p)
        for place, some in fresh.items():
            self._start(group, some)
            members[place, True] = some
        return members

    def _is_started(self, group: Group, state: dict[str, Any]) -> bool:
        """Whether a parameter has all the state that its steps need."""
        return bool(state)

    def _start(self, group: Group, params: list[Tensor]) -> None:
        """Gives parameters the state that they have before their first step."""
        rule, numbers, tensors = self._rule(group, first=True)
        numbers = self._lift(group, numbers, first=True)
        inputs = Inputs([], {}, numbers, tensors)
        own, shared = start(rule, [p._cell.array for p in params], inputs)
        together = {name: new_tensor(cell_of(array)) for name, array in shared.items()}
        for i, p in enumerate(params):
            arrays = {name: some[i] for name, some in own.items() if some[i] is not None}
            parts = {name: new_tensor(cell_of(_beside(a, p))) for name, a in arrays.items()}
            self.state[p].update(together | parts)

    def _rule(self, group: Group, *, first: bool) -> tuple[Rule, Any, list[Any]]:
        """What is compiled for the group, and the inputs that its options are."""
        options = [group[name] for name in (*self.numbers, *self.fixed)]
        keep = not any([isinstance(option, Tensor) for option in options])
        for known, result in self._rules if keep else ():
            if known == (options, first):
                return result
        result = self._make_rule(group, first=first)
        if keep:
            self._rules = [((options, first), result), *self._rules[:7]]
        return result

    def _make_rule(self, group: Group, *, first: bool) -> tuple[Rule, Any, list[Any]]:
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
        with jax.ensure_compile_time_eval():  # it is kept, so it must be no tracer
            array = jnp.asarray(np.array(numbers, np.float64))
        return Rule(type(self), tuple(values), tuple(forms)), array, tensors

    def _lift(self, group: Group, numbers: Any, *, first: bool) -> Any:
        """The numbers of a group's options, which a compiled step takes as an input."""
        pure = current_pure()
        if pure is None:
            return numbers
        index = next(i for i, own in enumerate(self.param_groups) if own is group)
        return pure.lift(self, (index, first), numbers)

    def lifted(self, key: tuple[int, bool]) -> tuple[Any, Any]:
        index, first = key
        return self._rule(self.param_groups[index], first=first)[:2]

    def compiled_in(self) -> list[Any]:
        return [[group[name] for name in self.fixed] for group in self.param_groups]

    def _run(self, cohorts: list[Cohort], grads: list[Any], users: Counter[int]) -> bool:
        """Moves the parameters of some cohorts by one call; returns whether what was found has
        changed by that."""
        rules, replaced, inputs = [], [], []
        for cohort, own_grads in zip(cohorts, grads, strict=True):
            group = self.param_groups[cohort.group]
            rule, numbers, tensors = self._rule(group, first=cohort.first)
            numbers = self._lift(group, numbers, first=cohort.first)
            versions = [cell.version for cell in cohort.cells]
            made = None
            if versions != cohort.versions:
                made = [now == then for now, then in zip(versions, cohort.versions, strict=True)]
            params = take(cohort.cells, made=made)
            replaced.append((params, {name: _take(some) for name, some in cohort.own.items()}))
            del params
            arrays = [grad._cell.array for grad in own_grads]
            shared = {name: tensor._cell.array for name, tensor in cohort.shared.items()}
            rules.append(rule)
            inputs.append(Inputs(arrays, shared, numbers, tensors))
        results = run(tuple(rules), replaced, inputs)
        del replaced
        changed = [
            _write(cohort, moved, own, shared, users)
            for cohort, (moved, own, shared) in zip(cohorts, results, strict=True)
        ]
        return any(changed)

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
                        tensors[name, value] = new_tensor(cell_of(array))
                    state[name] = tensors[name, value]  # type: ignore[index]


def _write(
    cohort: Cohort, moved: list[Any], own: Lists, shared: dict[str, Any], users: Counter[int]
) -> bool:
    """Writes what an update has computed; returns whether the next step has to look anew."""
    write_params(cohort.params, cohort.cells, moved)
    cohort.versions = [NEVER if c.version is None else c.version for c in cohort.cells]
    for name, tensors in cohort.own.items():
        arrays = own[name]
        write_all([t._cell for t in tensors if t is not None], [a for a in arrays if a is not None])
    changed = cohort.first
    for name, array in shared.items():
        tensor = cohort.shared[name]
        if users[id(tensor)] == 1:
            tensor._write(array)
            continue
        tensor, changed = new_tensor(cell_of(array)), True
        for state in cohort.states:
            state[name] = tensor
    return changed


def _take(tensors: list[Tensor | None]) -> list[Any]:
    arrays = take([tensor._cell for tensor in tensors if tensor is not None])
    if len(arrays) == len(tensors):
        return arrays
    rest = iter(arrays)
    return [None if tensor is None else next(rest) for tensor in tensors]


def _beside(array: Any, param: Tensor) -> Any:
    """An array of a parameter's state, spread over devices as the parameter is."""
    like = param._cell.array
    if isinstance(like, Tracer) or like.shape != array.shape:
        return array
    return array if len(like.sharding.device_set) == 1 else put(array, like.sharding)


def _follow(param: Tensor, state: dict[str, Tensor]) -> None:
    """Puts a state on the devices that its parameter has been spread over since the last step."""
    if spread_of(param._cell.array) is None:
        return
    for tensor in state.values():
        place = place_beside(param._cell.array, tensor.shape)
        if not isinstance(tensor._cell.array, Tracer):
            tensor._cell.array = put(tensor._cell.array, place)


def _place(array: Any) -> Any:
    """The devices that an array is on: arrays on others need a call of their own."""
    return None if isinstance(array, Tracer) else frozenset(array.devices())

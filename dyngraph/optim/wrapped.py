"""Optax: any optax transformation as an optimizer.

Invariant: the state of a group is the transformation's own, leaf by leaf as tensors, named by the
path to each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import modes
from dyngraph.donation import take
from dyngraph.optim.cohorts import NEVER, check_writable, has_grad, write_params
from dyngraph.optim.need_optax import need_optax
from dyngraph.optim.optimizer import Group, Optimizer
from dyngraph.pure import current_pure
from dyngraph.storage import Storage, cell_of, write_all
from dyngraph.tensor import Tensor, new_tensor


class Optax(Optimizer):
    """Any optax `GradientTransformation` as an optimizer: chains, masks, schedules, MultiSteps.

    `params` are what other optimizers take, or a dict of names and tensors; the transformation sees
    a list, or a dict where the parameters have names. A group may have a transformation of its own
    as "tx". Where a transformation injects `learning_rate` (`optax.inject_hyperparams`), the rate
    is the group's "lr", which schedulers change. A parameter without a gradient stays as it is, and
    so does its state; the transformation sees zeros.

    >>> import optax
    >>> p = dg.tensor([3.0, 4.0], requires_grad=True)
    >>> opt = dg.optim.Optax([p], optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.5)))
    >>> (p * p).sum().backward()
    >>> opt.step()
    >>> p
    tensor([2.7000, 3.6000], requires_grad=True)
    """

    def __init__(self, params: Iterable[Any], tx: Any) -> None:
        need_optax()
        self.tx = _with_extra(tx)
        self._transformations: list[Any] = []
        self._versions: dict[Storage, int] = {}
        if isinstance(params, dict):
            params = list(params.items())
        super().__init__(params, {})

    def add_param_group(self, param_group: Group) -> None:
        """Adds a dict with "params" and, where it differs, the transformation as "tx"."""
        own = param_group.pop("tx", None) if isinstance(param_group, dict) else None
        super().add_param_group(param_group)
        transformation = self.tx if own is None else _with_extra(own)
        self._transformations.append(transformation)
        state = jax.jit(transformation.init)(_tree(param_group, _arrays(param_group)))
        self._store(len(self._transformations) - 1, state)
        if _is_injected(state):
            param_group.setdefault("lr", float(need_optax().tree.get(state, "learning_rate")))

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return state | {"tx": self.tx, "_transformations": self._transformations}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._versions = {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from what `state_dict` gave, for the same transformation.

        Raises ValueError where the state is another transformation's, and changes nothing then.
        """
        self._check_groups(state_dict["param_groups"])
        copies: dict[str, dict[str, Tensor]] = {}
        for key in self.state:
            saved = state_dict["state"].get(key, {})
            if saved.keys() != self.state[key].keys():
                only = sorted(saved.keys() ^ self.state[key].keys())
                raise ValueError(
                    f"loaded state dict has the state of another transformation: of {key!r}, only "
                    f"one side has {', '.join(only[:4])}. Make the optimizer with the same tx."
                )
            with modes.no_grad():
                copies[key] = {name: tensor.clone() for name, tensor in saved.items()}
        super().load_state_dict(state_dict | {"state": copies})

    def step(self, closure: Callable[[], Any] | None = None, **extra: Any) -> Any:
        """Moves all parameters by one jitted call.

        `extra` goes to the transformation: tensors, arrays and numbers are inputs, functions are
        compiled in. The loss that `closure` returns is passed as `value`; with a `value_fn`, as a
        line search takes it, the gradients are passed as `grad`.
        """
        loss = None
        if closure is not None:
            with modes.enable_grad():
                loss = closure()
            extra.setdefault("value", loss)
        with modes.no_grad():
            self._update({name: _array(value) for name, value in extra.items()})
        return loss

    def _update(self, extra: dict[str, Any]) -> None:
        functions = tuple([(name, value) for name, value in extra.items() if callable(value)])
        numbers = {name: value for name, value in extra.items() if not callable(value)}
        moves, replaced, inputs, written = [], [], [], []
        for i, group in enumerate(self.param_groups):
            params, missing = group["params"], [not has_grad(p) for p in group["params"]]
            if all(missing):
                continue
            for p, is_missing in zip(params, missing, strict=True):
                if not is_missing:
                    check_writable(p)
            cells = [p._cell for p in params]
            made = [self._versions.get(c, NEVER) == c.version for c in cells]
            states = [tensor._cell for tensor in self.state[_key(i)].values()]
            grads = [(p if m else p.grad)._cell.array for p, m in zip(params, missing, strict=True)]
            moves.append(Move(self._transformations[i], _names(group)))
            replaced.append((take(cells, made=made), take(states)))
            inputs.append(
                Inputs(
                    grads,
                    np.array(missing) if any(missing) else None,
                    self._rate(i),
                )
            )
            written.append((params, missing, cells, states))
        results = run(tuple(moves), functions, replaced, inputs, numbers) if moves else []
        del replaced
        for (params, missing, cells, states), (moved, leaves) in zip(written, results, strict=True):
            if any(missing):
                for p, is_missing, array in zip(params, missing, moved, strict=True):
                    if is_missing:
                        p._cell.array = array  # the same numbers, where they are now
                    else:
                        p._write(array)
            else:
                write_params(params, cells, moved)
            self._versions.update((c, NEVER if c.version is None else c.version) for c in cells)
            write_all(states, leaves)

    def _rate(self, index: int) -> Any:
        """The rate of a group, which a compiled step takes as an input; None where it has none."""
        _, rate = self.lifted(index)
        if isinstance(self.param_groups[index].get("lr"), Tensor):
            return rate
        pure = current_pure()
        return rate if pure is None or rate is None else pure.lift(self, index, rate)

    def lifted(self, key: int) -> tuple[Any, Any]:
        rate = self.param_groups[key].get("lr")
        array = rate._cell.array if isinstance(rate, Tensor) else rate
        return type(rate), array

    def compiled_in(self) -> list[Any]:
        options = super().compiled_in()
        return [{name: v for name, v in group.items() if name != "lr"} for group in options]

    def _store(self, index: int, state: Any) -> None:
        leaves, _ = jax.tree.flatten_with_path(state)
        self.state[_key(index)] = {
            jax.tree_util.keystr(path, simple=True, separator="."): new_tensor(cell_of(leaf))
            for path, leaf in leaves
        }


class Move(NamedTuple):
    """What is compiled into the update of a group."""

    transformation: Any
    names: tuple[str, ...] | None

    def tree(self, leaves: Iterable[Any]) -> Any:
        """What the transformation is given."""
        return _as_tree(self.names, list(leaves))

    def leaves(self, tree: Any) -> list[Any]:
        """The leaves of such a tree in the order of the parameters."""
        return tree if self.names is None else [tree[name] for name in self.names]


class Inputs(NamedTuple):
    """What the update of a group reads: gradients, where one is missing, and the rate.

    missing: (n,), or None where all are there. A gradient that is missing may be any array.
    """

    grads: list[Any]
    missing: Any
    rate: Any


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)
def run(
    moves: tuple[Move, ...],
    functions: tuple[tuple[str, Any], ...],
    replaced: list[tuple[list[Any], list[Any]]],
    inputs: list[Inputs],
    numbers: dict[str, Any],
) -> list[tuple[list[Any], list[Any]]]:
    """New parameters and the leaves of the new state, for each group."""
    extra = dict(functions) | numbers
    return [
        _move(move, params, leaves, read, extra)
        for move, (params, leaves), read in zip(moves, replaced, inputs, strict=True)
    ]


def _move(
    move: Move, params: list[Any], leaves: list[Any], inputs: Inputs, extra: dict[str, Any]
) -> tuple[list[Any], list[Any]]:
    optax, transformation, missing = need_optax(), move.transformation, inputs.missing
    values, given = move.tree(params), inputs.grads
    if missing is not None:
        given = [jnp.where(m, jnp.zeros_like(g), g) for m, g in zip(missing, given, strict=True)]
    grads = move.tree(given)
    structure = jax.tree.structure(jax.eval_shape(transformation.init, values))
    state = before = jax.tree.unflatten(structure, leaves)
    if inputs.rate is not None:
        known = optax.tree.get(state, "learning_rate")
        state = optax.tree.set(state, learning_rate=jnp.asarray(inputs.rate, known.dtype))
    if "value_fn" in extra:
        extra = {"grad": grads} | extra
    updates, state = transformation.update(grads, state, values, **extra)
    moved = move.leaves(optax.apply_updates(values, updates))
    if missing is not None:
        moved = [jnp.where(m, p, n) for m, p, n in zip(missing, params, moved, strict=True)]
        is_still = optax.tree_utils.tree_map_params(
            transformation,
            lambda _, m: m,
            state,
            move.tree(missing),
            transform_non_params=lambda value: jax.tree.map(lambda _: False, value),
        )
        state = jax.tree.map(jnp.where, is_still, before, state)
    return moved, jax.tree.leaves(state)


def _with_extra(tx: Any) -> Any:
    """The transformation, taking extra arguments; TypeError for what is none."""
    if not (hasattr(tx, "init") and hasattr(tx, "update")):
        raise TypeError(
            f"expected an optax GradientTransformation, got {type(tx).__name__}. Pass one such as "
            "optax.adamw(1e-3), called."
        )
    return need_optax().with_extra_args_support(tx)


def _is_injected(state: Any) -> bool:
    """Whether the transformation reads a learning rate that may be set from outside."""
    tree = need_optax().tree
    rates, schedules = tree.get(state, "hyperparams"), tree.get(state, "hyperparams_states")
    return "learning_rate" in (rates or {}) and "learning_rate" not in (schedules or {})


def _as_tree(names: Any, leaves: list[Any]) -> Any:
    return leaves if names is None else dict(zip(names, leaves, strict=True))


def _arrays(group: Group) -> list[Any]:
    return [p._cell.array for p in group["params"]]


def _tree(group: Group, leaves: list[Any]) -> Any:
    return _as_tree(_names(group), leaves)


def _names(group: Group) -> tuple[str, ...] | None:
    names = group.get("param_names")
    return None if names is None else tuple(names)


def _array(value: Any) -> Any:
    """An extra argument with arrays for the tensors in it."""

    def of_leaf(leaf: Any) -> Any:
        return leaf._cell.array if isinstance(leaf, Tensor) else leaf

    return jax.tree.map(of_leaf, value, is_leaf=lambda leaf: isinstance(leaf, Tensor))


def _key(index: int) -> str:
    return f"group {index}"

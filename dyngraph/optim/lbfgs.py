"""LBFGS: a quasi-Newton method, which calls the closure several times a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph import modes
from dyngraph.optim.checks import check_rate
from dyngraph.optim.line_search import Point, strong_wolfe
from dyngraph.optim.optimizer import Optimizer
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, new_tensor


class LBFGS(Optimizer):
    """As `torch.optim.LBFGS`, for the parameters of one group.

    `line_search_fn` is None or "strong_wolfe". `step` needs a closure that computes the loss, calls
    backward and returns the loss. Raises ValueError for more than one group.

    >>> p = dg.tensor([3.0, -2.0], requires_grad=True)
    >>> opt = dg.optim.LBFGS([p], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     opt.zero_grad()
    ...     loss = ((p - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> opt.step(closure)
    tensor(13., grad_fn=<SumBackward0>)
    >>> p
    tensor([1.0000, 1.0000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_rate(lr)
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError(
                f"only 'strong_wolfe' is supported, got line_search_fn={line_search_fn!r}."
            )
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Raises ValueError after the first group."""
        if self.param_groups:
            raise ValueError(
                "LBFGS doesn't support per-parameter options (parameter groups). Pass one list."
            )
        super().add_param_group(param_group)

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Runs up to `max_iter` iterations; returns the loss before them."""
        if closure is None:
            raise TypeError(
                "LBFGS.step() needs a closure: expected a function that computes the loss, calls "
                "backward and returns the loss."
            )
        with modes.no_grad():
            return self._step(closure)

    def _step(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with modes.enable_grad():
            first_loss = closure()
        loss, grad = float(first_loss), self._flat_grad()
        evaluations = 1
        state["func_evals"] += 1
        if _greatest(grad) <= group["tolerance_grad"]:
            return first_loss
        rate = float(group["lr"])
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(state, grad, group["history_size"])
            if state["n_iter"] == 1:
                step = min(1.0, 1.0 / float(jnp.abs(grad).sum())) * rate
            else:
                step = rate
            slope = float(jnp.vdot(grad, direction))
            state["prev_flat_grad"], state["prev_loss"] = _wrap(grad), loss
            state["d"], state["t"] = _wrap(direction), step
            if slope > -group["tolerance_change"]:
                break
            before, count = loss, 0
            if group["line_search_fn"] is not None:
                point, count = self._search(
                    closure,
                    Point(0.0, loss, grad, slope),
                    step,
                    direction,
                    group["max_eval"] - evaluations,
                )
                step, loss, grad = point.step, point.loss, point.grad
                state["t"] = step
                self._move(step, direction)
            else:
                self._move(step, direction)
                if iteration != group["max_iter"]:
                    with modes.enable_grad():
                        loss = float(closure())
                    grad, count = self._flat_grad(), 1
            evaluations += count
            state["func_evals"] += count
            if (
                iteration == group["max_iter"]
                or evaluations >= group["max_eval"]
                or _greatest(grad) <= group["tolerance_grad"]
                or _greatest(direction * step) <= group["tolerance_change"]
                or abs(loss - before) < group["tolerance_change"]
            ):
                break
        return first_loss

    def _direction(self, state: dict[str, Any], grad: jax.Array, most: int) -> jax.Array:
        """Minus the gradient times the approximate inverse Hessian, which learns the last step."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -grad
        change = grad - state["prev_flat_grad"]._cell.array
        step = state["d"]._cell.array * state["t"]
        product = float(jnp.vdot(change, step))
        if product > 1e-10:
            entries = (_wrap(change), _wrap(step), 1.0 / product)
            for name, entry in zip(("old_dirs", "old_stps", "ro"), entries, strict=True):
                state[name] = [*state[name], entry][-most:]
            state["H_diag"] = product / float(jnp.vdot(change, change))
        changes = [tensor._cell.array for tensor in state["old_dirs"]]
        steps = [tensor._cell.array for tensor in state["old_stps"]]
        weights = list(map(float, state["ro"]))
        # Entries of zeros, which change nothing, make few different lengths: each compiles once.
        missing = (1 << (len(changes) - 1).bit_length() if changes else 1) - len(changes)
        padding = [jnp.zeros_like(grad)] * missing
        weights = jnp.asarray([0.0] * missing + weights, grad.dtype)
        scale = jnp.asarray(float(state["H_diag"]), grad.dtype)
        return _two_loops(grad, padding + changes, padding + steps, weights, scale)

    def _search(
        self,
        closure: Callable[[], Any],
        start: Point,
        step: float,
        direction: jax.Array,
        most: int,
    ) -> tuple[Point, int]:
        here = [p._cell.array for p in self._params]

        def evaluate(step: float) -> Point:
            self._move(step, direction)
            with modes.enable_grad():
                loss = float(closure())
            grad = self._flat_grad()
            for p, array in zip(self._params, here, strict=True):
                p._write(array)
            return Point(step, loss, grad, float(jnp.vdot(grad, direction)))

        return strong_wolfe(
            evaluate,
            start,
            step,
            longest=_greatest(direction),
            tolerance_change=self.param_groups[0]["tolerance_change"],
            most=most,
        )

    def _flat_grad(self) -> jax.Array:
        params = [p._cell.array for p in self._params]
        grads = [p._meta.grad if p._meta else None for p in self._params]
        return _flatten(
            [
                jnp.zeros_like(array) if grad is None else grad._cell.array
                for array, grad in zip(params, grads, strict=True)
            ]
        )

    def _move(self, step: float, direction: jax.Array) -> None:
        arrays = _moved([p._cell.array for p in self._params], direction, step)
        for p, array in zip(self._params, arrays, strict=True):
            p._write(array)


@jax.jit
def _flatten(arrays: list[jax.Array]) -> jax.Array:
    """One vector of all numbers, a complex one as two."""
    parts = [jnp.stack([a.real, a.imag], -1) if jnp.iscomplexobj(a) else a for a in arrays]
    return jnp.concatenate([part.reshape(-1) for part in parts])


@jax.jit
def _moved(arrays: list[jax.Array], direction: jax.Array, step: Any) -> list[jax.Array]:
    moved, place = [], 0
    for array in arrays:
        count = array.size * (2 if jnp.iscomplexobj(array) else 1)
        part = direction[place : place + count]
        place += count
        if jnp.iscomplexobj(array):
            part = jax.lax.complex(part[::2], part[1::2])
        moved.append((array + step * part.reshape(array.shape)).astype(array.dtype))
    return moved


@jax.jit
def _two_loops(
    grad: jax.Array,
    changes: list[jax.Array],
    steps: list[jax.Array],
    weights: jax.Array,
    scale: jax.Array,
) -> jax.Array:
    """The recursion of Nocedal, 1980. weights: (k,), one for each pair of a change and a step."""

    def back(q: jax.Array, pair: Any) -> Any:
        change, step, weight = pair
        alpha = jnp.vdot(step, q) * weight
        return q - alpha * change, alpha

    def forth(r: jax.Array, pair: Any) -> Any:
        change, step, weight, alpha = pair
        return r + (alpha - jnp.vdot(change, r) * weight) * step, None

    pairs = jnp.stack(changes), jnp.stack(steps), weights
    q, alphas = jax.lax.scan(back, -grad, pairs, reverse=True)
    return jax.lax.scan(forth, q * scale, (*pairs, alphas))[0]


def _greatest(array: jax.Array) -> float:
    return float(jnp.abs(array).max())


def _wrap(array: jax.Array) -> Tensor:
    return new_tensor(cell_of(array))

"""Transformations of gradients that optax has not, or not with PyTorch's numbers.

Each is an optax `GradientTransformation` over a list of arrays, whose state is a NamedTuple with
PyTorch's names: lists have an entry a parameter, the others are numbers. `h` holds the options of a
group as numbers that are traced, see `options`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dyngraph.optim.need_optax import need_optax

Arrays = list[Any]


def transformation(init: Any, update: Any) -> Any:
    """The pair as optax's type."""
    return need_optax().GradientTransformation(init, update)


def zeros(params: Arrays) -> Arrays:
    return [jnp.zeros_like(p) for p in params]


def first_step() -> jax.Array:
    return jnp.zeros((), jnp.float32)


def toward(average: Arrays, values: Arrays, weight: Any) -> Arrays:
    """Each average moved by `weight` toward its value."""
    return [a + (v - a) * weight for a, v in zip(average, values, strict=True)]


def mean_squares(average: Arrays, grads: Arrays, decay: Any, complement: Any) -> Arrays:
    return [a * decay + g * g * complement for a, g in zip(average, grads, strict=True)]


def bias(log_beta: Any, step: Any) -> Any:
    """1 - beta**step, without the loss of digits near 1."""
    return -jnp.expm1(step * log_beta)


class Moments(NamedTuple):
    """The state of Adam and its like."""

    step: Any
    exp_avg: Arrays
    exp_avg_sq: Arrays


class MomentsAndMaximum(NamedTuple):
    """The state of Adam with `amsgrad`."""

    step: Any
    exp_avg: Arrays
    exp_avg_sq: Arrays
    max_exp_avg_sq: Arrays


def scale_by_adam(h: Any) -> Any:
    """Adam (Kingma and Ba, 2015); with `h.amsgrad` that of Reddi, Kale and Kumar, 2018."""

    def init(params: Arrays) -> Any:
        both = first_step(), zeros(params), zeros(params)
        return MomentsAndMaximum(*both, zeros(params)) if h.amsgrad else Moments(*both)

    def update(grads: Arrays, state: Any, params: Any = None) -> Any:
        step = state.step + 1
        mean = toward(state.exp_avg, grads, h.complements[0])
        squares = mean_squares(state.exp_avg_sq, grads, h.betas[1], h.complements[1])
        new = Moments(step, mean, squares)
        if h.amsgrad:
            squares = [jnp.maximum(*pair) for pair in zip(state.max_exp_avg_sq, squares)]
            new = MomentsAndMaximum(*new, squares)
        first, second = bias(h.logs[0], step), jnp.sqrt(bias(h.logs[1], step))
        updates = [
            m / (jnp.sqrt(s) / second + h.eps) / first for m, s in zip(mean, squares, strict=True)
        ]
        return updates, new

    return transformation(init, update)


def scale_by_radam(h: Any) -> Any:
    """RAdam (Liu and others, 2020)."""

    def update(grads: Arrays, state: Any, params: Any = None) -> Any:
        step = state.step + 1
        mean = toward(state.exp_avg, grads, h.complements[0])
        squares = mean_squares(state.exp_avg_sq, grads, h.betas[1], h.complements[1])
        first, second = bias(h.logs[0], step), bias(h.logs[1], step)
        longest = 2 / h.complements[1] - 1
        length = longest - 2 * step * (1 - second) / second
        rectified = jnp.sqrt(
            jnp.maximum((length - 4) * (length - 2) * longest, 0)
            / ((longest - 4) * (longest - 2) * length)
        )

        def scaled(m: Any, s: Any) -> Any:
            adaptive = rectified * jnp.sqrt(second) / (jnp.sqrt(s) + h.eps)
            return m / first * jnp.where(length > 5, adaptive, jnp.ones_like(s))

        updates = [scaled(m, s) for m, s in zip(mean, squares, strict=True)]
        return updates, Moments(step, mean, squares)

    return transformation(lambda p: Moments(first_step(), zeros(p), zeros(p)), update)


class NesterovMoments(NamedTuple):
    """The state of NAdam."""

    step: Any
    mu_product: Any
    exp_avg: Arrays
    exp_avg_sq: Arrays


def scale_by_nadam(h: Any) -> Any:
    """NAdam (Dozat, 2016), whose momentum grows from step to step."""

    def init(params: Arrays) -> Any:
        return NesterovMoments(
            first_step(), jnp.ones((), jnp.float32), zeros(params), zeros(params)
        )

    def update(grads: Arrays, state: Any, params: Any = None) -> Any:
        step = state.step + 1
        mean = toward(state.exp_avg, grads, h.complements[0])
        squares = mean_squares(state.exp_avg_sq, grads, h.betas[1], h.complements[1])

        def momentum(at: Any) -> Any:
            return h.betas[0] * (1 - 0.5 * jnp.exp(math.log(0.96) * at * h.momentum_decay))

        now, then = momentum(step), momentum(step + 1)
        product = state.mu_product * now
        of_grad = (1 - now) / (1 - product)
        of_mean = then / (1 - product * then)
        second = bias(h.logs[1], step)
        updates = [
            (g * of_grad + m * of_mean) / (jnp.sqrt(s / second) + h.eps)
            for g, m, s in zip(grads, mean, squares, strict=True)
        ]
        return updates, NesterovMoments(step, product, mean, squares)

    return transformation(init, update)


class Steps(NamedTuple):
    """A count of steps."""

    step: Any


def count_steps() -> Any:
    """Leaves the gradients as they are."""
    return transformation(
        lambda params: Steps(first_step()),
        lambda grads, state, params=None: (grads, Steps(state.step + 1)),
    )


class Momentum(NamedTuple):
    """What past gradients have added up to."""

    momentum_buffer: Arrays


def damped_trace(h: Any) -> Any:
    """Momentum, to which each gradient but the first adds `1 - dampening` of itself."""

    def update(grads: Arrays, state: Any, params: Any = None) -> Any:
        share = jnp.where(h.first, 1.0, 1 - h.dampening)
        share = jax.lax.convert_element_type(share, float)
        buffers = [b * h.momentum + g * share for b, g in zip(state.momentum_buffer, grads)]
        return buffers, Momentum(buffers)

    return transformation(lambda params: Momentum(zeros(params)), update)


class Squares(NamedTuple):
    """The sums of squared gradients."""

    step: Any
    sum: Arrays


def scale_by_adagrad(h: Any) -> Any:
    """Adagrad (Duchi, Hazan and Singer, 2011), with a step that shrinks by `lr_decay`."""

    def init(params: Arrays) -> Any:
        start = [jnp.full_like(p, h.initial_accumulator_value) for p in params]
        return Squares(first_step(), start)

    def update(grads: Arrays, state: Any, params: Any = None) -> Any:
        step = state.step + 1
        sums = [s + g * g for s, g in zip(state.sum, grads, strict=True)]
        shrunk = 1 + (step - 1) * h.lr_decay
        updates = [g / (jnp.sqrt(s) + h.eps) / shrunk for g, s in zip(grads, sums, strict=True)]
        return updates, Squares(step, sums)

    return transformation(init, update)


class Averages(NamedTuple):
    """The state of ASGD: the step size, the weight of the next average, the averages."""

    step: Any
    eta: Any
    mu: Any
    ax: Arrays


def asgd(h: Any) -> Any:
    """Averaged SGD (Polyak and Juditsky, 1992): whole updates, the step size included."""

    def init(params: Arrays) -> Any:
        eta = jnp.asarray(h.lr, jnp.float32)
        return Averages(first_step(), eta, jnp.ones((), jnp.float32), zeros(params))

    def update(grads: Arrays, state: Any, params: Arrays) -> Any:
        step = state.step + 1
        updates = [
            -h.lambd * state.eta * p - state.eta * g for p, g in zip(params, grads, strict=True)
        ]
        moved = [p + u for p, u in zip(params, updates, strict=True)]
        averages = toward(state.ax, moved, state.mu)
        eta = h.lr / (1 + h.lambd * h.lr * step) ** h.alpha
        return updates, Averages(step, eta, 1 / jnp.maximum(1, step - h.t0), averages)

    return transformation(init, update)


class Factors(NamedTuple):
    """The state of Adafactor: of a matrix the variances of rows and columns, else of elements."""

    step: Any
    row_var: Arrays
    col_var: Arrays
    variance: Arrays


def adafactor(h: Any) -> Any:
    """Adafactor (Shazeer and Stern, 2018), in PyTorch's form; whole updates."""

    def init(params: Arrays) -> Any:
        many = [p.ndim > 1 for p in params]
        return Factors(
            first_step(),
            [jnp.zeros_like(p[..., :1]) if m else None for p, m in zip(params, many)],
            [jnp.zeros_like(p[..., :1, :]) if m else None for p, m in zip(params, many)],
            [None if m else jnp.zeros_like(p) for p, m in zip(params, many)],
        )

    def update(grads: Arrays, state: Any, params: Arrays) -> Any:
        step = state.step + 1
        weight = step**h.beta2_decay
        rate = jnp.minimum(h.lr, 1 / jnp.sqrt(step))

        def one(g: Any, row: Any, column: Any, variance: Any, p: Any) -> Any:
            eps = jnp.finfo(p.dtype).eps if h.eps[0] is None else h.eps[0]
            if row is None:
                variance = estimate = variance + (g * g - variance) * weight
            else:
                row += ((g * g).mean(-1, keepdims=True) - row) * weight
                column += ((g * g).mean(-2, keepdims=True) - column) * weight
                estimate = row @ column / jnp.maximum(row.mean(-2, keepdims=True), eps)
            u = g * jax.lax.rsqrt(jnp.maximum(estimate, eps * eps))
            clip = jnp.maximum(1.0, _root_mean_square(u) / h.d)
            size = jnp.maximum(h.eps[1], _root_mean_square(p)) * rate
            u = -size / clip * u
            if h.weight_decay is not None:
                u = u - h.lr * h.weight_decay * p
            return u, row, column, variance

        found = [one(*v) for v in zip(grads, state.row_var, state.col_var, state.variance, params)]
        updates, *parts = (list(part) for part in zip(*found, strict=True))
        return updates, Factors(step, *parts)

    return transformation(init, update)


def _root_mean_square(array: Any) -> Any:
    return jnp.sqrt(jnp.mean(array * array))


def muon(h: Any) -> Any:
    """Muon (Jordan and others, 2024) for matrices; whole updates without the weight decay."""

    def direction(grad: Any, buffer: Any) -> Any:
        if h.nesterov:
            grad = grad + (buffer - grad) * h.momentum
        else:
            grad = buffer
        rows, columns = grad.shape
        if h.adjust_lr_fn == "match_rms_adamw":
            factor = 0.2 * math.sqrt(max(rows, columns))
        else:
            factor = math.sqrt(max(1, rows / columns))
        return orthogonal(grad, h.ns_coefficients, h.ns_steps, h.eps) * (h.lr * factor)

    def update(grads: Arrays, state: Any, params: Any = None) -> Any:
        buffers = toward(state.momentum_buffer, grads, 1 - h.momentum)
        updates = [-direction(g, b) for g, b in zip(grads, buffers, strict=True)]
        return updates, Momentum(buffers)

    return transformation(lambda params: Momentum(zeros(params)), update)


def orthogonal(grad: Any, coefficients: Any, steps: int, eps: Any) -> Any:
    """The nearest orthogonal matrix, nearly: a Newton-Schulz iteration in bfloat16."""
    a, b, c = coefficients
    x = grad.astype(jnp.bfloat16)
    wide = x.shape[0] > x.shape[1]
    x = x.T if wide else x
    norm = jnp.sqrt(jnp.sum(jnp.square(x.astype(jnp.float32)))).astype(x.dtype)
    x = x / jnp.maximum(norm, eps)
    for _ in range(steps):
        gram = x @ x.T
        x = (a * x + (b * gram + c * (gram @ gram)) @ x).astype(x.dtype)
    return (x.T if wide else x).astype(grad.dtype)


class SignChanges(NamedTuple):
    """The state of Rprop."""

    step: Any
    prev: Arrays
    step_size: Arrays


def rprop(h: Any) -> Any:
    """Rprop (Riedmiller and Braun, 1993): whole updates, from the signs of gradients alone."""

    def init(params: Arrays) -> Any:
        return SignChanges(first_step(), zeros(params), [jnp.full_like(p, h.lr) for p in params])

    def update(grads: Arrays, state: Any, params: Any = None) -> Any:
        shrink, grow = h.etas
        turned = [g * before for g, before in zip(grads, state.prev, strict=True)]
        sizes = [
            jnp.clip(s * jnp.where(t > 0, grow, jnp.where(t < 0, shrink, 1)), *h.step_sizes)
            for s, t in zip(state.step_size, turned, strict=True)
        ]
        sizes = [s.astype(g.dtype) for s, g in zip(sizes, grads, strict=True)]
        kept = [jnp.where(t < 0, 0, g) for g, t in zip(grads, turned, strict=True)]
        updates = [-jnp.sign(g) * s for g, s in zip(kept, sizes, strict=True)]
        return updates, SignChanges(state.step + 1, kept, sizes)

    return transformation(init, update)

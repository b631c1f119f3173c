"""to_jax: a define-by-run function as a pure function of jax arrays.

# Note [JAX differentiates what a program does]
Inside, tensors hold tracers, and each operator runs its kernel on them, so JAX's transformations go
through whatever the program does, an inner backward among it. What JAX can't know from kernels is
told to it: operators whose rules are written by hand have these rules (an `Interceptor` sees each
call), a Function its own backward, and what `detach()` and `no_grad()` cut off is a constant.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph import modes
from dyngraph.autograd.function import Function
from dyngraph.backward import grad
from dyngraph.dispatch import OPERANDS, lift
from dyngraph.forward import with_rules
from dyngraph.interop.leaves import NUMBERS, as_input, describe, is_key, name_of
from dyngraph.kernels import Kernel, is_differentiable
from dyngraph.observed import Interceptor
from dyngraph.pure import Pure
from dyngraph.tensor import LEAF, Tensor


def to_jax(fn: Callable[..., Any], *, takes_key: bool = False) -> Callable[..., Any]:
    """The function of tensors `fn` as a pure function of jax arrays.

    It takes and returns pytrees with arrays where `fn` has tensors; Python's numbers, PRNG keys and
    what is no array reach `fn` as they are. It goes through `jax.jit`, `grad`, `vmap`, `checkpoint`
    and the like. `fn` may do what needs no values: call `backward()` on what it made, write in
    place to its own tensors and to its arguments, whose arrays stay as they were. Derivatives are
    dyngraph's, in JAX's convention: for complex numbers the conjugate; what `detach()` and
    `no_grad()` cut off is a constant, and inner gradients are differentiable with or without
    `create_graph`. Tensors that `fn` closes over are constants, as arrays are in JAX.

    With `takes_key`, the first argument is a PRNG key, which random operators draw from; without
    it they raise, unless they are given a generator, whose draws then are constants.

    Raises TypeError for tensors as arguments; RuntimeError where `fn` writes to a tensor from
    outside or sets its `.grad`, both of which are put back, and what JAX raises where a value is
    asked for while it traces, with the user's line.

    >>> import jax
    >>> def loss(w, x):
    ...     y = dg.zeros(2)
    ...     y[0] = (w * x).sum()
    ...     return (y**2).sum()
    >>> jax.jit(jax.grad(dg.to_jax(loss)))(jnp.array([1.0, 2.0]), 3.0)
    Array([54., 54.], dtype=float32)
    """
    name = name_of(fn)

    @functools.wraps(fn, updated=())
    def pure(*args: Any, **kwargs: Any) -> Any:
        words = None
        if takes_key:
            words, args = _words_of(name, args), args[1:]
        level = Pure(name, apply_function, words)
        with level, Differentiated(), modes.enable_grad():
            results = _run(name, fn, args, kwargs)
        level.check_outside()
        return results

    return pure


def _run(name: str, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """One call; when it returns, nothing holds its tensors any more."""
    given_args, given_kwargs = jax.tree.map(functools.partial(_given, name), (args, kwargs))
    results = fn(*given_args, **given_kwargs)
    return jax.tree.map(lambda r: r._cell.array if isinstance(r, Tensor) else r, results)


def _given(name: str, leaf: Any) -> Any:
    """An argument as the function gets it."""
    if isinstance(leaf, Tensor):
        raise TypeError(
            f"to_jax({name}) takes arrays, but got a Tensor. Call the function itself, or pass "
            "interop.arrays_of(arguments)."
        )
    if isinstance(leaf, NUMBERS) or not isinstance(leaf, OPERANDS):
        return leaf
    if isinstance(leaf, jax.Array) and is_key(leaf):
        return leaf
    return as_input(jnp.asarray(leaf))


def _words_of(name: str, args: tuple[Any, ...]) -> Any:
    """The words of the key that a function with `takes_key` got."""
    key = args[0] if args else None
    if isinstance(key, jax.Array) and is_key(key):
        key = jax.random.key_data(key)
    if not isinstance(key, jax.Array) or key.shape != (2,) or key.dtype != jnp.uint32:
        raise TypeError(
            f"to_jax({name}, takes_key=True): the first argument must be one PRNG key of two "
            f"words, got {describe(key)}. Pass jax.random.key(seed)."
        )
    return key


class Differentiated(Interceptor):
    """Has each operator run so that JAX's derivative of it is dyngraph's."""

    def intercept(self, op: Any, given: Mapping[str, Any], run: Callable[[], Any]) -> Any:
        spec, values = op.spec, list(given.values())
        count = len(spec.inputs)
        recording = modes.is_recording()
        if spec.passes_on or (recording and not spec.rules):
            return run()
        if not all(v is None or isinstance(v, (Tensor, *OPERANDS)) for v in values[:count]):
            return run()
        kernel = op.table.find(tuple(values[count:]))
        arrays = [
            v._cell.array if isinstance(v, Tensor) else v if v is None else lift(v, spec.name, "")
            for v in values[:count]
        ]
        try:
            out = (_ruled if recording else _stopped)(kernel)(*arrays)
        except (TypeError, ValueError, RuntimeError):
            return run()  # which raises it as it should be read
        return op.with_kept()(**given, kept=out)


def _kept_by_kernel(make: Callable[[Kernel], Callable[..., Any]]) -> Callable[[Kernel], Any]:
    """`make(kernel)`, jitted, and kept for as long as the kernel is."""
    made: weakref.WeakKeyDictionary[Kernel, Any] = weakref.WeakKeyDictionary()

    def find(kernel: Kernel) -> Any:
        entry = made.get(kernel)
        if entry is None or entry[0] is not kernel.forward:  # a kernel may start afresh
            entry = made[kernel] = kernel.forward, jax.jit(make(kernel))
        return entry[1]

    return find


@_kept_by_kernel
def _ruled(kernel: Kernel) -> Callable[..., Any]:
    """The kernel, differentiated by its hand-written rules."""
    return with_rules(kernel)


@_kept_by_kernel
def _stopped(kernel: Kernel) -> Callable[..., Any]:
    """The kernel, whose results are constants."""
    function = kernel.function
    return lambda *inputs: jax.lax.stop_gradient(function(*inputs))


# --- Functions --------------------------------------------------------------------------------


def apply_function(cls: type[Function], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What `cls.apply` returns in a pure function: JAX has its backward as derivative.

    Backward runs forward once more, which one compiled program does once. Where an argument
    requires grad inside, the Function is recorded too, and its outputs get JAX's values.
    """
    recorded = None
    if modes.is_recording() and any(isinstance(a, Tensor) and a.requires_grad for a in args):
        recorded = cls._apply(*args, **kwargs)
    places = [
        i
        for i, a in enumerate(args)
        if isinstance(a, Tensor) and is_differentiable(a._cell.held.dtype)
    ]
    others = list(args)
    for i in places:
        others[i] = None
    shape: list[Any] = []

    def run(arrays: Sequence[Any], *, recorded: bool) -> tuple[list[Tensor], list[Tensor]]:
        inputs = [as_input(a) for a in arrays]
        if recorded:
            for tensor in inputs:
                tensor._edge = LEAF
        given = list(others)
        for i, tensor in zip(places, inputs, strict=True):
            given[i] = tensor
        outputs = cls._apply(*given, **kwargs)
        if any(t._version for t in inputs):
            raise RuntimeError(
                f"to_jax: {cls.__name__} writes to its arguments in forward, of which JAX can't "
                "have the derivative. Return a new tensor."
            )
        leaves, tree = jax.tree.flatten(outputs)
        tensors = [t for t in leaves if isinstance(t, Tensor)]
        shape[:] = [tree, [None if isinstance(t, Tensor) else t for t in leaves]]
        return inputs, tensors

    @jax.custom_vjp
    def call(*arrays: Any) -> list[Any]:
        return [t._cell.array for t in run(arrays, recorded=False)[1]]

    def forward(*arrays: Any) -> Any:
        return call(*arrays), arrays

    def backward(arrays: Any, cotangents: Any) -> Any:
        with Pure(cls.__name__, apply_function), Differentiated(), modes.enable_grad():
            inputs, outputs = run(arrays, recorded=True)
            pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if o.requires_grad]
            found: Sequence[Any] = [None] * len(inputs)
            if pairs:
                # see Note [Complex gradients]
                grads = [as_input(jnp.conj(c)) for _, c in pairs]
                found = grad([o for o, _ in pairs], inputs, grads, allow_unused=True)
        return tuple(
            jnp.zeros_like(a) if g is None else jnp.conj(g._cell.array)
            for a, g in zip(arrays, found, strict=True)
        )

    call.defvjp(forward, backward)
    arrays = call(*[args[i]._cell.array for i in places])
    if recorded is not None:
        outputs = [t for t in jax.tree.leaves(recorded) if isinstance(t, Tensor)]
        for tensor, array in zip(outputs, arrays, strict=True):
            tensor._cell.array = array
        return recorded
    tree, rest = shape
    given = iter(arrays)
    return jax.tree.unflatten(tree, [as_input(next(given)) if r is None else r for r in rest])


__all__ = ["to_jax"]

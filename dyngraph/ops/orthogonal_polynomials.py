"""Orthogonal polynomials of a degree `n`: Chebyshev, Hermite, Laguerre, Legendre.

Each is computed by its recurrence over the degree (https://dlmf.nist.gov/18.9), up to the largest
that is asked for. `input` and `n`, numbers or tensors, broadcast; a degree below 0 gives 0. PyTorch
has no derivatives of these; here they have them with respect to `input`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph.ops.arguments import float_pair
from dyngraph.ops.operator import define

_Degree = Callable[[Any, Any], Any]


def _elementwise(function: _Degree) -> _Degree:
    """The function with derivatives by x of every order, each by forward mode.

    JAX has no reverse mode of a loop whose length is not known.
    """

    def slope(x: Any, n: Any) -> Any:
        return jax.jvp(lambda x: function(x, n), (x,), (jnp.ones_like(x),))[1]

    run = jax.custom_jvp(function)
    run.defjvp(lambda at, along: (run(*at), along[0] * _elementwise(slope)(*at)))
    return run


def _by_recurrence(first: Callable[[Any], Any], step: Callable[[Any, Any, Any, Any], Any]) -> Any:
    """P_n from P_0 = 1, P_1 = first(x) and P_k+1 = step(k, x, P_k, P_k-1)."""

    def value(x: Any, n: Any) -> Any:
        def grow(k: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
            last, before = state
            grows = k < n
            following = step(jnp.asarray(k, x.dtype), x, last, before)
            return jnp.where(grows, following, last), jnp.where(grows, last, before)

        one = jnp.ones_like(x)
        most = jnp.max(n, initial=1)
        last, _ = jax.lax.fori_loop(1, most, grow, (first(x), one))
        return jnp.where(n >= 1, last, jnp.where(n == 0, one, 0 * one))

    return _elementwise(value)


def _define(name: str, polynomial: _Degree, doc: str, largest: bool = False) -> Any:
    """The operator. Beyond the `largest` degree of Hermite polynomials PyTorch gives NaN."""

    def kernel(self: Any, n: Any) -> Any:
        x, degrees, dtype = float_pair(self, n)
        degrees = jnp.nan_to_num(degrees, nan=-1, posinf=-1, neginf=-1).astype(jnp.int32)
        x, degrees = jnp.broadcast_arrays(x, degrees)
        result = polynomial(x, degrees)
        if largest:
            limit = 128 if x.dtype == jnp.float32 else 512
            result = jnp.where(degrees > limit, jnp.nan, result)
        return result.astype(dtype)

    return define(f"special_{name}", kernel, n=None, doc=doc)


def _twice(k: Any, x: Any, last: Any, before: Any) -> Any:
    return 2 * x * last - before


def _hermite(k: Any, x: Any, last: Any, before: Any) -> Any:
    return 2 * x * last - 2 * k * before


def _probabilists(k: Any, x: Any, last: Any, before: Any) -> Any:
    return x * last - k * before


def _laguerre(k: Any, x: Any, last: Any, before: Any) -> Any:
    return ((2 * k + 1 - x) * last - k * before) / (k + 1)


def _legendre(k: Any, x: Any, last: Any, before: Any) -> Any:
    return ((2 * k + 1) * x * last - k * before) / (k + 1)


_t = _by_recurrence(lambda x: x, _twice)
_u = _by_recurrence(lambda x: 2 * x, _twice)
_v = _by_recurrence(lambda x: 2 * x - 1, _twice)
_w = _by_recurrence(lambda x: 2 * x + 1, _twice)


def _shifted(polynomial: _Degree) -> _Degree:
    """The same of 2x - 1, so that 0 to 1 is where -1 to 1 was."""
    return lambda x, n: polynomial(2 * x - 1, n)


chebyshev_polynomial_t = _define(
    "chebyshev_polynomial_t",
    _t,
    doc="""The Chebyshev polynomial of the first kind: cos(n a) with x = cos(a).

    >>> dg.special.chebyshev_polynomial_t(dg.tensor([0.5, 2.0]), 2)
    tensor([-0.5000,  7.0000])
    """,
)

chebyshev_polynomial_u = _define(
    "chebyshev_polynomial_u",
    _u,
    doc="""The Chebyshev polynomial of the second kind: sin((n + 1) a) / sin(a) with x = cos(a).

    >>> dg.special.chebyshev_polynomial_u(dg.tensor([0.5, 2.0]), 2)
    tensor([ 0., 15.])
    """,
)

chebyshev_polynomial_v = _define(
    "chebyshev_polynomial_v",
    _v,
    doc="""The Chebyshev polynomial of the third kind: cos((n + 1/2) a) / cos(a / 2), x = cos(a).

    >>> dg.special.chebyshev_polynomial_v(dg.tensor([0.5, 2.0]), 2)
    tensor([-1., 11.])
    """,
)

chebyshev_polynomial_w = _define(
    "chebyshev_polynomial_w",
    _w,
    doc="""The Chebyshev polynomial of the fourth kind: sin((n + 1/2) a) / sin(a / 2), x = cos(a).

    >>> dg.special.chebyshev_polynomial_w(dg.tensor([0.5, 2.0]), 2)
    tensor([ 1., 19.])
    """,
)

hermite_polynomial_h = _define(
    "hermite_polynomial_h",
    _by_recurrence(lambda x: 2 * x, _hermite),
    doc="""The physicists' Hermite polynomial, orthogonal by exp(-x^2).

    >>> dg.special.hermite_polynomial_h(dg.tensor([0.5, 2.0]), 2)
    tensor([-1., 14.])
    """,
    largest=True,
)

hermite_polynomial_he = _define(
    "hermite_polynomial_he",
    _by_recurrence(lambda x: x, _probabilists),
    doc="""The probabilists' Hermite polynomial, orthogonal by exp(-x^2 / 2).

    >>> dg.special.hermite_polynomial_he(dg.tensor([0.5, 2.0]), 2)
    tensor([-0.7500,  3.0000])
    """,
    largest=True,
)

laguerre_polynomial_l = _define(
    "laguerre_polynomial_l",
    _by_recurrence(lambda x: 1 - x, _laguerre),
    doc="""The Laguerre polynomial, orthogonal by exp(-x) from 0 on.

    >>> dg.special.laguerre_polynomial_l(dg.tensor([0.5, 2.0]), 2)
    tensor([ 0.1250, -1.0000])
    """,
)

legendre_polynomial_p = _define(
    "legendre_polynomial_p",
    _by_recurrence(lambda x: x, _legendre),
    doc="""The Legendre polynomial, orthogonal from -1 to 1.

    >>> dg.special.legendre_polynomial_p(dg.tensor([0.5, 2.0]), 2)
    tensor([-0.1250,  5.5000])
    """,
)

shifted_chebyshev_polynomial_t = _define(
    "shifted_chebyshev_polynomial_t",
    _shifted(_t),
    doc="""`chebyshev_polynomial_t` of 2 input - 1, orthogonal from 0 to 1.

    >>> dg.special.shifted_chebyshev_polynomial_t(dg.tensor([0.5, 2.0]), 2)
    tensor([-1., 17.])
    """,
)

shifted_chebyshev_polynomial_u = _define(
    "shifted_chebyshev_polynomial_u",
    _shifted(_u),
    doc="""`chebyshev_polynomial_u` of 2 input - 1, orthogonal from 0 to 1.

    >>> dg.special.shifted_chebyshev_polynomial_u(dg.tensor([0.5, 2.0]), 2)
    tensor([-1., 35.])
    """,
)

shifted_chebyshev_polynomial_v = _define(
    "shifted_chebyshev_polynomial_v",
    _shifted(_v),
    doc="""`chebyshev_polynomial_v` of 2 input - 1, orthogonal from 0 to 1.

    >>> dg.special.shifted_chebyshev_polynomial_v(dg.tensor([0.5, 2.0]), 2)
    tensor([-1., 29.])
    """,
)

shifted_chebyshev_polynomial_w = _define(
    "shifted_chebyshev_polynomial_w",
    _shifted(_w),
    doc="""`chebyshev_polynomial_w` of 2 input - 1, orthogonal from 0 to 1.

    >>> dg.special.shifted_chebyshev_polynomial_w(dg.tensor([0.5, 2.0]), 2)
    tensor([-1., 41.])
    """,
)


__all__: list[str] = []  # these are functions of dyngraph.special
METHODS: tuple[str, ...] = ()

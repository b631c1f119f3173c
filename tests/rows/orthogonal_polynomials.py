"""Rows of the operators in `dyngraph/ops/orthogonal_polynomials.py`.

The references are numpy's coefficients of the polynomials, for the degrees in `DEGREES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre

from tests.opinfo import OpInfo, between, call

DEGREES = np.array([[0], [1], [4]], np.int32)
POINTS = between(-1.4, 1.4, 4)


def of_degrees(coefficients: Callable[[int], Any]) -> Callable[..., Any]:
    """The polynomials with those coefficients, lowest power first, of every degree in a column."""

    def reference(x: Any, degrees: Any) -> Any:
        rows = [jnp.polyval(np.asarray(coefficients(n), x.dtype)[::-1], x) for n in (0, 1, 4)]
        return jnp.stack(rows).astype(x.dtype)

    return reference


def series(to_powers: Callable[[Any], Any]) -> Callable[[int], Any]:
    return lambda n: to_powers([0] * n + [1])


def second_kind(n: int) -> Any:
    """U_n is the slope of T_n+1 over n + 1."""
    return np.polynomial.polynomial.polyder(chebyshev.cheb2poly([0] * (n + 1) + [1])) / (n + 1)


def beside(sign: int) -> Callable[[int], Any]:
    """V_n and W_n are U_n minus and plus U_n-1."""

    def coefficients(n: int) -> Any:
        before = np.zeros(n + 1)
        before[:n] = second_kind(n - 1) if n else 0
        return second_kind(n) + sign * before

    return coefficients


KINDS: dict[str, Callable[[int], Any]] = {
    "chebyshev_polynomial_t": series(chebyshev.cheb2poly),
    "chebyshev_polynomial_u": second_kind,
    "chebyshev_polynomial_v": beside(-1),
    "chebyshev_polynomial_w": beside(1),
    "hermite_polynomial_h": series(hermite.herm2poly),
    "hermite_polynomial_he": series(hermite_e.herme2poly),
    "laguerre_polynomial_l": series(laguerre.lag2poly),
    "legendre_polynomial_p": series(legendre.leg2poly),
}


def shifted(reference: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, degrees: reference(2 * x - 1, degrees)


ROWS: list[OpInfo] = [
    row
    for name, coefficients in KINDS.items()
    for row in (
        OpInfo(
            f"special.{name}",
            [call(POINTS, DEGREES)],
            of_degrees(coefficients),
            second=name == "legendre_polynomial_p",  # all are differentiated by the same means
            rtol=1e-3,
            atol=1e-4,
        ),
        *(
            [
                OpInfo(
                    f"special.shifted_{name}",
                    [call(np.abs(POINTS), DEGREES)],
                    shifted(of_degrees(coefficients)),
                    second=False,  # that of the polynomial which is not shifted
                    rtol=1e-3,
                    atol=1e-4,
                )
            ]
            if name.startswith("chebyshev")
            else []
        ),
    )
]

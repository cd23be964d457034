r"""Rho in the words of approximate privacy: the epsilon that it loses at a delta.

.. math::
    \delta(\varepsilon) = \inf_{\alpha > 1}
        \frac{e^{(\alpha - 1)(\alpha \rho - \varepsilon)}}{\alpha - 1} \Bigl(1 - \frac1\alpha\Bigr)^\alpha

what loses rho is (epsilon, delta)-private (Canonne, Kamath, Steinke 2020, *The Discrete Gaussian for
Differential Privacy*, corollary 13). Solved for epsilon at a given delta, with x = alpha - 1:

.. math::
    \varepsilon(\delta) = \inf_{x > 0} \; (1 + x) \rho
        + \frac{\log(1/\delta) - \log x - (1 + x) \log(1 + 1/x)}{x}

Its derivative times x squared is :math:`\rho x^2 + \log(1 + x) - \log(1 / \delta)`, which grows with x: so
the infimum is where that is 0. Every other x gives a larger epsilon, which holds too: an x that is not
quite the best, and digits that are rounded up, err to the safe side.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from typing import Final

from suffice.pipeline.terms.declaration.exact_numbers import (
    PICO,
    float_rounded_up,
    format_number,
)

DELTAS: Final = (Fraction(1, 10**6), Fraction(1, 10**9), Fraction(1, 10**12))
"""The deltas at which a loss of rho is shown: one says little, as a rho is a whole curve."""
SMALLEST_DELTA: Final = Fraction(1, 10**300)
LARGEST_SUM: Final = 10**40
"""Far above what windows of a year, or rows of a person, add up to at the largest rho of a release."""
_LARGEST_FOUND = 10**6
"""Above what accounts count, so that a grant of more is refused and not cut."""
_DIGITS = decimal.Context(prec=100, rounding=decimal.ROUND_HALF_EVEN)
_ROUNDING = Fraction(1, 10**40)
"""Far above what 100 digits lose of numbers below 1e41: it is added to every epsilon."""


def epsilon_at(rho: Fraction, delta: Fraction) -> float:
    """Return the epsilon that a loss of rho has at a delta, rounded up.

    Parameters
    ----------
    rho : Fraction
        From 1e-12 to 1e40: of a release, or what many add up to.
    delta : Fraction
        From 1e-300 to 0.5.

    Returns
    -------
    float
        In nats, at least 0; never below the infimum of the module's formula, and above it by no more than
        the rounding to float64.

    Raises
    ------
    ValueError
        Where rho or delta is out of range.

    Examples
    --------
    >>> round(epsilon_at(Fraction("0.024356"), Fraction(1, 10**6)), 4)
    1.0
    """
    _check(delta)
    if not Fraction(1, PICO) <= rho <= LARGEST_SUM:
        message = f"rho {format_number(rho)} is not from 1e-12 to 1e40"
        raise ValueError(message)
    return float_rounded_up(_epsilon_above(rho, delta))


def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho that loses at most an epsilon at a delta, rounded down to 1e-12.

    Parameters
    ----------
    epsilon : Fraction
        In nats, above 0.
    delta : Fraction
        From 1e-300 to 0.5.

    Returns
    -------
    Fraction
        A multiple of 1e-12, at most one million, at which :func:`epsilon_at` before its last rounding is at
        most `epsilon`.

    Raises
    ------
    ValueError
        Where epsilon or delta is out of range, or even 1e-12 loses more.
    """
    _check(delta)
    if epsilon <= 0:
        message = f"epsilon {format_number(epsilon)} is not above 0"
        raise ValueError(message)
    enough, too_much = 0, _LARGEST_FOUND * PICO + 1
    while too_much - enough > 1:
        middle = (enough + too_much) // 2
        if _epsilon_above(Fraction(middle, PICO), delta) <= epsilon:
            enough = middle
        else:
            too_much = middle
    if not enough:
        message = (
            f"no rho of 1e-12 or more loses at most epsilon {format_number(epsilon)} at delta "
            f"{shown_delta(delta)}: ask for a larger epsilon or delta"
        )
        raise ValueError(message)
    return Fraction(enough, PICO)


def shown_epsilons(rho: Fraction) -> str:
    """Say what a rho loses at three deltas, as pairs; epsilons are rounded up to three digits.

    Examples
    --------
    >>> shown_epsilons(Fraction("0.02435"))
    '(1, 1e-6), (1.29, 1e-9), (1.53, 1e-12)'
    """
    return ", ".join(f"({shown_epsilon(rho, delta)}, {shown_delta(delta)})" for delta in DELTAS)


def shown_epsilon(rho: Fraction, delta: Fraction) -> str:
    """Write the epsilon of a rho at a delta, rounded up to three digits.

    Examples
    --------
    >>> shown_epsilon(Fraction(1), Fraction(1, 10**6))
    '7.77'
    """
    three = decimal.Context(prec=3, rounding=decimal.ROUND_CEILING)
    return f"{three.create_decimal_from_float(epsilon_at(rho, delta)).normalize():f}"


def shown_delta(delta: Fraction) -> str:
    """Write a delta: as a power of ten where it is such.

    Examples
    --------
    >>> shown_delta(Fraction(1, 10**9)), shown_delta(Fraction(1, 400))
    ('1e-9', '0.0025')
    """
    zeros = len(str(delta.denominator)) - 1
    return f"1e-{zeros}" if zeros and delta == Fraction(1, 10**zeros) else format_number(delta)


def _epsilon_above(rho: Fraction, delta: Fraction) -> Fraction:
    """Return the formula's epsilon at the best x that float64 has, above what digits it loses."""
    with decimal.localcontext(_DIGITS):
        x = Decimal(_best_order(float(rho), float(delta)))
        log_x = x.ln()
        log_ratio = (x + 1).ln() - log_x  # log(1 + 1/x)
        log_delta = _decimal(delta).ln()
        epsilon = (1 + x) * _decimal(rho) - (log_delta + log_x + (1 + x) * log_ratio) / x
    return max(Fraction(epsilon) + _ROUNDING, Fraction(0))


def _best_order(rho: float, delta: float) -> float:
    """Solve rho x^2 + log(1 + x) = log(1 / delta) for x = alpha - 1, by bisection: the left side grows."""
    target = -math.log(delta)
    low, high = 0.0, min(math.sqrt(target / rho), math.expm1(target))
    while low < (middle := 0.5 * (low + high)) < high:
        if rho * middle * middle + math.log1p(middle) < target:
            low = middle
        else:
            high = middle
    return high


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def _check(delta: Fraction) -> None:
    if not SMALLEST_DELTA <= delta <= Fraction(1, 2):
        message = f"delta {format_number(delta)} is not from 1e-300 to 0.5"
        raise ValueError(message)

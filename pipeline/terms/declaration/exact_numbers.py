"""Exact numbers and their text: every privacy parameter is a fraction until it meets OpenDP.

The only float of the trusted side is the noise scale; :func:`scale_rounded_up` is the one place
where it is made, and it rounds towards more noise.
"""

from __future__ import annotations

import functools
import math
import re
from fractions import Fraction

MICRO = 10**6
"""Epsilon is stored in integers of one millionth."""

PICO = 10**12
"""Rho is stored in integers of 1e-12."""

LARGEST_EPSILON = 10**6
MOST_COUNTED = 2**53 - 1
"""The most that accounts count, in smallest amounts: every reader of JSON has its integers exactly, and no
sum of balances comes near 64 bits."""
LARGEST_RHO = Fraction(MOST_COUNTED, PICO)
"""Some 9007: a spec that states more could not be charged."""
LARGEST_SCALE = 2.0**55
"""OpenDP's 64-bit draws saturate with chance exp(-2^63 / scale): up to here at most e^-256 a draw."""

_DECIMAL = re.compile(
    r"[+-]?((\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?|\d{1,400}(\.\d{1,400})?)", re.ASCII
)
"""The second form holds what :func:`format_number` makes of every bound: no more than 10^150, no exponent."""


def parse_decimal(text: str) -> Fraction:
    """Read a finite decimal number exactly.

    Parameters
    ----------
    text : str
        Decimal digits with an optional sign, point and exponent of at most three digits; without an exponent
        up to 400 digits on each side of the point.

    Returns
    -------
    Fraction

    Raises
    ------
    ValueError
        Where `text` is anything else; infinities and NaN are not numbers here.

    Examples
    --------
    >>> parse_decimal("-2.50")
    Fraction(-5, 2)
    """
    if not _DECIMAL.fullmatch(text):
        message = f"{text!r} is not a finite decimal number"
        raise ValueError(message)
    return Fraction(text)


def format_number(number: Fraction | int) -> str:
    """Write an exact number: without trailing zeros where it has a finite decimal, else as ``p/q``.

    Examples
    --------
    >>> format_number(Fraction(1, 4)), format_number(Fraction(1, 3)), format_number(100)
    ('0.25', '1/3', '100')
    """
    return _written(number.numerator, number.denominator)


@functools.lru_cache(maxsize=4096)  # a plan repeats its coefficients
def _written(numerator: int, denominator: int) -> str:
    twos = fives = 0
    rest = denominator
    while rest % 2 == 0:
        rest //= 2
        twos += 1
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    if rest != 1:
        return f"{numerator}/{denominator}"
    locations = max(twos, fives)
    digits = str(abs(numerator) * 10**locations // denominator).rjust(locations + 1, "0")
    sign = "-" if numerator < 0 else ""
    return sign + (f"{digits[:-locations]}.{digits[-locations:]}" if locations else digits)


def parse_epsilon(text: str) -> Fraction:
    """Read an epsilon: a positive decimal of at most six fractional digits.

    Raises
    ------
    ValueError
        Where it is not positive, above one million, or finer than one millionth.
    """
    return _parse_loss("epsilon", text, LARGEST_EPSILON, MICRO, "six")


def parse_rho(text: str) -> Fraction:
    """Read a rho: a positive decimal of at most twelve fractional digits.

    Raises
    ------
    ValueError
        Where it is not positive, above ``LARGEST_RHO``, or finer than 1e-12.
    """
    return _parse_loss("rho", text, LARGEST_RHO, PICO, "twelve")


def _parse_loss(measure: str, text: str, largest: Fraction | int, parts: int, digits: str) -> Fraction:
    amount = parse_decimal(text)
    if not 0 < amount <= largest:
        message = f"{measure} {text!r} is not above 0 and at most {format_number(largest)}"
        raise ValueError(message)
    if (amount * parts).denominator != 1:
        message = f"{measure} {text!r} has more than {digits} fractional digits"
        raise ValueError(message)
    return amount


format_epsilon = format_number


def float_rounded_down(number: Fraction) -> float:
    """Return the largest float64 at most `number`."""
    nearest = float(number)
    return nearest if Fraction(nearest) <= number else math.nextafter(nearest, -math.inf)


def float_rounded_up(number: Fraction) -> float:
    """Return the least float64 at least `number`."""
    nearest = float(number)
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


def scale_rounded_up(l1_sensitivity: int, epsilon: Fraction) -> float:
    r"""Return the least float64 noise scale whose privacy loss, rounded up, is at most epsilon.

    .. math:: \min\{b : \lceil \Delta_1 / b \rceil_{64} \le \varepsilon\}
              = \lceil \Delta_1 / \lfloor\varepsilon\rfloor_{64} \rceil_{64}

    where the brackets round up or down to float64: a float is at most epsilon exactly where it is at
    most the largest float below epsilon.

    Parameters
    ----------
    l1_sensitivity : int, > 0
        In lattice units.
    epsilon : Fraction, > 0
        In nats.

    Returns
    -------
    float
        The scale, in lattice units; its exact rational is what a release states.
    """
    # proof: scale
    return float_rounded_up(l1_sensitivity / Fraction(float_rounded_down(epsilon)))

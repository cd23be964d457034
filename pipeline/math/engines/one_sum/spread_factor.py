r"""By what the density of a sum under a spread prior is that under its first component, from a table.

Model. With symbols as in ``spread_sums``, :math:`P = a + k N` and :math:`\rho = P / (w S)`, the density of S
is that under the first component times

.. math:: F = \sum_j w_j \Bigl(\frac{b_j}{b_0}\Bigr)^a
    \Bigl(\frac{1 + b_j \rho / P}{1 + b_0 \rho / P}\Bigr)^{-P}, \qquad (1)

which beyond a few records hardly depends on N: as P grows, powers become exponentials. So log F is smooth in
:math:`\log b_0 \rho` and in 1 / P, and is the same function for all cells.

Method. Polynomials of degree 4 in both, in quarters of :math:`\log b_0 \rho` and quarters of an octave of P,
beyond 32 in one piece. They are right to 5e-5 from P = 4 on, and to 4e-4 of P from 3 to 4, that is, of a
single record (of the prior without a second moment, 4e-3 of P from 1.5 to 2.5). A position takes
less than half of the time of ten powers.

Machine code of callers is kept while they stay as they are: whoever changes this module removes
``__pycache__``.

Symbols:

- log b_0 rho: ``x``; P: ``power``
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.machine_code import vectorised
from suffice.pipeline.math.distributions.vector_functions import bits_of, log

if TYPE_CHECKING:
    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

LEAST_X, INTERVALS, PER_X = -24.0, 152, 4.0
"""From where on there are so many intervals, four in a unit; beyond them log F is constant to 1e-5."""
BANDS = 21
"""Of P: four in an octave from 1 to 32, and what lies beyond."""
DEGREE = 4
_TERMS = DEGREE + 1
_OF_INTERVAL, _OF_BAND = _TERMS * _TERMS, _TERMS * _TERMS * INTERVALS
_COEFFICIENTS = 2 * BANDS
_QUARTER_BITS, _OF_ONE = 50, 4 * 1023
"""Bits of a number behind the first two of its fraction; four times the exponent of 1 as it is stored."""


def log_factor(x: Floats, by_power: Floats, log_weights: Floats, ratios: Floats) -> Floats:
    """Log F of (1), arrays broadcast; `log_weights` are those of w_j (b_j / b_0)^a, `ratios` b_j / b_0."""
    first = np.exp(x)
    at_first = np.log1p(by_power * first)
    terms = (
        log_weight - (np.log1p(by_power * first * ratio) - at_first) / by_power
        for log_weight, ratio in zip(log_weights, ratios, strict=True)
    )
    total: Floats = functools.reduce(np.logaddexp, terms)
    return total


def table_of(weights: tuple[float, ...], concentration: float, rates: tuple[float, ...]) -> Floats:
    """Return what ``add_factor`` reads, (n_numbers,): ends of bands, one over their widths, polynomials."""
    ratios = np.array(rates) / rates[0]
    log_weights = np.log(np.array(weights)) + concentration * np.log(ratios)
    # Interpolated at the roots of Chebyshev's polynomial, in 0..1.
    at = 0.5 - 0.5 * np.cos(np.pi * (np.arange(_TERMS) + 0.5) / _TERMS)
    powers = np.linalg.inv(np.vander(at, increasing=True))
    # Bands of P as floats have them: four of equal length in an octave.
    octave = 2.0 ** np.floor(np.arange(BANDS) / 4)
    edges = octave * (1.0 + 0.25 * (np.arange(BANDS) % 4))
    last = np.concatenate([1.0 / edges[1:], [0.0]])
    width = 1.0 / edges - last
    x = LEAST_X + (np.arange(INTERVALS)[:, None] + at) / PER_X
    by_power = last[:, None] + width[:, None] * at
    values = log_factor(x[None, :, :, None], by_power[:, None, None, :], log_weights, ratios)
    return np.concatenate([last, 1.0 / width, np.einsum("ij,bmjk,lk->bmil", powers, values, powers).ravel()])


@vectorised
def set_factor(numbers: Floats, least: float, concentration: float, count: int, table: Floats) -> None:
    """Work out what depends on N alone: x at position 0, in intervals, where a band begins, and 1 / P there.

    ``least`` is log of b_0 / w over a step; ``table`` has three numbers of a row, of which k N is the first.
    """
    at_0, begin, place = table[0], table[1], table[2]
    for i in range(count):
        power = concentration + at_0[i]
        band = min((bits_of(power) >> _QUARTER_BITS) - _OF_ONE, BANDS - 1)
        at_0[i] = PER_X * (least + log(power) - LEAST_X)
        begin[i] = _COEFFICIENTS + band * _OF_BAND
        place[i] = (1.0 / power - numbers[band]) * numbers[BANDS + band]


@vectorised
def add_factor(
    numbers: Floats, table: Floats, count: int, row: Integers, position: Floats, scratch: Floats, out: Floats,
) -> None:  # fmt: skip
    """Add log F at positions."""
    at_0, begin, place = table[0], table[1], table[2]
    for i in range(count):
        scratch[i] = min(max(at_0[row[i]] - PER_X * position[i], 0.0), INTERVALS - 1e-9)
    for i in range(count):
        r = row[i]
        interval, e = int(scratch[i]), place[r]
        f = scratch[i] - interval
        at, value = int(begin[r]) + interval * _OF_INTERVAL, 0.0
        for k in range(DEGREE, -1, -1):
            c = at + k * _TERMS
            of_power = numbers[c + 4]
            of_power = of_power * e + numbers[c + 3]
            of_power = of_power * e + numbers[c + 2]
            of_power = of_power * e + numbers[c + 1]
            value = value * f + (of_power * e + numbers[c])
        out[i] += value

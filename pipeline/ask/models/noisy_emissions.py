r"""The chance of a released count whose exact one is Poisson: the latent count is summed out.

With n Poisson(mu), noise of scale b and :math:`q = e^{-1/b}`, the sum splits at y into two incomplete gamma
functions, P(Poisson(x) <= y) = Q(y + 1, x):

.. math::
    \sum_n \mathrm{Pois}(n; \mu)\, \mathrm{DLap}_b(y - n) = \frac{1 - q}{1 + q} \left(
    q^y e^{\mu (1/q - 1)} Q(y + 1, \mu / q) + q^{-y} e^{-\mu (1 - q)} P(y + 1, \mu q) \right)

Of y <= 0 only :math:`q^{-y} e^{-\mu (1 - q)}` is left in the brackets: given such a y the exact count is
Poisson(mu q). Where one of the functions is small, or far from its mean, it is the sum that it stands for, as
multiples of Pois(y; mu): there are no differences of large numbers then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from suffice.typing import Floats, Mask, Rows

_NEGLIGIBLE = 1e-17
_LEAST = 1e-250
"""Of an incomplete gamma function: below it its sum is taken."""
_FAR = 0.9
"""The ratio of neighbouring terms from which on down a sum is taken: it ends after 400 terms at most."""


def log_noise_at_zero(scale: float) -> float:
    """Return the log chance of no noise, log((1 - q) / (1 + q)); 0 at scale 0."""
    return 0.0 if scale == 0.0 else float(np.log(np.tanh(0.5 / scale)))


def log_emission(released: ArrayLike, expected: ArrayLike, scale: float) -> Floats:
    """Return the log chance of released counts, exact to about ten digits.

    Parameters
    ----------
    released : array_like
        y, whole numbers; negative ones are normal.
    expected : array_like
        mu >= 0, of a shape that broadcasts with `released`.
    scale : float, >= 0
        b of the noise; at 0 the released count is the exact one, and a negative one has chance 0.
    """
    y, mu = np.broadcast_arrays(np.asarray(released, dtype=np.float64), np.asarray(expected, np.float64))
    shape = y.shape
    y, mu = y.ravel(), mu.ravel()
    if scale == 0.0:
        exact: Floats = _log_poisson(y, mu).reshape(shape)
        return exact
    shrunk = np.exp(-1.0 / scale)
    found = log_noise_at_zero(scale) + np.minimum(y, 0.0) / scale + mu * np.expm1(-1.0 / scale)
    above = np.flatnonzero((y > 0.0) & (mu > 0.0))
    if len(above):
        # At mu = 0 nothing but the noise is left.
        found[above] = log_noise_at_zero(scale) + _log_brackets(y[above], mu[above], scale, shrunk)
    none = (y > 0.0) & (mu == 0.0)
    found[none] -= y[none] / scale
    noisy: Floats = found.reshape(shape)
    return noisy


def _log_brackets(y: Floats, mu: Floats, scale: float, shrunk: float) -> Floats:
    from scipy.special import gammainc, gammaincc

    poisson = _log_poisson(y, mu)
    stretched = np.exp(np.minimum(np.log(mu) + 1.0 / scale, 700.0))
    with np.errstate(divide="ignore"):
        ratio = y / stretched
        chance = gammaincc(y + 1.0, stretched)
        below = mu * np.expm1(min(1.0 / scale, 700.0)) - y / scale + np.log(chance)
        summed = (ratio < _FAR) | (chance < _LEAST)
        below[summed] = poisson[summed] + np.log1p(_sum_below(y[summed], stretched[summed]))
        shrunken = mu * shrunk
        chance = gammainc(y + 1.0, shrunken)
        above = mu * np.expm1(-1.0 / scale) + y / scale + np.log(chance)
        summed = (shrunken / (y + 1.0) < _FAR) | (chance < _LEAST)
        above[summed] = poisson[summed] + np.log(_sum_above(y[summed], shrunken[summed]))
    result: Floats = np.logaddexp(below, above)
    return result


def _sum_below(y: Floats, x: Floats) -> Floats:
    """Return y/x + y(y - 1)/x^2 + ..., which ends by itself."""
    return _sum_of_products(lambda step, rows: np.maximum(y[rows] - step, 0.0) / x[rows], len(y))


def _sum_above(y: Floats, x: Floats) -> Floats:
    """Return x/(y + 1) + x^2/((y + 1)(y + 2)) + ..., of x below y + 1."""
    return _sum_of_products(lambda step, rows: x[rows] / (y[rows] + (step + 1.0)), len(y))


def _sum_of_products(ratio: Callable[[int, Rows], Floats], size: int) -> Floats:
    total, rows, step = np.zeros(size), np.arange(size), 0
    term = np.ones(size)
    while len(rows):
        term = term * ratio(step, rows)
        total[rows] += term
        going: Mask = term > _NEGLIGIBLE * total[rows]
        rows, term, step = rows[going], term[going], step + 1
    return total


def _log_poisson(count: Floats, expected: Floats) -> Floats:
    from scipy.special import gammaln, xlogy

    with np.errstate(invalid="ignore"):
        found = xlogy(count, expected) - expected - gammaln(count + 1.0)
    result: Floats = np.where(count < 0.0, -np.inf, found)
    return result

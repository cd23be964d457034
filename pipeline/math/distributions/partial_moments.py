r"""Probabilities and moments of conjugate distributions of one parameter between two limits.

With F and f a distribution, the parts are

.. math:: m_k = \int_l^u t^k f(t) \, dt, \quad k = 0, 1, 2.

Of gamma, inverse gamma and beta densities a power leads to another one of the family, times a number; of a
normal one parts follow from each other. Tails are those of the nearer end, so that nothing cancels in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.beta import BetaDistribution
from suffice.pipeline.math.distributions.gamma import GammaDistribution
from suffice.pipeline.math.distributions.inverse_gamma import InverseGammaDistribution
from suffice.pipeline.math.distributions.normal import NormalDistribution

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.typing import Floats

    Tail = Callable[[float], Floats]

_HALF = 0.5


def moments_between(
    distribution: Distribution, limits: tuple[float, float], centre: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the probability between limits, and the parts of the first two moments about a centre there.

    Parameters
    ----------
    distribution : Distribution
        Conjugate, of one parameter, of n cells.
    limits : (float, float)
        Infinite where there is none.
    centre : ndarray that broadcasts with (n,)

    Returns
    -------
    mass, first, second : ndarray
        Of (t - c)^k f(t) between the limits, k = 0, 1, 2. Moments that no limit makes finite are infinite.
    """
    if isinstance(distribution, NormalDistribution):
        return _of_normal(distribution, limits, centre)
    mass, first, second = _raw(distribution, limits)
    with np.errstate(invalid="ignore"):
        about = second - 2.0 * centre * first + centre**2 * mass
    return mass, first - centre * mass, np.maximum(np.where(np.isnan(about), np.inf, about), 0.0)


def moments_about(distribution: Distribution, centre: Floats) -> tuple[Floats, Floats]:
    """Return the first two moments about a centre, without limits; infinite where there is none."""
    (name,) = distribution.parameters
    away = distribution.mean(name) - centre
    with np.errstate(invalid="ignore"):
        second = distribution.sd(name) ** 2 + away**2
    return away, np.where(np.isnan(second), np.inf, second)


def _raw(distribution: Distribution, limits: tuple[float, float]) -> list[Floats]:
    """Return the parts of moments about 0."""
    from scipy.special import betainc, betaincc, gammainc, gammaincc

    if isinstance(distribution, GammaDistribution):
        a, rate = distribution.concentration, distribution.rate
        shares = [
            _between(
                _at_multiple(gammainc, a + k, rate), _at_multiple(gammaincc, a + k, rate), limits, np.inf
            )
            for k in range(3)
        ]
        return [shares[0], a / rate * shares[1], a * (a + 1.0) / rate**2 * shares[2]]
    if isinstance(distribution, InverseGammaDistribution):
        a, scale = distribution.concentration, distribution.scale
        shares = [
            _between(
                _at_fraction(gammaincc, a - k, scale), _at_fraction(gammainc, a - k, scale), limits, np.inf
            )
            for k in range(3)
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            first = scale / (a - 1.0) * shares[1]
            second = scale**2 / ((a - 1.0) * (a - 2.0)) * shares[2]
        return [shares[0], np.where(a > 1.0, first, np.inf), np.where(a > 2.0, second, np.inf)]
    if isinstance(distribution, BetaDistribution):
        a, b = distribution.concentration1, distribution.concentration0
        shares = [_between(_at(betainc, a + k, b), _at(betaincc, a + k, b), limits, 1.0) for k in range(3)]
        whole = a + b
        return [shares[0], a / whole * shares[1], a * (a + 1.0) / (whole * (whole + 1.0)) * shares[2]]
    raise TypeError(type(distribution).__name__)


def _at(function: Any, a: Floats, b: Floats) -> Tail:
    return lambda x: np.asarray(function(a, b, x))


def _at_multiple(function: Any, a: Floats, rate: Floats) -> Tail:
    return lambda x: np.asarray(function(a, rate * x))


def _at_fraction(function: Any, a: Floats, scale: Floats) -> Tail:
    return lambda x: np.asarray(function(a, scale / x))


def _between(below: Tail, above: Tail, limits: tuple[float, float], end: float) -> Floats:
    """Return probabilities between limits, of distributions from 0 to an end, by the smaller tails."""
    low, high = limits
    if low <= 0.0:
        return np.ones(()) if high >= end else below(high)
    if high >= end:
        return above(low)
    below_low = below(low)
    mass: Floats = np.where(below_low > _HALF, above(low) - above(high), below(high) - below_low)
    return np.maximum(mass, 0.0)


def _of_normal(
    distribution: NormalDistribution, limits: tuple[float, float], centre: Floats
) -> tuple[Floats, Floats, Floats]:
    r"""Return the parts of a normal's moments about a centre.

    With :math:`z = (t - \mu) / \sigma`, :math:`\int z \phi = -[\phi]` and
    :math:`\int z^2 \phi = [\Phi] - [z \phi]`.
    """
    from scipy.special import ndtr

    loc, scale = distribution.loc, distribution.scale
    low, high = ((end - loc) / scale for end in limits)
    upper = low > 0.0
    mass = np.where(upper, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    ends = np.clip(np.stack([low, high]), -40.0, 40.0)
    phi = np.exp(-0.5 * ends**2) / np.sqrt(2.0 * np.pi)
    linear = phi[0] - phi[1]
    square = mass + ends[0] * phi[0] - ends[1] * phi[1]
    away = loc - centre
    first = scale * linear + away * mass
    second = scale**2 * square + 2.0 * away * scale * linear + away**2 * mass
    return mass, first, np.maximum(second, 0.0)

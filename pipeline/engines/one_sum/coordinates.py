"""Conjugate distributions of one parameter in a coordinate on the real line, where they are nearly normal.

The distribution functions of narrow gammas and betas are those of Peizer and Pratt, whose error is below
2e-4 where both concentrations are at least ``_LARGE``; of wide ones they are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.distributions.conjugate import DirichletDistribution, GammaDistribution
from suffice.pipeline.distributions.scalar import InverseGammaDistribution, NormalDistribution

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.distributions.conjugate import Distribution
    from suffice.typing import Floats


_LARGE = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinate:
    """Distributions in their coordinate.

    Attributes
    ----------
    centre, width : ndarray of shape (n,), float64
        About the mean and the standard deviation of every distribution.
    cdf : callable
        A position for every distribution, (n,) -> probabilities below.
    log_density : callable
        Positions that broadcast with (n,) -> log densities at these positions.
    back : callable
        Positions -> values of the parameter.
    """

    centre: Floats
    width: Floats
    cdf: Callable[[Floats], Floats]
    log_density: Callable[[Floats], Floats]
    back: Callable[[Floats], Floats]


def coordinate_of(distribution: Distribution) -> Coordinate:
    """Return the logarithm of rates and scales, the logit of probabilities, and means as they are."""
    if isinstance(distribution, NormalDistribution):
        return _normal(distribution)
    if isinstance(distribution, GammaDistribution):
        concentration, rate = distribution.concentration, distribution.rate
        return Coordinate(
            centre=np.log(concentration / rate),
            width=1.0 / np.sqrt(concentration),
            cdf=lambda position: gamma_cdf(concentration, _times_exp(rate, position)),
            log_density=lambda position: _log_gamma(concentration, position - np.log(concentration / rate)),
            back=np.exp,
        )
    if isinstance(distribution, InverseGammaDistribution):
        concentration, scale = distribution.concentration, distribution.scale
        return Coordinate(
            centre=np.log(scale / concentration),
            width=1.0 / np.sqrt(concentration),
            cdf=lambda position: 1.0 - gamma_cdf(concentration, _times_exp(scale, -position)),
            log_density=lambda position: _log_gamma(concentration, np.log(scale / concentration) - position),
            back=np.exp,
        )
    if isinstance(distribution, DirichletDistribution):
        rest, own = distribution.concentration.T
        return Coordinate(
            centre=np.log(own / rest),
            width=np.sqrt(1.0 / own + 1.0 / rest),
            cdf=lambda position: beta_cdf(own, rest, position),
            log_density=lambda position: _log_beta(own, rest, position),
            back=_probability,
        )
    raise TypeError(type(distribution).__name__)


def widened(distribution: Distribution, variance: Floats) -> Distribution:
    """Weaken distributions so that their variances on the line rise by this much (n,)."""
    if isinstance(distribution, NormalDistribution):
        return replace(distribution, scale=np.sqrt(distribution.scale**2 + variance))
    kept = 1.0 / (1.0 + variance / coordinate_of(distribution).width ** 2)
    if isinstance(distribution, GammaDistribution):
        return replace(
            distribution, concentration=kept * distribution.concentration, rate=kept * distribution.rate
        )
    if isinstance(distribution, InverseGammaDistribution):
        return replace(
            distribution, concentration=kept * distribution.concentration, scale=kept * distribution.scale
        )
    if isinstance(distribution, DirichletDistribution):
        return replace(distribution, concentration=kept[:, None] * distribution.concentration)
    raise TypeError(type(distribution).__name__)


def _normal(distribution: NormalDistribution) -> Coordinate:
    from scipy.special import ndtr  # noqa: PLC0415 - slow to import

    return Coordinate(
        centre=distribution.loc,
        width=distribution.scale,
        cdf=lambda position: np.asarray(ndtr((position - distribution.loc) / distribution.scale)),
        log_density=lambda position: (
            -0.5 * ((position - distribution.loc) / distribution.scale) ** 2
            - np.log(distribution.scale)
            - 0.5 * np.log(2.0 * np.pi)
        ),
        back=lambda position: position,
    )


def _log_gamma(concentration: Floats, distance: Floats) -> Floats:
    """Log density of the logarithm of a gamma at this distance from its mode: large numbers cancel."""
    with np.errstate(over="ignore"):
        deviance = np.expm1(distance) - distance
    return _log_height(concentration) - concentration * deviance


def _log_beta(own: Floats, rest: Floats, position: Floats) -> Floats:
    """Log density of the logit of a beta, relative to that at its mode."""
    distance = position - np.log(own / rest)
    p, q = own / (own + rest), rest / (own + rest)
    height = _log_height(own) + _log_height(rest) - _log_height(own + rest)
    with np.errstate(over="ignore", divide="ignore"):
        below = own * np.log1p(q * np.expm1(-distance))
        return height - below - rest * np.log1p(p * np.expm1(distance))


def _times_exp(factor: Floats, position: Floats) -> Floats:
    """Return a factor times exp(place); infinite beyond the largest number, which is as it should be."""
    with np.errstate(over="ignore"):
        return factor * np.exp(position)


def _probability(logit: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-logit))


def _log_height(concentration: Floats) -> Floats:
    """Return a log a - a - log gamma(a)."""
    from scipy.special import gammaln  # noqa: PLC0415 - slow to import

    a = np.maximum(concentration, 1e-300)
    large = np.maximum(a, 100.0)
    series = 0.5 * np.log(large / (2.0 * np.pi)) - 1.0 / (12.0 * large) + 1.0 / (360.0 * large**3)
    small = np.minimum(a, 100.0)
    exact = small * np.log(small) - small - gammaln(small)
    return np.where(a < 100.0, exact, series)


def gamma_cdf(concentration: Floats, value: Floats) -> Floats:
    """Probability that a standard gamma is below a value."""
    from scipy.special import gammainc, ndtr  # noqa: PLC0415 - slow to import

    a, x = np.maximum(concentration, _LARGE), np.maximum(value, 1e-300)
    half = a - 0.5
    deviance = 2.0 * half * _excess((x - half) / half)
    distance = x - a + 1.0 / 3.0 - 0.02 / a
    result: Floats = ndtr(distance * _root_over(deviance, x - half, np.sqrt(half)))
    small = np.flatnonzero(concentration < _LARGE)
    result[small] = gammainc(concentration[small], value[small])
    return result


def beta_cdf(own: Floats, rest: Floats, logit: Floats) -> Floats:
    """Probability that a beta is below the probability with this logit."""
    from scipy.special import betainc, ndtr  # noqa: PLC0415 - slow to import

    p, q = _probability(logit), _probability(-logit)
    a, b = np.maximum(own, _LARGE), np.maximum(rest, _LARGE)
    n = a + b - 1.0
    s, t = a - 0.5, b - 0.5
    gap = s * q - t * p
    deviance = 2.0 * (s * _excess(-gap / s) + t * _excess(gap / t)) / (1.0 + 1.0 / (6.0 * n))
    distance = a - 1.0 / 3.0 - (n + 1.0 / 3.0) * p + 0.02 * (q / a - p / b + (q - 0.5) / (n + 1.0))
    result: Floats = ndtr(-distance * _root_over(deviance, gap, np.sqrt(n * p * q)))
    small = np.minimum(own, rest) < _LARGE
    low, high = np.flatnonzero(small & (p <= 0.5)), np.flatnonzero(small & (p > 0.5))
    result[low] = betainc(own[low], rest[low], p[low])
    result[high] = 1.0 - betainc(rest[high], own[high], q[high])
    return result


def _excess(x: Floats) -> Floats:
    """Return x - log(1 + x)."""
    with np.errstate(divide="ignore"):
        return np.where(np.abs(x) < 1e-4, x * x * (0.5 - x / 3.0), x - np.log1p(np.maximum(x, -1.0)))


def _root_over(deviance: Floats, gap: Floats, scale: Floats) -> Floats:
    """Root of a deviance over the gap that it is of, and its limit where the gap vanishes."""
    near = np.abs(gap) < 1e-9 * scale
    return np.where(near, 1.0 / scale, np.sqrt(deviance) / np.where(near, 1.0, np.abs(gap)))

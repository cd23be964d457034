r"""The share of a model's records beyond public bounds, and where clipping moves its parameters.

With ``m(theta)`` the mean of T and ``c(theta)`` that of T clipped, posteriors of clipped records tend to the
parameter that solves ``m(theta') = c(theta)``. The shift ``theta' - theta`` is exact, not of first order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Floats


_ROOT_TWO_PI = np.sqrt(2.0 * np.pi)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What lies beyond the bounds under given parameters, and what clipping it does.

    Attributes
    ----------
    share : ndarray, float64
        Of records beyond the bounds, 0 to 1.
    shifts : tuple of ndarray, float64
        What clipping adds to each parameter in the limit of many records, in the parameter's unit.
    """

    share: Floats
    shifts: tuple[Floats, ...]


def gamma_rate_outside(rate: Floats, upper: float, shape: float = 1.0) -> Outside:
    r"""Return what is above ``upper`` where :math:`T \sim \mathrm{Gamma}(k, r)`, of the rate.

    The mean k / r loses a share :math:`d = Q(k + 1, r u) - (r u / k) Q(k, r u)`: r becomes r / (1 - d).
    """
    share, lost = _gamma_lost(rate * upper, shape)
    return Outside(share=share, shifts=(rate * lost / (1.0 - lost),))


def gamma_scale_outside(scale: Floats, upper: float, shape: float = 1.0) -> Outside:
    """Return what is above ``upper`` where T / s is a unit gamma variable of mean `shape`, of the scale s."""
    share, lost = _gamma_lost(upper / scale, shape)
    return Outside(share=share, shifts=(-scale * lost,))


def poisson_outside(rate: Floats, upper: float) -> Outside:
    r"""Return what is above C: :math:`E(X - C)^+ = \lambda P(X \ge C) - C P(X > C)`."""
    from scipy.special import pdtrc

    share = np.asarray(pdtrc(upper, rate), dtype=np.float64)
    excess = rate * np.asarray(pdtrc(upper - 1.0, rate), dtype=np.float64) - upper * share
    return Outside(share=share, shifts=(-excess,))


def failures_outside(probability: Floats, upper: float, successes: float = 1.0) -> Outside:
    r"""Return what is above C failures before r successes.

    .. math:: E(X - C)^+ = \mu P(X' \ge C) - C P(X > C), \quad \mu = r (1 - p) / p

    with X' before r + 1 successes; a mean m stands for the probability r / (r + m).
    """
    from scipy.special import betainc

    mean = successes * (1.0 - probability) / probability
    share = np.asarray(betainc(upper + 1.0, successes, 1.0 - probability))
    excess = mean * np.asarray(betainc(upper, successes + 1.0, 1.0 - probability)) - upper * share
    return Outside(share=share, shifts=(successes / (successes + mean - excess) - probability,))


def normal_outside(mean: Floats, variance: Floats, lower: float, upper: float) -> Outside:
    """Return what is outside of both bounds, and the shifts of mean and variance."""
    from scipy.special import ndtr

    sd = np.sqrt(variance)
    low, high = (lower - mean) / sd, (upper - mean) / sd
    below, above = np.asarray(ndtr(low)), np.asarray(ndtr(-high))
    low_density, high_density = _density(low), _density(high)
    first = low * below + high * above + low_density - high_density
    # What clipping takes from the mean of z^2, so that nothing is taken from 1.
    second = (low**2 - 1.0) * below + (high**2 - 1.0) * above + low * low_density - high * high_density
    return Outside(share=below + above, shifts=(sd * first, variance * (second - first**2)))


def _gamma_lost(reach: Floats, shape: float) -> tuple[Floats, Floats]:
    """Return P(T > u) and E(T - u)^+ / E T, for a unit gamma distribution."""
    from scipy.special import gammaincc

    share = np.asarray(gammaincc(shape, reach), dtype=np.float64)
    above = np.asarray(gammaincc(shape + 1.0, reach), dtype=np.float64)
    return share, above - reach / shape * share


def _density(z: Floats) -> Floats:
    density: Floats = np.exp(-(z**2) / 2.0) / _ROOT_TWO_PI
    return density

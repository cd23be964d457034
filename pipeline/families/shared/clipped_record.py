r"""One record as the public bounds leave it: its chances, the share beyond bounds, the shift of parameters.

With ``m(theta)`` the mean of T and ``c(theta)`` that of T clipped, posteriors of clipped records tend to the
parameter that solves ``m(theta') = c(theta)``. The shift ``theta' - theta`` is exact, not of first order.

A gamma variable clipped at t is put on a lattice of equal steps: every value stands as the two lattice values
about it, by shares that leave its mean as it is. With :math:`G(t) = E \min(T, t)` and steps of length h, the
chances of 0, h, 2 h, ... are

.. math::
    1 - \frac{G(h)}{h}, \quad \frac{-G((j - 1) h) + 2 G(j h) - G((j + 1) h)}{h}, \quad
    \frac{G(R h) - G((R - 1) h)}{h}.

What that adds to the variance of a record is at most a quarter of a squared step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats

LARGEST_REACH = 1024
"""Above it one record has too many values to be quick: clipping is not modelled but warned of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedRecord:
    """The chances of one record's T between its bounds, in equal steps.

    Parameters
    ----------
    reach : callable
        The constants -> R: T's bounds are 0 and R steps.
    chances : callable
        The parameter, (n,), the constants, R -> chances of 0, 1, ... R steps, (n, R + 1).
    is_exact : bool
        Whether T has these values, as counts have; else each T stands as the two about it, by shares that
        keep its mean, and fewer steps do where the noise is wide.
    """

    reach: Callable[[Constants], int]
    chances: Callable[[Floats, Constants, int], Floats]
    is_exact: bool

    def can_be_modelled(self, constants: Constants) -> bool:
        """Whether its lattice is short enough."""
        return self.reach(constants) <= LARGEST_REACH


def counting(chances: Callable[[Floats, Constants], Floats]) -> ClippedRecord:
    """Return that of a count clipped to ``0..upper``: its own values."""
    return ClippedRecord(
        reach=lambda constants: int(constants.upper or 0),
        chances=lambda parameter, constants, _reach: chances(parameter, constants),
        is_exact=True,
    )


_STEPS = 64
"""Of a gamma variable of a shape up to ``_NARROW``."""
_NARROW = 8.0
"""From this shape on a variable is narrower beside its mean, by the root of the shape, and so are steps."""
_LEAST = 1e-300
_RATES = 1e-100, 1e100
"""Of a step: beyond them all records are at an end."""


def steps_of_gamma(shape: float, most: int) -> int:
    """Return how many steps keep a clipped variable's variance to some tenth of a percent, at most `most`."""
    return min(math.ceil(_STEPS * math.sqrt(max(shape / _NARROW, 1.0))), most)


def clipped_gamma(rate: Floats, upper: float, shape: float, steps: int) -> Floats:
    r"""Return the chances of steps of :math:`\min(T, u)`, T of a gamma distribution: (n_rates, steps + 1)."""
    from scipy.special import gammainc, gammaincc

    number = np.arange(1.0, steps + 1.0)
    with np.errstate(over="ignore"):
        of_step = np.clip(rate * (upper / steps), *_RATES)[:, None]
    place, mean = of_step * number, shape / of_step
    # E min(T, t) and E (T - t)^+ in steps: each is precise where it is the small one of the two.
    beyond = gammaincc(shape, place)
    below = mean * gammainc(shape + 1.0, place) + number * beyond
    above = np.maximum(mean * gammaincc(shape + 1.0, place) - number * beyond, 0.0)
    none = np.zeros_like(of_step)
    by_below = -np.diff(np.concatenate([none, below], axis=1), 2, axis=1)
    by_above = np.diff(np.concatenate([mean, above], axis=1), 2, axis=1)
    inner = np.where(place[:, :-1] > shape, by_above, by_below)
    last = np.diff(np.concatenate([none, below], axis=1)[:, -2:], axis=1)
    chances = np.concatenate([1.0 - below[:, :1], inner, last], axis=1)
    # Above 0, so that no tilt to one end leaves nothing.
    np.maximum(chances, _LEAST, out=chances)
    chances /= np.sum(chances, axis=1, keepdims=True)
    return chances


def clipped_poisson(rate: Floats, upper: int) -> Floats:
    r"""Return :math:`P(\min(X, C) = x)` of Poisson counts, (n_rates, upper + 1)."""
    from scipy.special import gammaln, pdtrc, xlogy

    count = np.arange(float(upper))
    mean = rate[:, None]
    below = np.exp(xlogy(count, mean) - mean - gammaln(count + 1.0))
    return np.concatenate([below, np.asarray(pdtrc(upper - 1.0, mean))], axis=1)


def clipped_failures(probability: Floats, upper: int, successes: float = 1.0) -> Floats:
    r"""Return :math:`P(\min(X, C) = x)` of failures before r successes, (n_probabilities, upper + 1)."""
    from scipy.special import betainc, gammaln, xlog1py, xlogy

    count = np.arange(float(upper))
    chance = probability[:, None]
    ways = gammaln(count + successes) - gammaln(successes) - gammaln(count + 1.0)
    below = np.exp(ways + xlogy(successes, chance) + xlog1py(count, -chance))
    return np.concatenate([below, np.asarray(betainc(float(upper), successes, 1.0 - chance))], axis=1)


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

r"""Draws of priors of several columns by named parameters; and whether such a prior is proper.

Model. A log density f of named parameters is one with respect to their own units, and may integrate to
infinity. With a distribution h that has the tails of Cauchy in coefficients and of the exponential of
Student's t in the residuals' spread,

.. math:: \int e^f = \mathrm{E}_h[e^f / h], \qquad (1)

whose weights have a tail of shape k: at 1 and above the integral diverges. Others have the default prior
given the named ones.

Symbols:

- k: ``shape``; h: ``_Broad``

Method. h is a sum of a broad part and one that is fitted to the draws that count, four times; 100,000 draws.
A prior with k above .7 is refused, and one of which fewer than 400 draws count. Means and covariances are
drawn from the default prior itself, but that half of the standard deviations is broad in the logarithm: of
these a prior with farther tails is refused as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.ask.inference.named_columns import ColumnsPrior, RegressionPrior, resolved
from suffice.pipeline.math.distributions import spread_deviations
from suffice.pipeline.math.distributions.reweighted import (
    FEWEST_EFFECTIVE,
    LARGEST_SHAPE,
    effective,
    resampled,
    smoothed,
)
from suffice.pipeline.math.priors.log_prior import LogPrior

if TYPE_CHECKING:
    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.math.priors.coefficients import Coefficients
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats

_DRAWS, _ROUNDS = 100_000, 4
_FREEDOM = 2.0
_FARTHEST, _FAR, _LEFT_OUT = 300.0, 100.0, 1e-3
"""Logs of spreads that are looked at, and beyond which no more than such a share of a proper prior is."""
_SPREAD = 3.0
"""Of the log of the residuals' standard deviation, in nats."""
_BROAD = 2.0
"""How far below the half range the log of a standard deviation is drawn, and twice how widely, in nats."""


def draws_of_prior(
    prior: LogPrior | Coefficients, family: Family, constants: Constants, size: int, rng: np.random.Generator
) -> Floats:
    """Draw parameters from a prior, a row each, as ``Family.truth`` does from the default one.

    Raises
    ------
    PriorError
        Where it cannot be told from an improper one.
    """
    of = resolved(family, prior, constants)
    if isinstance(of, ColumnsPrior):
        drawn: Floats = family.truth(family.default_prior(constants), constants, _DRAWS, rng)
        drawn, log_broad = _broadened(of, drawn, rng)
        log_weight = _log_weight_of_columns(of, drawn) + log_broad
        chosen: Floats = drawn[_chosen(prior, log_weight, size, rng)]
        return chosen
    places = of.places(of.named)
    if isinstance(prior, LogPrior):
        theta, log_weight = _weighed(of, rng)
        theta = theta[_chosen(prior, log_weight, size, rng)]
        beta, spread = theta[:, : len(places)], theta[:, len(places) :]
    else:
        beta = np.column_stack(
            [np.empty((size, 0)), *(of.parts[name].sample(size, rng) for name in of.named)]
        )
        spread = of.parts[of.spread].sample(size, rng)[:, None] if of.spread else np.empty((size, 0))
    variance = None if not of.spread else spread[:, 0] ** (2 if of.spread == "sd" else 1)
    whole, variance = of.reference.complete(places, beta, variance, rng)
    return np.column_stack([whole, variance])


def require_proper(prior: LogPrior, family: Family, constants: Constants) -> None:
    """Refuse a prior that cannot be told from an improper one.

    Raises
    ------
    PriorError
    """
    draws_of_prior(prior, family, constants, 1, np.random.default_rng(0))


def _chosen(prior: object, log_weight: Floats, size: int, rng: np.random.Generator) -> Any:
    """Return which draws stand for the prior."""
    if np.max(log_weight) == -np.inf:
        message = f"prior {prior}: none of {len(log_weight)} draws has a density: state a narrower support"
        raise PriorError(message)
    weight, shape = smoothed(log_weight)
    if shape > LARGEST_SHAPE:
        message = (
            f"prior {prior} is improper, or cannot be told from an improper one: the tail of its density has "
            f"a shape of {shape:.2f}, and above {LARGEST_SHAPE} nothing can rest on it; state a support, or "
            "a density that falls off"
        )
        raise PriorError(message)
    if effective(weight) < FEWEST_EFFECTIVE:
        message = (
            f"prior {prior}: it is so narrow that it cannot be told from an improper one: of "
            f"{len(log_weight)} draws {effective(weight):.0f} count; state a support near it, or "
            "suffice.Coefficients"
        )
        raise PriorError(message)
    return rng.permutation(resampled(weight, size, rng))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Broad:
    """Independent Student's t of coordinates: half of the draws broad, half where the prior was seen."""

    centre: Floats
    width: Floats
    seen: Floats
    seen_width: Floats

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        broad = self.centre + self.width * rng.standard_t(1.0, (size, len(self.centre)))
        near = self.seen + self.seen_width * rng.standard_t(_FREEDOM, (size, len(self.centre)))
        return np.where(rng.random((size, 1)) < 0.5, broad, near)

    def log_density(self, at: Floats) -> Floats:
        from scipy import stats

        broad = stats.t(1.0, self.centre, self.width).logpdf(at).sum(axis=1)
        near = stats.t(_FREEDOM, self.seen, self.seen_width).logpdf(at).sum(axis=1)
        return np.asarray(np.logaddexp(broad, near) - math.log(2.0))


def _weighed(of: RegressionPrior, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draws of the named parameters, (n, a), a spread last, with logs of weights.

    Raises
    ------
    PriorError
        Where a spread has mass beyond what numbers tell.
    """
    places, reference = of.places(of.named), of.reference
    centre = reference.shift[places]
    width = np.linalg.norm(reference.matrix[places], axis=1)
    power = {"sd": 1.0, "variance": 2.0}.get(of.spread)
    if power is not None:
        centre = np.append(centre, power * (math.log(reference.outcome) - _SPREAD))
        width = np.append(width, power * _SPREAD)
    broad = _Broad(centre=centre, width=width, seen=centre, seen_width=width)
    for turn in range(_ROUNDS + 1):
        at = broad.sample(_DRAWS, rng)
        theta, log_slope = at.copy(), np.zeros(_DRAWS)
        if power is not None:
            # d e^u = e^u du; beyond e^300 there is nothing that numbers tell.
            log_slope = np.where(np.abs(at[:, -1]) < _FARTHEST, at[:, -1], -np.inf)
            theta[:, -1] = np.exp(np.clip(at[:, -1], -_FARTHEST, _FARTHEST))
        log_weight = _log_prior(of, theta) + log_slope - broad.log_density(at)
        if turn < _ROUNDS and np.max(log_weight) > -np.inf:
            weight = np.exp(log_weight - np.max(log_weight))
            weight = weight / weight.sum()
            seen = weight @ at
            # No narrower than a tenth of before: few draws say little of how wide a prior is.
            sd = np.sqrt(weight @ (at - seen) ** 2)
            broad = _Broad(
                centre=centre, width=width, seen=seen, seen_width=np.maximum(sd, broad.seen_width / 10.0)
            )
    if power is not None and np.max(log_weight) > -np.inf:
        weight = np.exp(log_weight - np.max(log_weight))
        if weight @ (np.abs(at[:, -1]) > _FAR) > _LEFT_OUT * weight.sum():
            message = (
                f"prior {of.prior} is improper, or cannot be told from an improper one: its integral does "
                f"not converge towards an end of {of.spread}; state a support, as "
                f"{{'{of.spread}': (0.01, 100)}}"
            )
            raise PriorError(message)
    return theta, log_weight


def _log_prior(of: RegressionPrior, theta: Floats) -> Floats:
    """Return f, of the named parameters."""
    assert isinstance(of.prior, LogPrior)  # noqa: S101 - asked of one
    names = (*of.named, *((of.spread,) if of.spread else ()))
    return of.prior(theta, names)


def _broadened(of: ColumnsPrior, drawn: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return draws of the default prior with broader standard deviations, and logs of what they weigh.

    The default prior has few that are small; they are independent of the correlations.
    """
    from scipy import stats

    mean, variance, covariance = np.split(drawn, [len(of.columns), 2 * len(of.columns)], axis=1)
    broad = stats.logistic(-_BROAD, _BROAD / 2.0)
    before = np.sqrt(variance) / of.reference.half_range
    exchanged = np.exp(broad.rvs(before.shape, random_state=rng))
    after = np.where(rng.random(before.shape) < 0.5, exchanged, before)
    # q over the mixture, both of the logarithm.
    log_q = spread_deviations.log_density(after, np.log)
    log_weight = np.sum(log_q - np.logaddexp(log_q, broad.logpdf(np.log(after))), axis=1)
    ratio = after / before
    first, second = np.triu_indices(len(of.columns), 1)
    scaled = [mean, variance * ratio**2, covariance * ratio[:, first] * ratio[:, second]]
    return np.concatenate(scaled, axis=1), log_weight


def _log_weight_of_columns(of: ColumnsPrior, drawn: Floats) -> Floats:
    """Return logs of weights of rows of means, variances and covariances of pairs."""
    return of.log_weight(*np.split(drawn, [len(of.columns), 2 * len(of.columns)], axis=1))

"""Distributions of the total of N records given the parameter, as JAX traces them.

Arrays of the parameter, of N and of totals broadcast. Counts are summed over, everything else is integrated.

The latent numbers that are summed lie in windows fixed by the released values and the noise, so that one
compiled function serves all parameters. A count lies within ``NATS`` scales of its noisy value but
for a chance of e^-NATS. Where parameters are so far from the data that the sum lives outside, the value is a
lower bound that still rises towards the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from suffice.errors import UsageError

if TYPE_CHECKING:
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Floats

NATS = 45.0
MOST_TERMS = 50_000_000
"""Of all sums together: some gigabytes, gradients included."""


def window_of_n(centre: Floats, reach: int, prior: NPrior, least: int = 0) -> tuple[Floats, Floats]:
    """Return numbers of rows about each cell's centre, and the logs of their prior: (n_cells, n_numbers)."""
    low, high = max(prior.support[0], least), prior.support[1]
    if high - low <= 2 * reach:
        n = np.broadcast_to(np.arange(low, high + 1.0), (len(centre), high - low + 1))
    else:
        first = np.maximum(low, np.minimum(np.rint(centre), high) - reach)
        n = first[:, None] + np.arange(2.0 * reach + 1.0)
    return n, log_prior_of_n(n, prior, least)


def log_prior_of_n(n: Floats, prior: NPrior, least: int = 0) -> Floats:
    """Return the log prior of numbers of rows, minus infinity below `least` and outside of its support."""
    low, high = prior.support
    inside = (n >= max(low, least)) & (n <= high)
    return np.where(inside, prior.log_prob(np.clip(n, low, high)), -np.inf)


def require_terms(terms: int) -> None:
    """Refuse sums that would not fit into memory.

    Raises
    ------
    UsageError
    """
    if terms > MOST_TERMS:
        message = (
            f"the exact likelihood would take {terms} terms, more than {MOST_TERMS}: the noise is wide. Keep "
            "fewer cells with where, or use release.posterior, whose cost does not grow with the noise"
        )
        raise UsageError(message)


_SDS = 12.0
"""Within so many standard deviations of the mean lies all but 4e-33 of a normal distribution."""


class Total(Protocol):
    """The distribution of a total given N."""

    def log_prob(self, total: Any) -> Any:
        """Log of the probability or the density of a total inside of the support."""


@runtime_checkable
class ContinuousTotal(Total, Protocol):
    """One that has a density."""

    @property
    def ends(self) -> tuple[Any, Any]:
        """Where the density is integrated from and to."""


@dataclass(frozen=True, slots=True)
class Binomial:
    """Successes among `trials`."""

    trials: Any
    probability: Any

    def log_prob(self, total: Any) -> Any:
        """Log probability of a count, minus infinity above the number of trials."""
        left = np.maximum(self.trials - total, 0.0)
        log_ways = gammaln(self.trials + 1.0) - gammaln(total + 1.0) - gammaln(left + 1.0)
        log_prob = log_ways + total * jnp.log(self.probability) + left * jnp.log1p(-self.probability)
        return jnp.where(total <= self.trials, log_prob, -jnp.inf)


@dataclass(frozen=True, slots=True)
class Poisson:
    """Events of which there are `mean` on average."""

    mean: Any

    def log_prob(self, total: Any) -> Any:
        """Log probability of a count."""
        return total * jnp.log(self.mean) - self.mean - gammaln(total + 1.0)


@dataclass(frozen=True, slots=True)
class NegativeBinomial:
    """Failures before so many successes."""

    successes: Any
    probability: Any

    def log_prob(self, total: Any) -> Any:
        """Log probability of a count."""
        log_ways = gammaln(total + self.successes) - gammaln(self.successes) - gammaln(total + 1.0)
        return log_ways + self.successes * jnp.log(self.probability) + total * jnp.log1p(-self.probability)


@dataclass(frozen=True, slots=True)
class Gamma:
    """A gamma variable of this shape and rate."""

    shape: Any
    rate: Any

    @property
    def ends(self) -> tuple[Any, Any]:
        """From 0, or far below the mean, to where the tail is ruled out."""
        rate = self.rate + jnp.zeros_like(self.shape)
        mean, sd = self.shape / rate, jnp.sqrt(self.shape) / rate
        return jnp.maximum(mean - _SDS * sd, 0.0), mean + _SDS * sd + NATS / rate

    def log_prob(self, total: Any) -> Any:
        """Log density."""
        positive = jnp.maximum(total, 1e-300)
        log_power = (self.shape - 1.0) * jnp.log(positive)
        return self.shape * jnp.log(self.rate) - gammaln(self.shape) + log_power - self.rate * positive


@dataclass(frozen=True, slots=True)
class Normal:
    """A normal variable."""

    mean: Any
    variance: Any

    @property
    def ends(self) -> tuple[Any, Any]:
        """Far on either side of the mean."""
        sd = jnp.sqrt(self.variance) + jnp.zeros_like(self.mean)
        return self.mean - _SDS * sd, self.mean + _SDS * sd

    def log_prob(self, total: Any) -> Any:
        """Log density."""
        sd = jnp.sqrt(self.variance)
        return -(((total - self.mean) / sd) ** 2 + math.log(2.0 * math.pi)) / 2.0 - jnp.log(sd)

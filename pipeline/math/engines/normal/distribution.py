"""Means and variances behind latent sums, as a posterior shows them: in the unit of the column."""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGammaDistribution

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from suffice.pipeline.math.engines.normal.posterior import MomentPosterior
    from suffice.typing import Cells, Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsDistribution:
    """Means and variances behind latent sums, as ``centre + half_range`` times what the posterior holds.

    Attributes
    ----------
    posterior : MomentPosterior
        In half ranges about the centre.
    centre, half_range : float
        In the column's unit.
    names : (str, str)
        The mean's and the variance's.
    """

    posterior: MomentPosterior
    centre: float
    half_range: float
    names: tuple[str, str] = ("mean", "variance")

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.names

    @property
    def log_evidence(self) -> Floats:
        """Log densities of the noisy statistics under the prior, (n_cells,), up to one constant."""
        return self.posterior.log_evidence

    def take(self, cells: Cells) -> Self:
        """Return the distribution of some cells, ascending."""
        return replace(self, posterior=self.posterior.take(cells))

    def mean(self, parameter: str) -> Floats:
        """Means."""
        if parameter == self.names[0]:
            return self.centre + self.half_range * self.posterior.mean[:, 0]
        return self.half_range**2 * self.posterior.mean[:, 1]

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        if parameter == self.names[0]:
            return self.half_range * self.posterior.sd[:, 0]
        return self.half_range**2 * self.posterior.sd[:, 1]

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Marginal quantiles, from the integrals: they rest on no draws."""
        values = self.posterior.quantiles(self.names.index(parameter), q)
        if parameter == self.names[0]:
            return self.centre + self.half_range * values
        return self.half_range**2 * values

    def density(self, parameter: str, points: Floats) -> Floats:
        """Marginal densities at points (n_cells, n_points), from the integrals."""
        if parameter == self.names[0]:
            inside = (points - self.centre) / self.half_range
            return self.posterior.marginal(0).density(inside) / self.half_range
        square = self.half_range**2
        return self.posterior.marginal(1).density(points / square) / square

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        mean, variance = self.posterior.sample(draws, rng)
        return {
            self.names[0]: self.centre + self.half_range * mean,
            self.names[1]: self.half_range**2 * variance,
        }

    def prior_distribution(self) -> NormalInverseGammaDistribution:
        """The prior, which is no mixture, as the distribution of one cell."""
        prior = self.posterior.noisy.prior
        return self._distribution(prior.loc, prior.precision, prior.concentration, prior.scale)

    def mixture(self, draws: int, rng: np.random.Generator) -> NormalInverseGammaDistribution:
        """Conjugate distributions given draws of the latent sums, draw by draw, then by cell."""
        given = self.posterior.sample_given(draws, rng)
        return self._distribution(given.loc, given.precision, given.concentration, given.scale)

    def _distribution(
        self, loc: Floats, precision: Floats, concentration: Floats, scale: Floats
    ) -> NormalInverseGammaDistribution:
        """A distribution in half ranges about the centre, in the column's unit."""
        return NormalInverseGammaDistribution(
            loc=(self.centre + self.half_range * loc).ravel(),
            precision=precision.ravel(),
            concentration=concentration.ravel(),
            scale=(self.half_range**2 * scale).ravel(),
            names=self.names,
        )

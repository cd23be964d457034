"""Probabilities of categories behind latent counts, as a posterior shows them."""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.pipeline.math.distributions.dirichlet import DirichletDistribution
from suffice.pipeline.math.distributions.piecewise import Probabilities

if TYPE_CHECKING:
    import numpy as np

    from suffice.pipeline.math.engines.multinomial.posterior import CountPosterior
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True)
class CountsDistribution(Probabilities):
    """Probabilities of all categories behind latent counts."""

    posterior: CountPosterior

    @property
    def log_evidence(self) -> Floats:
        """Log probabilities of the noisy counts under the prior, (n_cells,), up to one constant."""
        return self.posterior.log_evidence

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Marginal densities at points (n_cells, n_categories, n_points), worked out cell by cell."""
        from suffice.pipeline.math.engines.multinomial.marginals import marginal_densities  # few ask

        return marginal_densities(self.posterior.counts, points)

    def prior_distribution(self) -> DirichletDistribution:
        """The prior, as the distribution of one cell."""
        return DirichletDistribution(concentration=self.posterior.prior_concentration[None])

    def mixture(self, draws: int, rng: np.random.Generator) -> DirichletDistribution:
        """Dirichlet distributions given draws of the latent counts, draw by draw, then by cell."""
        counts = self.posterior.sample_counts(draws, rng)
        concentration = self.posterior.prior_concentration + counts.reshape(-1, counts.shape[-1])
        return DirichletDistribution(concentration=concentration)

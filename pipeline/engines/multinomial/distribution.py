"""Probabilities of categories behind latent counts, as a posterior shows them."""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.distributions.dirichlet import DirichletDistribution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.engines.multinomial.posterior import CountPosterior
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsDistribution:
    """Probabilities of all categories behind latent counts."""

    posterior: CountPosterior

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return ("probability",)

    @property
    def log_evidence(self) -> Floats:
        """Log probabilities of the noisy counts under the prior, (n_cells,), up to one constant."""
        return self.posterior.log_evidence

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self.posterior.mean

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self.posterior.sd

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Marginal quantiles of independent draws."""
        drawn = np.moveaxis(self.sample(draws, rng)[parameter], 0, -1)
        return np.moveaxis(np.quantile(drawn, q, axis=-1, overwrite_input=True), 0, -1)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        return {"probability": self.posterior.sample(draws, rng)}

    def prior_distribution(self) -> DirichletDistribution:
        """The prior, as the distribution of one cell."""
        return DirichletDistribution(concentration=self.posterior.prior_concentration[None])

    def mixture(self, draws: int, rng: np.random.Generator) -> DirichletDistribution:
        """Dirichlet distributions given draws of the latent counts, draw by draw, then by cell."""
        counts = self.posterior.sample_counts(draws, rng)
        concentration = self.posterior.prior_concentration + counts.reshape(-1, counts.shape[-1])
        return DirichletDistribution(concentration=concentration)

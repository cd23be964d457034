r"""Posteriors under a prior that is a mixture: those of its components, weighed by their evidence.

The prior is :math:`\sum_j w_j p_j(\theta)`. With :math:`p(y \mid j)` the evidence of component j,

.. math::
    p(\theta \mid y) = \sum_j s_j \, p_j(\theta \mid y), \qquad
    s_j = \frac{w_j \, p(y \mid j)}{\sum_i w_i \, p(y \mid i)} \qquad (1)

``share`` holds :math:`s_j`, (n_laws, n_cells).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.composite import Draws
from suffice.pipeline.math.distributions.distribution import Distribution
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGammaDistribution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.priors.mixtures import Mixture
    from suffice.typing import Cells, Floats

    Entries: TypeAlias = NDArray[np.int64]


@runtime_checkable
class DistributionWithEvidence(Distribution, Protocol):
    """A distribution that says how probable the release is under its prior."""

    @property
    def log_evidence(self) -> Floats:
        """Log probabilities or densities, (n_cells,), but for a constant that no prior changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PosteriorMixture(Draws):
    """Components' posteriors, weighted; made by ``mixture_distribution``.

    Attributes
    ----------
    distributions : tuple of Distribution
        The components' posteriors.
    share : ndarray of shape (n_laws, n_cells), float64
        Their posterior probabilities.
    log_evidence : ndarray of shape (n_cells,), float64
        Log of the components' evidence, averaged by prior weight: up to the constant that theirs have.
    """

    distributions: tuple[Distribution, ...]
    share: Floats
    log_evidence: Floats

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.distributions[0].parameters

    def mean(self, parameter: str) -> Floats:
        """Means."""
        means = np.stack([distribution.mean(parameter) for distribution in self.distributions])
        return self._average(means)

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        means = np.stack([distribution.mean(parameter) for distribution in self.distributions])
        sds = np.stack([distribution.sd(parameter) for distribution in self.distributions])
        with np.errstate(invalid="ignore"):
            # Var theta = sum_j s_j (Var_j + (mean_j - mean)^2).
            squares = sds**2 + (means - self._average(means)) ** 2
        return np.sqrt(self._average(np.where(np.isnan(squares), np.inf, squares)))

    @property
    def is_from_draws(self) -> bool:
        """Whether quantiles are those of draws: not given exact sums of a mean and a variance."""
        return not all(
            isinstance(component, NormalInverseGammaDistribution) for component in self.distributions
        )

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles: exact of a mean and a variance given exact sums, of independent draws elsewhere."""
        conjugate = [part for part in self.distributions if isinstance(part, NormalInverseGammaDistribution)]
        if len(conjugate) == len(self.distributions):
            from suffice.pipeline.math.engines.normal.marginal_quantiles import MarginalMixture

            is_variance = parameter == self.parameters[1]
            marginal = MarginalMixture.of_conjugates(conjugate, self.share, is_variance=is_variance)
            return marginal.quantiles(q, self.share.shape[1])
        return Draws.quantiles(self, parameter, q, draws, rng)

    def cdf(self, points: Floats) -> Floats:
        """Distribution functions of one parameter at points (n_cells, n_points)."""
        parts: Any = self.distributions
        return self._average(np.stack([part.cdf(points) for part in parts]))

    def span(self, level: float) -> Floats:
        """Ends beyond which at most about this much lies on either side, of one parameter: (n_cells, 2).

        The outermost quantiles of components, but for those whose share is smaller still.
        """
        (name,) = self.parameters
        rng = np.random.default_rng(0)  # quantiles of one parameter rest on no draws
        ends = np.stack([part.quantiles(name, [level, 1.0 - level], 0, rng) for part in self.distributions])
        counts = self.share > level
        low = np.min(np.where(counts, ends[..., 0], np.inf), axis=0)
        high = np.max(np.where(counts, ends[..., 1], -np.inf), axis=0)
        return np.stack([low, high], axis=1)

    def take(self, cells: Cells) -> Self:
        """Return the distribution of some cells, ascending."""
        parts: Any = self.distributions
        return replace(
            self,
            distributions=tuple(part.take(cells) for part in parts),
            share=self.share[:, cells],
            log_evidence=self.log_evidence[cells],
        )

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Marginal densities; None where those of a component are not known."""
        parts = [distribution.density(parameter, points) for distribution in self.distributions]
        known = [part for part in parts if part is not None]
        return self._average(np.stack(known)) if len(known) == len(parts) else None

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        # A draw of the mixture (1) is one of component j, chosen with probability s_j.
        ends = np.cumsum(self.share, axis=0)
        chosen = np.sum(rng.random((draws, ends.shape[1])) > ends[:-1, None], axis=0)
        parts = [distribution.sample(draws, rng) for distribution in self.distributions]
        result = {}
        for parameter in self.parameters:
            drawn = np.stack([part[parameter] for part in parts])
            index = chosen.reshape(1, *chosen.shape, *(1,) * (drawn.ndim - 3))
            result[parameter] = np.take_along_axis(drawn, index, axis=0)[0]
        return result

    def _average(self, values: Floats) -> Floats:
        share = self.share.reshape(*self.share.shape, *(1,) * (values.ndim - 2))
        with np.errstate(invalid="ignore"):
            parts = np.where(share > 0.0, share * values, 0.0)
        average: Floats = np.sum(parts, axis=0)
        return average


def mixture_distribution(prior: Mixture, distributions: Sequence[Distribution]) -> PosteriorMixture:
    """Weigh the components' posteriors by prior weight and evidence.

    Raises
    ------
    PriorError
        Where the family's distribution does not say its evidence.
    """
    known = [
        distribution for distribution in distributions if isinstance(distribution, DistributionWithEvidence)
    ]
    if len(known) < len(distributions):
        message = "this family takes no mixture of priors yet: give one of its components"
        raise PriorError(message)
    return weighed(prior, distributions, [distribution.log_evidence for distribution in known])


def weighed(
    prior: Mixture, distributions: Sequence[Distribution], log_evidence: Sequence[Floats]
) -> PosteriorMixture:
    """Weigh the components' posteriors by prior weight and the given evidence, each (n_cells,)."""
    # (1), in logarithms; the denominator is the evidence of the mixture.
    log_share = np.log(np.array(prior.weights))[:, None] + np.stack(log_evidence)
    total = np.logaddexp.reduce(log_share)
    return PosteriorMixture(
        distributions=tuple(distributions),
        share=np.exp(log_share - total),
        log_evidence=total - np.log(np.sum(np.array(prior.weights))),
    )

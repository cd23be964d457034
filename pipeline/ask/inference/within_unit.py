"""Posteriors where rows of one unit are alike: those of independent rows, widened by their design effect.

The posterior of independent rows is one of conjugate distributions given the latent sums. Each of these is
taken of the likelihood to the power 1 / d: n rows count as n / d. The latent sums stay as likely as they
were, and so does the noise. Mean and variance are both widened by the design effect of the mean: rows whose
units differ by a normal shift say more of the variance than that, so its intervals are wide, not narrow.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.design_effect import design_effects
from suffice.pipeline.math.engines.normal.distribution import MomentsDistribution
from suffice.pipeline.math.engines.one_sum.posterior import LatentSumPosterior
from suffice.pipeline.math.engines.posterior_mixture import PosteriorMixture

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.released.within_unit import NoisyProducts
    from suffice.typing import Floats


def widened(distribution: Distribution, products: NoisyProducts, name: str) -> tuple[Distribution, Floats]:
    """Return a distribution of independent rows as one of rows of units, and mean design effects (n_cells,).

    Raises
    ------
    UsageError
        Where the distribution is not one given latent sums: under a density.
    """
    if isinstance(distribution, PosteriorMixture):
        parts = [widened(part, products, name) for part in distribution.distributions]
        mixed = dataclasses.replace(distribution, distributions=tuple(part for part, _ in parts))
        return mixed, np.sum(distribution.share * np.stack([effects for _, effects in parts]), axis=0)
    if isinstance(distribution, LatentSumPosterior):
        n, total = distribution.latent_means
        mean = (total + 0.5) / (n + 1.0)
        levels = design_effects(products, n, mean, mean * (1.0 - mean))
        return distribution.tempered(levels), levels.mean(axis=1)
    if isinstance(distribution, MomentsDistribution):
        posterior = distribution.posterior
        mean, variance = (posterior.quantiles(parameter, [0.5])[:, 0] for parameter in (0, 1))
        levels = design_effects(products, posterior.n, (1.0 + mean) / 2.0, variance / 4.0)
        tempered = dataclasses.replace(posterior, levels=levels)
        return dataclasses.replace(distribution, posterior=tempered), levels.mean(axis=1)
    message = (
        f"{name}: what rows of one unit have in common widens posteriors under conjugate priors and mixtures "
        "of them only: give such a prior, or take rows for independent, as within_unit='ignored'"
    )
    raise UsageError(message)


def refuse_within_unit(statistic: NoisyStatistic, what: str) -> None:
    """Refuse a statistic that is released with products of its units, where they cannot be made use of.

    Raises
    ------
    UsageError
    """
    if statistic.plan.within_unit is not None:
        message = (
            f"{statistic.plan.name} was released with within_unit: true; {what} would take rows of one unit "
            "for independent, and its intervals would be too narrow: ask for its posterior"
        )
        raise UsageError(message)

r"""What judging a posterior by its priors and by its release asks of it.

Its evidence is the probability of everything that was released, noise included, under the priors:

.. math:: p(y) = \sum_x p(x) \prod_j \frac{1 - e^{-1/b}}{1 + e^{-1/b}} e^{-|y_j - x_j| / b}

with x the exact components, b the noise's scale and y the released integers. Engines that sum or integrate
everything latent know it but for the noise's constant. Engines that take totals for real numbers give the
density at the released integers, whose lattice is far finer than the noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.math.distributions.cell_blocks import blocks_of
from suffice.pipeline.math.distributions.on_grid import GriddedDistribution
from suffice.pipeline.math.distributions.within_limits import unrestricted
from suffice.pipeline.math.engines.combined import PosteriorMixture
from suffice.pipeline.math.engines.multinomial.posterior import CountsDistribution
from suffice.pipeline.math.engines.normal.posterior import MomentsDistribution
from suffice.pipeline.math.engines.one_sum.posterior import LatentSumPosterior

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.ask.inference.predictive import Model
    from suffice.pipeline.math.distributions.prior import Prior
    from suffice.pipeline.math.priors.mixtures import AnyDensity, Mixture
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.block import Parameters
    from suffice.typing import Floats, Mask


def log_evidence_of(posterior: Judged) -> Floats:
    """Return the log probability of the released values in every cell, (n_cells,).

    Raises
    ------
    UsageError
        Where the posterior is not worked out with its normaliser.
    """
    reason = _reason_against(posterior)
    if reason:
        message = (
            f"{posterior.statistic} is {posterior.family}, and this posterior has no evidence: {reason}; "
            'the documentation\'s page "How to check a prior" lists where there is one'
        )
        raise UsageError(message)
    (statistic,) = posterior.observed
    return np.concatenate([_of(block) for block in blocks_of(posterior.distribution)]) + noise_constant(
        statistic
    )


def noise_constant(statistic: NoisyStatistic) -> float:
    """Return the log of the noise's normaliser, which engines leave out of a cell's evidence."""
    constant = 0.0
    for observation in statistic.observations:
        components = observation.values.shape[1]
        constant += components * float(np.log(np.tanh(0.5 / observation.plan.scale)))
    return constant


def _of(distribution: Any) -> Floats:
    """The log evidence but for the constant of the noise."""
    distribution = unrestricted(distribution)
    log_evidence: Floats = distribution.log_evidence
    first = distribution.distributions[0] if isinstance(distribution, PosteriorMixture) else distribution
    if not isinstance(first, MomentsDistribution):
        return log_evidence
    # Of normal columns it is a density of components in records, with the constant of continuous noise.
    return log_evidence - float(np.sum(np.log(first.posterior.noisy.totals.rate / 2.0)))


def _reason_against(posterior: Judged) -> str:
    """Why there is no evidence; empty where there is one."""
    known = (LatentSumPosterior, CountsDistribution, MomentsDistribution, PosteriorMixture)
    is_known = all(
        block.log_evidence is not None if isinstance(block, GriddedDistribution) else isinstance(block, known)
        for block in map(unrestricted, blocks_of(posterior.distribution))
    )
    modelled = posterior.models_clipping
    reasons = {
        "it takes the released values for exact; ask the noise-aware one": posterior.n_prior is None,
        "it is of several disjoint data sets, pooled; ask that of each": len(posterior.observed) != 1,
        "it models clipping; leave that out (clipping ignored) where clipping is rare": modelled is not None
        and bool(modelled.any()),
        "it would take rows of one unit for independent, which they are not; to do so all the same, ask the "
        "posterior with within_unit='ignored' for its own": posterior.design_effect is not None,
        "its engine works out no normaliser under this prior": not is_known,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


class Judged(Protocol):
    """A posterior, with what it is of; attributes as in ``Posterior``."""

    @property
    def statistic(self) -> str: ...  # noqa: D102 - as in Posterior, and so below

    @property
    def family(self) -> str: ...  # noqa: D102

    @property
    def prior(self) -> Prior | Mixture | AnyDensity: ...  # noqa: D102

    @property
    def n_prior(self) -> NPrior | None: ...  # noqa: D102

    @property
    def groups(self) -> Mapping[str, list[str | int]]: ...  # noqa: D102

    @property
    def distribution(self) -> Any: ...  # noqa: D102

    @property
    def model(self) -> Model | None: ...  # noqa: D102

    @property
    def models_clipping(self) -> Mask | None: ...  # noqa: D102

    @property
    def before_clipping(self) -> bool: ...  # noqa: D102

    @property
    def constants(self) -> Parameters | None: ...  # noqa: D102

    @property
    def design_effect(self) -> Floats | None: ...  # noqa: D102

    @property
    def observed(self) -> tuple[NoisyStatistic, ...]: ...  # noqa: D102

    @property
    def parameters(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def n_groups(self) -> int: ...  # noqa: D102

    @property
    def method(self) -> str: ...  # noqa: D102

    def mean(self, parameter: str) -> Floats: ...  # noqa: D102

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]: ...  # noqa: D102

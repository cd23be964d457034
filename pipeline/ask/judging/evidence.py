r"""The evidence of a posterior.

Evidence. The probability of everything that was released, noise included, under the priors:

.. math:: p(y) = \sum_x p(x) \prod_j \frac{1 - e^{-1/b}}{1 + e^{-1/b}} e^{-|y_j - x_j| / b} \qquad (1)

with x the exact components, b the noise's scale and y the released integers. Engines that sum or integrate
everything latent know it but for the noise's constant, :math:`\tanh(1 / 2 b)` a component. Engines that take
totals for real numbers give the density at the released integers, whose lattice is far finer than the noise.

Symbols:

- x: exact components; b: ``plan.scale``, > 0, in lattice units

Method. (1) is as exact as the engine. That of regressions and of several columns is by Monte Carlo, with an
error (``column_evidence.py``): `log_evidence_of` refuses it, and `evidence_of` states both. Where the
posterior is restricted to what records within the bounds can have, so is the prior: (1) of
``bounded_prior.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.chosen_priors import predictor_prior_for
from suffice.pipeline.ask.judging.bounded_prior import log_share_gained
from suffice.pipeline.ask.judging.judged import LogEvidence
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.composite import ConjugateMixture, blocks_of
from suffice.pipeline.math.distributions.mixed import MixedDistribution
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGammaRegression
from suffice.pipeline.math.distributions.normal_inverse_wishart import NormalInverseWishart
from suffice.pipeline.math.distributions.quadrature import GriddedDistribution
from suffice.pipeline.math.distributions.reweighted import ReweightedDraws
from suffice.pipeline.math.distributions.within_limits import unrestricted
from suffice.pipeline.math.engines.one_sum.sum_posterior import LatentSumPosterior
from suffice.pipeline.math.engines.posterior_mixture import PosteriorMixture
from suffice.pipeline.terms.released.noise_distribution import require_laplace

if TYPE_CHECKING:
    from suffice.pipeline.ask.judging.judged import Judged
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


def log_evidence_of(posterior: Judged) -> Floats:
    """Return the log probability of the released values in every cell, (n_cells,).

    Where the posterior is restricted to what records within the bounds can have, so is the prior.

    Raises
    ------
    UsageError
        Where the posterior is not worked out with its normaliser.
    """
    return np.asarray(log_evidence_of_whole(posterior) + log_share_gained(posterior))


def log_evidence_of_whole(posterior: Judged) -> Floats:
    """Return the same under the prior as it is stated, whatever records within the bounds can have.

    Raises
    ------
    UsageError
        Where the posterior is not worked out with its normaliser.
    """
    _require(posterior)
    if is_estimated(posterior):
        message = (
            f"{posterior.statistic} is {posterior.family}: its evidence is an estimate with an error; "
            "ask posterior.evidence() for both, or compare_priors"
        )
        raise UsageError(message)
    (statistic,) = posterior.observed
    constant = noise_constant(statistic)
    return np.concatenate([_of(block, constant) for block in blocks_of(posterior.distribution)])


def evidence_of(posterior: Judged) -> LogEvidence:
    """Return the log evidence, and its standard error where it is an estimate.

    Raises
    ------
    UsageError
        Where there is none.
    """
    if not is_estimated(posterior):
        return LogEvidence(log=log_evidence_of(posterior), standard_error=None)
    from suffice.pipeline.ask.judging.column_evidence import evidence_of_columns  # few ask

    _require(posterior)
    (statistic,) = posterior.observed
    return evidence_of_columns(posterior, noise_constant(statistic))


def is_estimated(posterior: Judged) -> bool:
    """Return whether the evidence is worked out by Monte Carlo: of a regression or of several columns."""
    return _is_of_columns(posterior) and not _reason_against_columns(posterior)


def _is_of_columns(posterior: Judged) -> bool:
    blocks = map(unrestricted, blocks_of(posterior.distribution))
    return FAMILIES[posterior.family].region is not None and all(
        isinstance(block, ConjugateMixture) for block in blocks
    )


def _reason_against_columns(posterior: Judged) -> str:
    """Why there is no estimate of a posterior of moments; empty where there is one."""
    cone = any(
        each.plan.cone is not None for statistic in posterior.observed for each in statistic.observations
    )
    priors: list[Any] = [posterior.prior]
    if FAMILIES[posterior.family].default_predictor_prior is not None:
        priors.append(predictor_prior_for(posterior.observed[0], posterior.predictor_prior))
    conjugate = (NormalInverseWishart, NormalInverseGammaRegression)
    reasons = {
        "behind noise on a cone errors of estimates are too small": cone,
        "under priors that are spread over scales errors of estimates do not hold; state conjugate ones, of "
        "predictors too": not all(isinstance(prior, conjugate) for prior in priors),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _require(posterior: Judged) -> None:
    reason = _reason_against(posterior)
    if reason:
        message = (
            f"{posterior.statistic} is {posterior.family}, and this posterior has no evidence: {reason}; "
            'the documentation\'s page "How to check a prior" lists where there is one'
        )
        raise UsageError(message)


def noise_constant(statistic: NoisyStatistic) -> float:
    """Return the log of the noise's normaliser, which engines leave out of a cell's evidence."""
    constant = 0.0
    for observation in statistic.observations:
        require_laplace(observation.plan, "its evidence")
        components = observation.values.shape[1]
        # (1 - e^(-1/b)) / (1 + e^(-1/b)) = tanh(1 / 2 b).
        constant += components * float(np.log(np.tanh(0.5 / observation.plan.scale)))
    return constant


def _of(distribution: Any, constant: float) -> Floats:
    """The log evidence, with the constant of the noise where the engine leaves it out."""
    distribution = unrestricted(distribution)
    if isinstance(distribution, LatentSumPosterior):
        return np.asarray(distribution.log_evidence + constant)
    from suffice.pipeline.math.engines.histogram.histogram_posterior import HistogramPosterior
    from suffice.pipeline.math.engines.normal.moment_posterior import MomentsDistribution

    if isinstance(distribution, HistogramPosterior):
        return distribution.log_evidence()
    log_evidence: Floats = distribution.log_evidence + constant
    first = distribution.distributions[0] if isinstance(distribution, PosteriorMixture) else distribution
    if not isinstance(first, MomentsDistribution):
        return log_evidence
    # Of normal columns it is a density of components in records, with the constant of continuous noise.
    # Continuous noise of rate r has the density r / 2 at its centre.
    return log_evidence - float(np.sum(np.log(first.posterior.noisy.totals.rate / 2.0)))


def _reason_against(posterior: Judged) -> str:
    """Why there is no evidence; empty where there is one."""
    is_known = all(map(_is_known, map(unrestricted, blocks_of(posterior.distribution))))
    modelled = posterior.models_clipping
    reasons = {
        "it takes the released values for exact; ask the noise-aware one": posterior.n_prior is None,
        "it is of several disjoint data sets, pooled; ask that of each": len(posterior.observed) != 1,
        "it models clipping; leave that out (clipping ignored) where clipping is rare": modelled is not None
        and bool(modelled.any()),
        "it would take rows of one unit for independent, which they are not; to do so all the same, ask the "
        "posterior with within_unit='ignored' for its own": posterior.design_effect is not None,
    }
    reason = next((reason for reason, holds in reasons.items() if holds), "")
    if reason or is_known:
        return reason
    if _is_of_columns(posterior):
        return _reason_against_columns(posterior)
    return "its engine works out no normaliser under this prior"


def _is_known(block: Any) -> bool:
    """Whether an engine works out a normaliser."""
    if isinstance(block, GriddedDistribution | MixedDistribution | ReweightedDraws):
        return block.log_evidence is not None
    if isinstance(block, LatentSumPosterior | PosteriorMixture):
        return True
    from suffice.pipeline.math.engines.histogram.histogram_posterior import HistogramPosterior
    from suffice.pipeline.math.engines.multinomial.count_posterior import CountsDistribution
    from suffice.pipeline.math.engines.normal.moment_posterior import MomentsDistribution

    return isinstance(block, CountsDistribution | MomentsDistribution | HistogramPosterior)

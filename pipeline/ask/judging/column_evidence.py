r"""The evidence of regressions and of several columns, by Monte Carlo, with its error.

Evidence. The density of what was released with parameters, moments, scales and noise integrated out
(``engines.multivariate.integrals``), at the released integers, whose lattice is far finer than the noise;
N alone may have less noise than a row, and is a real number here, which puts logs off by as much for every
prior. It is given that there are as many rows as moments need to have a density.

Where the posterior is restricted to what records within the bounds can have, so is the prior: (1) of
``bounded_prior``, with both shares by draws.

Method. Errors are those of the integral and of shares P, :math:`(1 - P) / P n` for n effective draws, in
quadrature; two of them are a 95 % interval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.bounded_records import can_be_of_bounded
from suffice.pipeline.ask.inference.chosen_priors import predictor_prior_for
from suffice.pipeline.ask.judging.bounded_prior import is_restricted, require_shares
from suffice.pipeline.ask.judging.judged import LogEvidence
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.composite import blocks_of
from suffice.pipeline.math.distributions.within_limits import unrestricted
from suffice.pipeline.math.engines.multivariate.column_posterior import normal_chains, regression_chains

if TYPE_CHECKING:
    from suffice.pipeline.ask.judging.judged import Judged
    from suffice.pipeline.math.engines.multivariate.column_posterior import Chains
    from suffice.pipeline.math.engines.multivariate.integrals import Integral
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

_AT_ONCE = 64
"""Cells whose chains are kept at once."""
_DRAWS, _PRIOR_DRAWS = 4096, 1 << 16


def evidence_of_columns(posterior: Judged, constant: float) -> LogEvidence:
    """Return the evidence of a regression or of several columns; the noise's constant is left out by engines.

    Raises
    ------
    UsageError
        Where weighted draws do not tell the evidence, or too little of the prior or of the posterior lies
        where parameters of records within the bounds can be.
    """
    (statistic,) = posterior.observed
    cells = np.arange(posterior.n_groups)
    parts = [
        _chains(posterior, statistic.take(few)).log_evidence()
        for few in np.array_split(cells, -(-len(cells) // _AT_ONCE))
    ]
    _require_known(posterior, parts)
    log, variance = _log_share_gained(posterior, statistic)
    return LogEvidence(
        log=np.concatenate([part.log for part in parts]) + log + constant,
        standard_error=np.sqrt(np.concatenate([part.error for part in parts]) ** 2 + variance),
    )


def _chains(posterior: Judged, statistic: NoisyStatistic) -> Chains:
    prior: Any = posterior.prior
    n_priors: Any = (posterior.n_prior,)
    predictors: Any = predictor_prior_for(statistic, posterior.predictor_prior)
    if predictors is None:
        return normal_chains((statistic,), prior, n_priors)
    return regression_chains((statistic,), prior, n_priors, predictors)


def _require_known(posterior: Judged, parts: list[Integral]) -> None:
    lost = sum(int(np.sum(~np.isfinite(part.error))) for part in parts)
    if lost:
        message = (
            f"{posterior.statistic}: in {lost} of {posterior.n_groups} cells weighted draws do not tell the "
            "evidence; leave these cells out, or compare intervals under both priors"
        )
        raise UsageError(message)


def _log_share_gained(posterior: Judged, statistic: NoisyStatistic) -> tuple[Floats, Floats]:
    """Return log P(A | y) - log P(A), (n_cells,), and the variance of its error."""
    if not is_restricted(posterior):
        return np.zeros(posterior.n_groups), np.zeros(posterior.n_groups)
    family, parameters = FAMILIES[posterior.family], statistic.plan.parameters
    rng = np.random.default_rng(0)  # what is asked twice is answered alike
    truth: Any = family.truth
    drawn = truth(posterior.prior, parameters, _PRIOR_DRAWS, rng)
    of_prior = float(np.mean(can_be_of_bounded(drawn.T, statistic.plan)))
    region: Any = family.region
    shares, effective = [], []
    for block in blocks_of(posterior.distribution):
        plain: Any = unrestricted(block)
        inside = region(parameters).inside(plain.sample(_DRAWS, rng))
        shares.append(np.mean(inside, axis=0))
        fewest = min(_DRAWS, plain.diagnostics["fewest_effective_draws"])
        effective.append(np.full(inside.shape[1], float(max(1, fewest))))
    share = np.concatenate(shares)
    require_shares(posterior, share, of_prior)
    variance = (1.0 - share) / share / np.concatenate(effective)
    return np.log(share) - np.log(of_prior), variance + (1.0 - of_prior) / of_prior / _PRIOR_DRAWS

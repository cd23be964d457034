r"""Posteriors of several columns under any prior of named parameters: reweighted draws under the default.

Model. A prior states a density f of named parameters, in their own units; all others have the default prior
:math:`p_0` given these,

.. math:: \pi(\theta) = f(\theta_A) \, p_0(\theta_B \mid \theta_A), \qquad
    \frac{\pi(\theta \mid y)}{p_0(\theta \mid y)} \propto \frac{f(\theta_A)}{p_0(\theta_A)}. \qquad (1)

Where coefficients g have the values c with a probability q, with every draw from the default posterior given
the values (``engines.multivariate.reference``)

.. math:: w = q \, \frac{f(\theta_A \setminus g)}{p_0(\theta_A)} \; p_0(\beta_g = c \mid y), \qquad (2)

each with the same number of draws but for that. Weights (2) of all sub-models together are smoothed.

Symbols:

- f: ``prior``; A: its parameters, by name: predictors, ``intercept``, ``sd`` or ``variance``; or ``mean[x]``,
  ``sd[x]``, ``variance[x]`` and ``correlation[x,y]``

Method. 20,000 draws a cell, of chains: n_eff is multiplied by the share of draws that are worth an
independent one. Where k is above .7 or fewer than 400 draws count, a regression's noise-aware posterior is
tempered from them (``tempered_columns``); all else is refused there. Always the same draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.ask.inference.column_prior_draws import require_proper
from suffice.pipeline.ask.inference.named_columns import DRAWS, RegressionPrior, resolved
from suffice.pipeline.ask.inference.reweighting import (
    KEPT,
    LARGEST_R_HAT,
    require_light,
    too_few,
    unsettled,
)
from suffice.pipeline.ask.inference.tempered_columns import tempered_regression
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.composite import ConjugateMixture
from suffice.pipeline.math.distributions.reweighted import (
    FEWEST_EFFECTIVE,
    LARGEST_SHAPE,
    ReweightedDraws,
    weighed,
)
from suffice.pipeline.math.priors.log_prior import LogPrior

if TYPE_CHECKING:
    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.math.engines.multivariate.column_posterior import Chains
    from suffice.pipeline.math.priors.coefficients import Coefficients
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic


_MOST_TEMPERED = 32
"""Cells that particles are run for."""


def column_posterior(
    statistic: NoisyStatistic,
    prior: LogPrior | Coefficients,
    n_prior: NPrior | None,
    predictors: Prior | None,
) -> ReweightedDraws:
    """Return the distribution of several columns' parameters; plug-in where there is no prior of N.

    Raises
    ------
    PriorError
        Where the prior names what is no parameter, has too many point masses, or too few draws count.
    """
    family, constants = FAMILIES[statistic.plan.family], statistic.plan.parameters
    of = resolved(family, prior, constants)
    if isinstance(prior, LogPrior):
        require_proper(prior, family, constants)
    chains, reference = _reference(family, statistic, n_prior, predictors)
    rng = np.random.default_rng(0)
    worth = int(reference.diagnostics["fewest_effective_draws"])
    cells, moved = [], 0
    for cell in range(len(statistic.values)):
        drawn, log_weight = of.weigh(reference.take(np.array([cell])), rng)
        answer = weighed(drawn, log_weight, min(1.0, worth / DRAWS), KEPT, rng)
        if chains is not None and (answer is None or answer.shape > LARGEST_SHAPE):
            assert isinstance(of, RegressionPrior)  # noqa: S101 - who alone has chains
            moved += 1
            if moved > _MOST_TEMPERED:
                message = (
                    f"prior {prior}: draws under the default prior do not reach it in more than "
                    f"{_MOST_TEMPERED} cells, and particles take half a minute for each: keep fewer cells "
                    "with where"
                )
                raise PriorError(message)
            tempered = tempered_regression(chains.take(cell), of, rng)
            if tempered is None or tempered.r_hat > LARGEST_R_HAT or tempered.effective < FEWEST_EFFECTIVE:
                raise unsettled(statistic, prior)
            answer = tempered
        if answer is None:
            raise too_few(statistic, prior, DRAWS)
        cells.append(answer)
    require_light(statistic, prior, cells)
    components: Any = reference.components
    return ReweightedDraws.joined(
        cells, draws=DRAWS, of="the posterior under the default prior", components=components
    )


def _reference(
    family: Family, statistic: NoisyStatistic, n_prior: NPrior | None, predictors: Prior | None
) -> tuple[Chains | None, ConjugateMixture]:
    """Return the posterior under the default prior, and of a regression the chains that it is of."""
    default: Any = family.default_prior(statistic.plan.parameters)
    reference: Any
    if n_prior is None:
        reference = family.plug_in(statistic, default)
    elif predictors is not None:
        from suffice.pipeline.math.engines.multivariate.column_posterior import regression_chains

        chosen: Any = predictors
        chains = regression_chains((statistic,), default, (n_prior,), chosen)
        return chains, chains.mixture()
    else:
        assert family.disjoint is not None  # noqa: S101 - families of several columns have one
        reference = family.disjoint((statistic,), default, (n_prior,))
    assert isinstance(reference, ConjugateMixture)  # noqa: S101 - scales of the default are latent
    return None, reference

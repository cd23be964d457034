r"""Densities of the parameter behind a noisy sum, by Bayes' theorem at each point.

Model and symbols as in ``noisy_sum``:

.. math:: p(\theta \mid y) = \frac{\pi(\theta) \, p(y \mid \theta)}{p(y)}, \qquad
    p(y \mid \theta) = \sum_N \pi(N) \int p(S \mid N, \theta) \, p(y \mid N, S) \, dS \qquad (1)

Method. The likelihood is the evidence under a point mass (``known_parameter``), by the blocks of ``nodes``,
which are divided anew for every point. It is a number and no mixture: nodes cannot show, and nothing is
smoothed. A density is as wrong, relatively, as both evidences are together.

========= ================= =================================== ===================
symbol    in the code       meaning                             shape
========= ================= =================================== ===================
theta     ``points``        parameters                          (n_cells, n_points)
pi(theta) ``_log_prior``    density of the prior on the line    (n,)
p(y)      ``log_evidence``  its logarithm                       (n_cells,)
========= ================= =================================== ===================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions.distribution import coordinate_of
from suffice.pipeline.math.distributions.gamma import InverseGammaDistribution
from suffice.pipeline.math.engines.one_sum.known_parameter import SumsOfParameters
from suffice.pipeline.math.engines.one_sum.nodes import batches, resolve
from suffice.pipeline.math.engines.one_sum.spread_sums import SpreadGammaGamma

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.typing import Floats

    Update = Callable[[Floats, Floats], Distribution]


def density_at(sums: NoisySums, update: Update, log_evidence: Floats, points: Floats) -> Floats:
    """Return densities at points (n_cells, n_points); the other arguments are ``LatentSumPosterior``'s."""
    none = np.zeros(1)
    prior = update(none, none)
    line = coordinate_of(prior).line
    cell = np.repeat(np.arange(sums.n_cells), points.shape[1])

    def log_density(position: Floats) -> Floats:
        at = position.ravel()
        of_points = SumsOfParameters(
            totals=sums.totals.take(cell),
            step=sums.step,
            lower=sums.lower,
            marginal=sums.marginal,
            n_prior=sums.n_prior,
            values=line.parameter(at),
            is_scale=isinstance(prior, InverseGammaDistribution),
        )
        likelihood = [resolve(of_points.take(batch)).log_evidence for batch in batches(of_points)]
        # (1).
        value = _log_prior(sums, update, at) + np.concatenate(likelihood) - log_evidence[cell]
        return value.reshape(position.shape)

    return line.density(points, log_density)


def _log_prior(sums: NoisySums, update: Update, position: Floats) -> Floats:
    """Log densities of the prior at positions (n,) on the line."""
    marginal = sums.marginal
    shifts, weights = np.zeros(1), np.ones(1)
    if isinstance(marginal, SpreadGammaGamma):  # no records leave every component what it is
        shifts, weights = marginal.shifts, np.array(marginal.weights)
    components = coordinate_of(update(np.zeros(len(shifts)), shifts))
    log_density: Floats = np.logaddexp.reduce(
        components.log_density(position[:, None]) + np.log(weights), axis=1
    )
    return log_density

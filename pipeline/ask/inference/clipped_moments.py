r"""Means and variances behind noisy sums of clipped records, in the cells in which clipping matters.

The posterior without clipping comes first: it is exact, and says by itself where clipping cannot matter. With
s(theta) the shift that clipping gives to the mean, or to the variance, in the limit of many records, a cell's
posterior is left as it is where, for both,

.. math:: E |s(\theta)| \le 0.05 \; w, \qquad w = (q_{.84} - q_{.16}) / 2

over that posterior: intervals of 95 % that are off by so much cover 94.97 %. Elsewhere the likelihood is that
of ``engines.mean_variance.clipped_slices``, which knows clipped records by their first four moments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.inference.any_joint_prior import pooled_joint_distribution
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.partly_clipped import PartlyClipped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.mean_variance.prior_on_grid import AnyJointPrior
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats, Mask


NEGLIGIBLE = 0.05
"""Posterior widths of expected shift up to which clipping is left out."""
_STRATA = np.array([0.0, 0.01, 0.05, 0.16, 0.3, 0.5, 0.7, 0.84, 0.95, 0.99, 1.0])
_MIDDLES = (_STRATA[1:] + _STRATA[:-1]) / 2.0


def moments_with_clipping(
    plain: Distribution,
    parts: Sequence[NoisyStatistic],
    prior: AnyJointPrior,
    n_priors: Sequence[NPrior],
    where: Mask,
) -> tuple[Distribution, Mask]:
    """Return the posterior that models clipping where it matters, and where that is, (n_cells,).

    Parameters
    ----------
    plain : Distribution
        The posterior without clipping.
    parts : sequence of NoisyStatistic
        One, or several of disjoint data with both parameters in common, cell by cell.
    prior : Independent, JointDensity, NormalInverseGamma or Mixture
        Of both parameters.
    n_priors : sequence of NPrior
        Of every part's own number of rows.
    where : ndarray of shape (n_cells,), bool
        The cells in which it may be modelled.

    Notes
    -----
    Where prior and released values are so far apart that the likelihood cannot be resolved, the posterior
    without clipping stays, and with it the warning.
    """
    modelled = np.zeros(len(parts[0].values), dtype=bool)
    distribution, pending = plain, [np.flatnonzero(_matters(plain, parts[0]) & where)]
    while pending:
        rows = pending.pop()
        if not rows.size:
            continue
        try:
            clipped = pooled_joint_distribution(
                [part.take(rows) for part in parts], prior, n_priors, clips=True
            )
        except (PriorError, UsageError):
            pending += np.array_split(rows, 2) if rows.size > 1 else []
            continue
        own = np.isin(np.arange(len(modelled)), rows)
        modelled |= own
        distribution = (
            clipped if own.all() else PartlyClipped(plain=distribution, clipped=clipped, modelled=own)
        )
    return distribution, modelled


def _matters(plain: Distribution, statistic: NoisyStatistic) -> Mask:
    """Whether the expected shift of either parameter is more than negligible, (n_cells,)."""
    outside: Any = FAMILIES[statistic.plan.family].outside
    at = [*_MIDDLES, _STRATA[3], _STRATA[7]]
    # Marginal quantiles rest on no draws here: nothing random is taken of the generator.
    found = [plain.quantiles(name, at, 0, np.random.default_rng(0)).T for name in plain.parameters]
    mean, variance = (quantiles[: len(_MIDDLES)] for quantiles in found)
    share = np.outer(np.diff(_STRATA), np.diff(_STRATA))
    matters = np.zeros(mean.shape[1], dtype=bool)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shifts = outside(mean[:, None], variance[None], statistic.plan.parameters).shifts
        for shift, quantiles in zip(shifts, found, strict=True):
            width = (quantiles[-1] - quantiles[-2]) / 2.0
            average: Floats = np.einsum("ij,ijc->c", share, np.abs(shift))
            matters |= ~(average <= NEGLIGIBLE * width)
    return matters

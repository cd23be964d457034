r"""In which cells clipping is modelled, told from public numbers and released statistics only.

The posterior without it is a fast one, and says by itself where clipping cannot matter: with x(theta) the
parameter's position on the line (its logarithm or logit), and s(theta) the shift that clipping gives to it in
the limit of many records, a cell's posterior is left as it is where

.. math:: E |s(\theta)| \le 0.01 \; \mathrm{sd}(x(\theta))

over that posterior: intervals of 95 % that are off by so much cover 94.999 %. On the line no far tail of
large rates hides what happens to the small ones. Most cells are told eight standard deviations from their
means alone: where the shift is that small even there, it is so on average. The posterior comes from clipped
records itself, and so understates what was clipped; but where the distribution at the clipped mean has next
to nothing beyond the bound, the distribution that it came from has no more than next to nothing there either.

Means and variances go the same way. With s(theta) the shift that clipping gives to the mean, or to the
variance, in the limit of many records, a cell's posterior is left as it is where, for both,

.. math:: E |s(\theta)| \le 0.05 \; w, \qquad w = (q_{.84} - q_{.16}) / 2

over that posterior: intervals of 95 % that are off by so much cover 94.97 %. Elsewhere the likelihood is that
of ``engines.mean_variance.likelihood``, which knows clipped records by their first four moments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.inference.any_joint_prior import pooled_joint_distribution
from suffice.pipeline.ask.inference.any_prior import LINES, any_prior_posterior
from suffice.pipeline.ask.inference.clipped import clipped_distribution
from suffice.pipeline.ask.inference.pooled_one_parameter import pooled_grid_distribution
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.partly_clipped import PartlyClipped
from suffice.pipeline.math.engines.combined import mixture_distribution
from suffice.pipeline.math.priors.density import Density
from suffice.pipeline.math.priors.mixtures import Mixture, SpreadScale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.distributions.on_grid import GriddedDistribution
    from suffice.pipeline.math.distributions.prior import Prior
    from suffice.pipeline.math.engines.mean_variance.prior_on_grid import AnyJointPrior
    from suffice.pipeline.math.engines.one_sum.posterior import LatentSumPosterior
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.block import Parameters
    from suffice.typing import Floats, Mask

NEGLIGIBLE_OF_MOMENTS = 0.05
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
    distribution, pending = plain, [np.flatnonzero(_matters_for_moments(plain, parts[0]) & where)]
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
        is_modelled = np.isin(np.arange(len(modelled)), rows)
        modelled |= is_modelled
        distribution = (
            clipped
            if is_modelled.all()
            else PartlyClipped(plain=distribution, clipped=clipped, modelled=is_modelled)
        )
    return distribution, modelled


def _matters_for_moments(plain: Distribution, statistic: NoisyStatistic) -> Mask:
    """Whether the expected shift of either parameter is more than negligible, (n_cells,)."""
    outside: Any = FAMILIES[statistic.plan.family].outside
    at = [*_MIDDLES, _STRATA[3], _STRATA[7]]
    # Marginal quantiles rest on no draws here: nothing random is taken of the generator.
    by_parameter = [plain.quantiles(name, at, 0, np.random.default_rng(0)).T for name in plain.parameters]
    mean, variance = (quantiles[: len(_MIDDLES)] for quantiles in by_parameter)
    share = np.outer(np.diff(_STRATA), np.diff(_STRATA))
    matters = np.zeros(mean.shape[1], dtype=bool)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shifts = outside(mean[:, None], variance[None], statistic.plan.parameters).shifts
        for shift, quantiles in zip(shifts, by_parameter, strict=True):
            width = (quantiles[-1] - quantiles[-2]) / 2.0
            average: Floats = np.einsum("ij,ijc->c", share, np.abs(shift))
            matters |= ~(average <= NEGLIGIBLE_OF_MOMENTS * width)
    return matters


NEGLIGIBLE = 0.01
"""Posterior standard deviations of expected shift up to which clipping is left out."""
_FAR = 8.0
_POSITIONS = np.linspace(-30.0, 30.0, 8193)
"""About that of the parameter whose mean is at the bound."""


def distribution_with_clipping(
    statistic: NoisyStatistic, prior: Prior | Mixture | Density, n_prior: NPrior, where: Mask
) -> tuple[Distribution, Mask]:
    """Return the posterior that models clipping where it may and can matter, and where that is, (n_cells,).

    Under a density it is modelled wherever it may be: that costs no more.
    """
    cells = len(statistic.values)
    is_possible = can_be_modelled(FAMILIES[statistic.plan.family], [statistic])
    if isinstance(prior, Density):
        if not is_possible:
            return any_prior_posterior(statistic, prior, n_prior), np.zeros(cells, dtype=bool)
        if where.all():
            return clipped_distribution([statistic], prior, [n_prior]), where
        return _partly(
            any_prior_posterior(statistic, prior, n_prior), [statistic], prior, [n_prior], where
        ), where
    components: Sequence[Prior | Mixture] = (prior,)
    if isinstance(prior, Mixture) and not isinstance(prior, SpreadScale):
        components = prior.components
    distributions = [_noise_aware(statistic, component, n_prior) for component in components]
    matters = np.zeros(cells, dtype=bool)
    if is_possible:
        for distribution in distributions:
            matters |= _matters(statistic, distribution) & where
    plain: Distribution = distributions[0]
    if isinstance(prior, Mixture) and not isinstance(prior, SpreadScale):
        plain = mixture_distribution(prior, distributions)
    return _partly(plain, [statistic], prior, [n_prior], matters), matters


def pooled_with_clipping(
    parts: Sequence[NoisyStatistic], prior: Prior | Mixture | Density, n_priors: Sequence[NPrior], where: Mask
) -> tuple[Distribution, Mask]:
    """Return the same of a parameter that aligned statistics of disjoint data share, each with its own N."""
    cells = len(parts[0].values)
    is_possible = can_be_modelled(FAMILIES[parts[0].plan.family], parts)
    if isinstance(prior, Density) and is_possible and where.all():
        return clipped_distribution(parts, prior, n_priors), where
    plain = pooled_grid_distribution(parts, prior, n_priors)
    matters = _matters(parts[0], plain) & where if is_possible else np.zeros(cells, dtype=bool)
    return _partly(plain, parts, prior, n_priors, matters), matters


def _partly(
    plain: Distribution,
    parts: Sequence[NoisyStatistic],
    prior: Prior | Mixture | Density,
    n_priors: Sequence[NPrior],
    matters: Mask,
) -> Distribution:
    """The distribution without clipping, and with it where that matters."""
    if not matters.any():
        return plain
    rows = np.flatnonzero(matters)
    distribution = clipped_distribution([part.take(rows) for part in parts], prior, n_priors)
    return (
        distribution if matters.all() else PartlyClipped(plain=plain, clipped=distribution, modelled=matters)
    )


def _matters(statistic: NoisyStatistic, distribution: LatentSumPosterior | GriddedDistribution) -> Mask:
    """Whether the expected shift under a posterior without clipping is more than negligible, (n_cells,)."""
    (name,) = distribution.parameters
    mean, sd = distribution.mean(name), distribution.sd(name)
    matters: Mask = ~(np.max(_shifts(statistic, _far(name, mean, sd)), axis=1) <= NEGLIGIBLE * sd)
    near = np.flatnonzero(matters)
    if near.size:
        # A shift depends on the parameter alone: one table serves all cells.
        family = FAMILIES[statistic.plan.family]
        line = LINES[family.prior]
        positions = _POSITIONS + _at_bound(family, statistic.plan.parameters)
        values = line.parameter(positions)
        with np.errstate(invalid="ignore"):
            shift = np.abs(line.position(values + _signed(statistic, values)) - positions)
        average = distribution.average(lambda position: np.interp(position, positions, shift), near)
        centre = distribution.average(lambda position: position, near)
        square = distribution.average(lambda position: position**2, near)
        spread = np.sqrt(np.maximum(square - centre**2, 0.0))
        matters[near] = ~(average <= NEGLIGIBLE * spread)
    return matters


def _at_bound(family: Family, constants: Parameters) -> float:
    """The position of the parameter at which the mean of T is the bound."""
    assert family.limits is not None  # noqa: S101 - every family with a clipped record has them
    low, high = family.limits(constants)
    return float(LINES[family.prior].position(np.array([low if low > 0.0 else high]))[0])


def _far(name: str, mean: Floats, sd: Floats) -> Floats:
    """Parameters far to either side of the mean, (n_cells, 2)."""
    largest = 1.0 if name == "probability" else np.inf
    return np.stack([np.maximum(mean - _FAR * sd, 0.0), np.minimum(mean + _FAR * sd, largest)], axis=1)


def _shifts(statistic: NoisyStatistic, values: Floats) -> Floats:
    """How far clipping moves these values of the parameter; NaN where nothing can be told."""
    return np.abs(_signed(statistic, values))


def _signed(statistic: NoisyStatistic, values: Floats) -> Floats:
    outside: Any = FAMILIES[statistic.plan.family].outside
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        (shift,) = outside(values.ravel(), statistic.plan.parameters).shifts
    moved: Floats = np.reshape(shift, values.shape)
    return moved


def _noise_aware(statistic: NoisyStatistic, prior: Prior | Mixture, n_prior: NPrior) -> LatentSumPosterior:
    noise_aware: Any = FAMILIES[statistic.plan.family].noise_aware
    distribution: LatentSumPosterior = noise_aware(statistic, prior, n_prior)
    return distribution


def can_be_modelled(family: Family, parts: Sequence[NoisyStatistic]) -> bool:
    """Whether clipping can be modelled in statistics of disjoint data.

    Of one sum: where one record's lattice is short enough, and there is one noise of every part's sums.
    """
    record = family.clipped_record
    if record is None:
        return family.mean_and_variance is not None
    return all(record.can_be_modelled(part.plan.parameters) and not part.further for part in parts)

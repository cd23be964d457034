r"""Posteriors of a normal's mean and variance under any prior, by quadrature: free of draws and of MCMC.

With R disjoint data sets, of which one is the common case, that share both parameters and nothing else

.. math:: p(\theta \mid y_1, \dots, y_R) \propto p(\theta) \prod_r p(y_r \mid \theta),

each likelihood from ``rows``, with a number of rows and a noise of its own. Of the plug-in posterior the
likelihood is a formula.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import numpy as np

from suffice.errors import PriorError, SufficeError, UsageError
from suffice.pipeline.ask.inference.chosen_priors import refused_prior
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.engines.mean_variance.distribution import (
    MeanVarianceDistribution,
    NowhereError,
    Panels,
    around,
    node_weights,
)
from suffice.pipeline.math.engines.mean_variance.likelihood import COARSE, FINE, LatentRows, TooManyError
from suffice.pipeline.math.engines.mean_variance.prior_on_grid import DensityOnGrid
from suffice.pipeline.math.engines.mean_variance.product import ContradictionError, Exact, Product, exists

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.pipeline.families.shared.contract import MeanAndVariance
    from suffice.pipeline.math.engines.mean_variance.distribution import Exists
    from suffice.pipeline.math.engines.mean_variance.prior_on_grid import AnyJointPrior
    from suffice.pipeline.math.priors.joint_density import Independent, JointDensity
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic


_TOLERABLE = 1e-4
_DEPTHS = (70.0, 250.0, 1000.0)
"""Nats of noise that grids cover where the first do not, until it is enough."""
_CLIPPED_DEPTHS = (30.0, *_DEPTHS)
"""Of clipped records: the first grids are coarse, and much deeper ones have no room."""
_MOST_DENSITIES, _MOST_CLIPPED = 1e8, 3e7
"""Of grids deeper than the first: some ten seconds, of clipped records as well."""
_SMALLEST, _LARGEST, _FARTHEST = 1e-12, 1e11, 9e5
_NOTHING = -26.0


def any_joint_posterior(
    statistic: NoisyStatistic, prior: Independent | JointDensity, n_prior: NPrior | None
) -> MeanVarianceDistribution:
    """Return the distribution of a normal family's mean and variance; plug-in where there is no prior of N.

    Raises
    ------
    PriorError
        Where the family is another, the prior is improper or leaves the parameters' domain, or prior and
        released values disagree so much that the posterior cannot be resolved.
    """
    if n_prior is not None:
        return pooled_joint_distribution([statistic], prior, [n_prior])
    names, unit, grid_prior = _on_grid(statistic, prior)
    return MeanVarianceDistribution.of(names, unit, _plug_in(statistic, grid_prior))


def pooled_joint_distribution(
    parts: Sequence[NoisyStatistic],
    prior: AnyJointPrior,
    n_priors: Sequence[NPrior],
    *,
    clips: bool = False,
) -> MeanVarianceDistribution:
    """Return the distribution of the mean and the variance that aligned statistics of disjoint data share.

    Parameters
    ----------
    parts : sequence of NoisyStatistic
        Of a normal family.
    prior : Independent, JointDensity, NormalInverseGamma or Mixture
        Of both; it counts once.
    n_priors : sequence of NPrior
        Of every part's own number of rows.
    clips : bool
        Whether rows are taken for clipped to their public bounds, by their first four moments.

    Raises
    ------
    PriorError
        As ``any_joint_posterior``.
    UsageError
        Where the data sets contradict each other so much that the posterior cannot be resolved.
    """
    names, unit, grid_prior = _on_grid(parts[0], prior)
    return MeanVarianceDistribution.of(names, unit, _noise_aware(parts, grid_prior, n_priors, clips))


def _on_grid(
    statistic: NoisyStatistic, prior: AnyJointPrior
) -> tuple[tuple[str, str], tuple[float, float], DensityOnGrid]:
    """Names of the parameters, centre and half range, and the prior in these."""
    family, constants = FAMILIES[statistic.plan.family], statistic.plan.parameters
    if family.mean_and_variance is None:
        raise refused_prior(statistic.plan, prior)
    unit = family.mean_and_variance.interval(constants)
    mean, variance = family.parameter_names(constants)
    return (mean, variance), unit, DensityOnGrid.of(prior, *unit)


def prior_distribution(
    prior: Independent | JointDensity, unit: tuple[float, float], names: tuple[str, str]
) -> MeanVarianceDistribution:
    """Return the distribution of a prior itself; `unit` is the centre and the half range."""
    grid_prior = DensityOnGrid.of(prior, *unit)
    alone = Exact(grid_prior, 0.0, 0.0, 0.0)
    return MeanVarianceDistribution.of(
        names, unit, [(Panels.of(alone, *around(alone, alone.edges)), exists(grid_prior, alone))]
    )


def _low(grid_prior: DensityOnGrid) -> float:
    """A log variance towards the lower end of where the prior is."""
    return grid_prior.centre[1] - max(0.0, 2.0 * grid_prior.width[1] - 1.0)


def conjugate_alike(grid_prior: DensityOnGrid, unit: tuple[float, float]) -> NormalInverseGamma:
    """Return a conjugate prior somewhat wider than another and where that is, in the column's unit."""
    loc, (of_mean, of_variance) = grid_prior.centre[0], grid_prior.width
    concentration = max(1.0, 0.25 / max(of_variance, 1e-5) ** 2)
    low = _low(grid_prior)
    precision = math.exp(_bounded(low - 2.0 * math.log(max(2.0 * of_mean, 1e-6))))
    return _conjugate(unit, loc, precision, concentration, concentration * math.exp(_bounded(low)))


def _conjugate(
    unit: tuple[float, float], loc: float, precision: float, concentration: float, scale: float
) -> NormalInverseGamma:
    """Return a conjugate prior, stated in half ranges, within what noise-aware posteriors take."""
    centre, half_range = unit
    precision, concentration, scale = (
        float(np.clip(value, _SMALLEST, _LARGEST)) for value in (precision, concentration, scale)
    )
    loc = float(np.clip(loc, -_FARTHEST, _FARTHEST))
    return NormalInverseGamma(centre + half_range * loc, precision, concentration, half_range**2 * scale)


def _bounded(exponent: float) -> float:
    return min(max(exponent, -60.0), 60.0)


def _of_family(statistic: NoisyStatistic) -> MeanAndVariance:
    """Return what the statistic's family states, which was checked to be there."""
    return cast("MeanAndVariance", FAMILIES[statistic.plan.family].mean_and_variance)


def _plug_in(statistic: NoisyStatistic, grid_prior: DensityOnGrid) -> Iterator[tuple[Panels, Exists]]:
    """Panels of every cell, whose projected sums are taken for exact."""
    sums = _of_family(statistic).project(statistic)
    for n, total, squares in zip(sums.n, sums.total, sums.total_of_squares, strict=True):
        product = Exact(grid_prior, float(n), float(total), float(squares))
        panels = Panels.of(product, *around(product, product.edges))
        share, _ = panels.shares()
        lowest = panels.left[:, 1] < _NOTHING
        if grid_prior.is_open[1][0] and np.sum((node_weights() * share)[lowest]) > _TOLERABLE:
            message = (
                f"prior {grid_prior.prior}: the released values of {statistic.plan.name}, taken for exact, "
                "leave no variance, and the plug-in posterior is improper: give a prior that excludes a "
                "variance of 0, or take the noise into account"
            )
            raise PriorError(message)
        yield panels, exists(grid_prior, product)


def _noise_aware(
    parts: Sequence[NoisyStatistic],
    grid_prior: DensityOnGrid,
    n_priors: Sequence[NPrior],
    clips: bool,
) -> Iterator[tuple[Panels, Exists]]:
    """Panels of every cell, from grids of latent rows that cover as much of the noise as it takes."""
    family = _of_family(parts[0])
    like = conjugate_alike(grid_prior, family.interval(parts[0].plan.parameters))
    noisy = [family.noisy(part, like, n_prior) for part, n_prior in zip(parts, n_priors, strict=True)]
    start, room = (COARSE.depth, _MOST_CLIPPED) if clips else (FINE.depth, _MOST_DENSITIES)
    depths = _CLIPPED_DEPTHS if clips else _DEPTHS
    for cell in range(len(parts[0].values)):
        sums = [part.take(np.array([cell])) for part in noisy]
        rows = [LatentRows.of(part, start, clips=clips) for part in sums]
        while True:
            product = Product(grid_prior, rows)
            try:
                fine = product.fine()
                surface = product.surface(*fine)
                unresolved = product.unresolved(surface)
            except ContradictionError:
                raise _too_far_apart(grid_prior, parts) from None
            except NowhereError:
                unresolved = list(range(len(rows)))
            if not unresolved:
                break
            for number in unresolved:
                deeper = [depth for depth in depths if depth > rows[number].depth]
                if not deeper:
                    raise _too_far_apart(grid_prior, parts)
                try:
                    rows[number] = LatentRows.of(sums[number], deeper[0], room, clips=clips)
                except TooManyError:
                    raise _too_far_apart(grid_prior, parts) from None
        yield product.panels(surface, fine)


def _too_far_apart(grid_prior: DensityOnGrid, parts: Sequence[NoisyStatistic]) -> SufficeError:
    name = parts[0].plan.name
    if len(parts) > 1:
        message = (
            f"prior {grid_prior.prior} and the pooled values of {name} barely fit one mean "
            "and variance, so that the posterior cannot be resolved: pool fewer of them, keep cells with "
            "where, or give a prior closer to what is possible"
        )
        return UsageError(message)
    message = (
        f"prior {grid_prior.prior} and the released values of {name} are so far apart that the posterior "
        "cannot be resolved: give a prior closer to what is possible, or a narrower support"
    )
    return PriorError(message)

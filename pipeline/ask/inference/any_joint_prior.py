r"""Posteriors of a normal's mean and variance under any prior, by quadrature: free of draws and of MCMC.

Model. With R disjoint data sets, R = 1 being the common case, that share both parameters :math:`\theta = (m,
v)` and nothing else

.. math:: p(\theta \mid y_1, \dots, y_R) \propto p(\theta) \prod_r p(y_r \mid \theta), \qquad (1)

each likelihood from ``mean_variance.likelihood``, summed over latent rows, with its number of rows and its
noise. The likelihood of the plug-in posterior is that of n exact records of sum t and sum of squares q,

.. math:: \log p(y \mid \theta) = -\tfrac n 2 \log v - \frac{q - 2 m t + n m^2}{2 v}. \qquad (2)

A conjugate prior that stands in for another is centred near it and about twice as wide. With c and w the
other's centre and width of (m, log v)

.. math:: a = \max(1, \ 1 / 4 w_v^2), \qquad \kappa = e^{l} / (2 w_m)^2, \qquad s = a e^{l}, \qquad
    l = c_v - \max(0, 2 w_v - 1), \qquad (3)

because log v has about the standard deviation :math:`1 / \sqrt a` under InverseGamma(a, s), and m the
standard deviation :math:`\sqrt{v / \kappa}`. Under a conjugate prior exact sums S have the density

.. math:: \log p(S) = \log Z(\eta_0 + S) - \log Z(\eta_0) + \text{const}. \qquad (4)

Symbols:

- m, v: the mean, and the variance > 0, in half ranges about the middle of the bounds and their squares
- y_r: ``parts``, (n_cells,) each
- c, w: ``DensityOnGrid.centre`` and ``width``, of m and log v
- kappa, a, s: ``precision``, ``concentration`` and ``scale`` of the conjugate prior

Method. Numerical. (1) is taken on panels about its mode; grids of latent rows go deeper into the noise, to
70, 250 and 1000 nats, until the posterior is resolved; otherwise it is refused.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import numpy as np

from suffice.errors import PriorError, SufficeError, UsageError
from suffice.pipeline.ask.inference.chosen_priors import has_columns, refused_prior
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.dirichlet import Beta, Dirichlet, DirichletDistribution
from suffice.pipeline.math.distributions.gamma import Gamma, InverseGamma
from suffice.pipeline.math.distributions.many_cells import CLIPPED_MOMENTS
from suffice.pipeline.math.distributions.normal import Normal
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
from suffice.pipeline.math.priors.by_name import Independent, JointDensity
from suffice.pipeline.math.priors.coefficients import Coefficients, NonConjugate
from suffice.pipeline.math.priors.composed import OfOneNumber
from suffice.pipeline.math.priors.log_prior import LogPrior
from suffice.pipeline.math.priors.mixtures import Mixture

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.pipeline.families.shared.contract import Family, MeanAndVariance
    from suffice.pipeline.math.distributions.distribution import ConjugateDistribution, Distribution, Prior
    from suffice.pipeline.math.engines.mean_variance.distribution import Exists
    from suffice.pipeline.math.engines.mean_variance.prior_on_grid import AnyJointPrior
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats


_TOLERABLE = 1e-4
"""Share of a plug-in posterior that may lie where the variance is all but 0."""
_DEPTHS = (70.0, 250.0, 1000.0)
"""Nats of noise that grids cover where the first do not, until it is enough."""
_CLIPPED_DEPTHS = (30.0, *_DEPTHS)
"""Of clipped records: the first grids are coarse, and much deeper ones have no room."""
_MOST_DENSITIES, _MOST_CLIPPED = 1e8, 3e7
"""Of grids deeper than the first: some ten seconds, of clipped records as well."""
_SMALLEST, _LARGEST, _FARTHEST = 1e-12, 1e11, 9e5
_NOTHING = -26.0
"""The log variance, in squares of the half range, below which it is all but 0."""


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
    # (2) of no records is 1: the prior itself.
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
    # (3): a quarter of the concentration that a width w_v has, which is twice as wide.
    concentration = max(1.0, 0.25 / max(of_variance, 1e-5) ** 2)
    low = _low(grid_prior)
    # (3): sqrt(v / kappa) = 2 w_m at a low v.
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
        # (2) times the prior.
        product = Exact(grid_prior, float(n), float(total), float(squares))
        panels = Panels.of(product, *around(product, product.edges))
        share, _ = panels.shares()
        # Panels of e^-26 of the squared half range: a posterior there has run into a variance of 0.
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
    # Clipped records take four moments of every latent state: their grids start coarse.
    start, room = (COARSE.depth, _MOST_CLIPPED) if clips else (FINE.depth, _MOST_DENSITIES)
    depths = _CLIPPED_DEPTHS if clips else _DEPTHS
    by_loops = clips and CLIPPED_MOMENTS.pay(len(parts[0].values))
    for cell in range(len(parts[0].values)):
        sums = [part.take(np.array([cell])) for part in noisy]
        rows = [LatentRows.of(part, start, clips=clips, by_loops=by_loops) for part in sums]
        while True:
            # (1), over latent rows.
            product = Product(grid_prior, rows)
            try:
                fine = product.fine()
                surface = product.surface(*fine)
                unresolved = product.unresolved(surface)
            # Likelihoods that no grid brings together: their product is 0 wherever it is known.
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
                    rows[number] = LatentRows.of(
                        sums[number], deeper[0], room, clips=clips, by_loops=by_loops
                    )
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


def draw(
    prior: Prior | Mixture | NonConjugate,
    family: Family,
    parameters: Constants,
    size: int,
    rng: np.random.Generator,
) -> Floats:
    """Draw parameters of a family from a prior, a row each, as ``Family.truth`` does from conjugate ones."""
    if isinstance(prior, Mixture):
        weight = np.array(prior.weights)
        chosen = rng.choice(len(weight), size, p=weight / np.sum(weight))
        parts = [family.truth(component, parameters, size, rng) for component in prior.components]
        # A component for every draw, by the prior's weights.
        mixed: Floats = np.stack(parts)[chosen, np.arange(size)]
        return mixed
    if isinstance(prior, OfOneNumber):
        from suffice.pipeline.ask.inference.any_prior import density_posterior  # rarely needed

        distribution = density_posterior(prior, family, parameters)
        return distribution.sample(size, rng)[distribution.name][:, 0]
    if isinstance(prior, Coefficients) or (isinstance(prior, LogPrior) and has_columns(family)):
        from suffice.pipeline.ask.inference import column_prior_draws  # rarely needed

        return column_prior_draws.draws_of_prior(prior, family, parameters, size, rng)
    if isinstance(prior, LogPrior):
        from suffice.pipeline.ask.inference.any_table_prior import draws_of_prior  # rarely needed

        return draws_of_prior(prior, family, parameters, size, rng)
    if isinstance(prior, Independent | JointDensity):
        unit = _interval(family, parameters)
        drawn = prior_distribution(prior, unit, ("mean", "variance")).sample(size, rng)
        return np.concatenate([drawn["mean"], drawn["variance"]], axis=1)
    return family.truth(prior, parameters, size, rng)


def conjugate_like(
    prior: Prior | Mixture | NonConjugate, family: Family, parameters: Constants
) -> Prior | Mixture:
    """Return a conjugate prior about where a density is and as wide; the prior itself if it is conjugate."""
    if isinstance(prior, OfOneNumber):
        from suffice.pipeline.ask.inference.any_prior import conjugate_alike as alike_on_line  # rarely needed

        return alike_on_line(prior, family, parameters)
    if isinstance(prior, Independent | JointDensity):
        unit = _interval(family, parameters)
        return conjugate_alike(DensityOnGrid.of(prior, *unit), unit)
    if isinstance(prior, LogPrior | Coefficients):
        # Draws are reweighted from the default prior's, or from the uniform one's.
        default: Prior | Mixture = family.default_prior(parameters)
        return default if has_columns(family) else Dirichlet(1)
    return prior


def _interval(family: Family, parameters: Constants) -> tuple[float, float]:
    if family.mean_and_variance is None:
        raise TypeError(family.name)
    return family.mean_and_variance.interval(parameters)


def log_evidence(prior: Prior, distribution: Distribution) -> Floats:
    """Log density of exact sums under a conjugate prior, (n_cells,), up to what no prior changes: (4).

    Raises
    ------
    PriorError
        Where the posterior given exact sums, `distribution`, is no plain conjugate one.
    """
    start: ConjugateDistribution | None = None
    match prior:
        case Beta() | Gamma() | InverseGamma() | Normal() | NormalInverseGamma():
            start = prior.distribution()
        case Dirichlet() if type(distribution) is DirichletDistribution:
            start = prior.distribution(distribution.concentration.shape[1])
    if start is None or not isinstance(distribution, type(start)):
        message = "this family takes no mixture of priors yet: give one of its components"
        raise PriorError(message)
    # (4).
    return distribution.log_normaliser() - start.log_normaliser()

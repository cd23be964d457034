r"""The prior of a posterior's parameters, given what records within the public bounds can have.

Model. A posterior of records as bounds leave them is that under the stated prior restricted to a region A
(``math/distributions/within_limits.py``). With y what was released,

.. math::
    p(\theta \mid A) = \frac{p(\theta) \, 1_A(\theta)}{P(A)}, \qquad
    p(y \mid A) = p(y) \, \frac{P(A \mid y)}{P(A)}. \qquad (1)

One parameter lies within l..u, and :math:`P(A) = F(u) - F(l)`. Of a mean and a variance the region is
:math:`v \le V(m) = h^2 - (m - c)^2`. Under a normal inverse gamma prior of location mu, precision kappa,
concentration a and scale s the mean is Student's of 2 a degrees of freedom, v given m inverse gamma of
concentration a + 1 / 2 and scale s + kappa (m - mu)^2 / 2, and m given v normal of variance v / kappa:

.. math::
    p(m \mid A) \propto p(m) \, P(v \le V(m) \mid m), \qquad
    p(v \mid A) \propto p(v) \, P(|m - c| \le \sqrt{h^2 - v} \mid v). \qquad (2)

Symbols:

- l, u: ``limits``, in the parameter's unit; F: by ``_outside``, of each component of a mixture
- c, h: ``centre`` and ``half_range``, in the unit of the mean (of a lognormal its logarithm's)
- V(m): ``room``, the bound of Bhatia and Davis; (1) of ``within_region.py``
- m, v: ``mean`` and ``variance``

Method. F is exact of conjugate priors, and that of the quadrature of others. P(A) of a mean and a variance is
a midpoint rule of 4,096 points in the probability of m; densities of other joint priors are those of draws
within the region, as those of cut posteriors are. P(A | y) is ``share`` of ``WithinLimits``: of one parameter
by its distribution function, to some thousandths; of a mean and a variance by sums, to less than .01, or, of
distributions that are no mixture of normal inverse gammas, by a share P of 20,000 draws or more, whose
logarithm errs by :math:`\sqrt{(1 - P) / (20{,}000 \, P)}`. Where less than a hundredth lies within, there is
no evidence.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.bounded_records import of_bounded_records
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.composite import blocks_of
from suffice.pipeline.math.distributions.dirichlet import Beta, BlockDirichlet, Dirichlet
from suffice.pipeline.math.distributions.distribution import OneParameter
from suffice.pipeline.math.distributions.gamma import Gamma, InverseGamma
from suffice.pipeline.math.distributions.intervals import moments_between
from suffice.pipeline.math.distributions.mixed import MixedDistribution
from suffice.pipeline.math.distributions.normal import Normal
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.distributions.weighted_sum import WeightedSum
from suffice.pipeline.math.distributions.within_limits import Restricted, WithinLimits
from suffice.pipeline.math.engines.posterior_mixture import PosteriorMixture
from suffice.pipeline.math.parameters.arguments import points_for
from suffice.pipeline.math.priors.by_name import Independent, JointDensity
from suffice.pipeline.math.priors.composed import Points, Truncated
from suffice.pipeline.math.priors.density import Density
from suffice.pipeline.math.priors.mixtures import Mixture

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from suffice.pipeline.ask.judging.judged import Judged
    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats

    Components = list[tuple[float, Any]]
    """Weights that sum to 1, and the distributions or priors that they are of."""


LEAST_SHARE = 0.01
"""Of a prior or a posterior within A, for its logarithm to be known: see the error of shares above."""
_LEAST_SHOWN = 1e-6
"""Of a prior within A, for its density there to be shown."""
_TAIL = np.geomspace(1e-11, 0.5, 1000)
_DRAWS, _PRIOR_DRAWS = 1000, 20_000
_POINTS = 4096


def prior_density_of(posterior: Judged, parameter: str, points: ArrayLike) -> Floats | None:
    """Return the prior's marginal density; see ``Posterior.prior_density``."""
    given = points_for(points, posterior.mean(parameter).shape[1:])
    prior = prior_distribution_of(posterior)
    if prior is None:
        return None
    position = posterior.parameters.index(parameter)
    name = prior.parameters[position]
    # A single cell stands for all: priors do not depend on the cell.
    density = prior.density(name, given[None])
    if density is None or not is_restricted(posterior):
        return None if density is None else density[0]
    return _density_within(posterior, prior, position, given, density[0])


def _density_within(
    posterior: Judged, prior: Distribution, position: int, points: Floats, whole: Floats
) -> Floats | None:
    """Return the density given A, of a parameter whose density under the whole prior is known."""
    plan = posterior.observed[0].plan
    limits = FAMILIES[plan.family].limits
    components = _components(posterior.prior)
    if limits is not None:
        low, high = limits(plan.parameters)
        first, last = _levels_of_limits(posterior)
        share = last - first
        inside = np.where((points >= low) & (points <= high), whole, 0.0)
        return inside / share if share >= _LEAST_SHOWN else None
    if all(isinstance(part, NormalInverseGamma) for _, part in components):
        interval = _interval(posterior)
        is_shown = _share_of_components(components, interval) >= _LEAST_SHOWN
        return density_of_bounded(components, interval, position, points) if is_shown else None
    drawn = of_bounded_records(prior, plan).density(prior.parameters[position], points[None])
    return None if drawn is None else drawn[0]


def prior_quantiles_of(posterior: Judged, levels: Floats, rng: np.random.Generator) -> list[Floats] | None:
    """Return quantiles of each parameter under its prior; None where that has no form.

    Each is (n_levels,), or (n_categories, n_levels). It is asked of default priors, of which a good part lies
    within A; of a mean and a variance they are those of 20,000 draws.
    """
    prior = prior_distribution_of(posterior)
    if prior is None:
        return None
    if is_restricted(posterior) and FAMILIES[posterior.family].limits is not None:
        first, last = _levels_of_limits(posterior)
        # Quantiles given l..u: F^-1(F(l) + q (F(u) - F(l))).
        levels = first + (last - first) * levels
    elif is_restricted(posterior):
        centre, half_range = _interval(posterior)
        drawn = prior.sample(_PRIOR_DRAWS, rng)
        mean, variance = (np.ravel(drawn[name]) for name in prior.parameters)
        kept = variance <= half_range**2 - (mean - centre) ** 2
        return [np.quantile(each[kept], levels) for each in (mean, variance)]
    return [prior.quantiles(name, tuple(levels), _DRAWS, rng)[0] for name in prior.parameters]


def log_share_gained(posterior: Judged) -> Floats:
    """Return log P(A | y) - log P(A), (n_cells,): what (1) adds to the evidence under the whole prior.

    0 where the posterior is not restricted. Of a mean and a variance its prior is a ``NormalInverseGamma`` or
    a mixture of them, as evidence is known under no other.

    Raises
    ------
    UsageError
        Where less than `LEAST_SHARE` of the prior, or of a cell's posterior under it, lies within A.
    """
    blocks = blocks_of(posterior.distribution)
    if not is_restricted(posterior):
        return np.zeros(posterior.n_groups)
    share = np.concatenate(
        [block.share if isinstance(block, WithinLimits) else np.ones(_cells(block)) for block in blocks]
    )
    if FAMILIES[posterior.family].limits is not None:
        first, last = _levels_of_limits(posterior)
        of_prior = last - first
    else:
        of_prior = _share_of_components(_components(posterior.prior), _interval(posterior))
    require_shares(posterior, share, of_prior)
    return np.asarray(np.log(share) - math.log(of_prior))


def require_shares(posterior: Judged, share: Floats, of_prior: float) -> None:
    """Refuse an evidence of which less than `LEAST_SHARE` of the prior or of a posterior lies within A.

    Raises
    ------
    UsageError
    """
    few = int(np.sum(share < LEAST_SHARE)) if of_prior >= LEAST_SHARE else len(share)
    if few:
        message = (
            f"{posterior.statistic}: in {few} of {len(share)} cells this prior has no evidence: less than a "
            "hundredth of it, or of the posterior under it, lies where parameters of records within the "
            "bounds can be; state a prior that allows for them, or leave these cells out"
        )
        raise UsageError(message)


def share_of_prior(posterior: Judged) -> float:
    """Return P(A) of one parameter's prior; 1 where the posterior is not restricted."""
    if not is_restricted(posterior) or FAMILIES[posterior.family].limits is None:
        return 1.0
    first, last = _levels_of_limits(posterior)
    return last - first


def is_restricted(posterior: Judged) -> bool:
    """Return whether a posterior is restricted to what records within the bounds can have."""
    return any(isinstance(block, Restricted) for block in blocks_of(posterior.distribution))


def _cells(block: Distribution) -> int:
    return len(block.mean(block.parameters[0]))


def _interval(posterior: Judged) -> tuple[float, float]:
    """Return the centre and the half range of what a mean and a variance are of."""
    moments: Any = FAMILIES[posterior.family].mean_and_variance
    interval: tuple[float, float] = moments.interval(posterior.observed[0].plan.parameters)
    return interval


def _components(prior: Any) -> Components:
    weights, parts = (prior.weights, prior.components) if isinstance(prior, Mixture) else ((1.0,), (prior,))
    total = math.fsum(weights)
    return [(weight / total, part) for weight, part in zip(weights, parts, strict=True)]


def _share_of_components(components: Components, interval: tuple[float, float]) -> float:
    return sum(weight * share_of_bounded(part, interval) for weight, part in components)


def _levels_of_limits(posterior: Judged) -> tuple[float, float]:
    """Return F(l) and F(u) of the prior of one parameter."""
    constants: Any = posterior.constants
    limits: Any = FAMILIES[posterior.family].limits
    low, high = limits(constants)
    parts = [
        (weight, _outside(_distribution_of(part, posterior, constants), (low, high)))
        for weight, part in _components(posterior.prior)
    ]
    below, above = (sum(weight * outside[side] for weight, outside in parts) for side in (0, 1))
    return below, 1.0 - above


def _outside(distribution: Any, limits: tuple[float, float]) -> tuple[float, float]:
    """Return what a distribution has below and above limits, themselves left out: exact of conjugate ones."""
    low, high = limits
    if isinstance(distribution, OneParameter):
        conjugate, centre = cast("Distribution", distribution), np.zeros(1)
        first, last = distribution.coordinate().line.domain
        below, above = (
            moments_between(conjugate, part, centre)[0].item() if part[0] < last and part[1] > first else 0.0
            for part in ((-math.inf, low), (high, math.inf))
        )
        return below, above
    below, reached = distribution.cdf(np.array([limits]))[0].tolist()
    if isinstance(distribution, MixedDistribution):
        # A point mass at a limit lies within.
        below -= float(distribution.chance[0] @ (distribution.atoms == low))
    return below, 1.0 - reached


def share_of_bounded(part: NormalInverseGamma, interval: tuple[float, float]) -> float:
    """Return P(A) of a mean and a variance, with `interval` the centre and the half range of the records."""
    from scipy.special import stdtr, stdtrit  # slow to import

    centre, half_range = interval
    degrees = 2.0 * part.concentration
    # m = mu + t sqrt(s / (a kappa)) with t Student's of 2 a degrees of freedom.
    scale = math.sqrt(part.scale / (part.concentration * part.precision))
    first, last = (stdtr(degrees, (centre + side - part.loc) / scale) for side in (-half_range, half_range))
    levels = first + (last - first) * (np.arange(_POINTS) + 0.5) / _POINTS
    means = np.asarray(part.loc + scale * stdtrit(degrees, levels), dtype=np.float64)
    chance = _chance_of_room(part, interval, means)
    return float((last - first) * np.mean(chance))


def _chance_of_room(part: NormalInverseGamma, interval: tuple[float, float], mean: Floats) -> Floats:
    """Return P(v <= V(m) | m), 0 where m is beyond the bounds."""
    from scipy.special import gammaincc

    centre, half_range = interval
    room = half_range**2 - (mean - centre) ** 2
    scale = part.scale + part.precision * (mean - part.loc) ** 2 / 2.0
    # The distribution function of an inverse gamma is Q(a, scale / v).
    chance = gammaincc(part.concentration + 0.5, scale / np.where(room > 0.0, room, 1.0))
    return np.where(room > 0.0, chance, 0.0)


def density_of_bounded(
    components: Components, interval: tuple[float, float], position: int, points: Floats
) -> Floats:
    """Return the density (2) of a mean (position 0) or a variance (1), given A.

    Parameters
    ----------
    components : list of (float, NormalInverseGamma)
    interval : (float, float)
        The centre and the half range of the records, in the column's unit.
    position : {0, 1}
    points : ndarray of float64

    Returns
    -------
    ndarray like `points`
    """
    from scipy.special import ndtr

    centre, half_range = interval
    numerator = np.zeros(points.shape)
    for weight, part in components:
        plain = part.distribution()
        density = plain.density(plain.parameters[position], points[None])[0]
        if position == 0:
            numerator += weight * density * _chance_of_room(part, interval, points)
        else:
            reach = np.sqrt(np.maximum(half_range**2 - points, 0.0))
            sd = np.sqrt(np.maximum(points, np.finfo(np.float64).tiny) / part.precision)
            inside = ndtr((centre + reach - part.loc) / sd) - ndtr((centre - reach - part.loc) / sd)
            numerator += weight * density * np.where(points <= half_range**2, inside, 0.0)
    density_given: Floats = numerator / _share_of_components(components, interval)
    return density_given


def prior_distribution_of(posterior: Judged) -> Distribution | None:
    """Return the whole prior of one cell's parameters, in the posterior's order; None where it has no form.

    That is the prior of regressions and of several columns, and where the posterior knows no constants.
    """
    prior, constants = posterior.prior, posterior.constants
    if constants is None:
        return None
    components = [
        (weight, _distribution_of(part, posterior, constants)) for weight, part in _components(prior)
    ]
    if any(part is None for _, part in components):
        return None
    if not isinstance(prior, Mixture):
        ((_, alone),) = components
        return cast("Distribution", alone)
    # A prior mixture is a posterior mixture that has seen nothing.
    share = np.array([[weight] for weight, _ in components])
    return PosteriorMixture(
        distributions=tuple(part for _, part in components), share=share, log_evidence=np.zeros(1)
    )


def quantiles_of_one(prior: Distribution, levels: Floats) -> Floats:
    """Return quantiles (n_levels,) of the prior of one parameter, also of a mixture, free of draws."""
    (name,) = prior.parameters
    rng = np.random.default_rng(0)  # quantiles of one parameter rest on no draws
    if not isinstance(prior, PosteriorMixture):
        return np.asarray(prior.quantiles(name, tuple(levels), 0, rng)[0])
    # Of each component by interpolation between its quantiles at many levels; then of all.
    many = np.unique(np.concatenate([levels, _TAIL, 1.0 - _TAIL]))
    parts = np.stack([part.quantiles(name, tuple(many), 0, rng)[0] for part in prior.distributions])
    points = np.unique(parts)
    below = np.stack([np.interp(points, part, many, left=0.0, right=1.0) for part in parts])
    return np.asarray(np.interp(levels, prior.share[:, 0] @ below, points))


def _distribution_of(prior: object, posterior: Judged, constants: Constants) -> Any:
    family = FAMILIES[posterior.family]
    match prior:
        case Beta() | Gamma() | InverseGamma() | Normal() | NormalInverseGamma():
            return prior.distribution()
        case Dirichlet():
            (space,) = family.parameter_spaces(constants)
            given = np.array(prior.concentration, dtype=np.float64)
            return BlockDirichlet(
                concentration=np.broadcast_to(given, (1, *space.shape)), starts=np.array(space.starts)
            )
        case Density() | Points() | Truncated() | WeightedSum():
            from suffice.pipeline.ask.inference.any_prior import density_posterior  # rarely needed

            return density_posterior(prior, family, constants)
        case Independent() | JointDensity() if family.mean_and_variance is not None:
            from suffice.pipeline.ask.inference.any_joint_prior import prior_distribution

            mean, variance = posterior.parameters
            return prior_distribution(prior, family.mean_and_variance.interval(constants), (mean, variance))
    return None

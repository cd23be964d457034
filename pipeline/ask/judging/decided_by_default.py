r"""Whether a default prior decides an interval, and not what was released.

A prior and a posterior are compared by the prior probability of the posterior's central interval. That is the
same on every scale of the parameter, and needs no moments, which priors spread over scales owe to far tails.
Where the release says nothing, it is the interval's own mass. Of normal priors and posteriors about the same
middle it falls below ``MOSTLY`` where the posterior's standard deviation is below half the prior's.

A prior of categories may also draw a large share towards the others though its interval is not the prior's:
it gives every small share something that noise does not rule out. Under the posterior, with the concentration
a of every category and the categories j of one distribution,

.. math:: \frac{d}{da} E[p_k] = \mathrm{Cov}\Bigl(p_k, \sum_j \log p_j\Bigr),

so half the concentration moves the mean by about a / 2 times that.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.beta import Beta
from suffice.pipeline.math.distributions.cell_blocks import blocks_of
from suffice.pipeline.math.distributions.dirichlet import BlockDirichlet, Dirichlet
from suffice.pipeline.math.distributions.gamma import Gamma
from suffice.pipeline.math.distributions.inverse_gamma import InverseGamma
from suffice.pipeline.math.distributions.normal import Normal
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.distributions.shortest_intervals import shortest_of_draws
from suffice.pipeline.math.engines.combined import PosteriorMixture
from suffice.pipeline.math.parameters.draws import MASS
from suffice.pipeline.math.parameters.parameter_posterior import points_for
from suffice.pipeline.math.priors.density import Density
from suffice.pipeline.math.priors.joint_density import Independent, JointDensity
from suffice.pipeline.math.priors.mixtures import Mixture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from suffice.pipeline.ask.judging.judged import Judged
    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.terms.statistics.block import Parameters
    from suffice.typing import Floats, Mask


def prior_distribution_of(posterior: Judged) -> Distribution | None:
    """Return the prior of one cell's parameters, in the order of the posterior's; None where it has no form.

    That is the prior of regressions and of several columns, and where the posterior knows no constants.
    """
    prior, constants = posterior.prior, posterior.constants
    if constants is None:
        return None
    family = FAMILIES[posterior.family]
    match prior:
        case Density():
            from suffice.pipeline.ask.inference.any_prior import density_posterior  # rarely needed

            return density_posterior(prior, family, constants)
        case Independent() | JointDensity() if family.mean_and_variance is not None:
            from suffice.pipeline.ask.inference.any_joint_prior import prior_distribution

            mean, variance = posterior.parameters
            return prior_distribution(prior, family.mean_and_variance.interval(constants), (mean, variance))
        case Mixture():
            weights = np.array(prior.weights)
            parts = [_conjugate(component, posterior, constants) for component in prior.components]
            known = tuple(part for part in parts if part is not None)
            if len(known) < len(parts):
                return None
            share = (weights / np.sum(weights))[:, None]
            return PosteriorMixture(distributions=known, share=share, log_evidence=np.zeros(1))
    return _conjugate(prior, posterior, constants)


def _conjugate(prior: object, posterior: Judged, constants: Parameters) -> Distribution | None:
    match prior:
        case Beta() | Gamma() | InverseGamma() | Normal() | NormalInverseGamma():
            return prior.distribution()
        case Dirichlet():
            (space,) = FAMILIES[posterior.family].parameter_spaces(constants)
            given = np.array(prior.concentration, dtype=np.float64)
            return BlockDirichlet(
                concentration=np.broadcast_to(given, (1, *space.shape)), starts=np.array(space.starts)
            )
    return None


def prior_density_of(posterior: Judged, parameter: str, points: ArrayLike) -> Floats | None:
    """Return the prior's marginal density; see ``Posterior.prior_density``."""
    shape = posterior.mean(parameter).shape[1:]
    given = points_for(points, shape)
    distribution = prior_distribution_of(posterior)
    if distribution is None:
        return None
    name = distribution.parameters[posterior.parameters.index(parameter)]
    density = distribution.density(name, given[None])
    return None if density is None else density[0]


MOSTLY = 2.0 / 3.0
"""The least prior probability of a 95 % interval that is mostly the prior's."""
MOVES = 0.4
"""The least that half the concentration moves a mean by for it to be said, in posterior standard deviations.
Without noise it moves a share of m records by 1 / 2 over the root of m + 1: by less, but where m is 0."""
_LEVELS = (np.arange(200) + 0.5) / 200
_DRAWS, _PRIOR_DRAWS = 1000, 20_000


def decided_by_default(posterior: Judged) -> dict[str, Mask]:
    """Return which intervals are mostly the default prior's; see ``Posterior.decided_by_default``."""
    if not _is_under_default(posterior):
        return {}
    rng = np.random.default_rng(0)
    ends = ((1.0 - MASS) / 2.0, (1.0 + MASS) / 2.0)
    intervals = {
        name: posterior.distribution.quantiles(name, ends, _DRAWS, rng) for name in posterior.parameters
    }
    prior = prior_distribution_of(posterior)
    if prior is not None:
        levels = [prior.quantiles(name, tuple(_LEVELS), _DRAWS, rng)[0] for name in prior.parameters]
    else:
        levels = _levels_of_draws(posterior, [each.shape[1:-1] for each in intervals.values()], rng)
    return {
        name: _prior_probability(of_prior, each) >= MOSTLY
        for of_prior, (name, each) in zip(levels, intervals.items(), strict=True)
    }


def _levels_of_draws(
    posterior: Judged, shapes: Sequence[tuple[int, ...]], rng: np.random.Generator
) -> list[Floats]:
    """Return quantiles of draws of a prior without a form, (n_levels,) or (n_entries, n_levels) a parameter.

    Parameters
    ----------
    shapes : sequence of tuple
        () or (n_entries,), of each parameter.
    """
    truth: Any = FAMILIES[posterior.family].truth
    drawn = truth(posterior.prior, posterior.observed[0].plan.parameters, _PRIOR_DRAWS, rng)
    levels = np.quantile(drawn, _LEVELS, axis=0).T
    first = np.cumsum([0, *(math.prod(shape) for shape in shapes)])
    return [
        levels[start:stop].reshape(*shape, len(_LEVELS))
        for shape, (start, stop) in zip(shapes, itertools.pairwise(first), strict=True)
    ]


def moved_by_default(posterior: Judged) -> dict[str, Mask]:
    """Return which shares the default prior draws elsewhere; see ``Posterior.moved_by_default``."""
    prior = posterior.prior
    if not isinstance(prior, Dirichlet) or not _is_under_default(posterior):
        return {}
    constants = posterior.observed[0].plan.parameters
    (space,) = FAMILIES[posterior.family].parameter_spaces(constants)
    (name,) = posterior.parameters
    rng = np.random.default_rng(0)
    halved = np.array(prior.concentration, dtype=np.float64) / 2.0
    parts = [
        _moved(block.sample(_DRAWS, rng)[name], halved, tuple(space.starts))
        for block in blocks_of(posterior.distribution)
    ]
    return {name: np.concatenate(parts)}


def _moved(shares: Floats, halved: Floats, starts: tuple[int, ...]) -> Mask:
    """Return which means (n_cells, n_categories) are moved, by draws of shares (n_draws, ...)."""
    logs = np.log(np.maximum(shares, np.finfo(np.float64).tiny)) * halved
    away = shares - np.mean(shares, axis=0)
    change = np.empty(shares.shape[1:])
    for first, last in itertools.pairwise([*starts, shares.shape[-1]]):
        part = slice(first, last)
        change[..., part] = np.mean(away[..., part] * np.sum(logs[..., part], axis=-1, keepdims=True), axis=0)
    lower, upper = np.moveaxis(shortest_of_draws(shares, MASS, (0.0, 1.0)), -1, 0)
    # An interval that reaches 0 or 1 holds the smallest shares, whatever their mean.
    is_inner = (lower > 0.0) & (upper < 1.0)
    return np.asarray(is_inner & (np.abs(change) >= MOVES * np.std(shares, axis=0)))


def _is_under_default(posterior: Judged) -> bool:
    """Return whether a noise-aware posterior has the family's default prior."""
    if not posterior.observed or posterior.method == "plug-in":
        return False
    default = FAMILIES[posterior.family].default_prior(posterior.observed[0].plan.parameters)
    return bool(posterior.prior == default)


def _prior_probability(levels: Floats, intervals: Floats) -> Floats:
    """Return shares of the prior's quantiles inside of intervals, (n_cells,) or (n_cells, n_categories)."""
    inside = np.empty(intervals.shape[:-1])
    for entry in np.ndindex(intervals.shape[1:-1]):
        of_entry = (slice(None), *entry)
        lower, upper = np.moveaxis(intervals[of_entry], -1, 0)
        below = np.searchsorted(levels[entry], lower, side="left")
        inside[of_entry] = np.searchsorted(levels[entry], upper, side="right") - below
    shares: Floats = inside / len(_LEVELS)
    return shares

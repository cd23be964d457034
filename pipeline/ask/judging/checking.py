r"""A released quantity against its posterior predictive; and what a default prior decides.

Checking. A replicate draws the parameters from the posterior, a number of records, records from the family's
model, clipped as the release's are, and noise of the release's distribution. With T a released quantity and
:math:`T_1, \dots, T_D` its replicates

.. math:: \text{tail} = \min\Bigl(1, \ \frac{2}{D + 1}
    \bigl(1 + \min(\#\{T_d \ge T\}, \#\{T_d \le T\})\bigr)\Bigr). \qquad (1)

Where N is private it is drawn from its prior given the released n alone, by importance: of candidates
:math:`N_c = \hat n - E_c` the one with the largest :math:`\log \pi(N_c) + G_c`, with Gumbel numbers G, is
drawn in proportion to :math:`\pi`. The released values are used twice, once to find the parameters: tails are
drawn to the middle, and a model that is wrong may still reproduce what it was fitted to. A small tail says
that something is wrong; a large one says little.

A default decides. A prior and a posterior are compared by the prior probability of the posterior's central
interval,

.. math:: F_0(u) - F_0(l) \ge \tfrac 2 3, \qquad (2)

with :math:`F_0` the prior's marginal distribution function. That is the same on every scale of the parameter,
and needs no moments, which priors spread over scales owe to far tails. Where the release says nothing, it is
the interval's mass, .95. Of normal priors and posteriors about the same middle it is :math:`2 \Phi(1.96 \, r)
- 1` with r the ratio of their standard deviations, and falls below 2/3 where r is below about half.

A default may also decide the far end of an interval alone: noise that hides a scale leaves its rate no upper
end but the prior's. With m the posterior's median and t its quantile at .9875, above which half of what lies
beyond u is, an upper end is the prior's where :math:`u - m \ge \tfrac 2 3 (u - l)`, and

.. math:: \frac{F_0(u) - F_0(m)}{1 - F_0(m)} \ge \tfrac 2 3 \quad\text{or}\quad
    \frac{F_0(t) - F_0(u)}{1 - F_0(u)} \ge \tfrac 1 3, \qquad (3)

and a lower end likewise. Where the likelihood is flat above m these are .95 and 1/2; where it is flat beyond
u alone, the second is 1/2; where it is not, the posterior ends long before the prior does. A half that is a
small part of the interval is not judged: a probability near 0 has no lower end but the prior's, which moves
the interval by little.

A covariance is decided by the default, too, where the interval of its correlation by itself is mostly the
prior's, as (2) says: variances may be seen where correlations are not.

A prior of categories may also draw a large share towards the others though its interval is not the prior's:
it gives every small share something that noise does not rule out. Under the posterior, with the concentration
a of every category and the categories j of a distribution,

.. math:: \frac{d}{da} E[p_k] = \mathrm{Cov}\Bigl(p_k, \sum_j \log p_j\Bigr), \qquad (4)

for a enters the log density as :math:`(a - 1) \sum_j \log p_j` and a normaliser. So half the concentration
moves the mean by about a / 2 times that.

Symbols:

- T: ``released``, (n_cells, n_quantities); T_d: ``replicated``, (draws, n_cells, n_quantities)
- l, m, u and t: of ``quantiles``, (n_cells, ..., 5)
- F_0: by ``levels``, 1,000 quantiles of the prior
- p: ``shares``, (n_draws, n_cells, n_categories)
- a / 2: ``halved``

Method. Tails are shares of draws, and none is below 2 / (D + 1). (2) is right to .001, and (3) to .001 over
what the prior has beyond u; (4) is a covariance over 1000 draws.

References
----------
Gelman, Meng, Stern. Posterior predictive assessment of model fitness via realized discrepancies. Stat. Sinica
6, 1996.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.bounded_records import n_quantity
from suffice.pipeline.ask.judging.bounded_prior import prior_quantiles_of
from suffice.pipeline.ask.judging.conflict import n_prior_of
from suffice.pipeline.ask.judging.judged import names_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.composite import blocks_of
from suffice.pipeline.math.distributions.dirichlet import Dirichlet
from suffice.pipeline.math.distributions.intervals import shortest_of_draws
from suffice.pipeline.math.distributions.spread_scales import SpreadNormalInverseWishart
from suffice.pipeline.math.parameters.parameter_posterior import MASS
from suffice.pipeline.terms.statistics.simulated_noise import simulated_noise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.ask.judging.judged import Judged
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Counts, Floats, Mask


MOSTLY = 2.0 / 3.0
"""The least prior probability of a 95 % interval, or of its far half, that is mostly the prior's; and the
least share of the length, of a half whose end is judged by itself."""
ALIKE = 1.0 / 3.0
"""The least share of a prior's tail that half of a posterior's holds, for the two to be alike."""
MOVES = 0.4
"""The least that half the concentration moves a mean by for it to be said, in posterior standard deviations.
Without noise it moves a share of m records by 1 / 2 over the root of m + 1: by less, but where m is 0."""
_LEVELS = (np.arange(1000) + 0.5) / 1000
_DRAWS, _PRIOR_DRAWS = 1000, 20_000
_CANDIDATES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """How the released quantities lie among replicates of the release.

    Attributes
    ----------
    quantities : tuple of str
        As ``total``, ``total[x]`` or ``count[UA]``.
    released : ndarray of shape (n_cells, n_quantities), float64
        Unbiased estimates, in the column's unit.
    replicated : ndarray of shape (draws, n_cells, n_quantities), float64
        Those of the replicates.
    groups : dict of str to list
        The key of every cell, by group column.
    """

    quantities: tuple[str, ...]
    released: Floats = field(repr=False)
    replicated: Floats = field(repr=False)
    groups: Mapping[str, list[str | int]] = field(repr=False)

    @property
    def tails(self) -> Floats:
        """Twice the smaller share of replicates that are as far out, (n_cells, n_quantities), at most 1.

        The release counts as one of them: no tail is below ``2 / (draws + 1)``.
        """
        draws = len(self.replicated)
        above, below = (
            # (1): the release counts as a replicate.
            np.sum(sign * self.replicated >= sign * self.released, axis=0) + 1.0
            for sign in (1.0, -1.0)
        )
        tails: Floats = np.minimum(2.0 * np.minimum(above, below) / (draws + 1.0), 1.0)
        return tails

    def rows(self) -> list[dict[str, Any]]:
        """One row a cell and quantity: keys, quantity, released, mean and sd of the replicates, tail."""
        mean, sd, tails = np.mean(self.replicated, axis=0), np.std(self.replicated, axis=0), self.tails
        return [
            {
                **{column: keys[cell] for column, keys in self.groups.items()},
                "quantity": name,
                "released": float(self.released[cell, position]),
                "mean": float(mean[cell, position]),
                "sd": float(sd[cell, position]),
                "tail": float(tails[cell, position]),
            }
            for cell in range(len(self.released))
            for position, name in enumerate(self.quantities)
        ]


def check_of(posterior: Judged, quantity: str | None, draws: int, rng: np.random.Generator) -> Check:
    """Replicate what a posterior rests on; see ``Posterior.check``."""
    model = posterior.model
    if model is None or len(posterior.observed) != 1:
        message = f"{posterior.statistic}: a check takes the posterior of one release, of Release.posterior"
        raise UsageError(message)
    if posterior.design_effect is not None:
        message = (
            f"{posterior.statistic}: replicates are of independent rows, which rows of one unit are not; to "
            "check all the same, ask the posterior with within_unit='ignored'"
        )
        raise UsageError(message)
    statistic = posterior.observed[0]
    quantities = [
        quantity_of_plan for quantity_of_plan in statistic.plan.quantities if quantity_of_plan.name != "n"
    ]
    names = names_of(quantities)
    chosen = [
        (quantity_of_plan, name)
        for quantity_of_plan, name in zip(quantities, names, strict=True)
        if quantity in {None, name}
    ]
    if not chosen:
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        message = f"{posterior.statistic} has no quantity {str(quantity)[:40]!r} to check: it has {shown}"
        raise UsageError(message)
    drawn = posterior.sample(draws, rng)
    # The hierarchy of a replicate: parameters, records, sums, noise.
    sizes = _numbers_of_records(statistic, n_prior_of(posterior, statistic), draws, rng)
    exact = model.released([drawn[name] for name in posterior.parameters], sizes, rng)
    noise = simulated_noise(statistic.plan, exact.values.shape[:-1], rng, statistic.cells_summed)
    replicate = dataclasses.replace(exact, values=exact.values + noise.astype(object))
    return Check(
        quantities=tuple(name for _, name in chosen),
        released=np.stack([statistic.estimates(quantity_of_plan) for quantity_of_plan, _ in chosen], axis=-1),
        replicated=np.stack(
            [replicate.estimates(quantity_of_plan).reshape(draws, -1) for quantity_of_plan, _ in chosen],
            axis=-1,
        ),
        groups=posterior.groups,
    )


def _numbers_of_records(
    statistic: NoisyStatistic, n_prior: NPrior | None, draws: int, rng: np.random.Generator
) -> Counts:
    """Numbers of records given the released n, (draws, n_cells), by importance."""
    cells = len(statistic.values)
    if n_prior is not None and n_prior.support[0] == n_prior.support[1]:
        return np.full((draws, cells), n_prior.support[0])
    n_map = n_quantity(statistic)
    if n_map is None:
        message = f"{statistic.plan.name} does not tell the number of records: it cannot be replicated"
        raise UsageError(message)
    coefficients = np.array([float(weight) for weight in n_map.coefficients.values()])
    estimate = statistic.estimates(n_map)
    shape, of_n = (_CANDIDATES, draws, cells), list(n_map.coefficients)
    noise = simulated_noise(statistic.plan, shape, rng, statistic.cells_summed, of_n) @ coefficients
    # The noise is symmetric about 0: released n less noise is N under a flat prior.
    candidates = np.maximum(np.rint(estimate - noise), 0.0)
    if n_prior is None:
        return np.asarray(candidates[0], dtype=np.int64)
    low, high = n_prior.support
    candidates = np.clip(candidates, low, high)
    # Outside of the support the nearest number stands: with a prior in conflict there may be no other.
    # The largest of log weights plus Gumbel numbers is a draw in proportion to the weights.
    log_weight = n_prior.log_prob(candidates) + rng.gumbel(size=candidates.shape)
    best = np.argmax(log_weight, axis=0)[None]
    return np.asarray(np.take_along_axis(candidates, best, axis=0)[0], dtype=np.int64)


def decided_by_default(posterior: Judged) -> dict[str, Mask]:
    """Return which intervals are mostly the default prior's; see ``Posterior.decided_by_default``."""
    if not _is_under_default(posterior):
        return {}
    rng = np.random.default_rng(0)
    tail = (1.0 - MASS) / 2.0
    marks = (tail / 2.0, tail, 0.5, 1.0 - tail, 1.0 - tail / 2.0)
    quantiles = {
        name: posterior.distribution.quantiles(name, marks, _DRAWS, rng) for name in posterior.parameters
    }
    levels = prior_quantiles_of(posterior, _LEVELS, rng)
    if levels is None:
        levels = _levels_of_draws(posterior, [each.shape[1:-1] for each in quantiles.values()], rng)
    decided = {
        name: _is_mostly_prior(of_prior, each)
        for of_prior, (name, each) in zip(levels, quantiles.items(), strict=True)
    }
    if isinstance(posterior.prior, SpreadNormalInverseWishart):
        decided["covariance"] = decided["covariance"] | _of_correlations(posterior, posterior.prior, rng)
    return decided


def _of_correlations(posterior: Judged, prior: SpreadNormalInverseWishart, rng: np.random.Generator) -> Mask:
    """Return which correlations have intervals, (n_cells, n_pairs), that are mostly the prior's."""
    from scipy.special import betainc

    drawn = posterior.distribution.sample(_DRAWS, rng)
    covariance, variance = drawn["covariance"], drawn["variance"]
    first, second = np.triu_indices(variance.shape[-1], 1)
    correlation = covariance / np.sqrt(variance[..., first] * variance[..., second])
    tail, a = (1.0 - MASS) / 2.0, prior.concentration
    ends = np.quantile(correlation, [tail, 1.0 - tail], axis=0)
    lower, upper = betainc(a, a, np.clip((1.0 + ends) / 2.0, 0.0, 1.0))
    return np.asarray(upper - lower >= MOSTLY)


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
    # (4) times a / 2: the covariance over draws with the sum over a distribution's categories.
    logs = np.log(np.maximum(shares, np.finfo(np.float64).tiny)) * halved
    # Only p_k is centred: a covariance needs no more.
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


def _is_mostly_prior(levels: Floats, quantiles: Floats) -> Mask:
    """Return which intervals, (n_cells,) or (n_cells, n_categories), or far halves are mostly the prior's."""
    lowest, lower, middle, upper, highest = np.moveaxis(quantiles, -1, 0)
    # F_0 at all of them: shares of the prior's quantiles.
    below_lowest, below_lower = (_shares_below(levels, points, "left") for points in (lowest, lower))
    below_middle = _shares_below(levels, middle, "left")
    below_upper, below_highest = (_shares_below(levels, points, "right") for points in (upper, highest))
    # (2)
    whole = below_upper - below_lower >= MOSTLY
    # (3): where next to nothing of the prior lies beyond an end, that end is not the prior's.
    length = MOSTLY * (upper - lower)
    above_is_prior = _is_priors(below_upper - below_middle, below_highest - below_upper, 1.0 - below_upper)
    below_is_prior = _is_priors(below_middle - below_lower, below_lower - below_lowest, below_lower)
    return np.asarray(
        whole | ((upper - middle >= length) & above_is_prior) | ((middle - lower >= length) & below_is_prior)
    )


def _is_priors(half: Floats, next_to_end: Floats, beyond: Floats) -> Mask:
    """Return which ends are the prior's by (3), from its probabilities.

    Parameters
    ----------
    half, next_to_end, beyond : ndarray
        Between the median and the end, between the end and where half of the posterior's tail lies, and in
        all beyond the end.
    """
    is_there = beyond > 1.0 / len(_LEVELS)
    return np.asarray(is_there & ((half >= MOSTLY * (half + beyond)) | (next_to_end >= ALIKE * beyond)))


def _shares_below(levels: Floats, points: Floats, side: Literal["left", "right"]) -> Floats:
    """Return the shares of the prior's quantiles below points, (n_cells,) or (n_cells, n_categories)."""
    below = np.empty(points.shape)
    for entry in np.ndindex(points.shape[1:]):
        of_entry = (slice(None), *entry)
        below[of_entry] = np.searchsorted(levels[entry], points[of_entry], side=side)
    shares: Floats = below / len(_LEVELS)
    return shares


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
    # F_0 by draws where it has no form.
    levels = np.quantile(drawn, _LEVELS, axis=0).T
    first = np.cumsum([0, *(math.prod(shape) for shape in shapes)])
    return [
        levels[start:stop].reshape(*shape, len(_LEVELS))
        for shape, (start, stop) in zip(shapes, itertools.pairwise(first), strict=True)
    ]

r"""Posteriors of what records are once the public bounds have clipped them, and where more is modelled.

The mean of numbers within bounds lies within them. A posterior of records as bounds leave them is therefore
the posterior under the prior restricted to that region, whichever prior was stated. Records before clipping
have no such limits.

Evidence of clipping. A release may count the records that clipping moved, and a cell has evidence where

.. math:: P(E \ge \hat n_{\mathrm{moved}}) \le \alpha / c, \qquad \alpha = 10^{-4}, \qquad (1)

for any of its c counts, with E that count's noise and c = 2 for a single release: of 10,000 cells in which no
record was moved, at most one is taken for clipped on average (Bonferroni).

The released n is judged by the prior of N. With E its noise, :math:`\hat n` released and both tails

.. math:: P(n^* \ge \hat n) = \sum_N \pi(N) \, P(E \ge \hat n - N), \qquad
    \text{tail} = 2 \min\bigl(P(n^* \ge \hat n), P(n^* \le \hat n)\bigr). \qquad (2)

Prior probabilities of :math:`N \ge n` are :math:`1 - H_n / H_{M + 1}` for ``Reciprocal(M)``, with harmonic
numbers :math:`H_n = \psi(n + 1) + \gamma` (DLMF 5.4.14).

Symbols:

- E: a sum of Laplace numbers of scale ``QuantityNoise.scale`` times ``of_quantity``, ``counts`` of each kind
- n: ``estimate``, (n_cells,)
- alpha: ``FALSE_ALARM``
- pi(N): ``n_prior``, on ``support``

Method. Discrete noise is at most a step above the continuous noise of the same scale, whose tail is exact:
counts are moved by a step, and the released n by half, towards what is expected. Sums over N are by
quadrature in octaves of the noise about the estimate, singly up to 16 values.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.posterior_terms import BY_EVIDENCE, MODELLED
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.composite import PartlyClipped
from suffice.pipeline.math.distributions.laplace_sums import upper_tail
from suffice.pipeline.math.distributions.quadrature import integral_rule
from suffice.pipeline.math.distributions.regions import within_several
from suffice.pipeline.math.distributions.within_limits import within
from suffice.pipeline.math.distributions.within_region import within_region
from suffice.pipeline.math.priors.record_count import Fixed, Reciprocal, Uniform
from suffice.pipeline.terms.statistics.sensitivity import Quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats, Mask


PLAIN = 0.01
"""A tail known to be above this is not worked out: a bound from below stands for it."""
_REACH = np.concatenate([-np.exp2(np.arange(6.0, -2.0, -1.0)), [0.0], np.exp2(np.arange(-1.0, 7.0))])
_FEW = 16
"""Values of N that are summed one by one."""
FALSE_ALARM = 1e-4
"""Chance that a cell in which clipping moved no record is taken for one that it did."""
_MOVED = ("n_below", "n_above")


def refuse_to_model(plan: StatisticPlan, clipping: str) -> None:
    """Refuse to model clipping where there is no model of clipped records: it would change nothing.

    Raises
    ------
    UsageError
    """
    family = FAMILIES[plan.family]
    is_modelled = family.clipped_record is not None or family.mean_and_variance is not None
    if clipping == MODELLED and not is_modelled:
        message = (
            f"clipping of {plan.name} cannot be {MODELLED}: of {plan.family} there is no model of clipped "
            "records; leave clipping out, and parameters are of the records as the public bounds leave them"
        )
        raise UsageError(message)


def cells_to_model(parts: Sequence[NoisyStatistic], clipping: str) -> Mask:
    """Return in which cells clipping may be modelled, where it matters: (n_cells,).

    Parameters
    ----------
    parts : sequence of NoisyStatistic
        One, or several of disjoint data, cell by cell; with their counts of moved records, if they have any.
    clipping : {"by-evidence", "modelled", "ignored"}
    """
    cells = np.full(len(parts[0].values), clipping == MODELLED)
    if clipping == BY_EVIDENCE:
        cells |= evidence_of_clipping(*(observation for part in parts for observation in part.observations))
    return cells


def evidence_of_clipping(*statistics: NoisyStatistic) -> Mask:
    """Return in which cells a released count of moved records is beyond what noise alone does.

    The chance of a false alarm is that of all counts of a cell together.
    """
    counts = [
        (statistic, quantity)
        for statistic in statistics
        for quantity in statistic.plan.quantities
        if quantity.name in _MOVED
    ]
    cells = np.zeros(len(statistics[0].values), dtype=bool)
    for statistic, count in counts:
        # (1).
        cells |= _noise_alone(statistic, count) <= FALSE_ALARM / len(counts)
    return cells


def _noise_alone(statistic: NoisyStatistic, count: Quantity) -> Floats:
    """Return the chance that noise alone is as large as a count, or a little more: (n_cells,)."""
    noise = QuantityNoise.of(statistic, count, None)
    # A whole step of every component: rounded noise may be as far above.
    step = float(np.abs(noise.of_quantity) @ noise.counts)
    beyond = statistic.estimates(count) - step
    scales = np.tile(noise.scale * np.abs(noise.of_quantity), (len(beyond), 1))
    nothing = np.zeros(len(beyond))
    return upper_tail(beyond, scales, noise.counts, nothing, nothing)


def of_bounded_records(distribution: Distribution, plan: StatisticPlan) -> Distribution:
    """Return a distribution given that its parameters are those that records within the bounds can have.

    Cells that model clipping are left alone: they are of records before clipping.
    """
    if isinstance(distribution, PartlyClipped):
        return dataclasses.replace(distribution, plain=of_bounded_records(distribution.plain, plan))
    family = FAMILIES[plan.family]
    if family.limits is not None:
        return within(distribution, family.limits(plan.parameters))
    if family.mean_and_variance is not None:
        centre, half_range = family.mean_and_variance.interval(plan.parameters)
        return within_region(distribution, (centre - half_range, centre + half_range))
    if family.region is not None:
        return within_several(distribution, family.region(plan.parameters))
    return distribution


def can_be_of_bounded(parameters: Floats, plan: StatisticPlan) -> Mask:
    """Return which parameters, (n_parameters, n), those of records within the bounds can be: (n,)."""
    family = FAMILIES[plan.family]
    if family.limits is not None:
        low, high = family.limits(plan.parameters)
        return np.asarray((parameters[0] >= low) & (parameters[0] <= high))
    if family.mean_and_variance is not None:
        centre, half_range = family.mean_and_variance.interval(plan.parameters)
        mean, variance = parameters
        # (1) of within_region.py.
        return np.asarray(variance <= (half_range - (mean - centre)) * (half_range + (mean - centre)))
    if family.region is not None:
        region = family.region(plan.parameters)
        return region.inside(region.named(parameters))
    return np.ones(parameters.shape[1], dtype=bool)


def n_quantity(statistic: NoisyStatistic) -> Quantity | None:
    """Return the map from components to the number of records; None where they do not tell it."""
    plan = statistic.plan
    for quantity in plan.quantities:
        if quantity.name == "n":
            return quantity
    if plan.partition_total is None:
        return None
    from fractions import Fraction  # counts of categories only

    share = Fraction(1, plan.partition_total)
    return Quantity(name="n", coefficients=dict.fromkeys(range(len(plan.components)), share))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantityNoise:
    """Components that share their part in a quantity and in n, and the scale of their noise.

    Attributes
    ----------
    of_quantity, of_n : ndarray of shape (n_kinds,), float64
        Their coefficients in the quantity, and in n; 0 where n is known.
    counts : ndarray of shape (n_kinds,), float64
        How many components are of a kind, in all cells that are summed.
    scale : float
        In lattice units.
    """

    of_quantity: Floats
    of_n: Floats
    counts: Floats
    scale: float

    @classmethod
    def of(cls, statistic: NoisyStatistic, quantity: Quantity, n_map: Quantity | None) -> QuantityNoise:
        """Return the noise on a quantity, and on n where it is not known."""
        if statistic.plan.cone is not None:
            return cls._on_cone(statistic, quantity, n_map)
        of_n = {} if n_map is None else n_map.coefficients
        pairs: dict[tuple[float, float], int] = {}
        for position in range(len(statistic.plan.components)):
            pair = (float(quantity.coefficients.get(position, 0)), float(of_n.get(position, 0)))
            pairs[pair] = pairs.get(pair, 0) + 1
        pairs = {pair: count for pair, count in pairs.items() if any(pair)}
        of_quantity, others = np.array(list(pairs)).reshape(-1, 2).T
        counts = np.array(list(pairs.values()), dtype=np.float64) * statistic.cells_summed
        return cls(of_quantity=of_quantity, of_n=others, counts=counts, scale=statistic.plan.scale)

    @classmethod
    def _on_cone(cls, statistic: NoisyStatistic, quantity: Quantity, n_map: Quantity | None) -> QuantityNoise:
        """Return Laplace noise in the place of that on a cone, with its variances and its covariance.

        Its tails are no thinner, so that no conflict is found which noise explains.
        """
        cone = statistic.plan.cone
        if cone is None:
            raise ValueError(statistic.plan.name)
        weights = np.zeros((2, len(statistic.plan.components)))
        for row, each in enumerate((quantity, n_map)):
            for position, weight in ({} if each is None else each.coefficients).items():
                weights[row, position] = float(weight)
        variance = weights @ cone.covariance @ weights.T
        of_n = np.sqrt(variance[1, 1] / 2.0)
        # What goes along with n, and what does not.
        along = variance[0, 1] / 2.0 / of_n if of_n > 0.0 else 0.0
        apart = np.sqrt(max(variance[0, 0] / 2.0 - along**2, 0.0))
        return cls(
            of_quantity=np.array([along, apart]),
            of_n=np.array([of_n, 0.0]),
            counts=np.full(2, float(statistic.cells_summed)),
            scale=1.0,
        )

    @property
    def sd_of_n(self) -> float:
        """About the standard deviation of the noise on n."""
        return self.scale * float(np.sqrt(2.0 * (self.of_n**2 @ self.counts)))


def tails_of_n(statistic: NoisyStatistic, n_map: Quantity, n_prior: NPrior) -> Floats:
    """Two-sided tails of the released n under the prior of N, (n_cells,)."""
    noise = QuantityNoise.of(statistic, n_map, None)
    estimate = statistic.estimates(n_map)
    # Half of what the prior has beyond the estimate: the noise is as likely to be above as below.
    inside = np.minimum(_above(n_prior, estimate), 1.0 - _above(n_prior, estimate + 1.0)) / 2.0
    tails = inside.copy()
    for cell in np.flatnonzero(inside < PLAIN).tolist():
        tails[cell] = _tail_of_n(noise, n_prior, float(estimate[cell]))
    return tails


def _tail_of_n(noise: QuantityNoise, n_prior: NPrior, estimate: float) -> float:
    low, high = (float(end) for end in n_prior.support)
    scales = np.abs(noise.of_quantity) * noise.scale
    # A Laplace number of scale b has the variance 2 b^2.
    unit = float(np.sqrt(2.0 * (scales**2 @ noise.counts)))
    shift = float(np.abs(noise.of_quantity) @ noise.counts) / 2.0
    number, weight = _numbers_of_records(n_prior, estimate, unit)
    expected_less = _above(n_prior, np.array([estimate]))[0] <= 0.5
    gap = (estimate - number if expected_less else number - estimate) - shift
    nothing = np.zeros_like(gap)
    chance = upper_tail(gap, np.tile(scales, (len(gap), 1)), noise.counts, nothing, nothing)
    # Beyond the numbers that were summed, all are as far out as what was released.
    if expected_less:
        beyond = _above(n_prior, np.array([min(high, np.rint(number[-1])) + 1.0]))[0]
    else:
        beyond = 1.0 - _above(n_prior, np.array([max(low, np.rint(number[0]))]))[0]
    # (2).
    return min(1.0, 2.0 * float(chance @ weight + beyond))


def _numbers_of_records(n_prior: NPrior, estimate: float, unit: float) -> tuple[Floats, Floats]:
    """Values of N near an estimate, ascending, and the prior probability that each stands for."""
    low, high = (float(end) for end in n_prior.support)
    middle = min(max(estimate, low), high)
    edges = np.unique(np.clip(np.rint(middle + unit * _REACH), low, high + 1.0))
    edges = np.unique(np.append(edges, [min(middle, high), min(middle, high) + 1.0]))
    numbers, weights = [], []
    for left, right in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if right - left <= _FEW:
            records = np.arange(left, right)
            width = np.ones_like(records)
        else:
            nodes, widths = integral_rule(np.array([left - 0.5]), np.array([right - 0.5]))
            records, width = nodes.ravel(), widths.ravel()
        # Between integers the prior is smooth: an integral from half below to half above stands for the sum.
        numbers.append(records)
        weights.append(width * np.exp(n_prior.log_prob(np.clip(records, low, high))))
    return np.concatenate(numbers), np.concatenate(weights)


def _above(n_prior: NPrior, n: Floats) -> Floats:
    """The prior probability of N >= n."""
    low, high = n_prior.support
    start = np.ceil(np.clip(n, low, high + 1.0))
    if isinstance(n_prior, Fixed):
        return np.where(start <= low, 1.0, 0.0)
    if isinstance(n_prior, Uniform):
        return np.asarray((high + 1.0 - start) / (high - low + 1.0))
    if isinstance(n_prior, Reciprocal):
        from scipy.special import digamma

        # H_(M + 1), and the rest above start - 1.
        total = digamma(high + 2.0) + np.euler_gamma
        return np.asarray(1.0 - (digamma(start + 1.0) + np.euler_gamma) / total)
    raise TypeError(type(n_prior).__name__)

"""How many records the prior of N expects, and how far out the released n is; the noise on quantities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions.laplace_sums import upper_tail
from suffice.pipeline.math.distributions.quadrature import integral_rule
from suffice.pipeline.math.priors.record_count import Fixed, Reciprocal, Uniform
from suffice.pipeline.terms.statistics.sensitivity import Quantity

if TYPE_CHECKING:
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


PLAIN = 0.01
"""A tail known to be above this is not worked out: a bound from below stands for it."""
_REACH = np.concatenate([-np.exp2(np.arange(6.0, -2.0, -1.0)), [0.0], np.exp2(np.arange(-1.0, 7.0))])
_FEW = 16
"""Values of N that are summed one by one."""


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
        of_n = {} if n_map is None else n_map.coefficients
        pairs: dict[tuple[float, float], int] = {}
        for position in range(len(statistic.plan.components)):
            pair = (float(quantity.coefficients.get(position, 0)), float(of_n.get(position, 0)))
            pairs[pair] = pairs.get(pair, 0) + 1
        pairs = {pair: count for pair, count in pairs.items() if any(pair)}
        of_quantity, others = np.array(list(pairs)).reshape(-1, 2).T
        counts = np.array(list(pairs.values()), dtype=np.float64) * statistic.cells_summed
        return cls(of_quantity=of_quantity, of_n=others, counts=counts, scale=statistic.plan.scale)

    @property
    def sd_of_n(self) -> float:
        """About the standard deviation of the noise on n."""
        return self.scale * float(np.sqrt(2.0 * (self.of_n**2 @ self.counts)))


def tails_of_n(statistic: NoisyStatistic, n_map: Quantity, n_prior: NPrior) -> Floats:
    """Two-sided tails of the released n under the prior of N, (n_cells,)."""
    noise = QuantityNoise.of(statistic, n_map, None)
    estimate = statistic.estimates(n_map)
    inside = np.minimum(_above(n_prior, estimate), 1.0 - _above(n_prior, estimate + 1.0)) / 2.0
    tails = inside.copy()
    for cell in np.flatnonzero(inside < PLAIN).tolist():
        tails[cell] = _tail_of_n(noise, n_prior, float(estimate[cell]))
    return tails


def _tail_of_n(noise: QuantityNoise, n_prior: NPrior, estimate: float) -> float:
    low, high = (float(end) for end in n_prior.support)
    scales = np.abs(noise.of_quantity) * noise.scale
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

        total = digamma(high + 2.0) + np.euler_gamma
        return np.asarray(1.0 - (digamma(start + 1.0) + np.euler_gamma) / total)
    raise TypeError(type(n_prior).__name__)

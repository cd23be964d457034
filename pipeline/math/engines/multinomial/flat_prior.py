r"""A private N under a flat prior: the tilt is unknown, and given it the counts are independent.

Where no concentration differs from 1 and N has the prior 1 / (N + 1), or a flat one from 0 on, what N adds to
the joint weight of the counts is a mixture of tilts,

.. math::
    g(N) = \pi(N) \frac{N!}{\Gamma(A + N)} \propto \int_0^\infty e^{-s N} h_A(s)\, ds, \quad
    h_A(s) = \frac{e^{-s}}{\Gamma(A - 1)} \begin{cases}
        (1 - e^{-s})^{A - 2} & \pi \text{ flat} \\
        \int_0^s (1 - e^{-t})^{A - 2} dt & \pi(N) \propto 1 / (N + 1),
    \end{cases}

so the posterior of the counts is a mixture of rows that are independent given s: no convolution. The
trapezoidal rule over log s is off by :math:`2 |\Gamma(A + 2 \pi i / \delta)| / \Gamma(A)` or less, in every
g(N) alike. Moments need :math:`g(N) / (A + N)` and :math:`g(N) / ((A + N) (A + N + 1))`: h with A + 1 and
A + 2. Draws are those of a tilt, then of every count by itself. The bound of N is left out: ``resolve`` says
where that matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.multinomial.flat_rows import GeometricRows
from suffice.pipeline.math.priors.record_count import Reciprocal, Uniform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.multinomial.noisy_counts import NoisyCounts
    from suffice.typing import Cells, Floats


_NATS = 40.0
"""How far below its peak the density of log s may fall before it is left out."""
_BEYOND = 35.0
"""Nats that the bound of N has to be away from where N is."""
_ERROR = np.log(1e-13)
_BATCH_NUMBERS = 2**17
_MANY = 200
"""Categories from which on cells are worked out one by one, equal rows once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TiltMixture:
    """The posterior of counts as a mixture over tilts; made by ``resolve``.

    Attributes
    ----------
    counts : NoisyCounts
        The cells.
    rows : GeometricRows
        Their rows.
    first, number : ndarray of shape (n_cells,), int64
        Which tilts of the rule a cell has.
    mean, sd : ndarray of shape (n_cells, n_categories), float64
        Of the probabilities.
    log_evidence : ndarray of shape (n_cells,), float64
        As in ``CountPosterior``.
    """

    counts: NoisyCounts
    rows: GeometricRows
    first: Cells
    number: Cells
    mean: Floats
    sd: Floats
    log_evidence: Floats

    def sample_counts(self, draws: int, rng: np.random.Generator) -> Floats:
        """Independent draws of the latent counts, (draws, n_cells, n_categories), float64 integers."""
        cells, categories = self.mean.shape
        rule = Rule.of(self.counts)
        result = np.empty((categories, cells, draws))
        for batch in _batches(self.number, categories, max(draws, 1)):
            tilts, log_density = rule.at(self.first[batch], int(np.max(self.number[batch])))
            distinct, of_category, times = self.rows.take(batch).distinct()
            rows = distinct.tilted(tilts)
            weight = log_density[0] + np.sum(times[:, None] * rows.log_sum, axis=1)
            cumulative = np.cumsum(np.exp(weight - np.max(weight, axis=1, keepdims=True)), axis=1)
            cumulative /= cumulative[:, -1:]
            cell = np.repeat(np.arange(float(len(batch))), draws)
            target = cell + rng.random(cell.shape) * (1.0 - 2.0**-38)
            slots = np.searchsorted(
                (cumulative + np.arange(float(len(batch)))[:, None]).ravel(), target, side="right"
            )
            result[:, batch] = rows.sample(slots, of_category, rng).reshape(categories, len(batch), draws)
        return result.transpose(2, 1, 0)

    def take(self, cells: Cells) -> TiltMixture:
        """The given cells, in the given order."""
        return TiltMixture(
            counts=self.counts.take(cells),
            rows=self.rows.take(cells),
            first=self.first[cells],
            number=self.number[cells],
            mean=self.mean[cells],
            sd=self.sd[cells],
            log_evidence=self.log_evidence[cells],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The trapezoidal rule over log s, for h with A, A + 1 and A + 2.

    Attributes
    ----------
    tilt : ndarray of shape (n_nodes,), float64
        The nodes s, ascending.
    log_density : ndarray of shape (3, n_nodes), float64
        Log of h(s) s times the step: the nodes' weights.
    per_unit : int
        Nodes over a range of 1 of log s.
    """

    tilt: Floats
    log_density: Floats
    per_unit: int

    @classmethod
    def of(cls, counts: NoisyCounts) -> Rule:
        """Nodes so close that every g(N) is right to 1e-13, from the largest N to N = 0."""
        from scipy.special import gammaln, loggamma

        total = counts.total_concentration
        per_unit = 3
        while loggamma(total + 2.0 + 2j * np.pi * per_unit).real - gammaln(total + 2.0) > _ERROR:
            per_unit += 1
        least = -np.log(counts.support[0, 1] + 1.0) - _NATS / (total - 1.0)
        tilt = np.exp(np.arange(np.floor(least) * per_unit, 4.0 * per_unit + 1.0) / per_unit)
        density = _log_reciprocal if isinstance(counts.n_prior, Reciprocal) else _log_flat
        constant = gammaln(total) - np.log(per_unit) + float(counts.n_prior.log_prob(np.zeros(1))[0])
        logs = [constant + np.log(tilt) - tilt + density(total + more, tilt) for more in range(3)]
        return cls(tilt=tilt, log_density=np.array(logs), per_unit=per_unit)

    def at(self, first: Cells, number: int) -> tuple[Floats, Floats]:
        """So many nodes (n_cells, number) from the first ones on, and their log weights, three a node."""
        index = np.minimum(first, len(self.tilt) - number)[:, None] + np.arange(number)
        return self.tilt[index], self.log_density[:, index]

    def range(self, rows: GeometricRows, slack: float) -> tuple[Cells, Cells]:
        """First nodes and numbers of nodes that matter, from a look at one node in every ``per_unit``."""
        coarse = np.arange(0, len(self.tilt), self.per_unit)
        tilts = np.broadcast_to(self.tilt[coarse], (len(rows.first), len(coarse)))
        distinct, _, times = rows.distinct()
        log_sum = distinct.tilted(tilts).log_sum
        weight = self.log_density[0, coarse] + np.sum(times[:, None] * log_sum, axis=1)
        high = weight >= np.max(weight, axis=1, keepdims=True) - _NATS - slack
        first = np.maximum(np.argmax(high, axis=1) - 1, 0) * self.per_unit
        last = (len(coarse) - np.argmax(high[:, ::-1], axis=1)) * self.per_unit
        return first, np.minimum(last, len(self.tilt) - 1) - first + 1


def has_tilts(counts: NoisyCounts) -> bool:
    """Whether the posterior is a mixture of tilts, but for the bound of N."""
    prior = counts.n_prior
    from_nothing = isinstance(prior, Reciprocal) or (isinstance(prior, Uniform) and prior.lower == 0)
    return from_nothing and len(counts.concentration) > 1 and bool(np.all(counts.concentration == 1.0))


def resolve(counts: NoisyCounts) -> tuple[TiltMixture, NDArray[np.bool_]]:
    r"""Sum up the moments of every cell, and tell which cells are right: far enough from the bound of N.

    Deviations are taken from a reference r of a probability: given the counts, with :math:`d_k = 1 + c_k` and
    :math:`D = A + N`,

    .. math::
        E[(p_k - r)^2 \mid c] = \frac{(d_k - r D)^2 + (1 - 2 r) (d_k - r D) + r (1 - r) D}{D (D + 1)},

    so nothing cancels even where N is 1e12.
    """
    cells, categories = counts.shape
    rule, all_rows = Rule.of(counts), GeometricRows.of(counts)
    slack = 0.15 * (counts.total_concentration + 2.0)
    first, number = np.empty(cells, np.int64), np.empty(cells, np.int64)
    for batch in _batches(np.full(cells, len(rule.tilt) // rule.per_unit + 1), categories):
        first[batch], number[batch] = rule.range(all_rows.take(batch), slack)
    mean, sd = np.empty((cells, categories)), np.empty((cells, categories))
    log_evidence, inside = np.empty(cells), np.empty(cells, dtype=bool)
    rate = float(np.sum(counts.rates))
    for batch in _batches(number, categories):
        tilts, log_density = rule.at(first[batch], int(np.max(number[batch])))
        distinct, of_category, times = all_rows.take(batch).distinct()
        rows, times = distinct.tilted(tilts), times[:, None]
        log_weight = log_density + np.sum(times * rows.log_sum, axis=1)
        top = np.max(log_weight[0], axis=1)
        weight = np.exp(log_weight - top[:, None])
        evidence = np.sum(weight[0], axis=1)
        weight /= evidence[:, None]
        log_evidence[batch] = top + np.log(evidence)
        m, v = rows.moments()
        own, spread = 1.0 + m, np.sum(times * v, axis=1)[:, None]
        total = np.sum(times * own, axis=1)
        # Bernstein's bound: on the right rows fall at least as fast as an exponential distribution of this
        # scale.
        scale = _BEYOND / (rate + tilts)
        reach = total + scale + np.sqrt(scale**2 + 2.0 * _BEYOND * spread[:, 0])
        inside[batch] = np.all((reach <= counts.support[batch, 1:]) | (weight[0] < np.exp(-_BEYOND)), axis=1)
        reference = np.sum(weight[1][:, None] * own, axis=2)
        r = reference[:, :, None]
        off = own - r * total[:, None]
        shift = np.sum(weight[1][:, None] * off, axis=2)
        square = off**2 + (1.0 - 2.0 * r) * (v + off) + r * r * spread + r * (1.0 - r) * total[:, None]
        mean[batch] = (reference + shift)[:, of_category]
        sd[batch] = np.sqrt(np.sum(weight[2][:, None] * square, axis=2) - shift**2)[:, of_category]
    mixture = TiltMixture(
        counts=counts,
        rows=all_rows,
        first=first,
        number=number,
        mean=mean,
        sd=sd,
        log_evidence=log_evidence,
    )
    return mixture, inside


def _log_flat(total: float, tilt: Floats) -> Floats:
    """Log of (1 - exp(-s))^(A - 2) / Gamma(A - 1)."""
    from scipy.special import gammaln

    density: Floats = (total - 2.0) * np.log(-np.expm1(-tilt)) - gammaln(total - 1.0)
    return density


def _log_reciprocal(total: float, tilt: Floats) -> Floats:
    r"""Log of the integral of (1 - exp(-t))^(A - 2) over 0..s, over Gamma(A - 1).

    The incomplete beta function :math:`B_x(p, 0)`, x = 1 - exp(-s), p = A - 1: by its continued fraction
    (DLMF 8.17.22), or in powers of 1 - x where these are small.
    """
    from scipy.special import digamma, gammaln

    p = total - 1.0
    x, rest = -np.expm1(-tilt), np.exp(-tilt)
    near = rest < min(0.5, 2.0 / p)
    result = np.empty_like(tilt)
    power, series = np.ones_like(rest[near]), np.zeros_like(rest[near])
    for order in range(1, 60):
        power = power * (order - p) / order * rest[near]
        series += power / order
    result[near] = np.log(tilt[near] - np.euler_gamma - digamma(p) - series)
    x = x[~near]
    fraction = np.ones_like(x)
    for order in range(int(20.0 * np.sqrt(p)) + 60, 0, -1):
        half = order // 2
        if order % 2:
            term = -(p + half) * (p + half) / ((p + order - 1.0) * (p + order))
        else:
            term = -half * half / ((p + order - 1.0) * (p + order))
        fraction = 1.0 + term * x / fraction
    result[~near] = p * np.log(x) - np.log(p) - np.log(fraction)
    return result - gammaln(p)


def _batches(numbers: Cells, categories: int, draws: int = 1) -> Iterator[Cells]:
    """Consecutive cells whose tables fit into the processor's cache together, or nearly."""
    most = int(np.max(numbers, initial=1)) * categories
    size = max(1, _BATCH_NUMBERS // max(most, draws)) if categories < _MANY else 1
    for start in range(0, len(numbers), size):
        yield np.arange(start, min(start + size, len(numbers)))

r"""A private N under a flat prior: the tilt is unknown, and given it the counts are independent.

Model and weight W(c) as in ``noisy_counts``, where no concentration differs from 1 and N has the prior
1 / (N + 1), or a flat one from 0 on. What N adds to the joint weight is a mixture of tilts s,

.. math::
    g(N) = \pi(N) \frac{N!}{\Gamma(A + N)} \propto \int_0^\infty e^{-s N} h_A(s)\, ds \qquad (1)

    h_A(s) = \frac{e^{-s}}{\Gamma(A - 1)} \begin{cases}
        (1 - e^{-s})^{A - 2} & \pi \text{ flat} \\
        \int_0^s (1 - e^{-t})^{A - 2} dt & \pi(N) \propto 1 / (N + 1) \end{cases} \qquad (2)

so the posterior of the counts is a mixture of rows that are independent given s: no convolution. The
question is the moments of the probabilities, and draws of the counts. Moments need :math:`g(N) / (A + N)`
and :math:`g(N) / ((A + N) (A + N + 1))`: h with A + 1 and A + 2. Draws are those of a tilt, then of every
count by itself.

Given s, the log weight of a count c = 0, 1, ... is linear on every piece between noisy values,

.. math::
    \log w(c) = -\sum_l \rho_l |c - y_l| - s c, \qquad w(c) \propto e^{-\kappa d}, \; d = 0..L - 1 \qquad (3)

a truncated geometric distribution of the distance d from the piece's higher end, with

.. math:: E d = \frac{1}{e^\kappa - 1} - \frac{L}{e^{\kappa L} - 1}, \qquad
    \mathrm{Var}\, d = \frac{1}{4 \sinh^2 (\kappa / 2)} - \frac{L^2}{4 \sinh^2(\kappa L / 2)} \qquad (4)

Error: the trapezoidal rule over log s with step :math:`\delta` is off by :math:`2 |\Gamma(A + 2 \pi i /
\delta)| / \Gamma(A)` or less, here 1e-13, in every g(N) alike. (3) and (4) are exact. The bound of N is
left out: ``resolve`` says where that matters.

======== ============== ====================================== ============================= =====
symbol   in the code    meaning                                shape                         unit
======== ============== ====================================== ============================= =====
s        ``tilt``       tilts, nodes of the rule               (n_nodes,)                    1/row
kappa    ``fall``       fall of a piece a step                 (n_pieces, .., n_tilts)       nats
L        ``length``     counts of a piece                      (n_pieces, .., n_tilts)       rows
rho      ``rates``      one over the scale of a release        (n_releases,)                 1/row
A        ``total``      number of categories                   scalar                        none
======== ============== ====================================== ============================= =====
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.priors.record_count import Reciprocal, Uniform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.multinomial.noisy_counts import NoisyCounts
    from suffice.typing import Cells, Floats, Rows

_LEVEL = 0.3
"""Nats over a piece below which its moments come from a series: the closed forms cancel there."""
_LEAST_FALL = 1e-200


@dataclass(frozen=True, slots=True, kw_only=True)
class GeometricRows:
    """The pieces of every row; made by ``GeometricRows.of``.

    Attributes
    ----------
    first, length : ndarray of shape (n_cells, n_categories, n_pieces), float64
        The first count of a piece and how many there are: none, where kinks coincide or are negative; the
        last piece has no end.
    slope, at_first, at_last : ndarray, shaped as first
        How much the log weight rises a count, and what it is at both ends, untilted.
    """

    first: Floats
    length: Floats
    slope: Floats
    at_first: Floats
    at_last: Floats

    @classmethod
    def of(cls, counts: NoisyCounts) -> Self:
        """Cut the rows of all cells at their kinks."""
        values = np.moveaxis(counts.totals.by_release, 1, 2).copy()
        rates = counts.rates
        order = np.argsort(values, axis=2)
        kinks = np.maximum(np.floor(np.take_along_axis(values, order, axis=2)), -1.0)
        before = np.full((*kinks.shape[:2], 1), -1.0)
        first = np.concatenate([before, kinks], axis=2) + 1.0
        last = np.concatenate([kinks, np.full_like(before, np.inf)], axis=2)
        passed = np.concatenate([np.zeros_like(before), np.cumsum(rates[order], axis=2)], axis=2)
        at_first, at_last = np.zeros_like(first), np.zeros_like(first)
        for value, rate in zip(np.moveaxis(values, 2, 0), rates, strict=True):
            at_first -= rate * np.abs(first - value[:, :, None])
            at_last -= rate * np.abs(last - value[:, :, None])
        return cls(
            first=first,
            length=last - first + 1.0,
            # (3): every kink that is passed turns +rho into -rho.
            slope=np.sum(rates) - 2.0 * passed,
            at_first=at_first,
            at_last=at_last,
        )

    def take(self, cells: Rows) -> GeometricRows:
        """The given cells, in the given order."""
        return GeometricRows(
            first=self.first[cells],
            length=self.length[cells],
            slope=self.slope[cells],
            at_first=self.at_first[cells],
            at_last=self.at_last[cells],
        )

    def distinct(self) -> tuple[GeometricRows, Rows, Floats]:
        """Rows that differ, which of them every category has, and how many have it: of one cell.

        Several cells are returned as they are: rows of large tables are alike because most combinations are
        rare, and a cell of few categories is worked out faster beside others.
        """
        cells, categories, pieces = self.first.shape
        if cells > 1:
            return self, np.arange(categories), np.ones(categories)
        columns = (self.first, self.slope, self.at_first, self.at_last)
        lines = np.stack(columns, axis=2).reshape(categories, len(columns) * pieces)
        _, rows, of_category, times = np.unique(
            lines, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        different = GeometricRows(
            first=self.first[:, rows],
            length=self.length[:, rows],
            slope=self.slope[:, rows],
            at_first=self.at_first[:, rows],
            at_last=self.at_last[:, rows],
        )
        return different, of_category.ravel(), times.astype(np.float64)

    def tilted(self, tilt: Floats) -> TiltedRows:
        """All rows at every tilt s (n_cells, n_tilts) of their cell; s > 0."""
        columns = (self.first, self.length, self.slope, self.at_first, self.at_last)
        first, length, slope, at_first, at_last = (
            np.moveaxis(column, 2, 0)[:, :, :, None] for column in columns
        )
        steep = slope - tilt[:, None, :]
        rises = steep > 0.0
        top = np.where(rises, first + length - 1.0, first)
        fall = np.maximum(np.abs(steep), _LEAST_FALL)
        # sum_d e^(-kappa d) = (1 - e^(-kappa L)) / (1 - e^-kappa).
        filled = -np.expm1(-fall * length)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(rises, at_last, at_first) - tilt[:, None, :] * top + np.log(filled)
        logs = np.where(length > 0.0, logs - np.log(-np.expm1(-fall)), -np.inf)
        highest = np.max(logs, axis=0)
        share = np.exp(logs - highest)
        total = np.sum(share, axis=0)
        return TiltedRows(
            top=top,
            sign=np.where(rises, -1.0, 1.0),
            length=np.broadcast_to(length, top.shape),
            fall=fall,
            filled=filled,
            share=share / total,
            log_sum=highest + np.log(total),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TiltedRows:
    """Rows at given tilts; made by ``GeometricRows.tilted``.

    Attributes
    ----------
    top, sign, length, fall, filled, share : (n_pieces, n_cells, n_categories, n_tilts), float64
        The higher end of a piece and whether distances count up (1) or down (-1) from it, their number, their
        fall, one minus the part that the end cuts off, and the row's probability of the piece.
    log_sum : ndarray of shape (n_cells, n_categories, n_tilts), float64
        Log of the row's sum.
    """

    top: Floats
    sign: Floats
    length: Floats
    fall: Floats
    filled: Floats
    share: Floats
    log_sum: Floats

    def moments(self) -> tuple[Floats, Floats]:
        """Means and variances of all rows, shaped as ``log_sum``."""
        distance, spread = truncated_geometric_moments(self.fall, self.length)
        means = np.where(self.share > 0.0, self.top + self.sign * distance, 0.0)
        mean = np.sum(self.share * means, axis=0)
        # Var c = E Var(c | piece) + Var E(c | piece).
        return mean, np.sum(self.share * (spread + (means - mean) ** 2), axis=0)

    def sample(self, slots: Rows, of_category: Rows, rng: np.random.Generator) -> Floats:
        """Independent counts (n_categories, n_slots) from the rows that the categories have.

        A slot is a tilt of a cell: cell * n_tilts + tilt.
        """
        pieces = len(self.top)
        counts = np.empty((len(of_category), len(slots)))
        for position_of, category in enumerate(of_category):
            # One line for every slot and piece: what a draw needs of it lies close together.
            ends = np.cumsum(self.share[:, :, category], axis=0)
            lines = np.stack(
                [
                    ends - self.share[:, :, category],
                    self.filled[:, :, category] / np.maximum(self.share[:, :, category], 1e-300),
                    self.sign[:, :, category] / self.fall[:, :, category],
                    self.top[:, :, category],
                ]
            ).reshape(4, pieces, -1)
            uniform = rng.random(len(slots))
            position = slots
            for piece in range(pieces - 1):
                after = uniform >= ends[piece].ravel()[slots]
                position = position + after * lines.shape[2]
            before, stretch, scale, top = (line.ravel()[position] for line in lines)
            # d = floor(-log(1 - u (1 - e^(-kappa L))) / kappa).
            steps = np.trunc(np.log1p(-np.clip((uniform - before) * stretch, 0.0, 1.0 - 2.0**-53)) * scale)
            counts[position_of] = np.maximum(top - steps, 0.0)
        return counts


def truncated_geometric_moments(fall: Floats, length: Floats) -> tuple[Floats, Floats]:
    r"""Mean and variance of d = 0..L-1 with weights :math:`e^{-\kappa d}`; L may be infinite, kappa > 0."""
    across = fall * length
    level = across < _LEVEL
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # (4); where kappa L is small, its power series (Bernoulli numbers), as both terms cancel.
        mean = 1.0 / np.expm1(fall) - np.where(across < 700.0, length / np.expm1(across), 0.0)
        variance = 0.25 / np.sinh(0.5 * fall) ** 2
        variance -= np.where(across < 700.0, (0.5 * length / np.sinh(0.5 * across)) ** 2, 0.0)
    if np.any(level):
        fall, length = fall[level], np.maximum(length[level], 1.0)
        square, step = length * length, fall * fall
        eighth, sixth, fourth = square**4 - 1.0, square**3 - 1.0, square**2 - 1.0
        mean[level] = (length - 1.0) / 2.0 - fall * (
            (square - 1.0) / 12.0
            - step * (fourth / 720.0 - step * (sixth / 30240.0 - step * eighth / 1209600.0))
        )
        variance[level] = (square - 1.0) / 12.0 - step * (
            fourth / 240.0 - step * (sixth / 6048.0 - step * eighth / 172800.0)
        )
    return mean, np.maximum(variance, 0.0)


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
        # Poisson summation: the error of the rule is the Fourier transform of the integrand at 2 pi / delta.
        while loggamma(total + 2.0 + 2j * np.pi * per_unit).real - gammaln(total + 2.0) > _ERROR:
            per_unit += 1
        # Below s = 1 / N nothing changes any more but h, which falls as s^(A - 1).
        least = -np.log(counts.support[0, 1] + 1.0) - _NATS / (total - 1.0)
        tilt = np.exp(np.arange(np.floor(least) * per_unit, 4.0 * per_unit + 1.0) / per_unit)
        density = _log_reciprocal if isinstance(counts.n_prior, Reciprocal) else _log_flat
        constant = gammaln(total) - np.log(per_unit) + float(counts.n_prior.log_prob(np.zeros(1))[0])
        # ds = s d log s; e^-s of (2).
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
        # Given s the sum over all counts is the product of the sums of the rows.
        log_weight = log_density + np.sum(times * rows.log_sum, axis=1)
        top = np.max(log_weight[0], axis=1)
        weight = np.exp(log_weight - top[:, None])
        evidence = np.sum(weight[0], axis=1)
        weight /= evidence[:, None]
        log_evidence[batch] = top + np.log(evidence)
        m, v = rows.moments()
        mean_square, spread = 1.0 + m, np.sum(times * v, axis=1)[:, None]
        total = np.sum(times * mean_square, axis=1)
        # Bernstein's bound: on the right rows fall at least as fast as an exponential distribution of this
        # scale.
        scale = _BEYOND / (rate + tilts)
        # P(N > E N + x) <= e^-35 by it.
        reach = total + scale + np.sqrt(scale**2 + 2.0 * _BEYOND * spread[:, 0])
        inside[batch] = np.all((reach <= counts.support[batch, 1:]) | (weight[0] < np.exp(-_BEYOND)), axis=1)
        # E d_k / D: the weights with h_(A + 1) have the factor 1 / (A + N).
        reference = np.sum(weight[1][:, None] * mean_square, axis=2)
        r = reference[:, :, None]
        off = mean_square - r * total[:, None]
        shift = np.sum(weight[1][:, None] * off, axis=2)
        # The formula above, with the variances of c_k and of N given s added.
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
    # int_0^s (1 - e^-t)^(p - 1) dt = s - gamma - psi(p) - sum_j (1 - p)_j / (j! j) e^(-s j).
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

r"""What a category's probability rests on: its count and the sum of all others, by few nodes of each.

Model as in ``count_posterior``. Given the counts p has a beta distribution, with the concentrations
:math:`a = \alpha_k + m` and :math:`b = A - \alpha_k + R`, of :math:`m = c_k` and :math:`R = N - c_k` alone.
With the rows t, the sum r of the other rows and the link l of ``convolution``

.. math:: P(m, R \mid y) \propto t_k(m) \, r_k(R) \, l(m + R), \quad r_k = \mathop{*}_{i \ne k} t_i \qquad (1)

All noisy counts of the others are in r: their sum alone would not do, as each count is at least 0. So m and R
depend on each other through l alone, and where N is known R is N - m.

Nodes. A beta with A = n records in all has the relative width

.. math:: u_\beta = \sqrt{1 / a + 1 / b}, \quad a = \alpha_k + m, \; b = A - \alpha_k + R \qquad (2)

in its odds: masses of (1) that are nearer to each other look the same. So the masses of counts, and of sums,
are joined in panels of about ``WIDTH`` / 2 times that, even in the root of the value. Each panel has the two
nodes that keep its mass, mean, variance and third moment,

.. math:: x_\pm = \mu + \sigma \Bigl(\frac \gamma 2 \pm \sqrt{1 + \frac{\gamma^2} 4}\Bigr), \quad
    w_\pm = \frac 1 2 \mp \frac \gamma {2 \sqrt{4 + \gamma^2}} \qquad (3)

of mean, standard deviation and skewness. What is spread less, of m and R, need only be finer than the
other's spread and the beta's together. Where the link is not level over what is likely of N, panels are also
narrow in the logarithm, and masses that are joined are posterior ones: rows times the expected link.

======== =================== ============================================ ===================== =====
symbol   in the code         meaning                                      shape                 unit
======== =================== ============================================ ===================== =====
m        ``Nodes.value``     counts of a category                         (n_rows, n_nodes)     rows
R        ``Nodes.value``     sums of all others                           (n_rows, n_nodes)     rows
a, b     ``Pairs.a``, ``b``  concentrations of the beta of a pair         (n_pairs,)            none
w        ``Pairs.weight``    posterior probability of a pair              (n_pairs,)            none
======== =================== ============================================ ===================== =====

A row is a category of a cell, cell by cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.engines.multinomial import noisy_counts
from suffice.pipeline.math.engines.multinomial.convolution import (
    UNRESOLVED,
    CountSums,
    PosteriorOfN,
    products_of_others,
)
from suffice.pipeline.math.priors.record_count import Fixed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.typing import Floats, Rows

WIDTH = 3.2
"""Twice the widths of a beta that a panel spans."""
_RARE = 3e-7
_HOPELESS = 1e-12
"""Probability, beside the likeliest, below which nodes and pairs are left out, and before links are known."""
_FINER = 0.4
"""Share of a width that panels have where N is known, and pairs are as few as nodes."""
_LOG_WIDTH = 1.4
"""Where a link is not level, the most that a panel spans in log N, times the root of A."""
_ROUNDING = 1e-6
_ALONE = 0.95
"""Width of panels, in the root of a count, below which 0 and 1 are not in one."""
_TAIL, _LEVEL, _STEEP = 6.0, 0.5, 4.0
"""Standard deviations of N within which a link may bend by so many nats: to count as level, or nearly so."""
_SHARE = 0.5
"""Of the wider spread, how much counts as a width for the nodes of the narrower one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Values of a latent number and their probabilities, both (n_rows, n_nodes)."""

    value: Floats
    mass: Floats

    def times(self, function: OnGrid) -> Nodes:
        """The same values, with a function of them as a factor of the masses."""
        return Nodes(value=self.value, mass=self.mass * function.at(self.value))

    def over(self, function: OnGrid | None) -> Nodes:
        """The same values, with masses divided by a function of them; nothing is done by none."""
        if function is None:
            return self
        divisor = function.at(self.value)
        used = (self.mass > 0.0) & (divisor > 0.0)
        mass = np.divide(self.mass, divisor, out=np.zeros_like(self.mass), where=used)
        return Nodes(value=self.value, mass=mass)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreads:
    """How wide rows are, in units of their values, all (n_rows,).

    Attributes
    ----------
    a, b : ndarray
        Concentrations of the beta at the means.
    resolution_of_count, resolution_of_rest : ndarray
        Relative widths below which nodes of a count, or of a sum of the others, need not be told apart.
    """

    a: Floats
    b: Floats
    resolution_of_count: Floats
    resolution_of_rest: Floats

    @classmethod
    def of(cls, sums: CountSums) -> Self:
        """Work out the widths from the rows alone."""
        cells, categories = sums.mean.shape
        alpha = sums.counts.concentration
        mean = sums.mean
        variance = np.sum((sums.nodes - mean.reshape(-1, 1)) ** 2 * sums.mass, axis=1).reshape(
            cells, categories
        )
        rest = np.maximum(np.sum(mean, axis=1, keepdims=True) - mean, 0.0)
        a, b = alpha + mean, np.sum(alpha) - alpha + rest
        of_count = np.sqrt(variance) / a
        of_rest = np.sqrt(np.maximum(np.sum(variance, axis=1, keepdims=True) - variance, 0.0)) / b
        # (2).
        beta = np.sqrt(1.0 / a + 1.0 / b)
        is_major = of_count >= of_rest
        wider = np.sqrt(beta**2 + (_SHARE * np.maximum(of_count, of_rest)) ** 2)
        return cls(
            a=a.ravel(),
            b=b.ravel(),
            resolution_of_count=np.where(is_major, beta, wider).ravel(),
            resolution_of_rest=np.where(is_major, wider, beta).ravel(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Pairs (m, R) of many rows, one after the other, as the betas that they lead to; see the module.

    Attributes
    ----------
    row : ndarray of shape (n_pairs,), int64
        Ascending.
    a, b, weight : ndarray of shape (n_pairs,), float64
        Weights sum to 1 over a row.
    """

    row: Rows
    a: Floats
    b: Floats
    weight: Floats

    @classmethod
    def of(cls, row: Rows, a: Floats, b: Floats, weight: Floats) -> Self:
        """Scale weights to a sum of 1 over a row; every row has some."""
        return cls(row=row, a=a, b=b, weight=weight / np.bincount(row, weight)[row])


def pairs_by_rules(
    sums: CountSums, of_n: PosteriorOfN | None, coarseness: Sequence[float], most: int
) -> list[Pairs]:
    """Pairs of all categories of some cells, by rules whose panels are so many times as wide, ascending.

    No row has more panels than ``most``.
    Without the posterior of N links are taken to be level; so they may be where ``links_are_level``.
    """
    spreads = Spreads.of(sums)
    cells, categories = sums.mean.shape
    alpha = np.tile(sums.counts.concentration, cells)
    beyond = sums.counts.total_concentration - alpha
    of_count = WIDTH / 4.0 * spreads.resolution_of_count * np.sqrt(spreads.a)
    of_rest = WIDTH / 4.0 * spreads.resolution_of_rest * np.sqrt(spreads.b)
    # A count of 0 stands alone where the prior has a spike there: no spread makes betas of 0 and 1 alike.
    of_count, of_rest = (
        np.where(prior < 1.0, np.minimum(width, _ALONE), width)
        for prior, width in ((alpha, of_count), (beyond, of_rest))
    )
    per_log = np.zeros(len(alpha))
    if isinstance(sums.counts.n_prior, Fixed):
        n = float(sums.counts.n_prior.support[0])
        # With N known, (1) is t(m) r(N - m): one number, whichever of the two is spread less.
        nodes = Nodes(value=sums.nodes, mass=sums.mass * OnGrid.of_rest(sums).at(n - sums.nodes))
        # As in ``pairs_of_known_sum``: in the root of the lesser one, so that 0 and 1 are told apart.
        swapped = (spreads.a > spreads.b)[:, None]
        nodes = Nodes(value=np.where(swapped, n - nodes.value, nodes.value), mass=nodes.mass)
        # What a count gains the others lose: odds change by dm (1 / a + 1 / b), not by dm / a.
        a, b = spreads.a, spreads.b
        width = WIDTH / 4.0 * np.sqrt(np.maximum(a, b) / (a + b))
        width = np.where(np.minimum(alpha, beyond) < 1.0, np.minimum(width, _ALONE), width)
        rules = []
        for each in coarseness:
            nodes = condensed(nodes, _FINER * each * width, per_log, most)
            row, place = np.nonzero(nodes.mass)
            lesser = np.clip(nodes.value[row, place], 0.0, n)
            m = np.where(swapped[row, 0], n - lesser, lesser)
            # Not n - m, which has lost the digits of a small sum.
            remaining = np.where(swapped[row, 0], lesser, n - lesser)
            rules.append(Pairs.of(row, alpha[row] + m, beyond[row] + remaining, nodes.mass[row, place]))
        return rules
    counts = Nodes(value=sums.nodes, mass=sums.mass)
    if categories == 2:
        # The other category's row itself, which is not on a grid.
        others = Nodes(value=other(sums.nodes), mass=other(sums.mass))
    else:
        rest = OnGrid.of_rest(sums)
        others = Nodes(value=rest.values(), mass=rest.mass)
    given_count: OnGrid | None = None
    given_rest: OnGrid | None = None
    if of_n is not None:
        given_count, given_rest = expected_links(sums, of_n)
        counts, others = counts.times(given_count), others.times(given_rest)
        level = np.repeat(links_are_level(sums, _STEEP), categories)
        per_log = np.where(level, 0.0, np.sqrt(sums.counts.total_concentration) / _LOG_WIDTH)
    rules = []
    for each in coarseness:
        counts = condensed(counts, each * of_count, per_log / each, most)
        others = condensed(others, each * of_rest, per_log / each, most)
        rules.append(_pairs(sums, counts.over(given_count), others.over(given_rest), alpha, beyond))
    return rules


def pairs_of_known_sum(
    counts: noisy_counts.NoisyCounts, coarseness: Sequence[float], most: int
) -> list[Pairs]:
    """Pairs of both of two counts whose sum is known, by rules as in ``pairs_by_rules``."""
    weights = noisy_counts.pair_rows(counts)
    value, mass, _ = noisy_counts.masses(weights, noisy_counts.pair_blocks(weights))
    n, (alpha, beyond) = weights.n, counts.concentration
    mean = np.sum(value * mass, axis=1)
    # (2), in the root of the first count; in that of the second where it is the lesser one.
    a, b = alpha + mean, beyond + np.maximum(n - mean, 0.0)
    width = WIDTH / 4.0 * np.sqrt(np.minimum(a, b)) * np.sqrt(1.0 / a + 1.0 / b)
    width = np.minimum(width, _ALONE) if min(alpha, beyond) < 1.0 else width
    swapped = a > b
    nodes = Nodes(value=np.where(swapped[:, None], n[:, None] - value, value), mass=mass)
    rules = []
    for each in coarseness:
        nodes = condensed(nodes, _FINER * each * width, np.zeros(len(n)), most)
        cell, place = np.nonzero(nodes.mass)
        first = nodes.value[cell, place]
        first = np.clip(np.where(swapped[cell], n[cell] - first, first), 0.0, n[cell])
        second = n[cell] - first
        row = np.concatenate([2 * cell, 2 * cell + 1])
        order = np.argsort(row, kind="stable")
        a, b = (
            np.concatenate(each)[order]
            for each in ((alpha + first, beyond + second), (beyond + second, alpha + first))
        )
        rules.append(Pairs.of(row[order], a, b, np.tile(nodes.mass[cell, place], 2)[order]))
    return rules


def _pairs(sums: CountSums, counts: Nodes, others: Nodes, alpha: Floats, beyond: Floats) -> Pairs:
    """All pairs of nodes that matter, weighed by the link.

    Raises
    ------
    PriorError
        Where no pair of a row has an N that is allowed.
    """
    product = counts.mass[:, :, None] * others.mass[:, None, :]
    possible = product > _HOPELESS * np.max(product, axis=(1, 2), keepdims=True)
    row, of_count, of_rest = np.nonzero(possible)
    m, rest = counts.value[row, of_count], others.value[row, of_rest]
    n = m + rest
    cell = row // sums.mean.shape[1]
    low, high = sums.counts.support[cell].T
    nearest = np.rint(n)
    inside = (nearest >= low) & (nearest <= high)
    at = np.clip(n, low, high)
    # (1): log l = log g + theta N.
    link = noisy_counts.log_factor_of_n(sums.counts, at) + sums.weights.tilt[row] * at
    log_weight = np.where(inside, link + np.log(product[possible]), -np.inf)
    first = np.searchsorted(row, np.arange(len(alpha)))
    highest = np.maximum.reduceat(log_weight, first)
    if not np.all(np.isfinite(highest)):
        # Bounds of N so near, beside the noise, that no pair of nodes lies between them.
        raise PriorError(UNRESOLVED)
    weight = np.exp(log_weight - highest[row])
    used = weight > _RARE
    row = row[used]
    return Pairs.of(row, alpha[row] + m[used], beyond[row] + rest[used], weight[used])


def other(each: Floats) -> Floats:
    """What the other category has, of rows of two categories."""
    swapped: Floats = each.reshape(-1, 2, each.shape[1])[:, ::-1].reshape(each.shape)
    return swapped


def condensed(nodes: Nodes, width: Floats, per_log: Floats, most: int) -> Nodes:
    """Two nodes for the masses of every panel.

    Panels are so wide in the root of the value, (n_rows,), and there are at least so many a unit of its
    logarithm, (n_rows,).
    """
    largest = np.max(nodes.mass, axis=1, keepdims=True)
    columns = np.flatnonzero(np.any(nodes.mass > _RARE * largest, axis=0))
    kept = slice(columns[0], columns[-1] + 1)
    value, mass = nodes.value[:, kept], nodes.mass[:, kept]
    mass = np.where(mass > _RARE * largest, mass, 0.0)
    used = mass > 0.0
    value = np.maximum(value, 0.0)
    # Roots are even, so that panels are finer towards 0.
    place = np.sqrt(value) / width[:, None]
    if np.any(per_log):
        place += per_log[:, None] * np.log1p(value)
    low = np.min(np.where(used, place, np.inf), axis=1, keepdims=True)
    span = np.max(np.where(used, place, -np.inf), axis=1, keepdims=True) - low
    each = np.clip(np.ceil(span), 1.0, most)
    rows, panels = len(value), int(np.max(each))
    place = np.clip((place - low) * (each * (1.0 - 1e-12) / np.maximum(span, 1e-12)), 0.0, each - 1.0).astype(
        np.int64
    )
    place += np.arange(rows)[:, None] * panels
    flat = place.ravel()

    def summed(each: Floats) -> Floats:
        sums = np.bincount(flat, each.ravel(), rows * panels).astype(np.float64, copy=False)
        return sums.reshape(rows, panels)

    whole = summed(mass)
    divisor = np.where(whole > 0.0, whole, 1.0)
    mean = summed(mass * value) / divisor
    # Moments about the panel's own mean: nothing cancels.
    away = value - mean.ravel()[flat].reshape(value.shape)
    power = mass * away * away
    variance = summed(power) / divisor
    sd = np.sqrt(variance)
    skew = summed(power * away) / divisor / np.where(sd > 0.0, variance * sd, 1.0)
    root = np.sqrt(1.0 + skew**2 / 4.0)
    # (3).
    ends = np.concatenate([mean + sd * (skew / 2.0 - root), mean + sd * (skew / 2.0 + root)], axis=1)
    share = 0.5 + skew / (4.0 * root)
    alone = sd <= 0.0
    share = np.where(alone, 1.0, share)
    return Nodes(
        value=np.maximum(ends, 0.0), mass=np.concatenate([whole * share, whole * (1.0 - share)], axis=1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OnGrid:
    """A function of a latent number, on the grid of its row; between points its logarithm is linear.

    Attributes
    ----------
    base, step : ndarray of shape (n_rows, 1), float64
    mass : ndarray of shape (n_rows, n_points), float64
    """

    base: Floats
    step: Floats
    mass: Floats

    @classmethod
    def of_rest(cls, sums: CountSums) -> Self:
        """The masses of the sums of all other rows."""
        return cls.of_sums(sums, sums.density_of(_others(sums)))

    @classmethod
    def of_sums(cls, sums: CountSums, wrapped: Floats) -> Self:
        """A function of sums of all other rows (n_cells, n_categories, size), by index of the FFT."""
        base = np.sum(sums.base, axis=1, keepdims=True) - sums.base
        mean = np.sum(sums.mean, axis=1, keepdims=True) - sums.mean
        # Indices wrap around where the FFT is shorter than what tables can add up to; see ``CountSums.grid``.
        behind = np.floor(np.maximum(mean - sums.span[:, None] / 2.0 - base, 0.0) / sums.step[:, None])
        if np.any(behind > 0.0):
            index = (behind[:, :, None].astype(np.int64) + np.arange(sums.size)) % sums.size
            wrapped = np.take_along_axis(wrapped, index, axis=2)
        first = base + sums.step[:, None] * behind
        return cls(
            base=first.reshape(-1, 1),
            step=np.repeat(sums.step, sums.mean.shape[1])[:, None],
            mass=wrapped.reshape(-1, sums.size),
        )

    def values(self) -> Floats:
        """The numbers at the points, shaped as the masses."""
        return self.base + self.step * np.arange(self.mass.shape[1])

    def at(self, value: Floats) -> Floats:
        """The function at numbers (n_rows, n); 0 outside of the grid."""
        points = self.mass.shape[1]
        position = (value - self.base) / self.step
        # A mean of equal values may be rounded beyond them.
        inside = (position >= -_ROUNDING) & (position <= points - 1.0 + _ROUNDING)
        position = np.clip(position, 0.0, points - 1.0)
        index = np.minimum(position.astype(np.int64), max(points - 2, 0))
        part = position - index
        below = np.take_along_axis(self.mass, index, axis=1)
        if np.any(part > 0.0):
            above = np.take_along_axis(self.mass, np.minimum(index + 1, points - 1), axis=1)
            both = (below > 0.0) & (above > 0.0)
            ratio = np.divide(above, below, out=np.ones_like(below), where=both)
            # Beside a point of nothing, as far as to the middle.
            below = np.where(both | (part < 0.5), below * ratio**part, above)
        return np.where(inside, below, 0.0)


def links_are_level(sums: CountSums, bends: float = _LEVEL) -> NDArray[np.bool_]:
    """Whether links are so level that nodes can do without them, (n_cells,): they bend by so many nats."""
    mean = np.sum(sums.mean, axis=1)
    spread = np.sum((sums.nodes - sums.mean.reshape(-1, 1)) ** 2 * sums.mass, axis=1)
    variance = np.sum(spread.reshape(sums.mean.shape), axis=1)
    low, high = sums.counts.support.T
    reach = _TAIL * np.sqrt(variance)
    # Tilted, log l is level at the mean, and bends by A / N^2.
    bend = sums.counts.total_concentration * reach**2 / (mean + 1.0) ** 2
    level: NDArray[np.bool_] = (bend < bends) & ((mean - reach > low) | (low <= 0.0)) & (mean + reach < high)
    return level


def expected_links(sums: CountSums, of_n: PosteriorOfN) -> tuple[OnGrid, OnGrid]:
    """Expected links given a count, and given the sum of the others: what makes rows posteriors."""
    from scipy.fft import irfft, rfft

    link = np.divide(
        of_n.probability, of_n.density, out=np.zeros_like(of_n.probability), where=of_n.probability > 0.0
    )
    transform = rfft(link, axis=-1)[:, None]
    points = sums.tables.shape[2]
    # (1), summed over R, and over m: correlations of the link.
    given_count = np.maximum(irfft(transform * np.conj(_others(sums)), sums.size, axis=-1), 0.0)
    given_rest = np.maximum(irfft(transform * np.conj(sums.transforms), sums.size, axis=-1), 0.0)
    of_count = OnGrid(
        base=sums.base.reshape(-1, 1),
        step=np.repeat(sums.step, sums.mean.shape[1])[:, None],
        mass=given_count[:, :, :points].reshape(-1, points),
    )
    return of_count, OnGrid.of_sums(sums, given_rest)


def _others(sums: CountSums) -> NDArray[np.complex128]:
    """Transforms of the sums of all other rows, shaped as those of the rows."""
    before, after = products_of_others(sums.transforms)
    return np.stack([early * late for early, late in zip(before, after, strict=True)], axis=1)

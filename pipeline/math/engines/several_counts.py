r"""The likelihood of probabilities, of several noisy counts of one cell whose number of records is latent.

Model. N has a prior that is a mixture of Poisson laws with the density g, so that the counts of K categories
are independent given a mean :math:`\Lambda`, and each has a likelihood A of its own (``count_likelihoods``):

.. math:: p(y \mid p) = \int_0^\infty g(\Lambda) \prod_{j = 1}^K A(\Lambda p_j; y_j) \, d\Lambda. \qquad (1)

A Poisson law has the same spread, 1/2, by the root of its mean, wherever that is; and near 0 nothing changes
faster than the logarithm of the mean does. So let

.. math:: s = t + \log t, \quad t = \sqrt \Lambda, \qquad
    d\Lambda = \frac{2 t^2}{1 + t} \, ds. \qquad (2)

By s every factor of (1) is smooth over distances of 1/2 and more, and (1) is a plain sum over
:math:`s = h k`. The trapezoidal rule of a normal density of spread :math:`\sigma` errs by
:math:`2 e^{-2 \pi^2 \sigma^2 / h^2}` of it, here at most 1e-13. Where a function is analytic in a strip, the
error is squared as the step is halved: the square of what a sum over every second node differs by is stated.

Symbols:

- Lambda: the mean of N; p: probabilities, by their logarithms ``log_probability``
- s, t: as in (2); of a count, that of its mean, :math:`s_j = t \sqrt{p_j} + \log t + \log \sqrt{p_j}`
- h, k: ``STEP`` and whole numbers
- alpha: log A, of every distinct number in a table by s, with the step ``SPACING``

Method. Tables are polynomials through six neighbours, whose error is looked at between them. The integrand
has one mode, for A is log-concave in its mean; the nodes that count are those within 37 nats of it, which are
closed in on from all that there are. Deeper than ``DEPTH`` nats below its highest a table goes on along a
straight line: there it is a guide, no more.

References
----------
Trefethen, Weideman. The exponentially convergent trapezoidal rule. SIAM Review 56, 2014. Karlin. Total
positivity. 1968.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.count_likelihoods import NoisyCount, log_mixing

if TYPE_CHECKING:
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Floats, Rows

STEP = 0.4
DEPTH = 100.0
"""Nats below the highest likelihood of each single count within which it is tabulated."""
LONGEST = 1 << 17
"""Values of one number's table beyond which noise is too wide for this engine."""
MOST_RECORDS = 1e9
"""Beyond it other engines are exact enough, and nodes would be many."""
SPACING = 1.0 / 12.0
POINTS = 6
_NATS = 37.0
_SCANNED = 12
_NUMBERS = 1 << 17
"""Values that are worked out together: 1 MB an array, so that they stay near the processor."""
_LOWEST = -60.0
"""log t below which nothing is: a mean of e^-120."""
BEFORE = POINTS // 2 - 1
_TO_POWERS = np.linalg.inv(np.vander(np.arange(POINTS) - float(BEFORE), increasing=True))


def root_of(position: Floats) -> Floats:
    """Return t of s = t + log t, by Newton's method."""
    # Far left t is e^s; far right s less its logarithm.
    far = np.maximum(position, 1.0)
    t = np.where(position > 1.0, far - np.log(far), np.exp(np.minimum(position, 1.0) - 1.0))
    t = np.where(position < -3.0, np.exp(np.minimum(position, 0.0)), t)
    for _ in range(6):
        # By u = log t: e^u + u = s.
        t = t * np.exp((position - t - np.log(t)) / (1.0 + t))
    return t


_FARTHEST_NOISE = 60.0
"""Scales, and one count more, that noise is never seen to be."""


def is_mixture_of_poisson(n_prior: NPrior, values: Floats, scales: Floats) -> bool:
    """Tell whether a prior of N is a mixture of Poisson laws as far as counts (n_cells, K, n_releases) see.

    Its upper end has to be out of reach of every cell: mixtures go on beyond it.
    """
    if log_mixing(n_prior, np.ones(1)) is None:
        return False
    reached = np.sum(np.max(np.abs(values), axis=2) + _FARTHEST_NOISE * (1.0 + float(np.max(scales))), axis=1)
    return bool(np.max(reached) <= n_prior.support[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTables:
    """log A of noisy numbers, one a row, by s of the mean; made by ``CountTables.of``.

    Attributes
    ----------
    first : ndarray of shape (n_counts,), float64
        s at the first value of each.
    start, length : ndarray of shape (n_counts,), int64
        Where a row's values are, and how many.
    values : ndarray of shape (n_values,), float64
        Nats, with steps of ``SPACING`` in s.
    powers : ndarray of shape (6, n_values), float64
        Polynomials of the way from each value to the next.
    top, error : ndarray of shape (n_counts,), float64
        The highest, and the largest miss half way between values, in nats.
    """

    first: Floats
    start: Rows
    length: Rows
    values: Floats
    powers: Floats
    top: Floats
    error: Floats

    @classmethod
    def of(cls, counts: NoisyCount) -> Self | None:
        """Tabulate; None where noise is so wide that a table would be longer than ``LONGEST``."""
        first, length = _extents(counts)
        if np.max(length, initial=0) > LONGEST:
            return None
        start = np.concatenate([[0], np.cumsum(length)[:-1]])
        values, powers = np.empty(int(np.sum(length))), np.zeros((POINTS, int(np.sum(length))))
        top, error = np.empty(len(first)), np.zeros(len(first))
        order = np.argsort(length, kind="stable")
        for rows in _blocks(order, length[order]):
            longest = int(length[rows[-1]])
            position = first[rows][:, None] + SPACING * np.arange(longest)
            value = _log_likelihood(counts.take(rows), position)
            between = _log_likelihood(counts.take(rows), position + SPACING / 2.0)
            windows = np.lib.stride_tricks.sliding_window_view(value, POINTS, axis=1)
            fitted = windows @ _TO_POWERS.T
            kept = np.arange(longest) < length[rows][:, None]
            at = start[rows][:, None] + np.arange(longest)
            values[at[kept]] = value[kept]
            inner = kept[:, BEFORE : BEFORE + fitted.shape[1]].copy()
            inner &= np.arange(fitted.shape[1]) + POINTS <= length[rows][:, None]
            powers[:, at[:, BEFORE : BEFORE + fitted.shape[1]][inner]] = fitted[inner].T
            top[rows] = np.max(np.where(kept, value, -np.inf), axis=1)
            miss = fitted @ 0.5 ** np.arange(POINTS) - between[:, BEFORE : BEFORE + fitted.shape[1]]
            near = inner & (windows.min(axis=2) > top[rows][:, None] - DEPTH)
            error[rows] = np.max(np.where(near, np.abs(miss), 0.0), axis=1)
        return cls(
            first=first, start=start, length=length, values=values, powers=powers, top=top, error=error
        )

    def __call__(self, count: Rows, position: Floats) -> Floats:
        """Return log A of rows of counts at s; both broadcast."""
        place = (position - self.first[count]) * (1.0 / SPACING)
        last = self.length[count] - (POINTS - BEFORE)
        before = np.minimum(np.maximum(place, BEFORE), last).astype(np.int64)
        share = place - before
        inside = np.minimum(np.maximum(share, 0.0), 1.0)
        index = before + self.start[count]
        value = self.powers[POINTS - 1].take(index)
        for power in range(POINTS - 2, -1, -1):
            value *= inside
            value += self.powers[power].take(index)
        share -= inside
        beyond = np.flatnonzero(share)
        if beyond.size:
            # Along the chord of the outermost step, and never up.
            rise = np.sum(self.powers[1:, index.ravel()[beyond]], axis=0)
            value.ravel()[beyond] += np.minimum(rise * share.ravel()[beyond], 0.0)
        return np.asarray(value, dtype=np.float64)


def _log_likelihood(counts: NoisyCount, position: Floats) -> Floats:
    return counts.log_likelihood(2.0 * (np.log(root_of(position))))


def _extents(counts: NoisyCount) -> tuple[Floats, Rows]:
    """Where each table begins, by s, and its length: all within ``DEPTH``, or to where A no longer moves."""
    # Of several releases of one number, the steepest noise on either side.
    rate = float(np.sum(1.0 / counts.scales))
    low, high = np.min(counts.values, axis=1), np.max(counts.values, axis=1)
    reach = 1.2 * DEPTH
    # A Poisson law falls by 2 (t - t')^2, and noise by its rate, or by 1 - e^-rate a unit of the mean.
    last = np.sqrt(np.maximum(high, 0.0) - reach / np.expm1(-rate)) + np.sqrt(reach / 2.0)
    below = np.sqrt(np.maximum(low - reach / rate, 0.0)) - np.sqrt(reach / 2.0)
    # Near 0, A is flat where the mean times e^rate is small.
    flat = np.log(1e-8) - rate / 2.0
    near = np.maximum(below, 0.0)
    with np.errstate(divide="ignore"):
        first = np.where(near > 1.0, near + np.log(near), flat)
    length = np.ceil((last + np.log(last) - first) / SPACING).astype(np.int64) + POINTS
    return first - BEFORE * SPACING, length


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralCounts:
    """Noisy counts of cells, with one prior of N; made by ``SeveralCounts.of``.

    Attributes
    ----------
    tables : CountTables
        Of the distinct numbers.
    row : ndarray of shape (n_cells, K), int64
        The table of each count.
    lowest : int
        k of the first node.
    last : ndarray of shape (n_cells,), int64
        k of each cell's last node.
    root, log_root, log_weight : ndarray of shape (n_nodes,), float64
        t, log t, and the logarithm of g times (2) times h.
    """

    tables: CountTables
    row: Rows
    lowest: int
    last: Rows
    root: Floats
    log_root: Floats
    log_weight: Floats

    @classmethod
    def of(cls, values: Floats, scales: Floats, n_prior: NPrior) -> Self | None:
        """Tabulate numbers (n_cells, K, n_releases); None where this engine does not serve them.

        That is where the prior of N is no mixture of Poisson laws, its upper end is near, or noise is so wide
        that sums are long.
        """
        if not is_mixture_of_poisson(n_prior, values, scales):
            return None
        cells, categories, releases = values.shape
        # A count falls beyond its number by its noise, and others cannot rise by more than theirs cost.
        spread = _FARTHEST_NOISE * (1.0 + float(np.max(scales)))
        of_cell = np.sum(np.max(np.abs(values), axis=2), axis=1)
        most = categories * (2.0 * of_cell + spread * categories)
        if np.max(of_cell + categories * spread) > MOST_RECORDS:
            return None
        distinct, row = np.unique(values.reshape(-1, releases), axis=0, return_inverse=True)
        tables = CountTables.of(NoisyCount(values=distinct, scales=scales))
        if tables is None:
            return None
        last = np.ceil((np.sqrt(most) + 0.5 * np.log(most)) / STEP).astype(np.int64)
        lowest = int(np.floor(_LOWEST / STEP))
        node = STEP * np.arange(lowest, int(np.max(last)) + _SCANNED, dtype=np.float64)
        root = root_of(node)
        mixing = log_mixing(n_prior, root**2)
        assert mixing is not None  # noqa: S101 - as above
        # (2).
        log_weight = mixing + np.log(2.0 * STEP) + 2.0 * np.log(root) - np.log1p(root)
        return cls(
            tables=tables,
            row=row.reshape(cells, categories),
            lowest=lowest,
            last=last,
            root=root,
            log_root=np.log(root),
            log_weight=log_weight,
        )

    @property
    def error(self) -> Floats:
        """Nats that tables add to an error, (n_cells,)."""
        return np.asarray(np.sum(self.tables.error[self.row], axis=1), dtype=np.float64)

    def log_likelihood(self, cell: Rows, log_probability: Floats) -> tuple[Floats, Floats]:
        """Return (1) and what its sum may miss by, both (n,), of cells (n,) and points (n, K)."""
        half = np.maximum(log_probability / 2.0, -400.0)
        value, miss = np.empty(len(cell)), np.empty(len(cell))
        step = max(1, _NUMBERS // (_SCANNED * half.shape[1]))
        low, high = np.empty(len(cell), np.int64), np.empty(len(cell), np.int64)
        for begin in range(0, len(cell), step):
            part = slice(begin, begin + step)
            low[part], high[part] = self._closed_in(cell[part], half[part])
        length = high - low + 1
        order = np.argsort(length, kind="stable")
        for rows in _blocks(order, length[order] * half.shape[1]):
            nodes = low[rows][:, None] + np.arange(int(length[rows[-1]]))
            value[rows], miss[rows] = self._summed(self._terms(cell[rows], half[rows], nodes))
        return value, miss

    def of_panels(self, cell: Rows, log_probability: Floats) -> Floats:
        """Return (1) of cells (n,) at points (n, m, K) along a line: nodes are those of three of them."""
        n, m, categories = log_probability.shape
        half = np.maximum(log_probability / 2.0, -400.0)
        ends = np.array([0, m // 2, m - 1])
        low, high = (
            each.reshape(n, 3)
            for each in self._closed_in(np.repeat(cell, 3), half[:, ends].reshape(-1, categories))
        )
        low, high = np.min(low, axis=1), np.max(high, axis=1)
        value, is_whole = np.empty((n, m)), np.empty((n, m), dtype=bool)
        length = high - low + 1
        order = np.argsort(length, kind="stable")
        for rows in _blocks(order, length[order] * categories * m):
            longest = int(length[rows[-1]])
            nodes = np.repeat(low[rows], m)[:, None] + np.arange(longest)
            terms = self._terms(np.repeat(cell[rows], m), half[rows].reshape(-1, categories), nodes)
            value[rows] = self._summed(terms)[0].reshape(-1, m)
            # What was left out of the others is e^-25 and less.
            at_ends = np.maximum(terms[:, 0], terms[:, -1])
            is_whole[rows] = (at_ends < np.max(terms, axis=1) - 25.0).reshape(-1, m)
        again = np.nonzero(~is_whole)
        if again[0].size:
            value[again] = self.log_likelihood(cell[again[0]], log_probability[again])[0]
        return value

    def _terms(self, cell: Rows, half: Floats, node: Rows) -> Floats:
        """Logarithms of the terms of (1), of rows (n,) at nodes (n, n_nodes)."""
        at = np.minimum(node - self.lowest, len(self.root) - 1)
        root, log_root = self.root[at], self.log_root[at]
        total = self.log_weight[at]
        for category in range(half.shape[1]):
            log_share = half[:, category, None]
            count = self.row[cell, category][:, None]
            total = total + self.tables(count, root * np.exp(log_share) + log_root + log_share)
        return total

    def _closed_in(self, cell: Rows, half: Floats) -> tuple[Rows, Rows]:
        """First and last nodes that count, (n,) each."""
        low, high = np.full(len(cell), self.lowest), self.last[cell].copy()
        rows = np.arange(len(cell))
        while rows.size:
            stride = -((low[rows] - high[rows]) // (_SCANNED - 1))
            nodes = low[rows][:, None] + stride[:, None] * np.arange(_SCANNED)
            terms = self._terms(cell[rows], half[rows], nodes)
            counts = terms > np.max(terms, axis=1, keepdims=True) - _NATS
            first = np.maximum(np.argmax(counts, axis=1) - 1, 0)
            last = np.minimum(_SCANNED - np.argmax(counts[:, ::-1], axis=1), _SCANNED - 1)
            before = high[rows] - low[rows]
            low[rows] = nodes[:, 0] + stride * first
            high[rows] = nodes[:, 0] + stride * last
            rows = rows[(stride > 3) & (high[rows] - low[rows] < 0.7 * before)]
        return low, high

    def _summed(self, terms: Floats) -> tuple[Floats, Floats]:
        top = np.max(terms, axis=1, keepdims=True)
        share = np.exp(terms - top)
        every = np.sum(share, axis=1)
        apart = np.log(2.0 * np.sum(share[:, ::2], axis=1)) - np.log(every)
        return top[:, 0] + np.log(every), apart**2


def _blocks(order: Rows, size: Rows) -> list[Rows]:
    """Divide rows, of ascending sizes, so that as many as fit are worked out together."""
    blocks, begin = [], 0
    while begin < len(order):
        # The largest of a block decides for all.
        fits = size[begin:] * np.arange(1, len(order) - begin + 1) <= _NUMBERS
        stop = begin + max(1, int(np.argmin(fits)) if not np.all(fits) else len(fits))
        blocks.append(order[begin:stop])
        begin = stop
    return blocks

r"""The share of units' rows that is left out, given noisy totals of what is kept, left out and unused.

Model: a unit with k rows adds :math:`\min(k, K)` to A, :math:`\min(k, C) - \min(k, K)` to B and the rest of
C to U; each total is released behind Laplace noise of scale :math:`b_j`, or behind a sum of m of them. The
parameter is a number of these data, not of rows like them:

.. math:: r = B / R, \qquad R = A + B, \qquad A + B + U = C N \qquad (1)

Nothing is assumed of how many rows units have. Given N and r, the possible R are an interval: per unit,
(A, B) lies in the triangle whose corners are k = 1, K and C, so that

.. math:: N \frac{C - K}{C - K - r (C - 1)} \le R \le N \frac{K}{1 - r}, \qquad r \le 1 - \frac{K}{C}
    \qquad (2)

(Farther right there is no such share.) R is uniform on it, N has its own prior, r a Beta prior, and

.. math:: L(r) = \sum_N p(N) \, \mathrm{mean}_R \, e^{-\sum_j |y_j - t_j(N, R, r)| / b_j} \qquad (3)

    t = \bigl((1 - r) R, \; r R, \; C N - R\bigr) \qquad (4)

Method and error: the exponent of (3) is piecewise linear in R, so the mean is a closed form. The sum over N
is exact up to ``MOST_N`` numbers and a rule on evenly spaced ones beyond. Of a total with m noises the
density of their sum replaces the exponential: it is smooth, and its mean over R is taken by a rule of
``_NODES`` nodes (ends of 95 % intervals are within 0.001 of their width of those by finer rules). R is
taken for a real number, and so is the noise: the noise, whose scale is at least C over epsilon, hides the
difference.

======= =============== ============================== ======================= ======
symbol  in the code     meaning                        shape                   unit
======= =============== ============================== ======================= ======
r       ``share``       share left out                 (n_shares,)             none
N       ``n``           number of units                (n_numbers,)            units
R       ``rows``        rows kept and left out         (n_shares, n_numbers)   rows
y       ``values``      released totals                (3 n_releases,)         rows
1 / b   ``rate``        one over the noise's scale     (3 n_releases,)         1/row
K, C    ``kept``,       rows kept, and counted, of a   scalars                 rows
        ``upper``       unit at most
m       ``cells``       noises in a total              scalar                  none
======= =============== ============================== ======================= ======
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.distributions.laplace_sums import log_density_of_sum
from suffice.pipeline.math.distributions.quadrature import GriddedDistribution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.distributions.quadrature import Cell
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
    from suffice.typing import Floats

MOST_N = 192
"""Numbers of units that are summed one by one."""
_NATS, _NATS_OF_SHARE = 32.0, 24.0
_LEFTMOST = -30.0
"""The logit of the smallest share looked at."""
_MOST_SMOOTH, _NODES, _NATS_OF_ROWS, _AT_ONCE = 96, 64, 20.0, 32
_COARSE, _LOOKS, _MOST_LOOKS, _PANELS = 32, 3, 16, 14
_FLAT = 0.1
"""In nats: so much the log density may fall from the top to the points looked at beside it."""
_NARROWEST = 1e-9
"""The smallest step of the logit: no posterior of rows in whole numbers is narrower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyRowTotals:
    """Noisy totals of rows kept, left out and unused, as the posterior takes them.

    Attributes
    ----------
    totals : NoisyTotals
        Three rows a release, (n_cells, 3 n_releases).
    kept, upper : int
        K and C.
    concentration : (float, float)
        Of the prior of the shares kept and left out.
    n_prior : NPrior
        Of the number of units.
    cells : int
        How many noises of that scale are in each total: it is the sum of so many cells.
    """

    totals: NoisyTotals
    kept: int
    upper: int
    concentration: tuple[float, float]
    n_prior: NPrior
    cells: int = 1

    @property
    def largest(self) -> float:
        """The largest share that can be left out: of units that all have C rows."""
        # (2): at r = 1 - K / C the interval of R is the point C N.
        return 1.0 - self.kept / self.upper

    def log_likelihood(self, cell: int, share: Floats) -> Floats:
        """Return log L of shares left out, (n,), in one cell, up to a constant."""
        n, log_weight = self._numbers(cell)
        least, most = row_range(n, share[:, None], self.kept, self.upper)
        log_mean = self._log_mean if self.cells == 1 else self._log_mean_of_sums
        return _log_sum(log_mean(cell, share, n, least, most) + log_weight)

    def _log_mean(self, cell: int, share: Floats, n: Floats, least: Floats, most: Floats) -> Floats:
        """Log of the mean over R of the chance of one cell's totals, (n_shares, n_numbers)."""
        values, rate = self.totals.values[cell], self.totals.rate
        width = most - least
        # Every total is start + slope R: rows kept, left out and unused, release by release.
        slope = np.tile(np.stack([1.0 - share, share, -np.ones_like(share)], axis=1), self.totals.releases)
        start = np.zeros((len(n), len(rate)))
        start[:, 2::3] = self.upper * n[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            # |y_j - t_j| bends where t_j = y_j; as a share of the interval of R.
            kink = ((values - start) / slope[:, None] - least[..., None]) / width[..., None]
        ends = np.zeros((*width.shape, 1)), np.ones((*width.shape, 1))
        knots = np.sort(np.concatenate([ends[0], np.clip(np.nan_to_num(kink), 0.0, 1.0), ends[1]], axis=-1))
        rows = least[..., None] + width[..., None] * knots
        height = np.zeros_like(rows)
        for row, each in enumerate(rate):
            total = start[:, row, None] + slope[:, None, None, row] * rows
            height -= each * np.abs(values[row] - total)
        top = height.max(axis=-1, keepdims=True)
        # Between kinks (3) is the mean of an exponential of a linear function, a closed form.
        segments = np.diff(knots) * mean_exponential(height[..., 1:] - top, height[..., :-1] - top)
        log_mean: Floats = top[..., 0] + np.log(np.sum(segments, axis=-1))
        return log_mean

    def _log_mean_of_sums(self, cell: int, share: Floats, n: Floats, least: Floats, most: Floats) -> Floats:
        """Log of the mean over R of the density of sums of cells: a log concave function, near its top."""
        slope = np.tile(np.stack([1.0 - share, share, -np.ones_like(share)]), (self.totals.releases, 1))
        start = np.zeros((len(slope), len(n)))
        start[2::3] = self.upper * n
        values, rate = self.totals.values[cell][:, None], self.totals.rate[:, None]
        weight = np.sum((slope * rate) ** 2, axis=0)[:, None]
        # The least squares of R: the top of the log concave density is near it.
        centre = (slope * rate**2).T @ (values - start) / weight
        # Distances add up to sqrt(weight) |R - centre| at least: beyond this nothing is left of the noise.
        reach = _far(_NATS_OF_ROWS, self.cells * len(slope)) / np.sqrt(weight)
        left = np.clip(centre - reach, least, np.maximum(most - reach, least))
        right = np.clip(centre + reach, np.minimum(least + reach, most), most)
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        rows = (left + right)[..., None] / 2.0 + (right - left)[..., None] / 2.0 * nodes
        height = np.zeros_like(rows)
        for row, each in enumerate(rate[:, 0].tolist()):
            gap = values[row] - start[row, None, :, None] - slope[row, :, None, None] * rows
            height += log_density_of_sum(each * gap, self.cells)
        top = height.max(axis=-1)
        # The mean over the nodes times the share of the interval that they cover: nothing is left elsewhere.
        mean = np.exp(height - top[..., None]) @ weights / 2.0
        share_of_width = np.divide(right - left, most - least, out=np.ones_like(most), where=most > least)
        log_mean: Floats = top + np.log(mean * share_of_width)
        return log_mean

    def log_density(self, cell: int, position: Floats) -> Floats:
        """Return the log posterior density of the logit of the share left out, up to a constant."""
        share = Line.LOGIT.parameter(position)
        kept, left_out = self.concentration
        # Beta(kept, left out) in the logit of r: dr / d logit = r (1 - r) raises both exponents by 1.
        log_prior = left_out * np.log(share) + kept * np.log1p(-share)
        return (
            np.concatenate(
                [
                    self.log_likelihood(cell, share_block)
                    for share_block in np.array_split(share, -(-len(share) // _AT_ONCE))
                ]
            )
            + log_prior
        )

    def _numbers(self, cell: int) -> tuple[Floats, Floats]:
        """Return numbers of units worth looking at, and the log of what each counts for."""
        lowest, highest = self.n_prior.support
        # (1): the three totals of a release add up to C N.
        by_release = self.totals.by_release[cell].sum(axis=1) / self.upper
        rate = self.totals.scale_by_release[:, 0] ** -1.0
        centre = np.clip(np.average(by_release, weights=rate), lowest, highest)
        reach = _NATS / rate.sum() if self.cells == 1 else _far(_NATS, 3 * self.cells) / rate.max()
        reach = reach / self.upper + np.ptp(by_release) + 1.0
        first, last = max(lowest, np.floor(centre - reach)), min(highest, np.ceil(centre + reach))
        step = max(1.0, (last - first) / (MOST_N if self.cells == 1 else _MOST_SMOOTH))
        n = first + step * np.arange(int((last - first) / step) + 1)
        return n, self.n_prior.log_prob(np.rint(n))


def _far(nats: float, terms: int) -> float:
    """Return where the log density of a sum of Laplace numbers of scale 1 is lower by that, or farther."""
    return nats + 2.0 * math.sqrt(terms * nats)


def row_range(n: Floats, share: Floats, kept: int, upper: int) -> tuple[Floats, Floats]:
    """Return the fewest and most rows of n units, at most `upper` counted of each, of this share left out."""
    # (2): at the upper end A = K N; the lower one is on the edge from k = 1 to k = C.
    most = n * kept / (1.0 - share)
    room = upper - kept - share * (upper - 1.0)
    least = n * (upper - kept) / np.maximum(room, np.finfo(np.float64).tiny)
    return np.minimum(least, most), most


def mean_exponential(first: Floats, last: Floats) -> Floats:
    """Return the mean of exp over numbers evenly spread between two, neither much above 0."""
    high, fall = np.maximum(first, last), np.abs(first - last)
    near = fall < 1e-8
    # The mean of e^(h - f u) over u in 0..1 is e^h (1 - e^-f) / f, which loses digits where f is small.
    ratio = np.divide(-np.expm1(-fall), fall, out=np.ones_like(fall), where=~near)
    mean: Floats = np.exp(high) * ratio
    return mean


def _log_sum(terms: Floats) -> Floats:
    """Return the log of sums of exponentials along the last axis."""
    top = terms.max(axis=-1, keepdims=True)
    total: Floats = top[..., 0] + np.log(np.sum(np.exp(terms - top), axis=-1))
    return total


@dataclass(frozen=True, slots=True)
class RowShares:
    """The shares of rows kept and left out, (n_cells, 2)."""

    left_out: GriddedDistribution

    @classmethod
    def of(cls, noisy: NoisyRowTotals) -> RowShares:
        """Integrate in every cell."""
        cells = (_panels(noisy, cell) for cell in range(noisy.totals.n_cells))
        return cls(GriddedDistribution.of("probability", Line.LOGIT, cells))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.left_out.parameters

    def mean(self, parameter: str) -> Floats:
        """Means."""
        mean = self.left_out.mean(parameter)
        return np.stack([1.0 - mean, mean], axis=-1)

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        sd = self.left_out.sd(parameter)
        return np.stack([sd, sd], axis=-1)

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles from the distribution function; they rest on no draws."""
        mirrored = 1.0 - self.left_out.quantiles(parameter, [1.0 - level for level in q], draws, rng)
        return np.stack([mirrored, self.left_out.quantiles(parameter, q, draws, rng)], axis=1)

    def density(self, parameter: str, points: Floats) -> Floats:
        """Densities of both shares at points (n_cells, 2, n_points)."""
        kept = self.left_out.density(parameter, 1.0 - points[:, 0])
        return np.stack([kept, self.left_out.density(parameter, points[:, 1])], axis=1)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws."""
        (left_out,) = self.left_out.sample(draws, rng).values()
        return {"probability": np.stack([1.0 - left_out, left_out], axis=-1)}


def _panels(noisy: NoisyRowTotals, cell: int) -> Cell:
    """Return panels of the logit, narrower where the posterior is high, and its log density."""
    left, right = _LEFTMOST, float(Line.LOGIT.position(np.array(noisy.largest)))
    top = _top(noisy, cell, left, right)
    highest = noisy.log_density(cell, np.array([top]))[0]
    for look in range(1, _MOST_LOOKS):  # each is closer, until the posterior fills what is looked at
        position = np.union1d(np.linspace(left, right, _COARSE + 2)[1:-1], top)
        high = position[noisy.log_density(cell, position) > highest - _NATS_OF_SHARE]
        step = (right - left) / (_COARSE + 1)
        left, right = max(left, high[0] - step), min(right, high[-1] + step)
        if look >= _LOOKS and len(high) > _COARSE // 2:
            break
    share = np.linspace(0.0, 1.0, _PANELS + 1) ** 2
    edges = np.concatenate([top - (top - left) * share[:0:-1], top + (right - top) * share])
    return edges[:-1], edges[1:], lambda position: noisy.log_density(cell, position)


def _top(noisy: NoisyRowTotals, cell: int, left: float, right: float) -> float:
    """Return where the log density of the logit has its top, which may be far narrower than a first look."""
    while True:
        position = np.linspace(left, right, _COARSE + 2)[1:-1]
        height = noisy.log_density(cell, position)
        highest = int(np.argmax(height))
        step = position[1] - position[0]
        near = height[max(highest - 1, 0) : highest + 2]
        if near.max() - near.min() < _FLAT or step < _NARROWEST:
            return float(position[highest])
        left, right = position[highest] - step, min(right, position[highest] + step)


def draw_rows(n: Floats, share: Floats, kept: int, upper: int, rng: np.random.Generator) -> Floats:
    """Draw whole numbers of rows kept, left out and unused of n units each, (n_data_sets, 3)."""
    least, most = row_range(n, share, kept, upper)
    rows = rng.uniform(least, most)
    left_out = np.rint(rows * share)
    within = np.rint(rows * (1.0 - share))
    return np.stack([within, left_out, upper * n - within - left_out], axis=1)

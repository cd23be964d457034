r"""The likelihood of a mean and a variance behind noisy sums: a sum over what the rows may have been.

Model: N normal rows with mean :math:`\mu` and :math:`\lambda = \log \sigma^2`, in half ranges (bounds are
-1 and 1), have the mean m and the mean square deviation E about m. Released sums y have Laplace noise of
scale b around L, which is linear in N, N m and N (m^2 + E). With :math:`\alpha = (N - 1) / 2`,

.. math::
    p(y \mid \mu, \lambda) = \sum_N \pi(N) \int p(y \mid N, m, E)\,
        N(m; \mu, e^\lambda / N)\, \frac{(N E / 2)^\alpha}{\Gamma(\alpha)}
        e^{-\alpha \lambda - N E e^{-\lambda} / 2} \, dm \, d\log E \qquad (1)

The fraction and what follows it are the density of log E: :math:`N E e^{-\lambda}` is chi-squared with N - 1
degrees of freedom. A single row has E = 0, and no integral over it; no rows add the constant
:math:`\pi(0) \, p(y \mid 0)`. The question is (1) as a function of the parameters, for a prior of any form.

Method and error: for every N, or the middle of a few where the noise hardly tells them apart, m and log E
lie on a grid that covers all but e^-depth of the noise, with steps of

.. math:: \Delta m: \; \text{finest} + \text{growth} \cdot |y - L| / b \text{ scales of the noise}, \qquad
    \Delta \log E: \; \min(0.45 / \sqrt \alpha, \, 0.35 \, v) \qquad (2)

with v the width of the noise in log E (it and :math:`1 / \sqrt \alpha` count as 1 at most). Where v is the
wider, the step may grow to the lesser of 0.35 v and 0.12: a gamma much narrower is then widened to span it.
The grid does not depend on any prior. All E too small for the noise to tell apart are one point, whose
distribution is integrated exactly (an incomplete gamma function): so the part of N falls as
:math:`e^{-N \lambda / 2}` at large variances, as in (1), or nearly where the gamma is widened. A point of the
mean's grid stands for a normal distribution of sd s, half a step; what that blurs, to second order, is taken
off the weights (3). ``product`` compares the result with wider grids where noise at the edge matters.

.. math:: w \leftarrow w - \frac{\partial^2}{\partial m^2} \Bigl(\frac{s^2}{2} w\Bigr) \qquad (3)

Means and standard deviations are within 0.01 sd of dense quadrature (docs/decisions/0022). Records that are
taken for clipped: see ``slices``.

========= ================= ======================================= ===================== ===============
symbol    in the code       meaning                                 shape                 unit
========= ================= ======================================= ===================== ===============
mu        ``mean``          means, arguments of (1)                 (n, p)                half ranges
lambda    ``log_variance``  log variances, arguments of (1)         (n, q)                none
m         ``Slice.mean``    means of rows                           (n_means,)            half ranges
log E     ``log_e``         log mean square deviations              (n_deviations,)       none
w         ``weight``        noise, prior of N and area              (n_deviations,        none
                                                                    n_means)
========= ================= ======================================= ===================== ===============
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.mean_variance.distribution import PANELS
from suffice.pipeline.math.engines.mean_variance.slices import (
    ClippedRecords,
    ClippedSlice,
    Slice,
    before_clipping,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.math.engines.normal.moment_weights import NoisyMoments
    from suffice.typing import Floats

OUTER = 8.0
"""Nats at the edge of a grid: where these matter, the grid has to cover more."""
_STEP = 0.45
"""Steps of log E in widths of its distribution."""
_OBSERVED, _LARGEST_STEP = 0.35, 0.12
"""Steps of log E in widths of the noise; and at most, where steps are longer than ``_STEP`` has them."""
_UNSEEN = 0.015
"""Deviations of the sum of squares, in scales of its noise, that do not matter."""
_SMOOTH = 0.5
"""Width of a point of the mean's grid, in steps: narrower ones would leave ripples at small variances."""
_WIDENED = 0.6
"""Standard deviation, in steps of log E, by which a gamma narrower than the steps is widened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fineness:
    """How fine grids are.

    Attributes
    ----------
    finest, growth, coarsest : float
        Steps of a sum in scales of its noise: near the released value, by how much more for each away, far.
    of_rows, of_few, wider : float
        Parts of a number of rows that share a grid: always, and at most as far as that is some steps of
        noise.
    beside : float
        Spacing of the numbers of rows at which the noise is evaluated, in its scales.
    depth : float
        Nats of noise that a grid covers, unless more are needed.
    """

    finest: float = 0.18
    growth: float = 0.06
    coarsest: float = 1.2
    of_rows: float = 32.0
    of_few: float = 8.0
    wider: float = 2.0
    beside: float = 0.5
    depth: float = 28.0

    def step(self, away: float) -> float:
        """How far to go on at so many scales from the released value."""
        return min(self.finest + self.growth * away, self.coarsest)


FINE = Fineness()
COARSE = Fineness(
    finest=0.5, growth=0.25, coarsest=2.0, of_rows=24.0, of_few=3.0, wider=4.0, beside=1.0, depth=20.0
)
"""For clipped records: their distribution by moments errs by more than these steps do."""


class TooManyError(Exception):
    """A grid that covers so much of the noise has more densities than there is time for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentGrid:
    """Logs of the noise's density on a grid of means and deviations, or of means alone, of low..high rows.

    ``log_noise`` (n_deviations, n_means) is summed over low..high, with the prior of N; ``step`` is each
    mean's; ``log_e[0]`` is the upper end of all smaller deviations; ``taken`` counts evaluated densities.
    """

    low: float
    high: float
    mean: Floats
    step: Floats
    log_e: Floats
    log_step: float
    log_noise: Floats
    taken: int

    @classmethod
    def of(
        cls,
        noisy: NoisyMoments,
        low: float,
        high: float,
        depth: float,
        room: float,
        fineness: Fineness = FINE,
    ) -> Self:
        """Lay out a grid that covers so many nats of the noise; where there is no room, ``TooManyError``."""
        n = (low + high) / 2.0
        totals = noisy.totals
        rows = np.abs(totals.in_scales().coefficients)
        of_total, of_squares = 1.0 / np.sum(rows, axis=0)[1:]
        _, total, squares = noisy.estimates()[0]
        # All numbers of rows share the grid: each further row moves a sum by about 1 at most.
        depth = depth + (high - low) / 2.0 / min(of_total, of_squares)
        mean = _means(n, (total, squares), (of_total, of_squares), depth, fineness)
        edges = np.concatenate([[mean[0]], (mean[1:] + mean[:-1]) / 2.0, [mean[-1]]])
        step = np.diff(edges)
        mean = (edges[1:] + edges[:-1]) / 2.0
        log_e, log_step = np.full(1, -np.inf), 1.0
        if n >= 2.0:
            # m^2 + E is between these, which bounds E where the noise does not reach down to 0.
            ends = np.array([squares - depth * of_squares, squares + depth * of_squares]) / n
            inner = 0.0 if mean[0] <= 0.0 <= mean[-1] else float(np.min(mean**2))
            # N E of so small a part of the noise of the squares changes nothing: E below is taken as a
            # whole.
            unseen = _UNSEEN * of_squares / n
            least = max(ends[0] - float(np.max(mean**2)), unseen)
            most = max(ends[1] - inner, of_squares / n, 2.0 * unseen)
            # Of many rows, log E has the standard deviation sqrt(2 / (N - 1)), that of a log chi-squared.
            width = min(math.sqrt(2.0 / (n - 1.0)), 1.0)
            noise = of_squares / max(squares - total * (total / n), of_squares)
            log_step = min(_STEP * width, _OBSERVED * noise)
            if noise > width:
                log_step = max(_STEP * width, min(_OBSERVED * noise, _LARGEST_STEP))
            count = math.ceil(math.log(most / least) / log_step)
            log_e = math.log(least) + log_step * (np.arange(count + 1) - 0.5)
            log_e[0] = math.log(least)
        square = np.exp(log_e)
        square[0] /= 2.0
        second = mean**2 + square[:, None]
        top, mass = np.full(second.shape, -np.inf), np.zeros(second.shape)
        numbers, share = _within(low, high, fineness.beside / float(np.max(np.sum(rows, axis=0))))
        taken = second.size * len(numbers)
        if taken > room:
            raise TooManyError
        for number in numbers:
            log_noise = np.full(second.shape, float(noisy.n_prior.log_prob(np.array([number]))[0]))
            for (a, b, c), rate, value in zip(
                totals.coefficients, totals.rate, totals.values[0], strict=True
            ):
                # p(y | N, m, E) of (1).
                log_noise -= rate * np.abs(value - number * (a + b * mean + c * second))
            highest = np.maximum(top, log_noise)
            # A sum over the numbers of rows that share the grid, in logarithms.
            mass = mass * np.exp(top - highest) + np.exp(log_noise - highest)
            top = highest
        log_noise = top + np.log(mass * share)
        return cls(
            low=low,
            high=high,
            mean=mean,
            step=step,
            log_e=log_e,
            log_step=log_step,
            log_noise=log_noise,
            taken=taken,
        )

    def slice(self, top: float, depth: float) -> Slice | None:
        """What lies within so many nats of the highest noise."""
        n = (self.low + self.high) / 2.0
        kept = self.log_noise > top - depth
        columns, lines = np.any(kept, axis=0), np.any(kept, axis=1)
        if not np.any(kept):
            return None
        density = np.exp(self.log_noise - top)
        alpha = (n - 1.0) / 2.0
        if n >= 2.0:
            lines[0] = True
            widened = self.log_step > 1.5 * _STEP * math.sqrt(1.0 / alpha)
            if widened:
                # A gamma widened by the steps of the grid has no ripples between its points.
                alpha = 1.0 / (1.0 / alpha + (_WIDENED * self.log_step) ** 2)
                # What that adds to the deviations' variance is taken off again.
                flow = _WIDENED**2 / 2.0 * np.diff(density[1:], axis=0)
                density[1:] -= np.diff(flow, axis=0, prepend=0.0, append=0.0)
            density[1:] *= self.log_step
        weight = np.where(kept, self._sharpened(density), 0.0)
        return Slice(
            n=n,
            mean=self.mean[columns],
            blur=(_SMOOTH * self.step[columns]) ** 2,
            alpha=alpha,
            log_e=self.log_e[lines],
            weight=weight[lines][:, columns],
            is_outer=(kept & (self.log_noise < top - depth + OUTER))[lines][:, columns],
        )

    def _sharpened(self, density: Floats) -> Floats:
        """Masses of means, of which the blur of their points, and no more, is taken off again."""
        if len(self.mean) < 3:
            return density * self.step
        blurred = _SMOOTH**2 / 2.0 * self.step**2 * density
        # (3), as differences of flows: the mass stays the same, but where a weight would be below 0.
        flow = np.diff(blurred, axis=1) / np.diff(self.mean)
        weight = density * self.step - np.diff(flow, axis=1, prepend=0.0, append=0.0)
        return np.maximum(weight, 0.0)


def _within(low: float, high: float, apart: float) -> tuple[Floats, float]:
    """Numbers of rows from low to high, not too far apart, and how many each stands for."""
    count = high - low + 1.0
    points = min(math.ceil(count / max(apart, 1e-300)), count)
    share = count / points
    return low - 0.5 + share * (np.arange(points) + 0.5), share


def numbers_of_rows(
    noisy: NoisyMoments, depth: float, fineness: Fineness = FINE
) -> Iterator[tuple[float, float]]:
    """Numbers of rows that the noise may leave, above 0: one by one, or a few where it hardly tells them."""
    least, most = (float(end) for end in noisy.n_prior.support)
    scale = 1.0 / max(float(np.abs(noisy.totals.coefficients[:, 0]) @ noisy.totals.rate), 1e-300)
    n = float(noisy.estimates()[0, 0])
    # Where N is private a release sums to it: whatever m and E, noise falls by 1 / scale nats a row beyond n.
    reach = (depth + _missed(noisy)) * scale
    low, last = max(least, 1.0, math.floor(n - reach)), min(most, max(math.ceil(n + reach), 1.0))
    while low <= last:
        # The distributions of the mean and the deviation hardly depend on a few of many rows.
        noise = fineness.step(abs(low - n) / scale) * scale
        step = max(low / fineness.of_rows, min(fineness.wider * noise, low / fineness.of_few))
        high = min(low + max(math.floor(step), 1.0) - 1.0, last)
        yield low, high
        low = high + 1.0


def _missed(noisy: NoisyMoments) -> float:
    """Nats that the noise takes at about the likeliest sums that are possible."""
    n, total, squares = noisy.estimates()[0]
    least, most = (float(end) for end in noisy.n_prior.support)
    middles = []
    for number in (n, 0.0, 1.0, 2.0, n + abs(n), n / 2.0):
        rows = min(max(round(number), least), most)
        mean = total / max(rows, 1.0)
        for start in (mean, 0.0, mean / 2.0):
            second = max(squares, rows * start**2)
            sums = np.array([rows, rows * start if rows else 0.0, second if rows else 0.0])
            # Sums that no rows have may be what is released: depth counts from the best possible ones.
            middles.append(float(noisy.totals.distance(sums)[0]))
    return min(middles)


def _means(
    n: float, sums: tuple[float, float], scales: tuple[float, float], depth: float, fineness: Fineness
) -> Floats:
    """Means of n rows, in steps of the noise: where they change that of both sums, those are smaller."""
    (total, squares), (of_total, of_squares) = sums, scales
    least, most = (total - depth * of_total) / n, (total + depth * of_total) / n
    # As E is not below 0, N m^2 is at most the sum of squares.
    reach = math.sqrt((max(squares, 0.0) + depth * of_squares) / n)
    least, most = max(min(least, reach), -reach), min(max(most, -reach), reach)
    if most - least <= 1e-12 * reach:
        least, most = least - of_total / n, most + of_total / n

    # Noise scales that N m and N m^2 move by together as the mean goes from 0, with its sign.
    def to_noise(mean: float) -> float:
        return n * (mean / of_total + mean * abs(mean) / of_squares)

    centre = min(max(total / n, least), most)
    middle = to_noise(centre)
    position = np.concatenate(
        [
            middle - _ladder(middle - to_noise(least), fineness)[:0:-1],
            middle + _ladder(to_noise(most) - middle, fineness),
        ]
    )
    # |m| is the positive root of m^2 / of_squares + |m| / of_total = |position| / n.
    half = of_squares / of_total / 2.0
    part = of_squares * np.abs(position) / n
    mean: Floats = np.sign(position) * part / (half + np.sqrt(half**2 + part))
    return mean


def _ladder(depth: float, fineness: Fineness) -> Floats:
    """Positions from 0 on, fine near it, up to a depth."""
    positions = [0.0]
    while positions[-1] < depth:
        positions.append(positions[-1] + fineness.step(positions[-1]))
    return np.array(positions)


FEW = 8
"""Numbers of rows up to this may leave a variance without moments."""
_NUMBERS = 2**19
_NO_DEVIATION = -4.0
"""Represents log E of a single row where locations are searched."""
_LARGEST_MEAN, _LEAST_LOG = 1e70, -320.0
_FAR = 8.0
"""Where moments of clipped rows say next to nothing of a parameter: the steps in which it is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentRows:
    """The likelihood of one cell.

    Attributes
    ----------
    slices : list of Slice
    log_empty : float
        Log likelihood of no rows at all; minus infinity where there must be some.
    depth : float
        Nats of noise that the grid covers.
    clipped : list of ClippedSlice or None
        The same where records are taken for clipped to -1..1; None where they are not.
    """

    slices: list[Slice]
    log_empty: float
    depth: float
    clipped: list[ClippedSlice] | None = None

    @classmethod
    def of(
        cls,
        noisy: NoisyMoments,
        depth: float,
        room: float = math.inf,
        *,
        clips: bool = False,
        fineness: Fineness | None = None,
    ) -> Self:
        """Lay out the grids of the one cell of some noisy moments, with room for so many densities.

        Parameters
        ----------
        clips : bool
            Whether records are taken for clipped to -1..1.
        fineness : Fineness, optional
            Of the grids; else ``FINE``, and ``COARSE`` for clipped records.

        Raises
        ------
        TooManyError
            Where there would be more.
        """
        grids: list[LatentGrid] = []
        fineness = fineness or (COARSE if clips else FINE)
        for low, high in numbers_of_rows(noisy, depth, fineness):
            grids.append(LatentGrid.of(noisy, low, high, depth, room, fineness))
            room -= grids[-1].taken
        least, _ = noisy.n_prior.support
        empty = -np.inf
        if least == 0:
            empty = float(noisy.n_prior.log_prob(np.zeros(1))[0] - noisy.totals.distance(np.zeros(3))[0])
        top = max([empty, *(float(np.max(grid.log_noise)) for grid in grids)])
        slices = [slice_of_n for grid in grids if (slice_of_n := grid.slice(top, depth)) is not None]
        clipped = [ClippedSlice.of(slice_of_n) for slice_of_n in slices] if clips else None
        return cls(slices=slices, log_empty=empty - top, depth=depth, clipped=clipped)

    def log_likelihood(self, mean: Floats, log_variance: Floats) -> Floats:
        """Log likelihoods at positions (n, p) and (n, q), but for a constant: (n, p, q)."""
        return self._sum(self.slices, self.clipped, mean, log_variance, self.log_empty)

    def outer(self, mean: Floats, log_variance: Floats) -> Floats:
        """Log likelihoods of what the noise leaves least of; of no rows at all, where that is beyond it."""
        empty = self.log_empty if self.log_empty < OUTER - self.depth else -np.inf
        slices = []
        for slice_of_n in self.slices:
            columns = np.any(slice_of_n.is_outer, axis=0)
            if np.any(columns):
                slices.append(
                    replace(
                        slice_of_n,
                        mean=slice_of_n.mean[columns],
                        blur=slice_of_n.blur[columns],
                        weight=np.where(slice_of_n.is_outer, slice_of_n.weight, 0.0)[:, columns],
                    )
                )
        clipped = None if self.clipped is None else [ClippedSlice.of(slice_of_n) for slice_of_n in slices]
        return self._sum(slices, clipped, mean, log_variance, empty)

    def few(self, mean: Floats, log_variance: Floats) -> list[tuple[int, Floats]]:
        """Few numbers of rows, and the log likelihoods of each."""
        shape = (len(mean), mean.shape[1], log_variance.shape[1])
        log_parts = [(0, np.full(shape, self.log_empty))]
        for number, slice_of_n in enumerate(self.slices):
            if slice_of_n.n <= FEW:
                clipped = None if self.clipped is None else self.clipped[number : number + 1]
                log_parts.append(
                    (int(slice_of_n.n), self._sum([slice_of_n], clipped, mean, log_variance, -np.inf))
                )
        return log_parts

    @staticmethod
    def _sum(
        slices: list[Slice],
        clipped: list[ClippedSlice] | None,
        mean: Floats,
        log_variance: Floats,
        start: float,
    ) -> Floats:
        log_likelihood = np.full((len(mean), mean.shape[1], log_variance.shape[1]), start)
        # Beyond these, numbers would overflow; nothing is left there.
        mean = np.clip(mean, -_LARGEST_MEAN, _LARGEST_MEAN)
        log_variance = np.maximum(log_variance, _LEAST_LOG)
        if clipped is not None:
            records = ClippedRecords.of(mean[:, :, None], log_variance[:, None, :]).flat()
            for clipped_slice in clipped:
                np.logaddexp(
                    log_likelihood,
                    clipped_slice.log_likelihood(records).reshape(log_likelihood.shape),
                    out=log_likelihood,
                )
            return log_likelihood
        for slice_of_n in slices:
            batch = max(1, _NUMBERS // (mean.shape[1] * log_variance.shape[1] * len(slice_of_n.mean)))
            for first in range(0, len(mean), batch):
                part = slice(first, first + batch)
                of_slice = slice_of_n.log_likelihood(mean[part], log_variance[part])
                log_likelihood[part] = np.logaddexp(log_likelihood[part], of_slice)
        return log_likelihood

    @property
    def ladders(self) -> tuple[list[Floats], list[Floats]]:
        """Positions along both sides about what the rows may have been, wide and narrow."""
        if not self.slices:
            return [PANELS, PANELS], [PANELS, PANELS]
        dense = [slice_of_n for slice_of_n in self.slices if slice_of_n.n >= 2.0] or self.slices
        heaviest = dense[int(np.argmax([np.sum(slice_of_n.weight) for slice_of_n in dense]))]
        starts = []
        level = np.maximum(heaviest.log_e, _NO_DEVIATION)
        for axis, position in enumerate((heaviest.mean, level)):
            share = np.sum(heaviest.weight, axis=axis)
            share = share / np.sum(share)
            middle = float(share @ position)
            starts.append((middle, math.sqrt(float(share @ (position - middle) ** 2))))
        (mean, of_mean), (middle, of_level) = starts
        sampling = math.exp(middle / 2.0) / math.sqrt(heaviest.n)
        width = math.sqrt(2.0 / max(heaviest.n - 1.0, 1.0))
        wide = (math.hypot(of_mean, sampling), math.hypot(of_level, width))
        centre, slopes = np.array([mean, middle]), np.eye(2)
        if self.clipped is not None and heaviest.n >= 2.0:
            # Of clipped rows, moments are not where the parameters are.
            centre, slopes = before_clipping((mean, middle), wide)
        first, second = (
            [
                centre[side] + min(math.hypot(*(slopes[side] * part)), _FAR) * PANELS
                for part in (wide, (sampling, width))
            ]
            for side in (0, 1)
        )
        return first, second

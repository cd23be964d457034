r"""Tables behind ``class_counts``: evidence of features, the posterior of class counts, moments and draws.

Counts whose sum is given are drawn independently. Those of a row are proposed from their tables, all but
the flattest, which takes the rest: it is accepted with its probability over its largest. What is not
accepted in a few rounds is drawn one count after the other, each given those before it and the sum. Both
ways follow the same distribution, so together they do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.engines.multinomial.convolution import (
    RELIABLE,
    UNRESOLVED,
    CountSums,
    PosteriorOfN,
    log_rising_on_grid,
    products_of_others,
)
from suffice.pipeline.math.engines.multinomial.noisy_counts import (
    NoisyCounts,
    fall_of_factor,
    rows_of,
    search_tilt,
)
from suffice.pipeline.math.priors.record_count import Uniform
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.multinomial.class_counts import StarCounts
    from suffice.typing import Floats, Rows

ROUNDS = 40
_SLOTS = 2**21


@dataclass(frozen=True, slots=True, kw_only=True)
class Splitter:
    """Draws of several counts given their sum; made by ``Splitter.of``."""

    sums: CountSums
    closing: Rows
    peak: Floats
    cumulative: Floats

    @classmethod
    def of(cls, sums: CountSums) -> Self:
        """Prepare the tables of every row."""
        peaks = np.max(sums.tables, axis=2)
        closing = np.argmin(peaks, axis=1)
        points = sums.tables.shape[2]
        cumulative = np.cumsum(sums.tables.reshape(-1, points), axis=1)
        cumulative /= cumulative[:, -1:]
        return cls(
            sums=sums,
            closing=closing,
            peak=np.min(peaks, axis=1),
            cumulative=(cumulative + np.arange(float(len(cumulative)))[:, None]).ravel(),
        )

    def counts(self, rows: Rows, total: Floats, rng: np.random.Generator) -> Floats:
        """One vector of counts (n_slots, n_categories) for every entry of `rows`, with the given sums."""
        base = self.sums.base[rows]
        step = self.sums.step[rows]
        left = np.rint((total - np.sum(base, axis=1)) / step).astype(np.int64)
        return base + step[:, None] * self.indices(rows, left, rng)

    def indices(self, rows: Rows, left: Rows, rng: np.random.Generator) -> Rows:
        """Indices into the tables whose sum is `left`."""
        _, categories, points = self.sums.tables.shape
        result = np.zeros((len(rows), categories), np.int64)
        if categories == 1:
            result[:, 0] = left
            return result
        pending = np.arange(len(rows))
        for _round in range(ROUNDS):
            row = rows[pending]
            closing, rest = self.closing[row], left[pending].copy()
            for category in range(categories):
                table = row * categories + category
                target = table + rng.random(row.shape) * (1.0 - 2.0**-38)
                index = np.searchsorted(self.cumulative, target, side="right") - table * points
                index = np.where(category == closing, 0, np.minimum(index, points - 1))
                result[pending, category] = index
                rest -= index
            inside = (rest >= 0) & (rest < points)
            rest = np.clip(rest, 0, points - 1)
            share = self.sums.tables[row, closing, rest] / self.peak[row]
            accepted = inside & (rng.random(row.shape) < share)
            result[pending[accepted], closing[accepted]] = rest[accepted]
            pending = pending[~accepted]
            if not pending.size:
                return result
        result[pending] = self._one_after_the_other(rows[pending], left[pending], rng)
        return result

    def _one_after_the_other(self, rows: Rows, left: Rows, rng: np.random.Generator) -> Rows:
        from scipy.fft import irfft

        _, categories, points = self.sums.tables.shape
        used, local = np.unique(rows, return_inverse=True)
        suffix = np.ones_like(self.sums.transforms[used, 0])
        tails: list[Floats] = []
        for category in range(categories - 1, 0, -1):
            suffix = suffix * self.sums.transforms[used, category]
            tail = irfft(suffix, self.sums.size, axis=-1)
            tail[tail < 1e-15 * np.max(tail, axis=1, keepdims=True)] = 0.0
            tails.insert(0, tail)
        result = np.zeros((len(rows), categories), np.int64)
        at_once = max(1, _SLOTS // points)
        for start in range(0, len(rows), at_once):
            part = slice(start, start + at_once)
            rest = left[part].copy()
            for category, tail in enumerate(tails):
                after = rest[:, None] - np.arange(points)
                weight = (
                    self.sums.tables[rows[part], category] * tail[local[part, None], after % self.sums.size]
                )
                cumulative = np.cumsum(np.where(after >= 0, weight, 0.0), axis=1)
                target = rng.random((len(rest), 1)) * cumulative[:, -1:]
                taken = np.minimum(np.sum(cumulative <= target, axis=1), points - 1)
                result[part, category] = taken
                rest = rest - taken
            result[part, -1] = np.clip(rest, 0, points - 1)
        return result


_FEWEST_STEPS = 16.0
"""Steps of a grid over one scale of the noise; fewer only where values are that far from N."""
OUT_OF_REACH = (
    "noisy counts are so far from every possible N that noise of their scale moves them there with a chance "
    "below 1e-300, and no grid covers the distance: give an N that fits the noisy counts"
)
_NEGLIGIBLE = 1e-8
"""Posterior probability of a class count at the end of what is resolved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePart:
    """The tables of one feature in classes of equal concentration, and their evidence.

    Attributes
    ----------
    feature : int
        Which feature.
    classes : ndarray of int64
        Which classes.
    sums : CountSums
        A row for every cell and class, cell by cell.
    density, n : ndarray of shape (n_rows, size), float64
        Tilted density of every sum of counts, and the sums.
    """

    feature: int
    classes: Rows
    sums: CountSums
    density: Floats
    n: Floats

    @classmethod
    def of(cls, star: StarCounts, feature: int, classes: Rows, shared: Floats, centre: Floats) -> Self:
        """Convolve the rows of every cell and class, at the tilt with the mean of their sum at its centre."""
        counts = NoisyCounts.of(
            star.tables(feature, classes),
            concentration=shared,
            n_prior=Uniform(0, star.n_prior.support[1]),
        )
        target = centre[:, classes].ravel()
        sums = CountSums.of(counts, search_tilt(counts, np.zeros(len(target)), target, target))
        density = sums.density_of(sums.transforms.prod(axis=1))
        density = np.where(density > RELIABLE * np.max(density, axis=1, keepdims=True), density, 0.0)
        grid = sums.grid(np.sum(sums.base, axis=1), np.sum(sums.mean, axis=1))
        return cls(feature=feature, classes=classes, sums=sums, density=density, n=grid)

    def ends(self) -> tuple[Floats, Floats]:
        """First and last sum that is resolved, both (n_cells, n_classes)."""
        shape = (-1, len(self.classes))
        first = np.min(np.where(self.density > 0.0, self.n, np.inf), axis=1)
        last = np.max(np.where(self.density > 0.0, self.n, -np.inf), axis=1)
        return first.reshape(shape), last.reshape(shape)

    def limits(self) -> tuple[Floats, Floats]:
        """Least and largest sum that the windows of the rows allow, shaped as ``ends``."""
        shape = (-1, len(self.classes))
        points = self.sums.tables.shape[2]
        used = self.sums.tables > 0.0
        lowest, highest = np.argmax(used, axis=2), points - 1 - np.argmax(used[:, :, ::-1], axis=2)
        base, step = np.sum(self.sums.base, axis=1), self.sums.step
        low = base + step * np.sum(lowest, axis=1)
        high = base + step * np.sum(highest, axis=1)
        return low.reshape(shape), high.reshape(shape)

    def index(self, m: Floats) -> tuple[Rows, NDArray[np.bool_]]:
        """Where class counts m (n_rows, n) stand in the density, and whether they do."""
        position = np.rint((m - np.sum(self.sums.base, axis=1)[:, None]) / self.sums.step[:, None])
        index = position.astype(np.int64) % self.sums.size
        return index, np.take_along_axis(self.n, index, axis=1) == m

    def log_evidence(self, m: Floats) -> Floats:
        """Log of the evidence of class counts m (n_rows, n), but for a constant a row."""
        index, known = self.index(m)
        with np.errstate(divide="ignore"):
            log_density = np.log(np.take_along_axis(self.density, index, axis=1))
        tilt = self.sums.weights.tilt[:: self.sums.counts.shape[1], None]
        rising = log_rising_on_grid(self.sums.counts.concentration, self.sums.step, m)
        return np.where(known, log_density + tilt * m - rising, -np.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class StarTables:
    """Everything about a batch of cells; made by ``StarTables.of``.

    Attributes
    ----------
    star : StarCounts
        The batch.
    parts : list of Part
        The features' tables.
    top : CountSums
        Rows of the class counts: a table for every cell and class.
    m : ndarray of shape (n_cells, n_classes, n_points), float64
        The class counts that the rows of ``top`` are over.
    of_n : PosteriorOfN
        The posterior of N.
    marginal : ndarray, shaped as m
        The posterior of every class count.
    at_ends : ndarray of shape (n_cells, n_classes, 2), float64
        The posterior of the first and the last class count in m, 0 where nothing can lie beyond.
    ends : ndarray, shaped as at_ends
        These class counts.
    """

    star: StarCounts
    parts: list[TablePart]
    top: CountSums
    m: Floats
    of_n: PosteriorOfN
    marginal: Floats
    at_ends: Floats
    ends: Floats

    @classmethod
    def of(cls, star: StarCounts, centre: Floats) -> Self:
        """Work out the evidence of every class count near its centre, and the posterior of all."""
        parts = [TablePart.of(star, *part, centre) for part in star.parts()]
        step = np.max([part.sums.step.reshape(len(centre), -1).max(axis=1) for part in parts], axis=0)
        first, last = np.zeros_like(centre), np.full_like(centre, np.inf)
        lowest, highest = np.zeros_like(centre), np.full_like(centre, float(star.n_prior.support[1]))
        for part in parts:
            for low, high, (least, most) in ((first, last, part.ends()), (lowest, highest, part.limits())):
                low[:, part.classes] = np.maximum(low[:, part.classes], least)
                high[:, part.classes] = np.minimum(high[:, part.classes], most)
        first = np.ceil(first / step[:, None]) * step[:, None]
        last = np.maximum(np.floor(last / step[:, None]) * step[:, None], first)
        points = int(np.max((last - first) / step[:, None])) + 1
        m = first[:, :, None] + step[:, None, None] * np.arange(points)
        log_weight = np.stack(
            [
                log_rising_on_grid(concentration, step, m[:, of_class])
                for of_class, concentration in enumerate(star.class_concentration[:, None])
            ],
            axis=1,
        )
        for part in parts:
            evidence = part.log_evidence(m[:, part.classes].reshape(-1, points))
            log_weight[:, part.classes] += evidence.reshape(len(centre), -1, points)
        log_weight = np.where(m <= last[:, :, None], log_weight, -np.inf)
        unresolved = ~np.all(np.any(np.isfinite(log_weight), axis=2), axis=1)
        coarse = (step > 1.0) & (step > np.min(star.scales) / _FEWEST_STEPS)
        if np.any((coarse | unresolved) & star.is_out_of_reach()):
            raise PriorError(OUT_OF_REACH)
        if np.any(unresolved):
            raise PriorError(UNRESOLVED)
        top = _class_sums(star, centre, m, log_weight, step)
        of_n = top.posterior_of_n()
        marginal = _marginals(top, of_n)
        at_first = marginal[:, :, 0] * (first > lowest)
        index = np.rint((last - first) / step[:, None]).astype(np.int64)
        at_last = np.take_along_axis(marginal, index[:, :, None], axis=2)[:, :, 0]
        at_last = at_last * (last < highest)
        return cls(
            star=star,
            parts=parts,
            top=top,
            m=m,
            of_n=of_n,
            marginal=marginal,
            at_ends=np.stack([at_first, at_last], axis=2),
            ends=np.stack([first, last], axis=2),
        )

    @property
    def is_resolved(self) -> NDArray[np.bool_]:
        """Whether what lies beyond the class counts in m is negligible, (n_cells,)."""
        resolved: NDArray[np.bool_] = np.all(self.at_ends < _NEGLIGIBLE, axis=(1, 2))
        return resolved

    def better_centre(self, centre: Floats, share: float) -> Floats:
        """Centres again, those of unresolved class counts at their mean, moved towards the end with mass."""
        means = np.sum(self.m * self.marginal, axis=2)
        has_mass = self.at_ends >= _NEGLIGIBLE
        pull = np.where(has_mass, share * (self.ends - means[:, :, None]), 0.0)
        return np.where(np.any(has_mass, axis=2), means + np.sum(pull, axis=2), centre)

    def moments(self) -> tuple[Floats, Floats]:
        """Means and standard deviations of all probabilities, (n_cells, n_entries)."""
        cells = self.star.n_cells
        mean, sd = self.top.moments(self.of_n)
        shapes = [(cells, *each.shape) for each in self.star.feature_concentrations]
        means, sds = [np.empty(shape) for shape in shapes], [np.empty(shape) for shape in shapes]
        for part in self.parts:
            m = self.m[:, part.classes].reshape(len(part.n), -1)
            posterior = self.marginal[:, part.classes].reshape(m.shape)
            index, known = part.index(m)
            probability = np.zeros_like(part.n)
            rows = np.broadcast_to(np.arange(len(m))[:, None], m.shape)
            np.add.at(probability, (rows[known], index[known]), posterior[known])
            of_part = replace(self.of_n, n=part.n, probability=probability, density=part.density)
            for result, moment in zip((means, sds), part.sums.moments(of_part), strict=True):
                result[part.feature][:, part.classes] = moment.reshape(cells, len(part.classes), -1)
        return (
            np.concatenate([mean, *(each.reshape(cells, -1) for each in means)], axis=1),
            np.concatenate([sd, *(each.reshape(cells, -1) for each in sds)], axis=1),
        )

    def sample_given(self, draws: int, rng: np.random.Generator) -> Floats:
        """Dirichlet concentrations given independent draws of all counts, (draws, n_cells, n_entries)."""
        cells = np.repeat(np.arange(self.star.n_cells), draws)
        of_classes = Splitter.of(self.top)
        chosen = _choose(self.of_n.probability, cells, rng)
        m = of_classes.counts(cells, self.of_n.n[cells, chosen], rng)
        given = [self.star.class_concentration + m]
        tables = [np.empty((len(cells), *each.shape)) for each in self.star.feature_concentrations]
        for part in self.parts:
            split = Splitter.of(part.sums)
            for position, of_class in enumerate(part.classes):
                rows = cells * len(part.classes) + position
                tables[part.feature][:, of_class] = split.counts(rows, m[:, of_class], rng)
        for table, concentration in zip(tables, self.star.feature_concentrations, strict=True):
            given.append((concentration + table).reshape(len(cells), -1))
        joined = np.concatenate(given, axis=1)
        return joined.reshape(self.star.n_cells, draws, -1).swapaxes(0, 1)


def _class_sums(star: StarCounts, centre: Floats, m: Floats, log_weight: Floats, step: Floats) -> CountSums:
    """Rows of class counts as tables, at a tilt that makes the link about level, and their transforms."""
    from scipy.fft import next_fast_len, rfft

    counts = NoisyCounts.of(
        NoisyTotals.of_counts([centre], star.scales[:1]),
        concentration=star.class_concentration,
        n_prior=star.n_prior,
    )
    tilt = _class_tilt(counts, m, log_weight)
    tables, log_total = _normalised(log_weight - tilt[:, None, None] * m)
    points = m.shape[2]
    size = int(next_fast_len((m.shape[1] + 1) * points, real=True))
    flat = tables.reshape(-1, points)
    return CountSums(
        counts=counts,
        weights=rows_of(counts, tilt),
        edges=np.empty((0, 0)),
        nodes=m.reshape(-1, points),
        mass=flat,
        log_total=np.sum(log_total, axis=1),
        mean=np.sum(tables * m, axis=2),
        # So long that no index wraps: the transform is as long as all rows together.
        span=2.0 * step * (size + np.sum(m[:, :, -1], axis=1)),
        step=step,
        base=m[:, :, 0].copy(),
        tables=tables,
        transforms=rfft(tables, size, axis=-1),
        size=size,
    )


def _class_tilt(counts: NoisyCounts, m: Floats, log_weight: Floats) -> Floats:
    """Tilts (n_cells,) at which the mean of N is one where the link is level, or at an end of its support.

    Steps of a standard deviation at most, as weights are not normal, inside of a bracket.
    """
    low, high = counts.support.T
    tilt, bottom, top = np.zeros(len(m)), np.full(len(m), -np.inf), np.full(len(m), np.inf)
    for _step in range(200):
        tables, _ = _normalised(log_weight - tilt[:, None, None] * m)
        means = np.sum(tables * m, axis=2)
        variance = np.sum((m - means[:, :, None]) ** 2 * tables, axis=(1, 2))
        mean = np.sum(means, axis=1)
        bound = np.clip(mean, low, high)
        inside = (bound == mean) & (low < high)
        wanted = np.where(
            inside, fall_of_factor(counts, mean), tilt + (mean - bound) / np.maximum(variance, 1e-12)
        )
        change = np.where(inside, 0.5, 1.0) * (wanted - tilt)
        if np.all(np.abs(change) * np.sqrt(variance) < 0.1):
            break
        bottom, top = np.where(change > 0.0, tilt, bottom), np.where(change > 0.0, top, tilt)
        reach = 1.0 / np.sqrt(np.maximum(variance, 1e-12))
        moved = tilt + np.clip(change, -reach, reach)
        outside = (moved <= bottom) | (moved >= top)
        tilt = np.where(outside & np.isfinite(top - bottom), (bottom + top) / 2.0, moved)
    return tilt


def _normalised(log_weight: Floats) -> tuple[Floats, Floats]:
    """Weights along the last axis as probabilities, and the logs of their sums."""
    top = np.max(log_weight, axis=2, keepdims=True)
    weight = np.exp(log_weight - top)
    total = np.sum(weight, axis=2, keepdims=True)
    return weight / total, (top + np.log(total))[:, :, 0]


def _marginals(top: CountSums, of_n: PosteriorOfN) -> Floats:
    """The posterior of every class count, shaped as the tables."""
    from scipy.fft import irfft, rfft

    link = np.divide(
        of_n.probability,
        of_n.density,
        out=np.zeros_like(of_n.probability),
        where=of_n.probability > 1e-14 * np.max(of_n.probability, axis=1, keepdims=True),
    )
    before, after = products_of_others(top.transforms)
    transform = rfft(link, axis=-1)
    marginal = np.empty_like(top.tables)
    for k in range(marginal.shape[1]):
        reached = irfft(transform * np.conj(before[k] * after[k]), top.size, axis=-1)
        marginal[:, k] = top.tables[:, k] * np.maximum(reached[:, : marginal.shape[2]], 0.0)
    normalised: Floats = marginal / np.sum(marginal, axis=2, keepdims=True)
    return normalised


def _choose(probability: Floats, rows: Rows, rng: np.random.Generator) -> Rows:
    """One index for every entry of `rows`, by the probabilities of its row."""
    cumulative = np.cumsum(probability, axis=1)
    cumulative /= cumulative[:, -1:]
    flat = (cumulative + np.arange(float(len(cumulative)))[:, None]).ravel()
    target = rows + rng.random(rows.shape) * (1.0 - 2.0**-38)
    chosen: Rows = np.searchsorted(flat, target, side="right") - rows * probability.shape[1]
    return chosen

r"""Exact posteriors of a class and its features when all their counts are latent behind noise.

Model: rows have a class y and, given it, independent features d. Latent class counts :math:`m_y` are the
margins of every feature's latent table, so the tables are independent given them. With noisy counts z,
Dirichlet priors and a public prior of N,

.. math::
    P(m \mid z) \propto \pi(N) \frac{N!}{\Gamma(A + N)} \prod_y
        \frac{\Gamma(\alpha_y + m_y)}{\Gamma(\alpha_y)\, m_y!} \prod_d E_{dy}(m_y),
    \qquad N = \sum_y m_y \qquad (1)

    E_{dy}(m) = \frac{m!\, \Gamma(A_d)}{\Gamma(A_d + m)} \sum_{c:\, \sum_k c_k = m}
        \prod_k \frac{\Gamma(\alpha_{dk} + c_k)}{\Gamma(\alpha_{dk})\, c_k!} e^{-|z_{dyk} - c_k| / b}
        \qquad (2)

The question is the posterior of all probabilities: of the classes, and of every feature given the class.

Method and error: (2) is a convolution of K rows, by FFT at the tilt that puts its mean near the posterior
mean of :math:`m_y`; (1) is one more (``convolution``); moments agree with enumeration to 1e-6 sd. What
lies beyond the resolved class counts has less than 1e-8 of the posterior, else the centre is moved. Noisy
counts that no N gives with a chance of 1e-300, by Chernoff's bound (3), are refused:

.. math::
    P\Big(\sum_{i \leq n} |\mathrm{DLap}_i(b)| \geq t\Big) \leq
        \left(\frac{1 - q}{1 + q} \, \frac{1 + r}{1 - r}\right)^n \left(\frac q r\right)^t,
        \quad q = e^{-1 / b} \leq r \leq 1 \qquad (3)

Draws of m, then of every table given m (``sampling``), are independent.

======= ========================== ============================== ================================= ====
symbol  in the code                meaning                        shape                             unit
======= ========================== ============================== ================================= ====
m       ``m``                      class counts                   (n_cells, n_classes, n_points)    rows
z       ``features``               noisy tables                   (n_cells, n_classes, K)           rows
E       ``log_evidence``           evidence of a feature          (n_rows, n)                       nats
alpha   ``class_concentration``,   of the priors                  (n_classes,),                     none
        ``feature_concentrations``                                (n_classes, K)
b       ``scales``                 of the noise of a release      (n_releases,)                     rows
======= ========================== ============================== ================================= ====
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.dirichlet import project_simplex, sample_blocks
from suffice.pipeline.math.engines.multinomial import convolution
from suffice.pipeline.math.engines.multinomial.noisy_counts import NATS, NoisyCounts, rows_of, search_tilt
from suffice.pipeline.math.engines.multinomial.sampling import Splitter
from suffice.pipeline.math.priors.record_count import Uniform
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Floats, Rows

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
    sums: convolution.CountSums
    density: Floats
    n: Floats

    @classmethod
    def of(cls, star: StarCounts, feature: int, classes: Rows, shared: Floats, centre: Floats) -> Self:
        """Convolve the rows of every cell and class, at the tilt with the mean of their sum at its centre."""
        counts = NoisyCounts.of(
            star.tables(feature, classes), concentration=shared, n_prior=Uniform(0, star.n_prior.support[1])
        )
        target = centre[:, classes].ravel()
        sums = convolution.CountSums.of(counts, search_tilt(counts, np.zeros(len(target)), target, target))
        density = sums.density_of(sums.transforms.prod(axis=1))
        # The sum in (2), tilted, for every m at once.
        density = np.where(
            density > convolution.RELIABLE * np.max(density, axis=1, keepdims=True), density, 0.0
        )
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
        # On a coarse grid the prior's sum is smoothed as the density is, so that their ratio is not.
        rising = convolution.log_rising_on_grid(self.sums.counts.concentration, self.sums.step, m)
        # (2): without the tilt, and over (A_d)_m / m!.
        return np.where(known, log_density + tilt * m - rising, -np.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class StarTables:
    """Everything about a batch of cells; made by ``StarTables.of``.

    Attributes
    ----------
    star : StarCounts
        The batch.
    parts : list of TablePart
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
    top: convolution.CountSums
    m: Floats
    of_n: convolution.PosteriorOfN
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
                # (1): (alpha_y)_m / m!, then the evidence of every feature.
                convolution.log_rising_on_grid(concentration, step, m[:, of_class])
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
            raise PriorError(convolution.UNRESOLVED)
        top = _class_sums(star, centre, m, log_weight, step)
        of_n = top.posterior_of_n()
        marginal = convolution.marginals_of_rows(top, of_n)
        # An end counts as unresolved where class counts beyond it are possible, and its probability is not
        # small.
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
            # A table given m has the moments of ``convolution``, with the posterior of m in the place of
            # that of N.
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
        # N, then m given N, then every table given its class count: each by its exact conditional
        # distribution.
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


def _class_sums(
    star: StarCounts, centre: Floats, m: Floats, log_weight: Floats, step: Floats
) -> convolution.CountSums:
    """Rows of class counts as tables, at a tilt that makes the link about level, and their transforms."""
    from scipy.fft import next_fast_len, rfft

    counts = NoisyCounts.of(
        NoisyTotals.of_counts([centre], star.scales[:1]),
        concentration=star.class_concentration,
        n_prior=star.n_prior,
    )
    tilt = convolution.level_tilt(counts, m, log_weight)
    tables, log_total = convolution.normalised(log_weight - tilt[:, None, None] * m)
    points = m.shape[2]
    size = int(next_fast_len((m.shape[1] + 1) * points, real=True))
    flat = tables.reshape(-1, points)
    return convolution.CountSums(
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


def _choose(probability: Floats, rows: Rows, rng: np.random.Generator) -> Rows:
    """One index for every entry of `rows`, by the probabilities of its row."""
    cumulative = np.cumsum(probability, axis=1)
    cumulative /= cumulative[:, -1:]
    flat = (cumulative + np.arange(float(len(cumulative)))[:, None]).ravel()
    target = rows + rng.random(rows.shape) * (1.0 - 2.0**-38)
    chosen: Rows = np.searchsorted(flat, target, side="right") - rows * probability.shape[1]
    return chosen


_BATCH_NUMBERS = 2**21
_MOST_ROUNDS = 40
_LEAST_LOG_CHANCE = -300.0 * np.log(10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StarCounts:
    """Noisy counts of features by class, and the distribution that they came from.

    Attributes
    ----------
    features : tuple of NoisyTotals
        Counts of every feature by class; at least one feature.
    class_concentration : ndarray of shape (n_classes,), float64
        Of the classes' Dirichlet prior.
    feature_concentrations : tuple of ndarray of shape (n_classes, n_categories), float64
        Of each feature's Dirichlet prior, by class.
    n_prior : NPrior
        The prior of N.
    """

    features: tuple[NoisyTotals, ...]
    class_concentration: Floats
    feature_concentrations: tuple[Floats, ...]
    n_prior: NPrior

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.features[0].n_cells

    @property
    def scales(self) -> Floats:
        """The scale b of the noise of every release, (n_releases,)."""
        return self.features[0].scale_by_release[:, 0]

    def take(self, cells: Rows) -> Self:
        """The given cells, in the given order."""
        return replace(self, features=tuple(each.take(cells) for each in self.features))

    def by_class(self, feature: int) -> Floats:
        """Noisy counts of a feature, (n_cells, n_releases, n_classes, n_categories)."""
        totals = self.features[feature]
        shape = self.feature_concentrations[feature].shape
        return totals.values.reshape(totals.n_cells, totals.releases, *shape)

    def tables(self, feature: int, classes: Rows) -> NoisyTotals:
        """Noisy counts of a feature in some classes, each of a row of its own, cell by cell."""
        counts = np.moveaxis(self.by_class(feature)[:, :, classes], 1, 0)
        return NoisyTotals.of_counts([each.reshape(-1, each.shape[-1]) for each in counts], self.scales)

    def first_centre(self) -> Floats:
        """Class counts (n_cells, n_classes) to begin with: means of the margins by inverse variance."""
        margins = []
        for release, precision in enumerate((self.scales[0] / self.scales) ** 2):
            for feature in range(len(self.features)):
                counts = self.by_class(feature)[:, release]
                margins.append((counts.sum(axis=2), precision / counts.shape[2]))
        total = sum(weight for _, weight in margins)
        # A margin of K counts has K times the noise variance: weights are 1 / (K b^2).
        mean: Floats = np.sum([margin * (weight / total) for margin, weight in margins], axis=0)
        return self.inner(mean)

    def inner(self, centre: Floats) -> Floats:
        """Class counts with a possible sum, away from 0 and the largest N: there tables would be a point."""
        least, most = map(float, self.n_prior.support)
        total = np.sum(centre, axis=1)
        possible = np.clip(total, least, most)
        near = np.where((total == possible)[:, None], centre, project_simplex(centre, possible[:, None]))
        margin = min(float(self.scales[0]), most / 2.0)
        return np.clip(near, margin, most - margin)

    def is_out_of_reach(self) -> NDArray[np.bool_]:
        """Whether no counts of a possible N give such noisy ones with a chance of 1e-300 or more, (n_cells,).

        Counts whose sum is N are at least so far from noisy ones, in total, as their negative parts and the
        distance of their positive parts' sum from N.
        """
        least, most = map(float, self.n_prior.support)
        log_chance = np.zeros(self.n_cells)
        for totals in self.features:
            positive = np.sum(np.maximum(totals.by_release, 0.0), axis=2)
            # Noise moves negative values to 0 at least, and the rest to a possible sum.
            distance = positive - np.sum(totals.by_release, axis=2)
            distance += np.maximum(least - positive, 0.0) + np.maximum(positive - most, 0.0)
            entries = totals.by_release.shape[2]
            log_chance += np.sum(log_chance_of(distance, entries, self.scales), axis=1)
        return np.asarray(log_chance < _LEAST_LOG_CHANCE)

    def parts(self) -> Iterator[tuple[int, Rows, Floats]]:
        """Feature, classes of equal concentration, and that concentration, for all features."""
        for feature, concentration in enumerate(self.feature_concentrations):
            distinct, of_class = np.unique(concentration, axis=0, return_inverse=True)
            for number, shared in enumerate(distinct):
                yield feature, np.flatnonzero(of_class.ravel() == number), shared


def log_chance_of(distance: Floats, entries: int, scale: Floats | float) -> Floats:
    """Log of the bound (3) of the chance that noise of so many entries is so large, or larger, in total."""
    rate = 1.0 / scale
    # (3) with r = e^-slower: about the best exponent, n / t, for r near 1.
    slower = np.minimum(entries / np.maximum(distance, 1.0), rate)
    # (1 - q) / (1 + q) = tanh(1 / 2b).
    spread = np.log(np.tanh(rate / 2.0) / np.tanh(slower / 2.0))
    log_chance: Floats = np.minimum(entries * spread - (rate - slower) * distance, 0.0)
    return log_chance


@dataclass(frozen=True, slots=True, kw_only=True)
class StarPosterior:
    """The posterior of every cell; made by ``star_posterior``.

    Attributes
    ----------
    star : StarCounts
        What was given.
    centre : ndarray of shape (n_cells, n_classes), float64
        About the posterior means of the class counts.
    mean, sd : ndarray of shape (n_cells, n_entries), float64
        Of the classes' probabilities, then of every feature's by class.
    """

    star: StarCounts
    centre: Floats
    mean: Floats
    sd: Floats

    @property
    def prior_concentration(self) -> Floats:
        """Of the priors of all distributions, (n_entries,), ordered as the means."""
        features = (concentration.ravel() for concentration in self.star.feature_concentrations)
        return np.concatenate([self.star.class_concentration, *features])

    @property
    def block(self) -> Rows:
        """Which distribution an entry is of, (n_entries,), ascending."""
        lengths = [len(self.star.class_concentration)]
        for concentration in self.star.feature_concentrations:
            lengths += [concentration.shape[1]] * len(concentration)
        return np.repeat(np.arange(len(lengths)), lengths)

    def sample_given(self, draws: int, rng: np.random.Generator) -> Floats:
        """Concentrations of all distributions given draws of the counts, (draws, n_cells, n_entries)."""
        result = np.empty((draws, *self.mean.shape))
        for cells in _batches(self.star):
            tables = StarTables.of(self.star.take(cells), self.centre[cells])
            result[:, cells] = tables.sample_given(draws, rng)
        return result

    def sample(self, draws: int, rng: np.random.Generator) -> Floats:
        """Independent draws of all probabilities, (draws, n_cells, n_entries), ordered as the means."""
        starts = np.searchsorted(self.block, np.arange(self.block[-1] + 1))
        return sample_blocks(self.sample_given(draws, rng), starts, rng)


def star_posterior(star: StarCounts) -> StarPosterior:
    """Resolve the posterior of the class counts in every cell, and sum up the moments of all probabilities.

    Raises
    ------
    PriorError
        Where the class counts cannot be resolved: a prior far stronger than the noise is small, or noisy
        counts further from every possible N than their noise takes them with a chance of 1e-300.
    """
    centre = star.first_centre()
    entries = len(star.class_concentration) + sum(each.size for each in star.feature_concentrations)
    mean, sd = np.empty((star.n_cells, entries)), np.empty((star.n_cells, entries))
    for batch in _batches(star):
        cells = batch
        # Evidence is resolved about a centre only: it moves until nothing is left beyond the ends.
        for attempt in range(_MOST_ROUNDS):
            tables = StarTables.of(star.take(cells), centre[cells])
            resolved, moments = tables.is_resolved, tables.moments()
            mean[cells[resolved]], sd[cells[resolved]] = (moment[resolved] for moment in moments)
            better = tables.better_centre(centre[cells], attempt / _MOST_ROUNDS)
            cells = cells[~resolved]
            centre[cells] = star.inner(better[~resolved])
            if not cells.size:
                break
        else:
            raise PriorError(convolution.UNRESOLVED)
    return StarPosterior(star=star, centre=centre, mean=mean, sd=sd)


def _batches(star: StarCounts) -> Iterator[Rows]:
    """Consecutive cells that fit into memory together."""
    width = min(2.0 * NATS * float(star.scales[0]) + 64.0, float(convolution.MAX_GRID))
    entries = sum(each.size for each in star.feature_concentrations)
    size = max(1, int(_BATCH_NUMBERS / (width * entries)))
    for start in range(0, star.n_cells, size):
        yield np.arange(start, min(start + size, star.n_cells))

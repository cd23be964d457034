r"""Exact posteriors of a class and its features when all their counts are latent behind noise.

Rows have a class y and, given it, independent features d. Latent class counts :math:`m_y` are the margins of
every feature's latent table, so the tables are independent given them. With noisy counts, Dirichlet priors
and a public prior of N,

.. math::
    P(m \mid \text{noisy}) \propto \pi(N) \frac{N!}{\Gamma(A + N)} \prod_y
        \frac{\Gamma(\alpha_y + m_y)}{\Gamma(\alpha_y)\, m_y!} e^{-|z_y - m_y| / b} \prod_d E_{dy}(m_y),
    \qquad N = \sum_y m_y,

where z are noisy class counts where there are any, and the evidence of one feature is

.. math::
    E_{dy}(m) = \frac{m!\, \Gamma(A_d)}{\Gamma(A_d + m)} \sum_{c:\, \sum_k c_k = m}
        \prod_k \frac{\Gamma(\alpha_{dk} + c_k)}{\Gamma(\alpha_{dk})\, c_k!} e^{-|z_{dyk} - c_k| / b}.

Each evidence is a convolution of K rows, by FFT at the tilt that puts its mean near the posterior mean of
:math:`m_y`; the posterior of m is one more. Draws of m, then of every table given m, are independent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.dirichlet import project_simplex, sample_blocks
from suffice.pipeline.math.engines.multinomial.class_tables import StarTables
from suffice.pipeline.math.engines.multinomial.convolution import MAX_GRID, UNRESOLVED
from suffice.pipeline.math.engines.multinomial.noisy_counts import NATS
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Floats, Rows


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
    r"""Log of a bound of the chance that the noise of so many entries is so large, or larger, in total.

    Chernoff's: with :math:`q = e^{-1 / b}`, for every r in q..1,

    .. math::
        P\Big(\sum_{i \leq n} |\mathrm{DLap}_i(b)| \geq t\Big)
            \leq \left(\frac{1 - q}{1 + q} \, \frac{1 + r}{1 - r}\right)^n \left(\frac q r\right)^t .
    """
    rate = 1.0 / scale
    slower = np.minimum(entries / np.maximum(distance, 1.0), rate)
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
            raise PriorError(UNRESOLVED)
    return StarPosterior(star=star, centre=centre, mean=mean, sd=sd)


def _batches(star: StarCounts) -> Iterator[Rows]:
    """Consecutive cells that fit into memory together."""
    width = min(2.0 * NATS * float(star.scales[0]) + 64.0, float(MAX_GRID))
    entries = sum(each.size for each in star.feature_concentrations)
    size = max(1, int(_BATCH_NUMBERS / (width * entries)))
    for start in range(0, star.n_cells, size):
        yield np.arange(start, min(start + size, star.n_cells))

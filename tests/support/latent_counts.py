"""Latent counts small enough to be enumerated, and how far draws may be from their distribution."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betainc, gammaln

from suffice.pipeline.math.engines.multinomial.noisy_counts import NoisyCounts
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals

if TYPE_CHECKING:
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Floats


FALSE_ALARM = 1e-8
"""Of every single statistical comparison; a test has fewer than sixty."""
PAIRS = [[3.0, 5.0], [-4.0, 2.0], [10.0, -1.0], [-6.0, -7.0], [20.0, 1.0]]
TRIPLES = [[3.0, 5.0, 2.0], [-4.0, 2.0, 9.0], [-6.0, -7.0, -3.0]]
DRAWS = 20_000


def distance(draws: Floats, enumeration: Enumeration, category: int) -> float:
    """Kolmogorov's, over fifty points."""
    order = np.sort(draws)
    points = order[len(order) // 100 :: len(order) // 50]
    observation = np.searchsorted(order, points, side="right") / len(order)
    return float(np.max(np.abs(enumeration.cdf(category, points) - observation)))


# Dvoretzky, Kiefer, Wolfowitz: P(distance > t) <= 2 exp(-2 n t^2), for every distribution and every n.
LARGEST_DISTANCE = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * DRAWS))


def noisy_counts(
    noisy: list[list[float]],
    concentration: list[float],
    scale: float,
    n_prior: NPrior,
    observed: list[bool] | None = None,
) -> NoisyCounts:
    totals = NoisyTotals.of_counts([np.array(noisy, dtype=np.float64)], [scale])
    if observed is not None:
        totals = dataclasses.replace(totals, scale=np.where(observed, totals.scale, np.inf))
    return NoisyCounts.of(
        totals,
        concentration=np.array(concentration, dtype=np.float64),
        n_prior=n_prior,
    )


def observed_again(counts: NoisyCounts, *further: tuple[Floats, float]) -> NoisyCounts:
    """The same counts with further noisy values of them, each behind noise of a scale."""
    values, scales = zip((counts.totals.values, float(counts.totals.scale[0])), *further, strict=True)
    return dataclasses.replace(counts, totals=NoisyTotals.of_counts(values, scales))


def rest_of_known_sum(counts: NoisyCounts, longest: int) -> Floats:
    """Probabilities of 0 to so many records in all but the first category of the first cell, N known.

    The distributions of single counts, convolved one by one on the integers.
    """
    (n, _), scale = counts.n_prior.support, float(counts.totals.scale[0])
    rest, every = np.ones(1), np.arange(longest + 1.0)
    for count, alpha in zip(counts.totals.values[0, 1:], counts.concentration[1:], strict=True):
        log_weight = gammaln(alpha + every) - gammaln(every + 1.0) - np.abs(count - every) / scale
        rest = np.convolve(rest, np.exp(log_weight - np.max(log_weight)))[: longest + 1]
    first, alpha = n - every, counts.concentration[0]
    log_weight = gammaln(alpha + first) - gammaln(first + 1.0)
    log_weight -= np.abs(counts.totals.values[0, 0] - first) / scale
    weight: Floats = rest * np.exp(log_weight - np.max(log_weight))
    return weight / np.sum(weight)


class Enumeration:
    """Every vector of counts of one cell, with its probability."""

    def __init__(self, counts: NoisyCounts, cell: int) -> None:
        low, high = counts.n_prior.support
        noisy, alpha = counts.totals.by_release[cell], counts.concentration
        scales = counts.totals.scale_by_release
        largest = min(high, int(max(0.0, float(np.max(noisy[0])))) + int(45 * np.min(scales[0])) + 10)
        grid = np.stack(np.meshgrid(*[np.arange(largest + 1.0)] * len(alpha), indexing="ij"), axis=-1)
        vectors = grid.reshape(-1, len(alpha))
        n = vectors.sum(axis=1)
        inside = (n >= low) & (n <= high)
        self.vectors, self.n, self.alpha = vectors[inside], n[inside], alpha
        log_weight = (
            counts.n_prior.log_prob(self.n)
            + gammaln(self.n + 1)
            - gammaln(self.n + alpha.sum())
            + np.sum(gammaln(self.vectors + alpha) - gammaln(self.vectors + 1), axis=1)
        )
        for noisy_row, scale in zip(noisy, scales, strict=True):
            log_weight -= np.sum(np.abs(noisy_row - self.vectors) / scale, axis=1)
        weight = np.exp(log_weight - log_weight.max())
        self.probability = weight / weight.sum()

    def moments(self) -> tuple[Floats, Floats]:
        posterior_alpha, total = self.alpha + self.vectors, (self.alpha.sum() + self.n)[:, None]
        mean = self.probability @ (posterior_alpha / total)
        square = self.probability @ (posterior_alpha * (posterior_alpha + 1) / (total * (total + 1)))
        return mean, np.sqrt(square - mean**2)

    def cdf(self, category: int, x: Floats) -> Floats:
        pairs, position = np.unique(
            np.stack([self.vectors[:, category], self.n], axis=1), axis=0, return_inverse=True
        )
        probability: Floats = np.bincount(position.ravel(), self.probability).astype(np.float64)
        alpha = self.alpha[category] + pairs[:, 0]
        rest = self.alpha.sum() + pairs[:, 1] - alpha
        cdf: Floats = probability @ betainc(alpha[:, None], rest[:, None], x)
        return cdf

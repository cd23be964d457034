"""Exact posteriors of classes and features, against enumeration of every latent table."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import gammaln

from suffice.errors import PriorError
from suffice.pipeline.math.engines.multinomial import convolution, sampling
from suffice.pipeline.math.engines.multinomial.class_counts import StarCounts, log_chance_of, star_posterior
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals

if TYPE_CHECKING:
    from suffice.typing import Floats


FALSE_ALARM = 1e-9
"""Of every single comparison; a test has fewer than 300."""
LARGEST = 13
"""No class is larger in what is enumerated: the priors of N see to it."""


def behind(scale: float, *counts: Floats) -> tuple[NoisyTotals, ...]:
    """Counts of several tables as one release has them, behind noise of one scale."""
    return tuple(NoisyTotals.of_counts([each], [scale]) for each in counts)


def zeros(scale: float) -> tuple[NoisyTotals, ...]:
    """Noisy counts of both features that are all 0, in one cell."""
    return behind(scale, np.zeros((1, 2, 2)), np.zeros((1, 2, 3)))


def make_star(
    n_prior: NPrior,
    *,
    scale: float = 1.3,
    concentrations: tuple[float, float] = (1.0, 0.7),
    uneven: bool = False,
) -> StarCounts:
    """Two classes, features of two and of three categories; three cells, some of them impossible."""
    features = (
        np.array([[[3.0, 1.0], [2.0, 4.0]], [[-2.0, 0.0], [5.0, -1.0]], [[0.0, 0.0], [0.0, 1.0]]]),
        np.array(
            [
                [[1.0, 2.0, 2.0], [1.0, 1.0, 4.0]],
                [[-1.0, 3.0, -2.0], [0.0, 2.0, 0.0]],
                [[0.0, -3.0, 1.0], [2.0, 0.0, 0.0]],
            ]
        ),
    )
    of_features = tuple(np.full(feature.shape[1:], concentrations[1]) for feature in features)
    if uneven:
        of_features[1][1] = [0.2, 3.0, 1.0]
    return StarCounts(
        features=behind(scale, *features),
        class_concentration=np.array([concentrations[0], 1.5 if uneven else concentrations[0]]),
        feature_concentrations=of_features,
        n_prior=n_prior,
    )


def log_polya(concentration: Floats, counts: Floats) -> float:
    """Log probability of a sequence of categories with these counts, by its number of orders and N!."""
    total = gammaln(concentration.sum()) - gammaln(concentration.sum() + counts.sum())
    return float(
        total + np.sum(gammaln(concentration + counts) - gammaln(concentration) - gammaln(counts + 1))
    )


class Enumeration:
    """All latent tables of one cell, feature by feature within every pair of class counts."""

    def __init__(self, star: StarCounts, cell: int) -> None:
        self.star, self.cell = star, cell
        log_weights, means, squares = [], [], []
        rows = {(d, y, m): self._row(d, y, m) for d in range(2) for y in range(2) for m in range(LARGEST + 1)}
        self.classes = []
        for m in itertools.product(range(LARGEST + 1), repeat=2):
            n = sum(m)
            prior = float(star.n_prior.log_prob(np.array([float(n)]))[0])
            if not math.isfinite(prior):
                continue
            counts = np.array(m, dtype=float)
            log_weight = prior + float(gammaln(n + 1)) + log_polya(star.class_concentration, counts)
            first, second = self._moments(star.class_concentration + counts)
            for d, y in itertools.product(range(2), range(2)):
                log_evidence, mean, square = rows[d, y, m[y]]
                log_weight += log_evidence
                first, second = np.append(first, mean), np.append(second, square)
            log_weights.append(log_weight)
            means.append(first)
            squares.append(second)
            self.classes.append(m)
        weights = np.exp(np.array(log_weights) - max(log_weights))
        self.probability = weights / weights.sum()
        self.mean = self.probability @ np.array(means)
        self.sd = np.sqrt(self.probability @ np.array(squares) - self.mean**2)

    @staticmethod
    def _moments(concentration: Floats) -> tuple[Floats, Floats]:
        total = concentration.sum()
        mean = concentration / total
        return mean, mean * (concentration + 1.0) / (total + 1.0)

    def _row(self, d: int, y: int, m: int) -> tuple[float, Floats, Floats]:
        noisy = self.star.by_class(d)[self.cell, 0, y]
        concentration = self.star.feature_concentrations[d][y]
        logs, means, squares = [], [], []
        for free in itertools.product(range(m + 1), repeat=len(noisy) - 1):
            if sum(free) <= m:
                counts = np.array([*free, m - sum(free)], dtype=float)
                log_weight = float(gammaln(m + 1)) + log_polya(concentration, counts)
                logs.append(log_weight - float(np.sum(np.abs(noisy - counts))) / self.star.scales[0])
                mean, square = self._moments(concentration + counts)
                means.append(mean)
                squares.append(square)
        weights = np.exp(logs)
        share = weights / weights.sum()
        return float(np.log(weights.sum())), share @ np.array(means), share @ np.array(squares)


N_PRIORS: list[NPrior] = [Fixed(9), Uniform(0, LARGEST), Uniform(3, 8), Reciprocal(LARGEST)]


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("n_prior", N_PRIORS)
def test_moments_equal_enumeration(n_prior: NPrior, uneven: bool) -> None:
    star = make_star(n_prior, uneven=uneven)
    posterior = star_posterior(star)
    for cell in range(star.n_cells):
        exact = Enumeration(star, cell)
        assert posterior.mean[cell] == pytest.approx(exact.mean, rel=1e-6)
        assert posterior.sd[cell] == pytest.approx(exact.sd, rel=1e-6)


@pytest.mark.parametrize("rounds", [40, 0])
@pytest.mark.parametrize("n_prior", [Fixed(9), Reciprocal(LARGEST)])
def test_draws_follow_the_enumerated_distribution(
    n_prior: NPrior, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a round of proposals every count is drawn one after the other."""
    monkeypatch.setattr(sampling, "ROUNDS", rounds)
    star = make_star(n_prior)
    draws = star_posterior(star).sample(20_000, np.random.default_rng())
    nats = math.log(2 / FALSE_ALARM)
    for cell in range(star.n_cells):
        exact = Enumeration(star, cell)
        for power in (1, 2):
            values = draws[:, cell] ** power
            expected = exact.mean if power == 1 else exact.sd**2 + exact.mean**2
            # Bernstein's inequality for draws within 0..1.
            limit = np.sqrt(2 * values.var(axis=0) * 1.2 * nats / 20_000) + nats / (3 * 20_000)
            assert np.all(np.abs(values.mean(axis=0) - expected) < limit)


def test_counts_far_from_a_known_n_have_a_posterior() -> None:
    """All noisy counts are 0: exact where it can be enumerated, even where it is symmetric."""
    small = replace(
        make_star(Fixed(LARGEST), scale=0.3),
        features=zeros(0.3),
    )
    posterior, exact = star_posterior(small), Enumeration(small, 0)
    assert posterior.mean[0] == pytest.approx(exact.mean, rel=1e-6)
    assert posterior.sd[0] == pytest.approx(exact.sd, rel=1e-6)
    large = replace(
        small,
        features=zeros(1.2),
        n_prior=Fixed(1000),
        class_concentration=np.ones(2),
        feature_concentrations=(np.ones((2, 2)), np.ones((2, 3))),
    )
    even = np.concatenate([np.full(6, 1 / 2), np.full(6, 1 / 3)])
    assert star_posterior(large).mean[0] == pytest.approx(even, rel=1e-6)


@pytest.mark.parametrize(("scale", "n"), [(400.0, 10**5), (2e3, 10**5), (1e4, 10**6), (1e5, 10**5)])
def test_tables_of_zeros_beside_a_known_n_say_nothing(scale: float, n: int) -> None:
    """All tables of a feature that sum to N are as far from zeros: the posterior is the prior."""
    star = replace(
        make_star(Fixed(n), scale=scale, concentrations=(1.0, 1.0)),
        features=zeros(scale),
    )
    posterior = star_posterior(star)
    mean = np.concatenate([np.full(6, 1 / 2), np.full(6, 1 / 3)])
    sd = np.concatenate([np.full(6, math.sqrt(1 / 12)), np.full(6, math.sqrt(1 / 18))])
    assert posterior.mean[0] == pytest.approx(mean, rel=1e-6)
    assert posterior.sd[0] == pytest.approx(sd, rel=2e-4)
    draws = posterior.sample(4000, np.random.default_rng())[:, 0]
    nats = math.log(2 / FALSE_ALARM)
    for power, expected in ((1, mean), (2, sd**2 + mean**2)):
        limit = np.sqrt(2 * (draws**power).var(axis=0) * 1.2 * nats / 4000) + nats / (3 * 4000)
        assert np.all(np.abs((draws**power).mean(axis=0) - expected) < limit)


@pytest.mark.parametrize("scale", [0.3, 1.2, 20.0])
def test_noisy_counts_out_of_reach_of_every_n_are_refused(scale: float) -> None:
    star = replace(
        make_star(Fixed(100_000), scale=scale),
        features=zeros(scale),
    )
    with pytest.raises(PriorError, match="below 1e-300"):
        star_posterior(star)


@pytest.mark.parametrize(
    ("values", "distance"),
    [([0.0, 0.0, 0.0], 1.0), ([2.0, 0.0, 0.0], 1.0), ([1.0, -1.0, 0.0], 1.0), ([0.5, 0.0, -0.25], 0.75)],
)
def test_how_far_values_are_from_a_known_n(values: list[float], distance: float) -> None:
    """Short of N, beyond it, and below 0, in units of N: the least that every possible table is away."""
    scale = 20.0
    for n in (3000, 9000, 15_000, 30_000):
        star = replace(
            make_star(Fixed(n), scale=scale),
            features=behind(scale, n * np.array([[values, [0.0, 0.0, 0.0]]])),
        )
        log_chance = log_chance_of(np.array([distance * n]), 6, scale)
        assert star.is_out_of_reach() == (log_chance < -300 * math.log(10))


@pytest.mark.parametrize("entries", [1, 3])
def test_what_is_out_of_reach_has_next_to_no_chance(entries: int) -> None:
    scale, distances = 1.3, np.arange(400.0)
    q = math.exp(-1 / scale)
    single = (1 - q) / (1 + q) * q**distances * np.where(distances > 0, 2.0, 1.0)
    distribution = np.ones(1)
    for _entry in range(entries):
        distribution = np.convolve(distribution, single)[:400]
    for distance in (2, 10, 60, 150):
        chance = math.log(float(np.sum(distribution[distance:])))
        bound = float(log_chance_of(np.array([float(distance)]), entries, scale)[0])
        assert chance <= bound <= min(0.0, 0.9 * chance + 4.0)


@pytest.mark.parametrize("n_prior", [Fixed(3000), Reciprocal(10**9), Uniform(0, 10**6)])
def test_a_coarser_grid_gives_the_same_posterior(n_prior: NPrior, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of a fifteenth of the noise's scale, in cells whose classes may be empty."""
    star = replace(
        make_star(n_prior, scale=60.0, concentrations=(1.0, 1.0)),
        features=behind(
            60.0,
            np.array(
                [
                    [[900.0, 200.0], [1500.0, 500.0]],
                    [[0.0, 0.0], [-50.0, 900.0]],
                ]
            ),
            np.array(
                [
                    [[300.0, 400.0, 350.0], [1000.0, 900.0, 150.0]],
                    [[0.0, 0.0, 30.0], [300.0, 90.0, 500.0]],
                ]
            ),
        ),
    )
    fine = star_posterior(star)
    monkeypatch.setattr(convolution, "MAX_GRID", 2**12)
    coarse = star_posterior(star)
    assert np.max(np.abs(coarse.mean - fine.mean) / fine.sd) < 1e-3
    assert coarse.sd == pytest.approx(fine.sd, rel=2e-3)
    assert np.max(np.abs(coarse.sd / fine.sd - 1.0)) > 0.0


def test_few_rows_behind_wide_noise_are_as_many_on_a_coarser_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where N may well be 0, 1 or 2 the first points matter, and what the prior of N has between them."""
    star = replace(
        make_star(Reciprocal(10**9), scale=240.0, concentrations=(1.0, 1.0)),
        features=behind(
            240.0,
            np.array([[[600.0, 0.0], [0.0, -40.0]]]),
            np.array([[[400.0, 0.0, 160.0], [0.0, 0.0, 0.0]]]),
        ),
    )
    fine = star_posterior(star)
    monkeypatch.setattr(convolution, "MAX_GRID", 2**12)
    coarse = star_posterior(star)
    assert np.max(np.abs(coarse.mean - fine.mean) / fine.sd) < 0.015
    assert coarse.sd == pytest.approx(fine.sd, rel=0.12)

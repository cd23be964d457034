"""Held-out cells beside refits without them; latent counts; the dictionary beside a sum over all labels."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from scipy.special import expit, gammaln
from scipy.stats import chisquare, poisson

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled.contaminated import OUTLYING
from suffice.pipeline.math.engines.pooled.count_cells import CountCells
from suffice.pipeline.math.engines.pooled.dictionary import Atoms
from suffice.pipeline.math.engines.pooled.distribution import pooled_distribution
from suffice.pipeline.math.engines.pooled.hyperparameters import fitted
from suffice.pipeline.math.engines.pooled.latent_counts import drawn_counts
from suffice.pipeline.math.engines.pooled.left_out import Without, left_out, places
from suffice.pipeline.math.engines.pooled.normal import normal_density
from suffice.pipeline.math.engines.pooled.populations import POPULATIONS
from suffice.pipeline.math.engines.pooled.rate_cells import RateCells
from suffice.pipeline.math.priors.record_count import Reciprocal

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.cells import Nodes
    from suffice.typing import Cells, Floats

N_PRIOR = Reciprocal(10**12)
TRUE = np.array([3.0, 14.0, 4.0, -1.0, 9.0, 6.0])
FALSE = np.array([25.0, 40.0, 31.0, 12.0, 90.0, 45.0])


def counts(values: Floats, scale: float) -> NoisyCount:
    return NoisyCount(values=values[:, None], scales=np.array([scale]))


def six_cells() -> CountCells:
    return CountCells(true=counts(TRUE, 2.0), false=counts(FALSE, 2.0), n_prior=N_PRIOR)


def six_rates() -> RateCells:
    values = np.array([40.0, 66.0, 38.0, 20.0, 90.0, 55.0])
    total, rest = values[:, None], (10.0 * np.array([20.0, 30.0, 22.0, 9.0, 44.0, 25.0]) - values)[:, None]
    return RateCells(total=total, rest=rest, scales=np.array([4.0]), bound=10.0, n_prior=N_PRIOR)


@dataclass(frozen=True)
class WithoutSizes:
    source: CountCells
    has_sizes: ClassVar[bool] = False

    @property
    def n_cells(self) -> int:
        return self.source.n_cells

    @property
    def middle(self) -> float:
        return self.source.middle

    def nodes(self, cells: Cells, focus: Any) -> Nodes:
        return self.source.nodes(cells, focus)


def under_others(hyper: Any, population: Any, asked: Any, rows: Cells) -> Floats:
    """Log probabilities of cells under hyperparameters that are fitted without one."""
    nodes = asked.nodes(rows, hyper.grid.focus)
    total = np.zeros(len(rows))
    for number, slope in enumerate(hyper.slope):
        every = slice(None)
        density = sum(share * each for share, each in hyper.components(population, number, every))
        total += (
            hyper.grid.placed(nodes, float(slope)).measure() @ np.asarray(density).T @ hyper.weight[number]
        )
    return np.asarray(nodes.log_scale + np.log(total))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "name", "line"),
    [
        (six_cells(), "contaminated", Line.LOGIT),
        (six_cells(), "beta", Line.LOGIT),
        pytest.param(six_rates(), "lognormal", Line.LOGARITHM, marks=pytest.mark.audit),
    ],
    ids=["contaminated", "beta", "rates"],
)
def test_held_out_cells_are_those_of_a_fit_without_them(source: Any, name: str, line: Line) -> None:
    population = POPULATIONS[line][name]
    pool = pooled_distribution(source, population, "parameter", line)
    known = left_out(pool)
    below, here, above = places(pool, known, np.arange(6))
    np.testing.assert_allclose(below + here + above, 1.0, rtol=1e-9)
    for cell in (1,) if name == "beta" else (3,):
        hyper, _ = fitted(Without(source, cell), population, line)
        (refitted,) = under_others(hyper, population, source, np.array([cell]))
        # The typical size that the location is of moves a little with the cells.
        assert known.log_predictive[cell] == pytest.approx(refitted, abs=0.12)
        first, last, _, scale = source.parts(np.array([cell]))
        shifts = np.arange(np.floor(-max(first[0], 0.0) - 12.0 * scale), max(last[0], 0.0) + 12.0 * scale)
        moved = source.moved(np.full(len(shifts), cell), shifts)
        rows = np.arange(len(shifts))
        chance = np.exp(under_others(hyper, population, moved, rows) - refitted)
        chance /= np.sum(chance)
        expected = [np.sum(chance[shifts < 0.0]), np.sum(chance[shifts == 0.0]), np.sum(chance[shifts > 0.0])]
        np.testing.assert_allclose([below[cell], here[cell], above[cell]], expected, atol=0.02)


@pytest.mark.audit
def test_a_cell_that_moves_the_others_is_taken_out_for_good() -> None:
    true, false = np.full(30, 10.0) + np.arange(30.0) % 5.0, np.full(30, 90.0)
    true[4], false[4] = 95.0, 5.0
    cells = CountCells(true=counts(true, 1.0), false=counts(false, 1.0), n_prior=N_PRIOR)
    population = POPULATIONS[Line.LOGIT]["logit-normal"]
    pool = pooled_distribution(cells, population, "probability", Line.LOGIT)
    known = left_out(pool)
    assert list(known.again) == [4]
    hyper, _ = fitted(Without(cells, 4), population, Line.LOGIT)
    (refitted,) = under_others(hyper, population, cells, np.array([4]))
    # Seventy nats down; by weights alone it would be some thirty.
    assert known.log_predictive[4] == pytest.approx(refitted, abs=1.0)
    below, here, above = places(pool, known, np.arange(30))
    # The cell itself widens the population: all others together do not expect it.
    assert above[4] + here[4] < 1e-8 < np.min(np.minimum(above, below)[np.arange(30) != 4])


def test_latent_counts_are_drawn_from_their_posterior() -> None:
    """A chi-squared test over ten bins, at 1e-7 for each of six; the control knows nothing of the noise."""
    values = np.array([[3.0, 5.0], [40.0, 20.0], [-6.0, -2.0], [200.0, 190.0], [0.0, 0.0], [2.0, 60.0]])
    scales, mean = np.array([2.0, 4.0]), np.array([4.0, 30.0, 5.0, 20.0, 0.5, 30.0])
    rng, draws = np.random.default_rng(), 20_000
    drawn = drawn_counts(NoisyCount(values=values, scales=scales), np.tile(mean, (draws, 1)), rng)
    count = np.arange(400.0)
    rejected = 0
    for cell in range(6):
        log_p = poisson.logpmf(count, mean[cell]) - np.abs(values[cell] - count[:, None]) @ (1.0 / scales)
        for control, log_chance in ((False, log_p), (True, poisson.logpmf(count, mean[cell]))):
            chance = np.exp(log_chance - np.max(log_chance))
            chance /= np.sum(chance)
            bins = np.minimum((10.0 * np.cumsum(chance)).astype(int), 9)
            expected = np.bincount(bins, chance, 10) * draws
            seen = np.bincount(bins[drawn[:, cell].astype(int)], minlength=10)
            is_used = expected > 5.0
            rest = [draws - seen[is_used].sum() + 1e-9, draws - expected[is_used].sum() + 1e-9]
            p = chisquare([*seen[is_used], rest[0]], [*expected[is_used], rest[1]]).pvalue
            if control:
                rejected += p < 1e-7
            else:
                assert p > 1e-7, cell
    assert rejected >= 5


@pytest.mark.slow
def test_the_dictionary_is_the_sum_over_all_labels() -> None:
    """Three cells, every choice of an atom for each, weighed by the Dirichlet law: no chains."""
    three = CountCells(true=counts(TRUE[:3], 2.0), false=counts(FALSE[:3], 2.0), n_prior=N_PRIOR)
    source = WithoutSizes(three)
    pool = pooled_distribution(source, POPULATIONS[Line.LOGIT]["dictionary"], "probability", Line.LOGIT)
    hyper, blocks = fitted(source, OUTLYING, Line.LOGIT)
    atoms = Atoms.about(hyper)
    grid = pool.hyperparameters.grid
    ((_, nodes),) = blocks(grid.focus)
    density = normal_density(grid.points, atoms.location, atoms.spread)
    measure = grid.placed(nodes, 0.0).measure()
    z = measure @ density.T
    mean = (measure * expit(grid.points)) @ density.T / np.maximum(z, 1e-300)
    a, n = atoms.concentration, len(atoms.location)
    # The probability of labels under shares that are integrated over, of counts up to three.
    log_z = np.log(np.maximum(z / np.max(z, axis=1, keepdims=True), 1e-300))
    rising = gammaln(a[:, None] + np.arange(4.0)) - gammaln(a)[:, None]
    labels = np.array(list(itertools.product(range(n), repeat=3)))
    first, second, third = labels.T
    two, other = first == second, third
    log_prior = np.where(
        two & (second == third),
        rising[first, 3],
        np.where(
            two,
            rising[first, 2] + rising[other, 1],
            np.where(
                first == third,
                rising[first, 2] + rising[second, 1],
                np.where(
                    second == third,
                    rising[second, 2] + rising[first, 1],
                    rising[first, 1] + rising[second, 1] + rising[third, 1],
                ),
            ),
        ),
    )
    weight = np.exp(log_prior + log_z[0, first] + log_z[1, second] + log_z[2, third])
    weight /= np.sum(weight)
    expected = [weight @ mean[cell, labels[:, cell]] for cell in range(3)]
    sd = pool.sd("probability")
    # 1,200 draws, of which some hundred are independent: a tenth of a standard deviation is much.
    np.testing.assert_allclose(pool.mean("probability") / sd, expected / sd, atol=0.15)
    again = pooled_distribution(source, POPULATIONS[Line.LOGIT]["dictionary"], "probability", Line.LOGIT)
    np.testing.assert_array_equal(pool.mean("probability"), again.mean("probability"))

"""One law of the sizes of pooled cells, populations that sizes stretch, and integrals with seven digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled.cells import Focus, TellsRecords
from suffice.pipeline.math.engines.pooled.count_cells import CountCells
from suffice.pipeline.math.engines.pooled.dictionary import Atoms, _chains
from suffice.pipeline.math.engines.pooled.distribution import pooled_distribution
from suffice.pipeline.math.engines.pooled.left_out import Movable
from suffice.pipeline.math.engines.pooled.populations import POPULATIONS
from suffice.pipeline.math.engines.pooled.shared_density import SharedDensity
from suffice.pipeline.math.engines.pooled.sized_cells import SizedCells, sized
from suffice.pipeline.math.priors.record_count import Reciprocal

N_PRIOR = Reciprocal(10**12)
FOCUS = Focus(centre=-1.0, width=0.5)


def cells_of(true: Any, false: Any, scale: float) -> CountCells:
    def count(values: Any) -> NoisyCount:
        return NoisyCount(values=np.asarray(values, dtype=np.float64)[:, None], scales=np.array([scale]))

    return CountCells(true=count(true), false=count(false), n_prior=N_PRIOR)


def mean_log_size(source: Any, cell: int) -> float:
    nodes = source.nodes(np.array([cell]), FOCUS)
    of_size = np.sum(nodes.weight[0], axis=0)
    return float(of_size @ nodes.log_size[0] / np.sum(of_size))


def test_a_size_that_noise_hides_is_that_of_the_others() -> None:
    """Forty cells of 20 to 60 records, and one that released nothing but noise of scale 20."""
    size = np.linspace(20.0, 60.0, 40).round()
    plain = cells_of([2.0, *np.round(0.3 * size)], [-1.0, *np.round(0.7 * size)], 2.0)
    hidden = cells_of([2.0, *np.round(0.3 * size)], [-1.0, *np.round(0.7 * size)], 20.0)
    law: Any = sized(plain)
    # What all sizes are: log 21 to log 61, and more widely for one more cell; outliers are far.
    weight = np.exp(law.log_density) / np.sum(np.exp(law.log_density))
    usual = (law.at > np.log(15.0)) & (law.at < np.log(90.0))
    assert 0.8 < np.sum(weight[usual]) < 0.99
    # The same law beside what says little: the reciprocal prior leaves the cell next to no records.
    beside = SizedCells(source=hidden, at=law.at, log_density=law.log_density)
    assert mean_log_size(beside, 0) > np.log(15.0) > mean_log_size(hidden, 0) + 0.7
    # What is told stays.
    assert mean_log_size(law, 20) == pytest.approx(mean_log_size(plain, 20), abs=0.08)
    # A size is no matter of scores, but of alternatives of one cell it is.
    near = np.exp(-0.5 * ((plain.nodes(np.arange(41), FOCUS).position - plain.middle) / 2.0) ** 2)
    scores = [
        np.log(np.sum(np.sum(nodes.weight, axis=2) * near, axis=1)) + nodes.log_scale
        for nodes in (each.nodes(np.arange(41), FOCUS) for each in (plain, law))
    ]
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-9)
    assert law.moved(np.arange(3), np.zeros(3)).judges_sizes
    assert isinstance(law, Movable)
    assert isinstance(law, TellsRecords)
    assert mean_log_size(law.moved(np.array([20]), np.ones(1)), 0) == pytest.approx(
        mean_log_size(law, 20), abs=0.03
    )


def test_a_law_of_sizes_is_a_factor_of_the_likelihood() -> None:
    """The integral over a cell is that of the factor times the likelihood, sizes and scale included."""
    cells = cells_of([3.0, 14.0], [25.0, 20.0], 2.0)
    nodes = cells.nodes(np.arange(2), FOCUS)
    factor = np.sin(nodes.log_size) - 3.0
    moved = nodes.with_sizes(factor)
    expected = np.log(np.sum(nodes.weight * np.exp(factor)[:, None, :], axis=(1, 2))) + nodes.log_scale
    got = np.log(np.sum(moved.weight, axis=(1, 2))) + moved.log_scale
    np.testing.assert_allclose(got, expected, rtol=1e-8)
    np.testing.assert_allclose(np.sum(moved.of_kept), np.sum(moved.weight), rtol=1e-12)
    np.testing.assert_array_equal(np.max(moved.weight, axis=(1, 2)), 1.0)


def test_integrals_have_seven_digits_and_no_cell_is_lost() -> None:
    """A cell that is 200 nats down at some populations has all digits there: seven would say 0."""
    z = np.linspace(-30.0, 30.0, 2001)
    location = np.linspace(-10.0, 10.0, 9)
    density = np.exp(-0.5 * (z - location[:, None]) ** 2)
    measure = np.exp(-0.5 * ((z - np.array([[0.3], [12.0]])) / 0.2) ** 2)
    expected = measure @ density.T
    shared = SharedDensity.of(density)
    np.testing.assert_allclose(shared.integrals(measure), expected, rtol=3e-6)
    assert np.any(measure.astype(np.float32) @ shared.single.T == 0.0)


@pytest.mark.slow
def test_sizes_stretch_a_population_without_a_shape() -> None:
    """Small cells differ by more: the slope of the log spread is -.45, and is told with an error of .05.

    Of one data set: -.15 is six standard errors off. Where sizes stretched no atom, it would be as wide at
    all sizes.
    """
    rng = np.random.default_rng(7)
    size = np.round(np.geomspace(40.0, 4000.0, 120))
    growth = np.exp(-0.45 * (np.log1p(size) - np.log(400.0)))
    # Two clumps: no normal law.
    z = -1.0 + growth * (np.where(rng.random(120) < 0.5, -0.4, 0.4) + rng.normal(0.0, 0.1, 120))
    true = rng.binomial(size.astype(int), expit(z))
    source = cells_of(true, size - true, 0.5)
    pool = pooled_distribution(source, POPULATIONS[Line.LOGIT]["dictionary"], "probability", Line.LOGIT)
    hyper: Any = pool.hyperparameters
    assert hyper.mean(hyper.spread_slope) < -0.15
    mass = np.mean(hyper.density, axis=0).reshape(len(hyper.grid.knots), -1) * np.gradient(hyper.grid.points)
    mass /= np.sum(mass, axis=1, keepdims=True)
    # Half of the mass about the middle: tails are of wide atoms that have little of it.
    below = np.cumsum(mass, axis=1)
    wide = [np.diff(np.interp([0.25, 0.75], each, hyper.grid.points))[0] for each in below]
    assert wide[0] > 2.0 * wide[-1]
    assert np.all(np.diff(wide) < 0.0)


def test_slopes_of_a_population_without_a_shape_are_drawn_by_their_likelihood() -> None:
    """Forty cells are 1.5 times as probable at the last of three slopes: e^16, and no draw is of another."""
    likelihood = np.ones((1, 3, 40, 2), dtype=np.float32)
    likelihood[0, 2] = 1.5
    atoms = Atoms(location=np.array([-1.0, 1.0]), spread=np.ones(2), concentration=np.ones(2))
    _, slopes, _ = _chains(likelihood, np.zeros((1, 3)), atoms)
    np.testing.assert_array_equal(np.unique(slopes, axis=0), [[0, 2]])
    # With a hyperprior that says otherwise, all are of the first.
    _, slopes, _ = _chains(likelihood, np.array([[0.0, -60.0, -60.0]]), atoms)
    np.testing.assert_array_equal(np.unique(slopes, axis=0), [[0, 0]])

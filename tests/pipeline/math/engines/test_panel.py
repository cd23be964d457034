"""Panels: the field with a covariate, the common walk and sets of jumps beside dense algebra and sums."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from suffice.pipeline.math.engines.pooled.field_gaussian import GaussianField, Sites
from suffice.pipeline.math.engines.pooled.field_map import FieldMap
from suffice.pipeline.math.engines.pooled.hyperpriors import LevelsPrior, LocationPrior
from suffice.pipeline.math.engines.pooled.jump_sets import JUMP_VARIANCE, jump_sets
from suffice.pipeline.math.engines.pooled.normal import NormalPopulation
from suffice.pipeline.math.engines.pooled.panel import PanelModel, Told, common_at
from suffice.pipeline.math.engines.pooled.panel_chains import panel_blocks
from suffice.pipeline.math.engines.pooled.panel_common import CommonWalk
from suffice.pipeline.math.engines.pooled.series import CellsInOrder
from suffice.pipeline.math.engines.pooled.walk_steps import Points
from support.normal_cells import NormalCells

if TYPE_CHECKING:
    from suffice.typing import Floats

PAIRS = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [1, 3]])
N, TIMES, ANCHOR = 5, 4, 2
STEP, THETA = 0.2, np.array([np.log(0.5), 0.4])
SPREAD, OF_MAP = 0.5, 1.0 / (1.0 + np.exp(-0.4))


def field_covariance() -> Floats:
    """Return the covariance of the smooth field of the four places that have neighbours."""
    laplacian = np.zeros((4, 4))
    for i, j in PAIRS.tolist():
        laplacian[[i, j], [i, j]] += 1.0
        laplacian[[i, j], [j, i]] -= 1.0
    covariance = np.linalg.pinv(laplacian)
    result = np.zeros((N, N))
    result[:4, :4] = covariance / np.exp(np.mean(np.log(np.diag(covariance))))
    return result


def test_a_field_with_a_covariate_is_that_of_dense_algebra() -> None:
    rng = np.random.default_rng(1)
    v, tau, nu = rng.normal(size=N), rng.uniform(0.5, 4.0, N), rng.normal(size=N)
    field_map = replace(FieldMap.of(N, PAIRS, np.zeros(N, dtype=np.int64)), covariate=v)
    sites = Sites(tau=tau, nu=nu, level_tau=np.array([0.3, 2.0]), level_nu=np.array([0.2, 0.5]))
    law = GaussianField.of(field_map, 0.7, sites)
    design = np.stack([np.ones(N), v], axis=1)
    levels = np.diag(1.0 / sites.level_tau)
    prior = 0.49 * field_covariance() + design @ levels @ design.T
    prior_mean = design @ (sites.level_nu / sites.level_tau)
    covariance = np.linalg.solve(np.eye(N) + prior * tau, prior)
    mean = prior_mean + covariance @ (nu - tau * prior_mean)
    np.testing.assert_allclose(law.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(law.variance, np.diag(covariance), rtol=1e-9)
    columns = rng.normal(size=(N, 3))
    np.testing.assert_allclose(law.times(columns), covariance @ columns, atol=1e-10)
    # The coefficient given all, by its covariance with sums.
    with_sums = levels[1, 1] * v
    gain = np.linalg.solve(prior + np.diag(1.0 / tau), with_sums)
    assert law.level_mean[1] == pytest.approx(0.25 + gain @ (nu / tau - prior_mean))
    assert law.level_variance[1] == pytest.approx(levels[1, 1] - gain @ with_sums)
    # Integrals differ between observations by what dense ones do.
    other = replace(sites, nu=nu + 0.3)
    changed = GaussianField.of(field_map, 0.7, other).log_integral - law.log_integral

    def dense(nu: Floats) -> float:
        return float(nu @ prior_mean + 0.5 * (nu - tau * prior_mean) @ covariance @ (nu - tau * prior_mean))

    assert changed == pytest.approx(dense(nu + 0.3) - dense(nu))
    sums, of_levels = law.drawn(40_000, rng)
    np.testing.assert_allclose(np.cov(sums.T), covariance, atol=0.05)
    np.testing.assert_allclose(np.var(of_levels, axis=0), law.level_variance, rtol=0.06)
    # The metric is chi-squared.
    assert np.mean(law.distance(sums, of_levels, sites)) == pytest.approx(law.n_dimensions, rel=0.05)


@pytest.fixture(scope="module")
def model() -> tuple[PanelModel, Floats, Floats]:
    """Return normal cells of five places, one an island, whose third misses a time."""
    rng = np.random.default_rng(2)
    values, sd = rng.normal(0.0, 0.6, (N, TIMES)), rng.uniform(0.2, 0.4, (N, TIMES))
    cell = np.arange(N * TIMES).reshape(N, TIMES)
    is_seen = np.ones((N, TIMES), dtype=bool)
    is_seen[2, 1] = False
    cell = np.where(is_seen, np.cumsum(is_seen).reshape(N, TIMES) - 1, -1)
    source = NormalCells(values[is_seen], sd[is_seen])
    cells = CellsInOrder(sources=((source, np.arange(source.n_cells)),), cell=cell)
    points = Points(centre=np.zeros(N), spacing=0.04, reach=np.full(N, 90))
    return (
        PanelModel(
            field_map=FieldMap.of(N, PAIRS, np.zeros(N, dtype=np.int64)),
            population=NormalPopulation("logit-normal"),
            prior=LevelsPrior(LocationPrior(0.0, 1.0), None),
            blocks=panel_blocks(cells, points, np.zeros(TIMES)),
            middle=0.0,
            common_walk=CommonWalk(n_times=TIMES, anchor=ANCHOR, scale=0.3, jumps=0.0),
            step_scale=0.3,
            jumps=0.0,
        ),
        values,
        np.where(is_seen, sd**-2.0, 0.0),
    )


def test_a_common_walk_that_leaves_its_tables_is_not_followed_on_them(
    model: tuple[PanelModel, Floats, Floats],
) -> None:
    """Of cells that lie 5 higher at the last time, where tables go .6 beyond a walk of 0."""
    panel, values, tau = model
    is_seen = tau.ravel() > 0.0
    lifted = values + 5.0 * (np.arange(TIMES) == TIMES - 1)
    source = NormalCells(lifted.ravel()[is_seen], np.full(int(np.sum(is_seen)), 0.3))
    cell = np.where(is_seen, np.cumsum(is_seen) - 1, -1).reshape(N, TIMES)
    cells = CellsInOrder(sources=((source, np.arange(source.n_cells)),), cell=cell)
    points = Points(centre=np.zeros(N), spacing=0.08, reach=np.full(N, 90))
    walk = replace(panel.common_walk, scale=3.0)
    far = replace(panel, blocks=panel_blocks(cells, points, np.zeros(TIMES)), common_walk=walk)
    assert 0.6 < far.reach < 1.0
    places, _, common = common_at(far, STEP, THETA, np.zeros(TIMES))
    assert np.max(np.abs(common)) > far.reach
    assert np.all(np.abs(places.common) < far.reach)
    # Newton's method by itself goes to 480 from there.
    wide = replace(far, blocks=panel_blocks(cells, points, np.full(TIMES, 6.0)))
    common = common_at(wide, STEP, THETA, common_at(wide, STEP, THETA, np.zeros(TIMES))[2])[2]
    assert common[TIMES - 1] - np.mean(common[:-1]) == pytest.approx(5.0, abs=1.0)


def dense_panel(level_precision: float) -> Floats:
    """Return the prior covariance of z, (N * TIMES, N * TIMES)."""
    of_place = np.where(np.arange(N) < 4, SPREAD**2 * (1.0 - OF_MAP), SPREAD**2)
    of_places = SPREAD**2 * OF_MAP * field_covariance() + np.diag(of_place) + 1.0 / level_precision
    away = np.abs(np.arange(TIMES) - ANCHOR)
    side = np.sign(np.arange(TIMES) - ANCHOR)
    walk = STEP**2 * np.where(side[:, None] == side, np.minimum(away[:, None], away), 0.0)
    return np.asarray(np.kron(of_places, np.ones((TIMES, TIMES))) + np.kron(np.eye(N), walk))


def test_what_series_say_of_the_common_walk_is_that_of_dense_algebra(
    model: tuple[PanelModel, Floats, Floats],
) -> None:
    """Of normal cells (3) and (4) are exact: gradient, second derivatives, evidence and responses."""
    panel, values, tau = model
    common = np.array([0.2, -0.1, 0.0, 0.3])
    places = panel.places(STEP, common)
    at = places.propagated(THETA, None)
    assert at is not None
    told = Told.of(places, THETA, at)
    prior = dense_panel(float(at.sites.level_tau[0]))
    level_mean = float(at.sites.level_nu[0] / at.sites.level_tau[0])
    is_seen = tau.ravel() > 0.0
    covariance = (prior + np.diag(1.0 / np.maximum(tau.ravel(), 1e-12)))[np.ix_(is_seen, is_seen)]
    inverse = np.zeros((N * TIMES, N * TIMES))
    inverse[np.ix_(is_seen, is_seen)] = np.linalg.inv(covariance)
    spread = np.tile(np.eye(TIMES), (N, 1))
    gap = values.ravel() - level_mean - np.tile(common, N)
    gradient = spread.T @ inverse @ gap
    np.testing.assert_allclose(told.precision, spread.T @ inverse @ spread, rtol=2e-3, atol=0.02)
    got = told.linear - told.precision @ common
    np.testing.assert_allclose(got[[0, 1, 3]], gradient[[0, 1, 3]], rtol=5e-3, atol=0.02)
    # How all positions answer to the common walk.
    moved = np.concatenate(list(told.moved(np.arange(N), ANCHOR)))
    np.testing.assert_allclose(moved, spread - prior @ inverse @ spread, atol=5e-3)
    # What a normal law says beyond the place where it was worked out is what is found there.
    further = common + np.array([0.1, 0.15, 0.0, -0.1])
    there = panel.places(STEP, further)
    again = there.propagated(THETA, at.sites)
    assert again is not None
    change = again.log_evidence + there.log_scale - at.log_evidence - places.log_scale
    by_law = told.linear @ (further - common) - 0.5 * (
        further @ told.precision @ further - common @ told.precision @ common
    )
    assert change == pytest.approx(float(by_law), abs=0.02)


def test_smoothed_positions_are_those_of_dense_algebra(model: tuple[PanelModel, Floats, Floats]) -> None:
    panel, values, tau = model
    common = np.array([0.2, -0.1, 0.0, 0.3])
    places = panel.places(STEP, common)
    at = places.propagated(THETA, None)
    assert at is not None
    prior = dense_panel(float(at.sites.level_tau[0]))
    level_mean = float(at.sites.level_nu[0] / at.sites.level_tau[0])
    q = tau.ravel()
    covariance = np.linalg.solve(np.eye(N * TIMES) + prior * q, prior)
    mean = level_mean + covariance @ (q * (values.ravel() - np.tile(common, N) - level_mean))
    for chains in panel.chains(STEP, common):
        law = places.law(THETA, (at.cavity_mean, at.cavity_variance), chains.block)
        smoothed = chains.smoothed(law)
        first = np.einsum("ijk,ik->ij", smoothed.mass, chains.block.grid)
        rows = chains.block.series
        np.testing.assert_allclose(first, mean.reshape(N, TIMES)[rows], atol=2e-3)
        of_all, of_others = smoothed.variances()
        wanted = np.diag(covariance).reshape(N, TIMES)[rows]
        np.testing.assert_allclose(of_all, wanted, rtol=0.01)
        without = 1.0 / (1.0 / wanted - tau[rows])
        np.testing.assert_allclose(of_others, without, rtol=0.02)
        # Paths from a place at the anchor, on either side by themselves: .4 above the middle point.
        paths = chains.paths(np.full((N, 4000), 100), np.random.default_rng(1))
        assert np.all(paths[:, :, ANCHOR] == 100)
        seen = values[rows] - common
        for times in ([1, 0], [3]):
            away = np.arange(1, len(times) + 1)
            walk = STEP**2 * np.minimum(away[:, None], away)
            for place in range(N):
                of_times = tau[rows][place, times]
                gain = np.linalg.solve(np.eye(len(times)) + walk * of_times, walk) * of_times
                wanted = 0.4 + gain @ (seen[place, times] - 0.4)
                drawn = chains.block.grid[place][paths[place][:, times]]
                np.testing.assert_allclose(np.mean(drawn, axis=0), wanted, atol=0.02)


def test_sets_of_jumps_are_weighed_as_all_of_them_are() -> None:
    """Of five steps, all 32 sets by the density of what was seen: weights agree, few are left out."""
    rng = np.random.default_rng(3)
    moves = (np.arange(6)[:, None] > np.arange(5)).astype(float)
    prior = 3.0 + 0.01 * moves @ moves.T
    tau = np.full(6, 1.0 / 0.15**2)
    seen = np.array([0.0, 0.1, 1.1, 1.0, 1.1, 0.7]) + rng.normal(0.0, 0.05, 6)
    sets = jump_sets(prior, np.diag(tau), tau * seen, moves, 0.05, 1e-5)
    every = [chosen for n in range(6) for chosen in itertools.combinations(range(5), n)]
    density = []
    for chosen in every:
        added = moves[:, list(chosen)]
        covariance = prior + JUMP_VARIANCE * added @ added.T + np.diag(1.0 / tau)
        odds = len(chosen) * np.log(0.05 / 0.95)
        density.append(odds + multivariate_normal(np.zeros(6), covariance).logpdf(seen))
    weight = np.exp(np.array(density) - density[0])
    of_set = dict(zip(every, weight.tolist(), strict=True))
    np.testing.assert_allclose(np.exp(sets.log_weight), [of_set[chosen] for chosen in sets.sets], rtol=1e-6)
    kept = sum(of_set[chosen] for chosen in sets.sets)
    assert kept > 0.999 * np.sum(weight)
    assert sets.sets[int(np.argmax(sets.log_weight))] == (1,)
    assert jump_sets(prior, np.diag(tau), tau * seen, moves, 0.0).sets == ((),)


def test_the_common_walk_is_that_of_a_sum_over_steps_and_jumps() -> None:
    """Beside a sum over steps, and over sets of jumps, of normal laws."""
    walk = CommonWalk(n_times=4, anchor=2, scale=0.3, jumps=0.03)
    precision = np.diag([40.0, 60.0, 0.0, 80.0])
    linear = precision @ np.array([-1.0, -0.1, 0.0, 0.05])
    known = walk.posterior(precision, linear)
    total, mean, jumped, step_mean = 0.0, np.zeros(4), np.zeros(4), 0.0
    steps = np.exp(np.linspace(np.log(1e-4), np.log(2.0), 160))
    told = [0, 1, 3]
    seen = np.array([-1.0, -0.1, 0.05])
    for step, chosen in itertools.product(
        steps.tolist(), [c for n in range(4) for c in itertools.combinations(range(3), n)]
    ):
        variance = step**2 + JUMP_VARIANCE * np.isin(np.arange(3), chosen)
        prior = walk.moves * variance @ walk.moves.T
        of_seen = prior[np.ix_(told, told)] + np.diag(1.0 / np.diag(precision)[told])
        odds = len(chosen) * np.log(0.03) + (3 - len(chosen)) * np.log(0.97)
        log_prior = np.log(step) - 0.5 * (step / 0.3) ** 2 + odds
        weight = float(np.exp(log_prior + multivariate_normal(np.zeros(3), of_seen).logpdf(seen)))
        total += weight
        mean += weight * prior[:, told] @ np.linalg.solve(of_seen, seen)
        jumped[[each + 1 for each in chosen]] += weight
        step_mean += weight * step
    np.testing.assert_allclose(known.mean, mean / total, atol=2e-3)
    np.testing.assert_allclose(known.jumped, jumped / total, atol=5e-3)
    assert known.jumped[1] > 0.2
    assert float(known.weight @ known.step) == pytest.approx(step_mean / total, rel=0.02)
    drawn = known.drawn(20_000, np.random.default_rng(1))
    np.testing.assert_allclose(np.cov(drawn.T), known.covariance, atol=0.02)
    assert np.all(drawn[:, 2] == 0.0)

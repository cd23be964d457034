"""Pooled means and variances: the exact mixture beside even grids of everything, and its draws."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import norm

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.engines.mean_variance.likelihood import LatentRows
from suffice.pipeline.math.engines.pooled.cells import Focus
from suffice.pipeline.math.engines.pooled.contaminated import ContaminatedPopulation
from suffice.pipeline.math.engines.pooled.hyperparameters import legendre_rule
from suffice.pipeline.math.engines.pooled.moment_cells import UNIT, MomentCells, MomentNodes, nodes_about
from suffice.pipeline.math.engines.pooled.moment_pools import OF_LEVELS, OF_MEANS, pooled_moments, weighed
from suffice.pipeline.math.engines.pooled.moment_sides import Side, rule_about_edges, side_nodes
from suffice.pipeline.math.engines.pooled.normal import NormalPopulation
from suffice.pipeline.math.engines.pooled.normal_approximation import Box, Moments
from suffice.pipeline.math.priors.record_count import Reciprocal
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.populations import Population

NORMAL = {"family": "normal", "column": "x", "lower": "-1", "upper": "1"}
MEAN, SD, SIZE = np.array([-0.3, 0.1, 0.4]), np.array([0.2, 0.3, 0.25]), np.array([400, 200, 600])


def cells(mean: np.ndarray, sd: np.ndarray, size: np.ndarray, seed: int = 3) -> MomentCells:
    """Real components of simulated rows, by the partition of unity, with noise."""
    rng = np.random.default_rng(seed)
    plan = statistic_plan(NORMAL, epsilon="1", public_n=False)
    steps = 1 << int(plan.parameters.lattice_bits or 0)
    values = []
    for m, s, n in zip(mean, sd, size, strict=True):
        x = np.rint(np.clip(rng.normal(m, s, n), -1.0, 1.0) * steps).astype(np.int64)
        values.append([np.sum((steps - x) ** 2), np.sum(2 * (steps**2 - x**2)), np.sum((steps + x) ** 2)])
    noisy = np.array(values) + discrete_laplace(plan.scale, (len(size), 3), rng)
    moments = FAMILIES["normal"].mean_and_variance
    assert moments is not None
    statistic = noisy_statistic(plan, noisy)
    return MomentCells(noisy=moments.noisy(statistic, NormalInverseGamma(0, 1, 1, 1), Reciprocal(10**12)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "population",
    [
        ContaminatedPopulation("contaminated"),
        pytest.param(NormalPopulation("normal"), marks=pytest.mark.audit),
    ],
    ids=["contaminated", "normal"],
)
def test_three_cells_are_as_even_grids_of_everything_have_them(population: Population) -> None:
    source = cells(MEAN, SD, SIZE)
    x, y = np.linspace(-1.2, 1.2, 241), np.linspace(-3.6, 0.4, 81)
    rows = [LatentRows.of(source.noisy.take(np.array([cell])), 28.0) for cell in range(3)]
    log_likelihood = [each.log_likelihood(UNIT * x[None], 2.0 * y[None])[0] for each in rows]
    likelihood = [np.exp(each - np.max(each)) for each in log_likelihood]

    def of_side(z: np.ndarray, centre: float, wide: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        m, s = (grid.ravel() for grid in np.meshgrid(centre + np.linspace(-4.0, 4.0, 129), SPREADS))
        density = norm.pdf(z, m[:, None], s[:, None])
        if wide:
            density = 0.95 * density + 0.05 * norm.pdf(z, m[:, None], np.hypot(s, wide)[:, None])
        prior = np.exp(-np.abs(m - centre)) / (1.0 + np.exp(-np.abs(m - centre))) ** 2
        return density, prior * np.exp(-0.5 * s**2), s

    f, of_first, first = of_side(x, 0.0, 2.0 if population.is_contaminated else 0.0)
    g, of_second, second = of_side(y, -2.0, 0.0)
    z = [(f @ each) @ g.T for each in likelihood]
    weight = np.outer(of_first, of_second) * np.prod(z, axis=0)
    weight /= np.sum(weight)
    joint = [
        each * (f.T @ (weight / np.maximum(of_cell, 1e-300)) @ g)
        for each, of_cell in zip(likelihood, z, strict=True)
    ]
    answer = pooled_moments(source, population, ("mean", "variance"), (0.0, 1.0))
    assert answer.settled
    for name, values, axis in (("mean", UNIT * x, 1), ("variance", np.exp(2.0 * y), 0)):
        shares = [np.sum(each, axis=axis) / np.sum(each) for each in joint]
        mean = np.array([share @ values for share in shares])
        sd = np.sqrt(np.array([share @ values**2 for share in shares]) - mean**2)
        np.testing.assert_allclose(answer.mean(name), mean, atol=0.05 * np.min(sd), rtol=0.01)
        np.testing.assert_allclose(answer.sd(name), sd, rtol=0.04)
    for side, axis, spread in ((0, 1, first), (1, 0, second)):
        expected = float(np.sum(weight, axis=axis) @ spread)
        # Three cells leave a spread a tail beyond the rule's ends.
        assert answer.sides[side].spread[0] == pytest.approx(expected, rel=0.08)


SPREADS = (np.arange(22) + 0.5) * 0.14


@pytest.mark.slow
def test_nodes_that_are_moved_have_the_likelihood_of_finer_grids() -> None:
    source = cells(np.array([-0.2, 0.3]), np.array([0.2, 0.3]), np.array([40, 90]))
    wide = (Focus(centre=0.0, width=0.05), Focus(centre=-1.5, width=0.2))
    there = (Focus(centre=-0.3, width=0.1, reach=0.5), Focus(centre=-1.4, width=0.15))
    known = source.nodes(wide)
    moved = known.moved(there)
    assert moved.position.shape != known.position.shape
    for cell in range(2):
        # The engine of cells alone, whose grids are finer and reach farther.
        rows = LatentRows.of(source.noisy.take(np.array([cell])), 28.0)
        x, y = moved.position[cell], moved.level[cell]
        exact = rows.log_likelihood(UNIT * x[None], 2.0 * y[None])[0]
        exact -= np.max(exact)
        area = moved.spacing[cell][:, None] * moved.level_spacing[cell]
        for middle, level in ((-0.4, -1.6), (0.5, -1.2), (0.0, -1.0)):
            population = np.outer(norm.pdf(x, middle, 0.3), norm.pdf(y, level, 0.3)) * area
            shares = [np.exp(each) * population for each in (exact, moved.log_likelihood[cell])]
            shares = [each / np.sum(each) for each in shares]
            for place, axis in ((x, 1), (y, 0)):
                mean, close = (float(np.sum(each, axis=axis) @ place) for each in shares)
                sd = float(np.sqrt(np.sum(shares[0], axis=axis) @ (place - mean) ** 2))
                assert close == pytest.approx(mean, abs=0.03 * sd)
    # Control: nodes of the other cell are not of this one.
    swapped = MomentNodes.of(
        [(known.position, np.log(known.spacing)), (known.level, np.log(known.level_spacing))],
        known.log_likelihood[::-1],
        known.centre,
        known.width,
    ).moved(there)
    assert np.max(np.abs(swapped.log_likelihood[0] - moved.log_likelihood[0])) > 1.0


def test_nodes_gather_about_an_edge() -> None:
    def density(t: np.ndarray, edge: float) -> np.ndarray:
        # A logistic law to the left, with an edge .05 wide.
        law = np.exp(-np.abs(t + 1.0)) / (1.0 + np.exp(-np.abs(t + 1.0))) ** 2
        return np.asarray(law / (1.0 + np.exp((t - edge) / 0.05)))

    fine, errors = np.linspace(-4.3, 4.3, 100_001), []
    for edge in np.linspace(0.0, 1.0, 11):
        exact = np.sum(density(fine, edge)) * (fine[1] - fine[0])
        t, weight = legendre_rule((0.0, 4.3), 15)
        before = abs(float(weight @ density(t, edge)) / exact - 1.0)
        for _ in range(3):
            t, weight = rule_about_edges(t, weight, density(t, edge) * weight, (0.0, 4.3))
        errors.append((abs(float(weight @ density(t, edge)) / exact - 1.0), before))
    after, before = np.max(errors, axis=0)
    assert after < 0.02
    # Control: nodes that do not move are farther off.
    assert before > 0.05


def test_cells_that_tell_nothing_leave_the_hyperprior_wherever_nodes_are_sparse() -> None:
    # Nodes are dense about -3.8 alone, and the same of all cells: sums over narrow populations elsewhere were
    # too high or too low in all of them at once, and many cells drew the location to one node.
    n_cells, foci = 300, (Focus(centre=0.0, width=0.02), Focus(centre=-3.8, width=0.05, reach=0.4))
    wide = np.full((n_cells, 2), 2.0)
    sides = nodes_about(-wide, wide, foci, (36, 36))
    nodes = MomentNodes.of(sides, np.zeros((n_cells, 36, 36)), -wide, wide)
    normal = NormalPopulation("normal")
    moments = Moments(
        mean=np.full(n_cells, -4.0), precision=np.full(n_cells, 1e-4), log_size=np.zeros(n_cells)
    )
    rules = [
        side_nodes(
            Side(population=normal, prior=prior, focus=focus),
            moments,
            Box(t=(0, 2), s=(0.4, 0.4), b=(0, 0)),
            3,
        )
        for prior, focus in zip((OF_MEANS, OF_LEVELS), foci, strict=True)
    ]
    weight = weighed(nodes, [normal, normal], rules)
    expected = np.exp(rules[0].log_weight[:, None] + rules[1].log_weight)
    np.testing.assert_allclose(weight, expected / np.sum(expected), rtol=0.02)
    # Control: cells that tell something move it.
    told = dataclasses.replace(
        nodes, weight=nodes.weight * np.exp(-0.5 * (nodes.level[:, None, :] + 3.0) ** 2 / 400.0)
    )
    assert np.max(np.abs(weighed(told, [normal, normal], rules) / weight - 1.0)) > 0.5


def test_draws_quantiles_and_densities_are_of_one_distribution() -> None:
    rng = np.random.default_rng(5)
    source = cells(rng.normal(0.1, 0.1, 8), np.full(8, 0.25), np.full(8, 80))
    answer = pooled_moments(source, NormalPopulation("normal"), ("mean", "variance"), (10.0, 4.0))
    drawn = answer.sample(4000, rng)
    for name in ("mean", "variance"):
        low, middle, high = answer.quantiles(name, [0.1, 0.5, 0.9], 0, rng).T
        # Of 4,000 draws a share of .1 has a standard deviation of .0047: 16 times less than 1e-6 allows.
        assert np.mean(drawn[name] < low, axis=0) == pytest.approx(0.1, abs=0.025)
        assert np.mean(drawn[name] < high, axis=0) == pytest.approx(0.9, abs=0.025)
        # Control: they are not those of half the mass.
        assert np.all(np.abs(np.mean(drawn[name] < middle, axis=0) - 0.1) > 0.3)
        points = np.stack([low, middle, high], axis=1)
        fine = np.linspace(points[:, 0], points[:, 2], 400, axis=1)
        height = answer.density(name, fine)
        mass = np.sum(height[:, 1:] + height[:, :-1], axis=1) / 2.0 * (fine[:, 1] - fine[:, 0])
        assert mass == pytest.approx(0.8, abs=0.02)
    # Where one cell's mean is high, its own share is high too.
    assert np.all((answer.own_share > 0.0) & (answer.own_share < 1.0))


@pytest.mark.slow
def test_an_outlying_mean_stays_itself_and_is_told() -> None:
    mean = np.append(np.full(8, 0.1), 0.8)
    source = cells(mean, np.full(9, 0.1), np.full(9, 60))
    wide, narrow = (
        pooled_moments(source, each, ("mean", "variance"), (0.0, 1.0))
        for each in (ContaminatedPopulation("contaminated"), NormalPopulation("normal"))
    )
    assert np.flatnonzero(wide.outside > 0.5).tolist() == [8]
    assert wide.mean("mean")[8] == pytest.approx(0.8, abs=0.06)
    # Its neighbours agree, and borrow more where it does not count as one of them.
    assert np.mean(wide.own_share[:8, 0]) < np.mean(narrow.own_share[:8, 0])

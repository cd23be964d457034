"""Cells on a map: normal fields beside dense matrices, propagation and hyperparameters beside sums."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.errors import UsageError
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled.count_cells import CountCells
from suffice.pipeline.math.engines.pooled.field import field_distribution
from suffice.pipeline.math.engines.pooled.field_error import field_error
from suffice.pipeline.math.engines.pooled.field_gaussian import GaussianField, Sites
from suffice.pipeline.math.engines.pooled.field_lattice import field_model
from suffice.pipeline.math.engines.pooled.field_map import FieldMap
from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
from suffice.pipeline.math.engines.pooled.populations import POPULATIONS
from suffice.pipeline.math.priors.record_count import Reciprocal
from support.normal_cells import NormalCells

if TYPE_CHECKING:
    from suffice.typing import Cells, Floats

POPULATION = POPULATIONS[Line.LOGIT]


def a_map(n_cells: int, pairs: Any, level: Any = None) -> FieldMap:
    levels = np.zeros(n_cells, dtype=np.int64) if level is None else np.array(level)
    return FieldMap.of(n_cells, np.array(pairs, dtype=np.int64), levels)


def grid_pairs(rows: int, columns: int) -> Cells:
    number = np.arange(rows * columns).reshape(rows, columns)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    return np.concatenate([down, np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)])


def scaled_covariance(field_map: FieldMap, pairs: Cells) -> Floats:
    """The covariance of the field by a generalised inverse, each component scaled."""
    laplacian = np.zeros((field_map.n_cells, field_map.n_cells))
    for i, j in np.unique(np.sort(pairs, axis=1), axis=0):
        laplacian[[i, j], [j, i]] -= 1.0
        laplacian[[i, j], [i, j]] += 1.0
    covariance = np.linalg.pinv(laplacian)
    for component in range(field_map.n_components):
        cells = field_map.mapped[field_map.component == component]
        covariance[np.ix_(cells, cells)] /= np.exp(np.mean(np.log(np.diag(covariance)[cells])))
    return np.asarray(covariance, dtype=np.float64)


def test_a_normal_field_is_that_of_dense_matrices() -> None:
    """Two maps, three components, islands, and pairs named twice."""
    pairs = np.concatenate([grid_pairs(6, 5), [[30, 31], [31, 30], [33, 34], [34, 35]]])
    level = np.array([0] * 33 + [1] * 5)
    field_map = a_map(38, pairs, level)
    assert field_map.islands.tolist() == [32, 36, 37]
    covariance = scaled_covariance(field_map, pairs)
    np.testing.assert_allclose(field_map.variance, np.diag(covariance), atol=1e-10)
    rng, a = np.random.default_rng(1), 0.7
    tau, nu = rng.uniform(0.1, 3.0, 38), rng.normal(size=38)
    sites = Sites(tau=tau, nu=nu, level_tau=np.array([0.3, 0.5]), level_nu=np.array([0.1, -0.2]))
    of_level = np.eye(2)[level]
    prior = of_level @ np.diag(1.0 / sites.level_tau) @ of_level.T + a**2 * covariance
    middle = of_level @ (sites.level_nu / sites.level_tau)
    total = prior + np.diag(1.0 / tau)
    mean = middle + prior @ np.linalg.solve(total, nu / tau - middle)
    posterior = prior - prior @ np.linalg.solve(total, prior)
    field = GaussianField.of(field_map, a, sites)
    np.testing.assert_allclose(field.mean, mean, atol=1e-9)
    np.testing.assert_allclose(field.variance, np.diag(posterior), atol=1e-9)
    drawn, levels = field.drawn(10_000, rng)
    # Seven standard errors of each of 741 covariances: a false alarm in 10^8.
    error = np.sqrt((np.outer(*[np.diag(posterior)] * 2) + posterior**2) / 10_000)
    assert np.all(np.abs(np.cov(drawn.T) - posterior) < 7.0 * error)

    # The same, of means of two levels.
    error_of_level = np.sqrt(field.level_variance / 10_000)
    assert np.all(np.abs(np.mean(levels, axis=0) - field.level_mean) < 7.0 * error_of_level)

    def log_integral(scale: float, precision: Floats) -> float:
        prior = of_level @ np.diag(1.0 / sites.level_tau) @ of_level.T + scale**2 * covariance
        total = prior + np.diag(1.0 / precision)
        gap = nu / precision - middle
        exponent = gap @ np.linalg.solve(total, gap) + np.linalg.slogdet(total)[1]
        return float(0.5 * np.sum(nu**2 / precision) - 0.5 * np.sum(np.log(precision)) - 0.5 * exponent)

    twice = Sites(tau=2.0 * tau, nu=nu, level_tau=sites.level_tau, level_nu=sites.level_nu)
    other = GaussianField.of(field_map, 0.2, twice)
    wanted = log_integral(a, tau) - log_integral(0.2, 2.0 * tau)
    assert field.log_integral - other.log_integral == pytest.approx(wanted, abs=1e-8)


def test_hyperparameters_are_integrated_over_as_by_sums_over_a_fine_grid() -> None:
    """Normal likelihoods, of which propagation is exact: what is left is the lattice, and the law of m."""
    rng = np.random.default_rng(2)
    pairs = grid_pairs(5, 5)
    field_map = a_map(25, pairs)
    smooth = np.add.outer(np.sin(np.arange(5)), np.cos(np.arange(5))).ravel()
    mean, sd = -0.5 + 0.5 * smooth + rng.normal(0.0, 0.4, 25), np.full(25, 0.3)
    answer = field_distribution(
        NormalCells(mean, sd), POPULATION["logit-normal"], "probability", Line.LOGIT, field_map
    )
    covariance = scaled_covariance(field_map, pairs)
    m = np.linspace(-4.0, 3.0, 81)
    log_m = -np.abs(m) - 2.0 * np.log1p(np.exp(-np.abs(m)))
    total, first, second, spread, share = 0.0, np.zeros(25), np.zeros(25), 0.0, 0.0
    for s in np.linspace(0.03, 2.4, 40):
        for rho in (np.arange(20) + 0.5) / 20.0:
            prior = s**2 * (rho * covariance + (1.0 - rho) * np.eye(25))
            gain = np.linalg.solve(prior + np.diag(sd**2), prior).T
            factor = np.linalg.cholesky(prior + np.diag(sd**2))
            gap = np.linalg.solve(factor, mean[:, None] - m)
            log_weight = log_m - 0.5 * np.sum(gap**2, axis=0) - np.sum(np.log(np.diag(factor))) - 0.5 * s**2
            weight = np.exp(log_weight)
            at = m + gain @ (mean[:, None] - m)
            total += float(np.sum(weight))
            first += at @ weight
            second += (at**2 + (np.diag(prior - gain @ prior))[:, None]) @ weight
            spread += s * float(np.sum(weight))
            share += rho * float(np.sum(weight))
    wanted = first / total
    wanted_sd = np.sqrt(second / total - wanted**2)
    of_line = np.sum(answer.mass * answer.position, axis=1)
    sd_of_line = np.sqrt(np.sum(answer.mass * answer.position**2, axis=1) - of_line**2)
    assert np.max(np.abs(of_line - wanted) / wanted_sd) < 0.03
    np.testing.assert_allclose(sd_of_line, wanted_sd, rtol=0.03)
    hyper = answer.hyperparameters
    assert hyper.mean(hyper.spread) == pytest.approx(spread / total, rel=0.02)
    assert answer.of_map[0] == pytest.approx(share / total, abs=0.02)
    assert hyper.settled
    for refused in (answer.plug_in, lambda: answer.population_draws(np.zeros(2), rng)):
        with pytest.raises(UsageError, match="pool"):
            refused()


@pytest.mark.parametrize("name", ["logit-normal", "contaminated"])
def test_propagation_of_noisy_counts_is_near_quadrature(name: str) -> None:
    """Four cells in a row, noise as large as the counts: sums over level and field in all four dimensions."""
    true, false, scale = np.array([3.0, 14.0, 1.0, 9.0]), np.array([25.0, 20.0, 30.0, 22.0]), 3.0
    counts = [NoisyCount(values=each[:, None], scales=np.array([scale])) for each in (true, false)]
    source = CountCells(true=counts[0], false=counts[1], n_prior=Reciprocal(10**12))
    pairs = [[0, 1], [1, 2], [2, 3]]
    field_map = a_map(4, pairs)
    model, _, _ = field_model(source, POPULATION[name], Line.LOGIT, field_map)
    theta = np.array([np.log(0.8), 0.5, 0.2])
    point = model.at(theta, model.approximate(theta)[2])
    assert point is not None
    # Factors t on even places, then sums over m and the three directions of the field.
    measures, residuals = model.measures(0.2), model.residuals(theta)
    places = np.linspace(-9.0, 4.0, 261)
    table = np.empty((4, len(places)))
    for number, place in enumerate(places):
        at = np.full(4, place)
        parts = measures.moments(at, [variance for _, variance in residuals])
        shares = [share for share, _ in residuals]
        table[:, number] = np.array(shares) @ np.exp([part[0] for part in parts])
    values, axes = np.linalg.eigh(scaled_covariance(field_map, np.array(pairs)))
    directions = axes[:, 1:] * np.sqrt(values[1:]) * model.scale(theta)
    u = np.linspace(-4.0, 4.0, 17)
    m = np.linspace(-9.0, 2.0, 90)
    grid = np.stack(np.meshgrid(u, u, u, indexing="ij"), axis=-1).reshape(-1, 3)
    of_m = np.exp(-np.abs(m)) / (1.0 + np.exp(-np.abs(m))) ** 2
    prior = np.exp(-0.5 * np.sum(grid**2, axis=1))[:, None] * of_m
    eta = [np.add.outer(grid @ directions[cell], m) for cell in range(4)]
    weight = prior * np.prod([np.interp(eta[cell], places, table[cell]) for cell in range(4)], axis=0)
    weight /= np.sum(weight)
    propagated = GaussianField.of(field_map, model.scale(theta), point.sites)
    said = field_error(model, point, np.array(pairs), np.random.default_rng(1))
    assert said.is_of_all
    for cell in range(4):
        mean = float(np.sum(weight * eta[cell]))
        sd = float(np.sqrt(np.sum(weight * (eta[cell] - mean) ** 2)))
        by, wider = (mean - propagated.mean[cell]) / sd, sd / propagated.variance[cell] ** 0.5 - 1.0
        assert abs(by) < 0.06
        assert abs(wider) < 0.11
        # What is said is what it is, to a quarter: it was a fourth of it without tails.
        assert said.mean[cell] == pytest.approx(by, rel=0.4, abs=0.004)
        assert said.sd[cell] == pytest.approx(wider, rel=0.4, abs=0.01)


def test_a_chain_is_what_sums_forward_and_backward_have() -> None:
    """28 cells in a row; with a flat law of the level their sums are a random walk."""
    rng = np.random.default_rng(3)
    size = np.maximum(np.rint(np.exp(rng.normal(np.log(100.0), 1.0, 28))), 1.0)
    true = rng.binomial(size.astype(np.int64), 1.0 / (1.0 + np.exp(2.0 - 0.6 * np.sin(np.arange(28) / 4.0))))
    noise = rng.geometric(-np.expm1(-0.1), (4, 28))
    source = CountCells(
        true=NoisyCount(values=(true + noise[0] - noise[1])[:, None], scales=np.array([10.0])),
        false=NoisyCount(values=(size - true + noise[2] - noise[3])[:, None], scales=np.array([10.0])),
        n_prior=Reciprocal(10**12),
    )
    pairs = np.array([[cell, cell + 1] for cell in range(27)])
    field_map = a_map(28, pairs)
    model, mode, _ = field_model(source, POPULATION["logit-normal"], Line.LOGIT, field_map)
    model = dataclasses.replace(model, prior=LocationPrior(0.0, 200.0))
    theta = np.array([np.log(0.6), 0.8, 0.1])
    point = model.at(theta, model.approximate(mode)[2])
    assert point is not None
    law = GaussianField.of(field_map, model.scale(theta), point.sites)
    places = np.linspace(-12.0, 8.0, 601)
    measures, ((_, variance),) = model.measures(0.1), model.residuals(theta)
    factor = np.array(
        [np.exp(measures.moments(np.full(28, place), [variance])[0][0]) for place in places.tolist()]
    ).T
    covariance = scaled_covariance(field_map, pairs)
    step = model.scale(theta) ** 2 * (covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1])
    kernel = np.exp(-0.5 * (places[:, None] - places) ** 2 / step)
    forward, backward = np.ones((28, 601)), np.ones((28, 601))
    for cell in range(1, 28):
        forward[cell] = kernel @ (forward[cell - 1] * factor[cell - 1])
        forward[cell] /= np.max(forward[cell])
        backward[27 - cell] = kernel @ (backward[28 - cell] * factor[28 - cell])
        backward[27 - cell] /= np.max(backward[27 - cell])
    weight = forward * backward * factor
    weight /= np.sum(weight, axis=1, keepdims=True)
    mean = weight @ places
    sd = np.sqrt(weight @ places**2 - mean**2)
    np.testing.assert_allclose((law.mean - mean) / sd, 0.0, atol=0.01)
    np.testing.assert_allclose(law.variance**0.5 / sd, 1.0, rtol=0.02)

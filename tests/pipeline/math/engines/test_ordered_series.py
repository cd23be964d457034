"""Trends, seasons and returns to a level: beside quadrature, recursions, chains, and each other."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import dlaplace, poisson

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.pooled.hyperpriors import location_prior
from suffice.pipeline.math.engines.pooled.ordered_distribution import ordered_distribution
from suffice.pipeline.math.engines.pooled.ordered_law import Normal, OrderedLaw
from suffice.pipeline.math.engines.pooled.ordered_propagation import errors, propagated
from suffice.pipeline.math.engines.pooled.returning_walk import returning_distribution
from suffice.pipeline.math.engines.pooled.series import CellsInOrder
from suffice.pipeline.math.engines.pooled.walk_distribution import walk_distribution
from support.counts_in_order import SCALE, NoisyCounts, series_of

if TYPE_CHECKING:
    from suffice.typing import Floats

LAWS = {
    "walk": OrderedLaw(scale=SCALE),
    "trend": OrderedLaw(scale=SCALE, has_slope=True),
    "season": OrderedLaw(scale=SCALE, season=2),
    "return": OrderedLaw(scale=SCALE, returns=True),
    "trend and season": OrderedLaw(scale=SCALE, has_slope=True, season=3),
}
THETA = {"step": 0.2, "slope_step": 0.1, "coefficient": 0.6, "season": 0.4}


def theta_of(law: OrderedLaw) -> Floats:
    coordinate = {name: np.log(value) for name, value in THETA.items()}
    coordinate["coefficient"] = np.log(0.6 / 0.4)
    return np.array([coordinate[name] for name in law.names])


def paths(law: OrderedLaw, n_times: int, variance: float, draws: int, rng: np.random.Generator) -> Floats:
    """Draw x by its own recursions, less the prior mean."""
    level = np.sqrt(variance) * rng.standard_normal(draws)
    slope = law.scale * rng.standard_normal(draws)
    away = THETA["step"] / np.sqrt(1.0 - THETA["coefficient"] ** 2) * rng.standard_normal(draws)
    n_effects = law.season or 2
    effects = rng.standard_normal((draws, n_effects))
    effects -= np.mean(effects, axis=1, keepdims=True)
    effects *= THETA["season"] * np.sqrt(n_effects / (n_effects - 1.0))
    result = np.empty((draws, n_times))
    for time in range(n_times):
        result[:, time] = level + (away if law.returns else 0.0)
        if law.season is not None:
            result[:, time] += effects[:, time % law.season]
        step = THETA["step"] * rng.standard_normal(draws)
        if law.returns:
            away = THETA["coefficient"] * away + step
        else:
            level = level + step + (slope if law.has_slope else 0.0)
        slope = slope + THETA["slope_step"] * rng.standard_normal(draws)
    return result


@pytest.mark.parametrize("name", LAWS)
def test_covariances_are_those_of_recursions(name: str) -> None:
    """100,000 paths of 7 times: 28 covariances within 6 standard errors, false alarm below 1e-6."""
    law, prior, draws = LAWS[name], location_prior(Line.LOGIT, 0.0), 100_000
    x = paths(law, 7, 1.0 / prior.precision, draws, np.random.default_rng(11))
    exact, seen = law.covariance(theta_of(law), 7, prior), x.T @ x / draws
    error = np.sqrt((np.outer(np.diag(exact), np.diag(exact)) + exact**2) / draws)
    assert np.all(np.abs(seen - exact) < 6.0 * error)
    assert np.any(np.abs(seen - 1.1 * exact) > 6.0 * error), "a covariance that is a tenth too large is seen"


def likelihoods(values: list[float], scale: float, x: Floats) -> Floats:
    """Of log means, (n_values, n_points), without the engine's code."""
    k = np.arange(int(max(values) + 60.0 * scale + 200.0))
    chance = np.asarray(poisson.pmf(k[:, None], np.exp(x))).T
    each = np.array([chance @ dlaplace.pmf(k - value, 1.0 / scale) for value in values])
    return np.asarray(each / each.max(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("values", "scale", "off", "of_sd"),
    [([30.0, 34.0, 55.0], 2.0, 0.01, 0.02), ([3.0, 14.0, 1.0], 6.0, 0.1, 0.3)],
    ids=["told", "hidden by noise"],
)
@pytest.mark.parametrize("name", ["trend", "season", "return"])
def test_propagation_agrees_with_quadrature(
    name: str, values: list[float], scale: float, off: float, of_sd: float
) -> None:
    """Of three counts at known hyperparameters: a sum over 140^3 positions. The check sees the error."""
    law, prior = LAWS[name], location_prior(Line.LOGARITHM, 3.0)
    x = np.linspace(-15.0, 5.5, 140)
    covariance = law.covariance(theta_of(law), 3, prior)
    likelihood = likelihoods(values, scale, x)
    places = x - 3.0
    joint = np.stack(np.meshgrid(places, places, places, indexing="ij"), axis=-1).reshape(-1, 3)
    weight = np.exp(-0.5 * np.einsum("ij,jk,ik->i", joint, np.linalg.inv(covariance), joint))
    weight *= np.einsum("i,j,k->ijk", *likelihood).ravel()
    weight /= weight.sum()
    mean = weight @ joint
    sd = np.sqrt(weight @ joint**2 - mean**2)
    start = np.full((1, 3), 1.0), np.zeros((1, 3))
    seen = np.ones((1, 3), dtype=bool)
    at = propagated(covariance, places[None], likelihood[None], seen, start)
    assert at.settled
    # Cavities times exact likelihoods, which is what cells are answered by.
    assert np.max(np.abs(at.tilted.mean[0] - mean) / sd) < off
    sd_of_cells = np.sqrt(at.tilted.variance[0])
    assert np.max(np.abs(sd_of_cells / sd - 1.0)) < of_sd
    of_mean, seen_of_sd, is_of_all = errors(
        at, places[None], likelihood[None], seen, 40_000, np.random.default_rng(2)
    )
    assert is_of_all[0]
    assert np.max(np.abs(at.tilted.mean[0] + of_mean[0] * sd - mean) / sd) < off
    assert np.max(np.abs(sd_of_cells * (1.0 + seen_of_sd[0]) / sd - 1.0)) < 0.02 + 0.2 * of_sd
    plain = Normal.of(covariance, *start)
    assert np.max(np.abs(plain.mean[0] - mean) / sd) > 2.0 * off, "a normal law that is not moved is seen"


def counts(n_times: int, mean: float, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    x = np.log(mean) + np.cumsum(rng.normal(0.0, 0.15, n_times))
    return [float(each) for each in rng.poisson(np.exp(x)) + rng.integers(-3, 4, n_times)]


def test_a_walk_by_propagation_is_that_of_recursions() -> None:
    """They share neither the integral over positions nor that over steps."""
    series = series_of(counts(24, 100.0, 3), 2.0)
    exact = walk_distribution(series, "rate", Line.LOGARITHM, jumps=0.0, scale=SCALE)
    answer = ordered_distribution(series, "rate", Line.LOGARITHM, LAWS["walk"])
    assert answer.settled
    sd = exact.sd("rate")
    assert np.max(np.abs(answer.mean("rate") - exact.mean("rate")) / sd) < 0.02
    assert np.max(np.abs(answer.sd("rate") / sd - 1.0)) < 0.02
    assert answer.known["step"][0] == pytest.approx(exact.steps.mean, rel=0.02)
    np.testing.assert_allclose(answer.own_share, exact.own_share, atol=0.02)
    np.testing.assert_allclose(
        answer.left_out().log_predictive[1:], exact.left_out().log_predictive[1:], atol=0.02
    )
    sloped = ordered_distribution(series, "rate", Line.LOGARITHM, LAWS["trend"])
    assert np.max(np.abs(sloped.mean("rate") - exact.mean("rate")) / sd) > 0.05, "another law is seen"
    drawn = np.log(answer.sample(4000, np.random.default_rng(5))["rate"])
    assert np.max(np.abs(np.mean(np.exp(drawn), axis=0) - answer.mean("rate")) / sd) < 6.0 / 4000**0.5
    steps = np.var(np.diff(drawn, axis=1), axis=0)
    assert np.all(steps < 0.9 * (np.var(drawn, axis=0)[1:] + np.var(drawn, axis=0)[:-1])), "paths move slowly"


SHIFT, WALKED = 0.02, 36


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "jump", "highest"), [([30, 3], 1.3, 0.15), ([10, 3], 1.0, 0.1)], ids=["usual", "far factors"]
)
def test_jumps_beside_a_trend_and_a_season_are_told_from_steps(
    start: list[int], jump: float, highest: float
) -> None:
    """Two series of 36 counts with steps of .02 and a jump down each. The control has Gaussian steps.

    Of 23 and 39 panels steps come out at .027 and .024 (sd .009), Gaussian ones at .222 (sd .014) and .171
    (sd .013): bounds are 5 sd away, a chance below 3e-7. In the second panel factors with a precision below
    0, kept for the wider priors of jumps, left no number.
    """
    rng = np.random.default_rng(start)
    jumped = rng.integers(WALKED // 4, 3 * WALKED // 4, 2)
    time = np.arange(WALKED)
    x = np.log(200.0) + 0.01 * time - jump * (time >= jumped[:, None]) + 0.2 * np.sin(np.pi * time / 2.0)
    x += np.cumsum(rng.normal(0.0, SHIFT, (2, WALKED)), axis=1)
    success = -np.expm1(-0.5)
    noise = rng.geometric(success, x.shape) - rng.geometric(success, x.shape)
    values = (rng.poisson(np.exp(x)) + noise).astype(float).ravel()
    cell = np.arange(2 * WALKED).reshape(2, WALKED)
    cells = CellsInOrder(sources=((NoisyCounts(values, 2.0), cell.ravel()),), cell=cell)
    law = OrderedLaw(scale=SCALE, has_slope=True, season=4)
    answer, straight = (
        ordered_distribution(cells, "rate", Line.LOGARITHM, law, jumps=jumps) for jumps in (0.01, 0.0)
    )
    assert answer.known["step"][0] < highest
    assert not straight.known["step"][0] < highest
    assert np.all(answer.outside.reshape(2, WALKED)[[0, 1], jumped] > 0.5)
    truth = np.exp(x).ravel()
    (low, high), (wide_low, wide_high) = (
        each.quantiles("rate", (0.025, 0.975), 0, rng).T for each in (answer, straight)
    )
    # Of other panels 69 (sd 2.3) of 72 hold: 7 sd. Log ratios of widths are -.54 and -.50 (sd .08): 5.6 sd.
    assert np.sum((low <= truth) & (truth <= high)) > 52
    assert np.mean(np.log(high / low)) < 0.95 * np.mean(np.log(wide_high / wide_low))


@pytest.mark.slow
def test_a_return_by_recursions_is_that_of_propagation() -> None:
    series = series_of(counts(16, 100.0, 4), 2.0)
    exact = returning_distribution(series, "rate", Line.LOGARITHM, LAWS["return"], jumps=0.0)
    answer = ordered_distribution(series, "rate", Line.LOGARITHM, LAWS["return"])
    sd = exact.sd("rate")
    assert np.max(np.abs(answer.mean("rate") - exact.mean("rate")) / sd) < 0.03
    assert np.max(np.abs(answer.sd("rate") / sd - 1.0)) < 0.03
    for name in ("step", "coefficient"):
        assert answer.known[name] == pytest.approx(exact.known[name], rel=0.06)


def of_a_return(
    values: list[float], scale: float, middle: float, jumps: float, steps: int
) -> tuple[Floats, Floats]:
    """Return means and standard deviations by sums over positions, levels, steps and coefficients."""
    prior = location_prior(Line.LOGARITHM, middle)
    x = np.linspace(middle - 2.2, middle + 1.8, 200)
    h, each = x[1] - x[0], likelihoods(values, scale, x)
    mass = np.zeros((3, 200))
    coefficients, levels = np.arange(0.05, 1.0, 0.1), np.linspace(-4.0, 4.0, 33) + middle

    def law(gap: Floats, sd: float) -> Floats:
        normal = np.exp(-0.5 * (gap / sd) ** 2) / (sd * np.sqrt(2.0 * np.pi))
        return np.asarray(h * ((1.0 - jumps) * normal + jumps * np.exp(-np.abs(gap)) / 2.0))

    widths = np.exp(np.linspace(np.log(0.03), np.log(1.5), steps))
    for s, phi, m in itertools.product(widths, coefficients, levels):
        weight = s * np.exp(-0.5 * (s / SCALE) ** 2 + prior.log_density(np.array(m)))
        kernel = law(x[None, :] - m - phi * (x[:, None] - m), s)
        first = law(x - m, s / np.sqrt(1.0 - phi**2)) * each[0]
        second = first @ kernel * each[1]
        after = kernel @ each[2]
        mass[1] += weight * second * after
        mass[2] += weight * (second @ kernel) * each[2]
        mass[0] += weight * first * (kernel @ (each[1] * after))
    mass /= mass.sum(axis=1, keepdims=True)
    mean = mass @ np.exp(x)
    return mean, np.sqrt(mass @ np.exp(2.0 * x) - mean**2)


@pytest.mark.slow
def test_a_return_agrees_with_quadrature() -> None:
    """Of three counts, one after a jump."""
    values, scale = [30.0, 34.0, 95.0], 1.0
    series = series_of(values, scale)
    answer = returning_distribution(series, "rate", Line.LOGARITHM, LAWS["return"], jumps=0.02)
    mean, sd = of_a_return(values, scale, series.middle, 0.02, 11)
    assert answer.settled
    assert np.max(np.abs(answer.mean("rate") - mean) / sd) < 0.02
    assert np.max(np.abs(answer.sd("rate") / sd - 1.0)) < 0.02
    # Another share of jumps would be seen.
    straight, _ = of_a_return(values, scale, series.middle, 0.2, 5)
    assert np.max(np.abs(straight - mean) / sd) > 0.04


@pytest.mark.audit
@pytest.mark.parametrize("name", ["trend", "season", "trend and season"])
def test_answers_agree_with_a_long_chain(name: str) -> None:
    """Elliptical slices of whitened paths and Metropolis' steps of hyperparameters: 12 counts of some 40."""
    law, values, scale = LAWS[name], counts(12, 40.0, 6), 3.0
    series = series_of(values, scale)
    answer = ordered_distribution(series, "rate", Line.LOGARITHM, law)
    prior, rng = location_prior(Line.LOGARITHM, series.middle), np.random.default_rng(7)
    x = np.linspace(-6.0, 8.0, 2801)
    log_l = np.log(np.maximum(likelihoods(values, scale, x), 1e-300))

    def log_likelihood(z: Floats, theta: Floats) -> float:
        path = series.middle + np.linalg.cholesky(law.covariance(theta, 12, prior)) @ z
        place = (path + 6.0) / (x[1] - x[0])
        low = np.clip(place.astype(int), 0, len(x) - 2)
        rows = np.arange(12)
        return float(np.sum(log_l[rows, low] + (place - low) * (log_l[rows, low + 1] - log_l[rows, low])))

    theta, z = theta_of(law), np.zeros(12)
    here, kept = log_likelihood(z, theta), []
    for turn in range(60_000):
        other, bound = rng.standard_normal(12), here + np.log(rng.random())
        angle = rng.uniform(0.0, 2.0 * np.pi)
        low, high = angle - 2.0 * np.pi, angle
        while True:
            moved = z * np.cos(angle) + other * np.sin(angle)
            value = log_likelihood(moved, theta)
            if value > bound:
                break
            low, high = (angle, high) if angle < 0.0 else (low, angle)
            angle = rng.uniform(low, high)
        z, here = moved, value
        tried = theta + 0.8 * rng.standard_normal(len(theta))
        if law.is_possible(tried):
            value = log_likelihood(z, tried)
            if np.log(rng.random()) < value + law.log_prior(tried) - here - law.log_prior(theta):
                theta, here = tried, value
        if turn >= 2_000:
            kept.append(series.middle + np.linalg.cholesky(law.covariance(theta, 12, prior)) @ z)
    rate = np.exp(np.array(kept))
    batches = np.mean(rate.reshape(50, -1, 12), axis=1)
    error = np.std(batches, axis=0) / 50**0.5
    sd = np.std(rate, axis=0)
    assert np.max(error / sd) < 0.03
    assert np.all(np.abs(answer.mean("rate") - rate.mean(axis=0)) < 6.0 * error + 0.03 * sd)
    assert np.max(np.abs(answer.sd("rate") / sd - 1.0)) < 0.08

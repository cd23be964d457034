"""Evidence under latent scales: gradients, and against rows drawn from the prior by an independent route."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import integrate, stats

from suffice.pipeline.math.distributions import spread_deviations, spread_scales
from suffice.pipeline.math.engines.multivariate.evidence import MomentState, OutcomeNoise, RegressionEvidence
from suffice.pipeline.math.engines.multivariate.exact_moments import (
    SpreadNormalEvidence,
    SpreadRegressionEvidence,
)
from suffice.pipeline.math.engines.multivariate.log_posterior import LatentN, LatentTarget
from suffice.pipeline.math.engines.multivariate.shared_target import SharedTarget
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from support.slopes import assert_gradient

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.multivariate.evidence import Evidence

    Floats = NDArray[np.float64]


def target_of(*, linear: bool, regression: bool, fixed: bool, rng: np.random.Generator) -> LatentTarget:
    """Three columns in coordinates relative to their scales, far from the kinks."""
    evidence: SpreadNormalEvidence | SpreadRegressionEvidence
    if regression:
        size = 2 + int(linear)
        evidence = SpreadRegressionEvidence(
            loc=rng.normal(size=size), root=rng.normal(size=(size, size)), outcome=1.2, linear=linear
        )
    else:
        evidence = SpreadNormalEvidence(
            loc=rng.normal(size=2) / 3 * linear,
            half_range=np.array([1.0, 0.7]),
            concentration=0.8,
            linear=linear,
        )
    return LatentTarget(
        size=3,
        linear=linear,
        evidence=(evidence,),
        latent_n=LatentN(
            lowest=30.0 if fixed else 4.5, highest=30.0 if fixed else 1e6, reciprocal=True, fixed=fixed
        ),
        scaled=NoisyTotals(
            coefficients=rng.normal(size=(10, 10)) / 10,
            values=1e4 * rng.choice([-1.0, 1.0], size=(2, 10)),
            scale=np.ones(10),
        ),
        relative=rng.uniform(size=(3, 3, 2)),
        units=rng.uniform(0.2, 1.0, size=(3, 2)),
    )


@pytest.mark.parametrize(
    ("linear", "regression", "fixed"), list(itertools.product([True, False], [True, False], [True, False]))
)
def test_the_gradient_is_that_of_the_density(linear: bool, regression: bool, fixed: bool) -> None:
    rng = np.random.default_rng(7)
    target = target_of(linear=linear, regression=regression, fixed=fixed, rng=rng)
    x = rng.normal(size=(target.n_coordinates, 4)) * 0.3
    if not fixed:
        x[0] -= 9
    _, gradient = target(x)
    assert_gradient(lambda x: target(x)[0], x, gradient)
    state = replace(target, evidence=()).state(x)
    found = target.coordinates(np.broadcast_to(state.n, 4), state.mean, state.spread)
    assert found == pytest.approx(x[: len(found)], abs=1e-8)


@pytest.mark.parametrize(
    ("linear", "data_sets", "stated"), list(itertools.product([True, False], [1, 2], [True, False]))
)
def test_an_outcomes_coordinates_keep_the_gradient(linear: bool, data_sets: int, stated: bool) -> None:
    """Under the spread prior and under stated ones, the same for several data sets."""
    rng, targets = np.random.default_rng(7), []
    shared: tuple[Evidence, ...] = target_of(linear=linear, regression=True, fixed=False, rng=rng).evidence
    if stated:
        k = 2 + int(linear)
        root = rng.normal(size=(k, k))
        one_of_all = RegressionEvidence(
            loc=rng.normal(size=k),
            precision=root @ root.T + np.eye(k),
            concentration=3.0,
            scale=0.2,
            linear=linear,
        )
        shared = (one_of_all,)
    for _ in range(data_sets):
        one = target_of(linear=linear, regression=False, fixed=False, rng=rng)
        outcome = OutcomeNoise(
            rows=rng.uniform(5.0, 10.0, 2),
            noise=rng.uniform(0.1, 1.0, (2, 2)),
            noise_of_mean=rng.uniform(0.1, 1.0, 2),
            most=rng.uniform(0.5, 1.0, 2),
        )
        targets.append(replace(one, outcome=outcome))
    target = SharedTarget(targets=tuple(targets), shared=shared)
    size = targets[0].n_coordinates
    x = rng.normal(size=(data_sets * size + (not stated), 4)) * 0.3
    x[: data_sets * size : size] -= 9
    _, gradient = target(x)
    assert_gradient(lambda x: target(x)[0], x, gradient)
    (evidence,) = shared
    assert isinstance(evidence, RegressionEvidence | SpreadRegressionEvidence)
    squares = np.repeat(evidence.squares()[:, None], 4, axis=1)
    state = targets[0].state(x[:size], squares)
    found = targets[0].coordinates(state.n, state.mean, state.spread, squares)
    assert found == pytest.approx(x[: len(found)], abs=1e-8)


@pytest.mark.slow
def test_coordinates_of_an_outcome_are_white_given_the_scales() -> None:
    """Over eight decades of scales, against draws of coefficients and rows, and the noise on products.

    Of 40,000 draws covariances err by .0065, and fifteen times that is allowed for.
    """
    rng, draws = np.random.default_rng(), 40_000
    noise, noise_of_mean, most = np.array([0.003, 0.001]), 0.02, 0.7
    inside = OutcomeNoise(
        rows=np.full(1, 400.0),
        noise=noise[:, None],
        noise_of_mean=np.full(1, noise_of_mean),
        most=np.full(1, most),
    )
    root = np.array([[0.1, 0.0, 0.0], [0.2, 0.15, 0.0], [0.0, 0.0, 0.05]])
    mean = np.array([0.3, -0.2, 0.0])
    for t in (1e-8, 1e-3, 1.0):
        squares = np.array([t, 1e-4, 0.1])
        beta = np.sqrt(squares) * rng.standard_normal((draws, 3))
        drawn = np.column_stack([beta[:, :2] @ root[:2, :2], beta[:, :2] @ mean[:2] + beta[:, 2]])
        drawn += 0.05 / 20.0 * rng.standard_normal((draws, 3))
        # What is seen: products and the average with noise, and the size of the entries.
        seen = np.zeros((5, 3))
        seen[:2, :2], seen[2, 2], seen[3:, :2] = root[:2, :2], 1.0, np.eye(2)
        errors = np.diag([*noise**2, noise_of_mean**2, most**2, most**2])
        prior = np.cov(drawn.T)
        gain = prior @ seen.T @ np.linalg.inv(seen @ prior @ seen.T + errors)
        left = prior - gain @ seen @ prior
        found = inside.given(root[:, :, None], mean[:, None], squares[:, None])
        upper = found.lower[:, :, 0].T
        assert upper @ left @ upper.T == pytest.approx(np.eye(3), abs=0.1)
        assert found.entries(found.coordinates(drawn.T)) == pytest.approx(drawn.T)


def state_of(rows: Floats) -> MomentState:
    """Return the moments of one data set."""
    mean = rows.mean(axis=0)
    second = rows.T @ rows / len(rows)
    return MomentState(
        n=np.array([float(len(rows))]),
        mean=mean[:, None],
        spread=(second - np.outer(mean, mean))[:, :, None],
        second=second[:, :, None],
    )


@pytest.mark.parametrize("linear", [True, False])
def test_the_evidence_of_one_column_is_the_integral_over_mean_variance_and_scale(linear: bool) -> None:
    """Ratios between data sets of one N, by quadrature of the stated prior. The control: wider means."""
    rng = np.random.default_rng(7)
    sets = [
        state_of(scale * rng.normal(mean, 1.0, (40, 1))) for mean, scale in ((0, 0.3), (4, 0.05), (2, 0.3))
    ]
    evidence = SpreadNormalEvidence(loc=np.zeros(1), half_range=np.ones(1), concentration=0.5, linear=linear)

    def integrated(state: MomentState) -> float:
        """The evidence over its latent scales on a grid."""
        sides = [np.linspace(-44.0, 28.0, 721)] + ([np.linspace(-8.0, 3.0, 441)] if linear else [])
        grid = np.stack([side.ravel() for side in np.meshgrid(*sides, indexing="ij")])
        repeated = MomentState(
            n=np.repeat(state.n, grid.shape[1]),
            mean=np.repeat(state.mean, grid.shape[1], axis=1),
            spread=np.repeat(state.spread, grid.shape[1], axis=2),
            second=np.repeat(state.second, grid.shape[1], axis=2),
        )
        value = evidence(repeated, grid)[0]
        return float(np.log(np.sum(np.exp(value - value.max()))) + value.max())

    def stated(state: MomentState, prior_sd: float) -> float:
        """The density of the rows, over mean, variance and scale."""
        n, second, mean = (float(part.ravel()[0]) for part in (state.n, state.second, state.mean))
        log_s = np.linspace(-24.0, 8.0, 1281)
        weight = np.exp(spread_deviations.log_density(np.exp(log_s / 2.0), np.log))
        s = np.exp(log_s)
        likelihood = -n / 2 * log_s - n * second / 2 / s
        if linear:
            # Rows about a normal mean: their average is normal about 0 with the sum of both variances.
            spread = second - mean**2
            likelihood = -(n - 1) / 2 * log_s - n * spread / 2 / s - np.log(n) / 2
            likelihood = likelihood + stats.norm.logpdf(mean, 0.0, np.sqrt(prior_sd**2 + s / n))
        return float(np.log(integrate.trapezoid(np.exp(likelihood) * weight, log_s)))

    found = np.array([integrated(state) for state in sets])
    exact = np.array([stated(state, 0.5) for state in sets])
    assert found - found[0] == pytest.approx(exact - exact[0], abs=0.06)
    if linear:
        wrong = np.array([stated(state, 2.0) for state in sets])
        assert found - found[0] != pytest.approx(wrong - wrong[0], abs=0.2)


def test_the_evidence_of_a_regression_is_that_of_conjugate_ones_averaged() -> None:
    """Scale by scale it is Student's t of the rows, but for one constant of all rows and scales."""
    rng = np.random.default_rng(7)
    draws, x = 2000, np.linspace(-0.5, 0.8, 8)
    outcomes = [0.4 * x + 0.1 * rng.standard_normal(8), 0.5 + 0.01 * rng.standard_normal(8)]
    v = spread_scales.sample((draws,), rng)
    design = np.column_stack([x, np.ones(8)])
    root = np.linalg.cholesky(np.eye(8) + np.einsum("ik,b,jk->bij", design, 1.0 / v, design))
    log_determinant = 2.0 * np.log(np.einsum("bii->bi", root)).sum(axis=1)
    evidence = SpreadRegressionEvidence(loc=np.zeros(2), root=np.eye(2), outcome=1.0, linear=True)
    latent = spread_scales.coordinate(np.log(v))[None]
    logs, _, log_prior, _ = spread_scales.log_scale(latent)
    found = []
    for y in outcomes:
        solved = np.linalg.solve(root, np.broadcast_to(y, (draws, 8))[:, :, None])[:, :, 0]
        # Student's t of six degrees of freedom, v its squared scale.
        ratio = np.sum(solved**2, axis=1) / (4.0 * v)
        likelihood = -log_determinant / 2.0 - 4.0 * np.log(v) - 7.0 * np.log1p(ratio)
        one = state_of(np.column_stack([x, y]))
        state = MomentState(
            n=np.repeat(one.n, draws),
            mean=np.repeat(one.mean, draws, axis=1),
            spread=np.repeat(one.spread, draws, axis=2),
            second=np.repeat(one.second, draws, axis=2),
        )
        value = evidence(state, latent)[0] - log_prior.sum(axis=0)
        found.append(likelihood - value)
    # Draw by draw the two differ by a constant, the same for both data sets.
    inside = (logs[0] > 0.2 - spread_scales.RANGE) & (logs[0] < -0.2)
    assert found[0][inside] == pytest.approx(found[1][inside], abs=1e-6)
    assert np.ptp(found[0][inside]) < 1e-6


def test_scales_are_drawn_from_their_density() -> None:
    """Shares below five scales, each to six standard errors: 2e-8 together; the control has no even part."""
    rng, draws = np.random.default_rng(), 100_000
    drawn = np.log(spread_scales.sample((draws,), rng))
    assert -spread_scales.RANGE <= drawn.min() <= drawn.max() <= 0.0
    for end in (-16.0, -9.0, -4.0, -1.0, -0.1):
        u = np.linspace(-spread_scales.RANGE, end, 20_001)
        share = integrate.trapezoid(spread_scales.density(u, np.exp), u)
        assert np.mean(drawn < end) == pytest.approx(share, abs=6 * np.sqrt(share * (1 - share) / draws))
    assert np.mean(drawn < -9.0) != pytest.approx(np.exp(-4.5), abs=0.05)
    x = np.linspace(-60.0, 40.0, 200_001)
    assert integrate.trapezoid(np.exp(spread_scales.log_scale(x)[2]), x) == pytest.approx(1.0, abs=1e-6)

"""Covariates of pooled cells: beside a brute force over everything, and beside chains of another sampler."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import exp1, expit, gammaln
from scipy.stats import norm

from suffice.errors import UsageError
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled import regression
from suffice.pipeline.math.engines.pooled.cells import Nodes
from suffice.pipeline.math.engines.pooled.count_cells import CountCells
from suffice.pipeline.math.engines.pooled.normal import NormalPopulation
from suffice.pipeline.math.engines.pooled.populations import POPULATIONS
from suffice.pipeline.math.engines.pooled.regression import regressed
from suffice.pipeline.math.engines.pooled.regression_distribution import regression_distribution
from suffice.pipeline.math.priors.record_count import Reciprocal

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.cells import Focus
    from suffice.typing import Cells, Floats

N_PRIOR = Reciprocal(10**12)
TRUE, FALSE = np.array([3.0, 14.0, 40.0, 9.0]), np.array([25.0, 20.0, 160.0, 60.0])
COVARIATE = np.array([-1.1, 1.4, 0.3, -0.6])
SCALE = 2.0


def counts(values: Any, scale: float) -> NoisyCount:
    return NoisyCount(values=values.astype(np.float64)[:, None], scales=np.array([scale]))


def four_cells() -> CountCells:
    return CountCells(true=counts(TRUE, SCALE), false=counts(FALSE, SCALE), n_prior=N_PRIOR)


@dataclasses.dataclass(frozen=True)
class Normals:
    """Cells whose likelihoods are normal, of sizes that are not told: what is known of them is elementary."""

    centre: Floats
    sd: Floats
    has_sizes: bool = False
    middle: float = 0.0

    @property
    def n_cells(self) -> int:
        return len(self.centre)

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        from suffice.pipeline.math.engines.pooled.cells import nodes_of_positions

        x, log_dx = nodes_of_positions(self.centre[cells], self.sd[cells], focus, (-60.0, 60.0))
        log_weight = -0.5 * ((x - self.centre[cells, None]) / self.sd[cells, None]) ** 2
        return Nodes.of(x, log_dx, np.zeros((len(cells), 1)), log_weight[:, :, None])


class Brute:
    """Even grids of everything, without a slope on size; sums over latent counts one by one."""

    def __init__(self) -> None:
        self.x = np.linspace(-12.0, 8.0, 241)
        mean, latent = np.exp(np.linspace(-9.0, 6.4, 50)), np.arange(350.0)
        prior = np.exp(mean) * exp1(mean) * mean

        def of_count(means: Floats, released: float) -> Floats:
            log_p = latent * np.log(means[..., None]) - means[..., None] - gammaln(latent + 1.0)
            return np.exp(log_p) @ np.exp(-np.abs(released - latent) / SCALE)

        self.likelihood = np.array(
            [
                np.sum(
                    of_count(mean * expit(self.x)[:, None], true)
                    * of_count(mean * expit(-self.x)[:, None], false)
                    * prior,
                    axis=1,
                )
                for true, false in zip(TRUE, FALSE, strict=True)
            ]
        )

    def answer(self, name: str) -> tuple[Floats, Floats, float, float, float]:
        """Means and sds of probabilities, the mean and sd of the coefficient, and the mean spread."""
        x, location = self.x, np.linspace(-9.0, 7.0, 161)
        beta = np.linspace(-4.0, 4.0, 81)
        m = np.linspace(-6.0, 4.0, 61)
        posterior = np.zeros((4, len(x)))
        total, first, second, of_spread = 0.0, 0.0, 0.0, 0.0
        shift = m[:, None, None] + beta[:, None] * COVARIATE
        for s in (np.arange(22) + 0.5) * 0.16:
            density = norm.pdf(x, location[:, None], s)
            if name == "contaminated":
                density = 0.95 * density + 0.05 * norm.pdf(x, location[:, None], np.hypot(s, 2.0))
            log_z = np.log(np.maximum(self.likelihood @ density.T, 1e-300))
            z = np.exp([np.interp(shift[:, :, c], location, log_z[c]) for c in range(4)])
            weight = (
                np.prod(z, axis=0) * np.exp(-0.5 * s**2 - 0.5 * beta**2) * (expit(m) * expit(-m))[:, None]
            )
            total += float(np.sum(weight))
            first += float(np.sum(weight * beta))
            second += float(np.sum(weight * beta**2))
            of_spread += float(np.sum(weight)) * float(s)
            for c in range(4):
                place = (shift[:, :, c] - location[0]) / (location[1] - location[0])
                low = np.clip(place.astype(int), 0, len(location) - 2)
                share = np.clip(place - low, 0.0, 1.0)
                ratio = weight / z[c]
                on = np.bincount(low.ravel(), (ratio * (1.0 - share)).ravel(), len(location))
                on += np.bincount(low.ravel() + 1, (ratio * share).ravel(), len(location))
                posterior[c] += self.likelihood[c] * (on @ density)
        posterior /= np.sum(posterior, axis=1, keepdims=True)
        mean = posterior @ expit(x)
        sd = np.sqrt(posterior @ expit(x) ** 2 - mean**2)
        of_beta = first / total
        return mean, sd, of_beta, float(np.sqrt(second / total - of_beta**2)), of_spread / total


@dataclasses.dataclass(frozen=True)
class WithoutSizes:
    """The same cells, whose sizes are not told."""

    cells: CountCells
    has_sizes: bool = False

    @property
    def n_cells(self) -> int:
        return self.cells.n_cells

    @property
    def middle(self) -> float:
        return self.cells.middle

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        nodes = self.cells.nodes(cells, focus)
        return dataclasses.replace(nodes, log_size=np.zeros_like(nodes.log_size))


@pytest.fixture(scope="module")
def brute() -> Brute:
    return Brute()


@pytest.mark.parametrize("name", ["contaminated", "logit-normal"])
def test_four_cells_with_a_covariate_are_as_a_brute_force_over_everything_has_them(
    name: str, brute: Brute
) -> None:
    """Some thousand draws count: errors are 2 % of a standard deviation."""
    population = POPULATIONS[Line.LOGIT][name]
    answer = regression_distribution(
        WithoutSizes(four_cells()), population, "probability", Line.LOGIT, COVARIATE[:, None]
    )
    mean, sd, of_beta, beta_sd, spread = brute.answer(name)
    hyper = answer.hyperparameters
    beta = hyper.coefficients[..., 0]
    assert hyper.mean(beta) == pytest.approx(of_beta, abs=0.05 * beta_sd)
    assert hyper.sd(beta) == pytest.approx(beta_sd, rel=0.04)
    assert hyper.mean(hyper.drawn_spread) == pytest.approx(spread, rel=0.04)
    assert np.max(np.abs(answer.mean("probability") - mean) / sd) < 0.04
    np.testing.assert_allclose(answer.sd("probability"), sd, rtol=0.03)
    # Control: a covariate that is forgotten is another answer.
    others = regression_distribution(
        WithoutSizes(four_cells()), population, "probability", Line.LOGIT, COVARIATE[::-1, None]
    )
    assert np.max(np.abs(others.mean("probability") - mean) / sd) > 0.1


def gibbs(cells: Normals, design: Floats, sweeps: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Chains of a Gibbs sampler of Fay and Herriot's model, Metropolis for the spread and the location."""
    y, v = cells.centre, cells.sd**2
    n, k = design.shape
    m, s, beta = 0.0, 0.5, np.zeros(k)
    kept: dict[str, list[Any]] = {"x": [], "beta": [], "s": [], "m": []}
    for sweep in range(sweeps):
        location = m + design @ beta
        precision = 1.0 / v + 1.0 / s**2
        x = (y / v + location / s**2) / precision + rng.normal(size=n) / np.sqrt(precision)
        a = design.T @ design / s**2 + np.eye(k)
        root = np.linalg.cholesky(np.linalg.inv(a))
        beta = np.linalg.solve(a, design.T @ (x - m) / s**2) + root @ rng.normal(size=k)
        for _ in range(3):
            left = x - design @ beta
            tried = m + 0.2 * rng.normal()

            def of_m(value: float, left: Floats = left, s: float = s) -> float:
                return float(-0.5 * np.sum((left - value) ** 2) / s**2 - 2.0 * np.log(np.cosh(value / 2.0)))

            m = tried if np.log(rng.random()) < of_m(tried) - of_m(m) else m
            # The spread with positions integrated out, so that it moves.
            wanted = s * np.exp(0.3 * rng.normal())

            def of_s(value: float, m: float = m, beta: Floats = beta) -> float:
                total = v + value**2
                gap = y - m - design @ beta
                return float(-0.5 * np.sum(np.log(total) + gap**2 / total) - 0.5 * value**2 + np.log(value))

            if np.log(rng.random()) < of_s(wanted) - of_s(s):
                s = wanted
                precision = 1.0 / v + 1.0 / s**2
                x = (y / v + (m + design @ beta) / s**2) / precision + rng.normal(size=n) / np.sqrt(precision)
        if sweep >= sweeps // 10:
            for name, value in (("x", x), ("beta", beta), ("s", s), ("m", m)):
                kept[name].append(np.copy(value))
    return {name: np.array(values) for name, values in kept.items()}


def thirty_cells() -> tuple[Normals, Floats]:
    rng = np.random.default_rng(8)
    design = rng.normal(size=(30, 3))
    design[:, 2] = design[:, 2] > 0.0
    design -= np.mean(design, axis=0)
    x = -0.8 + design @ np.array([0.7, 0.0, -0.5]) + rng.normal(0.0, 0.35, 30)
    sd = rng.uniform(0.2, 0.8, 30)
    return Normals(x + sd * rng.normal(size=30), sd), design


@pytest.mark.slow
def test_three_covariates_are_as_long_chains_of_a_gibbs_sampler_have_them() -> None:
    """Errors of 6,300 sweeps and of some thousand draws are each a few hundredths of a standard deviation."""
    cells, design = thirty_cells()
    population = POPULATIONS[Line.LOGIT]["logit-normal"]
    answer = regression_distribution(cells, population, "probability", Line.LOGIT, design)
    chains = gibbs(cells, design, 7000, np.random.default_rng(2))
    hyper = answer.hyperparameters
    for place in range(3):
        values, drawn = hyper.coefficients[..., place], chains["beta"][:, place]
        assert hyper.mean(values) == pytest.approx(float(np.mean(drawn)), abs=0.12 * float(np.std(drawn)))
        assert hyper.sd(values) == pytest.approx(float(np.std(drawn)), rel=0.08)
    assert hyper.mean(hyper.drawn_spread) == pytest.approx(float(np.mean(chains["s"])), rel=0.07)
    p = expit(chains["x"])
    assert np.max(np.abs(answer.mean("probability") - p.mean(axis=0)) / p.std(axis=0)) < 0.15
    np.testing.assert_allclose(answer.sd("probability"), p.std(axis=0), rtol=0.12)
    ends = answer.quantiles("probability", (0.05, 0.95), 0, np.random.default_rng(0))
    np.testing.assert_allclose(
        ends[:, 1] - ends[:, 0], np.ptp(np.quantile(p, (0.05, 0.95), axis=0), axis=0), rtol=0.15
    )
    # A share of the cell's own is between that of the largest and of the smallest noise.
    assert np.corrcoef(answer.own_share, cells.sd)[0, 1] < -0.9


def test_joint_draws_are_of_the_same_posterior_and_share_coefficients() -> None:
    cells, design = thirty_cells()
    population = POPULATIONS[Line.LOGIT]["contaminated"]
    answer = regression_distribution(cells, population, "probability", Line.LOGIT, design)
    drawn = answer.sample(4000, np.random.default_rng(1))["probability"]
    gap = (drawn.mean(axis=0) - answer.mean("probability")) / answer.sd("probability")
    # 256 sets of hyperparameters, at even distances of their weights.
    assert np.max(np.abs(gap)) < 0.3
    np.testing.assert_allclose(drawn.std(axis=0), answer.sd("probability"), rtol=0.2)
    again = answer.sample(4000, np.random.default_rng(1))["probability"]
    np.testing.assert_array_equal(drawn, again)


class Immovable(NormalPopulation):
    """A population that is not told to be a location family."""

    slope = False


def test_positions_less_what_covariates_explain_give_the_same_answer() -> None:
    cells, design = thirty_cells()
    answers = [
        regression_distribution(cells, population, "probability", Line.LOGIT, design)
        for population in (POPULATIONS[Line.LOGIT]["logit-normal"], Immovable("logit-normal"))
    ]
    moved, fixed = answers
    assert np.linalg.norm(moved.hyperparameters.centre) > 0.3
    assert np.linalg.norm(fixed.hyperparameters.centre) == 0.0
    gap = (moved.mean("probability") - fixed.mean("probability")) / fixed.sd("probability")
    assert np.max(np.abs(gap)) < 0.02
    np.testing.assert_allclose(moved.sd("probability"), fixed.sd("probability"), rtol=0.02)


def test_weights_that_are_not_to_be_relied_on_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cells, design = thirty_cells()
    population = POPULATIONS[Line.LOGIT]["logit-normal"]
    monkeypatch.setattr(regression, "FEWEST_EFFECTIVE", 1e7)
    with pytest.raises(UsageError, match="no method here is reliable with these covariates"):
        regressed(cells, population, Line.LOGIT, design)

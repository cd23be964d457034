"""Calibrations over releases: verdicts err as seldom as they say, and releases are simulated as they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import norm

import suffice
from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing.pooled_posterior import pooled_posterior
from suffice.pipeline.ask.calibration.pooled_calibration import Covered, Share, calibrate_pooled, check_pooled
from suffice.pipeline.ask.calibration.verdict import CALIBRATED, CANNOT_TELL, NOT_CALIBRATED
from suffice.pipeline.ask.inference.posterior_terms import BY_EVIDENCE, NOISE_AWARE, PosteriorTerms
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from support.entries import entry_of
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.ask.calibration.pooled_calibration import PooledCalibration
    from suffice.pipeline.math.engines.pooled.distribution import PooledDistribution
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

CELLS = 60
BERNOULLI = entry_of("bernoulli", {"family": "bernoulli", "column": "x"})


def released(n_cells: int, seed: int = 1) -> NoisyStatistic:
    rng = np.random.default_rng(seed)
    plan = statistic_plan(BERNOULLI, epsilon="1", public_n=False)
    size = rng.integers(20, 200, n_cells)
    true = rng.binomial(size, rng.beta(4.0, 16.0, n_cells))
    counts = np.stack([size - true, true], axis=1)
    return noisy_statistic(plan, counts + discrete_laplace(plan.scale, counts.shape, rng))


def calibrated(statistic: NoisyStatistic, pooled: Any = True, **asked: Any) -> PooledCalibration:
    asked = {"prior": None, "n_prior": None, "releases": 2, "progress": None, **asked}
    return calibrate_pooled(statistic, BERNOULLI, pooled, rng=np.random.default_rng(7), **asked)


def verdicts(mean: float, times: int, releases: int = 100) -> dict[str, float]:
    """Shares of conclusions where releases cover so much on average, and vary as those of 100 cells do."""
    rng = np.random.default_rng(33)
    # Of cells that share hyperparameters: more spread than a binomial share of as many.
    together = rng.beta(60.0 * mean, 60.0 * (1.0 - mean), (times, releases))
    every = rng.binomial(CELLS, together) / CELLS
    small = rng.binomial(CELLS // 3, together) / (CELLS // 3)
    said = [
        Covered(every=row, small=least, n_cells=CELLS, n_small=CELLS // 3).judged()[0]
        for row, least in zip(every, small, strict=True)
    ]
    return {each: said.count(each) / times for each in (CALIBRATED, NOT_CALIBRATED, CANNOT_TELL)}


@pytest.mark.slow
def test_verdicts_err_as_seldom_as_they_say() -> None:
    """At a bar: called not calibrated in at most 1 of 1,000, so that 20 of 3,000 have a chance of 1e-9.

    *Calibrated* is wrong there in at most 1 of 100: 70 of 3,000 have a chance of 1e-9. Release coverages are
    skewed, so that Student's distribution is an approximation, which this tests.
    """
    at_a_bar = verdicts(0.93, 3000)
    assert at_a_bar[NOT_CALIBRATED] < 20 / 3000
    assert at_a_bar[CALIBRATED] < 70 / 3000
    assert verdicts(0.95, 300)[NOT_CALIBRATED] == 0.0
    assert verdicts(0.95, 300, releases=300)[CALIBRATED] > 0.9
    # Controls that must fail: too narrow, and far too wide.
    assert verdicts(0.88, 300)[NOT_CALIBRATED] > 0.9
    assert verdicts(0.995, 300)[NOT_CALIBRATED] > 0.9


def test_few_releases_that_are_all_alike_tell_nothing() -> None:
    alike = Covered(every=np.ones(12), small=np.ones(12), n_cells=3, n_small=1)
    assert alike.judged()[0] == CANNOT_TELL
    few = Covered(every=np.zeros(5), small=np.zeros(5), n_cells=50, n_small=16)
    assert few.judged() == (CANNOT_TELL, "fewer than 10 releases tell nothing")


def test_the_worst_tenth_has_the_standard_error_that_repetitions_have() -> None:
    rng = np.random.default_rng(4)
    worst = [Share.of_worst(rng.beta(38.0, 2.0, 200)) for _ in range(400)]
    seen = np.std([each.share for each in worst])
    assert np.mean([each.standard_error for each in worst]) == pytest.approx(seen, rel=0.25)


@pytest.mark.slow
def test_cells_are_drawn_from_the_population_and_moved_by_their_size() -> None:
    """By the bound of Dvoretzky, Kiefer, Wolfowitz and Massart at 1e-9; half of the spread is seen."""
    statistic = released(30)
    answer = pooled_posterior(statistic, PosteriorTerms(), "logit-normal", lambda: posterior_of(statistic))
    (pool,) = answer.distribution.pools  # type: ignore[attr-defined]
    fixed: PooledDistribution = pool.plug_in()
    hyper, n = fixed.hyperparameters, 20_000
    # Between knots populations are mixtures.
    log_size = np.repeat([hyper.grid.knots[0], hyper.grid.knots[-1]], n // 2)
    drawn = np.log(fixed.population_draws(log_size, np.random.default_rng(2)))
    drawn -= np.log1p(-np.exp(drawn))
    larger = log_size - hyper.grid.origin
    z = drawn - float(hyper.slope[0]) * larger - float(hyper.location[0, 0])
    spread = float(hyper.spread[0, 0]) * np.exp(float(hyper.spread_slope[0, 0]) * larger)
    z = np.sort(z / spread)
    farthest = float(np.sqrt(np.log(2.0 / 1e-9) / (2.0 * n)))
    places = np.arange(1, n + 1) / n
    assert np.max(np.abs(norm.cdf(z) - places)) < farthest
    assert np.max(np.abs(norm.cdf(2.0 * z) - places)) > farthest


@pytest.mark.slow
def test_hyperparameters_that_are_fixed_make_intervals_narrower() -> None:
    statistic = released(12)
    answer = pooled_posterior(statistic, PosteriorTerms(), "logit-normal", lambda: posterior_of(statistic))
    (pool,) = answer.distribution.pools  # type: ignore[attr-defined]
    widths = [
        np.diff(each.quantiles("probability", (0.025, 0.975), 0, np.random.default_rng(0)))
        for each in (pool.plug_in(), pool)
    ]
    # What hyperparameters add is a variance, so that squares are averaged.
    fixed, integrated = (float(np.sqrt(np.mean(each**2))) for each in widths)
    assert fixed < 0.97 * integrated


@pytest.mark.audit
def test_a_calibration_says_what_was_simulated() -> None:
    statistic = released(8)
    answer = calibrated(statistic)
    assert (answer.cells, answer.releases, answer.conclusion) == (8, 2, CANNOT_TELL)
    assert answer.truths == "the population as this release has it"
    assert answer.sizes == "the noisy numbers of records, at least 1"
    assert answer.population == "contaminated"
    assert 0.4 < answer.covered.share <= 1.0
    assert answer.control.share <= answer.covered.share
    stated = calibrated(statistic, "logit-normal", prior="Beta(4, 16)", n_prior="Uniform(0, 300)")
    assert (stated.truths, stated.sizes, stated.n_prior) == (
        "Beta(4, 16)", "Uniform(0, 300)", "Uniform(0, 300)",
    )  # fmt: skip
    assert "control: 80 % intervals taken for 95 %" in str(stated)


@pytest.mark.slow
def test_what_is_not_simulated_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="no releases are simulated with over"):
        calibrated(released(4), suffice.Pooling(over="cell"))
    with pytest.raises(UsageError, match="simulations must be an integer above 0"):
        calibrated(released(4), releases=0)
    with pytest.raises(UsageError, match="worlds does not go with pooled"):
        check_pooled("x", NOISE_AWARE, BY_EVIDENCE, None, None, True)  # noqa: FBT003
    with pytest.raises(UsageError, match="method does not go with pooled"):
        check_pooled("x", "plug-in", BY_EVIDENCE, None, None, False)  # noqa: FBT003

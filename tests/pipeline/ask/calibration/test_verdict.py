"""The three verdicts: their chances of error, exactly, and what they are made of."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import betaincinv, ndtr, ndtri
from scipy.stats import binom, binomtest

from suffice.pipeline.ask.calibration.calibrate import Calibration, NoiseSeen
from suffice.pipeline.ask.calibration.verdict import (
    CALIBRATED,
    CANNOT_TELL,
    DRAWS,
    FALSE_ALARM,
    LEFT_OUT,
    MISS,
    NOT_CALIBRATED,
    PASSING,
    TOLERANCE,
    Ranks,
    judge,
    level_of,
    passing_chance,
    simulations_needed,
)
from suffice.pipeline.terms.declaration.documents import document
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

RANKS = DRAWS + 1


def ranks_of(counts: Sequence[int] | NDArray[Any], parameter: str = "rate") -> Ranks:
    return Ranks(parameter=parameter, category=None, counts=tuple(map(int, counts)))


def uniform(simulations: int, rng: np.random.Generator) -> Ranks:
    return ranks_of(rng.multinomial(simulations, np.full(RANKS, 1 / RANKS)))


def spread(levels: NDArray[np.float64]) -> Ranks:
    """Ranks that lie exactly as their distribution says, so that chance has no part in them."""
    return ranks_of(np.bincount((levels * RANKS).astype(int), minlength=RANKS))


def even(simulations: int) -> NDArray[np.float64]:
    return (np.arange(simulations) + 0.5) / simulations


def believing(noise: float, ratio: float) -> dict[float, float]:
    """Coverage of a normal posterior that believes a noise scale wrong, by noise over sampling variance."""
    too_narrow = np.sqrt((1.0 + noise**2 * ratio) / (1.0 + ratio))
    return {mass: float(1.0 - 2.0 * ndtr(-ndtri((1.0 + mass) / 2) * too_narrow)) for mass in LEFT_OUT}


def calibration(clipped: Ranks, unclipped: Ranks, *, share: float = 0.1, seconds: float = 1.0) -> Calibration:
    return Calibration(
        statistic="s",
        family="poisson",
        method="noise-aware",
        prior="Gamma(1, 1)",
        n_prior="5",
        predictor_prior=None,
        predictors=None,
        loss=PrivacyLoss.of_epsilon(Fraction(1)),
        simulations=clipped.simulations,
        seconds=seconds,
        clipped_share=share,
        clipped=(clipped,),
        unclipped=(unclipped,),
        noise=NoiseSeen(ignored=(unclipped,), variance_ratio=0.5, parameter="rate"),
    )


def test_a_calibration_says_its_measure() -> None:
    of_epsilon = calibration(uniform(50, np.random.default_rng(1)), uniform(50, np.random.default_rng(2)))
    of_rho = replace(of_epsilon, loss=PrivacyLoss.of_rho(Fraction(1, 50)))
    assert "rho 0.02" in str(of_rho)
    assert document(of_rho)["rho"] == "0.02"
    assert "epsilon" not in document(of_rho)
    assert "epsilon 1" in str(of_epsilon)
    assert "rho" not in document(of_epsilon)


def test_a_calibrated_posterior_of_one_parameter_passes_at_the_default_and_never_at_1000() -> None:
    assert passing_chance(1000) == 0.0
    assert passing_chance(5000) == pytest.approx(PASSING, abs=1e-4)
    assert [simulations_needed(parameters) for parameters in (1, 2, 10)] == [5000, 5800, 7600]


def test_the_exact_chance_is_that_of_the_verdict() -> None:
    """The nested binomials against 400 verdicts: a false alarm of 1e-7 each, by the exact binomial."""
    rng = np.random.default_rng()
    for simulations in (3000, 5000):
        passed = sum(judge((uniform(simulations, rng),)).conclusion == CALIBRATED for _ in range(400))
        least, most = binom.interval(1.0 - 1e-7, 400, passing_chance(simulations))
        assert least <= passed <= most


@pytest.mark.parametrize("simulations", [1, 20, 1000, 5000])
def test_calibrated_posteriors_are_called_otherwise_as_rarely_as_stated(simulations: int) -> None:
    """Of 1,000 calibrated runs at most 1 fails on average; 12 or more have a chance of 1e-9."""
    rng = np.random.default_rng()
    failed = sum(judge((uniform(simulations, rng),)).conclusion == NOT_CALIBRATED for _ in range(1000))
    assert failed < 12


def test_few_ranks_are_judged_by_their_coverage_alone() -> None:
    """Three calibrated ranks fall into one of 20 bins once in 400 runs; by a chi-square, once in 100,000."""
    three = ranks_of(3 * np.eye(RANKS, dtype=int)[100])
    assert three.rank_p_value < 2e-5
    assert judge((three,)).conclusion == CANNOT_TELL


@pytest.mark.parametrize("simulations", [5000, 10_000])
def test_a_posterior_just_outside_of_the_tolerance_is_called_calibrated_as_rarely_as_stated(
    simulations: int,
) -> None:
    """One coverage at the edge or beyond it, whatever the others."""
    for mass, tolerance in TOLERANCE.items():
        for edge in (mass - tolerance, mass + tolerance):
            true = {**{m: m for m in LEFT_OUT}, mass: edge}
            assert passing_chance(simulations, coverage=true) <= MISS / 2 / len(LEFT_OUT)


@pytest.mark.parametrize(("noise", "first_outside"), [(0.5, 0.22), (0.8, 0.61), (0.0, 0.155)])
def test_posteriors_that_believe_in_less_noise_are_not_called_calibrated(
    noise: float, first_outside: float
) -> None:
    """From which noise on a coverage is outside, and that the verdict then misses it with chance 1/100."""
    for ratio, is_outside in ((first_outside * 0.97, False), (first_outside * 1.03, True)):
        true = believing(noise, ratio)
        outside = any(abs(true[mass] - mass) > TOLERANCE[mass] for mass in LEFT_OUT)
        assert outside is is_outside
        if outside:
            assert all(passing_chance(n, coverage=true) < MISS for n in (1000, 5000))
    true = believing(noise, 4 * first_outside)
    counted = binom(5000, true[0.95]).ppf(0.999)
    assert binomtest(int(counted), 5000, 0.95).pvalue < FALSE_ALARM / 5


def test_intervals_too_narrow_too_wide_or_shifted_are_seen() -> None:
    levels, good = even(5000), spread(even(5000))
    for parameters in ((0.6, 0.6), (1.6, 1.6), (1.5, 1.0)):
        wrong = spread(betaincinv(*parameters, levels))
        assert judge((wrong,)).conclusion == NOT_CALIBRATED
        assert judge((good, wrong)).conclusion == NOT_CALIBRATED
        assert calibration(good, wrong).conclusion == CALIBRATED
        assert "fail as well" in calibration(wrong, wrong).reason
        assert "but for clipping" in calibration(wrong, good).reason
        assert "clipping" not in calibration(wrong, wrong, share=0.0).reason
    few = spread(even(1000))
    assert judge((few, few)).conclusion == CANNOT_TELL
    assert judge((few, few)).simulations_needed == 5800


def test_a_shift_that_keeps_the_coverage_is_seen_by_its_sides() -> None:
    """By .25 deviations: 95 % intervals cover 94.3 %, but 4.4 % of the truths are above and 1.4 % below."""
    shifted = spread(ndtr(ndtri(even(20_000)) + 0.25))
    assert all(abs(shifted.coverage(mass) - mass) < TOLERANCE[mass] / 2 for mass in LEFT_OUT)
    verdict = judge((shifted,))
    assert verdict.conclusion == NOT_CALIBRATED
    assert "too often on one side" in verdict.reason
    slightly = judge((spread(ndtr(ndtri(even(100_000)) * 1.02)),))
    assert slightly.conclusion == CALIBRATED
    assert "smaller differences are seen" in slightly.reason


def test_what_is_near_the_edge_needs_more_than_it_has() -> None:
    """Narrower by 4 or 5 %, within the tolerance: of 5,000 the one is not sure, the other seen to differ."""
    for factor, conclusion in ((1.04, CANNOT_TELL), (1.05, NOT_CALIBRATED)):
        verdict = judge((spread(ndtr(ndtri(even(5000)) * factor)),))
        assert verdict.conclusion == conclusion
        assert f"about {verdict.simulations_needed} simulations would tell" in verdict.reason
        assert 5000 < verdict.simulations_needed < 100_000
        enough = 2 * verdict.simulations_needed
        assert judge((spread(ndtr(ndtri(even(enough)) * factor)),)).conclusion == CALIBRATED


def test_intervals_are_clopper_pearson() -> None:
    for counts in ((0, 20), (20, 0), (13, 87), (4700, 300)):
        ranks = ranks_of([counts[1], *[0] * 99, counts[0], *[0] * 99])
        expected = binomtest(counts[0], sum(counts)).proportion_ci(1 - level_of(1), "exact")
        assert ranks.coverage_interval(0.95, level_of(1)) == pytest.approx((expected.low, expected.high))


def test_an_interval_leaves_out_the_ranks_of_its_mass() -> None:
    everything = ranks_of(np.ones(RANKS))
    for mass in LEFT_OUT:
        assert everything.coverage(mass) == pytest.approx(mass, abs=1e-12)
        assert everything.beyond(mass) == (LEFT_OUT[mass], LEFT_OUT[mass])
    for rank, coverage in ((0, 0.0), (4, 0.0), (5, 1.0), (194, 1.0), (195, 0.0)):
        assert ranks_of(np.eye(RANKS, dtype=int)[rank]).coverage(0.95) == coverage
    assert everything.histogram == (10,) * 20
    assert everything.rank_p_value == pytest.approx(1.0)
    none, last = (ranks_of(10 * np.eye(RANKS, dtype=int)[rank]) for rank in (0, 100))
    assert none.coverage_p_value(0.5) == pytest.approx(2 * 0.5**10)
    assert last.coverage_p_value(0.5) == pytest.approx(2 * 0.5**10)
    assert last.coverage_p_value(0.95) == 1.0


def test_everything_is_said() -> None:
    good, few = spread(even(5000)), spread(even(200))
    text = str(calibration(good, good))
    assert "calibrated: 50, 80 and 95 % intervals cover within 4.2, 3.4 and 1.84 points of nominal" in text
    assert "clipping: 10 % of the simulated records are clipped" in text
    assert "noise: cannot be seen (noise variance is 0.5 of sampling variance;" in text
    text = str(calibration(few, few, seconds=8.0))
    assert "cannot tell: too few simulations; with 5000 " in text
    assert "(about 3 minutes)" in text
    assert "noise: cannot tell" in text
    assert "about" not in str(calibration(few, few, seconds=0.1))
    written = document(calibration(few, good))
    assert {key: written[key] for key in ("conclusion", "simulations_needed", "false_alarm")} == {
        "conclusion": CANNOT_TELL,
        "simulations_needed": 5000,
        "false_alarm": FALSE_ALARM,
    }
    assert written["noise"]["conclusion"] == "cannot be seen"
    low, high = written["rows"][0]["intervals"]["coverage_95"]
    assert low < written["rows"][0]["coverage_95"] < high

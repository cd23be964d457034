"""Calibration of releases: the conclusion's false alarms, what it sees, its defaults and refusals."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import suffice
from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.calibration.calibrate import calibrate
from suffice.pipeline.ask.calibration.simulated_release import default_n_prior
from suffice.pipeline.ask.calibration.simulation import default_simulations, simulate
from suffice.pipeline.ask.calibration.verdict import CANNOT_TELL, NOT_CALIBRATED, judge, simulations_needed
from suffice.pipeline.ask.inference.posterior_terms import BY_EVIDENCE, IGNORED, MODELLED
from suffice.pipeline.math.priors.record_count import Fixed, Reciprocal, Uniform
from suffice.pipeline.terms.declaration.documents import document
from support.generative_models import generative_model_for
from support.noisy import noisy_statistic, statistic_plan
from support.releases import make_plan, public_n_plan, publish

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from suffice.pipeline.ask.calibration.simulated_release import GenerativeModel
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.spec.plan import Plan


@pytest.mark.parametrize("public_n", [False, True])
def test_noise_aware_posteriors_pass_and_plug_in_ones_of_few_rows_fail(public_n: bool) -> None:
    """The plug-in covers under 50 % where it says 95: 400 simulations pass with chance below 1e-40.

    A histogram of 400 ranks has such a chi square with chance 2.7e-8 (enumerated), a coverage with 1e-8.
    """
    for method, passes in (("noise-aware", True), ("plug-in", False)):
        generative_model = generative_model_for(
            "bernoulli", n=20, epsilon="0.1", public_n=public_n, method=method
        )
        (ranks,) = simulate(generative_model, 400, np.random.default_rng()).clipped
        assert (min(ranks.p_values()) > 1e-8) == passes


@pytest.mark.slow
def test_a_truth_at_a_point_of_its_prior_is_not_moved_off_it_by_clipping_that_nobody_feels() -> None:
    """A rate of 8 behind a bound of 30 is 8 but for 1e-10; its rank was the lowest, a third of the time.

    300 right simulations fail with chance 6e-7: each coverage has such a p-value with 1e-7, the histogram
    with 2.5e-7 (enumerated). Where a third of the ranks are the lowest
    they pass with chance below 1e-60, where a sixth is below 1e-12.
    """
    model = generative_model_for(
        "poisson", n=300, conditions=({"upper": "30"}, "Points({0.5: 0.3, 1: 0.3, 8: 0.4})")
    )
    (ranks,) = simulate(dataclasses.replace(model, clipping=IGNORED), 300, np.random.default_rng()).clipped
    assert min(ranks.p_values()) > 1e-7


@pytest.mark.slow
def test_data_sets_without_a_plug_in_posterior_are_left_out_of_the_comparison() -> None:
    """Noise may leave no variance, and a density that allows 0 then has no plug-in posterior.

    Of two or three records it leaves variance in about two thirds of data sets (390 of 600): in all of 36
    with chance 2e-7.
    """

    def model(sd: str) -> GenerativeModel:
        prior = f"Independent(mean=Normal(0, 1), sd={sd})"
        whole = generative_model_for(
            "normal", n=1, n_prior=Uniform(2, 3), conditions=({"lower": "-4", "upper": "4"}, prior)
        )
        return dataclasses.replace(whole, clipping=IGNORED)

    simulated = simulate(model("HalfNormal(2)"), 36, np.random.default_rng(), sees_noise=True)
    assert {ranks.simulations for ranks in simulated.clipped} == {36}
    assert {ranks.simulations for ranks in simulated.ignored} < {*range(1, 36)}
    assert np.all(np.isfinite(simulated.widening))
    # Records are the same on the lattice, and there is no noise.
    same = dataclasses.replace(model("HalfNormal(1e-12)"), scale=1e-3)
    with pytest.raises(PriorError, match="of none of 4 simulated releases is there a posterior"):
        simulate(same, 4, np.random.default_rng(), sees_noise=True)


def test_a_posterior_that_believes_in_a_quarter_of_the_noise_fails() -> None:
    """Its intervals cover 29, 53 and 75 % (10,000 simulations): 400 pass with chance 1e-20 by their ranks."""
    generative_model = generative_model_for("bernoulli", n=20, epsilon="0.1", public_n=True)
    mutant = dataclasses.replace(
        generative_model,
        plan=dataclasses.replace(generative_model.plan, scale=generative_model.plan.scale / 4),
    )
    (ranks,) = simulate(mutant, 400, np.random.default_rng()).clipped
    assert min(ranks.p_values()) < 1e-7


def test_clipping_alone_can_fail_a_calibration() -> None:
    """Rates of 3.3 on average behind a bound of 5, no noise: exact but for what the bound cut off.

    A false alarm of 5e-7 for three coverages and a histogram; the control's p-values are below 1e-300.
    """
    conditions = ({"upper": "5"}, "Gamma(40, 12)")
    generative_model = generative_model_for("poisson", n=500, method="plug-in", conditions=conditions)
    simulation = simulate(dataclasses.replace(generative_model, scale=1e-3), 500, np.random.default_rng())
    assert 0.05 < simulation.clipped_share < 0.5
    assert min(simulation.clipped[0].p_values()) < 1e-7
    assert min(simulation.unclipped[0].p_values()) > 1e-7


@pytest.mark.parametrize("mutant", ["noise-aware", "half of the noise", "plug-in"])
def test_one_or_twenty_simulations_call_nothing_calibrated(mutant: str) -> None:
    """Twenty can reject at most, whatever their ranks: the mutants' 95 % intervals cover 50 and 75 %."""
    method = "plug-in" if mutant == "plug-in" else "noise-aware"
    generative_model = generative_model_for("bernoulli", n=20, epsilon="0.1", method=method)
    if mutant == "half of the noise":
        generative_model = dataclasses.replace(generative_model, scale=generative_model.plan.scale * 2)
    run = simulate(generative_model, 20, np.random.default_rng(7)).clipped
    assert judge(run).conclusion in {CANNOT_TELL, NOT_CALIBRATED}
    assert judge(simulate(generative_model, 1, np.random.default_rng(8)).clipped).conclusion == CANNOT_TELL


@pytest.mark.slow
def test_the_noise_can_be_seen_where_it_matters() -> None:
    """Noise variance against sampling variance: 2 b^2 / 4 against n / 4 about probability 1/2.

    At epsilon 0.1 and 20 rows that is 10, so that 400 simulations reject a posterior that ignores it; at
    epsilon 1 and 10,000 rows it is 2e-4. The prior bounds what noise can add to the posterior. A verdict is
    wrong once in a thousand runs: of the second the p-values are asked instead, at 1e-7, which makes 5e-7 for
    three coverages and a histogram (enumerated). Squares of widths scatter by 0.22 and 0.006: limits are
    eight and more of these away.
    """
    rng = np.random.default_rng()
    loud = simulate(generative_model_for("bernoulli", n=20, epsilon="0.1"), 400, rng, sees_noise=True)
    assert judge(loud.ignored).conclusion == NOT_CALIBRATED
    assert 3.0 < loud.widening[0] ** 2 - 1.0 < 15.0
    quiet = simulate(generative_model_for("bernoulli", n=10_000, epsilon="1"), 400, rng, sees_noise=True)
    assert min(quiet.ignored[0].p_values()) > 1e-7
    assert abs(quiet.widening[0] ** 2 - 1.0) < 0.05
    unasked = simulate(generative_model_for("bernoulli", n=20), 2, rng)
    assert (unasked.ignored, unasked.widening) == ((), ())


@pytest.mark.slow
def test_the_default_is_what_a_verdict_takes() -> None:
    assert default_simulations(generative_model_for("bernoulli", n=20)) == 5000
    normal = generative_model_for("normal", n=20)
    for quick in (BY_EVIDENCE, IGNORED):
        assert (
            default_simulations(dataclasses.replace(normal, clipping=quick)) == simulations_needed(2) > 5000
        )
    assert default_simulations(dataclasses.replace(normal, clipping=MODELLED)) == 200
    assert normal.clipping == BY_EVIDENCE
    assert default_simulations(generative_model_for("multivariate_normal", n=20)) == 200
    assert default_simulations(generative_model_for("multivariate_normal", n=20, method="plug-in")) > 5000


def opened(tmp_path: Path, plan: Plan, **values: NDArray[Any]) -> Release:
    full = {
        statistic.name: np.zeros((plan.n_cells, len(statistic.components)), dtype=int).astype(object)
        for statistic in plan.statistics
    }
    return suffice.open_release(publish(tmp_path, plan, {**full, **values}).as_posix())


@pytest.mark.slow
def test_a_release_is_calibrated_from_its_manifest(tmp_path: Path) -> None:
    """The entry of every family in the canonical plan is read back, and the default N is around the noisy."""
    counts = np.array([[90, 10], [400, 100], [3000, 0]]).astype(object)
    release = opened(tmp_path, make_plan(), cancelled=counts)
    seen: list[tuple[int, int]] = []
    calibration = calibrate(
        release, "cancelled", simulations=300, rng=7, progress=lambda *done: seen.append(done)
    )
    assert (calibration.n_prior, calibration.prior, calibration.method) == (
        "Uniform(0, 1000)",
        "Beta(1, 1)",
        "noise-aware",
    )
    assert seen == [(250, 300), (300, 300)]
    again = calibrate(release, "cancelled", simulations=300, rng=7)
    assert document(again) == document(calibration)
    assert document(calibrate(release, "cancelled", simulations=300, rng=8)) != document(calibration)
    jfk = calibrate(release, "cancelled", where={"origin": "JFK"}, simulations=1)
    ewr = calibrate(release, "cancelled", where={"origin": "EWR"}, simulations=1)
    assert (ewr.n_prior, jfk.n_prior) == ("Uniform(0, 200)", "Uniform(0, 1000)")
    carrier = calibrate(release, "carrier", simulations=2, prior="Dirichlet(1, 2, 3)", n_prior=50)
    assert [ranks.category for ranks in carrier.clipped] == ["UA", "DL", "other"]
    assert carrier.n_prior == "50"
    for name, parameters in (("stops", ["rate"]), ("arr_delay", ["mean", "variance"])):
        plug_in = calibrate(release, name, method="plug-in", simulations=20, n_prior="Reciprocal(500)")
        assert [ranks.parameter for ranks in plug_in.clipped] == parameters
        assert plug_in.clipped_share > 0
        rows = document(plug_in)["rows"]
        assert [row["clipping"] for row in rows] == [True, False] * len(parameters)
        assert all(sum(row["histogram"]) == 20 for row in rows)
        assert str(plug_in).count("%") > 6


def test_a_public_n_is_the_number_of_every_simulation(tmp_path: Path) -> None:
    release = opened(tmp_path, public_n_plan())
    calibration = calibrate(release, "cancelled", simulations=10)
    assert calibration.n_prior == "1000"
    with pytest.raises(UsageError, match="N is public"):
        calibrate(release, "cancelled", n_prior=5)


def test_what_cannot_be_simulated_is_refused(tmp_path: Path) -> None:
    release = opened(tmp_path, make_plan())
    cases: list[tuple[str, dict[str, Any], type[Exception], str]] = [
        ("absent", {}, UsageError, "no statistic"),
        ("cancelled", {"simulations": 0}, UsageError, "above 0"),
        ("cancelled", {"simulations": True}, UsageError, "above 0"),
        ("cancelled", {"method": "magic"}, UsageError, "no method"),
        ("cancelled", {"prior": "Gamma(1, 1)"}, PriorError, "must be Beta"),
        ("cancelled", {"n_prior": "Beta(1, 1)"}, PriorError, "not known"),
        ("cancelled", {"where": {"month": 1}}, UsageError, "no group"),
        ("cancelled", {"rng": "seven"}, UsageError, "rng"),
        ("stops", {"method": "plug-in", "n_prior": 10**9}, UsageError, "records would have to be drawn"),
    ]
    for name, options, error, text in cases:
        with pytest.raises(error, match=text):
            calibrate(release, name, **options)


@pytest.mark.audit
def test_statistics_of_several_columns_and_of_tables_are_calibrated(tmp_path: Path) -> None:
    """Components and categories are named, nested truth in the entry is read, and MCMC reports as it goes."""
    columns = {name: {"lower": 0, "upper": 1} for name in ("a", "b")}
    plan = make_plan(
        statistics={
            "pair": {"family": "multivariate_normal", "columns": columns},
            "line": {
                "family": "linear_regression",
                "outcome": {"b": columns["b"]},
                "predictors": {"a": columns["a"]},
                "intercept": "true",
            },
            "table": {"family": "contingency", "columns": {"c": {"categories": ["x"], "other": "true"}}},
        }
    )
    release = opened(tmp_path, plan)
    seen: list[tuple[int, int]] = []
    pair = calibrate(
        release,
        "pair",
        # About four of ten a are above 1.
        prior="NormalInverseWishart([0.97, 0.5], 9, 9, [[0.12, 0], [0, 0.001]])",
        simulations=2,
        n_prior="Uniform(100, 200)",
        progress=lambda *done: seen.append(done),
    )
    assert [ranks.parameter for ranks in pair.clipped] == [
        "mean[a]",
        "mean[b]",
        "variance[a]",
        "variance[b]",
        "covariance[a, b]",
    ]
    assert seen == [(2, 2)]
    assert pair.clipped_share > 0.0
    line = calibrate(release, "line", method="plug-in", simulations=2, n_prior=10)
    assert [ranks.parameter for ranks in line.clipped] == ["coefficient[a]", "intercept", "variance"]
    table = calibrate(release, "table", simulations=2, n_prior=10)
    assert [ranks.category for ranks in table.clipped] == ["c=x", "c=other"]
    with pytest.raises(PriorError, match="at least 4 rows"):
        calibrate(release, "pair", n_prior=3)


@pytest.mark.slow
def test_numbers_of_records_are_those_that_the_posterior_believes_possible() -> None:
    """Two columns need four rows: 0 to 3 are drawn again, and not where N is taken from the noisy counts.

    Of 5,000 draws no number that may be is missing but with chance below 1e-100.
    """
    rng = np.random.default_rng()
    sizes = generative_model_for("multivariate_normal", n=3).sizes(5000, rng)
    assert set(sizes.tolist()) == {4, 5, 6}
    assert 0 in generative_model_for("multivariate_normal", n=3, method="plug-in").sizes(5000, rng)


def test_the_default_prior_of_n_is_proper_and_around_the_noisy_number() -> None:
    plan = statistic_plan({"family": "bernoulli"}, epsilon="1", public_n=False)
    assert default_n_prior(noisy_statistic(plan, np.array([[30, 12]]))) == Uniform(0, 84)
    assert default_n_prior(noisy_statistic(plan, np.array([[-30, 12]]))) == Uniform(0, 2)
    shares = statistic_plan({"family": "categorical", "categories": ["a", "b"]}, epsilon="1", public_n=False)
    assert default_n_prior(noisy_statistic(shares, np.array([[30, 12]]))) == Uniform(0, 84)


def test_numbers_of_records_are_drawn_from_their_priors() -> None:
    """40,000 draws: each of 16 frequencies within 6 standard errors of its probability (2e-9 each)."""
    rng = np.random.default_rng()
    size = 40_000
    for prior in (Uniform(2, 6), Reciprocal(7), Reciprocal(0), Fixed(3)):
        draws = prior.sample(size, rng)
        low, high = prior.support
        assert low <= draws.min() <= draws.max() <= high
        probability = np.exp(prior.log_prob(np.arange(low, high + 1.0)))
        observed = np.bincount(draws - low, minlength=high - low + 1) / size
        assert np.all(
            abs(observed - probability) <= 6 * np.sqrt(probability * (1 - probability) / size) + 1e-12
        )
    far = Reciprocal(10**12).sample(size, rng)
    share = np.mean(far < 10**6)
    expected = np.sum(np.exp(Reciprocal(10**12).log_prob(np.arange(10**6, dtype=float))))
    assert abs(share - expected) < 6 * np.sqrt(0.25 / size)

"""Stated worlds of predictors: what they draw, what they refuse, and that simulations take them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.calibration.simulated_release import generative_model_of, predictor_rows
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.distributions.normal_inverse_wishart import NormalInverseWishart
from suffice.pipeline.math.priors.record_count import Fixed
from support.joint import plan_of
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from pathlib import Path

UNIT = {"lower": "-10", "upper": "10"}
REGRESSION: dict[str, Any] = {
    "family": "linear_regression",
    "predictors": {"x": UNIT, "w": UNIT},
    "outcome": {"y": {"lower": "-30", "upper": "30"}},
    "noise": "laplace",
}
PLAN = plan_of(REGRESSION, epsilon="2", public_n=False)
DRAWS = 20_000
STATED = "NormalInverseGammaRegression(0, 0.5, 4, 3)"


def drawn(given: Any) -> np.ndarray[Any, Any]:
    world = predictor_rows(PLAN, given)
    rng = np.random.default_rng()
    return world(3, rng)(rng.integers(0, 3, DRAWS))


@pytest.mark.parametrize(
    ("given", "name", "means"),
    [
        ("Normal(2, 1)", "Normal(2, 1)", (2.0, 2.0)),
        (["Normal(2, 1)", "Exponential(1)"], "Normal(2, 1), Exponential(1)", (2.0, 1.0)),
        (stats.norm(3, 1), "scipy.stats.norm(3, 1)", (3.0, 3.0)),
        ({"w": [0, 2], "x": [1, 3], "else": ["a"]}, "2 given rows", (2.0, 1.0)),
    ],
)
def test_rows_are_drawn_as_stated(given: Any, name: str, means: tuple[float, float]) -> None:
    """Means to six standard errors of standard deviation 1: 2e-9 each of eight."""
    rows = drawn(given)
    assert rows.shape == (DRAWS, 2)
    assert rows.mean(axis=0) == pytest.approx(means, abs=6 / np.sqrt(DRAWS))
    assert str(predictor_rows(PLAN, given)) == name


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_of_a_public_file_are_drawn_together(tmp_path: Path, ending: str) -> None:
    """Of 20,000 draws none of three rows is missing but with chance below 1e-1000."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    path = str(tmp_path / f"public.{ending}")
    table = pa.table({"w": [1.0, 2.0, 5.0], "x": [10, 20, 50], "name": ["a", "b", "c"]})
    if ending == "csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)
    rows = drawn(path)
    assert np.array_equal(rows[:, 0], 10 * rows[:, 1])
    assert set(rows[:, 1]) == {1.0, 2.0, 5.0}
    assert str(predictor_rows(PLAN, path)) == f"3 rows of public.{ending}"


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (["Normal(0, 1)"] * 3, PriorError, "has 2 predictors"),
        ("Dirichlet(1)", PriorError, "Dirichlet is not known"),
        (7, PriorError, "public rows"),
        (stats.poisson(3), PriorError, "continuous"),
        ({"x": [1.0]}, UsageError, "no column 'w'"),
        ({"x": [1.0], "w": [float("nan")]}, UsageError, "finite numbers"),
        ({"x": [1.0], "w": ["a"]}, UsageError, "finite numbers"),
        ({"x": [1.0, 2.0], "w": [1.0]}, UsageError, "one length"),
        ("absent.csv", UsageError, "cannot be read"),
    ],
)
def test_what_is_no_world_is_refused(given: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        predictor_rows(PLAN, given)


@pytest.mark.slow
def test_simulations_take_the_world_and_posteriors_their_prior() -> None:
    """Sums of squares of predictors of 4 and 1 in 500 rows, to six standard errors: 2e-9 each of four."""
    empty = noisy_statistic(PLAN, np.zeros((1, len(PLAN.components)), dtype=object))
    prior = NormalInverseWishart(0, 1, 6, 4)
    world = ["Normal(2, 0.1)", "Normal(0, 1)"]
    model = generative_model_of(
        empty,
        REGRESSION,
        prior=STATED,
        n_prior=500,
        predictor_prior=f"{prior}",
        predictors=world,
    )
    assert model.predictor_prior == prior
    rng = np.random.default_rng()
    sizes = np.full(4, 500)
    sums = model.sums(model.truth(4, rng), sizes, rng)
    squares = np.array([float(row) for row in sums.unclipped[:, 4]]) / 2.0**32 * 100
    assert squares / 500 == pytest.approx(4.01, abs=6 * 0.41 / np.sqrt(500))
    # From the prior: standard deviations far from these two.
    simulated = dataclasses.replace(model, predictors=None).sums(model.truth(4, rng), sizes, rng)
    assert np.ptp([float(row) for row in simulated.unclipped[:, 4]]) > 0.0


def test_predictors_and_their_prior_have_a_use_in_regressions_alone() -> None:
    entry = {"family": "poisson", "column": "x", "upper": "5"}
    plan = statistic_plan(entry, epsilon="1", public_n=False)
    statistic = noisy_statistic(plan, np.full((1, len(plan.components)), 9, dtype=object))
    with pytest.raises(UsageError, match="no predictors: leave predictors out"):
        generative_model_of(statistic, entry, predictors="Normal(0, 1)")
    with pytest.raises(UsageError, match="no predictors: leave the prior of predictors out"):
        posterior_of(statistic, predictor_prior="NormalInverseWishart(0, 1, 6, 4)")


@pytest.mark.audit
@pytest.mark.timeout(1800)
def test_a_prior_of_predictors_is_named_read_and_matters() -> None:
    """Behind much noise a prior of narrow predictors lets coefficients be large."""
    totals = np.array([[10**12] * len(PLAN.components)], dtype=object)
    statistic = noisy_statistic(PLAN, totals)
    sds = []
    for scale in (0.01, 400.0):
        prior = f"NormalInverseWishart(0, 1, 30, {scale:g})"
        posterior = posterior_of(statistic, prior=STATED, n_prior=Fixed(50), predictor_prior=prior)
        assert posterior.predictor_prior == prior
        drawn = posterior.sample(2000, 1)["coefficient"]
        sds.append(float(np.subtract(*np.quantile(drawn[:, 0, 0], [0.75, 0.25]))))
    assert posterior_of(statistic, prior=STATED, n_prior=Fixed(50)).predictor_prior == (
        "SpreadNormalInverseWishart([0, 0], [10, 10], 0.5)"
    )
    assert sds[0] > 1.5 * sds[1]
    with pytest.raises(PriorError, match="prior of predictors must be"):
        posterior_of(statistic, predictor_prior="Beta(1, 1)")
    with pytest.raises(PriorError, match="needs 1 or 2"):
        posterior_of(statistic, predictor_prior="NormalInverseWishart([0, 0, 0], 1, 6, 4)")
    with pytest.raises(UsageError, match="leave the prior of predictors out"):
        posterior_of(statistic, method="plug-in", predictor_prior="NormalInverseWishart(0, 1, 6, 4)")


def test_a_file_that_cannot_be_used_is_refused_by_its_own_reason(tmp_path: Path) -> None:
    files = {
        "twice.csv": (b"x,w,w\n1,2,3\n", "more than one column 'w'"),
        "names.csv": (b"\xff\xfe,w\n1,2\n", "cannot be read"),
        "far.csv": (b"x,w\n1,1e300\n", "those for w lie more than 1000 half ranges"),
    }
    for name, (content, rule) in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UsageError, match=rule):
            predictor_rows(PLAN, str(tmp_path / name))
    with pytest.raises(UsageError, match="an address is not read") as refusal:
        predictor_rows(PLAN, "s3://key:secret@bucket/x.parquet")
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    "given", ["Normal(1e300, 1)", "Normal(0, 1e308)", ["Normal(0, 1)", "Normal(1e9, 1)"]]
)
def test_predictors_far_outside_of_their_bounds_are_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="half ranges"):
        predictor_rows(PLAN, given)


def test_predictors_are_read_before_any_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain takes seconds: what is wrong with a text is said at once."""
    statistic = noisy_statistic(PLAN, np.ones((1, len(PLAN.components)), dtype=np.int64))
    monkeypatch.setattr(
        "suffice.pipeline.ask.calibration.simulated_release.posterior_of",
        lambda *_args, **_keywords: pytest.fail("a posterior was computed first"),
    )
    with pytest.raises(PriorError, match="takes exactly"):
        generative_model_of(statistic, REGRESSION, predictors="Normal(0)")

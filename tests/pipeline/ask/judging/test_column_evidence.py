"""Evidence of regressions and of several columns: asked for, compared, and never without its error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import suffice
from suffice.errors import UsageError
from suffice.pipeline.ask.inference.chosen_priors import predictor_prior_for
from suffice.pipeline.ask.judging.bounded_prior import is_restricted
from suffice.pipeline.ask.pooling.comparison import PriorComparison
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.engines.multivariate.column_posterior import normal_chains, regression_chains
from suffice.pipeline.terms.declaration.documents import document
from support.cone_calibration import moments_of, released_of
from support.releases import make_plan, publish
from support.unrestricted import free

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

UNIT = {"lower": -1, "upper": 1}
REGRESSION: dict[str, Any] = {
    "family": "linear_regression",
    "predictors": {"x": UNIT},
    "outcome": {"y": UNIT},
    "noise": "laplace",
}
COLUMNS: dict[str, Any] = {
    "family": "multivariate_normal",
    "columns": {"x": UNIT, "y": UNIT},
    "noise": "laplace",
}
OF_COLUMNS = "NormalInverseWishart(0, 1, 5, 0.3)"
NEAR = "NormalInverseGammaRegression([0.25, 0.0], [40.0, 40.0], 20, 1.8)"
FAR = "NormalInverseGammaRegression([-0.6, 0.0], [40.0, 40.0], 20, 1.8)"
"""Slopes of .25 and -.6, within .05, of residuals' variance .095: rows have those of the first."""


WIDE = "NormalInverseGammaRegression([0.0, 0.0], [0.5, 0.5], 2, 1.0)"
"""Residuals' variances of 1 are as large as those of columns within -1..1 can be."""


def released(entry: dict[str, Any], cells: int = 1) -> NoisyStatistic:
    """Return 400 rows a cell, at epsilon 1."""
    mean = np.tile([0.1, 0.0], (cells, 1))
    root = np.tile([[0.4, 0.0], [0.1, 0.3]], (cells, 1, 1))
    rng = np.random.default_rng(2)
    return released_of(entry, moments_of(np.full(cells, 400), mean, root, rng), "1", rng)


def asked(entry: dict[str, Any], cells: int = 1, prior: str = NEAR) -> Posterior:
    """Return the posterior under conjugate priors, whose N is not known."""
    statistic = released(entry, cells)
    if entry["family"] == "multivariate_normal":
        return posterior_of(statistic, prior=OF_COLUMNS, n_prior="Uniform(100, 900)")
    return posterior_of(statistic, prior=prior, n_prior="Uniform(100, 900)", predictor_prior=OF_COLUMNS)


def without_constant(posterior: Posterior) -> Floats:
    """Return what importance sampling says of the density that chains have."""
    prior: Any = posterior.prior
    n_priors: Any = (posterior.n_prior,)
    if posterior.family == "multivariate_normal":
        whole: Floats = normal_chains(posterior.observed, prior, n_priors).log_evidence().log
        return whole
    predictors: Any = predictor_prior_for(posterior.observed[0], posterior.predictor_prior)
    chains = regression_chains(posterior.observed, prior, n_priors, predictors)
    return chains.log_evidence().log


def log_chance_of_none(statistic: NoisyStatistic) -> float:
    """Return the log chance that no component has noise, (1 - q) / (1 + q) of each, with q = e^(-1 / b)."""
    (observation,) = statistic.observations
    least = -1.0 / observation.plan.scale
    return float(observation.values.shape[1] * (np.log(-np.expm1(least)) - np.log1p(np.exp(least))))


@pytest.mark.slow
@pytest.mark.parametrize("entry", [REGRESSION, COLUMNS])
def test_evidence_is_an_estimate_with_an_error(entry: dict[str, Any]) -> None:
    posterior = asked(entry, cells=2)
    with pytest.raises(UsageError, match=r"estimate with an error; ask posterior\.evidence"):
        _ = posterior.log_evidence
    evidence = posterior.evidence()
    assert evidence.standard_error is not None
    assert evidence.log.shape == evidence.standard_error.shape == (2,)
    assert np.all((evidence.standard_error > 0.0) & (evidence.standard_error < 0.1))
    assert posterior.evidence() is evidence
    # Engines leave out what makes the noise's exponentials chances of integers.
    (statistic,) = posterior.observed
    assert evidence.log == pytest.approx(without_constant(posterior) + log_chance_of_none(statistic), abs=0.1)


@pytest.mark.slow
def test_what_has_no_error_that_holds_is_refused() -> None:
    with pytest.raises(UsageError, match="behind noise on a cone errors of estimates are too small"):
        asked({**REGRESSION, "noise": "cone"}).evidence()
    spread = posterior_of(released(REGRESSION), prior=NEAR, n_prior="Uniform(100, 900)")
    with pytest.raises(UsageError, match="state conjugate ones, of predictors too"):
        spread.evidence()


@pytest.mark.slow
def test_bounds_give_a_prior_back_what_it_has_beyond_them() -> None:
    """What is gained is the logarithm of a ratio of shares, of which both are above a hundredth."""
    posterior = asked(REGRESSION, prior=WIDE)
    assert is_restricted(posterior)
    within, whole = posterior.evidence(), free(posterior).evidence()
    # The same draws: of this posterior little lies beyond, and of the prior a good part.
    gained = within.log - whole.log
    assert np.all((gained > 0.1) & (gained < 3.0))
    assert within.standard_error is not None
    assert whole.standard_error is not None
    assert np.all(within.standard_error > whole.standard_error)


@pytest.mark.slow
def test_priors_of_a_regression_are_compared_with_errors(tmp_path: Path) -> None:
    plan = make_plan(groups=None, statistics={"slope": REGRESSION})
    steps = float(1 << 16)
    sums = np.array([4000.0, 0.0, 0.0, 640.0, 160.0, 400.0]) * np.array([1, steps, steps, *[steps**2] * 3])
    from suffice.pipeline.families import FAMILIES
    from suffice.pipeline.spec.spec import load_spec
    from support.making import mapping

    changes: dict[str, Any] = {"groups": None, "statistics": {"slope": REGRESSION}}
    spec = load_spec(mapping("data", **changes)).statistics["slope"]
    whole = np.array([[int(each) for each in sums]], dtype=object)
    totals = FAMILIES["linear_regression"].totals(spec, plan.statistics[0].design, whole)
    release = suffice.open_release(publish(tmp_path, plan, {"slope": totals}))
    comparison = suffice.compare_priors(release, "slope", [NEAR, FAR], predictor_prior=OF_COLUMNS)
    assert comparison.total_errors is not None
    factor, error = comparison.total_log_bayes_factors[1], comparison.total_errors[1]
    assert factor + 2.0 * error < -5.0
    assert comparison.total_errors[0] == 0.0
    written = document(comparison)
    assert written["totals"][1]["standard_error"] == pytest.approx(error)
    assert written["rows"][1]["standard_error"] == pytest.approx(error)
    assert "standard_error" in str(comparison)


def test_errors_of_factors_add_in_quadrature() -> None:
    comparison = PriorComparison(
        statistic="s",
        priors=("a", "b"),
        n_prior="n",
        groups={},
        log_evidence=np.array([[0.0, 1.0], [0.0, 2.0]]),
        standard_error=np.array([[0.3, 0.4], [0.0, 1.2]]),
    )
    assert comparison.factor_errors is not None
    assert comparison.factor_errors == pytest.approx(np.array([[0.0, 0.5], [0.0, 1.2]]))
    assert comparison.total_errors == pytest.approx([0.0, 1.3])

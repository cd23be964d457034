"""Evidence of what was released, against averages of the noise's density over draws of the prior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGammaRegression
from suffice.pipeline.math.distributions.normal_inverse_wishart import NormalInverseWishart
from suffice.pipeline.math.engines.multivariate import column_posterior
from suffice.pipeline.math.engines.multivariate.column_posterior import normal_chains, regression_chains
from suffice.pipeline.math.priors.record_count import Fixed, Reciprocal, Uniform
from support.cone_calibration import FEWEST, MOST, moments_of, prior_of, released_of
from support.joint import STEPS

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.multivariate.column_posterior import Chains
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Floats

UNIT = {"lower": -1, "upper": 1}
ERRORS = 5.0
"""Between the two: but for a chance of 6e-7 by normal numbers."""
N_PRIOR = Uniform(FEWEST, MOST)
FEWEST_OF_DENSITY = 4
"""Rows from which on moments of two columns have a density that is bounded."""
REGRESSION_PRIOR = NormalInverseGammaRegression([0.3, 0.0], [2.0, 4.0], 5.0, 0.3)
SLOPE_PRIOR = NormalInverseGammaRegression([0.3], [2.0], 5.0, 0.3)
"""Of a regression without an intercept, whose predictors have a mean of 0."""
PREDICTORS = NormalInverseWishart(0.0, 4.0, 6.0, 0.4)


def parameters_of(kind: str, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return means and roots of covariances of two columns, drawn from a prior."""
    if kind != "columns":
        has_intercept = kind == "regression"
        prior = REGRESSION_PRIOR if has_intercept else SLOPE_PRIOR
        beta, variance = prior.sample(size, rng, 1 + has_intercept)
        mean_x, covariance_x = PREDICTORS.sample(size, rng, 1)
        if not has_intercept:
            beta, mean_x = np.column_stack([beta, np.zeros(size)]), np.zeros_like(mean_x)
        root = np.zeros((size, 2, 2))
        root[:, 0, 0] = np.sqrt(covariance_x[:, 0, 0])
        root[:, 1, 0], root[:, 1, 1] = beta[:, 0] * root[:, 0, 0], np.sqrt(variance)
        return np.column_stack([mean_x[:, 0], beta[:, 0] * mean_x[:, 0] + beta[:, 1]]), root
    mean, covariance = prior_of(2).sample(size, rng, 2)
    return mean, np.linalg.cholesky(covariance).astype(np.float64)


def entry_of(kind: str) -> dict[str, Any]:
    if kind != "columns":
        columns: dict[str, Any] = {"predictors": {"x": UNIT}, "outcome": {"y": UNIT}}
        has_intercept = kind == "regression"
        return {"family": "linear_regression", **columns, "noise": "laplace", "intercept": has_intercept}
    return {"family": "multivariate_normal", "columns": {"x": UNIT, "y": UNIT}, "noise": "laplace"}


def chains_of(kind: str, statistic: Any, n_prior: Any) -> Chains:
    if kind != "columns":
        prior = REGRESSION_PRIOR if kind == "regression" else SLOPE_PRIOR
        return regression_chains((statistic,), prior, (n_prior,), PREDICTORS)
    return normal_chains((statistic,), prior_of(2), (n_prior,))


def log_noise(chains: Chains, moments: Floats) -> Floats:
    """Return the log density of a cell's noise at moments (n_moments, n), but for its constant."""
    scaled = chains.target.targets[0].scaled
    apart = np.abs(scaled.values[0][:, None] - scaled.coefficients @ moments)
    return np.asarray(-apart.sum(axis=0))


def rows_of(n_prior: NPrior, fewest: int, size: int, rng: np.random.Generator) -> Floats:
    """Draw numbers of rows from a prior, given that there are so many at least."""
    least, most = n_prior.support
    n = np.arange(max(least, fewest), most + 1)
    share = np.exp(n_prior.log_prob(n.astype(np.float64)))
    return rng.choice(n, size, p=share / share.sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "n_prior"),
    [
        ("columns", N_PRIOR),
        ("columns", Reciprocal(MOST)),
        ("columns", Fixed(200)),
        ("regression", N_PRIOR),
        ("regression", Fixed(200)),
        ("regression without an intercept", N_PRIOR),
    ],
    ids=str,
)
def test_evidence_is_the_density_of_what_was_released(kind: str, n_prior: NPrior) -> None:
    rng = np.random.default_rng(8)
    fixed = np.array([[0.1, 0.0]]), np.array([[[0.4, 0.0], [0.1, 0.3]]])
    sums = moments_of(np.array([200]), *fixed, rng)
    public_n = n_prior.n if isinstance(n_prior, Fixed) else None
    statistic = released_of(entry_of(kind), sums, "0.05", rng, public_n=public_n)
    chains = chains_of(kind, statistic, n_prior)
    integral = chains.log_evidence()
    weights = []
    for _ in range(8):
        n = rows_of(n_prior, FEWEST_OF_DENSITY, 25_000, rng)
        mean, root = parameters_of(kind, len(n), rng)
        moments = moments_of(n, mean, root, rng).astype(np.float64).T
        moments[1:3] /= STEPS
        moments[3:] /= STEPS**2
        weights.append(np.exp(log_noise(chains, moments) - integral.log[0]))
    every = np.concatenate(weights)
    relative = np.std(every) / np.sqrt(len(every)) / np.mean(every)
    error = np.hypot(integral.error[0], relative)
    assert error < 0.05
    assert abs(np.log(np.mean(every))) < ERRORS * error


FALSE_ALARM = 1e-6
CELLS = 60


def chance_of(count: int, probabilities: Floats) -> float:
    """Return the chance of counts as far out, of independent events with such probabilities."""
    law = np.ones(1)
    for probability in probabilities.tolist():
        law = np.convolve(law, [1.0 - probability, probability])
    return float(2.0 * min(law[: count + 1].sum(), law[count:].sum()))


@pytest.mark.slow
def test_posterior_probabilities_of_priors_are_calibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data of one of two priors, each with chance 1/2: as many are of the first as its posteriors say."""
    rng = np.random.default_rng(12)
    first = prior_of(2)
    loc, precision, df, scale = first.of(2)
    second = NormalInverseWishart(loc.tolist(), precision, df, (1.7 * scale).tolist())
    is_first = rng.uniform(size=CELLS) < 0.5
    covariance = np.asarray(stats.invwishart(df, scale).rvs(CELLS, random_state=rng))
    covariance *= np.where(is_first, 1.0, 1.7)[:, None, None]
    root = np.linalg.cholesky(covariance).astype(np.float64)
    mean = loc + np.einsum("cij,cj->ci", root, rng.standard_normal((CELLS, 2))) / np.sqrt(precision)
    n = rng.integers(FEWEST, MOST + 1, CELLS)
    statistic = released_of(entry_of("columns"), moments_of(n, mean, root, rng), "1", rng)

    def chance() -> float:
        logs = [normal_chains((statistic,), prior, (N_PRIOR,)).log_evidence() for prior in (first, second)]
        # What is left out depends on the release alone, which takes nothing from calibration.
        known = np.isfinite(logs[0].error + logs[1].error)
        assert np.mean(known) > 0.8
        probabilities = 1.0 / (1.0 + np.exp(logs[1].log - logs[0].log)[known])
        return chance_of(int(is_first[known].sum()), probabilities)

    assert chance() > FALSE_ALARM
    # The control: without constants of priors the wider one loses what its width costs the other.
    monkeypatch.setattr(column_posterior, "log_constant", lambda _: 0.0)
    assert chance() < FALSE_ALARM

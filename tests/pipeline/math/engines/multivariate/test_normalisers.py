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
from suffice.pipeline.math.priors.record_count import Fixed, Uniform
from support.cone_calibration import FEWEST, MOST, moments_of, prior_of, released_of
from support.joint import STEPS

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.multivariate.column_posterior import Chains
    from suffice.typing import Floats

UNIT = {"lower": -1, "upper": 1}
ERRORS = 5.0
"""Between the two: but for a chance of 6e-7 by normal numbers."""
N_PRIOR = Uniform(FEWEST, MOST)
REGRESSION_PRIOR = NormalInverseGammaRegression([0.3, 0.0], [2.0, 4.0], 5.0, 0.3)
PREDICTORS = NormalInverseWishart(0.0, 4.0, 6.0, 0.4)


def parameters_of(kind: str, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return means and roots of covariances of two columns, drawn from a prior."""
    if kind == "regression":
        beta, variance = REGRESSION_PRIOR.sample(size, rng, 2)
        mean_x, covariance_x = PREDICTORS.sample(size, rng, 1)
        root = np.zeros((size, 2, 2))
        root[:, 0, 0] = np.sqrt(covariance_x[:, 0, 0])
        root[:, 1, 0], root[:, 1, 1] = beta[:, 0] * root[:, 0, 0], np.sqrt(variance)
        return np.column_stack([mean_x[:, 0], beta[:, 0] * mean_x[:, 0] + beta[:, 1]]), root
    mean, covariance = prior_of(2).sample(size, rng, 2)
    return mean, np.linalg.cholesky(covariance).astype(np.float64)


def entry_of(kind: str) -> dict[str, Any]:
    if kind == "regression":
        columns: dict[str, Any] = {"predictors": {"x": UNIT}, "outcome": {"y": UNIT}}
        return {"family": "linear_regression", **columns, "noise": "laplace"}
    return {"family": "multivariate_normal", "columns": {"x": UNIT, "y": UNIT}, "noise": "laplace"}


def chains_of(kind: str, statistic: Any, n_prior: Any) -> Chains:
    if kind == "regression":
        return regression_chains((statistic,), REGRESSION_PRIOR, (n_prior,), PREDICTORS)
    return normal_chains((statistic,), prior_of(2), (n_prior,))


def log_noise(chains: Chains, moments: Floats) -> Floats:
    """Return the log density of a cell's released components at moments (n_moments, n)."""
    scaled = chains.target.targets[0].scaled
    apart = np.abs(scaled.values[0][:, None] - scaled.coefficients @ moments)
    return np.asarray(-apart.sum(axis=0) - len(apart) * np.log(2.0))


@pytest.mark.slow
@pytest.mark.parametrize("public_n", [None, 200])
@pytest.mark.parametrize("kind", ["columns", "regression"])
def test_evidence_is_the_density_of_what_was_released(kind: str, public_n: int | None) -> None:
    rng = np.random.default_rng(8)
    fixed = np.array([[0.1, 0.0]]), np.array([[[0.4, 0.0], [0.1, 0.3]]])
    sums = moments_of(np.array([200]), *fixed, rng)
    statistic = released_of(entry_of(kind), sums, "0.05", rng, public_n=public_n)
    chains = chains_of(kind, statistic, N_PRIOR if public_n is None else Fixed(public_n))
    integral = chains.log_evidence()
    weights = []
    for _ in range(8):
        n = rng.integers(FEWEST, MOST + 1, 25_000) if public_n is None else np.full(25_000, public_n)
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

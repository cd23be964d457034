"""Plug-in posteriors and likelihoods of several columns: the closed forms, and how they are shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.chosen_priors import default_prior
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGammaRegression
from suffice.pipeline.math.distributions.normal_inverse_wishart import NormalInverseWishart, estimate
from suffice.pipeline.math.distributions.spread_scales import SpreadNormalInverseWishart
from suffice.pipeline.math.priors.by_name import parse_prior
from support.several import ENTRIES, X, released, rows_of


def brute_force_niw(data: np.ndarray, prior: tuple[Any, ...]) -> tuple[np.ndarray, float, float, np.ndarray]:
    loc, precision, df, scale = prior
    n, average = len(data), data.mean(axis=0)
    scatter = (data - average).T @ (data - average)
    distance = (average - loc)[:, None]
    updated = scale + scatter + precision * n / (precision + n) * distance @ distance.T
    return (precision * np.asarray(loc) + n * average) / (precision + n), precision + n, df + n, updated


@pytest.mark.parametrize("minimal", [False, True])
def test_the_normal_plug_in_posterior_is_the_closed_form(minimal: bool) -> None:
    """Draws within six errors, and by Kolmogorov and Smirnov: 4e-8 in all."""
    data = rows_of(60, np.random.default_rng(7))
    matrix = [[4.0, 1, 0], [1, 2, 0.5], [0, 0.5, 30]]
    prior = NormalInverseWishart([6, 1, 2], 2, 9, matrix)
    loc, precision, df, scale = brute_force_niw(data, ([6, 1, 2], 2, 9, np.array(matrix)))
    posterior = posterior_of(
        released(ENTRIES["normal"], data, minimal=minimal), prior=prior, method="plug-in"
    )
    assert posterior.parameters == ("mean", "variance", "covariance")
    assert posterior.components["covariance"] == ("x, w", "x, y", "w, y")
    assert posterior.mean("mean")[0] == pytest.approx(loc, rel=1e-4)
    freedom = df - 2
    for i in range(3):
        t = stats.t(freedom, loc[i], np.sqrt(scale[i, i] / precision / freedom))
        variance = stats.invgamma(freedom / 2, scale=scale[i, i] / 2)
        assert posterior.sd("mean")[0, i] == pytest.approx(t.std(), rel=1e-4)
        assert posterior.mean("variance")[0, i] == pytest.approx(variance.mean(), rel=1e-4)
        assert posterior.sd("variance")[0, i] == pytest.approx(variance.std(), rel=1e-4)
        for q in (0.01, 0.5, 0.9):
            assert posterior.quantile("mean", q)[0, i] == pytest.approx(t.ppf(q), rel=1e-4)
            assert posterior.quantile("variance", q)[0, i] == pytest.approx(variance.ppf(q), rel=1e-4)
    above = np.triu_indices(3, 1)
    assert posterior.mean("covariance")[0] == pytest.approx(scale[above] / (df - 4), rel=1e-3)
    draws = 20_000
    sample = posterior.sample(draws)
    wishart = stats.invwishart(df, scale).rvs(draws, random_state=np.random.default_rng())
    reference = np.asarray(wishart)[:, *above]
    for parameter in posterior.parameters:
        sd = posterior.sd(parameter)[0]
        error = np.abs(sample[parameter][:, 0].mean(axis=0) - posterior.mean(parameter)[0])
        assert (error < 6 * sd / np.sqrt(draws)).all()
        assert sample[parameter][:, 0].std(axis=0) == pytest.approx(sd, rel=0.2)
    for pair in range(3):
        assert stats.ks_2samp(sample["covariance"][:, 0, pair], reference[:, pair]).pvalue > 1e-9
        lower, upper = posterior.credible_interval("covariance", 0.8, draws=draws)[0, pair]
        inside = np.mean((reference[:, pair] > lower) & (reference[:, pair] < upper))
        assert inside == pytest.approx(0.8, abs=6 * np.sqrt(0.32 / draws))


@pytest.mark.parametrize("minimal", [False, True])
@pytest.mark.parametrize("name", ["regression", "origin"])
def test_the_regression_plug_in_posterior_is_the_closed_form(name: str, minimal: bool) -> None:
    """Draws by Kolmogorov and Smirnov, and a correlation within six errors: 1e-8 for each entry."""
    rng = np.random.default_rng(7)
    data = rows_of(60, rng)
    design, y = data[:, :2], data[:, 2]
    if name == "regression":
        design = np.column_stack([design, np.ones(len(data))])
    size = design.shape[1]
    root = rng.normal(size=(size, size)) * [3, 3, 0.3][:size]
    loc, precision = np.linspace(1, 2, size), root.T @ root + np.eye(size) / 4
    prior = NormalInverseGammaRegression(loc.tolist(), precision.tolist(), 2.5, 4)
    updated = precision + design.T @ design
    mean = np.linalg.solve(updated, precision @ loc + design.T @ y)
    concentration = 2.5 + len(data) / 2
    scale = 4 + (y @ y + loc @ precision @ loc - mean @ updated @ mean) / 2
    posterior = posterior_of(released(ENTRIES[name], data, minimal=minimal), prior=prior, method="plug-in")
    sample = posterior.sample(20_000)
    covariance = np.linalg.inv(updated)
    for k in range(size):
        t = stats.t(2 * concentration, mean[k], np.sqrt(scale / concentration * covariance[k, k]))
        parameter, position = ("coefficient", (0, k)) if k < 2 else ("intercept", (0,))
        assert posterior.mean(parameter)[position] == pytest.approx(t.mean(), rel=1e-3, abs=1e-3)
        assert posterior.sd(parameter)[position] == pytest.approx(t.std(), rel=1e-3)
        assert posterior.quantile(parameter, 0.9)[position] == pytest.approx(t.ppf(0.9), rel=1e-3, abs=1e-3)
        drawn = sample[parameter][(slice(None), *position)]
        assert stats.kstest(drawn, t.cdf).pvalue > 1e-9
    variance = stats.invgamma(concentration, scale=scale)
    assert posterior.mean("variance")[0] == pytest.approx(variance.mean(), rel=1e-3)
    assert posterior.sd("variance")[0] == pytest.approx(variance.std(), rel=1e-3)
    assert posterior.quantile("variance", 0.1)[0] == pytest.approx(variance.ppf(0.1), rel=1e-3)
    assert stats.kstest(sample["variance"][:, 0], variance.cdf).pvalue > 1e-9
    joint = np.asarray(np.corrcoef(sample["coefficient"][:, 0].T))[0, 1]
    expected = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert joint == pytest.approx(expected, abs=6 / np.sqrt(20_000))


def test_the_log_likelihoods_are_those_of_the_rows() -> None:
    """But for a constant. Differences may be near 0; rounding to the lattice moves them by about 5e-6."""
    data = rows_of(50, np.random.default_rng(7))
    sums = estimate(released(ENTRIES["normal"], data))
    pairs = [(np.array([6, 1, 2.0]), np.diag([2, 1, 9.0])), (np.array([7, 2, 5.0]), np.eye(3) + 0.5)]
    log_likelihoods = [
        FAMILIES["multivariate_normal"].log_likelihood(mean, covariance, sums, None)[0]
        for mean, covariance in pairs
    ]
    rows = [np.sum(stats.multivariate_normal(mean, covariance).logpdf(data)) for mean, covariance in pairs]
    assert log_likelihoods[0] - log_likelihoods[1] == pytest.approx(rows[0] - rows[1], abs=1e-4)
    for name, betas in {
        "regression": [np.array([1, -2, 3.0]), np.array([1.4, -3, 1.0])],
        "origin": [np.array([1, -2.0]), np.array([1.4, -3.0])],
    }.items():
        statistic = released(ENTRIES[name], data)
        design = np.column_stack([data[:, :2], np.ones(50)])[:, : len(betas[0])]
        family = FAMILIES["linear_regression"]
        values = [
            family.log_likelihood(beta, np.array(v), estimate(statistic), statistic.plan.parameters)[0]
            for beta, v in zip(betas, (2.0, 3.0), strict=True)
        ]
        expected = [
            np.sum(stats.norm.logpdf(data[:, 2], design @ beta, np.sqrt(v)))
            for beta, v in zip(betas, (2.0, 3.0), strict=True)
        ]
        assert values[0] - values[1] == pytest.approx(expected[0] - expected[1], abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENTRIES)
def test_rows_are_labelled_and_default_priors_are_public(name: str) -> None:
    data = rows_of(40, np.random.default_rng(7))
    statistic = released(ENTRIES[name], data)
    prior = default_prior(statistic)
    assert parse_prior(str(prior)) == prior
    posterior = posterior_of(statistic, method="plug-in")
    rows = summarise(posterior, draws=50)
    labels = {(row["parameter"], row["component"]) for row in rows}
    if name == "normal":
        assert isinstance(prior, SpreadNormalInverseWishart)
        middle, half_range = prior.of(3)
        assert 2 * half_range[0] == float(X["upper"]) - float(X["lower"])
        assert 2 * middle[0] == float(X["upper"]) + float(X["lower"])
        assert ("covariance", "w, y") in labels
        assert len(rows) == 9
    else:
        intercept = {("intercept", "")} if name == "regression" else set()
        assert labels == {("coefficient", "x"), ("coefficient", "w"), ("variance", ""), *intercept}
    table = statistic.table()
    assert all({"quantity", "component", "estimate", "noise_sd"} == set(row) - {"cell"} for row in table)
    by_name = {(row["quantity"], row["component"]): row["estimate"] for row in table}
    assert by_name["n", ""] == pytest.approx(40)
    assert by_name["total_of_products", "x, y"] == pytest.approx(np.sum(data[:, 0] * data[:, 2]), rel=1e-4)
    assert statistic.quantity("total_of_squares", "w")[0][0] == pytest.approx(
        np.sum(data[:, 1] ** 2), rel=1e-4
    )
    with pytest.raises(UsageError, match=r"no quantity 'total_of_squares\[v\]'"):
        statistic.quantity("total_of_squares", "v")


@pytest.mark.slow
def test_draws_go_to_arviz_with_their_components() -> None:
    statistic = released(ENTRIES["normal"], rows_of(40, np.random.default_rng(7)))
    tree = posterior_of(statistic, method="plug-in").to_arviz(draws=30, rng=1)
    covariance = tree["posterior"]["covariance"]
    assert covariance.dims == ("chain", "draw", "cell", "covariance_component")
    assert covariance.sel(covariance_component="x, y").shape == (1, 30, 1)

"""Joint priors of a table's probabilities: against conjugate engines, quadrature and rejection."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

import suffice
from suffice import Density, LogPrior
from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.inference import any_table_prior, reweighting
from suffice.pipeline.ask.pooling.pool import pooled
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.distributions import reweighted
from suffice.pipeline.math.distributions.reweighted import effective, smoothed
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

TABLE = {"family": "contingency", "columns": {"a": ["0", "1", "2"], "b": ["0", "1"]}}


def released(entry: dict[str, Any], rows: Any) -> NoisyStatistic:
    return noisy_statistic(statistic_plan(entry, epsilon="1", public_n=False), np.array(rows))


def of_categories(*names: str) -> dict[str, Any]:
    return {"family": "categorical", "column": "x", "categories": list(names)}


def near_independence(probability: Floats, sd: float = 0.2) -> Floats:
    """Log odds ratios of a 3 x 2 table to that of its first row are normal about 0."""
    table = probability.reshape(-1, 3, 2)
    odds = np.log(table[:, :, 0] / table[:, :, 1])
    return np.asarray(-np.sum((odds[:, 1:] - odds[:, :1]) ** 2, axis=1) / 2 / sd**2)


def errors(posterior: Posterior, mean: Floats) -> Floats:
    """Of means, in Monte Carlo standard errors."""
    distribution: Any = posterior.distribution
    return np.asarray((posterior.mean() - mean) / posterior.sd() * np.sqrt(distribution.effective)[:, None])


ROWS = [[40, 22, 9], [3, 1, 0], [-2, 4, 1]]


@pytest.mark.parametrize("method", ["noise-aware", "plug-in"])
def test_a_conjugate_prior_by_its_density_has_the_conjugate_answer(method: str) -> None:
    """The truth is exact; the draws are always the same. Control: the uniform prior is many errors away."""
    statistic = released(of_categories("x", "y", "z"), ROWS)
    prior = LogPrior(lambda p: -0.4 * np.log(p[:, 0]) + 2.0 * np.log(p[:, 1]))
    posterior = posterior_of(statistic, prior=prior, method=method)
    expected = posterior_of(statistic, prior="Dirichlet(0.6, 3, 1)", method=method)
    # 18 comparisons at 4.5 errors: 1e-4 once, and then for ever.
    assert np.max(np.abs(errors(posterior, expected.mean()))) < 4.5
    assert np.max(np.abs(errors(posterior, posterior_of(statistic, method=method).mean()))) > 20.0
    assert posterior.sd() == pytest.approx(expected.sd(), rel=0.05)
    assert "approximate" in " ".join(posterior.notes)
    if method == "noise-aware":
        assert posterior.log_evidence == pytest.approx(expected.log_evidence, abs=0.03)


SEVERAL: dict[str, dict[str, Any]] = {
    "naive_bayes": {
        "family": "naive_bayes",
        "outcome": {"y": ["0", "1"]},
        "features": {"a": ["0", "1", "2"]},
    },
    "bayesian_network": {
        "family": "bayesian_network",
        "nodes": {"a": ["0", "1"], "b": {"categories": ["0", "1"], "parents": ["a"]}},
    },
    "markov_chain": {
        "family": "markov_chain",
        "column": "x",
        "categories": ["a", "b"],
        "order": "when",
        "transitions": "5",
    },
}


@pytest.mark.parametrize("family", SEVERAL)
@pytest.mark.parametrize("method", ["noise-aware", "plug-in"])
def test_several_tables_under_a_conjugate_prior_by_its_density(family: str, method: str) -> None:
    """Every distribution of a statistic weighed to Dirichlet(2). Control: the uniform one."""
    plan = statistic_plan(SEVERAL[family], epsilon="1", public_n=False)
    statistic = noisy_statistic(plan, np.array([[7, 3, 11, 2, 5, 9][: len(plan.components)]]))
    posterior = posterior_of(statistic, prior=LogPrior(lambda p: np.sum(np.log(p), axis=1)), method=method)
    expected = posterior_of(statistic, prior="Dirichlet(2)", method=method)
    # 44 comparisons at 6 errors: 1e-7.
    assert np.max(np.abs(errors(posterior, expected.mean()))) < 6.0
    assert posterior.sd() == pytest.approx(expected.sd(), rel=0.06)
    assert np.max(np.abs(errors(posterior, posterior_of(statistic, method=method).mean()))) > 10.0
    assert "approximate" in " ".join(posterior.notes)
    with pytest.raises(UsageError, match="no evidence"):
        _ = posterior.log_evidence


@pytest.mark.slow
def test_a_network_by_chains_counts_their_draws() -> None:
    entry = {
        "family": "bayesian_network",
        "nodes": {
            "a": ["0", "1"],
            "b": {"categories": ["0", "1"], "parents": ["a"]},
            "c": {"categories": ["0", "1"], "parents": ["b"]},
        },
    }
    statistic = released(entry, [[20, 9, 14, 30, 11, 18, 25, 19]])
    prior = LogPrior(np.log, parameters=("a=0",))
    posterior = posterior_of(statistic, prior=prior)
    reference = posterior_of(statistic)
    assert posterior.diagnostics["fewest_effective_draws"] <= reference.diagnostics["fewest_effective_draws"]
    assert posterior.mean()[0, 0] > reference.mean()[0, 0]


@pytest.mark.slow
def test_two_categories_are_a_probability_by_quadrature() -> None:
    def log_density(p: Floats) -> Floats:
        return np.asarray(-(((np.log(p) - np.log1p(-p)) - 0.5) ** 2) - np.abs(9 * p - 3))

    counts = [[40, 22], [3, 1], [-2, 4]]
    posterior = posterior_of(
        released(of_categories("no", "yes"), counts), prior=LogPrior(log_density, parameters=("yes",))
    )
    of_one = released({"family": "bernoulli"}, counts)
    expected = posterior_of(of_one, prior=Density(log_density, 0, 1))
    both = np.stack([1.0 - expected.mean(), expected.mean()], axis=1)
    assert np.max(np.abs(errors(posterior, both))) < 4.5
    assert posterior.sd()[:, 1] == pytest.approx(expected.sd(), rel=0.05)
    quartiles = posterior.quantile("probability", [0.25, 0.75])[:, 1]
    for cell, (low, high) in enumerate(quartiles):
        distribution: Any = expected.distribution
        below = distribution.cdf(np.tile([low, high], (3, 1)))[cell]
        assert below == pytest.approx([0.25, 0.75], abs=0.03)


def test_an_order_is_kept_and_is_what_rejection_leaves() -> None:
    """Means within six errors of simulation, by the draws that diagnostics say are effective."""
    statistic = released(of_categories("x", "y", "z"), [[12, 10, 9], [3, 1, 0]])
    prior = LogPrior(lambda x, y: np.where(x < y, 0.0, -np.inf), parameters=("x", "y"))
    posterior = posterior_of(statistic, prior=prior)
    rng = np.random.default_rng(7)
    drawn = posterior.sample(2000, rng)["probability"]
    assert np.all(drawn[:, :, 0] < drawn[:, :, 1])
    exact = posterior_of(statistic, prior="Dirichlet(1)").sample(100_000, rng)["probability"]
    for cell in range(2):
        kept = exact[exact[:, cell, 0] < exact[:, cell, 1], cell]
        # Both of draws: their errors added up, 6 of them.
        error = posterior.sd()[cell] / np.sqrt(posterior.diagnostics["fewest_effective_draws"]) + kept.std(
            axis=0
        ) / np.sqrt(len(kept))
        assert np.all(np.abs(posterior.mean()[cell] - kept.mean(axis=0)) < 6 * error)


@pytest.mark.slow
def test_a_hundred_tables_near_independence_take_less_than_ten_seconds() -> None:
    rng = np.random.default_rng(7)
    statistic = released(TABLE, rng.poisson(40, (100, 6)))
    start = time.perf_counter()
    posterior = posterior_of(statistic, prior=LogPrior(near_independence))
    intervals = posterior.credible_interval()
    assert time.perf_counter() - start < 10.0
    assert np.all(intervals[..., 0] < intervals[..., 1])
    assert posterior.diagnostics["largest_pareto_k"] <= 0.7

    def spread(of: Posterior) -> float:
        drawn = of.sample(500, rng)["probability"].reshape(-1, 3, 2)
        odds = np.log(drawn[:, :, 0] / drawn[:, :, 1])
        return float(np.mean(np.std(odds, axis=1)))

    assert spread(posterior) < 0.7 * spread(posterior_of(statistic))


def haldane(probability: Floats) -> Floats:
    return np.asarray(-np.sum(np.log(probability), axis=1))


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (LogPrior(haldane), "improper.*no release makes its posterior proper"),
        (LogPrior(lambda p: np.full(len(p), -np.inf)), "none has a density"),
        (LogPrior(lambda p: p), "has the shape"),
        (LogPrior(lambda p: np.full(len(p), np.nan)), "NaN or infinite"),
        (LogPrior(lambda p: 1j * p[:, 0]), "complex"),
        (LogPrior(lambda p: 0 * p, parameters=("nobody",)), "there is no 'nobody'"),
        (LogPrior(lambda p: p["x"]), "raised IndexError"),
        (LogPrior(lambda p: 0 * p[:, 0], support={"x": (0.9999, 1)}), "none has|only .* count|improper"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_no_draws_can_answer_is_refused(prior: Any, words: str) -> None:
    with pytest.raises(PriorError, match=words):
        posterior_of(released(of_categories("x", "y", "z"), ROWS), prior=prior)


def test_a_prior_far_from_what_was_released_is_refused() -> None:
    statistic = released(of_categories("x", "y", "z"), [[400, 2, 300]])
    with pytest.raises(PriorError, match="so far apart"):
        posterior_of(statistic, prior=LogPrior(lambda p: np.where(p[:, 1] > 0.5, 0.0, -np.inf)))


def test_the_threshold_of_k_is_what_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (any_table_prior, reweighting):
        monkeypatch.setattr(module, "LARGEST_SHAPE", 99.0)
    for module in (any_table_prior, reweighted):
        monkeypatch.setattr(module, "FEWEST_EFFECTIVE", 0.0)
    ignored = posterior_of(released(of_categories("x", "y", "z"), [[9, 5, 0]]), prior=LogPrior(haldane))
    assert ignored.diagnostics["draws"] == 20_000  # a number, where there is no posterior


def test_other_families_and_pools_refuse_it() -> None:
    with pytest.raises(PriorError, match="one parameter: name it"):
        posterior_of(released({"family": "bernoulli"}, [[4, 3]]), prior=LogPrior(haldane, parameters=("p",)))
    part = released(of_categories("x", "y", "z"), ROWS)
    with pytest.raises(PriorError, match="takes a conjugate prior alone"):
        pooled([part, part], prior=LogPrior(lambda p: 0 * p[:, 0]), rng=np.random.default_rng(7))
    assert suffice.LogPrior is LogPrior


@pytest.mark.slow
def test_of_one_parameter_and_of_a_mean_and_a_variance_it_is_the_density_that_it_is() -> None:
    of_one = released({"family": "poisson", "upper": "6"}, [[50, 40], [3, 1]])
    prior = LogPrior(lambda rate: -rate, parameters=("rate",))
    expected = posterior_of(of_one, prior="1*Exponential(1)", clipping="ignored")
    assert posterior_of(of_one, prior=prior, clipping="ignored").mean() == pytest.approx(expected.mean())
    entry = {"family": "normal", "lower": "-10", "upper": "10"}
    plan = statistic_plan(entry, epsilon="1", public_n=False)
    of_both = noisy_statistic(plan, np.array([[40, 30, 25]]) * plan.partition_total)
    joint = LogPrior(
        lambda mean, sd: -np.abs(mean) / sd - sd, parameters=("mean", "sd"), support={"sd": (0.1, 9)}
    )
    alike = suffice.JointDensity(lambda m, s: -np.abs(m) / s - s, mean=(-np.inf, np.inf), sd=(0.1, 9))
    joined, known = (posterior_of(of_both, prior=each, clipping="ignored") for each in (joint, alike))
    assert joined.mean("mean") == pytest.approx(known.mean("mean"))
    with pytest.raises(PriorError, match="name them"):
        posterior_of(of_both, prior=LogPrior(lambda m: -m, parameters=("mean",)))


@pytest.mark.parametrize("shape", [0.1, 0.5, 0.9])
def test_the_shape_of_a_tail_is_seen(shape: float) -> None:
    """Of 100,000 weights with a Pareto tail: k errs by about (1 + k) / sqrt(949); 6 of it are allowed."""
    weights = stats.genpareto(shape).rvs(100_000, random_state=np.random.default_rng(7))
    _, estimate = smoothed(np.log(weights))
    assert abs(estimate - shape) < 6 * (1 + shape) / np.sqrt(949) + 0.02


def test_smoothed_weights_keep_their_order_and_count() -> None:
    rng = np.random.default_rng(7)
    log_weight = rng.normal(0.0, 1.0, 20_000)
    weight, _ = smoothed(log_weight)
    assert np.all(np.diff(weight[np.argsort(log_weight)]) >= -1e-15)
    assert weight.sum() == pytest.approx(1.0)
    # Of lognormal weights of sd s, exp(-s^2) count.
    assert effective(weight) == pytest.approx(20_000 * np.exp(-1.0), rel=0.3)
    alike, none = smoothed(np.zeros(1000))
    assert none == -np.inf
    assert alike == pytest.approx(np.full(1000, 1e-3))

"""Models of one's own in NumPyro's sampler: against our posteriors, and the example of the documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import suffice
from suffice.pipeline.ask.borrowing.pooled_posterior import pooled_posterior
from suffice.pipeline.ask.inference.posterior_terms import PosteriorTerms
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from support.joint import plan_of
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan
from support.tables import TABLES, conditional_tables
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic


numpyro = pytest.importorskip("numpyro")
numpyro.enable_x64()

import jax.numpy as jnp  # noqa: E402
from numpyro import distributions as dist  # noqa: E402
from numpyro.diagnostics import effective_sample_size  # noqa: E402

from suffice import numpyro as likelihood  # noqa: E402

BERNOULLI: dict[str, Any] = {"family": "bernoulli"}


def sample(model: Callable[[], None], seed: int = 0, samples: int = 1500) -> dict[str, Any]:
    """Draw from a model with NUTS; its seed makes no test pass or fail by itself."""
    from jax import random
    from numpyro.infer import MCMC, NUTS

    chain = MCMC(NUTS(model), num_warmup=300, num_samples=samples, progress_bar=False)
    chain.run(random.PRNGKey(seed))
    return {name: np.asarray(values) for name, values in chain.get_samples().items()}


def normal_model(statistic: NoisyStatistic) -> None:
    mean, variance = normal_inverse_gamma(len(statistic.values))
    names = FAMILIES[statistic.plan.family].parameter_names(statistic.plan.parameters)
    likelihood.observe(statistic, n_prior=N_PRIOR, **dict(zip(names, (mean, variance), strict=True)))


def normal_inverse_gamma(cells: int) -> tuple[Any, Any]:
    """NormalInverseGamma(0, 1, 3, 1)."""
    with numpyro.plate("cells", cells):
        variance = numpyro.sample("variance", dist.InverseGamma(3.0, 1.0))
        return numpyro.sample("mean", dist.Normal(0.0, jnp.sqrt(variance))), variance


def columns_model(statistic: NoisyStatistic) -> None:
    """NormalInverseWishart(0, 1, 7, 1)."""
    cells = len(statistic.values)
    with numpyro.plate("cells", cells):
        root = numpyro.sample("root", dist.WishartCholesky(7.0, rate_matrix=jnp.eye(2)))
        covariance = jnp.linalg.inv(root @ jnp.swapaxes(root, 1, 2))
        mean = numpyro.sample("mean", dist.MultivariateNormal(jnp.zeros(2), covariance))
    numpyro.deterministic("variance", jnp.diagonal(covariance, axis1=1, axis2=2))
    numpyro.deterministic("covariance", covariance[:, :1, 1])
    likelihood.observe(statistic, n_prior=N_PRIOR, mean=mean, covariance=covariance)


def line_model(statistic: NoisyStatistic) -> None:
    """NormalInverseGammaRegression(0, 1, 3, 1)."""
    slope, variance = normal_inverse_gamma(len(statistic.values))
    parameters = {"coefficient": slope[:, None], "variance": variance}
    numpyro.deterministic("coefficient", slope[:, None])
    if "intercept" in FAMILIES["linear_regression"].parameter_names(statistic.plan.parameters):
        parameters["intercept"] = numpyro.sample(
            "intercept", dist.Normal(0.0, jnp.sqrt(variance)).to_event(1)
        )
    likelihood.observe(statistic, n_prior=N_PRIOR, **parameters)


def table_model(statistic: NoisyStatistic) -> None:
    """Dirichlet(1) of every distribution."""
    parts = []
    for table in conditional_tables(statistic.plan):
        entries = table.size if statistic.plan.family == "contingency" else table.shape[-1]
        rows = dist.Dirichlet(jnp.ones(entries)).expand((len(statistic.values), table.size // entries))
        parts.append(numpyro.sample(f"of_{table.name}", rows.to_event(2)).reshape(len(statistic.values), -1))
    probability = numpyro.deterministic("probability", jnp.concatenate(parts, axis=1))
    likelihood.observe(statistic, n_prior=N_PRIOR, probability=probability)


def chance_model(statistic: NoisyStatistic) -> None:
    """Beta(1, 1)."""
    with numpyro.plate("cells", len(statistic.values)):
        probability = numpyro.sample("probability", dist.Beta(1.0, 1.0))
    likelihood.observe(statistic, n_prior=N_PRIOR, probability=probability)


N_PRIOR = "Uniform(0, 60)"
SIDE = {"lower": "-1", "upper": "1"}
LINE = {"family": "linear_regression", "outcome": {"y": SIDE}, "predictors": {"x": SIDE}}
ONE = "NormalInverseGamma(0, 1, 3, 1)"
ACROSS = suffice.NormalInverseGammaRegression(0, 1, 3, 1)
SAMPLED: dict[str, tuple[dict[str, Any], str, Callable[[NoisyStatistic], None], Any, list[float]]] = {
    "normal": ({"family": "normal", **SIDE}, "1", normal_model, ONE, [11.0, 16.0, 2.0]),
    "lognormal": (
        {"family": "lognormal", "lower": "0.4", "upper": "2.5"},
        "1",
        normal_model,
        ONE,
        [9.0, 12.0, 11.0],
    ),
    "multivariate_normal": (
        {"family": "multivariate_normal", "columns": {"x": SIDE, "y": SIDE}},
        "2",
        columns_model,
        suffice.NormalInverseWishart(0, 1, 7, 1),
        [14.0, 5.0, 1.0, -2.0, 4.0, 1.5],
    ),
    "linear_regression": (LINE, "2", line_model, ACROSS, [14.0, 5.0, 1.0, -2.0, 4.0, 1.5]),
    "through_0": ({**LINE, "intercept": "false"}, "2", line_model, ACROSS, [14.0, 2.0, 3.0, -1.0]),
    "bernoulli": (BERNOULLI, "1", chance_model, None, [20.0, -3.0]),
    **{
        name: (TABLES[name], "4", table_model, None, [])
        for name in ("contingency", "naive_bayes", "star", "chain", "collider", "markov_chain")
    },
}
"""Entries of a spec, epsilon, the joint model, its prior, and released values: in records, where given."""


@pytest.mark.audit
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", SAMPLED)
def test_a_sampler_finds_our_posterior(name: str) -> None:
    """NUTS on the joint model; six standard errors of both routes: 2e-9 for each of at most forty numbers.

    The control is the plug-in posterior of the same released numbers, far more than twelve errors away.
    """
    entry, epsilon, model, prior, values = SAMPLED[name]
    columns = "columns" in entry or "outcome" in entry
    plan = (plan_of if columns and name not in TABLES else statistic_plan)(
        entry, epsilon=epsilon, public_n=False
    )
    unit = 1 if plan.family in ("bernoulli", *TABLES, "bayesian_network") else 4**16
    unit *= 4 if unit > 1 and len(plan.components) == 3 and not columns else 1
    row = values or np.resize([7, -2, 3, 1, 4], len(plan.components)).tolist()
    statistic = noisy_statistic(plan, np.array([[round(value * unit) for value in row]], dtype=object))
    ours = unrestricted_posterior(statistic, prior=prior, n_prior=N_PRIOR)
    draws = sample(lambda: model(statistic), samples=4000)
    naive = posterior_of(statistic, prior=prior, method="plug-in")
    worst, control = 0.0, 0.0
    given = (
        dict(zip(ours.parameters, ("mean", "variance"), strict=False)) if plan.family == "lognormal" else {}
    )
    for parameter in ours.parameters:
        drawn = draws[given.get(parameter, parameter)].reshape(-1, *ours.mean(parameter).shape)
        effective = effective_sample_size(drawn[None])
        assert np.all(effective > 150)
        effective = ours.diagnostics.get("fewest_effective_draws", np.inf)
        error = ours.sd(parameter) * np.sqrt(1.0 / effective + 1.0 / effective)
        worst = max(worst, np.max(np.abs(drawn.mean(axis=0) - ours.mean(parameter)) / error))
        control = max(control, np.max(np.abs(drawn.mean(axis=0) - naive.mean(parameter)) / error))
    assert worst < 6.0
    assert control > 6.0


@pytest.mark.audit
@pytest.mark.timeout(1800)
def test_the_example_in_the_docs_pools_partially() -> None:
    """Airports with few flights are drawn towards the others, and the spread is learned."""
    text = (Path(__file__).parents[4] / "docs" / "how-to" / "model-in-numpyro.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(# partial pooling\n.*?)```", text, re.DOTALL)
    code = code.replace("num_warmup=400, num_samples=2000", "num_warmup=100, num_samples=200")
    plan = statistic_plan({"family": "normal", "lower": "-60", "upper": "180"}, epsilon="0.5", public_n=False)
    sums = []
    for n, mean, sd in (
        (900, 4.0, 30.0),
        (700, 8.0, 30.0),
        (800, 6.0, 30.0),
        (1000, 5.0, 30.0),
        (6, 60.0, 30.0),
    ):
        z, spread = (mean - 60.0) / 120.0, (sd / 120.0) ** 2
        square = z**2 + spread
        sums.append([n * (1 - 2 * z + square) / 4, n * (1 - square) / 2, n * (1 + 2 * z + square) / 4])
    rows = [[round(part * 4 * 2**32) for part in row] for row in sums]
    delays = noisy_statistic(plan, np.array(rows, dtype=object))
    space: dict[str, Any] = {"arr_delay": delays, "n_airports": len(rows)}
    exec(compile(code, "docs/how-to/model-in-numpyro.md", "exec"), space)  # noqa: S102 - our own text
    means = np.asarray(space["means"])
    assert means.shape[1] == len(rows)
    alone = unrestricted_posterior(delays).mean("mean")
    together = means.mean(axis=0)
    assert together[:4] == pytest.approx(alone[:4], abs=3.0)
    assert together[4] < alone[4] - 30.0
    assert means[:, 4].std() > 1.2 * means[:, :4].std(axis=0).max()


class OneStatistic:
    """As much of a release as the page asks for: one statistic, and its pooled posterior."""

    def __init__(self, statistic: NoisyStatistic) -> None:
        self._statistic = statistic

    def statistic(self, _name: str) -> NoisyStatistic:
        return self._statistic

    def posterior(self, _name: str, *, pooled: str | suffice.Pooling, n_prior: str) -> PooledPosterior:
        terms = PosteriorTerms(n_prior=n_prior)
        return pooled_posterior(self._statistic, terms, pooled, lambda: posterior_of(self._statistic))


@pytest.mark.audit
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("pooling", "other"),
    [
        ("logit-normal", "contaminated"),
        ("contaminated", "logit-normal"),
        (suffice.Pooling(population="logit-normal", formula="~ cell"), "logit-normal"),
    ],
    ids=["logit-normal", "contaminated", "covariates"],
)
def test_a_sampler_pools_cells_as_the_page_says(pooling: str | suffice.Pooling, other: str) -> None:
    """Six standard errors of 24 means, by the fewest effective draws: 8e-8 for all three.

    The control is another population, which draws an outlying cell elsewhere, or knows no covariate.
    """
    text = (Path(__file__).parents[4] / "docs" / "how-to" / "model-in-numpyro.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(# pooled cells\n.*?)```", text, re.DOTALL)
    rng = np.random.default_rng(33)
    size = rng.integers(30, 200, 24)
    has_covariate = isinstance(pooling, suffice.Pooling)
    column = np.arange(24.0)
    design = (column - column.mean()) / column.std()
    drawn = rng.normal(-2.0, 0.4, 24) + 0.4 * np.log(size / 80.0) + (0.8 * design if has_covariate else 0.0)
    truth = 1.0 / (1.0 + np.exp(-drawn))
    truth[5] = 0.7
    true = rng.binomial(size, truth)
    plan = statistic_plan(BERNOULLI, epsilon="0.5", public_n=False)
    counts = np.stack([size - true, true], axis=1)
    release = OneStatistic(noisy_statistic(plan, counts + discrete_laplace(plan.scale, counts.shape, rng)))
    space: dict[str, Any] = {
        "release": release,
        "pooling": pooling,
        "design": design[:, None] if has_covariate else None,
    }
    exec(compile(code, "docs/how-to/model-in-numpyro.md", "exec"), space)  # noqa: S102 - our own text
    draws = np.asarray(space["probabilities"])
    pooled = space["pooled"]
    effective = effective_sample_size(draws[None])
    assert np.min(effective) > 400
    error = pooled.sd() / np.sqrt(effective)
    assert np.max(np.abs(draws.mean(axis=0) - pooled.mean()) / error) < 6.0
    elsewhere = release.posterior("ill", pooled=other, n_prior="Uniform(0, 100000)")
    assert np.max(np.abs(draws.mean(axis=0) - elsewhere.mean()) / error) > 6.0

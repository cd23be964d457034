"""The release as a likelihood in NumPyro: against sums written out and our posteriors."""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import integrate, special, stats

from suffice.errors import MissingExtraError, UsageError
from suffice.pipeline.math.distributions.spread_scales import LARGEST, LARGEST_WEIGHTS
from suffice.pipeline.math.priors.mixtures import SpreadInverseGamma, SpreadScale
from support.generative_models import generative_model_for
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import pooled, unrestricted_posterior

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


numpyro = pytest.importorskip("numpyro")
numpyro.enable_x64()

import jax  # noqa: E402 - after the check that it is there

from suffice import numpyro as likelihood  # noqa: E402

BERNOULLI: dict[str, Any] = {"family": "bernoulli"}
CATEGORICAL: dict[str, Any] = {"family": "categorical", "categories": ["a", "b"], "other": "true"}
TABLES = ("categorical", "contingency", "naive_bayes", "bayesian_network", "markov_chain")


def released(
    statistic: dict[str, Any], rows: list[list[int]], *, epsilon: str = "1", public_n: int | None = None
) -> NoisyStatistic:
    plan = statistic_plan(statistic, epsilon=epsilon, public_n=public_n is not None)
    return noisy_statistic(plan, np.array(rows, dtype=object), public_n=public_n)


COUNTS: dict[str, tuple[dict[str, Any], Callable[[float, int], Any], list[float]]] = {
    "binomial": ({"trials": "3"}, lambda p, n: stats.binom(3 * n, p), [0.1, 0.4, 0.8]),
    "poisson": ({"upper": "4"}, lambda rate, n: stats.poisson(n * rate), [0.3, 1.0, 2.5]),
    "geometric": ({"upper": "4"}, lambda p, n: stats.nbinom(n, p), [0.2, 0.5, 0.9]),
    "negative_binomial": (
        {"upper": "4", "successes": "2"},
        lambda p, n: stats.nbinom(2 * n, p),
        [0.3, 0.5, 0.9],
    ),
}
"""Keys of the spec, the distribution of the total of n records, parameters."""

SUMS: dict[str, tuple[dict[str, Any], Callable[[float, int], Any], list[float], str]] = {
    "exponential": ({"upper": "4"}, lambda r, n: stats.gamma(n, scale=1 / r), [0.5, 1.0, 3.0], "rate"),
    "gamma": (
        {"upper": "4", "shape": "2.5"},
        lambda r, n: stats.gamma(2.5 * n, scale=1 / r),
        [1.0, 2.0, 5.0],
        "rate",
    ),
    "weibull": (
        {"upper": "2", "shape": "2"},
        lambda r, n: stats.gamma(n, scale=1 / r),
        [0.5, 1.0, 3.0],
        "rate",
    ),
    "pareto": (
        {"minimum": "1", "upper": "20"},
        lambda a, n: stats.gamma(n, scale=1 / a),
        [0.7, 1.5, 4.0],
        "shape",
    ),
    "laplace": (
        {"location": "0", "half_range": "3"},
        lambda s, n: stats.gamma(n, scale=s),
        [0.3, 1.0, 2.0],
        "scale",
    ),
    "normal_known_mean": (
        {"mean": "0", "half_range": "2"},
        lambda v, n: stats.gamma(n / 2, scale=2 * v),
        [0.2, 1.0, 3.0],
        "variance",
    ),
    "normal_known_variance": (
        {"lower": "-2", "upper": "3", "variance": "0.5"},
        lambda m, n: stats.norm(n * (m + 2), np.sqrt(0.5 * n)),
        [-1.0, 0.5, 2.0],
        "mean",
    ),
}


def differences(log_likelihoods: Floats) -> Floats:
    """Likelihoods are known up to a constant: what counts is how they differ between parameters."""
    relative: Floats = log_likelihoods - log_likelihoods[0]
    return relative


def log_density(statistic: NoisyStatistic, **parameters: Any) -> Floats:
    """The likelihood of one cell at several values of the parameters."""
    (points,) = parameters.values()
    cells = noisy_statistic(
        statistic.plan, np.repeat(statistic.values, len(points), axis=0), public_n=statistic.public_n
    )
    prior = None if statistic.public_n is not None else "Uniform(0, 6)"
    by_name = {name: np.array(value) for name, value in parameters.items()}
    return compiled(cells, prior, **by_name)


def compiled(cells: NoisyStatistic, n_prior: str | None, **parameters: Floats) -> Floats:
    """The likelihood, compiled as a whole: far quicker than operation by operation."""
    of = jax.jit(lambda given: likelihood.log_likelihood(cells, n_prior=n_prior, **given))
    return np.asarray(of(parameters))


@pytest.mark.parametrize("row", [[9, 14], [-3, 7]])
@pytest.mark.parametrize("family", COUNTS)
def test_sums_over_counts_are_those_written_out(family: str, row: list[int]) -> None:
    keys, distribution, values = COUNTS[family]
    statistic = released({"family": family, **keys}, [row], epsilon="2")
    name = "rate" if family == "poisson" else "probability"
    upper, scale = int(statistic.plan.partition_total or 0), statistic.plan.scale
    exact = []
    for value in values:
        total = 0.0
        for n in range(7):
            s = np.arange(400)
            mass = distribution(value, n).pmf(s) if n else (s == 0).astype(float)
            total += float(np.sum(mass * np.exp(-(abs(row[0] - s) + abs(row[1] - upper * n + s)) / scale)))
        exact.append(np.log(total))
    assert differences(log_density(statistic, **{name: values})) == pytest.approx(
        differences(np.array(exact)), abs=1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "sums", "epsilon"),
    [
        *((family, (9.0, 17.0), "0.5") for family in SUMS),
        *((family, (-3.0, 10.0), "20") for family in ("exponential", "normal_known_variance")),
    ],
)
def test_integrals_over_sums_are_those_of_a_quadrature(
    family: str, sums: tuple[float, float], epsilon: str
) -> None:
    keys, distribution, values, name = SUMS[family]
    steps = 2**10
    statistic = released({"family": family, **keys, "lattice_bits": "10"}, [[0, 0]])
    plan = statistic.plan
    width = float((plan.parameters.upper or 0) - (plan.parameters.lower or 0))
    total = plan.partition_total or steps
    row = [round(part * total / width) for part in sums]
    statistic = released({"family": family, **keys, "lattice_bits": "10"}, [row], epsilon=epsilon)
    scale = statistic.plan.scale * width / total
    first, second = (part * width / total for part in row)
    exact = []
    for value in values:
        whole = float(np.exp(-(abs(first) + abs(second)) / scale))
        for n in range(1, 7):
            of_n = distribution(value, n)
            kinks = sorted([first, width * n - second])

            def integrand(s: float, of_n: Any = of_n, n: int = n) -> float:
                return float(of_n.pdf(s) * np.exp(-(abs(first - s) + abs(second - (width * n - s))) / scale))

            reach = 14 * of_n.std()
            low = max(of_n.support()[0], of_n.mean() - reach)
            high = of_n.mean() + reach + 45 * of_n.var() / (abs(of_n.mean()) + of_n.std())
            ends = np.unique(np.clip([low, *kinks, of_n.median(), high, *np.add(kinks, scale)], low, high))
            whole += sum(
                integrate.quad(integrand, a, b, epsabs=0, epsrel=1e-10, limit=200)[0]
                for a, b in itertools.pairwise(ends)
            )
        exact.append(np.log(whole))
    assert differences(log_density(statistic, **{name: values})) == pytest.approx(
        differences(np.array(exact)), abs=1e-6
    )


@pytest.mark.parametrize("family", ["exponential", "poisson"])
def test_a_minimal_statistic_has_one_noise_and_a_known_n(family: str) -> None:
    keys, distribution, values = (SUMS if family == "exponential" else COUNTS)[family][:3]
    bits = {"lattice_bits": "10"} if family == "exponential" else {}
    statistic = released({"family": family, **keys, **bits}, [[0]], public_n=5)
    total, noise_sd = statistic.quantity("total")
    scale = statistic.plan.scale * noise_sd / statistic.plan.component_noise_sd
    step = scale / statistic.plan.scale
    statistic = released({"family": family, **keys, **bits}, [[round(6.0 / step)]], public_n=5)
    (total,), _ = statistic.quantity("total")
    exact = []
    for value in values:
        of_n = distribution(value, 5)
        if family == "poisson":
            s = np.arange(200)
            exact.append(np.log(np.sum(of_n.pmf(s) * np.exp(-abs(total - s) / scale))))
        else:
            ends = [of_n.ppf(1e-17), total, of_n.isf(1e-17)]
            parts = [
                integrate.quad(
                    lambda s, of_n=of_n: of_n.pdf(s) * np.exp(-abs(total - s) / scale), a, b, epsrel=1e-10
                )[0]
                for a, b in itertools.pairwise(sorted(ends))
            ]
            exact.append(np.log(sum(parts)))
    assert differences(log_density(statistic, rate=values)) == pytest.approx(
        differences(np.array(exact)), abs=1e-6
    )


@pytest.mark.slow
@pytest.mark.parametrize("public_n", [None, 12])
@pytest.mark.parametrize("keys", [BERNOULLI, CATEGORICAL])
def test_three_routes_agree(keys: dict[str, Any], public_n: int | None) -> None:
    """Ours against this likelihood times the prior on a grid; ours is tested against enumeration too."""
    row = [7, 3] if keys is BERNOULLI else [7, 3, 5]
    if keys is BERNOULLI and public_n is not None:
        row = [7]
    statistic = released(keys, [row], epsilon="2", public_n=public_n)
    n_prior = None if public_n is not None else "Uniform(0, 30)"
    posterior = unrestricted_posterior(statistic, n_prior=n_prior, clipping="ignored")
    if keys is BERNOULLI:
        points = (np.arange(200) + 0.5) / 200
        grid: Floats = points
    else:
        points = (np.arange(28) + 0.5) / 28
        first, second = (axis.ravel() for axis in np.meshgrid(points, points))
        inside = first + second < 1.0
        grid = np.stack([first, second, 1.0 - first - second], axis=1)[inside]
    cells = noisy_statistic(statistic.plan, np.repeat(statistic.values, len(grid), axis=0), public_n=public_n)
    log_weight = compiled(cells, n_prior, probability=grid)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = weight @ grid
    sd = np.sqrt(weight @ (grid - mean) ** 2)
    tolerance = 1e-4 if keys is BERNOULLI else 2e-2
    assert posterior.mean("probability")[0] == pytest.approx(mean, rel=tolerance)
    assert posterior.sd("probability")[0] == pytest.approx(sd, rel=tolerance)


QUICK = {"exponential"}
POOLED = [
    *(
        (family, keys, "rate" if family == "poisson" else "probability")
        for family, (keys, _, _) in COUNTS.items()
    ),
    *((family, keys, name) for family, (keys, _, _, name) in SUMS.items()),
]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("family", "keys", "name"),
    [pytest.param(*case, marks=() if case[0] in QUICK else pytest.mark.audit) for case in POOLED],
)
def test_pooled_posteriors_are_products_of_these_likelihoods(
    family: str, keys: dict[str, Any], name: str
) -> None:
    """Two quadratures over one another's latent statistics, for every family with one sum."""
    bits = {} if family in COUNTS else {"lattice_bits": "10"}
    first = released({"family": family, **keys, **bits}, [[0, 0]], epsilon="3")
    upper = int(first.plan.partition_total or 0)
    rows = [[round(share * upper) for share in row] for row in ((3.0, 7.0), (6.0, 9.0))]
    parts = [released({"family": family, **keys, **bits}, [row], epsilon="3") for row in rows]
    n_prior = "Uniform(0, 30)"
    posterior = pooled(parts, prior=None, n_prior=n_prior, rng=np.random.default_rng(7))
    draws = posterior.sample(20_000, 1)[name][:, 0]
    low, high = np.quantile(draws, [0.0005, 0.9995])
    grid = np.linspace(low - (high - low) / 4, high + (high - low) / 4, 200)
    if name != "mean":
        grid = grid[(grid > 1e-3) & ((grid < 1.0) | (name != "probability"))]
    log_weight = log_prior_density(
        unrestricted_posterior(parts[0], n_prior=n_prior, clipping="ignored"), grid
    )
    for part in parts:
        cells = noisy_statistic(part.plan, np.repeat(part.values, len(grid), axis=0))
        log_weight = log_weight + compiled(cells, n_prior, **{name: grid})
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = weight @ grid
    sd = np.sqrt(weight @ (grid - mean) ** 2)
    assert posterior.mean(name)[0] == pytest.approx(mean, abs=0.01 * sd)
    assert posterior.sd(name)[0] == pytest.approx(sd, rel=0.01)


def log_prior_density(posterior: Any, grid: Floats) -> Floats:
    """The prior's log density, by scipy."""
    prior = posterior.prior
    if isinstance(prior, SpreadScale):
        of = stats.invgamma if isinstance(prior, SpreadInverseGamma) else stats.gamma
        rates = [2.0 * variance * prior.upper for variance in LARGEST]
        scales = rates if of is stats.invgamma else [1 / rate for rate in rates]
        parts = [of.logpdf(grid, 3.0, scale=scale) for scale in scales]
        mixed: Floats = special.logsumexp(parts, axis=0, b=np.array(LARGEST_WEIGHTS)[:, None])
        return mixed
    distributions: dict[str, Callable[[], Any]] = {
        "Beta": lambda: stats.beta(prior.concentration1, prior.concentration0),
        "Gamma": lambda: stats.gamma(prior.concentration, scale=1 / prior.rate),
        "InverseGamma": lambda: stats.invgamma(prior.concentration, scale=prior.scale),
        "Normal": lambda: stats.norm(prior.loc, prior.scale),
    }
    density: Floats = distributions[type(prior).__name__]().logpdf(grid)
    return density


@pytest.mark.parametrize(
    ("family", "parameters", "rule"),
    [
        *(("bernoulli", {"probability": wrong}, "between 0 and 1") for wrong in (2.0, -0.1)),
        *(("bernoulli", {"probability": wrong}, "finite") for wrong in (np.nan, np.inf, 1j)),
        ("poisson", {"rate": 0.0}, "above 0"),
        *((family, {"probability": 0.4}, "sum 1") for family in TABLES),
        ("laplace", {"scale": -1.0}, "above 0"),
    ],
)
def test_numbers_that_no_parameter_can_be_are_refused(
    family: str, parameters: dict[str, Any], rule: str
) -> None:
    generative_model = generative_model_for(family, n=20)
    nothing = np.zeros((1, len(generative_model.plan.components)), dtype=object)
    cell = generative_model.noisy(nothing, nothing)
    (name,) = parameters
    with pytest.raises(UsageError, match=rf"{name} has to be numbers that are .*{rule}"):
        likelihood.log_likelihood(cell, **parameters)


@pytest.mark.slow
def test_distributions_of_tables_may_follow_one_another() -> None:
    """Each of the rows of a table is a distribution: their sum is not 1."""
    generative_model = generative_model_for("markov_chain", n=20)
    nothing = np.zeros((1, len(generative_model.plan.components)), dtype=object)
    cell = generative_model.noisy(nothing, nothing)
    states = int(np.sqrt(len(generative_model.plan.components)))
    log_likelihood = likelihood.log_likelihood(cell, probability=np.full((1, states**2), 1.0 / states))
    assert np.all(np.isfinite(np.asarray(log_likelihood)))


@pytest.mark.slow
def test_an_observation_outside_of_a_model_is_refused() -> None:
    statistic = released(BERNOULLI, [[3, 4]])
    with pytest.raises(UsageError, match="outside of a model"):
        likelihood.observe(statistic, probability=0.3)
    normal = released({"family": "normal", "lower": "0", "upper": "1"}, [[3, 4, 5]])
    with pytest.raises(UsageError, match="outside of a model"):
        likelihood.observe(normal, mean=0.0, variance=1.0)

    def model() -> None:
        likelihood.observe(statistic, probability=0.3)

    value, _ = numpyro.infer.util.log_density(model, (), {}, {})
    expected = likelihood.log_likelihood(statistic, probability=0.3)
    assert float(value) == pytest.approx(float(expected[0]))


def test_what_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    statistic = released(BERNOULLI, [[3, 4]])
    with pytest.raises(UsageError, match="give probability, not nothing"):
        likelihood.log_likelihood(statistic)
    with pytest.raises(UsageError, match="give probability"):
        likelihood.log_likelihood(statistic, rate=0.5)
    normal = released({"family": "normal", "lower": "0", "upper": "1"}, [[3, 4, 5]])
    nothing: Any
    for nothing in ("late", None, 5):
        for of in (likelihood.observe, likelihood.log_likelihood):
            with pytest.raises(UsageError, match=r"a released statistic, as release\.statistic"):
                of(nothing, probability=0.3)
    wrong: Any
    for wrong in ("x", None, {}, np.ones(7), np.ones((2, 2))):
        with pytest.raises(UsageError, match=r"probability has to be numbers that broadcast to \(1,\)"):
            likelihood.log_likelihood(released(BERNOULLI, [[3, 4]]), probability=wrong)
    with pytest.raises(UsageError, match=r"broadcast to \(1, 3\), not ndarray of shape \(2,\)"):
        likelihood.log_likelihood(released(CATEGORICAL, [[3, 4, 5]]), probability=np.ones(2) / 2)
    with pytest.raises(UsageError, match=r"latent numbers of shape \(1, 2\)"):
        likelihood.log_likelihood(normal, mean=0.0, variance=1.0)
    with pytest.raises(UsageError, match="the noise is wide"):
        likelihood.log_likelihood(released(BERNOULLI, [[3, 4]], epsilon="0.001"), probability=0.5)
    numpyro.enable_x64(False)  # noqa: FBT003 - its own signature
    try:
        with pytest.raises(UsageError, match="enable_x64"):
            likelihood.log_likelihood(statistic, probability=0.5)
    finally:
        numpyro.enable_x64()
    monkeypatch.delitem(sys.modules, "suffice.numpyro")
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(MissingExtraError, match=r"suffice\[numpyro\]"):
        __import__("suffice.numpyro")

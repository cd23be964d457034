"""Likelihoods behind noisy moments: against rows simulated, dense quadrature, and our posteriors by NUTS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import PriorError, UsageError
from suffice.pipeline.families.linear_regression import default_predictor_prior
from suffice.pipeline.families.normal import default_prior, noisy_moments
from suffice.pipeline.math.distributions.spread_scales import SpreadNormalInverseWishart
from suffice.pipeline.math.engines.multivariate.released_moments import noisy_moments as noisy_moments_of
from suffice.pipeline.math.priors.record_count import Uniform
from support.joint import plan_of
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats


numpyro = pytest.importorskip("numpyro")
numpyro.enable_x64()

import jax  # noqa: E402 - after the check that it is there

from suffice import numpyro as likelihood  # noqa: E402
from suffice.pipeline.ask.numpyro import observed  # noqa: E402

SIDE = {"lower": "-1", "upper": "1"}
TWO = {"family": "multivariate_normal", "columns": {"x": SIDE, "y": SIDE}}
LINE = {"family": "linear_regression", "outcome": {"y": SIDE}, "predictors": {"x": SIDE}}
THROUGH = {**LINE, "intercept": "false"}


STATED = SpreadNormalInverseWishart([0.2], [0.6])
"""A prior of a predictor that is not the default."""
DRAWS = 25_000


def log_weights(
    statistic: NoisyStatistic, n_prior: Any, n: int, **others: Any
) -> Callable[[Floats, dict[str, Any]], Floats]:
    """Return what gives the log weights of latent numbers (n, n_latent) for one cell; it is compiled once."""
    cells = noisy_statistic(
        statistic.plan, np.repeat(statistic.values, n, axis=0), public_n=statistic.public_n
    )
    weigh = jax.jit(
        lambda latent, given: likelihood.log_likelihood(
            cells, n_prior=n_prior, latent=latent, **given, **others
        )
    )
    return lambda latent, given: np.asarray(weigh(latent, given))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("family", "row"),
    [("normal", (1.2, 1.6, 0.5)), pytest.param("lognormal", (0.3, 2.4, -0.4), marks=pytest.mark.audit)],
)
def test_latent_moments_integrate_to_the_likelihood(family: str, row: tuple[float, ...]) -> None:
    """Against sums over N of integrals over the mean and the scatter, at parameters near and far.

    The control takes the scatter of N rows for chi-squared with N degrees of freedom.
    """
    bounds = ("-2", "4") if family == "normal" else ("0.5", "8")
    plan = statistic_plan(
        {"family": family, "lower": bounds[0], "upper": bounds[1], "lattice_bits": "10"},
        epsilon="3",
        public_n=False,
    )
    total = plan.partition_total or 1
    statistic = noisy_statistic(plan, np.array([[round(part * total) for part in row]], dtype=object))
    noisy = noisy_moments(statistic, default_prior(plan.parameters), Uniform(0, 6)).totals
    lower, upper = float(plan.parameters.lower or 0), float(plan.parameters.upper or 0)

    def noise(n: int, m: Floats, spread: Floats) -> Floats:
        a, b, c = noisy.coefficients.T[:, :, None, None]
        expected = n * (a + b * m + c * (m**2 + spread))
        distance = np.abs(noisy.values[0][:, None, None] - expected)
        density: Floats = np.exp(-np.sum(noisy.rate[:, None, None] * distance, axis=0))
        return density

    def dense(mean: float, variance: float, free: int) -> float:
        mu, v = (mean - (lower + upper) / 2) / (upper - lower) * 2, variance / (upper - lower) ** 2 * 4
        q = (np.arange(300) + 0.5) / 300
        level = (np.arange(1200) + 0.5) / 1200
        density = float(noise(0, np.zeros((1, 1)), np.zeros((1, 1)))[0, 0])
        for n in range(1, 7):
            m = (mu + np.sqrt(v / n) * stats.norm.ppf(q))[:, None]
            spread = np.zeros((1, 1)) if n == 1 else v / n * stats.chi2.ppf(level, n - free)[None]
            density += float(noise(n, m, spread).mean())
        return float(np.log(density))

    # The logarithm of a chi-squared number of one degree of freedom has a long tail.
    sides = np.arange(-9.0, 9.0, 0.15), np.arange(-40.0, 9.0, 0.15)
    grid = np.stack(np.meshgrid(*sides), axis=2).reshape(-1, 2)
    log_phi = stats.norm.logpdf(grid).sum(axis=1)
    weights = log_weights(statistic, "Uniform(0, 6)", len(grid))
    names = ("mean", "variance") if family == "normal" else ("log_mean", "log_variance")
    computed, exact, wrong = [], [], []
    for mean, variance in ((0.3, 0.4), (0.6, 3.0), (-0.8, 0.05)):
        scaled = mean if family == "normal" else mean / 3
        both = dict(zip(names, (scaled, variance), strict=True))
        log_weight = weights(grid, both) + log_phi
        computed.append(np.log(np.sum(np.exp(log_weight)) * 0.15**2))
        exact.append(dense(scaled, variance, 1))
        wrong.append(dense(scaled, variance, 0))
    assert np.array(computed) + np.log(7) == pytest.approx(np.array(exact), abs=2e-3)
    assert np.array(computed) + np.log(7) != pytest.approx(np.array(wrong), abs=2e-3)


def rows(plan: StatisticPlan, given: dict[str, Any], n: int, rng: np.random.Generator) -> Floats:
    """Draw data sets of n rows of two columns, (DRAWS, n, 2)."""
    if plan.family == "multivariate_normal":
        drawn: Floats = rng.multivariate_normal(given["mean"], given["covariance"], (DRAWS, n))
        return drawn
    predictors = given.get("predictor_prior") or default_predictor_prior(plan.parameters)
    mean, covariance = predictors.sample(DRAWS, rng, 1)
    x = np.sqrt(covariance[:, :, 0]) * rng.standard_normal((DRAWS, n))
    x = x + (mean if "intercept" in given else 0.0)
    fitted = given.get("intercept", 0.0) + given["coefficient"][0] * x
    return np.stack([x, fitted + np.sqrt(given["variance"]) * rng.standard_normal(x.shape)], axis=2)


def densities(statistic: NoisyStatistic, z: Floats, n: int) -> Floats:
    """Densities of the noise at the moments of rows z (DRAWS, ., 2) counted as n, but for a constant."""
    noisy = noisy_moments_of(statistic).in_scales()
    products = np.einsum("dni,dnj->dij", z, z)
    moments = np.column_stack(
        [np.full(len(z), n), z.sum(axis=1), products[:, 0, 0], products[:, 0, 1], products[:, 1, 1]]
    )
    density: Floats = np.exp(-np.abs(noisy.values[0] - moments @ noisy.coefficients.T).sum(axis=1))
    return density


def standard_weights(
    log_weight: Callable[[Floats, dict[str, Any]], Floats],
    size: int,
    given: dict[str, Any],
    rng: np.random.Generator,
) -> Floats:
    """Weights (DRAWS,) whose mean is that over standard normal latent numbers, of which there are `size`.

    These are drawn with wide tails where the draws before had their weight: the weights' variance is small.
    """
    loc, shape = np.zeros(size), 1.5 * np.eye(size)
    for _ in range(4):
        drawn_from = stats.multivariate_t(loc, shape, df=5)
        latent = drawn_from.rvs(DRAWS, random_state=rng)
        log_ratio = np.sum(stats.norm.logpdf(latent), axis=1) - drawn_from.logpdf(latent)
        weight: Floats = np.exp(log_weight(latent, given) + log_ratio)
        loc = np.average(latent, axis=0, weights=weight)
        shape = 1.5 * np.cov(latent.T, aweights=weight) + 0.05 * np.eye(size)
    return weight


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("entry", "public"),
    [
        (TWO, False),
        (LINE, False),
        *(pytest.param(*case, marks=pytest.mark.audit) for case in ((TWO, True), (THROUGH, False))),
    ],
)
def test_weights_average_to_what_rows_give(entry: dict[str, Any], public: bool) -> None:
    """Rows drawn from the model, their moments, the density of the noise: the mean over many data sets.

    Likelihoods are known up to a constant: compared is their ratio between two parameters, to six standard
    errors of the difference, which the weights estimate. The control has eight times the variance at one of
    them.
    """
    rng = np.random.default_rng(7)
    plan = plan_of(entry, epsilon="8", public_n=public)
    linear, count = "intercept" not in entry, 5
    public_n = count if public else None
    blank = noisy_statistic(plan, np.zeros((1, len(plan.components)), object), public_n=public_n)
    sums = np.array([count, 1.0, -0.5, 1.2, 0.5, 0.9]) * np.array([1, linear, linear, 1, 1, 1])
    shift = 0.7 * np.resize([1, -1, -1], len(plan.components))
    row = np.rint((noisy_moments_of(blank).in_scales().coefficients @ sums + shift) * plan.scale)
    statistic = noisy_statistic(plan, row[None].astype(object), public_n=public_n)
    sizes, n_prior = ((count,), None) if public else ((4, 5, 6), "Uniform(4, 6)")
    stated = {"predictor_prior": STATED} if entry is LINE else {}
    log_weight = log_weights(statistic, n_prior, DRAWS, **stated)
    computed, exact, wrong, variance = 0.0, 0.0, 0.0, 0.0
    for sign, (slope, residual) in ((1.0, (0.4, 0.1)), (-1.0, (-0.3, 0.5))):
        if entry is TWO:
            given: dict[str, Any] = {
                "mean": np.array([0.1, slope]),
                "covariance": np.array([[0.3, slope * 0.3], [slope * 0.3, residual + slope**2 * 0.3]]),
            }
        else:
            given = {"coefficient": np.array([slope]), "variance": residual}
            given |= {"intercept": -0.1} if linear else {}
        ours = standard_weights(log_weight, observed.n_latent(statistic), given, rng)
        given |= stated
        direct = [densities(statistic, rows(plan, given, n, rng), n) for n in sizes]
        spread = "covariance" if entry is TWO else "variance"
        wider = given | {spread: 8.0 * given[spread]}
        control = [densities(statistic, rows(plan, wider if sign > 0.0 else given, n, rng), n) for n in sizes]
        computed += sign * np.log(ours.mean())
        exact += sign * np.log(np.mean(direct))
        wrong += sign * np.log(np.mean(control))
        variance += ours.var() / ours.mean() ** 2 / DRAWS
        direct_mean = np.mean(direct, axis=0)
        variance += direct_mean.var() / direct_mean.mean() ** 2 / DRAWS
    error = np.sqrt(variance)
    assert abs(computed - exact) < 6.0 * error
    assert abs(computed - wrong) > 6.0 * error


@pytest.mark.parametrize(
    ("entry", "prior", "error", "message"),
    [
        (LINE, "NormalInverseWishart(0, 1, 6, 4)", PriorError, "must be SpreadNormalInverseWishart"),
        (LINE, "SpreadNormalInverseWishart([0, 0], 1)", PriorError, "loc"),
        (TWO, "SpreadNormalInverseWishart(0, 1)", UsageError, "has no predictors"),
    ],
)
def test_priors_of_predictors_that_do_not_fit_are_refused(
    entry: dict[str, Any], prior: str, error: type[Exception], message: str
) -> None:
    statistic = noisy_statistic(plan_of(entry, epsilon="1", public_n=False), np.ones((1, 6), dtype=object))
    given: dict[str, Any] = {"mean": 0.0, "covariance": np.eye(2)}
    if entry is LINE:
        given = {"coefficient": 0.0, "intercept": 0.0, "variance": 1.0}
    latent = np.zeros((1, observed.n_latent(statistic)))
    with pytest.raises(error, match=message):
        likelihood.log_likelihood(
            statistic, n_prior="Uniform(5, 6)", predictor_prior=prior, latent=latent, **given
        )


def test_too_few_rows_are_refused() -> None:
    statistic = noisy_statistic(plan_of(TWO, epsilon="1", public_n=False), np.ones((1, 6), dtype=object))
    with pytest.raises(PriorError, match="at least 4 rows"):
        likelihood.log_likelihood(
            statistic, n_prior="Uniform(0, 3)", latent=np.zeros((1, 5)), mean=0.0, covariance=np.eye(2)
        )

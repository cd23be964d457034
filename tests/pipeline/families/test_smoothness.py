"""Constants of robustness of every family: against records, parameters and posteriors by brute force."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import UsageError
from suffice.pipeline.ask.judging.smoothness import SEVERAL, concentration_of, smoothness
from suffice.pipeline.families import FAMILIES
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.typing import Floats

Record = Any
RNG = np.random.default_rng


@dataclasses.dataclass(frozen=True)
class Case:
    """A statistic, a set of parameters, and one record's density in the words of scipy.

    `parameters` draws from the set, its corners among it; `records` draws within the bounds, their ends among
    it. `attained` is the least share of L and of C that must be seen.
    """

    entry: dict[str, Any]
    intervals: dict[str, tuple[float, float]]
    parameters: Callable[[np.random.Generator], list[Any]]
    records: Callable[[np.random.Generator], list[Record]]
    log_density: Callable[[Record, Any], float]
    distance: Callable[[Record, Record], float]
    attained: tuple[float, float] = (0.98, 0.98)


def apart(x: float, y: float) -> float:
    return abs(x - y)


def within(low: float, high: float, n: int = 9) -> Callable[[np.random.Generator], list[Any]]:
    return lambda rng: [low, high, *rng.uniform(low, high, n)]


def counts(upper: int) -> Callable[[np.random.Generator], list[Any]]:
    return lambda rng: [0, 1, upper - 1, upper, *rng.integers(0, upper + 1, 9)]


def shares(size: int, low: float, rows: int = 1) -> Callable[[np.random.Generator], list[Any]]:
    """Rows of probabilities of at least `low`, with those that have one large entry among them."""

    def draw(rng: np.random.Generator) -> list[Any]:
        one_large = [np.where(np.arange(size) == j, 1 - (size - 1) * low, low) for j in range(size)]
        corners = [np.stack(each) for each in itertools.product(one_large, repeat=rows)]
        inner = [low + (1 - size * low) * rng.dirichlet(np.ones(size), rows) for _ in range(5)]
        return [*corners, *inner]

    return draw


def boxes(*ends: tuple[float, float], n: int = 12) -> Callable[[np.random.Generator], list[Any]]:
    """Vectors within a box, its corners among them."""
    return lambda rng: [
        *map(np.array, itertools.product(*ends)),
        *(np.array([rng.uniform(*each) for each in ends]) for _ in range(n)),
    ]


def of_tables(x: tuple[int, ...], tables: list[Floats]) -> float:
    """A class and two features given it: entries of a table each."""
    return float(
        sum(math.log(table[row, entry]) for table, (row, entry) in zip(tables, _entries(x), strict=True))
    )


def _entries(x: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(0, x[0]), *((x[0], feature) for feature in x[1:])]


def tables_apart(x: tuple[int, ...], y: tuple[int, ...]) -> float:
    return sum(a != b for a, b in zip(_entries(x), _entries(y), strict=True))


def tables_of(low: float, *sizes: tuple[int, int]) -> Callable[[np.random.Generator], list[Any]]:
    def draw(rng: np.random.Generator) -> list[Any]:
        parts = [shares(size, low, rows)(rng) for rows, size in sizes]
        chosen = [[part[rng.integers(len(part))] for part in parts] for _ in range(120)]
        corner = [[part[0] for part in parts], [part[-6] for part in parts]]
        return [*chosen, *corner]

    return draw


def covariances(low: float, high: float) -> Callable[[np.random.Generator], list[Any]]:
    """Means within the bounds of both columns, and covariances with eigenvalues from low to high."""

    def draw(rng: np.random.Generator) -> list[Any]:
        drawn = []
        for mean in boxes((0.0, 2.0), (-1.0, 1.0), n=4)(rng):
            for angle in np.linspace(0.0, math.pi, 9):
                turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
                drawn += [(mean, turn @ np.diag(each) @ turn.T) for each in ([low, high], [low, low])]
        return drawn

    return draw


def multivariate(x: Floats, parameter: tuple[Floats, Floats]) -> float:
    return float(stats.multivariate_normal.logpdf(x, *parameter))


def residual(x: Floats, parameter: Floats) -> float:
    slope, intercept, variance = parameter
    return float(stats.norm.logpdf(x[1], intercept + slope * x[0], math.sqrt(variance)))


CASES: dict[str, Case] = {
    "bernoulli": Case(
        {}, {"probability": (0.1, 0.7)}, within(0.1, 0.7), lambda _: [0, 1],
        stats.bernoulli.logpmf, apart,
    ),
    "binomial": Case(
        {"trials": "5"}, {"probability": (0.1, 0.7)}, within(0.1, 0.7), counts(5),
        lambda x, p: stats.binom.logpmf(x, 5, p), apart,
    ),
    "poisson": Case(
        {"upper": "9"}, {"rate": (0.5, 4.0)}, within(0.5, 4.0), counts(9),
        stats.poisson.logpmf, apart,
    ),
    "geometric": Case(
        {"upper": "12"}, {"probability": (0.0625, 0.9)}, within(0.0625, 0.9), counts(12),
        lambda x, p: stats.nbinom.logpmf(x, 1, p), apart,
    ),
    "negative_binomial": Case(
        {"successes": "2.5", "upper": "12"}, {"probability": (0.125, 0.9)}, within(0.125, 0.9), counts(12),
        lambda x, p: stats.nbinom.logpmf(x, 2.5, p), apart,
    ),
    "exponential": Case(
        {"upper": "10"}, {"rate": (0.25, 3.0)}, within(0.25, 3.0), within(0, 10),
        lambda x, rate: stats.expon.logpdf(x, scale=1 / rate), apart,
    ),
    "gamma": Case(
        {"shape": "2", "upper": "10"}, {"rate": (0.25, 3.0)}, within(0.25, 3.0), within(1e-9, 10),
        lambda x, rate: stats.gamma.logpdf(x, 2, scale=1 / rate), apart,
    ),
    "weibull": Case(
        {"shape": "1.5", "upper": "4"}, {"rate": (0.25, 3.0)}, within(0.25, 3.0), within(1e-9, 4),
        lambda x, rate: stats.weibull_min.logpdf(x, 1.5, scale=rate ** (-1 / 1.5)),
        lambda x, y: abs(x**1.5 - y**1.5),
    ),
    "pareto": Case(
        {"minimum": "0.5", "upper": "50"}, {"shape": (0.5, 3.0)}, within(0.5, 3.0), within(0.5, 50),
        lambda x, shape: stats.pareto.logpdf(x, shape, scale=0.5), lambda x, y: abs(math.log(x / y)),
    ),
    "laplace": Case(
        {"location": "1", "half_range": "5"}, {"scale": (0.5, 4.0)}, within(0.5, 4.0),
        lambda rng: [1.0, 6.0, -4.0, *rng.uniform(-4, 6, 9)],
        lambda x, scale: stats.laplace.logpdf(x, 1, scale), lambda x, y: abs(abs(x - 1) - abs(y - 1)),
    ),
    "normal_known_mean": Case(
        {"mean": "1", "half_range": "5"}, {"variance": (0.5, 4.0)}, within(0.5, 4.0),
        lambda rng: [1.0, 6.0, -4.0, *rng.uniform(-4, 6, 9)],
        lambda x, variance: stats.norm.logpdf(x, 1, math.sqrt(variance)),
        lambda x, y: abs((x - 1) ** 2 - (y - 1) ** 2),
    ),
    "normal_known_variance": Case(
        {"variance": "3", "lower": "-3", "upper": "10"}, {"mean": (-1.0, 4.0)}, within(-1, 4), within(-3, 10),
        lambda x, mean: stats.norm.logpdf(x, mean, math.sqrt(3)), apart,
    ),
    "categorical": Case(
        {"categories": ["a", "b"], "other": "true"}, {"probability": (0.05, 1.0)}, shares(3, 0.05),
        lambda _: [0, 1, 2], lambda x, p: math.log(p[0, x]), lambda _x, _y: 1.0,
    ),
    "histogram": Case(
        {"lower": "0", "upper": "2", "bins": "2", "atoms": ["1"]}, {"probability": (0.05, 1.0)},
        shares(3, 0.05),
        lambda _: [0, 1, 2], lambda x, p: math.log(p[0, x]), lambda _x, _y: 1.0,
    ),
    "contingency": Case(
        {"columns": {"a": ["0", "1"], "b": ["0", "1"]}}, {"probability": (0.05, 1.0)}, shares(4, 0.05),
        lambda _: [0, 1, 2, 3], lambda x, p: math.log(p[0, x]), lambda _x, _y: 1.0,
    ),
    "rows_per_unit": Case(
        {"upper": "4", "histogram": "true"}, {"probability": (0.05, 1.0)}, shares(4, 0.05),
        lambda _: [0, 1, 2, 3], lambda x, p: math.log(p[0, x]), lambda _x, _y: 1.0,
    ),
    "markov_chain": Case(
        {"categories": ["a", "b"], "order": "when", "transitions": "3"}, {"probability": (0.05, 1.0)},
        shares(2, 0.05, 2), lambda _: [(i, j) for i in range(2) for j in range(2)],
        lambda x, p: math.log(p[x]), lambda _x, _y: 1.0,
    ),
    "naive_bayes": Case(
        {"outcome": {"y": ["0", "1"]}, "features": {"a": ["0", "1", "2"], "b": ["0", "1"]}},
        {"probability": (0.05, 1.0)}, tables_of(0.05, (1, 2), (2, 3), (2, 2)),
        lambda _: list(itertools.product(range(2), range(3), range(2))), of_tables, tables_apart,
    ),
    "bayesian_network": Case(
        {"nodes": {"a": ["0", "1"], "b": {"categories": ["0", "1", "2"], "parents": ["a"]}}},
        {"probability": (0.05, 1.0)}, tables_of(0.05, (1, 2), (2, 3)),
        lambda _: list(itertools.product(range(2), range(3))), of_tables, tables_apart, attained=(0.9, 0.98),
    ),
    "normal": Case(
        {"lower": "-3", "upper": "10"}, {"mean": (-1.0, 12.0), "variance": (0.5, 4.0)},
        boxes((-1, 12), (0.5, 4.0)), within(-3, 10, 30),
        lambda x, of: stats.norm.logpdf(x, of[0], math.sqrt(of[1])), apart, attained=(0.93, 0.95),
    ),
    "lognormal": Case(
        {"lower": "0.1", "upper": "100"}, {"log_mean": (-1.0, 3.0), "log_variance": (0.5, 4.0)},
        boxes((-1, 3), (0.5, 4.0)), lambda rng: [0.1, 100.0, *np.exp(rng.uniform(-2.3, 4.6, 30))],
        lambda x, of: stats.lognorm.logpdf(x, math.sqrt(of[1]), scale=math.exp(of[0])),
        lambda x, y: abs(math.log(x / y)), attained=(0.9, 0.9),
    ),
    "multivariate_normal": Case(
        {"columns": {"x": {"lower": "0", "upper": "2"}, "y": {"lower": "-1", "upper": "1"}}},
        {"covariance": (0.5, 50.0)}, covariances(0.5, 50.0), boxes((0, 2), (-1, 1)), multivariate,
        lambda x, y: float(np.linalg.norm(x - y)), attained=(2 / 3, 0.98),
    ),
    "linear_regression": Case(
        {"outcome": {"y": {"lower": "-3", "upper": "3"}}, "predictors": {"x": {"lower": "-1", "upper": "1"}}},
        {"coefficient": (-2.0, 2.0), "intercept": (-1.0, 1.0), "variance": (0.5, 4.0)},
        boxes((-2, 2), (-1, 1), (0.5, 4.0)), boxes((-1, 1), (-3, 3), n=24), residual,
        lambda x, y: float(np.abs(x - y).sum()), attained=(0.3, 0.7),
    ),
}  # fmt: skip


WITHOUT_COLUMN = {
    *("contingency", "naive_bayes", "bayesian_network", "multivariate_normal", "linear_regression"),
    "rows_per_unit",
}


def posterior_of(family: str, *, prior: Any = None, entry: dict[str, Any] | None = None) -> Posterior:
    """A posterior for its constants and its prior: what was released plays no part."""
    return _posterior_of(family, prior, None if entry is None else tuple(entry.items()))


@functools.cache
def _posterior_of(family: str, prior: Any, entry: tuple[tuple[str, Any], ...] | None) -> Posterior:
    column = {} if family in WITHOUT_COLUMN else {"column": "x"}
    stated = CASES[family].entry if entry is None else dict(entry)
    stated = {key: list(value) if isinstance(value, tuple) else value for key, value in stated.items()}
    plan = statistic_plan({"family": family, **column, **stated}, epsilon="1", public_n=False)
    values = np.full((1, len(plan.components)), 40)
    groups: dict[str, list[str | int]] | None = {} if family == "rows_per_unit" else None
    method = "plug-in" if prior is None else "noise-aware"
    return unrestricted_posterior(noisy_statistic(plan, values, groups=groups), prior=prior, method=method)


def seen(case: Case, rng: np.random.Generator) -> tuple[float, float]:
    """The largest half differences of (2) over records and parameters: by distance, and of all."""
    parameters, records = case.parameters(rng), case.records(rng)
    logs = np.array([[case.log_density(x, of) for of in parameters] for x in records])
    rates, differences = [0.0], [0.0]
    for i, j in itertools.combinations(range(len(records)), 2):
        half = float(np.ptp(logs[i] - logs[j])) / 2.0
        distance = case.distance(records[i], records[j])
        differences.append(half)
        rates += [half / distance] if distance > 1e-9 else []
    return max(rates), max(differences)


@pytest.mark.parametrize("family", FAMILIES)
def test_constants_are_never_exceeded_and_no_larger_than_need_be(family: str) -> None:
    case = CASES[family]
    constants = smoothness(posterior_of(family), **case.intervals)
    rate, difference = seen(case, RNG())
    assert rate <= constants.lipschitz * (1 + 1e-7) + 1e-9
    assert difference <= constants.difference * (1 + 1e-7) + 1e-9
    assert rate >= case.attained[0] * constants.lipschitz
    assert difference >= case.attained[1] * constants.difference
    # A wider set is not within the constants of a narrower one.
    halves = {
        name: ((3 * low + high) / 4, (low + 3 * high) / 4) for name, (low, high) in case.intervals.items()
    }
    narrower = smoothness(posterior_of(family), **halves)
    assert narrower.lipschitz < rate
    assert narrower.difference < difference


def test_posteriors_of_two_points_come_as_close_as_one_likes_to_the_bound() -> None:
    """Exact data, a prior of two values: the factor is e^(2 C) in the limit, and never more."""
    constants = smoothness(posterior_of("bernoulli"), probability=(0.1, 0.7))
    assert constants.draw_epsilon == pytest.approx(math.log(0.7 / 0.3 * 0.9 / 0.1))
    ratios = []
    for small in (0.3, 1e-2, 1e-4):
        prior = np.array([1.0 - small, small])
        given = [prior * each / np.sum(prior * each) for each in (np.array([0.1, 0.7]), np.array([0.9, 0.3]))]
        ratios.append(float(np.max(np.abs(np.log(given[0] / given[1])))))
    assert ratios == sorted(ratios)
    assert ratios[-1] < constants.log_ratio()
    assert ratios[-1] == pytest.approx(constants.log_ratio(), abs=1e-3)


def test_they_are_the_papers_on_symmetric_sets_and_smaller_elsewhere() -> None:
    # Foulds et al., Figure 1: truncated at .2, epsilon 1, they print T = 2.7.
    constants = smoothness(posterior_of("bernoulli"), probability=(0.2, 0.8))
    assert constants.temperature(1.0) == pytest.approx(2.0 * math.log(4.0))
    assert constants.temperature(100.0) == 1.0
    assert constants.log_ratio(0.5) == constants.lipschitz
    # Dimitrakakis et al., Lemma 3: L is the largest rate; with e^(1.5 x) in front it is half of that.
    exponential = smoothness(posterior_of("exponential"), rate=(0.0, 3.0))
    assert exponential.lipschitz == 1.5
    # Of a gamma density their L is infinite, as x^(k - 1) is 0 at 0, and cancels from every posterior.
    assert smoothness(posterior_of("gamma"), rate=(0.0, 3.0)).lipschitz == 1.5


@pytest.mark.parametrize(
    ("family", "intervals"),
    [
        ("bernoulli", {"probability": (0.0, 0.5)}),
        ("poisson", {"rate": (0.0, 2.0)}),
        ("poisson", {"rate": (1.0, math.inf)}),
        ("geometric", {"probability": (0.5, 1.0)}),
        ("exponential", {"rate": (1.0, math.inf)}),
        ("laplace", {"scale": (0.0, 1.0)}),
        ("normal_known_variance", {"mean": (-math.inf, 0.0)}),
        ("categorical", {"probability": (0.0, 1.0)}),
        ("normal", {"mean": (0.0, 1.0), "variance": (0.0, 1.0)}),
        ("lognormal", {"log_mean": (0.0, math.inf), "log_variance": (1.0, 2.0)}),
        ("multivariate_normal", {"covariance": (0.0, 1.0)}),
        ("linear_regression", {"coefficient": (0.0, 1.0), "intercept": (0, 1), "variance": (0.0, 1.0)}),
    ],
)
def test_they_are_infinite_where_a_record_can_be_impossible(family: str, intervals: dict[str, Any]) -> None:
    constants = smoothness(posterior_of(family), **intervals)
    assert constants.lipschitz == constants.difference == math.inf


def test_scales_without_an_upper_end_have_constants() -> None:
    bound = smoothness(posterior_of("laplace"), scale=(0.5, math.inf))
    assert (bound.lipschitz, bound.difference) == (1.0, 5.0)
    infinite = smoothness(posterior_of("normal"), mean=(0.0, 1.0), variance=(0.5, math.inf))
    assert math.isfinite(infinite.difference)


@pytest.mark.parametrize(
    ("family", "prior", "expected"),
    [
        # Lemma 3: c = lambda; Lemma 4 of 1 / scale; one trial of Lemma 5 under a uniform prior.
        ("exponential", "Gamma(1, 0.7)", 0.7),
        ("laplace", "InverseGamma(1, 0.7)", 0.7),
        ("bernoulli", "Beta(1, 1)", 0.5),
    ],
)
def test_concentrations_of_the_papers_lemmas(family: str, prior: str, expected: float) -> None:
    concentration, reason = concentration_of(posterior_of(family, prior=prior))
    assert concentration == pytest.approx(expected, rel=2e-3)
    assert reason == ""


@pytest.mark.parametrize("prior", ["Beta(2, 5)", "Beta(0.5, 0.5)", "0.5*Point(0.3) + 0.5*Beta(1, 1)"])
def test_the_prior_leaves_what_its_concentration_says(prior: str) -> None:
    """Draws farther from the median than l are at most exp(-c l) of all; not so of a c a third larger."""
    posterior = posterior_of("bernoulli", prior=prior)
    concentration, _ = concentration_of(posterior)
    assert concentration is not None
    rng = RNG()
    drawn = {
        "Beta(2, 5)": lambda: rng.beta(2, 5, 400_000),
        "Beta(0.5, 0.5)": lambda: rng.beta(0.5, 0.5, 400_000),
    }.get(prior, lambda: np.where(rng.random(400_000) < 0.5, 0.3, rng.random(400_000)))()
    eta = np.log(drawn) - np.log1p(-drawn)
    away = np.abs(eta - np.median(eta))
    levels = np.linspace(0.02, 8.0, 200)
    farther = np.mean(away[:, None] > levels, axis=0)
    error = 6.0 * np.sqrt(farther / 400_000) + 1e-5
    assert np.all(farther <= np.exp(-concentration * levels) + error + 0.003)
    assert np.any(farther > np.exp(-1.34 * concentration * levels) + error)


@pytest.mark.slow
def test_there_is_no_concentration_of_heavy_tails_nor_of_several_parameters() -> None:
    of_heavy, _ = concentration_of(posterior_of("normal_known_variance", prior="StudentT(1, 0, 1)"))
    assert of_heavy is not None
    assert of_heavy < 1e-6
    assert concentration_of(posterior_of("normal")) == (0.0, SEVERAL)
    assert concentration_of(posterior_of("bernoulli", prior="Point(0.3)"))[0] == math.inf
    two_states = concentration_of(
        posterior_of("categorical", entry={"categories": ("a", "b"), "other": "false"})
    )
    assert two_states[0] is None
    assert "bernoulli" in two_states[1]


@pytest.mark.parametrize(
    ("family", "intervals", "words"),
    [
        ("bernoulli", {}, r"an interval of probability, each as probability=\(low, high\)"),
        ("bernoulli", {"rate": (0, 1)}, "interval of probability"),
        ("bernoulli", {"probability": (0.1, 1.2)}, "within 0..1"),
        ("bernoulli", {"probability": (0.9, 0.1)}, "lowest and its highest"),
        ("bernoulli", {"probability": 0.5}, "lowest and its highest"),
        ("bernoulli", {"probability": (math.nan, 0.5)}, "lowest and its highest"),
        ("normal", {"mean": (0, 1)}, "interval of mean and variance"),
        ("multivariate_normal", {"covariance": (-1, 2)}, "within 0..inf"),
    ],
)
def test_sets_that_are_none_are_refused(family: str, intervals: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        smoothness(posterior_of(family), **intervals)


def test_shares_of_rows_are_of_no_law() -> None:
    posterior = posterior_of("rows_per_unit", entry={"upper": "4"})
    with pytest.raises(UsageError, match="of no distribution that a unit is drawn from"):
        smoothness(posterior, probability=(0.1, 0.9))


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, True, "1"])
def test_numbers_of_budgets_and_distances_are_checked(value: Any) -> None:
    constants = smoothness(posterior_of("bernoulli"), probability=(0.2, 0.8))
    with pytest.raises(UsageError, match="epsilon is a number above 0"):
        constants.temperature(value)
    if value not in {0.0, math.inf}:
        with pytest.raises(UsageError, match="distance is a number"):
            constants.log_ratio(value)

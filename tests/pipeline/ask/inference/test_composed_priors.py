"""Point masses, sums and truncations as priors: against enumeration, at every place that asks for a prior."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import special, stats

import suffice
from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.inference import any_prior
from suffice.pipeline.ask.judging.evidence import noise_constant
from suffice.pipeline.math.distributions.mixed import MixedDistribution
from suffice.pipeline.math.priors import composed
from suffice.pipeline.math.priors.composed import simplest
from suffice.pipeline.math.priors.reading import parse_any
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Uniform
from suffice.storage.releases.release_store import open_release
from support.noisy import noisy_statistic, statistic_plan
from support.releases import make_plan, publish
from support.unrestricted import pooled, unrestricted_posterior

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

BOUNDED: dict[str, dict[str, Any]] = {
    "bernoulli": {},
    "binomial": {"trials": "3"},
    "poisson": {"upper": "6"},
    "geometric": {"upper": "8"},
}
REACH = {"bernoulli": 1, "binomial": 3, "poisson": 6, "geometric": 8}


def released(family: str, rows: list[list[int]], *, epsilon: str = "0.8") -> NoisyStatistic:
    plan = statistic_plan({"family": family, **BOUNDED[family]}, epsilon=epsilon, public_n=False)
    return noisy_statistic(plan, np.array(rows) * REACH[family])


def log_chance(family: str, total: Floats, n: int, theta: Floats) -> Floats:
    """Log probability of a sum, given N >= 1 and parameters (n_parameters, 1)."""
    of_sum: Any = {
        "bernoulli": lambda: stats.binom.logpmf(total, n, theta),
        "binomial": lambda: stats.binom.logpmf(total, 3 * n, theta),
        "poisson": lambda: stats.poisson.logpmf(total, n * theta),
        "geometric": lambda: stats.nbinom.logpmf(total, n, theta),
    }[family]
    return np.asarray(of_sum())


def log_likelihood(statistic: NoisyStatistic, n_prior: NPrior, theta: Floats) -> Floats:
    """Log probability of the first cell's released values, noise included: sums over N and S."""
    family, scale = statistic.plan.family, statistic.plan.scale
    values = statistic.values[0].astype(np.float64)
    values = values[::-1] if family == "bernoulli" else values
    terms = []
    for n in range(n_prior.support[0], n_prior.support[1] + 1):
        total = np.arange(400.0) if n else np.zeros(1)
        of_sum = log_chance(family, total, n, theta[:, None]) if n else np.zeros((len(theta), 1))
        noise = np.abs(values[0] - total) + np.abs(values[1] - (REACH[family] * n - total))
        log_n = float(n_prior.log_prob(np.array([float(n)]))[0])
        terms.append(special.logsumexp(of_sum - noise / scale + log_n, axis=1))
    return np.asarray(special.logsumexp(terms, axis=0)) + 2 * math.log(math.tanh(0.5 / scale))


def panels(low: float, high: float, pieces: int = 60) -> tuple[Floats, Floats]:
    """Nodes and weights from low to high, in an angle: a density with square root poles at both is smooth."""
    nodes, weights = np.polynomial.legendre.leggauss(8)
    edges = np.linspace(0.0, math.pi / 2, pieces + 1)
    half = np.diff(edges)[:, None] / 2
    angle = (edges[:-1, None] + half * (1 + nodes)).ravel()
    # x = l + (u - l) sin^2 a: dx = (u - l) sin 2a da.
    return low + (high - low) * np.sin(angle) ** 2, (high - low) * np.sin(2 * angle) * (
        half * weights
    ).ravel()


Pieces = list[tuple[float, float] | tuple[float, Any, float, float]]
"""Points as (weight, value), densities as (weight, distribution of scipy, lower, upper)."""


def enumerated(statistic: NoisyStatistic, n_prior: NPrior, pieces: Pieces) -> tuple[Floats, Floats, float]:
    """Values, their posterior probabilities, and the log evidence: of a prior written out by hand."""
    values, priors = [], []
    for piece in pieces:
        if len(piece) == 2:
            values.append(np.array([float(piece[1])]))
            priors.append(np.array([float(piece[0])]))
            continue
        weight, distribution, low, high = piece
        nodes, weights = panels(low, high)
        values.append(nodes)
        priors.append(weight * distribution.pdf(nodes) * weights)
    theta, prior = np.concatenate(values), np.concatenate(priors)
    prior /= prior.sum()
    with np.errstate(divide="ignore"):
        log_joint = log_likelihood(statistic, n_prior, theta) + np.log(prior)
    log_evidence = float(special.logsumexp(log_joint))
    return theta, np.exp(log_joint - log_evidence), log_evidence


PROBABILITY: list[tuple[str, Pieces]] = [
    ("0.5*Point(0.3) + 0.5*Beta(1, 1)", [(0.5, 0.3), (0.5, stats.beta(1, 1), 0, 1)]),
    ("1*Point(0) + 1*Point(1) + 2*Beta(2, 5)", [(1, 0.0), (1, 1.0), (2, stats.beta(2, 5), 0, 1)]),
    ("Points({0.1: 0.2, 0.3: 3, 0.9: 1e-3})", [(0.2, 0.1), (3, 0.3), (1e-3, 0.9)]),
    ("Truncated(Beta(1, 1), 0.1, 0.4)", [(1, stats.beta(1, 1), 0.1, 0.4)]),
    (
        "Truncated(0.5*Point(0.4) + 0.5*Normal(0, 1), 0.1, 0.4)",
        [(0.5, 0.4), (0.5, stats.norm(0, 1), 0.1, 0.4)],
    ),
    (
        "0.3*Truncated(Beta(1, 9), 0.2, 1) + 0.7*Point(0.5)",
        [(0.3 / stats.beta(1, 9).sf(0.2), stats.beta(1, 9), 0.2, 1), (0.7, 0.5)],
    ),
    (
        "0.5*(3*Point(0.2) + 1*Beta(9, 1)) + 0.5*Uniform(0.2, 0.3)",
        [(0.375, 0.2), (0.125, stats.beta(9, 1), 0, 1), (0.5, stats.uniform(0.2, 0.1), 0.2, 0.3)],
    ),
    ("Truncated(HalfCauchy(0.2), upper=1)", [(1, stats.halfcauchy(scale=0.2), 0, 1)]),
    ("1*Beta(0.5, 0.5) + 1*Point(0.5)", [(1, stats.beta(0.5, 0.5), 0, 1), (1, 0.5)]),
    (
        "Truncated(Laplace(0.3, 0.01), 0, 1)",
        [(1, stats.laplace(0.3, 0.01), 0, 0.3), (1, stats.laplace(0.3, 0.01), 0.3, 1)],
    ),
    ("Truncated(StudentT(1, 0.5, 0.05), 0, 1)", [(1, stats.t(1, 0.5, 0.05), 0, 1)]),
    ("Truncated(Points({0.1: 1, 0.3: 2, 0.8: 9}), 0.1, 0.5)", [(1, 0.1), (2, 0.3)]),
]
RATE: list[tuple[str, Pieces]] = [
    ("0.5*Point(0) + 0.5*Gamma(2, 1)", [(0.5, 0.0), (0.5, stats.gamma(2), 0, 60)]),
    (
        "0.9*Point(1) + 0.1*LogNormal(0, 1)",
        [(0.9, 1.0), (0.1, stats.lognorm(1), 0, 20), (0.1, stats.lognorm(1), 20, 20_000)],
    ),
    ("Points({0: 1, 1: 1, 2: 1})", [(1, 0.0), (1, 1.0), (1, 2.0)]),
    (
        "Truncated(HalfCauchy(2), upper=5) + Point(9)",
        [(1 / (stats.halfcauchy(scale=2).cdf(5)), stats.halfcauchy(scale=2), 0, 5), (1, 9.0)],
    ),
    ("Truncated(Normal(2, 1), lower=0)", [(1, stats.norm(2, 1), 0, 12)]),
    (
        "0.5*Uniform(0, 1) + 0.5*Uniform(3, 4)",
        [(1, stats.uniform(0, 1), 0, 1), (1, stats.uniform(3, 1), 3, 4)],
    ),
    ("Truncated(Points({0: 1, 1: 2, 5: 1}), upper=2)", [(1, 0.0), (2, 1.0)]),
    ("0.98*Point(1) + 0.02*Gamma(1, 1)", [(0.98, 1.0), (0.02, stats.gamma(1), 0, 60)]),
    ("Truncated(LogNormal(0, 2), 0.1, 3)", [(1, stats.lognorm(2), 0.1, 3)]),
    ("Truncated(Cauchy(1, 0.1), 0, 20)", [(1, stats.cauchy(1, 0.1), 0, 1), (1, stats.cauchy(1, 0.1), 1, 20)]),
    ("1*Exponential(2) + 1*Point(1.5)", [(1, stats.expon(scale=0.5), 0, 30), (1, 1.5)]),
    (
        "0.5*Truncated(0.5*Point(1) + 0.5*Exponential(1), upper=2) + 0.5*Point(4)",
        [
            (0.25 / (0.5 + 0.5 * stats.expon.cdf(2)), 1.0),
            (0.25 / (0.5 + 0.5 * stats.expon.cdf(2)), stats.expon(), 0, 2),
            (0.5, 4.0),
        ],
    ),
]
CASES = [
    *(("bernoulli", text, pieces) for text, pieces in PROBABILITY),
    *(("binomial", text, pieces) for text, pieces in PROBABILITY[:1]),
    *(("geometric", text, pieces) for text, pieces in PROBABILITY[3:5]),
    *(("poisson", text, pieces) for text, pieces in RATE),
]


@pytest.mark.audit
@pytest.mark.parametrize(("family", "text", "pieces"), CASES, ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("row", [[7, 3], [-2, 1], [6, 5]], ids=str)
def test_every_answer_is_that_of_enumeration(family: str, text: str, pieces: Pieces, row: list[int]) -> None:
    statistic, n_prior = released(family, [row]), Uniform(0, 20)
    theta, share, log_evidence = enumerated(statistic, n_prior, pieces)
    posterior = unrestricted_posterior(statistic, prior=text, n_prior=n_prior, clipping="ignored")
    mean = float(share @ theta)
    sd = math.sqrt(float(share @ (theta - mean) ** 2))
    assert abs(posterior.mean()[0] - mean) < 1e-4 * sd
    assert posterior.sd()[0] == pytest.approx(sd, rel=1e-4)
    assert posterior.log_evidence[0] == pytest.approx(log_evidence, abs=1e-4)
    for value, chance in posterior.point_masses.items():
        assert chance[0] == pytest.approx(share[theta == value].sum(), abs=1e-4)
        assert posterior.probability(at=value) == chance
    for level in (0.025, 0.4, 0.975):
        quantile = float(posterior.quantile(level)[0])
        # The least value that has as much at or below it.
        coarse = 1e-4 + share[~np.isin(theta, list(posterior.point_masses))].max(initial=0.0)
        assert share[theta <= quantile * (1 + 1e-9) + 1e-12].sum() >= level - coarse
        assert share[theta < quantile * (1 - 1e-9) - 1e-12].sum() <= level + coarse


@pytest.mark.parametrize("text", [0, pytest.param(4, marks=pytest.mark.slow)])
def test_answers_are_those_of_enumeration(text: int) -> None:
    test_every_answer_is_that_of_enumeration("bernoulli", *PROBABILITY[text], [7, 3])


def test_atoms_count_by_their_evidence() -> None:
    """Not by their prior: an atom far from what was released has hardly any probability left."""
    posterior = unrestricted_posterior(
        released("bernoulli", [[70, 30]]), prior="0.5*Point(0.9)+0.5*Beta(1, 1)"
    )
    assert posterior.probability(at=0.9)[0] < 1e-12
    assert posterior.probability(at=0.3) == 0.0


@pytest.mark.parametrize("way", ["noise-aware", "plug-in"])
def test_a_sum_with_a_narrow_spike_tends_to_one_with_a_point(way: str) -> None:
    statistic = released("bernoulli", [[70, 30], [13, 4], [0, 0]])
    spike = "0.5*TruncatedNormal(0.3, 1e-7, 0.2, 0.4) + 0.5*Beta(1, 1)"
    expected = unrestricted_posterior(statistic, prior=spike, method=way)
    posterior = unrestricted_posterior(statistic, prior="0.5*Point(0.3) + 0.5*Beta(1, 1)", method=way)
    assert posterior.mean() == pytest.approx(expected.mean(), abs=1e-6)
    assert posterior.sd() == pytest.approx(expected.sd(), rel=5e-5)


@pytest.mark.parametrize("mass", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("kind", ["central", "highest-density"])
def test_closed_intervals_hold_their_mass(mass: float, kind: str) -> None:
    statistic = released("bernoulli", [[70, 30], [13, 4], [0, 0], [2, 9]])
    prior = "0.4*Point(0.3) + 0.2*Point(0.9) + 0.4*Beta(1, 1)"
    posterior = unrestricted_posterior(statistic, prior=prior)
    distribution: Any = posterior.distribution
    ends = posterior.credible_interval(mass=mass, interval=kind)
    within = distribution.cdf(ends[:, 1:]) - distribution.cdf(ends[:, :1])
    at_lower = np.where(ends[:, :1] == distribution.atoms, distribution.chance, 0.0).sum(axis=1)
    assert np.all(within[:, 0] + at_lower >= mass - 1e-9)
    drawn = posterior.sample(20_000, np.random.default_rng())["probability"]
    share = np.mean((drawn >= ends[:, 0]) & (drawn <= ends[:, 1]), axis=0)
    # Six standard errors: 1e-9 a comparison, of 24.
    assert np.all(share >= mass - 6 * math.sqrt(mass * (1 - mass) / 20_000))


def test_no_interval_of_points_is_shorter() -> None:
    points = suffice.Points({value / 10: 1 + value % 3 for value in range(1, 10)})
    posterior = unrestricted_posterior(released("bernoulli", [[9, 5], [0, 0]]), prior=points)
    distribution: Any = posterior.distribution
    ends = posterior.credible_interval(mass=0.8, interval="highest-density")
    for cell in range(2):
        shares, atoms = distribution.chance[cell], distribution.atoms
        held = [
            atoms[last] - atoms[first]
            for first in range(9)
            for last in range(first, 9)
            if shares[first : last + 1].sum() >= 0.8
        ]
        assert ends[cell, 1] - ends[cell, 0] == pytest.approx(min(held), abs=1e-12)


def test_draws_have_the_atoms_probabilities() -> None:
    posterior = unrestricted_posterior(
        released("bernoulli", [[7, 3]]), prior="0.5*Point(0.3) + 0.5*Beta(1, 1)"
    )
    drawn = posterior.sample(20_000, np.random.default_rng())["probability"]
    chance = posterior.probability(at=0.3)[0]
    # Six standard errors: 2e-9.
    assert abs(np.mean(drawn == 0.3) - chance) < 6 * math.sqrt(chance * (1 - chance) / 20_000)
    assert 0.3 < chance < 0.9


def test_posteriors_of_bounded_records_drop_points_beyond_the_bounds() -> None:
    statistic = released("poisson", [[5, 4], [20, 1]])
    prior = "0.5*Point(2) + 0.25*Point(8) + 0.25*Gamma(1, 0.1)"
    bounded = unrestricted_posterior(statistic, prior=prior)
    restricted = suffice_posterior(statistic, "0.5*Point(2) + 0.25*Point(8) + 0.25*Gamma(1, 0.1)")
    truncated = unrestricted_posterior(statistic, prior=f"Truncated({prior}, upper=6)")
    assert 8.0 in bounded.point_masses
    assert restricted.probability(at=8.0)[0] < 1e-4
    assert restricted.probability(at=2.0) == pytest.approx(truncated.probability(at=2.0), abs=2e-4)
    assert restricted.mean() == pytest.approx(truncated.mean(), rel=1e-3)
    assert restricted.log_evidence == pytest.approx(truncated.log_evidence, abs=2e-3)


def suffice_posterior(statistic: NoisyStatistic, prior: Any, **terms: Any) -> Any:
    from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of

    return posterior_of(statistic, prior=prior, **terms)


def test_pooled_data_weigh_points_by_all_of_them() -> None:
    parts = [released("bernoulli", [[7, 3]]), released("bernoulli", [[11, 6]])]
    n_prior = Uniform(0, 30)
    both = sum(log_likelihood(part, n_prior, np.array([0.3, 0.5])) for part in parts)
    expected = special.softmax(both + np.log([0.25, 0.75]))
    posterior = pooled(
        parts, prior="0.25*Point(0.3) + 0.75*Point(0.5)", n_prior=n_prior, rng=np.random.default_rng(7)
    )
    assert posterior.probability(at=0.3)[0] == pytest.approx(expected[0], abs=1e-5)
    mixed = pooled(
        parts, prior="0.5*Point(0.3) + 0.5*Beta(1, 1)", n_prior=n_prior, rng=np.random.default_rng(7)
    )
    spike = pooled(
        parts,
        prior="0.5*TruncatedNormal(0.3, 1e-6, 0.2, 0.4) + 0.5*Beta(1, 1)",
        n_prior=n_prior,
        rng=np.random.default_rng(7),
    )
    assert mixed.mean() == pytest.approx(spike.mean(), abs=1e-5)


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ("Point(1.5)", "lies in 0..1, and 1.5 does not"),
        ("Truncated(Uniform(0, 0.2), 0.5, 1)", "nothing within"),
        ("0.5*Point(0.3) - 0.5*Beta(1, 1)", r"weighed by \* and added by \+"),
        ("0*Point(0.3) + Beta(1, 1)", "weight must be a finite number above 0, not 0"),
        ("Points({0.1: -1})", "weight must be a finite number above 0"),
        ("Points({0.1: 1, 0.1: 2})", "twice"),
        ("Points([0.1, 0.2])", "values and their weights"),
        ("Point(0.1, 0.2)", "exactly one number"),
        ("Truncated(Beta(1, 1))", "its ends"),
        ("Truncated(Beta(1, 1), 0.4, 0.1)", "the lower end of the interval must be below the upper"),
        ("0.5*Point(0.3) + 0.5*Dirichlet(1)", "a prior of one number is"),
        ("0.5*Foo(1) + 0.5*Beta(1, 1)", "Foo is not known"),
        ("Point(__import__('os').getpid())", "plain number"),
        (
            suffice.WeightedSum(1, suffice.Density(lambda p: -np.log(p), 0, 1), 1, suffice.Point(0)),
            "improper",
        ),
        pytest.param(stats.zipf(1.5), "give fewer", id="zipf"),
        pytest.param(stats.expon(scale=-1), "is no distribution", id="negative scale"),
        ("0.5*Point(0) + 0.5*Beta(0.01, 0.01)", r"does not converge before 1\.4e-87.*with a point"),
        ("1/0*Point(0.3) + Beta(1, 1)", "0 below"),
        (suffice.Density(lambda p: -p + 0j, 0, 1), "log density is complex"),
        (
            suffice.Density(lambda p: -0.5 * np.log(np.abs(p - 0.3)), 0, 1, hints=(0.3,)),
            r"infinite at 0\.3.*a floor",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_answered_is_refused(prior: Any, words: str) -> None:
    with pytest.raises(PriorError, match=words):
        unrestricted_posterior(released("bernoulli", [[7, 3]]), prior=prior)


def test_a_point_that_leaves_records_no_distribution_is_refused() -> None:
    with pytest.raises(PriorError, match="no distribution"):
        unrestricted_posterior(released("geometric", [[7, 3]]), prior="0.5*Point(0) + 0.5*Beta(1, 1)")


def test_clipping_is_not_modelled_beside_points_and_is_beside_sums_of_densities() -> None:
    statistic = released("poisson", [[50, 1]])
    with pytest.raises(PriorError, match="not modelled beside point masses"):
        unrestricted_posterior(statistic, prior="0.5*Point(1) + 0.5*Gamma(1, 1)", clipping="modelled")
    summed = unrestricted_posterior(
        statistic, prior="0.5*HalfNormal(2) + 0.5*HalfNormal(2)", clipping="modelled"
    )
    alone = unrestricted_posterior(statistic, prior="HalfNormal(2)", clipping="modelled")
    assert summed.mean() == pytest.approx(alone.mean(), rel=1e-5)


def test_states_and_bounds_of_a_probability_are_exclusive() -> None:
    posterior = unrestricted_posterior(released("bernoulli", [[7, 3]]), prior="Point(0.3)")
    with pytest.raises(UsageError, match="at alone"):
        posterior.probability(at=0.3, above=0.1)


TEXTS = [
    "0.5*Point(0.3) + 0.5*Beta(1, 1)",
    "Points({0.1: 0.2, 0.7: 0.8})",
    "Truncated(Beta(1, 1), 0.1, 0.4)",
    "Truncated(0.5*Point(0.3) + 0.5*Normal(0, 1), upper=0.5)",
    "2*Point(0) + 1*HalfCauchy(2)",
    "0.5*(0.5*Point(0.3) + 1*Beta(1, 1)) + 0.5*Uniform(0, 1)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_read_back_as_they_are_written(text: str) -> None:
    assert str(parse_any(text)) == text


def test_python_and_text_are_the_same() -> None:
    assert 0.5 * suffice.Point(0.3) + 0.5 * suffice.Beta(1, 1) == parse_any("0.5*Point(0.3) + 0.5*Beta(1, 1)")
    assert np.float64(0.5) * suffice.Point(0.3) + suffice.Beta(1, 1) == parse_any(
        "Point(0.3)*0.5 + Beta(1, 1)"
    )
    assert simplest(0.5 * suffice.Beta(1, 1) + 0.5 * suffice.Beta(2, 3)) == suffice.Mixture(
        0.5, suffice.Beta(1, 1), 0.5, suffice.Beta(2, 3)
    )
    of_scipy = simplest(suffice.WeightedSum(1, stats.randint(0, 3), 2, stats.norm(0, 1)))
    assert str(of_scipy) == "1*scipy.stats.randint(0, 3) + 2*scipy.stats.norm(0, 1) on -inf..inf"


def test_terms_are_read_and_added_up() -> None:
    terms = [0.5 * suffice.Point(0.3), 0.5 * suffice.Point(0.2)]
    assert str(sum(terms)) == str(terms[0] + terms[1])
    assert str(parse_any("1/4*Point(0.3) + 3/4*Beta(1, 1)")) == "0.25*Point(0.3) + 0.75*Beta(1, 1)"
    weight: Any = np.float32(0.5)
    assert str(weight * suffice.Point(2)) == "0.5*Point(2)"
    with pytest.raises(PriorError, match=r"weight .* not 0"):
        _ = 0 * suffice.Point(2)


@pytest.mark.parametrize("hints", ["a", (0.3, math.nan), 3], ids=str)
def test_hints_are_numbers(hints: Any) -> None:
    with pytest.raises(PriorError, match="hints must be finite numbers"):
        suffice.Density(np.zeros_like, 0, 1, hints=hints)


def test_a_pole_with_a_floor_is_integrated() -> None:
    """Of |p - 0.3|^(-1/2) on 0..1 the share below 0.3 is sqrt(.3) / (sqrt(.3) + sqrt(.7))."""
    floored = suffice.Density(lambda p: -0.5 * np.log(np.abs(p - 0.3) + 1e-12), 0, 1, hints=(0.3,))
    posterior = unrestricted_posterior(released("bernoulli", [[0, 0]]), prior=floored, n_prior=0)
    of_all: Any = posterior.distribution
    share = math.sqrt(0.3) / (math.sqrt(0.3) + math.sqrt(0.7))
    assert of_all.cdf(np.array([[0.3]]))[0, 0] == pytest.approx(share, abs=1e-3)


def test_stated_values_need_not_be_whole_numbers() -> None:
    statistic, law = released("bernoulli", [[7, 3]]), stats.rv_discrete(values=([0.1, 0.2], [0.25, 0.75]))
    points = unrestricted_posterior(statistic, prior="Points({0.1: 1, 0.2: 3})")
    assert unrestricted_posterior(statistic, prior=law()).mean("probability") == points.mean("probability")
    moved = unrestricted_posterior(statistic, prior=law(loc=0.3))
    assert list(moved.point_masses) == pytest.approx([0.4, 0.5])


@pytest.mark.slow
def test_single_values_of_numpyro_are_points() -> None:
    numpyro = pytest.importorskip("numpyro.distributions")
    statistic = released("poisson", [[7, 3]])
    for given, text in (
        (numpyro.Delta(2.0), "Point(2)"),
        (numpyro.Categorical(np.array([0.2, 0.8])), "Points({0: 1, 1: 4})"),
    ):
        masses = unrestricted_posterior(statistic, prior=given).point_masses
        same = unrestricted_posterior(statistic, prior=text).point_masses
        assert masses.keys() == same.keys()
        assert all(masses[value] == pytest.approx(same[value], rel=1e-6) for value in masses)


@pytest.mark.slow
def test_distributions_of_numpyro_are_those_of_the_same_name() -> None:
    numpyro = pytest.importorskip("numpyro.distributions")
    statistic = released("poisson", [[5, 4], [0, 0]])
    pairs = [
        (numpyro.Gamma(2.0, 3.0), stats.gamma(2, scale=1 / 3)),
        (numpyro.HalfCauchy(2.0), "HalfCauchy(2)"),
        (numpyro.TruncatedNormal(2.0, 1.0, low=0.0), "Truncated(Normal(2, 1), lower=0)"),
        (numpyro.Uniform(0.5, 4.0), "Uniform(0.5, 4)"),
        (numpyro.Poisson(3.0), stats.poisson(3)),
        (numpyro.BernoulliProbs(0.25), "Points({0: 3, 1: 1})"),
    ]
    for given, alike in pairs:
        posterior, expected = (unrestricted_posterior(statistic, prior=prior) for prior in (given, alike))
        assert posterior.quantile(0.3) == pytest.approx(expected.quantile(0.3), rel=1e-5)
        assert posterior.log_evidence == pytest.approx(expected.log_evidence, abs=1e-5)
    with pytest.raises(PriorError, match="must be of one number"):
        unrestricted_posterior(statistic, prior=numpyro.Normal(np.zeros(2), 1.0))


def of_atoms_alike(statistic: NoisyStatistic, prior: Any, _n_prior: NPrior) -> Floats:
    """A mutant: log likelihoods of atoms (n_cells, n_atoms) that are all the same."""
    return np.zeros((len(statistic.values), len(prior.log_chance)))


def test_a_mutant_that_weighs_atoms_by_their_prior_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    statistic = released("bernoulli", [[7, 3]])
    right = unrestricted_posterior(statistic, prior="0.5*Point(0.9) + 0.5*Beta(1, 1)").mean()[0]
    monkeypatch.setattr(any_prior, "log_likelihood_at", of_atoms_alike)
    wrong = unrestricted_posterior(statistic, prior="0.5*Point(0.9) + 0.5*Beta(1, 1)").mean()[0]
    assert abs(wrong - right) > 0.1


@pytest.mark.slow
def test_a_mutant_that_does_not_renormalise_what_is_truncated_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half of the sum is what a fifth of a density has: without its mass the point would have too little."""
    statistic = released("bernoulli", [[7, 3]])
    prior = "0.5*Truncated(0.5*Point(0.15) + 0.5*Beta(1, 1), 0.1, 0.3) + 0.5*Point(0.5)"
    right = unrestricted_posterior(statistic, prior=prior).probability(at=0.5)[0]
    monkeypatch.setattr(composed, "_log_total", lambda _weighed: 0.0)
    wrong = unrestricted_posterior(statistic, prior=prior).probability(at=0.5)[0]
    assert abs(wrong - right) > 0.03


@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    ["exponential", "laplace", "normal_known_mean", "normal_known_variance", "pareto", "weibull", "gamma"],
)
def test_points_of_real_sums_are_limits_of_narrow_priors(family: str) -> None:
    entries: dict[str, dict[str, Any]] = {
        "exponential": {"upper": "8"},
        "pareto": {"minimum": "1", "upper": "50"},
        "laplace": {"location": "-3", "half_range": "8"},
        "normal_known_mean": {"mean": "5", "half_range": "4"},
        "normal_known_variance": {"variance": "4", "lower": "-2", "upper": "10"},
        "weibull": {"shape": "2", "upper": "8"},
        "gamma": {"shape": "2", "upper": "8"},
    }
    plan = statistic_plan({"family": family, **entries[family]}, epsilon="1", public_n=False)
    reach = plan.partition_total or round(plan.l1_sensitivity)
    statistic = noisy_statistic(plan, np.rint(np.array([[5, 13], [0, 1], [40, 66]]) * reach))
    narrow = "1*TruncatedNormal(1.5, 1e-7, 1.4, 1.6) + 1*TruncatedNormal(0.7, 1e-7, 0.6, 0.8)"
    expected = unrestricted_posterior(statistic, prior=f"{narrow} + 2*Uniform(0.5, 3)", n_prior=Fixed(20))
    posterior = unrestricted_posterior(
        statistic, prior="1*Point(1.5) + 1*Point(0.7) + 2*Uniform(0.5, 3)", n_prior=Fixed(20)
    )
    assert isinstance(posterior.distribution, MixedDistribution)
    assert posterior.mean() == pytest.approx(expected.mean(), rel=1e-4)
    assert posterior.log_evidence == pytest.approx(expected.log_evidence, abs=2e-4)


def test_evidence_has_the_constant_that_conjugate_priors_have() -> None:
    statistic = released("bernoulli", [[7, 3]])
    narrow = unrestricted_posterior(statistic, prior="Beta(3e8, 7e8)").log_evidence
    assert unrestricted_posterior(statistic, prior="Point(0.3)").log_evidence == pytest.approx(
        narrow, abs=1e-5
    )
    assert dataclasses.is_dataclass(statistic)
    assert noise_constant(statistic) < 0.0


@pytest.fixture(scope="module")
def of_release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    plan = make_plan(statistics={"bernoulli": {"family": "bernoulli", "column": "c"}})
    values = {"bernoulli": np.array([[450, 50], [30, 12], [-2, 1]], object)}
    return open_release(str(publish(tmp_path_factory.mktemp("store"), plan, values)))


def test_a_release_answers_all_that_is_asked_under_points(of_release: Release) -> None:
    prior = "0.5*Point(0.1) + 0.5*Beta(1, 1)"
    posterior = of_release.posterior("bernoulli", prior=prior)
    assert [note for note in posterior.notes if "probability = 0.1" in note]
    assert posterior.conflict.lines() == []
    compared = suffice.compare_priors(of_release, "bernoulli", [prior, "Beta(1, 1)", "Point(0.1)"])
    # The sum's evidence is the average of both.
    both = np.logaddexp(compared.log_evidence[:, 1], compared.log_evidence[:, 2]) - math.log(2)
    assert compared.log_evidence[:, 0] == pytest.approx(both, abs=1e-4)
    density = posterior.prior_density("probability", [0.2, 0.4])
    assert density == pytest.approx([0.5, 0.5])
    assert posterior.check(rng=1).rows()
    far = of_release.posterior("bernoulli", prior="Points({0.9: 1, 0.95: 1})").conflict
    assert "disagree" in far.lines()[0]


@pytest.mark.slow
def test_a_publication_states_points_and_its_card_says_how_probable_they_are(
    of_release: Release, tmp_path: Path
) -> None:
    prior = "0.5*Point(0.1) + 0.5*Beta(1, 1)"
    suffice.publish(of_release, "bernoulli", prior=prior, formats=("json", "card"), draws=0, to=tmp_path)
    texts = [path.read_text("utf-8") for path in tmp_path.rglob("*.*") if path.suffix in {".html", ".json"}]
    assert len([text for text in texts if prior in text]) >= 2
    assert len([text for text in texts if "point masses have the posterior probabilities" in text]) >= 2


@pytest.mark.slow
def test_a_posterior_under_points_is_calibrated(of_release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 120 intervals of 95 % fewer than 98 hold the truth with a chance of 3e-8 (binomial).

    Half of the draws tie with half of the truths. The control weighs atoms by their prior: of 600 intervals
    306 held the truth, and at 57 % of them 98 of 120 do with a chance of 1e-8. Chi square of 40 ranks
    missed it in 14 of 100 runs.
    """

    def held() -> int:
        prior = "0.5*Point(0.1) + 0.5*Beta(1, 1)"
        rng = np.random.default_rng()
        judged = suffice.calibrate(of_release, "bernoulli", prior=prior, simulations=120, rng=rng)
        return min(ranks.covered(0.95) for ranks in judged.clipped)

    assert held() >= 98
    monkeypatch.setattr(any_prior, "log_likelihood_at", of_atoms_alike)
    assert held() < 98

"""Mixtures of conjugate priors: evidences, weights, text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln, gammaln
from scipy.stats import nbinom

from suffice.errors import PriorError
from suffice.pipeline.ask.inference.any_joint_prior import log_evidence as exact_evidence
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.distributions.dirichlet import Beta, Dirichlet
from suffice.pipeline.math.distributions.gamma import Gamma, InverseGamma
from suffice.pipeline.math.distributions.normal import Normal
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.engines.posterior_mixture import mixture_distribution
from suffice.pipeline.math.priors.by_name import parse_prior
from suffice.pipeline.math.priors.mixtures import (
    Mixture,
    ScaleMixture,
    SpreadGamma,
    SpreadInverseGamma,
    SpreadScale,
    parse_mixture,
)
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

ENTRIES: dict[str, dict[str, Any]] = {
    "bernoulli": {},
    "categorical": {"categories": ["a", "b", "c"]},
    "poisson": {"upper": "6"},
    "normal": {"lower": "-2", "upper": "4"},
    "normal_known_mean": {"mean": "1", "half_range": "4"},
    "normal_known_variance": {"variance": "4", "lower": "-2", "upper": "6"},
}


def released(family: str, rows: list[list[int]], public_n: int | None = None) -> NoisyStatistic:
    plan = statistic_plan({"family": family, **ENTRIES[family]}, epsilon="0.8", public_n=public_n is not None)
    return noisy_statistic(plan, np.array(rows), public_n=public_n)


def log_evidence(statistic: NoisyStatistic, prior: Prior, n_prior: NPrior) -> np.ndarray[Any, Any]:
    """Sums over all latent counts, of the first cell."""
    y, b = statistic.values[0].astype(float), statistic.plan.scale
    low, high = n_prior.support
    terms = []
    for n in range(low, high + 1):
        log_prior_n = n_prior.log_prob(np.array([float(n)]))[0]
        if isinstance(prior, Gamma):
            x = np.arange(4000.0) if n else np.zeros(1)
            log_weights = (
                nbinom.logpmf(x, prior.concentration, prior.rate / (prior.rate + n)) if n else np.zeros(1)
            )
            noise = np.abs(y[0] - x) + np.abs(y[1] - (6 * n - x))
        elif isinstance(prior, Beta):
            x = np.arange(n + 1.0)
            a1, a0 = prior.concentration1, prior.concentration0
            log_weights = (
                -betaln(x + 1, n - x + 1) - np.log(n + 1) + betaln(a1 + x, a0 + n - x) - betaln(a1, a0)
            )
            noise = np.abs(y[-1] - x) + (np.abs(y[0] - (n - x)) if len(y) == 2 else 0.0)
        else:
            assert isinstance(prior, Dirichlet)
            alpha = np.array(prior.concentration)
            first, second = (grid.ravel() for grid in np.meshgrid(np.arange(n + 1.0), np.arange(n + 1.0)))
            inside = first + second <= n
            counts = np.stack([first, second, n - first - second], axis=1)[inside]
            log_weights = gammaln(n + 1) - gammaln(counts + 1).sum(axis=1) + gammaln(alpha.sum())
            log_weights = (
                log_weights
                - gammaln(alpha.sum() + n)
                + (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=1)
            )
            noise = np.abs(y - counts).sum(axis=1)
        terms.append(log_prior_n + log_weights - noise / b)
    return np.asarray(np.logaddexp.reduce(np.concatenate(terms)))


PAIRS = [
    ("bernoulli", [[7, 3]], Beta(1, 9), Beta(9, 1)),
    ("categorical", [[7, 3, -2]], Dirichlet(1, 1, 1), Dirichlet(9, 1, 0.5)),
    ("poisson", [[30, 22]], Gamma(1, 0.3), Gamma(90, 20)),
]


@pytest.mark.parametrize(("family", "rows", "first", "second"), PAIRS)
@pytest.mark.parametrize("n_prior", [Uniform(0, 30), Reciprocal(25), Fixed(11)])
def test_components_are_weighed_by_their_evidence(
    family: str, rows: list[list[int]], first: Prior, second: Prior, n_prior: NPrior
) -> None:
    statistic = released(family, rows)
    evidence = [log_evidence(statistic, prior, n_prior) for prior in (first, second)]
    odds = 0.3 / 0.7 * np.exp(evidence[0] - evidence[1])
    share = odds / (1 + odds)
    parts = [
        unrestricted_posterior(statistic, prior=prior, n_prior=n_prior, clipping="ignored")
        for prior in (first, second)
    ]
    mixed = unrestricted_posterior(
        statistic, prior=Mixture(0.3, first, 0.7, second), n_prior=n_prior, clipping="ignored"
    )
    (name,) = mixed.parameters
    means = [part.mean(name)[0] for part in parts]
    mean = share * means[0] + (1 - share) * means[1]
    assert mixed.mean(name)[0] == pytest.approx(mean, rel=1e-6)
    squares = [
        part.sd(name)[0] ** 2 + (of_part - mean) ** 2 for part, of_part in zip(parts, means, strict=True)
    ]
    assert mixed.sd(name)[0] ** 2 == pytest.approx(share * squares[0] + (1 - share) * squares[1], rel=1e-6)
    # Means of 20,000 draws are normal: six standard errors are a false alarm of 2e-9, 15 times.
    draws = mixed.sample(20_000, np.random.default_rng())[name][:, 0]
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 6 / np.sqrt(20_000) * mixed.sd(name)[0])


def test_a_known_n_weighs_by_evidence_too() -> None:
    statistic = released("bernoulli", [[4]], public_n=11)
    evidence = [log_evidence(statistic, prior, Fixed(11)) for prior in (Beta(1, 9), Beta(9, 1))]
    mixed = unrestricted_posterior(statistic, prior="Mixture(1, Beta(1, 9), 1, Beta(9, 1))")
    distribution = mixture_distribution(
        Mixture(1, Beta(1, 9), 1, Beta(9, 1)),
        [unrestricted_posterior(statistic, prior=prior).distribution for prior in (Beta(1, 9), Beta(9, 1))],
    )
    assert distribution.share[0, 0] == pytest.approx(1 / (1 + np.exp(evidence[1] - evidence[0])), rel=1e-9)
    assert mixed.mean("probability") == pytest.approx(distribution.mean("probability"))


def test_equal_components_change_nothing() -> None:
    for family, rows, prior in (
        ("poisson", [[30, 22]], "Gamma(2, 1)"),
        ("bernoulli", [[7, 3]], "Beta(1, 2)"),
    ):
        statistic = released(family, rows)
        single = unrestricted_posterior(statistic, prior=prior, clipping="ignored")
        two = unrestricted_posterior(
            statistic, prior=f"Mixture(0.2, {prior}, 0.8, {prior})", clipping="ignored"
        )
        (name,) = single.parameters
        assert two.mean(name) == pytest.approx(single.mean(name))
        assert two.sd(name) == pytest.approx(single.sd(name))
        assert two.credible_interval(name).shape == (1, 2)


def test_text_and_objects_say_the_same() -> None:
    mixture = Mixture(0.3, Beta(1, 9), 0.7, Beta(9, 1.5))
    assert str(mixture) == "Mixture(0.3, Beta(1, 9), 0.7, Beta(9, 1.5))"
    assert parse_mixture(str(mixture)) == mixture
    assert parse_mixture("Beta(2, 3)") == Beta(2, 3)
    dirichlets = Mixture(1, Dirichlet(1, 2, 3), 2, Dirichlet(1))
    assert parse_mixture(str(dirichlets)) == dirichlets


@pytest.mark.parametrize(
    "text",
    [
        "Mixture()",
        "Mixture(0.3)",
        "Mixture(0.3, Beta(1, 1), 0.7)",
        "Mixture(Beta(1, 1), 0.3)",
        "Mixture(-1, Beta(1, 1))",
        "Mixture(0, Beta(1, 1))",
        "Mixture(True, Beta(1, 1))",
        "Mixture(1e999, Beta(1, 1))",
        "Mixture(1e308, Beta(1, 1), 1e308, Beta(2, 1))",
        "Mixture(1, Beta(1, 1), 1, Beta(2, 1), 1)",
        "Mixture(0.5, Beta(1, 1), 0.5, Gamma(1, 1))",
        "Mixture(0.5, Mixture(1, Beta(1, 1)))",
        "Mixture(1, __import__('os').getcwd())",
        "Mixture(1, Beta(1, 1), weights=2)",
        "Mixture(1, 2)",
    ],
)
def test_what_is_no_mixture_is_refused(text: str) -> None:
    with pytest.raises(PriorError):
        parse_mixture(text)


PLUG_IN: list[tuple[str, list[int], Prior, Prior]] = [
    ("bernoulli", [3, 7], Beta(1, 9), Beta(9, 1)),
    ("categorical", [7, 3, 2], Dirichlet(1), Dirichlet(9, 1, 0.5)),
    ("poisson", [30, 24], Gamma(1, 0.3), Gamma(90, 20)),
    ("normal_known_mean", [40, 60], InverseGamma(3, 2), InverseGamma(30, 90)),
    ("normal_known_variance", [40, 60], Normal(0, 1), Normal(3, 0.5)),
    ("normal", [9, 20, 11], NormalInverseGamma(0, 1, 3, 4), NormalInverseGamma(2, 9, 9, 9)),
]


@pytest.mark.parametrize(("family", "row", "first", "second"), PLUG_IN)
def test_a_plug_in_mixture_weighs_its_components_by_evidence(
    family: str, row: list[int], first: Prior, second: Prior
) -> None:
    """Bayes at any one parameter: the evidence is likelihood times prior over posterior."""
    plan = statistic_plan({"family": family, **ENTRIES[family]}, epsilon="0.8", public_n=False)
    unit = 1 if family in {"bernoulli", "categorical"} else round(plan.partition_total or 1) // 8
    statistic = noisy_statistic(plan, np.array([row]) * max(unit, 1))
    parts = [posterior_of(statistic, prior=prior, method="plug-in") for prior in (first, second)]
    mixed = posterior_of(statistic, prior=Mixture(0.3, first, 0.7, second), method="plug-in")
    evidence = [
        log_evidence_of(prior, part.distribution) for prior, part in zip((first, second), parts, strict=True)
    ]
    share = 0.3 / (0.3 + 0.7 * np.exp(evidence[1] - evidence[0]))
    assert 1e-9 < share < 1 - 1e-9
    for name in mixed.parameters:
        expected = share * parts[0].mean(name) + (1 - share) * parts[1].mean(name)
        assert mixed.mean(name) == pytest.approx(expected, rel=1e-6)


def log_evidence_of(prior: Prior, distribution: Any) -> float:
    """Of the likelihood, which every prior shares, the value at one place is the unit."""
    distributions: Any = None
    position: Any = 2.0
    match prior:
        case Beta():
            counts = [[prior.concentration0, prior.concentration1], distribution.natural()[0]]
            distributions, position = [stats.dirichlet(count) for count in counts], np.array([0.6, 0.4])
        case Dirichlet():
            counts = [list(np.broadcast_to(prior.concentration, 3)), distribution.concentration[0]]
            distributions, position = [stats.dirichlet(count) for count in counts], np.array([0.5, 0.3, 0.2])
        case Gamma():
            pairs = [(prior.concentration, prior.rate), (distribution.concentration[0], distribution.rate[0])]
            distributions = [stats.gamma(a, scale=1 / rate) for a, rate in pairs]
        case InverseGamma():
            pairs = [
                (prior.concentration, prior.scale),
                (distribution.concentration[0], distribution.scale[0]),
            ]
            distributions = [stats.invgamma(a, scale=scale) for a, scale in pairs]
        case Normal():
            distributions = [
                stats.norm(prior.loc, prior.scale),
                stats.norm(distribution.loc[0], distribution.scale[0]),
            ]
    if distributions is not None:
        return float(distributions[0].logpdf(position) - distributions[1].logpdf(position))
    assert isinstance(prior, NormalInverseGamma)
    values = [(prior.loc, prior.precision, prior.concentration, prior.scale)]
    values.append(
        (distribution.loc[0], distribution.precision[0], distribution.concentration[0], distribution.scale[0])
    )
    first, second = (
        stats.norm(loc, (2.0 / precision) ** 0.5).logpdf(1.0) + stats.invgamma(a, scale=b).logpdf(2.0)
        for loc, precision, a, b in values
    )
    return float(first - second)


def test_a_mixture_fits_its_family() -> None:
    mixture = Mixture(0.3, Beta(1, 9), 0.7, Beta(9, 1))
    for posterior in (unrestricted_posterior, posterior_of):
        with pytest.raises(PriorError, match="Gamma"):
            posterior(released("poisson", [[30, 22]]), prior=mixture)


def test_a_plug_in_mixture_needs_the_evidence_of_its_family() -> None:
    distribution = posterior_of(released("poisson", [[30, 22]]), method="plug-in").distribution
    with pytest.raises(PriorError, match="no mixture"):
        exact_evidence(parse_prior("NormalInverseWishart([0, 0], 1, 5, [1, 1])"), distribution)


@pytest.mark.slow
def test_quantiles_of_a_mixture_of_normal_priors_rest_on_no_draws() -> None:
    """40,000 draws lie below them as often as they should: 6 standard errors and 0.005; two far modes."""
    draws = 40_000
    first, second = NormalInverseGamma(-1, 9, 3, 2), NormalInverseGamma(3, 9, 3, 2)
    records = 4 * 2**32
    cells = released("normal", [[9 * records, 12 * records, 9 * records], [6 * records, 9 * records, 0]])
    mixed = unrestricted_posterior(cells, prior=Mixture(0.5, first, 0.5, second), n_prior=Uniform(0, 60))
    rng = np.random.default_rng(3)
    sample = mixed.sample(draws, rng)
    for name in ("mean", "variance"):
        for level in (0.025, 0.3, 0.5, 0.975):
            positions = mixed.quantile(name, level)
            assert np.array_equal(positions, mixed.quantile(name, level, draws=1))
            below = np.mean(sample[name] < positions, axis=0)
            assert np.all(np.abs(below - level) < 6 * np.sqrt(level * (1 - level) / draws) + 0.005)
    alone = unrestricted_posterior(cells, prior=first, n_prior=Uniform(0, 60))
    twice = unrestricted_posterior(cells, prior=Mixture(0.2, first, 0.8, first), n_prior=Uniform(0, 60))
    for name in ("mean", "variance"):
        assert twice.quantile(name, 0.9) == pytest.approx(alone.quantile(name, 0.9), rel=4e-3)
    assert not np.allclose(mixed.quantile("mean", 0.9), alone.quantile("mean", 0.9), rtol=2e-2)


def test_a_scale_mixture_has_the_numbers_that_it_documents() -> None:
    prior = ScaleMixture(-6, 14)
    assert sum(prior.weights) == pytest.approx(1.0, rel=1e-12)
    variances = 10.0 ** (-0.6 * np.arange(13.0, -1.0, -1.0))
    expected = 1 / 56 + 0.75 * np.sqrt(variances) / np.sum(np.sqrt(variances))
    assert prior.weights == pytest.approx(expected, rel=1e-12)
    for component, variance in zip(prior.components, variances, strict=True):
        assert isinstance(component, NormalInverseGamma)
        of_component = component.distribution()
        assert of_component.mean("variance")[0] == pytest.approx(100 * variance, rel=1e-12)
        assert of_component.mean("mean")[0] == 4.0
        assert of_component.sd("mean")[0] == pytest.approx(20.0, rel=1e-12)


@pytest.mark.parametrize("bounds", [(-6, 14), (0.1, 0.30000000000000004), (-1e-30, 1e-20)])
def test_a_scale_mixture_is_its_text(bounds: tuple[float, float]) -> None:
    prior = ScaleMixture(*bounds)
    assert parse_mixture(str(prior)) == prior
    assert parse_mixture(f"ScaleMixture(upper={bounds[1]!r}, lower={bounds[0]!r})") == prior
    assert prior != ScaleMixture(bounds[0], 2 * bounds[1])
    assert repr(prior) == f"{prior}"
    assert len(str(prior)) < 60


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ScaleMixture(1)", "exactly"),
        ("ScaleMixture(1, 2, 3)", "exactly"),
        ("ScaleMixture(1, lower=2)", "exactly"),
        ("ScaleMixture(2, 2)", "below"),
        ("ScaleMixture(3, 2)", "below"),
        ("ScaleMixture(0, 1e-300)", "below"),
        ("ScaleMixture(0, [1, 2])", "must be a number"),
        ("ScaleMixture(-1e999, 2)", "must be a number"),
        ("Mixture(1, ScaleMixture(0, 1), 1, NormalInverseGamma(0, 1, 1, 1))", "conjugate prior, not"),
    ],
)
def test_a_scale_mixture_needs_two_bounds(text: str, reason: str) -> None:
    with pytest.raises(PriorError, match=reason):
        parse_mixture(text)


def test_only_a_mean_and_a_variance_have_a_scale_mixture() -> None:
    with pytest.raises(PriorError, match="Gamma"):
        unrestricted_posterior(released("poisson", [[30, 22]]), prior=ScaleMixture(0, 1))


@pytest.mark.parametrize("weight", [-0.5, 0, math.nan, math.inf, 10**400, "1"])
def test_a_weight_is_a_number_above_0(weight: Any) -> None:
    with pytest.raises(PriorError, match="weight"):
        Mixture(0.5, Beta(1, 1), weight, Beta(2, 1))


def test_weights_count_by_their_ratios_alone() -> None:
    cell = released("bernoulli", [[30, 22]])
    first, second = (
        unrestricted_posterior(cell, prior=Mixture(*weights)).mean("probability")
        for weights in ((0.3, Beta(1, 9), 0.7, Beta(9, 1)), (3e5, Beta(1, 9), 7e5, Beta(9, 1)))
    )
    assert first == pytest.approx(second, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [SpreadGamma(100), SpreadInverseGamma(50)])
def test_one_grid_for_all_scales_gives_what_their_mixture_gives(prior: SpreadScale) -> None:
    is_rate = isinstance(prior, SpreadGamma)
    entry = (
        {"family": "exponential", "upper": "100"}
        if is_rate
        else {"family": "laplace", "location": "0", "half_range": "50"}
    )
    plan = statistic_plan(entry, epsilon="1", public_n=False)
    reach = float(plan.partition_total or 0)
    rows = [[int(total * reach), int((n - total) * reach)] for n, total in ((30, 0.4), (200, 30), (0, -1))]
    statistic = noisy_statistic(plan, np.array(rows, dtype=object))
    (name,) = (shared := posterior_of(statistic, prior=prior, clipping="ignored")).parameters
    parts = [part for pair in zip(prior.weights, prior.components, strict=True) for part in pair]
    single = posterior_of(statistic, prior=Mixture(*parts), clipping="ignored")
    # Within the bounds both add the share of a distribution function that tables know to some thousandths.
    assert shared.log_evidence == pytest.approx(single.log_evidence, abs=5e-3)
    whole = [
        unrestricted_posterior(statistic, prior=given, clipping="ignored").log_evidence
        for given in (prior, Mixture(*parts))
    ]
    assert whole[0] == pytest.approx(whole[1], abs=1e-6)
    assert np.all(np.abs(shared.mean(name) - single.mean(name)) < 0.01 * single.sd(name))
    drawn = np.sort(shared.sample(4000, np.random.default_rng(1))[name], axis=0)
    for level in (0.1, 0.5, 0.9):
        share = np.mean(drawn < shared.quantile(name, level), axis=0)
        assert share == pytest.approx(np.full(len(rows), level), abs=0.04)


@pytest.mark.parametrize("text", ["SpreadGamma(60)", "SpreadInverseGamma(0.5)"])
def test_spread_priors_are_read_back(text: str) -> None:
    prior = parse_mixture(text)
    assert str(prior) == text
    assert parse_mixture(text.replace("(", "(upper=")) == prior
    for wrong in (text.replace("(", "(0, "), text.replace("(", "(-"), f"Mixture(1, {text})"):
        with pytest.raises(PriorError):
            parse_mixture(wrong)

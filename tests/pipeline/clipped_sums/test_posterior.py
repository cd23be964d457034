"""Posteriors of clipped counts: against enumeration, where they agree with others, what is asked of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from scipy import stats

from suffice.pipeline.clipped_sums.posterior import clipped_law
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.mixtures import Mixture
from suffice.pipeline.n_prior import Fixed, NPrior, Uniform
from suffice.pipeline.priors import Beta, Gamma
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.release import NoisyStatistic

    Floats: TypeAlias = NDArray[np.float64]

ENTRIES: dict[str, dict[str, Any]] = {
    "poisson": {"upper": "4"},
    "geometric": {"upper": "3"},
    "negative_binomial": {"upper": "5", "successes": "2.5"},
}
PRIORS: dict[str, tuple[Any, ...]] = {
    "poisson": (
        Gamma(1, 0.5),
        Gamma(30, 3),
        Mixture(0.3, Gamma(2, 2), 0.7, Gamma(50, 4)),
        stats.lognorm(0.7, scale=5),
    ),
    **dict.fromkeys(
        ("geometric", "negative_binomial"),
        (Beta(1, 1), Beta(2, 20), Mixture(0.3, Beta(9, 2), 0.7, Beta(1, 30)), stats.beta(0.8, 3)),
    ),
}


def released(
    family: str, sums: list[list[int]], *, epsilon: str, public_n: int | None = None
) -> NoisyStatistic:
    plan = statistic_plan(
        {"family": family, **ENTRIES[family]}, epsilon=epsilon, public_n=public_n is not None
    )
    values = np.array(sums, dtype=object)[:, : len(plan.components)]
    return noisy_statistic(plan, values, public_n=public_n)


def law_of(family: str, place: Floats) -> Floats:
    """Chances of a clipped record at places on the line, from the distribution functions of scipy."""
    upper = int(ENTRIES[family]["upper"])
    count = np.arange(float(upper))
    if family == "poisson":
        given = stats.poisson(np.exp(place)[:, None])
    else:
        successes = float(ENTRIES[family].get("successes", 1))
        given = stats.nbinom(successes, 1.0 / (1.0 + np.exp(-place[:, None])))
    return np.concatenate([given.pmf(count), given.sf(upper - 1)], axis=1)


def log_prior(family: str, prior: Any, place: Floats) -> Floats:
    if isinstance(prior, Mixture):
        parts = [log_prior(family, part, place) for part in prior.components]
        return np.logaddexp.reduce(np.log(prior.weights)[:, None] + np.array(parts))
    if isinstance(prior, Gamma):
        prior = stats.gamma(prior.concentration, scale=1 / prior.rate)
    if isinstance(prior, Beta):
        prior = stats.beta(prior.concentration1, prior.concentration0)
    if family == "poisson":
        return prior.logpdf(np.exp(place)) + place
    inside = 1.0 / (1.0 + np.exp(-place))
    return prior.logpdf(inside) + np.log(inside) + np.log1p(-inside)


def enumerated(
    family: str, statistic: NoisyStatistic, prior: Any, n_prior: NPrior
) -> tuple[Floats, Floats, Floats]:
    """Places, parameters there, and probabilities of them for the first cell: every N, every sum."""
    place = np.linspace(-40.0, 12.0 if family == "poisson" else 34.0, 30_001)
    chance = law_of(family, place)
    upper, scale = chance.shape[1] - 1, statistic.plan.scale
    values = statistic.values[0].astype(float)
    weight = np.zeros(len(place))
    law = np.ones((len(place), 1))
    low, high = n_prior.support
    for n in range(high + 1):
        total = np.arange(float(law.shape[1]))
        distance = np.abs(total - values[0])
        if len(values) > 1:
            distance = distance + np.abs(upper * n - total - values[1])
        if n >= low:
            weight += np.exp(n_prior.log_prob(np.array([float(n)]))) * (law @ np.exp(-distance / scale))
        longer = np.zeros((len(place), law.shape[1] + upper))
        for count in range(upper + 1):
            longer[:, count : count + law.shape[1]] += law * chance[:, count : count + 1]
        law = longer
    log_weight = np.log(weight) + log_prior(family, prior, place)
    share = np.exp(log_weight - log_weight.max())
    parameter = np.exp(place) if family == "poisson" else 1.0 / (1.0 + np.exp(-place))
    return place, parameter, share / share.sum()


@pytest.mark.parametrize("family", list(ENTRIES))
@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize(
    ("sums", "n_prior", "epsilon"),
    [
        ([14, 5], Uniform(0, 6), "0.5"),
        ([19, 1], Uniform(0, 6), "3"),
        ([-9, 30], Uniform(0, 5), "0.2"),
        ([15], Fixed(5), "1"),
        ([26], Fixed(6), "0.3"),
    ],
)
def test_posteriors_are_those_of_enumeration(
    family: str, which: int, sums: list[int], n_prior: NPrior, epsilon: str
) -> None:
    public_n = n_prior.n if isinstance(n_prior, Fixed) else None
    statistic = released(family, [sums], epsilon=epsilon, public_n=public_n)
    given = PRIORS[family][which]
    from suffice.pipeline.densities import Density

    law = clipped_law(statistic, Density.of(given) or given, n_prior)
    place, parameter, share = enumerated(family, statistic, given, n_prior)
    mean = float(share @ parameter)
    sd = float(np.sqrt(share @ (parameter - mean) ** 2))
    (name,) = law.parameters
    print(abs(law.mean(name)[0] - mean) / sd, law.sd(name)[0] / sd - 1)
    assert abs(law.mean(name)[0] - mean) < 1e-6 * sd
    assert law.sd(name)[0] == pytest.approx(sd, rel=1e-5)
    levels = (0.025, 0.5, 0.975)
    found = law.quantiles(name, levels, 1, np.random.default_rng())[0]
    below = np.cumsum(share) - share / 2.0
    assert np.interp(found, parameter, below) == pytest.approx(levels, abs=1e-3)

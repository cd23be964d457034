"""Densities that are hard to integrate: right to 1e-4 posterior standard deviations, or refused.

The truth is a sum over the latent count of the binomial or the Poisson distribution and the noise, on panels
that are laid out by who knows where the density is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import gammaln, xlog1py, xlogy

from suffice import Density
from suffice.errors import PriorError
from suffice.pipeline.math.priors.record_count import Fixed
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

    Function = Callable[[Floats], Floats]
    Case = tuple[str, str, Function, Floats, float]

N = 60
MOST_SCALES = 45.0
"""Noise that is further away has a share of e^-45, as far as doubles tell nothing."""


def released(family: str) -> NoisyStatistic:
    if family == "bernoulli":
        plan = statistic_plan({"family": family}, epsilon="1", public_n=False)
        return noisy_statistic(plan, np.array([[42, 18]]))
    plan = statistic_plan({"family": family, "upper": "20"}, epsilon="1", public_n=False)
    return noisy_statistic(plan, np.array([[17 * N, 3 * N]]))


def likelihood(statistic: NoisyStatistic, theta: Floats) -> Floats:
    """Given N: sums over S, but for a constant."""
    first, second = statistic.values[0].astype(np.float64)
    if statistic.plan.family == "bernoulli":
        total = np.arange(N + 1.0)
        away = np.abs(first - (N - total)) + np.abs(second - total)
        choices = gammaln(N + 1) - gammaln(total + 1) - gammaln(N - total + 1)
        law: Any = lambda at: np.exp(choices + xlogy(total, at) + xlog1py(N - total, -at))  # noqa: E731
    else:
        total = np.arange(3000.0)
        away = np.abs(first - total) + np.abs(second - (20 * N - total))
        total = total[away - away.min() < MOST_SCALES * statistic.plan.scale]
        away = away[away - away.min() < MOST_SCALES * statistic.plan.scale]
        factorials = gammaln(total + 1)
        law = lambda at: np.exp(total * np.log(N * at) - N * at - factorials)  # noqa: E731
    noise = np.exp(-(away - away.min()) / statistic.plan.scale)
    return np.concatenate(
        [law(part[:, None]) @ noise for part in np.array_split(theta, max(1, len(theta) // 2000))]
    )


def truth(family: str, log_density: Function, edges: Floats) -> tuple[float, float]:
    nodes, weights = np.polynomial.legendre.leggauss(10)
    edges = np.unique(edges)
    half = np.diff(edges)[:, None] / 2
    theta, width = (edges[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()
    with np.errstate(all="ignore"):
        log_prior = log_density(theta)
    share = np.exp(log_prior - log_prior.max()) * width
    kept = share > 1e-14 * share.max()
    theta, share = theta[kept], share[kept]
    share = share * likelihood(released(family), theta)
    share /= share.sum()
    mean = float(share @ theta)
    return mean, math.sqrt(float(share @ (theta - mean) ** 2))


SMALL = np.geomspace(1e-14, 0.01, 50)
UNIT = np.concatenate([SMALL, np.linspace(0.01, 0.99, 300), 1 - SMALL])
RATES = np.concatenate([np.geomspace(1e-9, 0.05, 50), np.linspace(0.05, 30, 900), np.geomspace(31, 1e4, 40)])


def near(centre: float, width: float) -> Floats:
    return np.clip(centre + width * np.linspace(-12, 12, 49), 1e-15, None)


def spiked(centre: float, width: float, base: Function) -> Function:
    """Half a normal spike, half a density."""
    return lambda at: np.logaddexp(
        -(((at - centre) / width) ** 2) / 2 - math.log(width * math.sqrt(2 * math.pi)), base(at)
    )


def flat(at: Floats) -> Floats:
    return np.zeros_like(at)


def falling(at: Floats) -> Floats:
    return -at


def steps(*pieces: tuple[float, float, float]) -> Function:
    """Heights between two ends, nothing elsewhere."""

    def log_density(at: Floats) -> Floats:
        value = np.full(at.shape, -np.inf)
        for low, high, height in pieces:
            value[(at > low) & (at < high)] = height
        return value

    return log_density


def power_of(function: Any, factor: float, inner: float = 1.0) -> Function:
    return lambda at: factor * function(inner * at)


def comb(number: int, width: float) -> Function:
    return lambda at: -(((at * number - np.rint(at * number)) / (width * number)) ** 2) / 2


def teeth(number: int, width: float) -> Floats:
    return np.clip(
        np.arange(number + 1.0)[:, None] / number + width * np.linspace(-9, 9, 19), 1e-14, 1 - 1e-14
    ).ravel()


CENTRES = (0.3, 0.29999, 1 / 3, 0.01, 0.25)
WIDTHS = (1e-3, 1e-5, 1e-7, 1e-8)
SPIKES = {f"spike {centre:g} {width:g}" for centre in CENTRES for width in WIDTHS}


def cases() -> list[Case]:
    known: list[Case] = []
    for centre in CENTRES:
        for width in WIDTHS:
            edges = np.concatenate([UNIT, near(centre, width)])
            known.append((f"spike {centre:g} {width:g}", "bernoulli", spiked(centre, width, flat), edges, 1))
    for centre, width in ((2.0, 1e-4), (3.0, 1e-6), (2.5, 1e-7)):
        edges = np.concatenate([RATES, near(centre, width)])
        known.append(
            (f"spike {centre:g} {width:g}", "poisson", spiked(centre, width, falling), edges, math.inf)
        )
    for name, pieces in {
        "step": ((0.0, 0.31, 0.0), (0.31, 1.0, -3.0)),
        "plateau": ((0.0, 0.29, 0.0), (0.29, 0.3, 5.0), (0.3, 1.0, 0.0)),
        "narrow plateau": ((0.0, 0.3, 0.0), (0.3, 0.3 + 1e-6, 14.0), (0.3 + 1e-6, 1.0, 0.0)),
        "pieces": ((0.0, 0.2, 0.0), (0.28, 0.29, 0.0), (0.6, 1.0, 0.0)),
        "narrow pieces": ((0.28, 0.28 + 1e-5, 0.0), (0.32, 0.32 + 1e-5, 0.0)),
        "a narrow piece far from all": ((0.9, 0.9 + 1e-5, 8.0), (0.1, 0.3, 0.0)),
    }.items():
        edges = np.concatenate([UNIT, *(np.array([low, high]) for low, high, _ in pieces)])
        known.append((name, "bernoulli", steps(*pieces), np.clip(edges, 1e-14, 1 - 1e-14), 1))
    for power in (-0.5, -0.9, -0.99):
        deep = np.concatenate([np.geomspace(1e-250, 1e-14, 200), UNIT])
        known.append((f"pole at 0, {power}", "bernoulli", power_of(np.log, power), deep, 1))
        known.append((f"pole at 1, {power}", "bernoulli", power_of(lambda at: np.log1p(-at), power), UNIT, 1))
    both = np.concatenate([np.geomspace(1e-250, 1e-14, 200), UNIT])
    known.append(("poles at both", "bernoulli", lambda at: -0.5 * np.log(at) - 0.5 * np.log1p(-at), both, 1))
    # Half of all within about 1e-6 of an end.
    known.append(("edge at 0", "bernoulli", lambda at: np.logaddexp(-at * 1e6 + math.log(1e6), 0.0), UNIT, 1))
    known.append(
        ("edge at 1", "bernoulli", lambda at: np.logaddexp((at - 1.0) * 1e6 + math.log(1e6), 0.0), UNIT, 1)
    )
    for waves in (30, 300, 3000):
        edges = np.linspace(1e-14, 1 - 1e-14, 4 * waves + 401)
        known.append((f"waves {waves}", "bernoulli", power_of(np.cos, 4.0, waves), edges, 1))
    for number, width in ((10, 1e-4), (40, 1e-5), (300, 1e-5)):
        known.append((f"comb {number}", "bernoulli", comb(number, width), teeth(number, width), 1))
    known += [
        (f"tail {power}", "poisson", power_of(np.log1p, -power), RATES, math.inf) for power in (1.1, 1.5, 3.0)
    ]
    far = np.concatenate([RATES, np.geomspace(1e4, 1e12, 60)])
    known.append(
        (
            "mass at infinity",
            "poisson",
            lambda at: np.where(at > 1e6, 20 - 2 * np.log(at), -at),
            far,
            math.inf,
        )
    )
    known.append(
        ("a slow tail", "poisson", lambda at: -np.log(at + 2) - 2 * np.log(np.log(at + 2)), far, math.inf)
    )
    return known


IMPROPER: dict[str, Function] = {
    "1/x": lambda at: -np.log(at),
    "flat": flat,
    "1/root": lambda at: -0.5 * np.log(at),
    "rising": lambda at: at,
    "1/(1 + x)": lambda at: -np.log1p(at),
    "1/((2 + x) log)": lambda at: -np.log(at + 2) - np.log(np.log(at + 2)),
}
CASES = cases()
REFUSED = {"pole at 1, -0.9", "pole at 0, -0.99", "pole at 1, -0.99", "a slow tail"}
"""Of the cases those that may be refused."""


def check(case: Case) -> str:
    name, family, log_density, edges, upper = case
    try:
        posterior = unrestricted_posterior(
            released(family), prior=Density(log_density, 0, upper), n_prior=Fixed(N), clipping="ignored"
        )
    except PriorError:
        return "refused"
    mean, sd = truth(family, log_density, edges)
    assert abs(posterior.mean()[0] - mean) < 1e-4 * sd, name
    assert posterior.sd()[0] == pytest.approx(sd, rel=5e-4), name
    return "right"


IN_THE_LANE = {f"spike 0.3 {width:g}" for width in WIDTHS} | {
    f"spike {centre:g} {WIDTHS[-1]:g}" for centre in CENTRES
}
"""Of the spikes each width and each centre; the audit has them all."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.audit] if case[0] in SPIKES - IN_THE_LANE else [])
        for case in CASES
    ],
    ids=[case[0] for case in CASES],
)
def test_a_nasty_density_is_right_or_may_be_refused(case: Case) -> None:
    assert check(case) == "right" or case[0] in REFUSED


@pytest.mark.parametrize("name", ["spike 0.29999 1e-08", "pieces", "mass at infinity"])
def test_few_nasty_densities_are_right(name: str) -> None:
    (case,) = [case for case in CASES if case[0] == name]
    assert check(case) == "right"


def test_few_may_be_refused() -> None:
    assert len(CASES) + len(IMPROPER) >= 50
    assert {case[0] for case in CASES} >= REFUSED
    assert len(REFUSED) < 0.1 * len(CASES)


@pytest.mark.parametrize("name", IMPROPER)
def test_improper_densities_are_refused(name: str) -> None:
    with pytest.raises(PriorError, match=r"improper|not seen whole"):
        unrestricted_posterior(
            released("poisson"), prior=Density(IMPROPER[name], 0, math.inf), n_prior=Fixed(N)
        )


def test_a_density_that_only_values_tell_of_is_said_to_be_one() -> None:
    known = unrestricted_posterior(released("bernoulli"), prior="Uniform(0, 1)", n_prior=Fixed(N))
    by_values = unrestricted_posterior(released("bernoulli"), prior=Density(flat, 0, 1), n_prior=Fixed(N))
    assert not [note for note in known.notes if "only values are known" in note]
    assert [note for note in by_values.notes if "only values are known" in note]

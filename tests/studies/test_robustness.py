"""Calculators of Dimitrakakis et al.: what they bound and refuse, and which statements are false."""

from __future__ import annotations

import itertools
import math
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from studies.bound import Bound, Quantity
from studies.distinguishing import largest_distance, threshold, worst_chance
from studies.kl_of_laplace import divergence, mean_divergence
from studies.mistakes import mean_of_one_pass, mean_of_truncated, sensitivities, share_dilated
from studies.robustness import (
    KAPPA,
    OMEGA,
    concentration,
    distinguishability,
    kl_bound,
    le_cam,
    lipschitz,
    privacy_of_posterior_sampling,
    total_variation_bound,
)
from studies.robustness_checks import (
    counterexample,
    kl_by_quadrature,
    mass_of_binomial,
    worst_share_of_group,
    worst_share_of_network,
    worst_share_of_theorem,
)
from suffice.errors import UsageError
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from support.page_blocks import read_page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ASSUMPTION_1 = lipschitz("exponential", {"rate": (0.0, 1.0)}, "absolute")
ASSUMPTION_2 = concentration("exponential", {"rate": 1.0}, "absolute")


def simulated_divergence(records: int, scale: float, repeats: int) -> tuple[float, float]:
    """Return the mean divergence over simulated records and noise, and its standard error."""
    rng = np.random.default_rng(secrets.randbits(64))
    successes = rng.binomial(records, 0.3, repeats)
    noise = discrete_laplace(scale, (2, repeats), rng)
    ones, zeros = successes + 1.0, records - successes + 1.0
    noisy = np.maximum(ones - 1.0 + noise[0], 0.0) + 1.0, np.maximum(zeros - 1.0 + noise[1], 0.0) + 1.0
    divergences = np.array([divergence(a, b, c, d) for a, b, c, d in zip(ones, zeros, *noisy, strict=True)])
    return float(divergences.mean()), float(divergences.std() / math.sqrt(repeats))


def test_the_summed_divergence_is_the_simulated_one() -> None:
    """Within 7 standard errors (a chance below 1e-8); noise of twice the scale is far outside."""
    mean, error = simulated_divergence(1000, 2.0, 10_000)
    assert abs(mean - mean_divergence(1000)) < 7 * error
    assert abs(mean - mean_divergence(1000, scale=4.0)) > 7 * error


def test_the_example_of_the_page(repository: Path) -> None:
    (block,) = read_page(repository / "docs" / "papers.md").blocks
    names: dict[str, float] = {}
    exec(block.text, names)  # noqa: S102 - the page's own example
    assert names["epsilon"] == pytest.approx(1.2)


def test_constants() -> None:
    assert pytest.approx(1.256431208626, abs=1e-12) == OMEGA
    assert pytest.approx(4.910814964568, abs=1e-12) == KAPPA
    assert distinguishability(ASSUMPTION_1, 100, 0.05).value == pytest.approx(0.02247, abs=5e-6)
    assert distinguishability(ASSUMPTION_2, 100, 0.05).value == pytest.approx(0.00915, abs=5e-6)


def test_only_a_guarantee_gives_a_privacy_parameter() -> None:
    assert privacy_of_posterior_sampling(ASSUMPTION_1, 0.5, 3).guaranteed() == pytest.approx(3.0)
    assert kl_bound(ASSUMPTION_1, 0.5).guaranteed() == pytest.approx(1.0)
    for bound in (
        ASSUMPTION_2,
        kl_bound(ASSUMPTION_2, 1.0),
        total_variation_bound(ASSUMPTION_2, 1.0),
        distinguishability(ASSUMPTION_2, 100, 0.05),
    ):
        assert not bound.is_guarantee
        with pytest.raises(UsageError, match="not a guarantee"):
            bound.guaranteed()
    with pytest.raises(UsageError, match="not a guarantee"):
        privacy_of_posterior_sampling(ASSUMPTION_2, 1.0, 1)
    for queries, rho, says in ((0, 1.0, "queries"), (1, -1.0, "rho"), (1, math.nan, "rho")):
        with pytest.raises(UsageError, match=says):
            privacy_of_posterior_sampling(ASSUMPTION_1, rho, queries)


@pytest.mark.parametrize(("records", "kl"), [(15, 4.9096), (16, 5.2165), (100, 30.99), (1000, 307.16)])
def test_theorem_1_ii_is_false(records: int, kl: float) -> None:
    divergence_of_example = counterexample(records, 1.0)[0]
    assert divergence_of_example == pytest.approx(kl, abs=6e-3)
    assert divergence_of_example == pytest.approx((records + 1) * (1.0 - math.log(2.0)), rel=1e-12)
    assert divergence_of_example == pytest.approx(kl_by_quadrature(records, 1.0), rel=1e-7)
    claimed = kl_bound(ASSUMPTION_2, 1.0).value
    assert claimed == pytest.approx(4.9108, abs=5e-5)
    assert (divergence_of_example > claimed) == (records > 15)


def test_theorem_2_ii_is_false() -> None:
    assert counterexample(1000, 0.1)[1] == pytest.approx(0.8683, abs=5e-5)
    assert total_variation_bound(ASSUMPTION_2, 0.1).value == pytest.approx(0.4955, abs=5e-5)


def test_what_holds_holds_and_is_not_vacuous() -> None:
    for share in (*worst_share_of_theorem(), worst_share_of_group(), worst_share_of_network()):
        assert 0.02 < share <= 1.0 + 1e-9
    # With a parent's change counted once, three tables change: 3 log(.95 / .05) over log 20.
    assert worst_share_of_network(by_degree=False) == pytest.approx(
        3.0 * math.log(19.0) / math.log(20.0), rel=1e-12
    )


def test_lemmas_5_and_6() -> None:
    assert mass_of_binomial(math.log(10.0) - 0.01, 10, 2.0) == 0.0
    assert mass_of_binomial(math.log(10.0) + 0.01, 10, 2.0) > 0.0
    assert math.exp(-1.0 / 20.0) == pytest.approx(0.9512, abs=5e-5)
    with pytest.raises(UsageError, match="Lemma 5"):
        concentration("beta-binomial", {"alpha": 2.0, "trials": 10.0}, "absolute")
    with pytest.raises(UsageError, match="Lemma 6"):
        concentration("normal", {"variance": 1.0}, "squares")
    trial = concentration("beta-binomial", {"alpha": 1.0, "trials": 1.0}, "absolute").value
    assert trial == pytest.approx(0.5, abs=1e-4)
    for level in (0.1, 1.0, 5.0):
        assert mass_of_binomial(level, 1, 1.0) >= 1.0 - math.exp(-trial * level) - 1e-9


@pytest.mark.parametrize(
    ("family", "name", "metric"),
    [
        ("exponential", "rate", "absolute"),
        ("laplace", "inverse_scale", "absolute"),
        ("normal", "precision", "squares"),
    ],
)
def test_concentration_is_the_mass_of_the_parameters_with_l(family: str, name: str, metric: str) -> None:
    """Parameters with L are found on pairs of records; the mass of their prior is 1 - exp(-c L), no more."""
    records = np.linspace(0.0 if family == "exponential" else -4.0, 4.0, 41)
    x, y = records[:, np.newaxis], records
    apart = np.abs(x - y) if metric == "absolute" else np.abs(x**2 - y**2) + 2.0 * np.abs(x - y)
    parameters = np.linspace(0.05, 7.0, 140)
    laws: list[Any]
    if family == "exponential":
        laws = [stats.expon(scale=1.0 / value) for value in parameters]
    elif family == "laplace":
        laws = [stats.laplace(scale=1.0 / value) for value in parameters]
    else:
        laws = [stats.norm(1.0, precision**-0.5) for precision in parameters]  # the worst mean in [-1, 1]
    logs = [law.logpdf(records) for law in laws]
    needed = [
        np.max(np.abs(log_densities[:, np.newaxis] - log_densities)[apart > 0] / apart[apart > 0])
        for log_densities in logs
    ]
    for level, rate in itertools.product((0.2, 1.0, 3.0), (0.3, 2.0)):
        highest = parameters[np.array(needed) <= level].max()  # they are the smaller ones
        lost = float(stats.expon(scale=1.0 / rate).sf(highest))
        value = concentration(family, {name: rate}, metric).value
        assert -math.log(lost) == pytest.approx(value * level, abs=0.06 * rate)


@given(
    values=st.tuples(st.floats(0, 9), st.floats(0, 9)),
    mean=st.floats(-3, 3),
    scale=st.floats(0.1, 5),
)
def test_log_ratios_are_within_l_rho(values: tuple[float, float], mean: float, scale: float) -> None:
    x, y = values
    rho = abs(x - y)
    exponential = lipschitz("exponential", {"rate": (0.0, scale)}, "absolute").value
    assert scale * rho <= exponential * rho + 1e-9
    laplace = lipschitz("laplace", {"scale": (scale, 10.0)}, "absolute").value
    law = stats.laplace(mean, scale)
    assert abs(law.logpdf(x) - law.logpdf(y)) <= laplace * rho + 1e-9
    normal = lipschitz("normal", {"mean": (-abs(mean), abs(mean)), "variance": (scale, 9.0)}, "squares").value
    apart = abs(x**2 - y**2) + 2.0 * rho
    gauss = stats.norm(mean, math.sqrt(scale))
    assert abs(gauss.logpdf(x) - gauss.logpdf(y)) <= normal * apart + 1e-9


@given(trials=st.integers(1, 12), probability=st.floats(0.05, 0.95))
def test_log_ratios_of_binomials_are_within_l_rho(trials: int, probability: float) -> None:
    parameters = {"trials": (1.0, float(trials)), "probability": (probability, probability)}
    bound = lipschitz("beta-binomial", parameters, "absolute").value
    logs = stats.binom(trials, probability).logpmf(np.arange(trials + 1))
    for k in range(trials):
        assert abs(logs[k + 1] - logs[k]) <= bound + 1e-9


@pytest.mark.parametrize(
    ("family", "parameters", "metric", "says"),
    [
        ("exponential", {"rate": (0.0, math.inf)}, "absolute", "unbounded"),
        ("laplace", {"scale": (0.0, 1.0)}, "absolute", "unbounded"),
        ("network", {"least_probability": (0.0, 1.0)}, "degrees", "unbounded"),
        ("beta-binomial", {"probability": (0.0, 0.5), "trials": (1.0, 1.0)}, "absolute", "unbounded"),
        ("exponential", {}, "absolute", "declared interval"),
        ("exponential", {"rate": (1.0, 0.5)}, "absolute", "declared interval"),
        ("exponential", {"rate": (0.0, 1.0)}, "squares", "goes with its metric"),
        ("poisson", {}, "absolute", "goes with its metric"),
    ],
)
def test_what_has_no_bound_is_refused(
    family: str, parameters: dict[str, tuple[float, float]], metric: str, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        lipschitz(family, parameters, metric)


def test_le_cam_is_half_of_the_distance_times_the_overlap() -> None:
    """Beta(1, 1), one record of 0 or of 1: densities 2 (1 - p) and 2 p overlap in 1/2."""
    assert le_cam(("beta", 1.0, 1.0), [0.0], [1.0]).value == pytest.approx(0.25, abs=1e-9)
    assert le_cam(("gamma", 1.0, 1.0), [0.0], [0.0]).value == 0.0
    with pytest.raises(UsageError, match="'gamma', shape, rate"):
        le_cam(("normal", 0.0, 1.0), [0.0], [1.0])


def test_theorem_3_is_a_necessary_condition() -> None:
    least = distinguishability(ASSUMPTION_1, 100, 0.05).value
    assert math.sqrt(4.0 * least) == pytest.approx(threshold())
    assert largest_distance(least) < threshold()
    assert worst_chance() < 0.05


def test_mistakes() -> None:
    assert sensitivities() == (2, 1, 1)
    assert mean_of_truncated() == pytest.approx(0.3371, abs=2e-4)
    assert mean_of_one_pass() == pytest.approx(0.4229, abs=3e-4)
    assert share_dilated() == 0.0


def test_a_bound_says_what_it_rests_on() -> None:
    bound = Bound(value=1.0, quantity=Quantity.CONCENTRATION, is_guarantee=False, rests_on="Assumption 2")
    with pytest.raises(UsageError, match="Assumption 2: not a guarantee"):
        bound.guaranteed()


def test_a_stated_number_is_taken_as_assumption_1() -> None:
    cost = privacy_of_posterior_sampling(2.0, 0.1, 3)
    assert cost.guaranteed() == pytest.approx(1.2)
    assert "stated" in cost.rests_on
    assert distinguishability(1.0, 100, 0.05) == replace(
        distinguishability(ASSUMPTION_1, 100, 0.05), rests_on=cost.rests_on
    )


BAD: dict[str, Callable[[], Bound]] = {
    "rate: .* within": lambda: lipschitz("exponential", {"rate": 1.0}, "absolute"),  # type: ignore[dict-item]
    "rate: .*low, high": lambda: lipschitz("exponential", {"rate": (1.0,)}, "absolute"),  # type: ignore[dict-item]
    "no parameter rates; it has rate": lambda: lipschitz("exponential", {"rates": (0.0, 1.0)}, "absolute"),
    "least_probability: .*0, 1": lambda: lipschitz("network", {"least_probability": (2.0, 3.0)}, "degrees"),
    "rate: a finite number above 0": lambda: concentration("exponential", {"rate": -1.0}, "absolute"),
    "alpha: a finite": lambda: concentration("beta-binomial", {"alpha": math.nan, "trials": 1.0}, "absolute"),
    "rho: a finite number of at least 0": lambda: kl_bound(ASSUMPTION_1, -1.0),
    "rho: a finite": lambda: total_variation_bound(ASSUMPTION_1, math.inf),
    "not a KL divergence": lambda: privacy_of_posterior_sampling(kl_bound(ASSUMPTION_1, 1.0), 1.0, 1),
    "not a distance of data sets": lambda: privacy_of_posterior_sampling(
        le_cam(("beta", 1.0, 1.0), [0.0], [1.0]), 1.0, 1
    ),
    "is needed, not str": lambda: kl_bound("1", 1.0),  # type: ignore[arg-type]
    "L: a finite number of at least 0": lambda: kl_bound(-1.0, 1.0),
    "queries: a whole number": lambda: privacy_of_posterior_sampling(ASSUMPTION_1, 1.0, 2.5),  # type: ignore[arg-type]
    "n: a finite number of at least 1": lambda: distinguishability(ASSUMPTION_1, 0, 0.05),
    "delta: a number below 1": lambda: distinguishability(ASSUMPTION_1, 100, 1.0),
    "delta: a finite number above 0": lambda: distinguishability(ASSUMPTION_1, 100, 0.0),
    "at L = 0": lambda: distinguishability(
        lipschitz("exponential", {"rate": (0.0, 0.0)}, "absolute"), 1, 0.1
    ),
    "one length": lambda: le_cam(("gamma", 1.0, 1.0), [0.0], [0.0, 1.0]),
    "prior gamma: a finite number above 0": lambda: le_cam(("gamma", -1.0, 1.0), [0.0], [1.0]),
    "are 0 or 1": lambda: le_cam(("beta", 1.0, 1.0), [3.0], [1.0]),
    "x: a finite": lambda: le_cam(("gamma", 1.0, 1.0), [math.inf], [1.0]),
    "y: a sequence": lambda: le_cam(("gamma", 1.0, 1.0), [0.0], 1.0),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("says", BAD)
def test_bad_numbers_are_refused(says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        BAD[says]()
    assert len(str(caught.value)) <= 500


def test_le_cam_of_densities_without_bound() -> None:
    """Beta(.2, 700.2) and Beta(1.2, 699.2), with a pole at 0: they cross once, so cumulated chances tell."""
    distance = le_cam(("beta", 0.2, 0.2), [0.0] * 700, [1.0] + [0.0] * 699).value
    laws = stats.beta(0.2, 700.2), stats.beta(1.2, 699.2)
    points = np.geomspace(1e-8, 1.0 - 1e-12, 50_001)
    overlap = 1.0 - float(np.max(laws[0].cdf(points) - laws[1].cdf(points)))
    assert distance == pytest.approx(overlap / 2.0, abs=1e-6)

"""How far posteriors move: against posteriors under priors of the neighbourhoods, and enumerated ones."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import UsageError
from suffice.pipeline.math.priors.density import Density
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

FAMILIES: dict[str, tuple[dict[str, Any], list[list[int]], str]] = {
    "bernoulli": ({}, [[70, 9], [-2, 12]], "Beta(2, 8)"),
    "poisson": ({"upper": "9"}, [[120, 780], [3, 20]], "Gamma(2, 1)"),
    "normal_known_variance": (
        {"lower": "-10", "upper": "10", "variance": "4", "lattice_bits": "4"},
        [[900, 700], [40, 30]],
        "Normal(0, 2)",
    ),
}
"""Keys of an entry, released components, and a prior."""


def released(family: str, epsilon: str = "1") -> tuple[NoisyStatistic, str]:
    keys, values, prior = FAMILIES[family]
    plan = statistic_plan({"family": family, "column": "x", **keys}, epsilon=epsilon, public_n=False)
    return noisy_statistic(plan, np.array(values)), prior


def rows_of(table: Any, cell: int) -> dict[str, dict[str, Any]]:
    """One cell's rows, by what is said of the prior."""
    priors = list(dict.fromkeys(row["prior"] for row in table))
    rows = table[cell * len(priors) : (cell + 1) * len(priors)]
    return {row["prior"]: row for row in rows}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_row_as_stated_is_the_posterior(family: str) -> None:
    statistic, prior = released(family)
    posterior = unrestricted_posterior(statistic, prior=prior)
    table = posterior.robustness(mass=0.9, redraws=0)
    (parameter,) = posterior.parameters
    ends = posterior.credible_interval(parameter, 0.9, interval="central")
    for cell in range(posterior.n_groups):
        row = rows_of(table, cell)["as stated"]
        sd = float(posterior.sd(parameter)[cell])
        mean = pytest.approx(float(posterior.mean(parameter)[cell]), abs=1e-4 * sd)
        assert row["mean_least"] == mean
        assert row["mean_most"] == mean
        for end, value in zip(("lower", "upper"), ends[cell], strict=True):
            assert row[f"{end}_least"] == pytest.approx(value, abs=0.01 * sd)


def densities(prior: str, *, seed: int) -> list[Callable[[Floats], Floats]]:
    """Log factors of a density between 1/2 and 2: waves and steps over the line."""
    rng = np.random.default_rng(seed)
    centre, width = {"Beta(2, 8)": (0.2, 0.1), "Gamma(2, 1)": (2.0, 1.0), "Normal(0, 2)": (0.0, 2.0)}[prior]
    places = centre + width * rng.normal(size=4)
    return [
        lambda value: math.log(2.0) * np.sin(3.0 * (value - centre) / width),
        *(lambda value, at=at: math.log(2.0) * np.tanh(40.0 * (value - at) / width) for at in places),
    ]


def within(law: Any, of: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    """The log density of a law, times a factor."""
    return lambda value: law.logpdf(value) + of(value)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_posteriors_under_priors_of_the_neighbourhoods_lie_within(family: str) -> None:
    statistic, prior = released(family)
    posterior = unrestricted_posterior(statistic, prior=prior)
    (parameter,) = posterior.parameters
    frozen: Any = {
        "Beta(2, 8)": stats.beta(2, 8),
        "Gamma(2, 1)": stats.gamma(2),
        "Normal(0, 2)": stats.norm(0, 2),
    }
    law = frozen[prior]
    table = posterior.robustness(share=0.2, factor=2.0, shift=1.0, redraws=0)
    lower, upper = law.support()
    others: list[tuple[str, Any]] = [
        ("density within a factor 2", Density(within(law, of), lower, upper))
        for of in densities(prior, seed=3)
    ]
    spike = float(posterior.mean(parameter)[0]) * 1.3
    narrow = 0.02 * float(law.std())
    mixed = Density(
        lambda x: np.logaddexp(
            np.log(0.8) + law.logpdf(x), np.log(0.2) + stats.norm.logpdf(x, spike, narrow)
        ),
        lower,
        upper,
        hints=(spike - 3 * narrow, spike, spike + 3 * narrow),
    )
    others.append(("20 % any other", mixed))
    attained = []
    posteriors = [(name, unrestricted_posterior(statistic, prior=other)) for name, other in others]
    for (name, moved), cell in itertools.product(posteriors, range(2)):
        row = rows_of(table, cell)[name]
        sd = float(posterior.sd(parameter)[cell])
        mean = float(moved.mean(parameter)[cell])
        assert row["mean_least"] - 1e-3 * sd <= mean <= row["mean_most"] + 1e-3 * sd
        for end, value in zip(
            ("lower", "upper"), moved.credible_interval(parameter, interval="central")[cell], strict=True
        ):
            assert row[f"{end}_least"] - 0.02 * sd <= value <= row[f"{end}_most"] + 0.02 * sd
        stated = rows_of(table, cell)["as stated"]["mean_least"]
        attained.append(abs(mean - stated) / max(row["mean_most"] - stated, stated - row["mean_least"]))
    assert max(attained) > 0.7, "ranges are no wider than need be"


@pytest.mark.slow
def test_one_record_more_is_what_a_changed_release_says() -> None:
    statistic, prior = released("bernoulli")
    table = unrestricted_posterior(statistic, prior=prior).robustness(redraws=0)
    row = rows_of(table, 0)["one record more or less"]
    means = []
    for change in ([0, 0], [0, 1], [1, 0], [0, -1], [-1, 0]):
        changed = noisy_statistic(statistic.plan, np.array([[70 + change[0], 9 + change[1]]]))
        means.append(float(unrestricted_posterior(changed, prior=prior).mean()[0]))
    assert (row["mean_least"], row["mean_most"]) == pytest.approx((min(means), max(means)), abs=1e-5)


def test_a_public_number_of_records_lets_one_be_replaced() -> None:
    plan = statistic_plan({"family": "bernoulli", "column": "x"}, epsilon="1", public_n=True)
    statistic = noisy_statistic(plan, np.array([[9]]), public_n=60)
    table = unrestricted_posterior(statistic).robustness(redraws=0)
    row = rows_of(table, 0)["one record replaced"]
    stated = rows_of(table, 0)["as stated"]["mean_least"]
    assert row["mean_least"] < stated < row["mean_most"]
    assert row["mean_most"] - row["mean_least"] == pytest.approx(2 / 62, rel=0.3)


def test_several_parameters_have_the_neighbourhood_within_a_factor() -> None:
    plan = statistic_plan(
        {"family": "categorical", "column": "x", "categories": ["a", "b", "c"], "other": "false"},
        epsilon="1",
        public_n=False,
    )
    posterior = unrestricted_posterior(noisy_statistic(plan, np.array([[30, 50, 20]])))
    table = posterior.robustness(factor=3.0, rng=1)
    assert [row["prior"] for row in table] == ["as stated", "density within a factor 3"] * 3
    assert [row["category"] for row in table[::2]] == ["a", "b", "c"]
    for stated, moved in zip(table[::2], table[1::2], strict=True):
        assert moved["mean_least"] < stated["mean_least"] < moved["mean_most"]
    # 0.025 / (0.025 + 9 * 0.975) of 4000 draws
    assert "it has several parameters: 4000 draws tell of no other" in str(table)
    assert "rest on the outermost 11 of them" in str(table)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_widest_neighbourhoods_hold_what_is_stated(family: str) -> None:
    statistic, prior = released(family)
    posterior = unrestricted_posterior(statistic, prior=prior)
    farthest = 3 if family == "normal_known_variance" else 10
    numbers: dict[str, Any] = {
        "share": np.float64(0.999),
        "factor": np.int64(10),
        "shift": np.int32(farthest),
        "above": np.float32(0.25),
    }
    table = posterior.robustness(**numbers, redraws=0)
    assert len(table) == 5 * posterior.n_groups
    for cell, (row, what) in itertools.product(
        range(posterior.n_groups), itertools.product(table[:5], ("mean", "lower", "upper", "above"))
    ):
        name = row["prior"]
        stated = rows_of(table, cell)["as stated"][f"{what}_least"]
        ranges = rows_of(table, cell)[name]
        least, most = ranges[f"{what}_least"], ranges[f"{what}_most"]
        assert (-math.inf if least is None else least) <= stated + 1e-9, (name, what)
        assert (math.inf if most is None else most) >= stated - 1e-9, (name, what)


@pytest.mark.slow
def test_moved_priors_are_those_that_are_asked_for() -> None:
    """Three standard deviations away the posterior under the moved prior; ten are too many, which is said."""
    statistic, _ = released("normal_known_variance")
    posterior = unrestricted_posterior(statistic, prior="Normal(0, 2)")
    table = posterior.robustness(shift=3, redraws=0)
    ends = [unrestricted_posterior(statistic, prior=f"Normal({mean}, 2)").mean() for mean in (-6, 6)]
    for cell, expected in enumerate(zip(*ends, strict=True)):
        moved = rows_of(table, cell)["moved by 3 sd"]
        assert (moved["mean_least"], moved["mean_most"]) == pytest.approx(expected, abs=1e-3)
    with pytest.raises(UsageError, match=r"a prior that is moved so far and released .* a smaller shift"):
        posterior.robustness(shift=10, redraws=0)


@pytest.mark.slow
def test_people_read_ranges_in_the_digits_of_the_posterior() -> None:
    statistic, _ = released("bernoulli")
    posterior = unrestricted_posterior(statistic, prior="Beta(1, 30)")
    table = posterior.robustness(redraws=0, above=0.5)
    text = str(table)
    head = next(line for line in text.splitlines() if "prior  " in line)
    assert head.split("prior")[1].split() == ["mean", "lower", "upper", "probability", "above", "0.5"]
    assert "e-" not in "".join(line for line in text.splitlines() if "any other  " in line)
    for name in dict.fromkeys(row["prior"] for row in table[1:5]):
        assert f"\n{name}: " in text, "each neighbourhood has its sentence"
    # A tenth of the prior on 0 or 1, where there may be no record: ends of the second cell are the domain's.
    row = rows_of(table, 1)["10 % any other"]
    assert (row["lower_least"], row["upper_most"]) == pytest.approx((0.0, 1.0), abs=1e-4)


@pytest.mark.slow
def test_a_prior_in_conflict_is_told_by_its_range() -> None:
    statistic, _ = released("bernoulli")
    table = unrestricted_posterior(statistic, prior="Beta(200, 200)").robustness(above=0.3, redraws=0)
    row = rows_of(table, 0)["10 % any other"]
    # A tenth of any other prior undoes the stated one.
    assert row["mean_least"] < 0.2
    assert row["mean_most"] > 0.4
    assert row["above_least"] < 0.1
    assert row["above_most"] > 0.9


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"share": 1.0}, "share is a number, 0 or more, and below 1"),
        ({"factor": 0.5}, "factor is a number, from 1 to 10"),
        ({"factor": math.inf}, "factor is a number, from 1 to 10"),
        ({"factor": math.nan}, "factor is a number, from 1 to 10"),
        ({"shift": -1.0}, "shift is a number, from 0 to 10"),
        ({"shift": 1e6}, "shift is a number, from 0 to 10"),
        ({"shift": True}, "shift is a number"),
        ({"mass": 1.0}, "mass"),
        ({"above": "x"}, "above must be one finite number, not 'x'"),
        ({"above": math.nan}, "above must be one finite number, not nan"),
    ],
)
def test_neighbourhoods_that_are_none(asked: dict[str, Any], message: str) -> None:
    statistic, prior = released("bernoulli")
    with pytest.raises(UsageError, match=message):
        unrestricted_posterior(statistic, prior=prior).robustness(**asked)

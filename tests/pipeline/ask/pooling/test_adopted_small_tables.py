"""Adopted tables of a few cells: what noise may explain, and posteriors against plain sums."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import gamma, nbinom, poisson

import suffice
from suffice.errors import (
    AdoptedReleaseError,
    AdoptedTableError,
    UsageError,
)
from support.adopted_tables import (
    COUNT,
    LAPLACE,
    LAW,
    RATE,
    SHARE,
    SUPPRESSED,
    TABLE,
    changed,
    small,
)


@pytest.mark.parametrize(
    ("table", "statistic", "column", "rule"),
    [
        ({"c": ["400"]}, COUNT, LAPLACE, "400 at the only cell: s has upper: 100, and the declared noise"),
        ({"c": ["300"], "n": ["100"]}, SHARE, LAPLACE, "300 at the only cell: s has the total n"),
        ({"c": ["15"]}, COUNT, SUPPRESSED, "15 was published, and noisy numbers below 17.5 were"),
        (
            {"k": ["a", "b"], "c": ["7", "8"], "z": ["1", None]},
            COUNT,
            {"noise": {"law": "laplace", "scale": {"column": "z"}}},
            "k=b: c: the spread of the noise is in the column 'z', which has no number there",
        ),
    ],
)
def test_what_the_law_makes_impossible_is_refused(
    table: dict[str, list[Any]], statistic: dict[str, Any], column: dict[str, Any], rule: str
) -> None:
    with pytest.raises(AdoptedTableError, match=re.escape(rule)):
        small(table, statistic, column)


def test_what_noise_may_explain_is_answered_and_named() -> None:
    assert small({"c": ["120"]}, COUNT, LAPLACE).posterior().decided_by_default["count"].tolist() == [True]
    assert small({"c": ["103"]}, COUNT, LAPLACE).posterior().decided_by_default == {}
    beyond = small({"c": ["1000000"]}, {**COUNT, "family": "poisson"}, LAPLACE).posterior()
    assert beyond.decided_by_default["rate"].tolist() == [True]
    hidden = {"family": "categorical", "columns": ["a", "b"]}
    posterior = small({"a": ["*"], "b": ["*"]}, hidden, SUPPRESSED).posterior()
    assert posterior.decided_by_default["probability"].tolist() == [[True, True]]


def test_cells_are_judged_together() -> None:
    """Each of three is 3e-5 by itself; noise of all three is impossible, of which upper of a rate says."""
    three = {"k": ["a", "b", "c"], "c": ["50", "50", "50"]}
    posterior = small(three, {**RATE, "upper": 1}, LAPLACE).posterior(pooled="k")
    (line,) = posterior.conflict.lines()
    assert "50 at k=a; 50 at k=b; 50 at k=c: s has upper: 1, and the declared noise reaches" in line
    assert "or state a larger upper, or a prior" in line
    assert small(three, {**RATE, "upper": 1}, LAPLACE).posterior("Gamma(5, 0.1)").conflict.lines() == []
    assert small({"c": ["150"]}, COUNT, LAPLACE).posterior().conflict.lines()  # by itself 2e-5: said
    with pytest.raises(AdoptedTableError, match="155 at k=a; 155 at k=b: s has upper: 100"):
        small({"k": ["a", "b"], "c": ["155", "155"]}, COUNT, LAPLACE)
    with pytest.raises(AdoptedTableError, match="-120 at the only cell: s counts, and no count is below 0"):
        small({"c": ["-120"]}, COUNT, LAPLACE)


@pytest.mark.slow
def test_what_is_far_out_in_many_cells_is_what_noise_does() -> None:
    rng = np.random.default_rng(3)
    noisy = (100 + np.rint(rng.laplace(0, 5, 300))).tolist()
    table = {"k": list(map(str, range(300))), "c": list(map(str, noisy)), "n": ["100"] * 300}
    assert small(table, SHARE, LAPLACE).posterior().conflict.lines() == []
    few = {"c": ["110"], "n": ["100"]}
    (line,) = small(few, SHARE, {"noise": {"law": "laplace", "scale": 2}}).posterior().conflict.lines()
    assert "110 at the only cell: s has the total n" in line
    assert "a chance of 0.0034 in all" in line


def exact_total(shown: list[str], below: int, scale: float, *, vary: bool) -> Any:
    """Return the distribution of a total of counts up to 100, under ``Gamma(2, 0.1)``: plain sums."""
    n = np.arange(100.0)
    q = math.exp(-1.0 / scale)
    likelihoods = [
        np.sum([q ** np.abs(k - n) for k in range(-150, below)], axis=0)
        if text == "*"
        else q ** np.abs(float(text) - n)
        for text in shown
    ]
    total = np.zeros(99 * len(shown) + 1)
    log_spread = np.linspace(math.log(1e-4), math.log(4.0), 60)
    spread = np.exp(log_spread)
    of_spread = spread * np.exp(-2.0 * spread**2) * (log_spread[1] - log_spread[0]) / math.sqrt(math.pi / 2.0)
    for rate in np.exp(np.linspace(-3.0, 5.0, 81)):
        laws = [(1.0, poisson.pmf(n, rate))]
        if vary:
            k = spread[:, None] ** -2.0
            laws = list(zip(of_spread.tolist(), np.atleast_2d(nbinom.pmf(n, k, k / (k + rate))), strict=True))
            for every in (2, 3, 4, 6, 8, 12):
                apart = range(1 - every, every)
                near = [(1 - abs(j) / every) * poisson.pmf(every * n + j, every * rate) for j in apart]
                laws.append((1.0 / 12.0, np.sum(near, axis=0)))
        for weight, law in laws:
            added = np.ones(1)
            for likelihood in likelihoods:
                added = np.convolve(added, law * likelihood)
            total += weight * gamma.pdf(rate, 2.0, scale=10.0) * rate * added
    return total / total.sum()


@pytest.mark.slow
@pytest.mark.parametrize("cells", ["alike", "vary"])
@pytest.mark.parametrize("shown", [["12", "*", "20"], ["*", "*", "9"], ["10", "14"]])
def test_totals_of_pooled_counts_are_those_of_plain_sums(shown: list[str], cells: Any) -> None:
    column = {"noise": {"law": "geometric", "scale": 3}, "suppressed": {"below": 8, "shown_as": "*"}}
    table = {"k": list(map(str, range(len(shown)))), "c": shown}
    posterior = small(table, COUNT, column).posterior("Gamma(2, 0.1)", pooled="k", cells=cells)
    exact = exact_total(shown, 8, 3.0, vary=cells == "vary")
    counts = np.arange(len(exact))
    mean = float(exact @ counts)
    sd = math.sqrt(exact @ (counts - mean) ** 2)

    assert posterior.parameters == ("total",)
    assert posterior.mean()[0] == pytest.approx(mean, abs=5e-3 * sd)
    assert posterior.sd()[0] == pytest.approx(sd, rel=5e-3)
    below = np.cumsum(exact)
    for level, quantile in zip(
        (0.05, 0.5, 0.95), posterior.quantile([0.05, 0.5, 0.95], rng=1)[0], strict=True
    ):
        # Of 4,000 draws: five standard errors of a share.
        slack = 5.0 * math.sqrt(level * (1.0 - level) / 4000)
        at = round(float(quantile))
        assert below[at] > level - slack
        assert below[at - 1] < level + slack


@pytest.mark.slow
def test_totals_say_what_they_rest_on() -> None:
    adopted = suffice.adopt(TABLE, LAW)
    said = str(adopted.posterior("views", pooled="day"))
    assert "the total of up to 4 cells, whose counts vary about a mean rate" in said
    hidden = small({"k": ["a", "b"], "c": ["*", "*"]}, COUNT, SUPPRESSED).posterior(pooled="k")
    assert hidden.decided_by_default["total"].tolist() == [True]


@pytest.mark.slow
def test_a_pool_that_ends_where_upper_does_says_so() -> None:
    wild = {"k": ["a", "b", "c"], "c": ["50", "3000", "55"]}
    column = {"noise": {"law": "geometric", "scale": 3}}
    for upper in (10**5, 10**6):
        posterior = small(wild, {**RATE, "upper": upper}, column).posterior(pooled="k")
        assert posterior.decided_by_default["rate"].tolist() == [True]
    even = {"k": ["a", "b", "c"], "c": ["50", "60", "55"]}
    assert small(even, {**RATE, "upper": 10**5}, column).posterior(pooled="k").decided_by_default == {}


def test_exposures_of_absent_rows_are_said() -> None:
    law = changed(
        statistics={"rate": {"family": "poisson", "column": "views", "upper": 1000, "exposure": "hours"}}
    )
    adopted = suffice.adopt(TABLE | {"hours": [2, 2, 4, 4, 4]}, law)
    said = "hours of 3 absent rows (page=A, day=2 first) is taken to be that of published rows"
    assert said in str(adopted)
    assert said in str(adopted.posterior("rate"))
    assert "absent row" not in str(suffice.adopt(TABLE, LAW))


SHARES = {"family": "categorical", "columns": ["a", "b", "d"]}


def test_priors_of_shares_are_judged() -> None:
    statistic = small({"a": ["40"], "b": ["10"], "d": ["5"]}, SHARES, LAPLACE)

    assert statistic.posterior("Dirichlet(1, 1, 200)").conflict.is_said.tolist() == [[True]]
    for prior in ("Dirichlet(30, 10, 5)", "Dirichlet(0.001)", "Dirichlet(1)"):
        assert statistic.posterior(prior).conflict.lines() == []
    assert statistic.posterior().conflict.not_judged == ()


def exact_shares(counts: list[float], scale: float, concentration: float) -> tuple[Any, Any]:
    """Return means and sds of three shares under (1 / (N + A)), by sums over all counts up to 300."""
    n = np.arange(300.0)
    total = 3.0 * concentration
    of_count = gammaln(n + concentration) - gammaln(concentration) - gammaln(n + 1.0)
    each = [np.exp(of_count - np.abs(value - n) / scale) for value in counts]
    means, sds = [], []
    for first, second, third in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
        rest = np.convolve(each[second], each[third])
        in_all = n[:, None] + np.arange(len(rest))
        weight = each[first][:, None] * rest / (in_all + total)
        weight *= np.exp(gammaln(in_all + 1.0) + gammaln(total) - gammaln(in_all + total))
        mean = (n[:, None] + concentration) / (in_all + total)
        square = mean * (1.0 - mean) / (in_all + total + 1.0) + mean**2
        means.append(float((weight * mean).sum() / weight.sum()))
        sds.append(math.sqrt((weight * square).sum() / weight.sum() - means[-1] ** 2))
    return np.array(means), np.array(sds)


@pytest.mark.parametrize("concentration", [1e-5, 0.01, 1.0, 30.0])
def test_shares_under_priors_of_every_size_are_those_of_plain_sums(concentration: float) -> None:
    """Of 20,000 draws: five standard errors of a mean are 0.035 of an sd."""
    column = {"noise": {"law": "geometric", "scale": 5}}
    statistic = small({"a": ["40"], "b": ["10"], "d": ["5"]}, SHARES, column)
    posterior = statistic.posterior(f"Dirichlet({concentration})")
    mean, sd = exact_shares([40, 10, 5], 5.0, concentration)

    assert np.all(np.abs(posterior.mean()[0] - mean) < 0.035 * sd)
    assert posterior.sd()[0] == pytest.approx(sd, rel=0.05)


def test_shares_under_a_prior_of_a_hundred_million_are_the_priors() -> None:
    posterior = small({"a": ["40"], "b": ["10"], "d": ["5"]}, SHARES, LAPLACE).posterior("Dirichlet(1e8)")
    assert posterior.mean()[0] == pytest.approx([1 / 3] * 3, abs=1e-6)


def test_noise_of_every_size_is_answered_or_refused_by_type() -> None:
    tiny = small({"c": ["5"]}, COUNT, {"noise": {"law": "geometric", "scale": 0.0005}})
    assert tiny.table()[0]["noise_sd"] == 0.0
    # Nothing is known but the prior, and it is answered within seconds.
    huge = {"noise": {"law": "laplace", "scale": 1e9}}
    posterior = small({"c": ["7"]}, {**COUNT, "family": "poisson", "upper": 1000}, huge).posterior()
    assert posterior.mean()[0] == pytest.approx(500.0, rel=1e-5)
    with pytest.raises(UsageError, match="leaves too many counts to sum"):
        small({"c": ["7"]}, {**COUNT, "family": "poisson", "upper": 1e12}, huge).posterior()


@pytest.mark.parametrize("concentration", [0.001, 1.0, 20.0])
def test_rates_under_gamma_priors_with_long_tails_are_those_of_plain_sums(concentration: float) -> None:
    column = {"noise": {"law": "geometric", "scale": 3}}
    statistic = small({"c": ["50"]}, {**COUNT, "family": "poisson"}, column)
    posterior = statistic.posterior(f"Gamma({concentration}, 0.000001)")
    n = np.arange(2000.0)
    log_weight = gammaln(n + concentration) - gammaln(n + 1.0) - n * math.log1p(1e-6) - np.abs(50.0 - n) / 3.0
    weight = np.exp(log_weight - log_weight.max())
    mean = float(np.average(n + concentration, weights=weight)) / (1.0 + 1e-6)

    assert posterior.mean()[0] == pytest.approx(mean, rel=1e-6)
    assert statistic.posterior("Gamma(0.001, 0.000001)", pooled=()).conflict.lines() == []


def test_what_is_of_own_releases_refuses_adopted_ones_by_type() -> None:
    statistic = small({"k": ["a", "b"], "c": ["50", "60"]}, COUNT, LAPLACE)
    release = statistic.release
    for ask in (
        lambda: suffice.publish(release),
        lambda: suffice.open_release(release),
        lambda: suffice.compare(release, release, "s"),
        lambda: suffice.compare_priors(release, "s", []),
        lambda: suffice.pool("s", disjoint=release),
        lambda: suffice.pool("s", disjoint=[release, release]),
        lambda: suffice.roll_up(statistic, "k"),
        lambda: suffice.calibrate(release, "s"),
    ):
        with pytest.raises(AdoptedReleaseError, match=r"x \(adopted\) was adopted"):
            ask()


@pytest.mark.parametrize(
    ("y", "spread"),
    [(1020, 0.5), (1000, 1.0), (1150, 1.0), pytest.param(980, 30.0, marks=pytest.mark.slow)],
)
def test_more_successes_than_a_noisy_total_are_summed_as_they_are(y: int, spread: float) -> None:
    """Against plain sums over both counts, which are exact in p under ``Beta(1, 1)``."""
    column = {"noise": {"law": "laplace", "scale": spread}}
    about = {"name": "x", "publisher": "p", "source": "https://e.org", "licence": "l", "privacy": "p"}
    columns = {"c": column, "n": {"noise": {"law": "laplace", "scale": 20}}}
    law = {**about, "keys": {}, "columns": columns, "statistics": {"s": SHARE}}
    posterior = suffice.adopt({"c": [str(y)], "n": ["1000"]}, law)["s"].posterior(
        "Beta(1, 1)", n_prior="Uniform(0, 5000)"
    )
    k = np.arange(max(0.0, y - 40 * spread), y + 40 * spread + 1)[None]
    total = np.arange(200.0, 1800.0)[:, None]
    weight = np.exp(-np.abs(k - y) / spread - np.abs(total - 1000) / 20) * (k <= total) / (total + 1)
    mean = (k + 1) / (total + 2)
    square = mean * (np.minimum(k, total) + 2) / (total + 3)
    exact = (weight * mean).sum() / weight.sum()
    sd = math.sqrt((weight * square).sum() / weight.sum() - exact**2)
    assert abs(posterior.mean()[0] - exact) < 1e-3 * sd
    assert posterior.sd()[0] == pytest.approx(sd, rel=1e-3)

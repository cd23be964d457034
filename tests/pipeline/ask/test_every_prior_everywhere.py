"""Every kind of prior of one parameter, or of a table, at every place that takes one: answered, or refused.

A place answers with finite numbers, or refuses with a typed error that says what to do; nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

import suffice
from suffice.errors import PriorError, SufficeError, UsageError
from suffice.pages.card import card
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from support import releases
from support.noisy import noisy_statistic, statistic_plan
from support.releases import make_plan, publish

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release

PROBABILITY: dict[str, Any] = {
    "conjugate": "Beta(2, 5)",
    "mixture": "Mixture(0.3, Beta(1, 9), 0.7, Beta(9, 1))",
    "named": "TruncatedNormal(0.3, 0.2, 0, 1)",
    "density": suffice.Density(lambda p: np.log(p) + 2.0 * np.log1p(-p), 0, 1, hints=(0.1, 0.3, 0.6)),
    "scipy": stats.beta(2, 5),
    "point": "Point(0.3)",
    "points": suffice.Points({0.1: 0.2, 0.3: 0.5, 0.6: 0.3}),
    "sum": "0.5*Point(0.3) + 0.5*Beta(1, 1)",
    "sum of densities": "0.5*Uniform(0, 0.5) + 0.5*Beta(1, 1)",
    "truncated": "Truncated(Beta(1, 1), 0.05, 0.9)",
    "truncated sum": suffice.Truncated("0.5*Point(0.3) + 0.5*Beta(1, 1)", upper=0.8),
}
RATE: dict[str, Any] = {
    "conjugate": "Gamma(2, 1)",
    "scale mixture": "SpreadGamma(9)",
    "named": "HalfCauchy(2)",
    "scipy": stats.lognorm(0.5, scale=2),
    "scipy of whole numbers": stats.binom(4, 0.5),
    "sum": "0.5*Point(2) + 0.5*Gamma(2, 1)",
    "truncated": "Truncated(LogNormal(0, 1), 0.1, 6)",
}
TABLE: dict[str, Any] = {
    "conjugate": "Dirichlet(2)",
    "mixture": "Mixture(1, Dirichlet(1), 1, Dirichlet(0.25))",
    "joint": suffice.LogPrior(lambda p: -20.0 * (p[:, 0] - p[:, 1]) ** 2),
    "ordered": suffice.LogPrior(lambda a, b: np.where(a < b, 0.0, -np.inf), parameters=("a", "b")),
}
KINDS = {"flag": PROBABILITY, "count": RATE, "kind": TABLE}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> list[Release]:
    """Two releases of different months: 200 records in each of two cells."""
    plans = []
    for number, window in enumerate(("2013-01", "2013-02")):
        plan = make_plan(
            groups={"origin": ["EWR", "JFK"]},
            window={"column": "day", "every": "month"},
            statistics={
                "flag": {"family": "bernoulli", "column": "f"},
                "count": {"family": "poisson", "column": "c", "upper": 8},
                "kind": {
                    "family": "categorical",
                    "column": "k",
                    "categories": ["a", "b", "c"],
                    "other": False,
                },
            },
        )
        values = {
            "flag": np.array([[140 - number, 60 + number]] * 2, dtype=object),
            "count": np.array([[420, 1180]] * 2, dtype=object),
            "kind": np.array([[50, 90, 60]] * 2, dtype=object),
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(releases, "RELEASE_ID", f"{number + 1:016x}")
            store = tmp_path_factory.mktemp("release")
            plans.append(suffice.open_release(str(publish(store, plan, values, window=window))))
    return plans


def posterior(pair: list[Release], statistic: str, prior: Any) -> Any:
    return pair[0].posterior(statistic, prior=prior, where={"origin": "JFK"})


def means(pair: list[Release], statistic: str, prior: Any) -> Any:
    return posterior(pair, statistic, prior).mean()


def intervals(pair: list[Release], statistic: str, prior: Any) -> Any:
    of = posterior(pair, statistic, prior)
    ends = of.credible_interval(rng=1)
    assert np.all(ends[..., 0] <= ends[..., 1])
    return ends


def evidence(pair: list[Release], statistic: str, prior: Any) -> Any:
    return posterior(pair, statistic, prior).log_evidence


def conflict(pair: list[Release], statistic: str, prior: Any) -> Any:
    tails = posterior(pair, statistic, prior).conflict.tails
    return tails[~np.isnan(tails)]


def check(pair: list[Release], statistic: str, prior: Any) -> Any:
    return posterior(pair, statistic, prior).check(draws=50, rng=1).tails


def robustness(pair: list[Release], statistic: str, prior: Any) -> Any:
    table = posterior(pair, statistic, prior).robustness(rng=1, redraws=0, draws=200)
    return [value for row in table for name, value in row.items() if name.startswith("lower")]


def predictive(pair: list[Release], statistic: str, prior: Any) -> Any:
    drawn = posterior(pair, statistic, prior).predictive(rows=5, draws=20, rng=1)
    return next(iter(drawn.values()))


def compared_priors(pair: list[Release], statistic: str, prior: Any) -> Any:
    comparison = suffice.compare_priors(pair[0], statistic, [prior, None], where={"origin": "JFK"})
    return comparison.log_bayes_factors


def compared(pair: list[Release], statistic: str, prior: Any) -> Any:
    comparison = suffice.compare(
        pair[0], pair[1], statistic, prior=prior, where={"origin": "JFK"}, draws=200, rng=1
    )
    return [row["change"] for row in comparison.rows()]


def pooled(pair: list[Release], statistic: str, prior: Any) -> Any:
    return suffice.pool(statistic, disjoint=pair, prior=prior, where={"origin": "JFK"}, rng=1).mean()


def calibrated(pair: list[Release], statistic: str, prior: Any) -> Any:
    suffice.calibrate(
        pair[0],
        statistic,
        prior=prior,
        where={"origin": "JFK"},
        n_prior="Uniform(20, 60)",
        simulations=20,
        rng=1,
    )
    return [1.0]


def carded(pair: list[Release], statistic: str, prior: Any) -> Any:
    of = posterior(pair, statistic, prior)
    page = card(pair[0], of, mass=0.95, draws=200, seed=1, rng=np.random.default_rng(1))
    assert str(of.prior)[:6] in page
    return [1.0]


def published(pair: list[Release], statistic: str, prior: Any, folder: Path) -> Any:
    suffice.publish(pair[0], statistic, prior=prior, seed=1, draws=200, to=folder / "publications")
    return [1.0]


PLACES: dict[str, Callable[..., Any]] = {
    "mean": means,
    "interval": intervals,
    "evidence": evidence,
    "conflict": conflict,
    "check": check,
    "robustness": robustness,
    "predictive": predictive,
    "compare_priors": compared_priors,
    "compare": compared,
    "pool": pooled,
    "calibrate": calibrated,
    "card": carded,
    "publish": published,
}
_NO_TEXT = "a publication states its prior as text.*name a density"
REFUSED: dict[tuple[str, str, str], str] = {
    ("publish", "flag", "density"): _NO_TEXT,
    ("publish", "flag", "scipy"): _NO_TEXT,
    ("publish", "count", "scipy"): _NO_TEXT,
    ("publish", "count", "scipy of whole numbers"): _NO_TEXT,
    ("publish", "kind", "joint"): _NO_TEXT,
    ("publish", "kind", "ordered"): _NO_TEXT,
    ("pool", "kind", "mixture"): "takes no mixture of priors yet: give one of its components",
    ("pool", "kind", "joint"): "takes a conjugate prior alone",
    ("pool", "kind", "ordered"): "takes a conjugate prior alone",
}
"""(place, statistic, kind) -> words of the refusal; all else is answered."""
LONG = {"calibrate", "robustness"}
"""Places that take seconds of each kind: audited, but for the few kinds below."""


@pytest.mark.parametrize(
    "place",
    [pytest.param(place, marks=pytest.mark.audit if place in LONG else pytest.mark.slow) for place in PLACES],
)
@pytest.mark.parametrize(
    ("statistic", "kind"), [(statistic, kind) for statistic, kinds in KINDS.items() for kind in kinds]
)
def test_every_kind_is_answered_or_refused(
    pair: list[Release], tmp_path: Path, place: str, statistic: str, kind: str
) -> None:
    prior = KINDS[statistic][kind]
    more = (tmp_path,) if place == "publish" else ()
    words = REFUSED.get((place, statistic, kind))
    if words is None:
        answer = np.asarray(PLACES[place](pair, statistic, prior, *more), dtype=np.float64)
        assert answer.size
        assert np.all(np.isfinite(answer))
        return
    with pytest.raises((PriorError, UsageError), match=words) as refusal:
        PLACES[place](pair, statistic, prior, *more)
    assert isinstance(refusal.value, SufficeError)


@pytest.mark.parametrize(
    ("place", "statistic", "kind"),
    [
        ("mean", "count", "scale mixture"),
        ("mean", "flag", "truncated sum"),
        ("calibrate", "flag", "point"),
        ("robustness", "flag", "truncated"),
        ("robustness", "kind", "ordered"),
        ("publish", "flag", "scipy"),
        ("pool", "kind", "joint"),
        ("compare_priors", "flag", "sum"),
    ],
)
def test_few_kinds_are_answered_or_refused(
    pair: list[Release], tmp_path: Path, place: str, statistic: str, kind: str
) -> None:
    test_every_kind_is_answered_or_refused(pair, tmp_path, place, statistic, kind)


@pytest.mark.parametrize("family", ["exponential", "laplace", "normal_known_mean", "poisson", "geometric"])
def test_robustness_is_told_under_every_default(family: str) -> None:
    """Defaults that are spread over scales are mixtures, of which quantiles rest on no draws."""
    keys: dict[str, dict[str, Any]] = {
        "exponential": {"upper": "10"},
        "laplace": {"location": "0", "half_range": "10"},
        "normal_known_mean": {"mean": "0", "half_range": "10"},
        "poisson": {"upper": "10"},
        "geometric": {"upper": "10"},
    }
    plan = statistic_plan({"family": family, "column": "x", **keys[family]}, epsilon="1", public_n=False)
    total = plan.partition_total or 1
    released = noisy_statistic(plan, np.array([[20 * total, 80 * total]]))
    table = posterior_of(released).robustness(redraws=0)
    for row in table:
        assert row["lower_least"] <= table[0]["lower_least"] <= row["lower_most"]

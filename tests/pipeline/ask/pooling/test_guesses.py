"""What people who know pandas, ArviZ, SciPy and scikit-learn type before they have read anything.

Each guess was written down first, and stands here with what it has to give. Those that are not taken say what
the thing is called here (docs/decisions/0103).
"""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.stats

import suffice

if TYPE_CHECKING:
    from collections.abc import Callable

RELEASE = Path(__file__).parents[3] / "vectors/valid/first-families/release"
NAMES = ["cancelled", "carrier", "stops", "delay"]
ORIGINS = ["EWR", "JFK", "LGA"]
Check = "Callable[[Any], Any]"


@pytest.fixture(scope="module")
def release() -> suffice.Release:
    return suffice.open_release(RELEASE)


@pytest.fixture(scope="module")
def posterior(release: suffice.Release) -> suffice.Posterior:
    return release.posterior("cancelled")


def near(wanted: Any) -> Callable[[Any], bool]:
    return lambda given: bool(np.allclose(given, wanted))


MEANS = [0.19581081, 0.29092763, 0.20236633]

OF_A_RELEASE: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "list(release)": (list, lambda names: names == NAMES),
    "len(release)": (len, lambda n: n == 4),
    '"cancelled" in release': (lambda r: "cancelled" in r, lambda is_in: is_in is True),
    "release.keys()": (lambda r: list(r.keys()), lambda names: names == NAMES),
    "for name, statistic in release.items()": (
        lambda r: [(name, statistic.family) for name, statistic in r.items()],
        lambda pairs: pairs[0] == ("cancelled", "bernoulli"),
    ),
    'release["cancelled"]': (lambda r: r["cancelled"].name, lambda name: name == "cancelled"),
    'release.get("no such")': (lambda r: r.get("no such"), lambda nothing: nothing is None),
    'release["cancelled"].family': (lambda r: r["cancelled"].family, lambda family: family == "bernoulli"),
    'release["delay"].parameters': (lambda r: r["delay"].parameters, lambda of: of == ("mean", "variance")),
    'release["cancelled"].groups': (lambda r: r["cancelled"].groups, lambda of: of == {"origin": ORIGINS}),
    'len(release["cancelled"])': (lambda r: len(r["cancelled"]), lambda n: n == 3),
    "release.statistics.to_frame()": (
        lambda r: r.statistics.to_frame(),
        lambda frame: isinstance(frame, pd.DataFrame) and [*frame["statistic"]] == NAMES,
    ),
    'release.statistics["cancelled"]': (
        lambda r: r.statistics["cancelled"].quantity("n")[0],
        near([38, 59, 28]),
    ),
    "release.statistics._repr_html_()": (
        lambda r: r.statistics._repr_html_(),
        lambda text: "<table" in text and "total_of_squares" in text,
    ),
    'release["cancelled"].to_frame()': (
        lambda r: r["cancelled"].to_frame(),
        lambda frame: (
            [*frame.columns] == ["origin", "quantity", "estimate", "noise_sd"] and frame["estimate"][0] == 38
        ),
    ),
    'pd.DataFrame(release.table("cancelled"))': (
        lambda r: pd.DataFrame(r.table("cancelled")),
        lambda frame: frame.shape == (6, 4),
    ),
    'pa.table(release["cancelled"])': (
        lambda r: pa.table(r["cancelled"]),
        lambda table: table.column("estimate").to_pylist()[0] == 38.0,
    ),
    "release.loss": (lambda r: r.loss, lambda loss: loss.epsilon == 2),
    "print(release)": (str, lambda text: "first-families@all" in text and "delay" in text),
    "release._repr_html_()": (
        lambda r: r._repr_html_(),
        lambda text: "first-families@all" in text and 'release["cancelled"]' in text.replace("&quot;", '"'),
    ),
    "release[<TAB>": (lambda r: r._ipython_key_completions_(), lambda names: names == NAMES),
    'release["cancelled"].posterior()': (
        lambda r: r["cancelled"].posterior().mean(),
        near(MEANS),
    ),
    'release["cancelled"].posterior("Beta(1, 30)")': (
        lambda r: r["cancelled"].posterior("Beta(1, 30)").prior,
        lambda prior: prior == suffice.Beta(1, 30),
    ),
    'posterior(prior="Beta(a=1, b=30)")': (
        lambda r: r["cancelled"].posterior(prior="Beta(a=1, b=30)").prior,
        lambda prior: prior == suffice.Beta(1, 30),
    ),
    "posterior(suffice.Beta(a=1, b=30))": (
        lambda r: r["cancelled"].posterior(suffice.Beta(a=1, b=30)).prior,
        lambda prior: prior == suffice.Beta(1, 30),
    ),
    "posterior(suffice.Gamma(a=2, scale=4))": (
        lambda r: r["stops"].posterior(suffice.Gamma(a=2, scale=4)).prior,
        lambda prior: prior == suffice.Gamma(2, 0.25),
    ),
    "posterior(scipy.stats.beta(1, 30))": (
        lambda r: r["cancelled"].posterior(scipy.stats.beta(1, 30)).mean(),
        lambda means: np.all((means > 0) & (means < 0.2)),
    ),
    'posterior(where={"origin": "JFK"})': (
        lambda r: r["cancelled"].posterior(where={"origin": "JFK"}).mean(),
        near(MEANS[1:2]),
    ),
    'release.posterior("cancelled")': (lambda r: r.posterior("cancelled").mean(), near(MEANS)),
}

OF_A_POSTERIOR: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "posterior.mean()": (lambda p: p.mean(), near(MEANS)),
    "posterior.sd()": (
        lambda p: p.sd(),
        lambda sds: sds.shape == (3,) and np.all((sds > 0.05) & (sds < 0.2)),
    ),
    "posterior.quantile(0.5)": (
        lambda p: p.quantile(0.5),
        lambda medians: np.allclose(medians, MEANS, atol=0.02),
    ),
    "posterior.quantile([0.05, 0.95])": (
        lambda p: p.quantile([0.05, 0.95]),
        lambda ends: ends.shape == (3, 2) and np.all(ends[:, 0] < ends[:, 1]),
    ),
    "lower, upper = posterior.interval(0.9)": (
        lambda p: p.interval(0.9),
        lambda ends: len(ends) == 2 and np.all(ends[0] < MEANS) and np.all(ends.upper > MEANS),
    ),
    "posterior.interval()": (
        lambda p: np.stack(p.interval(), axis=-1),
        lambda ends: ends.shape == (3, 2),
    ),
    "posterior.sample(100, rng=1)": (
        lambda p: p.sample(100, rng=1)["probability"],
        lambda draws: draws.shape == (100, 3),
    ),
    "posterior.probability(above=0.2)": (
        lambda p: p.probability(above=0.2, rng=1),
        lambda shares: shares[1] > 0.8,
    ),
    "posterior.density(points)": (
        lambda p: p.density(np.linspace(0, 1, 1001)),
        lambda density: np.allclose(density.mean(axis=1), 1.0, atol=0.01),
    ),
    "posterior.difference(JFK, EWR)": (
        lambda p: p.difference({"origin": "JFK"}, {"origin": "EWR"}).mean(),
        near(MEANS[1] - MEANS[0]),
    ),
    "posterior.to_frame()": (
        lambda p: p.to_frame().set_index("origin"),
        lambda frame: np.isclose(frame.loc["JFK", "mean"], MEANS[1]) and not frame["conflict"].any(),
    ),
    "posterior.summary()": (
        lambda p: p.summary(),
        lambda rows: [row["origin"] for row in rows] == ORIGINS and rows[0]["lower"] < rows[0]["upper"],
    ),
    "pa.table(posterior)": (pa.table, lambda table: table.column("origin").to_pylist() == ORIGINS),
    "posterior.plot()": (lambda p: p.plot()._repr_svg_(), lambda svg: "<svg" in svg and "Kennedy" in svg),
    "posterior.to_arviz()": (
        lambda p: p.to_arviz(50, rng=1).posterior["probability"].sel(origin="JFK"),
        lambda draws: draws.shape == (1, 50),
    ),
    "az.summary(posterior.to_arviz())": (
        lambda posterior: summary_of_arviz(posterior),  # noqa: PLW0108 - it is defined below
        lambda index: index == [f"probability[{origin}]" for origin in ORIGINS],
    ),
    'posterior["probability"].mean()': (lambda p: p["probability"].mean(), near(MEANS)),
    'posterior["probability"].interval(0.5)': (
        lambda p: p["probability"].interval(0.5),
        lambda ends: np.all(ends.upper - ends.lower < 0.2),
    ),
    'posterior["probability"].sample(10)': (
        lambda p: p["probability"].sample(10),
        lambda draws: draws.shape == (10, 3),
    ),
    "list(posterior)": (list, lambda names: names == ["probability"]),
    '"probability" in posterior': (lambda p: "probability" in p, lambda is_in: is_in is True),
    "posterior[<TAB>": (lambda p: p._ipython_key_completions_(), lambda names: names == ["probability"]),
    "posterior.groups": (lambda p: p.groups, lambda groups: groups == {"origin": ORIGINS}),
    "print(posterior)": (str, lambda text: "Kennedy" in text and "0.29" in text and "Beta(1, 1)" in text),
    "posterior._repr_html_()": (
        lambda p: p._repr_html_(),
        lambda text: "Kennedy" in text and "0.29" in text and "95 % interval" in text,
    ),
}

NOT_TAKEN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "release.cancelled": (lambda r: r.cancelled, "release['cancelled']"),
    "posterior.std()": (lambda r: r.posterior("cancelled").std(), "sd()"),
    "posterior.median()": (lambda r: r.posterior("cancelled").median(), "quantile(0.5)"),
    "posterior.ppf(0.9)": (lambda r: r.posterior("cancelled").ppf(0.9), "quantile(q)"),
    "posterior.cdf(0.1)": (lambda r: r.posterior("cancelled").cdf(0.1), "probability(below=x)"),
    "posterior.pdf(0.1)": (lambda r: r.posterior("cancelled").pdf(0.1), "density(points)"),
    "posterior.rvs(10)": (lambda r: r.posterior("cancelled").rvs(10), "sample(draws)"),
    "posterior.hdi()": (lambda r: r.posterior("cancelled").hdi(), "highest-density"),
    "posterior.describe()": (lambda r: r.posterior("cancelled").describe(), "summary()"),
    "posterior.to_pandas()": (lambda r: r.posterior("cancelled").to_pandas(), 'to_frame("pandas")'),
    'posterior.sel(origin="JFK")': (lambda r: r.posterior("cancelled").sel(origin="JFK"), "where="),
}


FURTHER: dict[str, tuple[Callable[[Any], Any], str]] = {
    "release.describe()": (lambda r: r.describe(), "print(release)"),
    "release.to_frame()": (lambda r: r.to_frame(), "release[NAME].to_frame()"),
    "release.columns": (lambda r: r.columns, "list(release)"),
    "release.mean()": (lambda r: r.mean(), "release[NAME].posterior().mean()"),
    'release["cancelled"].mean()': (lambda r: r["cancelled"].mean(), "posterior().mean()"),
    'release["cancelled"].where(...)': (lambda r: r["cancelled"].where(origin="JFK"), "where={COLUMN: KEY}"),
    "posterior.ci()": (lambda r: r.posterior("cancelled").ci(), "interval(mass)"),
    "posterior.idxmax()": (lambda r: r.posterior("cancelled").idxmax(), "highest(k)"),
    "posterior.to_csv()": (lambda r: r.posterior("cancelled").to_csv("x"), "to_frame().to_csv()"),
    "table.sort_values()": (lambda r: r.table("cancelled").sort_values("n"), "to_frame().sort_values()"),
    "picture.show()": (lambda r: r.posterior("cancelled").plot().show(), "save("),
    "suffice.list_releases": (lambda _: suffice.list_releases, "`suffice list`"),
    "suffice.summary": (lambda _: suffice.summary, "release[NAME].posterior().summary()"),
    "suffice.load_release": (lambda _: suffice.load_release, "suffice.open_release"),
    "contrast.summary()": (
        lambda r: r.posterior("cancelled").difference({"origin": "JFK"}, {"origin": "EWR"}).summary(),
        "rows()",
    ),
}

REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "posterior(origin=...)": (lambda r: r.posterior("cancelled", origin="JFK"), "where={'origin': ...}"),
    "posterior(where={...: [...]})": (
        lambda r: r.posterior("cancelled", where={"origin": ["JFK"]}),
        "takes one key",
    ),
    "posterior.credible_interval(0.9)": (
        lambda r: r.posterior("cancelled").credible_interval(0.9),
        "as mass=0.9",
    ),
    'posterior.difference("JFK", "EWR")': (
        lambda r: r.posterior("cancelled").difference("JFK", "EWR"),
        "takes the keys of cells",
    ),
    'posterior.difference({"origin": "JKF"}, ...)': (
        lambda r: r.posterior("cancelled").difference({"origin": "JKF"}, {"origin": "EWR"}),
        "its keys are EWR, JFK, LGA",
    ),
    'suffice.pool([r, r], "cancelled")': (
        lambda r: suffice.pool([r, r], "cancelled"),  # type: ignore[arg-type]
        "pool('cancelled', disjoint=[first, second])",
    ),
    'suffice.pool("cancelled", [r, r])': (
        lambda r: suffice.pool("cancelled", [r, r]),
        "pool('cancelled', disjoint=[first, second])",
    ),
    'release["delay"]["mean"]': (lambda r: r["delay"]["mean"], "posterior()['mean']"),
    'release["delay"]["JFK"]': (lambda r: r["delay"]["JFK"], "table(where=...)"),
    'posterior("Beta(alpha=1, beta=30)")': (
        lambda r: r.posterior("cancelled", "Beta(alpha=1, beta=30)"),
        "takes exactly (concentration1, concentration0), or (a, b) as in scipy.stats",
    ),
    'posterior("Beta(alpha=, beta=)")': (
        lambda r: r.posterior("cancelled", "Beta(alpha=, beta=)"),
        "or (a, b) as in scipy.stats",
    ),
    'posterior.probability("probability > 0.1")': (
        lambda r: r.posterior("cancelled").probability("probability > 0.1"),
        "above=, below= or both",
    ),
    'posterior("beta(1, 30)")': (lambda r: r.posterior("cancelled", "beta(1, 30)"), "did you mean Beta?"),
}


def summary_of_arviz(posterior: Any) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        summary: Any = importlib.import_module("arviz").summary
        return [*summary(posterior.to_arviz(50, rng=1)).index]


@pytest.mark.parametrize("guess", OF_A_RELEASE)
def test_a_guess_at_a_release_is_right(release: suffice.Release, guess: str) -> None:
    typed, is_right = OF_A_RELEASE[guess]
    assert is_right(typed(release))


@pytest.mark.parametrize("guess", OF_A_POSTERIOR)
def test_a_guess_at_a_posterior_is_right(posterior: suffice.Posterior, guess: str) -> None:
    typed, is_right = OF_A_POSTERIOR[guess]
    assert is_right(typed(posterior))


@pytest.mark.parametrize("guess", NOT_TAKEN)
def test_a_guess_that_is_not_taken_says_what_to_type(release: suffice.Release, guess: str) -> None:
    typed, here = NOT_TAKEN[guess]
    with pytest.raises(AttributeError) as caught:
        typed(release)
    assert here in str(caught.value)


@pytest.mark.parametrize("guess", FURTHER)
def test_a_method_of_frames_says_where_it_is(release: suffice.Release, guess: str) -> None:
    typed, here = FURTHER[guess]
    with pytest.raises(AttributeError) as caught:
        typed(release)
    assert here in str(caught.value)


@pytest.mark.parametrize("guess", REFUSED)
def test_an_argument_in_another_form_says_which_is_right(release: suffice.Release, guess: str) -> None:
    typed, here = REFUSED[guess]
    with pytest.raises(suffice.SufficeError) as caught:
        typed(release)
    assert here in str(caught.value)


def test_arviz_is_told_what_it_takes(posterior: suffice.Posterior) -> None:
    with pytest.raises(TypeError, match=r"posterior\.to_arviz\(\)"):
        importlib.import_module("arviz").summary(posterior)


def test_groups_are_shown_in_declared_order() -> None:
    release = suffice.open_release(RELEASE.parents[1] / "several-groups/release")
    name, declared = next(iter(release)), ["origin", "month", "day"]
    assert list(release.group_columns) == declared
    assert [line.partition(" ")[0].rstrip(":") for line in str(release).splitlines()[-3:]] == declared
    assert list(release[name].groups) == list(release.posterior(name).groups) == declared


def test_a_row_of_a_table_is_asked_by_number(release: suffice.Release) -> None:
    with pytest.raises(TypeError, match=r"to_frame\(\)\['estimate'\]"):
        release.table("cancelled")["estimate"]  # type: ignore[call-overload]


def test_most_guesses_are_taken() -> None:
    taken, others = len(OF_A_RELEASE) + len(OF_A_POSTERIOR), len(NOT_TAKEN)
    assert taken >= 40
    assert taken >= 4 * others


@pytest.mark.slow
def test_an_unknown_name_is_a_key_error_that_says_what_was_meant(release: suffice.Release) -> None:
    with pytest.raises(KeyError, match="did you mean cancelled") as caught:
        release["canceled"]
    assert isinstance(caught.value, suffice.SufficeError)
    with pytest.raises(KeyError, match="delay has no parameter 'median': it has mean, variance"):
        release.posterior("delay")["median"]


@pytest.mark.slow
def test_of_several_parameters_one_is_named(release: suffice.Release) -> None:
    posterior = release.posterior("delay")
    with pytest.raises(ValueError, match="several parameters, mean, variance: name one"):
        posterior.mean()
    assert posterior.quantile("mean", 0.5).shape == posterior["mean"].quantile(0.5).shape == (3,)

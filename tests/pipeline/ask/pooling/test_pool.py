"""Pooling, comparing and rolling up published releases: what is allowed, and what comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

import suffice
from suffice.errors import UsageError
from suffice.pipeline.ask.inference.bounded_records import cells_to_model
from suffice.pipeline.ask.pooling.pool import Relation, observed_again, relation_of
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.parameters.contrasts import contrast_between
from support import releases
from support.noisy import discrete_laplace, noisy_statistic
from support.releases import make_plan, publish
from support.unrestricted import free

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release

    Put = Callable[..., Release]

CANCELLED = np.array([[900, 100], [800, 200], [950, 50]], dtype=object)
STATISTICS: dict[str, Any] = {
    "cancelled": {"family": "bernoulli", "column": "c"},
    "delay": {"family": "normal", "column": "d", "lower": 0, "upper": 100, "lattice_bits": 4},
}
MONTHLY = {"column": "day", "every": "month"}
ROW = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": "row"}
REPLACED = {**ROW, "neighboring": "replace_one"}


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Publish a release of known values; each gets a release id and a store of its own."""
    made: list[str] = []

    def publish_one(label: str = "all", cancelled: Any = CANCELLED, **changes: Any) -> Release:
        made.append(f"{len(made) + 1:016x}")
        monkeypatch.setattr(releases, "RELEASE_ID", made[-1])
        grid = {"window": MONTHLY} if label != "all" else {}
        plan = make_plan(**{"statistics": STATISTICS, **grid, **changes})
        values = {
            entry.name: cancelled
            if entry.name == "cancelled"
            else np.full((plan.n_cells, len(entry.components)), 1000, dtype=object)
            for entry in plan.statistics
        }
        return suffice.open_release(publish(tmp_path / made[-1], plan, values, window=label))

    return publish_one


def test_windows_of_one_grid_are_disjoint(put: Put) -> None:
    january, february = put("2013-01"), put("2013-02")
    assert relation_of(january, february, "cancelled")[0] is Relation.DISJOINT
    year = put("2014", window={"column": "day", "every": "year"})
    assert relation_of(january, year, "cancelled")[0] is Relation.DISJOINT
    same_year = put("2013", window={"column": "day", "every": "year"})
    assert relation_of(january, same_year, "cancelled")[0] is Relation.OVERLAPPING
    arrivals = put("2013-02", window={"column": "arrival", "every": "month"})
    assert relation_of(january, arrivals, "cancelled")[0] is Relation.OVERLAPPING
    assert relation_of(january, put(), "cancelled")[0] is Relation.OVERLAPPING
    elsewhere = put("2013-02", dataset="crew")
    assert relation_of(january, elsewhere, "cancelled")[0] is Relation.UNKNOWN


def test_the_same_window_and_statistic_is_the_same_data(put: Put) -> None:
    first = put()
    assert relation_of(first, put(privacy={**ROW, "epsilon": "3"}), "cancelled")[0] is Relation.SAME_DATA
    other_share = {**STATISTICS, "cancelled": {**STATISTICS["cancelled"], "share": 5}}
    assert relation_of(first, put(statistics=other_share), "cancelled")[0] is Relation.SAME_DATA
    with_nulls = {**STATISTICS, "cancelled": {**STATISTICS["cancelled"], "nulls": {"value": "0"}}}
    assert relation_of(first, put(statistics=with_nulls), "cancelled")[0] is Relation.OVERLAPPING
    fewer = put(groups={"origin": ["EWR", "JFK"]}, cancelled=CANCELLED[:2])
    assert relation_of(first, fewer, "cancelled")[0] is Relation.OVERLAPPING


@pytest.mark.slow
def test_months_pool_to_their_common_parameter(put: Put) -> None:
    parts = [put("2013-01"), put("2013-02", privacy={**ROW, "epsilon": "2"}), put("2013-03")]
    posterior = suffice.pool("cancelled", disjoint=parts)
    assert posterior.groups == {"origin": ["EWR", "JFK", "LGA"]}
    alone = parts[0].posterior("cancelled")
    assert posterior.mean("probability") == pytest.approx([0.1, 0.2, 0.05], abs=0.004)
    ratio = posterior.sd("probability") / alone.sd("probability")
    assert ratio == pytest.approx(3**-0.5 * np.ones(3), rel=0.1)
    assert posterior.diagnostics == {}
    assert alone.diagnostics == {}
    further = suffice.pool("cancelled", disjoint=parts, rng=3, where={"origin": "JFK"})
    assert further.sample(5, rng=1)["probability"].shape == (5, 1)
    repeated = suffice.pool("cancelled", disjoint=parts, rng=3, where={"origin": "JFK"})
    assert np.array_equal(further.mean("probability"), repeated.mean("probability"))


def test_cells_pool_by_their_keys_in_whatever_order(put: Put) -> None:
    first = put("2013-01")
    other = put("2013-02", groups={"origin": ["LGA", "EWR", "JFK"]}, cancelled=CANCELLED[[2, 0, 1]])
    posterior = suffice.pool("cancelled", disjoint=[first, other])
    assert posterior.groups == {"origin": ["EWR", "JFK", "LGA"]}
    assert posterior.mean("probability") == pytest.approx([0.1, 0.2, 0.05], abs=0.004)


def test_two_observations_at_the_same_counts_are_narrower_than_one(put: Put) -> None:
    noisy = {**ROW, "epsilon": "0.04"}
    first, second = put(privacy=noisy), put(privacy={**ROW, "epsilon": "0.4"})
    posterior = suffice.pool("cancelled", same_data=[first, second])
    assert np.all(posterior.sd("probability") < second.posterior("cancelled").sd("probability"))
    swapped = suffice.pool("cancelled", same_data=[second, first])
    assert posterior.mean("probability") == pytest.approx(swapped.mean("probability"), rel=1e-9)
    assert posterior.diagnostics == {}


def test_what_is_not_known_to_be_related_so_is_refused(put: Put) -> None:
    january, february = put("2013-01"), put("2013-02")
    year, crew = put(), put("2013-02", dataset="crew")
    further = put(privacy={**ROW, "epsilon": "2"})
    bounds = {**STATISTICS, "delay": {**STATISTICS["delay"], "upper": 200}}
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("cancelled", {}, "disjoint=.*same_data="),
        ("cancelled", {"disjoint": [january], "same_data": [january]}, "disjoint=.*same_data="),
        ("cancelled", {"disjoint": [january]}, "at least two"),
        ("cancelled", {"disjoint": [january, january], "vouched": True}, "is given twice"),
        ("cancelled", {"disjoint": [january, year]}, "may share rows"),
        ("cancelled", {"disjoint": [january, crew]}, "different datasets"),
        ("cancelled", {"same_data": [january, february]}, "do not meet"),
        ("cancelled", {"disjoint": [year, further], "vouched": True}, "are same_data, not disjoint"),
        ("cancelled", {"same_data": [january, february], "vouched": True}, "are disjoint, not same_data"),
        ("cancelled", {"disjoint": "january"}, "a list of what"),
        ("cancelled", {"same_data": [january, None]}, "a list of what"),
        ("delay", {"disjoint": [january, put("2013-02", statistics=bounds)]}, "differs .* in upper"),
        ("absent", {"disjoint": [january, february]}, "no statistic"),
        (
            "cancelled",
            {"disjoint": [january, put("2013-03", groups={"origin": ["EWR"]}, cancelled=CANCELLED[:1])]},
            "same cells",
        ),
    ]
    for statistic, terms, rule in refused:
        with pytest.raises(UsageError, match=rule):
            suffice.pool(statistic, **terms)
    vouched = suffice.pool("cancelled", disjoint=[january, crew], vouched=True)
    assert vouched.mean("probability")[0] == pytest.approx(0.1, abs=0.01)


def test_a_change_is_told_from_noise(put: Put) -> None:
    changed = np.array([[850, 150], [800, 200], [948, 52]], dtype=object)
    january, february = put("2013-01"), put("2013-02", cancelled=changed)
    comparison = suffice.compare(january, february, "cancelled", rng=5)
    assert (comparison.first, comparison.second) == ("flights@2013-01", "flights@2013-02")
    newark, kennedy, guardia = comparison.rows()
    assert newark["change"] == pytest.approx(0.05, abs=0.002)
    assert newark["lower"] > 0
    assert newark["probability_above"] > 0.99
    assert newark["ratio"] == pytest.approx(1.5, abs=0.05)
    assert newark["noise_probability"] < 0.01
    assert kennedy["apparent"] == 0.0
    assert kennedy["noise_probability"] == 1.0
    assert guardia["lower"] < 0 < guardia["upper"]
    backwards = suffice.compare(february, january, "cancelled", rng=5).rows()
    assert backwards[0]["change"] == pytest.approx(-newark["change"])


def test_a_change_shows_itself_with_what_contradicts_it(put: Put) -> None:
    changed = np.array([[850, 150], [800, 200], [948, 52]], dtype=object)
    january, february = put("2013-01"), put("2013-02", cancelled=changed)
    change = suffice.compare(january, february, "cancelled", rng=5)
    assert [row["conflict"] for row in change.rows()] == [False] * 3
    assert "from flights@2013-01 to flights@2013-02" in str(change)
    assert "from flights@2013-01 to flights@2013-02" in change._repr_html_()
    assert list(change.to_frame("pandas")["change"]) == [row["change"] for row in change.rows()]
    with pytest.warns(suffice.errors.ConflictWarning):
        contradicted = suffice.compare(january, february, "cancelled", prior="Beta(9000, 10)", rng=5)
    assert [row["conflict"] for row in contradicted.rows()] == [True, True, True]
    assert "disagree" in str(contradicted)


def test_the_noise_of_an_apparent_change_is_the_noise_of_two_releases(put: Put) -> None:
    """Against many releases of the same exact counts."""
    strong = {**ROW, "epsilon": "0.1"}
    january, february = put("2013-01", privacy=strong), put("2013-02", privacy=strong)
    comparison = suffice.compare(january, february, "cancelled")
    statistic = january.statistic("cancelled")
    rng = np.random.default_rng()
    moved = []
    for _ in range(2):
        values = np.tile(CANCELLED[:1], (20_000, 1)) + discrete_laplace(
            statistic.plan.scale, (20_000, 2), rng
        )
        moved.append((1 + values[:, 1]) / (2 + values.sum(axis=1)))
    # 20,000 replicates give a standard deviation to 1 percent where the kurtosis is 9: 20 of its errors.
    assert comparison.noise_sd["probability"][0] == pytest.approx(np.std(moved[1] - moved[0]), rel=0.2)


def test_noise_between_two_releases_of_the_same_data_is_no_change(put: Put) -> None:
    with pytest.raises(UsageError, match="whatever differs is noise"):
        suffice.compare(put(), put(), "cancelled")
    with pytest.raises(UsageError, match="not known to be disjoint"):
        suffice.compare(
            put("2013-01"),
            put(
                "2013-01",
                name="others",
                statistics={"cancelled": {"family": "bernoulli", "column": "c"}},
                dataset="crew",
            ),
            "cancelled",
        )


def test_cells_roll_up_with_noise_counted_right(put: Put) -> None:
    groups = {"origin": ["EWR", "JFK"], "month": {"range": ["1", "3"]}}
    values = np.array([[90, 10], [80, 20], [95, 5], [70, 30], [70, 30], [70, 30]], dtype=object)
    release = put(groups=groups, cancelled=values)
    by_origin = suffice.roll_up(release.statistic("cancelled"), "month")
    assert by_origin.groups == {"origin": ["EWR", "JFK"]}
    rows = by_origin.table()
    assert [(row["origin"], row["quantity"], row["estimate"]) for row in rows] == [
        ("EWR", "n", 300.0),
        ("EWR", "total", 35.0),
        ("JFK", "n", 300.0),
        ("JFK", "total", 90.0),
    ]
    single = release.table("cancelled")[0]["noise_sd"]
    assert rows[0]["noise_sd"] == pytest.approx(single * 3**0.5)
    posterior = by_origin.posterior()
    assert posterior.mean("share") == pytest.approx([35 / 300, 0.3], abs=0.01)
    shared = by_origin.posterior(assume="one parameter", rng=1)
    assert shared.mean("probability") == pytest.approx([0.12, 0.3], abs=0.02)
    assert "same in 3 merged cells" in str(shared.rows_of)
    everything = suffice.roll_up(release.statistic("cancelled"), "origin", "month")
    assert everything.groups == {}
    assert [row["estimate"] for row in everything.table()] == [600.0, 125.0]
    for columns in ((), ("carrier",)):
        with pytest.raises(UsageError, match="group columns of the release"):
            suffice.roll_up(release.statistic("cancelled"), *columns)
    with pytest.raises(UsageError, match="takes a statistic of a release"):
        suffice.roll_up(release, "month")  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_roll_up_models_clipping_on_request_or_by_evidence(tmp_path: Path) -> None:
    """Counts of 7 on average behind a bound of 8: clipping hides that more were meant.

    In EWR the counts of the second month tell of it, in JFK none does: noise has a standard deviation of 7.
    """
    visits = {
        "visits": {"family": "poisson", "column": "v", "upper": "8", "count_clipped": {"weight": "0.25"}}
    }
    sums, moved = [700, 100], [[0, 0], [0, 200], [0, 0], [0, 0]]
    cells = np.array([[*sums, *counts] for counts in moved], dtype=object)
    groups = {"origin": ["EWR", "JFK"], "month": {"range": ["1", "2"]}}
    plan = make_plan(groups=groups, statistics=visits)
    release = suffice.open_release(publish(tmp_path, plan, {"visits": cells}))
    rolled = suffice.roll_up(release.statistic("visits"), "month")
    terms: Any = {"prior": "Gamma(2, 0.2)", "n_prior": "Uniform(0, 300)", "assume": "one parameter"}
    by_evidence = rolled.posterior(**terms)
    modelled, ignored = (rolled.posterior(**terms, clipping=way) for way in ("modelled", "ignored"))
    assert np.all(np.abs(ignored.mean("rate") - 7.0) < 0.3)
    assert np.all(modelled.mean("rate") > 8.0)
    expected = [modelled.mean("rate")[0], ignored.mean("rate")[1]]
    assert by_evidence.mean("rate") == pytest.approx(expected, rel=1e-6)
    assert by_evidence.models_clipping is not None
    assert by_evidence.models_clipping.tolist() == [True, False]
    with pytest.raises(UsageError, match="modelled or ignored"):
        rolled.posterior(clipping="sometimes")


def test_the_counts_of_all_releases_together_give_one_false_alarm() -> None:
    """P(E >= k) = exp(-k / 10) / 2 in lattice units: 4e-5 at 95, between 1e-4 / 2 and 1e-4 / 4."""
    entry = {"family": "poisson", "column": "v", "upper": "8", "count_clipped": {"weight": "0.25"}}
    plan = make_plan(statistics={"visits": entry}).statistics[0]
    assert plan.scale == 10.0
    high, higher, none = (
        noisy_statistic(plan, np.array([[700, 100, 0, moved]], dtype=object)) for moved in (95, 110, 0)
    )
    assert cells_to_model([high], "by-evidence").all()
    assert not cells_to_model([high, none], "by-evidence").any()
    assert not cells_to_model([observed_again([none, high])], "by-evidence").any()
    assert cells_to_model([none, higher], "by-evidence").all()
    assert cells_to_model([observed_again([none, higher])], "by-evidence").all()


def test_the_noise_of_a_roll_up_is_that_of_a_sum_of_noises(put: Put) -> None:
    """By simulation: the estimates of rolled-up cells scatter as their noise_sd says."""
    groups = {"origin": [f"a{k}" for k in range(4000)], "month": {"range": ["1", "4"]}}
    rng = np.random.default_rng()
    plan = make_plan(groups=groups, statistics=STATISTICS)
    noise = discrete_laplace(plan.statistics[0].scale, (16_000, 2), rng)
    rows = suffice.roll_up(
        put(groups=groups, cancelled=noise.astype(object)).statistic("cancelled"), "month"
    ).table()
    totals = np.array([row["estimate"] for row in rows if row["quantity"] == "n"])
    # The kurtosis of a sum of eight Laplace variables is under 4; six standard errors of the variance.
    # Squares are skew: their mean is beyond with a chance of some 1e-8 (Edgeworth).
    reach = 6 * np.sqrt(3 / 4000)
    assert np.var(totals) / rows[0]["noise_sd"] ** 2 == pytest.approx(1, abs=reach)
    # The control: without the noise of two of the four cells.
    assert np.var(totals) / (0.5 * rows[0]["noise_sd"] ** 2) != pytest.approx(1, abs=reach)


@pytest.mark.slow
def test_means_and_variances_pool_too(put: Put) -> None:
    parts = [put("2013-01"), put("2013-02"), put("2013-03")]
    posterior = suffice.pool("delay", disjoint=parts, where={"origin": "JFK"})
    alone = parts[0].posterior("delay", where={"origin": "JFK"})
    assert posterior.parameters == ("mean", "variance")
    assert posterior.mean("mean") == pytest.approx(alone.mean("mean"), rel=0.1)
    # The ratio is 0.786.
    assert np.all(posterior.sd("mean") < 0.9 * alone.sd("mean"))
    assert posterior.sample(3)["variance"].shape == (3, 1)
    further = suffice.pool("delay", same_data=[put(), put()], where={"origin": "JFK"})
    assert np.all(further.sd("mean") < put().posterior("delay", where={"origin": "JFK"}).sd("mean"))


@pytest.mark.slow
def test_means_and_variances_pool_under_a_density(put: Put) -> None:
    first, prior, where = (
        put("2013-01"),
        "Independent(mean=Normal(0, 50), sd=HalfNormal(50))",
        {"origin": "JFK"},
    )
    alone = first.posterior("delay", where=where, prior=prior)
    apart = suffice.pool("delay", disjoint=[first, put("2013-02")], where=where, prior=prior)
    further = suffice.pool("delay", same_data=[put(), put()], where=where, prior=prior)
    assert str(apart.prior) == str(further.prior) == prior
    # Noise hides most of the few rows: other rows say more than another look at the same.
    for other in (apart, further):
        assert other.sd("mean")[0] < alone.sd("mean")[0]
    # Numbers within 0..100 have a mean there, whatever was released: the order is that of the whole prior.
    sds = [free(posterior).sd("mean")[0] for posterior in (apart, further, alone)]
    assert sds[0] < sds[1] < sds[2]


def test_moments_weighed_otherwise_are_of_the_same_data_and_another_lattice_is_not(put: Put) -> None:
    def weighed(**changes: str) -> Release:
        delay = {**STATISTICS["delay"], "nulls": {"value": "0"}, **changes}
        groups = {"groups": {}, "cancelled": CANCELLED[:1]}
        return put(statistics={**STATISTICS, "delay": delay}, privacy=REPLACED, **groups)

    light, heavy = weighed(moment_weight="1"), weighed(moment_weight="4")
    assert relation_of(light, heavy, "delay")[0] is Relation.SAME_DATA
    suffice.pool("delay", same_data=[light, heavy])
    with pytest.raises(UsageError, match=r"differs .* in lattice_bits"):
        suffice.pool("delay", same_data=[light, weighed(lattice_bits="5")])
    private = put(statistics={**STATISTICS, "delay": {**STATISTICS["delay"], "nulls": {"value": "0"}}})
    with pytest.raises(UsageError, match="whether the number of records is public"):
        suffice.pool("delay", same_data=[light, private])


def test_new_rows_come_from_the_familys_own_model(put: Put) -> None:
    """Against a beta-binomial and a normal with these parameters: means within six errors, 2e-9 each."""
    release = put()
    posterior = release.posterior("cancelled", method="plug-in", where={"origin": "JFK"})
    draws = 20_000
    predicted = posterior.predictive(50, draws, rng=np.random.default_rng())
    assert set(predicted) == {"n", "total"}
    assert np.all(predicted["n"] == 50)
    distribution = stats.betabinom(50, 201, 801)
    reach = 6 / np.sqrt(draws)
    assert predicted["total"].shape == (draws, 1)
    assert np.mean(predicted["total"]) == pytest.approx(distribution.mean(), abs=reach * distribution.std())
    assert np.std(predicted["total"]) == pytest.approx(distribution.std(), rel=2 * reach)
    delays = release.posterior("delay", method="plug-in", where={"origin": "JFK"})
    new = delays.predictive(draws=draws, rng=np.random.default_rng())
    expected = np.sqrt(delays.mean("variance")[0] + delays.sd("mean")[0] ** 2)
    assert np.mean(new["total"]) == pytest.approx(delays.mean("mean")[0], abs=reach * expected)
    assert np.std(new["total"]) == pytest.approx(expected, rel=0.1)
    assert new["total_of_squares"] == pytest.approx(new["total"] ** 2)


def test_new_rows_need_a_model_and_an_end(put: Put) -> None:
    release = put()
    posterior = release.posterior("cancelled")
    with pytest.raises(UsageError, match="above 0"):
        posterior.predictive(0)
    with pytest.raises(UsageError, match="ask for fewer"):
        posterior.predictive(10**9)
    with pytest.raises(UsageError, match=r"Release\.posterior"):
        posterior_of(release.statistic("cancelled")).predictive()


@pytest.mark.parametrize("keys", [["EWR", "JFK"], ("EWR",), {"EWR"}, {"EWR": 1}, np.array(["EWR"])])
def test_one_key_is_kept_of_a_column(put: Put, keys: object) -> None:
    release = put()
    with pytest.raises(UsageError, match=r"one key for origin, as \{'origin': 'EWR'\}, not several"):
        release.statistic("cancelled").where({"origin": keys})
    assert release.statistic("cancelled").where({"origin": np.str_("JFK")}).groups == {"origin": ["JFK"]}


def test_cells_of_two_posteriors_of_one_release_are_compared_as_independent(put: Put) -> None:
    statistic = put().statistic("cancelled")
    first, second = (posterior_of(statistic.where({"origin": key})) for key in ("EWR", "JFK"))
    contrast = contrast_between(
        "difference",
        "probability",
        first,
        second,
        apart_from={"origin"},
        draws=100,
        rng=np.random.default_rng(7),
    )
    assert contrast.mean() == pytest.approx([-0.1], abs=0.01)

"""Counts by chain and time: order, missing windows, refusals that name what exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import suffice
from suffice.errors import UsageError
from suffice.pipeline.ask.models.chain_tables import chain_table
from support.hidden_states import (
    COLLISIONS,
    MONTHS,
    STATES,
    YEARS,
    crash_plan,
    publish_crashes,
    publish_series,
)
from support.releases import publish

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release

PRIVACY = {"epsilon": "2", "neighboring": "add_or_remove_one", "unit": "row"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("chains") / "store"
    publish_crashes(root)
    publish_series(root, ("2013-11", "2013-12", "2014-02"))
    publish_series(root, ("2014-03",), name="other", privacy=PRIVACY)
    stops = {"family": "poisson", "column": "stops", "upper": 5}
    publish(root, crash_plan(name="sums", statistics={"stops": stops, "late": stops}))
    return str(root)


@pytest.fixture(scope="module")
def crashes(place: str) -> Release:
    return suffice.open_release("crashes", store=place)


def windows(place: str, *labels: str) -> list[Release]:
    return [suffice.open_release(f"monthly@{label}", store=place) for label in labels]


def test_cells_of_one_release_stand_by_chain_and_lexicographic_time(crashes: Release) -> None:
    table = chain_table(crashes, None, chain="STATE", time=["YEAR", "MONTH"])
    assert table.counts.counts[0].shape == (len(STATES), 24, len(COLLISIONS))
    assert table.counts.is_observed.all()
    assert table.chain_keys == {"STATE": list(STATES)}
    assert table.time_keys == {
        "YEAR": [year for year in YEARS for _ in MONTHS],
        "MONTH": [*MONTHS, *MONTHS],
    }
    assert [(feature.name, feature.categories) for feature in table.features] == [
        ("manner", COLLISIONS),
        ("drunk", ("false", "true")),
    ]
    assert table.counts.scales == (2.0, 2.0)  # half of epsilon 1 each
    keys = table.cell_keys
    for cell in (0, 13, 100):
        where = {column: keys[column][cell] for column in ("STATE", "YEAR", "MONTH")}
        expected = crashes.statistic("manner").where(where).values[0].astype(int)
        chain, time = divmod(cell, 24)
        np.testing.assert_array_equal(table.counts.counts[0][chain, time], expected)


def test_the_order_of_columns_is_the_order_of_time(crashes: Release) -> None:
    """Every entry is found again where the other order puts it."""
    counts = chain_table(crashes, ["drunk"], chain="STATE", time=["YEAR", "MONTH"]).counts.counts[0]
    other = chain_table(crashes, ["drunk"], chain=["STATE"], time=["MONTH", "YEAR"]).counts.counts[0]
    assert not np.array_equal(counts, other)
    np.testing.assert_array_equal(
        counts.reshape(6, 2, 12, 2), other.reshape(6, 12, 2, 2).transpose(0, 2, 1, 3)
    )


def test_several_columns_make_chains_and_where_keeps_keys(crashes: Release) -> None:
    table = chain_table(crashes, None, chain=["YEAR", "STATE"], time="MONTH")
    assert (table.n_chains, table.n_times) == (12, 12)
    assert table.chain_names[:2] == ["2013, AK", "2013, AL"]
    kept = chain_table(crashes, None, chain="STATE", time="MONTH", where={"YEAR": "2014"})
    np.testing.assert_array_equal(kept.counts.counts[0], table.counts.counts[0][6:])


def test_no_chain_column_makes_one_chain(crashes: Release) -> None:
    table = chain_table(crashes, None, chain=(), time=["YEAR", "MONTH"], where={"STATE": "CA"})
    assert (table.n_chains, table.n_times, table.chain_names) == (1, 24, [""])
    whole = chain_table(crashes, None, chain="STATE", time=["YEAR", "MONTH"])
    np.testing.assert_array_equal(table.counts.counts[0][0], whole.counts.counts[0][STATES.index("CA")])


def test_windows_are_time_and_a_missing_one_is_a_step_without_observation(place: str) -> None:
    given = windows(place, "2014-02", "2013-11", "2013-12")  # in any order
    table = chain_table(given, None, chain="STATE", time=None)
    assert table.time_keys == {"window": ["2013-11", "2013-12", "2014-01", "2014-02"]}
    assert table.counts.is_observed.all(axis=0).tolist() == [True, True, False, True]
    assert table.releases == ("monthly@2013-11", "monthly@2013-12", "monthly@2014-02")
    np.testing.assert_array_equal(
        table.counts.counts[1][:, 3], given[0].statistic("drunk").values.astype(int)
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"statistics": ["nothing"]}, "manner, drunk"),
        ({"statistics": ["manner", "manner"]}, "given twice"),
        ({"statistics": []}, "manner, drunk"),
        ({"chain": "COUNTY"}, "its groups are STATE, YEAR, MONTH"),
        ({"time": "DAY"}, "its groups are STATE, YEAR, MONTH"),
        ({"time": None}, "groups beside the chain: YEAR, MONTH"),
        ({"time": "YEAR"}, "the group MONTH is neither chain nor time"),
        ({"chain": ["STATE", "YEAR"]}, "as chain and as time"),
        ({"time": ["YEAR", "YEAR"]}, "names YEAR twice"),
        ({"time": "YEAR", "where": {"MONTH": 1, "YEAR": "2013"}}, "two or more time steps"),
        ({"where": {"STATE": "ZZ"}}, "its keys are AK, AL"),
    ],
)
def test_refusals_name_what_exists(crashes: Release, changes: dict[str, Any], said: str) -> None:
    asked: dict[str, Any] = {"statistics": None, "chain": "STATE", "time": ["YEAR", "MONTH"], **changes}
    with pytest.raises(UsageError, match=said):
        chain_table(crashes, asked.pop("statistics"), **asked)


def test_statistics_of_other_families_are_refused_by_name(place: str) -> None:
    sums = suffice.open_release("sums", store=place)
    with pytest.raises(UsageError, match="stops is poisson, late is poisson"):
        chain_table(sums, None, chain="STATE", time=["YEAR", "MONTH"])
    with pytest.raises(
        UsageError, match="stops is poisson: hidden Markov models take categorical or bernoulli"
    ):
        chain_table(sums, ["stops"], chain="STATE", time=["YEAR", "MONTH"])


def test_releases_of_several_series_are_refused(place: str, crashes: Release) -> None:
    (first,) = windows(place, "2013-11")
    other = suffice.open_release("other@2014-03", store=place)
    with pytest.raises(UsageError, match="they differ in name, privacy"):
        chain_table([first, other], None, chain="STATE", time=None)
    with pytest.raises(UsageError, match="monthly@2013-11 is given twice"):
        chain_table([first, first], None, chain="STATE", time=None)
    with pytest.raises(UsageError, match="has no window"):
        chain_table([crashes, crashes], None, chain="STATE", time=None)
    with pytest.raises(UsageError, match=r"what suffice\.open_release returns"):
        chain_table(["monthly"], None, chain="STATE", time=None)  # type: ignore[list-item]
    with pytest.raises(UsageError, match="groups beside the chain: none is left"):
        chain_table(first, None, chain="STATE", time=None)

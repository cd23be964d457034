"""Derived columns in a pass over data: what each is, nulls, time zones, dictionaries, and units."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from suffice.pipeline.rows.chunk.derived_columns import with_derived
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import ChunkJob, chunk_job, sum_batches
from suffice.pipeline.rows.contribution.records import UnitKey
from suffice.pipeline.rows.reduce.shuffle import bounded_sums
from suffice.pipeline.rows.reduce.tree import open_cluster_for_sums
from suffice.pipeline.terms.declaration.derived_columns import read_derived
from suffice.pipeline.terms.declaration.time_zones import zone_offsets
from support.hostile import bernoulli, categorical, make_spec, normal
from support.making import flights, write_parts
from support.splits import splits_of

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.spec import Spec


def derive(entries: dict[str, Any], columns: dict[str, pa.Array], wanted: str) -> pa.Array:
    derived = {name: read_derived(name, entry, None) for name, entry in entries.items()}
    zones = {zone: zone_offsets(zone) for of in derived.values() for zone in of.time_zones}
    job = ChunkJob(measures={}, groups={}, derived=derived, zones=zones)
    batch = pa.RecordBatch.from_pydict(columns)
    (found,) = with_derived([batch], job, [wanted])
    return found.column(wanted)


def test_one_may_rest_on_another_in_any_order() -> None:
    entries = {
        "region": {"column": "tidy", "map": {"ua": "west"}, "otherwise": "other"},
        "tidy": {"column": "carrier", "trim": "true", "case": "lower"},
    }
    found = derive(entries, {"carrier": pa.array([" UA ", "ua", "b6", None])}, "region")
    assert found.to_pylist() == ["west", "west", "other", None]


def test_nulls_follow_kleene() -> None:
    values = [True, False, None]
    rows = [(a, b) for a in values for b in values]
    columns = {"a": pa.array([a for a, _ in rows]), "b": pa.array([b for _, b in rows])}
    either = derive({"x": {"any_of": ["a", "b"]}}, columns, "x").to_pylist()
    both = derive({"x": {"all_of": ["a", "b"]}}, columns, "x").to_pylist()
    assert either == [True, True, True, True, False, None, True, None, None]
    assert both == [True, False, None, False, False, False, None, False, None]


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "Australia/Lord_Howe", "Africa/Freetown", "America/Boa_Vista"]
)
def test_local_hours_are_those_of_the_time_zone_database(zone: str) -> None:
    rng = np.random.default_rng(5)
    early, late = (int(dt.datetime(year, 1, 1, tzinfo=dt.UTC).timestamp()) for year in (1850, 9998))
    seconds = np.concatenate(
        [rng.integers(early, late, 2000), rng.integers(early, early + 250 * 31_556_952, 4000)]
    )
    entry = {"column": "t", "part": "hour", "time_zone": zone}
    found = derive({"x": entry}, {"t": pa.array(seconds, pa.timestamp("s", "UTC"))}, "x")
    expected = [dt.datetime.fromtimestamp(second, ZoneInfo(zone)).hour for second in seconds.tolist()]
    assert found.to_pylist() == expected


def test_every_change_of_a_zone_is_at_its_second() -> None:
    offsets = zone_offsets("Europe/Berlin")
    around = [start + step for start in offsets.starts[1:400] for step in (-1, 0)]
    entry = {"column": "t", "part": "hour", "time_zone": "Europe/Berlin"}
    found = derive({"x": entry}, {"t": pa.array(around, pa.timestamp("s", "UTC"))}, "x")
    assert found.to_pylist() == [dt.datetime.fromtimestamp(t, ZoneInfo("Europe/Berlin")).hour for t in around]


def test_a_date_is_the_whole_day_in_its_zone() -> None:
    times = [dt.datetime(2013, 1, 5, hour, 30, tzinfo=dt.UTC) for hour in (22, 23)]
    columns = {"t": pa.array(times, pa.timestamp("us", "UTC"))}
    until = {"column": "t", "at_most": "2013-01-05"}
    assert derive({"x": until}, columns, "x").to_pylist() == [True, True]
    assert derive({"x": {**until, "time_zone": "Europe/Berlin"}}, columns, "x").to_pylist() == [True, False]


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_texts_that_look_alike_are_alike_in_one_normal_form(form: str) -> None:
    """A letter and its accent apart or together, a ligature, a wide letter with a wide space before it."""
    texts = ["caf\u00e9", "cafe\u0301", "\ufb01n", "fin", "\u3000\uff21", None]
    entry = {"column": "t", "normalize": form, "trim": "true", "case": "lower"}
    read = derive({"x": entry}, {"t": pa.array(texts)}, "x").to_pylist()
    assert read[0] == read[1]
    assert read[5] is None
    assert (read[2] == read[3]) == form.startswith("NFK")
    assert (read[4] == "a") == form.startswith("NFK")

    nothing = {"column": "t", "case": "lower"}
    apart = derive({"x": nothing}, {"t": pa.array(texts)}, "x").to_pylist()
    assert apart[0] != apart[1]


def test_what_is_no_utf_8_has_no_normal_form() -> None:
    data = pa.array([b"e\xcc\x81", b"\xff", b"a"])
    texts = pa.Array.from_buffers(pa.string(), 3, data.buffers())
    assert derive({"x": {"column": "t", "normalize": "NFC"}}, {"t": texts}, "x").to_pylist() == [
        "\u00e9",
        None,
        "a",
    ]


def test_dictionaries_stay_dictionaries_and_may_grow() -> None:
    entry = read_derived("x", {"column": "t", "case": "upper"}, None)
    job = ChunkJob(measures={}, groups={}, derived={"x": entry})
    batches = [
        pa.RecordBatch.from_pydict(
            {"t": pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), entries)}
        )
        for indices, entries in (([0, None], ["a"]), ([1, 0], ["a", "b"]), ([0], ["c"]))
    ]
    found = [batch.column("x") for batch in with_derived(batches, job, ["x"])]
    assert all(pa.types.is_dictionary(column.type) for column in found)
    assert [column.to_pylist() for column in found] == [["A", None], ["B", "A"], ["C"]]


DERIVED: dict[str, Any] = {
    "late": {"column": "arr_delay", "above": "15"},
    "area": {"column": "origin", "map": {"EWR": "NJ", "JFK": "NY", "LGA": "NY"}},
    "weekday": {"column": "day", "part": "weekday"},
}


def spec_of(directory: Path, *, stored: bool, **others: Any) -> Spec:
    statistics = {
        "late": bernoulli("late"),
        "weekday": categorical("weekday", {"range": ["1", "7"]}),
        "stops": normal("stops", "0", "9"),
    }
    derived = {} if stored else {"derived": DERIVED}
    return make_spec(directory, statistics, groups={"area": ["NJ", "NY"]}, **derived, **others)


def with_stored(table: pa.Table) -> pa.Table:
    rows = table.to_pylist()
    late = [None if row["arr_delay"] != row["arr_delay"] else row["arr_delay"] > 15 for row in rows]
    area = [{"EWR": "NJ", "JFK": "NY", "LGA": "NY"}.get(row["origin"]) for row in rows]
    weekday = [row["day"].isoweekday() for row in rows]
    for name, values in (("late", late), ("area", area), ("weekday", weekday)):
        table = table.append_column(name, pa.array(values))
    return table


def test_sums_are_those_of_stored_columns(tmp_path: Path) -> None:
    table = flights()
    ours = sum_batches(table.to_batches(max_chunksize=97), chunk_job(spec_of(tmp_path, stored=False)))
    theirs = sum_batches(with_stored(table).to_batches(), chunk_job(spec_of(tmp_path, stored=True)))
    for name, sums in to_python(theirs).items():
        assert to_python(ours)[name].tolist() == sums.tolist(), name
        assert sums.sum() > 0


@pytest.mark.parametrize("clustered", [False, True])
def test_sums_of_units_are_those_of_stored_columns(tmp_path: Path, *, clustered: bool) -> None:
    table = flights().append_column("who", pa.array(np.arange(600) // 4))
    privacy = {
        "epsilon": "1",
        "neighboring": "add_or_remove_one",
        "unit": {"column": "who", "max_rows": "3"},
    }
    found, key = [], UnitKey.fresh()
    for stored in (False, True):
        directory = write_parts(with_stored(table) if stored else table, tmp_path / str(stored))
        job = replace(chunk_job(spec_of(directory, stored=stored, privacy=privacy)), is_clustered=clustered)
        splits = splits_of(spec_of(directory, stored=stored, privacy=privacy))
        with open_cluster_for_sums("threads") as cluster:
            totals = bounded_sums(job, splits, cluster, key).open_totals()
        found.append({name: sums.tolist() for name, sums in to_python(totals).items()})
    assert found[0] == found[1]
    assert found[0]["late"] != [[0, 0], [0, 0]]

"""Columns that folders state: their types, which folders are looked into, and what nobody is told."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore import put

from suffice.buckets import connect
from suffice.errors import SchemaError, SpecError, StageFailedError, UsageError
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.partition import chunk_job, sum_batches
from suffice.pipeline.rows.sources.parquet import stated_by
from suffice.pipeline.rows.sources.schema_check import check_schema
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.terms.declaration.column_types import NULL_FOLDER, HiveColumn, HiveType, read_hive
from support.buckets import BUCKET, s3_server, variables
from support.hostile import bernoulli

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

CANARY = "CANARY-5b2d"
MONTHS = {"year": "integer", "month": "integer", "first": {"year": "year", "month": "month"}}


def folder_spec(root: Path | str, hive: dict[str, Any], **others: Any) -> Spec:
    return load_spec(
        {
            "name": "test",
            "dataset": "test",
            "source": {"parquet": str(root), "hive": hive},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "statistics": {"flag": bernoulli("flag")},
            **others,
        }
    )


def by_month(root: Path | str, **others: Any) -> Spec:
    return folder_spec(root, MONTHS, window={"column": "first", "every": "month"}, **others)


def write(path: Path, n_rows: int = 3) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"flag": [True] * n_rows}), path)


def totals(spec: Spec, window: str = "all") -> dict[str, Any]:
    """Return the exact sums of a window."""
    pin = sources.pin(spec, window)
    check_schema(spec, sources.schema(pin))
    job = chunk_job(spec, window)
    batches = (batch for split in sources.splits(pin) for batch in sources.read(split, job.columns, 1 << 10))
    return {name: sums.low.tolist() for name, sums in sum_batches(batches, job).items()}


def pinned_names(spec: Spec, window: str = "all") -> list[str]:
    root = f"{spec.source_address}/"
    return [file.address.removeprefix(root) for file in sources.pin(spec, window).private.files.files]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("integer", "06", 6),
        ("integer", "-3", -3),
        ("integer", "9223372036854775808", None),
        ("integer", "6.0", None),
        ("integer", "\u0666", None),
        ("integer", "", None),
        ("text", "New%20York%2FNY", "New York/NY"),
        ("text", "", ""),
        ("text", "%FF", None),
        ("text", "a=b", "a=b"),
        ("text", NULL_FOLDER, None),
        ("date", "2013-02-28", dt.date(2013, 2, 28)),
        ("date", "2013-02", dt.date(2013, 2, 1)),
        ("date", "20130205", dt.date(2013, 2, 5)),
        ("date", "2013-02-05 23", dt.date(2013, 2, 5)),
        ("date", "2013-02-05%2017%3A30%3A00", dt.date(2013, 2, 5)),
        ("date", "2013-02-05T17", dt.date(2013, 2, 5)),
        ("date", "2013-02-05 24", None),
        ("date", "2013-02-30", None),
        ("date", "20130230", None),
        ("date", "2013", None),
        ("date", "201302", None),
        ("boolean", "True", True),
        ("boolean", "1", None),
        ("integer", NULL_FOLDER, None),
    ],
)
def test_what_a_folder_states(tmp_path: Path, kind: str, text: str, value: object) -> None:
    write(tmp_path / f"key={text}" / "a.parquet", 1)
    spec = folder_spec(tmp_path, {"key": kind})
    (split,) = sources.splits(sources.pin(spec))
    (batch,) = sources.read(split, ("key", "flag"), 16)
    assert batch.column("key").to_pylist() == [value]
    types = {"integer": pa.int64(), "text": pa.string(), "date": pa.date32(), "boolean": pa.bool_()}
    (part,) = sources.schema(sources.pin(spec))
    assert part.columns.field("key").type == types[kind]


def test_folders_of_any_stated_format_are_read(tmp_path: Path) -> None:
    for name, flags in (("05-JAN-13", 1), ("5-feb-13", 2), ("30-FEB-13", 4), ("2013-01-05", 8)):
        write(tmp_path / f"dt={name}" / "a.parquet", flags)
    spec = folder_spec(
        tmp_path,
        {"dt": {"date": "%d-%b-%y", "pivot": "1970"}},
        window={"column": "dt", "every": "month"},
    )
    assert pinned_names(spec, "2013-01") == ["dt=05-JAN-13/a.parquet"]
    assert totals(spec, "2013-02") == {"flag": [[0, 2]]}


@pytest.mark.parametrize("kind", ["integer", "text", "boolean"])
def test_a_window_of_folders_is_of_dates(tmp_path: Path, kind: str) -> None:
    with pytest.raises(SpecError, match=rf"source\.hive: .* as {kind}.*write hive: {{dt: date}}"):
        folder_spec(tmp_path, {"dt": kind}, window={"column": "dt", "every": "day"})
    folder_spec(tmp_path, {"dt": "date"}, window={"column": "dt", "every": "day"})


def test_folders_that_airflow_names_are_read(tmp_path: Path) -> None:
    for name in ("20130105", "2013-01-05 00", "2013-01-05 01", "20130206"):
        write(tmp_path / f"dt={name}" / "a.parquet", 3)
    spec = folder_spec(tmp_path, {"dt": "date"}, window={"column": "dt", "every": "day"})
    assert totals(spec, "2013-01-05") == {"flag": [[0, 9]]}
    assert totals(spec, "2013-01-06") == {"flag": [[0, 0]]}


@pytest.mark.slow
@given(st.sampled_from(HiveType), st.one_of(st.none(), st.text()))
def test_no_text_of_a_folder_is_an_error(kind: HiveType, text: str | None) -> None:
    value = HiveColumn(type=kind, keys=("a",)).value({"a": text})
    assert value is None or text is not None
    HiveColumn(type=HiveType.DATE, keys=("a", "b"), is_made=True).value({"a": "2013", "b": text})


@pytest.mark.parametrize(
    "entry",
    [
        {},
        "year",
        {"year": "number"},
        {"d": {"month": "month"}},
        {"d": {"year": "a", "day": "b"}},
        {"": "text"},
        {"d": {"date": "%d-%b-%y"}},
        {"d": {"date": "%d-%b"}},
        {"d": {"date": "%Y%m%d", "pivot": "1970"}},
        {"d": {"date": "%Y%m%d", "zone": "UTC"}},
    ],
)
def test_what_is_wrong_with_the_entry_is_said(entry: Any, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match=r"hive maps|not one of|a date is made|a column name is|pivot|needs a year|stated format",
    ):
        read_hive(entry)
    with pytest.raises(SpecError, match=r"source\.hive"):
        folder_spec(tmp_path, entry)


def test_a_pattern_has_no_folders(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="name it without"):
        folder_spec(f"{tmp_path}/*", {"year": "integer"})


def test_only_the_folders_of_a_window_are_read(tmp_path: Path) -> None:
    for year, month in ((2012, 12), (2013, 1), (2013, 2)):
        write(tmp_path / f"year={year}" / f"month={month:02}" / "a.parquet", month)
    damaged = tmp_path / "year=2013" / "month=03" / "a.parquet"
    write(damaged)
    damaged.write_bytes(CANARY.encode())
    (tmp_path / "year=2014").mkdir()
    (tmp_path / "year=2014").chmod(0)
    spec = by_month(tmp_path)
    assert pinned_names(spec, "2013-01") == ["year=2013/month=01/a.parquet"]
    assert totals(spec, "2013-02") == {"flag": [[0, 2]]}
    with pytest.raises(UsageError, match="cannot be") as caught:
        totals(spec, "2013-03")
    assert str(tmp_path) in str(caught.value)
    assert "month=03" not in str(caught.value)
    assert CANARY not in str(caught.value)


def test_a_folder_that_is_not_there_is_one_without_rows(tmp_path: Path) -> None:
    write(tmp_path / "year=2013" / "month=01" / "a.parquet", 1)
    spec = by_month(tmp_path)
    write(tmp_path / "year=2013" / "month=02" / "a.parquet", 0)
    empty = totals(spec, "2013-02")
    shutil.rmtree(tmp_path / "year=2013" / "month=02")
    assert totals(spec, "2013-02") == empty
    shutil.rmtree(tmp_path / "year=2013")
    assert totals(spec, "2013-02") == empty
    assert sources.pin(spec, "2013-01").public == sources.pin(spec, "2013-02").public


def test_a_root_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder at"):
        sources.pin(by_month(tmp_path / "absent"), "2013-01")


FOLDERS = st.lists(
    st.tuples(
        st.sampled_from(["2012", "2013", "02013", "x", NULL_FOLDER]),
        st.sampled_from(["1", "01", "12", "13", "", NULL_FOLDER]),
        st.sampled_from(["north", "south%20", "west", NULL_FOLDER]),
    ),
    max_size=6,
    unique=True,
)


@settings(max_examples=25)
@given(FOLDERS, st.sampled_from(["2012-12", "2013-01"]), st.permutations(["year", "month", "place"]))
def test_leaving_folders_out_changes_no_sum(
    tmp_path_factory: pytest.TempPathFactory,
    folders: list[tuple[str, str, str]],
    window: str,
    order: list[str],
) -> None:
    root = tmp_path_factory.mktemp("folders")
    for number, (year, month, place) in enumerate(folders):
        stated = {"year": year, "month": month, "place": place}
        write(root.joinpath(*(f"{key}={stated[key]}" for key in order)) / "a.parquet", 1 << number)
    groups = {"place": ["south ", "west"], "year": {"range": ["2013", "2014"]}}
    spec = folder_spec(
        root, {**MONTHS, "place": "text"}, groups=groups, window={"column": "first", "every": "month"}
    )
    pruned = totals(spec, window)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources.SOURCES["parquet"], "needed", lambda *_: ())
        everything = pinned_names(spec, window)
        assert totals(spec, window) == pruned
    assert len(everything) == len(folders)
    assert len(pinned_names(spec, window)) <= len(folders)


def test_all_is_read_where_the_number_of_records_is_public(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "year=2012" / "month=1" / "a.parquet", 5)
    write(tmp_path / "year=2013" / "month=1" / "a.parquet", 3)
    spec = by_month(tmp_path)
    assert len(pinned_names(spec, "2013-01")) == 1
    monkeypatch.setattr("suffice.pipeline.spec.plan.Plan.n_is_public", property(lambda _: True))
    assert len(pinned_names(spec, "2013-01")) == 2


def test_a_folder_is_left_out_where_no_statistic_has_a_cell_for_it(tmp_path: Path) -> None:
    for number, (place, year) in enumerate([("south", 2013), ("west", 2013), ("west", 2014)]):
        write(tmp_path / f"place={place}" / f"year={year}" / "a.parquet", 1 << number)
    hive = {"place": "text", "year": "integer"}

    def released(*stated: Any) -> tuple[list[list[int]], int]:
        statistics = {f"s{number}": bernoulli("flag", **of) for number, of in enumerate(stated)}
        spec = folder_spec(tmp_path, hive, groups={"place": ["west"], "year": [2013]}, statistics=statistics)
        return [[sum(row) for row in rows] for rows in totals(spec).values()], len(pinned_names(spec))

    assert released({}) == ([[2]], 1)
    assert released({}, {"groups": {"year": [2013]}}) == ([[2], [3]], 2)
    assert released({}, {"groups": {"place": ["south", "west"]}}) == ([[2], [1, 6]], 3)
    assert released({}, {"groups": {}}) == ([[2], [7]], 3)


def test_of_a_key_that_folders_state_twice_the_outer_one_counts(tmp_path: Path) -> None:
    """Which window a row is in does not depend on which folders were left out."""
    write(tmp_path / "year=2013/month=1/month=2/a.parquet")
    first, second = (totals(by_month(tmp_path), f"2013-0{number}")["flag"] for number in (1, 2))
    assert (np.sum(first) > 0, np.sum(second)) == (True, 0)
    assert stated_by("/d", "/d/month=1/month=2/a.parquet") == {"month": "1"}


def test_undeclared_keys_hidden_files_and_other_folders(tmp_path: Path) -> None:
    for path in (
        "region=a/year=2013/month=1/a.parquet",
        "year=2013/region=b/month=1/b.parquet",
        "year=2013/month=1/_c.parquet",
        "year=2013/month=1/.d.parquet",
        "_staging/year=2013/month=1/e.parquet",
        "year=2013/month=1/plain/f.parquet",
        ".year=2013/month=1/g.parquet",
        "h.parquet",
    ):
        write(tmp_path / path)
    assert pinned_names(by_month(tmp_path), "2013-01") == [
        "region=a/year=2013/month=1/a.parquet",
        "year=2013/region=b/month=1/b.parquet",
    ]
    assert pinned_names(folder_spec(tmp_path, MONTHS)) == [
        "h.parquet",
        "region=a/year=2013/month=1/a.parquet",
        "year=2013/region=b/month=1/b.parquet",
    ]


def test_a_key_that_is_also_a_column_of_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / f"city={CANARY}" / "a.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"flag": [True], "city": ["x"]}), path)
    with pytest.raises(SchemaError, match=r"^source\.hive\.city: .*has the column 'city' too") as caught:
        sources.schema(sources.pin(folder_spec(tmp_path, {"city": "text"})))
    assert CANARY not in str(caught.value)
    (part,) = sources.schema(sources.pin(folder_spec(tmp_path, {"other": "text"})))
    assert part.columns.names == ["flag", "city", "other"]


def test_no_message_names_a_path_below_the_root(tmp_path: Path) -> None:
    path = tmp_path / f"city={quote(CANARY)}" / "a.parquet"
    write(path)
    spec = folder_spec(tmp_path, {"city": "text"}, groups={"city": [CANARY]})
    said: list[Exception] = []
    absent = spec.model_copy(update={"groups": {"planet": spec.groups["city"]}})
    with pytest.raises(SchemaError) as schema_error:
        check_schema(absent, sources.schema(sources.pin(spec)))
    said.append(schema_error.value)
    pin = sources.pin(spec)
    (split,) = sources.splits(pin)
    os.link(path, path.with_name("b.parquet"))
    with pytest.raises(UsageError, match="same file") as usage_error:
        sources.pin(spec)
    path.with_name("b.parquet").unlink()
    said.append(usage_error.value)
    write(path, 4)
    for action in (lambda: sources.check(pin), lambda: list(sources.read(split, ("flag",), 16))):
        with pytest.raises(StageFailedError) as stage_error:
            action()
        said.append(stage_error.value)
    for error in said:
        assert str(tmp_path) in str(error)
        assert CANARY not in str(error)
        assert "city=" not in str(error)


@pytest.mark.slow
def test_of_a_bucket_only_the_prefixes_and_bytes_needed_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[dict[str, str]] = []
    with s3_server() as (url, server):
        for name, value in variables(url).items():
            monkeypatch.setenv(name, value)
        bucket = connect(f"s3://{BUCKET}", retries=0)
        n_rows = 300_000
        wide = {f"w{number}": pa.array(range(number, number + n_rows)) for number in range(6)}
        table = pa.table({**wide, "flag": pa.array([True, False] * (n_rows // 2)), "z": wide["w0"]})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="none", use_dictionary=False)
        data = sink.getvalue().to_pybytes()
        for month in ("01", "02"):
            for year in ("2012", "2013"):
                put(bucket, f"root/year={year}/month={month}/a.parquet", data)
        inner = server.application

        def watched(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
            asked.append({name: str(environ.get(name, "")) for name in ("QUERY_STRING", "HTTP_RANGE")})
            return inner(environ, start)

        server.application = watched
        spec = by_month(f"s3://{BUCKET}/root")
        pin = sources.pin(spec, "2013-01")
        listed = [each["QUERY_STRING"] for each in asked if "prefix" in each["QUERY_STRING"]]
        assert listed
        assert not any("2012" in query or "month%3D02" in query for query in listed)
        asked.clear()
        (split,) = sources.splits(pin)
        assert (
            sum(batch["flag"].true_count for batch in sources.read(split, ("flag",), 1 << 16)) == n_rows // 2
        )
        ranges = [each["HTTP_RANGE"].removeprefix("bytes=") for each in asked if each["HTTP_RANGE"]]
        lengths = [int(last) - int(first) + 1 for first, last in (each.split("-") for each in ranges)]
        assert len(lengths) == 1, "one request for the column of a row group, none for the footer again"
        assert sum(lengths) < len(data) / 20

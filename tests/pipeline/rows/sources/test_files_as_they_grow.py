"""Files of a source that others write on: columns added later, files of the window's days alone."""

from __future__ import annotations

import datetime as dt
import gzip
import random
from contextlib import closing
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import SchemaError, SpecError, UsageError
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from suffice.pipeline.rows.sources.inspecting import proposed_contract
from suffice.pipeline.rows.sources.schema_check import check_columns
from suffice.pipeline.spec.contract_fit import check_contract
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.column_types import ColumnFamily
from suffice.pipeline.terms.declaration.data_contract import parse_contract
from suffice.pipeline.terms.declaration.domains import Every, period_label
from suffice.pipeline.terms.declaration.files_by_window import name_of
from support.buckets import variables
from support.hostile import bernoulli, categorical, normal, poisson
from support.source_makers import upload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from suffice.pipeline.cluster.connection import Cluster
    from suffice.pipeline.spec.spec import Spec

STATISTICS = {
    "x": normal("x", "0", "100"),
    "y": normal("y", "0", "100"),
    "filled": normal("y", "0", "100", nulls={"value": "7"}),
    "city": categorical("city", ["a", "b"], other=True),
    "flag": bernoulli("flag"),
}
ROWS = pa.table(
    {
        "u": [1, 1, 2, 3, None, 4],
        "x": [1.0, 2.5, None, 8.0, 16.0, 200.0],
        "y": [None, None, None, 1.0, None, 5.0],
        "city": [None, None, None, "a", "c", None],
        "flag": [None, None, None, True, False, None],
    }
)
FIRST, LATER = ROWS.slice(0, 3), ROWS.slice(3)


@pytest.fixture(scope="module")
def threads() -> Iterator[Cluster]:
    with open_cluster_for_sums("threads") as cluster:
        yield cluster


def document(source: dict[str, Any], **parts: Any) -> dict[str, Any]:
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one"}
    return {
        "name": "test",
        "dataset": "test",
        "source": source,
        "privacy": privacy,
        "statistics": STATISTICS,
        **parts,
    }


def totals(
    source: dict[str, Any], cluster: Cluster, window: str = ALL, **parts: Any
) -> tuple[dict[str, list[Any]], tuple[str, ...]]:
    """Return the exact sums of a source, and what the schema check warns of."""
    spec = load_spec(document(source, **parts))
    with closing(sources.pin(spec, window)) as pin:
        texts = check_columns(spec, sources.schema(pin), None)
        sums = to_python(exact_sums(chunk_job(spec, window), sources.splits(pin), cluster).open_totals())
        sources.check(pin)
    return {name: values.tolist() for name, values in sums.items()}, texts


def written(root: Path, **files: pa.Table) -> dict[str, str]:
    root.mkdir()
    for name, table in files.items():
        pq.write_table(table, root / f"{name}.parquet", row_group_size=2)
    return {"parquet": str(root)}


UNITS = [
    {},
    {"unit": {"column": "u", "max_rows": "2"}},
    {"unit": {"column": "u", "max_rows": "2", "nulls": "own_unit"}},
]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("added", [["y"], ["y", "city", "flag"], ["city", "flag"]])
def test_a_column_that_was_added_later_is_null_in_older_files(
    tmp_path: Path, threads: Cluster, added: list[str], unit: dict[str, Any]
) -> None:
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", **unit}
    older = written(tmp_path / "older", a=FIRST.drop_columns(added), b=LATER)
    whole = written(tmp_path / "whole", a=FIRST, b=LATER)
    expected, silent = totals(whole, threads, privacy=privacy)
    found, texts = totals(older, threads, privacy=privacy)
    assert found == expected
    assert any(map(any, expected["filled"])), "nulls count by the spec's rule"
    assert silent == ()
    assert [text.partition(", which")[0].partition("/older/")[2] for text in texts] == [
        f"a.parquet has no column {name!r}" for name in added
    ]


def test_a_file_may_lack_every_column_that_is_read(tmp_path: Path, threads: Cluster) -> None:
    statistics = {"y": normal("y", "0", "100", nulls={"value": "7"})}
    older = written(tmp_path / "older", a=FIRST.drop_columns("y"), b=LATER)
    whole = written(tmp_path / "whole", a=FIRST, b=LATER)
    assert (
        totals(older, threads, statistics=statistics)[0] == totals(whole, threads, statistics=statistics)[0]
    )


def test_what_no_file_has_is_refused_and_so_is_a_file_without_the_unit(tmp_path: Path) -> None:
    def check(source: dict[str, str], **parts: Any) -> None:
        spec = load_spec(document(source, **parts))
        check_columns(spec, sources.schema(sources.pin(spec)), None)

    lacking = written(tmp_path / "lacking", a=FIRST.drop_columns("y"), b=LATER.drop_columns("y"))
    with pytest.raises(SchemaError, match=r"^statistics\.y\.column: .*a\.parquet: no column 'y'"):
        check(lacking)
    strangers = written(tmp_path / "strangers", a=FIRST.drop_columns("u"), b=LATER)
    check(strangers)
    for nulls in ("drop", "own_unit"):
        privacy = {
            "epsilon": "1",
            "neighboring": "add_or_remove_one",
            "unit": {"column": "u", "max_rows": "1", "nulls": nulls},
        }
        with pytest.raises(SchemaError, match=r"^privacy\.unit\.column: .*a\.parquet: no column 'u'"):
            check(strangers, privacy=privacy)


def test_the_check_depends_on_names_of_columns_alone(tmp_path: Path) -> None:
    texts = set()
    for number, rows in enumerate((FIRST, FIRST.slice(0, 0), FIRST.slice(1, 1))):
        root = tmp_path / str(number) / "data"
        root.parent.mkdir()
        source = written(root, a=rows.drop_columns("y"), b=LATER.slice(number))
        spec = load_spec(document(source))
        found = check_columns(spec, sources.schema(sources.pin(spec)), None)
        texts.add(tuple(text.partition("/data/")[2] for text in found))
    assert len(texts) == 1


PATTERNS = {
    "{yyyy}/{mm}/{dd}": "2013/02/28/part.parquet",
    "{yyyy}/{mm}/{dd}/*": "2013/02/28/17/part.parquet",
    "{yyyy}-{mm}-{dd}.parquet": "2013-02-28.parquet",
    "days/rows_{yyyy}{mm}{dd}*.parquet": "days/rows_20130228-0001.parquet",
    "{dd}.{mm}.{yyyy}": "28.02.2013/part.parquet",
    "{yyyy}/{mm}": "2013/02/part.parquet",
    "{yyyy}": "2013/part.parquet",
    "{yyyy}/*{yyyy}{mm}*": "2013/rows_201302.parquet",
}


@pytest.mark.parametrize(("pattern", "path"), PATTERNS.items())
def test_files_of_other_days_are_not_even_looked_at(tmp_path: Path, pattern: str, path: str) -> None:
    rows = pa.table({"day": [dt.date(2013, 2, 28), dt.date(2013, 3, 1), None], "x": [1.0, 2.0, 3.0]})
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, tmp_path / path)
    others = ["stray.parquet", "2012/12/31/a.parquet", "2014/02/28/17/a.parquet", "2012-02-28.parquet"]
    for other in (*others, "2013.parquet", "29.02.2012/a.parquet", "201302/a.parquet", "2013/02/notes.txt"):
        (tmp_path / other).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / other).write_bytes(b"no Parquet file")
    for every, window in (
        ("day", "2013-02-28"),
        ("week", "2013-W09"),
        ("month", "2013-02"),
        ("year", "2013"),
    ):
        spec = windowed(tmp_path, pattern, every)
        with closing(sources.pin(spec, window)) as pin:
            assert [file.address for file in pin.private.files.files] == [str(tmp_path / path)]
            assert sum(split.n_rows for split in sources.splits(pin)) == 3
    for every, window in (("day", "1999-02-28"), ("year", "1999")):
        with closing(sources.pin(windowed(tmp_path, pattern, every), window)) as pin:
            assert sources.splits(pin) == ()


def windowed(root: Path | str, pattern: str | None, every: str, **parts: Any) -> Spec:
    window = {"column": "day", "every": every, **parts}
    if pattern is not None:
        window["files_by_window"] = pattern
    statistics = {"x": normal("x", "0", "100")}
    return load_spec(document({"parquet": str(root)}, window=window, statistics=statistics))


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("{mm}/{dd}", "states a day by"),
        ("{yyyy}/{dd}", "states a day by"),
        ("data", "states a day by"),
        ("{yyyy}/{hh}", "is made of"),
        ("{yyyy}[0-9]", "is made of"),
        ("/{yyyy}", "a path below"),
        ("../{yyyy}", "a path below"),
        ("{yyyy}/**/a", "a path below"),
        ("{yyyy}/", "a path below"),
        ("{yyyy}" + "x" * 300, "at most 255"),
    ],
)
def test_a_pattern_is_of_the_closed_list(tmp_path: Path, pattern: Any, said: str) -> None:
    with pytest.raises(SpecError, match=rf"window\.files_by_window: .*{said}"):
        windowed(tmp_path, pattern, "day")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"delta": "data"}, "a source of kind delta has no files"),
        ({"parquet": "data/*.parquet"}, "one directory or URL"),
        ({"parquet": "data", "hive": {"year": "integer"}}, "leave one of the two out"),
    ],
)
def test_names_say_a_window_in_one_folder_alone(source: dict[str, Any], said: str) -> None:
    window = {"column": "day", "every": "day", "files_by_window": "{yyyy}/{mm}/{dd}"}
    with pytest.raises(SpecError, match=rf"window\.files_by_window: .*{said}"):
        load_spec(document(source, window=window))


def test_names_are_part_of_the_plan_and_of_the_contract(tmp_path: Path) -> None:
    plain, by_name = windowed(tmp_path, None, "day"), windowed(tmp_path, "{yyyy}/{mm}/{dd}", "day")
    assert '"files_by_window":"{yyyy}/{mm}/{dd}"' in by_name.canonical_plan()
    assert "files_by_window" not in plain.canonical_plan()
    assert plain.plan_hash() != by_name.plan_hash()
    columns = {"day": ColumnFamily.DATE, "x": ColumnFamily.FLOATING}
    contracts = [proposed_contract(spec, dict(columns)) for spec in (plain, by_name)]
    assert len({contract.sha256 for contract in contracts}) == 2
    for spec, contract in zip((plain, by_name), contracts, strict=True):
        assert parse_contract(contract.canonical, "here") == contract
        check_contract(spec, contract)
    for spec, contract in zip((by_name, plain), contracts, strict=True):
        with pytest.raises(SchemaError, match=r"^window\.files_by_window: the account's contract states "):
            check_contract(spec, contract)


def test_a_root_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    for pattern in ("{yyyy}/{mm}/{dd}", "{yyyy}.parquet"):
        with pytest.raises(UsageError, match=r"^source\.parquet: .*/none cannot be listed"):
            sources.pin(windowed(tmp_path / "none", pattern, "day"), "2013-02-28")


ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Pacific/Kiritimati"]
FIRST_DAYS = [dt.date(2012, 2, 27), dt.date(2012, 12, 30), dt.date(2013, 3, 30), dt.date(2013, 10, 26)]
"""Days around leap days, ends of years, and the nights in which clocks change."""


@pytest.mark.parametrize("seed", range(6))
def test_a_row_enters_where_its_file_and_its_date_say_so(tmp_path: Path, threads: Cluster, seed: int) -> None:
    """Rows of random instants in files of random days: sums are those of the rows that a person picks."""
    rng = random.Random(seed)  # noqa: S311 - chosen rows
    zone, pattern = rng.choice(ZONES), rng.choice(["{yyyy}/{mm}/{dd}", "{yyyy}/{mm}", "{yyyy}"])
    every = [Every.DAY, Every.WEEK, Every.MONTH, Every.YEAR][seed % 4]
    rows: list[tuple[dt.date, dt.datetime | None, float]] = []
    for first in FIRST_DAYS:
        for _ in range(40):
            day = first + dt.timedelta(days=rng.randrange(4))
            hours = rng.choice([0, 1, 2, 5, 10, 14, 23]) + rng.choice([-24, 0, 0, 24])
            moment = dt.datetime.combine(day, dt.time(), dt.UTC) + dt.timedelta(
                hours=hours, microseconds=rng.choice([-1, 0, 1])
            )
            rows.append((day, rng.choice([moment, moment, moment, None]), rng.uniform(0, 100)))
    for number, (name, of_file) in enumerate(grouped(rows, pattern).items()):
        (tmp_path / "named" / name).mkdir(parents=True)
        pq.write_table(table_of(of_file), tmp_path / "named" / name / f"{number}.parquet")
    windows = {period_label(day, every) for day, _, _ in rows}
    kept = 0
    for window in sorted(windows):
        chosen = [row for row in rows if is_in(row, window, every, zone, pattern)]
        kept += len(chosen)
        plain = tmp_path / f"plain-{window}"
        plain.mkdir()
        pq.write_table(table_of(chosen), plain / "rows.parquet")
        sums = []
        for root, of_names in ((tmp_path / "named", pattern), (plain, None)):
            spec = windowed(root, of_names, str(every), time_zone=zone)
            with closing(sources.pin(spec, window)) as pin:
                found = exact_sums(chunk_job(spec, window), sources.splits(pin), threads).open_totals()
            sums.append({name: values.tolist() for name, values in to_python(found).items()})
        assert sums[0] == sums[1], window
    assert 0 < kept < len(rows)


def grouped(rows: list[Any], pattern: str) -> dict[str, list[Any]]:
    by_name: dict[str, list[Any]] = {}
    for row in rows:
        by_name.setdefault(name_of(pattern, row[0]), []).append(row)
    return by_name


def table_of(rows: list[Any]) -> pa.Table:
    days = pa.array([moment for _, moment, _ in rows], pa.timestamp("us", "UTC"))
    return pa.table({"day": days, "x": pa.array([x for _, _, x in rows], pa.float64())})


def is_in(row: Any, window: str, every: Every, zone: str, pattern: str) -> bool:
    """Tell whether a row is in a window, day by day."""
    day, moment, _ = row
    if moment is None or period_label(moment.astimezone(ZoneInfo(zone)).date(), every) != window:
        return False
    days = (dt.date(day.year, 1, 1) + dt.timedelta(days=number) for number in range(366))
    same_name = (other for other in days if name_of(pattern, other) == name_of(pattern, day))
    return any(period_label(other, every) == window for other in same_name)


def test_lines_of_text_are_in_files_of_windows_too(tmp_path: Path, threads: Cluster) -> None:
    (tmp_path / "2013" / "02").mkdir(parents=True)
    (tmp_path / "2013-02-28.csv").write_text("day,x\n2013-02-28,1\n2013-03-01,2\n")
    (tmp_path / "2013-03-01.csv.gz").write_bytes(gzip.compress(b"day,x\n2013-02-28,4\n2013-03-01,8\n"))
    source = {"csv": str(tmp_path), "columns": {"day": "date", "x": "number"}}
    spec = load_spec(
        document(
            source,
            window={"column": "day", "every": "day", "files_by_window": "{yyyy}-{mm}-{dd}.csv*"},
            statistics={"x": poisson("x", "100")},
        )
    )
    for window, expected in (("2013-02-28", [[1, 1]]), ("2013-03-01", [[1, 8]]), ("2013-03-02", [[0, 0]])):
        with closing(sources.pin(spec, window)) as pin:
            check_columns(spec, sources.schema(pin), None)
            found = exact_sums(chunk_job(spec, window), sources.splits(pin), threads).open_totals()
        assert to_python(found)["x"].tolist() == expected


def test_names_of_objects(s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables(s3_url).items():
        monkeypatch.setenv(name, value)
    rows = pa.table({"day": [dt.date(2013, 2, 28), dt.date(2013, 3, 1)], "x": [1.0, 2.0]})
    local = tmp_path / "local"
    for path in (
        "2013/02/28/a.parquet",
        "2013/02/28/07/b.parquet",
        "2013/03/01/a.parquet",
        "2013/02/280/a.parquet",
    ):
        (local / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, local / path)
    pq.write_table(rows, local / "rows-20130228-a.parquet")
    root = upload(tmp_path, local)
    for pattern, expected in {
        "{yyyy}/{mm}/{dd}": ["2013/02/28/a.parquet"],
        "{yyyy}/{mm}/{dd}/*": ["2013/02/28/07/b.parquet", "2013/02/28/a.parquet"],
        "rows-{yyyy}{mm}{dd}*.parquet": ["rows-20130228-a.parquet"],
        "other/{yyyy}": [],
    }.items():
        for place in (root, str(local)):
            spec = windowed(place, pattern, "day")
            with closing(sources.pin(spec, "2013-02-28")) as pin:
                found = [file.address.removeprefix(f"{place}/") for file in pin.private.files.files]
            assert found == expected, (pattern, place)
    spec = windowed(f"{root}-none", "{yyyy}", "day")
    with pytest.raises(UsageError, match="cannot be listed"):
        sources.pin(spec, "2013-02-28")
    contract = proposed_contract(spec, {"day": ColumnFamily.DATE, "x": ColumnFamily.FLOATING})
    with closing(sources.pin(spec, "2013-02-28", contract)) as pin:
        assert sources.splits(pin) == (), "by a contract a prefix without an object is an empty one"

"""A window pushed into a database: exactly its rows, in slices that follow from the calendar alone."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.derived_columns import with_derived
from suffice.pipeline.rows.chunk.encoding import Encoder
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.sources.window_condition import (
    DATE,
    INSTANT,
    MOST_SLICES,
    NAIVE,
    STANDARD,
    window_condition,
)
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.domains import period_label
from support.entries import entry_of
from support.hostile import bernoulli
from support.postgres import connect, execute
from support.postgres_tables import end_all_others

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.spec import Spec

ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Pacific/Apia", "Asia/Kathmandu", "America/Sao_Paulo")
DAY = 86_400_000_000


def spec_of(every: str = "month", zone: str = "UTC", **parts: Any) -> Spec:
    return load_spec(
        {
            "name": "test",
            "dataset": "test",
            "source": {"postgresql": "public.visits"},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "window": {"column": "at", "every": every, "time_zone": zone},
            "statistics": {"flag": bernoulli("flag")},
            **parts,
        }
    )


def days() -> st.SearchStrategy[dt.date]:
    """Days anywhere, and where calendars end, leap, or zones change their clocks."""
    special = (
        "0001-01-01",
        "9999-12-31",
        "2012-02-29",
        "2013-03-10",
        "2013-11-03",
        "2011-12-30",
        "2018-11-04",
    )
    return st.one_of(st.dates(), st.sampled_from([dt.date.fromisoformat(day) for day in special]))


@pytest.mark.slow
@settings(max_examples=60)
@given(
    day=days(),
    every=st.sampled_from(["day", "week", "month", "year"]),
    zone=st.sampled_from(ZONES),
    kind=st.sampled_from([DATE, NAIVE, INSTANT]),
    away=st.lists(st.integers(-3 * DAY, 3 * DAY), max_size=20),
)
def test_each_row_of_a_window_fulfils_one_condition(
    day: dt.date, every: Any, zone: str, kind: pa.DataType, away: list[int]
) -> None:
    spec = spec_of(every, zone)
    try:
        window = period_label(day, spec.window.every)  # type: ignore[union-attr]
        domain = chunk_job(spec, window).window[1]  # type: ignore[index]
    except ValueError:
        return
    conditions = window_condition(spec, window, pa.schema([("at", kind)]), STANDARD)
    assert 1 <= len(conditions) <= MOST_SLICES
    # Values around every bound, and some anywhere near.
    middle = (day - dt.date(1970, 1, 1)).days * DAY
    steps = [-366 * DAY, -31 * DAY, -7 * DAY, -DAY, 0, DAY, 7 * DAY, 28 * DAY, 31 * DAY, 366 * DAY]
    values = {middle + step + more for step in steps for more in (-1, 0, 1, 3_600_000_000, -3_600_000_000)}
    values |= {middle + step for step in away}
    if kind == DATE:
        values = {value // DAY for value in values}
    first, last = (-719_162, 2_932_896)
    unit = 1 if kind == DATE else DAY
    kept = sorted(value for value in values if first * unit <= value < (last + 1) * unit)
    column = pa.array([*kept, None], pa.int32() if kind == DATE else pa.int64()).cast(kind)
    inside = Encoder(domain).codes(column) == 0
    rows = pa.table({"at": column, "row": np.arange(len(column))})
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("rows", rows)
        chosen: list[int] = []
        for condition in conditions:
            query = f"SELECT row FROM rows WHERE {condition}"  # noqa: S608
            chosen += [row for (row,) in connection.execute(query).fetchall()]
    assert sorted(chosen) == np.flatnonzero(inside).tolist()


RULES = (
    *(
        {"parse": "timestamp", "epoch": unit}
        for unit in ("seconds", "milliseconds", "microseconds", "nanoseconds")
    ),
    *({"parse": parse, "epoch": "days"} for parse in ("date", "timestamp")),
    {"parse": "date", "format": "%Y%m%d"},
)
SECONDS = {"days": 86_400, "seconds": 1, "milliseconds": 1e-3, "microseconds": 1e-6, "nanoseconds": 1e-9}


@pytest.mark.slow
@settings(max_examples=60)
@given(
    day=st.one_of(st.dates(dt.date(1700, 1, 1), dt.date(2260, 1, 1)), st.just(dt.date(2013, 3, 10))),
    every=st.sampled_from(["day", "week", "month", "year"]),
    zone=st.sampled_from(ZONES),
    rule=st.sampled_from(RULES),
    away=st.lists(st.integers(-400, 400), max_size=20),
)
def test_integers_that_rise_with_the_time_are_compared(
    day: dt.date, every: Any, zone: str, rule: dict[str, str], away: list[int]
) -> None:
    """All rows of the window fulfil one condition; of counts no other row does, of digits what is no date."""
    spec = spec_of(every, zone, derived={"at": {"column": "raw", **rule}})
    window = period_label(day, spec.window.every)  # type: ignore[union-attr]
    conditions = window_condition(spec, window, pa.schema([("raw", pa.int64())]), STANDARD)
    assert 1 <= len(conditions) <= MOST_SLICES
    if "epoch" in rule:
        unit = Fraction(SECONDS[rule["epoch"]]).limit_denominator(10**9)
        seconds = (day - dt.date(1970, 1, 1)).days * 86_400
        near = [-366, -365, -31, -30, -28, -7, -6, -1, 0, 1, 6, 7, 28, 29, 30, 31, 365, 366, *away]
        hours = [Fraction(86_400 * step + 900 * more) for step in near for more in range(-56, 57, 4)]
        values = {(seconds + hour) // unit + more for hour in hours for more in (-1, 0, 1)}
    else:
        values = {
            10_000 * (day.year + more) + 100 * month + at
            for more in (-1, 0, 1)
            for month in range(14)
            for at in (0, 1, 2, 15, 28, 29, 30, 31, 32, 99)
        }
    column = pa.array([*sorted(values), None], pa.int64())
    job = chunk_job(spec, window)
    (batch,) = with_derived([pa.RecordBatch.from_pydict({"raw": column})], job, ["at"])
    inside = Encoder(job.window[1]).codes(batch.column("at")) == 0  # type: ignore[index]
    chosen: list[int] = []
    with duckdb.connect() as connection:
        connection.register("rows", pa.table({"raw": column, "row": np.arange(len(column))}))
        for condition in conditions:
            query = f"SELECT row FROM rows WHERE {condition}"  # noqa: S608
            chosen += [row for (row,) in connection.execute(query).fetchall()]
    assert len(set(chosen)) == len(chosen)
    assert set(np.flatnonzero(inside)) <= set(chosen)
    if "epoch" in rule:
        assert sorted(chosen) == np.flatnonzero(inside).tolist()


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        ({"parse": "timestamp", "epoch": "seconds"}, pa.string()),
        ({"parse": "timestamp", "epoch": "seconds"}, pa.float64()),
        ({"parse": "timestamp", "epoch": "seconds"}, pa.uint64()),
        ({"parse": "date", "format": "%d%m%Y"}, pa.int64()),
        ({"parse": "date", "format": "%Y%m%d"}, pa.string()),
        ({"parse": "timestamp", "format": "%Y%m%d"}, DATE),
    ],
)
def test_nothing_else_that_a_rule_reads_is_compared(rule: dict[str, str], kind: pa.DataType) -> None:
    spec = spec_of(derived={"at": {"column": "raw", **rule}})
    assert window_condition(spec, "2013-01", pa.schema([("raw", kind)]), STANDARD) == ()


def test_nothing_is_compared_that_needs_a_cast() -> None:
    assert window_condition(spec_of(), "all", pa.schema([("at", DATE)]), STANDARD) == ()
    for kind in (pa.timestamp("ns"), pa.timestamp("s", "UTC"), pa.string(), pa.int64()):
        assert window_condition(spec_of(), "2013-01", pa.schema([("at", kind)]), STANDARD) == ()
    shown = window_condition(spec_of("day"), "2013-01-31", pa.schema([("at", DATE)]), STANDARD)
    assert shown == ("\"at\" >= DATE '2013-01-31' AND \"at\" < DATE '2013-02-01'",)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_a_window_has_no_public_number_of_records(family: str) -> None:
    """It would be counted among the rows that the database sends."""
    case = FAMILIES[family].generative_case
    privacy: dict[str, Any] = {"epsilon": "1", "neighboring": "replace_one"}
    if FAMILIES[family].needs_unit:
        privacy["unit"] = {"column": "who", "max_rows": "3"}
    spec = spec_of(privacy=privacy, statistics={"measured": entry_of(family, dict(case.entry))})
    assert not compile_plan(spec).n_is_public


@pytest.fixture
def visits(source_database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table of a year, with an index on its instants."""
    monkeypatch.setenv("SUFFICE_POSTGRESQL", source_database)
    end_all_others()
    execute(
        source_database,
        "DROP TABLE IF EXISTS public.visits",
        "CREATE TABLE public.visits AS SELECT timestamptz '2013-01-01' + n * interval '5 minutes' AS at,"
        " n % 7 = 0 AS flag FROM generate_series(0, 105119) n",
        "CREATE INDEX ON public.visits (at)",
        "ANALYZE public.visits",
    )
    return source_database


def read_rows(spec: Spec, window: str) -> tuple[list[str], int]:
    """Return the conditions that are asked with, and how many rows the server sent."""
    pin = sources.pin(spec, window)
    splits = sources.splits(pin)
    conditions = [piece.condition for split in splits for piece in split.pieces]
    n_rows = sum(batch.num_rows for split in splits for batch in sources.read(split, ("at", "flag"), 1000))
    sources.close(pin)
    return conditions, n_rows


def test_postgresql_sends_a_window_alone_by_its_index(visits: str) -> None:
    spec = spec_of("day", "America/New_York")
    conditions, n_rows = read_rows(spec, "2013-03-10")
    assert n_rows == 23 * 12  # the day on which clocks go forward
    with connect(visits) as connection:
        for condition in conditions:
            query = f"EXPLAIN SELECT at, flag FROM public.visits WHERE {condition}"  # noqa: S608
            plan = " ".join(line for (line,) in connection.execute(query.encode()).fetchall())
            assert "visits_at_idx" in plan
            assert "Seq Scan" not in plan
    # One row less: the same statements.
    execute(visits, "DELETE FROM public.visits WHERE at = '2013-03-10 12:00+00'")
    assert read_rows(spec, "2013-03-10") == (conditions, n_rows - 1)
    assert read_rows(spec, "2014-01-01")[0][0].startswith("\"at\" >= TIMESTAMPTZ '2014-01-01 05:00:00+00'")


def test_duckdb_sends_a_window_alone(tmp_path: Path) -> None:
    path = tmp_path / "visits.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT DATE '2013-01-01' + CAST(n // 100 AS INTEGER) AS at,"
            " n % 7 = 0 AS flag FROM range(36500) t(n)"
        )
    spec = spec_of(source={"duckdb": str(path), "table": "main.visits"})
    conditions, n_rows = read_rows(spec, "2013-02")
    assert n_rows == 2800
    assert len(conditions) == MOST_SLICES
    assert read_rows(spec, "2020-02")[1] == 0

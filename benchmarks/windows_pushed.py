"""Release one day, and then each day of a year, from tables that hold all of it and from hive folders.

PYTHONPATH=tests python benchmarks/windows_pushed.py [--rows 100000000] [--days 365] [--repetitions 5]

PostgreSQL has an index on the date, and is a server of the tests' unless SUFFICE_TEST_POSTGRES names one.
Every process has a ledger and a store of its own. A day out of a whole table is compared with the same day
out of a table that holds nothing else, start-up and all; a year out of tables with a year out of folders, one
for each day. The processor time of PostgreSQL's server is not in ours.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
from measuring import versions
from whole import run

from support.postgres import connect, execute, running_server

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST = date(2013, 1, 1)
DAY = date(2013, 6, 15)
ONE_DAY, YEAR = 1.5, 2.0
"""The largest ratios that are good enough: of one day's time, and of a year's."""
ORIGINS = ("EWR", "JFK", "LGA")
COLUMNS = {"day": "date", "origin": "text", "cancelled": "boolean", "delay": "double precision"}
ROWS = """
    SELECT (DATE '2013-01-01' + CAST(FLOOR(i * {days}.0 / {rows}) AS integer))::date AS day,
        CASE i % 3 WHEN 0 THEN 'EWR' WHEN 1 THEN 'JFK' ELSE 'LGA' END AS origin,
        (i * 7919) % 10 = 0 AS cancelled,
        CAST((i * 31) % 240 - 60 AS double precision) AS delay
    FROM {series} AS numbers(i)
"""
"""In the order of their days, as a table grows."""
OF_THE_DAY = f"FROM flights WHERE day >= DATE '{DAY}' AND day < DATE '{DAY + timedelta(1)}'"


def main() -> None:
    """Write the rows, release, print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--days", type=int, default=365, help="how many days of the year are backfilled")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    print(f"{options.rows:,} rows of 365 days\n{versions()}\n")
    with tempfile.TemporaryDirectory() as name, running_server() as server:
        root, url = Path(name), server.new_database()
        fill(url, options.rows)
        write_files(root, options.rows)
        os.environ["SUFFICE_POSTGRESQL"] = url
        of_all, of_one = sources(root, "flights"), sources(root, "one_day")
        processes: dict[str, Callable[[Path], list[str]]] = {}
        for kind in of_all:
            for what, source in (("its table", of_one[kind]), ("all", of_all[kind])):
                processes[f"{kind}, {what}"] = lambda directory, source=source: release(directory, source)
        processes["1,000 rows"] = lambda directory: release(directory, {"parquet": str(root / "few.parquet")})
        taken = in_turn(processes, options.repetitions)
        headed(f"one day of {options.rows // 365:,} rows")
        for what, medians in taken.items():
            alone = taken[what.replace(", all", ", its table")][0]
            line(what, medians, verdict(medians[0] / alone, ONE_DAY) if what.endswith(", all") else "")
        last = FIRST + timedelta(days=options.days - 1)
        years = {
            kind: (lambda directory, source=source: backfill(directory, source, last))
            for kind, source in reversed(of_all.items())
        }
        taken = in_turn(years, 0)
        print()
        headed(f"{options.days} days, one after the other")
        for what, medians in taken.items():
            ratio = medians[0] / taken["hive folders"][0]
            line(what, medians, "" if what == "hive folders" else verdict(ratio, YEAR))


def fill(url: str, n_rows: int) -> None:
    """Fill two tables in PostgreSQL: of all rows, with an index on the date, and of one day's."""
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    series = f"generate_series(0::bigint, {n_rows - 1}::bigint)"
    execute(url, f"CREATE UNLOGGED TABLE flights ({columns})")
    execute(url, f"INSERT INTO flights {ROWS.format(days=365, rows=n_rows, series=series)}")
    execute(url, "CREATE INDEX ON flights (day)", "VACUUM ANALYZE flights")
    execute(url, f"CREATE UNLOGGED TABLE one_day AS SELECT * {OF_THE_DAY}")
    execute(url, "CREATE INDEX ON one_day (day)", "VACUUM ANALYZE one_day")
    with connect(url) as connection:
        plan = connection.execute(f"EXPLAIN SELECT * {OF_THE_DAY}".encode()).fetchall()
        sizes = connection.execute(b"SELECT pg_size_pretty(pg_total_relation_size('flights'))").fetchall()
    print(f"PostgreSQL: {sizes[0][0]}; {plan[0][0].strip()}")


def write_files(root: Path, n_rows: int) -> None:
    """Write the same rows into a file of DuckDB, and as Parquet into a folder for each day."""
    series = f"range({n_rows})"
    with duckdb.connect(root / "rows.duckdb") as connection:
        connection.execute(f"CREATE TABLE flights AS {ROWS.format(days=365, rows=n_rows, series=series)}")
        connection.execute(f"CREATE TABLE one_day AS SELECT * {OF_THE_DAY}")
        for table in ("flights", "one_day"):
            how = "FORMAT parquet, PARTITION_BY (day), COMPRESSION zstd"
            connection.execute(f"COPY {table} TO '{root}/{table}' ({how})")
        connection.execute(f"COPY (FROM one_day LIMIT 1000) TO '{root}/few.parquet' (FORMAT parquet)")


def sources(root: Path, table: str) -> dict[str, dict[str, Any]]:
    """Return the sources of a spec that hold a table."""
    return {
        "PostgreSQL": {"postgresql": f"public.{table}"},
        "DuckDB": {"duckdb": str(root / "rows.duckdb"), "table": f"main.{table}"},
        "hive folders": {"parquet": str(root / table), "hive": {"day": "date"}},
    }


def made(workspace: Path, source: dict[str, Any]) -> list[str]:
    """Make a ledger and a spec; return what commands of both have in common."""
    ledger = f"sqlite:///{workspace}/ledger.db"
    where = source.get("parquet") or source.get("duckdb") or f"postgresql:{source['postgresql']}"
    grant = [
        "ledger",
        "grant",
        "benchmark",
        "--epsilon",
        "1",
        "--reason",
        "benchmark",
        "--create",
        "--unwitnessed",
    ]
    of_days = ["--per-window", "day:day", "--source", where]
    command = [sys.executable, "-m", "suffice", *grant, *of_days, "--ledger", ledger]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    spec = {
        "name": "benchmark",
        "dataset": "benchmark",
        "source": source,
        "window": {"column": "day", "every": "day"},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
        "groups": {"origin": list(ORIGINS)},
        "statistics": {
            "cancelled": {"family": "bernoulli", "column": "cancelled"},
            "delay": {"family": "normal", "column": "delay", "lower": "-60", "upper": "180"},
        },
    }
    path = workspace / "spec.json"
    path.write_text(json.dumps(spec))
    return [str(path), "--store", str(workspace / "store"), "--ledger", ledger]


def release(workspace: Path, source: dict[str, Any]) -> list[str]:
    """Return the command that releases one day."""
    return [sys.executable, "-m", "suffice", "release", *made(workspace, source), "--window", str(DAY)]


def backfill(workspace: Path, source: dict[str, Any], last: date) -> list[str]:
    """Return the command that releases all days."""
    days = ["--from", str(FIRST), "--to", str(last)]
    return [sys.executable, "-m", "suffice", "backfill", *made(workspace, source), *days]


def in_turn(
    processes: dict[str, Callable[[Path], list[str]]], repetitions: int
) -> dict[str, tuple[float, float, float]]:
    """Run processes in turn, once to warm up unless they are run but once; return medians."""
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in processes}
    for _ in range(1 + repetitions):
        for name, start in processes.items():
            with tempfile.TemporaryDirectory() as directory:
                taken[name].append(run(start(Path(directory))))
    medians = {}
    for name, runs in taken.items():
        wall, processor, peak = zip(*runs[1 if repetitions else 0 :], strict=True)
        medians[name] = (statistics.median(wall), statistics.median(processor), statistics.median(peak))
    return medians


def headed(title: str) -> None:
    """Print the first line of a table."""
    print(f"{title:32}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}{'ratio':>8}")


def line(what: str, medians: tuple[float, float, float], told: str) -> None:
    """Print a line of a table."""
    print(f"{what:32}{medians[0]:9.2f}{medians[1]:9.2f}{medians[2]:9,.0f}{told}")


def verdict(ratio: float, goal: float) -> str:
    """Return a ratio, and whether it is good enough."""
    return f"{ratio:8.2f}  {'met' if ratio <= goal else 'MISSED'}: {goal:.2f}"


if __name__ == "__main__":
    main()

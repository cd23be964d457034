"""Read the same five columns from Parquet, DuckDB and PostgreSQL in one run: rows per second, and ratios.

python benchmarks/databases.py [ROWS]
"""

from __future__ import annotations

import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
from measuring import Comparison, compare, print_comparison, versions
from workloads import n_threads

from suffice.pipeline.rows import sources
from suffice.pipeline.spec.spec import load_spec

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.postgres import connect, execute, running_server

if TYPE_CHECKING:
    from suffice.pipeline.rows.sources.contract import Split
    from suffice.pipeline.spec.spec import Spec

N_ROWS = 2_000_000
REPETITIONS = 5
BLOCK_ROWS = 1 << 17
GOAL = 2.0
"""Million rows a second, from PostgreSQL."""
QUERY = """
    SELECT i::bigint AS id, (i % 7)::integer AS stops, i * 0.5::double AS delay,
        ((i % 100000) / 100)::decimal(18, 2) AS price, (DATE '2013-01-01' + (i % 365)::integer) AS day
    FROM range({n_rows}) r(i)
"""
COLUMNS = ("id", "stops", "delay", "price", "day")


def spec_of(source: dict[str, str]) -> Spec:
    """Return a spec that reads the five columns."""
    normal = {"family": "normal", "lower": "0", "upper": "100"}
    return load_spec(
        {
            "name": "benchmark",
            "dataset": "benchmark",
            "source": source,
            "window": {"column": "day", "every": "month"},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": "row"},
            "statistics": {name: {**normal, "column": name} for name in COLUMNS[:4]},
        }
    )


def rows_read(spec: Spec) -> int:
    """Pin a source, read all of it with as many threads as there are processors, and count."""
    pin = sources.pin(spec)

    def read(split: Split) -> int:
        return sum(batch.num_rows for batch in sources.read(split, COLUMNS, BLOCK_ROWS))

    with ThreadPoolExecutor(n_threads()) as pool:
        n_rows = sum(pool.map(read, sources.splits(pin)))
    sources.check(pin)
    sources.close(pin)
    return n_rows


def write_files(directory: Path, n_rows: int) -> dict[str, dict[str, Any]]:
    """Write the rows as Parquet, as a DuckDB file and as text for PostgreSQL; return the sources' entries."""
    (directory / "parquet").mkdir()
    with duckdb.connect(directory / "rows.duckdb") as connection:
        connection.execute(f"CREATE TABLE flights AS {QUERY.format(n_rows=n_rows)}")
        connection.execute(f"COPY flights TO '{directory}/parquet/a.parquet' (FORMAT parquet)")
        connection.execute(f"COPY flights TO '{directory}/rows.csv' (FORMAT csv, HEADER false)")
    return {
        "Parquet": {"parquet": str(directory / "parquet")},
        "DuckDB": {"duckdb": str(directory / "rows.duckdb"), "table": "main.flights"},
        "PostgreSQL": {"postgresql": "public.flights"},
    }


def fill(url: str, path: Path) -> None:
    """Fill a table in PostgreSQL from text."""
    types = ("bigint", "integer", "double precision", "numeric(18, 2)", "date")
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(COLUMNS, types, strict=True))
    execute(url, f"CREATE TABLE flights ({columns})")
    with connect(url) as connection, connection.cursor().copy("COPY flights FROM STDIN (FORMAT csv)") as copy:
        copy.write(path.read_bytes())
    execute(url, "VACUUM ANALYZE flights")


def main() -> None:
    """Write, read in turn, print."""
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else N_ROWS
    print(versions())
    with tempfile.TemporaryDirectory() as name, running_server() as server:
        directory, url = Path(name), server.new_database()
        entries = write_files(directory, n_rows)
        fill(url, directory / "rows.csv")
        os.environ["SUFFICE_POSTGRESQL"] = url
        contenders = {kind: partial(rows_read, spec_of(entry)) for kind, entry in entries.items()}
        title = f"five columns of {n_rows:,} rows, read with {n_threads()} threads"
        comparison = Comparison(title=title, contenders=contenders, same_answer=frozenset(contenders))
        times = compare(comparison, REPETITIONS)
    print_comparison(comparison, times)
    for kind, taken in times.items():
        rate = n_rows / min(taken.wall) / 1e6
        met = "" if kind != "PostgreSQL" else f"; goal {GOAL}: {'met' if rate >= GOAL else 'MISSED'}"
        print(f"{kind:12} {rate:6.2f} million rows a second in the best of {REPETITIONS}{met}")


if __name__ == "__main__":
    main()

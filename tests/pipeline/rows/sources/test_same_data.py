"""The same rows in every kind of source give the same totals, bit for bit, whoever writes meanwhile."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable, write_deltalake

from suffice.pipeline.rows import sources
from suffice.pipeline.rows.reduce.tree import open_cluster_for_sums
from suffice.pipeline.rows.sources import SOURCES
from support.buckets import variables
from support.postgres import execute
from support.postgres_tables import TABLE, source_url
from support.same_rows import same_rows
from support.same_totals import SPECS, spec_of, totals
from support.source_makers import MAKERS, VARIANTS, maker_of
from support.table_makers import iceberg_table
from support.timed_tables import change_timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from suffice.pipeline.cluster.connection import Cluster
    from support.same_totals import Totals

N_ROWS = 3000


@pytest.fixture(scope="module", autouse=True)
def environment(s3_url: str, source_database: str) -> Iterator[None]:
    """Say where buckets and databases are, before processes begin that inherit it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**variables(s3_url), "SUFFICE_POSTGRESQL": source_database}.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def threads() -> Iterator[Cluster]:
    with open_cluster_for_sums("threads") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def processes(environment: None) -> Iterator[Cluster]:  # noqa: ARG001 - they inherit it
    with open_cluster_for_sums("local") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def expected(threads: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Totals:
    """Return the totals of local Parquet files."""
    entry = MAKERS["parquet"].write(tmp_path_factory.mktemp("parquet"), same_rows(N_ROWS))
    found = totals(entry, threads)
    for what, sums in found.items():
        assert any(any(map(any, values)) for values in sums.values()), what
    return found


@pytest.fixture
def entry(
    made_as: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> dict[str, Any]:
    """Write the rows as one kind of source, and return its entry in a spec."""
    maker = VARIANTS.get(made_as) or maker_of(made_as)
    for name, value in {**maker.environment, **maker.prepare(request)}.items():
        monkeypatch.setenv(name, value)
    return maker.write(tmp_path, same_rows(N_ROWS))


WAREHOUSES = ("snowflake", "bigquery")
"""Kinds whose stand-in is not in the environment that processes inherit."""


@pytest.mark.slow
@pytest.mark.parametrize("made_as", [kind for kind in (*SOURCES, *VARIANTS) if kind != "parquet"])
def test_totals_are_those_of_the_same_rows_in_parquet(
    entry: dict[str, Any], threads: Cluster, expected: Totals
) -> None:
    assert totals(entry, threads) == expected


@pytest.mark.slow
@pytest.mark.parametrize("made_as", [kind for kind in (*SOURCES, *VARIANTS) if kind not in WAREHOUSES])
def test_processes_find_the_same_totals(entry: dict[str, Any], processes: Cluster, expected: Totals) -> None:
    assert totals(entry, processes) == expected


def _write_to_delta(directory: Path) -> None:
    write_deltalake(directory / "delta", same_rows(10), mode="append")
    DeltaTable(directory / "delta").delete("whole = 1")


def _write_to_iceberg(directory: Path) -> None:
    table = iceberg_table(directory)
    table.append(same_rows(10))
    table.delete("whole == 1")


def _write_to_postgresql(_: Path) -> None:
    moved = f"UPDATE {TABLE} SET flag = NOT flag, whole = 4 WHERE day IS NOT NULL"  # noqa: S608
    execute(source_url(), moved, f"DELETE FROM {TABLE} WHERE whole IS NULL", f"VACUUM {TABLE}")  # noqa: S608


WRITERS: dict[str, Callable[[Path], None]] = {
    "delta": _write_to_delta,
    "iceberg": _write_to_iceberg,
    "postgresql": _write_to_postgresql,
    "snowflake": lambda _: change_timed(),
    "bigquery": lambda _: change_timed(),
}
"""What others commit meanwhile, of each kind that keeps what was pinned."""


@pytest.mark.slow
@pytest.mark.parametrize("made_as", WRITERS)
def test_a_concurrent_writer_changes_nothing(
    made_as: str, entry: dict[str, Any], tmp_path: Path, threads: Cluster, expected: Totals
) -> None:
    committed: list[None] = []

    def once() -> None:
        if not committed:
            WRITERS[made_as](tmp_path)
            committed.append(None)

    found = totals(entry, threads, meanwhile=once)
    first = next(iter(SPECS))
    assert found[first] == expected[first], "pinned before the commit"
    for what in set(SPECS) - {first}:
        assert found[what] != expected[what], "what is pinned later has the commit"


@pytest.mark.slow
@pytest.mark.parametrize("made_as", ["duckdb"])
def test_no_writer_opens_a_duckdb_file_that_is_read(entry: dict[str, Any]) -> None:
    with_unit = spec_of(entry, **SPECS["units"])
    pin = sources.pin(with_unit)
    (split,) = sources.splits(pin)
    batches = sources.read(split, ("whole",), 100)
    n_rows = next(batches).num_rows
    code = f"import duckdb; duckdb.connect({entry['duckdb']!r}).execute('CHECKPOINT')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode
    assert "lock" in done.stderr
    assert n_rows + sum(batch.num_rows for batch in batches) == N_ROWS
    sources.check(pin)

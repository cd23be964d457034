"""How tests make a source of each kind: what `tests/pipeline/sources/test_contract.py` runs over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb
import pyarrow.parquet as pq
import pytest

from support.postgres_tables import change_postgresql, lose_postgresql, write_postgresql
from support.timed_tables import NAMES, PASSWORD_URI, change_timed, lose_timed, start_service, write_timed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class SourceMaker:
    """One kind's ways to make, change and lose a source.

    Parameters
    ----------
    write : callable
        Write a table somewhere in a directory, and return the entry ``source`` of a spec for it; in several
        parts where the kind has them, so that there can be several splits.
    change : callable
        Change the rows of what was written there, so that it is not what was pinned.
    lose : callable
        Take away what was written there.
    absent : callable
        Return an entry that names nothing.
    files : callable
        Return the files that make up what was written there, which an owner lists with their SHA-256; None
        for a kind without files.
    environment : mapping of str to str
        Credentials that the reader finds in its environment; no split, pin or message may hold their values.
    prepare : callable
        Start what the kind needs, and return more of the environment.
    keeps_its_snapshot : bool
        Whether a pin holds what was there: a change shows nowhere. Elsewhere a change is noticed.
    """

    write: Callable[[Path, pa.Table], dict[str, str]]
    change: Callable[[Path], None]
    lose: Callable[[Path], None]
    absent: Callable[[Path], dict[str, str]]
    files: Callable[[Path], list[Path]] | None
    environment: Mapping[str, str]
    prepare: Callable[[pytest.FixtureRequest], Mapping[str, str]] = lambda _: {}
    keeps_its_snapshot: bool = False


def _write_parquet(directory: Path, table: pa.Table) -> dict[str, str]:
    half = table.num_rows // 2
    pq.write_table(table.slice(0, half), directory / "a.parquet", row_group_size=7)
    pq.write_table(table.slice(half), directory / "b.parquet", row_group_size=11)
    return {"parquet": str(directory)}


def _change_parquet(directory: Path) -> None:
    path = directory / "b.parquet"
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)


def _lose_parquet(directory: Path) -> None:
    (directory / "b.parquet").unlink()


def _write_duckdb(directory: Path, table: pa.Table) -> dict[str, str]:
    path = directory / "rows.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(path) as connection:
        connection.register("rows", table)
        connection.execute("CREATE TABLE flights AS SELECT * FROM rows")
    return {"duckdb": str(path), "table": "main.flights"}


def _change_duckdb(directory: Path) -> None:
    with duckdb.connect(directory / "rows.duckdb") as connection:
        connection.execute("DELETE FROM flights WHERE flag")


def _timed_maker(kind: str, environment: Mapping[str, str]) -> SourceMaker:
    return SourceMaker(
        write=lambda _, table: write_timed(kind, table),
        change=lambda _: change_timed(),
        lose=lambda _: lose_timed(),
        absent=lambda _: {kind: NAMES[kind].replace("flights", "nothing")},
        files=None,
        environment=environment,
        prepare=start_service,
        keeps_its_snapshot=True,
    )


MAKERS: dict[str, SourceMaker] = {
    "parquet": SourceMaker(
        write=_write_parquet,
        change=_change_parquet,
        lose=_lose_parquet,
        absent=lambda directory: {"parquet": str(directory / "nothing.parquet")},
        files=lambda directory: [directory / "a.parquet", directory / "b.parquet"],
        environment={},
    ),
    "duckdb": SourceMaker(
        write=_write_duckdb,
        change=_change_duckdb,
        lose=lambda directory: (directory / "rows.duckdb").unlink(),
        absent=lambda directory: {"duckdb": str(directory / "nothing.duckdb"), "table": "main.flights"},
        files=lambda directory: [directory / "rows.duckdb"],
        environment={},
    ),
    "postgresql": SourceMaker(
        write=lambda _, table: write_postgresql(table),
        change=lambda _: change_postgresql(),
        lose=lambda _: lose_postgresql(),
        absent=lambda _: {"postgresql": "public.nothing"},
        files=None,
        environment={},
        prepare=lambda request: {"SUFFICE_POSTGRESQL": request.getfixturevalue("source_database")},
        keeps_its_snapshot=True,
    ),
    "snowflake": _timed_maker("snowflake", {"SUFFICE_SNOWFLAKE": PASSWORD_URI}),
    "bigquery": _timed_maker("bigquery", {}),
}
"""How a source of each kind is made, by its key."""


def maker_of(kind: str) -> SourceMaker:
    """Return a kind's maker; without one the test fails and says what to add."""
    if kind not in MAKERS:
        pytest.fail(
            f"the source {kind!r} has no maker: add one to MAKERS in tests/support/source_makers.py, "
            "so that the contract is tested for it",
            pytrace=False,
        )
    return MAKERS[kind]

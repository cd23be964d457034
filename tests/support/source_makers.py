"""How tests make a source of each kind: what `tests/pipeline/sources/test_contract.py` runs over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.postgres_tables import change_postgresql, lose_postgresql, write_postgresql

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


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

    write: Callable[[Path, pa.Table], dict[str, Any]]
    change: Callable[[Path], None]
    lose: Callable[[Path], None]
    absent: Callable[[Path], dict[str, Any]]
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


def _write_csv(directory: Path, table: pa.Table) -> dict[str, Any]:
    half = table.num_rows // 2
    for name, part in {"a.csv": table.slice(0, half), "b.csv": table.slice(half)}.items():
        lines = [",".join(table.schema.names)]
        lines += [",".join(map(_field, row.values())) for row in part.to_pylist()]
        (directory / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return {"csv": str(directory), "columns": {field.name: _csv_type(field.type) for field in table.schema}}


def _field(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _csv_type(kind: pa.DataType) -> str:
    names = {pa.float64(): "number", pa.bool_(): "boolean", pa.date32(): "date", pa.int64(): "integer"}
    names |= {pa.timestamp("us"): "timestamp", pa.timestamp("us", "UTC"): "timestamp_with_offset"}
    return names.get(kind, "text")


def _change_csv(directory: Path) -> None:
    path = directory / "b.csv"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([lines[0], *lines[2:]]), encoding="utf-8")


MAKERS: dict[str, SourceMaker] = {
    "parquet": SourceMaker(
        write=_write_parquet,
        change=_change_parquet,
        lose=_lose_parquet,
        absent=lambda directory: {"parquet": str(directory / "nothing.parquet")},
        files=lambda directory: [directory / "a.parquet", directory / "b.parquet"],
        environment={},
    ),
    "csv": SourceMaker(
        write=_write_csv,
        change=_change_csv,
        lose=lambda directory: (directory / "b.csv").unlink(),
        absent=lambda directory: {"csv": str(directory / "nothing.csv")},
        files=lambda directory: [directory / "a.csv", directory / "b.csv"],
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

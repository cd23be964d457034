"""How tests make a source of each kind: what `tests/pipeline/rows/sources/test_contract.py` runs over."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from obstore import delete, get, put
from obstore import list as list_objects

from suffice.buckets import connect
from suffice.pipeline.terms.declaration.column_types import NULL_FOLDER
from support.buckets import BUCKET, SECRET, variables
from support.postgres_tables import change_postgresql, lose_postgresql, write_postgresql
from support.table_makers import (
    CATALOG,
    TABLE,
    URI,
    change_file,
    delta_files,
    iceberg_files,
    write_delta,
    write_iceberg,
)
from support.timed_tables import NAMES, PASSWORD_URI, change_timed, lose_timed, start_service, write_timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from obstore.store import ObjectStore


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
        Return the files that make up what was written there, which an owner lists with their SHA-256:
        paths, or what else has an address and ``read_bytes``; None for a kind without files.
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
    files: Callable[[Path], list[Any]] | None
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
    return {"csv": str(directory), "columns": {field.name: csv_type(field.type) for field in table.schema}}


def _field(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def csv_type(kind: pa.DataType) -> str:
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    names = {pa.bool_(): "boolean", pa.date32(): "date", pa.int64(): "integer"}
    names |= {pa.timestamp("us"): "timestamp", pa.timestamp("us", "UTC"): "timestamp_with_offset"}
    return names.get(kind, "text")


def _change_csv(directory: Path) -> None:
    path = directory / "b.csv"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([lines[0], *lines[2:]]), encoding="utf-8")


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
    "csv": SourceMaker(
        write=_write_csv,
        change=_change_csv,
        lose=lambda directory: (directory / "b.csv").unlink(),
        absent=lambda directory: {"csv": str(directory / "nothing.csv")},
        files=lambda directory: [directory / "a.csv", directory / "b.csv"],
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
    "delta": SourceMaker(
        write=write_delta,
        change=lambda directory: change_file(delta_files(directory)[0]),
        lose=lambda directory: delta_files(directory)[0].unlink(),
        absent=lambda directory: {"delta": str(directory / "nothing")},
        files=delta_files,
        environment={},
    ),
    "iceberg": SourceMaker(
        write=write_iceberg,
        change=lambda directory: change_file(iceberg_files(directory)[0]),
        lose=lambda directory: iceberg_files(directory)[0].unlink(),
        absent=lambda _: {"iceberg": f"{TABLE}s", "catalog": CATALOG},
        files=iceberg_files,
        environment={},
        prepare=lambda request: {URI: f"sqlite:///{request.getfixturevalue('tmp_path')}/catalog.db"},
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


HIVE = {"flag": "boolean"}
"""Columns of the contract's rows that stand in folders."""


def _write_folders(directory: Path, table: pa.Table) -> dict[str, Any]:
    root = directory / "hive"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    (root / "_SUCCESS").touch()
    for folder, rows in in_folders(table, tuple(HIVE)):
        (root / folder).mkdir(parents=True)
        pq.write_table(rows, root / folder / "part-0.parquet")
    return {"parquet": str(root), "hive": HIVE}


def in_folders(table: pa.Table, keys: tuple[str, ...]) -> Iterator[tuple[str, pa.Table]]:
    """Divide a table by the values of some columns, which then stand in the names of folders alone."""
    for values in table.select(keys).group_by(list(keys)).aggregate([]).to_pylist():
        rows = table
        for key in keys:
            is_equal = pc.equal(rows[key], pa.scalar(values[key], rows[key].type))
            rows = rows.filter(pc.is_null(rows[key]) if values[key] is None else is_equal)
        yield "/".join(f"{key}={_in_folder(values[key])}" for key in keys), rows.drop_columns(list(keys))


def _in_folder(value: object) -> str:
    return NULL_FOLDER if value is None else str(value).lower()


def _folder_files(directory: Path) -> list[Path]:
    return sorted((directory / "hive").rglob("*.parquet"))


def _change_folder(directory: Path) -> None:
    path = _folder_files(directory)[0]
    pq.write_table(pq.ParquetFile(path).read().slice(1), path)


@dataclass(frozen=True)
class BucketFile:
    """An object, as an owner who lists it sees it."""

    key: str

    def __str__(self) -> str:
        return f"s3://{BUCKET}/{self.key}"

    def read_bytes(self) -> bytes:
        """Return its bytes."""
        return bytes(get(_bucket(), self.key).bytes())


def _bucket() -> ObjectStore:
    return connect(f"s3://{BUCKET}", retries=0)


def _prefix(directory: Path) -> str:
    return f"{str(directory)[1:]}/rows"


def _keys(directory: Path) -> list[str]:
    return sorted(entry["path"] for page in list_objects(_bucket(), _prefix(directory)) for entry in page)


def upload(directory: Path, root: Path) -> str:
    """Put the files of a directory below the prefix that stands for it, in place of what is there."""
    for key in _keys(directory):
        delete(_bucket(), key)
    for path in root.rglob("*"):
        if path.is_file():
            put(_bucket(), f"{_prefix(directory)}/{path.relative_to(root)}", path.read_bytes())
    return f"s3://{BUCKET}/{_prefix(directory)}"


def _write_objects(
    kind: str, write: Callable[[Path, pa.Table], dict[str, Any]], directory: Path, table: pa.Table
) -> dict[str, Any]:
    """Write a source of files, and upload it with the folder that it names."""
    local = directory / "uploaded"
    local.mkdir(exist_ok=True)
    entry = write(local, table)
    return {**entry, kind: upload(directory, Path(entry[kind]))}


def _bucket_files(directory: Path) -> list[BucketFile]:
    return [BucketFile(key) for key in _keys(directory) if key.endswith((".parquet", ".csv"))]


def _change_object(directory: Path) -> None:
    last = _bucket_files(directory)[-1]
    if last.key.endswith(".csv"):
        head, _, *rows = last.read_bytes().splitlines(keepends=True)
        put(_bucket(), last.key, b"".join([head, *rows]))
        return
    table = pq.ParquetFile(pa.BufferReader(last.read_bytes())).read()
    written = pa.BufferOutputStream()
    pq.write_table(table.slice(1), written)
    put(_bucket(), last.key, written.getvalue().to_pybytes())


def _bucket_maker(kind: str, write: Callable[[Path, pa.Table], dict[str, Any]]) -> SourceMaker:
    return SourceMaker(
        write=partial(_write_objects, kind, write),
        change=_change_object,
        lose=lambda directory: delete(_bucket(), _bucket_files(directory)[-1].key),
        absent=lambda directory: {kind: f"s3://{BUCKET}/{_prefix(directory)}/nothing"},
        files=_bucket_files,
        environment={"AWS_SECRET_ACCESS_KEY": SECRET},
        prepare=lambda request: variables(request.getfixturevalue("s3_url")),
    )


VARIANTS: dict[str, SourceMaker] = {
    "parquet in folders": SourceMaker(
        write=_write_folders,
        change=_change_folder,
        lose=lambda directory: _folder_files(directory)[0].unlink(),
        absent=lambda directory: {"parquet": str(directory / "nothing"), "hive": HIVE},
        files=_folder_files,
        environment={},
    ),
    "parquet in s3": _bucket_maker("parquet", _write_parquet),
    "parquet in folders in s3": _bucket_maker("parquet", _write_folders),
    "csv in s3": _bucket_maker("csv", _write_csv),
    "delta in s3": _bucket_maker("delta", write_delta),
}
"""Other ways to make a source of a kind, whose key is the first word."""


def maker_of(kind: str) -> SourceMaker:
    """Return a kind's maker; without one the test fails and says what to add."""
    if kind not in MAKERS:
        pytest.fail(
            f"the source {kind!r} has no maker: add one to MAKERS in tests/support/source_makers.py, "
            "so that the contract is tested for it",
            pytrace=False,
        )
    return MAKERS[kind]

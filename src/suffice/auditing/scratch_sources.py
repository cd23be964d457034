"""Data sets as sources of the kind that a spec names, in a scratch folder or a scratch database.

Rows become tables of the types that pandas, Spark, DuckDB and PostgreSQL write. The scratch account holds the
contract that is stated, or the one that the spec implies.
"""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from suffice.auditing.hostile_rows import WrittenPart
from suffice.auditing.second_reading import day_in_windows
from suffice.pipeline.rows.sources.inspecting import columns_of_texts, proposed_contract
from suffice.pipeline.terms.declaration.column_types import NULL_FOLDER, ColumnFamily, TypeFamily
from suffice.pipeline.terms.declaration.data_contract import SourceForm
from suffice.pipeline.terms.declaration.files_by_window import name_of
from suffice.pipeline.terms.declaration.source_specs import CsvSpec, ParquetSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from suffice.auditing.hostile_rows import DataSet, Row
    from suffice.auditing.implied_columns import ImpliedColumn
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract

    Schema = Mapping[str, ImpliedColumn]

_FAMILIES = {
    TypeFamily.TEXT: ColumnFamily.TEXT,
    TypeFamily.BOOLEAN: ColumnFamily.BOOLEAN,
    TypeFamily.DATE: ColumnFamily.DATE,
}


def implied_contract(spec: Spec, schema: Mapping[str, ImpliedColumn]) -> DataContract:
    """Return the contract that ``suffice inspect`` would propose where the data are what a spec implies."""
    if isinstance(spec.source, CsvSpec):
        return proposed_contract(spec, columns_of_texts(spec, spec.source))
    folders = spec.source.hive if isinstance(spec.source, ParquetSpec) else {}
    columns = {name: _family(column) for name, column in schema.items()}
    columns |= {name: ColumnFamily(str(folder.type)) for name, folder in folders.items()}
    return proposed_contract(spec, columns)


def contract_as_tried(contract: DataContract, spec: Spec) -> DataContract:
    """Return a contract of the kind of source that is tried in place of a spec's."""
    kind, _ = kind_tried(spec)
    if kind == contract.source.kind:
        return contract
    return replace(contract, source=SourceForm(kind=kind, compression="as_stored"))


def _family(column: ImpliedColumn) -> ColumnFamily:
    if column.family is TypeFamily.NUMERIC:
        return ColumnFamily.INTEGER if column.is_whole else ColumnFamily.FLOATING
    if column.family is TypeFamily.TIMESTAMP:
        return ColumnFamily.TIMESTAMP_WITH_ZONE if column.has_zone else ColumnFamily.TIMESTAMP
    return _FAMILIES[column.family]


ALL_NULLS_AS_DOUBLE = "pandas, a column without a value as double"
"""A writer that stores a column without a value as double, whatever it holds elsewhere."""

LEAVES_OUT_EMPTY = "a writer that leaves out a column without a value"

_TYPES = {TypeFamily.TEXT: pa.string(), TypeFamily.BOOLEAN: pa.bool_(), TypeFamily.DATE: pa.date32()}


def arrow_type(column: ImpliedColumn) -> pa.DataType:
    """Return the type of a column in a table that has a schema apart from its rows."""
    if column.family is TypeFamily.NUMERIC:
        return pa.int64() if column.is_whole else pa.float64()
    if column.family is TypeFamily.TIMESTAMP:
        return pa.timestamp("us", "UTC" if column.has_zone else None)
    return _TYPES[column.family]


def table_of(rows: Sequence[Row], schema: Schema, writer: str = "spark") -> pa.Table:
    """Return rows as one writer types them."""
    columns = {
        name: _array([row[name] for row in rows], column, writer)
        for name, column in schema.items()
        if writer != LEAVES_OUT_EMPTY or any(row[name] is not None for row in rows)
    }
    return pa.table(columns) if columns else pa.table({"nothing": pa.nulls(len(rows))})


def _array(values: list[Any], column: ImpliedColumn, writer: str) -> pa.Array:
    has_null = any(value is None for value in values)
    is_empty = has_null and all(value is None for value in values)
    if writer == ALL_NULLS_AS_DOUBLE and is_empty:
        return pa.array(np.full(len(values), np.nan))
    if column.family is TypeFamily.NUMERIC:
        return _numbers(values, column, writer, has_null=has_null)
    if column.family is TypeFamily.TEXT:
        kind = {"pandas": pa.large_string(), "duckdb": pa.dictionary(pa.int32(), pa.string())}
        return pa.array(values, pa.string()).cast(kind.get(writer, pa.string()))
    return pa.array(values, arrow_type(column))


def _numbers(values: list[Any], column: ImpliedColumn, writer: str, *, has_null: bool) -> pa.Array:
    if writer == "single":
        numbers = np.array([np.nan if value is None else value for value in values], np.float64)
        with np.errstate(over="ignore"):
            return pa.array(numbers.astype(np.float32))
    if not column.is_whole:
        return pa.array(values, pa.float64())
    if writer == "postgres":
        return pa.array([None if value is None else Decimal(value) for value in values], pa.decimal128(20, 0))
    if writer.startswith("pandas") and has_null:
        return pa.array(np.array([np.nan if value is None else float(value) for value in values]))
    return pa.array(values, pa.int64())


def stored_rows(part: WrittenPart, schema: Schema) -> list[Row]:
    """Return the rows of a part as a file holds them: ids that doubles cannot hold are rounded."""
    rows = table_of(part.rows, schema, part.writer).to_pylist()
    return [
        {name: int(value) if isinstance(value, Decimal) else value for name, value in row.items()}
        for row in rows
    ]


def write_parquet(table: pa.Table, path: Path, writer: str) -> None:
    """Write a table as one file, as its writer does."""
    settings: dict[str, Any] = {"row_group_size": max(1, table.num_rows // 2)}
    if writer == "spark":
        settings |= {"compression": "snappy", "store_schema": False}
        # Spark writes instants as INT96, and nothing else.
        times = [field.type for field in table.schema if pa.types.is_timestamp(field.type)]
        settings["use_deprecated_int96_timestamps"] = all(kind.tz for kind in times)
    if writer == "duckdb":
        settings |= {"use_dictionary": True, "compression": "zstd"}
    pq.write_table(table, path, **settings)


POSTGRESQL = "SUFFICE_POSTGRESQL"
SCRATCH_POSTGRESQL = "SUFFICE_AUDIT_POSTGRESQL"
"""Names a server on which an audit may make a database of its own, and drop it."""

LOOSE = frozenset({"parquet"})
"""Kinds whose files have types of their own, each."""


def kind_tried(spec: Spec) -> tuple[str, str | None]:
    """Return the kind of source that is tried, and why it is another than the spec's, where it is."""
    kind = spec.source.kind
    if kind in {"snowflake", "bigquery"}:
        return "parquet", f"{kind}: no such warehouse is here; the same rows were read from Parquet files"
    if kind == "postgresql" and not os.environ.get(SCRATCH_POSTGRESQL):
        return "parquet", f"postgresql: {SCRATCH_POSTGRESQL} names no scratch server; Parquet files were read"
    return kind, None


def bucket_not_tried(spec: Spec) -> str | None:
    """Say that files of a bucket are tried in a local folder; None where there is no bucket."""
    if "://" not in spec.source_address or kind_tried(spec)[0] != spec.source.kind:
        return None
    return "the bucket: the same files were read from a local folder"


def write_source(spec: Spec, schema: Schema, data: DataSet, directory: Path) -> Spec:
    """Write a data set below a new directory, and return the spec with that source in place of its own."""
    kind, _ = kind_tried(spec)
    directory.mkdir(parents=True)
    return spec.model_copy(
        update={"source": _WRITERS[kind](spec, schema, data, directory), "directory": directory}
    )


def _parquet(spec: Spec, schema: Schema, data: DataSet, directory: Path) -> Any:
    from suffice.pipeline.terms.declaration.source_specs import ParquetSpec

    hive = getattr(spec.source, "hive", {})
    stored = {column: of for column, of in schema.items() if column not in hive}
    root = directory / "rows"
    root.mkdir()
    for number, part in enumerate(data.parts):
        name = "part-00000-suffice.snappy.parquet" if part.writer == "spark" else "data.parquet"
        for folder, rows in _by_folder(spec, part).items():
            (root / folder).mkdir(parents=True, exist_ok=True)
            write_parquet(
                table_of(rows, stored, part.writer), root / folder / f"{number}-{name}", part.writer
            )
    return ParquetSpec.model_construct(
        parquet=str(root), hive=hive, clustered_by=getattr(spec.source, "clustered_by", None)
    )


def rows_as_stored(spec: Spec, schema: Schema, data: DataSet) -> list[Row]:
    """Return all rows as the files hold them, whose types follow from the rows of each."""
    is_loose = kind_tried(spec)[0] in LOOSE
    files = [
        WrittenPart(writer=part.writer, rows=tuple(rows))
        for part in data.parts
        for rows in (_by_folder(spec, part).values() if is_loose else [part.rows])
    ]
    return [row for file in files for row in stored_rows(file, schema)]


def _by_folder(spec: Spec, part: WrittenPart) -> dict[str, list[Row]]:
    """Return the rows of each folder, by its name; without folders there is one, unless no row is."""
    hive = getattr(spec.source, "hive", {})
    by_folder: dict[str, list[Row]] = {}
    for row in part.rows:
        texts: dict[str, str] = {}
        for column, of in hive.items():
            texts |= _folder_texts(of, row.get(column))
        stated = "/".join(f"{key}={text}" for key, text in texts.items())
        by_folder.setdefault(_named_for_day(spec, row) or stated, []).append(row)
    return by_folder if by_folder or hive else {"": []}


def _named_for_day(spec: Spec, row: Row) -> str | None:
    """Return the folder of a row's day, where names of files say a window."""
    if spec.window is None or spec.window.files_by_window is None:
        return None
    day = day_in_windows(spec, row)
    return "undated" if day is None else name_of(spec.window.files_by_window, day).replace("*", "any")


def _folder_texts(of: Any, value: Any) -> dict[str, str]:
    if of.is_made:
        parts = ("year", "month", "day")[: len(of.keys)]
        return {
            key: NULL_FOLDER if value is None else str(getattr(value, part))
            for key, part in zip(of.keys, parts, strict=True)
        }
    text = NULL_FOLDER if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return {of.keys[0]: quote(text[:80], safe=" ") or NULL_FOLDER}


def _csv(spec: Spec, schema: Schema, data: DataSet, directory: Path) -> Any:
    source: Any = spec.source
    root = directory / "rows"
    root.mkdir()
    names = list(source.header) if source.header else list(schema)
    quotes = source.quote
    for number, part in enumerate(data.parts):
        for folder, rows in _by_folder(spec, part).items():
            lines = [] if source.header else [source.delimiter.join(_quoted(name, quotes) for name in names)]
            for row in rows:
                fields = (_csv_text(row.get(name), source.delimiter, quotes) for name in names)
                lines.append(source.delimiter.join(fields))
            (root / folder).mkdir(parents=True, exist_ok=True)
            text = "".join(f"{line}\n" for line in lines)
            (root / folder / f"{number}.csv").write_text(text, encoding="utf-8")
    return source.model_copy(update={"csv": str(root)})


def _csv_text(value: Any, delimiter: str, quotes: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        if quotes:
            return _quoted(value, quotes)
        return value.replace(delimiter, "")
    if hasattr(value, "isoformat"):
        return str(value.isoformat()).replace("+00:00", "Z")
    return repr(value)


def _quoted(text: str, quotes: str) -> str:
    return quotes + text.replace(quotes, quotes * 2) + quotes if quotes else text


def _delta(spec: Spec, schema: Schema, data: DataSet, directory: Path) -> Any:
    from deltalake import write_deltalake  # an extra

    root = directory / "delta"
    for part in data.parts or (WrittenPart(writer="spark", rows=()),):
        write_deltalake(root, table_of(part.rows, schema), mode="append")
    return spec.source.model_copy(update={"delta": str(root), "version": None})


def _iceberg(spec: Spec, schema: Schema, data: DataSet, directory: Path) -> Any:
    from pyiceberg.catalog import load_catalog  # an extra

    source: Any = spec.source
    uri = f"sqlite:///{directory}/catalog.db"
    prefix = f"PYICEBERG_CATALOG__{source.catalog.upper()}__"
    for name in [name for name in os.environ if name.startswith(prefix)]:
        del os.environ[name]
    os.environ[f"{prefix}URI"] = uri
    catalog = load_catalog(source.catalog, type="sql", uri=uri, warehouse=f"file://{directory}/warehouse")
    catalog.create_namespace_if_not_exists(source.iceberg.rpartition(".")[0])
    table = catalog.create_table(source.iceberg, schema=table_of((), schema).schema)
    for part in data.parts:
        if part.rows:
            table.append(table_of(part.rows, schema))
    return source.model_copy(update={"snapshot": None})


def _duckdb(spec: Spec, schema: Schema, data: DataSet, directory: Path) -> Any:
    import duckdb  # an extra

    source: Any = spec.source
    path = directory / "rows.duckdb"
    name = [_identifier(part) for part in str(source.table).split(".")]
    rows = [row for part in data.parts for row in part.rows]
    with duckdb.connect(path) as connection:
        connection.register("audited", table_of(rows, schema))
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {name[0]}")
        connection.execute(f"CREATE TABLE {'.'.join(name)} AS SELECT * FROM audited")  # noqa: S608 - names of a spec
    return source.model_copy(update={"duckdb": str(path)})


def _identifier(name: str) -> str:
    return '"' + name.strip('"').replace('"', '""') + '"'


def _postgresql(spec: Spec, schema: Schema, data: DataSet, directory: Path) -> Any:  # noqa: ARG001
    from adbc_driver_postgresql import dbapi  # an extra

    source: Any = spec.source
    namespace, name = (part.strip('"') for part in str(source.postgresql).split("."))
    rows = [row for part in data.parts for row in part.rows]
    table = table_of(rows, schema)
    with closing(dbapi.connect(os.environ[POSTGRESQL])) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {_identifier(namespace)}")
        cursor.execute(f"DROP TABLE IF EXISTS {_identifier(namespace)}.{_identifier(name)}")
        connection.commit()
        cursor.adbc_ingest(name, table, mode="create", db_schema_name=namespace)
        connection.commit()
    return source


_WRITERS: dict[str, Callable[[Spec, Schema, DataSet, Path], Any]] = {
    "parquet": _parquet,
    "csv": _csv,
    "delta": _delta,
    "iceberg": _iceberg,
    "duckdb": _duckdb,
    "postgresql": _postgresql,
}


class ScratchDatabase:
    """A database of an audit's own on a server that `SCRATCH_POSTGRESQL` names; dropped at the end."""

    def __init__(self) -> None:
        self._server = os.environ.get(SCRATCH_POSTGRESQL, "")
        self._name = f"suffice_audit_{secrets.token_hex(6)}"

    def __enter__(self) -> Self:
        if self._server:
            self._execute(f"CREATE DATABASE {self._name}")
            base, _, query = self._server.partition("?")
            uri = f"{base.rpartition('/')[0]}/{self._name}"
            os.environ[POSTGRESQL] = f"{uri}?{query}" if query else uri
        return self

    def __exit__(self, *_: object) -> None:
        if self._server:
            self._execute(f"DROP DATABASE {self._name} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        from adbc_driver_postgresql import dbapi  # an extra

        with (
            closing(dbapi.connect(self._server, autocommit=True)) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)


def remove(directory: Path) -> None:
    """Remove what a data set was written to."""
    shutil.rmtree(directory, ignore_errors=True)

"""Tables as bytes of Parquet, CSV and JSON, each with what it comes from.

Parquet files are as plain as those of releases (uncompressed, no dictionaries, pages of version 1), so that
the small readers which read a release in other languages read them too. Beside a CSV file stands its metadata
as CSV on the Web has it: the header line and all rows stay what every program expects.
"""

from __future__ import annotations

import io
import json
import math
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from suffice.data_files.source import Provenance

MARK = "suffice"
"""Stands in files whose format has a place for it: who wrote them."""
SOURCE = "source"
"""The key of a Parquet file's metadata under which its source stands, as JSON."""
METADATA_SUFFIX = "-metadata.json"
"""Of the file beside a CSV file, as CSV on the Web names it."""

_PARQUET = {
    "version": "2.6",
    "data_page_version": "1.0",
    "compression": "none",
    "use_dictionary": False,
    "write_statistics": False,
    "store_schema": False,
}
_RUN = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
"""How a cell begins that spreadsheets take for a formula; the last four are the signs in full width."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_CSVW = "http://www.w3.org/ns/csvw"


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Turn rows into columns."""
    return {column: [row[column] for row in rows] for column in rows[0]}


def table_of(columns: Mapping[str, Any]) -> pa.Table:
    """Return columns as an Arrow table; one whose values are all missing is of text."""
    import pyarrow as pa  # only writing needs it

    table = pa.table(dict(columns))
    for place, column in enumerate(table.columns):
        if pa.types.is_null(column.type):
            table = table.set_column(place, table.field(place).name, column.cast(pa.string()))
    return table


def parquet_bytes(
    table: pa.Table,
    source: Provenance,
    *,
    further: Mapping[str, str] | None = None,
    searched: Sequence[str] = (),
) -> bytes:
    """Return a table as a Parquet file, its source in the metadata.

    Parameters
    ----------
    table : pyarrow.Table
    source : Source
    further : mapping of str to str, optional
        Stated in the metadata besides.
    searched : sequence of str
        Columns whose least and greatest value stand in the footer: readers of many files leave most unread.
    """
    import pyarrow.parquet as pq  # only writing needs it

    settings = {**_PARQUET, "write_statistics": [*searched] or False}
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, **settings) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({MARK: "written by suffice", SOURCE: source.text(), **(further or {})})
    return sink.getvalue()


def parquet_metadata(data: bytes) -> tuple[dict[str, str], int]:
    """Return what the metadata of a Parquet file state, and its rows; nothing where it is no such file."""
    import pyarrow as pa  # only reading needs it
    import pyarrow.parquet as pq

    try:
        read = pq.read_metadata(io.BytesIO(data))
        metadata = {key.decode(): text.decode() for key, text in (read.metadata or {}).items()}
    except (pa.ArrowException, OSError, ValueError):
        return {}, 0
    return metadata, int(read.num_rows)


def csv_bytes(table: pa.Table) -> bytes:
    """Return a table as CSV in UTF-8: one header line, texts quoted, an empty field where there is nothing.

    Texts that a spreadsheet would run as a formula get a ``'`` in front.
    """
    from pyarrow import csv  # only writing needs it

    sink = io.BytesIO()
    csv.write_csv(_inert(table), sink)
    return sink.getvalue()


def csv_metadata(table: pa.Table, source: Provenance, url: str) -> bytes:
    """Return what a CSV file holds, and where it comes from, as CSV on the Web writes it.

    Parameters
    ----------
    table : pyarrow.Table
    source : Source
    url : str
        The name of the CSV file, in the same folder.
    """
    import pyarrow as pa  # only writing needs it

    def datatype(kind: pa.DataType) -> str:
        if pa.types.is_integer(kind):
            return "integer"
        if pa.types.is_boolean(kind):
            return "boolean"
        return "number" if pa.types.is_floating(kind) else "string"

    document = {
        "@context": _CSVW,
        "url": url,
        "dc:title": f"{source.statistic}: {source.what}",
        "dc:source": ", ".join(release.label for release in source.releases),
        "tableSchema": {
            "columns": [
                {"titles": inert_text(field.name), "datatype": datatype(field.type)} for field in table.schema
            ]
        },
        "notes": [{MARK: "written by suffice", "source": source.document()}],
    }
    return _json(document)


def json_bytes(rows: Sequence[Mapping[str, Any]], source: Provenance, **stated: Any) -> bytes:
    """Return rows as one JSON document, with their source."""
    return _json({"source": source.document(), **stated, "rows": list(rows)})


def inert_text(text: str) -> str:
    """Return a text as a spreadsheet shows it, and does not run it."""
    return f"'{text}" if _RUN.match(text) and not _NUMBER.fullmatch(text) else text


def _json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(_finite(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _finite(value: Any) -> Any:
    """Put null where JSON has no number."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _inert(table: pa.Table) -> pa.Table:
    """Put a ``'`` before texts that a spreadsheet would run as a formula; numbers, also as text, stay."""
    import pyarrow as pa  # only writing needs it

    names = [inert_text(name) for name in table.column_names]
    columns = []
    for column in table.columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            distinct = column.dictionary_encode().combine_chunks()
            texts = [None if text is None else inert_text(text) for text in distinct.dictionary.to_pylist()]
            columns.append(pa.array(texts, type=column.type).take(distinct.indices))
        else:
            columns.append(column)
    return pa.table(columns, names=names)

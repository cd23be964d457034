"""Hostile data files: Parquet that is none of the format, which its manifest states rightly."""

# ruff: noqa: E501 - cases stand in tables, a line each

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from scripts.vectors.damage import Hostile, nullable_field, parquet_bytes, with_file

if TYPE_CHECKING:
    from scripts.vectors.releases import MadeRelease


def hostile_files(made: MadeRelease, saturated: MadeRelease) -> list[Hostile]:
    """Return data files that are no files of the format; size and SHA-256 in the manifest are theirs."""
    data = made.files["cancelled.parquet"]
    table = pq.read_table(io.BytesIO(data))
    required = pa.schema([nullable_field(field, nullable=False) for field in table.schema])
    table = table.cast(required)
    n_rows = table.num_rows

    def column(name: str, values: pa.Array) -> pa.Table:
        position = table.schema.get_field_index(name)
        return table.set_column(position, pa.field(name, values.type, nullable=False), values)

    values = table["value"].to_pylist()
    plus_one = pa.array([values[0] + 1, *values[1:]], pa.int64())
    nullable = table.cast(pa.schema([nullable_field(field, nullable=True) for field in table.schema]))
    footer = int.from_bytes(data[-8:-4], "little")
    end = len(data) - 8 - footer
    again = data[end:]
    cases: dict[str, tuple[str, bytes]] = {
        "compressed": ("its pages are compressed", parquet_bytes(table, compression="snappy")),
        "compressed-zstd": ("its pages are compressed by zstd", parquet_bytes(table, compression="zstd")),
        "dictionary": ("its values stand in a dictionary", parquet_bytes(table, use_dictionary=True)),
        "delta": (
            "its integers are differences",
            parquet_bytes(table, column_encoding={"value": "DELTA_BINARY_PACKED"}),
        ),
        "split-bytes": (
            "the bytes of its numbers are split",
            parquet_bytes(table, column_encoding={"estimate": "BYTE_STREAM_SPLIT"}),
        ),
        "pages-2": ("its pages are of version 2", parquet_bytes(table, data_page_version="2.0")),
        "page-checksums": ("its pages have checksums", parquet_bytes(table, write_page_checksum=True)),
        "statistics": ("its columns have statistics", parquet_bytes(table, write_statistics=True)),
        "row-groups": ("its rows stand in two row groups", parquet_bytes(table, row_group_size=n_rows // 2)),
        "nullable": ("its columns may hold nulls", parquet_bytes(nullable)),
        "schema-embedded": ("it holds an Arrow schema", parquet_bytes(table, store_schema=True)),
        "int32": ("its values have 32 bits", parquet_bytes(column("value", table["value"].cast(pa.int32())))),
        "columns-swapped": ("two columns changed places", parquet_bytes(table.select([0, 2, 1, 3]))),
        "column-more": (
            "it has a column more",
            parquet_bytes(
                table.append_column(pa.field("exact", pa.int64(), nullable=False), table["value"])
            ),
        ),
        "column-renamed": (
            "a column has another name",
            parquet_bytes(table.rename_columns(["origin", "component", "count", "estimate"])),
        ),
        "column-less": ("it has no estimates", parquet_bytes(table.select([0, 1, 2]))),
        "row-more": ("its last row stands twice", parquet_bytes(pa.concat_tables([table, table.slice(n_rows - 1)]))),
        "row-less": ("its last row is missing", parquet_bytes(table.slice(0, n_rows - 1))),
        "rows-swapped": ("its rows are in reverse order", parquet_bytes(table.take(list(range(n_rows))[::-1]))),
        "key": (
            "a key that the plan lacks",
            parquet_bytes(column("origin", pa.array(["SFO", *table["origin"].to_pylist()[1:]]))),
        ),
        "component": (
            "components in another order",
            parquet_bytes(column("component", pa.array(["true", "false"] * (n_rows // 2)))),
        ),
        "estimate": ("an estimate does not follow from its value", parquet_bytes(column("value", plus_one))),
        "trailing": ("four bytes follow its end", data + b"PAR1"),
        "two-footers": ("a second footer follows the first", data + again),
        "bytes-between": ("bytes of no column stand before the footer", data[:end] + bytes(16) + again),
        "footer-too-long": (
            "its footer claims 2 GiB",
            data[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1",
        ),
        "magic": ("it does not begin as Parquet does", b"PARE" + data[4:]),
        "cut-off": ("its second half is missing", data[: len(data) // 2]),
        "empty": ("it is empty", b""),
    }  # fmt: skip
    hostile = [
        Hostile(
            name=f"parquet-{key}",
            reason=reason,
            check="data file" if changed else "files",
            files=with_file(made, "cancelled", changed),
        )
        for key, (reason, changed) in cases.items()
    ]
    wide = saturated.files["delay.parquet"]
    lowest = (1 - 10**38).to_bytes(16, "big", signed=True)
    beyond = wide.replace(lowest, (-(10**38)).to_bytes(16, "big", signed=True), 1)
    hostile.append(
        Hostile(
            name="parquet-beyond-38-digits",
            reason="a value has 39 digits: it lies beyond the end of its type",
            check="data file",
            files=with_file(saturated, "delay", beyond),
        )
    )
    return hostile

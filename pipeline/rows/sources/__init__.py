"""Where rows come from: one kind of source per file, behind one contract. A trusted room.

In: a spec, and what it names.
Out: a pin, its schema, its splits, and their rows in Arrow batches: the functions below are the way in.
May import: spec and below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.late_mapping import LateMapping
from suffice.pipeline.spec.windows_and_amendments import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping, Sequence

    import pyarrow as pa

    from suffice.pipeline.rows.sources.contract import PartSchema, Pin, Source, Split
    from suffice.pipeline.rows.sources.given_rows import GivenRows
    from suffice.pipeline.rows.sources.row_groups_by_pages import PageReader
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract

SOURCES: MutableMapping[str, Source] = LateMapping(
    {
        "parquet": f"{__name__}.parquet",
        "csv": f"{__name__}.csv_files",
        "delta": f"{__name__}.delta",
        "iceberg": f"{__name__}.iceberg",
        "postgresql": f"{__name__}.postgresql",
        "duckdb": f"{__name__}.duckdb_tables",
        "snowflake": f"{__name__}.snowflake:SOURCE",
        "bigquery": f"{__name__}.bigquery:SOURCE",
    }
)
"""Every kind of source that can be read, by the key that declares it in a spec; each loads when looked up."""
_UNDECLARED: MutableMapping[str, Source] = LateMapping(
    {"generated": f"{__name__}.generated", "data": f"{__name__}.given_rows"}
)
"""Rows that no spec can name."""


def pin(
    spec: Spec,
    window: str = ALL,
    contract: DataContract | None = None,
    given: GivenRows | None = None,
) -> Pin:
    """Take a consistent snapshot of what a window of a spec's source needs; see `contract.Source.pin`.

    Of a spec without a source the rows are those that were given.
    """
    if given is not None:
        from suffice.pipeline.rows.sources.given_rows import pin_given  # of a Python program

        return pin_given(spec, given, contract)
    return _reader(spec.source.kind).pin(spec, window, contract)


def row_count(pin: Pin, splits: Sequence[Split]) -> int:
    """Return how many rows a snapshot has; asked for only where their number is public.

    Parameters
    ----------
    pin : Pin
        The snapshot.
    splits : sequence of Split
        What it was divided into.

    Raises
    ------
    StageFailedError
        Where they have to be counted, and cannot.
    """
    return pin.count_rows() if pin.count_rows else sum(split.n_rows for split in splits)


def schema(pin: Pin) -> tuple[PartSchema, ...]:
    """Return the columns of every part of a snapshot; see `contract.Source.schema`."""
    return _reader(pin.kind).schema(pin)


def splits(pin: Pin) -> tuple[Split, ...]:
    """Divide a snapshot into tasks; see `contract.Source.splits`."""
    return _reader(pin.kind).splits(pin)


def read(
    split: Split, columns: Sequence[str], block_rows: int, pages: PageReader | None = None
) -> Iterator[pa.RecordBatch]:
    """Read columns of a split in blocks; see `contract.Source.read`.

    Where there is a reader of pages, it reads of Parquet files what it can, in blocks of its own kind.
    """
    if pages is not None:
        from suffice.pipeline.rows.sources.parquet_files import RowGroups, read_files  # of this kind alone

        if all(isinstance(piece, RowGroups) for piece in split.pieces):
            return read_files(split, columns, block_rows, pages)
    return _reader(split.kind).read(split, columns, block_rows)


def verify(pin: Pin, checksums: str) -> None:
    """Check a snapshot against an owner's list of SHA-256; see `contract.Source.verify`."""
    _reader(pin.kind).verify(pin, checksums)


def check(pin: Pin) -> None:
    """Check that a source still is what was pinned; see `contract.Source.check`."""
    _reader(pin.kind).check(pin)


def close(pin: Pin) -> None:
    """Let go of what a snapshot holds at its source, such as a connection; a second time does nothing."""
    pin.close()


def _reader(kind: str) -> Source:
    return _UNDECLARED[kind] if kind in _UNDECLARED else SOURCES[kind]

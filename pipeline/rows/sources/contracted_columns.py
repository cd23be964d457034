"""The columns of files as the contract of their account has them, by a total rule.

A column that a file lacks, has twice, or holds in a type of which no value reads as the contract's family is
null in it. Where that is the unit's column, the file has no rows: nobody can tell whose they are, and one row
alone, made a unit of its own, would let a person enter any number of times. For the same reason a row enters
nothing whose unit is there and does not read.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from suffice.arrays import null_scalar, number_array
from suffice.pipeline.rows.sources.column_values import (
    ARROW_TYPES,
    NUMERIC,
    as_family,
    as_numbers,
    converter,
    decimal_is_readable,
    has_nanoseconds,
    stored_family,
)
from suffice.pipeline.rows.sources.contract import Kept, PartSchema, exact_data, spec_columns
from suffice.pipeline.rows.sources.file_access import SMALL_BYTES, PinnedFile, opened
from suffice.pipeline.rows.sources.joined_batches import FEW_ROWS
from suffice.pipeline.rows.sources.times_of_96_bits import (
    WALL_TIMES,
    ColumnNamesError,
    as_wall_times,
    is_of_96_bits,
    parquet_file,
    stored_columns,
)
from suffice.pipeline.spec.plan import measures
from suffice.pipeline.terms.declaration.column_types import ColumnFamily
from suffice.pipeline.terms.statistics.measure import orders_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract


@exact_data(travels=True)
class FileColumns:
    """How the columns of a file become those of its source.

    Parameters
    ----------
    renamed : tuple of (str, str)
        The source's name of a column and the file's, where they differ.
    constants : tuple of (str, pyarrow.Scalar)
        Columns that the file does not hold, and their one value: of a partition, or null.
    dropped : tuple of str
        The file's names of columns that are not the source's.
    read_as : tuple of (str, ColumnFamily)
        Columns that the file holds in another type than the contract's, and what they are read as.
    as_numbers : tuple of str
        Columns that are read as float64.
    wall_times : tuple of str
        Columns of times of 96 bits that by the contract are no instants.
    unit : str or None
        The column of the units, where there is a contract: rows enter nothing whose unit does not read.
    has_rows : bool
        False where the file lacks the unit's column, so that its rows enter nothing.
    """

    renamed: tuple[tuple[str, str], ...] = ()
    constants: tuple[tuple[str, pa.Scalar], ...] = ()
    dropped: tuple[str, ...] = ()
    read_as: tuple[tuple[str, ColumnFamily], ...] = ()
    as_numbers: tuple[str, ...] = ()
    wall_times: tuple[str, ...] = ()
    unit: str | None = None
    has_rows: bool = True

    def lacks(self, name: str) -> bool:
        """Tell whether a column is one that the file does not hold, and has no value."""
        constants = dict(self.constants)
        return name in constants and not constants[name].is_valid

    def of(self, stored: pa.Schema) -> FileColumns | None:  # noqa: ARG002 - of a table's files it matters
        """Return the same, given the file's own columns."""
        return self

    def stored(self, columns: Iterable[str]) -> list[str]:
        """Return what the file calls those of these columns that it holds."""
        absent = {name for name, _ in self.constants}
        renamed = dict(self.renamed)
        return [renamed.get(name, name) for name in columns if name not in absent]

    def schema(self, stored: pa.Schema) -> pa.Schema:
        """Return the source's columns, given the file's."""
        if not self.renamed and not self.constants:
            return stored
        names = {file_name: name for name, file_name in self.renamed}
        fields = [
            field.with_name(names.get(field.name, field.name))
            for field in stored
            if field.name not in self.dropped
        ]
        return pa.schema([*fields, *(pa.field(name, value.type) for name, value in self.constants)])

    def batch(self, stored: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        """Return these columns of a batch of the file's rows; fewer rows where units do not read."""
        if not (self.renamed or self.constants or self.read_as or self.as_numbers or self.wall_times):
            return stored
        renamed, constants, read_as = dict(self.renamed), dict(self.constants), dict(self.read_as)
        arrays = {
            name: _repeated(constants[name], stored.num_rows)
            if name in constants
            else stored.column(renamed.get(name, name))
            for name in columns
        }
        arrays |= {name: as_wall_times(arrays[name]) for name in columns if name in self.wall_times}
        read = {name: as_family(arrays[name], read_as[name]) for name in columns if name in read_as}
        read |= {name: as_numbers(arrays[name]) for name in columns if name in self.as_numbers}
        batch = pa.RecordBatch.from_arrays([read.get(name, arrays[name]) for name in columns], list(columns))
        if self.unit not in read_as or self.unit not in arrays:
            return batch
        # proof: typed-files
        return batch.filter(pc.or_(_is_missing(arrays[self.unit]), pc.is_valid(read[self.unit])))


AS_STORED = FileColumns()
"""A file that holds all columns of its source under their names."""


def _is_missing(column: pa.Array) -> pa.Array:
    """Return where there is no value: null, or NaN, as writers make of nulls."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return pc.is_null(column, nan_is_null=True)


def _repeated(value: pa.Scalar, n_rows: int) -> pa.Array:
    """Return a column of one value: a dictionary of one entry, so that it is looked up once."""
    if not value.is_valid:
        return pa.nulls(n_rows, value.type)
    return pa.DictionaryArray.from_arrays(number_array(np.zeros(n_rows, np.int32)), pa.repeat(value, 1))


class ColumnsOf(Protocol):
    """What knows how the columns of a file become its source's: exact data that travel."""

    def of(self, stored: pa.Schema) -> FileColumns | None:
        """Return how they do; None where the file does not tell."""


@exact_data(travels=True)
class RowGroup:
    """What division into tasks needs of one row group.

    Parameters
    ----------
    n_rows : int
        Physical rows in it.
    dictionaries : tuple of str
        Text columns that are worth reading as dictionaries, by the file's names: stored as such.
    """

    n_rows: int
    dictionaries: tuple[str, ...]


@exact_data(travels=True)
class Footer:
    """What the footer of one file says.

    Parameters
    ----------
    schema : pyarrow.Schema
        The source's columns.
    row_groups : tuple of RowGroup
        In their order.
    columns : FileColumns
        How the file's columns become the source's.
    metadata : Kept
        The footer itself, which holds the least and the largest value of columns: it never travels. Small
        files are read whole, with their footers.
    absent : tuple of str
        Columns that other files of the source hold and this one does not: they are null in it.
    """

    schema: pa.Schema
    row_groups: tuple[RowGroup, ...]
    columns: FileColumns
    metadata: Kept
    absent: tuple[str, ...] = ()

    def lacking(self, names: Sequence[str]) -> Footer:
        """Return the same, with columns that the file does not hold, null in all its rows."""
        constants = tuple((name, null_scalar(pa.null())) for name in names)
        fields = [pa.field(name, pa.null()) for name in names]
        return Footer(
            schema=pa.schema([*self.schema, *fields]),
            row_groups=self.row_groups,
            columns=FileColumns(
                renamed=self.columns.renamed,
                constants=(*self.columns.constants, *constants),
                dropped=self.columns.dropped,
            ),
            metadata=self.metadata,
            absent=tuple(names),
        )


class Unreadable(StrEnum):
    """Why a file is refused, as messages say it."""

    NO_PARQUET = "cannot be read as a Parquet file"
    NO_TEXT = "has a column whose name is no UTF-8, as names of columns in Parquet have to be"


def read_footers(
    files: Sequence[tuple[PinnedFile, ColumnsOf, tuple[str, ...]]],
) -> list[Footer | Unreadable]:
    """Read the footers of some files, or say why one cannot be read.

    Parameters
    ----------
    files : sequence of (PinnedFile, ColumnsOf, tuple of str)
        The files, how their columns become the source's, and the source's columns that the spec reads.
    """
    return [_read_footer(*each) for each in files]


def _read_footer(file: PinnedFile, columns_of: ColumnsOf, columns: Iterable[str]) -> Footer | Unreadable:
    try:
        with opened(file) as stream, parquet_file(stream) as parquet:
            metadata, schema = parquet.metadata, stored_columns(parquet)
    except (pa.ArrowException, OSError) as error:
        if isinstance(columns_of, ContractedColumns) and _is_open_to(file):
            return _NO_ROWS
        return Unreadable.NO_TEXT if isinstance(error, ColumnNamesError) else Unreadable.NO_PARQUET
    file_columns = columns_of.of(schema)
    if file_columns is None:
        return Unreadable.NO_PARQUET
    paths = {metadata.schema.column(index).path: index for index in range(metadata.num_columns)}
    wanted = {name: paths[name] for name in file_columns.stored(columns) if name in paths}
    types = {name: metadata.schema.column(index).physical_type for name, index in wanted.items()}
    groups = []
    for number in range(metadata.num_row_groups if file_columns.has_rows else 0):
        group = metadata.row_group(number)
        chunks = {name: group.column(index) for name, index in wanted.items()}
        # Arrow looks at this in the first row group that a task reads, and nowhere else.
        if any(chunk.physical_type != types[name] for name, chunk in chunks.items()):
            return _NO_ROWS if isinstance(columns_of, ContractedColumns) else Unreadable.NO_PARQUET
        dictionaries = [name for name, chunk in chunks.items() if _is_dictionary(chunk, metadata.num_rows)]
        groups.append(RowGroup(n_rows=group.num_rows, dictionaries=tuple(dictionaries)))
    return Footer(
        schema=file_columns.schema(schema.remove_metadata()),
        row_groups=tuple(groups),
        columns=file_columns,
        metadata=Kept() if file.size <= SMALL_BYTES else Kept(metadata),
    )


def _is_open_to(file: PinnedFile) -> bool:
    """Tell whether a file's bytes can be had: by a contract, what is no Parquet file then has no rows."""
    try:
        with opened(file) as stream:
            stream.read(1)
    except OSError:
        return False
    return True


_NO_ROWS = Footer(schema=pa.schema([]), row_groups=(), columns=AS_STORED, metadata=Kept())


_MOST_TEXT_BYTES = 1 << 26
"""Of a column of a file of few rows, where each is as long as all that is stored: no text is longer."""


def _is_dictionary(chunk: pq.ColumnChunkMetaData, n_rows: int) -> bool:
    """Tell whether a text column is stored as a dictionary throughout, and in a file of so many rows read so.

    Stored plainly each text takes its length, 4 bytes, and more. Reading such a column as a dictionary
    would gather all its values in memory. A small file is read without, unless its texts may be long.
    """
    return bool(
        chunk.physical_type == "BYTE_ARRAY"
        and chunk.has_dictionary_page
        and chunk.total_uncompressed_size < 4 * chunk.num_values
        and (n_rows > FEW_ROWS or n_rows * chunk.total_uncompressed_size > _MOST_TEXT_BYTES)
    )


@exact_data(travels=True)
class ContractedColumns:
    """How the columns of a file become those of its contract: known when the file's own are.

    Parameters
    ----------
    inner : ColumnsOf
        How they become the source's: by folders, or by a table's log.
    families : tuple of (str, ColumnFamily)
        What the contract says of the columns that the spec reads.
    unit : str or None
        The column whose values are the units.
    orders : tuple of str
        Columns that order the rows of a unit: of decimals and integers both are then float64, as decimals
        have the place of the nearest.
    """

    inner: ColumnsOf
    families: tuple[tuple[str, ColumnFamily], ...]
    unit: str | None = None
    orders: tuple[str, ...] = ()

    def of(self, stored: pa.Schema) -> FileColumns | None:
        """Return how the columns of a file become the contract's; None where a table's file tells no ids."""
        inner = self.inner.of(stored)
        if inner is None:
            return None
        seen = inner.schema(stored)
        constants, is_folder = dict(inner.constants), isinstance(self.inner, FileColumns)
        read_as, as_numbers, wall_times, has_rows = [], [], [], True
        for name, family in self.families:
            if name in constants:
                # A table's log states nulls; a folder that states no unit may be anybody's.
                has_rows &= name != self.unit or constants[name].is_valid or not is_folder
                continue
            positions = seen.get_all_field_indices(name)
            kind = seen.field(positions[0]).type if len(positions) == 1 else None
            if kind is not None and family in WALL_TIMES and is_of_96_bits(seen.field(positions[0])):
                wall_times.append(name)
                kind = ARROW_TYPES[ColumnFamily.TIMESTAMP]
            if (
                kind is None
                or converter(_values_of(kind), family) is None
                or (name == self.unit and pa.types.is_decimal(kind) and not decimal_is_readable(kind))
            ):
                constants[name] = null_scalar(ARROW_TYPES[family])
                has_rows &= name != self.unit
            elif not _is_of(kind, family) or (name == self.unit and has_nanoseconds(_values_of(kind))):
                read_as.append((name, family))
            elif name in self.orders and name != self.unit and _places_differ(kind, family):
                as_numbers.append(name)
        return FileColumns(
            renamed=inner.renamed,
            constants=tuple(constants.items()),
            dropped=inner.dropped,
            read_as=tuple(read_as),
            as_numbers=tuple(as_numbers),
            wall_times=tuple(wall_times),
            unit=self.unit,
            has_rows=has_rows,
        )


def contracted(inner: ColumnsOf, spec: Spec, contract: DataContract) -> ContractedColumns:
    """Return how a file's columns become those that a spec reads, by a contract that the spec fits."""
    return ContractedColumns(
        inner=inner,
        families=tuple((name, contract.columns[name]) for name in spec_columns(spec)),
        unit=contract.unit_column,
        orders=orders_of(measures(spec).values()),
    )


def contract_schema(spec: Spec, contract: DataContract, part: str) -> PartSchema:
    """Return the columns that a spec reads as its contract has them, whatever files hold."""
    return PartSchema(
        part=part,
        columns=pa.schema([(name, ARROW_TYPES[contract.columns[name]]) for name in spec_columns(spec)]),
    )


def _values_of(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_of(kind: pa.DataType, family: ColumnFamily) -> bool:
    stored = stored_family(kind)
    return pa.types.is_null(_values_of(kind)) or stored is family or (stored in NUMERIC and family in NUMERIC)


def _places_differ(kind: pa.DataType, family: ColumnFamily) -> bool:
    """Tell whether a number could have another place in an order than the family's have."""
    return ColumnFamily.DECIMAL in {stored_family(kind), family} and stored_family(kind) is not family

"""How the columns of a file become those of its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.arrays import number_array
from suffice.pipeline.rows.sources.exact_data import exact_data
from suffice.pipeline.rows.sources.family_values import as_family, as_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suffice.pipeline.terms.declaration.column_types import ColumnFamily


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
        if not (self.renamed or self.constants or self.read_as or self.as_numbers):
            return stored
        renamed, constants, read_as = dict(self.renamed), dict(self.constants), dict(self.read_as)
        arrays = {
            name: _repeated(constants[name], stored.num_rows)
            if name in constants
            else stored.column(renamed.get(name, name))
            for name in columns
        }
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

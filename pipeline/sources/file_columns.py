"""How the columns of a file become those of its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from suffice.arrays import number_array
from suffice.pipeline.sources.exact_data import exact_data

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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
    """

    renamed: tuple[tuple[str, str], ...] = ()
    constants: tuple[tuple[str, pa.Scalar], ...] = ()
    dropped: tuple[str, ...] = ()

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
        """Return these columns of a batch of the file's rows."""
        if not self.renamed and not self.constants:
            return stored
        renamed, constants = dict(self.renamed), dict(self.constants)
        arrays = [
            _repeated(constants[name], stored.num_rows)
            if name in constants
            else stored.column(renamed.get(name, name))
            for name in columns
        ]
        return pa.RecordBatch.from_arrays(arrays, list(columns))


AS_STORED = FileColumns()
"""A file that holds all columns of its source under their names."""


def _repeated(value: pa.Scalar, n_rows: int) -> pa.Array:
    """Return a column of one value: a dictionary of one entry, so that it is looked up once."""
    if not value.is_valid:
        return pa.nulls(n_rows, value.type)
    return pa.DictionaryArray.from_arrays(number_array(np.zeros(n_rows, np.int32)), pa.repeat(value, 1))

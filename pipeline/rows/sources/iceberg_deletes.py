"""What delete files of an Iceberg table delete: rows by their place in a file, or by values of columns.

Which delete files apply to a data file follows from sequence numbers and partitions alone, as the table
format has it. Lists of places are read when files are pinned, for the data files that a window needs. Lists
of values are read by whoever reads rows.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from suffice.arrays import text_array
from suffice.errors import UsageError
from suffice.pipeline.rows.sources.contract import exact_data
from suffice.pipeline.rows.sources.contracted_columns import FileColumns
from suffice.pipeline.rows.sources.file_access import PinnedFile, opened, status
from suffice.pipeline.rows.sources.table_files import TableColumns
from suffice.pipeline.rows.sources.times_of_96_bits import parquet_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.rows.sources.table_files import TableColumn

_BATCH_ROWS = 1 << 16
_COMPARED = (
    pa.types.is_integer,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_decimal,
)


@exact_data(travels=False)
class Places:
    """Rows of a data file that lists of places delete; see `deletion_vectors.Deletes`.

    Parameters
    ----------
    listed : tuple of arrays
        Places from 0 on, in any order, perhaps twice.
    """

    listed: tuple[NDArray[np.int64], ...]

    def kept(self, n_rows: int) -> NDArray[np.bool_]:
        """Return which of a file's rows the table still has, shape (n_rows,)."""
        kept = np.ones(n_rows, np.bool_)
        for places in self.listed:
            if places.size and not 0 <= int(places.min()) <= int(places.max()) < n_rows:
                message = "a delete file names rows that its data file does not have"
                raise ValueError(message)
            kept[places] = False
        return kept


@exact_data(travels=True)
class DeletedValues:
    """A delete file of values: rows are deleted that have those of one of its rows, null being equal to null.

    Parameters
    ----------
    file : PinnedFile
        The delete file.
    names : tuple of str
        The table's columns that are compared.
    columns : TableColumns
        How columns of files become the table's.
    """

    file: PinnedFile
    names: tuple[str, ...]
    columns: TableColumns


@exact_data(travels=True)
class ValuesOfFile:
    """The delete files of values that apply to one data file; see `parquet_files.RowDeletes`.

    Parameters
    ----------
    lists : tuple of DeletedValues
        The delete files.
    columns : TableColumns
        How the data file's columns become the table's.
    """

    lists: tuple[DeletedValues, ...]
    columns: TableColumns

    def opened(self, stored: pa.Schema) -> ValueFilter:
        """Read the delete files, and return what they leave of the data file's rows."""
        return ValueFilter(self, stored)


class ValueFilter:
    """What delete files of values leave of a data file's rows.

    Parameters
    ----------
    of : ValuesOfFile
    stored : pyarrow.Schema
        The data file's columns.

    Raises
    ------
    OSError, ValueError, pyarrow.ArrowException
        Where a delete file cannot be read, or lacks a column that it compares.
    """

    def __init__(self, of: ValuesOfFile, stored: pa.Schema) -> None:
        names = dict.fromkeys(name for each in of.lists for name in each.names)
        self._columns = _without_rest(of.columns, names).of(stored) or FileColumns()
        self._names = tuple(names)
        self._lists = [_ValueList(each) for each in of.lists]

    @property
    def stored(self) -> list[str]:
        """The file's columns that are compared."""
        return self._columns.stored(self._names)

    def kept(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Return which rows of a batch of the file the table still has, shape (n_rows,)."""
        constants = self._columns.constants
        renamed = dict(self._columns.renamed)
        arrays = {
            name: batch.column(renamed.get(name, name)) for name in self._names if name not in dict(constants)
        }
        arrays |= {name: pa.repeat(value, batch.num_rows) for name, value in constants if name in self._names}
        kept = np.ones(batch.num_rows, np.bool_)
        for of in self._lists:
            kept &= ~of.holds(arrays)
        return kept


def _without_rest(columns: TableColumns, names: Iterable[str]) -> TableColumns:
    return TableColumns(
        columns=tuple(column for column in columns.columns if column.name in set(names)),
        partition=columns.partition,
        stored_ids=columns.stored_ids,
    )


class _ValueList:
    """The distinct values of one delete file, as a code for each of its rows."""

    def __init__(self, of: DeletedValues) -> None:
        if status(of.file.address) != of.file:
            message = "the delete file is another"
            raise ValueError(message)
        columns = _without_rest(of.columns, of.names)
        self._types = {column.name: column.type for column in columns.columns}
        with opened(of.file) as stream, parquet_file(stream) as stored:
            held = TableColumns(columns=columns.columns, stored_ids=columns.stored_ids).of(
                stored.schema_arrow
            )
            if held is None or any(name in of.names for name, _ in held.constants):
                message = "the delete file lacks a column"
                raise ValueError(message)
            table = stored.read(held.stored(of.names)).combine_chunks()
        columns_read = [table.column(name).combine_chunks() for name in table.schema.names]
        rows = held.batch(pa.RecordBatch.from_arrays(columns_read, table.schema.names), of.names)
        self._sets: dict[str, pa.Array] = {}
        self._steps: list[NDArray[np.int64]] = []
        codes = np.zeros(rows.num_rows, np.int64)
        for name in of.names:
            column = _plain(rows.column(name), self._types[name])
            self._sets[name] = column.unique()
            pairs = codes * (len(self._sets[name]) + 1) + self._indices(name, column)
            self._steps.append(np.unique(pairs))
            codes = np.searchsorted(self._steps[-1], pairs)

    def _indices(self, name: str, column: pa.Array) -> NDArray[np.int64]:
        """Return a column's places among a delete file's values, their number where it is none of them."""
        places = pc.index_in(column, value_set=self._sets[name], skip_nulls=False)
        positions: NDArray[np.int64] = (
            pc.fill_null(places, len(self._sets[name])).to_numpy(zero_copy_only=False).astype(np.int64)
        )
        return positions

    def holds(self, arrays: Mapping[str, pa.Array]) -> NDArray[np.bool_]:
        """Tell of each row whether all its values stand together in a row of the delete file."""
        n_rows = len(next(iter(arrays.values())))
        held, codes = np.ones(n_rows, np.bool_), np.zeros(n_rows, np.int64)
        for (name, values), step in zip(self._sets.items(), self._steps, strict=True):
            indices = self._indices(name, _plain(arrays[name], self._types[name]))
            pairs = codes * (len(values) + 1) + indices
            codes = np.minimum(np.searchsorted(step, pairs), max(len(step) - 1, 0))
            held &= (indices < len(values)) & (step[codes] == pairs if len(step) else False)
        return held


def _plain(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(kind)


@exact_data(travels=False)
class _Entry:
    """A delete file of a snapshot, with its place in the table's history."""

    file: Any
    sequence: int


class DeleteFiles:
    """The delete files of a snapshot, and which of them apply to which data file.

    Parameters
    ----------
    refuse : callable
        Raises an error of a rule.
    is_unpartitioned : callable
        Tells of a partition spec's id whether it has no fields: what it deletes, it deletes everywhere.
    address_of : callable
        Returns the address of a location.
    """

    def __init__(
        self,
        refuse: Callable[[str], Exception],
        is_unpartitioned: Callable[[int], bool],
        address_of: Callable[[str], str],
    ) -> None:
        self._refuse = refuse
        self._is_unpartitioned = is_unpartitioned
        self._address_of = address_of
        self._places: dict[Any, list[_Entry]] = defaultdict(list)
        self._values: dict[Any, list[_Entry]] = defaultdict(list)
        self._everywhere: list[_Entry] = []

    def add(self, file: Any, sequence: int, *, is_of_values: bool) -> None:
        """Note a delete file."""
        entry = _Entry(file=file, sequence=sequence)
        if not is_of_values:
            self._places[_partition(file)].append(entry)
        elif self._is_unpartitioned(file.spec_id):
            self._everywhere.append(entry)
        else:
            self._values[_partition(file)].append(entry)

    def of_values(self, file: Any, sequence: int) -> list[Any]:
        """Return the delete files of values that apply to a data file, older than they are."""
        entries = [*self._values.get(_partition(file), ()), *self._everywhere]
        return [entry.file for entry in entries if entry.sequence > sequence]

    def places(self, data: Sequence[tuple[Any, int]]) -> dict[str, tuple[Places, tuple[PinnedFile, ...]]]:
        """Return what lists of places delete of data files, by their locations, and the files that say so.

        Parameters
        ----------
        data : sequence of (data file, int)
            The data files that are read, with their sequence numbers. A list is read once for all of them.
        """
        by_partition: dict[Any, dict[str, int]] = defaultdict(dict)
        for file, sequence in data:
            by_partition[_partition(file)][file.file_path] = sequence
        listed: dict[str, list[NDArray[np.int64]]] = defaultdict(list)
        by: dict[str, list[PinnedFile]] = defaultdict(list)
        for partition, files in by_partition.items():
            for entry in self._places.get(partition, ()):
                wanted = [path for path, sequence in files.items() if sequence <= entry.sequence]
                if not wanted:
                    continue
                pinned = self.pinned(entry.file)
                for path, places in _listed_places(pinned, wanted):
                    listed[path].append(places)
                for path in wanted:
                    by[path].append(pinned)
        return {path: (Places(listed=tuple(listed[path])), tuple(by[path])) for path in by}

    def pinned(self, file: Any) -> PinnedFile:
        """Return a delete file as it is now.

        Raises
        ------
        UsageError
            Where it is of another format than Parquet.
        """
        kind = file.file_format.value.upper()
        if kind != "PARQUET":
            vectors = kind == "PUFFIN"
            rule = "deletion vectors of format 3" if vectors else f"delete files of the format {kind}"
            raise self._refuse(f"has {rule}, which are not read: rewrite its data files")
        return status(self._address_of(file.file_path))

    def compared(self, file: Any, columns: Sequence[TableColumn]) -> tuple[str, ...]:
        """Return the columns that a delete file of values compares.

        Raises
        ------
        UsageError
            Where one is no column of the table, or of a type that is not compared.
        """
        by_id = {column.field_id: column for column in columns}
        of_file = [by_id.get(field_id) for field_id in file.equality_ids or ()]
        names = tuple(
            column.name
            for column in of_file
            if column is not None and any(test(column.type) for test in _COMPARED)
        )
        if not names or len(names) < len(of_file):
            raise self._refuse(
                "has delete files of values of columns that are not compared: those of integers, decimals, "
                "texts, truth values, dates and timestamps of the schema are"
            )
        return names


def _partition(file: Any) -> tuple[int, Any]:
    return file.spec_id, file.partition


def _listed_places(file: PinnedFile, wanted: Sequence[str]) -> Iterable[tuple[str, NDArray[np.int64]]]:
    """Give the places that a delete file lists of data files, by their locations."""
    paths = text_array(list(wanted))
    with opened(file) as stream, pq.ParquetFile(stream) as stored:
        if not {"file_path", "pos"} <= set(stored.schema_arrow.names):
            message = "a delete file lacks a column"
            raise ValueError(message)
        for batch in stored.iter_batches(_BATCH_ROWS, columns=["file_path", "pos"]):
            names, places = batch.column("file_path").cast(pa.string()), batch.column("pos").cast(pa.int64())
            of = pc.index_in(names, value_set=paths)
            if places.null_count:
                message = "a delete file names rows by null"
                raise ValueError(message)
            numbers = pc.fill_null(of, -1).to_numpy(zero_copy_only=False)
            values = places.to_numpy(zero_copy_only=False)
            for number in np.unique(numbers[numbers >= 0]).tolist():
                yield wanted[number], values[numbers == number]


def unreadable(place: str) -> UsageError:
    """Return the error of a delete file that cannot be read."""
    return UsageError(
        f"{place}: a delete file is gone, damaged, or deletes rows that its data file does not have: name a "
        "later snapshot, or none, and keep files as long as releases need them"
    )

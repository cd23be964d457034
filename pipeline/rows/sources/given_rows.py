"""Rows that a caller hands over in memory: a data frame, an Arrow table, or columns by name.

They are read once, into Arrow columns in this process, and stay there: no file, no worker and no graph of
tasks gets them. Their identity is a SHA-256 of what the spec reads of them, as `digest` has it, in whatever
library, chunks or widths they came. It is exact data: it is compared, and neither shown nor stored.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.errors import InputNotVerifiedError, SchemaError, StageFailedError, UsageError
from suffice.pipeline.rows.sources.checksums import read_checksums
from suffice.pipeline.rows.sources.column_values import comparable, fixed_width
from suffice.pipeline.rows.sources.contract import (
    Kept,
    PartSchema,
    Pin,
    Split,
    exact_data,
    name_alone,
    refuse,
    spec_columns,
    split_rows,
)
from suffice.pipeline.rows.sources.contracted_columns import (
    AS_STORED,
    FileColumns,
    contract_schema,
    contracted,
)
from suffice.pipeline.rows.sources.given_columns import (
    columns_of,
    converted,
    each_as_text,
    is_text,
    kind_of,
    require_rows,
)
from suffice.pipeline.spec.spec import require_source
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.declaration.source_specs import GivenSpec
from suffice.pipeline.terms.declaration.wording import shortened_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.column_types import ColumnFamily
    from suffice.pipeline.terms.declaration.data_contract import DataContract

KIND = GivenSpec.kind
PART = "data"
"""What messages call the rows."""

_HASHED_ROWS = 1 << 20
"""Rows that are hashed at a time, however they are chunked."""


class GivenRows:
    """What a caller gave, until it is read, and then its columns; it prints its name and is never copied.

    Parameters
    ----------
    data : object
        What `of` takes.
    columns : tuple of str
        All that will be asked for: a stream can be read only once.
    """

    __slots__ = ("_data", "_digest", "_table", "_unreadable", "columns")

    def __init__(self, data: Any, columns: tuple[str, ...]) -> None:
        self._data: Any = data
        self._table: pa.Table | None = None
        self._unreadable: dict[str, NDArray[np.bool_]] = {}
        self._digest = ""
        self.columns = columns

    __repr__ = name_alone
    __reduce_ex__ = refuse

    def table(self, families: Mapping[str, ColumnFamily]) -> pa.Table:
        """Return the columns that will be asked for, as often as each is there, and null ones for others.

        Parameters
        ----------
        families : mapping of str to ColumnFamily
            What the account's contract says of columns; empty without one. By it a column that has no type
            is read value by value.

        Raises
        ------
        SchemaError
            Without a contract, where a column has no type that is read: by name and rule.
        UsageError
            Where what was given holds no columns.
        """
        if self._table is None:
            names, column = columns_of(self._data, self.columns)
            arrays = [
                self._column(name, column(position), families) if name in self.columns else None
                for position, name in enumerate(names)
            ]
            lengths = {len(array) for array in arrays if array is not None}
            if len(lengths) > 1:
                message = "data: its columns have different lengths"
                raise UsageError(message)
            n_rows = lengths.pop() if lengths else 0
            kept = [pa.chunked_array([pa.nulls(n_rows)]) if each is None else each for each in arrays]
            self._table = pa.Table.from_arrays(kept, names=list(names))
            self._data = None
        return self._table

    def unreadable(self, column: str) -> NDArray[np.bool_] | None:
        """Return where a column without a type holds what no contract reads; None where it has a type."""
        return self._unreadable.get(column)

    def digest(self) -> str:
        """Return the SHA-256 of the canonical bytes, in hex: of the columns that are there and asked for.

        Their order is that of `columns`. A header of canonical JSON names them with their canonical types and
        the number of rows. Then come blocks of 2**20 rows, and in each, column by column, a bit for every
        value that is there, and the values, zero where there is none: integers in 64 bits, texts as their
        lengths and UTF-8, dates as days, NaN as a null.
        """
        if self._table is None:
            message = "the rows were not read yet"
            raise ValueError(message)
        return self._digest or self.digest_now()

    def digest_now(self) -> str:
        """Return the digest of the rows as they are now: whoever gave them may write into their memory."""
        table = self._table
        assert table is not None  # noqa: S101 - `table` was called
        at = [position for name in self.columns for position in table.schema.get_all_field_indices(name)]
        kinds = [_canonical_type(table.schema.field(position).type) for position in at]
        header = {
            "columns": [[table.schema.names[each], str(kind)] for each, kind in zip(at, kinds, strict=True)],
            "format_version": 1,
            "rows": table.num_rows,
        }
        hashed = hashlib.sha256(canonical_json.encode(header))
        for start in range(0, table.num_rows, _HASHED_ROWS):
            for position, kind in zip(at, kinds, strict=True):
                for part in _canonical(table.column(position).slice(start, _HASHED_ROWS), kind):
                    hashed.update(part)
        self._digest = self._digest or hashed.hexdigest()
        return hashed.hexdigest()

    def _column(self, name: str, values: Any, families: Mapping[str, ColumnFamily]) -> pa.ChunkedArray:
        """Return one column; the error of a library, whose text may quote a value, goes no further."""
        is_known, array = converted(values)
        if not is_known:
            if name not in families:
                message = (
                    f"data: the column {shortened_name(name)!r} is {kind_of(values)}, and its values are "
                    "not all numbers, all texts, all truth values, all dates or all times: convert it "
                    "first, as with .astype(...)"
                )
                raise SchemaError(message)
            array, self._unreadable[name] = each_as_text(values, families[name])
        return array


def of(data: Any, columns: tuple[str, ...]) -> GivenRows:
    """Take rows in memory, without reading them.

    Parameters
    ----------
    data : object
        A data frame of pandas or Polars, a pyarrow Table, RecordBatch or RecordBatchReader, anything else
        that has ``__arrow_c_stream__``, or a mapping of column names to arrays or lists.
    columns : tuple of str
        What will be asked for.

    Raises
    ------
    UsageError
        Where it is none of these; it says what to give.
    """
    require_rows(data)
    return GivenRows(data, columns)


def _canonical_type(kind: pa.DataType) -> pa.DataType:  # noqa: PLR0911 - one for each kind of type
    """Return the one type in which values of a type are hashed."""
    types = pa.types
    if types.is_dictionary(kind):
        return _canonical_type(kind.value_type)
    if is_text(kind):
        return pa.large_string()
    if types.is_integer(kind) and not types.is_uint64(kind):
        return pa.int64()
    if types.is_date(kind):
        return pa.date32()
    if types.is_timestamp(kind):
        return pa.timestamp(kind.unit, None if kind.tz is None else "UTC")
    if types.is_decimal32(kind) or types.is_decimal64(kind):
        return pa.decimal128(38, kind.scale)
    is_plain = types.is_boolean(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return kind if is_plain or types.is_uint64(kind) else pa.null()


def _canonical(column: pa.ChunkedArray, kind: pa.DataType) -> Iterator[bytes | memoryview]:
    """Give the canonical bytes of a block of one column: which values are there, and they."""
    if pa.types.is_null(kind):
        return
    chunks = [
        part.dictionary_decode() if pa.types.is_dictionary(part.type) else part for part in column.chunks
    ]
    array = comparable(pa.concat_arrays(chunks))
    if pa.types.is_timestamp(kind) or pa.types.is_boolean(kind):
        array = array.cast(pa.int64() if pa.types.is_timestamp(kind) else pa.uint8())
    elif array.type != kind:
        array = array.cast(kind, safe=False)
    is_there = pc.is_valid(array)
    if pa.types.is_floating(kind):
        is_there = pc.and_(is_there, pc.invert(pc.fill_null(pc.is_nan(array), fill_value=True)))
    there = fixed_width(is_there.cast(pa.uint8())).view(np.bool_)
    yield np.packbits(there, bitorder="little").tobytes()
    if pa.types.is_large_string(kind):
        filled = pc.fill_null(array, "")
        offsets = np.frombuffer(filled.buffers()[1], np.int64, len(filled) + 1, 8 * filled.offset)
        yield np.diff(offsets).tobytes()
        yield filled.buffers()[2][int(offsets[0]) : int(offsets[-1])] if filled.buffers()[2] else b""
        return
    width = array.type.bit_width // 8
    data = array.buffers()[1]
    raw = np.frombuffer(data, np.uint8, len(array) * width, array.offset * width).reshape(-1, width)
    yield raw.tobytes() if there.all() else (raw * there[:, np.newaxis]).tobytes()


@exact_data(travels=False)
class _Slice:
    """Consecutive rows, which stay in this process.

    Parameters
    ----------
    rows : Kept
        The table of them.
    columns : FileColumns
        How its columns become the source's.
    n_rows : int
    """

    rows: Kept
    columns: FileColumns
    n_rows: int


@exact_data(travels=False)
class _Pinned:
    """The private part of a pin: the rows, what they are read as, and what they were when they were read."""

    given: GivenRows
    table: pa.Table
    columns: FileColumns
    contracted: PartSchema | None
    digest: str
    n_columns: int


def pin_given(spec: Spec, given: GivenRows, contract: DataContract | None = None) -> Pin:
    """Read the rows that were given, and keep what they are.

    Parameters
    ----------
    spec : Spec
        It names no source.
    given : GivenRows
    contract : DataContract, optional
        What the rows are read as, by a total rule.

    Raises
    ------
    SchemaError, UsageError
        As `GivenRows.table`.
    """
    names = spec_columns(spec)
    table = given.table({} if contract is None else contract.columns)
    digest = given.digest()
    if contract is None:
        columns, schema = AS_STORED, None
    else:
        read = contracted(AS_STORED, spec, contract).of(table.schema)
        assert read is not None  # noqa: S101 - files of a table alone may not tell
        columns, schema = read, contract_schema(spec, contract, PART)
        unreadable = None if contract.unit_column is None else given.unreadable(contract.unit_column)
        if unreadable is not None:  # a unit that is there and does not read is nobody's
            table = table.filter(pa.array(~unreadable))
    return Pin(
        kind=KIND,
        public={"kind": KIND, "address": spec.source_address},
        private=_Pinned(
            given=given,
            table=table,
            columns=columns,
            contracted=schema,
            digest=digest,
            n_columns=len(names),
        ),
    )


def pin(spec: Spec, window: str = ALL, contract: DataContract | None = None) -> Pin:  # noqa: ARG001 - a kind's
    """Refuse a spec that names no source, where no rows were given either.

    Raises
    ------
    UsageError
        It says both ways out.
    """
    require_source(spec)
    message = "the rows of a spec without a source are pinned as they are given"
    raise UsageError(message)


def schema(pin: Pin) -> tuple[PartSchema, ...]:
    """Return the columns; as the contract has them, where there is one."""
    pinned: _Pinned = pin.private
    return (pinned.contracted or PartSchema(part=PART, columns=pinned.table.schema),)


def splits(pin: Pin) -> tuple[Split, ...]:
    """Return slices of the rows, each a task."""
    pinned: _Pinned = pin.private
    table = pinned.table
    if not pinned.columns.has_rows:
        return ()
    step = split_rows(table.num_rows, max(1, pinned.n_columns))
    return tuple(
        Split.of(KIND, [_Slice(rows=Kept(part), columns=pinned.columns, n_rows=part.num_rows)])
        for part in (table.slice(start, step) for start in range(0, table.num_rows, step))
    )


def read(split: Split, columns: Sequence[str], block_rows: int) -> Iterator[pa.RecordBatch]:
    """Read columns of a split in blocks."""
    for piece in split.pieces:
        stored = piece.rows.value.select(piece.columns.stored(columns))
        for batch in stored.to_batches(max_chunksize=block_rows):
            yield piece.columns.batch(batch, columns)


def verify(pin: Pin, checksums: str) -> None:
    """Look for the digest of the rows in an owner's list: a line of it names them ``data:``.

    Raises
    ------
    InputNotVerifiedError
        Where it is not there, or there is no list.
    """
    try:
        listed = read_checksums(checksums)
    except UsageError:  # its text is for the owner
        listed = {}
    if pin.private.digest not in listed.values():
        message = (
            "data: the input is not what the account's owner listed: the list of checksums has another "
            "SHA-256, or cannot be read; give the same rows, or ask the owner"
        )
        raise InputNotVerifiedError(message)


def check(pin: Pin) -> None:
    """Hash the rows again: whoever gave them may have written into their memory meanwhile.

    Raises
    ------
    StageFailedError
        Where they are others.
    """
    pinned: _Pinned = pin.private
    if pinned.given.digest_now() != pinned.digest:
        message = "the data have changed since the release began"
        raise StageFailedError("reading", message)

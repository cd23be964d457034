"""CSV files that a path, a directory or a pattern names: each line is a record.

A file whose name ends in ``.gz``, ``.zst`` or ``.bz2`` is decompressed as it is read, by one task.

Nothing but reading tells how many lines a file has, so `splits` reads all of it once, and counts; the rows
are read a second time, by the workers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from suffice.errors import StageFailedError, UsageError
from suffice.pipeline.cluster.workers import by_threads, goes_on
from suffice.pipeline.rows.sources import delimited_lines, file_access, window_files
from suffice.pipeline.rows.sources.checksums import require_listed
from suffice.pipeline.rows.sources.column_values import TEXT_TYPES, read_texts
from suffice.pipeline.rows.sources.contract import (
    PartSchema,
    Pin,
    Split,
    exact_data,
    spec_columns,
    split_rows,
)
from suffice.pipeline.rows.sources.contracted_columns import contract_schema
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.source_specs import CsvSpec, CsvType, is_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract

KIND = CsvSpec.kind

RANGE_BYTES = 1 << 22
"""Bytes of a file, about, that are never divided further."""
COUNT_BYTES = 1 << 20
"""Bytes whose lines are counted at a time."""

_PLACE = f"source.{KIND}"
_COUNTERS = 4
_HEAD_BYTES = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CHANGED = "has changed since it was pinned"
_LOST = "cannot be read: it is gone, or access to it was lost"


@exact_data(travels=True)
class CsvFile:
    """A pinned file and what its columns are.

    Parameters
    ----------
    file : PinnedFile
        The file.
    names : tuple of (str or None)
        Its columns, in order. Names that the spec does not hold are not kept: where a file lacks the line of
        names, they are values.
    types : tuple of (str, CsvType)
        What texts of some columns are read as.
    delimiter, quote : str
        The signs that divide its lines.
    start : int
        Where the first record begins, in bytes.
    unit : str or None
        The column of the units: a row whose text there does not read enters nothing.
    """

    file: file_access.PinnedFile
    names: tuple[str | None, ...]
    types: tuple[tuple[str, CsvType], ...]
    delimiter: str
    quote: str
    start: int
    unit: str | None

    @property
    def names_the_unit(self) -> bool:
        """Whether the unit's column is there, once."""
        return self.unit is None or self.names.count(self.unit) == 1

    @property
    def form(self) -> delimited_lines.LineFormat:
        """How its lines are divided."""
        return delimited_lines.LineFormat(
            delimiter=self.delimiter, quote=self.quote, n_fields=len(self.names)
        )


@exact_data(travels=True)
class Lines:
    """Whole lines of a file, one after the other.

    Parameters
    ----------
    csv : CsvFile
        The file.
    start, stop : int
        Where the first begins and the last ends, in bytes.
    n_rows : int
        How many there are.
    """

    csv: CsvFile
    start: int
    stop: int
    n_rows: int


@exact_data(travels=False)
class PinnedCsv:
    """The private part of a pin.

    Parameters
    ----------
    files : tuple of CsvFile
        In the order of their paths.
    without_rows : tuple of PinnedFile
        Files that are there, and by the contract have no rows.
    names : tuple of str or None
        What files of the window are called, where names say so.
    n_columns : int
        Columns that the spec reads.
    contracted : PartSchema or None
        They as a contract has them.
    """

    files: tuple[CsvFile, ...]
    without_rows: tuple[file_access.PinnedFile, ...]
    names: tuple[str, ...] | None
    n_columns: int
    contracted: PartSchema | None


def pin(spec: Spec, window: str = ALL, contract: DataContract | None = None) -> Pin:
    """List the spec's files and pin them. Reads the first line of each.

    Parameters
    ----------
    spec : Spec
        Its ``source.csv`` is a file, a directory (its ``*.csv``, compressed or not, none below it) or a
        pattern.
    window : str
        The window that will be read, or ``all``: files whose names say another one are left out.
    contract : DataContract, optional
        By one, a file without a line of names, or without the unit's column, has no rows, and a column that
        a file lacks is null in it.

    Raises
    ------
    UsageError
        Where no file is there, two names are the same file, one cannot be read, or its first line is needed
        and names no columns.
    """
    source = spec.source
    if not isinstance(source, CsvSpec):
        message = f"{_PLACE}: the source is of another kind"
        raise TypeError(message)
    address = spec.source_address
    columns = spec_columns(spec)
    known = frozenset({*columns, *source.columns, *(source.header or ())})
    unit = spec.stored_unit
    files, without_rows = [], []
    is_plain = _is_plain(contract)
    names = spec.window.file_names(window) if spec.window else None
    for path in _listed(address, names, may_be_empty=contract is not None, is_plain=is_plain):
        csv = _pinned(path, source, known, unit, contract)
        if csv is None and contract is None:
            message = (
                f"{_PLACE}: the first line of {path} does not name columns: write such a line, or name the "
                "columns in source.header"
            )
            raise UsageError(message)
        if csv is not None and (contract is None or csv.names_the_unit):
            files.append(csv)
        else:
            without_rows.append(_status(path))
    return Pin(
        kind=KIND,
        public={"kind": KIND, "address": address},
        private=PinnedCsv(
            files=tuple(files),
            without_rows=tuple(without_rows),
            names=names,
            n_columns=len(columns),
            contracted=None if contract is None else contract_schema(spec, contract, address),
        ),
    )


def column_names(spec: Spec) -> tuple[str, ...]:
    """Return the columns of the first file, as its first line or ``source.header`` names them.

    Raises
    ------
    UsageError
        Where there is no file, it cannot be read, or its first line names no columns.
    """
    source = spec.source
    if not isinstance(source, CsvSpec):
        message = f"{_PLACE}: the source is of another kind"
        raise TypeError(message)
    if source.header is not None:
        return source.header
    names_of_files = spec.window.file_names(ALL) if spec.window else None
    listed = _listed(spec.source_address, names_of_files, may_be_empty=False, is_plain=False)
    if not listed:
        message = f"{_PLACE}: no CSV file of a window at {spec.source_address}"
        raise UsageError(message)
    first = listed[0]
    try:
        with file_access.opened_text(_status(first)) as content:
            names, _ = _names(_head(content), source)
    except OSError:
        names = None
    if names is None:
        message = f"{_PLACE}: {first} cannot be read, or its first line does not name columns"
        raise UsageError(message)
    return tuple(name for name in names if name)


def schema(pin: Pin) -> tuple[PartSchema, ...]:
    """Return those columns of every file that the spec names: text, unless it says what they are read as.

    As the contract has them, where there is one.
    """
    pinned: PinnedCsv = pin.private
    if pinned.contracted is not None:
        return (pinned.contracted,)
    return tuple(PartSchema(part=csv.file.address, columns=_columns(csv)) for csv in pinned.files)


def splits(pin: Pin) -> tuple[Split, ...]:
    """Count the lines, and divide the files into tasks at ends of lines.

    Raises
    ------
    StageFailedError
        Where a file cannot be read, or is not the pinned one.
    """
    pinned: PinnedCsv = pin.private
    ranges = [lines for of_file in by_threads(_count, pinned.files, _COUNTERS) for lines in of_file]
    enough = split_rows(sum(lines.n_rows for lines in ranges), pinned.n_columns)
    return tuple(_batches(ranges, enough))


def read(split: Split, columns: Sequence[str], block_rows: int) -> Iterator[pa.RecordBatch]:
    """Read columns of a split in blocks of at most `block_rows` rows.

    Raises
    ------
    StageFailedError
        Where a file cannot be read, or is not the pinned one.
    """
    for piece in split.pieces:
        yield from _read_lines(piece, columns, block_rows)


def verify(pin: Pin, checksums: str) -> None:
    """Hash every file, and compare with the owner's list.

    Raises
    ------
    InputNotVerifiedError
        Where a file is not in the list or has another SHA-256, one in the list is gone, or there is no list.
    """
    pinned: PinnedCsv = pin.private
    address = pin.public["address"]
    is_reached = partial(file_access.reaches, address, kind=KIND)
    if pinned.names is not None:
        is_reached = partial(window_files.is_of_window, address, pinned.names, kind=KIND)
    require_listed(
        [file.address for file in _pinned_files(pin)],
        checksums,
        check=partial(check, pin),
        place=_PLACE,
        address=address,
        is_reached=is_reached,
    )


def check(pin: Pin) -> None:
    """Check that every file is the pinned one, as reading does before and after each piece.

    Raises
    ------
    StageFailedError
        Where a file is gone, or is not the pinned one.
    """
    for file in _pinned_files(pin):
        _check_pinned(file)


def _pinned_files(pin: Pin) -> Iterator[file_access.PinnedFile]:
    pinned: PinnedCsv = pin.private
    yield from (csv.file for csv in pinned.files)
    yield from pinned.without_rows


def _status(path: str) -> file_access.PinnedFile:
    try:
        return file_access.status(path)
    except OSError:
        message = f"{_PLACE}: {path} cannot be read"
        raise UsageError(message) from None


def _is_plain(contract: DataContract | None) -> bool:
    """Tell whether a contract says that no file is compressed."""
    return contract is not None and contract.source.compression == "none"


def _listed(
    address: str, names: Sequence[str] | None, *, may_be_empty: bool, is_plain: bool
) -> Sequence[str]:
    if names is not None:
        files = window_files.files_of_window(address, names, KIND, may_be_empty=may_be_empty)
        paths: Sequence[str] = [file.address for file in files]
    elif is_url(address):
        objects = file_access.list_objects(address, KIND, may_be_empty=may_be_empty)
        paths = [file.address for file in objects]
    else:
        paths = file_access.list_files(address, KIND, may_be_empty=may_be_empty)
    if not is_plain:
        _refuse_compressed_twice(paths)
    return paths


def _refuse_compressed_twice(paths: Sequence[str]) -> None:
    """Refuse files that stand beside themselves, compressed: their rows would count twice."""
    known: dict[str, str] = {}
    for path in paths:
        plain = path if file_access.compression_of(path) is None else path.rpartition(".")[0]
        first = known.setdefault(plain, path)
        if first != path:
            message = (
                f"{_PLACE}: {first} and {path} are one file by their names, so its rows would count twice: "
                "leave one of them, or name the one that is meant"
            )
            raise UsageError(message)


def _pinned(
    path: str, source: CsvSpec, known: frozenset[str], unit: str | None, contract: DataContract | None
) -> CsvFile | None:
    """Pin a file; None where its first line is needed and names no columns, or by the contract.

    Raises
    ------
    UsageError
        Where it cannot be read, or is compressed under a plain name. The latter is said only of a file whose
        first line names its columns: of others it is a record.
    """
    compression = file_access.compression_of(path)
    if compression is not None and _is_plain(contract):
        return None
    file = _status(path)
    try:
        with file_access.opened_text(file) as content:
            head = _head(content)
    except OSError:
        if contract is not None and compression is not None:
            return None
        how = f" as its name says, by {compression}" if compression else ""
        message = f"{_PLACE}: {path} cannot be read{how}"
        raise UsageError(message) from None
    if source.header is None and compression is None and file_access.looks_compressed(head):
        message = (
            f"{_PLACE}: {path} is compressed, and its name does not say so: let it end in .gz, .zst or .bz2"
        )
        raise UsageError(message)
    start = _first_record(head)
    names: Sequence[str | None] | None = source.header
    if names is None:
        names, start = _names(head, source)
    if names is None:
        return None
    return CsvFile(
        file=file,
        names=tuple(name if name in known else None for name in names),
        types=tuple((str(name), kind) for name, kind in source.columns.items()),
        delimiter=source.delimiter,
        quote=source.quote,
        start=start,
        unit=unit,
    )


def _first_record(head: bytes) -> int:
    """Return where a file's lines begin: behind the mark of byte order, if there is such a mark."""
    return len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0


def _names(head: bytes, source: CsvSpec) -> tuple[list[str | None] | None, int]:
    """Return what the first line names, None where it names nothing, and where the next begins."""
    end = head.find(b"\n") + 1 or len(head)
    return delimited_lines.fields_of(head[_first_record(head) : end], source.delimiter, source.quote), end


def _head(content: BinaryIO) -> bytes:
    """Read the first line, or what is enough of it to tell that it is too long."""
    head = b""
    while b"\n" not in head and len(head) <= delimited_lines.LONGEST_LINE + len(_BYTE_ORDER_MARK) + 1:
        read = content.read(_HEAD_BYTES)
        if not read:
            break
        head += read
    return head


def _columns(csv: CsvFile) -> pa.Schema:
    types = dict(csv.types)
    return pa.schema(
        [pa.field(name, TEXT_TYPES[types.get(name, CsvType.TEXT)]) for name in csv.names if name is not None]
    )


def _count(csv: CsvFile) -> list[Lines]:
    """Count the lines of a file in ranges that begin and end with lines."""
    _check_pinned(csv.file)
    ranges = []
    start = position = csv.start
    n_rows = 0
    # To the middle of a compressed file no way is shorter than all that stands before it.
    is_divided = file_access.compression_of(csv.file.address) is None
    try:
        with file_access.opened_text(csv.file) as content:
            content.seek(start)
            ends_within = False
            while read := content.read(COUNT_BYTES):
                goes_on()
                n_rows += read.count(b"\n")
                end = position + read.rfind(b"\n") + 1
                position += len(read)
                ends_within = end < position
                if is_divided and b"\n" in read and end - start >= RANGE_BYTES:
                    ranges.append(Lines(csv=csv, start=start, stop=end, n_rows=n_rows))
                    start, n_rows = end, 0
    except OSError:
        raise _failure(csv.file, _LOST) from None
    _check_pinned(csv.file)
    n_rows += ends_within
    if n_rows:
        ranges.append(Lines(csv=csv, start=start, stop=position, n_rows=n_rows))
    return ranges


def _batches(ranges: Sequence[Lines], enough: int) -> Iterator[Split]:
    """Batch consecutive ranges into tasks of `enough` rows or more."""
    batch: list[Lines] = []
    for lines in ranges:
        batch.append(lines)
        if sum(each.n_rows for each in batch) >= enough:
            yield Split.of(KIND, batch)
            batch = []
    if batch:
        yield Split.of(KIND, batch)


def _read_lines(piece: Lines, columns: Sequence[str], block_rows: int) -> Iterator[pa.RecordBatch]:
    csv = piece.csv
    _check_pinned(csv.file)
    # A column is lacking only where a contract says that it is null then.
    held = [name for name in columns if csv.names.count(name) == 1]
    positions = [csv.names.index(name) for name in held] or [0]
    types = dict(csv.types)
    kinds = {name: types.get(name, CsvType.TEXT) for name in columns}
    n_rows = 0
    try:
        with file_access.opened_text(csv.file) as content:
            for block in delimited_lines.line_blocks(content, piece.start, piece.stop):
                texts = delimited_lines.columns_of(block, csv.form, positions)
                n_rows += len(texts[0])
                values_by_column = {
                    name: read_texts(text, kinds[name]) for name, text in zip(held, texts, strict=False)
                }
                arrays = [
                    values_by_column[name]
                    if name in values_by_column
                    else pa.nulls(len(texts[0]), TEXT_TYPES[kinds[name]])
                    for name in columns
                ]
                batch = pa.RecordBatch.from_arrays(arrays, list(columns))
                if csv.unit in values_by_column:
                    # proof: typed-files
                    text = texts[held.index(csv.unit)]
                    batch = batch.filter(pc.or_(pc.is_null(text), pc.is_valid(values_by_column[csv.unit])))
                for first in range(0, batch.num_rows, block_rows):
                    yield batch.slice(first, block_rows)
    except OSError:
        raise _failure(csv.file, _LOST) from None
    _check_pinned(csv.file)
    if n_rows != piece.n_rows:
        raise _failure(csv.file, _CHANGED)


def _check_pinned(file: file_access.PinnedFile) -> None:
    try:
        current = file_access.status(file.address)
    except OSError:
        raise _failure(file, _LOST) from None
    if current != file:
        raise _failure(file, _CHANGED)


def _failure(file: file_access.PinnedFile, what: str) -> StageFailedError:
    return StageFailedError("reading", f"the data file {file.address} {what}")

"""What databases read over ADBC have in common: drivers, credentials, blocks of rows, fixed texts.

A warehouse shows its tables as they were at a time: then the pin is the time, and every query names it.
"""

from __future__ import annotations

import importlib
import os
import re
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from suffice.errors import InputNotVerifiedError, MissingExtraError, StageFailedError, UsageError
from suffice.pipeline.rows.sources.contract import PartSchema, Pin, Split, exact_data
from suffice.pipeline.rows.sources.window_condition import window_condition
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.table_names import quoted, quoted_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.pipeline.terms.declaration.table_names import KeyRanges


def driver(module: str, kind: str, extra: str) -> Any:
    """Import a driver.

    Raises
    ------
    MissingExtraError
        Where it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        feature = f"source.{kind}"
        raise MissingExtraError(feature, extra) from None


def credentials(variable: str, kind: str) -> str:
    """Return a connection's URI from the environment.

    Raises
    ------
    UsageError
        Where the variable is not set.
    """
    uri = os.environ.get(variable, "")
    if not uri:
        message = f"source.{kind}: {variable} is not set: whoever reads finds the connection's URI in it"
        raise UsageError(message)
    return uri


def driver_errors() -> tuple[type[Exception], ...]:
    """Return what a driver raises; its texts may quote rows and credentials, and are never shown."""
    try:
        from adbc_driver_manager import Error  # an extra
    except ModuleNotFoundError:  # then `driver` has said so
        return (pa.ArrowException, OSError)
    return (Error, pa.ArrowException, OSError)


@contextmanager
def connected(connect: Callable[[], Any]) -> Iterator[Any]:
    """Give a cursor of a connection of its own, and close both whatever happens to the connection."""
    connection = connect()
    try:
        with closing(connection.cursor()) as cursor:
            yield cursor
    finally:
        connection.close()


def blocks(cursor: Any, query: str, block_rows: int) -> Iterator[pa.RecordBatch]:
    """Run a query, and give its rows in blocks of at most so many."""
    cursor.execute(query)
    for batch in cursor.fetch_record_batch():
        for start in range(0, batch.num_rows, block_rows):
            yield batch.slice(start, block_rows)


def keys_fit(ranges: KeyRanges, kind: pa.DataType) -> bool:
    """Tell whether a column of an Arrow type can be compared with public keys."""
    if ranges.is_of_dates:
        return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))
    return bool(pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0))


def crossed(keys: Sequence[str], slices: Sequence[str]) -> tuple[str, ...]:
    """Return a task's condition for each pair of public keys and a slice of a window; empty for all rows."""
    pairs = product(keys or ("",), slices or ("",))
    return tuple(" AND ".join(condition for condition in pair if condition) for pair in pairs)


def not_read(what: str, reason: str) -> StageFailedError:
    """Return the error for rows that cannot be read, or are not those that were pinned."""
    return StageFailedError("reading", f"{what} {reason}")


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6,9}(Z|[+-]\d{4})", re.ASCII)


@exact_data(travels=True)
class TimedRows:
    """Rows of a table at a time: all, or those of a range of public keys.

    Parameters
    ----------
    table : str
        The name that the spec states.
    time : str
        The warehouse's own time of the snapshot.
    condition : str
        What chooses the rows in SQL; empty for all.
    n_rows : int
        Taken to be one: how many there are, nobody has counted.
    """

    table: str
    time: str
    condition: str
    n_rows: int = 1


@exact_data(travels=False)
class _PinnedVersion:
    """The private part of a pin."""

    table: str
    time: str
    columns: pa.Schema
    conditions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedTables:
    """A kind of source: the tables of one warehouse, over its ADBC driver.

    Parameters
    ----------
    KIND : str
        The key of the kind.
    module : str
        The driver's module, which is the name of its package with underscores, and ``.dbapi``.
    connect : callable
        Connects, given that module and a table's name; raises `UsageError` where credentials are not set.
    clock : str
        The query for the warehouse's time, in ISO 8601 with microseconds or more, and a zone.
    at : str
        What follows a table's name in a query, ``{time}`` in it: rows at that time.
    quote : str
        What stands around an identifier.
    literals : mapping of pyarrow.DataType to str
        How literals of the types of windows are written; see `window_condition`.
    """

    KIND: str
    module: str
    connect: Callable[[Any, str], Any]
    clock: str
    at: str
    quote: str
    literals: Mapping[pa.DataType, str]

    def pin(
        self,
        spec: Spec,
        window: str = ALL,
        contract: DataContract | None = None,  # noqa: ARG002 - checked by whoever asks for the columns
    ) -> Pin:
        """Ask the warehouse for its time, and for the table's columns at that time."""
        table: str = getattr(spec.source, self.KIND)
        ranges: KeyRanges | None = getattr(spec.source, "split_by", None)
        try:
            with connected(partial(self._connection, table)) as cursor:
                cursor.execute(self.clock)
                time = str(cursor.fetchone()[0])
                if not _TIME.fullmatch(time):
                    message = f"source.{self.KIND}: the driver gave no time that pins {table}"
                    raise UsageError(message)
                cursor.execute(f"SELECT * FROM {self._at(table, time)} LIMIT 0")  # noqa: S608
                columns = cursor.fetch_record_batch().schema
        except driver_errors():
            message = (
                f"source.{self.KIND}: {table} cannot be read: it is not there, has no history, or the "
                "credentials lack the right"
            )
            raise UsageError(message) from None
        if ranges is not None:
            self._check_keys(ranges, columns, table)
        return Pin(
            kind=self.KIND,
            public={"kind": self.KIND, "address": spec.source_address},
            private=_PinnedVersion(
                table=table,
                time=time,
                columns=columns,
                conditions=crossed(
                    ranges.conditions(self.quote) if ranges else (),
                    window_condition(spec, window, columns, self.literals, self.quote),
                ),
            ),
            count_rows=lambda: self._count(table, time),
        )

    def schema(self, pin: Pin) -> tuple[PartSchema, ...]:
        """Return the columns of the table."""
        return (PartSchema(part=pin.private.table, columns=pin.private.columns),)

    def splits(self, pin: Pin) -> tuple[Split, ...]:
        """Return one task, or one for each range of public keys."""
        pinned: _PinnedVersion = pin.private
        pieces = (
            TimedRows(table=pinned.table, time=pinned.time, condition=condition)
            for condition in pinned.conditions
        )
        return tuple(Split.of(self.KIND, [piece]) for piece in pieces)

    def read(self, split: Split, columns: Sequence[str], block_rows: int) -> Iterator[pa.RecordBatch]:
        """Read columns at the pinned time.

        Raises
        ------
        StageFailedError
            Where a query fails: the warehouse keeps that time no longer, say.
        """
        listed = ", ".join(quoted(column, self.quote) for column in columns)
        for piece in split.pieces:
            where = f" WHERE {piece.condition}" if piece.condition else ""
            query = f"SELECT {listed} FROM {self._at(piece.table, piece.time)}{where}"  # noqa: S608
            try:
                with connected(partial(self._connection, piece.table)) as cursor:
                    yield from blocks(cursor, query, block_rows)
            except driver_errors():
                raise self._lost(piece.table) from None
            except (MissingExtraError, UsageError) as error:  # a worker lacks what the caller has
                raise not_read(self._named(piece.table), f"cannot be read by a worker: {error}") from None

    def verify(self, pin: Pin, checksums: str) -> None:  # noqa: ARG002 - the contract's
        """Refuse: a warehouse has no files of which an owner could list checksums."""
        message = f"source.{self.KIND}: the account demands checksums, and a table in a warehouse has none"
        raise InputNotVerifiedError(message)

    def check(self, pin: Pin) -> None:
        """Check that the warehouse still shows the table as it was at the pinned time."""
        pinned: _PinnedVersion = pin.private
        try:
            with connected(partial(self._connection, pinned.table)) as cursor:
                cursor.execute(f"SELECT * FROM {self._at(pinned.table, pinned.time)} LIMIT 0")  # noqa: S608
                columns = cursor.fetch_record_batch().schema
        except driver_errors():
            raise self._lost(pinned.table) from None
        if columns != pinned.columns:
            raise self._lost(pinned.table)

    def _connection(self, table: str) -> Any:
        extra = self.KIND
        return self.connect(driver(self.module, self.KIND, extra), table)

    def _at(self, table: str, time: str) -> str:
        return f"{quoted_name(table, self.quote)} {self.at.format(time=time)}"

    def _count(self, table: str, time: str) -> int:
        """Count the rows at the pinned time; asked for only where their number is public."""
        try:
            with connected(partial(self._connection, table)) as cursor:
                cursor.execute(f"SELECT count(*) FROM {self._at(table, time)}")  # noqa: S608
                return int(cursor.fetchone()[0])
        except driver_errors():
            raise self._lost(table) from None

    def _check_keys(self, ranges: KeyRanges, columns: pa.Schema, table: str) -> None:
        kinds = [columns.field(index).type for index in columns.get_all_field_indices(ranges.column)]
        if len(kinds) != 1 or not keys_fit(ranges, kinds[0]):
            message = (
                f"source.{self.KIND}: split_by: {table} has no column {ranges.column!r} of {ranges.needed}"
            )
            raise UsageError(message)

    def _named(self, table: str) -> str:
        return f"the {self.KIND} table {table}"

    def _lost(self, table: str) -> StageFailedError:
        return not_read(
            self._named(table),
            "cannot be read as it was when it was pinned: the connection failed, the warehouse keeps that "
            "time no longer, or the table is gone",
        )

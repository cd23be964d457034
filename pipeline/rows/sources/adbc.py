"""What databases read over ADBC have in common: drivers, credentials, blocks of rows, fixed texts."""

from __future__ import annotations

import importlib
import os
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from suffice.errors import MissingExtraError, StageFailedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def not_read(what: str, reason: str) -> StageFailedError:
    """Return the error for rows that cannot be read, or are not those that were pinned."""
    return StageFailedError("reading", f"{what} {reason}")

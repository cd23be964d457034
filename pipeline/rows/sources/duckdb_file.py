"""A DuckDB file, opened only to be read: nothing spills, nothing is installed, no other file is touched."""

from __future__ import annotations

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONFIGURATION = {
    "temp_directory": "",  # rows and sums stay in memory
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # a name never is a variable of Python
    "threads": "1",  # the cluster's threads are the parallelism
}
_SETTINGS = (
    "SET enable_external_access = false",
    "SET TimeZone = 'UTC'",
    "SET search_path = 'system.main'",  # a macro of the file never stands in for sum() or +
)


def driver() -> Any:
    """Import DuckDB.

    Raises
    ------
    MissingExtraError
        Where it is not installed.
    """
    try:
        import duckdb  # an extra
    except ModuleNotFoundError:
        feature = "source.duckdb"
        raise MissingExtraError(feature, "duckdb") from None
    return duckdb


@contextmanager
def opened(path: str) -> Iterator[tuple[Any, str]]:
    """Give a connection to a file, for as long as the block lasts, and the name that DuckDB gives the file.

    All connections of a process have the same configuration: DuckDB refuses to mix them. Queries name tables
    by file, schema and table; functions and operators are DuckDB's own, whatever macros the file defines.

    Raises
    ------
    MissingExtraError
        Where DuckDB is not installed.
    """
    duckdb = driver()
    with closing(duckdb.connect(path, read_only=True, config=dict(_CONFIGURATION))) as connection:
        for setting in _SETTINGS:
            connection.execute(setting).fetchall()
        files = "SELECT database_name FROM duckdb_databases() WHERE NOT internal"
        ((name,),) = connection.execute(files).fetchall()
        yield connection, name


def read_errors() -> tuple[type[Exception], ...]:
    """Return what goes wrong in DuckDB, whose texts may quote rows, or at the file."""
    return (driver().Error, OSError)


def has_unwritten_changes(path: str) -> bool:
    """Tell whether changes stand beside the file, which were not written into it yet."""
    return Path(f"{path}.wal").exists()

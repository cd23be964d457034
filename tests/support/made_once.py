"""The ledger's schema as its migrations made it before, without Alembic.

Alembic takes half of the time in which a ledger is made, and a run of all tests makes more than a thousand.
The migrations themselves run for the first ledger of each engine in a process, and whenever a revision is
named or a database that is not empty is migrated. Their statements make the next schemas. A prepared database
is a copy with everything but the table of the revision, by which a ledger is known: that is made last.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from sqlalchemy import Connection

    Statements = list[tuple[str, Any]]

READS = ("SELECT", "PRAGMA")
REVISION = "alembic_version"


class Schemas:
    """The schemas that were made in this process, by engine: statements, and names of tables."""

    def __init__(self) -> None:
        self._statements: dict[str, Statements] = {}
        self._tables: dict[str, set[str]] = {}
        self._file: bytes | None = None

    def preparing(self, engine: str) -> list[str] | None:
        """Return the statements that prepare an empty database; None before the first schema."""
        if engine not in self._statements:
            return None
        return [statement for statement, _ in self._statements[engine] if REVISION not in statement]

    def keeping_statements(self, upgrade: Callable[..., None]) -> Callable[..., None]:
        """Return what upgrades an empty or prepared database as `upgrade` did it the first time."""

        def upgraded(connection: Connection, revision: str = "head") -> None:
            engine = connection.dialect.name
            tables = _tables(connection)
            is_prepared = bool(tables) and tables == self._tables.get(engine)
            if revision != "head" or (tables and not is_prepared):
                upgrade(connection, revision)
            elif engine in self._statements:
                for statement, parameters in self._statements[engine]:
                    if not is_prepared or REVISION in statement:
                        connection.exec_driver_sql(statement, parameters or None)
            else:
                with statements_of(connection) as statements:
                    upgrade(connection, revision)
                self._statements[engine] = statements
                self._tables[engine] = _tables(connection) - {REVISION}

        return upgraded

    def filling_copies(self, fill: Callable[[Path, datetime], None]) -> Callable[[Path, datetime], None]:
        """Return what makes a ledger in an empty file of SQLite as `fill` does, in a prepared one."""

        def filled(path: Path, now: datetime) -> None:
            statements = self.preparing("sqlite")
            if statements is not None and self._file is None:
                with closing(sqlite3.connect(":memory:")) as memory:
                    memory.executescript(";\n".join(statements))
                    self._file = memory.serialize()
            if self._file is not None:
                path.write_bytes(self._file)
            fill(path, now)

        return filled


def _tables(connection: Connection) -> set[str]:
    from sqlalchemy import inspect

    return set(inspect(connection).get_table_names())


@contextmanager
def statements_of(connection: Connection) -> Iterator[Statements]:
    """Note the statements that change something, with their parameters, until the block ends."""
    from sqlalchemy import event

    noted: Statements = []

    def note(*details: Any) -> None:
        statement, parameters, several = details[2], details[3], details[5]
        assert not several
        if not statement.lstrip().upper().startswith(READS):
            noted.append((statement, parameters))

    event.listen(connection, "before_cursor_execute", note)
    try:
        yield noted
    finally:
        event.remove(connection, "before_cursor_execute", note)

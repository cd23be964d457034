"""The ledger's schema by the statements that its migrations ran before, without Alembic.

Alembic takes half of the time in which a ledger is made, and a run of all tests makes more than a thousand.
The migrations themselves run for the first ledger of each engine in a process, and whenever a database that
is not empty is migrated or a revision is named.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection

READS = ("SELECT", "PRAGMA")


def keeping_statements(upgrade: Callable[..., None]) -> Callable[..., None]:
    """Return what upgrades an empty database as `upgrade` did it the first time."""
    kept: dict[str, list[tuple[str, Any]]] = {}

    def upgraded(connection: Connection, revision: str = "head") -> None:
        from sqlalchemy import inspect

        if revision != "head" or inspect(connection).get_table_names():
            upgrade(connection, revision)
            return
        engine = connection.dialect.name
        if engine not in kept:
            with statements_of(connection) as statements:
                upgrade(connection, revision)
            kept[engine] = statements
            return
        for statement, parameters in kept[engine]:
            connection.exec_driver_sql(statement, parameters or None)

    return upgraded


@contextmanager
def statements_of(connection: Connection) -> Iterator[list[tuple[str, Any]]]:
    """Note the statements that change something, with their parameters, until the block ends."""
    from sqlalchemy import event

    noted: list[tuple[str, Any]] = []

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

"""Statements of SQL that are compiled once in a process, whichever engine runs them.

SQLAlchemy keeps what it has compiled for each engine, and the tests open thousands: without this, a fifth of
the time of the ledger's tests goes to compiling the same statements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Dialect


def compiling_once(compiled_with_cache: Callable[..., Any]) -> Callable[..., Any]:
    """Return SQLAlchemy's way of compiling with one cache for all engines of the same kind.

    The first dialect of each kind stands for all: their class and style of parameters decide the text.
    """
    first: dict[tuple[type[Dialect], str], Dialect] = {}
    shared: dict[Any, Any] = {}

    def compiled(statement: Any, dialect: Dialect, *, compiled_cache: Any, **options: Any) -> Any:
        if compiled_cache is None:
            return compiled_with_cache(statement, dialect, compiled_cache=None, **options)
        same = first.setdefault((type(dialect), dialect.paramstyle), dialect)
        return compiled_with_cache(statement, same, compiled_cache=shared, **options)

    return compiled

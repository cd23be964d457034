"""The ledger held against its own chain, a few rows at a time: what `verify` does on an SQL database.

Charges are compared when they end and forgotten then, so that memory does not grow with their number.
A checkpoint is the state that a full replay had reached, sealed by an entry of the chain. Whoever changes it
changes every later hash, and published manifests hold some of those.

Tables are made once, recognised by their revision, and examined with their triggers.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, func, insert, inspect, select, text, update

from suffice.errors import LedgerError
from suffice.pipeline.terms.declaration.wording import counted
from suffice.storage.ledger.chain import (
    MOST_PROBLEMS,
    START_HASH,
    ChainCheck,
    Entry,
    EntryKind,
    Examination,
    Head,
    coarse,
    format_time,
)
from suffice.storage.ledger.replay import Books, compare, post, sha256
from suffice.storage.ledger.sql import migrations, tables
from suffice.storage.ledger.sql.rows import append_entry, read_entries, read_head, stream

EARLIER = frozenset({"0001"})
"""Revisions that :func:`suffice.storage.ledger.sql.migrating.migrate` brings to this version's."""

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from sqlalchemy import Connection, Table

    from suffice.storage.ledger.replay import Row, Rows


def has_ledger(connection: Connection, location: str) -> bool:
    """Tell whether a database holds a ledger that this version of the package reads and writes.

    Parameters
    ----------
    connection : Connection
    location : str
        The database as messages name it.

    Raises
    ------
    LedgerError
        Where it holds the ledger of another version, or another program's tables.
    """
    revision = read_revision(connection, location)
    if revision in {None, tables.REVISION}:
        return revision is not None
    way_out = "use the version that wrote it, or a newer one"
    if revision in EARLIER:
        way_out = "stop all runs, back it up, and run `suffice ledger migrate` as the role that made it"
    message = (
        f"the ledger {location} has the schema {revision}, this version of suffice needs {tables.REVISION}: "
        f"{way_out}"
    )
    raise LedgerError(message)


def read_revision(connection: Connection, location: str) -> str | None:
    """Return the schema of the ledger in a database; None where the database holds none.

    Raises
    ------
    LedgerError
        Where it holds another program's tables.
    """
    inspector = inspect(connection)
    if not inspector.has_table("alembic_version"):
        return None
    if not inspector.has_table(tables.ledger.name):
        message = f"{location} is a database, but not a ledger of suffice"
        raise LedgerError(message)
    return str(connection.scalar(select(text("version_num")).select_from(text("alembic_version"))))


def make_ledger(connection: Connection, now: datetime) -> None:
    """Make all tables and the first entry, in the transaction that `connection` is in."""
    migrations.upgrade(connection)
    ledger_id = secrets.token_hex(16)
    connection.execute(
        insert(tables.ledger).values(
            id=1,
            ledger_id=ledger_id,
            head_sequence=0,
            head_hash=START_HASH,
            created_at=format_time(coarse(now)),
        )
    )
    append_entry(connection, EntryKind.CREATED, now, {"ledger_id": ledger_id, "format_version": 1})


def altered_rules(connection: Connection) -> list[str]:
    """Name the tables, indexes and triggers of an SQLite ledger that are not as the migrations made them.

    On a server only the role that made the ledger can change them.
    """
    if connection.dialect.name != "sqlite":
        return []
    present = _objects(connection)
    return [
        f"the ledger's {kind} {name} is missing or altered: it keeps a rule, or rows"
        for kind, name, _table, _statement in sorted(_made_by_the_migrations() - present, key=str)
    ]


@cache
def _made_by_the_migrations() -> frozenset[tuple[str, str, str, str]]:
    engine = create_engine("sqlite://")
    try:
        with engine.begin() as connection:
            migrations.upgrade(connection)
            return _objects(connection)
    finally:
        engine.dispose()


def _objects(connection: Connection) -> frozenset[tuple[str, str, str, str]]:
    query = text("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master")
    return frozenset((row[0], row[1], row[2], row[3]) for row in connection.execute(query))


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Where an examination goes on: the checkpoint's own entry."""

    head: Head


def find_checkpoint(connection: Connection, books: Books) -> tuple[Checkpoint | None, str]:
    """Let books go on from the last checkpoint, if there is one.

    Returns
    -------
    tuple
        The checkpoint, or None; and what is wrong with it, or nothing.
    """
    kept = connection.execute(select(tables.checkpoints)).one_or_none()
    if kept is None:
        return None, ""
    row = connection.execute(
        select(tables.entries).where(tables.entries.c.sequence == kept.sequence)
    ).one_or_none()
    entry = None if row is None else Entry(**row._mapping)  # noqa: SLF001 - its public name
    sealed = None
    if entry is not None and entry.kind == EntryKind.CHECKPOINT:
        before = Head(sequence=entry.sequence - 1, hash=entry.previous_hash)
        sealed = ChainCheck(before).follow(entry)
    damaged = "the last checkpoint was altered, or its entry: everything was recomputed"
    if entry is None or sealed is None or sealed.get("state_sha256") != sha256(kept.state.encode()):
        return None, damaged
    try:
        books.go_on_from(kept.state)
    except (LookupError, TypeError, ValueError):
        return None, damaged
    return Checkpoint(head=Head(sequence=entry.sequence, hash=entry.hash)), ""


def write_checkpoint(connection: Connection, examined: Head, books: Books, now: datetime) -> Head | None:
    """Seal the state of books that were posted up to `examined`, in one transaction.

    Returns
    -------
    Head or None
        The checkpoint's entry; None where entries were appended meanwhile.
    """
    if read_head(connection, lock=True) != examined:
        return None
    state = books.state()
    entry = append_entry(connection, EntryKind.CHECKPOINT, now, {"state_sha256": sha256(state.encode())})
    values = {"sequence": entry.sequence, "state": state}
    if connection.execute(update(tables.checkpoints).values(**values)).rowcount == 0:
        connection.execute(insert(tables.checkpoints).values(id=1, **values))
    return Head(sequence=entry.sequence, hash=entry.hash)


_AT_ONCE = 500
"""Rows that are compared at a time; below the number of parameters that any database takes."""


class Examiner:
    """One examination, on one snapshot of the database.

    Parameters
    ----------
    connection : Connection
    full : bool
        Whether to recompute everything, rather than to go on from the last checkpoint.
    """

    def __init__(self, connection: Connection, *, full: bool) -> None:
        self._connection = connection
        self._ended: Rows = {}
        self._plans: set[str] = set()
        self._differing: list[str] = []
        self.books = Books(on_end=self._note_end)
        checkpoint, problem = find_checkpoint(connection, Books() if full else self.books)
        self.checkpoint: Checkpoint | None = None if full else checkpoint
        self._differing += [problem] if problem else []

    def examine(self) -> Examination:
        """Follow the chain, replay it, and compare every table with what it implies."""
        problems = [*_file_problems(self._connection), *altered_rules(self._connection), *self._differing]
        self._differing.clear()
        after = self.checkpoint.head if self.checkpoint else Head()
        head = read_head(self._connection)
        check, broken = ChainCheck(after), ""
        for entry in read_entries(self._connection, after=after.sequence):
            content = check.follow(entry)
            if not broken and not check.problems and content is not None:
                broken = self._post(entry, content)
        check.end(head)
        if check.problems or broken:
            problems += check.problems or [broken]
        else:
            self._compare_tables()
            problems += sorted(self._differing)
        since = self.checkpoint.head.sequence if self.checkpoint else 0
        return Examination(problems=tuple(problems[:MOST_PROBLEMS]), head=check.last, since=since)

    def _post(self, entry: Entry, content: Row) -> str:
        if "plan_hash" in content:
            self._plans.add(content["plan_hash"])
        broken = post(self.books, entry, content)
        if len(self._ended) >= _AT_ONCE:
            self._compare_ended()
        return broken

    def _note_end(self, charge: Row) -> None:
        key = (charge["charge_id"],)
        if key in self._ended:  # a chain may state what no table can hold
            self._differ([f"charges {charge['charge_id']}: the chain reserves it twice"])
        self._ended[key] = charge

    def _compare_ended(self) -> None:
        keys = [key for (key,) in self._ended]
        self._differ(compare("charges", self._ended, _rows_of(self._connection, tables.charges, keys)))
        self._ended.clear()

    def _compare_tables(self) -> None:
        connection, books = self._connection, self.books
        ledger = connection.execute(select(tables.ledger.c.ledger_id, tables.ledger.c.created_at)).one()
        for what, stored, first in (
            ("id", ledger.ledger_id, books.ledger_id),
            ("time", ledger.created_at, books.created_at),
        ):
            if stored != first:
                self._differ([f"the ledger's {what} differs from its first entry"])
        self._compare_ended()
        live = [key for (key,) in books.charges]
        self._differ(compare("charges", books.charges, _rows_of(connection, tables.charges, live)))
        count = connection.scalar(select(func.count()).select_from(tables.charges))
        if count != books.n_charges:
            self._differ(_without_entry(connection))
            self._differ([f"charges: the entries reserve {books.n_charges}, the table has {count}"])
        accounts = _all_rows(connection, tables.accounts)
        for row in accounts.values():
            row.update({name: _from_json(row[name]) for name in ("sources", "stores")})
        self._differ(compare("accounts", books.accounts, accounts))
        self._differ(compare("windows", books.windows, _all_rows(connection, tables.windows)))
        self._differ(compare("stores", books.stores, _all_rows(connection, tables.stores)))
        named = [name for (name,) in books.names]
        names = (
            _rows_of(connection, tables.names, named)
            if self.checkpoint
            else _all_rows(connection, tables.names)
        )
        self._differ(compare("names", books.names, names))
        self._compare_plans()
        staged = {
            key: {"sha256": charge["manifest_sha256"]}
            for key, charge in books.charges.items()
            if charge["state"] == "staged"
        }
        columns = tables.staged_files.c
        self._differ(
            f"staged_files {ascii(key)[1:-1]:.80}: the table has it, and its charge is not staged"
            for key in sorted(connection.scalars(select(columns.charge_id).distinct()))
            if (key,) not in staged
        )
        kept = stream(connection, select(tables.staged_manifests))
        self._differ(
            compare("staged_manifests", staged, {(r.charge_id,): {"sha256": sha256(r.content)} for r in kept})
        )

    def _compare_plans(self) -> None:
        """Hash every plan; after a checkpoint, those that were charged since."""
        plans, known = tables.plans.c, set()
        query = select(plans.sha256, plans.content)
        queries = [query]
        if self.checkpoint:
            queries = [query.where(plans.sha256.in_(batch)) for batch in _batches(sorted(self._plans))]
        for row in chain.from_iterable(stream(self._connection, part) for part in queries):
            known.add(row.sha256)
            if row.sha256 not in self._plans:
                self._differ([f"plans {ascii(row.sha256)[1:-1]:.80}: the table has it, the entries do not"])
            elif sha256(row.content.encode()) != row.sha256:
                self._differ([f"plans {row.sha256}: sha256 differ from the entries"])
        self._differ(
            f"plans {lost}: the entries have it, the table does not" for lost in sorted(self._plans - known)
        )

    def _differ(self, problems: Iterable[str]) -> None:
        self._differing += islice(problems, max(0, MOST_PROBLEMS - len(self._differing)))


def _file_problems(connection: Connection) -> list[str]:
    """Let SQLite look at its own file: damage in an index changes no row that is read through the table."""
    if connection.dialect.name != "sqlite":
        return []
    problems = connection.exec_driver_sql(f"PRAGMA integrity_check({MOST_PROBLEMS})").scalars().all()
    if problems == ["ok"]:
        return []
    places = counted(len(problems), "place")
    return [f"the ledger's file is damaged: SQLite's own check of it fails in {places}"]


def _without_entry(connection: Connection) -> Iterator[str]:
    """Name the charges that no entry reserved."""
    charges, entries = tables.charges.c, tables.entries.c
    query = select(charges.charge_id, entries.payload).outerjoin_from(
        tables.charges,
        tables.entries,
        (entries.sequence == charges.reserved_sequence) & (entries.kind == "reserved"),
    )
    for row in stream(connection, query):
        payload = _from_json(row.payload or "null")
        if not isinstance(payload, dict) or payload.get("charge_id") != row.charge_id:
            yield f"charges {ascii(row.charge_id)[1:-1]:.80}: the table has it, the entries do not"


def _all_rows(connection: Connection, table: Table) -> Rows:
    return _keyed(table, stream(connection, select(table)))


def _rows_of(connection: Connection, table: Table, keys: list[str]) -> Rows:
    """Return the rows with these values in the first column of the table's primary key."""
    (column,) = table.primary_key
    rows_by_key: Rows = {}
    for batch in _batches(keys):
        rows_by_key |= _keyed(table, connection.execute(select(table).where(column.in_(batch))))
    return rows_by_key


def _keyed(table: Table, rows: Iterable[Any]) -> Rows:
    keys = [column.name for column in table.primary_key]
    mappings = (dict(row._mapping) for row in rows)  # noqa: SLF001 - its public name
    return {tuple(row[key] for key in keys): row for row in mappings}


def _batches(keys: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(keys), _AT_ONCE):
        yield keys[start : start + _AT_ONCE]


def _from_json(text: Any) -> Any:
    """Read JSON from a row that may be damaged: None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None

"""What the tables of revision 0001 refuse by themselves, whoever writes: triggers for each database.

They hold whatever :mod:`suffice.storage.ledger.sql.sql_ledger` does, and whatever a role with direct
access tries (docs/how-to/operate-a-ledger.md says what they cannot prevent). No rule reads a row that the
ledger's own order of locks does not cover at that moment.
"""

from __future__ import annotations

from suffice.storage.ledger.sql.migrations import failed_readings_0001
from suffice.storage.ledger.sql.migrations.postgres_0001 import ACROSS_ROWS, function

_KEPT = (
    "charge_id",
    "release_id",
    "dataset",
    "name",
    '"window"',
    "amendment",
    "attempt",
    "micro_epsilon",
    "plan_hash",
    "store_id",
    "store_uri",
    "reserved_sequence",
    "created_at",
)
_WRITTEN_ONCE = ("drawing_sequence", "drawing_hash", "manifest_sha256", "spool_id", "spool_host")
_LINK = ("amends", "amended_sha256")
_WINDOW_KEY = ("dataset", '"window"')
_TERMS = ("dataset", "neighboring", "unit", "units_disjoint")


_MOVES = " OR ".join(
    f"(OLD.state = '{before}' AND NEW.state IN ('{before}', '{after}', 'abandoned'))"
    for before, after in (("reserved", "drawing"), ("drawing", "staged"), ("staged", "published"))
)


def _changed(*columns: str) -> str:
    return " OR ".join(f"NEW.{column} <> OLD.{column}" for column in columns)


def _rewritten(*columns: str) -> str:
    return " OR ".join(
        f"(OLD.{column} IS NOT NULL AND (NEW.{column} IS NULL OR NEW.{column} <> OLD.{column}))"
        for column in columns
    )


def _written(*columns: str) -> str:
    return " OR ".join(f"NEW.{column} IS NOT NULL" for column in columns)


# Table, event, name, what is refused (on the old and the new row alone), and how the refusal reads.
_ROWS = (
    ("entries", "UPDATE", "entries_never_change", "1 = 1", "entries are append-only"),
    ("names", "UPDATE", "names_never_change", "1 = 1", "a release name belongs to one dataset for good"),
    ("plans", "UPDATE", "plans_never_change", "1 = 1", "a plan is what its hash says"),
    ("staged_manifests", "UPDATE", "staged_manifests_never_change", "1 = 1", "staged bytes are fixed once"),
    (
        "ledger",
        "UPDATE",
        "head_moves_on",
        f"{_changed('id', 'ledger_id', 'created_at')} OR NEW.head_sequence <> OLD.head_sequence + 1",
        "the head of the chain moves by one entry",
    ),
    (
        "checkpoints",
        "UPDATE",
        "checkpoints_move_on",
        f"{_changed('id')} OR NEW.sequence <= OLD.sequence",
        "a checkpoint moves on, never back",
    ),
    (
        "accounts",
        "INSERT",
        "accounts_begin_unspent",
        "NEW.micro_spent <> 0 OR NEW.micro_reserved <> 0",
        "an account begins unspent",
    ),
    (
        "accounts",
        "UPDATE",
        "accounts_keep_their_terms",
        f"{_changed(*_TERMS)} OR coalesce(NEW.per_window, '') <> coalesce(OLD.per_window, '')",
        "the first grant fixes the terms of an account",
    ),
    (
        "accounts",
        "UPDATE",
        "accounts_keep_a_contract",
        "OLD.contract IS NOT NULL AND NEW.contract IS NULL",
        "an account with a contract keeps one",
    ),
    (
        "accounts",
        "UPDATE",
        "accounts_stay_spent",
        "NEW.micro_spent < OLD.micro_spent",
        "what is spent stays spent",
    ),
    (
        "windows",
        "INSERT",
        "windows_begin_unspent",
        "NEW.micro_spent <> 0 OR NEW.micro_reserved <> 0",
        "a window begins unspent",
    ),
    (
        "windows",
        "UPDATE",
        "windows_stay_spent",
        f"{_changed(*_WINDOW_KEY)} OR NEW.micro_spent < OLD.micro_spent",
        "what is spent stays spent",
    ),
    (
        "stores",
        "UPDATE",
        "stores_keep_their_markers",
        f"{_changed('store_id', 'first_sequence')} OR NEW.last_marker < OLD.last_marker",
        "what a ledger knows of a store it does not forget",
    ),
    (
        "charges",
        "INSERT",
        "charges_begin_reserved",
        f"NEW.state <> 'reserved' OR NEW.epoch <> 1 OR NEW.marked OR {_written(*_WRITTEN_ONCE)}",
        "a charge begins reserved",
    ),
    (
        "charges",
        "UPDATE",
        "charges_keep_their_key",
        f"{_changed(*_KEPT)} OR {_rewritten(*_LINK)}",
        "a charge keeps what it states",
    ),
    (
        "charges",
        "UPDATE",
        "charges_end_for_good",
        "OLD.state IN ('published', 'abandoned')",
        "a charge ends for good",
    ),
    (
        "charges",
        "UPDATE",
        "charges_move_on",
        f"NEW.epoch NOT IN (OLD.epoch, OLD.epoch + 1) OR NOT ({_MOVES})",
        "a charge moves on, never back",
    ),
    (
        "charges",
        "UPDATE",
        "charges_stay_drawn",
        (
            "(OLD.marked AND NOT NEW.marked) OR (OLD.drew AND NOT NEW.drew) "
            "OR (NEW.drew AND NOT OLD.drew AND NEW.state <> 'drawing')"
        ),
        "what was marked or drawn stays so",
    ),
    (
        "charges",
        "UPDATE",
        "charges_are_written_once",
        _rewritten(*_WRITTEN_ONCE),
        "the bytes and the draw of a charge are fixed once",
    ),
)
_TABLES = ("entries", "ledger", "checkpoints", "accounts", "windows", "names", "stores", "plans", "charges")

_SQLITE_ACROSS = (
    """
    CREATE TRIGGER entries_in_order BEFORE INSERT ON entries
    WHEN NEW.sequence IS NOT (SELECT head_sequence + 1 FROM ledger)
      OR NEW.previous_hash IS NOT (SELECT head_hash FROM ledger)
    BEGIN SELECT RAISE(ABORT, 'entries are appended in order'); END
    """,
    """
    CREATE TRIGGER head_is_an_entry BEFORE UPDATE ON ledger
    WHEN NOT EXISTS (SELECT 1 FROM entries WHERE sequence = NEW.head_sequence AND hash = NEW.head_hash)
    BEGIN SELECT RAISE(ABORT, 'the head of the chain is an entry'); END
    """,
    """
    CREATE TRIGGER windows_never_overspent BEFORE UPDATE ON windows
    WHEN NEW.micro_spent + NEW.micro_reserved > (
        SELECT micro_granted - micro_spent - micro_reserved FROM accounts WHERE dataset = NEW.dataset)
    BEGIN SELECT RAISE(ABORT, 'never over the grant'); END
    """,
    """
    CREATE TRIGGER accounts_never_overspent BEFORE UPDATE ON accounts
    WHEN NEW.micro_granted - NEW.micro_spent - NEW.micro_reserved < (
        SELECT micro_spent + micro_reserved FROM windows WHERE dataset = NEW.dataset
        ORDER BY micro_spent + micro_reserved DESC LIMIT 1)
    BEGIN SELECT RAISE(ABORT, 'never over the grant'); END
    """,
    """
    CREATE TRIGGER manifests_are_staged BEFORE INSERT ON staged_manifests
    WHEN 'staged' IS NOT (SELECT state FROM charges WHERE charge_id = NEW.charge_id)
    BEGIN SELECT RAISE(ABORT, 'bytes are kept while a charge is staged'); END
    """,
    """
    CREATE TRIGGER manifests_stay_while_staged BEFORE DELETE ON staged_manifests
    WHEN (SELECT state FROM charges WHERE charge_id = OLD.charge_id) NOT IN ('published', 'abandoned')
    BEGIN SELECT RAISE(ABORT, 'bytes are kept while a charge is staged'); END
    """,
)


def rules(dialect: str) -> list[str]:
    """Return the statements that make all triggers of one database."""
    if dialect == "sqlite":
        rows = [
            f"CREATE TRIGGER {name} BEFORE {event} ON {table} WHEN {refused} "
            f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
            for table, event, name, refused, message in _ROWS
        ]
        kept = [
            f"CREATE TRIGGER {table}_never_go BEFORE DELETE ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{table} are append-only'); END"
            for table in _TABLES
        ]
        return [*rows, *kept, *_SQLITE_ACROSS, *failed_readings_0001.SQLITE]
    rows = [
        f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW WHEN ({refused}) "
        f"EXECUTE FUNCTION ledger_refuses('{message}')"
        for table, event, name, refused, message in _ROWS
    ]
    kept = [
        f"CREATE TRIGGER {table}_never_go BEFORE DELETE OR TRUNCATE ON {table} FOR EACH STATEMENT "
        f"EXECUTE FUNCTION ledger_refuses('{table} are append-only')"
        for table in _TABLES
    ]
    body = "BEGIN RAISE integrity_constraint_violation USING MESSAGE = TG_ARGV[0]; END"
    return [function("ledger_refuses", body), *rows, *kept, *ACROSS_ROWS, *failed_readings_0001.POSTGRES]

"""What the tables of revision 0001 refuse by themselves, whoever writes: triggers for each database.

They hold whatever :mod:`suffice.storage.ledger.sql.sql_ledger` does, and whatever a role with direct
access tries (docs/how-to/operate-a-ledger.md says what they cannot prevent). No rule reads a row that the
ledger's own order of locks does not cover at that moment.
"""

from __future__ import annotations

from suffice.storage.ledger.sql.migrations.limits_0001 import (
    LIMITS_ON_POSTGRES,
    LIMITS_ON_SQLITE,
    RETURNS_A_DRAW,
    function,
)

_ACROSS_ROWS = (
    # Who may not grant writes no grant into the chain, and who may not charge no charge.
    function(
        "entries_in_order",
        """
        DECLARE head record; allowed boolean;
        BEGIN
            SELECT head_sequence, head_hash INTO head FROM ledger FOR UPDATE;
            IF NEW.sequence IS DISTINCT FROM head.head_sequence + 1
                OR NEW.previous_hash IS DISTINCT FROM head.head_hash
            THEN
                RAISE integrity_constraint_violation USING MESSAGE = 'entries are appended in order';
            END IF;
            IF NEW.kind IN ('created', 'grant', 'store_adopted', 'store_retired', 'checkpoint', 'skipped',
                'reconciled')
            THEN
                allowed = has_column_privilege('accounts', 'micro_granted', 'UPDATE');
            ELSE
                allowed = has_table_privilege('charges', 'INSERT');
            END IF;
            IF NOT allowed THEN
                RAISE insufficient_privilege USING MESSAGE = 'this role writes no such entries';
            END IF;
            RETURN NEW;
        END
        """,
    ),
    """
    CREATE TRIGGER entries_in_order BEFORE INSERT ON entries
    FOR EACH ROW EXECUTE FUNCTION entries_in_order()
    """,
    function(
        "head_is_the_last_entry",
        """
        BEGIN
            IF (SELECT (head_sequence, head_hash) FROM ledger) IS DISTINCT FROM
                (SELECT (sequence, hash) FROM entries ORDER BY sequence DESC LIMIT 1)
            THEN
                RAISE integrity_constraint_violation
                USING MESSAGE = 'the head of the chain is its last entry';
            END IF;
            RETURN NULL;
        END
        """,
    ),
    """
    CREATE CONSTRAINT TRIGGER head_is_the_last_entry AFTER INSERT ON entries
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION head_is_the_last_entry()
    """,
    """
    CREATE CONSTRAINT TRIGGER head_is_the_last_entry AFTER UPDATE ON ledger
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION head_is_the_last_entry()
    """,
    # Every charge and every balance adds what it moved to one sum, which must be nothing at the commit: by
    # induction a balance is the sum of its charges, and no commit reads the charges of the past. The sum is
    # kept by functions of the ledger's maker, in a table where no role of the ledger may write.
    "CREATE TABLE movements (balance text PRIMARY KEY, spent bigint NOT NULL, reserved bigint NOT NULL)",
    function(
        "balances_follow_charges",
        """
        DECLARE moved text; spent_now bigint = 0; reserved_now bigint = 0; grid text;
        BEGIN
            IF current_setting('transaction_isolation') <> 'read committed' THEN
                RAISE integrity_constraint_violation
                USING MESSAGE = 'balances change in read committed transactions only';
            END IF;
            IF TG_TABLE_NAME = 'charges' THEN
                SELECT per_window INTO grid FROM accounts WHERE dataset = NEW.dataset;
                moved = CASE WHEN grid IS NULL OR NEW."window" = 'all' THEN 'account ' || NEW.dataset
                    ELSE 'window ' || NEW.dataset || ' ' || NEW."window" END;
                IF NEW.state IN ('reserved', 'drawing') THEN
                    reserved_now = NEW.micro_epsilon;
                ELSIF NEW.drew AND NOT NEW.draw_returned THEN
                    spent_now = NEW.micro_epsilon;
                END IF;
                IF TG_OP = 'UPDATE' THEN
                    IF OLD.state IN ('reserved', 'drawing') THEN
                        reserved_now = reserved_now - OLD.micro_epsilon;
                    ELSIF OLD.drew AND NOT OLD.draw_returned THEN
                        spent_now = spent_now - OLD.micro_epsilon;
                    END IF;
                END IF;
            ELSE
                moved = 'account ' || NEW.dataset;
                IF TG_TABLE_NAME = 'windows' THEN
                    moved = 'window ' || NEW.dataset || ' ' || (to_jsonb(NEW) ->> 'window');
                END IF;
                spent_now = OLD.micro_spent - NEW.micro_spent;
                reserved_now = OLD.micro_reserved - NEW.micro_reserved;
            END IF;
            INSERT INTO movements VALUES (moved, spent_now, reserved_now)
            ON CONFLICT (balance) DO UPDATE
            SET spent = movements.spent + EXCLUDED.spent, reserved = movements.reserved + EXCLUDED.reserved;
            RETURN NULL;
        END
        """,
        rights="SECURITY DEFINER",
    ),
    """
    CREATE TRIGGER balances_follow_charges AFTER UPDATE OF micro_spent, micro_reserved ON accounts
    FOR EACH ROW EXECUTE FUNCTION balances_follow_charges()
    """,
    """
    CREATE TRIGGER balances_follow_charges AFTER UPDATE ON windows
    FOR EACH ROW EXECUTE FUNCTION balances_follow_charges()
    """,
    """
    CREATE TRIGGER balances_follow_charges AFTER INSERT ON charges
    FOR EACH ROW EXECUTE FUNCTION balances_follow_charges()
    """,
    # Not on every update: a charge that draws or is published locks its row, not its account's.
    """
    CREATE TRIGGER moves_follow_balances AFTER UPDATE ON charges FOR EACH ROW
    WHEN ((OLD.state IN ('reserved', 'drawing')) <> (NEW.state IN ('reserved', 'drawing')))
    EXECUTE FUNCTION balances_follow_charges()
    """,
    function(
        "movements_cancel_out",
        """
        DECLARE moved record;
        BEGIN
            SELECT * INTO moved FROM movements WHERE balance = NEW.balance;
            IF moved.spent <> 0 OR moved.reserved <> 0 THEN
                RAISE integrity_constraint_violation USING MESSAGE = 'balances are the sums of charges';
            END IF;
            DELETE FROM movements WHERE balance = NEW.balance;
            RETURN NULL;
        END
        """,
        rights="SECURITY DEFINER",
    ),
    """
    CREATE CONSTRAINT TRIGGER movements_cancel_out AFTER INSERT OR UPDATE ON movements
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION movements_cancel_out()
    """,
    # Whoever changes a balance holds the account's lock until the end: what is read here is the last of it.
    function(
        "never_over_the_grant",
        """
        DECLARE account record; taken bigint;
        BEGIN
            IF current_setting('transaction_isolation') <> 'read committed' THEN
                RAISE integrity_constraint_violation
                USING MESSAGE = 'balances change in read committed transactions only';
            END IF;
            SELECT * INTO account FROM accounts WHERE dataset = NEW.dataset FOR UPDATE;
            IF TG_TABLE_NAME = 'windows' THEN
                SELECT micro_spent + micro_reserved INTO taken FROM windows
                WHERE dataset = NEW.dataset AND "window" = to_jsonb(NEW) ->> 'window';
            ELSE
                SELECT micro_spent + micro_reserved INTO taken FROM windows WHERE dataset = NEW.dataset
                ORDER BY micro_spent + micro_reserved DESC LIMIT 1;
            END IF;
            IF account.micro_spent + account.micro_reserved + coalesce(taken, 0) > account.micro_granted THEN
                RAISE integrity_constraint_violation USING MESSAGE = 'never over the grant';
            END IF;
            RETURN NULL;
        END
        """,
    ),
    """
    CREATE CONSTRAINT TRIGGER never_over_the_grant
    AFTER UPDATE OF micro_granted, micro_spent, micro_reserved ON accounts
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION never_over_the_grant()
    """,
    """
    CREATE CONSTRAINT TRIGGER never_over_the_grant AFTER UPDATE ON windows
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION never_over_the_grant()
    """,
    # The bytes to publish are there while a charge is staged, and are those whose hash it states.
    function(
        "manifests_are_staged",
        """
        DECLARE charge record;
        BEGIN
            IF TG_OP = 'DELETE' THEN
                SELECT state INTO charge FROM charges WHERE charge_id = OLD.charge_id;
                IF charge.state NOT IN ('published', 'abandoned') THEN
                    RAISE integrity_constraint_violation
                    USING MESSAGE = 'bytes are kept while a charge is staged';
                END IF;
                RETURN OLD;
            END IF;
            SELECT state, manifest_sha256 INTO charge FROM charges WHERE charge_id = NEW.charge_id;
            IF charge.state IS DISTINCT FROM 'staged' THEN
                RAISE integrity_constraint_violation
                USING MESSAGE = 'bytes are kept while a charge is staged';
            END IF;
            IF charge.manifest_sha256 IS DISTINCT FROM encode(sha256(NEW.content), 'hex') THEN
                RAISE integrity_constraint_violation USING MESSAGE = 'staged bytes are what their hash says';
            END IF;
            RETURN NEW;
        END
        """,
    ),
    """
    CREATE TRIGGER manifests_are_staged BEFORE INSERT OR DELETE ON staged_manifests
    FOR EACH ROW EXECUTE FUNCTION manifests_are_staged()
    """,
    """
    CREATE TRIGGER staged_manifests_never_go BEFORE TRUNCATE ON staged_manifests
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuses('staged_manifests are append-only')
    """,
    # What is in a file, its manifest states: whoever publishes it holds it against that.
    function(
        "files_are_staged",
        """
        DECLARE state_now text;
        BEGIN
            IF TG_OP = 'DELETE' THEN
                SELECT state INTO state_now FROM charges WHERE charge_id = OLD.charge_id;
                IF state_now NOT IN ('published', 'abandoned') THEN
                    RAISE integrity_constraint_violation
                    USING MESSAGE = 'bytes are kept while a charge is staged';
                END IF;
                RETURN OLD;
            END IF;
            SELECT state INTO state_now FROM charges WHERE charge_id = NEW.charge_id;
            IF state_now IS DISTINCT FROM 'staged' THEN
                RAISE integrity_constraint_violation
                USING MESSAGE = 'bytes are kept while a charge is staged';
            END IF;
            RETURN NEW;
        END
        """,
    ),
    """
    CREATE TRIGGER files_are_staged BEFORE INSERT OR DELETE ON staged_files
    FOR EACH ROW EXECUTE FUNCTION files_are_staged()
    """,
    """
    CREATE TRIGGER staged_files_never_go BEFORE TRUNCATE ON staged_files
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuses('staged_files are append-only')
    """,
)

FUNCTIONS = tuple(text for text in _ACROSS_ROWS if text.startswith("CREATE FUNCTION") and "micro_" in text)
"""Statements that make PostgreSQL's functions that name amounts."""

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
_WRITTEN_ONCE = (
    "drawing_sequence",
    "drawing_hash",
    "drawing_epoch",
    "manifest_sha256",
    "spool_id",
    "spool_host",
)
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
    ("staged_files", "UPDATE", "staged_files_never_change", "1 = 1", "staged bytes are fixed once"),
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
        (
            f"{_changed(*_KEPT)} OR {_rewritten(*_LINK)} "
            "OR coalesce(NEW.witness, '') <> coalesce(OLD.witness, '')"
        ),
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
        "charges_draw_in_their_epoch",
        (
            "(NEW.drew AND NOT OLD.drew AND coalesce(NEW.drawing_epoch, 0) <> NEW.epoch) "
            "OR (NEW.drawing_epoch IS NOT NULL AND NOT NEW.drew)"
        ),
        "a charge states the epoch in which it draws",
    ),
    (
        "charges",
        "UPDATE",
        "draws_return_after_a_take_over",
        (
            f"{RETURNS_A_DRAW} AND (OLD.state <> 'drawing' OR NEW.epoch <> OLD.epoch "
            "OR OLD.epoch <= coalesce(OLD.drawing_epoch, OLD.epoch))"
        ),
        "a draw is returned by whoever took it over",
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
    """
    CREATE TRIGGER files_are_staged BEFORE INSERT ON staged_files
    BEGIN SELECT RAISE(ABORT, 'the files of a release stay in the spool of this machine'); END
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
        return [*rows, *kept, *_SQLITE_ACROSS, *LIMITS_ON_SQLITE]
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
    return [function("ledger_refuses", body), *rows, *kept, *_ACROSS_ROWS, *LIMITS_ON_POSTGRES]

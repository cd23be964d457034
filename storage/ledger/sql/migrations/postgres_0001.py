"""What revision 0001 refuses on PostgreSQL by looking at more than one row; the rest is in `rules_0001`."""

from __future__ import annotations


def function(name: str, body: str, rights: str = "SECURITY INVOKER") -> str:
    """Return a trigger function that reads the ledger's tables, never temporary ones of their names."""
    setting = "SET search_path = pg_catalog, public, pg_temp"
    return f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql {rights} {setting} AS $${body}$$"


ACROSS_ROWS = (
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
                IF NEW.drew THEN spent_now = NEW.micro_epsilon; END IF;
                IF NEW.state = 'reserved' THEN reserved_now = NEW.micro_epsilon; END IF;
                IF TG_OP = 'UPDATE' THEN
                    IF OLD.drew THEN spent_now = spent_now - OLD.micro_epsilon; END IF;
                    IF OLD.state = 'reserved' THEN reserved_now = reserved_now - OLD.micro_epsilon; END IF;
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
    # Not on every update: a charge that is staged or published locks its row, not its account's.
    """
    CREATE TRIGGER moves_follow_balances AFTER UPDATE ON charges FOR EACH ROW
    WHEN (OLD.drew <> NEW.drew OR (OLD.state = 'reserved') <> (NEW.state = 'reserved'))
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
)

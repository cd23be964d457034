"""What revision 0001 refuses on PostgreSQL by looking at more than one row; the rest is in `rules_0001`."""

from __future__ import annotations


def function(name: str, body: str) -> str:
    """Return a trigger function that reads the ledger's tables, never temporary ones of their names."""
    setting = "SET search_path = pg_catalog, public, pg_temp"
    return f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql {setting} AS $${body}$$"


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
            IF NEW.kind IN ('created', 'grant', 'store_adopted', 'store_retired') THEN
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
    # Whoever changes a balance holds the account's lock until the end: the sums are the last ones.
    function(
        "balances_follow_charges",
        """
        DECLARE account record; balance record; charged record; by_window text; remaining bigint;
        BEGIN
            IF current_setting('transaction_isolation') <> 'read committed' THEN
                RAISE integrity_constraint_violation
                USING MESSAGE = 'balances change in read committed transactions only';
            END IF;
            SELECT * INTO account FROM accounts WHERE dataset = NEW.dataset FOR UPDATE;
            remaining = account.micro_granted - account.micro_spent - account.micro_reserved;
            IF TG_TABLE_NAME <> 'accounts' AND account.per_window IS NOT NULL THEN
                by_window = nullif(to_jsonb(NEW) ->> 'window', 'all');
            END IF;
            IF by_window IS NULL THEN
                balance = account;
                remaining = remaining - (
                    SELECT coalesce(max(micro_spent + micro_reserved), 0)
                    FROM windows WHERE dataset = NEW.dataset);
            ELSE
                SELECT * INTO balance FROM windows WHERE dataset = NEW.dataset AND "window" = by_window;
                remaining = remaining - balance.micro_spent - balance.micro_reserved;
            END IF;
            IF remaining < 0 THEN
                RAISE integrity_constraint_violation USING MESSAGE = 'never over the grant';
            END IF;
            SELECT coalesce(sum(micro_epsilon) FILTER (WHERE drew), 0)::bigint AS spent,
                coalesce(sum(micro_epsilon) FILTER (WHERE state = 'reserved'), 0)::bigint AS reserved
            INTO charged FROM charges
            WHERE dataset = NEW.dataset
                AND (account.per_window IS NULL OR "window" = coalesce(by_window, 'all'));
            IF balance.micro_spent IS DISTINCT FROM charged.spent
                OR balance.micro_reserved IS DISTINCT FROM charged.reserved
            THEN
                RAISE integrity_constraint_violation USING MESSAGE = 'balances are the sums of charges';
            END IF;
            RETURN NULL;
        END
        """,
    ),
    """
    CREATE CONSTRAINT TRIGGER balances_follow_charges
    AFTER UPDATE OF micro_granted, micro_spent, micro_reserved ON accounts
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION balances_follow_charges()
    """,
    """
    CREATE CONSTRAINT TRIGGER balances_follow_charges AFTER UPDATE ON windows
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION balances_follow_charges()
    """,
    """
    CREATE CONSTRAINT TRIGGER balances_follow_charges AFTER INSERT ON charges
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION balances_follow_charges()
    """,
    # Not on every update: a charge that is staged or published locks its row, not its account's.
    """
    CREATE CONSTRAINT TRIGGER moves_follow_balances AFTER UPDATE ON charges
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.drew <> NEW.drew OR (OLD.state = 'reserved') <> (NEW.state = 'reserved'))
    EXECUTE FUNCTION balances_follow_charges()
    """,
)

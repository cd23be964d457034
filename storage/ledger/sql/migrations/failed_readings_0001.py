"""What revision 0001 refuses of charges that give epsilon back: more of one key than its owner allows."""

from __future__ import annotations

from suffice.storage.ledger.sql.migrations.postgres_0001 import function

MESSAGE = "no more failed readings of a key give epsilon back than its owner allows"
_FAILED = """
    SELECT coalesce(sum(epoch - 1 + CASE WHEN state = 'abandoned' THEN 1 ELSE 0 END), 0) FROM charges
    WHERE dataset = NEW.dataset AND name = NEW.name AND "window" = NEW."window"
      AND amendment = NEW.amendment AND NOT drew
"""
_ALLOWED = "SELECT failed_readings FROM accounts WHERE dataset = NEW.dataset"
_RETURNS = "OLD.state = 'reserved' AND NEW.state = 'abandoned'"

SQLITE = (
    f"""
    CREATE TRIGGER failed_readings_are_limited BEFORE UPDATE ON charges
    WHEN {_RETURNS} AND ({_FAILED}) >= ({_ALLOWED})
    BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END
    """,
)
POSTGRES = (
    # Whoever returns epsilon holds the account's lock: the attempts of a key are counted one after another.
    function(
        "failed_readings_are_limited",
        f"""
        DECLARE allowed integer; failed bigint;
        BEGIN
            {_ALLOWED.replace("FROM", "INTO allowed FROM")} FOR UPDATE;
            {_FAILED.replace("FROM charges", "INTO failed FROM charges")};
            IF failed >= allowed THEN
                RAISE integrity_constraint_violation USING MESSAGE = '{MESSAGE}';
            END IF;
            RETURN NEW;
        END
        """,
    ),
    f"""
    CREATE TRIGGER failed_readings_are_limited BEFORE UPDATE ON charges FOR EACH ROW
    WHEN ({_RETURNS}) EXECUTE FUNCTION failed_readings_are_limited()
    """,
)

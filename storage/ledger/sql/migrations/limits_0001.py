"""How often a key of revision 0001 gives epsilon back: triggers for each database.

Attempts that fail before their draw are limited by the owner, draws that are returned by a number for all.
"""

from __future__ import annotations


def function(name: str, body: str, rights: str = "SECURITY INVOKER") -> str:
    """Return a trigger function that reads the ledger's tables, never temporary ones of their names."""
    setting = "SET search_path = pg_catalog, public, pg_temp"
    return f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql {rights} {setting} AS $${body}$$"


_TOO_MANY = "no more failed readings of a key give epsilon back than its owner allows"
_SAME_KEY = """dataset = NEW.dataset AND name = NEW.name AND "window" = NEW."window"
      AND amendment = NEW.amendment"""
_FAILED = f"""
    SELECT coalesce(sum(CASE WHEN draw_returned THEN drawing_epoch - 1 WHEN drew THEN 0
      WHEN state = 'abandoned' THEN epoch ELSE epoch - 1 END), 0) FROM charges
    WHERE {_SAME_KEY}
"""  # noqa: S608 - of texts in this file
_ALLOWED = "SELECT failed_readings FROM accounts WHERE dataset = NEW.dataset"
_RETURNS = "OLD.state = 'reserved' AND NEW.state = 'abandoned'"

MOST_DRAWS = 3
_TOO_MANY_DRAWS = f"no more than {MOST_DRAWS} draws of a key are returned"
_DRAWS = f"SELECT count(*) FROM charges WHERE {_SAME_KEY} AND draw_returned"  # noqa: S608
RETURNS_A_DRAW = "NEW.draw_returned AND NOT OLD.draw_returned"

LIMITS_ON_SQLITE = (
    f"""
    CREATE TRIGGER failed_readings_are_limited BEFORE UPDATE ON charges
    WHEN {_RETURNS} AND ({_FAILED}) >= ({_ALLOWED})
    BEGIN SELECT RAISE(ABORT, '{_TOO_MANY}'); END
    """,
    f"""
    CREATE TRIGGER returned_draws_are_limited BEFORE UPDATE ON charges
    WHEN {RETURNS_A_DRAW} AND ({_DRAWS}) >= {MOST_DRAWS}
    BEGIN SELECT RAISE(ABORT, '{_TOO_MANY_DRAWS}'); END
    """,
    # What came to its draw by too many attempts was to be spent: its death does not change that.
    f"""
    CREATE TRIGGER returned_draws_came_in_time BEFORE UPDATE ON charges
    WHEN {RETURNS_A_DRAW} AND ({_FAILED}) + OLD.drawing_epoch - 1 >= ({_ALLOWED})
    BEGIN SELECT RAISE(ABORT, '{_TOO_MANY}'); END
    """,
)
LIMITS_ON_POSTGRES = (
    # Whoever returns epsilon holds the account's lock: the attempts of a key are counted one after another.
    function(
        "failed_readings_are_limited",
        f"""
        DECLARE allowed integer; failed bigint;
        BEGIN
            {_ALLOWED.replace("FROM", "INTO allowed FROM")} FOR UPDATE;
            {_FAILED.replace("FROM charges", "INTO failed FROM charges")};
            IF failed >= allowed THEN
                RAISE integrity_constraint_violation USING MESSAGE = '{_TOO_MANY}';
            END IF;
            RETURN NEW;
        END
        """,
    ),
    f"""
    CREATE TRIGGER failed_readings_are_limited BEFORE UPDATE ON charges FOR EACH ROW
    WHEN ({_RETURNS}) EXECUTE FUNCTION failed_readings_are_limited()
    """,
    function(
        "returned_draws_are_limited",
        f"""
        DECLARE allowed integer; failed bigint; draws bigint;
        BEGIN
            {_ALLOWED.replace("FROM", "INTO allowed FROM")} FOR UPDATE;
            {_FAILED.replace("FROM charges", "INTO failed FROM charges")};
            {_DRAWS.replace("FROM charges", "INTO draws FROM charges")};
            IF draws >= {MOST_DRAWS} THEN
                RAISE integrity_constraint_violation USING MESSAGE = '{_TOO_MANY_DRAWS}';
            ELSIF failed + OLD.drawing_epoch - 1 >= allowed THEN
                RAISE integrity_constraint_violation USING MESSAGE = '{_TOO_MANY}';
            END IF;
            RETURN NEW;
        END
        """,
    ),
    f"""
    CREATE TRIGGER returned_draws_are_limited BEFORE UPDATE ON charges FOR EACH ROW
    WHEN ({RETURNS_A_DRAW}) EXECUTE FUNCTION returned_draws_are_limited()
    """,
)

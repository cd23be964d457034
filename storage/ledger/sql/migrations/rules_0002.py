"""What the tables of revision 0002 refuse by themselves: the rules of 0001 under new names, and one more.

Both databases carry a column's new name into triggers, constraints, indexes and privileges. Only the bodies
of PostgreSQL's functions are text, and are written anew.
"""

from __future__ import annotations

from suffice.storage.ledger.sql.migrations.rules_0001 import FUNCTIONS

RENAMED = {
    "accounts": {"micro_granted": "granted", "micro_spent": "spent", "micro_reserved": "reserved"},
    "windows": {"micro_spent": "spent", "micro_reserved": "reserved"},
    "charges": {"micro_epsilon": "charged"},
}
"""New names of columns, by table."""

_REFUSED = "the first grant fixes the measure of an account"
_KEEPS_ITS_MEASURE = "CREATE TRIGGER accounts_keep_their_measure BEFORE UPDATE ON accounts"
_OTHER = "NEW.measure <> OLD.measure"


def rules(dialect: str) -> list[str]:
    """Return the statements that bring the triggers of one database from revision 0001 to this one."""
    if dialect == "sqlite":
        return [f"{_KEEPS_ITS_MEASURE} WHEN {_OTHER} BEGIN SELECT RAISE(ABORT, '{_REFUSED}'); END"]
    refuses = f"FOR EACH ROW WHEN ({_OTHER}) EXECUTE FUNCTION ledger_refuses('{_REFUSED}')"
    return [*map(_renamed, FUNCTIONS), f"{_KEEPS_ITS_MEASURE} {refuses}"]


def _renamed(statement: str) -> str:
    for names in RENAMED.values():
        for before, after in names.items():
            statement = statement.replace(before, after)
    return statement.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)

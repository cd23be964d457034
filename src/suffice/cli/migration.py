"""``suffice ledger migrate``: a ledger of an earlier version's schema, brought to this one's."""

from __future__ import annotations

from dataclasses import dataclass

from suffice.cli import output
from suffice.cli.options import DEFAULT_LEDGER, JsonOption, LedgerOption
from suffice.cli.output import say
from suffice.pipeline.terms.declaration.documents import document


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """From which schema a ledger was migrated, None where it had this version's already; and that one."""

    before: str | None
    after: str


def migrate(ledger: LedgerOption = DEFAULT_LEDGER, *, as_json: JsonOption = False) -> None:
    """Bring a ledger to this version's schema; stop all runs and back it up before."""
    from suffice.storage.ledger.opening import migrate_ledger
    from suffice.storage.ledger.sql.tables import REVISION

    before = migrate_ledger(ledger)
    if as_json:
        output.print_json(document(Migration(before=before, after=REVISION)))
    elif before is None:
        say(f"nothing to migrate: the ledger has this version's schema {REVISION}")
    else:
        say(f"migrated from the schema {before} to {REVISION}: every entry is as it was")

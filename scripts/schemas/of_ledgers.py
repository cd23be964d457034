"""What commands print of ledgers and stores."""

from __future__ import annotations

from scripts.schemas.documents import ledger_export
from scripts.schemas.shapes import (
    Schema,
    closed,
    either,
    listed,
    named,
)
from scripts.schemas.typed import beside, schema_of
from suffice.cli.ledger import AbandonedCharge, GrantDocument
from suffice.cli.ledger_show import PersonDocument, ShownAccount, ShownCharge
from suffice.cli.trust import LedgerVerification, WrittenExport
from suffice.storage.ledger.account import KnownStore
from suffice.storage.operations.reconciliation import Adoption, Reconciliation
from suffice.storage.operations.recovery import Report
from suffice.storage.operations.verify_store import StoreVerification
from suffice.storage.operations.witness import Witness

_ACCOUNT = beside(ShownAccount, {"charges": listed(schema_of(ShownCharge))})
"""Charges are printed one after another, however many there are, and so are no part of a type."""
COMMANDS: dict[str, Schema] = {
    "ledger grant": schema_of(GrantDocument),
    "ledger show": closed({"accounts": listed(_ACCOUNT)}),
    "ledger person": schema_of(PersonDocument),
    "ledger verify": schema_of(LedgerVerification),
    "ledger export": either(
        closed({"entries": listed(named("ledger_entry", ledger_export()))}), schema_of(WrittenExport)
    ),
    "ledger witness": schema_of(Witness),
    "ledger reconcile": schema_of(Reconciliation),
    "ledger recover": schema_of(Report),
    "ledger abandon": schema_of(AbandonedCharge),
    "store verify": schema_of(StoreVerification),
    "store adopt": schema_of(Adoption),
    "store retire": schema_of(KnownStore),
    "store list": closed({"stores": listed(schema_of(KnownStore))}),
}
"""By command: what it prints with ``--json``."""

"""What commands print of ledgers and stores."""

from __future__ import annotations

from scripts.schemas.documents import ledger_export
from scripts.schemas.of_operations import COMPARED, VERIFIED
from scripts.schemas.shapes import (
    COUNT,
    COUNT_OR_NULL,
    EXACT,
    HASH,
    RELEASE_ID,
    TEXT,
    TEXTS,
    Schema,
    closed,
    each,
    either,
    listed,
    named,
    of_model,
    or_null,
)
from scripts.schemas.typed import fields_of, schema_of
from suffice.cli.ledger import KEY, RECONCILED
from suffice.cli.ledger_show import CHARGE
from suffice.pipeline.terms.declaration.data_contract import DataContract
from suffice.storage.ledger.account import Account, KnownStore, WindowBalance
from suffice.storage.ledger.charge import Charge, ChargeState, ChargeSummary, KeyCount
from suffice.storage.ledger.person import PersonView
from suffice.storage.operations.reconciliation import Adoption
from suffice.storage.operations.recovery import Report
from suffice.storage.operations.verify_store import StoreVerification

ACCOUNT: Schema = {
    **fields_of(Account),
    "contract": or_null(closed({"sha256": HASH, **of_model(DataContract)["properties"]})),
}
CHARGE_STATE = schema_of(ChargeState)
STORE = schema_of(KnownStore)
_exported = named("ledger_entry", ledger_export())

COMMANDS: dict[str, Schema] = {
    "ledger grant": closed({**ACCOUNT, "warnings": TEXTS}),
    "ledger show": closed(
        {
            "accounts": listed(
                closed(
                    {
                        **ACCOUNT,
                        "returned": EXACT,
                        "person": schema_of(PersonView),
                        "failed_readings": listed(schema_of(KeyCount)),
                        "returned_draws": listed(schema_of(KeyCount)),
                        "windows": listed(closed({**fields_of(WindowBalance), "returned": EXACT})),
                        "charges": listed(
                            closed(
                                {
                                    **fields_of(ChargeSummary, CHARGE),
                                    "counts_on": TEXT,
                                    "release_id": RELEASE_ID,
                                }
                            )
                        ),
                    }
                )
            )
        }
    ),
    "ledger person": closed(
        {
            **fields_of(Account, "dataset unit neighboring per_window"),
            **fields_of(PersonView),
            "asked": closed({**each(COUNT_OR_NULL, "rows windows"), "loss": EXACT}),
        }
    ),
    "ledger verify": closed(
        {
            **VERIFIED,
            **each(COUNT, "sequence since"),
            "hash": or_null(HASH),
            **each(COMPARED, "store witness"),
            "charges_elsewhere": COUNT_OR_NULL,
        }
    ),
    "ledger export": either(closed({"entries": listed(_exported)}), closed({"out": TEXT, "entries": COUNT})),
    "ledger witness": closed({"uri": TEXT, "sequence": COUNT, "hash": HASH}),
    "ledger reconcile": closed(
        {"charges": listed(schema_of(Charge, RECONCILED)), "skipped": COUNT, "witness": COUNT_OR_NULL}
    ),
    "ledger recover": schema_of(Report),
    "ledger abandon": closed(
        {**fields_of(Charge, KEY), **each(CHARGE_STATE, "before after"), "spent": EXACT}
    ),
    "store verify": schema_of(StoreVerification),
    "store adopt": schema_of(Adoption),
    "store retire": STORE,
    "store list": closed({"stores": listed(STORE)}),
}
"""By command: what it prints with ``--json``."""

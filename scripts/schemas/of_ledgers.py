"""What commands print of ledgers and stores."""

from __future__ import annotations

from scripts.schemas.documents import ledger_export
from scripts.schemas.of_operations import COMPARED, EDITION, VERIFIED
from scripts.schemas.shapes import (
    BOOLEAN,
    COUNT,
    COUNT_OR_NULL,
    EXACT,
    HASH,
    NEIGHBORING,
    RELEASE_ID,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    Schema,
    closed,
    digits,
    each,
    either,
    listed,
    mapped,
    named,
    of_dataclass,
    or_null,
)
from suffice.pipeline.terms.declaration.data_contract import DataContract
from suffice.storage.ledger.charge import ChargeState
from suffice.storage.operations.reconciliation import Adoption
from suffice.storage.operations.recovery import Action

CHARGE_STATE: Schema = {"enum": list(map(str, ChargeState))}
BALANCE = each(EXACT, "spent reserved remaining")
ACCOUNT: Schema = {
    **each(TEXT, "dataset unit"),
    "neighboring": NEIGHBORING,
    "granted": EXACT,
    **BALANCE,
    **each(TEXTS, "sources stores"),
    **each(TEXT_OR_NULL, "checksums per_window witness"),
    "guarded": BOOLEAN,
    "contract": or_null(closed({"sha256": HASH, **of_dataclass(DataContract)["properties"]})),
    "audit": or_null(closed(each(HASH, "sha256 plan_hash"))),
    "units_disjoint": BOOLEAN,
    "failed_readings_allowed": COUNT,
    "max_windows": COUNT_OR_NULL,
}
PERSON: Schema = {
    "so_far": closed(each(EXACT, "without_window in_a_window in_a_year in_every_window")),
    "granted": closed({**each(EXACT, "in_a_window in_a_year"), "in_every_window": or_null(EXACT)}),
    "windows": mapped(COUNT),
    "units_disjoint": BOOLEAN,
    "max_windows": COUNT_OR_NULL,
    "assumptions": TEXTS,
}
CHARGE: Schema = {
    "charge_id": digits(32),
    **each(TEXT, "dataset name"),
    **EDITION,
}
STORE: Schema = closed(
    {
        "store_id": digits(32),
        "uri": TEXT_OR_NULL,
        **each(COUNT, "first_sequence last_marker"),
        "retired": BOOLEAN,
    }
)
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
                        "person": closed(PERSON),
                        "failed_readings": listed(closed({"name": TEXT, **EDITION, "count": COUNT})),
                        "returned_draws": listed(closed({"name": TEXT, **EDITION, "count": COUNT})),
                        "windows": listed(closed({"window": TEXT, "returned": EXACT, **BALANCE})),
                        "charges": listed(
                            closed(
                                {
                                    **{name: CHARGE[name] for name in CHARGE if name != "dataset"},
                                    "attempt": COUNT,
                                    "state": CHARGE_STATE,
                                    **each(EXACT, "epsilon held"),
                                    "counts_as": {"enum": ["spent", "reserved", "returned"]},
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
            **each(TEXT, "dataset unit neighboring"),
            "per_window": TEXT_OR_NULL,
            **PERSON,
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
        {
            "charges": listed(
                closed(
                    {
                        **CHARGE,
                        "release_id": RELEASE_ID,
                        "store": TEXT,
                        "state": CHARGE_STATE,
                        "spent": EXACT,
                    }
                )
            ),
            "skipped": COUNT,
            "witness": COUNT_OR_NULL,
        }
    ),
    "ledger recover": closed(
        {
            "ok": BOOLEAN,
            "charges": listed(
                closed(
                    {
                        **CHARGE,
                        "attempt": COUNT,
                        "release_id": RELEASE_ID,
                        **each(TEXT, "store problem"),
                        "action": {"enum": list(map(str, Action))},
                        **each(CHARGE_STATE, "before after"),
                        **each(EXACT, "epsilon returned spent"),
                        "removed": TEXTS,
                    }
                )
            ),
        }
    ),
    "ledger abandon": closed({**CHARGE, **each(CHARGE_STATE, "before after"), "spent": EXACT}),
    "store verify": closed(
        {
            **VERIFIED,
            **each(COUNT, "releases files tombstones markers withdrawn publications left_files"),
            "ledger": COMPARED,
        }
    ),
    "store adopt": of_dataclass(Adoption),
    "store retire": STORE,
    "store list": closed({"stores": listed(STORE)}),
}
"""By command: what it prints with ``--json``."""

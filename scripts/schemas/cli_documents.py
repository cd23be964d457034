"""The schemas of documents that commands print with ``--json``, each declared here, by what prints it.

Not every command has one yet; those that have none are named in ``schemas/README.md``.
"""

from __future__ import annotations

from typing import Any

from scripts.schemas.documents import COUNT, EXACT, HASH, TEXT, TEXT_OR_NULL, TEXTS, closed, listed
from suffice.pipeline.families import FAMILIES

Schema = dict[str, Any]

NUMBER: Schema = {"type": "number"}
NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
COUNT_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 0}
BOOLEAN: Schema = {"type": "boolean"}
KEY: Schema = {"type": ["string", "number", "null"]}
"""Of a group, or of a variable of a table, whose name is the release's; or a further number of a row."""
FAMILY: Schema = {"enum": list(FAMILIES)}
LEDGER: Schema = {"enum": ["checked", "not_checked"]}
SIGNATURE: Schema = {"enum": ["checked", "not_checked", "unsigned", "wrong"]}
WITHDRAWAL = closed({"reason": TEXT, "created": TEXT, "signed_by": TEXT_OR_NULL, "signature": SIGNATURE})


def rows(fields: Schema) -> Schema:
    """Return rows that have these fields, and keys beside them."""
    return listed(
        {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": KEY}
    )


def document(fields: Schema, optional: tuple[str, ...] = ()) -> Schema:
    """Return a document; it may name its source, and withdrawn releases that it rests on."""
    whole = closed(fields, optional)
    return {
        **whole,
        "properties": {
            **whole["properties"],
            "withdrawn": whole["properties"].get("withdrawn", {"type": "array", "items": {"type": "object"}}),
            "source": whole["properties"].get("source", {"type": "object"}),
        },
    }


PLAN = closed(
    {
        "name": TEXT,
        "dataset": TEXT,
        "epsilon": EXACT,
        "neighboring": {"enum": ["add_or_remove_one", "replace_one"]},
        "unit": TEXT,
        "max_rows": COUNT,
        "unit_nulls": {"enum": ["drop", "own_unit"]},
        "window": TEXT_OR_NULL,
        "amend": TEXTS,
        "epsilon_per_window": EXACT,
        "derived": {"type": "object", "additionalProperties": TEXT},
        "groups": {"type": "object", "additionalProperties": COUNT},
        "cells": COUNT,
        "plan_hash": HASH,
        "statistics": listed(
            closed(
                {
                    "name": TEXT,
                    "family": FAMILY,
                    "columns": TEXTS,
                    "rows_of": TEXT_OR_NULL,
                    "design": {"enum": ["partition_of_unity", "bounded", "minimal"]},
                    "epsilon": EXACT,
                    "l1_sensitivity": {"type": "integer", "minimum": 1},
                    "scale": EXACT,
                    "moment_weight": EXACT,
                    "components": listed(closed({"name": TEXT})),
                    "derived": rows({"quantity": TEXT, "noise_sd": NUMBER}),
                },
                optional=("moment_weight",),
            )
        ),
        "target": {"type": "object"},
    },
    optional=("max_rows", "unit_nulls", "target"),
)
ACCOUNT: Schema = {
    "dataset": TEXT,
    "neighboring": {"enum": ["add_or_remove_one", "replace_one"]},
    "unit": TEXT,
    "granted": EXACT,
    "spent": EXACT,
    "reserved": EXACT,
    "remaining": EXACT,
    "sources": TEXTS,
    "checksums": TEXT_OR_NULL,
    "stores": TEXTS,
    "per_window": TEXT_OR_NULL,
}
RELEASE: Schema = {
    "name": TEXT,
    "dataset": TEXT,
    "window": TEXT,
    "window_ended": TEXT,
    "released": TEXT,
    "closed": BOOLEAN,
    "amendment": COUNT,
    "amends": TEXT_OR_NULL,
    "amended_by": TEXT_OR_NULL,
    "release_id": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
    "uri": TEXT,
    "epsilon": EXACT,
    "neighboring": {"enum": ["add_or_remove_one", "replace_one"]},
    "unit": TEXT,
    "max_rows": COUNT,
    "unit_nulls": {"enum": ["drop", "own_unit"]},
    "status": {"enum": ["published", "already_published"]},
    "signed_by": TEXT_OR_NULL,
    "signature": SIGNATURE,
    "files": listed(
        closed({"statistic": TEXT, "path": TEXT, "sha256": HASH, "rows": COUNT, "rows_of": TEXT_OR_NULL})
    ),
}
OF_WINDOWS = (
    *("window_ended", "released", "closed", "amendment", "amends", "amended_by"),
    *("max_rows", "unit_nulls"),
)
"""What a release of a spec without windows, or whose unit is a row, has not."""
CLIPPING: Schema = {
    "anyOf": [
        {"type": "null"},
        closed(
            {
                "threshold": NUMBER,
                "is_known": BOOLEAN,
                "is_warned": BOOLEAN,
                "cells": rows(
                    {
                        "share": NUMBER_OR_NULL,
                        "bias": NUMBER_OR_NULL,
                        "is_modelled": BOOLEAN,
                        "is_known": BOOLEAN,
                        "is_warned": BOOLEAN,
                    }
                ),
            }
        ),
    ]
}
DESIGN_EFFECT: Schema = {"anyOf": [{"type": "null"}, rows({"design_effect": NUMBER})]}
DIAGNOSTICS: Schema = {"type": "object"}
SUMMARY: Schema = {
    "parameter": TEXT,
    "mean": NUMBER_OR_NULL,
    "sd": NUMBER_OR_NULL,
    "lower": NUMBER_OR_NULL,
    "upper": NUMBER_OR_NULL,
}
TERMS: Schema = {
    "statistic": TEXT,
    "rows_of": TEXT_OR_NULL,
    "method": {"enum": ["noise-aware", "plug-in"]},
    "prior": TEXT,
    "n_prior": TEXT_OR_NULL,
    "predictor_prior": TEXT_OR_NULL,
    "mass": NUMBER,
    "draws": COUNT,
    "seed": COUNT_OR_NULL,
    "diagnostics": DIAGNOSTICS,
}


def of_two(schema: Schema) -> Schema:
    """Return the same of the first release and of the second."""
    return closed({"first": schema, "second": schema})


PRINTED: dict[str, tuple[str, Schema]] = {
    "app.table": (
        "table",
        document(
            {
                "statistic": TEXT,
                "family": FAMILY,
                "rows_of": TEXT_OR_NULL,
                "saturated": COUNT,
                "rows": rows({"quantity": TEXT, "estimate": NUMBER, "noise_sd": NUMBER}),
            }
        ),
    ),
    "app.show": ("show", document(RELEASE, optional=OF_WINDOWS)),
    "app.release": (
        "release",
        document({**RELEASE, "remaining_epsilon": TEXT_OR_NULL}, optional=OF_WINDOWS),
    ),
    "posterior.posterior": (
        "posterior",
        document(
            {
                "release": TEXT,
                "family": FAMILY,
                **TERMS,
                "plug_in": TEXTS,
                "rows": rows(SUMMARY),
                "clipping": CLIPPING,
                "design_effect": DESIGN_EFFECT,
                "conflicts": TEXTS,
                "probability": listed({"type": "object"}),
                "comparison": listed({"type": "object"}),
            },
            optional=("plug_in", "diagnostics", "probability", "comparison"),
        ),
    ),
    "analysis.compare": (
        "compare",
        document(
            {
                "first": TEXT,
                "second": TEXT,
                **TERMS,
                "rows": rows({"parameter": TEXT, "before": NUMBER_OR_NULL, "after": NUMBER_OR_NULL}),
                "clipping": of_two(CLIPPING),
                "design_effect": of_two(DESIGN_EFFECT),
                "conflicts": of_two(TEXTS),
            },
            optional=("diagnostics",),
        ),
    ),
    "pool.pool": (
        "pool",
        document(
            {
                "family": FAMILY,
                **TERMS,
                "disjoint": TEXTS,
                "same_data": TEXTS,
                "rows": rows(SUMMARY),
                "clipping": CLIPPING,
                "conflicts": TEXTS,
            },
            optional=("diagnostics", "disjoint", "same_data"),
        ),
    ),
    "calibration.plan": ("plan", PLAN),
    "trust.verify": (
        "verify",
        document(
            {
                "ok": BOOLEAN,
                "problems": TEXTS,
                "ledger": LEDGER,
                "signature": SIGNATURE,
                "withdrawn": {"anyOf": [WITHDRAWAL, {"type": "null"}]},
            }
        ),
    ),
    "trust._verify_publication": (
        "verify-publication",
        document(
            {
                "ok": BOOLEAN,
                "problems": TEXTS,
                "ledger": LEDGER,
                "signature": SIGNATURE,
                "files": COUNT,
                "left_files": COUNT,
                "releases": listed(
                    closed(
                        {
                            "release": TEXT,
                            "release_id": TEXT,
                            "state": {"enum": ["stands", "withdrawn", "not_found", "unreadable"]},
                        }
                    )
                ),
            }
        ),
    ),
    "trust.verify_ledger": (
        "ledger-verify",
        closed(
            {
                "ok": BOOLEAN,
                "problems": TEXTS,
                "sequence": COUNT,
                "hash": HASH,
                "since": COUNT,
                "store": LEDGER,
                "witness": LEDGER,
                "charges_elsewhere": COUNT_OR_NULL,
            }
        ),
    ),
    "trust.witness_ledger": ("ledger-witness", closed({"uri": TEXT, "sequence": COUNT, "hash": HASH})),
    "ledger.grant": ("ledger-grant", closed({**ACCOUNT, "warnings": TEXTS})),
    "ledger.abandon_command": (
        "ledger-abandon",
        closed(
            {
                "charge_id": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
                "dataset": TEXT,
                "name": TEXT,
                "window": TEXT,
                "amendment": COUNT,
                "before": TEXT,
                "after": TEXT,
                "spent": EXACT,
            }
        ),
    ),
    "withdrawal.withdraw": (
        "withdraw",
        closed(
            {
                "release": TEXT,
                "release_id": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
                "uri": TEXT,
                "status": TEXT,
                "withdrawal": WITHDRAWAL,
            }
        ),
    ),
    "withdrawal.describe": ("describe", closed({"files": listed(closed({"file": TEXT, "status": TEXT}))})),
    "app.init": ("init", closed({"spec": TEXT, "out": TEXT_OR_NULL})),
}
"""By module and function of ``suffice.cli``: the name of a schema, and the schema."""

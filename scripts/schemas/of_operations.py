"""What commands print that make, show and check releases: plans, windows, rehearsals, keys, profiles."""

from __future__ import annotations

from scripts.schemas.of_answers import (
    SIGNATURE,
    SUMMARIES,
    WITHDRAWAL,
    reading,
)
from scripts.schemas.of_publications import VERIFIED_PUBLICATION
from scripts.schemas.shapes import (
    BOOLEAN,
    COUNT,
    COUNT_OR_NULL,
    EXACT,
    EXACT_OR_NULL,
    HASH,
    HOUR,
    KEY_ID,
    METHOD,
    NEIGHBORING,
    NUMBER,
    RELEASE_ID,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    UNIT_NULLS,
    Schema,
    closed,
    each,
    either,
    listed,
    mapped,
    of_model,
    or_null,
)
from scripts.schemas.typed import CONTRACT, ERROR, beside, fields_of, may_lack, schema_of
from suffice.cataloguing.catalogue import Catalogue
from suffice.cli.plan import YearOfPerson
from suffice.doctor.examination import Diagnosis
from suffice.monitoring.standing import Standing
from suffice.pipeline.ask.planning.beside_sample import ErrorComparison
from suffice.pipeline.ask.planning.smallest_epsilon import NeededEpsilon
from suffice.pipeline.spec.expected import ExpectPlan
from suffice.pipeline.spec.plan import Plan
from suffice.pipeline.terms.declaration.documents import Positive
from suffice.pipeline.terms.statistics.statistic_plan import HEADING, NOISY, SamplePlan, StatisticPlan
from suffice.releasing.backfill import Backfill
from suffice.releasing.gap_report import GapReport
from suffice.releasing.rehearsal import Rehearsal
from suffice.storage.operations.audits import AuditDocument
from suffice.storage.operations.disclosure import TO_STATE
from suffice.storage.operations.verify_store import Verification

COMPARED: Schema = {"enum": ["checked", "not_checked"]}
VERIFIED: Schema = {"ok": BOOLEAN, "problems": TEXTS}
FAILED = closed({"error": closed(ERROR)})
"""What every command prints in place of its document where it fails."""

PLAN: Schema = {
    **fields_of(Plan),
    "statistics": listed(
        either(
            schema_of(StatisticPlan, NOISY),
            closed(
                {
                    **fields_of(StatisticPlan, HEADING),
                    "sample": closed(
                        {**fields_of(SamplePlan), "epsilon_unused": EXACT, "candidates": schema_of(Positive)}
                    ),
                }
            ),
        )
    ),
    "contract": or_null(HASH),
    "expect": schema_of(ExpectPlan | None),
    "person": schema_of(YearOfPerson | None),
    "unchecked_columns": listed(TEXT),
    "target": beside(NeededEpsilon, {"seed": COUNT_OR_NULL}),
    "beside": closed({"seed": COUNT_OR_NULL, "statistics": listed(schema_of(ErrorComparison))}),
}
RELEASE: Schema = {
    **each(TEXT, "name dataset window window_ended uri unit"),
    "released": HOUR,
    "closed": BOOLEAN,
    "amendment": COUNT,
    **each(or_null(RELEASE_ID), "amends amended_by"),
    "release_id": RELEASE_ID,
    "epsilon": EXACT,
    "neighboring": NEIGHBORING,
    "max_rows": COUNT,
    "unit_nulls": UNIT_NULLS,
    **each(or_null(HASH), "contract audit"),
    "one_unit": TEXT,
    "status": {"enum": ["published", "already_published"]},
    "signed_by": or_null(KEY_ID),
    "signature": SIGNATURE,
    "files": listed(
        closed(
            {
                **each(TEXT, "statistic path"),
                "sha256": HASH,
                "rows": COUNT,
                "rows_of": TEXT_OR_NULL,
                "mechanism": {"enum": ["discrete_laplace", "exponential"]},
            }
        )
    ),
}
OF_WINDOWS = (
    *("window_ended", "released", "closed", "amendment", "amends", "amended_by"),
    *("max_rows", "unit_nulls"),
)
"""What a release of a spec without windows, or whose unit is a row, has not."""
EDITION: Schema = {"window": TEXT, "amendment": COUNT}
DISCLOSURE = reading(
    {
        "registry": TEXT,
        "entry": closed(
            {
                **each(TEXT, "url_slug status"),
                "tier": {"const": 3},
                "deployment": closed(
                    {
                        "basic": closed(each(TEXT, "name data_product_type description publication_date")),
                        "dp_variant": closed(each(TEXT, "variant_name unprotected_quantities")),
                        "privacy_loss": closed(
                            {
                                **each(TEXT, "privacy_unit privacy_unit_details privacy_parameters_details"),
                                "privacy_parameters": closed({"epsilon": NUMBER}),
                            }
                        ),
                        "deployment_model": closed(
                            each(TEXT, "model_name model_name_details actors access_type")
                        ),
                        "accounting": closed(each(TEXT, "post_processing composition")),
                        "implementation": closed(
                            each(TEXT, "preprocessing_and_hyperparameter_tuning mechanisms")
                        ),
                        "administrative": closed({"notes": TEXT}),
                    }
                ),
            }
        ),
        "to_state": closed(dict.fromkeys(TO_STATE, TEXT)),
    }
)
STANDING = schema_of(Standing)
"""How an installation stands, whatever command says it."""

COMMANDS: dict[str, Schema] = {
    "demo": closed(
        {
            **each(TEXT, "release plot catalogue"),
            "status": RELEASE["status"],
            **each(EXACT, "spent remaining"),
            "posteriors": listed(
                closed({**each(TEXT, "statistic prior"), "method": METHOD, "rows": SUMMARIES})
            ),
        }
    ),
    "init": closed({"spec": TEXT, "out": TEXT_OR_NULL}),
    "plan": closed(
        PLAN, (*may_lack(Plan), "contract", "target", "beside", "expect", "person", "unchecked_columns")
    ),
    "inspect": closed(
        {
            "contract": CONTRACT,
            "sha256": HASH,
            **each(TEXT_OR_NULL, "out problem"),
            "exact_counts": or_null(
                closed(
                    {
                        **each(COUNT_OR_NULL, "folders files read rows"),
                        "unread_folders": listed(TEXT),
                        "columns": listed(
                            closed({"column": TEXT, **each(COUNT, "values fit"), "types": mapped(COUNT)})
                        ),
                    }
                )
            ),
        }
    ),
    "release": reading({**RELEASE, "remaining_epsilon": EXACT_OR_NULL}, OF_WINDOWS),
    "audit": of_model(AuditDocument),
    "rehearse": schema_of(Rehearsal),
    "backfill": schema_of(Backfill),
    "status": either(STANDING, schema_of(GapReport)),
    "metrics": closed({"out": TEXT_OR_NULL, "written": BOOLEAN, "standing": STANDING}),
    "doctor": schema_of(Diagnosis),
    "show": reading(RELEASE, OF_WINDOWS),
    "verify": either(
        schema_of(Verification),
        VERIFIED_PUBLICATION,
    ),
    "disclose": DISCLOSURE,
    "withdraw": closed(
        {
            **each(TEXT, "release uri"),
            "release_id": RELEASE_ID,
            "status": {"enum": ["withdrawn", "already_withdrawn"]},
            "withdrawal": WITHDRAWAL,
        }
    ),
    "describe": closed({"files": listed(closed(each(TEXT, "file status")))}),
    "catalogue": closed({**fields_of(Catalogue), "ok": BOOLEAN}),
    "keys new": closed({"key_id": KEY_ID, **each(TEXT, "private_key public_key")}),
    "keys show": closed({"keys": listed(closed({"key_id": KEY_ID, "public_key": HASH}))}),
    "cluster certificates": closed(
        {
            "directory": TEXT,
            "status": {"enum": ["made", "renewed", "unchanged"]},
            "certificates": listed(closed({**each(TEXT, "role certificate key ends"), "has_ended": BOOLEAN})),
        }
    ),
    "config show": closed(
        {
            "profile": or_null(closed(each(TEXT, "path origin"))),
            "ignored": TEXTS,
            "settings": listed(
                closed(
                    {
                        **each(TEXT, "name origin"),
                        "value": TEXT_OR_NULL,
                        "allowed": TEXTS,
                        "refused": BOOLEAN,
                    }
                )
            ),
        }
    ),
}
"""By command: what it prints with ``--json``."""

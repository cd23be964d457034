"""What commands print that make, show and check releases: plans, windows, rehearsals, keys, profiles."""

from __future__ import annotations

from scripts.schemas.of_answers import (
    SIGNATURE,
    SUMMARIES,
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
    of_model,
    or_null,
)
from scripts.schemas.typed import ERROR, beside, fields_of, may_lack, schema_of
from suffice.cataloguing.catalogue import Catalogue
from suffice.cli.config import ConfigDocument
from suffice.cli.inspect import InspectionDocument, Skeleton
from suffice.cli.keys import ShownCertificates, ShownKey
from suffice.cli.monitor import MetricsDocument
from suffice.cli.plan import YearOfPerson
from suffice.cli.withdrawal import DescribedFile
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
from suffice.storage.operations.disclosure import Disclosure
from suffice.storage.operations.verify_store import Verification
from suffice.storage.operations.withdrawing import WithdrawnRelease
from suffice.storage.signatures.signing import KeyFiles

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
    "init": schema_of(Skeleton),
    "plan": closed(PLAN, (*may_lack(Plan), "contract", "target", "beside", "expect", "person")),
    "inspect": schema_of(InspectionDocument),
    "release": reading({**RELEASE, "remaining_epsilon": EXACT_OR_NULL}, OF_WINDOWS),
    "audit": of_model(AuditDocument),
    "rehearse": schema_of(Rehearsal),
    "backfill": schema_of(Backfill),
    "status": either(STANDING, schema_of(GapReport)),
    "metrics": schema_of(MetricsDocument),
    "doctor": schema_of(Diagnosis),
    "show": reading(RELEASE, OF_WINDOWS),
    "verify": either(
        schema_of(Verification),
        VERIFIED_PUBLICATION,
    ),
    "disclose": reading(fields_of(Disclosure)),
    "withdraw": schema_of(WithdrawnRelease),
    "describe": closed({"files": listed(schema_of(DescribedFile))}),
    "catalogue": schema_of(Catalogue),
    "keys new": schema_of(KeyFiles),
    "keys show": closed({"keys": listed(schema_of(ShownKey))}),
    "cluster certificates": schema_of(ShownCertificates),
    "config show": schema_of(ConfigDocument),
}
"""By command: what it prints with ``--json``."""

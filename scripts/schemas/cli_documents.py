"""The schemas of all that commands print with ``--json``, by command; a test holds them against the commands.

``error`` is what any of them prints in place of its document where it fails. Each is of the type that the
command prints; what no type says is said here.
"""

from __future__ import annotations

from scripts.schemas import documents
from scripts.schemas.shapes import Schema, closed, either, listed, named, of_model
from scripts.schemas.typed import ERROR as FAILURE
from scripts.schemas.typed import beside, fields_of, schema_of
from suffice.cataloguing.catalogue import Catalogue
from suffice.cli.adopt import (
    AdoptedAnswer,
    AdoptedList,
    AdoptedTable,
    ShownAdopted,
    VerifiedAdopted,
)
from suffice.cli.calibration import CalibratedAnswer, PooledCalibratedAnswer
from suffice.cli.compare import ComparedAnswer, HeldOutAnswer, PriorsAnswer
from suffice.cli.config import ConfigDocument
from suffice.cli.demo import DemoDocument
from suffice.cli.field import FieldAnswer
from suffice.cli.hidden_markov import FitAnswer, StatesAnswer
from suffice.cli.inspect import InspectionDocument, Skeleton
from suffice.cli.keys import ShownCertificates, ShownKey
from suffice.cli.ledger import AbandonedCharge, GrantDocument
from suffice.cli.ledger_show import PersonDocument, ShownAccount, ShownCharge
from suffice.cli.migration import Migration
from suffice.cli.monitor import MetricsDocument
from suffice.cli.output import WithdrawnSource
from suffice.cli.plan import Compared, Target, YearOfPerson
from suffice.cli.pool import PooledAnswer
from suffice.cli.pooled_table import StatedPooled
from suffice.cli.posterior import PosteriorAnswer
from suffice.cli.predict import ClassifiedAnswer, PredictedAnswer
from suffice.cli.publications import FetchedPublication, PublicationList
from suffice.cli.quantiles import QuantilesAnswer
from suffice.cli.query import QueryAnswer
from suffice.cli.release import MadeRelease, ReleaseList, ShownRelease
from suffice.cli.small_areas import SmallAreasAnswer
from suffice.cli.synthesize import SynthesizeAnswer
from suffice.cli.table import StatedEstimates, StatedQuantile, StatedSample, StatisticList
from suffice.cli.transitions import TransitionsAnswer
from suffice.cli.tree import TreeAnswer
from suffice.cli.trust import LedgerVerification, VerifiedPublication, WrittenExport
from suffice.cli.withdrawal import DescribedFile
from suffice.doctor.examination import Diagnosis
from suffice.monitoring.standing import Standing
from suffice.pipeline.ask.planning.divided_plan import DividedPlan
from suffice.pipeline.spec.expected import ExpectPlan
from suffice.pipeline.spec.plan import Plan
from suffice.pipeline.terms.declaration.documents import Sha256
from suffice.pipeline.terms.statistics.statistic_plan import (
    NOISY,
    NOISY_ON_CONE,
    ShownSample,
    StatisticPlan,
)
from suffice.releasing.backfill import Backfill
from suffice.releasing.gap_report import GapReport
from suffice.releasing.rehearsal import Rehearsal
from suffice.storage.ledger.account import KnownStore
from suffice.storage.operations.audits import AuditDocument
from suffice.storage.operations.disclosure import Disclosure
from suffice.storage.operations.reconciliation import Adoption, Reconciliation
from suffice.storage.operations.recovery import Report
from suffice.storage.operations.verify_release import Verification
from suffice.storage.operations.verify_store import StoreVerification
from suffice.storage.operations.withdrawing import RestingRelease, WithdrawnRelease
from suffice.storage.operations.witness import Witness
from suffice.storage.publications.publication import PublishedEntry
from suffice.storage.signatures.signing import KeyFiles

ERROR = "error"
_WITHDRAWN = {"withdrawn": named("withdrawn", listed(schema_of(WithdrawnSource)))}
"""The withdrawn releases that a document rests on: ``output.print_json`` adds them to any."""


def reading(*kinds: type) -> Schema:
    """Return what has one of these types, and rests on releases, which may have been withdrawn."""
    schemas = [beside(kind, _WITHDRAWN, lacking=tuple(_WITHDRAWN)) for kind in kinds]
    return either(*schemas) if schemas[1:] else schemas[0]


def published(further: Schema) -> Schema:
    """Return a publication as it is shown: fields of its manifest, which pydantic checks, and a few more."""
    manifest = documents.publication_manifest()["properties"]
    shown = ("publication_id", "title", "created", "epsilon", "rho", "cost", "diagnostics", "request")
    file = {**of_model(PublishedEntry)["properties"], **_URI}
    fields = {
        **{name: manifest[name] for name in shown},
        **_URI,
        **fields_of(ShownRelease, "signed_by"),
        "files": listed(named("published_file", closed(file))),
    }
    return closed({**fields, **further, **_WITHDRAWN}, ("rho", *_WITHDRAWN))


_URI = {"uri": schema_of(str)}
_PUBLISHED = published({"status": {"enum": ["published", "found"]}})
_ACCOUNT = beside(ShownAccount, {"charges": listed(schema_of(ShownCharge))})
"""Charges are printed one after another, however many there are, and so are no part of a type."""
_PLAN = {
    "statistics": listed(
        either(
            schema_of(StatisticPlan, NOISY),
            schema_of(StatisticPlan, NOISY_ON_CONE),
            schema_of(ShownSample),
        )
    ),
    "contract": schema_of(Sha256 | None),
    "expect": schema_of(ExpectPlan | None),
    "person": schema_of(YearOfPerson | None),
    "unchecked_columns": listed(schema_of(str)),
    "target": schema_of(Target),
    "beside": schema_of(Compared),
    "divide": schema_of(DividedPlan),
}
"""What is printed of a plan beside its own keys; all but the statistics depends on what is asked."""

PRINTED: dict[str, Schema] = {
    ERROR: closed({"error": closed(FAILURE)}),
    "demo": schema_of(DemoDocument),
    "init": schema_of(Skeleton),
    "plan": beside(Plan, _PLAN, lacking=tuple(_PLAN)[1:]),
    "inspect": schema_of(InspectionDocument),
    "release": reading(MadeRelease),
    "audit": of_model(AuditDocument),
    "rehearse": schema_of(Rehearsal),
    "backfill": schema_of(Backfill),
    "status": either(schema_of(Standing), schema_of(GapReport)),
    "metrics": schema_of(MetricsDocument),
    "doctor": schema_of(Diagnosis),
    "adopt": schema_of(ShownAdopted),
    "list": either(schema_of(ReleaseList), schema_of(AdoptedList)),
    "show": either(reading(ShownRelease), schema_of(ShownAdopted)),
    "verify": either(schema_of(Verification), reading(VerifiedPublication), schema_of(VerifiedAdopted)),
    "disclose": reading(Disclosure),
    "withdraw": schema_of(WithdrawnRelease),
    "describe": closed({"files": listed(schema_of(DescribedFile))}),
    "catalogue": schema_of(Catalogue),
    "keys new": schema_of(KeyFiles),
    "keys show": closed({"keys": listed(schema_of(ShownKey))}),
    "cluster certificates": schema_of(ShownCertificates),
    "config show": schema_of(ConfigDocument),
    "ledger grant": schema_of(GrantDocument),
    "ledger show": closed({"accounts": listed(_ACCOUNT)}),
    "ledger person": schema_of(PersonDocument),
    "ledger verify": schema_of(LedgerVerification),
    "ledger export": either(
        closed({"entries": listed(named("ledger_entry", documents.ledger_export()))}),
        schema_of(WrittenExport),
    ),
    "ledger witness": schema_of(Witness),
    "ledger reconcile": schema_of(Reconciliation),
    "ledger migrate": schema_of(Migration),
    "ledger recover": schema_of(Report),
    "ledger abandon": schema_of(AbandonedCharge),
    "store verify": schema_of(StoreVerification),
    "store adopt": schema_of(Adoption),
    "store retire": schema_of(KnownStore),
    "store list": closed({"stores": listed(schema_of(KnownStore))}),
    "table": reading(
        StatisticList, StatedEstimates, StatedSample, StatedQuantile, StatedPooled, AdoptedTable, ShownAdopted
    ),
    "posterior": reading(PosteriorAnswer, AdoptedAnswer),
    "quantiles": reading(QuantilesAnswer),
    "tree": reading(TreeAnswer),
    "compare": reading(ComparedAnswer),
    "pool": reading(PooledAnswer),
    "compare-priors": reading(PriorsAnswer, HeldOutAnswer),
    "calibrate": reading(CalibratedAnswer, PooledCalibratedAnswer),
    "model classify": reading(ClassifiedAnswer),
    "model predict": reading(PredictedAnswer),
    "model query": either(_PUBLISHED, reading(QueryAnswer)),
    "model transitions": either(_PUBLISHED, reading(TransitionsAnswer)),
    "model field": reading(FieldAnswer),
    "model small-areas": reading(SmallAreasAnswer),
    "model synthesize": reading(SynthesizeAnswer),
    "model hidden-markov": either(_PUBLISHED, reading(FitAnswer), reading(StatesAnswer)),
    "publish": _PUBLISHED,
    "publications list": reading(PublicationList),
    "publications show": published({"releases": listed(schema_of(RestingRelease))}),
    "publications verify": reading(VerifiedPublication),
    "publications fetch": schema_of(FetchedPublication),
}


def file_name(command: str) -> str:
    """Return the name of a command's schema."""
    return f"cli/{command.replace(' ', '-')}-1"

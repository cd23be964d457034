"""The schemas of what stands in stores and exports: of the models that read it, and of a plan.

Two shapes are written by hand. A plan's values are canonical text, whatever the model of a spec reads them
as. Entries of a chain stand for good, those of former versions too, so that no type of today's code has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.schemas.shapes import (
    BOOLEAN,
    COUNT,
    COUNT_OR_NULL,
    EXACT,
    HASH,
    HOUR,
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
    of_model,
    or_null,
)
from scripts.schemas.typed import beside, schema_of
from suffice.pipeline.ask.publication.request import Request
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.about import (
    LONGEST_DESCRIPTION,
    LONGEST_LABEL,
    LONGEST_LINE,
    LONGEST_UNIT,
    MOST_DIGITS,
)
from suffice.pipeline.spec.terms import Privacy
from suffice.pipeline.spec.windows_and_amendments import Window
from suffice.pipeline.terms.declaration.declared_law import DeclaredLaw
from suffice.pipeline.terms.declaration.derived_columns import KINDS
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
from suffice.storage.ledger.amounts import AMOUNTS, stated
from suffice.storage.ledger.chain import EntryKind
from suffice.storage.publications.publication import PublicationManifest
from suffice.storage.releases.about_file import StatedAbout
from suffice.storage.releases.adopted_files import FORMAT, TABLE
from suffice.storage.releases.manifest_entries import AnyEntry, Declared
from suffice.storage.releases.manifest_model import Stated
from suffice.storage.releases.withdrawal import StatedWithdrawal

if TYPE_CHECKING:
    from pydantic import BaseModel

VALUE = named(
    "value",
    either(
        {"type": ["string", "boolean", "null"]},
        listed({"$ref": "#/$defs/value"}),
        mapped({"$ref": "#/$defs/value"}),
    ),
)
"""A value of a canonical plan, which holds no JSON number."""
DOMAIN = either(
    TEXTS,
    closed({"range": {"type": "array", "items": EXACT, "minItems": 2, "maxItems": 2}}),
    closed(each(TEXT, "from to every")),
)
STEP: Schema = {"charge_id": digits(32), "epoch": {**COUNT, "minimum": 1}}
ENTRIES: dict[EntryKind, Schema] = {
    EntryKind.CREATED: {"ledger_id": digits(32), "format_version": {"const": 1}},
    EntryKind.GRANT: {
        "dataset": TEXT,
        "neighboring": NEIGHBORING,
        "unit": TEXT,
        "per_window": TEXT_OR_NULL,
        "units_disjoint": BOOLEAN,
        **each(or_null(HASH), "contract_sha256 audit_sha256 audit_plan_hash"),
        "failed_readings": COUNT,
        "max_windows": COUNT_OR_NULL,
        "granted": COUNT,
    },
    EntryKind.RESERVED: {
        "charge_id": digits(32),
        "release_id": RELEASE_ID,
        **each(TEXT, "dataset name window"),
        "amendment": COUNT,
        "amends": or_null(RELEASE_ID),
        "amended_sha256": or_null(HASH),
        "attempt": COUNT,
        "charged": COUNT,
        "plan_hash": HASH,
        "store_id": digits(32),
    },
    EntryKind.TAKEN_OVER: STEP,
    EntryKind.DRAWING: {**STEP, "zone_data": TEXT_OR_NULL},
    EntryKind.STAGED: {**STEP, "manifest_sha256": HASH},
    EntryKind.PUBLISHED: STEP,
    EntryKind.ABANDONED: {**STEP, "returned": COUNT, "draw_returned": BOOLEAN},
    EntryKind.STORE_ADOPTED: {"store_id": digits(32)},
    EntryKind.STORE_RETIRED: {"store_id": digits(32)},
    EntryKind.CHECKPOINT: {},
    EntryKind.SKIPPED: {},
    EntryKind.RECONCILED: {
        "charge_id": digits(32),
        "marker_sequence": COUNT,
        "marker_hash": HASH,
        "drawing_sequence": COUNT_OR_NULL,
        "drawing_hash": or_null(HASH),
    },
}
"""What the public may see of each kind of entry; amounts are those of an account's measure."""


def family() -> Schema:
    """Return the schema of the name of a family."""
    return {"enum": list(FAMILIES)}


_OF_A_MEASURE: list[Schema] = [{"required": [str(measure)]} for measure in PrivacyMeasure]


def plan() -> Schema:
    """Return the schema of a canonical plan, of the models of specs: names are theirs, values canonical."""
    statistics = [_statistic(name) for name in FAMILIES]
    return closed(
        {
            "format_version": {"const": "1"},
            **each(TEXT, "name dataset"),
            "privacy": {**_canonical(Privacy), "oneOf": _OF_A_MEASURE},
            "window": or_null(_canonical(Window)),
            "where": VALUE,
            "derived": mapped(either(*map(_canonical, KINDS))),
            "groups": mapped(DOMAIN),
            "statistics": {**mapped({"oneOf": statistics}), "minProperties": 1},
            "hierarchies": mapped({**listed(TEXT), "minItems": 2}),
            "max_total_rows": EXACT,
        },
        ("where", "hierarchies"),
    )


def _statistic(family: str) -> Schema:
    """Return the schema of a plan's entry for a statistic of a family."""
    schema = _canonical(FAMILIES[family].spec)
    return {**schema, "properties": {**schema["properties"], "family": {"const": family}, "share": EXACT}}


def _canonical(model: type[BaseModel]) -> Schema:
    """Return the schema of a part of a plan, which leaves out what is not stated, and what is no term."""
    fields = {field.alias or name: field for name, field in model.model_fields.items() if not field.exclude}
    optional = [name for name, field in fields.items() if not field.is_required() and field.default is None]
    return closed(dict.fromkeys(fields, VALUE), tuple(optional))


def release_manifest() -> Schema:
    """Return the schema of a release's manifest: what is stated, and what follows from its plan."""
    stated: Schema = of_model(Stated)["properties"]
    stated |= each(HASH, "audit contract")  # left out where there is none
    statistic = {**schema_of(AnyEntry), "oneOf": _OF_A_MEASURE}
    follows = {
        "statistics": {**listed(statistic), "minItems": 1},
        "plan": {"$ref": "urn:suffice:schema:plan-1"},
        "plan_hash": HASH,
    }
    manifest = beside(Declared, {**stated, **follows}, lacking=("audit", "contract"))
    return {**manifest, "oneOf": _OF_A_MEASURE}


def declared_law() -> Schema:
    """Return the schema of the declared law of a published table, as people write it."""
    schema: Schema = DeclaredLaw.model_json_schema()
    return schema


def adopted_manifest() -> Schema:
    """Return the schema of the manifest of an adopted release; its law is in canonical text."""
    file = closed({"path": {"const": TABLE}, "rows": COUNT, "sha256": HASH, "size": COUNT})
    return closed(
        {
            "adopted": {"const": True},
            "files": {**listed(file), "minItems": 1, "maxItems": 1},
            "format_version": {"const": FORMAT},
            "law": mapped(VALUE),
            "name": TEXT,
            "order": closed(each(TEXTS, "keys columns statistics")),
            "release_id": RELEASE_ID,
        }
    )


def publication_manifest() -> Schema:
    """Return the schema of a publication's manifest, its request included."""
    schema = of_model(PublicationManifest)
    schema["properties"]["request"] = named("Request", of_model(Request))
    return schema


def ledger_export() -> Schema:
    """Return the schema of one line of a ledger's export."""
    line = closed(
        {
            "sequence": {**COUNT, "minimum": 1},
            "previous_hash": HASH,
            "kind": {"enum": sorted(map(str, EntryKind))},
            "hour": HOUR,
            "payload": {},  # by kind
            **each(HASH, "commitment hash"),
        }
    )
    by_kind = [
        {"properties": {"kind": {"const": str(kind)}, "payload": closed(payload)}}
        for kind, entry in ENTRIES.items()
        for payload in _by_measure(kind, entry)
    ]
    return {**line, "oneOf": by_kind}


def _by_measure(kind: EntryKind, entry: Schema) -> list[Schema]:
    """Return what the entries of accounts of each measure state; once, where they state no amount."""
    if entry.keys().isdisjoint(AMOUNTS):
        return [entry]
    of_rho = {"measure": {"const": "rho"}} if kind is EntryKind.GRANT else {}
    return [stated(entry, PrivacyMeasure.EPSILON), stated({**entry, **of_rho}, PrivacyMeasure.RHO)]


def about() -> Schema:
    """Return the schema of ``about-N.json``."""
    schema = of_model(StatedAbout)
    labels = {"type": "object", "additionalProperties": _line(LONGEST_LABEL), "minProperties": 1}
    called = {"label": _line(LONGEST_LABEL), "unit": _line(LONGEST_UNIT)}
    said = {**called, "description": _line(LONGEST_DESCRIPTION)}
    number = {**said, "digits": {"type": "integer", "minimum": 0, "maximum": MOST_DIGITS}}
    words = named("words", _optional(number))
    statistic = _optional({**number, "values": labels, "parameters": mapped(words)})
    of_whom = each(_line(LONGEST_LINE), "licence contact source")
    schema["properties"]["about"] = _optional(
        {
            "title": _line(LONGEST_LABEL),
            "description": _line(LONGEST_DESCRIPTION),
            **of_whom,
            "statistics": mapped(statistic),
            "keys": mapped(_optional({**said, "values": labels})),
        }
    )
    return schema


def _line(most: int) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": most}


def _optional(properties: Schema) -> Schema:
    """Return an object of some of these properties, and of no others."""
    return {**closed(properties, tuple(properties)), "minProperties": 1}


def withdrawal() -> Schema:
    """Return the schema of ``withdrawn.json``."""
    return of_model(StatedWithdrawal)

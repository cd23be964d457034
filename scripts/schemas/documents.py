"""The schemas of what stands in stores and exports: of the models that read it, and of a plan."""

from __future__ import annotations

from typing import Any

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.publication.request import Request
from suffice.storage.ledger.chain import EntryKind
from suffice.storage.publications.manifest_model import PublicationManifest
from suffice.storage.releases.manifest_model import Stated
from suffice.storage.releases.withdrawal import StatedWithdrawal

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
EXACT: Schema = {"type": "string", "pattern": r"^-?\d+(\.\d+|/\d+)?$"}
EXACT_OR_NULL: Schema = {"anyOf": [EXACT, {"type": "null"}]}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}
HASH: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def closed(properties: Schema, optional: tuple[str, ...] = ()) -> Schema:
    """Return an object of these properties and no others; all are required but the optional ones."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def listed(items: Schema) -> Schema:
    """Return an array."""
    return {"type": "array", "items": items}


VARIABLE = closed({"name": TEXT, "categories": TEXTS})
QUANTITY = closed(
    {
        "name": {"type": "string", "pattern": "^[a-z_]+$"},
        "category": TEXT_OR_NULL,
        "component": TEXT,
        "labels": listed({"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2}),
        "coefficients": {"type": "object", "additionalProperties": EXACT},
        "public_n_coefficient": EXACT,
    },
    optional=("component", "labels"),
)
PARAMETERS = closed(
    {
        "categories": TEXTS,
        "lower": EXACT_OR_NULL,
        "upper": EXACT_OR_NULL,
        "lattice_bits": {"type": ["integer", "null"]},
        "constants": {"type": "object", "additionalProperties": EXACT},
        "columns": listed(closed({"name": TEXT, "lower": EXACT, "upper": EXACT})),
        "tables": listed(closed({"name": TEXT, "variables": listed(VARIABLE)})),
    },
    optional=("constants", "columns", "tables"),
)
STATISTIC = closed(
    {
        "name": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$"},
        "family": {"enum": list(FAMILIES)},
        "columns": TEXTS,
        "rows_of": TEXT_OR_NULL,
        "design": {"enum": ["partition_of_unity", "bounded", "minimal"]},
        "components": {**TEXTS, "minItems": 1, "uniqueItems": True},
        "epsilon": EXACT,
        "l1_sensitivity": {"type": "string", "pattern": "^[1-9][0-9]*$"},
        "noise": {"const": "discrete_laplace"},
        "scale": {"type": "string", "pattern": r"^(0\.\d*[1-9]|[1-9]\d*(\.\d+)?)$"},
        "partition_total": EXACT_OR_NULL,
        "value_type": {"enum": ["int64", "decimal128(38, 0)"]},
        "quantities": listed(QUANTITY),
        "moment_weight": EXACT,
        "within_unit": closed(
            {"max_rows": EXACT, "row_weight": EXACT, "row_components": TEXTS, "unit_total": EXACT}
        ),
        "parameters": PARAMETERS,
    },
    optional=("moment_weight", "within_unit"),
)
GROUP: Schema = {
    "oneOf": [
        closed({"column": TEXT, "kind": {"const": "range"}, "first": EXACT, "last": EXACT}),
        closed(
            {
                "column": TEXT,
                "kind": {"enum": ["list", "period"]},
                "every": {"enum": [None, "day", "week", "month", "year"]},
                "keys": {**TEXTS, "minItems": 1, "uniqueItems": True},
            }
        ),
    ]
}
PLAN = closed(
    {
        "format_version": {"const": "1"},
        "name": TEXT,
        "dataset": TEXT,
        "privacy": {"type": "object"},
        "window": {"type": ["object", "null"]},
        "derived": {"type": "object"},
        "groups": {"type": "object"},
        "statistics": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {
                "type": "object",
                "required": ["family", "share"],
                "properties": {"family": {"enum": list(FAMILIES)}, "share": EXACT},
            },
        },
        "max_total_rows": EXACT,
    }
)


def release_manifest() -> Schema:
    """Return the schema of a release's manifest: what is stated, and what follows from its plan."""
    stated: Schema = Stated.model_json_schema()
    follows = {
        "name": TEXT,
        "dataset": TEXT,
        "epsilon": EXACT,
        "neighboring": {"enum": ["add_or_remove_one", "replace_one"]},
        "unit": TEXT,
        "max_rows": COUNT,
        "unit_nulls": {"enum": ["drop", "own_unit"]},
        "max_total_rows": {**COUNT, "minimum": 1},
        "cells": {**COUNT, "minimum": 1},
        "groups": listed(GROUP),
        "statistics": {**listed(STATISTIC), "minItems": 1},
        "plan": PLAN,
        "plan_hash": HASH,
    }
    whole = closed({**stated["properties"], **follows}, optional=("max_rows", "unit_nulls"))
    return {**whole, "$defs": stated["$defs"]}


def publication_manifest() -> Schema:
    """Return the schema of a publication's manifest, its request included."""
    schema: Schema = PublicationManifest.model_json_schema()
    request = Request.model_json_schema()
    schema["$defs"] |= request.pop("$defs")
    schema["$defs"]["Request"] = {**request, "required": list(request["properties"])}
    schema["properties"]["request"] = {"$ref": "#/$defs/Request"}
    return schema


def ledger_export() -> Schema:
    """Return the schema of one line of a ledger's export."""
    return closed(
        {
            "sequence": {**COUNT, "minimum": 1},
            "previous_hash": HASH,
            "kind": {"enum": sorted(map(str, EntryKind))},
            "hour": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}Z$"},
            "payload": {"type": "object"},
            "commitment": HASH,
            "hash": HASH,
        }
    )


def withdrawal() -> Schema:
    """Return the schema of ``withdrawn.json``."""
    schema: Schema = StatedWithdrawal.model_json_schema()
    return schema

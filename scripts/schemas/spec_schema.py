"""The schema of specs: generated from their models, for editors and for whoever writes specs by program.

Scalars of a spec are text, and each field reads its own. So a schema cannot follow from types alone: what
each reader of a scalar takes is stated here, by the reader's name; one that is not listed is an error.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.spec import Spec
from suffice.pipeline.terms.declaration.column_unit import ColumnUnit
from suffice.pipeline.terms.declaration.derived_columns import KINDS
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
from suffice.pipeline.terms.declaration.source_specs import SOURCE_SPECS
from suffice.pipeline.terms.declaration.unit_aggregates import UnitAggregate
from suffice.pipeline.terms.statistics.histogram_bins import MOST_BINS

if TYPE_CHECKING:
    from pydantic_core import core_schema

Schema = dict[str, Any]

TEXT: Schema = {"type": ["string", "integer"]}
"""YAML editors take 2013 for an integer; a spec keeps its text."""
SCALAR: Schema = {"type": ["string", "number", "boolean"]}
NUMBER: Schema = {"type": ["number", "string"], "pattern": r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$"}
INTEGER: Schema = {"type": ["integer", "string"], "pattern": r"^[+-]?\d{1,19}$"}
BOOLEAN: Schema = {"enum": [True, False, "true", "false"]}
NAME: Schema = {"type": "string", "pattern": "^[a-z0-9][a-z0-9_.-]{0,62}$"}
EVERY: Schema = {"enum": ["day", "week", "month", "year"]}
FILE: Schema = {
    "type": "object",
    "properties": {"file": {"type": "string"}},
    "required": ["file"],
    "additionalProperties": False,
}
DOMAIN: Schema = {
    "oneOf": [
        {"type": "array", "items": SCALAR, "minItems": 1},
        {
            "type": "object",
            "properties": {"range": {"type": "array", "items": INTEGER, "minItems": 2, "maxItems": 2}},
            "required": ["range"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"from": SCALAR, "to": SCALAR, "every": EVERY},
            "required": ["from", "to", "every"],
            "additionalProperties": False,
        },
        FILE,
    ]
}
NULLS: Schema = {
    "oneOf": [
        {"const": "drop"},
        {
            "type": "object",
            "properties": {"value": {"anyOf": [NUMBER, BOOLEAN]}},
            "required": ["value"],
            "additionalProperties": False,
        },
    ]
}
COUNT_CLIPPED: Schema = {
    "oneOf": [
        BOOLEAN,
        {
            "type": "object",
            "properties": {"weight": NUMBER},
            "required": ["weight"],
            "additionalProperties": False,
        },
    ]
}
DURATION: Schema = {"type": "string", "pattern": r"^\d+ (hour|day|week)s?$"}
LIST: Schema = {"type": "array", "items": SCALAR, "minItems": 1}
CONSTANT: Schema = {
    "type": "object",
    "properties": {"number": NUMBER},
    "required": ["number"],
    "additionalProperties": False,
}
_EXTREME: Schema = {"enum": ["number", "date", "timestamp"]}
_BOUNDS: Schema = {"lower": NUMBER, "upper": NUMBER}


def _closed(properties: Schema, *required: str) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": [*required],
        "additionalProperties": False,
    }


_EDGES: Schema = {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": MOST_BINS + 1}
BINS: Schema = {
    "oneOf": [
        INTEGER,
        _EDGES,
        _closed({"body": _EDGES, "equal": INTEGER, "tail": INTEGER}, "body", "equal"),
    ]
}
COLUMN_OF_UNITS: Schema = {
    "oneOf": [
        {"const": "count"},
        _closed(
            {"sum": TEXT, **_BOUNDS, "step": NUMBER, "total": _closed(_BOUNDS, *_BOUNDS)}, "sum", *_BOUNDS
        ),
        *(_closed({end: TEXT, "type": _EXTREME}, end) for end in ("min", "max")),
    ]
}
LEVELS: Schema = {**LIST, "minItems": 2, "maxItems": 20}
CONDITION: Schema = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/derived"}]}
SCALARS: dict[str, Schema] = {
    "read_text": TEXT,
    "read_line": SCALAR,
    "read_column": {**TEXT, "minLength": 1, "maxLength": 255},
    "read_bound": NUMBER,
    "read_integer": INTEGER,
    "read_boolean": BOOLEAN,
    "read_every": EVERY,
    "read_duration": DURATION,
    "read_time_zone": {"type": "string"},
    "source_path": {"type": "string", "minLength": 1},
    "read_hive": {"type": "object"},
    "table_name": {"type": "string", "minLength": 1},
    "parse_epsilon": NUMBER,
    "parse_rho": NUMBER,
    "read_boolean or None": BOOLEAN,
    "_name": NAME,
    "_release_name": {**NAME, "not": {"const": "publications"}},
    "_share": NUMBER,
    "_quantile": NUMBER,
    "_prior": {"type": "string", "maxLength": 1000},
    "_interval": {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2},
    "_moment_weight": NUMBER,
    "_nulls": NULLS,
    "_count_clipped": COUNT_CLIPPED,
    "_domain": DOMAIN,
    "_groups": {"$ref": "#/$defs/groups"},
    "_hierarchy": {"oneOf": [LEVELS, _closed({"levels": LEVELS, "keys": FILE}, "levels", "keys")]},
    "_hierarchies": {"type": "object", "additionalProperties": LEVELS},
    "_level_shares": {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 20},
    "_files": {"type": "string", "maxLength": 255},
    "_columns": {"type": "array", "items": TEXT, "minItems": 1},
    "_amendments": {"type": "array", "items": DURATION, "minItems": 1, "maxItems": 99},
    "_unit": {"oneOf": [{"const": "row"}, {"$ref": "#/$defs/unit"}]},
    "_names": {"type": "array", "items": TEXT},
    "_boundaries": LIST,
    "_csv_type": {
        "enum": ["text", "number", "integer", "boolean", "date", "timestamp", "timestamp_with_offset"]
    },
    "_sign": {"type": "string"},
    "_divider": {"type": "string"},
    "_root": {"type": "string", "minLength": 1},
    "_version": INTEGER,
    "_identifier": {"type": "string", "minLength": 1},
    "_catalog": {"type": "string", "minLength": 1},
    "parse_source": {"oneOf": [{"$ref": f"#/$defs/source_{kind}"} for kind in SOURCE_SPECS]},
    "_constant": SCALAR,
    "_range": {"type": "array", "items": SCALAR, "minItems": 2, "maxItems": 2},
    "_members": DOMAIN,
    "read_safe_text": SCALAR,
    "_conditions": {"type": "array", "items": CONDITION, "minItems": 2, "maxItems": 100},
    "_entries": {"anyOf": [FILE, {"type": "object", "additionalProperties": SCALAR, "minProperties": 1}]},
    "_target": SCALAR,
    "_operands": {"type": "array", "items": {"anyOf": [TEXT, CONSTANT]}, "minItems": 2, "maxItems": 2},
    "_texts": {"anyOf": [SCALAR, {"type": "array", "items": SCALAR, "minItems": 1, "maxItems": 100}]},
    "read_condition": CONDITION,
    "_where": CONDITION,
    "_format": {"type": "string", "maxLength": 100},
    "_suffixes": {"type": "object", "additionalProperties": NUMBER, "minProperties": 1, "maxProperties": 100},
    "_edges": {"type": "array", "items": NUMBER, "minItems": 1, "maxItems": 100},
    "_bins": BINS,
    "_atoms": {"type": "array", "items": NUMBER, "maxItems": MOST_BINS},
    "_labels": LIST,
    "_otherwise": SCALAR,
    "_typical": {
        "anyOf": [
            NUMBER,
            {"type": "array", "items": NUMBER, "minItems": 1},
            {"type": "object", "additionalProperties": NUMBER, "minProperties": 1},
        ]
    },
    "_predictors": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
}
"""What a reader of a value takes, by its name."""


_READER = "reader"


class _Generator(GenerateJsonSchema):
    """Names the function wherever one of the code reads a value."""

    def function_plain_schema(self, schema: core_schema.PlainValidatorFunctionSchema) -> Schema:
        """Return choices, or the name of what reads the value."""
        function: Any = schema["function"]["function"]
        if isinstance(function, functools.partial) and "kind" in function.keywords:
            return {"enum": [str(choice) for choice in function.keywords["kind"]]}
        function = getattr(function, "func", function)
        name = function.__name__
        if name == "<lambda>":  # of what it calls
            called = function.__code__.co_names
            losses = [each for each in ("parse_epsilon", "parse_rho") if each in called]
            name = losses[0] if losses else f"{called[0]} or None"
        return {_READER: name}


def spec_schema() -> Schema:
    """Return the schema of a spec, in YAML or JSON."""
    whole = _of(Spec)
    definitions: Schema = whole.pop("$defs")
    for name in ("StatisticSpec", "DerivedColumn"):
        definitions.pop(name)
    properties = whole["properties"]
    for name in ("directory", "hierarchies"):  # a spec has them, and states neither
        del properties[name]
    statistics = []
    for name, family in FAMILIES.items():
        schema = _of(family.spec)
        definitions |= schema.pop("$defs", {})
        schema["properties"]["family"] = {"const": name}
        definitions[f"statistic_{name}"] = schema
        statistics.append({"$ref": f"#/$defs/statistic_{name}"})
    for kind, model in SOURCE_SPECS.items():
        schema = _of(model)
        definitions |= schema.pop("$defs", {})
        definitions[f"source_{kind}"] = schema
    derived = []
    for form in KINDS:
        if form is UnitAggregate:
            continue
        schema = _of(form)
        definitions |= schema.pop("$defs", {})
        derived.append(schema)
    definitions["derived"] = {"anyOf": derived}
    definitions["column_of_units"] = COLUMN_OF_UNITS
    definitions["groups"] = {"type": "object", "additionalProperties": DOMAIN}
    definitions["unit"] = _of(ColumnUnit)
    for name in ("Privacy", "Expectation"):
        definitions[name]["oneOf"] = [{"required": [measure]} for measure in PrivacyMeasure]
    for name in ("VariableSpec", "NodeSpec"):  # written short: `name: categories`
        definitions[name]["required"].remove("column")
        definitions[name] = {"anyOf": [DOMAIN, definitions[name]]}
    properties["statistics"] = {
        "type": "object",
        "propertyNames": {"pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$"},
        "minProperties": 1,
        "additionalProperties": {
            "type": "object",
            "required": ["family"],
            "properties": {"family": {"enum": list(FAMILIES)}},
            "oneOf": statistics,
        },
    }
    properties["derived"] = {"type": "object", "additionalProperties": {"$ref": "#/$defs/derived"}}
    properties["per_unit"] = {
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/column_of_units"},
    }
    return {**whole, "title": "Spec", "$defs": dict(sorted(definitions.items()))}


def _of(model: Any) -> Schema:
    schema: Schema = _plain(model.model_json_schema(schema_generator=_Generator))
    return schema


def _plain(value: Any) -> Any:
    """Leave out what no spec has: nulls, defaults that are objects of the code, titles, indented texts."""
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get(_READER), str):  # what pydantic would follow references in
        return SCALARS[value[_READER]]
    kept = {
        key: entry for key, entry in value.items() if key not in {"title", "default"} or key == "properties"
    }
    if isinstance(value.get("description"), str):
        kept["description"] = value["description"].split("\n\n")[0].replace("\n", " ")
    options = [entry for entry in kept.get("anyOf", []) if entry != {"type": "null"}]
    if len(options) == 1 and len(kept.get("anyOf", [])) == 2:
        del kept["anyOf"]
        return _plain({**kept, **options[0]})
    if isinstance(kept.get("properties"), dict):
        kept["properties"] = {name: _plain(entry) for name, entry in value["properties"].items()}
    return {key: entry if key == "properties" else _plain(entry) for key, entry in kept.items()}

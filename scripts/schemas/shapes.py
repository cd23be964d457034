"""The shapes that schemas are made of: texts, numbers, closed objects, and definitions that several share."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from suffice.pipeline.terms.declaration.documents import LEFT_OUT

Schema = dict[str, Any]

DEFINITIONS: dict[str, Schema] = {}
"""What :func:`named` has defined; :func:`whole` puts beside a schema what it refers to."""

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
EXACT: Schema = {"type": "string", "pattern": r"^-?\d+(\.\d+|/\d+)?$"}
"""A number as text: decimal, or a fraction."""
COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}
COUNT_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 0}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
HOUR: Schema = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}Z$"}
KEY: Schema = {"type": ["string", "number", "boolean", "null"]}
"""Of a row: a group's key or a label, whose name is the release's, or a further number."""
NEIGHBORING: Schema = {"enum": ["add_or_remove_one", "replace_one"]}


def digits(number: int) -> Schema:
    """Return the shape of so many hex digits."""
    return {"type": "string", "pattern": f"^[0-9a-f]{{{number}}}$"}


HASH = digits(64)
RELEASE_ID = digits(16)


def closed(properties: Schema, optional: tuple[str, ...] = ()) -> Schema:
    """Return an object of these properties and no others; all are required but the optional ones."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def each(shape: Schema, names: str) -> Schema:
    """Return several properties of one shape; names are separated by spaces."""
    return dict.fromkeys(names.split(), shape)


def listed(items: Schema) -> Schema:
    """Return an array."""
    return {"type": "array", "items": items}


def mapped(values: Schema) -> Schema:
    """Return an object whose names are the release's, or the caller's."""
    return {"type": "object", "additionalProperties": values}


def rows(fields: Schema) -> Schema:
    """Return rows that have these fields, and keys beside them."""
    row = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": KEY}
    return listed(row)


def or_null(schema: Schema) -> Schema:
    """Return a shape that may be left empty."""
    return {"anyOf": [schema, {"type": "null"}]}


def either(*schemas: Schema) -> Schema:
    """Return what has one of several shapes."""
    return {"anyOf": list(schemas)}


def named(name: str, schema: Schema) -> Schema:
    """Define a shape that several documents have, and return a reference to it."""
    if DEFINITIONS.setdefault(name, schema) != schema:
        message = f"there are two shapes of the name {name}"
        raise ValueError(message)
    return {"$ref": f"#/$defs/{name}"}


def of_model(model: type) -> Schema:
    """Return the schema of what a pydantic model or a dataclass writes, whole; models in it are defined."""
    schema: Schema = _written_whole(TypeAdapter(model).json_schema())
    for name, definition in schema.pop("$defs", {}).items():
        named(name, definition)
    return schema


_NAMES = {"$defs", "patternProperties", "properties"}
"""Keywords whose keys are names."""


def _written_whole(value: Any) -> Any:
    """Let every field be required and maps whose names have a pattern have no others; leave titles out."""
    if isinstance(value, list):
        return [_written_whole(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    kept = {
        key: {name: _written_whole(whole) for name, whole in entry.items()}
        if key in _NAMES
        else _written_whole(entry)
        for key, entry in value.items()
        if key not in {"default", "title", LEFT_OUT}
    }
    if isinstance(text := value.get("description"), str):
        kept["description"] = text.split("\n\n")[0].replace("\n", " ")
    if "properties" in kept:
        kept["required"] = [name for name, entry in value["properties"].items() if LEFT_OUT not in entry]
    if {"properties", "patternProperties"} & kept.keys():
        kept["additionalProperties"] = False
    return kept


def whole(schema: Schema) -> Schema:
    """Return a schema with the definitions that it refers to."""
    defined = schema.get("$defs", {})
    added: Schema = {}

    def follow(value: object) -> None:
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).removeprefix("#/$defs/")
            if name in DEFINITIONS and name not in defined and name not in added:
                added[name] = DEFINITIONS[name]
                follow(added[name])
            for entry in value.values():
                follow(entry)
        elif isinstance(value, list):
            for entry in value:
                follow(entry)

    follow(schema)
    definitions = {**defined, **dict(sorted(added.items()))}
    return {**schema, "$defs": definitions} if definitions else schema

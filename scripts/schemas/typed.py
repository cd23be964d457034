"""The schemas of documents whose fields have types: what ``documents.document`` writes of a dataclass."""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from pydantic import BaseModel

from scripts.schemas.shapes import (
    BOOLEAN,
    COUNT,
    EXACT,
    NUMBER,
    TEXT,
    Schema,
    closed,
    either,
    listed,
    mapped,
    named,
    of_model,
    or_null,
    rows,
)
from suffice.cli.answers import Clipping, Sampled
from suffice.data_files.source import Provenance
from suffice.errors import SufficeError
from suffice.pipeline.terms.declaration.data_contract import DataContract
from suffice.pipeline.terms.declaration.documents import Also, Form, Rows, keys_of
from suffice.pipeline.terms.released.withdrawal import Withdrawal

_PLAIN: dict[Any, Schema] = {
    str: TEXT,
    bool: BOOLEAN,
    int: {"type": "integer"},
    float: NUMBER,
    Fraction: EXACT,
    datetime: TEXT,
    Path: TEXT,
    NoneType: {"type": "null"},
    Any: {},
}
_SHARED: dict[Any, str] = {
    DataContract: "DataContract",
    Withdrawal: "Withdrawal",
    Provenance: "source",
    Clipping: "clipping",
    Sampled: "diagnostics",
}
"""What many documents hold, and each schema therefore defines once, by this name."""
ERROR: Schema = {"type": TEXT, "message": TEXT, "exit_status": COUNT}


def schema_of(kind: Any, keys: str | None = None) -> Schema:
    """Return the schema of what a type's values are as JSON; of a dataclass, with keys that are given.

    Raises
    ------
    TypeError
        Where the type does not tell.
    """
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, type) and get_origin(kind) is None:
        schema = _of_class(kind, keys)
        return named(_SHARED[kind], schema) if kind in _SHARED and keys is None else schema
    origin, parts = get_origin(kind), get_args(kind)
    for origins, schema_of_parts in _GENERIC:
        if origin in origins:
            return schema_of_parts(parts)
    message = f"{kind} does not tell what its values are as JSON"
    raise TypeError(message)


def _of_class(kind: type, keys: str | None) -> Schema:
    if issubclass(kind, enum.Enum):
        return {"enum": [str(state.value) for state in kind]}
    return closed(*_keys(kind, keys))


def fields_of(kind: Any, keys: str | None = None) -> Schema:
    """Return the properties of a dataclass's documents, for one that holds others beside them."""
    return _keys(kind, keys)[0]


def beside(kind: Any, others: Schema, lacking: tuple[str, ...] = ()) -> Schema:
    """Return the schema of a dataclass's documents that hold others beside its keys."""
    properties, optional = _keys(kind)
    return closed({**properties, **others}, (*optional, *lacking))


def _annotated(parts: tuple[Any, ...]) -> Schema:
    schema: Schema | None = None
    for note in parts[1:]:
        if isinstance(note, Form):
            schema = dict(note.schema)
        elif isinstance(note, Rows):
            schema = rows({name: schema_of(column) for name, column in note.columns.items()})
        elif isinstance(note, Also):
            schema = {**(schema_of(parts[0]) if schema is None else schema), **note.schema}
    return schema_of(parts[0]) if schema is None else schema


def _union(parts: tuple[Any, ...]) -> Schema:
    schemas = [schema_of(part) for part in parts if part is not NoneType]
    schema = schemas[0] if len(schemas) == 1 else either(*schemas)
    if NoneType not in parts:
        return schema
    if "null" in schema.get("type", ()):
        return schema
    return {"type": [schema["type"], "null"]} if schema.keys() == {"type"} else or_null(schema)


def _array(parts: tuple[Any, ...]) -> Schema:
    array = listed(schema_of(parts[0]))
    return array if parts[1:] in {(), (...,)} else {**array, "minItems": len(parts), "maxItems": len(parts)}


def _mapping(parts: tuple[Any, ...]) -> Schema:
    names, values = get_args(parts[0]), schema_of(parts[1])
    return closed(dict.fromkeys(names, values)) if get_origin(parts[0]) is Literal else mapped(values)


_GENERIC: tuple[tuple[set[Any], Callable[[tuple[Any, ...]], Schema]], ...] = (
    ({Annotated}, _annotated),
    ({ClassVar, NotRequired}, lambda parts: schema_of(parts[0])),
    ({Literal}, lambda parts: {"enum": list(parts)} if parts[1:] else {"const": parts[0]}),
    ({Union, UnionType}, _union),
    ({tuple, list, Sequence, Iterable}, _array),
    ({dict, Mapping}, _mapping),
)


def _keys(kind: Any, keys: str | None = None) -> tuple[Schema, tuple[str, ...]]:
    """Return the properties of a class's documents, and which of them may be left out."""
    if get_origin(kind) is Annotated:
        return schema_of(kind)["properties"], ()
    if is_typeddict(kind):
        return _typed_dict(kind)
    if issubclass(kind, SufficeError):
        return ERROR, ()
    if issubclass(kind, BaseModel) or hasattr(kind, "__pydantic_config__"):
        schema = of_model(kind)
        return schema["properties"], tuple(schema["properties"].keys() - schema.get("required", ()))
    properties: Schema = {}
    optional: list[str] = []
    for key in keys_of(kind, keys):
        of = functools.reduce(_attribute, key.path, kind)
        if key.is_spread:
            spread, lacking = _keys(_but_none(of))
            properties |= spread
            optional += lacking if _but_none(of) is of else spread
            continue
        if key.may_lack:
            of = _but_none(of)
            optional.append(key.name)
        properties[key.name] = schema_of(of)
    return properties, tuple(optional)


def _typed_dict(kind: Any) -> tuple[Schema, tuple[str, ...]]:
    hints = get_type_hints(kind, localns=_names(kind.__module__), include_extras=True)
    optional = tuple(name for name, of in hints.items() if get_origin(of) is NotRequired)
    return {name: schema_of(of) for name, of in hints.items()}, optional


def _attribute(kind: Any, name: str) -> Any:
    """Return the type of an attribute: of a field, a property or a method."""
    holder = _but_none(kind)
    known: dict[str, Any] = {}
    for base in holder.__mro__:
        known = {**_names(base.__module__), **known}
    attribute = inspect.getattr_static(holder, name, None)
    function = getattr(attribute, "fget", None) or getattr(attribute, "func", attribute)
    if inspect.isfunction(function):
        of = get_type_hints(function, known, include_extras=True)["return"]
    else:
        of = get_type_hints(holder, known, include_extras=True)[name]
    return of if holder is kind else of | None


def _but_none(kind: Any) -> Any:
    if get_origin(kind) in {Union, UnionType}:
        return functools.reduce(operator.or_, (part for part in get_args(kind) if part is not NoneType))
    return kind


@functools.cache
def _names(module: str) -> dict[str, Any]:
    """Return what the annotations of a module name, its imports for type checkers included."""
    names = dict(vars(sys.modules[module]))
    if module.startswith("suffice"):
        for node in ast.parse(inspect.getsource(sys.modules[module])).body:
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                for line in node.body:
                    _define(line, module, names)
    return names


def _define(line: ast.stmt, module: str, names: dict[str, Any]) -> None:
    """Add what a line for type checkers defines; what it imports may be for them alone there too."""
    try:
        exec(compile(ast.Module([line], []), module, "exec"), names)  # noqa: S102 - our own text
    except ImportError:
        if not isinstance(line, ast.ImportFrom) or line.module is None:
            raise
        for name in line.names:
            names[name.asname or name.name] = _names(line.module)[name.name]

"""Documents that are printed or written as JSON: how a dataclass becomes one, and what its schema says.

The fields of a dataclass are the keys of its document, or those that :func:`printed` states. ``schemas/`` are
made of their types, by ``scripts.schemas.typed``; nothing here knows how.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from suffice.errors import SufficeError
from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_T = TypeVar("_T")


LEFT_OUT = "left_out"
"""Marks, in a JSON Schema of pydantic's, a field that documents leave out where it is null."""


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """The JSON Schema of a field, where it says more than the field's type or something else."""

    schema: Mapping[str, Any]


class Rows:
    """The form of rows: what columns have which types, beside keys whose names are a release's."""

    def __init__(self, **columns: Any) -> None:
        self.columns = columns


class Also:
    """What a schema says of a field beside what its type says: ``Also(minItems=1)``."""

    def __init__(self, **schema: Any) -> None:
        self.schema = schema


def one_of(*texts: str | None) -> Form:
    """Return the form of one of several texts."""
    return Form({"enum": list(texts)})


def matching(pattern: str) -> Form:
    """Return the form of a text that a pattern describes."""
    return Form({"type": "string", "pattern": pattern})


def each_of(names: Iterable[str], schema: Mapping[str, Any]) -> Form:
    """Return the form of a mapping that has a value of one form for every name."""
    properties = {str(name): schema for name in names}
    closed = {"required": list(properties), "additionalProperties": False}
    return Form({"type": "object", "properties": properties, **closed})


def counts_by(names: Iterable[str]) -> Form:
    """Return the form of a mapping that has a count for every name."""
    return each_of(names, _COUNT)


_COUNT = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}
Count = Annotated[int, Form(_COUNT)]
CountOrNone = Annotated[int | None, Form({"type": ["integer", "null"], "minimum": 0})]
Positive = Annotated[int, Form({"type": "integer", "minimum": 1})]
Measured = Annotated[float, Form({"type": ["number", "null"]})]
"""A number; null where it is not finite."""
Instant = Annotated[datetime, Form({"type": "string"})]
"""Written to the second, in UTC."""
Hour = Annotated[str, matching("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}Z$")]
Exact = Annotated[str, matching(r"^-?\d+(\.\d+|/\d+)?$")]
"""A number as text: decimal, or a fraction. A ``Fraction`` is written so."""
Sha256 = Annotated[str, matching("^[0-9a-f]{64}$")]
LongId = Annotated[str, matching("^[0-9a-f]{32}$")]
"""Of a charge, a store or a publication."""
ShortId = Annotated[str, matching("^[0-9a-f]{16}$")]
"""Of a release or a key."""
Family = Annotated[str, Form({"$ref": "urn:suffice:schema:family-1"})]
"""The name of a family: one file has them all, so a new family changes no other document."""
Method = Annotated[str, one_of("noise-aware", "plug-in")]
Neighboring = Annotated[str, one_of("add_or_remove_one", "replace_one")]
UnitNullsName = Annotated[str, one_of("drop", "own_unit")]
SignatureState = Annotated[str, one_of("checked", "not_checked", "unsigned", "wrong")]
Compared = Annotated[str, one_of("checked", "not_checked")]


class Key(NamedTuple):
    """One key of a document, and where its value comes from."""

    name: str
    path: tuple[str, ...]
    may_lack: bool
    is_spread: bool


_KEY = re.compile(r"(\*?)(\w+)(\??)(?:=([\w.]+))?")
_PRINTED: dict[type, str] = {}


def printed(keys: str) -> Callable[[type[_T]], type[_T]]:
    """State the keys of a dataclass's documents, in their order, where they are not its fields.

    They are separated by spaces. ``key`` is the attribute of that name, and ``key=path.to.it`` another one; a
    method is called. ``key?`` is left out where it is None. ``*attribute`` has all keys of what it holds,
    or none of them where it is None.
    """

    def state(kind: type[_T]) -> type[_T]:
        _PRINTED[kind] = keys
        return kind

    return state


def keys_of(kind: type, keys: str | None = None) -> tuple[Key, ...]:
    """Return the keys of a dataclass's documents, or read those that are given."""
    stated = _PRINTED.get(kind) if keys is None else keys
    return _read(" ".join(field.name for field in fields(kind)) if stated is None else stated)


@functools.cache
def _read(keys: str) -> tuple[Key, ...]:
    read = []
    for text in keys.split():
        match = _KEY.fullmatch(text)
        if match is None:
            message = f"{text} is no key of a document"
            raise ValueError(message)
        spread, name, may_lack, path = match.groups()
        read.append(Key(name, tuple((path or name).split(".")), bool(may_lack), bool(spread)))
    return tuple(read)


_AS_JSON: frozenset[type] = frozenset({str, int, bool, NoneType})


def document(value: object, keys: str | None = None) -> Any:
    """Return a dataclass, or a sequence or mapping of such, as JSON has it.

    Parameters
    ----------
    value : object
    keys : str, optional
        Of a dataclass: those that are asked for, as :func:`printed` has them; else those that it states.
    """
    if type(value) in _AS_JSON:  # with floats, most of a long table
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        written: dict[str, Any] = {}
        for key in keys_of(type(value), keys):
            entry: Any = functools.reduce(_attribute, key.path, value)
            if key.is_spread:
                written |= {} if entry is None else document(entry)
            elif entry is not None or not key.may_lack:
                written[key.name] = document(entry)
        return written
    if isinstance(value, Mapping):
        return {str(key): document(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [document(entry) for entry in value]
    return _plain(value)


def _attribute(holder: Any, name: str) -> Any:
    value = None if holder is None else getattr(holder, name)
    return value() if callable(value) else value


def _plain(value: object) -> Any:
    if isinstance(value, Fraction):
        return format_epsilon(value)
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if isinstance(value, SufficeError):
        return {"type": type(value).__name__, "message": str(value), "exit_status": value.exit_status}
    return str(value) if isinstance(value, StrEnum | Path) else value

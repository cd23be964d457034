"""Documents that commands print: how a dataclass becomes one, and what its schema says of a field.

A dataclass is what a command prints; ``schemas/`` are generated from its types. Nothing here imports
pydantic, which is slow: it asks a :class:`Form` for its keywords when schemas are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Form:
    """The JSON Schema of a field, where it says more than the field's type or something else."""

    schema: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, _core_schema: object, _handler: object) -> dict[str, Any]:
        return dict(self.schema)


def one_of(*texts: str) -> Form:
    """Return the form of one of several texts."""
    return Form({"enum": texts})


def counts_by(states: Iterable[StrEnum]) -> Form:
    """Return the form of a mapping that has a count for every state."""
    names = list(map(str, states))
    count = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}
    return Form({"type": "object", "properties": dict.fromkeys(names, count), "required": names})


Count = Annotated[int, Form({"type": "integer", "minimum": 0, "maximum": 2**53 - 1})]
CountOrNone = Annotated[int | None, Form({"type": ["integer", "null"], "minimum": 0})]
Instant = Annotated[datetime, Form({"type": "string"})]
"""Written to the second, in UTC."""
Epsilon = Annotated[Fraction, Form({"type": "string", "pattern": r"^-?\d+(\.\d+|/\d+)?$"})]
"""Written as an exact decimal number, or as a fraction."""


def document(value: object) -> Any:
    """Return a dataclass, or a sequence or mapping of such, as JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: document(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): document(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [document(entry) for entry in value]
    if isinstance(value, Fraction):
        return format_epsilon(value)
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return str(value) if isinstance(value, StrEnum) else value

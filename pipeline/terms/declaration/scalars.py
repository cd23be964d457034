"""Scalars of a spec: each arrives as text, and is converted by whoever knows what it should be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import PlainValidator

from suffice.pipeline.terms.declaration.domains import Every

if TYPE_CHECKING:
    from enum import StrEnum

_DURATION = re.compile(r"(0|[1-9]\d{0,3}) (hour|day|week)s?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    """Days of the calendar, and hours.

    A day is a step of the calendar, whatever number of hours a change of the clock gives it.
    """

    days: int = 0
    hours: int = 0

    def __str__(self) -> str:
        count, unit = (self.hours, "hour") if self.hours else (self.days, "day")
        return f"{count} {unit}{'' if count == 1 else 's'}"


def read_duration(value: object) -> Duration:
    """Read ``12 hours``, ``3 days`` or ``2 weeks``: a number of up to four digits, a space and a unit.

    Raises
    ------
    ValueError
    """
    text = read_text(value)
    match = _DURATION.fullmatch(text)
    if match is None:
        message = f"{text!r} is no length of time: write it as 12 hours, 3 days or 2 weeks"
        raise ValueError(message)
    count = int(match[1])
    if match[2] == "hour":
        return Duration(hours=count)
    return Duration(days=7 * count if match[2] == "week" else count)


DurationField = Annotated[Duration, PlainValidator(read_duration)]


Choice = TypeVar("Choice", bound="StrEnum")

_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)


def read_text(value: object) -> str:
    """Return a scalar as it was written."""
    if not isinstance(value, str):
        message = "needs one value, not a list or a mapping"
        raise ValueError(message)  # noqa: TRY004 - pydantic collects ValueError only
    return value


def read_mapping(value: object, keys: set[str], form: str) -> dict[str, Any]:
    """Return a mapping of exactly these keys; `form` is how it is written."""
    if not isinstance(value, dict) or set(value) != keys:
        message = f"must be written as {form}"
        raise ValueError(message)
    return value


def read_integer(value: object) -> int:
    """Return an integer of at most 19 digits."""
    text = read_text(value)
    if not _INTEGER.fullmatch(text):
        message = f"{text!r} is not an integer"
        raise ValueError(message)
    return int(text)


def read_boolean(value: object) -> bool:
    """Return ``true`` or ``false``."""
    text = read_text(value)
    if text not in {"true", "false"}:
        message = f"{text!r} is neither true nor false"
        raise ValueError(message)
    return text == "true"


def read_choice(value: object, *, kind: type[Choice], advice: str = "") -> Choice:
    """Return one of several words; the error ends with the advice."""
    choices = [str(choice) for choice in kind]
    if not isinstance(value, str) or value not in choices:
        two = len(choices) == 2
        rule = f"neither {choices[0]} nor {choices[1]}" if two else f"not one of {', '.join(choices)}"
        message = f"{value!r} is {rule}{advice}"
        raise ValueError(message)
    return kind(value)


def read_every(value: object) -> Every:
    """Return the length of a period."""
    return read_choice(read_text(value), kind=Every)


def as_written(value: object) -> object:
    """Return a value of a canonical plan as a spec states it: truth as text, at every depth."""
    if isinstance(value, Mapping):
        return {name: as_written(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [as_written(entry) for entry in value]
    return str(value).lower() if isinstance(value, bool) else value

"""Public lengths of time in a spec: ``3 days``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import PlainValidator

from suffice.pipeline.terms.declaration.scalars import read_text

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
    found = _DURATION.fullmatch(text)
    if found is None:
        message = f"{text!r} is no length of time: write it as 12 hours, 3 days or 2 weeks"
        raise ValueError(message)
    count = int(found[1])
    if found[2] == "hour":
        return Duration(hours=count)
    return Duration(days=7 * count if found[2] == "week" else count)


DurationField = Annotated[Duration, PlainValidator(read_duration)]

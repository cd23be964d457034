"""How texts write dates and times: a stated format, of English names and ASCII digits.

A format is public. Reading by it is total: a text that does not match, or names no day of the calendar,
is no date.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from functools import cached_property

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
SHORT_MONTHS = tuple(month[:3] for month in MONTHS)
_HOURS = 12
_FIRST_PIVOT, _LAST_PIVOT = 1, 9900
_LONGEST = 100
_DIGITS = {"Y": ("year", 4), "y": ("short_year", 2), "m": ("month", 2), "d": ("day", 2)}
_CLOCK_DIGITS = {"H": ("hour", 2), "I": ("half_hour", 2), "M": ("minute", 2), "S": ("second", 2)}
_WORDS = {"b": ("month_name", SHORT_MONTHS), "B": ("month_name", MONTHS), "p": ("half", ("am", "pm"))}
_DIRECTIVES = {**_DIGITS, **_CLOCK_DIGITS, "f": ("fraction", 6)}
_KNOWN = "%Y, %y, %m, %b, %B, %d, %H, %I, %p, %M, %S, %f and %%"
_TOKEN = re.compile(r"%(?P<directive>.)|(?P<literal>[^%]+)|(?P<lone>%)", re.DOTALL)


@dataclass(frozen=True)
class DateFormat:
    """A stated format of dates, or of dates and times of day.

    Attributes
    ----------
    format : str
        As of ``strftime``: ``%Y``, ``%y``, ``%m``, ``%b`` or ``%B`` (English names, in any case), ``%d``,
        ``%H``, ``%I`` with ``%p``, ``%M``, ``%S``, ``%f`` and ``%%``. A number has one digit or two, but for
        ``%Y``, which has four, and those that stand next to digits, which have two.
    pivot : int or None
        The first of the hundred years that ``%y`` means; stated with it alone.

    Examples
    --------
    >>> DateFormat("%d-%b-%y", pivot=1970).date("14-NOV-93")
    datetime.date(1993, 11, 14)
    """

    format: str
    pivot: int | None = None

    def __post_init__(self) -> None:
        """Check the format."""
        is_plain = self.format.isascii() and self.format.isprintable()
        if not 1 <= len(self.format) <= _LONGEST or not is_plain:
            message = f"a format has 1 to {_LONGEST} printable ASCII characters, as %d-%b-%y"
            raise ValueError(message)
        names = [name for name, _ in self._parts if name is not None]
        if len(set(names)) < len(names):
            message = f"the format {self.format!r} names a part of a date twice"
            raise ValueError(message)
        for part, ways in (
            ("a year", {"year", "short_year"}),
            ("a month", {"month", "month_name"}),
            ("a day", {"day"}),
        ):
            if len(ways & set(names)) != 1:
                message = f"the format {self.format!r} needs {part}, once; it takes {_KNOWN}"
                raise ValueError(message)
        self._check_clock(set(names))
        self._check_pivot(has_short_year="short_year" in names)

    def _check_clock(self, names: set[str]) -> None:
        hours = {"hour", "half_hour"} & names
        if len(hours) > 1 or ("half_hour" in names) != ("half" in names):
            message = f"the format {self.format!r} needs %H, or %I with %p"
            raise ValueError(message)
        order = [bool(hours), "minute" in names, "second" in names, "fraction" in names]
        if order != sorted(order, reverse=True):
            message = f"the format {self.format!r} has a part of a time without the larger one"
            raise ValueError(message)

    def _check_pivot(self, *, has_short_year: bool) -> None:
        if has_short_year and self.pivot is None:
            message = "%y is two digits: state pivot, the first of the hundred years that they mean"
            raise ValueError(message)
        if self.pivot is not None and not has_short_year:
            message = "a pivot is for %y, which the format does not have"
            raise ValueError(message)
        if self.pivot is not None and not _FIRST_PIVOT <= self.pivot <= _LAST_PIVOT:
            message = f"a pivot lies in {_FIRST_PIVOT}..{_LAST_PIVOT}"
            raise ValueError(message)

    @cached_property
    def _parts(self) -> tuple[tuple[str | None, str], ...]:
        """The parts of a date, or None for what stands between them, each with its expression."""
        tokens = list(_TOKEN.finditer(self.format))
        parts: list[tuple[str | None, str]] = []
        for at, token in enumerate(tokens):
            directive = token["directive"]
            if token["literal"] is not None:
                parts.append((None, re.escape(token["literal"].lower())))
            elif directive == "%":
                parts.append((None, "%"))
            elif directive in _WORDS:
                name, words = _WORDS[directive]
                parts.append((name, "|".join(words)))
            elif directive in _DIRECTIVES:
                name, most = _DIRECTIVES[directive]
                is_alone = not (at and _ends_in_digits(tokens[at - 1])) and not (
                    at + 1 < len(tokens) and _begins_with_digits(tokens[at + 1])
                )
                least = most if name == "year" or not is_alone else 1
                parts.append((name, f"[0-9]{{{least},{most}}}"))
            else:
                message = f"a format takes {_KNOWN}, not '%{directive or ''}'"
                raise ValueError(message)
        return tuple(parts)

    @property
    def pattern(self) -> str:
        """A regular expression of texts in lower case, its groups named as the parts of a date."""
        inner = "".join(part if name is None else f"(?P<{name}>{part})" for name, part in self._parts)
        return f"^{inner}$"

    @property
    def names(self) -> frozenset[str]:
        """The parts that texts have: the groups of the expression."""
        return frozenset(name for name, _ in self._parts if name is not None)

    @property
    def has_time(self) -> bool:
        """Whether texts have a time of day."""
        return bool(self.names & {"hour", "half_hour"})

    def date(self, text: str) -> dt.date | None:
        """Return the day that a text names, whatever the time of day beside it; None where it names none."""
        moment = self.moment(text)
        return None if moment is None else moment.date()

    def moment(self, text: str) -> dt.datetime | None:
        """Return the day and the time of day that a text names, midnight where it has none; or None."""
        parts = re.fullmatch(self.pattern, text, re.ASCII | re.IGNORECASE)
        if parts is None:
            return None
        stated = {name: part.lower() for name, part in parts.groupdict().items()}
        short = stated.get("short_year")
        year = int(stated["year"]) if short is None else full_year(int(short), self.pivot or 0)
        name = stated.get("month_name")
        month = int(stated["month"]) if name is None else SHORT_MONTHS.index(name[:3]) + 1
        half_hour = int(stated.get("half_hour", "12"))
        if not 1 <= half_hour <= _HOURS:
            return None
        hour = int(stated.get("hour", half_hour % _HOURS + _HOURS * (stated.get("half") == "pm")))
        minute, second = (int(stated.get(part, "0")) for part in ("minute", "second"))
        fraction = int(stated.get("fraction", "").ljust(6, "0"))
        try:
            return dt.datetime(year, month, int(stated["day"]), hour, minute, second, fraction)  # noqa: DTZ001
        except ValueError:
            return None

    def text(self, moment: dt.datetime) -> str:
        """Write a day and a time of day as a text that names them, as far as the format has them.

        Examples
        --------
        >>> DateFormat("%d-%b-%y", pivot=1970).text(dt.datetime(1993, 11, 4))
        '04-NOV-93'
        """
        values = {
            "Y": f"{moment.year:04}",
            "y": f"{moment.year % 100:02}",
            "m": f"{moment.month:02}",
            "b": SHORT_MONTHS[moment.month - 1].upper(),
            "B": MONTHS[moment.month - 1].upper(),
            "d": f"{moment.day:02}",
            "H": f"{moment.hour:02}",
            "I": f"{(moment.hour - 1) % _HOURS + 1:02}",
            "p": "PM" if moment.hour >= _HOURS else "AM",
            "M": f"{moment.minute:02}",
            "S": f"{moment.second:02}",
            "f": f"{moment.microsecond:06}",
            "%": "%",
        }
        return _TOKEN.sub(lambda token: token["literal"] or values[token["directive"]], self.format)

    def __str__(self) -> str:
        return self.format + (f" with years from {self.pivot}" if self.pivot is not None else "")


def full_year(short: int, pivot: int) -> int:
    """Return the year from a pivot on, below a hundred years after it, that ends in two digits.

    Examples
    --------
    >>> full_year(93, 1970), full_year(13, 1970)
    (1993, 2013)
    """
    return pivot + (short - pivot) % 100


def _ends_in_digits(token: re.Match[str]) -> bool:
    return token["directive"] in _DIRECTIVES or (token["literal"] or "")[-1:].isdigit()


def _begins_with_digits(token: re.Match[str]) -> bool:
    return token["directive"] in _DIRECTIVES or (token["literal"] or "")[:1].isdigit()

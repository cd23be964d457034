"""Names of files and folders that state a date: ``{yyyy}/{mm}/{dd}``, and what a window makes of them.

Which files a window reads follows from their names alone. A row enters a window whose file's name says so,
and whose date does.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated

from pydantic import AfterValidator

from suffice.pipeline.terms.declaration.domains import Every, period_end, period_label

_PARTS = {"{yyyy}": r"[0-9][0-9][0-9][0-9]", "{mm}": r"[0-9][0-9]", "{dd}": r"[0-9][0-9]"}
_PART = re.compile("|".join(map(re.escape, _PARTS)))
_LONGEST = 255


def read_pattern(text: str) -> str:
    """Check a pattern of names, and return it as it is.

    Parameters
    ----------
    text : str
        A path below the source's, in which ``{yyyy}``, ``{mm}`` and ``{dd}`` stand for digits of a year, a
        month and a day, and ``*`` for any signs but ``/``.

    Raises
    ------
    ValueError
        Naming the rule.
    """
    rest = _PART.sub("", text)
    message = None
    if len(text) > _LONGEST or not text.isprintable():
        message = f"a pattern of files has at most {_LONGEST} signs, all of them printable"
    elif any(sign in rest for sign in r"{}[]?\\"):
        message = "a pattern of files is made of {yyyy}, {mm}, {dd}, * and plain signs, without ? [ ] and \\"
    elif "{yyyy}" not in text or ("{dd}" in text and "{mm}" not in text):
        message = (
            "a pattern of files states a day by {yyyy}, {mm} and {dd}, a month or a year by the first of them"
        )
    elif any(part in {"", ".", ".."} or "**" in part for part in text.split("/")):
        message = "a pattern of files is a path below the source's, without empty parts, ., .. and **"
    if message is not None:
        raise ValueError(message)
    return text


FilesByWindow = Annotated[str, AfterValidator(read_pattern)]


def names_of(pattern: str, start: dt.date, every: Every) -> tuple[str, ...]:
    """Return the names that a window's files have: paths in which ``*`` stands for any signs.

    Parameters
    ----------
    pattern : str
        See `read_pattern`.
    start : date
        The first day of the window.
    every : Every
        Its length.

    Examples
    --------
    >>> names_of("{yyyy}/{mm}", dt.date(2013, 1, 28), Every.WEEK)
    ('2013/01', '2013/02')
    """
    days = map(dt.date.fromordinal, range(start.toordinal(), period_end(start, every)))
    of_name = Every.DAY if "{dd}" in pattern else Every.MONTH if "{mm}" in pattern else Every.YEAR
    first = {period_label(day, of_name): day for day in days}
    return tuple(name_of(pattern, day) for day in first.values())


def name_of(pattern: str, day: dt.date) -> str:
    """Return the name that the files of a day have."""
    texts = {"{yyyy}": f"{day.year:04d}", "{mm}": f"{day.month:02d}", "{dd}": f"{day.day:02d}"}
    return _PART.sub(lambda part: texts[part[0]], pattern)


def any_name(pattern: str) -> str:
    """Return what all names of a pattern have in common, as shells write it."""
    return _PART.sub(lambda part: _PARTS[part[0]], pattern)

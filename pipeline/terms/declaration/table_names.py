"""Names of tables and views in databases, and public keys that divide one into tasks."""

from __future__ import annotations

import datetime as dt
import re
from functools import partial
from itertools import pairwise
from typing import Annotated, Any

from pydantic import PlainValidator

from suffice.pipeline.terms.declaration.fields import Column, SpecModel

LONGEST_NAME = 255
MOST_BOUNDARIES = 10_000

_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def table_name(value: object, *, form: str) -> str:
    """Check a name such as ``public.flights``: as many parts as its form has, and never query text.

    Parameters
    ----------
    value : object
        What the spec states. Names are taken as they are written, upper and lower case told apart.
    form : str
        What it consists of, as ``schema.table``.
    """
    parts = value.split(".") if isinstance(value, str) else []
    if len(parts) != len(form.split(".")) or not all(map(_is_name, parts)):
        message = (
            f"a table or a view is named as {form}, as the database writes it: parts of 1 to {LONGEST_NAME} "
            "printable characters without quotes, backslashes or dots; for a query make a view"
        )
        raise ValueError(message)
    return ".".join(parts)


def quoted_name(name: str, quote: str = '"') -> str:
    """Return a name of several parts as SQL identifiers."""
    return ".".join(quoted(part, quote) for part in name.split("."))


def quoted(identifier: str, quote: str = '"') -> str:
    """Return one identifier as SQL quotes it."""
    return quote + identifier.replace(quote, 2 * quote) + quote


def _is_name(part: str) -> bool:
    return (
        1 <= len(part) <= LONGEST_NAME
        and part.isprintable()
        and part == part.strip()
        and not set(part) & set("\"'`\\;")
    )


def _boundaries(value: object) -> tuple[str, ...]:
    texts = value if isinstance(value, list | tuple) else []
    message = (
        f"needs 1 to {MOST_BOUNDARIES} integers of at most 18 digits, or as many dates as 2013-01-31, "
        "in ascending order"
    )
    if not 1 <= len(texts) <= MOST_BOUNDARIES or not all(isinstance(text, str) for text in texts):
        raise ValueError(message)
    if all(_INTEGER.fullmatch(text) for text in texts):
        keys: list[Any] = [int(text) for text in texts]
    elif all(_DATE.fullmatch(text) for text in texts):
        keys = [dt.date.fromisoformat(text) for text in texts]
    else:
        raise ValueError(message)
    if any(before >= after for before, after in pairwise(keys)):
        raise ValueError(message)
    return tuple(texts)


class KeyRanges(SpecModel):
    """Public keys at which a view is divided into tasks; no number depends on them.

    Rows before the first key, and those without one, are the first task; from the last one on, the last.
    """

    column: Column
    at: Annotated[tuple[str, ...], PlainValidator(_boundaries)]

    @property
    def is_of_dates(self) -> bool:
        """Whether the keys are dates, and no integers."""
        return bool(_DATE.fullmatch(self.at[0]))

    @property
    def needed(self) -> str:
        """What the column has to hold."""
        return "dates or timestamps" if self.is_of_dates else "integers"

    def conditions(self, quote: str = '"') -> tuple[str, ...]:
        """Return one SQL condition for each task; each row fulfils exactly one."""
        column = quoted(self.column, quote)
        keys = [f"'{key}'" if self.is_of_dates else key for key in self.at]
        between = pairwise(keys)
        return (
            f"({column} < {keys[0]} OR {column} IS NULL)",
            *(f"({column} >= {lower} AND {column} < {upper})" for lower, upper in between),
            f"({column} >= {keys[-1]})",
        )


TwoPartName = Annotated[str, PlainValidator(partial(table_name, form="schema.table"))]
ThreePartName = Annotated[str, PlainValidator(partial(table_name, form="database.schema.table"))]

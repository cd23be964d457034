"""How the column of a window, or of a unit, follows from a stored one: the rule that a grant is for.

Another rule puts a row into another window, or makes two units of one. So accounts name a derived column by
its rule: the canonical JSON of its entry in ``derived``, which names the stored column. What a spec calls the
column is left out. A stored column is named as it is.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from suffice.errors import SpecError
from suffice.pipeline.terms.declaration.column_types import DATES
from suffice.pipeline.terms.declaration.derived_columns import UniformText, read_derived
from suffice.pipeline.terms.declaration.derived_values import Epoch, Parse, ParsedText
from suffice.pipeline.terms.declaration.domains import Every
from suffice.pipeline.terms.declaration.fields import canonical
from suffice.pipeline.terms.declaration.spec_text import read_mapping
from suffice.pipeline.terms.declaration.time_zones import UTC, read_grid, window_grid
from suffice.pipeline.terms.declaration.wording import first_complaint, rule_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.terms.declaration.derived_conditions import DerivedColumn

_UNIT = "column:"
_RULE = re.compile(r"\{.*\}", re.DOTALL)


def rule_text(entry: Mapping[str, Any]) -> str:
    """Return the rule of a derived column, given its entry in a canonical plan."""
    return json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def column_or_rule(column: str, derived: Mapping[str, DerivedColumn]) -> str:
    """Return what accounts call a column: by its name, or by its rule where it is derived."""
    return rule_text(entry_of(derived[column])) if column in derived else column


def entry_of(of: DerivedColumn) -> dict[str, Any]:
    """Return the entry of a derived column as a canonical plan has it."""
    entry = canonical(of)
    assert isinstance(entry, dict)  # noqa: S101 - the canonical form of a model
    return entry


def stored_column(column: str, derived: Mapping[str, DerivedColumn]) -> str:
    """Return the stored column that a window or a unit rests on: itself, or the one that is read."""
    return derived[column].inputs[0].column if column in derived else column


def is_rule(text: str) -> bool:
    """Tell whether a text is a rule, which no column of a window or a unit may be called."""
    return text.startswith("{") and _derived_of(text) is not None


def _derived_of(text: str) -> DerivedColumn | None:
    try:
        return read_rule(text)
    except ValueError:
        return None


def read_rule(text: str) -> DerivedColumn:
    """Read a rule as an owner writes it, as ``{column: raw_id, trim: true, case: lower}``.

    Raises
    ------
    ValueError
        Where it is none.
    """
    from suffice.pipeline.terms.declaration.spec_yaml import read_yaml  # yaml is slow to import

    try:
        return read_entry(read_yaml(text, "rule").content)
    except SpecError as error:
        raise ValueError(str(error)) from None


def read_entry(entry: object) -> DerivedColumn:
    """Read the entry of a derived column: texts, numbers and truth values, as YAML or JSON has them.

    Raises
    ------
    ValueError
        Where it is none.
    """
    if not isinstance(entry, dict):
        message = "a derived column is a mapping, as {column: raw_id, trim: true, case: lower}"
        raise ValueError(message)  # noqa: TRY004 - as for what is no entry
    try:
        return read_derived("rule", read_mapping(entry, "rule").content, None)
    except SpecError as error:
        raise ValueError(str(error)) from None
    except ValidationError as error:
        first = first_complaint(error.errors(include_url=False))
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {rule_of(first)}" if where else rule_of(first)) from None


def window_misfit(column: str, derived: Mapping[str, DerivedColumn], time_zone: str) -> str | None:
    """Say why a derived column cannot be a window's; None where it can, or is stored.

    A window's is read from one stored column, by ``parse`` alone.
    """
    of = derived.get(column)
    if of is None:
        return None
    if not isinstance(of, ParsedText) or of.family not in DATES or of.column in derived:
        return (
            f"{column!r} is derived in another way: a window's column is stored, or read from a stored one "
            "by parse: date or parse: timestamp"
        )
    if of.parse is Parse.DATE and of.epoch not in {None, Epoch.DAYS} and time_zone != UTC:
        return (
            f"{column!r} is the day of an instant in UTC, and windows begin at midnight in {time_zone}: "
            "write parse: timestamp"
        )
    return None


def unit_misfit(column: str, derived: Mapping[str, DerivedColumn]) -> str | None:
    """Say why a derived column cannot be a unit's; None where it can, or is stored.

    A unit's is one stored column, put in one form or read by ``parse``.
    """
    of = derived.get(column)
    if of is None or (isinstance(of, UniformText | ParsedText) and of.inputs[0].column not in derived):
        return None
    return (
        f"{column!r} is derived in another way: a unit's column is stored, or one stored column put in one "
        "form by normalize, trim and case, or read by parse"
    )


def read_unit(text: str) -> str:
    """Return a unit as accounts name it: ``row``, ``column:NAME``, or ``column:`` and a rule.

    Raises
    ------
    ValueError
        Where the rule is none, or cannot be a unit's.
    """
    rule = text.removeprefix(_UNIT)
    if rule == text or not rule.startswith("{"):
        return text
    of = read_rule(rule)
    misfit = unit_misfit("rule", {"rule": of})
    if misfit is not None:
        raise ValueError(misfit)
    return _UNIT + rule_text(entry_of(of))


def read_window_grid(text: str) -> str:
    """Return a window grid as accounts name it, with its time zone; a derived column is named by its rule.

    Raises
    ------
    ValueError
        Where it is none, or the rule cannot be a window's.
    """
    grid = read_grid(text)
    column, every, time_zone = grid.rsplit(":", 2)
    if not column.startswith("{"):
        return grid
    of = read_rule(column)
    misfit = window_misfit("rule", {"rule": of}, time_zone)
    if misfit is not None:
        raise ValueError(misfit)
    return window_grid(rule_text(entry_of(of)), Every(every), time_zone)


def in_words(text: str) -> str:
    """Return a unit, or a window grid, as people read it: a rule as ``(raw_id trimmed, in lower case)``.

    Examples
    --------
    >>> in_words('column:{"case":"lower","column":"raw_id","trim":"true"}')
    'column:(raw_id trimmed, in lower case)'
    >>> in_words("column:tail"), in_words("day:month:UTC")
    ('column:tail', 'day:month:UTC')
    """
    before = _UNIT if text.startswith(_UNIT) else ""
    match = _RULE.match(text, len(before))
    of = None if match is None else _derived_of(match[0])
    return text if match is None or of is None else f"{before}({of}){text[match.end() :]}"

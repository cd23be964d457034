"""Which of several kinds a mapping of a spec is: its keys tell. What is misspelt gets the nearest names."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from suffice.pipeline.terms.declaration.wording import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.terms.declaration.fields import SpecModel

Kind = TypeVar("Kind", bound="SpecModel")

_NOT = "not"
_OTHER_WORDS = {
    "is": "equals",
    "eq": "equals",
    "neq": "not_equals",
    "ne": "not_equals",
    "is_not": "not_equals",
    "isin": "in",
    "gt": "above",
    "gte": "at_least",
    "ge": "at_least",
    "greater_than": "above",
    "more_than": "above",
    "minimum": "at_least",
    "lt": "below",
    "lte": "at_most",
    "le": "at_most",
    "less_than": "below",
    "maximum": "at_most",
    "like": "contains",
    "and": "all_of",
    "or": "any_of",
    "null": "is_null",
    "is_not_null": "present",
    "not_null": "present",
}
"""What other languages call a key."""


def read_as(kinds: Sequence[type[Kind]], entry: object, context: dict[str, Any] | None, forms: str) -> Kind:
    """Read an entry as the kind that its keys belong to.

    Raises
    ------
    pydantic.ValidationError, ValueError
        Where it is none of them.
    """
    if not isinstance(entry, dict):
        message = f"needs a mapping: {forms}"
        raise ValueError(message)  # noqa: TRY004 - pydantic collects ValueError only
    keys = {kind: keys_of(kind) for kind in kinds}
    # The kind with most of the keys; each has keys of its own.
    kind = max(kinds, key=lambda kind: len(keys[kind] & entry.keys()))
    unknown = next((str(key) for key in entry if key not in keys[kind]), None)
    if unknown is not None:
        names = set().union(*keys.values())
        is_told = any(key in keys[kind] and sum(key in of for of in keys.values()) == 1 for key in entry)
        beside = f"; beside the others: {', '.join(sorted(keys[kind]))}" if is_told else ""
        message = f"unknown key '{shown(unknown)}'{_meant(unknown, names)}{beside}; {forms}"
        raise ValueError(message)
    return kind.model_validate(entry, context=context)


def keys_of(kind: type[SpecModel]) -> set[str]:
    """Return a model's keys as a spec writes them."""
    return {field.alias or name for name, field in kind.model_fields.items()}


def _meant(unknown: str, names: set[str]) -> str:
    """Return what may be meant by a key that is not known here."""
    if unknown == _NOT and _NOT in names:
        return f": '{_NOT}' stands around a condition, as {{not: {{column: x, equals: a}}}}"
    word = _OTHER_WORDS.get(unknown, unknown)
    opposite = word.removeprefix(f"{_NOT}_")
    if opposite != word and {opposite, _NOT} <= names:
        return f": write {{not: {{column: x, {opposite}: ...}}}}"
    near = [word] if word in names else get_close_matches(word, sorted(names - {unknown}))
    return f": perhaps {' or '.join(near)}" if near else ""

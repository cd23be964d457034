"""What a caller may say of the cells that are kept: one key for a group column, compared as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from suffice.errors import UsageError

_KEYS_NAMED = 10
"""How many known keys the refusal of an unknown one names."""


def wanted_keys(where: Mapping[str, object], groups: Mapping[str, Iterable[str | int]]) -> dict[str, str]:
    """Return the key that is wanted of every column named, as text.

    Parameters
    ----------
    where : mapping
        Group column -> key.
    groups : mapping
        Group column -> its keys, at least one.

    Raises
    ------
    UsageError
        Where it is no mapping, a column is no group, or several keys are given for one.
    """
    if not isinstance(where, Mapping):
        message = f"where maps group columns to keys, as {{'origin': 'JFK'}}, not {where!r}"
        raise UsageError(message)
    for column, key in where.items():
        if column not in groups:
            known = ", ".join(groups) or "none"
            message = f"the release has no group {column!r}: its groups are {known}"
            raise UsageError(message)
        if isinstance(key, Iterable) and not isinstance(key, str):
            example = {column: str(next(iter(groups[column])))}
            message = (
                f"where takes one key for {column}, as {example}, not several: ask for one at a "
                f"time, or leave {column} out and choose among the rows"
            )
            raise UsageError(message)
    return {column: str(key) for column, key in where.items()}


def no_such_key(column: str, key: str, keys: Iterable[str | int]) -> UsageError:
    """Return the refusal of a key that no cell has; it names some that they have."""
    known = [str(entry) for entry in dict.fromkeys(keys)]
    more = f" and {len(known) - _KEYS_NAMED} more" if len(known) > _KEYS_NAMED else ""
    return UsageError(
        f"no cell of the release has {column}={key}: its keys are {', '.join(known[:_KEYS_NAMED])}{more}"
    )

"""What a caller may say of the cells that are kept: one key for a group column, compared as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

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


def wanted_cells(
    where: Mapping[str, object], groups: Mapping[str, Sequence[str | int]], n_cells: int
) -> NDArray[np.int64]:
    """Return the places of the cells whose keys equal the wanted ones as text, ascending.

    Parameters
    ----------
    where : mapping
        Group column -> key.
    groups : mapping
        Group column -> the key of each cell.
    n_cells : int
        At least 1.

    Raises
    ------
    UsageError
        Where `wanted_keys` raises it, a key is of no cell, or the keys together are of none.
    """
    keep = np.ones(n_cells, dtype=bool)
    for column, key in wanted_keys(where, groups).items():
        found = np.array([str(entry) == key for entry in groups[column]], dtype=bool)
        if not found.any():
            raise no_such_key(column, key, groups[column])
        keep &= found
    if not keep.any():
        message = "no cell of the release has " + ", ".join(
            f"{column}={key}" for column, key in where.items()
        )
        raise UsageError(message)
    return np.flatnonzero(keep)

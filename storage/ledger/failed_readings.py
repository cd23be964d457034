"""Attempts that gave their epsilon back: data may decide that a reading fails, so that each may tell a bit.

A view that raises on a value, a deadline that a slow night misses, a process that its host ends: whoever sees
that an attempt did not come to its draw may learn something of rows, for nothing. So these are counted for
each key, and from a number on that the account's owner allows, epsilon of such an attempt is spent.
"""

from __future__ import annotations

from dataclasses import dataclass

from suffice.errors import UsageError
from suffice.pipeline.spec.editions import edition
from suffice.storage.ledger.charge import label

DEFAULT_ALLOWED = 10
"""Attempts of a key that may give their epsilon back, where the owner states no other number."""
MOST_ALLOWED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedReadings:
    """How many attempts of one key did not come to their draw.

    Attributes
    ----------
    name, window : str
    amendment : int
    count : int
        Attempts that gave their epsilon back, and take-overs of charges whose run was gone before its draw.
    """

    name: str
    window: str
    amendment: int
    count: int

    @property
    def label(self) -> str:
        """The key as people read it."""
        return label(self.name, edition(self.window, self.amendment))


def check_allowed(number: int) -> int:
    """Return how many failed readings of a key an owner allows.

    Raises
    ------
    UsageError
        Where it is none of 0 to `MOST_ALLOWED`.
    """
    if not 0 <= number <= MOST_ALLOWED:
        message = f"failed readings: 0 to {MOST_ALLOWED} of a key may give their epsilon back, not {number}"
        raise UsageError(message)
    return number

"""The secret of a run that bounds units."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitKey:
    """What ranks rows, hashes texts and places units; a secret of one run, never stored and never shown.

    Parameters
    ----------
    texts, positions, ranks : (int, int)
        Three independent keys of 128 bits.
    """

    texts: tuple[int, int] = field(repr=False)
    positions: tuple[int, int] = field(repr=False)
    ranks: tuple[int, int] = field(repr=False)

    @classmethod
    def of(cls, secret: bytes) -> Self:
        """Return the keys in 48 bytes."""
        numbers = [int.from_bytes(secret[start : start + 8], "little") for start in range(0, 48, 8)]
        return cls(
            texts=(numbers[0], numbers[1]), positions=(numbers[2], numbers[3]), ranks=(numbers[4], numbers[5])
        )

    @classmethod
    def fresh(cls) -> Self:
        """Draw the keys of a run from the operating system."""
        return cls.of(secrets.token_bytes(48))

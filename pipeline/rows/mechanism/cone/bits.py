"""Random bits of the operating system: the only source of cone noise, without a seed."""

from __future__ import annotations

import os
from typing import Protocol

WIDTH = 64
"""Bits of a word."""

_REFILL = 1 << 12
"""Bytes that are asked of the operating system at a time."""


class Bits(Protocol):
    """Independent uniform bits, a word of `width` at a time."""

    @property
    def width(self) -> int:
        """How many bits a word has."""

    def word(self) -> int:
        """Return the next word, an integer from 0 to ``2**width - 1``."""


class OperatingSystemBits:
    """Words of 64 bits from ``os.urandom``, each handed out once."""

    width = WIDTH

    def __init__(self) -> None:
        self._bytes = bytearray()

    def word(self) -> int:
        """Return the next word, an integer from 0 to ``2**64 - 1``."""
        if not self._bytes:
            self._bytes = bytearray(os.urandom(_REFILL))
        word = int.from_bytes(self._bytes[-8:], "little")
        del self._bytes[-8:]
        return word

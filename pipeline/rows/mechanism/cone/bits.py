"""Random bits of the operating system: the only source of cone noise, without a seed."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

import numpy as np

from suffice.pipeline.rows.chunk.exact_sums import wipe

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORDS = 1 << 12
"""Words of 64 bits that are asked for at a time, or as many as are left, where these are more."""


class Bits(Protocol):
    """Independent uniform bits, a word of `width` at a time."""

    @property
    def width(self) -> int:
        """How many bits a word has."""

    def word(self) -> int:
        """Return the next word, an integer from 0 to ``2**width - 1``."""


class BufferedBits(ABC):
    """Words of 64 bits, some of them ahead in an array, each handed out once.

    The compiled path reads `words` from `position` on, and moves `position`; the exact path calls `word`.
    Both read one stream, so that where the one stops the other goes on.
    """

    width = 64

    def __init__(self) -> None:
        self.words: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self.position = 0

    def word(self) -> int:
        """Return the next word, an integer from 0 to ``2**64 - 1``."""
        if self.position == len(self.words):
            self.refill()
        self.position += 1
        return int(self.words[self.position - 1])

    def refill(self) -> None:
        """Keep the words that are left, and put as many new ones behind them, or `WORDS`."""
        left = self.words[self.position :]
        words = np.zeros(len(left) + max(WORDS, len(left)), np.uint64)
        words[: len(left)] = left
        words[len(left) :] = self._fresh(len(words) - len(left))
        self.wipe()
        self.words = words

    def wipe(self) -> None:
        """Overwrite the words of the array: whoever knows them knows the noise.

        The system's bytes that they were copied from, and Python's integers, are freed as they are.
        """
        wipe(self.words)
        self.words, self.position = np.zeros(0, np.uint64), 0

    @abstractmethod
    def _fresh(self, number: int) -> NDArray[np.uint64]:
        """Return words that were never handed out."""


class OperatingSystemBits(BufferedBits):
    """Words from ``os.urandom``."""

    def _fresh(self, number: int) -> NDArray[np.uint64]:
        # proof: bits
        return np.frombuffer(os.urandom(8 * number), np.uint64)

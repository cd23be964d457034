"""Generators of a request's draws: independent, and the same whenever they are asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suffice.pipeline.math.parameters.draws import DRAWS

_SUMMARIES, _DRAWS, _COMPUTATION = range(3)
"""What draws are for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """The generators of one statistic of a request, or of one part of it.

    Attributes
    ----------
    seed : int
        The request's.
    place : tuple of int
        The position of the statistic in the request, and of the part where there are parts.
    """

    seed: int
    place: tuple[int, ...]

    def summaries(self) -> np.random.Generator:
        """Return a fresh generator for quantiles that rest on draws."""
        return self._generator(_SUMMARIES)

    def draws(self) -> np.random.Generator:
        """Return a fresh generator for draws that are published."""
        return self._generator(_DRAWS)

    def computation(self) -> np.random.Generator:
        """Return a fresh generator for chains and importance sampling."""
        return self._generator(_COMPUTATION)

    def _generator(self, purpose: int) -> np.random.Generator:
        sequence = np.random.SeedSequence(self.seed, spawn_key=(*self.place, purpose))
        return np.random.default_rng(sequence)


def quantile_draws(draws: int) -> int:
    """Return how many draws quantiles rest on that rest on draws: those asked for, or 4000 where none are."""
    return draws or DRAWS

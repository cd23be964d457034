"""How many draws are taken, and from which generator."""

from __future__ import annotations

from typing import TypeGuard

import numpy as np

from suffice.errors import UsageError

DRAWS = 4000
"""Draws where nothing is asked for."""
MASS = 0.95
"""Of an interval, likewise."""


def generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """Return the generator itself, one made from a seed, or a fresh one."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is not None and not _is_integer(rng, 0):
        message = f"rng must be a numpy Generator or an integer of at least 0, not {rng!r}"
        raise UsageError(message)
    return np.random.default_rng(rng)


def checked_draws(draws: object) -> int:
    """Return a number of draws.

    Raises
    ------
    UsageError
        Where it is no integer above 0.
    """
    if not _is_integer(draws, 1):
        message = f"draws must be an integer above 0, not {draws!r}"
        raise UsageError(message)
    return int(draws)


def _is_integer(value: object, least: int) -> TypeGuard[int]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= least

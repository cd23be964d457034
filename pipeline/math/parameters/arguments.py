"""What posteriors are asked with, checked: masses of intervals, points, generators, numbers of draws."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.math.distributions.interval_kinds import HIGHEST_DENSITY
from suffice.pipeline.math.parameters import contrasts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from suffice.typing import Floats


def ends_of(mass: float) -> tuple[float, float]:
    """Return the probabilities below both ends of a central interval.

    Raises
    ------
    UsageError
        Where the mass is not between 0 and 1.
    """
    # The same probability on both sides.
    return (1.0 - contrasts.require_share("mass", mass)) / 2.0, (1.0 + mass) / 2.0


def require_finite(name: str, value: float) -> float:
    """Return a finite number.

    Raises
    ------
    UsageError
        Where it is none.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        message = f"{name} must be one finite number, not {value!r}"
        raise UsageError(message)
    return float(value)


def interval_in_words(kind: str, mass: float) -> str:
    """Return what intervals are, as every output says it."""
    shortest = ", the shortest" if kind == HIGHEST_DENSITY else ""
    return f"{kind}{shortest}, {100 * mass:g} % posterior probability each"


def points_for(points: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return the points at which densities are asked for, (*shape, n_points).

    Raises
    ------
    UsageError
        Where they are no numbers, or neither (n_points,) nor shaped so.
    """
    message = "points must be numbers, (n_points,) or one row for every mean"
    try:
        given = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(message) from None
    if given.ndim == 0 or (given.ndim > 1 and given.shape[:-1] != shape):
        message = f"{message}: {(*shape, 'n_points')}, not {given.shape}"
        raise UsageError(message)
    if np.any(np.isnan(given)):
        raise UsageError(message)
    return np.broadcast_to(given, (*shape, given.shape[-1]))


def generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """Return the generator itself, one made from a seed, or a fresh one."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is not None and not is_integer(rng, 0):
        message = f"rng must be a numpy Generator or an integer of at least 0, not {rng!r}"
        raise UsageError(message)
    return np.random.default_rng(rng)


def checked_draws(draws: object, *, least: int = 1) -> int:
    """Return a number of draws; at least 2 where they are summarised, as a single one has no spread.

    Raises
    ------
    UsageError
        Where it is no integer of at least so much.
    """
    if not is_integer(draws, least):
        rule = "an integer above 0" if least == 1 else f"{least} or more: one draw alone has no spread"
        message = f"draws must be {rule}, not {draws!r}"
        raise UsageError(message)
    return int(draws)


def positive(name: str, value: object) -> float:
    """Return a finite number above 0.

    Raises
    ------
    UsageError
        Where it is none.
    """
    if not isinstance(value, bool) and isinstance(value, Real) and 0.0 < float(value) < math.inf:
        return float(value)
    message = f"{name} must be a finite number above 0, not {value!r}"
    raise UsageError(message)


def is_integer(value: object, least: int) -> TypeGuard[int]:
    """Tell whether a value is an integer of at least so much; truth values are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= least

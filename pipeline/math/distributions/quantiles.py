"""Quantiles of many distributions at once, from their distribution functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.typing import Cells, Floats


_MOST_ROUNDS = 60
_CLOSE, _NEAR = 1e-4, 0.03
_FEWER = 0.8
"""Share of the cells below which those that are open are taken alone."""


def find_quantile(
    below: Callable[[Cells], Callable[[Floats], Floats]],
    low: Floats,
    high: Floats,
    mean: Floats,
    sd: Floats,
    level: float | Floats,
    *,
    guess: tuple[Floats, Floats] | None = None,
) -> Floats:
    """Find where distribution functions of many cells reach a level: normal guesses, then bracketed secants.

    Parameters
    ----------
    below : callable
        Indices of some cells, ascending -> their distribution functions: a position each -> probabilities.
    low, high : ndarray of shape (n_cells,)
        Positions between which the quantiles are.
    mean, sd : ndarray of shape (n_cells,)
        Of the distributions, about.
    level : float, or ndarray of shape (n_cells,)
        Strictly between 0 and 1.
    guess : (ndarray, ndarray) of shape (n_cells,), optional
        Better guesses than normal ones, and how far a position moves there about while the level's normal
        deviate moves by 1.

    Returns
    -------
    ndarray of shape (n_cells,)
        Positions that are right to 1e-4 of ``sd``.
    """
    from scipy.special import ndtri

    wanted = np.broadcast_to(np.asarray(ndtri(level)), mean.shape)
    start, pace = (mean + sd * wanted, sd) if guess is None else guess
    position = np.clip(start, low, high)
    found = position.copy()
    active, left, right, other, previous = np.arange(len(position)), low, high, position, position
    cdf = below(active)
    for turn in range(_MOST_ROUNDS):
        value = np.asarray(ndtri(np.clip(cdf(position), 1e-15, 1.0 - 1e-15))) - wanted
        left, right = np.where(value < 0.0, position, left), np.where(value < 0.0, right, position)
        if turn == 0:
            usable = np.zeros(len(position), dtype=np.bool_)
            following = position - np.clip(value, -1.0, 1.0) * pace
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                secant = position - value * (position - other) / (value - previous)
            usable = (secant > left) & (secant < right) & (turn % 4 != 3)
            following = np.where(usable, secant, (left + right) / 2.0)
        step = np.abs(np.clip(following, left, right) - position)
        # The error after a secant is about the product of the last two.
        close = usable & (step < _NEAR * sd)
        after = np.where(close, step * np.minimum(np.abs(position - other) / sd, 1.0), step)
        other, previous, position = position, value, np.clip(following, left, right)
        found[active] = position
        open_ = (after > _CLOSE * sd) & (right - left > _CLOSE * sd)
        if not np.any(open_):
            break
        if np.count_nonzero(open_) < _FEWER * len(active):
            active, cdf = active[open_], below(active[open_])
            left, right, sd, wanted, position, other, previous = (
                column[open_] for column in (left, right, sd, wanted, position, other, previous)
            )
    return found

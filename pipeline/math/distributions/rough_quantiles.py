"""About the quantiles of mixtures of very many conjugate distributions: many levels for the price of a few.

A coarser mixture's distribution function is tabulated at positions about the mean, and then, in turns, where
the table so far has the levels. Between knots the levels' normal deviates are taken for linear. Half of such
quantiles are right to .001 of an interval's width; far out in tails of several decades they are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions.one_parameter import coordinate_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.distributions.merged import Components
    from suffice.typing import Floats


_AT_FIRST = np.linspace(-8.0, 6.0, 15)
"""Standard deviations from the mean; logarithms and logits have the longer tails below."""
_EVERY = (4, 2)
"""Of ascending levels, how many apart are those at which turns look."""
_LEAST = 1e-15
"""Probability that is not told from 0."""


def rough_quantiles(
    components: Components,
    update: Callable[[Floats, Floats], Distribution],
    q: Sequence[float],
    cells: int,
) -> Floats:
    """Return about the quantiles, (n_cells, n_q).

    Parameters
    ----------
    components : Components
        Of all cells.
    update : callable
        As in ``Components.of``.
    q : sequence of float, strictly between 0 and 1
    cells : int
        How many cells there are.
    """
    rough, wanted = components.coarser(update, cells), _deviates(np.asarray(q))
    low, high, mean, sd = (column[:, None] for column in rough.about(update, cells))
    knots = np.clip(mean + sd * _AT_FIRST, low, high)
    known = _deviates(rough.below(update, knots))
    for step in _EVERY:
        at = _interpolated(np.append(wanted[::step], wanted[-1]), known, knots)
        knots = np.concatenate([knots, at], axis=1)
        known = np.concatenate([known, _deviates(rough.below(update, at))], axis=1)
        order = np.argsort(knots, axis=1)
        knots, known = (np.take_along_axis(table, order, axis=1) for table in (knots, known))
        known = np.maximum.accumulate(known, axis=1)
    line = coordinate_of(update(components.n[:1], components.total[:1])).line
    return line.parameter(_interpolated(wanted, known, knots))


def _deviates(level: Floats) -> Floats:
    """Return normal deviates of levels."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.clip(level, _LEAST, 1.0 - _LEAST)))


def _interpolated(wanted: Floats, known: Floats, values: Floats) -> Floats:
    """Return values, row by row, where known ones, which ascend, reach wanted ones."""
    return np.stack([np.interp(wanted, *row) for row in zip(known, values, strict=True)])

r"""The plan of a released sample: draws of a posterior on a public grid, and what they cost.

.. math:: P(g) \propto \pi_g \, e^{s_g / t}

with :math:`s_g` the log likelihood of the data at the grid's g-th point, in units of :math:`2^{-20}` nats,
and :math:`\pi_g` the prior there. Sensitivity in `sensitivity.md`: sample-range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suffice.typing import Floats

SCORE_BITS = 20
"""Scores, their range and the scale are integers in units of 2**-20 nats."""
LARGEST_SAMPLE_SCALE = 1 << 46
"""Above, the data would hardly count."""
MAP_MARGIN = Fraction(1, 1 << 48)
"""Part of epsilon that is left for OpenDP's map, which float64 rounds up by less than `2**-49` of itself."""
LARGEST_RANGE = 1 << 62
"""OpenDP's map takes its double in 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePlan:
    """Draws of one parameter's posterior, tempered as far as epsilon asks for.

    Attributes
    ----------
    parameter : str
        Its name.
    draws : int
        In each cell, independent given the data.
    grid : int
        Number of points, equally spaced.
    within : tuple of Fraction
        The first and the last point, in the parameter's unit.
    prior : str
        Canonical text; normalised on the grid.
    range_sensitivity : int
        The largest range over the grid of a change of the scores between neighbours, added up over cells, in
        2**-20 nats.
    scale : int
        ``t``, in 2**-20 nats; at least 2**20.
    """

    parameter: str
    draws: int
    grid: int
    within: tuple[Fraction, Fraction]
    prior: str
    range_sensitivity: int
    scale: int

    @property
    def temperature(self) -> Fraction:
        """``T``: the likelihood counts to the power of ``1 / T``; 1 is the posterior itself."""
        return Fraction(self.scale, 1 << SCORE_BITS)

    @property
    def is_tempered(self) -> bool:
        """Whether draws are of a flatter law than the data's own posterior."""
        return self.temperature > 1

    @property
    def privacy_loss(self) -> Fraction:
        """What all draws lose at most, in nats: less than epsilon, much less where the temperature is 1."""
        return Fraction(self.draws * self.range_sensitivity, self.scale)

    def candidates(self, n_cells: int) -> int:
        """Return among how many points the draws of so many cells choose; drawing takes as long."""
        return n_cells * self.grid * self.draws

    def points(self) -> tuple[Fraction, ...]:
        """Return the grid, ascending, exactly."""
        return grid_points(self.within, self.grid)

    def values(self) -> Floats:
        """Return the grid, shape (grid,), each point rounded to float64 once."""
        return grid_values(self.within, self.grid)


def grid_points(within: tuple[Fraction, Fraction], grid: int) -> tuple[Fraction, ...]:
    """Return so many equally spaced points between two ends, both among them, exactly."""
    lower, upper = within
    step = (upper - lower) / (grid - 1)
    return tuple(lower + step * position for position in range(grid))


def grid_values(within: tuple[Fraction, Fraction], grid: int) -> Floats:
    """Return the points of a grid, shape (grid,), each rounded to float64 once."""
    import numpy as np  # plans are made without it

    return np.array([float(point) for point in grid_points(within, grid)])


def smallest_scale(range_sensitivity: int, draws: int, epsilon: Fraction) -> int:
    r"""Return the least scale, at least 2**20, at which all draws lose less than epsilon, in float64 too.

    .. math:: \max\bigl(2^{20}, \lfloor q \Delta / (1 - 2^{-48}) \varepsilon \rfloor + 1\bigr)

    Parameters
    ----------
    range_sensitivity : int
        In 2**-20 nats.
    draws : int
        ``q``.
    epsilon : Fraction, > 0
        Of all draws together, in nats.
    """
    # proof: sample-range
    return max(1 << SCORE_BITS, math.floor(draws * range_sensitivity / (epsilon * (1 - MAP_MARGIN))) + 1)

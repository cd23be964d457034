r"""The plan of a sample: draws of a posterior on a public grid.

Draws are of

.. math::
    P(g) \propto \pi_g \, e^{s_g / t}, \qquad s_g = \bigl\lfloor (a_g S - c_g N) / 2^{40} \bigr\rfloor

with :math:`\pi_g` the prior at the grid's g-th point and :math:`s_g` the log likelihood of the data there, in
units of :math:`2^{-20}` nats, in Python integers. N counts the records of a cell and S sums T, counted
from its lower bound, in lattice units; the public tables :math:`a_g`, :math:`c_g` are in units of
:math:`2^{-60}` nats. Claims and proof in `sensitivity.md`: sample-range.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Self

from suffice.pipeline.terms.declaration.documents import Positive, printed
from suffice.pipeline.terms.statistics.exponential_draws import LOWEST_SCORE, SCORE_BITS, ExponentialDraws
from suffice.pipeline.terms.statistics.sensitivity import NeighboringRelation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suffice.typing import Floats


TABLE_BITS = 60
"""Tables are integers in units of 2**-60 nats: S may be 2**56, and 2**-61 nats of error a unit count."""
_DIGITS = decimal.Context(prec=60, rounding=decimal.ROUND_HALF_EVEN)


def logarithm(number: Fraction) -> Fraction:
    """Return the natural logarithm of a number above 0 to 60 digits: the same on every machine.

    ``decimal`` rounds the quotient and its logarithm correctly, so that the result misses the truth by at
    most ``1e-59 * (1 + abs(result))``.
    """
    return Fraction(_DIGITS.ln(_DIGITS.divide(*map(decimal.Decimal, number.as_integer_ratio()))))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTables:
    """What a record's T and a record add to the score of each grid point, in 2**-60 nats.

    Parameters
    ----------
    slopes, offsets : tuple of int
        ``a_g`` by a lattice unit of T, and ``c_g`` by a record, subtracted.
    width : int
        The range of one record's T, in lattice units.
    """

    slopes: tuple[int, ...]
    offsets: tuple[int, ...]
    width: int

    @classmethod
    def of(
        cls, natural: Iterable[tuple[Fraction, Fraction]], lower: Fraction, upper: Fraction, width: int
    ) -> Self:
        """Round the tables of a grid.

        Parameters
        ----------
        natural : iterable of (Fraction, Fraction)
            The natural parameter and the log normaliser at each point.
        lower, upper : Fraction
            T's bounds on one record, in T's unit.
        width : int
            Lattice units between them.
        """
        step, unit = (upper - lower) / width, 1 << TABLE_BITS
        slopes, offsets = [], []
        for parameter, normaliser in natural:
            slopes.append(round(parameter * step * unit))
            offsets.append(round((normaliser - parameter * lower) * unit))
        return cls(slopes=tuple(slopes), offsets=tuple(offsets), width=width)

    def range_sensitivity(
        self, neighboring: NeighboringRelation, *, records: int, n_cells: int, n_is_public: bool
    ) -> int:
        """Return the largest range of a change of all scores between neighbours, in 2**-20 nats.

        Added up over cells, rounded up, with the floor of every cell that is touched, and even.

        Parameters
        ----------
        neighboring : NeighboringRelation
        records : int
            How many records a unit adds at most.
        n_cells : int
        n_is_public : bool
            Whether one record of a single cell is replaced, and none is added or removed.
        """
        # proof: sample-range
        replaces = neighboring is NeighboringRelation.REPLACE_ONE
        if n_is_public:
            if not replaces or records != 1 or n_cells != 1:
                message = "N is public for replace_one, single records and one cell only"
                raise ValueError(message)
            bound = _rounded_up(self.width * _range(self.slopes)) + 1
        else:
            largest = max(_range(self._of_record(0)), _range(self._of_record(self.width)))
            bound = records * _rounded_up(largest) + min(records, n_cells)
            bound *= 2 if replaces else 1
        return bound + bound % 2

    def scores(self, n: int, total: int) -> list[int]:
        """Return the scores of a cell, in 2**-20 nats: the highest is 0, none is below -2**62.

        Parameters
        ----------
        n, total : int
            Records, and the sum of T from its lower bound, in lattice units.
        """
        # proof: sample-range
        floors = [
            (slope * total - offset * n) >> (TABLE_BITS - SCORE_BITS)
            for slope, offset in zip(self.slopes, self.offsets, strict=True)
        ]
        highest = max(floors)
        return [max(score - highest, LOWEST_SCORE) for score in floors]

    def _of_record(self, value: int) -> list[int]:
        return [slope * value - offset for slope, offset in zip(self.slopes, self.offsets, strict=True)]


def _rounded_up(range_of_tables: int) -> int:
    return -(-range_of_tables >> (TABLE_BITS - SCORE_BITS))


def _range(numbers: Sequence[int]) -> int:
    return max(numbers) - min(numbers)


@printed("parameter draws grid within prior range_sensitivity scale temperature")
@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePlan(ExponentialDraws):
    """Draws of one parameter's posterior, tempered as far as epsilon asks for.

    Attributes
    ----------
    parameter : str
        Its name.
    grid : int
        Number of points, equally spaced.
    within : tuple of Fraction
        The first and the last point, in the parameter's unit.
    prior : str
        Canonical text; normalised on the grid.
    range_sensitivity : int
        In 2**-20 nats.
    scale : int
        ``t``, in 2**-20 nats; at least 2**20.
    """

    parameter: str
    grid: Positive
    within: tuple[Fraction, Fraction]
    prior: str

    @property
    def temperature(self) -> Fraction:
        """``T``: the likelihood counts to the power of ``1 / T``; 1 is the posterior itself."""
        return Fraction(self.scale, 1 << SCORE_BITS)

    @property
    def is_tempered(self) -> bool:
        """Whether draws are of a flatter law than the data's own posterior."""
        return self.temperature > 1

    @property
    def n_points(self) -> int:
        """Number of points of the grid."""
        return self.grid

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

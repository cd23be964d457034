"""Adding rows of integers to exact sums: one accumulator per kind of measure.

An accumulator owns one statistic's table for one task. The table's last cell takes the rows that belong to
none, and is thrown away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from suffice.pipeline import kernels
from suffice.pipeline.exact import LIMB_BITS, Table, normalise, zero_table
from suffice.pipeline.sums import CodeCounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from suffice.pipeline.sums import Measure, PowerSums

    Codes: TypeAlias = NDArray[np.int32]


class Accumulator(Protocol):
    """What a task needs of a measure."""

    def add(self, cells: Codes, columns: Sequence[Codes]) -> None:
        """Add rows: their cells, and the columns that the measure reads, which may be overwritten."""

    def table(self) -> Table:
        """Return the exact sums, shape (n_cells, n_sums)."""


def accumulator(measure: Measure, n_cells: int) -> Accumulator:
    """Return an empty accumulator of a measure."""
    if isinstance(measure, CodeCounts):
        return CountAccumulator(measure, n_cells)
    return PowerAccumulator(measure, n_cells)


class CountAccumulator:
    """Counts of codes."""

    def __init__(self, measure: CodeCounts, n_cells: int) -> None:
        self._table = zero_table(measure, n_cells + 1)

    def add(self, cells: Codes, columns: Sequence[Codes]) -> None:
        """Add rows; their codes are overwritten."""
        kernels.count_codes(cells, columns[0], self._table.low)

    def table(self) -> Table:
        """Return the counts."""
        return without_last_cell(self._table)


class PowerAccumulator:
    """Sums of powers of a lattice value, carried into the high limbs before an int64 is full."""

    def __init__(self, measure: PowerSums, n_cells: int) -> None:
        self._table = zero_table(measure, n_cells + 1)
        self._limit = rows_before_carry(measure.of.quantiser.largest_magnitude, measure.degree)
        self._room = 0

    def add(self, cells: Codes, columns: Sequence[Codes]) -> None:
        """Add rows."""
        self._room = add_powers(self._table, cells, columns[0], room=self._room, limit=self._limit)

    def table(self) -> Table:
        """Return the sums, normalised."""
        normalise(self._table)
        return without_last_cell(self._table)


def without_last_cell(table: Table) -> Table:
    """Return a table without the cell that stands for none."""
    return Table(low=table.low[:-1], high=None if table.high is None else table.high[:-1])


def rows_before_carry(largest: int, degree: int) -> int:
    r"""Return how many rows may be added to normalised low limbs before any could leave int64.

    .. math:: \lfloor (2^{63} - 1 - 2^{48}) / \max(1, M^{d}) \rfloor

    where M is the largest magnitude of a lattice value and d the degree.
    """
    return ((1 << 63) - 1 - (1 << LIMB_BITS)) // max(1, int(largest**degree))


def add_powers(table: Table, cells: Codes, lattice: Codes, *, room: int, limit: int) -> int:
    """Add a block's powers to low limbs, carrying in time.

    Parameters
    ----------
    table : Table
        The sums; changed in place.
    cells, lattice : ndarray of int32, shape (n_rows,)
        Each row's cell, and its lattice value or `kernels.NOTHING`.
    room : int
        How many rows may still be added before the next carry.
    limit : int
        How many rows may be added after one.

    Returns
    -------
    int
        The room that is left.
    """
    start = 0
    while start < len(cells):
        if not room:
            normalise(table)
            room = limit
        rows = slice(start, start + room)
        kernels.add_powers(cells[rows], lattice[rows], table.low)
        added = len(cells[rows])
        start, room = start + added, room - added
    return room

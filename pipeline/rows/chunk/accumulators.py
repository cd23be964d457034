"""Adding rows of integers to exact sums: one accumulator per kind of measure.

An accumulator owns one statistic's table for one task. The table's last cell takes the rows that belong to
none, and is thrown away.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.rows.chunk import kernels
from suffice.pipeline.rows.chunk.exact_sums import LIMB_BITS, Table, normalise, zero_table
from suffice.pipeline.rows.chunk.row_readers import NO_POSITION
from suffice.pipeline.terms.statistics.measure import N_SIDES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.rows.chunk.row_readers import Places
    from suffice.pipeline.terms.statistics.measure import (
        CodeCounts,
        CountedPowers,
        MomentSums,
        PowerSums,
        TableCounts,
        TransitionCounts,
    )
    from suffice.typing import Codes


# Where products of matrices were measured to be faster than adding row by row, in public numbers.
FEWEST_MATRIX_COLUMNS = 5
MOST_MATRIX_CELLS = 64
FEWEST_MATRIX_ROWS = 1 << 15


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


class TableAccumulator:
    """Counts of combinations of codes, in several tables."""

    def __init__(self, measure: TableCounts, n_cells: int) -> None:
        position = {of: index for index, of in enumerate(measure.reads)}
        self._columns = [[(position[of], of.n_codes) for of in table] for table in measure.tables]
        self._tables = [np.zeros((n_cells + 1, width), np.int64) for width in measure.widths]

    def add(self, cells: Codes, columns: Sequence[Codes]) -> None:
        """Add rows; a row that lacks a code of any column enters no table."""
        entering = cells.copy()
        for codes in columns:
            kernels.keep_coded(entering, codes)
        for table, counts in zip(self._columns, self._tables, strict=True):
            (first, _), *others = table
            combined = columns[first].copy()
            for index, n_codes in others:
                kernels.combine_codes(combined, columns[index], n_codes)
            kernels.count_codes(entering, combined, counts)

    def table(self) -> Table:
        """Return the counts, table beside table."""
        return Table(low=np.concatenate([counts[:-1] for counts in self._tables], axis=1))


class TransitionAccumulator:
    """Counts of steps along the rows of units."""

    def __init__(self, measure: TransitionCounts, n_cells: int) -> None:
        self.measure = measure
        self._table = zero_table(measure, n_cells + 1)

    def add(self, cells: Codes, columns: Sequence[Codes]) -> None:
        """Add rows each for itself: they make no step."""

    def add_sequences(self, units: Codes, order: Places, cells: Codes, codes: Codes) -> None:
        """Add all rows of some units, in any order.

        Parameters
        ----------
        units : ndarray of int32, shape (n_rows,)
            Rows of one unit have one number.
        order : Places
            Places in the order, each of shape (n_rows,).
        cells, codes : ndarray of int32, shape (n_rows,)
            Cells, and codes of the column, -1 where there is none.
        """
        # proof: first-transitions
        chosen = np.flatnonzero((order.floors != NO_POSITION) & (codes >= 0))
        floors, rests = order.floors[chosen], order.rests[chosen]
        units, cells, codes = units[chosen], cells[chosen], codes[chosen]
        rows = np.lexsort((cells, codes, rests, floors, units)).astype(np.int32)
        n_codes = self.measure.of.n_codes
        kernels.count_transitions(rows, units, cells, codes, self.measure.most, n_codes, self._table.low)

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


class CountedPowerAccumulator:
    """Sums of powers of a lattice value, and counts of the rows that clipping moved to each end."""

    def __init__(self, measure: CountedPowers, n_cells: int) -> None:
        self._powers = PowerAccumulator(measure.of, n_cells)
        self._quantiser = measure.of.of.quantiser
        self._counts = np.zeros((n_cells + 1, N_SIDES), np.int64)

    def add(self, cells: Codes, columns: Sequence[Codes]) -> None:
        """Add rows."""
        lattice, sides = columns
        # proof: counts-beside
        moved = np.empty_like(sides)
        kernels.keep_sides_at_ends(lattice, sides, self._quantiser.lowest, self._quantiser.highest, moved)
        kernels.count_codes(cells, moved, self._counts)
        self._powers.add(cells, [lattice])

    def table(self) -> Table:
        """Return the sums, normalised, and the counts beside them."""
        powers, counts = self._powers.table(), self._counts[:-1]
        high = np.zeros_like(powers.low) if powers.high is None else powers.high
        table = Table(
            low=np.concatenate([powers.low, counts], axis=1),
            high=np.concatenate([high, np.zeros_like(counts)], axis=1),
        )
        normalise(table)
        return table


class MomentAccumulator:
    """Sums of values and of products of two, row by row in int64: for any number of cells."""

    def __init__(self, measure: MomentSums, n_cells: int) -> None:
        self._table = zero_table(measure, n_cells + 1)
        self._limit = rows_before_carry(measure.largest_magnitude, 2)
        self._room = 0

    def add(self, cells: Codes, columns: Sequence[Codes]) -> None:
        """Add rows."""

        def add_rows(rows: slice) -> None:
            lattice = np.stack([column[rows] for column in columns])
            kernels.add_moments(cells[rows], lattice, self._table.low)

        self._room = add_in_time(self._table, len(cells), add_rows, room=self._room, limit=self._limit)

    def table(self) -> Table:
        """Return the sums, normalised."""
        normalise(self._table)
        return without_last_cell(self._table)


class MatrixAccumulator:
    r"""Sums of values and of products of two as a product of matrices, :math:`(1, X)^T (1, X)` in each cell.

    In float64, by blocks of at most :math:`\lfloor 2^{53} / M^2 \rfloor` rows: no partial sum of any order
    of addition leaves the integers that float64 holds exactly, so the result is that of int64.
    """

    def __init__(self, measure: MomentSums, n_cells: int) -> None:
        self._table = zero_table(measure, n_cells)
        self._limit = rows_before_carry(measure.largest_magnitude, 2)
        self._block = rows_before_rounding(measure.largest_magnitude)
        self._room = 0
        size = len(measure.of) + 1
        self._upper = np.triu_indices(size)
        self._starts = np.zeros(n_cells + 1, np.int64)

    def add(self, cells: Codes, columns: Sequence[Codes]) -> None:
        """Add rows."""

        def add_rows(rows: slice) -> None:
            for start in range(rows.start, rows.stop, self._block):
                self._add_block(cells, columns, slice(start, min(start + self._block, rows.stop)))

        self._room = add_in_time(self._table, len(cells), add_rows, room=self._room, limit=self._limit)

    def _add_block(self, cells: Codes, columns: Sequence[Codes], rows: slice) -> None:
        lattice = np.stack([column[rows] for column in columns])
        matrix = np.empty((lattice.shape[1], lattice.shape[0] + 1))
        kernels.gather_by_cell(cells[rows], lattice, self._starts, matrix)
        for cell, (start, end) in enumerate(pairwise(self._starts.tolist())):
            part = matrix[start:end]
            # One triangle is n, the sums and the products, in the order of the table.
            self._table.low[cell] += (part.T @ part)[self._upper].astype(np.int64)

    def table(self) -> Table:
        """Return the sums, normalised."""
        normalise(self._table)
        return self._table


def multiplies_matrices(n_columns: int, n_cells: int, largest: int) -> bool:
    """Return whether to sum by products of matrices: many columns, few cells, blocks long enough."""
    return (
        n_columns >= FEWEST_MATRIX_COLUMNS
        and n_cells <= MOST_MATRIX_CELLS
        and rows_before_rounding(largest) >= FEWEST_MATRIX_ROWS
    )


def rows_before_rounding(largest: int) -> int:
    r"""Return how many rows' products of two sum exactly in float64: :math:`\lfloor 2^{53} / M^2 \rfloor`."""
    return (1 << 53) // max(1, largest**2)


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

    def add_rows(rows: slice) -> None:
        kernels.add_powers(cells[rows], lattice[rows], table.low)

    return add_in_time(table, len(cells), add_rows, room=room, limit=limit)


def add_in_time(
    table: Table, n_rows: int, add_rows: Callable[[slice], None], *, room: int, limit: int
) -> int:
    """Add `n_rows` rows by slices, carrying before a low limb is full; return the room that is left."""
    start = 0
    while start < n_rows:
        if not room:
            normalise(table)
            room = limit
        rows = slice(start, min(start + room, n_rows))
        add_rows(rows)
        start, room = rows.stop, room - (rows.stop - rows.start)
    return room

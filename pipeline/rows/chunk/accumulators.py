"""Adding rows of integers to exact sums: one accumulator per kind of measure.

An accumulator owns one statistic's table for one task. The table's last cell takes the rows that belong to
none, and is thrown away.

Accumulators of whole units see all rows of each unit at once. Which of a unit's rows comes first is a
function of its own rows and of the run's key alone, and so is everything that the unit adds. Products of
several columns are of what a unit adds to a cell.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from suffice.pipeline.rows.chunk import kernels
from suffice.pipeline.rows.chunk.encoding import NO_POSITION
from suffice.pipeline.rows.chunk.exact_sums import (
    LIMB_BITS,
    LIMB_MASK,
    Table,
    add_in_time,
    normalise,
    rows_before_carry,
    rows_before_rounding,
    without_last_cell,
    zero_table,
)
from suffice.pipeline.rows.sources.contract import exact_data
from suffice.pipeline.terms.statistics import measure as measures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.rows.chunk.encoding import Places
    from suffice.typing import Codes


# Where products of matrices were measured to be faster than adding row by row, in public numbers.
FEWEST_MATRIX_COLUMNS = 5
MOST_MATRIX_CELLS = 64
FEWEST_MATRIX_ROWS = 1 << 15


class CountAccumulator:
    """Counts of codes."""

    def __init__(self, measure: measures.CodeCounts, n_cells: int) -> None:
        self._table = zero_table(measure, n_cells + 1)

    def add(self, cells: Codes, columns: Sequence[Codes]) -> None:
        """Add rows; their codes are overwritten."""
        kernels.count_codes(cells, columns[0], self._table.low)

    def table(self) -> Table:
        """Return the counts."""
        return without_last_cell(self._table)


class TableAccumulator:
    """Counts of combinations of codes, in several tables."""

    def __init__(self, measure: measures.TableCounts, n_cells: int) -> None:
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

    def __init__(self, measure: measures.TransitionCounts, n_cells: int) -> None:
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

    def __init__(self, measure: measures.PowerSums, n_cells: int) -> None:
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

    def __init__(self, measure: measures.CountedPowers, n_cells: int) -> None:
        self._powers = PowerAccumulator(measure.of, n_cells)
        self._quantiser = measure.of.of.quantiser
        self._counts = np.zeros((n_cells + 1, measures.N_SIDES), np.int64)

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

    def __init__(self, measure: measures.MomentSums, n_cells: int) -> None:
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

    def __init__(self, measure: measures.MomentSums, n_cells: int) -> None:
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


class UnitProductAccumulator:
    """Sums over rows, and of products of what each unit adds to a cell.

    A product is at most 2^62 in magnitude, as `measure.LARGEST_UNIT_SUM` bounds what is multiplied. It is
    added limb by limb, less than 2^48 to the low one.
    """

    def __init__(self, measure: measures.UnitProducts, n_cells: int) -> None:
        of = measure.of
        self._rows = (
            CountAccumulator(of, n_cells)
            if isinstance(of, measures.CodeCounts)
            else PowerAccumulator(of, n_cells)
        )
        self._counts_codes = isinstance(of, measures.CodeCounts)
        shape = (n_cells, measures.N_PRODUCTS)
        self._low, self._high = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self._products = Table(low=self._low, high=self._high)
        self._limit = rows_before_carry(LIMB_MASK, 1)
        self._room = 0

    def add(self, cells: Codes, columns: Sequence[Codes]) -> None:
        """Add rows each of which is a unit of its own."""
        self._add_kept(np.arange(len(cells), dtype=np.int32), cells, columns)

    def add_units(self, rows: UnitRows, columns: Sequence[Codes]) -> None:
        """Add what units keep, all of whose rows are here."""
        kept = rows.kept
        self._add_kept(rows.units[kept], rows.cells[kept], [column[kept] for column in columns])

    def _add_kept(self, units: Codes, cells: Codes, columns: Sequence[Codes]) -> None:
        """Add rows in any order; those of one unit have one number."""
        # proof: within-unit
        first, second = self._parts(columns[0])
        chosen = np.flatnonzero((cells >= 0) & ((first != 0) | (second != 0)))
        keys = units[chosen].astype(np.int64) * len(self._low) + cells[chosen]
        order = np.argsort(keys, kind="stable")
        keys, chosen = keys[order], chosen[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        if len(starts):
            a, b = (np.add.reduceat(part[chosen], starts) for part in (first, second))
            self._add_products(cells[chosen[starts]], np.stack([a * a, a * b, b * b], axis=1))
        self._rows.add(cells, columns)

    def _parts(self, values: Codes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return what each row adds to the two sums that are multiplied; nothing where it does not enter."""
        if self._counts_codes:
            return (values == 0).astype(np.int64), (values == 1).astype(np.int64)
        enters = values != kernels.NOTHING
        return enters.astype(np.int64), np.where(enters, values, 0).astype(np.int64)

    def _add_products(self, cells: Codes, products: NDArray[np.int64]) -> None:
        def add_rows(rows: slice) -> None:
            np.add.at(self._low, cells[rows], products[rows] & LIMB_MASK)
            np.add.at(self._high, cells[rows], products[rows] >> LIMB_BITS)

        self._room = add_in_time(self._products, len(cells), add_rows, room=self._room, limit=self._limit)

    def table(self) -> Table:
        """Return the sums over rows, then those of products, normalised."""
        normalise(self._products)
        rows = self._rows.table()
        high = np.zeros_like(rows.low) if rows.high is None else rows.high
        return Table(
            low=np.concatenate([rows.low, self._low], axis=1),
            high=np.concatenate([high, self._high], axis=1),
        )


@exact_data(travels=False)
class UnitRows:
    """All rows of some units.

    Parameters
    ----------
    units : ndarray of int32, shape (n_rows,)
        The number of each row's unit, from 0 on.
    n_units : int
        How many units there are.
    cells : ndarray of int32, shape (n_rows,)
        Each row's cell.
    ranked : ndarray of int64, shape (n_rows,)
        The rows such that those of one unit stand in the order of their rank.
    kept : ndarray of bool, shape (n_rows,)
        Whether a row is among those that its unit keeps.
    """

    units: Codes
    n_units: int
    cells: Codes
    ranked: NDArray[np.int64]
    kept: NDArray[np.bool_]

    def firsts(self, enters: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the first row by rank of each unit among those that enter, -1 where there is none."""
        firsts = np.full(self.n_units, -1, np.int64)
        kernels.first_rows(self.ranked, self.units, enters, firsts)
        return firsts

    def chosen(self, positions: NDArray[np.int64]) -> UnitRows:
        """Return some of the rows, in their order; units that have none of them are left out."""
        is_chosen = np.zeros(len(self.units), np.bool_)
        is_chosen[positions] = True
        numbers, units = np.unique(self.units[positions], return_inverse=True)
        ranked = self.ranked[is_chosen[self.ranked]]
        return UnitRows(
            units=units.astype(np.int32),
            n_units=len(numbers),
            cells=self.cells[positions],
            ranked=(np.cumsum(is_chosen) - 1)[ranked],
            kept=self.kept[positions],
        )


@runtime_checkable
class UnitAccumulator(Protocol):
    """What a task needs of a measure of whole units."""

    def add(self, cells: Codes, columns: Sequence[Codes]) -> None:
        """Add rows each of which is a unit of its own."""

    def add_units(self, rows: UnitRows, columns: Sequence[Codes]) -> None:
        """Add units all of whose rows are here; the columns may be overwritten."""

    def table(self) -> Table:
        """Return the exact sums, shape (n_cells, n_sums)."""


class FirstRowAccumulator:
    """Sums of one row of each unit."""

    def __init__(self, measure: measures.FirstRow, n_cells: int) -> None:
        of = measure.of
        self._reads = measure.reads
        self._rows = (
            CountAccumulator(of, n_cells)
            if isinstance(of, measures.CodeCounts)
            else PowerAccumulator(of, n_cells)
        )

    def add(self, cells: Codes, columns: Sequence[Codes]) -> None:
        """Add rows each of which is a unit of its own."""
        self._rows.add(cells, columns)

    def add_units(self, rows: UnitRows, columns: Sequence[Codes]) -> None:
        """Add of each unit the first row that enters."""
        # proof: one-row-a-unit
        firsts = rows.firsts(enters(self._reads, columns))
        firsts = firsts[firsts >= 0]
        self._rows.add(rows.cells[firsts], [column[firsts] for column in columns])

    def table(self) -> Table:
        """Return the exact sums."""
        return self._rows.table()


class UnitMeanAccumulator:
    """Sums of powers of units' means."""

    def __init__(self, measure: measures.UnitMean, n_cells: int) -> None:
        self._reads = measure.reads
        self._units = PowerAccumulator(measure.of, n_cells)

    def add(self, cells: Codes, columns: Sequence[Codes]) -> None:
        """Add rows each of which is a unit of its own, and its own mean."""
        self._units.add(cells, columns)

    def add_units(self, rows: UnitRows, columns: Sequence[Codes]) -> None:
        """Add the mean of each unit's values in the cell of its first row that has one.

        A sum of k values stays below ``2**30 k`` in magnitude, and a task holds fewer than 2**31 rows.
        """
        # proof: unit-means
        firsts = rows.firsts(enters(self._reads, columns))
        totals, counts = np.zeros(rows.n_units, np.int64), np.zeros(rows.n_units, np.int64)
        kernels.add_by_unit(rows.units, rows.cells, columns[0], firsts, totals, counts)
        present = counts > 0
        means = rounded_ratio(totals[present], counts[present]).astype(np.int32)
        self._units.add(rows.cells[firsts[present]], [means])

    def table(self) -> Table:
        """Return the exact sums."""
        return self._units.table()


class RowCountAccumulator:
    """Sums, or counts, of the numbers of units' rows."""

    def __init__(self, measure: measures.RowCounts, n_cells: int) -> None:
        self._measure = measure
        self._table = zero_table(measure, n_cells + 1)
        self._limit = rows_before_carry(measure.upper, 1)
        self._room = 0

    def add(self, cells: Codes, columns: Sequence[Codes]) -> None:
        """Add rows each of which is a unit of its own."""
        del columns
        self._add(cells, np.ones(len(cells), np.int64))

    def add_units(self, rows: UnitRows, columns: Sequence[Codes]) -> None:
        """Add the number of each unit's rows."""
        # proof: rows-per-unit
        del columns
        firsts = rows.firsts(np.ones(len(rows.cells), np.bool_))
        self._add(rows.cells[firsts], np.bincount(rows.units, minlength=rows.n_units))

    def _add(self, cells: Codes, numbers: NDArray[np.int64]) -> None:
        upper, kept = self._measure.upper, self._measure.kept
        seen = np.minimum(numbers, upper)
        if self._measure.counts_each:
            kernels.count_codes(cells, (seen - 1).astype(np.int32), self._table.low)
            return
        kept_rows = np.minimum(seen, kept)
        parts = np.stack([kept_rows, seen - kept_rows, upper - seen], axis=1)

        def add_rows(rows: slice) -> None:
            np.add.at(self._table.low, cells[rows], parts[rows])

        self._room = add_in_time(self._table, len(cells), add_rows, room=self._room, limit=self._limit)

    def table(self) -> Table:
        """Return the exact sums, normalised."""
        normalise(self._table)
        return without_last_cell(self._table)


_CODED = (measures.CodeColumn, measures.BinColumn)
"""Columns read as codes from 0 on, -1 where a row does not enter."""


def enters(reads: Sequence[measures.ReadColumn], columns: Sequence[Codes]) -> NDArray[np.bool_]:
    """Return which rows enter: those that have a code or a lattice value of every column."""
    enters = np.ones(len(columns[0]), np.bool_)
    for of, column in zip(reads, columns, strict=True):
        enters &= column >= 0 if isinstance(of, _CODED) else column != kernels.NOTHING
    return enters


def rounded_ratio(totals: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return totals over counts, rounded to integers, ties to even; in integers throughout."""
    quotients, rests = np.divmod(totals, counts)
    doubled = 2 * rests
    quotients += (doubled > counts) | ((doubled == counts) & (quotients % 2 == 1))
    return quotients

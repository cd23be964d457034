"""Adding products of what each unit adds to a cell, beside what its rows add."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.rows.chunk import kernels
from suffice.pipeline.rows.chunk.accumulators import (
    CountAccumulator,
    PowerAccumulator,
    add_in_time,
    rows_before_carry,
)
from suffice.pipeline.rows.chunk.exact_sums import LIMB_BITS, LIMB_MASK, Table, normalise
from suffice.pipeline.terms.statistics.measure import CodeCounts
from suffice.pipeline.terms.statistics.unit_measures import N_PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.rows.chunk.unit_accumulators import UnitRows
    from suffice.pipeline.terms.statistics.unit_measures import UnitProducts
    from suffice.typing import Codes


class UnitProductAccumulator:
    """Sums over rows, and of products of what each unit adds to a cell.

    A product is at most 2^62 in magnitude, as `measure.LARGEST_UNIT_SUM` bounds what is multiplied. It is
    added limb by limb, less than 2^48 to the low one.
    """

    def __init__(self, measure: UnitProducts, n_cells: int) -> None:
        of = measure.of
        self._rows = (
            CountAccumulator(of, n_cells) if isinstance(of, CodeCounts) else PowerAccumulator(of, n_cells)
        )
        self._counts_codes = isinstance(of, CodeCounts)
        shape = (n_cells, N_PRODUCTS)
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

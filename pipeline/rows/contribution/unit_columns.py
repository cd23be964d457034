"""Columns of units: each unit's value over all of its rows, as statistics read it, given to every row.

What a unit has is a function of the multiset of its own rows: integers are added, and ends are taken, so
that neither the order of the rows nor where they stood changes a bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from suffice.arrays import masked_array, number_array
from suffice.pipeline.rows.chunk.derived_columns import with_derived_of_units
from suffice.pipeline.rows.chunk.encoding import LARGEST_REST, NO_POSITION, Places, column_reader
from suffice.pipeline.rows.chunk.kernels import NOTHING
from suffice.pipeline.rows.contribution.records import summed_column
from suffice.pipeline.terms.declaration.unit_aggregates import Aggregate, ExtremeOf

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.rows.chunk.partition import ChunkJob
    from suffice.pipeline.rows.contribution.records import RecordLayout, Records
    from suffice.pipeline.terms.declaration.unit_aggregates import UnitAggregate
    from suffice.pipeline.terms.statistics.measure import ReadColumn
    from suffice.typing import Codes

_LAST = 2**63 - 1


class UnitColumns:
    """What statistics read of units; lives for one task.

    Parameters
    ----------
    job : ChunkJob
        What is aggregated, and derived of that.
    layout : RecordLayout
        Where the aggregated columns of rows stand.
    """

    def __init__(self, job: ChunkJob, layout: RecordLayout) -> None:
        self._job = job
        self._layout = layout
        self._aggregates = job.aggregates
        reads = [of for measure in job.measures.values() for of in measure.reads]
        on_units = job.of_units
        self._readers = {
            of: column_reader(of) for of in (*reads, *job.conditions.values()) if of.column in on_units
        }

    def read(self, records: Records, units: NDArray[np.int32], n_units: int) -> dict[ReadColumn, Codes]:
        """Return what statistics read of each row's unit, each of shape (n_rows,), int32.

        Parameters
        ----------
        records : ndarray of uint64, shape (n_rows, n_words)
            All records of the units in it that have a known cell.
        units : ndarray of int32, shape (n_rows,)
            Their units, as numbers below `n_units`, each of which has a record.
        n_units : int
        """
        if not self._readers:
            return {}
        # proof: columns-of-units
        values = {name: self._aggregate(of, records, units, n_units) for name, of in self._aggregates.items()}
        batch = with_derived_of_units(values, self._job)
        return {of: reader.read(batch)[units] for of, reader in self._readers.items()}

    def _aggregate(
        self, of: UnitAggregate, records: Records, units: NDArray[np.int32], n_units: int
    ) -> pa.Array:
        """Return a unit's value for each unit, null where none of its rows has one."""
        if of.per_unit is Aggregate.COUNT:
            return number_array(np.bincount(units, minlength=n_units))
        if of.per_unit is Aggregate.SUM:
            return _sums(of, self._layout.column(records, summed_column(of)), units, n_units)
        places = self._layout.order(records, str(of.column))
        return _ends(of, places, units, n_units)


def _sums(of: UnitAggregate, steps: Codes, units: NDArray[np.int32], n_units: int) -> pa.Array:
    """Return clipped sums of whole steps, as the nearest numbers.

    A row has at most 2^29 steps and a task fewer than 2^31 rows, so that sums are exact in int64.
    """
    _, _, step = of.row_bounds
    has_value = steps != NOTHING
    sums = np.zeros(n_units, np.int64)
    np.add.at(sums, units[has_value], steps[has_value].astype(np.int64))
    if of.total is not None:
        sums = np.clip(sums, int(of.total.lower / step), int(of.total.upper / step))
    absent = np.bincount(units[has_value], minlength=n_units) == 0
    # One rounding, where both products are below 2^53.
    return masked_array(sums.astype(np.float64) * step.numerator / step.denominator, absent)


def _ends(of: UnitAggregate, places: Places, units: NDArray[np.int32], n_units: int) -> pa.Array:
    """Return the smallest or largest values: by floors, then by rests."""
    is_max = of.per_unit is Aggregate.MAX
    # In the reverse order the largest comes first; what has no place comes last in both.
    floors = ~places.floors if is_max else np.where(places.floors == NO_POSITION, _LAST, places.floors)
    rests = LARGEST_REST - places.rests if is_max else places.rests
    first = np.full(n_units, _LAST, np.int64)
    np.minimum.at(first, units, floors)
    at_first = floors == first[units]
    rest = np.full(n_units, LARGEST_REST, np.int32)
    np.minimum.at(rest, units[at_first], rests[at_first])
    absent = first == _LAST
    bits, rest = (~first, LARGEST_REST - rest) if is_max else (first, rest)
    bits = np.where(absent, 0, bits)
    floor = np.where(bits < 0, bits ^ np.int64(_LAST), bits).view(np.float64)
    if of.type is ExtremeOf.NUMBER:
        return masked_array(floor + rest, absent)
    whole = masked_array(floor.astype(np.int64) + rest, absent)
    if of.type is ExtremeOf.DATE:
        return whole.cast(pa.int32()).cast(pa.date32())
    return whole.cast(pa.timestamp("us"))

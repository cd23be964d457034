"""The privacy unit: no unit keeps more than `max_rows` rows, however many it has and wherever they stand.

Which rows a unit keeps depends on its own rows and on the run's secret key alone: neither on where they
stand nor on any other unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.chunk.accumulators import (
    TransitionAccumulator,
    UnitProductAccumulator,
    accumulator,
)
from suffice.pipeline.contribution import siphash
from suffice.pipeline.contribution.records import RecordLayout, by_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.chunk.exact_sums import Sums
    from suffice.pipeline.chunk.partition import ChunkJob
    from suffice.pipeline.contribution.records import Records
    from suffice.pipeline.contribution.unit_key import UnitKey

_BUNDLE_ROWS = 1 << 14
"""Rows whose units are told apart at a time: a table of them fits the second-level cache."""


class UnitSums:
    """Sums of rows that are bounded by unit; lives for one task.

    Parameters
    ----------
    job : ChunkJob
        What to sum, and the bound.
    key : UnitKey
        The run's secret.
    """

    def __init__(self, job: ChunkJob, key: UnitKey) -> None:
        self._job = job
        self._key = key
        self._layout = RecordLayout.of(job)
        self._accumulators = {name: accumulator(of, job.n_cells) for name, of in job.measures.items()}
        self._multiplies = any(isinstance(of, UnitProductAccumulator) for of in self._accumulators.values())

    def add(self, records: Records) -> None:
        """Add rows each of which is a unit of its own."""
        self._add(records, None)

    def _add(self, records: Records, units: NDArray[np.int32] | None) -> None:
        """Add what units keep, (n_rows,) their numbers; without them each row is a unit of its own."""
        cells = self._layout.cells(records)
        for name, measure in self._job.measures.items():
            columns = [self._layout.column(records, of) for of in measure.reads]
            adding = self._accumulators[name]
            if units is not None and isinstance(adding, UnitProductAccumulator):
                adding.add_units(units, cells, columns)
            else:
                adding.add(cells, columns)

    def add_units(self, pieces: Sequence[Records]) -> None:
        """Bound units all of whose rows are here, and add what they keep."""
        if self._job.unit is None:
            message = "a job without a column unit bounds nothing"
            raise ValueError(message)
        for records in by_unit(pieces, self._key, _BUNDLE_ROWS):
            self._add_sequences(records)
            kept = first_rows(records, self._job.unit.max_rows, self._key)
            self._add(kept, number_units(kept, self._key)[0] if self._multiplies else None)

    def _add_sequences(self, records: Records) -> None:
        """Add all rows of some units to the statistics that go along them, and bound them by themselves."""
        following = [each for each in self._accumulators.values() if isinstance(each, TransitionAccumulator)]
        if not following:
            return
        units, _ = number_units(records, self._key)
        cells = self._layout.cells(records)
        for adding in following:
            order = self._layout.order(records, adding.measure.order)
            adding.add_sequences(units, order, cells, self._layout.column(records, adding.measure.of))

    def sums(self) -> Sums:
        """Return the sums."""
        return {name: adding.table() for name, adding in self._accumulators.items()}


def first_rows(records: Records, max_rows: int, key: UnitKey) -> Records:
    """Keep at most `max_rows` records of each unit: those of lowest rank.

    A record's rank is a keyed hash of its unit, of all else that it holds, and of its number among identical
    records; records of equal rank go by their content. So the multiset of records that a unit keeps is a
    function of the multiset of its own records and of the key.

    Parameters
    ----------
    records : ndarray of uint64, shape (n_rows, n_words)
        All records of the units in it.
    max_rows : int
        What a unit may keep.
    key : UnitKey
        The run's secret.
    """
    numbers, counts = number_units(records, key)
    is_crowded = counts > max_rows
    if not is_crowded.any():
        return records
    # proof: bounded-contributions
    crowded = np.flatnonzero(is_crowded[numbers])
    rows, numbers = records.take(crowded, axis=0), numbers[crowded]
    hashes, ranks = np.empty(len(crowded), np.uint64), np.empty(len(crowded), np.uint64)
    siphash.hash_words(rows, *key.ranks, hashes)
    siphash.rank_rows(rows, hashes, *key.ranks, _slots(len(rows)), ranks)
    order = np.argsort(ranks)
    siphash.settle_ties(rows, ranks, order)
    is_kept = np.ones(len(records), np.bool_)
    kept = np.empty(len(crowded), np.bool_)
    siphash.take_first(order, numbers, max_rows, np.zeros(len(counts), np.int32), kept)
    is_kept[crowded] = kept
    return records[is_kept]


def number_units(records: Records, key: UnitKey) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return each row's unit as a number, and the number of rows by unit; both of shape (n_rows,)."""
    numbers, counts = np.empty(len(records), np.int32), np.zeros(len(records), np.int32)
    siphash.number_units(records, *key.positions, _slots(len(records)), numbers, counts)
    return numbers, counts


def _slots(n_rows: int) -> NDArray[np.int32]:
    """Return an empty table that stays half empty when all rows are in it."""
    return np.full(1 << (2 * n_rows).bit_length(), -1, np.int32)

"""A declared clustering: which units have rows in two tasks, told by bitmaps that tasks exchange.

A unit sets one bit among a public number of them. A unit whose bit is set by one task alone has all its rows
there and is bounded there; any other travels. Two units that share a bit travel for nothing, and so do all
where the declaration is wrong: that costs time and changes no result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.derived_columns import with_derived
from suffice.pipeline.rows.chunk.partition import BLOCK_ROWS
from suffice.pipeline.rows.chunk.row_readers import CellReader
from suffice.pipeline.rows.contribution import siphash
from suffice.pipeline.rows.contribution.unit_ids import IS_UNIT, UnitReader
from suffice.pipeline.rows.sources.exact_data import exact_data
from suffice.pipeline.terms.declaration.derived_columns import physical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.rows.chunk.partition import ChunkJob
    from suffice.pipeline.rows.contribution.records import Records, UnitKey
    from suffice.pipeline.rows.sources.contract import Split

_BITS_PER_ROW = 2
_MOST_BITS = 1 << 24


@exact_data(travels=True)
class Seen:
    """Bits that units set.

    Parameters
    ----------
    once, twice : ndarray of uint8, shape (n_bits // 8,)
        Packed: set by a task, and set by more than one.
    """

    once: NDArray[np.uint8]
    twice: NDArray[np.uint8]

    def more_than_once(self, units: Records, key: UnitKey) -> NDArray[np.bool_]:
        """Tell of each row's unit whether more than one task may have seen it, shape (n_rows,)."""
        bits = unit_bits(units, key, 8 * len(self.twice))
        masks = np.left_shift(1, 7 - (bits & 7)).astype(np.uint8)
        is_set: NDArray[np.bool_] = (self.twice[bits >> 3] & masks) != 0
        return is_set


def bit_count(n_rows: int) -> int:
    """Return how many bits stand for units, a power of two."""
    return int(min(_MOST_BITS, 1 << max(10, (_BITS_PER_ROW * n_rows).bit_length())))


def units_seen(partition: Split, job: ChunkJob, key: UnitKey, n_bits: int) -> Seen:
    """Read what chooses cells and units, and set the bits of units with a row in a cell."""
    if job.unit is None:
        message = "a job without a column unit sees none"
        raise ValueError(message)
    columns = tuple(dict.fromkeys([*(column for column, _ in job.cell_columns), job.unit.column]))
    cell_reader, unit_reader = CellReader(job.cell_columns), UnitReader(job.unit.column, key.texts)
    seen = np.zeros(n_bits, np.bool_)
    rows = sources.read(partition, physical(columns, job.derived), BLOCK_ROWS)
    for batch in with_derived(rows, job, columns):
        units, kinds = unit_reader.read(batch)
        enters = (cell_reader.read(batch) >= 0) & (kinds == IS_UNIT)
        seen[unit_bits(units, key, n_bits)[enters]] = True
    once = np.packbits(seen)
    return Seen(once=once, twice=np.zeros_like(once))


def combine_seen(parts: Sequence[Seen]) -> Seen:
    """Add what tasks have seen."""
    once, twice = parts[0].once.copy(), parts[0].twice.copy()
    for part in parts[1:]:
        twice |= part.twice | (once & part.once)
        once |= part.once
    return Seen(once=once, twice=twice)


def unit_bits(units: Records, key: UnitKey, n_bits: int) -> NDArray[np.int32]:
    """Return the bit of each row's unit, shape (n_rows,)."""
    bits = np.zeros(len(units), np.int32)
    siphash.assign_parts(units, *key.positions, 0, n_bits, n_bits, True, bits)  # noqa: FBT003 - a kernel's
    return bits

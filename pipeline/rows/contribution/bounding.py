"""The privacy unit: no unit keeps more than `max_rows` rows, however many it has and wherever they stand.

Nor more than `max_rows_per_cell` in a cell of a statistic, where that is stated.

Which rows a unit keeps depends on its own rows and on the run's secret key alone: neither on where they
stand nor on any other unit. Statistics are of three kinds: of the rows kept; of steps along all rows of a
unit; and of whole units, which get all rows of each and bound by themselves what it adds.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.pipeline.rows.chunk.accumulators import TransitionAccumulator, UnitAccumulator, UnitRows
from suffice.pipeline.rows.chunk.partition import accumulator, where_true
from suffice.pipeline.rows.contribution import siphash
from suffice.pipeline.rows.contribution.records import RecordLayout, by_unit
from suffice.pipeline.rows.contribution.unit_columns import UnitColumns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.rows.chunk.exact_sums import Sums
    from suffice.pipeline.rows.chunk.partition import Accumulator, ChunkJob
    from suffice.pipeline.rows.contribution.records import Records, UnitKey
    from suffice.pipeline.terms.declaration.column_unit import ColumnUnit
    from suffice.pipeline.terms.statistics.measure import ReadColumn
    from suffice.typing import Codes

    OfUnits: TypeAlias = Mapping[ReadColumn, Codes]

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
        self._accumulators = {name: accumulator(of, job.n_cells[name]) for name, of in job.measures.items()}
        self._cells = job.cells
        self._unit_columns = UnitColumns(job, self._layout)

    def add(self, records: Records) -> None:
        """Add rows each of which is a unit of its own."""
        each = np.arange(len(records), dtype=np.int32)
        given = self._unit_columns.read(records, each, len(records))
        for place, of in enumerate(self._cells):
            self._add_rows(records, place, of.statistics, given)

    def add_units(self, pieces: Sequence[Records]) -> None:
        """Bound units all of whose rows are here, and add what they keep."""
        if self._job.unit is None:
            message = "a job without a column unit bounds nothing"
            raise ValueError(message)
        for records in by_unit(pieces, self._key, _BUNDLE_ROWS):
            for place, of in enumerate(self._cells):
                # proof: groups
                cells = self._layout.cells_of(records, place)
                is_in = cells >= 0
                entering = (records, cells) if is_in.all() else (records[is_in], cells[is_in])
                self._add_bounded(*entering, place, of.statistics, self._job.unit)

    def _add_bounded(
        self, records: Records, cells: Codes, place: int, names: Sequence[str], unit: ColumnUnit
    ) -> None:
        """Bound units all of whose rows in these cells are here, and add what they keep."""
        self._add_sequences(records, place, names)
        whole = {name: of for name, of in self._of(names) if isinstance(of, UnitAccumulator)}
        by_row = [name for name in names if name not in whole]
        if not whole:
            self._add_rows(first_rows(records, cells, unit, self._key), place, by_row)
            return
        rows = unit_rows(records, cells, unit, self._key)
        given = self._unit_columns.read(records, rows.units, rows.n_units)
        for name, adding in whole.items():
            columns = self._columns(records, name, given)
            condition = self._condition(records, name, given)
            if condition is None:
                adding.add_units(rows, columns)
                continue
            # proof: conditions
            chosen = np.flatnonzero(condition == 0)
            adding.add_units(rows.chosen(chosen), [column[chosen] for column in columns])
        self._add_rows(records[rows.kept], place, by_row)

    def _of(self, names: Sequence[str]) -> list[tuple[str, Accumulator]]:
        return [(name, self._accumulators[name]) for name in names]

    def _add_rows(
        self, records: Records, place: int, names: Sequence[str], given: OfUnits = MappingProxyType({})
    ) -> None:
        cells = self._layout.cells_of(records, place)
        for name, adding in self._of(names):
            condition = self._condition(records, name, given)
            entering = cells if condition is None else where_true(cells, condition)
            adding.add(entering, self._columns(records, name, given))

    def _condition(self, records: Records, name: str, given: OfUnits = MappingProxyType({})) -> Codes | None:
        """Return 0 where a statistic's condition is true, -1 where it is not; None where it has none."""
        of = self._job.conditions.get(name)
        return None if of is None else self._column(records, of, given)

    def _columns(self, records: Records, name: str, given: OfUnits) -> list[Codes]:
        """Return what a statistic reads of the records, in new arrays; `given` has what is of units."""
        return [self._column(records, of, given) for of in self._job.measures[name].reads]

    def _column(self, records: Records, of: ReadColumn, given: OfUnits) -> Codes:
        return given[of].copy() if of in given else self._layout.column(records, of)

    def _add_sequences(self, records: Records, place: int, names: Sequence[str]) -> None:
        """Add all rows of some units to the statistics that go along them, and bound them by themselves."""
        following = {name: of for name, of in self._of(names) if isinstance(of, TransitionAccumulator)}
        if not following:
            return
        units, _ = number_units(records, self._key)
        cells = self._layout.cells_of(records, place)
        for name, adding in following.items():
            order = self._layout.order(records, adding.measure.order)
            codes, condition = self._layout.column(records, adding.measure.of), self._condition(records, name)
            # What has no code makes no step.
            entering = codes if condition is None else where_true(codes, condition)
            adding.add_sequences(units, order, cells, entering)

    def sums(self) -> Sums:
        """Return the sums."""
        return {name: adding.table() for name, adding in self._accumulators.items()}


def first_rows(records: Records, cells: Codes, unit: ColumnUnit, key: UnitKey) -> Records:
    """Keep at most `max_rows` records of each unit: those of lowest rank.

    Where `max_rows_per_cell` is stated, these are among the first so many by rank in each cell.

    A record's rank is a keyed hash of its unit, of all else that it holds, and of its number among identical
    records; records of equal rank go by their content. So the multiset of records that a unit keeps is a
    function of the multiset of its own records and of the key.

    Parameters
    ----------
    records : ndarray of uint64, shape (n_rows, n_words)
        All records of the units in it.
    cells : ndarray of int32, shape (n_rows,)
        Their cells.
    unit : ColumnUnit
        What a unit may keep.
    key : UnitKey
        The run's secret.
    """
    numbers, counts = number_units(records, key)
    is_crowded = counts > unit.max_rows
    in_cells = None
    if unit.max_rows_per_cell is not None:
        in_cells, counts_in_cells = _number_in_cells(numbers, cells, key)
        is_crowded[numbers[counts_in_cells[in_cells] > unit.max_rows_per_cell]] = True
    if not is_crowded.any():
        return records
    # proof: bounded-contributions
    crowded = np.flatnonzero(is_crowded[numbers])
    order = _by_rank(records.take(crowded, axis=0), key)
    is_kept = np.ones(len(records), np.bool_)
    in_cells = None if in_cells is None else in_cells[crowded]
    is_kept[crowded] = _kept(order, numbers[crowded], in_cells, unit)
    return records[is_kept]


def unit_rows(records: Records, cells: Codes, unit: ColumnUnit, key: UnitKey) -> UnitRows:
    """Rank all rows of units, and tell which of them `first_rows` keeps, whose parameters these are."""
    numbers, counts = number_units(records, key)
    in_cells = None if unit.max_rows_per_cell is None else _number_in_cells(numbers, cells, key)[0]
    is_single = counts[numbers] == 1
    several = np.flatnonzero(~is_single)
    ranked = np.concatenate(
        [np.flatnonzero(is_single), several[_by_rank(records.take(several, axis=0), key)]]
    )
    return UnitRows(
        units=numbers,
        n_units=int(np.count_nonzero(counts)),
        cells=cells,
        ranked=ranked,
        kept=_kept(ranked, numbers, in_cells, unit),
    )


def _kept(
    order: NDArray[np.int64], numbers: NDArray[np.int32], in_cells: NDArray[np.int32] | None, unit: ColumnUnit
) -> NDArray[np.bool_]:
    """Tell which rows their units keep, given all of them by rank: of each cell the first, then of these."""
    if in_cells is not None and unit.max_rows_per_cell is not None:
        # proof: rows-in-cells
        order = order[_take_first(order, in_cells, unit.max_rows_per_cell)[order]]
    return _take_first(order, numbers, unit.max_rows)


def _by_rank(records: Records, key: UnitKey) -> NDArray[np.int64]:
    """Return the positions of records in the order of their ranks."""
    hashes, ranks = np.empty(len(records), np.uint64), np.empty(len(records), np.uint64)
    siphash.hash_words(records, *key.ranks, hashes)
    siphash.rank_rows(records, hashes, *key.ranks, _slots(len(records)), ranks)
    order = np.argsort(ranks)
    siphash.settle_ties(records, ranks, order)
    return order


def _take_first(order: NDArray[np.int64], numbers: NDArray[np.int32], most: int) -> NDArray[np.bool_]:
    """Tell which rows are among the first `most` of their number in `order`; what is not in it is not."""
    kept = np.zeros(len(numbers), np.bool_)
    siphash.take_first(order, numbers, most, np.zeros(numbers.max(initial=-1) + 1, np.int32), kept)
    return kept


def number_units(records: Records, key: UnitKey) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return each row's unit as a number, and the number of rows by unit; both of shape (n_rows,)."""
    numbers, counts = np.empty(len(records), np.int32), np.zeros(len(records), np.int32)
    siphash.number_units(records, *key.positions, _slots(len(records)), numbers, counts)
    return numbers, counts


def _number_in_cells(
    numbers: NDArray[np.int32], cells: Codes, key: UnitKey
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return each row's unit and cell as one number, and the number of rows by these; as `number_units`."""
    return number_units(np.stack([numbers, cells], axis=1).astype(np.uint64), key)


def _slots(n_rows: int) -> NDArray[np.int32]:
    """Return an empty table that stays half empty when all rows are in it."""
    return np.full(1 << (2 * n_rows).bit_length(), -1, np.int32)

r"""One task: a partition of rows in, exact integer sums out.

.. math:: S_{jck} = \sum_{i \in \text{partition}} [\text{cell}(i) = c] \; T_{jk}(x_{ij})

over every statistic j, cell c and sum k. The sums are integers, so neither the order of the rows nor the
way they are partitioned changes a bit of them.

Each measure has an accumulator, of one of three kinds: of rows, each for itself; of steps along all rows of a
unit; of whole units.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk import accumulators, paged_columns
from suffice.pipeline.rows.chunk.derived_columns import with_derived
from suffice.pipeline.rows.chunk.encoding import CellReader, column_reader
from suffice.pipeline.rows.sources.contract import refuse
from suffice.pipeline.spec.plan import measures
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.column_unit import UnitNulls
from suffice.pipeline.terms.declaration.derived_columns import needed, of_units, physical
from suffice.pipeline.terms.declaration.domains import Domain, DomainKind, cell_count
from suffice.pipeline.terms.declaration.time_zones import zone_offsets
from suffice.pipeline.terms.declaration.unit_aggregates import UnitAggregate
from suffice.pipeline.terms.statistics.measure import (
    CodeColumn,
    CodeCounts,
    CountedPowers,
    FirstRow,
    MomentSums,
    PowerSums,
    RowCounts,
    TableCounts,
    TransitionCounts,
    UnitMean,
    UnitProducts,
    orders_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from suffice.pipeline.rows.chunk.exact_sums import Sums, Table
    from suffice.pipeline.rows.chunk.paged_columns import CodedRows, Encode
    from suffice.pipeline.rows.sources.contract import Split
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.column_unit import ColumnUnit
    from suffice.pipeline.terms.declaration.derived_conditions import DerivedColumn
    from suffice.pipeline.terms.declaration.time_zones import ZoneOffsets
    from suffice.pipeline.terms.statistics.measure import Measure
    from suffice.typing import Codes


class Accumulator(Protocol):
    """What a task needs of a measure."""

    def add(self, cells: Codes, columns: Sequence[Codes]) -> None:
        """Add rows: their cells, and the columns that the measure reads, which may be overwritten.

        A measure of units takes each for a unit of its own.
        """

    def table(self) -> Table:
        """Return the exact sums, shape (n_cells, n_sums)."""


_ACCUMULATORS: dict[type[Measure], Callable[[Any, int], Accumulator]] = {
    CodeCounts: accumulators.CountAccumulator,
    TableCounts: accumulators.TableAccumulator,
    TransitionCounts: accumulators.TransitionAccumulator,
    PowerSums: accumulators.PowerAccumulator,
    CountedPowers: accumulators.CountedPowerAccumulator,
    FirstRow: accumulators.FirstRowAccumulator,
    UnitMean: accumulators.UnitMeanAccumulator,
    RowCounts: accumulators.RowCountAccumulator,
    UnitProducts: accumulators.UnitProductAccumulator,
}


def accumulator(measure: Measure, n_cells: int) -> Accumulator:
    """Return an empty accumulator of a measure."""
    if not isinstance(measure, MomentSums):
        return _ACCUMULATORS[type(measure)](measure, n_cells)
    if accumulators.multiplies_matrices(len(measure.of), n_cells, measure.largest_magnitude):
        return accumulators.MatrixAccumulator(measure, n_cells)
    return accumulators.MomentAccumulator(measure, n_cells)


_TRUE = Domain(kind=DomainKind.LIST, keys=("true",))
BLOCK_ROWS = 1 << 17
"""Rows read and summed at a time: their codes fit the second-level cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Cells that statistics share: those with the same groups.

    Parameters
    ----------
    groups : dict of str to Domain
        The columns that choose one, in declared order; the cells are the product of their keys.
    statistics : tuple of str
        Their names.
    """

    groups: dict[str, Domain]
    statistics: tuple[str, ...]

    def __len__(self) -> int:
        """Return how many cells there are."""
        return cell_count(self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkJob:
    """What every task computes; made from the public spec alone.

    Parameters
    ----------
    measures : dict of str to Measure
        What is summed, by statistic.
    groups : dict of str to dict of str to Domain
        By statistic, its group columns, in declared order; its cells are the product of their keys.
    window : (str, Domain) or None
        The window's column, and a domain whose one key is the window: other rows enter nothing.
    unit : ColumnUnit or None
        The column whose values are the privacy units, and their bound; None where a row is the unit.
    is_clustered : bool
        Whether the rows of a unit are declared to stand together; changes no result.
    orders : tuple of str
        Columns by which statistics order the rows of a unit.
    where : str or None
        A column of truth values: rows of which it is not true enter nothing.
    conditions : dict of str to CodeColumn
        By statistic, a column of truth values whose one code is that of true: other rows do not enter it.
    derived : dict of str to DerivedColumn
        Columns that are computed from others of their row.
    zones : dict of str to ZoneOffsets
        The time zones that they need: they travel, so that all tasks read times alike.
    """

    measures: dict[str, Measure]
    groups: dict[str, dict[str, Domain]]
    window: tuple[str, Domain] | None = None
    unit: ColumnUnit | None = None
    is_clustered: bool = False
    orders: tuple[str, ...] = ()
    where: str | None = None
    conditions: dict[str, CodeColumn] = field(default_factory=dict)
    derived: dict[str, DerivedColumn] = field(default_factory=dict)
    zones: dict[str, ZoneOffsets] = field(default_factory=dict)

    @property
    def n_cells(self) -> dict[str, int]:
        """Number of cells, by statistic."""
        return {name: cell_count(groups) for name, groups in self.groups.items()}

    @property
    def cells(self) -> tuple[Cells, ...]:
        """All cells: those of each groups, with the statistics that have them."""
        statistics: dict[tuple[tuple[str, Domain], ...], list[str]] = {}
        for name in self.measures:
            statistics.setdefault(tuple(self.groups[name].items()), []).append(name)
        return tuple(Cells(groups=dict(keys), statistics=tuple(of)) for keys, of in statistics.items())

    @property
    def names(self) -> tuple[str, ...]:
        """The columns summed or chosen by, each once: of the source, or derived."""
        window = (self.window[0],) if self.window else ()
        statistics = (of.column for measure in self.measures.values() for of in measure.reads)
        unit = (self.unit.column,) if self.unit else ()
        conditions = [of.column for of in self.conditions.values()]
        where = (self.where,) if self.where else ()
        keys = (column for cells in self.cells for column in cells.groups)
        names = (*window, *where, *keys, *unit, *self.orders, *statistics, *conditions)
        return tuple(dict.fromkeys(names))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns read from the source, each once."""
        return physical(self.names, self.derived)

    @property
    def of_units(self) -> frozenset[str]:
        """The derived columns of which a unit has one value, over all of its rows."""
        return of_units(self.derived)

    @property
    def aggregates(self) -> dict[str, UnitAggregate]:
        """What is aggregated over the rows of units."""
        columns = needed(self.names, self.derived).items()
        return {name: of for name, of in columns if isinstance(of, UnitAggregate)}

    @property
    def placed(self) -> tuple[str, ...]:
        """Columns whose order matters: by which rows are ordered, or whose ends are taken."""
        ends = (of.column for of in self.aggregates.values() if of.is_extreme and of.column is not None)
        return tuple(dict.fromkeys((*self.orders, *ends)))

    @property
    def keeps_null_units(self) -> bool:
        """Whether rows whose unit is null are units of their own."""
        return self.unit is not None and self.unit.nulls is UnitNulls.OWN_UNIT

    @property
    def entering(self) -> tuple[tuple[str, Domain], ...]:
        """The columns without whose one key a row enters nothing: of the window, and of a condition."""
        # proof: conditions
        where = [(self.where, _TRUE)] if self.where else []
        return (*([self.window] if self.window else []), *where)

    def cell_reader(self) -> CellReader:
        """Return the reader of the cells that :attr:`cells` lists."""
        return CellReader(self.entering, [cells.groups for cells in self.cells])

    @property
    def cell_columns(self) -> tuple[str, ...]:
        """The columns that choose a row's cells, each once."""
        keys = (column for cells in self.cells for column in cells.groups)
        return tuple(dict.fromkeys([*(column for column, _ in self.entering), *keys]))


def chunk_job(spec: Spec, window: str = ALL) -> ChunkJob:
    """Return the job of one release.

    Parameters
    ----------
    spec : Spec
        The spec.
    window : str
        A canonical window label, or ``all`` where the spec has no window.
    """
    selected = None
    # proof: disjoint-windows
    if spec.window is not None:
        period = Domain(
            kind=DomainKind.PERIOD, keys=(window,), every=spec.window.every, time_zone=spec.window.time_zone
        )
        selected = (spec.window.column, period)
    job = ChunkJob(
        measures=measures(spec),
        groups=spec.all_groups,
        window=selected,
        unit=spec.privacy.column_unit,
        is_clustered=spec.is_clustered,
        orders=orders_of(measures(spec).values()),
        where=spec.condition_columns.get("where"),
        conditions={
            name: CodeColumn(column=column, domain=_TRUE, fallback=None)
            for name, column in _statistics_conditions(spec)
        },
        derived=spec.computed,
    )
    zones = {zone for of in needed(job.names, job.derived).values() for zone in of.time_zones}
    return replace(job, zones={zone: zone_offsets(zone) for zone in sorted(zones)})


def _statistics_conditions(spec: Spec) -> list[tuple[str, str]]:
    """Return the statistics that have a condition of their own, and the columns that hold it."""
    columns = spec.condition_columns
    by_name = ((name, columns.get(f"statistics.{name}.where")) for name in spec.statistics)
    return [(name, column) for name, column in by_name if column is not None]


def chunk(partition: Split, job: ChunkJob) -> Sums:
    """Read one partition's columns in blocks, and sum them, each row for itself.

    Memory is bounded by a block and the tables, whatever the number of rows.

    Raises
    ------
    StageFailedError
        Where a file cannot be read, or is not the one that was pinned; the text is fixed.
    ValueError
        Where the job has a column unit: its rows are bounded before they are added.
    """
    if job.unit is not None:
        message = "the rows of a column unit are bounded before they are added"
        raise ValueError(message)
    adding_up = _AddingUp(job)
    is_paged = paged_columns.is_used() and not needed(job.names, job.derived)
    pages = paged_columns.PageReader(adding_up.coders) if is_paged else None
    for batch in with_derived(sources.read(partition, job.columns, BLOCK_ROWS, pages), job):
        adding_up.add(batch)
    return adding_up.sums()


def sum_batches(batches: Iterable[pa.RecordBatch], job: ChunkJob) -> Sums:
    """Sum batches of rows, each with at least the columns that the job reads, of types that serve them."""
    adding_up = _AddingUp(job)
    for batch in with_derived(batches, job):
        adding_up.add(batch)
    return adding_up.sums()


class _AddingUp:
    """The sums of rows that are added; lives for one task."""

    __reduce_ex__ = refuse

    def __init__(self, job: ChunkJob) -> None:
        self._cells, self._cell_reader = job.cells, job.cell_reader()
        self._readers = {
            name: [column_reader(of) for of in measure.reads] for name, measure in job.measures.items()
        }
        self._conditions = {name: column_reader(of) for name, of in job.conditions.items()}
        self._sums = {name: accumulator(measure, job.n_cells[name]) for name, measure in job.measures.items()}

    @property
    def coders(self) -> list[tuple[str, Encode]]:
        """The columns that are read, and what gives their values codes."""
        readers = chain(*self._readers.values(), self._conditions.values())
        return [*self._cell_reader.coders, *((reader.column, reader.codes) for reader in readers)]

    def add(self, rows: pa.RecordBatch | CodedRows) -> None:
        """Add rows."""
        for of, cells in zip(self._cells, self._cell_reader.read(rows), strict=True):
            for name in of.statistics:
                condition = self._conditions.get(name)
                entering = cells if condition is None else where_true(cells, condition.read(rows))
                self._sums[name].add(entering, [reader.read(rows) for reader in self._readers[name]])

    def sums(self) -> Sums:
        """Return the exact sums."""
        return {name: adding.table() for name, adding in self._sums.items()}


def where_true(cells: Codes, condition: Codes) -> Codes:
    """Return the cells of rows of which a condition is true; -1 for others, which enter nothing."""
    # proof: conditions
    return np.where(condition == 0, cells, np.int32(-1))

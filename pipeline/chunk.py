r"""One task: a partition of rows in, exact integer sums out.

.. math:: S_{jck} = \sum_{i \in \text{partition}} [\text{cell}(i) = c] \; T_{jk}(x_{ij})

over every statistic j, cell c and sum k. The sums are integers, so neither the order of the rows nor the
way they are partitioned changes a bit of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline import kernels
from suffice.pipeline.columns import as_float64, validity
from suffice.pipeline.domains import Domain, DomainKind
from suffice.pipeline.encoding import Encoder
from suffice.pipeline.exact import LIMB_BITS, Table, cell_count, normalise, zeros
from suffice.pipeline.plan import measures
from suffice.pipeline.sources.parquet import read_batches
from suffice.pipeline.spec import ALL
from suffice.pipeline.sums import CodeCounts

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    from numpy.typing import NDArray

    from suffice.pipeline.exact import Sums
    from suffice.pipeline.sources.parquet import Partition
    from suffice.pipeline.spec import Spec
    from suffice.pipeline.sums import Measure, PowerSums
    from suffice.pipeline.transforms import Transform

BLOCK_ROWS = 1 << 17
"""Rows read and summed at a time: their codes fit the second-level cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkJob:
    """What every task computes; made from the public spec alone.

    Parameters
    ----------
    measures : dict of str to Measure
        What is summed, by statistic.
    groups : dict of str to Domain
        The group columns, in declared order; the cells are the product of their keys.
    window : (str, Domain) or None
        The window's column, and a domain whose one key is the window: other rows enter nothing.
    """

    measures: dict[str, Measure]
    groups: dict[str, Domain]
    window: tuple[str, Domain] | None = None

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return cell_count(self.groups.values())

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns read, each once."""
        window = (self.window[0],) if self.window else ()
        statistics = (measure.column for measure in self.measures.values())
        return tuple(dict.fromkeys((*window, *self.groups, *statistics)))


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
        period = Domain(kind=DomainKind.PERIOD, keys=(window,), every=spec.window.every)
        selected = (spec.window.column, period)
    return ChunkJob(measures=measures(spec), groups=dict(spec.groups), window=selected)


def chunk(partition: Partition, job: ChunkJob) -> Sums:
    """Read one partition's columns in blocks, and sum them.

    Memory is bounded by a block and the tables, whatever the number of rows.

    Raises
    ------
    StageFailedError
        Where a file cannot be read, or is not the one that was pinned; the text is fixed.
    """
    return sum_batches(read_batches(partition, job.columns, BLOCK_ROWS), job)


def sum_batches(batches: Iterable[pa.RecordBatch], job: ChunkJob) -> Sums:
    """Sum batches of rows, each with at least the job's columns, of types that serve them."""
    sums = zeros(job.measures, job.n_cells + 1)  # the last cell takes what belongs to none
    window = [job.window] if job.window else []
    cells = [(column, len(domain), Encoder(domain)) for column, domain in (*window, *job.groups.items())]
    codes = {
        name: Encoder(measure.domain, -1 if measure.fallback is None else measure.fallback)
        for name, measure in job.measures.items()
        if isinstance(measure, CodeCounts)
    }
    room = {name: 0 for name in job.measures if name not in codes}
    for batch in batches:
        block_cells = np.zeros(batch.num_rows, np.int32)
        for column, size, encoder in cells:
            kernels.combine_codes(block_cells, encoder.codes(batch.column(column)), size)
        for name, measure in job.measures.items():
            values = batch.column(measure.column)
            if isinstance(measure, CodeCounts):
                kernels.count_codes(block_cells, codes[name].codes(values), sums[name].low)
            else:
                lattice = _lattice(values, measure)
                limit = rows_before_carry(measure.quantiser.largest_magnitude, measure.degree)
                room[name] = add_powers(sums[name], block_cells, lattice, room=room[name], limit=limit)
    for table in sums.values():
        normalise(table)
    return {
        name: Table(low=table.low[:-1], high=None if table.high is None else table.high[:-1])
        for name, table in sums.items()
    }


def rows_before_carry(largest: int, degree: int) -> int:
    r"""Return how many rows may be added to normalised low limbs before any could leave int64.

    .. math:: \lfloor (2^{63} - 1 - 2^{48}) / \max(1, M^{d}) \rfloor

    where M is the largest magnitude of a lattice value and d the degree.
    """
    return ((1 << 63) - 1 - (1 << LIMB_BITS)) // max(1, int(largest**degree))


def add_powers(
    table: Table, cells: NDArray[np.int32], lattice: NDArray[np.int32], *, room: int, limit: int
) -> int:
    """Add a block's powers to low limbs, carrying in time.

    Parameters
    ----------
    table : Table
        The sums; changed in place.
    cells, lattice : ndarray of int32, shape (n_rows,)
        Each row's cell, and its lattice value or `NOTHING`.
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


def _lattice(column: pa.Array, measure: PowerSums) -> NDArray[np.int32]:
    """Return the lattice value of every row; `NOTHING` where it does not enter."""
    missing = kernels.NOTHING if measure.fallback is None else measure.fallback
    quantiser = measure.quantiser
    numbers = as_float64(column)
    if numbers is None:
        return np.full(len(column), missing, np.int32)
    values, source = _transformed(numbers[0], measure.transform), numbers[1]
    lattice = np.empty(len(values), np.int32)
    kernels.quantise(
        values,
        quantiser.centre,
        quantiser.half_range,
        quantiser.steps,
        quantiser.lowest,
        quantiser.highest,
        missing,
        lattice,
    )
    if source.null_count:
        kernels.fill_nulls(lattice, *validity(source), missing)
    return lattice


def _transformed(values: NDArray[np.float64], transform: Transform | None) -> NDArray[np.float64]:
    if transform is None:
        return values
    out = np.empty(len(values), np.float64)
    kernels.transform(values, transform.shape, transform.centre, transform.unit, transform.exponent, out)
    return out

"""The accumulator of a measure: what a task needs of it, and which one it is.

There are three kinds: of rows, each for itself; of steps along all rows of a unit; of whole units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from suffice.pipeline.rows.chunk.accumulators import (
    CountAccumulator,
    CountedPowerAccumulator,
    MatrixAccumulator,
    MomentAccumulator,
    PowerAccumulator,
    TableAccumulator,
    TransitionAccumulator,
    multiplies_matrices,
)
from suffice.pipeline.rows.chunk.unit_accumulators import (
    FirstRowAccumulator,
    RowCountAccumulator,
    UnitMeanAccumulator,
    UnitProductAccumulator,
)
from suffice.pipeline.terms.statistics.measure import (
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
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.rows.chunk.exact_sums import Table
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
    CodeCounts: CountAccumulator,
    TableCounts: TableAccumulator,
    TransitionCounts: TransitionAccumulator,
    PowerSums: PowerAccumulator,
    CountedPowers: CountedPowerAccumulator,
    FirstRow: FirstRowAccumulator,
    UnitMean: UnitMeanAccumulator,
    RowCounts: RowCountAccumulator,
    UnitProducts: UnitProductAccumulator,
}


def accumulator(measure: Measure, n_cells: int) -> Accumulator:
    """Return an empty accumulator of a measure."""
    if not isinstance(measure, MomentSums):
        return _ACCUMULATORS[type(measure)](measure, n_cells)
    if multiplies_matrices(len(measure.of), n_cells, measure.largest_magnitude):
        return MatrixAccumulator(measure, n_cells)
    return MomentAccumulator(measure, n_cells)

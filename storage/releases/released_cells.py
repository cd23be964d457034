"""One statistic of a release, read a slice of cells at a time: memory does not grow with their number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
from suffice.pipeline.terms.statistics.sensitivity import Design
from suffice.pipeline.terms.statistics.statistic_plan import INT64
from suffice.storage.releases.parquet_layout import row_groups
from suffice.storage.releases.release_decoder import decode_row_group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.storage.releases.manifest_model import Manifest
    from suffice.storage.releases.parquet_layout import Content, Span
    from suffice.storage.releases.selection import Selection
    from suffice.typing import Cells


class ReleasedCells:
    """Selected cells of one statistic in a file whose SHA-256 was checked; made by ``StatisticFiles.cells``.

    Every byte of a row group is checked against the plan when it is decoded, as in
    :func:`decode_statistic`. The row group read last is kept: slices are asked for in order.

    Parameters
    ----------
    content : Content
    manifest : Manifest
    index : int
        The statistic's position in the plan.
    selection : Selection
    """

    def __init__(self, content: Content, manifest: Manifest, index: int, selection: Selection) -> None:
        self.plan: StatisticPlan = manifest.plan.statistics[index]
        self.selection = selection
        self._content, self._manifest = content, manifest
        self._row_groups = [*row_groups(content, self.plan, manifest.plan.groups)]
        self._ends = np.cumsum([_n_rows(spans["value"], self.plan) for spans in self._row_groups])
        self._decoded: tuple[int, NDArray[Any]] = (-1, np.empty(0))

    @property
    def n_first_keys(self) -> int:
        """How many keys of the first group column there are; 1 without groups."""
        return next(iter(self.selection.lengths.values()), 1)

    def __len__(self) -> int:
        """Return how many cells there are."""
        return len(self.selection)

    def slice(self, start: int, stop: int) -> NoisyStatistic:
        """Return consecutive cells of the selection.

        Raises
        ------
        ReleaseCorruptError
            Where the file is not what its plan says.
        """
        return NoisyStatistic(
            plan=self.plan,
            values=self._values(self.selection.cells(start, stop)),
            groups=self.selection.keys(start, stop),
            public_n=self._manifest.n if self.plan.design is Design.MINIMAL else None,
            max_total_rows=self._manifest.plan.max_total_rows,
        )

    def _values(self, cells: Cells) -> NDArray[np.object_]:
        """Return the values of some cells, whose numbers ascend: shape (n_cells, n_components)."""
        n_components = len(self.plan.components)
        rows = (cells[:, None] * n_components + np.arange(n_components)).ravel()
        values = np.empty(len(rows), dtype=object)
        of_group = np.searchsorted(self._ends, rows, side="right")
        for number in np.unique(of_group).tolist():
            here = of_group == number
            start = self._start(number)
            values[here] = self._row_group(number)[rows[here] - start].tolist()
        return values.reshape(len(cells), n_components)

    def _row_group(self, number: int) -> NDArray[Any]:
        if self._decoded[0] != number:
            groups, spans = self._manifest.plan.groups, self._row_groups[number]
            stored = decode_row_group(self._content, spans, self.plan, groups, self._start(number))
            self._decoded = (number, stored)
        return self._decoded[1]

    def _start(self, number: int) -> int:
        return int(self._ends[number - 1]) if number else 0


def _n_rows(spans: Sequence[Span], statistic: StatisticPlan) -> int:
    """Return how many values stand in the pages of the column of values."""
    return sum(end - start for start, end in spans) // (8 if statistic.value_type == INT64 else 16)

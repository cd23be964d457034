"""One statistic of a release, read a slice of cells at a time: memory does not grow with their number."""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from suffice.errors import ReleaseCorruptError, StoreError
from suffice.pipeline.released.noisy_statistic import NoisyStatistic
from suffice.pipeline.statistics.sensitivity import Design
from suffice.pipeline.statistics.statistic_plan import INT64
from suffice.storage.releases.parquet_layout import row_groups
from suffice.storage.releases.release_decoder import decode_row_group

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.declaration.domains import Domain
    from suffice.pipeline.statistics.statistic_plan import StatisticPlan
    from suffice.storage.releases.location import Location
    from suffice.storage.releases.manifest_model import Manifest
    from suffice.storage.releases.parquet_layout import Span
    from suffice.typing import Cells


@dataclass(frozen=True, slots=True)
class FileContent:
    """The bytes of an open file, read from it when they are asked for."""

    file: IO[bytes]
    size: int

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, span: slice, /) -> bytes:
        start, stop, _ = span.indices(self.size)
        return os.pread(self.file.fileno(), max(0, stop - start), start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The cells of a release that have some keys, numbered from 0 in the order of the release.

    Attributes
    ----------
    groups : mapping of str to Domain
        Of the release, in declared order; its cells are their product, the last column running fastest.
    fixed : mapping of str to int
        Group column -> position of the one key that is kept.
    """

    groups: Mapping[str, Domain]
    fixed: Mapping[str, int] = field(default_factory=dict)

    @property
    def lengths(self) -> dict[str, int]:
        """How many keys every column keeps."""
        return {name: 1 if name in self.fixed else len(domain) for name, domain in self.groups.items()}

    def __len__(self) -> int:
        return math.prod(self.lengths.values())

    def positions(self, start: int, stop: int) -> dict[str, NDArray[np.int64]]:
        """Return the positions of the keys of consecutive cells of the selection, by group column."""
        chosen, inner, found = np.arange(start, stop), len(self), {}
        for name, length in self.lengths.items():
            inner //= length
            found[name] = chosen // inner % length + self.fixed.get(name, 0)
        return found

    def keys(self, start: int, stop: int) -> dict[str, list[str | int]]:
        """Return the keys of consecutive cells of the selection, by group column."""
        return {
            name: [self.groups[name][position] for position in positions.tolist()]
            for name, positions in self.positions(start, stop).items()
        }

    def cells(self, start: int, stop: int) -> Cells:
        """Return the numbers that consecutive cells of the selection have in the release, ascending."""
        numbers = np.zeros(stop - start, np.int64)
        for name, positions in self.positions(start, stop).items():
            numbers = numbers * len(self.groups[name]) + positions
        return numbers


class ReleasedCells:
    """Selected cells of one statistic in a file whose SHA-256 was checked; made by :func:`open_cells`.

    Every byte of a row group is checked against the plan when it is decoded, as :func:`decode_statistic` does.
    The row group read last is kept: slices are asked for in order.

    Parameters
    ----------
    content : FileContent
    manifest : Manifest
    index : int
        The statistic's position in the plan.
    selection : Selection
    """

    def __init__(self, content: FileContent, manifest: Manifest, index: int, selection: Selection) -> None:
        self.plan: StatisticPlan = manifest.plan.statistics[index]
        self.selection = selection
        self._content, self._manifest = content, manifest
        self._row_groups = [*row_groups(content, self.plan, manifest.plan.groups)]
        self._ends = np.cumsum([_n_rows(spans["value"], self.plan) for spans in self._row_groups])
        self._decoded: tuple[int, NDArray[Any]] = (-1, np.empty(0))

    def __len__(self) -> int:
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


@contextmanager
def open_cells(
    location: Location, manifest: Manifest, index: int, selection: Selection
) -> Iterator[ReleasedCells]:
    """Copy one statistic's file to where nobody else writes, check its SHA-256, and read it in slices.

    The copy is a file without a name in the directory for temporary files, and goes with the context: what
    is checked is what is read, whoever changes the store meanwhile.

    Parameters
    ----------
    location, manifest
        Of the release.
    index : int
        The statistic's position in the plan.
    selection : Selection
        The cells that are wanted.

    Raises
    ------
    ReleaseCorruptError
        Where the file is not the one that the manifest states.
    StoreError
        Where it cannot be read, or copied.
    """
    entry = manifest.files[index]
    try:
        copied = tempfile.TemporaryFile(prefix="suffice-")  # noqa: SIM115 - closed below
    except OSError:
        raise StoreError(_NO_ROOM) from None
    with copied as file:
        found = location.objects.copy(entry.path, file, at_most=entry.size + 1)
        size = file.tell()
        if not found:
            rule = "is missing"
        elif size != entry.size:
            rule = f"does not have the {entry.size} bytes that the manifest states"
        else:
            file.flush()
            file.seek(0)
            rule = "does not have the SHA-256 that the manifest states"
            if hashlib.file_digest(file, "sha256").hexdigest() == entry.sha256:
                yield ReleasedCells(FileContent(file, size), manifest, index, selection)
                return
        message = f"the release at {location.uri} is corrupt: {entry.path} {rule}"
        raise ReleaseCorruptError(message)


_NO_ROOM = "the directory for temporary files cannot be written: set TMPDIR to one that can"


def _n_rows(spans: Sequence[Span], statistic: StatisticPlan) -> int:
    """Return how many values stand in the pages of the column of values."""
    return sum(end - start for start, end in spans) // (8 if statistic.value_type == INT64 else 16)

"""A location where a release should be, and its bytes, checked before they are parsed.

Statistics are held in memory, or, of very many cells, in files that are read when asked for: a slice of
cells at a time, of which those with wanted keys are worked out as numbers. Memory does not grow with their
number.
"""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from suffice.errors import AdoptedReleaseError, ReleaseCorruptError, ReleaseMissingError, StoreError
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic, no_such_key, wanted_keys
from suffice.pipeline.terms.released.sample import ReleasedSample, released_sample
from suffice.pipeline.terms.statistics.sensitivity import Design
from suffice.pipeline.terms.statistics.statistic_plan import INT64
from suffice.storage.objects.address import read_address
from suffice.storage.releases.about_file import beside, read_wording
from suffice.storage.releases.manifest import is_rehearsal, is_tombstone
from suffice.storage.releases.manifest_reader import LARGEST_MANIFEST, parse_manifest
from suffice.storage.releases.parquet_layout import row_groups
from suffice.storage.releases.statistic_reading import (
    check_statistic,
    decode_row_group,
    decode_statistic,
    expand_groups,
)
from suffice.storage.releases.withdrawal import LARGEST_WITHDRAWAL, WITHDRAWN, parse_withdrawal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.released.withdrawal import Withdrawal
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.storage.objects.object_store import ObjectStore
    from suffice.storage.releases.about_file import Wording
    from suffice.storage.releases.manifest_model import Manifest
    from suffice.storage.releases.parquet_layout import Content, Span
    from suffice.storage.releases.release_store import ReleaseStore
    from suffice.storage.signatures.signing import PublicKey
    from suffice.typing import Cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The cells of a statistic that have some keys, numbered from 0 in the order of its file.

    Attributes
    ----------
    groups : mapping of str to Domain
        Of the statistic, in declared order; its cells are their product, the last column running fastest.
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
        """Return how many cells there are."""
        return math.prod(self.lengths.values())

    def positions(self, start: int, stop: int) -> dict[str, NDArray[np.int64]]:
        """Return the positions of the keys of consecutive cells of the selection, by group column."""
        chosen, inner, positions = np.arange(start, stop), len(self), {}
        for name, length in self.lengths.items():
            inner //= length
            positions[name] = chosen // inner % length + self.fixed.get(name, 0)
        return positions

    def keys(self, start: int, stop: int) -> dict[str, list[str | int]]:
        """Return the keys of consecutive cells of the selection, by group column."""
        return {
            name: [self.groups[name].keys[position] for position in positions.tolist()]
            for name, positions in self.positions(start, stop).items()
        }

    def cells(self, start: int, stop: int) -> Cells:
        """Return the numbers that consecutive cells of the selection have in the release, ascending."""
        numbers = np.zeros(stop - start, np.int64)
        for name, positions in self.positions(start, stop).items():
            numbers = numbers * len(self.groups[name]) + positions
        return numbers


def select(groups: Mapping[str, Domain], where: Mapping[str, object] | None) -> Selection:
    """Return the cells whose keys equal the given ones as text, as :meth:`NoisyStatistic.where` keeps them.

    Raises
    ------
    UsageError
        As there.
    """
    fixed = {}
    for column, wanted in wanted_keys(where or {}, groups).items():
        keys = groups[column]
        wanted_position = next((position for position, key in enumerate(keys) if str(key) == wanted), None)
        if wanted_position is None:
            raise no_such_key(column, wanted, keys)
        fixed[column] = wanted_position
    return Selection(groups=groups, fixed=fixed)


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
        self._row_groups = [*row_groups(content, self.plan)]
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
            spans = self._row_groups[number]
            stored = decode_row_group(self._content, spans, self.plan, self._start(number))
            self._decoded = (number, stored)
        return self._decoded[1]

    def _start(self, number: int) -> int:
        return int(self._ends[number - 1]) if number else 0


def _n_rows(spans: Sequence[Span], statistic: StatisticPlan) -> int:
    """Return how many values stand in the pages of the column of values."""
    return sum(end - start for start, end in spans) // (8 if statistic.value_type == INT64 else 16)


MOST_HELD = 2**20
"""Values of all statistics together that are held in memory when a release is opened: about 100 MB."""
_NO_ROOM = "the directory for temporary files cannot be written: set TMPDIR to one that can"


class StatisticFiles(Mapping[str, NoisyStatistic]):
    """Statistics in copies of their files, which nobody else can write: what was checked is what is read.

    The copies have no names, stand in the directory for temporary files, and go with this object. A statistic
    that is asked for as a whole stays in memory from then on.

    Parameters
    ----------
    objects : ObjectStore
        The release's own directory.
    uri : str
        For messages.
    manifest : Manifest

    Raises
    ------
    ReleaseCorruptError
        Where a file is not the one that the manifest states, or not what its plan says.
    StoreError
        Where it cannot be read, or copied.
    """

    def __init__(self, objects: ObjectStore, uri: str, manifest: Manifest) -> None:
        self._manifest = manifest
        self._index = {
            plan.name: index for index, plan in enumerate(manifest.plan.statistics) if plan.sample is None
        }
        self._whole: dict[str, NoisyStatistic] = {}
        self._content: list[FileContent] = []
        for index, plan in enumerate(manifest.plan.statistics):
            file = _checked_copy(objects, uri, manifest, index)
            weakref.finalize(self, file.close)
            content = FileContent(file, manifest.files[index].size)
            check_statistic(content, plan)
            self._content.append(content)
        self.sampled = SampleFiles(self._content, manifest)

    def __getitem__(self, name: str) -> NoisyStatistic:
        """Return a statistic whole."""
        if name not in self._whole:
            whole = self.cells(name, None)
            self._whole[name] = whole.slice(0, len(whole))
        return self._whole[name]

    def __contains__(self, name: object) -> bool:
        """Tell whether there is such a statistic, without reading it."""
        return name in self._index

    def __iter__(self) -> Iterator[str]:
        """Give the names, in declared order."""
        return iter(self._index)

    def __len__(self) -> int:
        """Return how many statistics there are."""
        return len(self._index)

    def cells(self, statistic: str, where: Mapping[str, object] | None) -> ReleasedCells:
        """Return the cells of a statistic with some keys, read some at a time.

        Raises
        ------
        UsageError
            As :meth:`NoisyStatistic.where`.
        """
        index = self._index[statistic]
        selection = select(self._manifest.plan.statistics[index].groups, where)
        return ReleasedCells(self._content[index], self._manifest, index, selection)


class SampleFiles(Mapping[str, ReleasedSample]):
    """Samples in the same copies: one that is asked for is read whole.

    Parameters
    ----------
    content : list of FileContent
        Checked, in the plan's order of statistics.
    manifest : Manifest
    """

    def __init__(self, content: list[FileContent], manifest: Manifest) -> None:
        self._manifest, self._content = manifest, content
        self._index = {
            plan.name: index for index, plan in enumerate(manifest.plan.statistics) if plan.sample is not None
        }

    def __getitem__(self, name: str) -> ReleasedSample:
        """Return a sample."""
        index = self._index[name]
        plan = self._manifest.plan.statistics[index]
        indices = decode_statistic(self._content[index][:], plan)
        return released_sample(plan, indices.astype(np.int64), expand_groups(plan.groups))

    def __contains__(self, name: object) -> bool:
        """Tell whether there is such a sample, without reading it."""
        return name in self._index

    def __iter__(self) -> Iterator[str]:
        """Give the names, in declared order."""
        return iter(self._index)

    def __len__(self) -> int:
        """Return how many samples there are."""
        return len(self._index)


@dataclass(frozen=True, slots=True)
class FileContent:
    """The bytes of an open file, read from it when they are asked for."""

    file: IO[bytes]
    size: int

    def __len__(self) -> int:
        """Return how many there are."""
        return self.size

    def __getitem__(self, span: slice, /) -> bytes:
        """Return some of them."""
        start, stop, _ = span.indices(self.size)
        return os.pread(self.file.fileno(), max(0, stop - start), start)


def _checked_copy(objects: ObjectStore, uri: str, manifest: Manifest, index: int) -> IO[bytes]:
    """Copy one statistic's file to where nobody else writes, and check its size and SHA-256."""
    entry = manifest.files[index]
    try:
        file = tempfile.TemporaryFile(prefix="suffice-")  # noqa: SIM115 - who gets it closes it
    except OSError:
        raise StoreError(_NO_ROOM) from None
    rule = ""
    try:
        copied = objects.copy(entry.path, file, at_most=entry.size + 1)
        size = file.tell()
        file.seek(0)
        if not copied:
            rule = "is missing"
        elif size != entry.size:
            rule = f"does not have the {entry.size} bytes that the manifest states"
        elif hashlib.file_digest(file, "sha256").hexdigest() != entry.sha256:
            rule = "does not have the SHA-256 that the manifest states"
        else:
            return file
    except BaseException:
        file.close()
        raise
    file.close()
    message = f"the release at {uri} is corrupt: {entry.path} {rule}"
    raise ReleaseCorruptError(message)


MANIFEST = "manifest.json"
ADOPTED = b'{"adopted":true,'
"""How the manifest of a release of other people's data begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place where a release should stand.

    Attributes
    ----------
    objects : ObjectStore
        The release's own directory.
    uri : str
    key : tuple of str or None
        Name, edition and release id by its place in a store; None for a copy outside of one.
    store : ReleaseStore or None
        The store that it stands in.
    """

    objects: ObjectStore
    uri: str
    key: tuple[str, str, str] | None
    store: ReleaseStore | None

    @property
    def is_listed(self) -> bool:
        """Whether it can be asked what else stands there: not of a website."""
        return read_address(self.uri).is_listed

    def manifest(self) -> tuple[bytes, Manifest]:
        """Return the manifest, as bytes and checked.

        Raises
        ------
        ReleaseMissingError, ReleaseCorruptError
        AdoptedReleaseError
            Where it is of other people's data.
        """
        data = self.objects.get(MANIFEST, at_most=LARGEST_MANIFEST + 1)
        if data is None:
            message = f"there is no release at {self.uri}: it has no manifest, so nothing was published"
            if not self.is_listed:
                message += "; a release's URL is that of its folder, as https://HOST/.../NAME/WINDOW/ID"
            raise ReleaseMissingError(message)
        if is_tombstone(data):
            message = f"there is no release at {self.uri}: its charge was abandoned before publication"
            raise ReleaseMissingError(message)
        if is_rehearsal(data):
            message = f"there is no release at {self.uri}: it is a rehearsal's, of generated rows"
            raise ReleaseMissingError(message)
        if data.startswith(ADOPTED):
            named = f"the release at {self.uri}"
            raise AdoptedReleaseError(named)
        manifest = parse_manifest(data)
        stated = (manifest.name, manifest.edition, manifest.release_id)
        if self.key is not None and self.key != stated:
            message = f"the manifest at {self.uri} belongs to another release: {'/'.join(stated)}"
            raise ReleaseCorruptError(message)
        return data, manifest

    def withdrawal(
        self, data: bytes, manifest: Manifest, keys: Sequence[PublicKey] | None
    ) -> Withdrawal | None:
        """Return the withdrawal that stands beside a manifest; None where there is none.

        Raises
        ------
        ReleaseCorruptError
            Where something else stands there.
        """
        withdrawal = self.objects.get(WITHDRAWN, at_most=LARGEST_WITHDRAWAL + 1)
        return None if withdrawal is None else parse_withdrawal(withdrawal, data, manifest.release_id, keys)

    def wording(self, data: bytes, manifest: Manifest, keys: Sequence[PublicKey] | None) -> Wording:
        """Return the newest words that stand beside a manifest, if any do.

        Raises
        ------
        ReleaseCorruptError, SignatureError
            As :func:`read_wording`.
        """
        return read_wording(beside(self.objects), data, manifest, keys)

    def statistics(
        self, manifest: Manifest
    ) -> tuple[Mapping[str, NoisyStatistic], Mapping[str, ReleasedSample]]:
        """Return statistics and samples by name, every byte of their files checked.

        Of very many cells they are in files.

        Raises
        ------
        ReleaseCorruptError
        StoreError
            Where a file cannot be read, or copied.
        """
        if sum(file.rows for file in manifest.files) > MOST_HELD:
            files = StatisticFiles(self.objects, self.uri, manifest)
            return files, files.sampled
        values = [self.values(manifest, index) for index in range(len(manifest.files))]
        keys = expand_groups(manifest.plan.groups)

        def keys_of(plan: StatisticPlan) -> dict[str, list[str | int]]:
            return expand_groups(plan.groups) if plan.states_groups else keys

        read = [*zip(manifest.plan.statistics, values, strict=True)]
        noisy = {
            plan.name: NoisyStatistic(
                plan=plan,
                values=stored,
                groups=keys_of(plan),
                public_n=manifest.n if plan.design is Design.MINIMAL else None,
                max_total_rows=manifest.plan.max_total_rows,
            )
            for plan, stored in read
            if plan.sample is None
        }
        sampled = {
            plan.name: released_sample(plan, stored.astype(np.int64), keys_of(plan))
            for plan, stored in read
            if plan.sample is not None
        }
        return noisy, sampled

    def values(self, manifest: Manifest, index: int) -> NDArray[np.object_]:
        """Return one statistic's values, shape (n_cells, n_values), its file checked before it is parsed.

        Raises
        ------
        ReleaseCorruptError
        """
        file = manifest.files[index]
        data = self.objects.get(file.path, at_most=file.size + 1)
        if data is None:
            rule = "is missing"
        elif len(data) != file.size:
            rule = f"does not have the {file.size} bytes that the manifest states"
        elif hashlib.sha256(data).hexdigest() != file.sha256:
            rule = "does not have the SHA-256 that the manifest states"
        else:
            return decode_statistic(data, manifest.plan.statistics[index])
        message = f"the release at {self.uri} is corrupt: {file.path} {rule}"
        raise ReleaseCorruptError(message)


def is_path(reference: str) -> bool:
    """Tell whether a reference to a release is a path or URI, and no name in a store."""
    return "/" in reference or reference in {".", "..", MANIFEST}

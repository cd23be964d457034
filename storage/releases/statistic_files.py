"""The statistics of a release: in memory, or of very many cells in files that are read when asked for."""

from __future__ import annotations

import hashlib
import os
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import numpy as np

from suffice.errors import ReleaseCorruptError, StoreError
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
from suffice.pipeline.terms.released.sample import ReleasedSample
from suffice.storage.releases.release_decoder import check_statistic, decode_statistic
from suffice.storage.releases.release_parquet import expand_groups
from suffice.storage.releases.released_cells import ReleasedCells
from suffice.storage.releases.selection import select

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.storage.objects.object_store import ObjectStore
    from suffice.storage.releases.manifest_model import Manifest

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
            check_statistic(content, plan, manifest.plan.groups)
            self._content.append(content)
        self.sampled = SampleFiles(self._content, manifest)

    def __getitem__(self, name: str) -> NoisyStatistic:
        """Return a statistic whole."""
        if name not in self._whole:
            found = self.cells(name, None)
            self._whole[name] = found.slice(0, len(found))
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
        selection = select(self._manifest.plan.groups, where)
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
        index, plan = self._index[name], self._manifest.plan
        data = self._content[index][:]
        indices = decode_statistic(data, plan.statistics[index], plan.groups)
        return ReleasedSample(
            plan=plan.statistics[index], indices=indices.astype(np.int64), groups=expand_groups(plan.groups)
        )

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
        found = objects.copy(entry.path, file, at_most=entry.size + 1)
        size = file.tell()
        file.seek(0)
        if not found:
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

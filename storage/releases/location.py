"""A location where a release should be, and its bytes, checked before they are parsed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import ReleaseCorruptError, ReleaseMissingError
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
from suffice.pipeline.terms.released.sample import ReleasedSample
from suffice.pipeline.terms.statistics.sensitivity import Design
from suffice.storage.releases.manifest import is_rehearsal, is_tombstone
from suffice.storage.releases.manifest_reader import LARGEST_MANIFEST, parse_manifest
from suffice.storage.releases.release_parquet import decode_statistic, expand_groups
from suffice.storage.releases.statistic_files import MOST_HELD, StatisticFiles
from suffice.storage.releases.withdrawal import LARGEST_WITHDRAWAL, WITHDRAWN, parse_withdrawal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.terms.released.withdrawal import Withdrawal
    from suffice.storage.objects.object_store import ObjectStore
    from suffice.storage.releases.manifest_model import Manifest
    from suffice.storage.releases.release_store import ReleaseStore
    from suffice.storage.signatures.keys import PublicKey

MANIFEST = "manifest.json"


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

    def manifest(self) -> tuple[bytes, Manifest]:
        """Return the manifest, as bytes and checked.

        Raises
        ------
        ReleaseMissingError, ReleaseCorruptError
        """
        data = self.objects.get(MANIFEST, at_most=LARGEST_MANIFEST + 1)
        if data is None:
            message = f"there is no release at {self.uri}: it has no manifest, so nothing was published"
            raise ReleaseMissingError(message)
        if is_tombstone(data):
            message = f"there is no release at {self.uri}: its charge was abandoned before publication"
            raise ReleaseMissingError(message)
        if is_rehearsal(data):
            message = f"there is no release at {self.uri}: it is a rehearsal's, of generated rows"
            raise ReleaseMissingError(message)
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
        read = [*zip(manifest.plan.statistics, values, strict=True)]
        noisy = {
            plan.name: NoisyStatistic(
                plan=plan,
                values=stored,
                groups=keys,
                public_n=manifest.n if plan.design is Design.MINIMAL else None,
                max_total_rows=manifest.plan.max_total_rows,
            )
            for plan, stored in read
            if plan.sample is None
        }
        sampled = {
            plan.name: ReleasedSample(plan=plan, indices=stored.astype(np.int64), groups=keys)
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
            return decode_statistic(data, manifest.plan.statistics[index], manifest.plan.groups)
        message = f"the release at {self.uri} is corrupt: {file.path} {rule}"
        raise ReleaseCorruptError(message)


def is_path(reference: str) -> bool:
    """Tell whether a reference to a release is a path or URI, and no name in a store."""
    return "/" in reference or reference in {".", "..", MANIFEST}

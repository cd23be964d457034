"""What a spool keeps for one charge: files with room made beforehand, and the marker that completes them."""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from suffice.errors import ReleaseCorruptError, SpoolError, StorageError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.objects.reasons import of_system_error
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.manifest_reader import LARGEST_MANIFEST, parse_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from suffice.storage.ledger.charge import Charge
    from suffice.storage.releases.manifest_model import FileEntry

_MARKER = "complete.json"
_MARKER_SIZE = 4096
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolEntry:
    """One charge's directory in a spool.

    Attributes
    ----------
    path : Path
    """

    path: Path

    def allocate(self, sizes: Mapping[str, int]) -> None:
        """Make every file at its full size, on blocks of its own; durable when it returns.

        Raises
        ------
        SpoolError
        """
        needed = sum(sizes.values())
        with spool_errors(self.path, f"given the {needed} bytes that the release needs"):
            self.path.mkdir(mode=0o700)
            for name, size in {**sizes, _MARKER: _MARKER_SIZE}.items():
                descriptor = os.open(self.path / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
                try:
                    _allocate(descriptor, size)
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            synchronise(self.path)
            synchronise(self.path.parent)

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """Open one of the files for writing from its start; when the block ends it is durable, and no longer.

        Raises
        ------
        SpoolError
        """
        with spool_errors(self.path / name, "written"), (self.path / name).open("r+b", buffering=0) as file:
            yield file
            file.truncate()
            os.fsync(file.fileno())

    def finish(self, charge: Charge, manifest: bytes) -> None:
        """Write the manifest, and then the marker: from here on the files are a release to be published.

        Raises
        ------
        SpoolError
        """
        with self.writing(MANIFEST) as file:
            write_all(file, manifest)
        marker = {
            "ledger_id": charge.ledger_id,
            "charge_id": charge.charge_id,
            "attempt": charge.attempt,
            "epoch": charge.epoch,
            "manifest_sha256": hashlib.sha256(manifest).hexdigest(),
        }
        with self.writing(_MARKER) as file:
            write_all(file, canonical_json.encode(marker))

    def unmark(self) -> None:
        """Take the marker away, so that a removal that stops half way leaves nothing complete."""
        (self.path / _MARKER).unlink(missing_ok=True)

    def is_complete(self, charge: Charge) -> bool:
        """Tell whether the marker is this charge's, and every file is what the manifest states.

        Raises
        ------
        SpoolError
            Where it cannot be read.
        """
        marker = self._marker()
        if (marker.get("ledger_id"), marker.get("charge_id"), marker.get("attempt")) != (
            charge.ledger_id,
            charge.charge_id,
            charge.attempt,
        ) or self.path.name != f"{charge.charge_id}.{marker.get('epoch')}":
            return False
        data = self.manifest()
        if hashlib.sha256(data).hexdigest() != marker.get("manifest_sha256"):
            return False
        try:
            manifest = parse_manifest(data)
        except ReleaseCorruptError:
            return False
        named = (manifest.ledger_id, manifest.release_id, manifest.plan_hash, manifest.drawing_hash)
        if named != (charge.ledger_id, charge.release_id, charge.plan_hash, charge.drawing_hash):
            return False
        return self.has(manifest.files)

    def has(self, files: Sequence[FileEntry]) -> bool:
        """Tell whether every one of these files is here, whole.

        Raises
        ------
        SpoolError
            Where it cannot be read.
        """
        return all(self._digest(file.path) == (file.size, file.sha256) for file in files)

    def manifest(self) -> bytes:
        """Return the manifest's bytes."""
        return self._read(MANIFEST, LARGEST_MANIFEST)

    def data(self, name: str, size: int) -> bytes:
        """Return the bytes of one data file."""
        return self._read(name, size)

    def _marker(self) -> dict[str, object]:
        """Return what the marker states; nothing where it was not written to its end."""
        if not (self.path / _MARKER).exists():
            return {}
        try:
            content = canonical_json.decode(self._read(_MARKER, _MARKER_SIZE))
        except ValueError:
            return {}
        return content if isinstance(content, dict) else {}

    def _read(self, name: str, at_most: int) -> bytes:
        with spool_errors(self.path / name, "read"), (self.path / name).open("rb") as file:
            return file.read(at_most)

    def _digest(self, name: str) -> tuple[int, str] | None:
        """Return a file's size and SHA-256; None where it is not there."""
        if not (self.path / name).exists():
            return None
        size, digest = 0, hashlib.sha256()
        with spool_errors(self.path / name, "read"), (self.path / name).open("rb") as file:
            while piece := file.read(_PIECE):
                size += len(piece)
                digest.update(piece)
        return size, digest.hexdigest()


def write_all(file: BinaryIO, data: bytes) -> None:
    """Write all bytes to a file without a buffer, which may take them in pieces."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def synchronise(directory: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def spool_errors(path: Path, action: str) -> Iterator[None]:
    """Turn the system's errors into ours."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        message = f"the spool's {path} cannot be {action}: {of_system_error(error).text}"
        raise SpoolError(message) from None


def _allocate(descriptor: int, size: int) -> None:
    """Give a file its blocks; where the system has no call for that, by writing them."""
    if hasattr(os, "posix_fallocate"):
        if size:
            os.posix_fallocate(descriptor, 0, size)
        return
    for start in range(0, size, _PIECE):
        view = memoryview(bytes(min(_PIECE, size - start)))
        while view:
            view = view[os.write(descriptor, view) :]

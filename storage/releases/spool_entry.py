"""One charge's files in a spool: room made beforehand, written with patience, complete with its marker."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from suffice.errors import ReleaseCorruptError, SpoolError, StorageError, StoreError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.ledger.charge import is_of_this_boot, this_process
from suffice.storage.objects.object_store import ONCE, of_system_error, patiently
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.manifest_reader import LARGEST_MANIFEST, parse_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from io import RawIOBase
    from pathlib import Path

    from suffice.storage.ledger.charge import Charge
    from suffice.storage.objects.object_store import Patience
    from suffice.storage.releases.manifest_model import FileEntry

Result = TypeVar("Result")

_MARKER = "complete.json"
_MARKER_SIZE = 4096
_BEGUN = _MARKER_SIZE // 2
"""Where the marker's file names the process that began the files; a marker is shorter."""
_PIECE = 1 << 20


class SpoolFile:
    """A file that is written from its start to its end, each step again while its disk fails.

    Parameters
    ----------
    file : RawIOBase
        Open for reading and writing, without a buffer.
    patience : Patience
    """

    def __init__(self, file: RawIOBase, patience: Patience) -> None:
        self._file = file
        self._patience = patience
        self._digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        """Write all of the bytes, which the file may take in pieces."""
        view = memoryview(data)
        while view:
            view = view[self._again(partial(self._write_some, view)) :]
        self._digest.update(data)
        return len(data)

    def end(self) -> None:
        """Cut what was longer, and make the file durable."""
        self._again(self._file.truncate)
        try:
            os.fsync(self._file.fileno())
        except OSError:
            self._again(self._write_anew)

    def _write_some(self, view: memoryview) -> int:
        return self._file.write(view) or 0

    def _write_anew(self) -> None:
        """Write once more what the file reads as: no other call brings to the disk what did not reach it."""
        digest = hashlib.sha256()
        self._file.seek(0)
        while piece := self._file.read(_PIECE):
            digest.update(piece)
            self._file.seek(-len(piece), os.SEEK_CUR)
            view = memoryview(piece)
            while view:
                view = view[self._write_some(view) :]
        if digest.digest() != self._digest.digest():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        os.fsync(self._file.fileno())

    def _again(self, step: Callable[[], Result]) -> Result:
        def tried() -> Result:
            try:
                return step()
            except OSError as error:
                failures.append(error)
                reason = of_system_error(error).text
                raise StoreError(reason, reason=reason, may_pass=True) from None

        failures: list[OSError] = []
        try:
            return patiently(tried, self._patience, "drawn, not in the spool yet")
        except StoreError:
            raise failures[-1] from None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolEntry:
    """One charge's directory in a spool.

    Attributes
    ----------
    path : Path
    patience : Patience
        How long a write that fails is tried again.
    """

    path: Path
    patience: Patience = ONCE

    def allocate(self, sizes: Mapping[str, int], *, run: str) -> None:
        """Make every file at its full size, on blocks of its own; durable when it returns.

        Parameters
        ----------
        sizes : mapping of str to int
            Bytes by file name.
        run : str
            Which run of the charge begins them.

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
                    if name == _MARKER:
                        begun = {"run": run, "process": this_process()}
                        os.pwrite(descriptor, canonical_json.encode(begun), _BEGUN)
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            synchronise(self.path)
            synchronise(self.path.parent)

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[SpoolFile]:
        """Open one of the files for writing from its start; when the block ends it is durable, and no longer.

        Raises
        ------
        SpoolError
        """
        with spool_errors(self.path / name, "written"), (self.path / name).open("r+b", buffering=0) as opened:
            file = SpoolFile(opened, self.patience)
            yield file
            file.end()

    def finish(self, charge: Charge, manifest: bytes) -> None:
        """Write the manifest, and then the marker: from here on the files are a release to be published.

        Raises
        ------
        SpoolError
        """
        with self.writing(MANIFEST) as file:
            file.write(manifest)
        marker = {
            "ledger_id": charge.ledger_id,
            "charge_id": charge.charge_id,
            "attempt": charge.attempt,
            "epoch": charge.epoch,
            "manifest_sha256": hashlib.sha256(manifest).hexdigest(),
        }
        with self.writing(_MARKER) as file:
            file.write(canonical_json.encode(marker))

    def is_begun_here(self, run: str) -> bool:
        """Tell whether a run began the files on this machine since it started, and never completed them.

        Raises
        ------
        SpoolError
            Where it cannot be read.
        """
        if not (self.path / _MARKER).exists():
            return False
        data = self._read(_MARKER, _MARKER_SIZE + 1)  # a marker that was written to its end is shorter
        begun = _decoded(data[_BEGUN:].rstrip(b"\0"))
        mine = len(data) == _MARKER_SIZE and begun.get("run") == run
        return mine and is_of_this_boot(str(begun.get("process")))

    def empty(self) -> None:
        """Remove all but what says who began it, which is no marker; durable when it returns.

        Raises
        ------
        SpoolError
        """
        with spool_errors(self.path, "emptied"):
            for path in self.path.iterdir():
                if path.name != _MARKER:
                    path.unlink()
            synchronise(self.path)

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
        if not (self.path / MANIFEST).exists():  # emptied by a recovery, and marked by a run that woke up
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
        return _decoded(self._read(_MARKER, _MARKER_SIZE))

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


def _decoded(data: bytes) -> dict[str, object]:
    """Return what a JSON object states; nothing where it is none."""
    try:
        content = canonical_json.decode(data)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


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

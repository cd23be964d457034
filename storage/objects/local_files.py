"""Objects that local files keep: created once, complete and durable, or not there at all.

Locks and shared memory may not hold between machines: the file system of a path is looked up for that.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import os
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from suffice.errors import ObjectExistsError, StoreError
from suffice.storage.objects.object_store import checked_key, of_system_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_MOUNTS = Path("/proc/self/mountinfo")

# Names of file systems that several machines see at once, or that pass writes on to another machine. Behind
# `fuse.` stands the name of the program, and every FUSE mount but these few reaches elsewhere.
_NETWORK = frozenset(
    {
        "9p",
        "acfs",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "gfs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "pvfs2",
        "smb3",
        "smbfs",
        "vboxsf",
        "vmhgfs",
        "weka",
    }
)
_FUSE = "fuse."
_LOCAL_FUSE = frozenset({"bindfs", "fuse-overlayfs", "gocryptfs", "encfs", "cryfs", "ext4", "mergerfs"})


def network_file_system(path: Path) -> str | None:
    """Return the type of the network file system that a path is on; None where it is on none.

    Where the system lists no mounts (it is not Linux) nothing is found.

    Parameters
    ----------
    path : Path
        A file, there already or still to be made in a directory that is there.
    """
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    kind = file_system(path.resolve(), mounts)
    return kind if kind is not None and is_network(kind) else None


def file_system(path: Path, mounts: str) -> str | None:
    """Return the type of the file system that a path is on.

    Parameters
    ----------
    path : Path
        Absolute, without symbolic links.
    mounts : str
        The text of ``/proc/self/mountinfo``.

    Returns
    -------
    str or None
        As ``ext4`` or ``fuse.sshfs``; None where no mount covers the path.
    """
    kind, depth = None, -1
    for line in mounts.splitlines():
        location, _, source = line.partition(" - ")
        fields, kinds = location.split(" "), source.split(" ")
        if len(fields) < 5 or not kinds[0]:
            continue
        # Spaces, tabs, newlines and backslashes are written as octal escapes.
        point = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4]))
        # Of two mounts on one point the later covers the earlier.
        if path.is_relative_to(point) and len(point.parts) >= depth:
            kind, depth = kinds[0], len(point.parts)
    return kind


def is_network(kind: str) -> bool:
    """Tell whether a type of file system reaches other machines."""
    if kind.startswith(_FUSE):
        return kind.removeprefix(_FUSE) not in _LOCAL_FUSE
    return kind in _NETWORK


_HIDDEN = re.compile(r"\.[A-Za-z0-9][A-Za-z0-9_.-]*\.[0-9a-f]{16}", re.ASCII)
"""The name of a file that is being written: that of its key, and a random ending."""
_PIECE = 2**20
"""Bytes that are copied at a time."""


class LocalFiles:
    """The objects below one directory; keys are relative paths with ``/``.

    An object is written to a file of its own, synchronised, and linked to its key. A link, unlike a
    rename, never replaces what stands there. A crash at any moment leaves at most a hidden file, which
    no reader sees.

    Parameters
    ----------
    root : Path
        An absolute directory; made when the first object is put.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def put_new(self, key: str, data: bytes) -> None:
        """Create an object durably.

        Raises
        ------
        ObjectExistsError
            Where `key` is taken, whatever stands there.
        StoreError
            Where it cannot be written.
        """
        path = self._path(key)
        hidden = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        with _store_errors("written", path):
            self._make_directories(path.parent)
            try:
                with hidden.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                _link(hidden, path)
            finally:
                hidden.unlink(missing_ok=True)
                # Also when another writer won: whoever relies on its object relies on its being durable.
                _synchronise(path.parent)

    def get(self, key: str, *, at_most: int) -> bytes | None:
        """Return an object's first `at_most` bytes, or None where there is no such object.

        Raises
        ------
        StoreError
            Where it cannot be read.
        """
        path = self._path(key)
        with _store_errors("read", path):
            if not path.is_file():
                return None
            with path.open("rb") as file:
                return file.read(at_most)

    def copy(self, key: str, sink: BinaryIO, *, at_most: int) -> bool:
        """Write an object's first `at_most` bytes to a file; False where there is no such object.

        Raises
        ------
        StoreError
            Where it cannot be read, or the file cannot be written.
        """
        path = self._path(key)
        with _store_errors("read", path):
            if not path.is_file():
                return False
            with path.open("rb") as file:
                while at_most > 0 and (piece := file.read(min(_PIECE, at_most))):
                    sink.write(piece)
                    at_most -= len(piece)
            return True

    def keys(self, prefix: str) -> list[str]:
        """Return the sorted keys below `prefix`, which is empty or ends with ``/``."""
        start = self._path(prefix.rstrip("/")) if prefix else self.root
        paths = []
        with _store_errors("listed", start):
            for directory, directories, files in os.walk(start, onerror=_raise_unless_missing):
                directories[:] = [name for name in directories if not name.startswith(".")]
                base = os.path.relpath(directory, self.root).replace(os.sep, "/")
                paths += [
                    name if base == "." else f"{base}/{name}" for name in files if not name.startswith(".")
                ]
        return sorted(paths)

    def keys_after(self, prefix: str, key: str) -> Iterator[str]:
        """Give the keys below `prefix` that sort after `key`, in order; earlier directories are not read."""
        start = self._path(prefix.rstrip("/")) if prefix else self.root
        with _store_errors("listed", start):
            yield from _walk(start, prefix, key)

    def replace(self, key: str, data: bytes, *, expected: bytes) -> None:
        """Replace an object, if it still holds `expected`: one writer at a time, a rename at the end.

        Raises
        ------
        ObjectExistsError
            Where it holds anything else, or is gone.
        StoreError
            Where it cannot be written.
        """
        path = self._path(key)
        lock = path.with_name(f".{path.name}.lock")
        hidden = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        with _store_errors("replaced", path), contextlib.ExitStack() as stack:
            if path.parent.is_dir():
                held = stack.enter_context(lock.open("ab"))
                fcntl.flock(held, fcntl.LOCK_EX)
            if self.get(key, at_most=len(expected) + 1) != expected:
                message = f"{path} is no longer what it was"
                raise ObjectExistsError(message)
            try:
                with hidden.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                hidden.replace(path)
            finally:
                hidden.unlink(missing_ok=True)
                _synchronise(path.parent)

    def names(self, prefix: str) -> list[str]:
        """Return the sorted names right below `prefix`, which is empty or ends with ``/``."""
        start = self._path(prefix.rstrip("/")) if prefix else self.root
        with _store_errors("listed", start):
            try:
                names = os.listdir(start)  # noqa: PTH208 - names, and no paths
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted(name for name in names if not name.startswith("."))

    def delete(self, key: str) -> None:
        """Remove an object, if it is there.

        Raises
        ------
        StoreError
            Where it cannot be removed.
        """
        path = self._path(key)
        with _store_errors("removed", path):
            if path.is_file():
                _remove(path)

    def modified(self, key: str) -> dt.datetime | None:
        """Return when an object was written; None where there is no such object.

        Raises
        ------
        StoreError
            Where it cannot be looked at.
        """
        path = self._path(key)
        with _store_errors("read", path):
            return _modified(path) if path.is_file() else None

    def sweep_hidden(self, before: dt.datetime) -> list[str]:
        """Remove the hidden files of writers that died before then, and return their paths, sorted.

        Raises
        ------
        StoreError
            Where one cannot be removed, or nothing can be listed.
        """
        removed = []
        with _store_errors("removed", self.root):
            for directory, directories, files in os.walk(self.root, onerror=_raise_unless_missing):
                directories[:] = [name for name in directories if not name.startswith(".")]
                for name in filter(_HIDDEN.fullmatch, files):
                    path = Path(directory, name)
                    if path.is_symlink() or _modified(path) >= before:
                        continue
                    _remove(path)
                    removed.append(path.relative_to(self.root).as_posix())
        return sorted(removed)

    def sweep(self, prefix: str, *, keep: str) -> list[str]:
        """Remove what stands below `prefix` but `keep`, hidden files of dead writers too.

        A hidden file of `keep` itself is left: its writer may be another run that puts the same object.

        Raises
        ------
        StoreError
            Where something cannot be removed.
        """
        start, kept = self._path(prefix.rstrip("/")), self._path(keep)
        removed = []
        with _store_errors("removed", start):
            for directory, _, files in os.walk(start, onerror=_raise_unless_missing):
                for name in files:
                    path = self.root / directory / name
                    if path != kept and not (
                        path.parent == kept.parent and name.startswith(f".{kept.name}.")
                    ):
                        _remove(path)
                        removed.append(path.relative_to(self.root).as_posix())
        return sorted(removed)

    def _path(self, key: str) -> Path:
        return self.root.joinpath(*checked_key(key))

    def _make_directories(self, directory: Path) -> None:
        """Make a directory and what is missing above it, and synchronise every entry on the way."""
        missing = [path for path in (directory, *directory.parents) if not path.exists()]
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
        inside = [path for path in (directory, *directory.parents) if path.is_relative_to(self.root)]
        for path in {*missing, *inside[:-1]}:
            _synchronise(path.parent)


def _walk(directory: Path, prefix: str, after: str) -> Iterator[str]:
    """Give the keys in a directory, whose own keys begin with `prefix`, that sort after `after`."""
    try:
        with os.scandir(directory) as entries:
            children = [(entry.name, entry.is_dir()) for entry in entries if not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return
    # A directory sorts as its keys do: with the slash behind its name.
    for name in sorted(name + "/" * is_directory for name, is_directory in children):
        key = prefix + name
        if not name.endswith("/"):
            if key > after:
                yield key
        elif key > after or after.startswith(key):
            yield from _walk(directory / name, key, after)


def _link(hidden: Path, path: Path) -> None:
    """Give a complete file its name, create-only."""
    try:
        os.link(hidden, path)
    except FileExistsError:
        # A network file system that lost its own answer tries again, and meets the link that it made.
        if os.path.samestat(hidden.stat(), path.lstat()):
            return
        message = f"{path} exists, and is never overwritten"
        raise ObjectExistsError(message) from None


def _modified(path: Path) -> dt.datetime:
    return dt.datetime.fromtimestamp(path.stat().st_mtime, tz=dt.UTC)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    _synchronise(path.parent)


def _synchronise(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


@contextlib.contextmanager
def _store_errors(action: str, path: Path) -> Iterator[None]:
    """Turn the system's errors into ours."""
    try:
        yield
    except StoreError:
        raise
    except (OSError, ValueError) as error:
        reason = of_system_error(error)
        message = f"{path} cannot be {action}: {reason.text}"
        raise StoreError(message, reason=reason.text, may_pass=reason.may_pass) from None

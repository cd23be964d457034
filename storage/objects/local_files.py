"""Objects that local files keep: created once, complete and durable, or not there at all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from typing import TYPE_CHECKING

from suffice.errors import ObjectExistsError, StoreError
from suffice.storage.objects.object_store import checked_key
from suffice.storage.objects.reasons import of_system_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

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
        found = []
        with _store_errors("listed", start):
            for directory, directories, files in os.walk(start, onerror=_raise_unless_missing):
                directories[:] = [name for name in directories if not name.startswith(".")]
                base = os.path.relpath(directory, self.root).replace(os.sep, "/")
                found += [
                    name if base == "." else f"{base}/{name}" for name in files if not name.startswith(".")
                ]
        return sorted(found)

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
                found = os.listdir(start)  # noqa: PTH208 - names, and no paths
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted(name for name in found if not name.startswith("."))

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
            found = [(entry.name, entry.is_dir()) for entry in entries if not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return
    # A directory sorts as its keys do: with the slash behind its name.
    for name in sorted(name + "/" * is_directory for name, is_directory in found):
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

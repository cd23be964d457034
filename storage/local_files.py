"""What a store needs of whatever keeps its bytes, and local files that keep them.

An object is created once, complete and durable, or it is not there at all.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit

from suffice.errors import ObjectExistsError, StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")

_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)
"""Keys never begin a segment with a dot: what does is a file that is still being written."""


class ObjectStore(Protocol):
    """What a store needs of whatever keeps its bytes."""

    def put_new(self, key: str, data: bytes) -> None:
        """Create an object durably; `ObjectExistsError` where the key is taken."""

    def get(self, key: str, *, at_most: int) -> bytes | None:
        """Return an object's first `at_most` bytes, or None where there is none."""

    def keys(self, prefix: str) -> list[str]:
        """Return the sorted keys below a prefix that is empty or ends with ``/``."""


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
                os.link(hidden, path)
            except FileExistsError:
                message = f"{path} exists, and is never overwritten"
                raise ObjectExistsError(message) from None
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

    def _path(self, key: str) -> Path:
        segments = key.split("/")
        if not all(map(_SEGMENT.fullmatch, segments)):
            message = f"{key!r} is no key of a store"
            raise StoreError(message)
        return self.root.joinpath(*segments)

    def _make_directories(self, directory: Path) -> None:
        """Make a directory and what is missing above it, and synchronise every entry on the way."""
        missing = [path for path in (directory, *directory.parents) if not path.exists()]
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
        inside = [path for path in (directory, *directory.parents) if path.is_relative_to(self.root)]
        for path in {*missing, *inside[:-1]}:
            _synchronise(path.parent)


def local_path(uri: str) -> Path:
    """Return the absolute path, links resolved, that a path or a ``file://`` URI names.

    Raises
    ------
    UsageError
        Where it names anything else; the text never repeats a URI, which may hold credentials.
    """
    scheme = _SCHEME.match(uri)
    text = uri
    if scheme is not None:
        if scheme[1].lower() != "file":
            message = f"{scheme[1].lower()}:// is not built yet: use a local path or a file:// URI"
            raise UsageError(message)
        parts = urlsplit(uri)
        if parts.netloc not in {"", "localhost"} or parts.query or parts.fragment:
            message = "a file:// URI has no host, no query and no fragment: write file:///path"
            raise UsageError(message)
        text = unquote(parts.path)
    if not text or "\0" in text:
        message = "a path is needed, and none is given"
        raise UsageError(message)
    return Path(os.path.realpath(text))


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
        reason = getattr(error, "strerror", None) or type(error).__name__
        message = f"{path} cannot be {action}: {reason}"
        raise StoreError(message) from None

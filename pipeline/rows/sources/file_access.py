"""Files by their address: what identifies one, how its bytes are opened, and which a pattern names.

An address is a path or an object's URL. Of what a path, a directory or a pattern names each file is listed
once.

Credentials and endpoints come from the environment of the process that reads; see `suffice.buckets`. A
client's texts may repeat requests, which can be signed: none of them leaves this module.
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import io
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import pyarrow as pa

from suffice.buckets import VARIABLES, connect
from suffice.errors import UsageError
from suffice.pipeline.cluster.workers import goes_on
from suffice.pipeline.rows.sources.contract import exact_data
from suffice.pipeline.terms.declaration.source_specs import is_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from obstore.store import ObjectStore

_FORMATS = {"parquet": "Parquet", "csv": "CSV"}
_COMPRESSED_KIND = "csv"
"""The kind of source whose files may be compressed as a whole."""
_COMPRESSIONS = {"gz": "gzip", "zst": "zstd", "bz2": "bz2"}
_BEGINNINGS = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh")


def list_files(pattern: str, kind: str = "parquet", *, may_be_empty: bool = False) -> tuple[str, ...]:
    """Return the files at a local path, in a directory or of a pattern, in order of their paths.

    Parameters
    ----------
    pattern : str
        The path, the directory or the pattern.
    kind : str
        The kind of source: of a directory the files are listed that end so.
    may_be_empty : bool
        Whether none need be there, and what is no file is left out: a directory, or that of a pattern, then
        has to be there all the same.

    Raises
    ------
    UsageError
        Where there is none, or two names are one file: its rows would count twice.
    """
    try:
        return _listed(pattern, kind, may_be_empty=may_be_empty)
    except UsageError:
        raise
    except (OSError, ValueError):  # too long a name, no access, or characters that no file system takes
        message = f"source.{kind}: {pattern} cannot be looked at: name files that can be read"
        raise UsageError(message) from None


def _listed(pattern: str, kind: str, *, may_be_empty: bool) -> tuple[str, ...]:
    position = Path(pattern)
    if kind == "parquet":
        refuse_delta_table(pattern)
    if position.is_dir():
        paths = [str(path) for path in position.iterdir() if is_data_file(path.name, kind)]
    elif position.exists():
        paths = [pattern]
    else:
        paths = glob.glob(pattern, recursive=True)  # noqa: PTH207 - as a shell would, without hidden files
    if may_be_empty and (position.is_dir() or glob.has_magic(pattern)):
        os.scandir(_fixed(pattern)).close()  # raises where it is not there, or cannot be read
        paths = [path for path in paths if os.path.isfile(path)]  # noqa: PTH113 - as below
    paths = sorted(paths)
    if not paths and not (may_be_empty and (position.is_dir() or glob.has_magic(pattern))):
        hint = f"; for folders below it write {pattern}/**/*.{kind}" if position.is_dir() else ""
        if hint and kind == "parquet":
            hint += ", or state their keys under source.hive where they are named KEY=VALUE"
        message = f"source.{kind}: no {_FORMATS[kind]} file at {pattern}{hint}"
        raise UsageError(message)
    for path in paths:
        if not os.path.isfile(path):  # noqa: PTH113 - no Path object per file
            # Left out in silence, its rows would be missed.
            message = f"source.{kind}: {path} is no file: name its folder or remove it"
            raise UsageError(message)
    refuse_twice(paths, kind=kind)
    return tuple(paths)


def _fixed(pattern: str) -> str:
    """Return the directory that a pattern stays in."""
    parts = Path(pattern).parts
    first = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return str(Path(*parts[:first]))


def refuse_delta_table(address: str) -> None:
    """Refuse a local directory that is a Delta table: its log says which of its files count.

    Files that were replaced or deleted stand beside the others until they are vacuumed.

    Raises
    ------
    UsageError
    """
    if (Path(address) / "_delta_log").is_dir():
        message = (
            f"source.parquet: {address} is a Delta table, and not all of its files count: "
            "write {delta: ...} instead of {parquet: ...}"
        )
        raise UsageError(message)


def refuse_twice(paths: Sequence[str], *, root: str | None = None, kind: str = "parquet") -> None:
    """Refuse local files that have two names.

    Parameters
    ----------
    paths : sequence of str
        The files.
    root : str, optional
        What the message names in place of the files.
    kind : str
        The kind of source.

    Raises
    ------
    UsageError
        Where two are the same: its rows would count twice.
    """
    known: dict[tuple[int, int], str] = {}
    for path in paths:
        stat = os.stat(path)  # noqa: PTH116 - as above
        first = known.setdefault((stat.st_dev, stat.st_ino), path)
        if first != path:
            which = f"{first} and {path}" if root is None else f"two names below {root}"
            message = f"source.{kind}: {which} are the same file, so its rows would count twice"
            raise UsageError(message)


def list_objects(address: str, kind: str = "parquet", *, may_be_empty: bool = False) -> list[PinnedFile]:
    """Return the objects at a URL, right below it or of a pattern, in order of their addresses.

    With `may_be_empty` none need be there: a prefix is nothing but its objects. A name that ends as files of
    the kind do is a file's, which has to be.

    Raises
    ------
    UsageError
        Where there is none, or they cannot be listed.
    """
    try:
        objects = _listed_objects(address, kind, may_be_empty=may_be_empty)
    except OSError:
        message = (
            f"source.{kind}: {address} cannot be listed: it is not there, access is denied, or the "
            "environment's settings are wrong"
        )
        raise UsageError(message) from None
    if not objects and not may_be_empty:
        message = f"source.{kind}: no {_FORMATS[kind]} file at {address}"
        raise UsageError(message)
    return sorted(objects, key=lambda file: file.address)


def _listed_objects(address: str, kind: str, *, may_be_empty: bool) -> list[PinnedFile]:
    if not glob.has_magic(address):
        listed = _pinned(address, kind, recursive=False)
        if listed or (may_be_empty and not is_data_file(address.rpartition("/")[2], kind)):
            return listed
        return [status(address)]
    parts = address.split("/")
    fixed = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    return _pinned("/".join(parts[:fixed]), kind, recursive=True, pattern=address)


def _pinned(prefix: str, kind: str, *, recursive: bool, pattern: str | None = None) -> list[PinnedFile]:
    return [
        PinnedFile(address=address, size=size, version=version)
        for address, size, version in objects_below(prefix, recursive=recursive)
        if reaches(pattern or prefix, address, kind)
    ]


def reaches(pattern: str, path: str, kind: str = "parquet") -> bool:
    """Tell whether `list_files` would find a file of this path, were it there.

    Parameters
    ----------
    pattern : str
        An absolute path, directory, pattern or URL, whether it is there or not.
    path : str
        An absolute path, or URL.
    kind : str
        The kind of source.
    """
    position = Path(path)
    if position == Path(pattern) or (position.parent == Path(pattern) and is_data_file(position.name, kind)):
        return True
    return glob.has_magic(pattern) and matches(Path(pattern).parts, position.parts)


def is_data_file(name: str, kind: str = "parquet") -> bool:
    """Tell whether a directory's file of this name is read: hidden ones, and markers, are not."""
    if kind == _COMPRESSED_KIND and compression_of(name) is not None:
        name = name.rpartition(".")[0]
    return name.lower().endswith(f".{kind}") and not name.startswith((".", "_"))


def compression_of(address: str) -> str | None:
    """Return how a file is compressed by the end of its name; None where it is read as it is."""
    return _COMPRESSIONS.get(address.lower().rpartition(".")[2])


def looks_compressed(head: bytes) -> bool:
    """Tell whether a file begins as compressed ones do, and no line of names does."""
    return head.startswith(_BEGINNINGS)


def matches(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    """Match the parts of a path as `glob` does: two asterisks are any number of folders, none hidden."""
    if not pattern:
        return not parts
    first, *rest = pattern
    if first == "**":
        visible = bool(parts) and not parts[0].startswith(".")
        return (
            matches(rest, parts)
            if rest and matches(rest, parts)
            else visible and (matches(pattern, parts[1:]) or (not rest and len(parts) == 1))
        )
    if not parts or (parts[0].startswith(".") and not first.startswith(".")):
        return False
    return fnmatch.fnmatchcase(parts[0], first) and matches(rest, parts[1:])


SMALL_BYTES = 1 << 20
"""Files of at most so many bytes are read whole; objects by one request."""
_RETRIES = 4
_MOST_REQUESTS = 8
"""Requests for bytes of one file at a time."""
_NEAR_BYTES = 1 << 20
"""Ranges that are no further apart are fetched by one request: it takes as long as a round trip."""
_LARGEST_REQUEST = 1 << 23
"""Longer ranges are fetched by several requests at a time."""


def divided(address: str) -> tuple[str, str]:
    """Return the bucket of an object's address, and its key."""
    scheme, _, rest = address.partition("://")
    name, _, key = rest.partition("/")
    return f"{scheme}://{name}", key


def object_status(address: str) -> tuple[int, str]:
    """Return an object's size in bytes, and its entity tag.

    Raises
    ------
    OSError
        Where it is not there, or cannot be looked at; the text is fixed.
    """
    from obstore import head  # local files need no client

    bucket, key = divided(address)
    with _Fixed():
        return _identity(head(_client(bucket), key))


def objects_below(address: str, *, recursive: bool) -> Iterator[tuple[str, int, str]]:
    """Give address, size and entity tag of the objects below a prefix: right below it, or anywhere.

    Raises
    ------
    OSError
        Where they cannot be listed; the text is fixed.
    """
    from obstore import list as list_objects  # local files need no client
    from obstore import list_with_delimiter

    bucket, prefix = divided(address)
    with _Fixed():
        if recursive:
            entries: Iterable[Any] = (
                entry for page in list_objects(_client(bucket), prefix=prefix or None) for entry in page
            )
        else:
            entries = list_with_delimiter(_client(bucket), prefix=prefix or None)["objects"]
        for entry in entries:
            goes_on()
            yield (f"{bucket}/{entry['path']}", *_identity(entry))


def prefixes_below(address: str) -> list[str]:
    """Return the addresses of the prefixes right below a prefix, as a folder's folders.

    Raises
    ------
    OSError
        Where they cannot be listed; the text is fixed.
    """
    from obstore import list_with_delimiter  # local files need no client

    bucket, prefix = divided(address)
    with _Fixed():
        listing = list_with_delimiter(_client(bucket), prefix=prefix or None)
        return [f"{bucket}/{path.rstrip('/')}" for path in listing["common_prefixes"]]


class ObjectFile(io.RawIOBase):
    """An object's bytes, as a file that is read only; every answer is of the version that was pinned.

    Parameters
    ----------
    address : str
        The object.
    size : int
        In bytes.
    version : str
        Its entity tag.
    """

    def __init__(self, address: str, size: int, version: str) -> None:
        super().__init__()
        self._bucket, self._key = divided(address)
        self._size = size
        self._version = version
        self._position = 0
        self._fetched: list[tuple[int, bytes]] = []

    def fetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Get ranges of bytes, each from the first to before the last, in few requests; forget earlier ones.

        Raises
        ------
        OSError
            Where they cannot be had; the text is fixed.
        """
        self._fetched = []  # before the next ones are there: memory holds one fetch at a time
        wanted = _requests(ranges)
        if len(wanted) == 1:
            self._fetched = [self._get(*wanted[0])]
        elif wanted:
            with ThreadPoolExecutor(min(len(wanted), _MOST_REQUESTS)) as pool:
                self._fetched = list(pool.map(lambda each: self._get(*each), wanted))

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that any place of it can be read."""
        return True

    def tell(self) -> int:
        """Return the position at which is read."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position, and return it."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(start + offset, 0)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read as many bytes as a buffer takes, or the rest; return how many."""
        view = memoryview(buffer).cast("B")
        end = min(self._position + len(view), self._size)
        start = self._position
        while self._position < end:
            offset, data = self._holding(self._position, end)
            taken = data[self._position - offset : end - offset]
            view[self._position - start : self._position - start + len(taken)] = taken
            self._position += len(taken)
        return max(end - start, 0)

    def _holding(self, start: int, end: int) -> tuple[int, bytes]:
        """Return bytes that hold a position, and where they begin: fetched ones, or up to `end`."""
        for offset, data in self._fetched:
            if offset <= start < offset + len(data):
                return offset, data
        return self._get(start, end)

    def _get(self, start: int, end: int) -> tuple[int, bytes]:
        from obstore import get  # local files need no client

        with _Fixed():
            options: Any = {"range": (start, end)}
            if self._version.startswith('"'):  # no weak tag, and no time in place of one
                options["if_match"] = self._version
            response = get(_client(self._bucket), self._key, options=options)
            data = bytes(response.bytes())
            # Not every server heeds the condition.
            if _identity(response.meta) != (self._size, self._version) or len(data) != end - start:
                message = "the object is not the one that was pinned"
                raise OSError(message)
            return start, data


class _Fixed:
    """Turns whatever a client raises into an OSError of a fixed text."""

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        """Raise a fixed text in place of a client's."""
        if kind is not None and issubclass(kind, Exception):
            message = "the bucket or object cannot be read"
            raise OSError(message) from None


def _identity(meta: Any) -> tuple[int, str]:
    """Return an object's size and entity tag, quoted, as listings of some stores do not have it."""
    tag = meta["e_tag"]
    if tag is None:
        return meta["size"], meta["last_modified"].isoformat()
    return meta["size"], tag if tag.endswith('"') else f'"{tag}"'


def _requests(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join ranges that are near each other, and divide what is long."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start - joined[-1][1] <= _NEAR_BYTES:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return [
        (first, min(first + _LARGEST_REQUEST, end))
        for start, end in joined
        for first in range(start, end, _LARGEST_REQUEST)
    ]


def _client(bucket: str) -> ObjectStore:
    """Return a bucket's client, one for each setting of the environment."""
    begin = VARIABLES[bucket.partition("://")[0]]
    settings = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith(begin)))
    return _connected(bucket, settings)


@lru_cache(maxsize=16)
def _connected(bucket: str, _settings: tuple[tuple[str, str], ...]) -> ObjectStore:
    return connect(bucket, retries=_RETRIES)


@exact_data(travels=True)
class PinnedFile:
    """A file as it was when the list of files was made.

    Parameters
    ----------
    address : str
        Absolute path, or ``s3://BUCKET/KEY``, ``gs://...`` or ``az://...``.
    size : int
        In bytes.
    version : str
        What changes when it is written again: the time of modification, in nanoseconds since 1970; an
        object's entity tag.
    """

    address: str
    size: int
    version: str


def status(address: str) -> PinnedFile:
    """Return a file as it is now.

    Raises
    ------
    OSError
        Where it is not there, or cannot be looked at.
    """
    goes_on()
    if is_url(address):
        size, version = object_status(address)
        return PinnedFile(address=address, size=size, version=version)
    stat = os.stat(address)  # noqa: PTH116 - no Path object per check
    return PinnedFile(address=address, size=stat.st_size, version=str(stat.st_mtime_ns))


def opened(file: PinnedFile) -> AbstractContextManager[BinaryIO]:
    """Open a file's bytes; nothing is read ahead.

    Of an object every answer is checked to be of the pinned version.

    Raises
    ------
    OSError
        Where it cannot be opened; on reading, where the bytes cannot be had.
    """
    if is_url(file.address):
        return cast("BinaryIO", ObjectFile(file.address, file.size, file.version))
    return open(file.address, "rb", buffering=0)  # noqa: PTH123 - no Path object per check


@contextmanager
def opened_text(file: PinnedFile) -> Iterator[BinaryIO]:
    """Open a file of text, from its beginning: what is in it where its name says that it is compressed.

    It is read once, forwards, however large it is.

    Raises
    ------
    OSError
        As `opened`; on reading, also where it is damaged.
    """
    compression = compression_of(file.address)
    with opened(file) as content:
        if compression is None:
            yield content
            return
        stream = pa.CompressedInputStream(pa.PythonFile(content, mode="r"), compression)
        with contextlib.closing(stream):
            yield cast("BinaryIO", _Forwards(stream))


class _Forwards:
    """A stream that is read and moved forwards alone."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream = stream
        self._position = 0

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most so many."""
        data: bytes = self._stream.read(size)
        self._position += len(data)
        return data

    def seek(self, offset: int) -> int:
        """Move forwards, and return the position."""
        while self._position < offset and self.read(min(offset - self._position, _SKIPPED_BYTES)):
            pass
        return self._position


_SKIPPED_BYTES = 1 << 16

"""Files by their address, a path or an object's URL: what identifies one, and how its bytes are opened.

Credentials and endpoints come from the environment of the process that reads; see `suffice.buckets`. A
client's texts may repeat requests, which can be signed: none of them leaves this module.
"""

from __future__ import annotations

import io
import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from suffice.buckets import VARIABLES, connect
from suffice.pipeline.rows.sources.exact_data import exact_data
from suffice.pipeline.terms.declaration.source_specs import is_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from obstore.store import ObjectStore

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

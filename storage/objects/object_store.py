"""What a store needs of whatever keeps its bytes: objects that are created once, complete, or not at all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from suffice.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)
"""Keys never begin a segment with a dot: what does is a file that is still being written."""


class ObjectStore(Protocol):
    """What a store needs of whatever keeps its bytes.

    Every method raises `StoreError` where the bytes cannot be reached, or a key is none.
    """

    def put_new(self, key: str, data: bytes) -> None:
        """Create an object durably; `ObjectExistsError` where the key is taken.

        After any other error the object may stand there, now or later: it counts as written.
        """

    def get(self, key: str, *, at_most: int) -> bytes | None:
        """Return an object's first `at_most` bytes, or None where there is none."""

    def copy(self, key: str, sink: BinaryIO, *, at_most: int) -> bool:
        """Write an object's first `at_most` bytes to a file, a piece at a time; False where there is none."""

    def keys(self, prefix: str) -> list[str]:
        """Return the sorted keys below a prefix that is empty or ends with ``/``."""

    def names(self, prefix: str) -> list[str]:
        """Return the sorted names right below a prefix: of objects, and of prefixes without ``/``.

        One listing, however much stands below those; an empty directory may be named.
        """

    def keys_after(self, prefix: str, key: str) -> Iterator[str]:
        """Give the keys below `prefix` that sort after `key`, in order, without listing what comes before.

        An empty `key` gives all. The listing goes on as far as it is asked for.
        """

    def replace(self, key: str, data: bytes, *, expected: bytes) -> None:
        """Replace an object, whole and durably, if it still holds `expected`.

        `ObjectExistsError` where it holds anything else, or is gone. Only what is a note of its own, as a
        witness is, may be replaced; nothing of a release ever is.
        """

    def delete(self, key: str) -> None:
        """Remove an object, if it is there."""

    def sweep(self, prefix: str, *, keep: str) -> list[str]:
        """Remove what stands below `prefix`, which ends with ``/``, but the key `keep`.

        What a writer that died left half written is removed too; the keys removed are returned, sorted.
        """


def checked_key(key: str) -> list[str]:
    """Return a key's segments.

    Raises
    ------
    StoreError
        Where it is no key: nothing above the store and nothing hidden is ever reached.
    """
    segments = key.split("/")
    if not all(map(_SEGMENT.fullmatch, segments)):
        message = f"{key!r} is no key of a store"
        raise StoreError(message)
    return segments

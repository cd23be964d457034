"""Where objects are kept: a directory, or a prefix of a bucket; read from a path or a URI without secrets."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from suffice.buckets import BUCKET_SCHEMES, read_bucket
from suffice.errors import UsageError
from suffice.storage.objects.local_files import LocalFiles

if TYPE_CHECKING:
    from suffice.storage.objects.object_store import ObjectStore

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")

_SEGMENT = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.=+-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A directory, or a prefix of a bucket.

    Attributes
    ----------
    path : PurePosixPath
        Absolute: of the directory, or within the bucket.
    bucket : str
        Empty for a directory; else ``s3://NAME``, ``gs://NAME``, ``az://CONTAINER``, or
        ``az://CONTAINER@ACCOUNT`` where the URI named the storage account.
    """

    path: PurePosixPath
    bucket: str = ""

    @property
    def uri(self) -> str:
        """The absolute path, or the URI; never holds credentials."""
        return str(self.path) if not self.bucket else f"{self.bucket}{self.path}".rstrip("/")

    @property
    def parent(self) -> Address:
        """The address that this one stands in; the topmost stands in itself."""
        return Address(path=self.path.parent, bucket=self.bucket)

    def objects(self) -> ObjectStore:
        """Open what keeps the objects; nothing is read or written yet.

        Raises
        ------
        StoreError
            Where the environment's settings for this kind of bucket cannot be used.
        """
        if not self.bucket:
            return LocalFiles(Path(self.path))
        from suffice.storage.objects.bucket import open_bucket  # directories need no client

        return open_bucket(self.bucket, str(self.path)[1:])


def read_address(uri: str) -> Address:
    """Read a local path, a ``file://`` URI or a bucket's URI.

    Parameters
    ----------
    uri : str
        A path, whose links are resolved; or ``file:///PATH``, ``s3://BUCKET/PREFIX``,
        ``gs://BUCKET/PREFIX``, ``az://CONTAINER/PREFIX`` or
        ``abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX``.

    Raises
    ------
    UsageError
        Where it names anything else; the text never repeats a URI, which may hold credentials.
    """
    scheme = _SCHEME.match(uri)
    if scheme is None:
        return _directory(uri)
    name, rest = scheme[1].lower(), uri[scheme.end() :]
    authority, slash, path = rest.removeprefix("/").partition("/") if rest[:1] == "/" else ("", "/", rest)
    if name == "file":
        if authority not in {"", "localhost"} or "?" in path or "#" in path:
            message = "a file:// URI has no host, no query and no fragment: write file:///path"
            raise UsageError(message)
        return _directory(slash + unquote(path))
    if name not in BUCKET_SCHEMES:
        message = f"{name}:// is no store: use a local path, or a URI of file://, s3://, gs:// or az://"
        raise UsageError(message)
    if "?" in rest or "#" in rest:
        message = (
            f"the {name}:// URI has a query or a fragment: credentials and settings come from the environment"
        )
        raise UsageError(message)
    segments = [segment for segment in path.split("/") if segment]
    if not all(map(_SEGMENT.fullmatch, segments)):
        message = f"the prefix of the {name}:// URI is no path of letters, digits and _ . = + -"
        raise UsageError(message)
    return Address(path=PurePosixPath("/", *segments), bucket=read_bucket(name, authority))


def _directory(text: str) -> Address:
    if not text or "\0" in text:
        message = "a path is needed, and none is given"
        raise UsageError(message)
    return Address(path=PurePosixPath(os.path.realpath(text)))

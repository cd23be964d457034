"""Where objects are kept: a directory, a prefix of a bucket, a website; read from a URI without secrets."""

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
from suffice.storage.objects.website import WEBSITE_SCHEMES, Website, read_website

if TYPE_CHECKING:
    from suffice.storage.objects.object_store import ObjectStore

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")

_SEGMENT = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.=+-]+", re.ASCII)
_SEGMENT_OF_URL = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.~-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A directory, a prefix of a bucket, or a path of a website.

    Attributes
    ----------
    path : PurePosixPath
        Absolute: of the directory, or within the bucket or website.
    bucket : str
        Empty for a directory; else ``s3://NAME``, ``gs://NAME``, ``az://CONTAINER``, or
        ``az://CONTAINER@ACCOUNT`` where the URI named the storage account; or ``https://HOST``.
    """

    path: PurePosixPath
    bucket: str = ""

    @property
    def uri(self) -> str:
        """The absolute path, or the URI; never holds credentials."""
        return str(self.path) if not self.bucket else f"{self.bucket}{self.path}".rstrip("/")

    @property
    def is_listed(self) -> bool:
        """Whether what stands there can be listed: not of a website."""
        return self.bucket.partition("://")[0] not in WEBSITE_SCHEMES

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
        if not self.is_listed:
            return Website(self.uri)
        from suffice.storage.objects.bucket import open_bucket  # directories need no client

        return open_bucket(self.bucket, str(self.path)[1:])


def read_address(uri: str) -> Address:
    """Read a local path, a ``file://`` URI, a bucket's URI or a website's URL.

    Parameters
    ----------
    uri : str
        A path, whose links are resolved; or ``file:///PATH``, ``s3://BUCKET/PREFIX``,
        ``gs://BUCKET/PREFIX``, ``az://CONTAINER/PREFIX``,
        ``abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX`` or ``https://HOST/PATH``.

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
    is_website = name in WEBSITE_SCHEMES
    if name not in BUCKET_SCHEMES and not is_website:
        message = (
            f"{name}:// is no store: use a local path, or a URI of file://, https://, s3://, gs:// or az://"
        )
        raise UsageError(message)
    if is_website and ("?" in rest or "#" in rest):
        message = (
            f"the {name}:// URL has a query or a fragment: give that of a release's folder, without them"
        )
        raise UsageError(message)
    if "?" in rest or "#" in rest:
        message = (
            f"the {name}:// URI has a query or a fragment: credentials and settings come from the environment"
        )
        raise UsageError(message)
    segments = [segment for segment in path.split("/") if segment]
    allowed = _SEGMENT_OF_URL if is_website else _SEGMENT
    if not all(map(allowed.fullmatch, segments)):
        marks = "_ . ~ -" if is_website else "_ . = + -"
        message = f"the prefix of the {name}:// URI is no path of letters, digits and {marks}"
        raise UsageError(message)
    place = read_website(name, authority) if is_website else read_bucket(name, authority)
    return Address(path=PurePosixPath("/", *segments), bucket=place)


def _directory(text: str) -> Address:
    if not text or "\0" in text:
        message = "a path is needed, and none is given"
        raise UsageError(message)
    return Address(path=PurePosixPath(os.path.realpath(text)))

"""What every kind of source declares in a spec; who reads it is not known here."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import ClassVar

from suffice.buckets import BUCKET_SCHEMES, read_bucket
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.fields import SpecModel

LONGEST_PATH = 4096
"""Characters that file systems take at most."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class SourceSpec(SpecModel):
    """Where the rows are; not part of what is charged.

    Each kind has a model of its own, whose first field is required and called like the kind. A kind may have
    the field ``clustered_by``: the rows of each value of that column stand together, in a file or two. Where
    that is true, few rows travel between workers to be bounded by that column; no number depends on it.
    """

    kind: ClassVar[str]
    """The key that chooses this model in a spec, and the reader in ``pipeline/rows/sources``."""

    def address(self, directory: Path) -> str:
        """Return the place of the rows as an owner grants it, given the spec's directory: a path or its like.

        It is made of the spec alone, holds no credentials, and does not depend on the data.
        """
        raise NotImplementedError


def is_url(address: str) -> bool:
    """Tell whether an address is of a bucket, and not a path."""
    scheme = _SCHEME.match(address)
    return scheme is not None and scheme[1].lower() in BUCKET_SCHEMES


def source_path(value: object) -> str:
    """Check a path, a pattern or a URL of files; return a URL as owners grant it.

    ``s3://BUCKET/PREFIX``, ``gs://...``, ``az://CONTAINER/PREFIX`` or
    ``abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX``, without a ``/`` at its end.

    Raises
    ------
    ValueError
        Where it is none; the text never repeats a URL, which may hold credentials.
    """
    if not isinstance(value, str) or not value.strip():
        message = "a source is a file, a directory, a pattern or a URL"
        raise ValueError(message)
    if "\0" in value or len(value) > LONGEST_PATH:
        message = f"a source is a path of at most {LONGEST_PATH} characters, none of them NUL"
        raise ValueError(message)
    scheme = _SCHEME.match(value)
    return value if scheme is None else _url(scheme[1].lower(), value[scheme.end() :])


def absolute_pattern(directory: Path, pattern: str) -> str:
    """Return a URL as it is; or a path or pattern as an absolute one, links in its fixed part resolved."""
    if is_url(pattern):
        return pattern
    full = os.path.abspath(directory / pattern)  # noqa: PTH100 - no link is followed
    parts = Path(full).parts
    fixed = next((n for n, part in enumerate(parts) if any(sign in part for sign in "*?[")), len(parts))
    return str(Path(os.path.realpath(Path(*parts[:fixed])), *parts[fixed:]))


def _url(scheme: str, rest: str) -> str:
    if scheme not in BUCKET_SCHEMES:
        message = f"{scheme}:// is no source: use a local path, or a URL of s3://, gs:// or az://"
        raise ValueError(message)
    if "?" in rest or "#" in rest:
        message = f"the {scheme}:// URL has a query or a fragment: credentials come from the environment"
        raise ValueError(message)
    authority, _, key = rest.partition("/")
    try:
        bucket = read_bucket(scheme, authority)
    except UsageError as error:
        raise ValueError(str(error)) from None
    parts = key.rstrip("/").split("/") if key else []
    if any(part in {"", ".", ".."} for part in parts):
        message = f"the {scheme}:// URL has an empty part, . or .. in its path"
        raise ValueError(message)
    return "/".join([bucket, *parts])

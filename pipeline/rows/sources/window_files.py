"""Files whose names say that they are of a window: listed by these names, locally and in buckets."""

from __future__ import annotations

import fnmatch
import glob
import itertools
import os
from typing import TYPE_CHECKING

from suffice.errors import UsageError
from suffice.pipeline.rows.sources.file_access import (
    PinnedFile,
    is_data_file,
    matches,
    objects_below,
    prefixes_below,
    refuse_delta_table,
    refuse_twice,
    status,
)
from suffice.pipeline.terms.declaration.source_specs import is_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def files_of_window(
    root: str, names: Sequence[str], kind: str = "parquet", *, may_be_empty: bool = False
) -> list[PinnedFile]:
    """Return the files that a window's names name, in order of their addresses.

    Parameters
    ----------
    root : str
        A directory, or a prefix of a bucket, which has to be there.
    names : sequence of str
        Paths below it, of files or of folders; in them ``*`` stands for any signs but ``/``. What is not
        there has no rows: which files there are follows from records.
    kind : str
        The kind of source.
    may_be_empty : bool
        Whether a bucket's prefix need have no object: nothing else shows that it is there.

    Raises
    ------
    UsageError
        Where the root is not there or cannot be listed, or two names are one file.
    """
    try:
        if is_url(root):
            return _objects_of_window(root, names, kind, may_be_empty=may_be_empty)
        os.scandir(root).close()  # raises where it is not there
        if kind == "parquet":
            refuse_delta_table(root)
        named = {path for name in names for path in _named(root, name.split("/"))}
        below = {f"{path}/{name}" for path in named for name in _entries(path)}
        paths = [
            path
            for path in sorted(named | below)
            if is_data_file(path.rpartition("/")[2], kind) and os.path.isfile(path)  # noqa: PTH113 - as above
        ]
        refuse_twice(paths, root=root, kind=kind)
        return [status(path) for path in paths]
    except OSError:
        message = (
            f"source.{kind}: {root} cannot be listed: it is not there, or access to it or below it is denied"
        )
        raise UsageError(message) from None


def _named(folder: str, parts: Sequence[str]) -> Iterator[str]:
    """Give the paths of a name below a folder; unlike `glob`, not in silence where one cannot be listed."""
    first, *rest = parts
    if glob.has_magic(first):
        held = [name for name in _entries(folder) if name[0] != "." and fnmatch.fnmatchcase(name, first)]
    else:
        held = [first] if os.path.lexists(f"{folder}/{first}") else []
    for name in held:
        path = f"{folder}/{name}"
        if rest:
            yield from _named(path, rest)
        else:
            yield path


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - no Path object per file
    except (FileNotFoundError, NotADirectoryError):
        return []


def _objects_of_window(root: str, names: Sequence[str], kind: str, *, may_be_empty: bool) -> list[PinnedFile]:
    prefixes = {_fixed_prefix(root, name, kind) for name in names}
    listed = {
        address: PinnedFile(address=address, size=size, version=version)
        for prefix in prefixes
        for address, size, version in objects_below(prefix, recursive=True)
        if is_of_window(root, names, address, kind)
    }
    is_there = bool(listed) or may_be_empty or bool(prefixes_below(root))
    if not is_there and next(objects_below(root, recursive=False), None) is None:
        message = "nothing is there"
        raise OSError(message)
    return [listed[address] for address in sorted(listed)]


def _fixed_prefix(root: str, name: str, kind: str) -> str:
    """Return the prefix of a bucket, as a folder, below which all files of a name are."""
    plain = itertools.takewhile(lambda part: not glob.has_magic(part), name.split("/"))
    return "/".join([root, *(part for part in plain if not is_data_file(part, kind))])


def is_of_window(root: str, names: Sequence[str], address: str, kind: str = "parquet") -> bool:
    """Tell whether `files_of_window` would find a file of this address, were it there."""
    if not address.startswith(f"{root}/"):
        return False
    parts = address[len(root) + 1 :].split("/")
    if not is_data_file(parts[-1], kind):
        return False
    patterns = [name.split("/") for name in names]
    return any(matches(pattern, parts) or matches(pattern, parts[:-1]) for pattern in patterns)

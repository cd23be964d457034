"""The files that a path, a directory or a pattern names, each once."""

from __future__ import annotations

import fnmatch
import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING

from suffice.errors import UsageError
from suffice.pipeline.rows.sources.file_access import PinnedFile, objects_below, status

if TYPE_CHECKING:
    from collections.abc import Sequence


_FORMATS = {"parquet": "Parquet", "csv": "CSV"}


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
        if listed or (may_be_empty and not address.lower().endswith(f".{kind}")):
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
    return glob.has_magic(pattern) and _matches(Path(pattern).parts, position.parts)


def is_data_file(name: str, kind: str = "parquet") -> bool:
    """Tell whether a directory's file of this name is read: hidden ones, and markers, are not."""
    return Path(name).suffix.lower() == f".{kind}" and not name.startswith((".", "_"))


def _matches(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    """Match the parts of a path as `glob` does: two asterisks are any number of folders, none hidden."""
    if not pattern:
        return not parts
    first, *rest = pattern
    if first == "**":
        visible = bool(parts) and not parts[0].startswith(".")
        return (
            _matches(rest, parts)
            if rest and _matches(rest, parts)
            else visible and (_matches(pattern, parts[1:]) or (not rest and len(parts) == 1))
        )
    if not parts or (parts[0].startswith(".") and not first.startswith(".")):
        return False
    return fnmatch.fnmatchcase(parts[0], first) and _matches(rest, parts[1:])

"""The files that a path, a directory or a pattern names, each once."""

from __future__ import annotations

import glob
from pathlib import Path

from suffice.errors import UsageError


def list_files(pattern: str) -> tuple[str, ...]:
    """Return the Parquet files at a path, in a directory or of a pattern, in order of their paths.

    Raises
    ------
    UsageError
        Where there is none, or two names are one file: its rows would count twice.
    """
    try:
        return _listed(pattern)
    except UsageError:
        raise
    except (OSError, ValueError):  # too long a name, no access, or characters that no file system takes
        message = f"source.parquet: {pattern} cannot be looked at: name files that can be read"
        raise UsageError(message) from None


def _listed(pattern: str) -> tuple[str, ...]:
    position = Path(pattern)
    if position.is_dir():
        found = [
            str(path)
            for path in position.iterdir()
            if path.suffix.lower() == ".parquet" and not path.name.startswith((".", "_"))
        ]
    elif position.exists():
        found = [pattern]
    else:
        found = glob.glob(pattern, recursive=True)  # noqa: PTH207 - as a shell would, without hidden files
    paths = sorted(found)
    if not paths:
        hint = f"; for folders below it write {pattern}/**/*.parquet" if position.is_dir() else ""
        message = f"source.parquet: no Parquet file at {pattern}{hint}"
        raise UsageError(message)
    for path in paths:
        if not Path(path).is_file():  # left out in silence, its rows would be missed
            message = f"source.parquet: {path} is no file: name its folder or remove it"
            raise UsageError(message)
    known: dict[tuple[int, int], str] = {}
    for path in paths:
        status = Path(path).stat()
        first = known.setdefault((status.st_dev, status.st_ino), path)
        if first != path:
            message = f"source.parquet: {first} and {path} are the same file, so its rows would count twice"
            raise UsageError(message)
    return tuple(paths)

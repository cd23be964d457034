"""Domains as a spec declares them: a list, a range, periods, or a file beside it.

A file is read from the spec's own folder alone, and never quoted.
"""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from suffice.pipeline.terms.declaration.domains import (
    MOST_CELLS,
    Domain,
    DomainKind,
    duplicate,
    period_count,
    period_labels,
)
from suffice.pipeline.terms.declaration.scalars import read_every, read_integer, read_text
from suffice.pipeline.terms.declaration.spec_text import read_small_file
from suffice.pipeline.terms.declaration.wording import is_safe, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

_LARGEST_BYTES = 128 * 2**20
_LONGEST_NAME = 80


def read_entries(name: str, directory: Path, column: str) -> tuple[str, ...]:
    """Return the entries of a domain file, one a line.

    Parameters
    ----------
    name : str
        The file, relative to the spec's folder.
    directory : Path
        The spec's folder: nothing outside of it is read, also through a link.
    column : str
        The file may begin with this name as its header.

    Raises
    ------
    ValueError
        Naming the file and the rule; of its content it says numbers of lines, and nothing else.
    """
    named = f"the domain file {name[:_LONGEST_NAME]!r}"
    lines = _lines(name, directory, column, named, width=1)
    entries = tuple(row[0] for _, row in lines)
    _refuse_duplicates(entries, [number for number, _ in lines], named)
    return entries


def read_pairs(name: str, directory: Path, column: str) -> dict[str, str]:
    """Return the entries of a file of two columns: what a public map leads to, by its key.

    Parameters
    ----------
    name : str
        The file, relative to the spec's folder.
    directory : Path
        The spec's folder: nothing outside of it is read, also through a link.
    column : str
        The file may begin with a header whose first name is this.

    Raises
    ------
    ValueError
        Naming the file and the rule; of its content it says numbers of lines, and nothing else.
    """
    named = f"the map file {name[:_LONGEST_NAME]!r}"
    lines = _lines(name, directory, column, named, width=2)
    _refuse_duplicates([row[0] for _, row in lines], [number for number, _ in lines], named)
    return {row[0]: row[1] for _, row in lines}


def read_key_table(
    name: str, directory: Path, levels: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return a table of a tree's keys: its columns, and a row for every leaf.

    Parameters
    ----------
    name : str
        The file, relative to the spec's folder.
    directory : Path
        The spec's folder: nothing outside of it is read, also through a link.
    levels : tuple of str
        The tree's levels, root first: the file's header, in this order; the root may be left out.

    Raises
    ------
    ValueError
        Naming the file and the rule; of its content it says numbers of lines, and nothing else.
    """
    named = f"the table of keys {name[:_LONGEST_NAME]!r}"
    rows = _rows(name, directory, named)
    columns = tuple(rows[0][1]) if rows else ()
    if columns not in {levels, levels[1:]}:
        missing = [level for level in levels[1:] if level not in columns]
        other = f"lacks {', '.join(missing)}" if missing else "is another"
        message = (
            f"{named} begins with its levels in their order, as {','.join(levels)!r}; the root may be left "
            f"out: its first line {other}"
        )
        raise ValueError(message)
    lines = _checked(rows[1:], named, len(columns))
    empty = next((number for number, row in lines if not all(key.strip() for key in row)), None)
    if empty is not None:
        message = f"{named}: a key in line {empty} is empty: write every level of every leaf"
        raise ValueError(message)
    pair = duplicate([row[-1] for _, row in lines])
    if pair is not None:
        first, second = (lines[position][0] for position in pair)
        message = (
            f"{named}: the keys of {columns[-1]!r} in lines {first} and {second} are duplicates, "
            "as text or as numbers: a key lies below one parent, and has one line"
        )
        raise ValueError(message)
    return columns, tuple(tuple(row) for _, row in lines)


def _lines(name: str, directory: Path, column: str, named: str, *, width: int) -> list[tuple[int, list[str]]]:
    """Return the lines of a file and their numbers, without a header."""
    lines = _rows(name, directory, named)
    if lines and len(lines[0][1]) == width and lines[0][1][0].strip().casefold() == column.casefold():
        if lines[0][1][0] != column:
            message = (
                f"{named} begins with the column's name in other letters: write it as the spec does, or "
                "above this line if that is an entry"
            )
            raise ValueError(message)
        lines = lines[1:]
    return _checked(lines, named, width)


def _rows(name: str, directory: Path, named: str) -> list[tuple[int, list[str]]]:
    """Return the rows of a CSV file that are not empty, and the numbers of their lines."""
    data = _read(name, directory, named)
    try:
        reader = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        return [(reader.line_num, row) for row in reader if row]
    except (UnicodeDecodeError, csv.Error):
        message = f"{named} cannot be read as UTF-8 CSV"
        raise ValueError(message) from None


def _checked(lines: list[tuple[int, list[str]]], named: str, width: int) -> list[tuple[int, list[str]]]:
    """Return lines of so many columns, each, whose texts can be seen."""
    other = next((number for number, row in lines if len(row) != width), None)
    if other is not None:
        needs = "one column, one entry a line" if width == 1 else f"{width} columns"
        message = f"{named} needs {needs}: line {other} has {'more' if width == 1 else 'another number'}"
        raise ValueError(message)
    if not lines:
        message = f"{named} is empty: it needs at least one entry"
        raise ValueError(message)
    if len(lines) > MOST_CELLS:
        message = f"{named} has {len(lines)} entries; at most {MOST_CELLS} cells are released"
        raise ValueError(message)
    unsafe = next((number for number, row in lines if not all(map(is_safe, row))), None)
    if unsafe is not None:
        message = f"{named}: line {unsafe} has a character that cannot be seen, or turns text around"
        raise ValueError(message)
    return lines


def _read(name: str, directory: Path, named: str) -> bytes:
    windows = PureWindowsPath(name)
    if windows.drive or windows.root or {".."} & {*PurePosixPath(name).parts, *windows.parts}:
        message = f"{named} is not beside the spec: name a file in its folder, without .. or an absolute path"
        raise ValueError(message)
    home = os.path.realpath(directory)
    try:
        path = os.path.realpath(os.path.join(home, name))  # noqa: PTH118 - as the line below
        is_beside = os.path.commonpath([home, path]) == home
        data = read_small_file(path, _LARGEST_BYTES) if is_beside else b""
    except (OSError, ValueError):  # a name may hold what no path can
        message = f"{named} beside the spec cannot be read: it is no readable, regular file"
        raise ValueError(message) from None
    if not is_beside:
        message = f"{named} is a link out of the spec's folder: copy the file into it"
        raise ValueError(message)
    if data is None:
        message = f"{named} is larger than {_LARGEST_BYTES >> 20} MiB"
        raise ValueError(message)
    return data


def _refuse_duplicates(entries: Sequence[str], lines: Sequence[int], named: str) -> None:
    pair = duplicate(entries)
    if pair is not None:
        first, second = (lines[position] for position in pair)
        message = f"{named}: lines {first} and {second} are duplicates, as text or as numbers"
        raise ValueError(message)


def domain_size(value: object) -> int:
    """Return how many keys an entry declares, without listing them; 1 of a file, or what is no domain.

    Raises
    ------
    ValueError
        Where a period is not one.
    """
    if isinstance(value, list):
        return max(1, len(value))
    if isinstance(value, dict) and set(value) == {"from", "to", "every"}:
        return period_count(read_text(value["from"]), read_text(value["to"]), read_every(value["every"]))
    if isinstance(value, dict) and set(value) == {"range"}:
        return len(parse_domain(value, directory=Path(), column=""))
    return 1


def parse_domain(value: object, *, directory: Path | None, column: str) -> Domain:
    """Read a domain: a list, ``{range: [a, b]}``, ``{from, to, every}`` or ``{file: name.csv}``.

    Parameters
    ----------
    value : object
        The domain as read: texts in lists and mappings.
    directory : Path or None
        Where the spec stands; domain files are read from this folder alone. None: a plan, which names no
        file.
    column : str
        A domain file may begin with this name as its header.

    Raises
    ------
    ValueError
        Naming the rule and the value.
    """
    if isinstance(value, list):
        return _listed([read_text(entry) for entry in value])
    if isinstance(value, dict) and set(value) == {"range"}:
        ends = value["range"]
        if not isinstance(ends, list) or len(ends) != 2:
            message = "a range is written as {range: [first, last]}"
            raise ValueError(message)
        first, last = (read_integer(end) for end in ends)
        if not -(2**63) <= first <= last < 2**63 - 1:
            message = f"the range [{first}, {last}] is empty or leaves int64"
            raise ValueError(message)
        if last - first >= MOST_CELLS:
            message = f"the range has {last - first + 1} keys; at most {MOST_CELLS} cells are released"
            raise ValueError(message)
        return Domain(kind=DomainKind.RANGE, keys=range(first, last + 1))
    if isinstance(value, dict) and set(value) == {"from", "to", "every"}:
        every = read_every(value["every"])
        return Domain(
            kind=DomainKind.PERIOD,
            keys=period_labels(read_text(value["from"]), read_text(value["to"]), every),
            every=every,
        )
    if directory is not None and isinstance(value, dict) and set(value) == {"file"}:
        keys = read_entries(read_text(value["file"]), directory, column)
        return Domain(kind=DomainKind.LIST, keys=keys)
    message = "a domain is a list, {range: [first, last]}, {from: a, to: b, every: month} or {file: name.csv}"
    raise ValueError(message)


def _listed(keys: list[str]) -> Domain:
    if not keys:
        message = "the domain is empty: declare at least one entry"
        raise ValueError(message)
    for key in keys:
        if not is_safe(key):
            message = f"the entry '{shown(key)}' has a character that cannot be seen, or turns text around"
            raise ValueError(message)
    pair = duplicate(keys)
    if pair is not None:
        first, second = (keys[position] for position in pair)
        message = f"the entries {first!r} and {second!r} are duplicates, as text or as numbers"
        raise ValueError(message)
    return Domain(kind=DomainKind.LIST, keys=tuple(keys))

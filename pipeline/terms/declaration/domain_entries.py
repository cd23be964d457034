"""Domains as a spec declares them: a list, a range, periods, or a file beside it."""

from __future__ import annotations

from pathlib import Path

from suffice.pipeline.terms.declaration.domain_files import read_entries
from suffice.pipeline.terms.declaration.domains import (
    MOST_CELLS,
    Domain,
    DomainKind,
    duplicate,
    period_count,
    period_labels,
)
from suffice.pipeline.terms.declaration.safe_text import is_safe, shown
from suffice.pipeline.terms.declaration.scalars import read_every, read_integer, read_text


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

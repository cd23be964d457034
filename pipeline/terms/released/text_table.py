"""Plain text tables for terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return aligned columns under a ruled heading.

    Examples
    --------
    >>> print(text_table(["origin", "n"], [["EWR", "12"]]))
    origin  n
    ------  --
    EWR     12
    """
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    lines = [columns, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )

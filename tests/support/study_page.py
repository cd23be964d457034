"""The page of the studies' results, read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studies.page import heading
from studies.result import COLUMNS

if TYPE_CHECKING:
    from studies.catalogue import Study


def rows_of_page(text: str, study: Study) -> list[dict[str, str]]:
    """Return the rows of a study's table on the page."""
    section = text.split(f"\n{heading(study)}\n")[1].split("\n## ", maxsplit=1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    return [
        dict(
            zip(COLUMNS, (cell.strip().replace("\\|", "|") for cell in line[1:-1].split(" | ")), strict=True)
        )
        for line in lines
    ]

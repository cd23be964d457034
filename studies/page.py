"""Write `docs/papers.md` from a run: ``python -m studies.page build/studies docs/papers.md``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from studies.catalogue import STUDIES, Study, module_of
from studies.result import COLUMNS, read_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

TEMPLATE = Path(__file__).with_name("papers.md")
"""What stands before the studies' tables; a line of its own takes the list of studies."""
PLACE = "STUDIES\n"


def page(rows_of: Mapping[str, Sequence[Mapping[str, str]]], studies: Iterable[Study] = STUDIES) -> str:
    """Return the page.

    Parameters
    ----------
    rows_of : mapping of str to sequence of mapping of str to str
        The rows of each study's rows, by its name.
    studies : iterable of Study
    """
    kept = list(studies)
    listed = ["| result | study | data |", "|---|---|---|"]
    listed += [f"| {own.paper}, {own.result} | `{own.name}` | {own.data} |" for own in kept]
    lines = [TEMPLATE.read_text(encoding="utf-8").replace(PLACE, "\n".join([*listed, ""]))]
    for own in kept:
        lines += [heading(own), ""]
        lines += [f"Study `{own.name}`. Command: `python -m studies {own.name}`.", ""]
        lines += [module_of(own).CONCLUSION, ""]
        lines += [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
        lines += [table_line(row) for row in rows_of[own.name]]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def heading(study: Study) -> str:
    """Return the heading of a study: whoever knows the paper looks for its figure, not for our name."""
    result = f"{study.paper}, {study.result}"
    return f"## {result[0].upper()}{result[1:]}"


def table_line(row: Mapping[str, str]) -> str:
    """Return a row as a line of the page's tables."""
    cells = (row[column].replace("|", "\\|") for column in COLUMNS)
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the page from the folder of a run."""
    folder, target = map(Path, sys.argv[1:])
    target.write_text(page({own.name: read_rows(folder / f"{own.name}.csv") for own in STUDIES}), "utf-8")


if __name__ == "__main__":
    main()

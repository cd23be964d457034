"""Write `docs/papers.md` from a run: ``python -m studies.page build/studies docs/papers.md``."""

from __future__ import annotations

import argparse
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from studies.catalogue import STUDIES, Study, module_of
from studies.result import COLUMNS, read_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

TEMPLATE = Path(__file__).with_name("papers.md")
"""What stands before the studies' tables; a line of its own takes the list of studies."""
PLACE = "STUDIES\n"
WIDTH = 118
"""Characters a line of text."""


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
        lines += [*wrapped(module_of(own).CONCLUSION), ""]
        lines += [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
        lines += [table_line(row) for row in rows_of[own.name]]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def wrapped(text: str) -> list[str]:
    """Return a text in lines, none of which begins as a list, a quotation or a heading does."""
    held = re.sub(r" (?=(?:[-+*#>]|\d+[.)])(?:\s|$))", "\0", text)
    return [line.replace("\0", " ") for line in textwrap.wrap(held, WIDTH, break_on_hyphens=False)]


def heading(study: Study) -> str:
    """Return the heading of a study: whoever knows the paper looks for its figure, not for our name."""
    result = f"{study.paper}, {study.result}"
    return f"## {result[0].upper()}{result[1:]}"


def table_line(row: Mapping[str, str]) -> str:
    """Return a row as a line of the page's tables."""
    cells = (row[column].replace("|", "\\|") for column in COLUMNS)
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str] | None = None) -> None:
    """Write the page from the folder of a run; the exit status is 2 where there is none."""
    parser = argparse.ArgumentParser(prog="python -m studies.page", description="Write the page of a run.")
    parser.add_argument("folder", type=Path, help="where `python -m studies all` wrote, build/studies")
    parser.add_argument("page", type=Path, help="docs/papers.md")
    chosen = parser.parse_args(arguments)
    try:
        rows_of = {own.name: read_rows(chosen.folder / f"{own.name}.csv") for own in STUDIES}
    except FileNotFoundError as missing:
        parser.error(f"{chosen.folder}: no run of all studies; {Path(missing.filename).name} is not there")
    chosen.page.write_text(page(rows_of), "utf-8")


if __name__ == "__main__":
    main()

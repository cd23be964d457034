"""Write `docs/papers.md` from a run: ``python -m studies.page build/studies docs/papers.md``."""

from __future__ import annotations

import argparse
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from studies.catalogue import STUDIES, Study, module_of
from studies.layout import WIDTH, tables
from studies.result import COLUMNS, read_rows, write_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

TEMPLATE = Path(__file__).with_name("papers.md")
"""What stands before the studies' tables."""
NUMBERS = Path(__file__).with_name("numbers")
"""Every row of the run that the page shows, a file a study: tests hold the studies' numbers against it."""


def page(rows_of: Mapping[str, Sequence[Mapping[str, str]]], studies: Iterable[Study] = STUDIES) -> str:
    """Return the page.

    Parameters
    ----------
    rows_of : mapping of str to sequence of mapping of str to str
        The rows of each study's rows, by its name.
    studies : iterable of Study
    """
    lines = [TEMPLATE.read_text(encoding="utf-8")]
    for study in studies:
        lines += [heading(study), ""]
        lines += [*wrapped(f"`{study.name}` ({study.data}). {module_of(study).CONCLUSION}"), ""]
        lines += [*tables(study.name, rows_of[study.name]), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip("\n") + "\n"


def wrapped(text: str) -> list[str]:
    """Return a text in lines, none of which begins as a list, a quotation or a heading does."""
    held = re.sub(r" (?=(?:[-+*#>]|\d+[.)])(?:\s|$))", "\0", text)
    return [line.replace("\0", " ") for line in textwrap.wrap(held, WIDTH, break_on_hyphens=False)]


def heading(study: Study) -> str:
    """Return the heading of a study: whoever knows the paper looks for its figure, not for our name."""
    result = f"{study.paper}, {study.result}"
    return f"## {result[0].upper()}{result[1:]}"


def numbers_of(folder: Path) -> dict[str, list[dict[str, str]]]:
    """Return the rows of each study, by its name, from a folder with a CSV file for each."""
    return {study.name: read_rows(folder / f"{study.name}.csv") for study in STUDIES}


def main(arguments: list[str] | None = None) -> None:
    """Write the page and its numbers from the folder of a run; the exit status is 2 where there is none."""
    parser = argparse.ArgumentParser(prog="python -m studies.page", description="Write the page of a run.")
    parser.add_argument("folder", type=Path, help="where `python -m studies all` wrote, build/studies")
    parser.add_argument("page", type=Path, help="docs/papers.md")
    chosen = parser.parse_args(arguments)
    try:
        rows_of = numbers_of(chosen.folder)
    except FileNotFoundError as missing:
        parser.error(f"{chosen.folder}: no run of all studies; {Path(missing.filename).name} is not there")
    for name, rows in rows_of.items():
        write_rows(NUMBERS / f"{name}.csv", COLUMNS, [tuple(row.values()) for row in rows])
    chosen.page.write_text(page(rows_of), "utf-8")


if __name__ == "__main__":
    main()

"""The order of the site: that of `docs/README.md`, which lists every page once."""

from __future__ import annotations

import os
import re
from pathlib import Path

LISTED = "docs/README.md"
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
PAGE = re.compile(r"\]\(([^)\s#:]+\.(?:md|ipynb))(?:#[^)]*)?\)")
COLUMNS = {"How-to": ("How to run it", "How to read it")}
"""Captions of a section whose table has a column for each reader."""
MADE = {
    "Reference": ("docs/reference/api/index.rst", "docs/reference/commands/index.md"),
}


def contents(repository: Path, everything: list[Path]) -> str:
    """Return the trees of contents of the front page.

    Parameters
    ----------
    repository : Path
    everything : list of Path
        Pages within the repository, those made from the code among them. What `docs/README.md` does not
        list comes last; what another page's tree holds is left to it.

    Returns
    -------
    str
    """
    text = (repository / LISTED).read_text(encoding="utf-8")
    trees: dict[str, list[str]] = {}
    known = {LISTED, "docs/papers.md"}
    parts = HEADING.split(text)
    for section, body in zip(parts[1::2], parts[2::2], strict=True):
        for caption, column in captions(section, body):
            tree = trees.setdefault(caption, [])
            for target in PAGE.findall(column):
                page = os.path.normpath(Path("docs", target))
                if page not in known:
                    known.add(page)
                    tree.append(page)
    for section, made in MADE.items():
        trees.setdefault(section, []).extend(page for page in made if page not in known)
        known.update(made)
    subordinate = ("docs/reference/api/", "docs/reference/commands/")
    names = [page.as_posix() for page in everything]
    trees["Project"] += [name for name in names if name not in known and not name.startswith(subordinate)]
    return "\n".join(tree_of(caption, tree) for caption, tree in trees.items() if tree)


def captions(section: str, body: str) -> list[tuple[str, str]]:
    """Return the captions of a section, each with the text that lists its pages."""
    if section not in COLUMNS:
        return [(section, body)]
    rows = [line.strip("| ").split(" | ") for line in body.splitlines() if line.startswith("|")]
    columns = ["\n".join(row[place] for row in rows if place < len(row)) for place in range(2)]
    return list(zip(COLUMNS[section], columns, strict=True))


def tree_of(caption: str, tree: list[str]) -> str:
    """Return one tree of contents."""
    pages = "\n".join("/" + str(Path(page).with_suffix("")) for page in tree)
    return f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n"

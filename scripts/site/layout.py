"""Lays out what Sphinx builds: the repository's pages where they are, beside pages made from the code."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.site.api import api_pages
from scripts.site.commands import command_pages
from scripts.site.contents import contents, decisions_page

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDERS = ("benchmarks", "deploy", "docs", "pipeline", "readers", "schemas", "tests/vectors")
LEFT_OUT = {"node_modules", "site"}
LINK = re.compile(r"\]\(([^)\s#:]+)(#[^)\s]*)?\)")
CONTENTS = "<!-- contents -->"


def pages(repository: Path = REPOSITORY) -> list[Path]:
    """Return every page and notebook of the site, as paths within the repository."""
    found = set(repository.glob("*.md"))
    for folder in FOLDERS:
        for pattern in ("*.md", "*.ipynb"):
            found.update((repository / folder).rglob(pattern))
    inside = (path.relative_to(repository) for path in found)
    return sorted(path for path in inside if not LEFT_OUT.intersection(path.parts))


def lay_out(into: Path, repository: Path = REPOSITORY) -> list[Path]:
    """Write everything that Sphinx reads into an empty folder.

    A link to a folder becomes one to its README or, for decisions, to a list of them; a file that is no page
    is copied where a page links to it, and becomes a figure or a download.

    Parameters
    ----------
    into : Path
        It is made anew.
    repository : Path

    Returns
    -------
    list of Path
        The pages, within the repository.
    """
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(repository / "docs/site", into / "docs/site")
    listed = pages(repository)
    for page in listed:
        text = (repository / page).read_text(encoding="utf-8")
        for target in linked_files(repository, page, text):
            copy = into / target
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(repository / target, copy)
        write(into / page, linked_pages(repository, page, text))
    made = {"docs/decisions/index.md": decisions_page(repository), **api_pages(), **command_pages()}
    for name, text in made.items():
        write(into / name, text)
    front = into / "docs/index.md"
    everything = [*listed, *map(Path, made)]
    write(front, front.read_text(encoding="utf-8").replace(CONTENTS, contents(repository, everything)))
    return listed


def write(path: Path, text: str) -> None:
    """Write a text, with the folders that it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def linked_files(repository: Path, page: Path, text: str) -> Iterator[Path]:
    """Yield the files in the repository that a page links to and that are no pages themselves."""
    for target, _ in LINK.findall(text):
        path = (repository / page.parent / target).resolve()
        if path.is_file() and path.suffix not in {".md", ".ipynb"}:
            yield path.relative_to(repository.resolve())


def linked_pages(repository: Path, page: Path, text: str) -> str:
    """Return a page whose links to folders lead to the pages that stand for them."""

    def of_folder(match: re.Match[str]) -> str:
        target = match[1]
        folder = repository / page.parent / target
        if not folder.is_dir():
            return match[0]
        stands_for = "README.md" if (folder / "README.md").is_file() else "index.md"
        return f"]({target.rstrip('/')}/{stands_for}{match[2] or ''})"

    return LINK.sub(of_folder, text)

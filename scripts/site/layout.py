"""Lays out what Sphinx builds: the repository's pages where they are, beside pages made from the code."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.site.api import api_pages
from scripts.site.commands import command_pages
from scripts.site.contents import LISTED, contents

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDERS = ("benchmarks", "deploy", "docs", "pipeline", "readers", "schemas", "tests/vectors")
LEFT_OUT = {"node_modules", "site"}
LINK = re.compile(r"\]\(([^)\s#:]+)(#[^)\s]*)?\)")
CONTENTS = "<!-- contents -->"
FRONT = "docs/index.md"
"""What `docs/README.md`, the list of every page, is called in the site."""
HIDE_CONTENTS = "---\nhide-toc: true\n---\n\n"
NO_PAGES = ("docs/decisions", "docs/papers.md")
"""Texts for who works on the project: the site has them as files to download, where a page links to them."""


def pages(repository: Path = REPOSITORY) -> list[Path]:
    """Return every page and notebook of the site, as paths within the repository."""
    paths = set(repository.glob("*.md"))
    for folder in FOLDERS:
        for pattern in ("*.md", "*.ipynb"):
            paths.update((repository / folder).rglob(pattern))
    inside = (path.relative_to(repository) for path in paths)
    return sorted(path for path in inside if not LEFT_OUT.intersection(path.parts) and not left_out(path))


def left_out(path: Path) -> bool:
    """Tell whether a text within the repository is no page of the site."""
    return any(path.is_relative_to(name) for name in NO_PAGES)


def lay_out(into: Path, repository: Path = REPOSITORY) -> list[Path]:
    """Write everything that Sphinx reads into an empty folder.

    A link to a folder becomes one to its README, or to a list of its files; a file that is no page is copied
    where a page links to it, and becomes a figure or a download. `docs/README.md` is the front page.

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
            copy = into / (f"{target}.txt" if left_out(target) else target)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(repository / target, copy)
        name = FRONT if page == Path(LISTED) else page
        write(into / name, linked_pages(repository, page, text))
    made = {
        **folder_pages(repository, listed),
        **api_pages(),
        **command_pages(),
    }
    for name, text in made.items():
        write(into / name, text)
    front = into / FRONT
    trees = contents(repository, [*listed, *map(Path, made)])
    write(front, HIDE_CONTENTS + front.read_text(encoding="utf-8").replace(CONTENTS, trees))
    return listed


def write(path: Path, text: str) -> None:
    """Write a text, with the folders that it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def linked_files(repository: Path, page: Path, text: str) -> Iterator[Path]:
    """Yield the files in the repository that a page links to and that are no pages themselves."""
    for target, _ in LINK.findall(text):
        path = (repository / page.parent / target).resolve()
        if path.is_file():
            inside = path.relative_to(repository.resolve())
            if path.suffix not in {".md", ".ipynb"} or left_out(inside):
                yield inside


def has_page(repository: Path, folder: Path) -> bool:
    """Tell whether a folder's README stands for it in the site."""
    readme = folder / "README.md"
    return readme.is_file() and not left_out(readme.relative_to(repository.resolve()))


def folder_pages(repository: Path, listed: list[Path]) -> dict[str, str]:
    """Return lists of files that stand for the folders that pages link to and that have no README."""
    made = {}
    for page in listed:
        for target, _ in LINK.findall((repository / page).read_text(encoding="utf-8")):
            folder = (repository / page.parent / target).resolve()
            if folder.is_dir() and not has_page(repository, folder):
                name = folder.relative_to(repository.resolve()).as_posix()
                files = sorted(path.name for path in folder.iterdir() if path.is_file())
                rows = "\n".join(f"- `{file}`" for file in files)
                made[f"{name}/index.md"] = f"# {name}\n\nFiles of this folder:\n\n{rows}\n"
    return made


def linked_pages(repository: Path, page: Path, text: str) -> str:
    """Return a page whose links lead to what stands in the site for folders, the front page and no pages."""
    root = repository.resolve()

    def standing(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        path = (repository / page.parent / target).resolve()
        if path.is_file() and left_out(path.relative_to(root)):
            return f"]({target}.txt)"
        if path == root / LISTED:
            return f"]({target.removesuffix('README.md')}index.md{anchor})"
        if not path.is_dir():
            return match[0]
        name = "README.md" if has_page(repository, path) and path != root / "docs" else "index.md"
        return f"]({target.rstrip('/')}/{name}{anchor})"

    return LINK.sub(standing, text)

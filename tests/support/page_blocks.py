"""Every block of code on the pages, and what each says of how it is run.

A comment right above a block speaks for the block; one that stands by itself speaks for the page::

    <!-- blocks run by: tests/cli/test_windows.py -->   every block of the page that says nothing else
    <!-- runs in: demo -->                              the same, by `support.running_pages`, in that place
    <!-- run by: tests/flows/test_schedule.py -->       this block
    <!-- not run: a formula -->                         this block is not, and why

In a page that runs in a place, `<!-- file: NAME -->` says that a block is written to a file,
`<!-- prints -->` that it is what was printed last, and `<!-- exit 3 -->` that its last command ends so.
The front page carries no comments, as a package index shows it: `OF_THE_FRONT_PAGE` speaks for its blocks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.DOTALL)
MARK = re.compile(r"(blocks run by|run by|not run|runs in|file|prints|exit)(?::?\s+(.+))?", re.DOTALL)
OF_THE_FRONT_PAGE = {
    "import suffice": {"run by": "tests/cli/test_running_pages.py"},
    "suffice init": {"not run": "a summary; the tutorials run its commands"},
    "source ->": {"not run": "a drawing"},
    "make demo": {"not run": "it installs; .ci/run does the second, `make demo` is tried by hand"},
}
"""What each block of `README.md` would say, by how it begins."""
OF_A_PAGE = ("blocks run by", "runs in")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of code.

    Attributes
    ----------
    line : int
        Where it begins, from 1.
    language : str
        Empty where none is stated, and of indented blocks.
    text : str
    marks : mapping of str to str
        What comments right above it say.
    """

    line: int
    language: str
    text: str
    marks: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page, with the marks that speak for all of it."""

    path: Path
    marks: Mapping[str, str]
    blocks: tuple[Block, ...]

    def unaccounted(self) -> list[int]:
        """Return the lines of the blocks that say neither by what they are run nor why they are not."""
        if any(mark in self.marks for mark in OF_A_PAGE):
            return []
        return [block.line for block in self.blocks if not {"run by", "not run"} & block.marks.keys()]

    def tests(self) -> Iterator[str]:
        """Yield the tests that the page and its blocks name."""
        for marks in (self.marks, *(block.marks for block in self.blocks)):
            for mark in ("blocks run by", "run by"):
                if mark in marks:
                    yield from re.split(r",\s*", marks[mark])


def read_page(path: Path) -> Page:
    """Return a page's blocks and marks.

    Raises
    ------
    ValueError
        Where a mark has nothing to speak for.
    """
    of_page: dict[str, str] = {}
    above: dict[str, str] = {}
    blocks = []
    for token in MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8")):
        if token.type == "html_block":
            for mark, said in marks_in(token.content):
                (of_page if mark in OF_A_PAGE else above)[mark] = said
            continue
        if token.type in {"fence", "code_block"} and not token.info.startswith("{"):
            line = 1 + (token.map or [0])[0]
            marks = above or of_the_front_page(path, token.content)
            blocks.append(Block(line=line, language=token.info.strip(), text=token.content, marks=marks))
            above = {}
        elif above:
            message = f"{path}: no block of code follows the mark {above}"
            raise ValueError(message)
    return Page(path=path, marks=of_page, blocks=tuple(blocks))


def of_the_front_page(path: Path, text: str) -> dict[str, str]:
    """Return what a block of the front page would say."""
    if not (path.name == "README.md" and (path.parent / "pyproject.toml").is_file()):
        return {}
    return next((marks for start, marks in OF_THE_FRONT_PAGE.items() if text.startswith(start)), {})


def marks_in(html: str) -> Iterator[tuple[str, str]]:
    """Yield the marks among the comments of a piece of HTML."""
    for comment in COMMENT.findall(html):
        match = MARK.fullmatch(comment)
        if match:
            yield match[1], " ".join((match[2] or "").split())

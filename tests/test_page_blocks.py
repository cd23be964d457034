"""Every block of code on every page is run by a test that the page names, or says why it is not."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from support.page_blocks import Page, read_page
from support.running_pages import PLACES

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDERS = ("docs", "deploy")
PAGES = sorted(
    [REPOSITORY / "README.md", *(path for name in FOLDERS for path in (REPOSITORY / name).rglob("*.md"))]
)
FEWEST_BLOCKS = 150
"""A parser that finds no blocks must not pass."""


read = cache(read_page)


def named(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_every_block_says_how_it_is_run(path: Path) -> None:
    page = read(path)
    assert not page.unaccounted(), "say above the block: <!-- run by: TEST --> or <!-- not run: REASON -->"
    assert page.marks.get("runs in", "none") in {*PLACES, "none"}
    for block in page.blocks:
        assert "not run" not in block.marks or block.marks["not run"], (path, block.line)
    for test in page.tests():
        assert speaks_of(REPOSITORY / test, path), f"{test} does not speak of {path.name}"


def speaks_of(test: Path, page: Path) -> bool:
    """Tell whether a test, or a support module that it imports, names the page, or a family of pages."""
    text = test.read_text(encoding="utf-8")
    for module in re.findall(r"^from support\.(\w+) import", text, re.MULTILINE):
        text += (REPOSITORY / "tests" / "support" / f"{module}.py").read_text(encoding="utf-8")
    stem = page.stem.rpartition("-")[0]
    return page.stem in text or (bool(stem) and f"{stem}-{{" in text)


def test_blocks_are_found() -> None:
    pages = [read(path) for path in PAGES]
    assert sum(len(page.blocks) for page in pages) >= FEWEST_BLOCKS


def page_of(tmp_path: Path, text: str) -> Page:
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    return read_page(path)


def test_a_block_without_a_mark_is_named(tmp_path: Path) -> None:
    list_item = "- of a list:\n\n  ```sh\n  three\n  ```\n"
    text = f"# A\n\n    one\n\n<!-- not run: a drawing -->\n\n    two\n\n{list_item}"
    page = page_of(tmp_path, text)
    assert [block.text for block in page.blocks] == ["one\n", "two\n", "three\n"]
    assert page.unaccounted() == [3, 11]
    assert page_of(tmp_path, f"<!-- runs in: demo -->\n\n{text}").unaccounted() == []


def test_a_mark_above_prose_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no block of code follows"):
        page_of(tmp_path, "<!-- not run: a drawing -->\n\nProse.\n\n    block\n")


def test_a_test_that_does_not_speak_of_the_page_is_found_out(tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text('PAGE = "docs/how-to/rehearse.md"\n', encoding="utf-8")
    assert speaks_of(test, Path("docs/how-to/rehearse.md"))
    assert not speaks_of(test, Path("docs/how-to/recover.md"))

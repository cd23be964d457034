"""The tutorials and how-tos that run in a place of `support.running_pages`, as they are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from suffice.cli.demo import run_demo
from support.page_blocks import Block, read_page
from support.running_pages import commands, not_printed, run_commands, run_page

if TYPE_CHECKING:
    from support.running import Runner

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = {
    path.relative_to(REPOSITORY).as_posix(): path
    for path in (REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md"))
    if "<!-- runs in:" in path.read_text(encoding="utf-8")
}


@pytest.mark.audit
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", PAGES)
def test_the_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffice: Runner) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(read_page(PAGES[name]), suffice, monkeypatch)


@pytest.mark.audit
def test_the_front_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`README.md` uses what `make demo` makes."""
    monkeypatch.chdir(tmp_path)
    run_demo(Path("demo"), quiet=True)
    blocks = read_page(REPOSITORY / "README.md").blocks
    (code,) = [block.text for block in blocks if block.language == "python"]
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102 - our own text


@pytest.mark.audit
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make docs` runs it in a kernel; here its cells run one after the other."""
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((REPOSITORY / "docs/notebooks/posterior.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 5
    names: dict[str, Any] = {}
    for cell in cells:
        exec(compile(cell, "posterior.ipynb", "exec"), names)  # noqa: S102 - our own text
    low, high = names["posterior"].credible_interval("probability", mass=0.999999)[0]
    assert low < names["truth"]["north"] < high
    assert not any(cell.get("outputs") for cell in notebook["cells"])


def test_there_are_such_pages() -> None:
    assert len(PAGES) >= 10


@pytest.mark.parametrize(
    ("expected", "said", "missing"),
    [
        ("status  published", "status             published\n", []),
        ("EWR  117129  7.3\n...", "EWR   117131    7.34847\n", []),
        ("signed by nobody", "signed by someone\n", ["signed by nobody"]),
        ("in a.parquet, sha256 f4fec2ee50ee6573...", "in a.parquet, sha256 0000c2ee50ee6999...\n", []),
    ],
)
def test_what_a_page_shows_is_compared_but_for_numbers(expected: str, said: str, missing: list[str]) -> None:
    assert not_printed(expected, said) == missing


def test_what_is_no_command_of_suffice_is_not_passed_over(
    suffice: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = Block(line=1, language="sh", text="rm -r releases\n", marks={})
    with pytest.raises(AssertionError, match="no command of suffice"):
        run_commands(block, suffice, monkeypatch, "page.md:1")


def test_commands_go_on_over_lines_and_end_at_comments() -> None:
    text = "suffice show \\\n  flights   # what it holds\n\n# nothing\n"
    assert list(commands(text)) == [["suffice", "show", "flights"]]

"""The tutorials and how-tos that run in a place of `support.running_pages`, as they are written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from suffice.cli.demo import run_demo
from suffice.errors import SufficeWarning
from support.notebooks import read_notebook, run_cells
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
def test_the_front_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`README.md` uses what `make demo` makes, prints what it shows, and releases a data frame."""
    monkeypatch.chdir(tmp_path)
    run_demo(Path("demo"), quiet=True)
    blocks = read_page(REPOSITORY / "README.md").blocks
    asks, publishes = [block.text for block in blocks if block.language == "python"]
    (shown,) = [block.text for block in blocks if "Posterior of" in block.text]
    frame = pd.DataFrame({"ward": ["A", "B"] * 500, "returned": [True, False, False, False] * 250})
    names: dict[str, Any] = {"frame": frame}
    capsys.readouterr()
    exec(compile(asks, "README.md", "exec"), names)  # noqa: S102 - our own text
    printed = capsys.readouterr().out
    assert re.sub(r"\d", "0", printed).startswith(re.sub(r"\d", "0", shown.strip()))
    with pytest.warns(SufficeWarning, match="nothing guards the account visits"):
        exec(compile(publishes, "README.md", "exec"), names)  # noqa: S102 - our own text
    assert names["release"]["returned"].posterior().interval().lower.shape == (2,)


OF_NO_NOISE = (1, 2, 4)
"""Code cells, from 0, whose outputs follow from what is stated: plan, grant, and the same again."""


@pytest.mark.slow
def test_the_notebook_gives_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs with noise in them are compared but for their numbers.

    False alarms: fewer than one run in a thousand, where noise is so large that a conflict is said.
    """
    monkeypatch.chdir(tmp_path)
    notebook = read_notebook(REPOSITORY / "docs/notebooks/posterior.ipynb")
    names: dict[str, Any] = {}
    given = run_cells(notebook, names)
    shown = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(given) == len(shown) >= 8
    for number, (now, stored) in enumerate(zip(given, shown, strict=True)):
        if number in OF_NO_NOISE:
            assert stored
            assert now == stored
        else:
            assert without_numbers(now) == without_numbers(stored), number
    lower, upper = names["posterior"].interval(0.999999)
    assert lower[0] < names["truth"]["north"] < upper[0]


def without_numbers(outputs: list[dict[str, Any]]) -> str:
    """Return outputs with `#` for their numbers and ids, and without pictures."""
    text = re.sub(r"<svg.*?</svg>", "<svg/>", json.dumps(outputs), flags=re.DOTALL)
    masked = re.sub(r"\b[0-9a-f]{16}\b|-?\d[\d.,]*(e[+-]?\d+)?", "#", text)
    return re.sub(r"[\s,]+", " ", masked).replace("# ]", "#]")  # NumPy fills numbers up with spaces


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

"""What the readme of studies says of mechanisms is there, and its example runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "studies" / "README.md").read_text(encoding="utf-8")


def test_every_module_is_described_and_nothing_else() -> None:
    section = TEXT.partition("## Mechanisms")[2]
    named = set(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE))
    named |= set(re.findall(r"`(\w+)` (?:draws|lists|is what)", section))
    there = {path.stem for path in (ROOT / "studies" / "mechanisms").glob("*.py")} - {"__init__"}
    assert named == there


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    example = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    assert len(example) == 1
    exec(compile(example[0], "README.md", "exec"), {})  # noqa: S102 - our own page
    said = capsys.readouterr().out
    assert said.count("not a release") == 2
    assert "no guarantee" in said

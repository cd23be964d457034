"""The page `divide-epsilon.md`, run as it is written."""

from __future__ import annotations

import re
import runpy
import shlex
from typing import TYPE_CHECKING, Any

import yaml

import suffice as package
from suffice.pipeline.terms.declaration.spec_yaml import read_yaml

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from support.running import Runner


def test_the_page_on_dividing_runs(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffice: Runner
) -> None:
    """Its spec is that of its figure, and prints what the page shows."""
    page = (repository / "docs" / "how-to" / "divide-epsilon.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (assumed,) = [text for language, text in blocks if language == "yaml"]
    (shown,) = [text for language, text in blocks if not language]
    (python,) = [text for language, text in blocks if language == "python"]
    drawn = runpy.run_path(str(repository / "docs" / "figures" / "divided.py"))["SPEC"]
    stated = read_yaml(assumed, "page").content
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.yaml").write_text(
        yaml.safe_dump({**drawn, **stated}, sort_keys=False), encoding="utf-8"
    )
    assert package.load_spec("people.yaml").assume == package.load_spec(drawn).assume
    commands = [shlex.split(line) for line in re.findall(r"^    suffice (.*)$", page, re.MULTILINE)]
    printed = [suffice.text(*words) for words in commands if "--from" not in words]
    assert len(printed) == 3
    for line in filter(None, shown.splitlines()):
        assert line in printed[0].splitlines()
    space: dict[str, Any] = {"suffice": package}
    exec(compile(python, "divide-epsilon.md", "exec"), space)  # noqa: S102 - our own text
    assert space["division"].statistics[1].sd_divided <= 0.004

"""The page on hidden states, run as it is written."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from support.hidden_states import publish_crashes, publish_series
from support.running import Runner


@pytest.mark.slow
def test_the_page_on_hidden_states_runs(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (repository / "docs" / "how-to" / "find-hidden-states.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUFFICE_STORE", raising=False)
    publish_crashes(tmp_path / "releases")
    publish_series(tmp_path / "releases", ("2013-01", "2013-02", "2013-04"))
    runner, printed, space = Runner(capsys), [], dict[str, Any]()
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if language == "python":
            exec(compile(text, "find-hidden-states.md", "exec"), space)  # noqa: S102 - our own text
        for line in text.splitlines() if language == "sh" else ():
            command, *words = shlex.split(line)
            assert command == "suffice"
            printed.append(runner.text(*words))
    fitted, compared, written, series = printed
    assert "poorer mode" not in fitted
    assert "do not rely" not in fitted
    assert "highest score: 2 states" in compared or "highest score: 3 states" in compared
    assert "wrote draws.parquet" in written
    assert Path("draws.parquet").exists()
    named = set(re.findall(r"`(\w+\.png)`", page))
    assert named == {path.name for path in Path("pictures").iterdir()}
    assert "monthly@2013-01, monthly@2013-02, monthly@2013-04" in series
    assert space["fit"].state_probability.shape == (144, 2)

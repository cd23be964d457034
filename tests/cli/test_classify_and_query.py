"""The page on classes and queries, run as it is written."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from support.running import Runner

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_the_page_on_classes_and_queries_runs(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (repository / "docs" / "how-to" / "classify-and-query.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runner, printed = Runner(capsys), []
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if language == "python":
            exec(compile(text, "classify-and-query.md", "exec"), {})  # noqa: S102 - our own text
            printed.append(capsys.readouterr().out)
        elif language == "yaml":
            (tmp_path / "release.yaml").write_text(text, encoding="utf-8")
        elif language == "sh":
            for line in text.splitlines():
                command, *words = shlex.split(line)
                assert command == "suffice"
                printed.append(runner.text(*words))
    _, _, released, classes, scored, given, do, python = printed
    assert "published" in released
    assert "3 of 3 rows are classified" in classes
    assert "severe is left out of 1 row" in classes
    assert "decade is left out of 1 row" in classes
    # Scales are 6 at most: noise moves none of the thousands in a count by 200 with a chance above 1e-12.
    accuracy = float(re.search(r"accuracy (0\.\d+)", scored)[1])  # type: ignore[index]
    assert 0.72 < accuracy < 0.84
    assert pq.read_table("classes.parquet").num_rows == 20_000
    means = [float(re.search(r"(?m)^yes +(\d\.\d+)", text)[1]) for text in (given, do)]  # type: ignore[index]
    # Of those treated a ninth is not severe: .9 / 9 + .3 * 8 / 9; set, half of them are.
    assert abs(means[0] - (0.9 + 8 * 0.3) / 9) < 0.03
    assert abs(means[1] - (0.9 + 0.3) / 2) < 0.03
    assert "wrote draws.csv" in do
    assert python.startswith("['yes' 'no']")
    effect, lower, upper = map(float, re.findall(r"-?\d\.\d+", python))
    assert lower < effect < upper
    assert abs(effect - 0.1) < 0.06

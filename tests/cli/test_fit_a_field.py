"""The page on fields, run as it is written, and the command's documents and files."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from suffice.errors import UsageError
from support.running import Runner

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = ["--statistic", "old_ill", "--statistic", "ill_treated"]


@pytest.mark.slow
def test_the_page_on_fields_runs(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (repository / "docs" / "how-to" / "fit-a-field.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runner, printed = Runner(capsys), []
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if language == "python":
            exec(compile(text, "fit-a-field.md", "exec"), {})  # noqa: S102 - our own text
            printed.append(capsys.readouterr().out)
        elif language == "yaml":
            (tmp_path / "release.yaml").write_text(text, encoding="utf-8")
        elif language == "sh":
            for line in text.splitlines():
                command, *words = shlex.split(line)
                assert command == "suffice"
                printed.append(runner.text(*words))
    _, _, _, edges, asked, python = printed
    strengths = {tuple(line.split()[:2]): float(line.split()[2]) for line in edges.splitlines()[2:5]}
    assert strengths["old", "ill"] > 0.2
    assert strengths["ill", "treated"] > 0.5
    assert strengths["old", "treated"] < 0.1  # of truth 0
    assert "saddlepoint" in edges
    # 8 standard errors of 20 000 rows and noise of scale 3: .7 of those who are ill.
    mean = float(re.search(r"(?m)^yes +(\d\.\d+)", asked)[1])  # type: ignore[index]
    assert abs(mean - 0.7) < 0.06
    lower, upper = map(float, re.findall(r"\d\.\d+", python)[:2])
    assert lower < mean < upper
    document = runner.json("model", "field", "pairs", *PAIRS, "--draws", "200", "--out", "edges.parquet")
    assert [row["second"] for row in document["edges"]] == ["ill", "treated"]
    assert set(document["agreement"]) == {"old_ill", "ill_treated"}
    assert pq.read_table("edges.parquet")["first"].to_pylist() == ["old", "ill"]
    assert "--target" in runner.text(
        "model", "field", "pairs", *PAIRS, "--given", "old=yes", status=UsageError.exit_status
    )

"""The page on derived columns, run as it is written."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from suffice.storage.releases.release_store import open_release
from support.running import Runner


@pytest.fixture
def blocks(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    page = (repository / "docs" / "how-to" / "derive-columns.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def test_the_page_on_derived_columns_runs(
    blocks: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    runner, printed = Runner(capsys), []
    for language, text in blocks:
        if language == "python":
            exec(compile(text, "derive-columns.md", "exec"), {})  # noqa: S102 - our own text
        elif language == "yaml":
            Path("release.yaml").write_text(text, encoding="utf-8")
        else:
            for line in text.splitlines():
                command, *words = shlex.split(line)
                assert command == "suffice"
                printed.append(runner.text(*words))
    plan, _, released, table = printed
    assert "state: airport mapped to NJ, NY" in plan
    assert "hour: hour of time_hour in America/New_York" in plan
    assert "published" in released
    assert "NY" in table
    (manifest,) = Path("releases").rglob("manifest.json")
    totals = open_release(str(manifest.parent)).statistic("is_late").values
    # The noise is of scale 4: it is 100 or more with a chance below 1e-10.
    late = pq.read_table("flights").to_pandas().assign(late=lambda rows: rows["arr_delay"] > 15)
    in_new_jersey = late["origin"] == "EWR"
    for (_, is_late), rows in zip(totals, (late[in_new_jersey], late[~in_new_jersey]), strict=True):
        assert abs(int(is_late) - rows["late"].sum()) < 100

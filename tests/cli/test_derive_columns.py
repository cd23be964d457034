"""The page on derived columns, run as it is written."""

from __future__ import annotations

import csv
import gzip
import re
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from suffice.storage.releases.release_store import open_release
from support.running import Runner

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release


@pytest.fixture
def blocks(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    page = (repository / "docs" / "how-to" / "derive-columns.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
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
    plan, _, released, table, _, plan_of_units, released_units, table_of_units, *of_storms = printed
    assert "state: airport mapped to NJ, NY" in plan
    assert "hour: hour of time_hour in America/New_York" in plan
    assert "published" in released
    assert "NY" in table
    assert (
        "delay: sum of arr_delay over each unit's rows, each clipped to 0..60 in steps of 1" in plan_of_units
    )
    assert "published" in released_units
    assert "of units: one value of each unit, over all of its rows" in table_of_units
    (manifest,) = Path("releases").rglob("planes/**/manifest.json")
    busy = pq.read_table("planes").to_pandas().groupby("tailnum").size() >= 20
    # Every statistic has epsilon 1: noise of scale 1 is 30 or more with a chance below 1e-12.
    for noisy, exact in zip(
        open_release(str(manifest.parent)).statistic("is_busy").values[0], (~busy, busy), strict=True
    ):
        assert abs(int(noisy) - exact.sum()) < 30
    assert 30 < busy.sum() < len(busy) - 30, "both answers are told apart from none"
    (manifest,) = Path("releases").rglob("late-by-state/**/manifest.json")
    totals = open_release(str(manifest.parent)).statistic("is_late").values
    # The noise is of scale 4: it is 100 or more with a chance below 1e-10.
    late = pq.read_table("flights").to_pandas().assign(late=lambda rows: rows["arr_delay"] > 15)
    in_new_jersey = late["origin"] == "EWR"
    for (_, is_late), rows in zip(totals, (late[in_new_jersey], late[~in_new_jersey]), strict=True):
        assert abs(int(is_late) - rows["late"].sum()) < 100
    _, plan_of_storms, backfilled, table_of_storms = of_storms
    assert "damage: DAMAGE_PROPERTY as number, K times 1000, M times 1000000" in plan_of_storms
    assert "published 2" in backfilled
    assert "huge" in table_of_storms
    _check_sizes(open_release("storms@1993-11", store="releases"))


def _check_sizes(release: Release) -> None:
    """Compare counts with those of plain Python: noise of scale 1 is 30 or more with a chance below 1e-12."""
    sizes = {"25K": "large", "1.5M": "huge", "0": "small", "750": "small"}
    with gzip.open("raw/storms.csv.gz", "rt") as file:
        rows = [row for row in csv.DictReader(file) if "-NOV-93" in row["BEGIN_DATE_TIME"]]
    exact = Counter(
        (row["EVENT_TYPE"].strip().upper(), sizes.get(row["DAMAGE_PROPERTY"], "other")) for row in rows
    )
    for row in release.table("size"):
        assert abs(row["estimate"] - exact[row["kind"], row["category"]]) < 30, row
    assert min(exact["HAIL", size] for size in ("small", "large", "huge", "other")) > 60, "a control"

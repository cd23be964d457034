"""``suffice catalogue`` as people and programs call it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from suffice.cli import app
from support.catalogued import make_small
from support.releases import RELEASE_ID

if TYPE_CHECKING:
    from pathlib import Path


def test_it_says_what_it_made_and_where_to_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, site = make_small(tmp_path, "2013-01"), tmp_path / "site"
    assert run("catalogue", str(store), "--out", str(site)) == 0
    said = capsys.readouterr().out
    assert "1 release and 0 publications: 1 made, 0 unchanged, 0 removed" in said
    assert f"open {site / 'index.html'}" in said
    assert run("catalogue", str(store), "--out", str(site), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document == {
        "index": str(site / "index.html"),
        "releases": 1,
        "publications": 0,
        "rendered": 0,
        "kept": 1,
        "removed": 0,
        "problems": [],
        "ok": True,
    }


def test_what_is_not_shown_is_named_and_ends_with_the_status_of_stores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, site = make_small(tmp_path, "2013-01"), tmp_path / "site"
    (store / "monthly" / "2013-01" / RELEASE_ID / "cancelled.parquet").unlink()
    assert run("catalogue", str(store), "--out", str(site)) == 5
    assert "not shown: monthly@2013-01" in capsys.readouterr().out
    assert (site / "index.html").is_file()


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        app.main(words)
    assert isinstance(end.value.code, int)
    return end.value.code

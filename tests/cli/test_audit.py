"""`suffice audit`: a spec is audited in a process of its own, and a grant demands it (`audit-a-spec.md`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from suffice.cli import app
from suffice.storage.ledger.opening import open_ledger
from support.audited import SPECS

if TYPE_CHECKING:
    from pathlib import Path

TABLE = SPECS["sums by duckdb"]


def spec_file(directory: Path, content: dict[str, Any]) -> Path:
    """Write a spec."""
    path = directory / "spec.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def run(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> Any:
    with pytest.raises(SystemExit) as caught:
        app.main(words)
    captured = capsys.readouterr()
    assert caught.value.code == status, captured
    return json.loads(captured.out) if "--json" in words else captured


def test_a_spec_is_audited_and_a_grant_demands_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The source is not there: nothing of it is opened."""
    monkeypatch.chdir(tmp_path)
    spec = spec_file(tmp_path, TABLE)
    words = ("audit", str(spec), "--level", "exact", "--pairs", "8", "--seconds", "1000")
    done = run(capsys, *words, "--out", "audit.json", "--json")
    assert done["ok"], (done["findings"], done["mutants"])
    assert done["verdict"] == f"nothing found by tests that catch these {len(done['mutants'])} mutants"
    assert len(done["mutants"]) >= 12
    assert done["source"] == "duckdb"
    assert json.loads((tmp_path / "audit.json").read_bytes()) == done
    assert "exists" in run(capsys, *words, "--out", "audit.json", status=2).err
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    grant = ("ledger", "grant", "passengers", "--epsilon", "1", "--reason", "first year", "--ledger", ledger)
    run(capsys, *grant, "--audited", "audit.json", "--create")
    with open_ledger(ledger) as opened:
        entries = [json.loads(entry.payload) for entry in opened.entries() if entry.kind == "grant"]
    assert f"of plan {done['plan_hash']}]" in entries[0]["reason"]
    other = ("others" if word == "passengers" else word for word in grant)
    assert "it is of the data set passengers" in run(capsys, *other, "--audited", "audit.json", status=2).err


def test_what_is_found_is_said_and_the_status_is_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without time for mutants there is no result, whatever was found."""
    spec = spec_file(tmp_path, TABLE)
    said = run(capsys, "audit", str(spec), "--level", "exact", "--pairs", "1", "--seconds", "0.001", status=1)
    assert "no mutant was tried on: no result" in said.out
    assert "further mutants" in said.out
    assert "not seen" in said.out


def test_a_count_before_a_window_is_left_out_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    windowed = {"window": {"column": "day", "every": "month"}, "expect": {"rows": "1000", "epsilon": "0.01"}}
    spec = spec_file(tmp_path, {**TABLE, **windowed})
    words = ("--level", "exact", "--pairs", "1", "--seconds", "0.001", "--json")
    done = run(capsys, "audit", str(spec), *words, status=1)
    assert done["findings"] == []
    assert (
        "the count before a window (expect), which is a release of its own like any other"
        in done["not_tried"]
    )
    assert done["contract"] is None


@pytest.mark.parametrize(
    ("words", "rule"),
    [(("--level", "all"), "a level is one of"), (("--cluster", "tls://x:1"), "threads, or on a local")],
)
def test_options_have_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], rule: str
) -> None:
    spec = spec_file(tmp_path, TABLE)
    assert rule in run(capsys, "audit", str(spec), *words, status=2).err

"""Whole releases of an audit: marked, compared byte by byte, and mutants of what they show are found."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from suffice.auditing.child import try_again, try_failure, try_pairs
from suffice.auditing.mutants import MUTANTS, mutants_of
from suffice.errors import ReleaseMissingError
from suffice.pipeline.spec.spec import load_spec
from suffice.storage.releases.release_store import open_release
from support.audited import SPECS, running

if TYPE_CHECKING:
    from pathlib import Path

SHOWN = [mutant.name for mutant in MUTANTS if mutant.level == "appearance"]
AGAIN = [mutant.name for mutant in MUTANTS if mutant.level == "again"]
TABLE = "rows in duckdb"
"""A source with a schema apart from its rows: its statuses follow from no record."""


def test_no_reader_takes_what_an_audit_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = load_spec(SPECS["rows in parquet"])
    with running(spec, tmp_path) as (runner, maker):
        (chain,) = maker.chains(1)
        monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
        seen = runner.release(chain[0])
        monkeypatch.undo()
    assert seen.status == "0"
    assert seen.totals.keys() == seen.values.keys() == {"carrier", "delay"}
    manifests = list((tmp_path / "release" / "place" / "releases").rglob("manifest.json"))
    assert len(manifests) == 1
    with pytest.raises(ReleaseMissingError, match="rehearsal"):
        open_release(str(manifests[0].parent))
    shutil.rmtree(tmp_path / "release")


@pytest.mark.slow
def test_neighbours_in_a_table_show_nothing_but_noise(tmp_path: Path) -> None:
    with running(load_spec(SPECS[TABLE]), tmp_path) as (runner, maker):
        tried, findings, seen = try_pairs(runner, maker, 4, first_only=False)
        data = next(maker.chains(1, (("spark", "spark"),)))[0]
        findings += [*try_again(runner, data), *try_failure(runner, data)]
    assert findings == []
    assert tried == 5
    assert len(seen) == 10


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SHOWN, *AGAIN])
def test_a_mutant_of_what_is_shown_is_found(tmp_path: Path, name: str) -> None:
    with running(load_spec(SPECS[TABLE]), tmp_path) as (runner, maker):
        (mutant,) = (each for each in mutants_of(runner.plan(), loose=False) if each.name == name)
        data = next(maker.chains(1, (("spark", "spark"),)))[0]
        with mutant.apply():
            if mutant.level == "again":
                findings = [*try_again(runner, data), *try_failure(runner, data)]
            else:
                findings = try_pairs(runner, maker, 8, first_only=True)[1]
    assert findings


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rows in parquet", "units in parquet", "folders", "csv"])
def test_with_a_contract_no_file_decides_a_status(tmp_path: Path, name: str) -> None:
    with running(load_spec(SPECS[name]), tmp_path) as (runner, maker):
        assert try_pairs(runner, maker, 1, first_only=False)[1] == []


@pytest.mark.slow
def test_without_a_contract_types_of_single_files_decide_statuses(tmp_path: Path) -> None:
    """Fault 3: what is found there is what a contract mends."""
    with running(load_spec(SPECS["rows in parquet"]), tmp_path, contracted=False) as (runner, maker):
        findings = try_pairs(runner, maker, 1, first_only=False)[1]
    assert {each.check for each in findings} == {"status", "text"}
    assert len(findings) >= 3

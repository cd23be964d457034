"""`suffice audit`: a spec is audited in a process of its own, and a grant demands it (`audit-a-spec.md`)."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from suffice.auditing.audit import FALSE_ALARM, PACKAGES, Audit, MutantResult
from suffice.auditing.implied_columns import implied_schema
from suffice.auditing.scratch_sources import implied_contract
from suffice.cli import app
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.documents import document
from suffice.storage.operations.audits import encode_audit
from suffice.storage.releases.manifest import software_versions
from support.audited import SPECS
from support.running import spec_file

if TYPE_CHECKING:
    from pathlib import Path

    from support.making import Workspace
    from support.running import Runner

TABLE = SPECS["rows in duckdb"]


def contract_of(content: dict[str, Any]) -> str:
    """Return the contract that a spec implies, as a file."""
    spec = load_spec(content)
    return json.dumps(implied_contract(spec, implied_schema(spec)).document())


def written(directory: Path, content: dict[str, Any]) -> Path:
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


@pytest.mark.slow
def test_a_spec_is_audited_and_a_grant_demands_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The source is not there: nothing of it is opened."""
    monkeypatch.chdir(tmp_path)
    spec = written(tmp_path, TABLE)
    (tmp_path / "contract.json").write_text(contract_of(TABLE), encoding="utf-8")
    stated = ("--contract", "contract.json")
    words = ("audit", str(spec), *stated, "--level", "exact", "--pairs", "8", "--seconds", "1000")
    done = run(capsys, *words, "--out", "audit.json", "--json")
    assert done["ok"], (done["findings"], done["mutants"])
    assert done["verdict"] == f"nothing found by tests that catch these {len(done['mutants'])} mutants"
    assert len(done["mutants"]) >= 12
    assert done["source"] == "duckdb"
    assert json.loads((tmp_path / "audit.json").read_bytes()) == done
    assert "exists" in run(capsys, *words, "--out", "audit.json", status=2).err
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    grant = ("ledger", "grant", "passengers", "--epsilon", "1", "--reason", "first year", "--ledger", ledger)
    names = (*grant, "--audited", "audit.json", "--create", "--witness", f"{tmp_path}/witness")
    assert "an account with a contract: grant one" in run(capsys, *names, status=2).err
    changed = contract_of(SPECS["duckdb"])
    (tmp_path / "other.json").write_text(changed, encoding="utf-8")
    assert "of another contract" in run(capsys, *names, "--contract", "other.json", status=2).err
    granted = run(capsys, *names, *stated, "--json")
    sha256 = hashlib.sha256((tmp_path / "audit.json").read_bytes()).hexdigest()
    assert granted["audit"] == {"sha256": sha256, "plan_hash": done["plan_hash"]}
    assert done["contract"] == {"of": "account", "sha256": granted["contract"]["sha256"]}
    assert f"  audit {sha256[:16]} of the plan" in run(capsys, "ledger", "show", "--ledger", ledger).out
    exported = run(capsys, "ledger", "export", "--ledger", ledger).out
    assert f'"audit_sha256":"{sha256}"' in exported
    other = ("others" if word == "passengers" else word for word in grant)
    assert "it is of the data set passengers" in run(capsys, *other, "--audited", "audit.json", status=2).err


@pytest.mark.slow
def test_what_is_found_is_said_and_the_status_is_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without time for mutants there is no result, whatever was found."""
    spec = written(tmp_path, TABLE)
    said = run(capsys, "audit", str(spec), "--level", "exact", "--pairs", "1", "--seconds", "0.001", status=1)
    assert "no mutant was tried on: no result" in said.out
    assert "further mutants: none is begun after 0.001 seconds (--seconds)" in said.out
    assert "the one that the spec implies" in said.out
    assert "not seen" in said.out


@pytest.mark.slow
def test_a_count_before_a_window_is_left_out_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    windowed = {"window": {"column": "day", "every": "month"}, "expect": {"rows": "1000", "epsilon": "0.01"}}
    spec = written(tmp_path, {**TABLE, **windowed})
    words = ("--level", "exact", "--pairs", "1", "--seconds", "0.001", "--json")
    done = run(capsys, "audit", str(spec), *words, status=1)
    assert done["findings"] == []
    assert (
        "the count before a window (expect), which is a release of its own like any other"
        in done["not_tried"]
    )


@pytest.mark.parametrize(
    ("words", "rule"),
    [(("--level", "all"), "a level is one of"), (("--cluster", "tls://x:1"), "threads, or on a local")],
)
def test_options_have_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], rule: str
) -> None:
    spec = written(tmp_path, TABLE)
    assert rule in run(capsys, "audit", str(spec), *words, status=2).err


def test_a_release_states_the_audit_of_its_own_plan(workspace: Workspace, suffice: Runner) -> None:
    """A release of another plan states none, and a later grant keeps it."""
    audited = spec_file(workspace)
    planned = suffice.json("plan", audited)
    done = Audit(
        name=planned["name"],
        dataset=planned["dataset"],
        plan_hash=planned["plan_hash"],
        window="all",
        source="parquet",
        cluster="threads",
        contract=None,
        levels=(),
        findings=(),
        mutants=(MutantResult(name="no noise on the last statistic", caught_by="noise: signs of draws"),),
        false_alarm=FALSE_ALARM,
        not_tried=(),
        versions=software_versions(PACKAGES),
        created="2026-01-01T00:00:00Z",
        seconds=1.0,
    )
    path = workspace.data.parent / "audit.json"
    path.write_bytes(encode_audit(document(done), None))
    grant = ("ledger", "grant", planned["dataset"], "--epsilon", "10", "--reason", "x", "--unwitnessed")
    audit = suffice.json(*grant, "--audited", str(path))["audit"]
    assert suffice.json(*grant[:4], "20", *grant[5:])["audit"] == audit
    released = suffice.json("release", audited)
    assert released["audit"] == audit["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert suffice.json("verify", released["uri"])["ok"]
    assert f"audit              {audit['sha256']}" in suffice.text("show", released["uri"])
    assert "an audit of the plan on invented data found nothing" in suffice.text("disclose", released["uri"])
    without = suffice.json("release", spec_file(workspace, name="other", groups=None))
    assert without["audit"] is None
    assert "names no audit of the plan" in suffice.text("disclose", without["uri"])

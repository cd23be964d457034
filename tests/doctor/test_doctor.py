"""`suffice doctor`: each check finds what it is for, changes nothing, and shows no secret."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pytest

from suffice.cli.monitor import UNWELL
from suffice.doctor import configuration, examination, host, places
from suffice.errors import MissingExtraError
from suffice.storage.ledger.opening import create_ledger
from support.paid import copy_database, restore_database
from support.profiles import pinning, write_profile

if TYPE_CHECKING:
    from pathlib import Path

    from support.making import Workspace
    from support.running import Runner

SECRET = "hunter2-Zk91"  # noqa: S105 - nobody's
STATISTICS = {"cancelled": {"family": "bernoulli", "column": "cancelled"}}


@pytest.fixture
def place(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Return an installation that is well: a profile, a ledger, a store with a release, counted refusals."""
    profile = write_profile(workspace.directory / "suffice.toml", **pinning(workspace))
    monkeypatch.setenv("SUFFICE_CONFIG", str(profile))
    monkeypatch.setenv("SUFFICE_METRICS", str(workspace.directory / "counts"))
    return workspace


def findings(document: dict[str, Any], check: str) -> dict[str, list[str]]:
    """Return what a check found, by state."""
    by_state: dict[str, list[str]] = {}
    for finding in document["findings"]:
        if finding["check"] == check:
            by_state.setdefault(finding["state"], []).append(finding["found"])
            assert (finding["remedy"] == "") == (finding["state"] in {"ok", "skipped"}), finding
    return by_state


def problems(document: dict[str, Any]) -> set[str]:
    return {finding["check"] for finding in document["findings"] if finding["state"] == "problem"}


def contents(directory: Path) -> dict[str, tuple[str, int, int]]:
    """Return every file below a directory: its hash, its mode and when it was changed."""
    return {
        str(path.relative_to(directory)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
        )
        for path in sorted(directory.rglob("*"))
    }


def test_an_installation_that_is_well_is_left_as_it_is(place: Workspace, suffice: Runner) -> None:
    suffice.json("release", str(place.write_spec(groups=None, statistics=STATISTICS)))
    before = contents(place.directory)
    document = suffice.json("doctor")
    assert contents(place.directory) == before
    assert document["ok"]
    assert [finding["check"] for finding in document["findings"] if finding["state"] == "ok"][-1] == "entropy"
    assert {finding["check"] for finding in document["findings"]} == examination.CHECKS.keys()
    assert findings(document, "stores").keys() == {"ok"}
    assert "refusals are counted" in suffice.text("doctor")


def test_a_ledger_that_is_missing_is_one_problem(place: Workspace, suffice: Runner) -> None:
    (place.directory / "ledger.db").unlink()
    document = suffice.json("doctor", status=UNWELL)
    assert problems(document) == {"ledger"}
    assert "suffice ledger grant" in findings(document, "ledger")["problem"][0]


@pytest.mark.parametrize("released", [pytest.param(0, marks=pytest.mark.audit), 1])
def test_a_ledger_older_than_its_store_is_a_problem(place: Workspace, suffice: Runner, released: int) -> None:
    """From a backup of before the store's first charge, or of after it: every run would be refused."""
    if released:
        suffice.json("release", str(place.write_spec(name="first", groups=None, statistics=STATISTICS)))
    database, copy = place.directory / "ledger.db", place.directory / "backup.db"
    copy_database(database, copy)
    suffice.json("release", str(place.write_spec(name="second", groups=None, statistics=STATISTICS)))
    restore_database(copy, database)
    document = suffice.json("doctor", status=UNWELL)
    assert problems(document) == {"stores"}
    assert "suffice ledger reconcile" in findings(document, "stores")["problem"][0]


def test_a_store_that_is_gone_or_anothers_is_a_problem(place: Workspace, suffice: Runner) -> None:
    suffice.json("release", str(place.write_spec(groups=None, statistics=STATISTICS)))
    shutil.move(place.store, place.directory / "away")
    document = suffice.json("doctor", status=UNWELL)
    assert problems(document) == {"stores"}
    assert "does not answer" in findings(document, "stores")["problem"][0]
    text = (place.directory / "away" / "suffice.json").read_text(encoding="utf-8")
    (place.directory / "releases").mkdir()
    other = re.sub(r'("ledger_id":\s*")[0-9a-f]{32}', r"\g<1>" + "0" * 32, text)
    assert other != text
    (place.directory / "releases" / "suffice.json").write_text(other, encoding="utf-8")
    of_stores = findings(suffice.json("doctor", status=UNWELL), "stores")["problem"]
    assert any("another ledger's" in message for message in of_stores)


@pytest.mark.parametrize("known", [True, False])
def test_an_older_copy_of_the_ledger_is_a_problem(place: Workspace, suffice: Runner, *, known: bool) -> None:
    spec = {"groups": None, "statistics": STATISTICS}
    if known:
        suffice.json("release", str(place.write_spec(**spec)))
    copy = (place.directory / "ledger.db").read_bytes()
    suffice.json("release", str(place.write_spec(**spec, name="later")))
    assert suffice.json("doctor")["ok"]
    (place.directory / "ledger.db").write_bytes(copy)
    document = suffice.json("doctor", status=UNWELL)
    assert problems(document) == {"stores"}
    assert "older copy of the ledger" in findings(document, "stores")["problem"][0]


@pytest.mark.usefixtures("workspace")
def test_a_cluster_that_no_run_would_take_is_a_problem(suffice: Runner) -> None:
    document = suffice.json("doctor", "--cluster", "tcp://10.0.0.1:8786", status=UNWELL)
    assert problems(document) == {"cluster"}
    assert "not encrypted" in findings(document, "cluster")["problem"][0]


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize("option", ["--cluster", "--ledger", "--store"])
def test_what_names_no_place_at_all_is_a_usage_error(suffice: Runner, option: str) -> None:
    error = suffice.json("doctor", option, "x://y:secret@z", status=2)["error"]
    assert error["type"] == "UsageError"
    assert "secret" not in error["message"]


def test_clocks_that_disagree_are_a_problem(
    workspace: Workspace, suffice: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    later = f"sqlite:///{tmp_path}/later.db"
    with create_ledger(later, clock=lambda: datetime.now(UTC) + timedelta(hours=1)) as ledger:
        ledger.grant("people", epsilon=Fraction(1), reason="tests")
    of_clock = findings(suffice.json("doctor", "--ledger", later, status=UNWELL), "clock")
    assert "later time than now" in of_clock["problem"][0]

    class Behind(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) - timedelta(minutes=2)

    monkeypatch.setattr(places, "datetime", Behind)
    of_clock = findings(suffice.json("doctor", "--ledger", workspace.ledger, status=UNWELL), "clock")
    assert any("differ by more than a minute" in text for text in of_clock["problem"])


def test_what_others_may_write_is_a_problem(
    place: Workspace, suffice: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    suffice.json("release", str(place.write_spec(groups=None, statistics=STATISTICS)))
    (place.directory / "ledger.db").chmod(0o666)
    (place.directory / "ledger.db.spool").chmod(0o777)
    key = place.directory / "key.pem"
    key.write_text(SECRET, encoding="utf-8")
    key.chmod(0o644)
    monkeypatch.setenv("SUFFICE_SIGNING_KEY", str(key))
    document = suffice.json("doctor", status=UNWELL)
    assert problems(document) == {"permissions"}
    of_permissions = findings(document, "permissions")["problem"]
    assert len(of_permissions) == 3
    assert SECRET not in str(document)


def test_a_source_of_randomness_that_is_not_ready_is_a_problem(
    workspace: Workspace, suffice: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unseeded(*_: int) -> bytes:
        raise BlockingIOError

    for replacement, said in ((unseeded, "not seeded"), (lambda *_: b"0" * 32, "repeats itself")):
        monkeypatch.setattr(os, "getrandom", replacement)
        with monkeypatch.context() as patch:
            patch.setattr(examination, "CHECKS", {"entropy": examination.CHECKS["entropy"]})
            document = suffice.json("doctor", "--ledger", workspace.ledger, status=UNWELL)
        assert said in findings(document, "entropy")["problem"][0]


def test_versions_outside_of_their_bounds_are_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["numpy<1", "scipy>=1", 'fastapi<0.1; extra == "pipeline"', 'ruff<0.1; extra == "dev"']
    monkeypatch.setattr(host, "requires", lambda _: wanted)
    observed = [fact.observed for fact in host.examine_pins(None)]  # type: ignore[arg-type]
    assert [text.split(" ")[0] for text in observed] == ["numpy", "fastapi"]
    absent = ['no-such-package; extra == "pipeline"', 'fastapi<0.1; extra == "pipeline"']
    monkeypatch.setattr(host, "requires", lambda _: absent)
    (fact,) = host.examine_pins(None)  # type: ignore[arg-type]
    assert fact.state == "ok", "an extra that is not installed as a whole is not used"
    assert host._is_supported(metadata.metadata("suffice")["Requires-Python"])
    assert not host._is_supported(">=3.11,<3.11")
    assert not host._is_supported(">=4")


def test_a_host_without_the_engine_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingExtraError("a release", "pipeline")

    monkeypatch.setattr(host, "require_engine", missing)
    *_, last = host.examine_versions(None)  # type: ignore[arg-type]
    assert (last.state, "suffice[pipeline]" in last.remedy) == ("warning", True)


@pytest.mark.parametrize("variable", ["SUFFICE_KERNELS", "SUFFICE_PAGES"])
def test_a_variable_that_chooses_nothing_is_a_problem(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, SECRET)
    *_, last = host.examine_versions(None)  # type: ignore[arg-type]
    assert last.state == "problem"
    assert variable in last.observed
    assert SECRET not in last.observed + last.remedy
    for known in ("", "numba" if variable == "SUFFICE_KERNELS" else "arrow"):
        monkeypatch.setenv(variable, known)
        assert all(fact.state != "problem" for fact in host.examine_versions(None))  # type: ignore[arg-type]


def test_no_secret_is_shown(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from suffice.cli import app

    monkeypatch.setenv("SUFFICE_LEDGER", f"postgresql://releases:{SECRET}@127.0.0.1:1/ledger")
    for name in ("SUFFICE_POSTGRESQL", "SUFFICE_SNOWFLAKE"):
        monkeypatch.setenv(name, f"user:{SECRET}@host/database")
    monkeypatch.setenv("SUFFICE_LEGDER", SECRET)
    for words in (["doctor"], ["doctor", "--json"]):
        with pytest.raises(SystemExit) as caught:
            app.main([*words, "--store", workspace.store])
        said = "".join(capsys.readouterr())
        assert caught.value.code == UNWELL
        assert SECRET not in said
        assert "SUFFICE_LEGDER" in said
        assert "holds a password" in said
        assert "no spool is named" in said


def test_an_error_of_one_check_does_not_keep_the_others_from_looking(
    workspace: Workspace, suffice: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> Any:
        raise KeyError(SECRET)

    checks = {"ledger": broken, "entropy": examination.CHECKS["entropy"]}
    monkeypatch.setattr(examination, "CHECKS", checks)
    document = suffice.json("doctor", "--ledger", workspace.ledger, status=UNWELL)
    assert [finding["state"] for finding in document["findings"]] == ["problem", "ok"]
    assert "internal error (KeyError)" in document["findings"][0]["found"]
    assert SECRET not in str(document)


def test_every_variable_stands_on_the_page_of_the_command_line(repository: Path) -> None:
    page = (repository / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\bSUFFICE_[A-Z_]+\b", page)) == configuration.KNOWN


def test_the_page_on_exit_statuses_has_the_doctors(repository: Path) -> None:
    page = (repository / "docs" / "reference" / "exit-statuses.md").read_text(encoding="utf-8")
    assert f"| {UNWELL} | `suffice doctor`" in page

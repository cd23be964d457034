"""Trust on the command line: keys, pinned readers, a ledger held against its store, what the public gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from suffice.cli import app
from suffice.errors import StageFailedError
from suffice.releasing.release import carry_out
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.signatures.signing import new_keys
from support.making import Workspace, make_workspace, mapping
from support.paid import copy_database, restore_database

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., Any]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    made = make_workspace(tmp_path)
    made.directory.joinpath("release.json").write_text(json.dumps(mapping(made.data)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUFFICE_STORE", made.store)
    monkeypatch.setenv("SUFFICE_LEDGER", made.ledger)
    monkeypatch.delenv("SUFFICE_PUBLIC_KEYS", raising=False)
    monkeypatch.delenv("SUFFICE_SIGNING_KEY", raising=False)
    return made


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process: its JSON, or its text where ``text=True``."""

    def command(*words: str, status: int = 0, text: bool = False) -> Any:
        with pytest.raises(SystemExit) as caught:
            app.main(words if text else [*words, "--json"])
        captured = capsys.readouterr()
        assert caught.value.code == status, captured
        return captured.out if text else json.loads(captured.out)

    return command


@pytest.mark.slow
@pytest.mark.usefixtures("workspace")
def test_a_signed_release_from_new_keys_to_pinned_readers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    key = run("keys", "new", "--out", "key.pem")
    assert (key["private_key"], key["public_key"]) == ("key.pem", "key.pem.pub")
    assert run("keys", "show", "key.pem.pub")["keys"][0]["key_id"] == key["key_id"]
    assert "never overwritten" in run("keys", "new", "--out", "key.pem", status=2)["error"]["message"]
    other = run("keys", "new", "--out", "other.pem")
    monkeypatch.setenv("SUFFICE_SIGNING_KEY", "key.pem")
    released = run("release", "release.json")
    assert (released["signed_by"], released["signature"]) == (key["key_id"], "not_checked")
    pinned, wrong = ("--public-key", "key.pem.pub"), ("--public-key", "other.pem.pub")
    assert run("show", "flights")["signature"] == "not_checked"
    assert run("show", "flights", *pinned)["signature"] == "checked"
    assert f"{key['key_id']} (not checked)" in run("show", "flights", text=True)
    assert f"{key['key_id']} (checked)" in run("show", "flights", *pinned, *wrong, text=True)
    for words in (("show", "flights"), ("table", "flights", "stops"), ("posterior", "flights", "cancelled")):
        assert run(*words, *pinned)
        error = run(*words, *wrong, status=5)["error"]
        assert error["type"] == "SignatureError"
        assert other["key_id"] in error["message"]
    assert run("verify", "flights", *pinned) == {
        "ok": True,
        "problems": [],
        "ledger": "not_checked",
        "signature": "checked",
        "withdrawn": None,
    }
    assert not run("verify", "flights", *wrong, status=5)["ok"]
    monkeypatch.setenv("SUFFICE_PUBLIC_KEYS", "other.pem.pub")
    assert run("show", "flights", status=5)["error"]["type"] == "SignatureError"
    refused = run("release", "release.json", status=2)["error"]["message"]
    assert "does not hold the key" in refused
    monkeypatch.setenv("SUFFICE_PUBLIC_KEYS", "other.pem.pub:key.pem.pub")
    assert run("release", "release.json")["signature"] == "checked"


@pytest.mark.usefixtures("workspace")
def test_an_unsigned_release_says_so(run: Run) -> None:
    released = run("release", "release.json")
    assert (released["signed_by"], released["signature"]) == (None, "unsigned")
    assert "nobody" in run("show", "flights", text=True)
    assert "signature unsigned" in run("verify", "flights", text=True)
    run("keys", "new", "--out", "key.pem")
    error = run("show", "flights", "--public-key", "key.pem.pub", status=5)["error"]
    assert "not signed" in error["message"]
    assert "private key" in run("show", "flights", "--public-key", "key.pem", status=2)["error"]["message"]


def test_a_bad_signing_key_is_refused_before_anything_is_charged(
    workspace: Workspace, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = new_keys(workspace.directory / "key.pem").private_key
    path.chmod(0o644)
    for name in (str(path), "absent.pem"):
        monkeypatch.setenv("SUFFICE_SIGNING_KEY", name)
        assert run("release", "release.json", status=2)["error"]["type"] == "UsageError"
    assert run("ledger", "show")["accounts"][0]["charges"] == []


def test_a_rerun_publishes_the_staged_signature_and_never_signs_again(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (new_keys(workspace.directory / name) for name in ("first.pem", "second.pem"))
    monkeypatch.setenv("SUFFICE_SIGNING_KEY", str(first.private_key))
    with monkeypatch.context() as patched:
        patched.setattr(
            "suffice.storage.releases.release_store.ReleaseStore.put_manifest",
            lambda *_arguments: (_ for _ in ()).throw(OSError("the store is away")),
        )
        with pytest.raises(StageFailedError):
            carry_out(workspace.spec())
    with open_ledger(workspace.ledger) as ledger:
        staged = ledger.find("passengers", "flights", "all")
    assert staged is not None
    for signing in (second.private_key, None):
        if signing is None:
            monkeypatch.delenv("SUFFICE_SIGNING_KEY")
        else:
            monkeypatch.setenv("SUFFICE_SIGNING_KEY", str(signing))
        release = carry_out(workspace.spec()).release
        assert release.manifest["signature"]["key_id"] == first.key_id
        assert Path(release.uri, "manifest.json").read_bytes() == staged.manifest


@pytest.mark.slow
def test_the_ledger_is_held_against_its_store(workspace: Workspace, run: Run) -> None:
    copy_database(workspace.directory / "ledger.db", workspace.directory / "before.db")
    run("release", "release.json")
    checked = run("ledger", "verify", "--store", workspace.store)
    assert (checked["ok"], checked["store"], checked["charges_elsewhere"]) == (True, "checked", 0)
    assert checked["sequence"] == 6
    assert len(checked["hash"]) == 64
    restore_database(workspace.directory / "before.db", workspace.directory / "ledger.db")
    assert run("ledger", "verify")["ok"], "the older copy agrees with itself"
    verified = run("ledger", "verify", "--store", workspace.store, status=5)
    assert "ends at 2" in verified["problems"][0]
    error = run("release", "release.json", status=5)["error"]
    assert error["type"] == "LedgerCorruptError"
    assert "charges/000/000/000/003" in error["message"]
    assert run("ledger", "show")["accounts"][0]["charges"] == []


def test_the_public_export_is_checked_without_the_ledger(workspace: Workspace, run: Run) -> None:
    run("release", "release.json")
    assert run("ledger", "export", "--out", "ledger.jsonl") == {"out": "ledger.jsonl", "entries": 6}
    lines = Path("ledger.jsonl").read_text(encoding="utf-8")
    assert run("ledger", "export", text=True) == lines
    assert run("ledger", "export")["entries"] == [json.loads(line) for line in lines.splitlines()]
    assert str(workspace.directory) not in lines
    assert "exists" in run("ledger", "export", "--out", "ledger.jsonl", status=2)["error"]["message"]
    Path("ledger.db").unlink()
    checked = run("ledger", "verify", "--export", "ledger.jsonl", "--store", workspace.store)
    assert (checked["ok"], checked["store"], checked["sequence"]) == (True, "checked", 6)
    Path("ledger.jsonl").write_text(lines.replace("10000000", "90000000"), encoding="utf-8")
    verified = run("ledger", "verify", "--export", "ledger.jsonl", "--store", workspace.store, status=5)
    assert "entry 2 was altered" in verified["problems"][0]
    assert verified["store"] == "not_checked"
    Path("ledger.jsonl").write_text("x", encoding="utf-8")
    assert run("ledger", "verify", "--export", "ledger.jsonl", status=5)["error"]["exit_status"] == 5
    assert "cannot be read" in run("ledger", "verify", "--export", "no", status=2)["error"]["message"]


@pytest.mark.usefixtures("workspace")
def test_a_disclosure_is_yaml_and_says_what_a_person_must_state(run: Run) -> None:
    run("release", "release.json")
    document = run("disclose", "flights")
    text = run("disclose", "flights", text=True)
    assert yaml.safe_load(text) == document["entry"]
    assert document["entry"]["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}
    for field in document["to_state"]:
        assert f"#   {field}: " in text

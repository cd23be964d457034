"""`suffice store`, pins and warnings of `suffice ledger grant`, and the witness: as commands."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.paid import copy_database, restore_database
from support.running import spec_file

if TYPE_CHECKING:
    from support.making import Workspace
    from support.running import Runner

GRANT = ("ledger", "grant", "passengers", "--epsilon", "10", "--reason", "x", "--unwitnessed")


def spent(suffice: Runner) -> str:
    return str(suffice.json("ledger", "show")["accounts"][0]["spent"])


@pytest.mark.slow
def test_an_older_ledger_and_a_fresh_store(workspace: Workspace, suffice: Runner, tmp_path: Path) -> None:
    """Before, the second release of the same key was made: epsilon 2 for 1."""
    first = spec_file(workspace)
    suffice.json("release", first)
    copy_database(tmp_path / "ledger.db", tmp_path / "copy.db")
    second = spec_file(workspace, name="second")
    suffice.json("release", second)
    restore_database(tmp_path / "copy.db", tmp_path / "ledger.db")
    fresh = ("--store", str(tmp_path / "fresh"))
    error = suffice.json("release", second, *fresh, status=5)["error"]
    assert error["type"] == "LedgerCorruptError"
    assert len(error["message"]) <= 500
    assert spent(suffice) == "1"
    shutil.move(workspace.store, tmp_path / "away")
    with pytest.raises(SystemExit) as caught:
        _main("release", second, *fresh, "--json")
    out, err = suffice.capsys.readouterr()
    assert caught.value.code == 0
    assert json.loads(out)["status"] == "published"
    assert err.startswith("suffice: warning: the store ")
    assert workspace.store in err
    assert err.count("\n") == 1


def _main(*words: str) -> None:
    from suffice.cli import app

    app.main(words)


@pytest.mark.slow
def test_a_stripped_and_a_moved_store_are_adopted(
    workspace: Workspace, suffice: Runner, tmp_path: Path
) -> None:
    released = suffice.json("release", spec_file(workspace))
    store = Path(workspace.store)
    store.joinpath("suffice.json").unlink()
    again = spec_file(workspace, name="again")
    error = suffice.json("release", again, status=5)["error"]
    assert error["type"] == "WrongStoreError"
    assert f"`suffice store adopt {store}`" in error["message"]
    assert spent(suffice) == "1"
    adopted = suffice.json("store", "adopt", str(store))
    assert (adopted["restored"], adopted["markers"], adopted["releases"]) == (True, 1, 1)
    assert suffice.json("verify", "flights", "--ledger", workspace.ledger)["ok"]
    store.rename(tmp_path / "moved")
    assert suffice.json("release", again, status=5)["error"]["type"] == "WrongStoreError"
    assert not store.exists()
    text = suffice.text("store", "adopt", str(tmp_path / "moved"))
    assert f"it was at {store}" in text
    assert suffice.json("release", again, "--store", str(tmp_path / "moved"))["status"] == "published"
    (known,) = suffice.json("store", "list")["stores"]
    assert (known["store_id"], known["uri"]) == (adopted["store_id"], str(tmp_path / "moved"))
    assert suffice.json("ledger", "verify", "--store", str(tmp_path / "moved"))["ok"]
    assert (
        released["release_id"] in suffice.json("show", "flights", "--store", str(tmp_path / "moved"))["uri"]
    )


@pytest.mark.slow
def test_a_store_is_retired_by_its_id_its_beginning_or_its_place(
    workspace: Workspace, suffice: Runner
) -> None:
    assert suffice.text("store", "list") == "no stores: nothing was ever charged\n"
    suffice.json("release", spec_file(workspace))
    (known,) = suffice.json("store", "list")["stores"]
    assert known["uri"] in suffice.text("store", "list")
    error = suffice.json("store", "retire", "/nowhere", "--reason", "x", status=2)["error"]
    assert "suffice store list" in error["message"]
    for name in (known["store_id"], known["store_id"][:8], known["uri"]):
        assert suffice.json("store", "retire", name, "--reason", "gone")["retired"]
    refused = spec_file(workspace, name="again")
    assert "retired" in suffice.json("release", refused, status=5)["error"]["message"]
    suffice.json("store", "adopt", workspace.store)
    assert suffice.json("release", refused)["status"] == "published"


def test_pinned_stores_are_granted_and_held(workspace: Workspace, suffice: Runner, tmp_path: Path) -> None:
    account = suffice.json(*GRANT, "--store", workspace.store, "--store", "s3a://bucket/x/")
    assert account["stores"] == [workspace.store, "s3://bucket/x"]
    assert f"  releases go to {workspace.store}, s3://bucket/x\n" in suffice.text("ledger", "show")
    spec = spec_file(workspace)
    error = suffice.json("release", spec, "--store", str(tmp_path / "other"), status=3)["error"]
    assert error["type"] == "GuaranteeError"
    assert not (tmp_path / "other").exists()
    assert (spent(suffice), suffice.json("ledger", "show")["accounts"][0]["charges"]) == ("0", [])
    assert suffice.json("release", spec)["status"] == "published"


def test_overlapping_accounts_are_warned_of(workspace: Workspace, suffice: Runner) -> None:
    data = str(workspace.data)
    with pytest.raises(SystemExit):
        _main(*GRANT, "--source", data, "--json")
    out, err = suffice.capsys.readouterr()
    assert (json.loads(out)["warnings"], err) == ([], "")
    words = ("ledger", "grant", "crew", "--epsilon", "1", "--reason", "x", "--unwitnessed")
    for sources, warned in (
        (
            ("--source", f"{data}/part-1.parquet"),
            "the accounts crew and passengers allow overlapping sources",
        ),
        (("--source", str(workspace.directory / "other")), ""),
    ):
        with pytest.raises(SystemExit) as caught:
            _main(*words, *sources, "--json")
        out, err = suffice.capsys.readouterr()
        assert caught.value.code == 0
        assert [sentence[: len(warned)] for sentence in json.loads(out)["warnings"]] == [warned] * bool(
            warned
        )
        assert err.startswith(f"suffice: warning: {warned}" if warned else "")
        assert bool(err) is bool(warned)


def test_a_store_is_verified(workspace: Workspace, suffice: Runner) -> None:
    released = suffice.json("release", spec_file(workspace))
    whole = suffice.json("store", "verify", workspace.store, "--ledger", workspace.ledger)
    assert whole == {
        "ok": True,
        "problems": [],
        "releases": 1,
        "files": 7,
        "tombstones": 0,
        "markers": 1,
        "withdrawn": 0,
        "publications": 0,
        "left_files": 0,
        "leftovers": [],
        "ledger": "checked",
    }
    assert "ok - 1 release with 7 files, 0 tombstones, 1 marker, 0 publications;" in suffice.text(
        "store", "verify", workspace.store
    )
    Path(released["files"][0]["path"]).unlink()
    for words in (("store", "verify", workspace.store), ("ledger", "verify", "--store", workspace.store)):
        verified = suffice.json(*words, status=5)
        assert not verified["ok"]
        assert Path(released["files"][0]["path"]).name in verified["problems"][0]


@pytest.mark.slow
def test_a_witness_refuses_an_older_copy(
    workspace: Workspace, suffice: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = str(tmp_path / "elsewhere" / "witness")
    spec = spec_file(workspace)
    error = suffice.json("release", spec, "--witness", witness, status=2)["error"]
    assert "suffice ledger witness" in error["message"]
    assert suffice.json("ledger", "witness", witness)["sequence"] == 2
    copy_database(tmp_path / "ledger.db", tmp_path / "copy.db")
    assert suffice.json("release", spec, "--witness", witness)["status"] == "published"
    assert suffice.json("ledger", "verify", "--witness", witness)["witness"] == "checked"
    head = suffice.json("ledger", "verify")
    assert json.loads(Path(witness).read_bytes())["hash"] == head["hash"]
    restore_database(tmp_path / "copy.db", tmp_path / "ledger.db")
    assert suffice.json("ledger", "verify")["ok"]
    assert not suffice.json("ledger", "verify", "--witness", witness, status=5)["ok"]
    sealed = suffice.json("ledger", "verify", "--checkpoint", "--witness", witness, status=5)
    assert not sealed["ok"]
    assert suffice.json("ledger", "verify")["since"] == 0  # nothing was sealed
    shutil.rmtree(workspace.store)
    monkeypatch.setenv("SUFFICE_WITNESS", witness)
    assert suffice.json("release", spec, status=5)["error"]["type"] == "LedgerCorruptError"
    assert spent(suffice) == "0"


def test_a_witness_that_cannot_be_moved_returns_the_epsilon(
    workspace: Workspace, suffice: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from suffice.errors import StoreError
    from suffice.storage.objects.local_files import LocalFiles

    witness = str(tmp_path / "witness")
    suffice.json("ledger", "witness", witness)

    def fails(_: LocalFiles, key: str, data: bytes, *, expected: bytes) -> None:
        raise StoreError(f"{key} cannot be replaced: {len(data)} {len(expected)}")

    monkeypatch.setattr(LocalFiles, "replace", fails)
    error = suffice.json("release", spec_file(workspace), "--witness", witness, status=1)["error"]
    assert "its epsilon was returned" in error["message"]
    assert spent(suffice) == "0"


def test_a_witness_that_stays_behind_after_the_release_is_warned_of(
    workspace: Workspace, suffice: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from suffice.errors import StoreError
    from suffice.storage.objects.local_files import LocalFiles

    witness = str(tmp_path / "witness")
    suffice.json("ledger", "witness", witness)
    replace, n_calls = LocalFiles.replace, []

    def fails_later(files: LocalFiles, key: str, data: bytes, *, expected: bytes) -> None:
        n_calls.append(key)
        if len(n_calls) > 2:  # it moved before the draw and before the first put
            raise StoreError(f"{key} cannot be replaced")
        replace(files, key, data, expected=expected)

    monkeypatch.setattr(LocalFiles, "replace", fails_later)
    with pytest.raises(SystemExit) as caught:
        _main("release", spec_file(workspace), "--witness", witness, "--json")
    out, err = suffice.capsys.readouterr()
    assert (caught.value.code, json.loads(out)["status"]) == (0, "published")
    assert err.startswith("suffice: warning: the release stands; its ledger's witness stays behind: ")

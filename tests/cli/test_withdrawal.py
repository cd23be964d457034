"""Withdrawn releases on the command line: refused by name, read on demand, charged as before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from suffice.cli import app
from suffice.errors import ReleaseWithdrawnError
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.objects.local_files import LocalFiles
from suffice.storage.releases.release_store import open_release, open_store
from suffice.storage.signatures.signing import new_keys
from support.bad_inputs import walk
from support.making import Workspace, make_workspace, mapping
from support.profiles import pinning, profile_text
from support.publications import publish as publish_posterior
from support.publications import replace_bytes, request_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., Any]

REASON = "the source had rows of 2012"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    made = make_workspace(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUFFICE_STORE", made.store)
    monkeypatch.setenv("SUFFICE_LEDGER", made.ledger)
    for name in ("SUFFICE_PUBLIC_KEYS", "SUFFICE_SIGNING_KEY", "SUFFICE_PUBLICATION_PUBLIC_KEYS"):
        monkeypatch.delenv(name, raising=False)
    return made


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process: its JSON, or both of its texts where ``text=True``."""

    def command(*words: str, status: int = 0, text: bool = False) -> Any:
        with pytest.raises(SystemExit) as caught:
            app.main(words if text else [*words, "--json"])
        captured = capsys.readouterr()
        assert caught.value.code == status, captured
        return captured.out + captured.err if text else json.loads(captured.out)

    return command


def _write_spec(workspace: Workspace, **changes: Any) -> None:
    text = json.dumps(mapping(workspace.data, **changes))
    workspace.directory.joinpath("release.json").write_text(text, encoding="utf-8")


def _entries(workspace: Workspace) -> int:
    with open_ledger(workspace.ledger) as ledger:
        return len(list(ledger.entries()))


@pytest.mark.slow
def test_a_withdrawn_release_is_refused_and_stays_charged(workspace: Workspace, run: Run) -> None:
    _write_spec(workspace)
    released = run("release", "release.json")
    files = {path.name: path.read_bytes() for path in Path(released["uri"]).iterdir()}
    entries = _entries(workspace)
    done = run("withdraw", "flights", "--reason", REASON)
    assert (done["status"], done["withdrawal"]["reason"]) == ("withdrawn", REASON)
    assert done["withdrawal"]["signature"] == "unsigned"
    left = {path.name: path.read_bytes() for path in Path(released["uri"]).iterdir()}
    assert left.keys() - files.keys() == {"withdrawn.json"}
    assert {name: left[name] for name in files} == files
    for named in ("flights", "flights@latest", "flights@all", released["uri"]):
        refused = run("table", named, "cancelled", status=5)["error"]
        assert refused["type"] == "ReleaseWithdrawnError"
        assert REASON in refused["message"]
        assert "--allow-withdrawn" in refused["message"]
    allowed = run("table", "flights", "cancelled", "--allow-withdrawn")
    assert [withdrawal["reason"] for withdrawal in allowed["withdrawn"]] == [REASON]
    assert "withdrawn" not in run("ledger", "show"), "the next command has opened none"
    assert REASON in run("table", "flights", "cancelled", "--allow-withdrawn", text=True)
    for words in (("release", "release.json"), ("release", "release.json", "--new-attempt")):
        again = run(*words)
        assert again["status"] == "already_published"
        assert [withdrawal["release_id"] for withdrawal in again["withdrawn"]] == [released["release_id"]]
    assert REASON in run("release", "release.json", text=True)
    assert _entries(workspace) == entries
    checked = run("verify", "flights", "--ledger", workspace.ledger)
    assert (checked["ok"], checked["withdrawn"]["reason"]) == (True, REASON)
    assert REASON in run("verify", "flights", text=True)
    whole = run("store", "verify", workspace.store, "--ledger", workspace.ledger)
    assert (whole["ok"], whole["withdrawn"], whole["releases"]) == (True, 1, 1)


def test_a_second_withdrawal_states_the_same_reason(workspace: Workspace, run: Run) -> None:
    _write_spec(workspace)
    run("release", "release.json")
    first = run("withdraw", "flights", "--reason", REASON)
    again = run("withdraw", "flights", "--reason", f" {REASON} ")
    assert (again["status"], again["withdrawal"]) == ("already_withdrawn", first["withdrawal"])
    assert "for the same reason" in run("withdraw", "flights", "--reason", REASON, text=True)
    other = run("withdraw", "flights", "--reason", "it was too cold", status=5)["error"]
    assert other["type"] == "ReleaseWithdrawnError"
    assert "for another reason" in other["message"]


def test_a_reason_is_one_line(workspace: Workspace, run: Run) -> None:
    _write_spec(workspace)
    released = run("release", "release.json")
    for reason in ("", "  ", "a\nb", "x" * 1001, "\u202egnp.x", "\x1b[31m", "\0"):
        assert "reason" in run("withdraw", "flights", "--reason", reason, status=2)["error"]["message"]
    assert not Path(released["uri"], "withdrawn.json").exists()


@pytest.mark.slow
def test_the_last_window_is_not_skipped_and_an_amendment_replaces_it(workspace: Workspace, run: Run) -> None:
    monthly = {"column": "day", "every": "month", "amend": ["7 days"]}
    _write_spec(workspace, window=monthly, privacy=_cheap())
    for window in ("2013-01", "2013-02"):
        run("release", "release.json", "--window", window)
    run("withdraw", "flights@latest", "--reason", REASON)
    assert "flights@2013-02" in run("show", "flights", status=5)["error"]["message"]
    assert run("show", "flights@2013-01")["window"] == "2013-01"
    run("release", "release.json", "--window", "2013-02", "--amendment", "1")
    assert run("show", "flights")["amendment"] == 1
    assert run("show", "flights@2013-02.0", status=5)["error"]["type"] == "ReleaseWithdrawnError"
    whole = run("store", "verify", workspace.store, "--ledger", workspace.ledger)
    assert (whole["ok"], whole["releases"], whole["withdrawn"]) == (True, 3, 1)


def test_a_profile_pins_the_store_that_is_written(workspace: Workspace, run: Run) -> None:
    _write_spec(workspace)
    folder = Path(run("release", "release.json")["uri"])
    (folder / "croissant.json").unlink()
    before = sorted(path.name for path in folder.iterdir())
    elsewhere = workspace.directory / "elsewhere"
    for stores, status in (([str(elsewhere)], 2), ([workspace.store], 0)):
        profile = workspace.directory / "suffice.toml"
        profile.write_text(profile_text(**{**pinning(workspace), "stores": stores}), encoding="utf-8")
        for words in (("withdraw", str(folder), "--reason", REASON), ("describe", str(folder))):
            done = run("--config", str(profile), *words, status=status)
            if status:
                assert done["error"]["type"] == "PinnedError"
                assert sorted(path.name for path in folder.iterdir()) == before
    assert {"croissant.json", "withdrawn.json"} <= {path.name for path in folder.iterdir()}


def _cheap() -> dict[str, str]:
    return {"epsilon": "0.01", "neighboring": "add_or_remove_one", "unit": "row"}


def test_a_withdrawal_is_signed_like_the_release(
    workspace: Workspace, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = new_keys(workspace.directory / "key.pem")
    monkeypatch.setenv("SUFFICE_SIGNING_KEY", str(keys.private_key))
    _write_spec(workspace)
    released = run("release", "release.json")
    run("withdraw", "flights", "--reason", REASON)
    demanded = [str(keys.public_key)]
    with pytest.raises(ReleaseWithdrawnError, match=f"signed by {keys.key_id}"):
        open_release("flights", public_keys=demanded)
    opened = open_release("flights", public_keys=demanded, allow_withdrawn=True)
    assert opened.withdrawn is not None
    assert opened.withdrawn.signature == "checked"
    place = Path(released["uri"], "withdrawn.json")
    content = json.loads(place.read_bytes())
    content["signature"] = None
    place.write_bytes(json.dumps(content, separators=(",", ":"), sort_keys=True).encode())
    with pytest.raises(ReleaseWithdrawnError, match="not signed by a key that is demanded"):
        open_release("flights", public_keys=demanded)
    verified = run("verify", "flights", "--public-key", demanded[0], status=5)
    assert verified["problems"] == ["withdrawn.json is not signed by a key that is demanded"]


def test_every_command_that_reads_releases_reads_withdrawn_ones_on_demand() -> None:
    others = {("verify",), ("store", "verify"), ("describe",), ("keys", "show"), ("catalogue",)}
    without = [
        names
        for names, command in walk(app.command())
        if (options := {param.name for param in command.params}) >= {"public_keys"}
        and "allow_withdrawn" not in options
        and names not in others
    ]
    assert without == []


def test_descriptions_stand_beside_a_release_and_are_put_back(workspace: Workspace, run: Run) -> None:
    _write_spec(workspace)
    folder = Path(run("release", "release.json")["uri"])
    names = ("croissant.json", "datapackage.json")
    first = {name: (folder / name).read_bytes() for name in names}
    (folder / names[0]).unlink()
    done = run("describe", "flights")["files"]
    assert [outcome["status"] for outcome in done] == ["written", "already_there"]
    assert {name: (folder / name).read_bytes() for name in names} == first
    run("describe", "flights", "--out", "elsewhere")
    assert {path.name: path.read_bytes() for path in Path("elsewhere").iterdir()} == first
    assert "is not replaced" in run("describe", "flights", "--out", "elsewhere", status=2)["error"]["message"]
    for refused in ("s3://bucket/place", str(workspace.store) + "/described/here"):
        assert "--out" in run("describe", "flights", "--out", refused, status=2)["error"]["message"]
        assert not Path(refused.replace("//", "/")).parent.exists()
    (folder / names[0]).write_bytes(b"{}")
    assert "another description" in run("describe", "flights", status=5)["error"]["message"]
    assert names[0] in run("verify", "flights", status=5)["problems"][0]


def test_no_release_fails_for_a_description(
    workspace: Workspace, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = LocalFiles.put_new

    def put_new(files: LocalFiles, key: str, data: bytes) -> None:
        if key.endswith(("croissant.json", "datapackage.json")):
            raise MemoryError
        put(files, key, data)

    monkeypatch.setattr(LocalFiles, "put_new", put_new)
    _write_spec(workspace)
    released = run("release", "release.json")
    assert released["status"] == "published"
    assert not Path(released["uri"], "croissant.json").exists()
    monkeypatch.undo()
    monkeypatch.chdir(workspace.directory)
    assert [file["status"] for file in run("describe", released["uri"])["files"]] == ["written"] * 2


def test_verify_knows_publications(workspace: Workspace, run: Run, tmp_path: Path) -> None:
    from suffice.storage.publications.publication_store import PublicationStore

    _write_spec(workspace)
    run("release", "release.json")
    store = PublicationStore.open(workspace.store)
    store.check_create_only()
    made = publish_posterior(store)
    checked = run("verify", made.uri)
    assert (checked["ok"], checked["files"], checked["signature"]) == (True, 2, "unsigned")
    whole = run("store", "verify", workspace.store)
    assert (whole["ok"], whole["publications"], whole["left_files"]) == (True, 1, 0)
    store.put_file(made.publication_id, "draws.parquet", b"of another writer")
    assert run("store", "verify", workspace.store)["left_files"] == 1
    (Path(made.uri) / "notes.txt").write_text("x", encoding="utf-8")
    (Path(workspace.store) / "publications" / "stray").write_text("x", encoding="utf-8")
    unfinished = publish_posterior(store, request_of(draws=7))
    Path(unfinished.uri, "manifest.json").unlink()
    replace_bytes(Path(made.uri), "summaries.parquet", b"PAR1 summariez")
    problems = run("store", "verify", workspace.store, status=5)["problems"]
    for named in ("notes.txt", "publications/stray", "nothing was published", "summaries.parquet does not"):
        assert sum(named in problem for problem in problems) == 1, (named, problems)
    assert len(problems) == 4
    keys = new_keys(tmp_path / "key")
    refused = run("verify", made.uri, "--publication-key", str(keys.public_key), status=5)
    assert "not signed" in refused["problems"][0]
    assert "--ledger" in run("verify", made.uri, "--ledger", workspace.ledger, status=2)["error"]["message"]
    assert open_store(workspace.store).releases()[0].name == "flights"

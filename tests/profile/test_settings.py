"""What a profile pins is chosen among; what lies outside is refused before anything is opened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import suffice
from suffice.errors import PinnedError, UsageError
from suffice.profile.settings import (
    STALL,
    VARIABLES,
    pinned_certificates,
    public_keys,
    settings,
    stall_seconds,
    stall_setting,
)
from suffice.storage.ledger.opening import create_ledger
from support.making import Workspace, make_workspace, mapping
from support.profiles import pinning, write_profile

if TYPE_CHECKING:
    from support.running import Runner


@pytest.fixture
def pinned(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A place whose ledger, store, cluster and folder of specs are pinned, and named by nothing else."""
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)
    profile = write_profile(workspace.directory / "suffice.toml", **pinning(workspace))
    monkeypatch.setenv("SUFFICE_CONFIG", str(profile))
    return workspace


def test_the_variable_of_stalls_wins_over_the_profile_and_that_over_the_default(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(STALL, raising=False)
    assert (stall_setting().origin, stall_seconds()) == ("default", 600.0)
    profile = write_profile(workspace.directory / "suffice.toml", **pinning(workspace, stall_seconds=900))
    monkeypatch.setenv("SUFFICE_CONFIG", str(profile))
    assert (stall_setting().origin, stall_seconds()) == ("profile", 900.0)
    monkeypatch.setenv(STALL, "86400")
    assert (stall_setting().origin, stall_seconds()) == ("environment", 86400.0)
    for wrong in ("0", "86401", "-1", "1.5", "1e3", "abc", "٣"):
        monkeypatch.setenv(STALL, wrong)
        with pytest.raises(UsageError, match="SUFFICE_STALL_SECONDS: this is no whole number"):
            stall_seconds()


def outside(pinned: Workspace) -> dict[str, str]:
    """Return a value outside of the profile for each parameter."""
    return {
        "ledger": f"sqlite:///{pinned.directory}/other.db",
        "store": f"{pinned.directory}/releases-of-others",
        "cluster": "tls://elsewhere:8786",
    }


def test_what_is_left_out_is_what_is_pinned(pinned: Workspace) -> None:
    chosen = settings(spec_path=pinned.directory / "release.json")
    assert (chosen.ledger, chosen.store, chosen.cluster) == (pinned.ledger, pinned.store, "threads")
    assert settings(store=f"{pinned.store}/team").store == f"{pinned.store}/team"
    release = suffice.release(suffice.load_spec(pinned.write_spec()))
    assert release.uri.startswith(pinned.store)


@pytest.mark.parametrize("name", ["ledger", "store", "cluster"])
@pytest.mark.parametrize("way", ["python", "variable", "option"])
def test_what_lies_outside_is_refused_before_anything_is_opened(
    pinned: Workspace, monkeypatch: pytest.MonkeyPatch, suffice_command: Runner, name: str, way: str
) -> None:
    """The other ledger has the same account, with budget: opened, it would pay."""
    other = outside(pinned)[name]
    with create_ledger(outside(pinned)["ledger"]) as ledger:
        ledger.grant("passengers", epsilon=suffice_epsilon("100"), reason="a way around the budget")
    spec = pinned.write_spec()
    if way == "python":
        loaded, arguments = suffice.load_spec(spec), {name: other}
        with pytest.raises(PinnedError, match=f"^{name}: this lies outside"):
            suffice.release(loaded, **arguments)  # type: ignore[arg-type]
    else:
        if way == "variable":
            monkeypatch.setenv(VARIABLES[name], other)
        words = ["release", str(spec), *([f"--{name}", other] if way == "option" else [])]
        error = suffice_command.json(*words, status=2)["error"]
        place = VARIABLES[name] if way == "variable" else f"--{name}"
        assert error["type"] == "PinnedError"
        assert error["message"].startswith(f"{place}: this lies outside")
    assert pinned.charge() is None
    assert not Path(pinned.store).exists()
    assert not Path(outside(pinned)["store"]).exists()
    with create_ledger(outside(pinned)["ledger"]) as ledger:
        assert ledger.account("passengers").spent == 0


@pytest.mark.slow
def test_specs_lie_in_their_folders(pinned: Workspace, tmp_path: Path, suffice_command: Runner) -> None:
    folder = pinned.directory / "specs"
    folder.mkdir()
    write_profile(pinned.directory / "suffice.toml", **pinning(pinned, spec_folders=[str(folder)]))
    elsewhere = pinned.write_spec()
    (folder / "link.json").symlink_to(elsewhere)
    for path in (elsewhere, folder / "link.json", folder / ".." / elsewhere.name, tmp_path / "absent.json"):
        error = suffice_command.json("release", str(path), status=2)["error"]
        assert error["type"] == "PinnedError", error
    with pytest.raises(PinnedError, match="the spec"):
        suffice.release(suffice.load_spec(elsewhere))
    inside = folder / "deep" / "release.json"
    inside.parent.mkdir()
    inside.write_text(json.dumps(mapping(pinned.data)), encoding="utf-8")
    assert suffice_command.json("release", str(inside))["status"] == "published"


def test_the_pinned_certificates_are_used(
    pinned: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path / "cluster")
    write_profile(pinned.directory / "suffice.toml", **pinning(pinned, cluster_certificates=folder))
    assert settings().cluster_certificates == pinned_certificates() == folder
    monkeypatch.setenv("SUFFICE_CLUSTER_CERTIFICATES", str(tmp_path / "other"))
    for ask in (settings, pinned_certificates):
        with pytest.raises(PinnedError, match=r"^SUFFICE_CLUSTER_CERTIFICATES: this lies outside"):
            ask()


def test_a_link_of_the_caller_is_not_what_is_opened(pinned: Workspace, tmp_path: Path) -> None:
    """It may lead elsewhere by then."""
    link = tmp_path / "link"
    link.symlink_to(pinned.directory)
    ledger, store = f"sqlite:///{link}/ledger.db", f"{link}/releases/team"
    chosen = settings(ledger=ledger, store=store, cluster="threads/")
    assert (chosen.ledger, chosen.store, chosen.cluster) == (
        pinned.ledger,
        f"{pinned.store}/team",
        "threads",
    )
    link.unlink()
    (tmp_path / "elsewhere").mkdir()
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PinnedError):
        settings(ledger=ledger)
    with pytest.raises(PinnedError):
        settings(store=store)


def test_an_empty_value_is_no_default(workspace: Workspace) -> None:
    for name in VARIABLES:
        arguments: dict[str, Any] = {name: " "}
        with pytest.raises(UsageError, match=f"{name}: the value is empty"):
            settings(**arguments)
    with pytest.raises(UsageError, match="ledger: the value is empty"):
        suffice.release(workspace.spec(), ledger="")


def test_several_that_are_pinned_need_a_choice(pinned: Workspace) -> None:
    stores = [f"{pinned.directory}/a", f"{pinned.directory}/b"]
    write_profile(
        pinned.directory / "suffice.toml",
        **pinning(
            pinned, stores=stores, clusters=["local", "threads"], spool="/srv/spool", witness="s3://audit/x"
        ),
    )
    with pytest.raises(PinnedError, match="several and none is named"):
        settings()
    chosen = settings(store=stores[1])
    assert (chosen.store, chosen.cluster) == (stores[1], "threads")  # the default is among them
    assert (chosen.spool, chosen.witness) == ("/srv/spool", "s3://audit/x")
    with pytest.raises(PinnedError, match="spool: this lies"):
        settings(store=stores[1], spool="/srv/other")
    with pytest.raises(PinnedError, match="witness: this lies"):
        settings(store=stores[1], witness="s3://audit/y")


def test_readers_demand_the_keys_that_are_pinned(
    pinned: Workspace, monkeypatch: pytest.MonkeyPatch, suffice_command: Runner
) -> None:
    directory = pinned.directory
    for name in ("ours", "theirs"):
        suffice_command.json("keys", "new", "--out", str(directory / f"{name}.pem"))
    monkeypatch.setenv("SUFFICE_SIGNING_KEY", str(directory / "theirs.pem"))
    released = suffice_command.json("release", str(pinned.write_spec()))
    assert released["status"] == "published"
    ours = str(directory / "ours.pem.pub")
    write_profile(directory / "suffice.toml", **pinning(pinned, public_keys=[ours]))
    assert suffice_command.json("show", "flights", status=5)["error"]["type"] == "SignatureError"
    theirs = ["--public-key", str(directory / "theirs.pem.pub")]
    assert suffice_command.json("show", "flights", *theirs, status=2)["error"]["type"] == "PinnedError"
    monkeypatch.setenv("SUFFICE_PUBLIC_KEYS", theirs[1])
    assert suffice_command.json("show", "flights", status=2)["error"]["type"] == "PinnedError"
    assert public_keys(["x"], profile=None) == ["x"]


def test_a_profile_that_breaks_a_rule_stops_every_command(pinned: Workspace, suffice_command: Runner) -> None:
    (pinned.directory / "suffice.toml").write_text("ledgr = 'x'", encoding="utf-8")
    for words in (("release", "release.json"), ("ledger", "show"), ("config", "show"), ("table", "a", "b")):
        error = suffice_command.json(*words, status=2)["error"]
        assert error["type"] == "ProfileError"


def test_without_a_profile_nothing_is_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUFFICE_CONFIG", raising=False)
    other = make_workspace(tmp_path / "other")
    assert settings(ledger=other.ledger, cluster="local").ledger == other.ledger


def suffice_epsilon(text: str) -> Any:
    """Return an exact epsilon."""
    from fractions import Fraction

    return Fraction(text)


@pytest.fixture
def suffice_command(capsys: pytest.CaptureFixture[str]) -> Runner:
    """Return what runs commands in this process; `suffice` is the package here."""
    from support.running import Runner

    return Runner(capsys)

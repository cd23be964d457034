"""``suffice config show``: which profile, each value and where it came from, and never a secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from suffice.profile.settings import VARIABLES
from support.profiles import at_fixed_place, pinning, write_profile

if TYPE_CHECKING:
    from pathlib import Path

    from support.making import Workspace
    from support.running import Runner


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (*VARIABLES.values(), "SUFFICE_CONFIG", "SUFFICE_PUBLIC_KEYS"):
        monkeypatch.delenv(variable, raising=False)


def rows(document: dict[str, Any]) -> dict[str, tuple[str | None, str, bool]]:
    return {row["name"]: (row["value"], row["origin"], row["refused"]) for row in document["settings"]}


def test_without_a_profile(suffice: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUFFICE_LEDGER", "postgresql://u:hunter2@db/ledger")
    document = suffice.json("config", "show", "--store", "elsewhere", status=2)
    assert (document["profile"], document["ignored"]) == (None, [])
    settings = rows(document)
    assert settings["ledger"] == ("postgresql://***@db/ledger", "environment", False)
    assert settings["store"] == ("elsewhere", "option", False)
    assert settings["cluster"] == ("threads", "default", False)
    assert settings["spool"] == (None, "nobody", True)  # a release is refused without one
    assert "hunter2" not in suffice.text("config", "show", status=2)


@pytest.mark.parametrize("named", [None, "sqlite:///other.db"])
def test_the_spool_is_where_drawn_files_would_wait(
    suffice: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    options = [] if named is None else ["--ledger", named]
    file = "ledger.db" if named is None else "other.db"
    beside = str(tmp_path / f"{file}.spool")
    assert rows(suffice.json("config", "show", *options))["spool"] == (beside, "beside the ledger", False)
    monkeypatch.setenv("SUFFICE_SPOOL", str(tmp_path / "elsewhere"))
    spool = rows(suffice.json("config", "show", *options))["spool"]
    assert spool == (str(tmp_path / "elsewhere"), "environment", False)


def test_with_a_profile(workspace: Workspace, suffice: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)
    profile = write_profile(workspace.directory / "suffice.toml", **pinning(workspace, log_format="text"))
    document = suffice.json("--config", str(profile), "config", "show")
    assert document["profile"] == {"path": str(profile), "origin": "option"}
    settings = rows(document)
    assert settings["ledger"] == (workspace.ledger, "profile", False)
    assert settings["cluster"] == ("threads", "default", False)
    assert settings["log_format"] == ("text", "profile", False)
    assert suffice.json("config", "show")["profile"] is None  # the option held for one command


def test_what_is_refused_is_shown_as_that(
    workspace: Workspace, suffice: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write_profile(workspace.directory / "etc" / "suffice.toml", **pinning(workspace))
    at_fixed_place(monkeypatch, place)
    monkeypatch.setenv("SUFFICE_LEDGER", "sqlite:////elsewhere.db")
    monkeypatch.setenv("SUFFICE_CONFIG", "/another.toml")
    document = suffice.json("config", "show", status=2)
    assert document["profile"]["origin"] == "fixed place"
    assert document["ignored"] == ["SUFFICE_CONFIG"]
    assert rows(document)["ledger"] == ("sqlite:////elsewhere.db", "environment", True)
    text = suffice.text("config", "show", status=2)
    assert "environment, refused" in text
    assert "SUFFICE_CONFIG is set and ignored" in text


def test_a_profile_is_named_by_a_file(suffice: Runner, tmp_path: Path) -> None:
    error = suffice.json("--config", str(tmp_path / "absent.toml"), "config", "show", status=2)["error"]
    assert error["type"] == "ProfileError"

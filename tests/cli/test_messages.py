"""Standard error in the format that the profile states: a line of JSON for each event, or text."""

from __future__ import annotations

import json
import re
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from suffice.cli import app, messages
from suffice.errors import SufficeWarning
from suffice.monitoring import records
from support.profiles import pinning, write_profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.making import Workspace


@contextmanager
def log_of_its_own() -> Iterator[None]:
    """Leave no log to the tests that follow in this process."""
    token = records.CURRENT.set(None)
    yield
    records.CURRENT.reset(token)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str]]:
    """Run a command, and return its status and the lines of standard error."""
    with pytest.raises(SystemExit) as caught:
        app.main(words)
    return int(str(caught.value.code)), capsys.readouterr().err.splitlines()


def test_a_run_is_lines_of_json_from_start_to_end(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = write_profile(workspace.directory / "suffice.toml", **pinning(workspace, log_format="json"))
    status, lines = run(capsys, "--config", str(profile), "release", str(workspace.write_spec()))
    started, ended = map(json.loads, lines)  # and no progress: how many parts there are follows from the rows
    assert (status, started["event"], ended["event"]) == (0, "started", "ended")
    assert (started["line"], ended["line"], ended["exit_status"]) == (1, 2, 0)
    assert re.fullmatch(r"[0-9a-f]{16}", started["run"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\dZ", started["started"])
    assert all(started[name] == ended[name] for name in ("run", "started", "command"))
    charge = workspace.charge()
    assert charge is not None
    fields = ("dataset", "name", "window", "amendment", "charge", "release_id", "state")
    public = ["passengers", "flights", "all", 0, charge.charge_id, charge.release_id, "published"]
    assert [ended[field] for field in fields] == public


def test_an_error_is_a_line_of_its_run(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    profile = write_profile(workspace.directory / "suffice.toml", **pinning(workspace, log_format="json"))
    for words in (("release", "absent.yaml"), ("release", "absent.yaml", "--json")):
        status, lines = run(capsys, "--config", str(profile), *words)
        started, failed, ended = map(json.loads, lines)
        assert (status, failed["type"], failed["exit_status"], ended["exit_status"]) == (
            2,
            "PinnedError",
            2,
            2,
        )
        assert started["run"] == failed["run"] == ended["run"]
        assert started["command"] == "release"


def test_the_variable_wins_over_the_profile(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = write_profile(workspace.directory / "suffice.toml", **pinning(workspace, log_format="json"))
    monkeypatch.setenv("SUFFICE_LOG", "text")
    assert run(capsys, "--config", str(profile), "ledger", "show") == (0, [])
    monkeypatch.setenv("SUFFICE_LOG", "json")
    status, lines = run(capsys, "ledger", "show")
    assert (status, [json.loads(line)["command"] for line in lines]) == (0, ["ledger show"] * 2)
    monkeypatch.setenv("SUFFICE_LOG", "yaml")
    status, lines = run(capsys, "ledger", "show")
    assert (status, len(lines)) == (2, 1)
    assert "SUFFICE_LOG" in lines[0]
    assert "yaml" not in lines[0]


def test_a_backfill_has_a_line_for_each_window(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUFFICE_LOG", "json")
    spec = workspace.write_spec(window={"column": "day", "every": "month"})
    status, lines = run(capsys, "backfill", str(spec), "--from", "2013-01", "--to", "2013-02")
    *_, first, second, ended = map(json.loads, lines)
    assert (status, ended["event"]) == (0, "ended")
    for line, window in ((first, "2013-01"), (second, "2013-02")):
        charge = workspace.charge(window=window)
        assert charge is not None
        assert (line["window"], line["charge"], line["message"]) == (window, charge.charge_id, "published")


def test_text_is_the_default(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "release", str(workspace.write_spec())) == (0, [])  # progress on a terminal only
    status, lines = run(capsys, "release", "absent.yaml")
    assert status == 2
    rule = "the spec cannot be read: there is no such file"
    assert lines == [f"suffice: absent.yaml: {rule} (name a YAML or JSON file)"]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_warning_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], log_format: str
) -> None:
    monkeypatch.setenv("SUFFICE_LOG", log_format)
    with log_of_its_own(), warnings.catch_warnings():
        warnings.simplefilter("always")
        messages.show_warnings()
        warnings.warn("a library's own", UserWarning, stacklevel=1)
        warnings.warn("two files differ", SufficeWarning, stacklevel=1)
    line = capsys.readouterr().err
    expected = "suffice: warning: two files differ\n"
    assert line == expected if log_format == "text" else json.loads(line)["message"] == "two files differ"

"""Standard error in the format that the profile states: a line of JSON for each event, or text."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING

import pytest

from suffice.cli import app, messages
from suffice.errors import SufficeWarning
from support.profiles import pinning, write_profile

if TYPE_CHECKING:
    from support.making import Workspace


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str]]:
    """Run a command, and return its status and the lines of standard error."""
    with pytest.raises(SystemExit) as caught:
        app.main(words)
    return int(str(caught.value.code)), capsys.readouterr().err.splitlines()


def test_errors_are_lines_of_json_and_progress_is_none(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = write_profile(workspace.directory / "suffice.toml", **pinning(workspace, log_format="json"))
    status, lines = run(capsys, "--config", str(profile), "release", str(workspace.write_spec()))
    assert (status, lines) == (0, []), "how many parts were read follows from how many rows there are"
    status, lines = run(capsys, "--config", str(profile), "release", "absent.yaml")
    assert (status, len(lines)) == (2, 1)
    assert json.loads(lines[0])["event"] == "error"
    assert json.loads(lines[0])["exit_status"] == 2


def test_text_is_the_default(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "release", str(workspace.write_spec())) == (0, [])  # progress on a terminal only
    status, lines = run(capsys, "release", "absent.yaml")
    assert status == 2
    assert lines == ["suffice: absent.yaml: the spec cannot be read (name a YAML or JSON file)"]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_warning_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], log_format: str
) -> None:
    monkeypatch.setattr(messages, "log_format", lambda: log_format)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        messages.show_warnings()
        warnings.warn("a library's own", UserWarning, stacklevel=1)
        warnings.warn("two files differ", SufficeWarning, stacklevel=1)
    line = capsys.readouterr().err
    expected = "suffice: warning: two files differ\n"
    assert line == expected if log_format == "text" else json.loads(line)["message"] == "two files differ"

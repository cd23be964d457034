"""Commands on hostile releases: a typed error each, of our own words, whatever was changed."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from suffice.cli import app
from suffice.errors import StorageError
from support.manifest_mutants import sealed
from support.releases import make_plan, publish

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a coefficient": lambda c: c["statistics"][0]["quantities"][0]["coefficients"].update(UA="10"),
    "a key that colours": lambda c: (
        c["groups"][0]["keys"].__setitem__(0, "\x1b[31mEWR"),
        c["plan"]["groups"]["origin"].__setitem__(0, "\x1b[31mEWR"),
    ),
    "a plan of every day": lambda c: c["plan"]["groups"].update(
        origin={"from": "0001-01-01", "to": "9999-12-31", "every": "day"}
    ),
    "a plan that reads a file": lambda c: c["plan"]["groups"].update(origin={"file": "/etc/hostname"}),
    "a number as text": lambda c: c.update(drawing_sequence="4"),
    "a long text": lambda c: c.update(name="x" * 100_000),
}

COMMANDS = {
    "verify": (),
    "show": (),
    "table": ("cancelled",),
    "posterior": ("cancelled",),
    "calibrate": ("cancelled",),
    "disclose": (),
}


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any], str]:
    with pytest.raises(SystemExit) as caught:
        app.main([*words, "--json"])
    captured = capsys.readouterr()
    return int(caught.value.code or 0), json.loads(captured.out), captured.out + captured.err


def check(capsys: pytest.CaptureFixture[str], directory: Path, text: str) -> None:
    for command, more in COMMANDS.items():
        status, document, printed = run(capsys, command, str(directory), *more)
        assert status == StorageError.exit_status
        problem = document["problems"][0] if command == "verify" else document["error"]["message"]
        assert text in problem
        assert len(problem) <= 500
        assert "internal error" not in printed
        assert "\x1b" not in printed


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_every_command_refuses_a_hostile_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable[[dict[str, Any]], object]
) -> None:
    directory = publish(tmp_path / "store", make_plan())
    path = directory / "manifest.json"
    content = json.loads(path.read_bytes())
    change(content)
    path.write_bytes(sealed(content))
    check(capsys, directory, "the manifest is corrupt: ")


def test_every_command_refuses_a_hostile_data_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its size and SHA-256 are those that the manifest states: the footer alone is damaged."""
    directory = publish(tmp_path / "store", make_plan())
    file = directory / "carrier.parquet"
    data = bytearray(file.read_bytes())
    data[-200:-60] = bytes(140)
    file.write_bytes(data)
    path = directory / "manifest.json"
    content = json.loads(path.read_bytes())
    content["files"][0]["sha256"] = hashlib.sha256(data).hexdigest()
    path.write_bytes(sealed(content))
    check(capsys, directory, "the file of carrier is corrupt: ")

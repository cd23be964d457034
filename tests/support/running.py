"""Commands run in this process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from suffice.cli import app
from support.making import mapping

if TYPE_CHECKING:
    from support.making import Workspace


class Runner:
    """Runs commands in this process and returns their JSON, their text or their status."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def text(self, *words: str, status: int = 0) -> str:
        """Run a command that ends with a status, and return what it printed."""
        with pytest.raises(SystemExit) as caught:
            app.main(words)
        captured = self.capsys.readouterr()
        assert caught.value.code == status, captured
        return captured.out if status == 0 else captured.out + captured.err

    def json(self, *words: str, status: int = 0) -> Any:
        """Run a command that ends with a status, and return its one document."""
        with pytest.raises(SystemExit) as caught:
            app.main([*words, "--json"])
        captured = self.capsys.readouterr()
        assert caught.value.code == status, captured
        assert captured.err == ""
        return json.loads(captured.out)


def spec_file(workspace: Workspace, **changes: Any) -> str:
    """Write the spec of :func:`support.making.mapping` over a place's data, and return its path."""
    path = workspace.directory / "release.json"
    path.write_text(json.dumps(mapping(workspace.data, **changes)), encoding="utf-8")
    return str(path)

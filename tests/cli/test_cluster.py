"""``suffice cluster certificates``: what is printed when they are made, shown and renewed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.cli import keys
from suffice.pipeline.cluster.certificates import DAYS, MOST_DAYS

if TYPE_CHECKING:
    from pathlib import Path

    from support.running import Runner


def test_made_then_shown_then_renewed(suffice: Runner, tmp_path: Path) -> None:
    words = ("cluster", "certificates", str(tmp_path / "cluster"))
    said = suffice.text(*words)
    assert said.startswith("made an authority for this cluster alone")
    assert "keep ca.key apart" in said
    assert suffice.text(*words).startswith("these are here already")
    statuses = [suffice.json(*words, *more)["status"] for more in ((), ("--renew",))]
    assert statuses == ["unchanged", "renewed"]
    refused = suffice.json(*words, "--days", "7", status=2)["error"]["message"]
    assert "--days" in refused


def test_the_defaults_that_help_states() -> None:
    assert keys._DAYS == MOST_DAYS
    assert f"[default: {DAYS}]" in str(keys.certificates.__annotations__["days"])

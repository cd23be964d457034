"""The version of time zone data stands beside a release, outside of its plan, and a change is said."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING

import pytest

from suffice.errors import SufficeWarning
from suffice.pipeline.spec import plan
from suffice.pipeline.terms.declaration import time_zones
from suffice.releasing.release import carry_out
from suffice.storage.ledger.opening import open_ledger
from support.making import Workspace, make_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release

STATISTICS = {"cancelled": {"family": "bernoulli", "column": "cancelled"}}


def release(workspace: Workspace, window: str, zone: str) -> Release:
    spec = workspace.spec(
        name=f"flights-{zone.lower().replace('/', '-')}",
        statistics=STATISTICS,
        groups=None,
        window={"column": "day", "every": "month", "time_zone": zone},
    )
    return carry_out(spec, store=workspace.store, ledger=workspace.ledger, window=window).release


@pytest.mark.slow
def test_a_change_between_two_releases_of_an_account_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace(tmp_path)
    version = time_zones.zone_data_version()
    first = release(workspace, "2013-01", "Europe/Berlin")
    assert first.manifest["versions"]["zone_data"] == version
    monkeypatch.setattr(plan, "zone_data_version", lambda: "1999z")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "zone_data" not in release(workspace, "2013-01", "UTC").manifest["versions"]
    with pytest.warns(SufficeWarning, match=f"time zone data are 1999z here, and were {version}"):
        second = release(workspace, "2013-02", "Europe/Berlin")
    assert second.manifest["versions"]["zone_data"] == "1999z"
    assert second.manifest["plan_hash"] == first.manifest["plan_hash"]
    with open_ledger(workspace.ledger) as ledger:
        stated = [
            json.loads(entry.payload)["zone_data"] for entry in ledger.entries() if entry.kind == "drawing"
        ]
        assert stated == [version, None, "1999z"]
        assert ledger.verify() == ()


def test_the_version_is_that_of_the_data_that_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_zones, "TZPATH", (str(tmp_path),))
    assert time_zones.zone_data_version() != "2031b", "the package's, or none"
    (tmp_path / "Europe").mkdir()
    assert time_zones.zone_data_version() == "unknown"
    (tmp_path / "+VERSION").write_text("2031a\n")
    assert time_zones.zone_data_version() == "2031a"
    (tmp_path / "tzdata.zi").write_text("# version 2031b\n# more\n")
    assert time_zones.zone_data_version() == "2031b"

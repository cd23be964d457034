"""`suffice ledger abandon --spool-lost`: the end of a charge whose drawn files are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.errors import StoreError
from support.profiles import pinning, write_profile
from support.running import Runner, spec_file

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from support.making import Workspace


def test_a_charge_whose_spool_is_lost_is_spent(
    workspace: Workspace, suffice: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Refused where nothing is lost; elsewhere it puts the tombstone, and says what it did."""

    def fail(*_: object) -> None:
        message = "the store is away"
        raise StoreError(message)

    words = ("release", spec_file(workspace), "--publish-timeout", "0")
    with monkeypatch.context() as patched:
        patched.setattr("suffice.storage.operations.publishing.put_files", fail)
        assert "nothing is lost" in suffice.text(*words, status=1)
    charge = workspace.charge()
    assert charge is not None
    assert charge.state == "staged"
    assert "--spool-lost" in suffice.text("ledger", "abandon", charge.charge_id, status=2)
    abandon = ("ledger", "abandon", charge.charge_id, "--spool-lost")
    assert "`suffice ledger recover` publishes them" in suffice.text(*abandon, status=2)
    with monkeypatch.context() as patched:  # charges name their stores: none is to be chosen
        patched.delenv("SUFFICE_STORE", raising=False)
        patched.chdir(tmp_path)
        stores = [workspace.store, str(tmp_path / "another")]
        profile = write_profile(tmp_path / "suffice.toml", **pinning(workspace, stores=stores))
        told = suffice.text("--config", str(profile), *abandon, status=2)
        assert "`suffice ledger recover` publishes them" in told
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    monkeypatch.setenv("SUFFICE_SPOOL", str(elsewhere))
    assert "in the spool of" in suffice.text(*words, status=5)
    assert suffice.json(*abandon) == {
        "charge_id": charge.charge_id,
        "dataset": "passengers",
        "name": "flights",
        "window": "all",
        "amendment": 0,
        "before": "staged",
        "after": "abandoned",
        "spent": "1",
    }
    assert suffice.text(*words, status=5).startswith("suffice: epsilon 1 is spent")
    assert workspace.account().spent == 1

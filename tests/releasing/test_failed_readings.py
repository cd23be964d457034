"""A source that fails after its charge is reserved is a free oracle ten times, and then no more."""

from __future__ import annotations

from fractions import Fraction
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import ChargeSpentError, StageFailedError
from suffice.pipeline.rows.reduce import tree
from suffice.pipeline.rows.sources import parquet_files
from suffice.pipeline.spec.spec import load_spec
from suffice.releasing import release as releasing
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.operations.verify_store import verify_store
from suffice.storage.releases.release_store import open_store
from support.making import flights, make_workspace, mapping, write_parts

if TYPE_CHECKING:
    from pathlib import Path

STATISTICS = {"cancelled": {"family": "bernoulli", "column": "cancelled"}}


def test_the_attempt_after_those_that_are_allowed_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace(tmp_path, failed_readings=2)
    spec = workspace.spec(statistics=STATISTICS, groups=None)

    def run(**options: Any) -> str:
        return releasing.carry_out(spec, store=workspace.store, ledger=workspace.ledger, **options).status

    def fail(*_: object, **__: object) -> None:
        message = "division by zero"
        raise RuntimeError(message)

    with monkeypatch.context() as patch:
        patch.setattr(tree, "exact_sums", fail)
        for _ in range(2):
            with pytest.raises(StageFailedError, match="its epsilon was returned"):
                run()
        with pytest.raises(StageFailedError, match="epsilon 1 is spent: as many attempts") as caught:
            run()
    assert "division" not in str(caught.value)
    assert caught.value.stage == "reading"
    with open_ledger(workspace.ledger) as ledger:
        account = ledger.account("passengers")
        assert account.spent == 1
        assert account.reserved == 0
        assert [reading.count for reading in ledger.failed_readings("passengers")] == [2]
        assert ledger.verify() == ()
    with pytest.raises(ChargeSpentError):
        run()
    assert run(new_attempt=True) == "published"
    with open_ledger(workspace.ledger) as ledger:
        assert ledger.account("passengers").spent == 2
        store = open_store(workspace.store, ledger_id=ledger.ledger_id)
        assert not verify_store(store, ledger=ledger).problems


@pytest.mark.slow
def test_stalls_count_with_other_failures_and_the_eleventh_attempt_is_spent(
    tmp_path: Path, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a read hangs may be decided by data, too; and it holds on both ledgers."""
    monkeypatch.setenv("SUFFICE_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("SUFFICE_STALL_SECONDS", "1")
    data = write_parts(flights(60), tmp_path / "data", 1)
    with create_ledger(ledger_url) as ledger:
        ledger.grant("passengers", epsilon=Fraction(2), reason="tests")
    spec = load_spec(mapping(data, statistics=STATISTICS, groups=None))
    over = Event()

    def run(**options: Any) -> str:
        store = str(tmp_path / "releases")
        return releasing.carry_out(spec, store=store, ledger=ledger_url, **options).status

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(tree, "exact_sums", fail)
        for _ in range(9):
            with pytest.raises(StageFailedError, match="its epsilon was returned"):
                run()
    with monkeypatch.context() as patch:
        patch.setattr(parquet_files, "opened", lambda _: over.wait())
        with pytest.raises(StageFailedError, match=r"within the deadline.*its epsilon was returned"):
            run()
        with pytest.raises(StageFailedError, match="epsilon 1 is spent: as many attempts"):
            run()
    over.set()
    with open_ledger(ledger_url) as ledger:
        account = ledger.account("passengers")
        assert account.spent == 1
        assert account.reserved == 0
        assert [reading.count for reading in ledger.failed_readings("passengers")] == [10]
        assert ledger.verify() == ()
    with pytest.raises(ChargeSpentError):
        run()
    assert run(new_attempt=True) == "published"

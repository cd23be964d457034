"""A source that fails after its charge is reserved is a free oracle ten times, and then no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import ChargeSpentError, StageFailedError
from suffice.pipeline.rows.reduce import tree
from suffice.releasing import release as releasing
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.operations.verify_store import verify_store
from suffice.storage.releases.release_store import open_store
from support.making import make_workspace

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
        assert [one.count for one in ledger.failed_readings("passengers")] == [2]
        assert ledger.verify() == ()
    with pytest.raises(ChargeSpentError):
        run()
    assert run(new_attempt=True) == "published"
    with open_ledger(workspace.ledger) as ledger:
        assert ledger.account("passengers").spent == 2
        store = open_store(workspace.store, ledger_id=ledger.ledger_id)
        assert not verify_store(store, ledger=ledger).problems

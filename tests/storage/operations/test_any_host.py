"""With a ledger on a server any host publishes what is staged; on one machine its spool does."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import LedgerError, SpoolElsewhereError, UsageError
from suffice.storage.ledger.charge import Charge, ChargeState
from suffice.storage.operations.markers import put_marker
from suffice.storage.operations.publishing import put_files, stage_files
from suffice.storage.operations.recovery import Action, recover
from suffice.storage.operations.settling import abandon_lost, settle
from suffice.storage.operations.spooling import spool_files, spool_sizes
from suffice.storage.operations.verify_ledger import compare_with_store
from suffice.storage.releases.release_store import ReleaseStore, open_release, open_store
from suffice.storage.releases.spool import open_spool
from support.ledger_sql import REFUSALS, execute, rows, tamper
from support.releases import compose, make_plan, some_values

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suffice.storage.ledger.charge import ChargeRequest
    from suffice.storage.ledger.ledger import Ledger

PLAN = make_plan(name="delays", dataset="flights")


@dataclass
class Staged:
    """A charge that was staged on a host, whose spool and store are then what a test makes of them."""

    ledger: Ledger
    store: ReleaseStore
    root: Path
    charge: Charge

    def publish_elsewhere(self) -> Charge:
        """Settle the charge on another host."""
        return settle(self.ledger, self.store, self.charge, spool=open_spool(self.root / "spool-2"))


@pytest.fixture
def stage(
    ledger: Ledger, make_request: Callable[..., ChargeRequest], clock: Any, tmp_path: Path
) -> Callable[[], Staged]:
    def made() -> Staged:
        store = open_store(str(tmp_path / "releases"), ledger_id=ledger.ledger_id, create=True)
        spool = open_spool(tmp_path / "spool")
        charge = ledger.reserve(
            make_request(
                name=PLAN.name,
                plan_json=PLAN.canonical,
                plan_hash=PLAN.plan_hash,
                store_id=store.store_id,
                store_uri=store.uri,
            )
        )
        entry = spool.reserve(charge, spool_sizes(PLAN, charge, clock()))
        put_marker(ledger, store, charge)
        charge = ledger.enter_drawing(charge, spool=spool.name)
        files = spool_files(entry, PLAN, [(name, block.copy()) for name, block in some_values(PLAN).items()])
        manifest = compose(
            PLAN,
            files,
            release_id=charge.release_id,
            ledger_id=charge.ledger_id,
            drawing_sequence=charge.drawing_sequence,
            drawing_hash=charge.drawing_hash,
        )
        entry.finish(charge, manifest)
        return Staged(ledger, store, tmp_path, stage_files(ledger, charge, entry, manifest))

    return made


def test_any_host_publishes_where_the_ledger_is_on_a_server(
    stage: Callable[[], Staged], ledger_url: str
) -> None:
    staged = stage()
    if ledger_url.startswith("sqlite"):
        assert staged.ledger.most_kept == 0
        assert staged.ledger.staged_names(staged.charge) == frozenset()
        with pytest.raises(SpoolElsewhereError):
            staged.publish_elsewhere()
        return
    assert staged.ledger.most_kept == 64 * 2**20
    shutil.rmtree(staged.root / "spool")  # the host is gone
    with pytest.raises(UsageError, match="at hand"):
        abandon_lost(staged.ledger, staged.store, staged.charge, spool=None)
    assert staged.publish_elsewhere().state is ChargeState.PUBLISHED
    assert rows(ledger_url, "SELECT charge_id FROM staged_files") == []
    charge = staged.charge
    open_release(staged.store.release_uri(charge.name, "all", charge.release_id))
    assert compare_with_store(staged.ledger, staged.store).problems == ()
    assert staged.ledger.verify() == ()
    assert staged.ledger.account("flights").spent == Fraction(1)


def test_a_spool_that_is_lost_right_after_staging_is_published_by_recovery(
    stage: Callable[[], Staged], ledger_url: str
) -> None:
    if ledger_url.startswith("sqlite"):
        pytest.skip("the spool is all there is")
    staged = stage()
    open_spools = partial(open_store, ledger_id=staged.ledger.ledger_id)
    report = recover(staged.ledger, open_spools, spool=open_spool(staged.root / "spool-2"))
    assert [charge.action for charge in report.charges] == [Action.PUBLISHED]


def test_more_than_is_kept_is_published_anywhere_once_it_stands_in_the_store(
    stage: Callable[[], Staged], ledger: Ledger, ledger_url: str
) -> None:
    if ledger_url.startswith("sqlite"):
        pytest.skip("nothing is kept")
    ledger.most_kept = 0
    staged = stage()
    assert rows(ledger_url, "SELECT charge_id FROM staged_files") == []
    with pytest.raises(SpoolElsewhereError):
        staged.publish_elsewhere()
    put_files(ledger, staged.store, open_spool(staged.root / "spool"), staged.charge)
    assert staged.publish_elsewhere().state is ChargeState.PUBLISHED


def test_a_damaged_file_of_the_ledger_is_not_put(stage: Callable[[], Staged], ledger_url: str) -> None:
    if ledger_url.startswith("sqlite"):
        pytest.skip("nothing is kept")
    staged = stage()
    for statement in ("UPDATE staged_files SET content = 'x'", "DELETE FROM staged_files"):
        with pytest.raises(REFUSALS):
            execute(ledger_url, statement)
    tamper(ledger_url, "UPDATE staged_files SET content = 'x'")
    with pytest.raises(LedgerError, match="is damaged: it is not published"):
        put_files(staged.ledger, staged.store, None, staged.charge)
    assert staged.store.objects.keys("delays/") == []
    tamper(ledger_url, "DELETE FROM staged_files")
    with pytest.raises(SpoolElsewhereError):
        staged.publish_elsewhere()


def test_files_are_of_staged_charges_alone(stage: Callable[[], Staged], ledger_url: str) -> None:
    staged = stage()
    insert = f"INSERT INTO staged_files VALUES ('{staged.charge.charge_id}', 'y', '')"  # noqa: S608
    if ledger_url.startswith("sqlite"):
        with pytest.raises(REFUSALS, match="stay in the spool"):
            execute(ledger_url, insert)
        return
    settle(staged.ledger, staged.store, staged.charge)
    with pytest.raises(REFUSALS, match="while a charge is staged"):
        execute(ledger_url, insert)
    tamper(ledger_url, insert)
    assert any("its charge is not staged" in problem for problem in staged.ledger.verify())

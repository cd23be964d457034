"""A draw that its run left: returned where it is proved that nobody saw it, and spent otherwise.

Each rule that recovery follows is taken away once, and what comes of it is named by `unpaid`: noisy values
that somebody may have seen, of a charge whose epsilon came back.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import LedgerCorruptError, StoreError
from suffice.storage.ledger import charge as charges
from suffice.storage.ledger.charge import Charge, ChargeState
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from suffice.storage.operations import settling
from suffice.storage.operations.markers import put_marker
from suffice.storage.operations.publishing import publish
from suffice.storage.operations.recovery import Action, Recovered, recover
from suffice.storage.operations.spooling import spool_files, spool_sizes
from suffice.storage.operations.verify_ledger import compare_with_store
from suffice.storage.operations.witness import check_witness, make_witness
from suffice.storage.releases.manifest import is_tombstone
from suffice.storage.releases.release_store import ReleaseStore, open_store
from suffice.storage.releases.spool import Spool, open_spool
from support.paid import copy_database
from support.releases import compose, make_plan, some_values

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from suffice.storage.ledger.charge import ChargeRequest
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.releases.spool_entry import SpoolEntry

PLAN = make_plan(name="delays", dataset="flights")


@dataclass
class Host:
    """A machine with its spool, at a ledger of which there may be copies."""

    root: Path
    clock: Callable[[], datetime]
    make_request: Callable[..., ChargeRequest]
    witness: str | None = None
    database: str = "ledger.db"
    spool_name: str = "spool"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.root}/{self.database}"

    @property
    def spool(self) -> Spool:
        return open_spool(self.root / self.spool_name)

    def open(self) -> Ledger:
        return open_ledger(self.url, clock=self.clock)

    def store(self, ledger: Ledger) -> ReleaseStore:
        return open_store(str(self.root / "releases"), ledger_id=ledger.ledger_id, create=True)

    def reserve(self, ledger: Ledger) -> tuple[Charge, SpoolEntry]:
        """Reserve a charge, and room for its files."""
        store = self.store(ledger)
        request = self.make_request(
            name=PLAN.name,
            plan_json=PLAN.canonical,
            plan_hash=PLAN.plan_hash,
            store_id=store.store_id,
            store_uri=store.uri,
            witness=self.witness,
        )
        charge = ledger.reserve(request)
        return charge, self.spool.reserve(charge, spool_sizes(PLAN, charge, self.clock()))

    def run(self, ledger: Ledger, until: str = "drawing") -> Charge:
        """Carry a charge as far as its run comes: to its marker, into its draw, or beyond."""
        charge, entry = self.reserve(ledger)
        put_marker(ledger, self.store(ledger), charge)
        if until == "marked":
            return charge
        charge = ledger.enter_drawing(charge, spool=self.spool.name)
        if until == "drawing":
            (entry.path / "n.parquet").write_bytes(b"noisy")
            return charge
        values = some_values(PLAN)
        files = spool_files(entry, PLAN, [(name, block.copy()) for name, block in values.items()])
        manifest = compose(
            PLAN,
            files,
            release_id=charge.release_id,
            ledger_id=charge.ledger_id,
            drawing_sequence=charge.drawing_sequence,
            drawing_hash=charge.drawing_hash,
        )
        entry.finish(charge, manifest)
        if until == "complete":
            return charge
        charge = ledger.stage(charge, manifest)
        return charge if until == "staged" else publish(ledger, self.store(ledger), self.spool, charge)

    def recover(self, **open_: Any) -> Recovered:
        """Recover once every lease has passed, and return what came of the one charge."""
        self.clock.advance(minutes=3)  # type: ignore[attr-defined]
        with self.open() as ledger:
            spool = self.spool if open_.get("with_spool", True) else None
            (ended,) = recover(ledger, partial(open_store, ledger_id=ledger.ledger_id), spool=spool).charges
        return ended

    def copy(self, name: str) -> Host:
        """Copy the ledger as a backup does."""
        copy_database(self.root / self.database, self.root / name)
        return replace(self, database=name)

    def balance(self) -> Any:
        with self.open() as ledger:
            account = ledger.account("flights")
            assert ledger.verify() == ()
            return account.spent, account.reserved


def unpaid(*hosts: Host) -> list[str]:
    """Name what stands in the store, and the ledgers that returned its epsilon."""
    draws = []
    for host in hosts:
        with host.open() as ledger:
            store = host.store(ledger)
            for summary in ledger.charges("flights"):
                place = (summary.name, summary.edition, summary.release_id)
                manifest = store.read_manifest(*place)
                seen = store.objects.keys("/".join(place) + "/")
                tombstone = manifest is not None and is_tombstone(manifest)
                if summary.counts_as == "returned" and len(seen) > tombstone:
                    draws.append(f"{host.database}: {summary.release_id} was returned, and seen")
    return draws


@pytest.fixture
def host(tmp_path: Path, clock: Any, make_request: Callable[..., ChargeRequest]) -> Host:
    made = Host(tmp_path, clock, make_request)
    with create_ledger(made.url, clock=clock) as ledger:
        ledger.grant("flights", epsilon=Fraction(9), reason="first")
    return made


@pytest.fixture
def witnessed(host: Host) -> Host:
    """The same with a witness elsewhere."""
    witness = str(host.root / "elsewhere" / "ledger.witness")
    with host.open() as ledger:
        make_witness(ledger, witness)
    return replace(host, witness=witness)


def left(host: Host, until: str = "drawing") -> Charge:
    """Have a run end at some step."""
    with host.open() as ledger:
        return host.run(ledger, until)


@pytest.mark.parametrize("until", ["marked", "drawing"])
def test_a_draw_left_on_its_host_is_returned(host: Host, until: str) -> None:
    charge = left(host, until)
    ended = host.recover()
    assert ended.action is Action.ABANDONED
    assert ended.returned == 1
    assert ended.spent == 0
    assert "nobody saw what was drawn: epsilon 1 is returned" in str(ended)
    assert host.balance() == (0, 0)
    assert host.spool.charge_ids() == ()
    with host.open() as ledger:
        again = ledger.find("flights", PLAN.name, "all")
        assert again is not None
        assert (again.charge_id, again.draw_returned) == (charge.charge_id, True)
        assert compare_with_store(ledger, host.store(ledger)).problems == ()
        assert host.run(ledger, "published").attempt == 2  # without a new attempt
        assert compare_with_store(ledger, host.store(ledger)).problems == ()
    assert host.balance() == (1, 0)


def test_what_is_complete_is_published_and_never_returned(host: Host) -> None:
    left(host, "complete")
    ended = host.recover()
    assert ended.action is Action.PUBLISHED
    assert ended.spent == 1


def test_a_marker_that_is_damaged_after_it_was_written_proves_nothing(host: Host) -> None:
    """The files were complete once, so they may have been staged by the original of this ledger."""
    charge = left(host, "complete")
    (host.spool.path / f"{charge.charge_id}.1" / "n.parquet").write_bytes(b"damaged")
    assert host.recover().spent == 1


def test_a_marker_that_was_not_cut_yet_is_not_complete(host: Host) -> None:
    """A run that dies between its two last steps in the spool has staged nothing."""
    charge = left(host)
    path = host.spool.path / f"{charge.charge_id}.1" / "complete.json"
    begun = path.read_bytes()
    whole = json.dumps({"charge_id": charge.charge_id}).encode()
    path.write_bytes(whole + begun[len(whole) :])
    assert host.recover().returned == 1


@pytest.mark.parametrize("until", ["marked", "drawing"])
def test_a_second_clone_with_the_same_machine_id_spends(host: Host, until: str) -> None:
    """Its spool has no entry, which releases that were published leave none of either."""
    left(host, until)
    shutil.rmtree(next(path for path in host.spool.path.iterdir() if path.is_dir()))
    ended = host.recover()
    assert ended.spent == 1
    assert "no witness" in str(ended)
    assert host.balance() == (1, 0)


def test_the_mutant_that_takes_no_entry_for_proof_is_caught(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spool, "take_back", lambda *_: True)
    assert len(unpaid(host, _restored(host))) == 1


def _restored(host: Host) -> Host:
    """Publish after a copy of the ledger was made, lose the release with the store, restore, and recover."""
    with host.open() as ledger:
        charge = host.run(ledger)
        copy = host.copy(f"copy-{charge.release_id}.db")
        entry = host.spool.path / f"{charge.charge_id}.{charge.epoch}"
        manifest = _completed(host, charge, entry)
        charge = publish(ledger, host.store(ledger), host.spool, ledger.stage(charge, manifest))
        place = host.root / "releases" / charge.name / "all" / charge.release_id
        seen = shutil.move(place, host.root / "seen")  # the store was restored with the ledger
        ended = copy.recover()
        shutil.rmtree(place)
        shutil.move(seen, place)
    assert ended.action is Action.ABANDONED
    return copy


def _completed(host: Host, charge: Charge, path: Path) -> bytes:
    """Draw on into the files of a charge, to their end."""
    entry = next(entry for _, entry in host.spool._entries(charge.charge_id) if entry.path == path)
    shutil.rmtree(path)
    entry.allocate(spool_sizes(PLAN, charge, host.clock()), run=charge.run)
    blocks = [(name, block.copy()) for name, block in some_values(PLAN).items()]
    manifest = compose(
        PLAN,
        spool_files(entry, PLAN, blocks),
        release_id=charge.release_id,
        ledger_id=charge.ledger_id,
        drawing_sequence=charge.drawing_sequence,
        drawing_hash=charge.drawing_hash,
    )
    entry.finish(charge, manifest)
    return manifest


def test_a_restored_copy_of_ledger_and_store_spends_without_a_witness(host: Host) -> None:
    copy = _restored(host)
    assert unpaid(host, copy) == []
    assert copy.balance() == (1, 0)


def test_another_boot_of_the_machine_spends(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    left(host)
    place = charges._place()
    assert place is not None
    monkeypatch.setattr(charges, "_place", lambda: {**place, "boot": "another"})
    assert host.recover().spent == 1


def test_another_machine_spends(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    left(host)
    place = charges._place()
    assert place is not None
    monkeypatch.setattr(charges, "_place", lambda: {**place, "machine": "another"})
    assert host.recover().spent == 1


def test_a_spool_elsewhere_decides_nothing_without_a_witness(host: Host) -> None:
    left(host)
    elsewhere = replace(host, spool_name="spool-2")
    ended = elsewhere.recover()
    assert ended.action is Action.LEFT
    assert host.balance() == (0, 1)
    assert "its files are in the spool of" in ended.problem
    assert host.recover().returned == 1


@pytest.mark.parametrize("until", ["marked", "drawing"])
def test_with_a_witness_any_host_returns_a_draw(witnessed: Host, until: str) -> None:
    left(witnessed, until)
    ended = replace(witnessed, spool_name="spool-2").recover()
    assert ended.action is Action.ABANDONED
    assert ended.returned == 1
    assert witnessed.balance() == (0, 0)
    assert witnessed.witness is not None
    with witnessed.open() as ledger:
        assert check_witness(ledger, witnessed.witness).head.sequence == ledger.head().sequence - 1


def test_with_a_witness_no_spool_is_needed(witnessed: Host) -> None:
    charge = left(witnessed)
    ended = witnessed.recover(with_spool=False)
    assert ended.returned == 1
    with witnessed.open() as ledger:
        store = witnessed.store(ledger)
        assert is_tombstone(store.read_manifest(charge.name, "all", charge.release_id) or b"")


@pytest.mark.parametrize("published", [True, False])
def test_of_two_copies_at_a_witness_one_fails(witnessed: Host, published: bool) -> None:
    """Either the original publishes and the copy returns nothing, or the other way about."""
    with witnessed.open() as ledger:
        charge = witnessed.run(ledger)
        copy = witnessed.copy("copy.db")
        manifest = _completed(witnessed, charge, witnessed.spool.path / f"{charge.charge_id}.1")
        charge = ledger.stage(charge, manifest)
        other = replace(copy, spool_name="spool-2")
        if published:
            publish(ledger, witnessed.store(ledger), witnessed.spool, charge)
            place = witnessed.root / "releases" / charge.name / "all" / charge.release_id
            seen = shutil.move(place, witnessed.root / "seen")
            ended = other.recover()
            assert not place.exists(), "it puts no tombstone either"
            shutil.move(seen, place)
            assert (ended.action, ended.after) == (Action.LEFT, ChargeState.DRAWING)
            assert "ledger.witness holds entry" in ended.problem
        else:
            assert other.recover().returned == 1
            shutil.rmtree(witnessed.root / "releases" / charge.name)  # nor does a tombstone stop it
            with pytest.raises(LedgerCorruptError, match=r"ledger\.witness holds entry"):
                publish(ledger, witnessed.store(ledger), witnessed.spool, charge)
    assert unpaid(witnessed, copy) == []


def test_the_mutants_that_move_no_witness_are_caught(
    witnessed: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    with witnessed.open() as ledger:
        charge = witnessed.run(ledger)
        copy = replace(witnessed.copy("copy.db"), spool_name="spool-2")
        manifest = _completed(witnessed, charge, witnessed.spool.path / f"{charge.charge_id}.1")
        monkeypatch.setattr("suffice.storage.operations.publishing.move_witness", lambda *_: None)
        charge = publish(ledger, witnessed.store(ledger), witnessed.spool, ledger.stage(charge, manifest))
        place = witnessed.root / "releases" / charge.name / "all" / charge.release_id
        seen = shutil.move(place, witnessed.root / "seen")
        assert copy.recover().returned == 1
        shutil.rmtree(place)
        shutil.move(seen, place)
    assert len(unpaid(witnessed, copy)) == 1


def test_a_witness_that_is_away_leaves_the_charge(witnessed: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    charge = left(witnessed)

    def away(*_: object) -> None:
        raise StoreError("the witness /elsewhere/ledger.witness cannot be read")

    with monkeypatch.context() as patched:
        patched.setattr(settling, "move_witness", away)
        ended = witnessed.recover()
    assert (ended.action, ended.after) == (Action.LEFT, ChargeState.DRAWING)
    assert "ledger.witness" in ended.problem
    with witnessed.open() as ledger:
        assert witnessed.store(ledger).read_manifest(charge.name, "all", charge.release_id) is None
    assert witnessed.recover().returned == 1


def test_nothing_is_put_before_the_witness_moved_on(witnessed: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise StoreError("the witness is away")

    charge = left(witnessed, "staged")
    monkeypatch.setattr("suffice.storage.operations.publishing.move_witness", away)
    with witnessed.open() as ledger:
        store = witnessed.store(ledger)
        with pytest.raises(StoreError, match="the witness is away"):
            publish(ledger, store, witnessed.spool, charge)
        assert store.objects.keys(f"{charge.name}/") == []


@pytest.mark.parametrize("has_witness", [True, False])
def test_a_ledger_that_went_back_under_a_run_is_noticed_before_anything_is_put(
    host: Host, witnessed: Host, *, has_witness: bool
) -> None:
    run = witnessed if has_witness else host
    with run.open() as ledger:
        charge = run.run(ledger)
        run.copy("older.db")
        manifest = _completed(run, charge, run.spool.path / f"{charge.charge_id}.{charge.epoch}")
        staged = ledger.stage(charge, manifest)
    for suffix in ("-wal", "-shm", ""):
        (run.root / f"{run.database}{suffix}").unlink(missing_ok=True)
    copy_database(run.root / "older.db", run.root / run.database)
    with run.open() as ledger:
        store = run.store(ledger)
        with pytest.raises(LedgerCorruptError, match="replaced by an older copy"):
            publish(ledger, store, run.spool, staged)
        assert store.objects.keys(f"{charge.name}/") == []


def test_a_run_that_wakes_up_after_its_files_were_emptied_stops_no_recovery(host: Host) -> None:
    charge = left(host)
    path = host.spool.path / f"{charge.charge_id}.1"
    _completed(host, charge, path)
    marker = (path / "complete.json").read_bytes()
    for file in path.iterdir():
        file.unlink()
    (path / "complete.json").write_bytes(marker)
    ended = host.recover()
    assert ended.action is Action.ABANDONED
    assert ended.spent == 1  # nothing proves that it was never staged


def test_something_that_stands_there_is_spent(host: Host) -> None:
    """Nothing is put before `staged`: whatever stands there came from elsewhere."""
    charge = left(host)
    with host.open() as ledger:
        host.store(ledger).objects.put_new(f"{charge.name}/all/{charge.release_id}/n.parquet", b"noisy")
    ended = host.recover()
    assert ended.spent == 1
    assert ended.removed
    assert host.balance() == (1, 0)


def test_the_fourth_time_is_spent(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        left(host)
        assert host.recover().returned == 1
    left(host)
    with monkeypatch.context() as patched:  # whoever asks
        patched.setattr(SqlLedger, "is_returnable", lambda *_: True)
        assert host.recover().spent == 1
    assert host.balance() == (1, 0)


def test_nothing_is_lost_where_the_fourth_time_is_found_elsewhere(witnessed: Host) -> None:
    """The other host may have it complete: it is left to that host."""
    for _ in range(3):
        left(witnessed)
        assert witnessed.recover().returned == 1
    left(witnessed, "complete")
    ended = replace(witnessed, spool_name="spool-2").recover()
    assert ended.action is Action.LEFT
    assert witnessed.recover().action is Action.PUBLISHED


MUTANTS = ("no take-over", "complete", "no tombstone", "put before staged")


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_mutants_of_the_order_are_caught(
    host: Host, monkeypatch: pytest.MonkeyPatch, mutant: str
) -> None:
    """Recovery leaves one step out."""
    with host.open() as ledger:
        charge = host.run(ledger, "complete" if mutant == "complete" else "drawing")
        if mutant == "put before staged":
            host.store(ledger).objects.put_new(f"{charge.name}/all/{charge.release_id}/n.parquet", b"n")
            monkeypatch.setattr(settling, "MANIFEST", "n.parquet")
            monkeypatch.setattr(ReleaseStore, "put_tombstone", lambda *_: None)
            monkeypatch.setattr("suffice.storage.operations.recovery.remove_orphans", lambda *_: ())
        elif mutant == "complete":
            monkeypatch.setattr(Spool, "complete", lambda *_: None)
            monkeypatch.setattr(Spool, "take_back", lambda *_: True)
            monkeypatch.setattr(settling, "forget", lambda *_: None)
        elif mutant == "no tombstone":
            monkeypatch.setattr(ReleaseStore, "put_tombstone", lambda *_: None)
        else:
            monkeypatch.setattr(SqlLedger, "take_over", lambda _, draws: draws)
        ended = host.recover()
        if mutant == "no take-over":
            assert "nobody took it over" in ended.problem
            assert host.balance() == (0, 1), "the ledger returns nothing to whom it does not belong"
        elif mutant == "no tombstone":
            assert ended.spent == 1, "what does not stand alone is not returned"
        elif mutant == "put before staged":
            assert ended.returned == 1
            assert len(unpaid(host)) == 1
        else:
            assert ended.returned == 1
            problems = _seen_later(host, ledger, charge)
            assert problems
            assert "its draw was returned" in problems[0]
            return


def _seen_later(host: Host, ledger: Ledger, charge: Charge) -> list[str]:
    """Let what was returned be published after all, past every fence; return what `verify` says of it."""
    entry = next(entry for _, entry in host.spool._entries(charge.charge_id))
    place = host.root / "releases" / charge.name / "all" / charge.release_id
    (place / "manifest.json").write_bytes(entry.manifest())
    return list(compare_with_store(ledger, host.store(ledger)).problems)

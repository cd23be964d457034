from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import ChargeLostError, LedgerCorruptError, StoreError
from suffice.storage.ledger.charge import Charge, ChargeState
from suffice.storage.operations.recovery import Action, Report, recover
from suffice.storage.operations.settling import abandon, publish, settle
from suffice.storage.releases.release_store import ReleaseStore, open_store
from support.bucket_server import bucket_server
from support.buckets import variables
from support.releases import compose, data_files, make_plan, some_values

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suffice.storage.ledger.ledger import Ledger

MANIFEST = b"the exact bytes"
STATES = ("reserved", "drawing", "staged")


class World:
    """A ledger with epsilon 3 for `flights`, a store, and runs that stop wherever a test wants."""

    def __init__(
        self,
        ledger_factory: Callable[[], Ledger],
        make_request: Callable[..., Any],
        clock: Any,
        root: Path,
        uri: str = "",
    ) -> None:
        self.open_ledger = ledger_factory
        self.ledger = ledger_factory()
        self.ledger.grant("flights", epsilon=Fraction(3), reason="first")
        self.make_request = make_request
        self.clock = clock
        self.root = root
        self.uri = uri or str(root)
        self.store = self.open_store(self.uri)

    def open_store(self, uri: str) -> ReleaseStore:
        return open_store(uri, ledger_id=self.ledger.ledger_id, create=uri == self.uri)

    def run(self, state: str, name: str = "delays", manifest: bytes = MANIFEST, **fields: Any) -> Charge:
        """Bring a charge into a state as a run would, and leave it there."""
        fields = {"store_id": self.store.store_id, "store_uri": self.store.uri, **fields}
        attempt = fields.pop("new_attempt", False)
        charge = self.ledger.reserve(self.make_request(name=name, **fields), new_attempt=attempt)
        if state == "reserved":
            return charge
        charge = self.ledger.enter_drawing(charge)
        self.write(charge)
        if state == "drawing":
            return charge
        charge = self.ledger.stage(charge, manifest)
        return charge if state == "staged" else publish(self.ledger, self.store, charge)

    def write(self, charge: Charge) -> None:
        for statistic in ("a", "b"):
            place = (charge.name, charge.window, charge.release_id)
            self.store.write_data(*place, statistic, b"noisy", rows=1)

    def recover(self, **passed: float) -> Report:
        self.clock.advance(**(passed or {"minutes": 3}))
        return recover(self.open_ledger(), self.open_store)

    def state(self, name: str = "delays") -> ChargeState | None:
        charge = self.ledger.find("flights", name, "all")
        return None if charge is None else charge.state

    def balance(self) -> Any:
        """What is spent and what is reserved."""
        account = self.ledger.account("flights")
        return account.spent, account.reserved

    def files(self, charge: Charge) -> set[str]:
        directory = self.root / charge.name / charge.window / charge.release_id
        return {path.name for path in directory.glob("*")}


@pytest.fixture
def ledger_url(tmp_path: Path) -> str:
    """Return one engine's URL: what is decided does not follow the engine (tests/faults runs both)."""
    return f"sqlite:///{tmp_path}/ledger.db"


@pytest.fixture
def world(
    ledger_factory: Callable[[], Ledger], make_request: Callable[..., Any], clock: Any, tmp_path: Path
) -> World:
    return World(ledger_factory, make_request, clock, tmp_path / "releases")


@pytest.mark.parametrize(
    ("state", "after", "returned", "files"),
    [
        ("reserved", "abandoned", 1, set()),
        ("drawing", "abandoned", 0, {"manifest.json"}),
        ("staged", "published", 0, {"manifest.json", "a.parquet", "b.parquet"}),
    ],
)
def test_each_state_has_its_end(world: World, state: str, after: str, returned: int, files: set[str]) -> None:
    charge = world.run(state)
    report = world.recover()
    (found,) = report.charges
    assert report.ok
    assert (found.charge_id, found.before, found.after, found.action) == (
        charge.charge_id,
        state,
        after,
        after,
    )
    assert found.returned == returned
    assert found.spent == 1 - returned
    assert world.state() == after
    assert world.balance() == (1 - returned, 0)
    assert world.files(charge) == files
    standing = world.store.read_manifest("delays", "all", charge.release_id)
    assert (standing == MANIFEST) == (after == "published")
    assert world.ledger.verify() == ()
    assert world.recover().charges == ()


@pytest.mark.parametrize("state", ["reserved", "drawing"])
def test_a_live_charge_is_left_alone_until_its_lease_passes(world: World, state: str) -> None:
    charge = world.run(state)
    for _ in range(3):
        report = world.recover(seconds=100)
        assert report.ok
        assert [found.action for found in report.charges] == [Action.IN_PROGRESS]
        assert "left to the run that holds it" in str(report)
        world.ledger.renew(charge)
    assert world.state() == state
    assert [found.action for found in world.recover(seconds=121).charges] == [Action.ABANDONED]
    with pytest.raises(ChargeLostError):
        world.ledger.renew(charge)


def test_what_is_staged_is_published_whoever_holds_it(world: World) -> None:
    charge = world.run("staged")
    assert [found.action for found in world.recover(seconds=0).charges] == [Action.PUBLISHED]
    assert publish(world.ledger, world.store, charge).state is ChargeState.PUBLISHED


def test_runs_that_publish_one_charge_do_not_make_each_other_fail(world: World) -> None:
    charge = world.run("staged")
    other = world.open_ledger()
    taken = other.take_over(charge)
    assert publish(world.ledger, world.store, charge).state is ChargeState.PUBLISHED
    assert publish(other, world.store, taken).state is ChargeState.PUBLISHED
    assert world.ledger.verify() == ()


@pytest.mark.parametrize("state", STATES)
def test_a_store_that_is_missing_or_another_leaves_the_charge(
    world: World, tmp_path: Path, state: str
) -> None:
    world.run(state, store_uri=str(tmp_path / "gone"))
    report = world.recover()
    assert not report.ok
    assert "there is no release store at" in report.charges[0].problem
    other = open_store(str(tmp_path / "other"), ledger_id=world.ledger.ledger_id, create=True)
    report = recover(world.ledger, lambda _: other)
    assert "the store at" in report.charges[0].problem
    strange = open_store(str(tmp_path / "strange"), ledger_id="0" * 32, create=True)
    report = recover(world.ledger, lambda _: open_store(strange.uri, ledger_id=world.ledger.ledger_id))
    assert "belongs to ledger" in report.charges[0].problem
    assert [found.action for found in report.charges] == [Action.LEFT]
    assert world.state() == state
    report = recover(world.ledger, lambda _: world.store)
    assert report.ok
    assert world.state() == ("published" if state == "staged" else "abandoned")


def test_each_store_is_opened_once(world: World, tmp_path: Path) -> None:
    for name in ("x", "y"):
        world.run("drawing", name)
    world.run("staged", "z", store_uri=str(tmp_path / "gone"))
    world.clock.advance(minutes=3)
    opened: list[str] = []

    def open_once(uri: str) -> ReleaseStore:
        opened.append(uri)
        return world.open_store(uri)

    recover(world.ledger, open_once)
    assert opened == [world.store.uri, str(tmp_path / "gone")]


def test_files_of_earlier_abandoned_charges_go_and_those_of_releases_stay(world: World) -> None:
    dead = world.run("drawing")
    abandon(world.ledger, world.store, dead, reason="x")
    second = world.run("published", new_attempt=True)
    hidden = world.root / "delays" / "all" / dead.release_id / ".c.parquet.0123"
    hidden.write_bytes(b"half")
    report = world.recover()
    (found,) = report.charges
    assert (found.action, found.before, found.after) == (Action.CLEANED, "abandoned", "abandoned")
    assert len(found.removed) == 3
    assert found.returned == 0
    assert world.files(dead) == {"manifest.json"}
    assert world.files(second) == {"manifest.json", "a.parquet", "b.parquet"}
    assert world.recover().charges == ()


def test_files_go_only_once_the_tombstone_stands(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    charge = world.run("drawing")

    def fail(*_: object) -> None:
        raise StoreError("the store is away")

    monkeypatch.setattr(ReleaseStore, "put_tombstone", fail)
    report = world.recover()
    assert [found.problem for found in report.charges] == ["the store is away"]
    assert world.state() == "drawing"
    assert world.files(charge) == {"a.parquet", "b.parquet"}
    monkeypatch.undo()
    assert world.recover().ok
    assert world.files(charge) == {"manifest.json"}


def test_an_abandoned_charge_whose_tombstone_was_taken_away_gets_another(world: World) -> None:
    charge = world.run("drawing")
    world.recover()
    (world.root / "delays" / "all" / charge.release_id / "manifest.json").unlink()
    world.write(charge)
    assert [found.action for found in world.recover().charges] == [Action.CLEANED]
    assert world.files(charge) == {"manifest.json"}


def test_the_files_of_a_manifest_are_never_removed(world: World) -> None:
    charge = world.run("drawing")
    abandon(world.ledger, world.store, charge, reason="x")
    path = world.root / "delays" / "all" / charge.release_id / "manifest.json"
    path.unlink()
    path.write_bytes(b"somebody's manifest")
    report = world.recover()
    assert not report.ok
    assert "no tombstone stands" in report.charges[0].problem
    assert world.files(charge) == {"manifest.json", "a.parquet", "b.parquet"}


def test_a_tombstone_where_staged_bytes_belong_ends_the_charge(world: World) -> None:
    charge = world.run("staged")
    world.store.put_tombstone("delays", "all", charge.release_id)
    (found,) = world.recover().charges
    assert (found.before, found.after) == ("staged", "abandoned")
    assert found.spent == 1
    assert world.files(charge) == {"manifest.json"}


@pytest.mark.parametrize("state", ["drawing", "staged"])
def test_what_does_not_belong_there_is_left_as_it_is(world: World, state: str) -> None:
    plan = make_plan()
    charge = world.run(state)
    foreign = compose(plan, data_files(plan, some_values(plan), world.store))
    world.store.put_manifest("delays", "all", charge.release_id, foreign)
    report = world.recover()
    assert not report.ok
    assert "another manifest than that of delays stands at" in report.charges[0].problem
    assert world.state() == state
    assert world.balance() == (1, 0)
    assert world.store.read_manifest("delays", "all", charge.release_id) == foreign


def test_a_manifest_that_names_the_draw_is_what_was_published(world: World) -> None:
    """As after a ledger was put back from a copy that was made before ``staged``."""
    plan = make_plan()
    charge = world.run("drawing", plan_json=plan.canonical, plan_hash=plan.plan_hash)
    own = compose(
        plan,
        data_files(plan, some_values(plan), world.store),
        release_id=charge.release_id,
        ledger_id=charge.ledger_id,
        drawing_sequence=charge.drawing_sequence,
        drawing_hash=charge.drawing_hash,
    )
    world.store.put_manifest("delays", "all", charge.release_id, own)
    (found,) = world.recover().charges
    assert (found.action, found.before) == (Action.PUBLISHED, "drawing")
    current = world.ledger.find("flights", "delays", "all")
    assert current is not None
    assert (current.state, current.manifest) == ("published", own)
    assert world.files(charge) == {"manifest.json", "a.parquet", "b.parquet"}


def test_epsilon_is_not_returned_where_the_store_knows_of_a_draw(world: World) -> None:
    """As after a ledger was put back from a copy that was made before ``drawing``."""
    charge = world.run("reserved")
    world.write(charge)
    report = world.recover()
    assert not report.ok
    assert "is this an older copy of the ledger?" in report.charges[0].problem
    assert world.balance() == (0, 1)
    with pytest.raises(LedgerCorruptError):
        settle(world.ledger, world.store, charge)


def test_a_report_can_be_printed_and_read_by_programs(world: World, tmp_path: Path) -> None:
    for state in STATES:
        world.run(state, state)
    world.clock.advance(minutes=3)
    report = recover(world.open_ledger(), world.open_store)
    drew = "noise may have been drawn: epsilon 1 is spent"
    assert str(report).splitlines() == [
        "flights: reserved, attempt 1: reserved, now abandoned; nothing was drawn: epsilon 1 is returned",
        f"flights: drawing, attempt 1: drawing, now abandoned; {drew}; 2 files of it removed",
        "flights: staged, attempt 1: staged, now published; epsilon 1 is spent",
    ]
    document = report.to_dict()
    assert document["ok"] is True
    assert [(entry["returned"], entry["spent"]) for entry in document["charges"]] == [
        ("1", "0"),
        ("0", "1"),
        ("0", "1"),
    ]
    assert [len(entry["removed"]) for entry in document["charges"]] == [0, 2, 0]
    assert str(world.recover()) == "nothing to recover: every charge is final"
    world.run("drawing", "late", epsilon=Fraction(1, 2), store_uri=str(tmp_path / "gone"))
    assert "late, attempt 1: drawing; left: there is no release store" in str(world.recover())


def test_a_store_in_a_bucket_is_recovered_alike(
    ledger_factory: Callable[[], Ledger],
    make_request: Callable[..., Any],
    clock: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with bucket_server() as server:
        for name, value in variables(server.url).items():
            monkeypatch.setenv(name, value)
        world = World(ledger_factory, make_request, clock, tmp_path, "s3://bucket/pre")
        left = {state: world.run(state, state) for state in STATES}
        report = world.recover()
        kept = {key.partition("/pre/")[2] for key in server.objects}
    assert report.ok
    assert [found.after for found in report.charges] == ["abandoned", "abandoned", "published"]
    drawing, staged = (f"{name}/all/{left[name].release_id}" for name in ("drawing", "staged"))
    assert kept == {
        "suffice.json",
        f"{drawing}/manifest.json",
        *(f"{staged}/{name}" for name in ("manifest.json", "a.parquet", "b.parquet")),
    }

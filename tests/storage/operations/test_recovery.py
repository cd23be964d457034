from __future__ import annotations

import hashlib
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import ChargeLostError, LedgerCorruptError, StoreError
from suffice.pipeline.terms.declaration.documents import document
from suffice.storage.ledger.charge import Charge, ChargeState
from suffice.storage.operations.publishing import publish
from suffice.storage.operations.recovery import Action, Report, recover
from suffice.storage.operations.settling import abandon, settle
from suffice.storage.releases.descriptions import DESCRIPTIONS
from suffice.storage.releases.release_store import ReleaseStore, open_store
from suffice.storage.releases.spool import open_spool
from suffice.storage.releases.store_identity import marker_key
from support.bucket_server import bucket_server
from support.buckets import variables
from support.releases import compose, data_files, make_plan, smallest_files, some_values

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suffice.storage.ledger.ledger import Ledger

_TWO = make_plan(statistics={name: {"family": "bernoulli", "column": name} for name in ("a", "b")})
_FILES = smallest_files(_TWO)
NOISY = b"n" * max(file.size for file in _FILES)
"""As long as a file of either statistic can be: what is in it, nobody here reads."""
MANIFEST = compose(
    _TWO,
    [replace(file, size=len(NOISY), sha256=hashlib.sha256(NOISY).hexdigest()) for file in _FILES],
)
"""The exact bytes that are staged: of a release of two files, which stand in the store already."""
PUBLISHED = {"manifest.json", "a.parquet", "b.parquet", *DESCRIPTIONS}
"""What stands there once it is published."""
STATES = ("reserved", "drawing", "staged")


class GenerativeModel:
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
        return charge if state == "staged" else publish(self.ledger, self.store, None, charge)

    def write(self, charge: Charge) -> None:
        for statistic in ("a", "b"):
            key = (charge.name, charge.window, charge.release_id)
            self.store.write_data(*key, statistic, NOISY, rows=1)

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
def generative_model(
    ledger_factory: Callable[[], Ledger], make_request: Callable[..., Any], clock: Any, tmp_path: Path
) -> GenerativeModel:
    return GenerativeModel(ledger_factory, make_request, clock, tmp_path / "releases")


@pytest.mark.parametrize(
    ("state", "after", "returned", "files"),
    [
        ("reserved", "abandoned", 1, set()),
        ("drawing", "abandoned", 0, {"manifest.json"}),
        ("staged", "published", 0, PUBLISHED),
    ],
)
def test_each_state_has_its_end(
    generative_model: GenerativeModel, state: str, after: str, returned: int, files: set[str]
) -> None:
    charge = generative_model.run(state)
    report = generative_model.recover()
    (recovered,) = report.charges
    assert report.ok
    assert (recovered.charge_id, recovered.before, recovered.after, recovered.action) == (
        charge.charge_id,
        state,
        after,
        after,
    )
    assert recovered.returned == returned
    assert recovered.spent == 1 - returned
    assert generative_model.state() == after
    assert generative_model.balance() == (1 - returned, 0)
    assert generative_model.files(charge) == files
    standing = generative_model.store.read_manifest("delays", "all", charge.release_id)
    assert (standing == MANIFEST) == (after == "published")
    assert generative_model.ledger.verify() == ()
    assert generative_model.recover().charges == ()


@pytest.mark.parametrize("state", ["reserved", "drawing"])
def test_a_live_charge_is_left_alone_until_its_lease_passes(
    generative_model: GenerativeModel, state: str
) -> None:
    charge = generative_model.run(state)
    for _ in range(3):
        report = generative_model.recover(seconds=100)
        assert report.ok
        assert [each.action for each in report.charges] == [Action.IN_PROGRESS]
        assert "left to the run that holds it" in str(report)
        generative_model.ledger.renew(charge)
    assert generative_model.state() == state
    assert [each.action for each in generative_model.recover(seconds=121).charges] == [Action.ABANDONED]
    with pytest.raises(ChargeLostError):
        generative_model.ledger.renew(charge)


def test_what_is_staged_is_published_whoever_holds_it(generative_model: GenerativeModel) -> None:
    charge = generative_model.run("staged")
    assert [each.action for each in generative_model.recover(seconds=0).charges] == [Action.PUBLISHED]
    assert (
        publish(generative_model.ledger, generative_model.store, None, charge).state is ChargeState.PUBLISHED
    )


def test_runs_that_publish_one_charge_do_not_make_each_other_fail(generative_model: GenerativeModel) -> None:
    charge = generative_model.run("staged")
    other = generative_model.open_ledger()
    taken = other.take_over(charge)
    assert (
        publish(generative_model.ledger, generative_model.store, None, charge).state is ChargeState.PUBLISHED
    )
    assert publish(other, generative_model.store, None, taken).state is ChargeState.PUBLISHED
    assert generative_model.ledger.verify() == ()


@pytest.mark.parametrize("state", STATES)
def test_a_store_that_is_missing_or_another_leaves_the_charge(
    generative_model: GenerativeModel, tmp_path: Path, state: str
) -> None:
    generative_model.run(state, store_uri=str(tmp_path / "gone"))
    report = generative_model.recover()
    assert not report.ok
    assert "there is no release store at" in report.charges[0].problem
    other = open_store(str(tmp_path / "other"), ledger_id=generative_model.ledger.ledger_id, create=True)
    report = recover(generative_model.ledger, lambda _: other)
    assert "suffice store adopt" in report.charges[0].problem
    strange = open_store(str(tmp_path / "strange"), ledger_id="0" * 32, create=True)
    report = recover(
        generative_model.ledger,
        lambda _: open_store(strange.uri, ledger_id=generative_model.ledger.ledger_id),
    )
    assert "belongs to ledger" in report.charges[0].problem
    assert [charge.action for charge in report.charges] == [Action.LEFT]
    assert generative_model.state() == state
    report = recover(generative_model.ledger, lambda _: generative_model.store)
    assert report.ok
    assert generative_model.state() == ("published" if state == "staged" else "abandoned")


def test_each_store_is_opened_once(generative_model: GenerativeModel, tmp_path: Path) -> None:
    for name in ("x", "y"):
        generative_model.run("drawing", name)
    generative_model.run("staged", "z", store_id="f" * 32, store_uri=str(tmp_path / "gone"))
    generative_model.clock.advance(minutes=3)
    opened: list[str] = []

    def open_once(uri: str) -> ReleaseStore:
        opened.append(uri)
        return generative_model.open_store(uri)

    recover(generative_model.ledger, open_once)
    assert opened == [generative_model.store.uri, str(tmp_path / "gone")]


def test_files_of_earlier_abandoned_charges_go_and_those_of_releases_stay(
    generative_model: GenerativeModel,
) -> None:
    dead = generative_model.run("drawing")
    abandon(generative_model.ledger, generative_model.store, dead, reason="x")
    second = generative_model.run("published", new_attempt=True)
    hidden = generative_model.root / "delays" / "all" / dead.release_id / ".c.parquet.0123"
    hidden.write_bytes(b"half")
    report = generative_model.recover()
    (recovered,) = report.charges
    assert (recovered.action, recovered.before, recovered.after) == (Action.CLEANED, "abandoned", "abandoned")
    assert len(recovered.removed) == 3
    assert recovered.returned == 0
    assert generative_model.files(dead) == {"manifest.json"}
    assert generative_model.files(second) == PUBLISHED
    assert generative_model.recover().charges == ()


def test_files_go_only_once_the_tombstone_stands(
    generative_model: GenerativeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge = generative_model.run("drawing")

    def fail(*_: object) -> None:
        raise StoreError("the store is away")

    monkeypatch.setattr(ReleaseStore, "put_tombstone", fail)
    report = generative_model.recover()
    assert [each.problem for each in report.charges] == ["the store is away"]
    assert generative_model.state() == "drawing"
    assert generative_model.files(charge) == {"a.parquet", "b.parquet"}
    monkeypatch.undo()
    assert generative_model.recover().ok
    assert generative_model.files(charge) == {"manifest.json"}


def test_an_abandoned_charge_whose_tombstone_was_taken_away_gets_another(
    generative_model: GenerativeModel,
) -> None:
    charge = generative_model.run("drawing")
    generative_model.recover()
    (generative_model.root / "delays" / "all" / charge.release_id / "manifest.json").unlink()
    generative_model.write(charge)
    assert [each.action for each in generative_model.recover().charges] == [Action.CLEANED]
    assert generative_model.files(charge) == {"manifest.json"}


def test_the_files_of_a_manifest_are_never_removed(generative_model: GenerativeModel) -> None:
    charge = generative_model.run("drawing")
    abandon(generative_model.ledger, generative_model.store, charge, reason="x")
    path = generative_model.root / "delays" / "all" / charge.release_id / "manifest.json"
    path.unlink()
    path.write_bytes(b"somebody's manifest")
    report = generative_model.recover()
    assert not report.ok
    assert "there is no tombstone" in report.charges[0].problem
    assert generative_model.files(charge) == {"manifest.json", "a.parquet", "b.parquet"}


def test_a_tombstone_where_staged_bytes_belong_ends_the_charge(generative_model: GenerativeModel) -> None:
    charge = generative_model.run("staged")
    generative_model.store.put_tombstone("delays", "all", charge.release_id)
    (recovered,) = generative_model.recover().charges
    assert (recovered.before, recovered.after) == ("staged", "abandoned")
    assert recovered.spent == 1
    assert generative_model.files(charge) == {"manifest.json"}


@pytest.mark.parametrize("state", ["drawing", "staged"])
def test_what_does_not_belong_there_is_left_as_it_is(generative_model: GenerativeModel, state: str) -> None:
    plan = make_plan()
    charge = generative_model.run(state)
    foreign = compose(plan, data_files(plan, some_values(plan), generative_model.store))
    generative_model.store.put_manifest("delays", "all", charge.release_id, foreign)
    report = generative_model.recover()
    assert not report.ok
    assert "another manifest than that of delays stands at" in report.charges[0].problem
    assert generative_model.state() == state
    assert generative_model.balance() == ((0, 1) if state == "drawing" else (1, 0))
    assert generative_model.store.read_manifest("delays", "all", charge.release_id) == foreign


@pytest.mark.slow
def test_a_manifest_that_names_the_draw_is_what_was_published(generative_model: GenerativeModel) -> None:
    """As after a ledger was put back from a copy that was made before ``staged``."""
    plan = make_plan()
    charge = generative_model.run("drawing", plan_json=plan.canonical, plan_hash=plan.plan_hash)
    manifest = compose(
        plan,
        data_files(plan, some_values(plan), generative_model.store),
        release_id=charge.release_id,
        ledger_id=charge.ledger_id,
        drawing_sequence=charge.drawing_sequence,
        drawing_hash=charge.drawing_hash,
    )
    generative_model.store.put_manifest("delays", "all", charge.release_id, manifest)
    (recovered,) = generative_model.recover().charges
    assert (recovered.action, recovered.before) == (Action.PUBLISHED, "drawing")
    current = generative_model.ledger.find("flights", "delays", "all")
    assert current is not None
    assert (current.state, current.manifest_sha256) == ("published", hashlib.sha256(manifest).hexdigest())
    assert generative_model.files(charge) == PUBLISHED


def test_epsilon_is_not_returned_where_the_store_knows_of_a_draw(generative_model: GenerativeModel) -> None:
    """As after a ledger was put back from a copy that was made before ``drawing``."""
    charge = generative_model.run("reserved")
    generative_model.write(charge)
    report = generative_model.recover()
    assert not report.ok
    assert "is this an older copy of the ledger?" in report.charges[0].problem
    assert generative_model.balance() == (0, 1)
    with pytest.raises(LedgerCorruptError):
        settle(generative_model.ledger, generative_model.store, charge)


def test_a_report_can_be_printed_and_read_by_programs(
    generative_model: GenerativeModel, tmp_path: Path
) -> None:
    for state in STATES:
        generative_model.run(state, state)
    generative_model.clock.advance(minutes=3)
    report = recover(generative_model.open_ledger(), generative_model.open_store)
    unproved = "as the ledger has no witness to show that nobody saw it"
    drew = f"noise may have been drawn: epsilon 1 is spent, {unproved}"
    assert str(report).splitlines() == [
        "flights: reserved, attempt 1: reserved, now abandoned; nothing was drawn: epsilon 1 is returned",
        f"flights: drawing, attempt 1: drawing, now abandoned; {drew}; removed 2 files of it",
        "flights: staged, attempt 1: staged, now published; epsilon 1 is spent",
    ]
    written = document(report)
    assert written["ok"] is True
    assert [(entry["returned"], entry["spent"]) for entry in written["charges"]] == [
        ("1", "0"),
        ("0", "1"),
        ("0", "1"),
    ]
    assert [len(entry["removed"]) for entry in written["charges"]] == [0, 2, 0]
    assert str(generative_model.recover()) == "nothing to recover: every charge is final"
    gone: dict[str, Any] = {"store_id": "f" * 32, "store_uri": str(tmp_path / "gone")}
    generative_model.run("drawing", "late", epsilon=Fraction(1, 2), **gone)
    assert "late, attempt 1: drawing; left: there is no release store" in str(generative_model.recover())


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
        generative_model = GenerativeModel(ledger_factory, make_request, clock, tmp_path, "s3://bucket/pre")
        left = {state: generative_model.run(state, state) for state in STATES}
        report = generative_model.recover()
        kept = {key.partition("/pre/")[2] for key in server.objects}
    assert report.ok
    assert [charge.after for charge in report.charges] == ["abandoned", "abandoned", "published"]
    drawing, staged = (f"{name}/all/{left[name].release_id}" for name in ("drawing", "staged"))
    assert kept == {
        "suffice.json",
        marker_key(left["reserved"].reserved_sequence),  # nobody draws for it any more
        f"{drawing}/manifest.json",
        *(f"{staged}/{name}" for name in PUBLISHED),
    }


def test_a_spool_forgets_charges_that_ended_and_no_others(
    generative_model: GenerativeModel, tmp_path: Path
) -> None:
    spool = open_spool(tmp_path / "spool")
    ended = generative_model.run("published")
    unknown = replace(ended, charge_id="f" * 32)  # another ledger's, or one that this copy lacks
    for charge in (ended, unknown):
        spool.reserve(charge, {"a.parquet": 10})
    recover(generative_model.open_ledger(), generative_model.open_store, spool=spool)
    assert spool.charge_ids() == (unknown.charge_id,)

"""Amendments: windows released again by a public calendar, linked to what they replace, never pooled."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice
from suffice.errors import (
    AmendmentError,
    BudgetExceededError,
    ChargeSpentError,
    LedgerError,
    ReleaseCorruptError,
    ReleaseMissingError,
    SpecError,
    StageFailedError,
    UsageError,
)
from suffice.pipeline.ask.pooling.pool import Relation, relation_of
from suffice.pipeline.rows.reduce import tree
from suffice.pipeline.spec.plan import compile_plan, plan_document
from suffice.pipeline.terms.declaration.documents import document
from suffice.releasing import release as releasing
from suffice.releasing.backfill import carry_out_backfill
from suffice.releasing.gap_report import AmendmentState
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from suffice.storage.operations.verify_release import verify_release
from suffice.storage.operations.verify_store import verify_store
from suffice.storage.releases.descriptions import DESCRIPTIONS
from suffice.storage.releases.release_store import newer_edition, open_store
from support.making import Workspace, flights, make_workspace
from support.manifest_mutants import sealed

if TYPE_CHECKING:
    from pathlib import Path

STATISTICS = {"cancelled": {"family": "bernoulli", "column": "cancelled"}}
MONTHLY = {"column": "day", "every": "month", "lag": "3 days", "amend": ["7 days", "4 weeks"]}
LATE = 100_000


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path)


def monthly(workspace: Workspace, **changes: Any) -> suffice.Spec:
    return workspace.spec(statistics=STATISTICS, groups=None, window={**MONTHLY, **changes})


def where(workspace: Workspace) -> dict[str, Any]:
    return {"store": workspace.store, "ledger": workspace.ledger}


def release(
    workspace: Workspace, amendment: int = 0, window: str = "2013-01", **options: Any
) -> suffice.Release:
    return suffice.release(
        monthly(workspace), **where(workspace), window=window, amendment=amendment, **options
    )


def at(monkeypatch: pytest.MonkeyPatch, moment: str) -> str:
    """Let releases be charged at a moment; return it."""
    read = dt.datetime.fromisoformat(moment)
    monkeypatch.setattr(releasing, "open_ledger", partial(open_ledger, clock=lambda: read))
    return moment


def late_rows(workspace: Workspace) -> None:
    """Add rows of January 2013 that a release before this has not read."""
    table = flights(1).take(pa.array([0] * LATE))
    day = table.schema.get_field_index("day")
    january = pa.array([dt.date(2013, 1, 15)] * LATE, pa.date32()).cast(table.schema.field(day).type)
    pq.write_table(table.set_column(day, table.schema.field(day), january), workspace.data / "late.parquet")


def records(edition: suffice.Release) -> float:
    return float(next(row["estimate"] for row in edition.table("cancelled") if row["quantity"] == "n"))


def test_an_amendment_reads_the_window_again_and_replaces_its_release(workspace: Workspace) -> None:
    first = release(workspace)
    late_rows(workspace)
    assert release(workspace).release_id == first.release_id
    amended = release(workspace, 1)
    assert records(first) < LATE / 2 < records(amended)
    assert (first.amendment, first.label, first.manifest["amends"]) == (0, "flights@2013-01", None)
    assert (amended.amendment, amended.label) == (1, "flights@2013-01.1")
    assert amended.manifest["amends"]["release_id"] == first.release_id
    assert amended.manifest["plan_hash"] == first.manifest["plan_hash"]
    assert workspace.account().spent == 2
    again = release(workspace, 1)
    assert again.release_id == amended.release_id
    assert workspace.account().spent == 2
    third = release(workspace, 2)
    assert third.manifest["amends"]["release_id"] == amended.release_id


def test_names_reach_the_newest_and_each_earlier_edition(workspace: Workspace) -> None:
    editions = [release(workspace, number) for number in (0, 1, 2)]
    opened = partial(suffice.open_release, store=workspace.store)
    for name in ("flights", "flights@2013-01", "flights@2013-01.2"):
        assert opened(name).release_id == editions[2].release_id
    for number, edition in enumerate(editions):
        assert opened(f"flights@2013-01.{number}").release_id == edition.release_id
    for name in ("flights@2013-01.3", "flights@2013-02.0"):
        with pytest.raises(ReleaseMissingError, match="has no release in window 2013-0"):
            opened(name)
    for name in ("flights@2013-01.01", "flights@2013-01.", "flights@2013-01.100"):
        with pytest.raises((ReleaseMissingError, UsageError)):
            opened(name)
    store = open_store(workspace.store)
    assert store.windows("flights") == ("2013-01",)
    assert [each.edition for each in store.releases()] == ["2013-01", "2013-01.1", "2013-01.2"]
    newer = [newer_edition(each) for each in editions]
    assert [each and each.release_id for each in newer] == [editions[2].release_id] * 2 + [None]
    release(workspace, window="2013-02")
    assert opened("flights").window == "2013-02"


def test_the_calendar_decides_from_when_on(workspace: Workspace) -> None:
    """January is complete on 4 February; its amendments fall due on 11 February and 4 March."""
    release(workspace, as_of="2013-02-01T00:00Z")
    with pytest.raises(SpecError, match=r"amendment 1 of 2013-01 falls due at 2013-02-11T00:00\+00:00 \(UTC"):
        release(workspace, 1, as_of="2013-02-10T23:59Z")
    release(workspace, 1, as_of="2013-02-11T00:00Z")
    for number in (3, -1):
        with pytest.raises(SpecError, match=f"states no amendment {number}"):
            release(workspace, number)
    with pytest.raises(SpecError, match="states no amendment 1"):
        suffice.release(workspace.spec(name="whole"), **where(workspace), amendment=1)
    with pytest.raises(AmendmentError, match="would amend nothing"):
        release(workspace, 1, window="2013-02")
    assert workspace.account().spent == 2


def test_a_backfill_rehearses_nights_that_are_past(workspace: Workspace) -> None:
    """Windows of 2013 are charged today, after all their amendments fell due: the calendar alone counts."""

    def night(as_of: str, **options: Any) -> list[str]:
        done = suffice.backfill(
            monthly(workspace), "2013-01", "2013-01", **where(workspace), as_of=as_of, **options
        )
        return [f"{window.edition} {window.status}" for window in done.windows]

    assert night("2013-02-04T00:00Z", by_calendar=True) == ["2013-01 published"]
    assert night("2013-02-10T23:59Z", by_calendar=True) == ["2013-01 already_published"]
    assert night("2013-03-05T00:00Z") == ["2013-01 already_published"]
    published, amended = night("2013-02-11T00:00Z", by_calendar=True)
    assert (published, amended) == ("2013-01 already_published", "2013-01.1 published")
    assert night("2013-02-11T00:00Z", by_calendar=True) == [published], "the same night again does nothing"
    assert night("2013-03-05T00:00Z", by_calendar=True) == [published, "2013-01.2 published"]
    assert workspace.account().spent == 3


def test_one_backfill_by_calendar_releases_and_amends(workspace: Workspace) -> None:
    as_of: dict[str, Any] = {"as_of": "2013-03-05T00:00Z"}
    asked = partial(suffice.backfill, monthly(workspace), "2013-01", "2013-02", **where(workspace), **as_of)
    editions = ("2013-01", "2013-01.2", "2013-02")
    assert asked(dry_run=True).named("left") == ("2013-01", "2013-02")
    assert asked(by_calendar=True, dry_run=True).named("left") == editions
    assert asked(by_calendar=True).named("published") == editions
    assert workspace.account().spent == 3
    again = asked(by_calendar=True)
    assert again.named("already_published") == ("2013-01", "2013-02"), "nothing is left"


def test_a_window_that_is_not_released_is_not_amended(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(tree, "exact_sums", fail)
    done = carry_out_backfill(
        monthly(workspace),
        "2013-01",
        "2013-01",
        **where(workspace),
        as_of="2013-03-05T00:00Z",
        by_calendar=True,
    )
    assert isinstance(done.failure, StageFailedError), "that of the window, not of its amendment"
    assert (done.named("failed"), done.named("left")) == (("2013-01",), ("2013-01.2",))


def test_the_calendar_is_no_part_of_what_is_charged(workspace: Workspace) -> None:
    with_them, without = monthly(workspace), monthly(workspace, amend=["1 day"])
    assert with_them.plan_hash() == without.plan_hash()
    plan = compile_plan(with_them)
    assert plan_document(plan)["amend"] == ["7 days", "28 days"]
    assert plan_document(plan)["epsilon_per_window"] == "3"
    assert "amended 7 days and 28 days after a window is complete, each for epsilon 1 again: 3 a" in str(plan)


@pytest.mark.parametrize(
    "amend",
    [
        [],
        "7 days",
        ["7 days", "7 days"],
        ["2 weeks", "7 days"],
        ["12 hours"],
        ["0 days"],
        [7],
        ["1 day"] * 100,
    ],
)
def test_a_calendar_that_does_not_advance_is_refused(workspace: Workspace, amend: Any) -> None:
    with pytest.raises(SpecError, match=r"window\.amend"):
        monthly(workspace, amend=amend)


@pytest.mark.slow
def test_a_backfill_releases_the_amendment_that_is_due(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last that has fallen due alone: the one before it would read the same rows for another epsilon."""
    fill = partial(suffice.backfill, monthly(workspace), "2013-01", **where(workspace))

    def done(moment: str) -> list[tuple[str, str]]:
        filled = fill(as_of=at(monkeypatch, moment))
        return [(window.edition, window.status) for window in filled.windows]

    publication, made = "already_published", "published"
    assert done("2013-02-04T01:00:00+00:00") == [("2013-01", made)]
    assert done("2013-02-10T01:00:00+00:00") == [("2013-01", publication)]
    assert done("2013-02-12T01:00:00+00:00") == [("2013-01", publication), ("2013-01.1", made)]
    assert done("2013-02-13T01:00:00+00:00") == [("2013-01", publication)]
    # February, complete on 4 March, comes before the amendment that January was due on that day, too
    assert done("2013-04-02T01:00:00+00:00") == [
        ("2013-01", publication),
        ("2013-01.2", made),
        ("2013-02", made),
    ]
    # on 2 April both of February's amendments had fallen due (11 March, 1 April): it needs neither
    assert done("2013-06-01T01:00:00+00:00")[1:] == [
        ("2013-02", publication),
        ("2013-03", made),
        ("2013-04", made),
    ]
    assert workspace.account().spent == 6


def test_a_late_first_release_needs_no_amendment_that_fell_due_before(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = partial(suffice.backfill, monthly(workspace), "2013-01", "2013-01", **where(workspace))
    fill(as_of=at(monkeypatch, "2013-02-20T00:00:00+00:00"))
    assert len(fill(as_of=at(monkeypatch, "2013-02-21T00:00:00+00:00")).windows) == 1
    later = fill(as_of=at(monkeypatch, "2013-03-05T00:00:00+00:00"))
    assert [window.edition for window in later.windows] == ["2013-01", "2013-01.2"]


def test_a_grant_per_window_that_is_spent_holds_up_no_other_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace(tmp_path, granted="1", per_window="day:month:UTC")
    fill = partial(suffice.backfill, monthly(workspace), "2013-01", **where(workspace))
    fill(as_of=at(monkeypatch, "2013-02-05T00:00:00+00:00"))
    filled = fill(as_of=at(monkeypatch, "2013-03-05T00:00:00+00:00"))
    assert [(window.edition, window.status) for window in filled.windows] == [
        ("2013-01", "already_published"),
        ("2013-01.2", "left"),
        ("2013-02", "published"),
    ]
    assert "in window 2013-01" in str(filled.refusal)
    assert filled.needed == 2
    with pytest.raises(BudgetExceededError):
        release(workspace, 1)


def test_a_report_names_amendments_that_are_due_and_overdue(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = partial(suffice.status, monthly(workspace, first="2013-01"), **where(workspace))
    at(monkeypatch, "2013-02-05T00:00:00+00:00")
    release(workspace)
    assert report(as_of="2013-02-10T23:00Z").amendments == ()
    for moment, state in (("2013-02-11T00:00Z", "due"), ("2013-02-14T00:00Z", "overdue")):
        stand = report(as_of=moment)
        (due,) = stand.amendments
        assert (due.window, due.amendment, due.state, due.charge) == ("2013-01", 1, state, None)
        assert f"{due.due:%Y-%m-%d %H}" == "2013-02-11 00"
        assert stand.ok == (due.state is AmendmentState.DUE)
        assert (stand.covered, stand.further) == (1, 8)
        assert document(stand)["amendments"][0]["state"] == state
    at(monkeypatch, "2013-02-14T01:00:00+00:00")
    amended = release(workspace, 1)
    after = report(as_of="2013-02-15T00:00Z")
    assert (after.ok, after.amendments) == (True, ())
    assert [(window.window, window.state, window.amendment) for window in after.windows] == [
        ("2013-01", "published", 1)
    ]
    (
        workspace.directory / "releases" / "flights" / "2013-01.1" / amended.release_id / "manifest.json"
    ).unlink()
    assert [window.state for window in report(as_of="2013-02-15T00:00Z").windows] == ["not_in_store"]


@pytest.mark.slow
@pytest.mark.parametrize("related", ["disjoint", "same_data"])
@pytest.mark.parametrize("vouched", [False, True])
def test_editions_of_a_window_are_never_pooled(workspace: Workspace, related: str, *, vouched: bool) -> None:
    first, second, third = (release(workspace, number) for number in (0, 1, 2))
    other = release(workspace, window="2013-02")
    pooled: Any = partial(suffice.pool, "cancelled", vouched=vouched)
    for left, right in ((first, second), (third, first), (second, third)):
        with pytest.raises(UsageError, match="are editions of one release") as caught:
            pooled(**{related: [left, right]})
        assert all(text in str(caught.value) for text in (left.release_id, left.label, right.label))
        with pytest.raises(UsageError, match="are editions of one release"):
            suffice.compare(left, right, "cancelled", vouched=vouched)
        assert relation_of(left, right, "cancelled")[0] is Relation.OVERLAPPING
    assert relation_of(third, other, "cancelled")[0] is Relation.DISJOINT
    suffice.pool("cancelled", disjoint=[third, other])


def test_an_amendment_of_another_name_is_not_the_same_data(workspace: Workspace) -> None:
    first, amended = release(workspace), release(workspace, 1)
    spec = workspace.spec(name="others", statistics=STATISTICS, groups=None, window=MONTHLY)
    other = suffice.release(spec, **where(workspace), window="2013-01")
    assert relation_of(first, other, "cancelled")[0] is Relation.SAME_DATA
    assert relation_of(amended, other, "cancelled")[0] is Relation.OVERLAPPING


def shape(content: Any) -> Any:
    """Return a manifest without what names its charge, and without hashes of noise."""
    names = ("release_id", "drawing_hash", "drawing_sequence", "checksum", "ledger_id", "created")
    kept = {name: value for name, value in content.items() if name not in names}
    amends = {**kept.pop("amends"), "release_id": None, "manifest_sha256": None}
    return kept | {"amends": amends, "files": [{**file, "sha256": None} for file in kept["files"]]}


def test_an_amendment_has_the_same_shape_whether_rows_came_late_or_not(tmp_path: Path) -> None:
    manifests, sizes, entries = [], [], []
    for name in ("none", "late"):
        workspace = make_workspace(tmp_path / name)
        release(workspace)
        if name == "late":
            late_rows(workspace)
        amended = release(workspace, 1)
        manifests.append(shape(amended.manifest))
        sizes.append({path.name: path.stat().st_size for path in (tmp_path / name).rglob("2013-01.1/*/*")})
        with open_ledger(workspace.ledger) as ledger:
            entries.append([(entry.kind, len(entry.payload)) for entry in ledger.entries()])
    assert manifests[0] == manifests[1]
    assert sizes[0].keys() == {"manifest.json", "cancelled.parquet", *DESCRIPTIONS}
    assert sizes[0] == sizes[1]
    kinds = [[kind for kind, _ in of_account] for of_account in entries]
    assert kinds[0] == kinds[1]
    assert kinds[0].count("drawing") == 2


def test_verification_follows_the_link(workspace: Workspace) -> None:
    first, amended = release(workspace), release(workspace, 1)
    with open_ledger(workspace.ledger) as ledger:
        assert verify_release("flights@2013-01", store=workspace.store, ledger=ledger).problems == ()
        assert verify_store(open_store(workspace.store), ledger=ledger).problems == ()
    place = workspace.directory / "releases" / "flights" / "2013-01" / first.release_id / "manifest.json"
    kept = place.read_bytes()
    place.write_bytes(kept.replace(b'"2013-01"', b'"2013-02"'))
    (problem,) = verify_release("flights@2013-01.1", store=workspace.store).problems
    assert problem == "the manifest of the release that it amends is another than it names"
    place.unlink()
    (problem,) = verify_release("flights@2013-01.1", store=workspace.store).problems
    assert problem == f"the release {first.release_id}, which it amends, is not in the store"
    assert suffice.open_release(amended.uri).amendment == 1


@pytest.mark.parametrize(
    "amends",
    [
        None,
        {},
        {"number": 1},
        {"number": 0, "release_id": "0" * 16, "manifest_sha256": "0" * 64},
        {"number": 100, "release_id": "0" * 16, "manifest_sha256": "0" * 64},
        {"number": 2, "release_id": "0" * 16, "manifest_sha256": "0" * 64},
        {"number": "1", "release_id": "0" * 16, "manifest_sha256": "0" * 64},
        {"number": 1, "release_id": "../../" + "0" * 10, "manifest_sha256": "0" * 64},
        {"number": 1, "release_id": "OWN", "manifest_sha256": "0" * 64},
        {"number": 1, "release_id": "0" * 16, "manifest_sha256": "0" * 64, "more": 1},
        [],
        "flights@2013-01",
    ],
)
def test_a_hostile_link_is_refused(workspace: Workspace, amends: Any) -> None:
    release(workspace)
    amended = release(workspace, 1)
    content = json.loads(json.dumps(amended.manifest))
    if isinstance(amends, dict) and amends.get("release_id") == "OWN":
        amends = {**amends, "release_id": amended.release_id}
    content["amends"] = amends
    place = workspace.directory / "releases" / "flights" / "2013-01.1" / amended.release_id / "manifest.json"
    place.write_bytes(sealed(content))
    with pytest.raises(ReleaseCorruptError):
        suffice.open_release(amended.uri)


def test_what_a_release_without_windows_amends_is_refused(workspace: Workspace) -> None:
    whole = suffice.release(workspace.spec(name="whole"), **where(workspace))
    content = json.loads(json.dumps(whole.manifest))
    content["amends"] = {"number": 1, "release_id": "0" * 16, "manifest_sha256": "0" * 64}
    copy = workspace.directory / "copy"
    copy.mkdir()
    (copy / "manifest.json").write_bytes(sealed(content))
    with pytest.raises(ReleaseCorruptError, match="amends: the plan has no windows"):
        suffice.open_release(copy)


@pytest.mark.parametrize("stage", ["reserve", "stage", "publish"])
def test_an_amendment_that_fails_at_a_step_is_finished_by_its_rerun(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """One charge, one draw, one release, and the first release as it was."""
    first = release(workspace)

    def fail(*_: object, **__: object) -> None:
        message = "the ledger is away"
        raise LedgerError(message)

    with monkeypatch.context() as broken:
        broken.setattr(SqlLedger, stage, fail)
        with pytest.raises((LedgerError, StageFailedError)):
            release(workspace, 1, publish_timeout=0)
    standing = suffice.open_release("flights@2013-01", store=workspace.store)
    assert (standing.release_id == first.release_id) == (stage != "publish")
    with open_ledger(workspace.ledger) as ledger:
        begun = ledger.find("passengers", "flights", "2013-01", amendment=1)
        assert (begun is None) == (stage == "reserve")
    amended = release(workspace, 1)
    assert begun is None or amended.release_id == begun.release_id
    assert amended.manifest["amends"]["release_id"] == first.release_id
    assert workspace.account().spent == 2
    with open_ledger(workspace.ledger) as ledger:
        assert ledger.verify() == ()
        assert verify_store(open_store(workspace.store), ledger=ledger).problems == ()


def test_an_amendment_that_fails_between_its_marker_and_its_draw_is_returned(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it drew is unknown; its spool shows that nobody saw it."""
    first = release(workspace)

    def fail(*_: object, **__: object) -> None:
        message = "the ledger is away"
        raise LedgerError(message)

    with monkeypatch.context() as broken:
        broken.setattr(SqlLedger, "enter_drawing", fail)
        with pytest.raises(StageFailedError, match="counts as spent"):
            release(workspace, 1)
    amended = release(workspace, 1)
    assert amended.manifest["amends"]["release_id"] == first.release_id
    assert workspace.account().spent == 2
    with open_ledger(workspace.ledger) as ledger:
        assert [key.count for key in ledger.returned_draws("passengers")] == [1]
        assert ledger.verify() == ()


def test_an_amendment_that_fails_between_its_marker_and_its_draw_is_spent(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its spool is lost its rerun is refused; another attempt is charged again."""
    first = release(workspace)

    def fail(*_: object, **__: object) -> None:
        message = "the ledger is away"
        raise LedgerError(message)

    with monkeypatch.context() as broken:
        broken.setattr(SqlLedger, "enter_drawing", fail)
        with pytest.raises(StageFailedError, match="counts as spent"):
            release(workspace, 1)
    for entry in (workspace.directory / "ledger.db.spool").glob("*.1"):
        shutil.rmtree(entry)
    with pytest.raises(ChargeSpentError, match="new-attempt"):
        release(workspace, 1)
    assert workspace.account().spent == 2
    assert suffice.open_release("flights@2013-01", store=workspace.store).release_id == first.release_id
    amended = release(workspace, 1, new_attempt=True)
    assert amended.manifest["amends"]["release_id"] == first.release_id
    assert workspace.account().spent == 3
    with open_ledger(workspace.ledger) as ledger:
        assert ledger.verify() == ()
        assert verify_store(open_store(workspace.store), ledger=ledger).problems == ()

"""Releases of an account of rho: paid, lost, reconciled, verified, exported; added to one of epsilon."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING

import jsonschema
import pytest

from suffice.errors import BudgetExceededError, GuaranteeError, LedgerCorruptError, UsageError
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
from suffice.storage.ledger.chain import Head, PublicEntry, canonical_json
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.ledger.person import loss_together
from suffice.storage.ledger.replay import export_lines, public_fields, read_export
from suffice.storage.operations.reconciliation import reconcile
from suffice.storage.operations.verify_ledger import compare_with_store
from suffice.storage.operations.verify_release import verify_release
from suffice.storage.operations.verify_store import verify_store
from suffice.storage.releases.release_store import open_store
from support.backups import back_up, restored
from support.charging import drawn, published
from support.ledger_sql import tamper
from support.losses import costing, pure
from support.paid import Books, pay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from suffice.storage.ledger.charge import ChargeRequest

    MakeRequest = Callable[..., ChargeRequest]

ONE_IN_RHO = Fraction(1, 10**12)


@pytest.fixture
def ledger_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ledger.db"


@pytest.fixture
def books(ledger_url: str, tmp_path: Path) -> Iterator[Books]:
    with create_ledger(ledger_url) as ledger:
        ledger.grant("passengers", rho=Fraction(10), reason="first")
        store = open_store(str(tmp_path / "releases"), ledger_id=ledger.ledger_id, create=True)
        yield Books(directory=tmp_path, ledger=ledger, store=store)


def test_a_release_of_epsilon_is_charged_in_rho_and_verified_there(books: Books, ledger_url: str) -> None:
    charge = pay(books, "a")
    assert charge.loss.measure is PrivacyMeasure.RHO
    assert charge.loss.amount == books.ledger.account("passengers").spent < Fraction(1, 2)
    where = books.store.release_uri(charge.name, charge.edition, charge.release_id)
    assert verify_release(where, ledger=books.ledger).problems == ()
    assert verify_store(books.store, ledger=books.ledger).problems == ()
    assert compare_with_store(books.ledger, books.store).problems == ()
    export = read_export("\n".join(export_lines(books.ledger.entries())))
    assert export.verify() == ()
    assert compare_with_store(export, books.store).problems == ()
    tamper(ledger_url, "UPDATE charges SET charged = charged + 1", "UPDATE accounts SET spent = spent + 1")
    assert "its privacy loss is not the one in the ledger" in str(
        verify_release(where, ledger=books.ledger).problems
    )
    assert any("charged differ" in problem for problem in books.ledger.verify())


def test_what_a_copy_lacks_is_charged_again_in_rho(books: Books, ledger_url: str) -> None:
    pay(books, "a")
    backup = back_up(ledger_url, books.directory)
    lost = pay(books, "b")
    left = pay(books, "c", until="drawing")
    books.ledger.close()
    with open_ledger(restored(backup)) as ledger:
        done = reconcile(ledger, reason="restored")
        assert [(charge.charge_id, charge.loss) for charge in done.charges] == [
            (charge.charge_id, charge.loss) for charge in (lost, left)
        ]
        assert ledger.account("passengers").spent == 3 * lost.loss.amount
        assert ledger.verify() == ()
        assert compare_with_store(ledger, books.store).problems == ()
        assert reconcile(ledger, reason="again").charges == ()


def test_a_copy_whose_account_counts_another_measure_takes_nothing_up(books: Books, tmp_path: Path) -> None:
    """The backup is of before the first grant, and its owner granted anew, otherwise."""
    books.ledger.close()
    with create_ledger(f"sqlite:///{tmp_path}/early.db") as early:
        store = open_store(str(tmp_path / "others"), ledger_id=early.ledger_id, create=True)
        backup = back_up(f"sqlite:///{tmp_path}/early.db", tmp_path)
        early.grant("passengers", rho=Fraction(10), reason="first")
        pay(Books(directory=tmp_path, ledger=early, store=store), "a")
    with open_ledger(restored(backup)) as ledger:
        ledger.grant("passengers", epsilon=Fraction(10), reason="wrong")
        with pytest.raises(GuaranteeError, match="counts epsilon in this copy of the ledger"):
            reconcile(ledger, stores=[store.uri], reason="restored")
        assert ledger.account("passengers").spent == 0


def test_an_account_takes_its_measure_only(books: Books, make_request: MakeRequest) -> None:
    ledger = books.ledger
    ledger.grant("flights", epsilon=Fraction(3), reason="pure")
    of_rho = make_request(**costing(PrivacyMeasure.RHO, Fraction(1)))
    for refuse in (ledger.check, ledger.reserve, ledger.rehearse):
        with pytest.raises(GuaranteeError, match=r"counts epsilon, the spec states rho"):
            refuse(of_rho)
    with pytest.raises(GuaranteeError, match="fixed the measure: epsilon"):
        ledger.grant("flights", rho=Fraction(3), reason="x")
    with pytest.raises(GuaranteeError, match="fixed the measure: rho"):
        ledger.grant("passengers", epsilon=Fraction(10), reason="x")
    beyond = make_request(dataset="passengers", name="huge", **pure(Fraction(10**6)))
    with pytest.raises(BudgetExceededError, match="has rho 10 left of 10, the release asks for 500000000000"):
        ledger.reserve(beyond)
    assert ledger.verify() == ()


def test_a_grant_per_window_in_rho(books: Books, make_request: MakeRequest) -> None:
    ledger = books.ledger
    ledger.grant("taxis", rho=Fraction(1), per_window="day:month:UTC", sources=["/data"], reason="first")
    for window in ("2013-01", "2013-02"):
        published(ledger, make_request(dataset="taxis", window=window, **pure(Fraction(1))))
    published(ledger, make_request(dataset="taxis", name="all", **costing(PrivacyMeasure.RHO, ONE_IN_RHO)))
    assert ledger.remaining("taxis", "2013-01") == Fraction(1, 2) - ONE_IN_RHO
    assert [balance.spent for balance in ledger.windows("taxis")] == [Fraction(1, 2)] * 2
    with pytest.raises(BudgetExceededError, match=r"has rho 0\.499999999999 left in window 2013-02 of 1"):
        ledger.reserve(
            make_request(
                dataset="taxis", name="b", window="2013-02", **costing(PrivacyMeasure.RHO, Fraction(1, 2))
            )
        )
    assert ledger.verify() == ledger.add_checkpoint().problems == ledger.examine().problems == ()


def test_accounts_of_two_measures_add_in_rho(books: Books, make_request: MakeRequest) -> None:
    """A charge of epsilon counts as half its square, exactly; not all of them as that of their sum."""
    ledger = books.ledger
    ledger.grant("flights", epsilon=Fraction(3), reason="pure")
    least, more = Fraction(3, 10**6), Fraction(7, 10**5)
    for number, (name, epsilon) in enumerate((("a", least), ("b", more), ("c", more))):
        request = make_request(name=name, window=f"2013-0{number + 1}", **pure(epsilon), plan=_monthly(name))
        published(ledger, request)
    drawn(ledger, make_request(dataset="passengers", name="r", **costing(PrivacyMeasure.RHO, Fraction(1, 8))))
    ledger.abandon(ledger.reserve(make_request(name="returned")), reason="x")
    both = [ledger.account(dataset) for dataset in ("flights", "passengers")]
    together = loss_together(ledger, both)
    assert together.measure is PrivacyMeasure.RHO
    loss = together.loss
    halves = [epsilon**2 / 2 for epsilon in (more, more, least)]
    assert loss.of_all == Fraction(1, 8)
    assert [loss.in_windows(number) for number in (0, 1, 2, 3)] == [
        Fraction(1, 8) + sum(halves[:number], Fraction(0)) for number in (0, 1, 2, 3)
    ]
    assert loss.in_a_year == loss.in_every_window == Fraction(1, 8) + sum(halves)
    alone = loss_together(ledger, both[:1])
    assert (alone.measure, alone.loss.in_every_window) == (PrivacyMeasure.EPSILON, least + 2 * more)
    with pytest.raises(UsageError, match="named twice"):
        loss_together(ledger, [*both, both[0]])


def _monthly(name: str) -> dict[str, object]:
    return {"name": name, "window": {"column": "day", "every": "month", "time_zone": "UTC"}}


def test_lines_of_an_export_are_as_the_schema_says(
    books: Books, make_request: MakeRequest, repository: Path
) -> None:
    schema = json.loads((repository / "schemas/ledger-export-1.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    terms = {"dataset": "passengers", "store_id": "0" * 32}
    request = make_request(**terms, **costing(PrivacyMeasure.RHO, Fraction(1)))
    books.ledger.abandon(books.ledger.reserve(request), reason="x")
    lines = list(map(json.loads, export_lines(books.ledger.entries())))
    for line in lines:
        validator.validate(line)
    for number, more in (
        (1, {"measure": "epsilon"}),
        (1, {"micro_granted": 1}),
        (2, {"micro_epsilon": 1}),
    ):
        line = lines[number]
        assert not validator.is_valid({**line, "payload": {**line["payload"], **more}})


@pytest.mark.parametrize(
    ("number", "changed"),
    [
        (2, {"measure": None}),
        (2, {"measure": "epsilon"}),
        (2, {"pico_granted": None, "granted": 10**13}),
        (2, {"pico_granted": None, "micro_granted": 10**13}),
        (3, {"pico_rho": None, "micro_epsilon": 1}),
        (3, {"pico_rho": 10**13 + 1}),
        (3, {"charged": 1}),
        (4, {"micro_returned": 0, "pico_returned": None}),
        (4, {"pico_returned": 0}),
        (5, {"measure": None, "pico_granted": None, "micro_granted": 10**13}),
    ],
)
def test_entries_that_name_another_measure_break_a_rule(
    books: Books, make_request: MakeRequest, number: int, changed: dict[str, object]
) -> None:
    """An export whose chain was sealed anew, with amounts under other names: the replay stops there."""
    ledger = books.ledger
    request = make_request(dataset="passengers", **costing(PrivacyMeasure.RHO, Fraction(1)))
    ledger.abandon(ledger.reserve(request), reason="x")
    ledger.grant("passengers", rho=Fraction(10), failed_readings=3, reason="more")
    lines, head = [], Head()
    for line in map(json.loads, export_lines(ledger.entries())):
        if line["sequence"] == number:
            payload = {**line["payload"], **changed}
            line["payload"] = {name: value for name, value in payload.items() if value is not None}
        kept = {name: line[name] for name in line if name not in {"hash", "previous_hash"}}
        entry = PublicEntry(previous_hash=head.hash, **kept)
        head = Head(sequence=entry.sequence, hash=entry.hash)
        lines.append(entry)
    text = "\n".join(canonical_json(public_fields(entry)) for entry in lines)
    try:
        problems = read_export(text).verify()
    except LedgerCorruptError as error:
        problems = (str(error),)
    assert len(problems) == 1
    assert problems[0].startswith(f"entry {number} ")

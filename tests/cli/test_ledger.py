"""`suffice ledger show` and `suffice ledger recover`: every number explained, every charge ended."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from suffice.cli import app
from suffice.pipeline.spec.plan import compile_plan
from suffice.storage.ledger.charge import ChargeRequest
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.releases.release_parquet import encode_statistic
from suffice.storage.releases.release_store import ReleaseStore, open_store
from support.making import Workspace, make_workspace
from support.releases import compose, some_values

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.plan import Plan
    from suffice.storage.ledger.charge import Charge

WINDOW = {"column": "day", "every": "month"}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    workspace = make_workspace(tmp_path, granted="5", per_window="day:month:UTC")
    monkeypatch.setenv("SUFFICE_LEDGER", workspace.ledger)
    return workspace


def run(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> Any:
    with pytest.raises(SystemExit) as caught:
        app.main(words)
    captured = capsys.readouterr()
    assert caught.value.code == status, captured
    return json.loads(captured.out) if "--json" in words else captured.out


def leave(workspace: Workspace, name: str, state: str, window: str = "all", epsilon: str = "1") -> Charge:
    """Bring a charge into a state, and leave it with its lease passed."""
    with open_ledger(workspace.ledger, lease=timedelta(0)) as ledger:
        store = open_store(workspace.store, ledger_id=ledger.ledger_id, create=True)
        changes: dict[str, Any] = {} if window == "all" else {"window": WINDOW}
        privacy = {"epsilon": epsilon, "neighboring": "add_or_remove_one", "unit": "row"}
        plan = compile_plan(workspace.spec(name=name, privacy=privacy, **changes))
        charge = ledger.reserve(
            ChargeRequest(
                dataset="passengers",
                name=name,
                window=window,
                loss=plan.loss,
                rho=plan.rho,
                neighboring=str(plan.neighboring),
                unit=plan.unit,
                grid=plan.grid,
                source=str(workspace.data.resolve()),
                plan_json=plan.canonical,
                plan_hash=plan.plan_hash,
                store_id=store.store_id,
                store_uri=store.uri,
            )
        )
        if state == "returned":
            return ledger.abandon(charge, reason="x")
        if state == "reserved":
            return charge
        charge = ledger.enter_drawing(charge)
        return charge if state == "drawing" else ledger.stage(charge, written(store, plan, charge))


def written(store: ReleaseStore, plan: Plan, charge: Charge) -> bytes:
    """Put a charge's data files into the store, and return their manifest."""
    values = some_values(plan)
    files = [
        store.write_data(
            charge.name,
            charge.window,
            charge.release_id,
            statistic.name,
            encode_statistic(statistic, values[statistic.name]),
            rows=values[statistic.name].size,
        )
        for statistic in plan.statistics
    ]
    return compose(plan, files, window=charge.window, release_id=charge.release_id)


def test_every_number_follows_from_the_charges(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(workspace, "a", "reserved", epsilon="0.5")
    leave(workspace, "b", "staged")
    leave(workspace, "c", "returned", epsilon="0.25")
    for name, state in (("d", "staged"), ("e", "returned"), ("f", "reserved")):
        leave(workspace, name, state, window="2013-01", epsilon="0.125")
    leave(workspace, "g", "drawing", window="2013-02")
    (account,) = run(capsys, "ledger", "show", "passengers", "--json")["accounts"]
    sums: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for charge in account["charges"]:
        sums[charge["counts_on"], charge["counts_as"]] += Fraction(charge["epsilon"])
        returned = charge["counts_as"] == "returned"
        assert charge["held"] == ("0" if returned else charge["epsilon"])
    remaining = Fraction(5) - sums["account", "spent"] - sums["account", "reserved"]
    for counts_on, numbers in (
        ("account", account),
        *((entry["window"], entry) for entry in account["windows"]),
    ):
        for counts_as in ("spent", "reserved", "returned"):
            assert Fraction(numbers[counts_as]) == sums[counts_on, counts_as], (counts_on, counts_as)
        if counts_on != "account":
            left = remaining - sums[counts_on, "spent"] - sums[counts_on, "reserved"]
            assert Fraction(numbers["remaining"]) == left
    assert (account["spent"], account["reserved"], account["returned"]) == ("1", "0.5", "0.25")
    assert account["remaining"] == "2.5"
    assert [entry["window"] for entry in account["windows"]] == ["2013-01", "2013-02"]
    text = run(capsys, "ledger", "show")
    assert "spent 1, reserved 0.5, remaining 2.5 (returned 0.25)" in text
    assert "window 2013-01: spent 0.125, reserved 0.125, remaining 3.25 (returned 0.125)" in text
    assert "earlier" not in text


def test_returned_draws_are_shown(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    charge = leave(workspace, "a", "drawing")
    with open_ledger(workspace.ledger) as ledger:
        ledger.return_draw(ledger.take_over(charge), reason="its run died")
    (account,) = run(capsys, "ledger", "show", "--json")["accounts"]
    assert account["returned_draws"] == [{"name": "a", "window": "all", "amendment": 0, "count": 1}]
    assert account["charges"][0]["counts_as"] == "returned"
    assert "a: 1 draw returned, 3 may be" in run(capsys, "ledger", "show")


def test_text_shows_the_last_charges_and_json_all(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b", "c"):
        leave(workspace, name, "reserved", epsilon="0.5")
    text = run(capsys, "ledger", "show", "--last", "2")
    assert "and 1 earlier charge: --last 3 shows all, and --json" in text
    assert [line.split()[0] for line in text.splitlines()[-2:]] == ["b", "c"]
    for arguments, names in (((), ["a", "b", "c"]), (("--last", "1"), ["c"]), (("--last", "0"), [])):
        (account,) = run(capsys, "ledger", "show", "--json", *arguments)["accounts"]
        assert [charge["name"] for charge in account["charges"]] == names


def test_recover_says_what_it_did(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "ledger", "recover") == "nothing to recover: every charge is final\n"
    charges = [leave(workspace, name, name) for name in ("reserved", "drawing", "staged")]
    report = run(capsys, "ledger", "recover", "--json")
    assert report["ok"] is True
    assert [entry["charge_id"] for entry in report["charges"]] == [charge.charge_id for charge in charges]
    assert [entry["after"] for entry in report["charges"]] == ["abandoned", "abandoned", "published"]
    assert [entry["returned"] for entry in report["charges"]] == ["1", "0", "0"]
    (account,) = run(capsys, "ledger", "show", "--json")["accounts"]
    assert (account["spent"], account["reserved"], account["returned"]) == ("2", "0", "1")
    assert run(capsys, "ledger", "recover", "--json") == {"ok": True, "charges": [], "leftovers": []}


def test_what_cannot_be_recovered_is_exit_5(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    leave(workspace, "flights", "staged")
    moved = workspace.directory / "moved"
    (workspace.directory / "releases").rename(moved)
    report = run(capsys, "ledger", "recover", "--json", status=5)
    assert report["ok"] is False
    assert [entry["action"] for entry in report["charges"]] == ["left"]
    assert "no release store" in run(capsys, "ledger", "recover", status=5)
    text = run(capsys, "ledger", "recover", "--store", str(moved))
    assert text == "passengers: flights, attempt 1: staged, now published; epsilon 1 is spent\n"

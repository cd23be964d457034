"""What the command line says of one unit, and of a window that holds fewer rows than expected."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from support.making import Workspace
    from support.running import Runner

STATISTICS = {"cancelled": {"family": "bernoulli", "column": "cancelled"}}


@pytest.fixture
def empty(workspace: Workspace) -> tuple[str, str]:
    """A ledger that has no account yet."""
    return "--ledger", f"sqlite:///{workspace.directory / 'empty.db'}"


@pytest.fixture
def spec(workspace: Workspace) -> str:
    return _written(workspace)


def _written(workspace: Workspace, **changes: Any) -> str:
    window = {"column": "day", "every": "month", "amend": ["7 days"]}
    return str(workspace.write_spec(statistics=STATISTICS, groups=None, window=window, **changes))


@pytest.mark.slow
def test_a_person_is_told_of_windows_years_and_rows(spec: str, suffice: Runner) -> None:
    suffice.json("backfill", spec, "--from", "2013-01", "--to", "2013-03", "--as-of", "2013-04-03T00:00Z")
    suffice.json("release", spec, "--window", "2013-01", "--amendment", "1")
    answer = suffice.json("ledger", "person", "passengers", "--windows", "2", "--rows", "5")
    assert answer["so_far"] == {
        "without_window": "0",
        "in_a_window": "2",
        "in_a_year": "4",
        "in_every_window": "4",
    }
    assert answer["asked"] == {"rows": 5, "windows": 2, "loss": "9"}, "four rows in January, one in another"
    assert answer["granted"] == {"in_a_window": "10", "in_a_year": "10", "in_every_window": "10"}
    text = suffice.text("ledger", "show")
    assert "one unit: so far at most 2 in a window, 4 in a year (the worst twelve months), 4 in all" in text
    assert "a person with r rows loses up to r times as much" in text
    shown = suffice.json("show", "flights@2013-01")
    said = "one unit: epsilon 2 in a window with its 2 editions; 24 in a year of months"
    assert shown["one_unit"].startswith(said)


def test_rows_are_no_question_where_a_column_is_the_unit(suffice: Runner, empty: tuple[str, str]) -> None:
    unit = ("--unit", "column:id", "--reason", "x", "--create", "--unwitnessed")
    suffice.json("ledger", "grant", "shop", "--epsilon", "1", *unit, *empty)
    told = suffice.text("ledger", "person", "shop", "--rows", "2", *empty, status=2)
    assert "whose rows lose together" in told


def test_losses_in_two_accounts_add_up(spec: str, suffice: Runner) -> None:
    suffice.json("release", spec, "--window", "2013-01")
    suffice.text("ledger", "grant", "lounge", "--rho", "3", "--reason", "x", "--unwitnessed")
    told = suffice.json("ledger", "person", "lounge", "--with", "passengers")
    assert told["so_far"]["in_every_window"] == "0"
    assert told["together"] == {
        "accounts": ["lounge", "passengers"],
        "measure": "rho",
        "so_far": {
            "without_window": "0",
            "in_a_window": "0.5",
            "in_a_year": "0.5",
            "in_every_window": "0.5",
        },
    }
    text = suffice.text("ledger", "person", "passengers", "--with", "lounge")
    assert "one unit with rows in passengers and lounge: so far at most rho 0.5 in a window" in text
    assert "together" not in suffice.json("ledger", "person", "passengers")
    grant = ("--unit", "column:id", "--epsilon", "1", "--reason", "x", "--unwitnessed")
    suffice.text("ledger", "grant", "members", *grant)
    told = suffice.text("ledger", "person", "lounge", "--with", "members", status=2)
    assert "differ in unit or neighbouring relation" in told


def test_ids_in_floating_point_are_warned_of_where_an_account_is_shown(
    suffice: Runner, empty: tuple[str, str], tmp_path: Path
) -> None:
    stated = {"columns": {"id": "floating"}, "unit": "column:id", "source": {"kind": "parquet"}}
    (tmp_path / "contract.json").write_text(json.dumps(stated), encoding="utf-8")
    terms = ("--unit", "column:id", "--reason", "x", "--create", "--unwitnessed", *empty)
    contract = ("--contract", str(tmp_path / "contract.json"))
    suffice.text("ledger", "grant", "shop", "--epsilon", "1", *terms, *contract)
    for words in (("ledger", "show", "shop"), ("ledger", "person", "shop")):
        assert "id is floating point: rows of ids from 2^53 on" in suffice.text(*words, *empty)


def test_a_grant_works_out_a_window_from_a_year(suffice: Runner, empty: tuple[str, str]) -> None:
    terms = ("--unit", "column:id", "--units-disjoint", "--per-window", "day:month", "--reason", "x", *empty)
    places = ("--source", "data/sales", "--create", "--unwitnessed")
    made = suffice.json("ledger", "grant", "shop", "--per-year", "1", *terms, *places)
    assert made["granted"] == "0.083333", "a twelfth, rounded down"
    made = suffice.json(
        "ledger", "grant", "shop", "--per-year", "1", "--max-windows", "4", *terms, "--unwitnessed"
    )
    assert (made["granted"], made["max_windows"]) == ("0.25", 4)
    text = suffice.text("ledger", "show", "shop", *empty)
    assert "the grant allows 0.25 in a window, 1 in a year" in text
    assert "at most 4 windows of twelve months; nothing enforces it" in text
    assert "units disjoint: the owner states that no unit has rows in two windows" in text
    assert "the numbers above do not rely on it: a unit that has loses in each of them" in text
    for wrong in (("--epsilon", "1", "--per-year", "1"), ()):
        assert "--per-year" in suffice.text(
            "ledger", "grant", "shop", *wrong, "--reason", "x", *empty, status=2
        )


def test_a_plan_finds_the_epsilon_of_a_year(suffice: Runner, workspace: Workspace) -> None:
    spec = _written(workspace, expect={"rows": "1000", "epsilon": "0.01"})
    plan = suffice.json("plan", spec, "--per-year", "12", "--max-windows", "6")
    assert plan["person"] == {
        "in_a_window": "2.01",
        "in_a_year": "12.06",
        "windows_in_a_year": 12,
        "max_windows": 6,
        "per_year": "12",
        "epsilon": "0.995",
    }
    assert plan["expect"]["empty_passes"] == pytest.approx(2.3e-5, rel=0.02)
    text = suffice.text("plan", spec)
    assert "before it flights.expect counts the rows that fit, for epsilon 0.01 more" in text
    assert "one unit: epsilon 2.01 in a window" in text


@pytest.mark.slow
def test_a_window_below_the_floor_ends_with_a_status_of_its_own(
    suffice: Runner, workspace: Workspace
) -> None:
    spec = _written(workspace, expect={"rows": "50", "epsilon": "1"})
    assert "of its data" not in suffice.text("release", spec, "--window", "2011-01", status=8)
    text = suffice.text("backfill", spec, "--from", "2011-01", "--to", "2011-01", status=8)
    assert "published 0, already published 0, stopped 1, failed 0, left 0" in text
    suffice.text("status", spec, "--from", "2011-01", "--as-of", "2011-02-02T00:00Z", status=6)
    assert [charge["name"] for charge in suffice.json("ledger", "show")["accounts"][0]["charges"]] == [
        "flights.expect"
    ]

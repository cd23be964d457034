"""What somebody meets who types `suffice` for the first time: panels, `-h`, lists of names, and URLs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from suffice.cli.app import PANELS, command
from support.releases import make_plan, make_store, publish
from support.web_server import serving

if TYPE_CHECKING:
    from support.running import Runner

VECTORS = Path(__file__).parents[1] / "vectors/valid"
FEW, ONE = str(VECTORS / "first-families/release"), str(VECTORS / "window/release")


def test_every_command_stands_in_one_panel() -> None:
    named = [name for names in PANELS.values() for name in names.split()]
    assert sorted(named) == sorted(command().commands)  # type: ignore[attr-defined]


def test_the_help_has_three_panels(suffice: Runner) -> None:
    bare = suffice.text()
    assert bare == suffice.text("-h") == suffice.text("--help")
    places = [bare.index(f"\n{panel}:\n") for panel in PANELS]
    assert places == sorted(places)
    assert bare.index("\n  posterior ") < places[1] < bare.index("\n  ledger ") < places[2]
    assert "..." not in bare.replace("[ARGS]...", "")


@pytest.mark.parametrize(
    "words", [("posterior",), ("ledger", "grant"), ("model", "query"), ("list",), ("keys",)]
)
def test_help_is_asked_for_in_short_and_fits(
    suffice: Runner, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    printed = suffice.text(*words, "-h")
    assert printed == suffice.text(*words, "--help")
    assert max(map(len, printed.splitlines())) <= 100


def test_a_misspelt_command_option_and_statistic_say_what_was_meant(suffice: Runner) -> None:
    assert "Did you mean 'posterior'" in suffice.text("postrior", status=2)
    assert "--prior" in suffice.text("posterior", FEW, "cancelled", "--pior", "x", status=2)
    assert "did you mean cancelled?" in suffice.text("posterior", FEW, "canceled", status=2)


def test_a_spec_that_is_not_there_is_said_not_to_be(suffice: Runner, tmp_path: Path) -> None:
    assert "there is no such file" in suffice.text("plan", str(tmp_path / "absent.yaml"), status=2)


def test_a_store_lists_its_releases(suffice: Runner, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    make_store(tmp_path / "store")
    assert suffice.text("list", store).strip() == f"the store {store} holds no release"
    uri = publish(tmp_path / "store", make_plan())
    printed = suffice.text("list", store)
    assert "flights  1         all    all" in printed
    assert "suffice show flights" in printed
    assert "0123456789abcdef" in suffice.text("list", "--name", "flights", "--store", store)
    assert "no release of absent" in suffice.text("list", "--name", "absent", "--store", store)
    assert suffice.json("list", store) == {
        "store": store,
        "releases": [
            {
                "name": "flights",
                "window": "all",
                "amendment": 0,
                "release_id": "0123456789abcdef",
                "uri": str(uri),
            }
        ],
    }


def test_a_table_without_a_statistic_is_of_the_only_one_or_says_which_there_are(suffice: Runner) -> None:
    assert suffice.json("table", ONE) == suffice.json("table", ONE, "cancelled")
    printed = suffice.text("table", FEW)
    assert f"one of them: suffice table {FEW} cancelled" in printed
    assert "total_of_squares" in printed
    names = [row["statistic"] for row in suffice.json("table", FEW)["statistics"]]
    assert names == ["cancelled", "carrier", "stops", "delay"]
    assert "name the one that is written" in suffice.text("table", FEW, "--out", "x.csv", status=2)


def test_show_says_what_can_be_asked(suffice: Runner) -> None:
    printed = suffice.text("show", FEW)
    assert "what can be asked" in printed
    assert "mean, variance" in printed


def test_commands_take_a_url(suffice: Runner) -> None:
    with serving() as server:
        server.serve_folder(VECTORS / "window/release", "/release")
        url = f"{server.url}/release"
        assert suffice.json("table", url)["rows"] == suffice.json("table", ONE)["rows"]
        assert "not known: a website lists no other release" in suffice.text("show", url)
        assert suffice.json("verify", url)["ok"]
        assert "no release at" in suffice.text("show", f"{server.url}/absent", status=5)

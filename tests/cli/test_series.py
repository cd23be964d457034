"""`suffice posterior NAME STATISTIC --over window`: what it prints, what its document holds, what not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from support.series_store import SeriesStore

if TYPE_CHECKING:
    from pathlib import Path

    from support.running import Runner

MONTHS = [f"2013-{month:02d}" for month in range(1, 9)]


@pytest.fixture
def store(tmp_path: Path) -> str:
    place = SeriesStore(tmp_path / "releases")
    for month in MONTHS:
        if month != "2013-05":
            truth = 0.2 if month < "2013-06" else 0.7
            place.publish(month, [truth, 0.4], size=400, groups={"origin": ["EWR", "JFK"]})
    return str(tmp_path / "releases")


@pytest.mark.slow
def test_a_series_is_walked_over(store: str, suffice: Runner, tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("table.csv", "draws.csv", "walk.svg")}
    options = ["--out", "table.csv", "--draws-out", "draws.csv", "--plot", "walk.svg"]
    words = [str(files.get(word, word)) for word in options]
    question = ("posterior", "flights", "cancelled", "--over", "window", "--store", store, "--draws", "40")
    said = suffice.text(*question, "--where", "origin=EWR", "--seed", "1", "--highest", "2", *words)
    assert "release: flights, 7 windows" in said
    assert "1 of 8 times without a cell" in said
    assert "a jump leads to 2013-06" in said
    assert len(files["table.csv"].read_text().splitlines()) == 8
    assert all(path.stat().st_size for path in files.values())
    # A warning may go to the other stream: a few cells need not tell the step.
    document = json.loads(suffice.text(*question, "--json"))
    assert [each["label"] for each in document["source"]["releases"]][-1] == "flights@2013-08"
    assert document["pooled"]["population"] == "walk"
    (steps,) = document["pooled"]["walks"]
    assert (steps["over"], steps["series"], steps["cells"], steps["times"]) == ("window", 2, 14, 8)
    assert document["pooled"]["cells"][0].keys() >= {"window", "origin", "own_share", "outside"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("flights@2013-02", "--over", "window"), "NAME without @WINDOW"),
        (("flights", "--over", "month"), "has no such group column (its columns: origin)"),
        (("flights", "--over", "window season=12"), "no series spans two seasons"),
        (("flights", "--over", "window", "--pooled", "beta"), "population does not go with over=window"),
        (("flights", "--over", "window", "--prior", "Beta(1, 1)"), "leave prior out"),
    ],
    ids=["one window", "no column", "short season", "population", "prior"],
)
def test_what_is_refused(words: tuple[str, ...], says: str, store: str, suffice: Runner) -> None:
    name, *options = words
    assert says in suffice.text("posterior", name, "cancelled", *options, "--store", store, status=2)

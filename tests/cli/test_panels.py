"""Places on a map over time, from the command line: printed, drawn, and refused."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from support.running import Runner

REPOSITORY = Path(__file__).resolve().parents[2]
COUNTIES, MONTHS = 9, [f"2024-{month:02d}" for month in range(1, 7)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a store and a table of neighbours; county 9 is an island."""
    gallery = runpy.run_path(str(REPOSITORY / "docs/figures/gallery.py"))
    folder = tmp_path_factory.mktemp("panels")
    store = folder / "releases"
    gallery["open_store"](str(store), ledger_id=gallery["LEDGER_ID"], create=True)
    rng = np.random.default_rng(3)
    truth = np.repeat(rng.uniform(0.1, 0.3, (COUNTIES, 1)), len(MONTHS), axis=1)
    counties, entry = (
        {"county": {"range": ["1", str(COUNTIES)]}},
        {"ill": {"family": "bernoulli", "column": "ill"}},
    )
    grid = {"name": "counties", "groups": {**counties, "month": MONTHS}}
    gallery["release"](store, grid, entry, {"ill": truth.ravel()}, np.full(truth.size, 300), rng)
    monthly = {"name": "monthly", "groups": counties, "window": {"column": "day", "every": "month"}}
    for number, month in enumerate(MONTHS):
        sizes = np.full(COUNTIES, 300)
        gallery["release"](store, monthly, entry, {"ill": truth[:, number]}, sizes, rng, window=month)
    pairs = [f"{county},{county + 1}" for county in range(1, COUNTIES - 1)]
    (folder / "neighbours.csv").write_text("\n".join(["county,neighbour", *pairs]), encoding="utf-8")
    return folder


def words(place: Path, *first: str, over: str = "month") -> list[str]:
    options = ["--adjacency", str(place / "neighbours.csv"), "--over", over]
    return [*first, *options, "--store", str(place / "releases")]


@pytest.mark.slow
def test_places_over_time_are_printed_and_drawn(place: Path, suffice: Runner, tmp_path: Path) -> None:
    plot = tmp_path / "picture.svg"
    drawn = ["--plot", str(plot), "--draws", "50", "--seed", "1"]
    said = suffice.text(*words(place, "posterior", "counties", "ill"), *drawn)
    assert f"{COUNTIES} series of {COUNTIES * len(MONTHS)} cells walk over month" in said
    assert "places have neighbours by county, 7 pairs; 6 cells of islands borrow" in said
    assert "in their order" in plot.read_text(encoding="utf-8")
    document = suffice.json(*words(place, "posterior", "monthly", "ill", over="window"))
    cells = document["pooled"]["cells"]
    assert [(row["county"], row["window"]) for row in cells[:2]] == [(1, "2024-01"), (2, "2024-01")]
    assert len(cells) == COUNTIES * len(MONTHS)
    assert document["pooled"]["walks"][0]["common_step"] > 0.0
    refused = suffice.text(*words(place, "posterior", "counties", "ill", over="month season=2"), status=2)
    assert "does not go with adjacency" in refused

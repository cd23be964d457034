"""Charts of shares along months: exact as the explorer's answers, each category on its axis."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

import suffice
from suffice.cataloguing.catalogue import catalogue
from suffice.pages.statistic_picture import picture
from suffice.pages.statistic_view import statistic_view
from support.releases import make_plan, publish

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pages.statistic_view import StatisticView

CATEGORIES = ["a, b", "c", "rare"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = make_plan(
        groups={"month": {"range": [1, 4]}, "place": ["x", "y", "z"]},
        statistics={"kind": {"family": "categorical", "column": "kind", "categories": CATEGORIES}},
    )
    counts = [(500 + 20 * cell, 700 - 30 * cell, 9 + cell % 3) for cell in range(12)]
    return publish(
        tmp_path_factory.mktemp("shares") / "store", plan, {"kind": np.array(counts, dtype=object)}
    )


@pytest.fixture(scope="module")
def views(folder: Path) -> list[StatisticView]:
    release = suffice.open_release(folder)
    return [statistic_view(release, "kind", seed=seed) for seed in (1, 2)]


@pytest.mark.slow
def test_intervals_of_shares_rest_on_no_draws(folder: Path, views: list[StatisticView]) -> None:
    assert views[0].intervals == views[1].intervals
    assert views[0].rows == views[1].rows
    assert "draws" not in views[0].facts["intervals"]
    posterior = suffice.open_release(folder).posterior("kind")
    drawn = posterior.quantile("probability", [0.25, 0.5, 0.75], draws=40_000, rng=3)
    shown = [
        [(interval.lower_half, interval.middle, interval.upper_half) for interval in cell]
        for cell in views[0].intervals
    ]
    # Six standard errors of a normal's quartile, by 40,000 draws.
    off = np.abs(np.array(shown) - drawn) / posterior.sd("probability")[..., None]
    assert np.max(off) < 6 * 1.37 / 200


def test_every_category_has_panels_on_an_axis_of_its_own(views: list[StatisticView]) -> None:
    shown = picture(views[0], ["month"])
    assert [label for label, _ in shown.panels] == [f"{p}, {c}" for c in CATEGORIES for p in "xyz"]
    ticks = [re.findall(r'text-anchor="end"[^>]*>([^<]+)<', str(chart)) for _, chart in shown.panels]
    assert ticks[0] == ticks[2]
    assert float(ticks[6][-1]) < 0.1 < float(ticks[0][-1])
    assert shown.caption.endswith("Each category has an axis of its own.")


def test_charts_share_no_axis_where_one_would_show_dots(tmp_path: Path) -> None:
    """Shares that differ between places by far more than between months."""
    plan = make_plan(
        groups={"place": ["x", "y"], "month": {"range": [1, 4]}},
        statistics={"kind": {"family": "categorical", "column": "kind", "categories": ["a", "b"]}},
    )
    counts = [((8000, 2000), (200, 9800))[cell // 4] for cell in range(8)]
    store = publish(tmp_path / "store", plan, {"kind": np.array(counts, dtype=object)})
    shown = picture(statistic_view(suffice.open_release(store), "kind", seed=1), ["month"])
    ticks = [
        [float(tick) for tick in re.findall(r'text-anchor="end"[^>]*>([^<]+)<', str(chart))]
        for _, chart in shown.panels
    ]
    assert min(ticks[0]) > 0.7
    assert max(ticks[1]) < 0.05
    assert "Each chart has an axis of its own" in shown.caption


@pytest.mark.slow
def test_six_charts_are_open_and_the_others_folded(folder: Path, tmp_path: Path) -> None:
    catalogue(folder.parents[2], tmp_path / "site")
    page = next((tmp_path / "site" / "releases").rglob("index.html")).read_text(encoding="utf-8")
    before, _, after = page.partition("<summary>Show the other 3 charts</summary>")
    assert before.count('<div class="panel">') == 6
    assert after.count('<div class="panel">') == 3


def test_a_single_category_has_all_of_the_records(tmp_path: Path) -> None:
    plan = make_plan(
        groups=None,
        statistics={"kind": {"family": "categorical", "column": "kind", "categories": ["only"]}},
    )
    release = suffice.open_release(publish(tmp_path, plan, {"kind": np.array([[30]], dtype=object)}))
    shown = statistic_view(release, "kind", seed=1)
    ((interval,),) = shown.intervals
    assert (interval.lower_half, interval.middle, interval.upper_half) == (1.0, 1.0, 1.0)

"""The dot plot of pooled cells: sorted, each alone beside itself, its population marked."""

from __future__ import annotations

import itertools
import math
import re
from typing import TYPE_CHECKING, Any

import pytest

from suffice.cataloguing.catalogue import catalogue
from suffice.pages.pooled_forest import cell_names, forests_of_parameters, paired_forests
from suffice.publishing.publish import publish
from support.browser import running_browser
from support.pooled_cells import make_cells

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

POOLS = [{"region": "north", "centre": 0.2, "identified": True}, {"region": "south", "centre": 0.4}]


def row(region: str, town: int, mean: float, alone: float) -> dict[str, Any]:
    return {
        "region": region,
        "town": town,
        "parameter": "probability",
        "mean": mean,
        "sd": 0.01,
        "lower": mean - 0.05,
        "upper": mean + 0.05,
        "own_share": 0.25,
        "outside": 0.0,
        "alone_mean": alone,
        "alone_sd": 0.04,
        "alone_lower": alone - 0.1,
        "alone_upper": alone + 0.1,
    }


def test_cells_are_sorted_within_their_population_on_one_scale() -> None:
    rows = [
        row("north", 1, 0.2, 0.3),
        row("south", 1, 0.5, 0.5),
        {**row("north", 2, 0.3, 0.7), "outside": 0.9},
    ]
    heading, names = cell_names(rows)
    assert (heading, names) == ("region, town", ["north, 1", "south, 1", "north, 2"])
    north, south = paired_forests(rows, POOLS, axis="probability", heading=heading, names=names)
    assert [(each.label, each.is_outside) for each in north.rows] == [("north, 2", True), ("north, 1", False)]
    assert [each.label for each in south.rows] == ["south, 1"]
    assert (north.name, north.is_identified, south.is_identified) == ("region north", True, False)
    assert north.axis == south.axis
    assert (north.rows[0].pooled[0], north.rows[0].alone[0], north.rows[0].own_share) == (
        "0.300",
        "0.700",
        "25 %",
    )
    places = [
        [float(place) for place in re.findall(r'class="centre" x1="([0-9.]+)%"', each.rows[0].chart)]
        for each in (north, south)
    ]
    # The scale is of 0.1 to 0.8.
    assert places[0] == [pytest.approx(100 * (0.2 - 0.0) / 0.8, abs=1e-6)]
    assert places[1] == [pytest.approx(50.0)]


def test_of_many_cells_some_are_shown_evenly_by_rank() -> None:
    rows = [row("north", town, town / 1000.0, 0.5) for town in range(901)]
    (forest,) = paired_forests(rows, POOLS, axis="p", heading="", names=[str(each["town"]) for each in rows])
    shown = [int(each.label) for each in forest.rows]
    assert (len(shown), forest.n_rows, shown[0], shown[-1]) == (100, 901, 900, 0)
    assert {first - second for first, second in itertools.pairwise(shown)} <= {9, 10}


@pytest.mark.parametrize(
    "changes",
    [{"mean": None}, {"alone_upper": math.inf}, {"lower": "<b>"}, {"upper": math.nan}],
    ids=["none", "infinite", "text", "nan"],
)
def test_rows_of_others_that_are_no_numbers_are_left_out(changes: dict[str, Any]) -> None:
    rows = [{**row("north", 1, 0.2, 0.3), **changes}]
    assert paired_forests(rows, POOLS, axis="p", heading="", names=["x"]) == []
    rows.append({**row("north", 2, 0.2, 0.3), "own_share": "<b>", "outside": 7})
    (forest,) = paired_forests(
        rows, [{"region": "north", "centre": "<b>"}], axis="p", heading="", names=["x", "y"]
    )
    (only,) = forest.rows
    assert (only.own_share, only.is_outside, forest.centre) == ("", False, "")


def test_every_parameter_has_a_picture_with_its_own_population() -> None:
    """Means and variances, whose log standard deviations lie on no axis; on scales of their own."""
    rows = [
        {**row("north", town, scale * town, scale * town), "parameter": parameter}
        for town in (1, 2)
        for parameter, scale in (("mean", 1.0), ("variance", 50.0))
    ]
    pools = [
        {"parameter": "means", "centre": 1.5, "identified": True},
        {"parameter": "log standard deviations", "centre": 0.3, "identified": False},
    ]
    means, variances = forests_of_parameters(
        rows, pools, axis=str.upper, heading="town", names=["1", "1", "2", "2"]
    )
    assert (means.name, means.centre, means.is_identified) == ("mean", "1.500", True)
    assert (variances.name, variances.centre, variances.is_identified) == ("variance", "", False)
    assert [float(each.pooled[0]) for each in variances.rows] == [100.0, 50.0]
    assert [each.label for each in means.rows] == ["2", "1"]
    assert ("MEAN" in means.axis, "VARIANCE" in variances.axis) == (True, True)


def test_cells_that_walk_stay_in_their_order() -> None:
    """Over windows each series by itself, whatever is greater."""
    rows = [
        {"window": window, **row("north", town, mean, mean)}
        for window, mean in (("2025-01", 0.2), ("2025-02", 0.5), ("2025-03", 0.3))
        for town in (10, 2)
    ]
    (forest,) = paired_forests(
        rows, [{"step": 0.1, "identified": True}], axis="p", heading="", names=cell_names(rows)[1]
    )
    assert [each.label for each in forest.rows] == [
        f"2025-0{month}, north, {town}" for town in (10, 2) for month in (1, 2, 3)
    ]
    assert forest.is_ordered


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


@pytest.mark.slow
def test_the_switch_shows_each_alone_or_together(browser: Browser, tmp_path: Path) -> None:
    release = make_cells(tmp_path / "store", 3)
    made = publish(release, "ill", pooled="region", draws=0)
    publish(release, "ill", kind="likelihood")
    assert catalogue(tmp_path / "store", tmp_path / "site").problems == ()
    page = browser.new_page(viewport={"width": 400, "height": 800})
    page.goto((tmp_path / "site" / "publications" / made.publication_id / "index.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    first = page.locator("figure.paired").first
    alone, pooled = (
        first.locator(f"tbody td.number:not(.range) > .of-{of}").first for of in ("alone", "pooled")
    )
    for label, shown in (("Each alone", (True, False)), ("Together", (False, True)), ("Both", (True, True))):
        first.get_by_role("radio", name=label).check()
        assert (alone.is_visible(), pooled.is_visible()) == shown, label
    # By keyboard, as any choice of several.
    first.get_by_role("radio", name="Both").focus()
    page.keyboard.press("ArrowRight")
    assert (alone.is_visible(), pooled.is_visible()) == (True, False)
    (likelihood,) = [
        path for path in (tmp_path / "site" / "publications").iterdir() if path.name != made.publication_id
    ]
    page.goto((likelihood / "index.html").as_uri())
    assert "Published likelihood" in page.locator("main").inner_text()
    assert page.get_by_role("link", name="ill-likelihood.parquet").count() == 1

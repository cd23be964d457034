"""Pages of histograms, whose bins stand in their order, and of trees, whose numbers add up."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import suffice
from suffice.cataloguing.catalogue import catalogue
from suffice.errors import SufficeWarning
from suffice.pages.explored import READ
from support.browser import running_browser

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow

STATES = {f"{state}-{number}": state for state in ("CA", "NY", "TX") for number in range(2)}
CELLS, N = 2, 4000
EPSILON = 200
"""At least 28 for each statistic and level: of some 400 counts one has noise with a chance below 1e-9."""


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "cell": rng.integers(0, CELLS, N),
            "hour": rng.integers(0, 8, N),
            "delay": np.minimum(10.0 + rng.gamma(2.0, 10.0, N), 99.0),
            "county": rng.choice(list(STATES), N),
            "day": pd.to_datetime("2013-01-01") + pd.to_timedelta(rng.integers(0, 59, N), "D"),
            "ill": rng.random(N) < 0.2,
        }
    )


@pytest.fixture(scope="module")
def store(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shapes")
    rows.to_parquet(root / "rows.parquet")
    ledger, store = f"sqlite:///{root / 'ledger.db'}", root / "store"
    histogram = suffice.histogram("delay", lower=0, upper=100, bins=20)
    trees = {
        "ill": suffice.bernoulli(hierarchy=["nation", "state", "county"], groups={"county": list(STATES)}),
        "rows": suffice.bernoulli(
            "all",
            hierarchy=["all", "month", "day"],
            groups={"day": {"from": "2013-01-01", "to": "2013-02-28", "every": "day"}},
        ),
        "waits": suffice.exponential(
            "delay", upper=60, hierarchy=["whole", "state", "county"], groups={"county": list(STATES)}
        ),
    }
    few: dict[str, Any] = {"groups": {"cell": {"range": [0, CELLS - 1]}}, "statistics": {"delay": histogram}}
    many = {**few, "groups": {"hour": {"range": [0, 7]}}}
    both = {**few, "statistics": {"delay": histogram, "ill": suffice.bernoulli("ill")}}
    grown = {"statistics": trees, "derived": {"state": {"column": "county", "map": STATES}}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeWarning)
        suffice.grant(
            "visits", epsilon=5 * EPSILON + 600, reason="a test", ledger=ledger, create=True, unwitnessed=True
        )
        for name, content in {"few": few, "many": many, "both": both, "grown": grown}.items():
            source = {"parquet": str(root / "rows.parquet")}
            loss = 3 * EPSILON if name == "grown" else EPSILON
            spec = suffice.spec(name=name, dataset="visits", epsilon=loss, source=source, **content)
            suffice.release(spec, ledger=ledger, store=str(store))
    return store


@pytest.fixture(scope="module")
def files(store: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    site = tmp_path_factory.mktemp("site") / "site"
    assert catalogue(store, site).problems == ()
    return {path.relative_to(site).parts[1]: path for path in site.glob("releases/*/all/*/index.html")}


@pytest.fixture(scope="module")
def pages(files: dict[str, Path]) -> dict[str, str]:
    return {name: path.read_text(encoding="utf-8") for name, path in files.items()}


def intervals_of(page: str) -> list[tuple[float, float]]:
    """Return the intervals that stand as text in a page's forests, in order."""
    texts = re.findall(r'class="number range">([^<]+) to ([^<]+)</td>', page)
    return [(float(low.replace(",", "")), float(high.replace(",", ""))) for low, high in texts]


def test_bins_stand_in_their_order_where_cells_are_few(pages: dict[str, str]) -> None:
    figure = re.search(r'<svg[^>]*class="figure figure-column".*?</svg>', pages["few"], re.DOTALL)
    assert figure is not None
    paths = re.findall(r'<path d="M([^"]+)" class="line noise-aware"', figure.group())
    assert len(paths) == 2 * CELLS
    for density, share in zip(paths[::2], paths[1::2], strict=True):
        heights, shares = (
            -np.array([[float(number) for number in point.split()] for point in line.split("L")])[:, 1]
            for line in (density, share)
        )
        # The mode of delays is at 20, after bins that are empty: sorted, it would be at an end.
        assert 3 <= np.argmax(heights) < len(heights) / 2
        assert heights[0] < heights.max()
        assert heights[-1] < heights.max()
        assert (np.diff(shares) >= 0).all()
    assert "figure-ranked" not in pages["few"]


def test_quantiles_stand_by_cell(pages: dict[str, str], rows: pd.DataFrame) -> None:
    shown = intervals_of(pages["few"])
    levels = (0.1, 0.5, 0.9)
    assert len(shown) == len(levels) * CELLS
    exact = [rows.loc[rows["cell"] == cell, "delay"].quantile(q) for q in levels for cell in range(CELLS)]
    # Draws of the law's quantile lie about the rows' own, and an interval holds bins whole.
    assert all(low <= value <= high for (low, high), value in zip(shown, exact, strict=True))
    assert max(high - low for low, high in shown) <= 20.0
    assert pages["few"].count("delay: 90 % quantile") == 1
    assert "suffice quantiles " in pages["few"]


def test_of_many_cells_there_are_quantiles_alone(pages: dict[str, str]) -> None:
    assert "figure-column" not in pages["many"]
    assert all(f"<h3>{percent} % quantile</h3>" in pages["many"] for percent in (10, 50, 90))
    assert "Numbers behind the picture (24 rows)" in pages["many"]


def test_columns_and_trees_are_explored_whatever_their_groups(pages: dict[str, str]) -> None:
    for page in pages.values():
        assert 'id="explorer"' in page
        assert 'id="suffice-release"' in page
    # Of parameters alone a reader compares two cells, under a prior that he moves.
    compares = {name: "the explorer for their difference" in page for name, page in pages.items()}
    assert compares == {"few": False, "many": False, "both": True, "grown": False}


def test_the_explorer_has_the_counts_and_the_quantiles_of_python(store: Path, files: dict[str, Path]) -> None:
    table = suffice.open_release("grown", store=str(store)).tree("ill").table()
    wanted = {
        row["key"]: (row["lower"], row["upper"])
        for row in table
        if row["component"] == "true" and row["level"] != "county"
    }
    column = suffice.open_release("few", store=str(store)).posterior("delay").column(rng=1)
    quantile = column.quantile(0.5)
    with running_browser() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.set_default_timeout(90_000)
        said: list[str] = []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(f"{files['grown'].as_uri()}#explorer")
        page.locator(".explorer-tree .numbers strong").nth(3).wait_for()
        shown = [numbers(text) for text in page.locator(".explorer-tree .numbers strong").all_text_contents()]
        assert [(ends[0], ends[-1]) for ends in shown] == list(wanted.values())
        page.locator(".explorer-tree .fold").nth(1).click()
        assert page.locator(".explorer-tree .leaf").all_text_contents() == ["CA-0", "CA-1"]
        asks_of_totals(page, suffice.open_release("grown", store=str(store)))
        page.goto(f"{files['few'].as_uri()}#explorer")
        headline = page.locator(".explorer-answer strong")
        headline.nth(1).wait_for()
        low, high = (numbers(text)[0] for text in headline.all_text_contents())
        # Bins are 5 wide, and an end of other draws may be the next.
        assert abs(low - quantile.lower[0]) <= 5.0
        assert abs(high - quantile.upper[0]) <= 5.0
        page.get_by_label("Quantile", exact=True).fill("900")
        further = [numbers(text)[0] for text in headline.all_text_contents()]
        assert further > [low, high]
        page.reload()
        headline.nth(1).wait_for()
        assert [numbers(text)[0] for text in headline.all_text_contents()] == further
        assert said == []
        page.close()


def asks_of_totals(page: Page, release: suffice.Release) -> None:
    """Ask a tree of totals, some leaves empty; what stands open stays so when the page is loaded again."""
    page.get_by_label("Tree", exact=True).select_option(label="waits")
    said = page.locator(".explorer-answers > p", has_text="clipped to 0..60")
    said.wait_for()
    assert "rounded to steps of" in said.inner_text()
    page.get_by_label("Leaves are drawn from").select_option(value="zero-inflated")
    page.locator(".explorer-answers:not(.is-working) .hint", has_text="Leaves: zero-inflated").wait_for()
    assert "has a total of" in page.locator(".explorer-answer").inner_text()
    page.locator(".explorer-tree .fold", has_text="NY").click()
    shown = page.locator(".explorer-tree .numbers strong").all_text_contents()
    rows = release.tree("waits", population="zero-inflated").table()
    ends = {row["key"]: [row["lower"], row["upper"]] for row in rows}
    wanted = [ends[key] for key in ("true", "CA", "NY", "NY-0", "NY-1", "TX")]
    assert [numbers(text) for text in shown] == pytest.approx(np.round(wanted))
    page.reload()
    page.locator(".explorer-tree .leaf").nth(1).wait_for()
    assert page.locator(".explorer-tree .numbers strong").all_text_contents() == shown
    assert page.get_by_label("Leaves are drawn from").input_value() == "zero-inflated"
    names = page.locator(".explorer-node").evaluate_all("nodes => nodes.map((node) => node.ariaLabel)")
    assert [name.split(":")[0] for name in names] == ["whole", "CA", "NY", "NY-0", "NY-1", "TX"]
    # Nodes that the tree lacks would take the place of those that are opened later.
    lacking = "".join(f"&tree.open=1+lacking-{node}" for node in range(40))
    page.evaluate("hash => { location.hash = hash; }", f"#explorer&tree.name=waits{lacking}&part=tree")
    page.locator(".explorer-answers:not(.is-working) .hint", has_text="Leaves: contaminated").wait_for()
    page.locator(".explorer-tree .fold", has_text="TX").click()
    assert "lacking" not in page.url
    assert "tree.open=1+TX" in page.url


def numbers(text: str) -> list[float]:
    """Return the numbers of a text, whose thousands are apart."""
    return [float(number) for number in re.findall(r"-?[\d.]+", text.replace(",", ""))]


def test_a_tree_has_its_root_and_second_level(store: Path, pages: dict[str, str], rows: pd.DataFrame) -> None:
    (section,) = re.findall(r'<section aria-labelledby="tree-1">.*?</section>', pages["grown"], re.DOTALL)
    assert "nation (1 node), state (3 nodes) and county (6 nodes)" in section
    assert "add up to" in section
    assert re.search(r"suffice tree \./releases/grown/all/[0-9a-f]+ ill</code>", section)
    texts = re.findall(r'<th scope="row">([^<]+)</th>.*?</tr>', section)
    assert texts == ["nation", "CA", "NY", "TX"] * 2
    pairs = re.findall(r'<td class="number">([\d,.]+)</td><td class="number">([\d,.]+)</td>', section)
    released = [int(text.replace(",", "")) for text, _ in pairs]
    ill = rows["ill"].groupby(rows["county"].map(STATES)).agg(["sum", "size"])
    for place, counts in ((0, ill["size"] - ill["sum"]), (4, ill["sum"])):
        assert released[place : place + 4] == [counts.sum(), *counts]
    table = suffice.open_release("grown", store=str(store)).tree("ill").table()
    wanted = [
        (row["lower"], row["upper"])
        for component in ("false", "true")
        for row in table
        if row["component"] == component and row["level"] != "county"
    ]
    assert intervals_of(section) == wanted


def test_levels_of_a_calendar_have_their_names(pages: dict[str, str]) -> None:
    cells = pages["grown"].split("<dt>Cells</dt>")[1].split("</dd>")[0]
    shown = re.findall(r">([^<>]+)</span>", cells)
    assert "2 cells by month: rows.month" in shown
    assert "59 cells by day: rows.day" in shown
    assert "6 cells by county: ill.county, waits.county" in shown
    assert 'href="#tree-2">rows, a tree</a>' in pages["grown"]
    assert "all levels together are in rows, a tree." in pages["grown"]


def test_the_explorer_is_there_for_what_its_reader_answers() -> None:
    source = Path(__file__).parents[2] / "readers" / "javascript" / "src" / "families.js"
    table = source.read_text(encoding="utf-8").split("export const ONE_SUM = {")[1].split("\n};")[0]
    assert {*re.findall(r"^  (\w+): \{", table, re.MULTILINE), "categorical"} == READ


def test_cells_published_together_may_have_groups_of_their_own(store: Path, tmp_path: Path) -> None:
    release = suffice.open_release("grown", store=str(store))
    suffice.publish(release, "ill.county", pooled=True, draws=0)
    assert release.group_columns != ("county",)
    assert catalogue(store, tmp_path / "site").problems == ()

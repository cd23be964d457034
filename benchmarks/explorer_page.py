"""How soon the page of a release of many cells is there, answers, and follows a slider; in a real browser.

    PYTHONPATH=tests python benchmarks/explorer_page.py [--cells 50000] [--visits 5]

The page is opened from the file system by a browser without a window. Medians of all visits, and the worst.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from suffice.cataloguing.catalogue import catalogue
from support.browser import running_browser
from support.releases import make_plan, publish

if TYPE_CHECKING:
    from playwright.sync_api import Browser

KEYS, RECORDS, UPPER = 10, 200, 60
LOADS_WITHIN, LARGEST = 2.0, 30e6
LOOKING = 3
"""Seconds that a person looks at the answer before a slider moves."""
ANSWERED = ".explorer-answers:not(.is-working):not([hidden]) td[data-kind='noise-aware']"


def written_page(root: Path, n_cells: int) -> Path:
    """Publish two statistics of that many cells, make their catalogue, and return the release's page."""
    plan = make_plan(
        groups={
            "stop": [f"stop {place:06d}" for place in range(n_cells // KEYS)],
            "hour": {"range": [1, KEYS]},
        },
        statistics={
            "cancelled": {"family": "bernoulli", "column": "cancelled"},
            "stops": {"family": "poisson", "column": "stops", "upper": UPPER},
        },
    )
    rng = np.random.default_rng(1)
    n = rng.poisson(RECORDS, plan.n_cells)
    true, total = rng.binomial(n, 0.05), rng.poisson(4 * n)
    values = {
        "cancelled": np.stack([n - true, true], axis=1),
        "stops": np.stack([total, UPPER * n - total], axis=1),
    }
    publish(root / "store", plan, {name: rows.astype(object) for name, rows in values.items()})
    catalogue(root / "store", root / "site")
    return next((root / "site" / "releases").rglob("index.html"))


def visit(browser: Browser, page: Path) -> dict[str, float]:
    """Open the page, scroll to the explorer, choose another cell by typing, and move a slider."""
    tab = browser.new_context().new_page()
    times, started = {}, time.perf_counter()

    def stamp(name: str) -> None:
        nonlocal started
        times[name] = time.perf_counter() - started
        started = time.perf_counter()

    tab.goto(page.as_uri())
    stamp("page loads")
    tab.locator("#explorer").scroll_into_view_if_needed()
    tab.locator(ANSWERED).first.wait_for()
    stamp("first answer")
    tab.get_by_label("stop", exact=True).first.fill("123")
    tab.locator("[role=option]").first.wait_for()
    stamp("keys are found")
    tab.keyboard.press("Enter")
    tab.locator(ANSWERED).first.wait_for()
    stamp("another cell")
    tab.wait_for_timeout(LOOKING * 1000)
    for name in ("a slider's step", "the next one"):
        started = time.perf_counter()
        tab.get_by_label("Strength").press("ArrowRight")
        tab.locator(ANSWERED).first.wait_for()
        stamp(name)
    tab.context.close()
    return times


def main() -> None:
    """Print one row a step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=50_000)
    parser.add_argument("--visits", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, running_browser() as browser:
        page = written_page(Path(directory), arguments.cells)
        size = page.stat().st_size
        visits = [visit(browser, page) for _ in range(arguments.visits)]
    print(f"{arguments.cells} cells of two statistics")
    print(f"a page of {size / 1e6:.1f} MB, at most {LARGEST / 1e6:.0f}")
    print(f"{'step':<16} {'median s':>9} {'worst s':>9}")
    for step in visits[0]:
        times = [each[step] for each in visits]
        print(f"{step:<16} {statistics.median(times):>9.2f} {max(times):>9.2f}")
    loads = statistics.median(each["page loads"] for each in visits)
    print("within the goal" if loads <= LOADS_WITHIN and size <= LARGEST else "beyond the goal")


if __name__ == "__main__":
    main()

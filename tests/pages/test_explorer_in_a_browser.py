"""The explorer as people meet it: on a page of the catalogue, in a browser, with the numbers of Python."""

from __future__ import annotations

import base64
import contextlib
import http.server
import io
import json
import re
import shlex
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

import suffice
from suffice.cataloguing.catalogue import catalogue
from suffice.cli.app import whole
from suffice.storage.publications.publication_store import PublicationStore
from support.browser import running_browser
from support.pooled_cells import make_cells
from support.releases import make_plan, publish

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

HOSTILE = "</script><img src=x onerror=\"document.title='run'\">"
ORIGINS = ["JFK", HOSTILE, "it's =1+1 `id` $(id)"]
MANY = 400
STATISTICS = {
    "cancelled": {"family": "bernoulli", "column": "cancelled"},
    "wait": {"family": "exponential", "column": "wait", "upper": 600},
    "level": {
        "family": "normal_known_variance",
        "column": "level",
        "lower": -10,
        "upper": 30,
        "variance": 25,
    },
    "both": {"family": "contingency", "columns": {"a": ["0", "1"], "b": ["0", "1"]}},
}
TOTALS: dict[str, list[tuple[int, ...]]] = {
    "cancelled": [(291, 9), (176, 24), (88, 2)],
    "wait": [(20 * 2**16, 180 * 2**16), (9 * 2**16, 91 * 2**16), (3 * 2**16, 17 * 2**16)],
    "level": [(60 * 2**17, 140 * 2**17), (35 * 2**17, 65 * 2**17), (8 * 2**17, 12 * 2**17)],
    "both": [(40, 60, 80, 20)] * 3,
}
"""Of every cell, as if they had been drawn: a few hundred records each."""
CARRIERS = ["AA", "DL", "UA", "WN"]
SLICES = 8
"""At least so many, of the work on counts that takes hundreds of milliseconds; without slices there are 3."""
FRESH = ".explorer-answers:not(.is-working):not([hidden]) td[data-kind='noise-aware']"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a catalogue of two releases: one of hostile keys, one of many."""
    root = tmp_path_factory.mktemp("explorer")
    plan = make_plan(groups={"origin": ORIGINS}, statistics=STATISTICS)
    publish(root / "store", plan, {name: np.array(rows, dtype=object) for name, rows in TOTALS.items()})
    many = make_plan(
        name="many",
        groups={"stop": [f"stop {place:03d}" for place in range(MANY)]},
        statistics={"cancelled": STATISTICS["cancelled"]},
    )
    counts = np.array([(90 + place % 7, place % 11) for place in range(MANY)], dtype=object)
    publish(root / "store", many, {"cancelled": counts})
    few = make_plan(
        name="carriers",
        groups=None,
        privacy={"epsilon": "0.05", "neighboring": "add_or_remove_one"},
        statistics={"carrier": {"family": "categorical", "column": "carrier", "categories": CARRIERS}},
    )
    publish(root / "store", few, {"carrier": np.array([(300, 340, 380, 420)], dtype=object)})
    towns = make_cells(root / "store", 2, name="towns")
    suffice.publish(towns, "ill", pooled=True, draws=0, formats="parquet")
    catalogue(root / "store", root / "site")
    return root / "site"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


class Visit:
    """A page with the explorer, and what it said and asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.said: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, url: str) -> None:
        self.page.goto(url)
        self.page.locator("#explorer").scroll_into_view_if_needed()
        self.settle()

    def settle(self) -> None:
        """Wait until what is shown answers what is asked."""
        self.page.locator(FRESH).first.wait_for()

    def choose(self, label: str, value: str) -> None:
        self.field(label).select_option(label=value)
        self.settle()

    def field(self, label: str) -> Locator:
        return self.page.locator("#explorer").get_by_label(label, exact=True).locator("visible=true").first

    def column(self, kind: str) -> list[float]:
        """Read a column of a table: six digits of its numbers, of which it shows what their sd allows."""
        cells = self.page.locator(f"#explorer td[data-kind='{kind}']").evaluate_all(
            "cells => cells.map((cell) => cell.dataset.number)"
        )
        return [float(cell) if cell != "–" else np.nan for cell in cells]

    def lines(self) -> tuple[str, str]:
        """Read the lines of Python and of the command line."""
        python, command = self.page.locator(".explorer-lines code").all_text_contents()
        return python, command

    def download(self, name: str) -> str:
        with self.page.expect_download() as download:
            self.page.locator(".explorer-files").get_by_role("button", name=name).click()
        return str(download.value.path().read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_explorer(site: Path, browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One visit, as starting pages takes most of the time."""
    monkeypatch.chdir(site)
    folder = next((site / "releases" / "flights").rglob("index.html")).parent
    release = suffice.open_release(str(folder))
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, accept_downloads=True)
    visit = Visit(context.new_page())
    visit.open(f"{(folder / 'index.html').as_uri()}#explorer")

    _numbers_are_those_of_python(visit, release)
    _sliders_and_text_are_in_step(visit, release)
    _lines_give_the_same(visit)
    _files_name_their_source(visit, release)
    _cells_are_compared(visit, release, tmp_path)
    _a_bad_prior_is_told(visit)
    _what_cannot_be_done_says_what_to_run(visit)
    _nothing_serious_by_axe(visit, tmp_path)
    assert visit.page.title() != "run"
    assert visit.page.locator("#explorer img").count() == 0
    assert all(url.startswith((folder / "index.html").as_uri()) for url in visit.requests), visit.requests
    assert visit.said == []
    context.close()


@pytest.mark.slow
def test_many_cells_by_keyboard_over_http(site: Path, browser: Browser) -> None:
    """A key is typed, and a slider moved, without a mouse; the address keeps the question."""
    folder = next((site / "releases" / "many").rglob("index.html")).parent
    with _served(site) as root:
        context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme="dark")
        visit = Visit(context.new_page())
        visit.open(f"{root}/{folder.relative_to(site).as_posix()}/index.html#explorer")
        before = visit.column("noise-aware")
        assert visit.page.locator("#explorer [role=option]").count() == 0
        key = visit.field("stop")
        key.focus()
        visit.page.keyboard.type("p 04")
        assert visit.page.locator("#explorer [role=option]").count() == 10
        visit.page.keyboard.press("ArrowDown")
        visit.page.keyboard.press("Enter")
        visit.settle()
        assert key.input_value() == "stop 041"
        release = suffice.open_release(str(folder))
        assert visit.column("noise-aware")[:2] == _summary(release, "cancelled", {"stop": "stop 041"})[:2]
        assert visit.column("noise-aware") != before
        _tab_to(visit.page, "Strength")
        assert _is_in_sight(visit.page)
        for _ in range(3):
            visit.page.keyboard.press("ArrowRight")
        visit.settle()
        prior = visit.field("As text").input_value()
        assert prior != "Beta(1, 1)"
        shown = visit.column("noise-aware")
        assert shown[:2] == _summary(release, "cancelled", {"stop": "stop 041"}, prior)[:2]
        visit.page.reload()
        visit.settle()
        assert visit.column("noise-aware") == shown
        assert visit.field("As text").input_value() == prior
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 360
        assert {url.split("#")[0] for url in visit.requests} <= {
            visit.page.url.split("#")[0],
            f"{root}/favicon.ico",
        }
        assert _serious(visit.page) == []
        context.close()


@pytest.mark.slow
def test_a_page_answers_while_counts_are_worked_out(site: Path, browser: Browser) -> None:
    """Events are handled between slices: how many there are is counted, and not how long they take."""
    page = next((site / "releases" / "carriers").rglob("index.html"))
    context = browser.new_context()
    visit = Visit(context.new_page())
    # The explorer lets the browser go on by a message to itself; a click is asked for at each, and counted.
    visit.page.add_init_script(
        """
        const Channel = window.MessageChannel;
        window.seen = { slices: 0, clicks: 0 };
        addEventListener("click", () => { seen.clicks += 1; });
        const click = () => document.body?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
        window.MessageChannel = class extends Channel {
          constructor() {
            super();
            const isAnswered = document.querySelector("td[data-kind='noise-aware']") !== null;
            if (!isAnswered) { seen.slices += 1; setTimeout(click); }
          }
        };
        """
    )
    visit.open(f"{page.as_uri()}#explorer")
    seen = visit.page.evaluate("window.seen")
    assert seen["slices"] >= SLICES
    assert seen["clicks"] >= SLICES - 1
    release = suffice.open_release(str(page.parent))
    posterior = release.posterior("carrier")
    shown = visit.column("noise-aware")
    exact = _rounded([posterior.mean("probability")[0][0], posterior.sd("probability")[0][0]])
    assert shown[:2] == exact
    assert visit.said == []
    context.close()


@pytest.mark.slow
def test_the_explorer_lies_within_four_screens_of_a_telephone(site: Path, browser: Browser) -> None:
    """What is asked and what is answered, in every field and number: nothing of it is far down the page."""
    page = next((site / "releases" / "flights").rglob("index.html"))
    context = browser.new_context(viewport={"width": 390, "height": 844})
    visit = Visit(context.new_page())
    visit.open(page.as_uri())
    bottom = "node => node.getBoundingClientRect().bottom + scrollY"
    screens = {
        part: visit.page.locator(f"#explorer {part}").first.evaluate(bottom) / 844
        for part in (".explorer-picture", ".explorer-form", ".explorer-tables")
    }
    assert screens[".explorer-picture"] < 2, screens
    assert max(screens.values()) < 4, screens
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


@pytest.mark.slow
def test_a_page_whose_data_were_changed_shows_no_number(site: Path, browser: Browser) -> None:
    page = next((site / "releases" / "many").rglob("index.html"))
    manifest = json.loads((page.parent / "manifest.json").read_text(encoding="utf-8"))
    data = bytearray((page.parent / manifest["files"][0]["path"]).read_bytes())
    before = base64.b64encode(data).decode()
    data[len(data) // 2] ^= 1
    changed = page.with_name("changed.html")
    text = page.read_text(encoding="utf-8")
    assert text.count(before) == 1
    changed.write_text(text.replace(before, base64.b64encode(data).decode()), encoding="utf-8")
    context = browser.new_context()
    tab = context.new_page()
    tab.goto(changed.as_uri())
    tab.locator("#explorer").scroll_into_view_if_needed()
    shown = tab.locator("#explorer .explorer-unanswered:not([hidden])")
    shown.wait_for()
    assert "SHA-256 differs" in shown.inner_text()
    assert tab.locator("#explorer td").count() == 0
    context.close()


@pytest.mark.slow
def test_a_published_pool_stands_beside_each_alone(site: Path, browser: Browser) -> None:
    """On a release's page, where one was published of the statistic; on no other."""
    (path,) = (site / "releases" / "towns").rglob("index.html")
    (pools,) = [publication.pooled("ill") for publication in PublicationStore.open(site).all()]
    row = next(row for row in pools.cells if (row["region"], row["town"]) == ("south", 2))
    page = browser.new_page(viewport={"width": 390, "height": 844})
    visit = Visit(page)
    visit.open(f"{path.as_uri()}#explorer&statistic=ill&cell=south&cell=2")
    switch, answer = page.locator(".explorer-pool"), page.locator(".explorer-answer")
    assert switch.is_visible()
    alone = answer.inner_text()
    page.get_by_label("Together", exact=True).check(force=True)
    answer.get_by_text("Together with the other cells").wait_for()
    ends = [float(text) for text in answer.locator("strong").all_inner_texts()]
    assert ends == pytest.approx([row["lower"], row["upper"]], rel=1e-3)
    shown = page.locator("td[data-kind='together']").evaluate_all(
        "cells => cells.map(c => +c.dataset.number)"
    )
    assert shown == pytest.approx([row[name] for name in ("mean", "sd", "lower", "upper")], rel=1e-5)
    beside = page.locator("td[data-kind='alone']").evaluate_all("cells => cells.map(c => +c.dataset.number)")
    assert beside == pytest.approx(
        [row[f"alone_{name}"] for name in ("mean", "sd", "lower", "upper")], rel=5e-3
    )
    assert (
        f"{100 * row['own_share']:.0f} % of this answer" in page.locator(".explorer-pool-notes").inner_text()
    )
    link = page.locator(".explorer-pool-notes a").get_attribute("href") or ""
    assert (path.parent / link).resolve().is_file()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert _serious(page) == []
    page.get_by_label("Each alone", exact=True).check(force=True)
    answer.get_by_text("With 95 %").wait_for()
    assert answer.inner_text() == alone
    page.get_by_label("Statistic").select_option("visits")
    answer.get_by_text("rate of visits").wait_for()
    assert switch.is_hidden()
    assert visit.said == []
    page.close()


def _numbers_are_those_of_python(visit: Visit, release: suffice.Release) -> None:
    for name in ("wait", "level", "cancelled"):
        visit.choose("Statistic", name)
        expected = _summary(release, name, {"origin": "JFK"})
        if name == "wait":
            # Moments of a rate under a default spread over scales rest on its far tail: in posterior sds.
            assert visit.column("noise-aware")[0] == pytest.approx(expected[0], abs=1e-5 * expected[1])
            assert visit.column("noise-aware")[1] == pytest.approx(expected[1], rel=2e-4)
        else:
            assert visit.column("noise-aware")[:2] == expected[:2]
        plug_in = _summary(release, name, {"origin": "JFK"}, method="plug-in")
        assert visit.column("plug-in")[:2] == pytest.approx(plug_in[:2], rel=2e-6)
        # Under a mixture Python's ends are those of 4,000 draws: six standard errors of a normal's.
        rough = 0.26 * plug_in[1] if name == "wait" else 0.0
        assert visit.column("plug-in")[2:] == pytest.approx(plug_in[2:], rel=2e-6, abs=rough)
        _interval_is_near(visit.column("noise-aware"), _summary(release, name, {"origin": "JFK"}))


def _sliders_and_text_are_in_step(visit: Visit, release: suffice.Release) -> None:
    visit.field("As text").fill("Beta(2, 38)")
    visit.settle()
    shown = visit.page.locator("#explorer output").all_text_contents()
    assert shown == ["0.05", "40"]
    where = {"origin": "JFK"}
    assert visit.column("noise-aware")[:2] == _summary(release, "cancelled", where, "Beta(2, 38)")[:2]
    mean = visit.field("Mean")
    mean.focus()
    for _ in range(5):
        visit.page.keyboard.press("ArrowRight")
    visit.settle()
    prior = visit.field("As text").input_value()
    numbers = [float(each) for each in re.findall(r"[\d.]+", prior)]
    assert sum(numbers) == pytest.approx(40, rel=1e-3)
    assert numbers[0] / sum(numbers) == pytest.approx(0.05 * np.exp(5 * 2 * np.log(999) / 1000), rel=0.02)
    assert visit.column("noise-aware")[:2] == _summary(release, "cancelled", where, prior)[:2]
    visit.field("Probability of intervals, in %").fill("80")
    visit.settle()
    expected = _summary(release, "cancelled", where, prior, mass=0.8)
    _interval_is_near(visit.column("noise-aware"), expected)


def _lines_give_the_same(visit: Visit) -> None:
    visit.choose("origin", ORIGINS[2])
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    python, command = visit.lines()
    mean, sd, *_ = visit.column("noise-aware")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(python, {})  # noqa: S102 - what the page tells people to run
    printed_numbers = [float(number) for number in re.findall(r"[-\d.]+(?:e-?\d+)?", printed.getvalue())]
    assert _rounded(printed_numbers[:2]) == [mean, sd]
    words = shlex.split(command)
    assert words[0] == "suffice"
    ran = CliRunner().invoke(whole(), [*words[1:], "--json"])
    row = json.loads(ran.stdout)["rows"][0]
    assert _rounded([row["mean"], row["sd"]]) == [mean, sd]
    visit.page.get_by_role("button", name="Copy: the same on the command line").click()
    visit.page.get_by_text("Copied").wait_for()
    assert visit.page.evaluate("navigator.clipboard.readText()") == command


def _files_name_their_source(visit: Visit, release: suffice.Release) -> None:
    document = json.loads(visit.download("JSON"))
    prior = visit.field("As text").input_value()
    row = document["rows"][0]
    exact = release.posterior("cancelled", prior=prior, where={"origin": ORIGINS[2]})
    assert row["mean"] == pytest.approx(exact.mean("probability")[0], rel=1e-7)
    assert row["sd"] == pytest.approx(exact.sd("probability")[0], rel=1e-6)
    source = document["source"]
    assert source["release"] == release.label
    assert source["release_id"] == release.release_id
    assert source["statistic"] == "cancelled"
    assert source["prior"] == prior
    assert source["mass"] == 0.8
    densities = document["densities"]
    assert np.trapezoid(densities["noise-aware"], densities["value"]) == pytest.approx(1, abs=0.01)
    heads, first, *_ = visit.download("CSV").splitlines()
    assert heads.startswith("origin,parameter,category,method,mean,sd,lower,upper,release,")
    assert str(row["mean"]) in first


def _cells_are_compared(visit: Visit, release: suffice.Release, pictures: Path) -> None:
    visit.choose("origin", "JFK")
    visit.field("Compare with another cell").check()
    visit.page.locator("#explorer td[data-kind='difference']").first.wait_for()
    visit.settle()
    assert visit.page.evaluate("document.querySelector('.explorer-answer').textContent").count(HOSTILE) == 1
    prior = visit.field("As text").input_value()
    posterior = release.posterior("cancelled", prior=prior)
    difference = posterior.difference("probability", {"origin": "JFK"}, {"origin": HOSTILE}, draws=200_000)
    mean, sd, median, _, _, greater = visit.column("difference")
    assert [mean, sd] == _rounded([difference.mean()[0], difference.sd()[0]])
    # Of 200,000 draws: six standard errors of a share, and of a median.
    assert greater == pytest.approx(difference.probability()[0], abs=6 * 0.5 / 200_000**0.5)
    assert median == pytest.approx(difference.quantile(0.5)[0], abs=6 * 1.3 * sd / 200_000**0.5)
    ratio = posterior.ratio("probability", {"origin": "JFK"}, {"origin": HOSTILE}, draws=200_000)
    middle = visit.column("ratio")[2]
    assert ratio.probability(below=middle)[0] == pytest.approx(0.5, abs=6 * 0.5 / 200_000**0.5)
    visit.page.locator("#explorer").screenshot(path=pictures / "explorer-comparison.png")
    visit.field("Compare with another cell").uncheck()
    visit.settle()


def _a_bad_prior_is_told(visit: Visit) -> None:
    text = visit.field("As text")
    text.fill("Beta(1, ")
    visit.page.locator("#explorer .complaint:not([hidden])").wait_for()
    assert text.get_attribute("aria-invalid") == "true"
    text.fill("Beta(1, 9)")
    visit.settle()
    visit.page.locator("#explorer .complaint:not([hidden])").wait_for(state="detached")
    assert text.get_attribute("aria-invalid") == "false"


def _what_cannot_be_done_says_what_to_run(visit: Visit) -> None:
    visit.field("Statistic").select_option(label="both")
    shown = visit.page.locator("#explorer .explorer-unanswered:not([hidden])")
    shown.wait_for()
    words = shlex.split(shown.locator("code").inner_text())
    assert words[:2] == ["suffice", "posterior"]
    assert "both" in words
    assert shown.locator("tbody tr").count() == len(TOTALS["both"][0])


def _nothing_serious_by_axe(visit: Visit, pictures: Path) -> None:
    visit.choose("Statistic", "cancelled")
    visit.page.get_by_text("Numbers behind the picture", exact=True).click()
    explorer = visit.page.locator("#explorer")
    assert _serious(visit.page) == []
    explorer.screenshot(path=pictures / "explorer-light.png")
    visit.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    assert _serious(visit.page, {"runOnly": ["color-contrast"]}) == []
    explorer.screenshot(path=pictures / "explorer-dark.png")


def _serious(page: Page, options: dict[str, Any] | None = None) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    asked = {"resultTypes": ["violations"], **(options or {})}
    violations = Axe().run(page, context="#explorer", options=asked).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html']}"
        for each in violations
        if each["impact"] in {"serious", "critical"}
    ]


def _summary(
    release: suffice.Release,
    statistic: str,
    where: dict[str, str],
    prior: str | None = None,
    *,
    method: str = "noise-aware",
    mass: float = 0.95,
) -> list[float]:
    """Return mean, standard deviation and interval as Python has them, to six digits."""
    posterior = release.posterior(statistic, prior=prior, where=where, method=method)
    parameter = posterior.parameters[0]
    ends = posterior.credible_interval(parameter, mass)[0]
    return _rounded([posterior.mean(parameter)[0], posterior.sd(parameter)[0], *ends])


def _interval_is_near(shown: list[float], expected: list[float]) -> None:
    """Compare ends of intervals: Python merges components, which moves them by parts of a thousand."""
    assert shown[2:] == pytest.approx(expected[2:], abs=2e-3 * expected[1])


def _rounded(numbers: list[Any]) -> list[float]:
    return [float(f"{number:.5e}") for number in numbers]


def _tab_to(page: Page, label: str) -> None:
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.labels?.[0]?.textContent") == label:
            return
    pytest.fail(f"the keyboard does not reach {label}")


def _is_in_sight(page: Page) -> bool:
    """Whether what has the focus is what one sees in its place."""
    return bool(
        page.evaluate(
            """() => {
              const { left, top, width, height } = document.activeElement.getBoundingClientRect();
              return document.elementFromPoint(left + width / 2, top + height / 2) === document.activeElement;
            }"""
        )
    )


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

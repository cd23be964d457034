"""The catalogue in a real browser: from files and over HTTP, by keyboard, in the dark, on a telephone."""

from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from suffice.cataloguing.catalogue import catalogue
from support.browser import running_browser
from support.catalogued import (
    HOSTILE,
    amend,
    hostile_plan,
    make_small,
    monthly_plan,
    publish_answer,
    realistic,
)
from support.releases import RELEASE_ID, publish

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
OPTIONS = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
SCREENS: dict[str, Any] = {
    "desktop": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "desktop, dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "telephone": {"viewport": {"width": 320, "height": 700}, "color_scheme": "dark"},
    "telephone, light": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"},
    "telephone, dark": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("catalogue")
    store = make_small(root, "2013-01", "2013-02")
    statistics = {"cancelled": {"family": "bernoulli", "column": "c"}}
    amend(store, monthly_plan(statistics=statistics), "2013-01")
    publish_answer(store, "monthly/2013-02")
    plan = hostile_plan(categories=False)
    publish(store, plan, realistic(plan, 3))
    assert catalogue(store, root / "site").problems == ()
    return root / "site"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, str]:
    (publication,) = [path.name for path in (site / "publications").iterdir()]
    return {
        "start": "index.html",
        "search": "search.html",
        "reading": "reading.html",
        "dataset": "datasets/passengers.html",
        "series": "series/monthly.html",
        "release": f"releases/hostile/all/{RELEASE_ID}/index.html",
        "amended": f"releases/monthly/2013-01/{RELEASE_ID}/index.html",
        "publication": f"publications/{publication}/index.html",
    }


class Watched:
    """A page whose requests, errors and messages are noted; none may leave for anywhere but its own site."""

    def __init__(self, browser: Browser, root: str, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page: Page = self.context.new_page()
        self.wrong: list[str] = []
        self.context.route("**/*", partial(self._route, root))
        self.page.on("pageerror", lambda error: self.wrong.append(f"error {error}"))
        self.page.on("console", lambda said: self.wrong.append(f"console {said.text}"))

    def _route(self, root: str, route: Any) -> None:
        request = route.request
        if request.url.startswith(root) and request.resource_type == "document":
            route.continue_()
        elif request.url == f"{root}favicon.ico":
            route.fulfill(status=204)
        else:
            self.wrong.append(f"request {request.resource_type} {request.url[:200]}")
            route.abort()


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots are kept."""
    return tmp_path_factory.mktemp("screenshots")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("screen", "kinds"),
    [
        ("desktop", ["start", "search", "reading", "dataset", "series", "release", "publication"]),
        ("telephone", ["start", "release"]),
        ("telephone, light", ["release", "publication"]),
        *(pytest.param(screen, None, marks=pytest.mark.audit) for screen in SCREENS),
    ],
)
def test_every_kind_of_page_is_accessible_and_fits_its_screen(
    browser: Browser,
    site: Path,
    pages: dict[str, str],
    screen: str,
    kinds: list[str] | None,
    artefacts: Path,
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    watched = Watched(browser, site.as_uri(), **SCREENS[screen])
    page = watched.page
    for name in kinds or pages:
        page.goto(f"{site.as_uri()}/{pages[name]}")
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        checked = Axe().run(page, options=OPTIONS)
        assert [
            (violation["id"], violation["nodes"][0]["html"][:200])
            for violation in checked.response["violations"]
        ] == [], name
        assert len(checked.response["passes"]) > 10
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= SCREENS[screen]["viewport"]["width"], (name, width)
        page.screenshot(path=artefacts / f"{name}-{screen}.png", full_page=True)
        assert page.title() != "owned"
    assert watched.wrong == []
    assert len(list(artefacts.glob(f"*-{screen}.png"))) >= len(kinds or pages)
    watched.context.close()


@pytest.mark.slow
def test_axe_finds_what_is_wrong(browser: Browser) -> None:
    """The control: a page that nobody can read is found."""
    from axe_playwright_python.sync_playwright import Axe

    page = browser.new_page()
    page.set_content("<p style='color:#ddd;background:#fff'>pale</p><img src='data:,'>")
    assert {violation["id"] for violation in Axe().run(page).response["violations"]} >= {
        "color-contrast",
        "image-alt",
    }
    page.close()


@pytest.mark.slow
def test_search_colours_and_filters_by_keyboard_from_the_file_system(browser: Browser, site: Path) -> None:
    watched = Watched(browser, site.as_uri(), **SCREENS["desktop"])
    page = watched.page
    page.goto(f"{site.as_uri()}/index.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.get_by_role("searchbox").focus()
    page.keyboard.type("hostile onerror")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=*")
    results = page.locator("#results li")
    assert results.count() == 1  # the key is known of its series alone
    assert results.first.locator("a").inner_text() == "hostile"
    box = page.get_by_role("searchbox")
    box.fill("2013")
    assert page.locator("#said").inner_text() == f"{page.locator('#results li').count()} entries"
    assert page.locator("#results li").count() >= 3
    box.fill("nothing is called so")
    assert page.locator("#said").inner_text() == "Nothing is called or holds that."
    for asked in ("EWR cancelled", "beta(1,1)", "Beta(1, 1) EWR"):  # a key, and a prior however it is spaced
        box.fill(asked)
        kinds = page.locator("#results li .kind").all_inner_texts()
        assert "publication" in [kind.lower() for kind in kinds], asked
    box.fill("Beta(1, 2)")
    assert page.locator("#results li").count() == 0
    box.fill("monthly@2013-02")
    results.first.locator("a").press("Enter")
    page.wait_for_url(f"**/monthly/2013-02/{RELEASE_ID}/index.html")

    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_role("button", name="Dark colours").press("Enter")
    assert page.get_by_role("button", name="Dark colours").get_attribute("aria-pressed") == "true"
    assert page.evaluate(paper) != light

    page.goto(f"{site.as_uri()}/releases/hostile/all/{RELEASE_ID}/index.html")
    page.locator("details", has=page.locator("#rows-1-filter")).locator("summary").first.press("Enter")
    rows = page.locator("#rows-1 tbody tr")
    n_rows = rows.count()
    page.locator("#rows-1-filter").fill("onerror")
    shown = page.locator("#rows-1 tbody tr:visible").count()
    assert 0 < shown < n_rows
    assert page.locator("#said-1").inner_text() == f"{shown} of {n_rows} rows"
    assert all(HOSTILE[1] in text for text in page.locator("#rows-1 tbody tr:visible").all_inner_texts())
    assert page.title().startswith("hostile@all")
    assert watched.wrong == []
    watched.context.close()


@pytest.mark.slow
def test_over_http_colours_are_kept_and_no_request_leaves(
    browser: Browser, site: Path, pages: dict[str, str]
) -> None:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        root = f"http://127.0.0.1:{server.server_address[1]}/"
        watched = Watched(browser, root, **SCREENS["desktop"])
        page = watched.page
        page.goto(root)
        page.get_by_role("button", name="Dark colours").click()
        for path in pages.values():
            page.goto(root + path)
            assert page.evaluate("document.documentElement.dataset.theme") == "dark"
            if page.locator("[data-uri]").count():
                address = (root + path).removesuffix("/index.html")
                assert f"suffice show {address}\n" in (page.text_content("#use-cli") or "")
                assert f"open_release('{address}')" in (page.text_content("#use-python") or "")
                page.locator("#explorer:not(:empty)").wait_for()  # nobody scrolled
        assert watched.wrong == []
        watched.context.close()
        server.shutdown()


@pytest.mark.slow
def test_without_scripts_everything_but_search_and_explorer_is_there(
    browser: Browser, site: Path, pages: dict[str, str]
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site.as_uri()}/{pages['release']}")
    assert page.locator("svg.chart[role=img]").count() > 0
    assert page.locator("table.forest, .panels").count() > 0
    assert page.get_by_role("button").count() == 0
    context.close()

"""The posterior card: self-contained, honest, and harmless whatever names and keys say; in a real browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest

import suffice
from suffice.errors import UsageError
from suffice.pages.card import MOST_ROWS, card
from suffice.pages.rendering import escape
from support.browser import running_browser
from support.releases import make_plan, publish

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior

HOSTILE = [
    "<script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title = 'owned'\">",
    "</text></svg><style>*{display:none}</style>",
    "'\"><a href=javascript:alert(1)>&amp;&lt;",
    "\u03bd\u200d\u03b9",
    "-->]]>{{7*7}}${7*7}",
]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    plan = make_plan(
        groups={"o<b>": HOSTILE},
        statistics={
            "flag": {"family": "bernoulli", "column": "c<i>"},
            "kind": {"family": "categorical", "column": "k", "categories": HOSTILE[:3], "other": True},
            "delay": {"family": "normal", "column": "d", "lower": -60, "upper": 180},
        },
    )
    values = {
        statistic.name: np.full(
            (plan.n_cells, len(statistic.components)), 400 * (statistic.partition_total or 1) // 3
        ).astype(object)
        for statistic in plan.statistics
    }
    return suffice.open_release(str(publish(tmp_path_factory.mktemp("card"), plan, values)))


def page_of(release: Release, posterior: Posterior, **changes: Any) -> str:
    options: dict[str, Any] = {"mass": 0.9, "draws": 200, "seed": 7, "rng": np.random.default_rng(7)}
    return card(release, posterior, **{**options, **changes})


@pytest.fixture(scope="module")
def page(release: Release) -> str:
    return page_of(release, release.posterior("flag", prior="Beta(1, 3)", n_prior="Uniform(0, 900)"))


class Elements(HTMLParser):
    """Collects the tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_nothing_on_the_page_is_from_elsewhere_or_runs(page: str) -> None:
    elements = Elements()
    elements.feed(page)
    tags = {tag for tag, _ in elements.seen}
    assert {"svg", "table", "title", "style"} <= tags
    assert not tags & {"script", "img", "a", "link", "iframe", "object", "form", "base", "b", "i"}
    names = {name for _, attributes in elements.seen for name in attributes}
    assert not {name for name in names if name.startswith("on")} | (
        names & {"src", "href", "srcset", "action"}
    )
    addresses = re.findall(r"https?:[^\"'\s<]*", page)
    assert set(addresses) == {"http://www.w3.org/2000/svg"}
    assert "url(" not in page
    assert "@import" not in page


def test_the_page_states_what_the_posterior_rests_on(release: Release, page: str) -> None:
    for text in (
        "Beta(1, 3)",
        "Uniform(0, 900)",
        "noise-aware",
        "90 % posterior probability",
        "200 a cell, seed 7",
        release.release_id,
        release.manifest["plan_hash"],
        "add_or_remove_one",
        "suffice calibrate",
        "suffice verify",
        "does not say",
    ):
        assert text in page
    assert 'class="banner warning"' not in page


@pytest.mark.slow
def test_a_card_of_pooled_cells_is_as_harmless(release: Release) -> None:
    """The cells are alike, so that what they borrow is decided by the hyperprior: each alone is shown."""
    together = release.posterior("flag", pooled=True)
    pooled = page_of(release, together)
    elements = Elements()
    elements.feed(pooled)
    tags = {tag for tag, _ in elements.seen}
    assert not tags & {"script", "img", "a", "link", "iframe", "object", "form", "base", "b", "i"}
    checked = [given["value"] for tag, given in elements.seen if tag == "input" and "checked" in given]
    identified = together.is_identified  # type: ignore[attr-defined]
    assert checked == ["both" if identified else "alone"]
    assert pooled.count('<g class="of-pooled">') == len(HOSTILE) + 1
    assert pooled.count("&lt;script&gt;document.title") == 2, "in the picture and in the table"


def test_a_plug_in_card_warns_and_clipping_is_named(release: Release) -> None:
    plug_in = page_of(release, release.posterior("delay", method="plug-in"))
    assert 'class="banner warning"' in plug_in
    assert "not calibrated" in plug_in
    assert "-60 to 180; values beyond were clipped" in plug_in
    assert plug_in.count("<svg") == 2
    sentence = "Parameters are of the records as the public bounds leave them"
    assert 0 < plug_in.find(sentence) < plug_in.index("<svg"), "above the numbers"
    assert "calibrated on average" not in plug_in


@pytest.mark.slow
def test_a_card_of_a_network_says_what_was_sampled_and_leaves_absent_labels_blank(tmp_path: Path) -> None:
    kinds = ["no", "yes"]
    chain = {"a": kinds, "b": {"categories": kinds, "parents": ["a"]}}
    chain["c"] = {"categories": kinds, "parents": ["b"]}
    apart = {"a": kinds, "b": kinds, "c": {"categories": kinds, "parents": ["a", "b"]}}
    plan = make_plan(
        groups={"g": ["x"]},
        statistics={
            name: {"family": "bayesian_network", "nodes": nodes}
            for name, nodes in (("chain", chain), ("apart", apart))
        },
    )
    values = {each.name: np.full((1, len(each.components)), 400).astype(object) for each in plan.statistics}
    network = suffice.open_release(str(publish(tmp_path, plan, values)))
    sampled = network.posterior("chain")
    page = page_of(network, sampled)
    for name, value in (
        ("sampler", sampled.diagnostics["sampler"]),
        ("largest R-hat", sampled.diagnostics["largest_r_hat"]),
        ("fewest effective draws", sampled.diagnostics["fewest_effective_draws"]),
    ):
        assert f'<th scope="row">{name}</th><td>{escape(value)}</td>' in page
    assert "<td></td>" in page
    assert "None" not in page
    unreconciled = network.posterior("apart")
    assert unreconciled.diagnostics["not_reconciled"] in page_of(network, unreconciled)
    assert '<th scope="row">not reconciled</th>' in page_of(network, unreconciled)


def test_texts_are_shown_as_they_are_and_signs_without_a_glyph_by_code() -> None:
    assert escape("<&>\"'") == "&lt;&amp;&gt;&quot;&#x27;"
    assert escape("a\x00\u202e\u200b\n") == "a\\u0000\\u202e\\u200b\n"
    assert escape("Zürich 東京") == "Zürich 東京"


def test_what_does_not_fit_on_a_page_is_refused(tmp_path: Path) -> None:
    many = make_plan(
        groups={"g": {"range": [0, MOST_ROWS]}}, statistics={"f": {"family": "bernoulli", "column": "c"}}
    )
    large = suffice.open_release(
        str(publish(tmp_path, many, {"f": np.full((MOST_ROWS + 1, 2), 5).astype(object)}))
    )
    with pytest.raises(UsageError, match="--where"):
        page_of(large, large.posterior("f", method="plug-in"))
    assert "<svg" in page_of(large, large.posterior("f", method="plug-in", where={"g": 3}))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize(("statistic", "lines"), [("flag", 6), ("kind", 24), ("delay", 12)])
def test_a_browser_shows_it_and_fetches_and_runs_nothing(
    release: Release, browser: Browser, tmp_path: Path, statistic: str, lines: int
) -> None:
    method = "noise-aware" if statistic == "flag" else "plug-in"
    path = tmp_path / "card.html"
    path.write_text(page_of(release, release.posterior(statistic, method=method)), encoding="utf-8")
    tab = browser.new_page()
    requested: list[str] = []
    trouble: list[str] = []
    tab.on("request", lambda request: requested.append(request.url))
    tab.on("console", lambda message: trouble.append(message.text))
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    tab.on("dialog", lambda dialog: trouble.append(dialog.message))
    tab.goto(path.as_uri())
    assert requested == [path.as_uri()]
    assert trouble == []
    assert tab.title() == f"{release.label}: {statistic}"
    assert tab.locator("svg line.median").count() == lines
    for tick in tab.locator("svg line.median").all():
        box = tick.bounding_box()
        assert box is not None
        assert box["height"] > 0
    text = tab.inner_text("body")
    for key in HOSTILE[:4]:
        assert key in text
    assert "What this does not say" in text
    assert tab.locator("script, img, a").count() == 0
    tab.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_card_is_accessible_and_fits_a_phone(
    release: Release, browser: Browser, tmp_path: Path, scheme: Literal["light", "dark"]
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    path = tmp_path / "card.html"
    path.write_text(page_of(release, release.posterior("flag", method="plug-in")), encoding="utf-8")
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": 360, "height": 740}, bypass_csp=True
    )
    tab = context.new_page()
    tab.goto(path.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    checked = Axe().run(tab)
    assert [(each["id"], each["impact"]) for each in checked.response["violations"]] == []
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(250, 249, 246)") == (scheme == "light")
    context.close()


@pytest.mark.slow
def test_the_browser_would_run_what_is_not_escaped(browser: Browser, tmp_path: Path) -> None:
    """The control: the same keys in a page that does not escape them change its title."""
    path = tmp_path / "open.html"
    path.write_text(f"<title>mine</title><p>{HOSTILE[0]}</p>", encoding="utf-8")
    tab = browser.new_page()
    tab.goto(path.as_uri())
    assert tab.title() == "owned"
    tab.close()

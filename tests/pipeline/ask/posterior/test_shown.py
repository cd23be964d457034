"""What releases and posteriors show of themselves: the same numbers, what contradicts them, and no markup."""

from __future__ import annotations

import builtins
import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest

import suffice
from suffice.data_files.source import SUMMARIES, posterior_source
from suffice.errors import ConflictWarning, MissingExtraError
from suffice.pipeline.terms.released.table import Table, number_beside, texts_of
from suffice.plots.style import footer_of, footer_of_posterior
from support.browser import running_browser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

VECTORS = Path(__file__).parents[3] / "vectors"
CASES: list[dict[str, Any]] = json.loads((VECTORS / "conflicts.json").read_text())["cases"]


def release(name: str = "first-families") -> suffice.Release:
    return suffice.open_release(VECTORS / "valid" / name / "release")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['prior']}-{list(case['where'].values())}")
def test_no_form_of_a_posterior_shows_an_interval_without_its_conflict(case: dict[str, Any]) -> None:
    posterior = release().posterior(case["statistic"], case["prior"], where=case["where"])
    is_said = any(case["is_said"]) or posterior.conflict.is_against_all
    assert ("conflict: " in str(posterior).lower()) == is_said
    assert ("Conflict: " in posterior._repr_html_()) == is_said
    assert {row["conflict"] for row in posterior.summary()} == {is_said}
    assert ("Conflict: " in str(posterior.summary())) == is_said
    if is_said:
        with pytest.warns(ConflictWarning):
            frame = posterior.to_frame()
    else:
        frame = posterior.to_frame()
    assert set(frame["conflict"]) == {is_said}


@pytest.mark.slow
def test_a_picture_says_the_conflict_and_is_saved_as_it_is_shown(tmp_path: Path) -> None:
    picture = release().posterior("cancelled", "Beta(800, 200)").plot()
    assert "conflict: the prior of the parameters, Beta(800, 200)," in picture._repr_svg_().replace("\n", " ")
    picture.save(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_text() == picture.svg
    with pytest.raises(suffice.SufficeError, match=r"\.png or \.svg"):
        picture.save(tmp_path / "picture.gif")


def test_a_picture_says_what_it_is_of_as_the_command_line_does() -> None:
    opened = release()
    posterior = opened.posterior("cancelled")
    assert posterior.titled == opened.titled("cancelled")
    source = posterior_source(SUMMARIES, [opened], posterior)
    assert footer_of_posterior(posterior) == footer_of(source, [opened])
    assert "epsilon" in footer_of_posterior(posterior)
    assert repr(posterior.plot()).startswith(f"<Picture of {posterior.titled}: ")


@pytest.mark.filterwarnings("ignore::suffice.errors.ConflictWarning")
def test_a_comparison_of_cells_stands_beside_its_conflict() -> None:
    posterior = release().posterior("cancelled", "Beta(800, 200)")
    contrast = posterior.difference({"origin": "JFK"}, {"origin": "LGA"})
    for text in (str(contrast), contrast._repr_html_(), str(posterior.highest())):
        assert "Conflict: the prior of the parameters" in text


def test_names_and_keys_of_others_are_no_markup() -> None:
    opened = release("several-groups")
    posterior = opened.posterior("stops")
    for text in (opened._repr_html_(), opened["stops"]._repr_html_(), posterior._repr_html_()):
        assert "<b>" not in text
    assert "=1+1 &lt;b&gt;&amp;&quot;" in posterior._repr_html_()
    table = Table([{"a\x1b[31m": "\u202ereversed", "b": "<script>alert(1)</script>"}])
    assert "\x1b" not in str(table) + table._repr_html_()
    assert "\u202e" not in str(table) + table._repr_html_()
    assert "<script" not in table._repr_html_()


def test_of_many_cells_the_first_are_shown_and_the_others_counted() -> None:
    posterior = release("several-groups").posterior("stops")
    assert posterior._repr_html_().count("<tr>") == 21
    assert "... and 4 more cells: summary() has all" in posterior._repr_html_()
    assert len(posterior.summary()) == 24


@pytest.mark.slow
def test_the_same_posterior_shows_the_same_numbers() -> None:
    posterior = release("bins").posterior("delay")
    assert "from draws" in str(posterior)
    assert "from draws" not in str(release().posterior("carrier"))
    # Not even where bounds cut a mean and a variance off.
    assert "from draws" not in str(release().posterior("delay"))
    first = str(posterior), posterior._repr_html_()
    assert (str(posterior), posterior._repr_html_()) == first


def test_a_plug_in_posterior_says_that_it_is_not_calibrated() -> None:
    posterior = release().posterior("delay", method="plug-in")
    assert "its intervals are not calibrated" in str(posterior)
    assert "its intervals are not calibrated" in posterior._repr_html_()


def test_totals_of_merged_cells_are_shown_and_not_judged() -> None:
    posterior = suffice.roll_up(release("several-groups")["stops"], "origin").posterior()
    assert repr(posterior).startswith(
        "<Posterior of stops (poisson): n, total, mean in 8 cells by month, day"
    )
    assert {row["conflict"] for row in posterior.summary()} == {None}
    assert "total" in posterior._repr_html_()


def test_a_released_sample_shows_its_draws() -> None:
    opened = release("samples")
    assert [*opened] == ["cancelled", "cancelled_drawn", "stops_drawn"]
    assert opened["stops_drawn"].parameters == ("rate",)
    assert len(opened["stops_drawn"]) == 3
    assert {row["parameter"] for row in opened["stops_drawn"].table()} == {"rate"}
    assert "draws" in str(opened)


@pytest.mark.parametrize(
    ("value", "sd", "shown"),
    [
        (0.0123456, 0.0005, "0.01235"),
        (1234.5678, 250.0, "1,235"),
        (17.57458123, 0.00042, "17.57458"),
        (1.2345e-9, 2.5e-10, "1.23e-09"),
        (0.0, 1e-9, "0"),
        (3.14159265, None, "3.1416"),
        (3.14159265, float("inf"), "3.1416"),
    ],
)
def test_a_number_has_the_digits_that_its_standard_deviation_tells(
    value: float, sd: float | None, shown: str
) -> None:
    assert number_beside(value, sd) == shown


def test_ends_that_are_whole_numbers_are_written_as_their_mean_is() -> None:
    row = {"year": 2013, "mean": 11060.8, "sd": 15.0, "lower": 11027, "upper": 11087}
    assert texts_of(row) == ["2013", "11,061", "15", "11,027", "11,087"]


def test_a_frame_is_of_the_library_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Polars:
        @staticmethod
        def DataFrame(columns: dict[str, Any]) -> tuple[str, list[str]]:  # noqa: N802 - as Polars has it
            return "polars", list(columns)

    rows = Table([{"a": 1, "b": None}])
    monkeypatch.setitem(__import__("sys").modules, "polars", Polars)
    installed = {"pandas", "polars"}
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: builtins.object() if name in installed else None
    )
    assert rows.to_frame("polars") == ("polars", ["a", "b"])
    assert type(rows.to_frame()).__module__.startswith("pandas")
    installed.remove("pandas")
    assert rows.to_frame() == ("polars", ["a", "b"])
    with pytest.raises(MissingExtraError, match=r"pip install 'suffice\[pandas\]'"):
        rows.to_frame("pandas")
    with pytest.raises(suffice.SufficeError, match="pandas or polars, not of 'cudf'"):
        rows.to_frame("cudf")


def test_priors_take_the_names_of_scipy_and_no_number_twice() -> None:
    opened = release()
    assert suffice.Beta(a=1, b=30) == suffice.Beta(1, 30)
    assert suffice.Gamma(a=2, scale=4) == suffice.Gamma(concentration=2, rate=0.25)
    assert suffice.InverseGamma(a=3, scale=2) == suffice.InverseGamma(3, 2)
    assert suffice.Dirichlet(alpha=[1, 2.5]) == suffice.Dirichlet(1, 2.5)
    by_text = opened.posterior("stops", "Gamma(a=2, scale=4)")
    assert np.array_equal(by_text.mean(), opened.posterior("stops", "Gamma(2, 0.25)").mean())
    assert str(opened.posterior("stops", "Exponential(scale=4)").prior) == "Exponential(0.25)"
    for wrong in ({"a": 1}, {"concentration1": 1, "a": 1, "b": 1}, {}):
        with pytest.raises(TypeError):
            suffice.Beta(**wrong)
    for text in ("Beta(1, a=2)", "Gamma(a=1, rate=2, scale=2)", "Beta(a=1, b=0)", "Gamma(a=1, scale=0)"):
        with pytest.raises(suffice.SufficeError):
            opened.posterior("cancelled", text)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_a_notebook_shows_is_accessible_in_both_themes(
    browser: Browser, tmp_path: Path, scheme: Literal["light", "dark"], width: int
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    opened = release()
    parts: list[Any] = [
        opened,
        opened["cancelled"],
        opened.posterior("cancelled", "Beta(800, 200)"),
        opened.posterior("delay"),
    ]
    colours = {"light": "#ffffff;color:#1d2630", "dark": "#111111;color:#e4e8ec"}[scheme]
    shown = "".join(part._repr_html_() for part in parts)
    page = (
        f"<!doctype html><html lang=en><title>a notebook</title><body style='background:{colours}'>"
        f"<main><h1>A</h1><h2>notebook</h2><h3>cell</h3>{shown}</main>"
    )
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    tab = browser.new_page(viewport={"width": width, "height": 800})
    tab.goto((tmp_path / "page.html").as_uri())
    violations = Axe().run(tab).response["violations"]
    assert [(each["id"], [node["target"] for node in each["nodes"]]) for each in violations] == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tab.close()

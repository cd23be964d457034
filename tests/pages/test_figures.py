"""Figures of pages: well-formed, without looks of their own, and with nothing of a label that would run."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import suffice.pages
from suffice.pages import posterior_figures as figures
from suffice.pages.drawing import Scale, columns_of, fitted, rounded_out, written_alike
from suffice.pages.posterior_figures import NOISE_AWARE, PLUG_IN, PRIOR, Curve, Row

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTILE = "</svg><script>alert(1)</script>\"'&\u202e\x1b[31m]]>"
SVG = "{http://www.w3.org/2000/svg}"
STYLES = Path(suffice.pages.__file__).parent / "assets" / "figures.css"


def curve(kind: str, centre: float, width: float) -> Curve:
    points = np.linspace(centre - 4.0 * width, centre + 4.0 * width, 81)
    return Curve(kind=kind, points=points, density=np.exp(-0.5 * ((points - centre) / width) ** 2) / width)


def row(label: str, centre: float = 0.3, width: float = 0.1) -> Row:
    quantiles = tuple(centre + width * deviate for deviate in (-1.96, -0.67, 0.0, 0.67, 1.96))
    kinds = ((PRIOR, 3.0), (PLUG_IN, 0.8), (NOISE_AWARE, 1.0))
    return Row(
        label=label,
        quantiles=quantiles,  # type: ignore[arg-type]
        curves=tuple(curve(kind, centre, width * wide) for kind, wide in kinds),
    )


def parsed(svg: str) -> ET.Element:
    """The elements of a figure; fails where it is not well-formed."""
    return ET.fromstring(svg)  # noqa: S314 - our own text


FIGURES: dict[str, Callable[[str], str]] = {
    "one density": lambda text: figures.densities([row(text)], title=text, axis=text, mass=0.95),
    "densities": lambda text: figures.densities([row(text), row("b", 0.5)], title=text, axis=text, mass=0.9),
    "forest": lambda text: figures.forest([row(text), row("b", 0.5)], title=text, axis=text, mass=0.95),
    "ranked": lambda text: figures.ranked(
        np.arange(2000.0), np.arange(2000.0) + 1.0, np.arange(2000.0) + 2.0, title=text, axis=text, mass=0.5
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_names_itself_and_shows_labels_as_text(name: str) -> None:
    root = parsed(FIGURES[name](HOSTILE))
    assert root.get("role") == "img"
    title, description = root[0].text, root[1].text
    assert title is not None
    assert title.startswith("</svg><script>alert(1)</script>")
    assert description
    assert root.get("aria-label") == f"{title}. {description}"
    written = "".join(root.itertext())
    assert "\u202e" not in written
    assert "\x1b" not in written
    assert r"\u202e\u001b[31m" in title


@pytest.mark.parametrize("name", FIGURES)
def test_looks_come_from_the_style_sheet_alone(name: str) -> None:
    known = set(re.findall(r"\.([a-z][\w-]*)", STYLES.read_text(encoding="utf-8")))
    for node in parsed(FIGURES[name]("label")).iter():
        assert node.tag.removeprefix(SVG) in {"svg", "title", "desc", "g", "line", "path", "circle", "text"}
        assert not {"style", "fill", "stroke", "href", "onload"} & set(node.keys())
        classes = {*node.get("class", "").split()} - {"label", "row"}
        assert all(css_class in known or css_class.startswith("figure-") for css_class in classes)
        for key, value in node.items():
            if key in {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "d"}:
                assert "nan" not in value
                assert "inf" not in value


def test_a_forest_puts_intervals_where_their_numbers_are() -> None:
    root = parsed(figures.forest([row("a", 0.2, 0.01), row("b", 0.6, 0.1)], title="t", axis="x", mass=0.95))
    numbers_at = {
        float(node.text or ""): float(node.get("x", ""))
        for node in root.iter(f"{SVG}text")
        if node.get("class") == "tick middle"
    }
    (first, start), *_, (last, stop) = sorted(numbers_at.items())
    ticks = [node for node in root.iter(f"{SVG}line") if (node.get("class") or "").startswith("median")]
    medians = [float(node.get("x1", "")) for node in ticks]
    expected = [start + (median - first) / (last - first) * (stop - start) for median in (0.2, 0.6)]
    assert medians == pytest.approx(expected, abs=0.2)


def test_rows_without_numbers_have_a_label_and_no_interval() -> None:
    empty = Row(label="heavy tails", quantiles=(math.nan,) * 5)
    figure = figures.forest([row("a"), empty], title="t", axis="x", mass=0.95)
    assert "heavy tails" in figure
    assert figure.count('class="median') == 1
    nothing = figures.forest([empty], title="t", axis="x", mass=0.95)
    assert 'class="median' not in nothing
    parsed(nothing)


@given(st.floats(-1e12, 1e12), st.floats(1e-9, 1e12))
def test_numbers_along_an_axis_are_round_few_and_inside(low: float, span: float) -> None:
    scale = Scale.over(low, low + span, 0.0, 100.0)
    ticks = scale.ticks
    if span > 1e-6 * abs(low):
        assert 2 <= len(ticks) <= 7
        written = written_alike(ticks)
        assert len(set(written)) == len(written)
    reach = 1e-6 * (scale.high - scale.low)
    assert all(scale.low - reach <= tick <= scale.high + reach for tick in ticks)
    assert all(0.0 <= scale.at(tick) <= 100.0 for tick in ticks)
    first, last = rounded_out(scale.low, scale.high)
    assert first <= scale.low + reach
    assert last >= scale.high - reach


def test_numbers_of_one_axis_are_written_alike() -> None:
    assert written_alike([0.0, 0.5, 1.0]) == ["0.0", "0.5", "1.0"]
    assert written_alike([-20.0, 0.0, 20.0]) == ["\N{MINUS SIGN}20", "0", "20"]
    assert written_alike([0.0, 0.25, 0.5]) == ["0.00", "0.25", "0.50"]
    assert written_alike([0.0, 5000.0, 10000.0])[2] == "10,000"
    assert written_alike([1e9, 2e9]) == ["1e+09", "2e+09"]


@given(st.text(), st.integers(1, 40))
def test_labels_are_cut_to_their_room(label: str, longest: int) -> None:
    cut = fitted(label, longest)
    assert columns_of(cut) <= max(longest, 1)
    assert cut == label or cut.endswith("…")

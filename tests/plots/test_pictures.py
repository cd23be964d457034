"""Pictures in one style: what they show is what was computed, and what labels say is text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import suffice
from suffice.data_files.source import SUMMARIES, posterior_source, table_source
from suffice.errors import UsageError
from suffice.pipeline.ask.pooling.comparison import PriorComparison, compare, compare_priors
from suffice.pipeline.ask.posterior.curves import on_shared_axes
from suffice.pipeline.terms.released.noise_distribution import noise_half_width
from suffice.plots import comparisons, moved, posteriors, rows, style, tables
from suffice.plots.comparisons import plot_comparison, plot_pool, plot_prior_comparison
from suffice.plots.posteriors import plot_posterior
from suffice.plots.style import COLOURS, NOISE, POSTERIOR, QUIET, check_plot, footer_of
from suffice.plots.tables import plot_table
from support import releases
from support.releases import make_plan, publish

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from suffice.pipeline.ask.pooling.release import Release

HOSTILE = ["$\\alpha$", "<b>x</b>", "plain"]
VECTORS = Path(__file__).parents[1] / "vectors"
TERMS: dict[str, Any] = {"title": "title\u202e", "footer": "Source: here.", "draws": 200}


def released(
    folder: Path, groups: dict[str, Any], statistics: dict[str, Any], name: str = "flights", **changes: Any
) -> Release:
    """A release in which every count is 400, and every total a third of what it could be."""
    plan = make_plan(groups=groups, statistics=statistics, name=name)
    values = {
        each.name: np.full(
            (plan.n_cells, len(each.components)), 400 * (each.partition_total or 3) // 3
        ).astype(object)
        for each in plan.statistics
    }
    return suffice.open_release(str(publish(folder, plan, values, **changes)))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    statistics = {
        "flag": {"family": "bernoulli", "column": "c"},
        "kind": {"family": "categorical", "column": "k", "categories": ["a", "b", "c"], "other": True},
        "delay": {"family": "normal", "column": "d", "lower": -60, "upper": 180},
    }
    return released(tmp_path_factory.mktemp("pictures"), {"o": HOSTILE}, statistics)


@pytest.mark.slow
def test_a_picture_of_priors_shows_every_factor(
    release: Release, tmp_path: Path, figures: list[Figure]
) -> None:
    comparison = compare_priors(release, "flag", ["Beta(1, 1)", "Beta(1, 9)", "Beta(9, 1)"])
    plot_prior_comparison(comparison, tmp_path / "a.svg", title="title", footer="Source: here.")
    cells, together = figures[0].axes
    for axis, expected in (
        (cells, comparison.log_bayes_factors.T),
        (together, comparison.total_log_bayes_factors[:, None]),
    ):
        drawn = [
            np.asarray(line.get_xdata()) for line in axis.get_lines() if line.get_marker() not in {"None", ""}
        ]
        np.testing.assert_allclose(drawn, expected[1:])
    assert cells.get_legend_handles_labels()[1] == ["Beta(1, 9)", "Beta(9, 1)"]
    assert "against Beta(1, 1), in nats" in together.get_xlabel()
    with pytest.raises(UsageError, match="7 priors are too many"):
        plot_prior_comparison(
            compare_priors(release, "flag", ["Beta(1, 1)"] * 7), tmp_path / "b.svg", title="", footer=""
        )


def test_names_of_priors_stay_within_the_picture(tmp_path: Path, figures: list[Figure]) -> None:
    names = tuple(f"NormalInverseGammaRegression([{n}, 0], [40, 40], 20, 1.8)" for n in range(5))
    comparison = PriorComparison(
        statistic="s",
        priors=names,
        n_prior="n",
        groups={},
        log_evidence=np.array([[0.0, -2.0, 1.0, 2.0, 3.0]]),
        standard_error=np.full((1, 5), 0.3),
    )
    plot_prior_comparison(comparison, tmp_path / "a.png", title="title", footer="Source: here.")
    (figure,) = figures
    (axis,) = figure.axes
    legend = axis.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == list(names[1:])
    within = figure.bbox
    for drawn in (legend, axis.xaxis.label):
        extent = drawn.get_window_extent()
        assert extent.x0 >= within.x0
        assert extent.x1 <= within.x1


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are saved meanwhile."""
    drawn: list[Figure] = []
    saved = style.save

    def save(figure: Figure, path: Path) -> None:
        saved(figure, path)
        drawn.append(figure)

    for module in (posteriors, tables, comparisons, moved):
        monkeypatch.setattr(module, "save", save)
    return drawn


def generator() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.mark.slow
def test_densities_are_the_posteriors_own(release: Release, tmp_path: Path, figures: list[Figure]) -> None:
    posterior = release.posterior("flag", prior="Beta(1, 3)")
    beside = release.posterior("flag", prior="Beta(1, 3)", method="plug-in")
    plot_posterior(posterior, tmp_path / "p.svg", **TERMS, rng=generator(), beside=beside)
    (axis,) = figures[0].axes
    curves = [line for line in axis.lines if line.get_color() == POSTERIOR and np.size(line.get_xdata()) > 9]
    assert len(curves) == 3
    points = np.asarray(curves[0].get_xdata())
    density = posterior.density("probability", points)
    assert density is not None
    heights = -np.asarray(curves[0].get_ydata())
    np.testing.assert_allclose(heights / heights.max(), density[0] / density[0].max(), atol=1e-9)
    assert [text.get_text() for text in axis.get_yticklabels()] == ["$\\alpha$", "<b>x</b>", "plain"]
    assert not any(text.get_parse_math() for text in axis.get_yticklabels())
    assert axis.get_xlabel() == "probability of c"
    assert [text.get_text() for text in figures[0].texts][::2] == ["title\\u202e", "Source: here."]
    assert "from draws" not in figures[0].texts[1].get_text()


def test_what_rests_on_draws_says_so(
    release: Release, tmp_path: Path, figures: list[Figure], monkeypatch: pytest.MonkeyPatch
) -> None:
    posterior = release.posterior("flag")
    monkeypatch.setattr(type(posterior), "density", lambda *_: None)
    plot_posterior(posterior, tmp_path / "p.svg", **TERMS, rng=generator())
    assert "Histograms, from draws" in figures[0].texts[1].get_text()


def test_a_forest_has_the_posteriors_quantiles(
    release: Release, tmp_path: Path, figures: list[Figure]
) -> None:
    posterior = release.posterior("delay", method="plug-in")
    plot_posterior(posterior, tmp_path / "p.png", **TERMS, rng=generator(), kind="forest", mass=0.8)
    assert [axis.get_xlabel() for axis in figures[0].axes] == [
        "mean of d, in its unit",
        "variance of d, in its unit squared",
    ]
    ends = posterior.credible_interval("mean", 0.8)
    thin = figures[0].axes[0].collections[0].get_segments()  # type: ignore[attr-defined]
    np.testing.assert_allclose([[part[0][0], part[1][0]] for part in thin], ends)
    assert "80 % central intervals" in figures[0].texts[1].get_text()


@pytest.mark.slow
def test_a_picture_of_robustness_has_every_range(
    release: Release, tmp_path: Path, figures: list[Figure]
) -> None:
    posterior = release.posterior("flag", prior="Beta(1, 3)")
    plot_posterior(posterior, tmp_path / "p.svg", **TERMS, rng=generator(), kind="robustness", mass=0.8)
    (axis,) = figures[0].axes
    table = posterior.robustness(mass=0.8, draws=200, rng=generator())
    rows_of = [row for row in table if row["prior"] != "as stated"]
    bars = [np.asarray(line.get_xdata()) for line in axis.lines if np.size(line.get_xdata()) == 2]
    expected = [
        [row[f"{name}_least"], row[f"{name}_most"]] for row in rows_of for name in ("lower", "upper", "mean")
    ]
    np.testing.assert_allclose(bars, expected)
    labels = [text.get_text() for text in axis.get_yticklabels()]
    assert labels[::6] == ["$\\alpha$", "<b>x</b>", "plain"]
    assert labels[1:6] == [row["prior"] for row in rows_of[:5]]
    assert "central 80 % interval as stated" in figures[0].texts[1].get_text().replace("\n", " ")
    picture = posterior.plot("robustness", mass=0.8, draws=200, rng=1)
    assert "noise drawn again" in picture.svg


@pytest.mark.slow
def test_a_range_without_a_bound_goes_to_the_edge(tmp_path: Path, figures: list[Figure]) -> None:
    """Few records: under a tenth of any other prior a rate may be as large as one likes."""
    entry = {"family": "exponential", "column": "d", "upper": 10, "lattice_bits": 4}
    few = released(tmp_path, {"o": ["a"]}, {"delay": entry}).posterior("delay", prior="Gamma(3, 3)")
    table = few.robustness(redraws=0)
    unbounded = [row for row in table if row["mean_most"] is None]
    plot_posterior(few, tmp_path / "p.svg", **TERMS, rng=generator(), kind="robustness")
    (axis,) = figures[0].axes
    edges = [line for line in axis.lines if np.max(np.asarray(line.get_xdata())) == axis.get_xlim()[1]]
    assert len(edges) == len(unbounded)


def test_pictures_of_robustness_that_cannot_be(
    release: Release, tmp_path: Path, figures: list[Figure]
) -> None:
    posterior = release.posterior("flag")
    beside = release.posterior("flag", method="plug-in")
    with pytest.raises(UsageError, match="shows one method"):
        plot_posterior(
            posterior, tmp_path / "p.svg", **TERMS, rng=generator(), kind="robustness", beside=beside
        )
    many = released(tmp_path, {"o": list("abcdefghijklm")}, {"flag": {"family": "bernoulli", "column": "c"}})
    with pytest.raises(UsageError, match="13 cells are too many to show how far they move"):
        plot_posterior(
            many.posterior("flag"), tmp_path / "p.svg", **TERMS, rng=generator(), kind="robustness"
        )
    assert figures == []


def test_a_table_has_intervals_of_the_noise(release: Release, tmp_path: Path, figures: list[Figure]) -> None:
    statistic = release.statistic("kind")
    plot_table(statistic, tmp_path / "t.svg", title="title", footer=footer_of(table_source(release, "kind")))
    (reach,) = {noise_half_width(statistic.plan, quantity) for quantity in statistic.plan.quantities[-2:]}
    rows_of = [row for row in statistic.table() if row["quantity"] == "count"]
    counts = next(axis for axis in figures[0].axes if axis.get_xlabel().startswith("count"))
    segments = counts.collections[0].get_segments()  # type: ignore[attr-defined]
    np.testing.assert_allclose(
        [[part[0][0], part[1][0]] for part in segments],
        [[row["estimate"] + side * reach for side in (-1, 1)] for row in rows_of],
    )
    assert "at least 95 % of the noise" in figures[0].texts[1].get_text().replace("\n", " ")
    assert f"release {release.release_id}" in figures[0].texts[-1].get_text()


def test_an_ordered_column_is_drawn_as_a_line(tmp_path: Path, figures: list[Figure]) -> None:
    groups = {"o": ["a", "b"], "month": {"range": [1, 6]}}
    monthly = released(tmp_path, groups, {"flag": {"family": "bernoulli", "column": "c"}})
    plot_table(monthly.statistic("flag"), tmp_path / "t.svg", title="t", footer="f")
    axis = figures[0].axes[0]
    assert axis.get_xlabel() == "month"
    assert [text.get_text() for text in axis.get_xticklabels()] == list("123456")
    assert [line.get_label() for line in axis.lines] == ["a", "b"]
    assert [line.get_color() for line in axis.lines] == list(COLOURS[:2])
    assert all(np.size(line.get_xdata()) == 6 for line in axis.lines)


def test_comparisons_and_pools(
    tmp_path: Path, figures: list[Figure], monkeypatch: pytest.MonkeyPatch
) -> None:
    statistics = {"flag": {"family": "bernoulli", "column": "c"}}
    pair = []
    for number in (1, 2):
        monkeypatch.setattr(releases, "RELEASE_ID", f"{number:016x}")
        pair.append(released(tmp_path / str(number), {"o": ["x", "y"]}, statistics, f"name{number}"))
    first, second = pair
    monkeypatch.setattr("suffice.pipeline.ask.pooling.comparison.relation_of", lambda *_: (None, ""))
    monkeypatch.setattr("suffice.pipeline.ask.pooling.comparison.require", lambda *_, **__: None)
    comparison = compare(first, second, "flag", draws=400, rng=1)
    plot_comparison(comparison, tmp_path / "c.svg", title="t", footer="f")
    left, right = figures[0].axes
    said = [note.get_text() for note in left.texts]
    assert said == [f"P {chance:.2f}" for chance in comparison.differences["probability"].probability()]
    apparent = next(line for line in left.lines if line.get_color() == NOISE and line.get_marker() == "|")
    np.testing.assert_allclose(np.asarray(apparent.get_xdata()), comparison.apparent["probability"])
    assert (left.get_xlabel()[:10], right.get_xlabel()[:5]) == ("difference", "ratio")
    parts = [("first", comparison.before), ("second", comparison.after)]
    plot_pool(comparison.after, parts, tmp_path / "p.svg", title="t", footer="f", draws=200, rng=generator())
    legend = figures[1].axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["first", "second", "pooled"]


@pytest.mark.slow
def test_the_same_input_makes_the_same_bytes(release: Release, tmp_path: Path) -> None:
    posterior = release.posterior("flag")
    for ending in ("svg", "png"):
        for copy in ("a", "b"):
            plot_posterior(posterior, tmp_path / f"{copy}.{ending}", **TERMS, rng=generator())
        first, second = ((tmp_path / f"{copy}.{ending}").read_bytes() for copy in ("a", "b"))
        assert first == second
        assert b"written by suffice" in first


def test_footers_name_releases_prices_and_priors(release: Release) -> None:
    posterior = release.posterior("flag", prior="Beta(1, 3)", n_prior="Uniform(0, 900)", method="noise-aware")
    footer = footer_of(posterior_source(SUMMARIES, [release], posterior), [release])
    for said in (release.label, release.release_id, "epsilon 1/3 of 1", "noise-aware", "Beta(1, 3)", "900"):
        assert said in footer
    many = posterior_source(SUMMARIES, [release] * 9, posterior)
    assert "7 more" in footer_of(many)


def test_what_is_no_picture_is_refused(release: Release, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.png or \.svg"):
        check_plot(tmp_path / "p.pdf")
    with pytest.raises(UsageError, match="cannot be written"):
        plot_posterior(release.posterior("flag"), tmp_path / "no" / "p.svg", **TERMS, rng=generator())
    many = released(tmp_path, {"g": {"range": [1, 61]}}, {"flag": {"family": "bernoulli", "column": "c"}})
    posterior = many.posterior("flag", method="plug-in")
    with pytest.raises(UsageError, match="too many to draw as a density"):
        plot_posterior(posterior, tmp_path / "p.svg", **TERMS, rng=generator(), kind="density")
    with pytest.raises(UsageError, match="too many for one picture"):
        plot_pool(posterior, [("a", posterior)], tmp_path / "p.svg", **TERMS, rng=generator())


def test_colours_stand_out_from_white() -> None:
    """By WCAG 2.2: 4.5 to 1, also of text in them."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5)]
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    assert all(1.05 / (luminance(colour) + 0.05) >= 4.5 for colour in (*COLOURS, QUIET))
    assert 1.05 / (luminance("#a0a0a0") + 0.05) < 4.5


def test_a_band_is_in_the_order_of_the_medians() -> None:
    from matplotlib.figure import Figure

    axis = Figure().subplots()
    middle = np.array([3.0, 1.0, 2.0])
    rows.draw_ranked(axis, [rows.Intervals(lower=middle - 1.0, middle=middle, upper=middle + 1.0)], "x")
    assert list(np.asarray(axis.lines[0].get_ydata())) == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("kind", ["density", "forest"])
def test_a_rate_over_decades_is_drawn_in_logarithms(kind: str, tmp_path: Path, figures: list[Figure]) -> None:
    statistics = {"wait": {"family": "exponential", "column": "w", "upper": 100}}
    plan = make_plan(groups={"o": ["a", "b"]}, statistics=statistics, name="waits")
    unit = plan.statistics[0].partition_total or 1
    values = {"wait": np.array([[2 * unit, 2998 * unit], [900 * unit, 2100 * unit]]).astype(object)}
    posterior = suffice.open_release(str(publish(tmp_path, plan, values))).posterior("wait")
    plot_posterior(posterior, tmp_path / "p.svg", **TERMS, rng=generator(), kind=kind)
    (axis,) = figures[0].axes
    assert axis.get_xscale() == "log"
    assert axis.get_xlabel() == "rate of w (logarithmic axis)"
    lower, upper = posterior.credible_interval("rate").T
    assert upper[0] > 100 * lower[0]
    shown = axis.get_xlim()
    assert shown[0] < lower.min() < upper.max() < shown[1]


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "panels"), [((1.0, 30.0), 2), ((1.0, 3.0), 1)])
def test_components_of_very_different_size_have_an_axis_each(
    sizes: tuple[float, float], panels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = suffice.open_release(VECTORS / "valid" / "moments" / "release")
    posterior = release.posterior("size", method="plug-in")
    monkeypatch.setattr(type(posterior), "mean", lambda *_: np.zeros((posterior.n_groups, 2)))
    monkeypatch.setattr(type(posterior), "sd", lambda *_: np.tile(sizes, (posterior.n_groups, 1)))
    shared = on_shared_axes(posterior, "mean")
    assert [name for name, _ in shared] == (["weight", "delay"] if panels == 2 else [""])
    names = posterior.entry_names("mean")
    assert sorted(names[row] for _, places in shared for row in places) == sorted(names)
    for name, places in shared:
        assert all(names[row].endswith(name) for row in places)

"""What a page shows of one released statistic or sample: which cells, and as which picture.

A picture is small panels along an ordered group, a forest, or a band of ranked cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import SufficeError
from suffice.pages.column_view import ENTRIES, MOST_COLUMNS, QUANTILE, READING, column_view
from suffice.pages.drawing import (
    DrawnInterval,
    interval_text,
)
from suffice.pages.posterior_figures import MOST_DENSITIES, parameter_figure
from suffice.pipeline.ask.inference.posterior_terms import PLUG_IN
from suffice.pipeline.ask.posterior.cells import cells_of
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.ask.posterior.curves import on_shared_axes, spans_decades
from suffice.pipeline.ask.posterior.notes import clipping_warnings, default_lines, prior_lines
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.composite import from_draws
from suffice.pipeline.spec.about import NOTHING
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.released.noise_distribution import noise_half_width
from suffice.pipeline.terms.released.sample import ReleasedQuantile
from suffice.pipeline.terms.statistics.drawn_quantile import LEVEL, QuantilePlan
from suffice.pipeline.terms.statistics.sample_plan import SamplePlan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.spec.about import About
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.released.sample import ReleasedSample

MASS = 0.95
DRAWS = 4000
MOST_INTERVALS = 240
"""Intervals of one statistic on a page."""
MOST_SLOW_CELLS = 48
"""Cells whose posterior is worked out where each takes a grid over a mean and a variance; of more, half."""

POSTERIOR, NOISE, SAMPLE = "posterior", "noise", "sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticView:
    """One statistic as a page shows it.

    Attributes
    ----------
    name, family : str
    kind : {"posterior", "noise", "sample"}
        What the intervals are: of a parameter given the release, or of the noise around an estimate; of a
        released sample there are draws in their place.
    shown_of : str
        The parameter or quantity that the picture shows.
    entries : tuple of str
        What that has several of in a cell, in order; one empty text where it is one number.
    keys : list of dict
        The keys of the shown cells.
    n_cells : int
        Of the statistic in all.
    intervals : list of list of Interval
        Of every shown cell, entry by entry.
    draws : list of list of float
        Of every shown cell of a sample; else empty.
    rows : list of dict
        The table behind the picture.
    facts : dict of str to str
        Prior, prior of N, method and the like.
    warnings : tuple of str
        What has to be said with the picture.
    within : (float, float)
        The ends of a sample's grid, which its picture spans; of no meaning elsewhere.
    is_tempered : bool
        Whether a sample's draws are of a flatter law than the data's own posterior.
    law : str
        What each draw of a quantile is, without its subject; else empty.
    densities : str
        Smooth densities as SVG, where few are shown and their law is known; else empty.
    reading : str
        How the densities are to be read, where the caption has to say it; else empty.
    in_logs : bool
        Whether the picture's axis is logarithmic.
    has_axes_apart : bool
        Whether every entry has an axis of its own, as their sizes are too different for one.
    about : About
        What the release's owner calls things.
    selection : str
        Which cells are shown, where they are not all; else empty.
    """

    name: str
    family: str
    kind: str
    shown_of: str
    entries: tuple[str, ...]
    keys: list[dict[str, str | int]]
    n_cells: int
    intervals: list[list[DrawnInterval]]
    rows: list[dict[str, Any]] = field(repr=False)
    facts: dict[str, str]
    warnings: tuple[str, ...] = ()
    selection: str = ""
    draws: list[list[float]] = field(default_factory=list, repr=False)
    within: tuple[float, float] = (0.0, 1.0)
    is_tempered: bool = False
    law: str = ""
    densities: str = field(default="", repr=False)
    reading: str = ""
    in_logs: bool = False
    has_axes_apart: bool = False
    about: About = NOTHING

    def cell_label(self, cell: int) -> str:
        """Return the keys of a shown cell in words; empty where there are no groups."""
        return ", ".join(self.key_label(column, key) for column, key in self.keys[cell].items())

    def key_label(self, column: str, key: object) -> str:
        """Return a key in words: what it is called, or the name of its column and the key."""
        called = self.about.key(column, key)
        return called if called != str(key) else f"{self.about.column(column)} {key}"

    def entry_label(self, entry: str) -> str:
        """Return a category or a component in words; empty where there is one number in a cell."""
        return self.about.value(self.name, entry)

    @property
    def label(self) -> str:
        """What the statistic is called."""
        return self.about.label(self.name)

    @property
    def shown_in_words(self) -> str:
        """What the shown numbers are, as a row of them says where there are no keys."""
        if self.has_label:
            return self.number_label
        return self.name if self.is_column else self.shown_of

    @property
    def is_column(self) -> bool:
        """Whether these are quantiles of the column behind a histogram."""
        return self.kind == POSTERIOR and self.family == "histogram" and self.shown_of == QUANTILE

    @property
    def has_label(self) -> bool:
        """Whether the statistic is called otherwise than by its name."""
        return self.about.words(self.name).label is not None

    @property
    def number_label(self) -> str:
        """What the shown numbers are, with their unit."""
        if self.has_label:
            return self.about.axis(self.name, self.shown_of)
        of = self.shown_of.replace("_", " ")
        return f"{of[0].upper()}{of[1:]} of {self.name}"

    def text(self, value: float, interval: DrawnInterval) -> str:
        """Return a number to as many digits as the width of its interval tells, or as its owner asked for."""
        return interval_text(value, interval, self.about.digits(self.name, self.shown_of))


def statistic_view(release: Release, name: str, *, seed: int) -> StatisticView:
    """Work out what a page shows of a statistic.

    Posterior intervals under the family's default prior wherever they need no sampler; elsewhere the
    estimates with intervals of their noise, labelled so. Of many cells some are shown, evenly spaced by rank.

    Parameters
    ----------
    release : Release
    name : str
        Of the statistic.
    seed : int, >= 0
        Of the draws that some quantiles rest on.
    """
    statistic = release.statistic(name)
    family = FAMILIES[statistic.plan.family]
    if family.by_mcmc(statistic.plan.parameters):
        why = "its posterior takes a sampler, which this page does not run"
        return _noise_view(statistic, why, release.about)
    try:
        return _posterior_view(statistic, seed, release.about)
    except SufficeError as error:
        return _noise_view(statistic, f"no posterior under the default prior: {error}", release.about)


def _posterior_view(statistic: NoisyStatistic, seed: int, about: About) -> StatisticView:
    whole = cells_of(statistic, None)
    if whole.plan.family == "histogram":
        return _column_view(whole, statistic, seed, about)
    n_entries = _entries_of(whole)
    most = max(1, MOST_INTERVALS // n_entries)
    if FAMILIES[whole.plan.family].mean_and_variance is not None:
        most = MOST_SLOW_CELLS if len(whole.values) <= MOST_SLOW_CELLS else MOST_SLOW_CELLS // 2
    chosen, selection = _chosen(whole, most)
    posterior = replace(posterior_of(chosen), about=about)
    rng = np.random.default_rng(seed)
    parameter = posterior.parameters[0]
    marks = posterior.five_numbers(parameter, MASS, draws=DRAWS, rng=rng)
    marks = marks.reshape(posterior.n_groups, -1, marks.shape[-1])
    names = tuple(posterior.labels(parameter)[1]) or ("",)
    is_smooth = marks.shape[0] * marks.shape[1] <= MOST_DENSITIES
    if marks.shape[1] > MOST_INTERVALS:
        selection = f"the first {MOST_INTERVALS} of {marks.shape[1]} entries"
    return StatisticView(
        name=posterior.statistic,
        family=posterior.family,
        kind=POSTERIOR,
        shown_of=parameter,
        entries=names[:MOST_INTERVALS],
        keys=_keys(chosen, range(len(chosen.values))),
        n_cells=len(whole.values),
        intervals=[[_interval(entry) for entry in cell[:MOST_INTERVALS]] for cell in marks],
        rows=summarise(posterior, MASS, DRAWS, rng),
        facts=_facts(posterior),
        warnings=_warnings(posterior, statistic),
        selection=selection,
        densities=_densities(posterior, rng) if is_smooth else "",
        in_logs=spans_decades(posterior, parameter, marks),
        has_axes_apart=len(on_shared_axes(posterior, parameter)) > 1,
        about=about,
    )


def _column_view(whole: NoisyStatistic, statistic: NoisyStatistic, seed: int, about: About) -> StatisticView:
    """Show a histogram's column: bins in their order where cells are few, and quantiles."""
    chosen, selection = _spaced(whole, MOST_COLUMNS)
    posterior = replace(posterior_of(chosen), about=about)
    rng = np.random.default_rng(seed)
    columns = column_view(posterior, mass=MASS, draws=DRAWS, rng=rng)
    return StatisticView(
        name=posterior.statistic,
        family=posterior.family,
        kind=POSTERIOR,
        shown_of=QUANTILE,
        entries=ENTRIES,
        keys=_keys(chosen, range(len(chosen.values))),
        n_cells=len(whole.values),
        intervals=columns.intervals,
        rows=summarise(posterior, MASS, DRAWS, rng) if columns.svg else columns.rows,
        facts=_facts(posterior),
        warnings=(*_warnings(posterior, statistic), *columns.notes),
        selection=selection,
        densities=columns.svg,
        reading=READING if columns.svg else "",
        has_axes_apart=posterior.n_groups > 1,
        about=about,
    )


def _densities(posterior: Posterior, rng: np.random.Generator) -> str:
    """Return smooth densities of the first parameter; empty where draws alone are known."""
    figure = parameter_figure(posterior, posterior.parameters[0], mass=MASS, draws=DRAWS, rng=rng)
    return figure.svg if figure.is_smooth else ""


def _interval(marks: Any) -> DrawnInterval:
    low, lower_half, middle, upper_half, high = map(float, marks)
    return DrawnInterval(low=low, lower_half=lower_half, middle=middle, upper_half=upper_half, high=high)


def _noise_view(statistic: NoisyStatistic, why: str, about: About) -> StatisticView:
    """Show estimates of the first kind of quantity that is not n, with intervals of their noise."""
    plan = statistic.plan
    names = [quantity.name for quantity in plan.quantities]
    name = next((each for each in names if each != "n"), names[0])
    shown = [quantity for quantity in plan.quantities if quantity.name == name]
    left_out = len(shown) - MOST_INTERVALS
    shown = shown[:MOST_INTERVALS]
    chosen, selection = _spaced(statistic, max(1, MOST_INTERVALS // len(shown)))
    if left_out > 0:
        selection = f"the first {MOST_INTERVALS} of {MOST_INTERVALS + left_out} quantities"
    widths = [noise_half_width(plan, quantity) for quantity in shown]
    estimates = np.stack([chosen.estimates(quantity) for quantity in shown], axis=1)
    return StatisticView(
        name=plan.name,
        family=plan.family,
        kind=NOISE,
        shown_of=name,
        entries=tuple(_quantity_label(quantity) for quantity in shown),
        keys=_keys(chosen, range(len(chosen.values))),
        n_cells=len(statistic.values),
        intervals=[
            [
                _interval((value - wide, value, value, value, value + wide))
                for value, wide in zip(cell, widths, strict=True)
            ]
            for cell in estimates
        ],
        rows=chosen.table(),
        facts={"intervals": f"estimates, and at least {100 * MASS:g} % of the noise around them: {why}"},
        warnings=_saturation(statistic),
        selection=selection,
        about=about,
    )


def _entries_of(statistic: NoisyStatistic) -> int:
    """Return how many numbers the first parameter has in a cell, as far as quantities tell."""
    quantities = statistic.plan.quantities
    return max(1, sum(quantity.category is not None or bool(quantity.labels) for quantity in quantities))


def _chosen(statistic: NoisyStatistic, most: int) -> tuple[NoisyStatistic, str]:
    """Choose cells evenly by the rank of their plug-in posterior mean, where there are too many."""
    n_cells = len(statistic.values)
    if n_cells <= most:
        return statistic, ""
    try:
        posterior = posterior_of(statistic, method=PLUG_IN)
        means = posterior.mean(posterior.parameters[0]).reshape(n_cells, -1)[:, 0]
    except SufficeError:
        return _spaced(statistic, most)
    order = np.argsort(means, kind="stable")
    places = np.linspace(0, n_cells - 1, most).round().astype(np.int64)
    note = f"{most} of {n_cells:,} cells, evenly spaced by the rank of their plug-in estimate"
    return statistic.take(np.sort(order[places]).astype(np.int64)), note


def _spaced(statistic: NoisyStatistic, most: int) -> tuple[NoisyStatistic, str]:
    n_cells = len(statistic.values)
    if n_cells <= most:
        return statistic, ""
    cells = np.linspace(0, n_cells - 1, most).round().astype(np.int64)
    return statistic.take(cells), f"{most} of {n_cells:,} cells, evenly spaced in declared order"


def _keys(statistic: NoisyStatistic | ReleasedSample, cells: Iterable[int]) -> list[dict[str, str | int]]:
    return [{column: keys[cell] for column, keys in statistic.groups.items()} for cell in cells]


def _facts(posterior: Posterior) -> dict[str, str]:
    rows_of = {} if posterior.rows_of is None else {"parameters": posterior.rows_of}
    n_prior = "" if posterior.n_prior is None else str(posterior.n_prior)
    return {
        **({"of": posterior.estimand} if posterior.estimand else {}),
        "intervals": (
            f"{posterior.default_interval} posterior intervals of {100 * MASS:g} %, and middle halves"
            + (f", of {DRAWS:,} draws" if from_draws(posterior.distribution) else "")
        ),
        "method": posterior.method,
        "prior": str(posterior.prior),
        **({"prior of N": n_prior} if n_prior else {}),
        **rows_of,
    }


def _warnings(posterior: Posterior, statistic: NoisyStatistic) -> tuple[str, ...]:
    said = (
        posterior.conflict.lines(),
        clipping_warnings(posterior),
        prior_lines(posterior),
        default_lines(posterior),
    )
    return (*_saturation(statistic), *chain.from_iterable(said))


def _saturation(statistic: NoisyStatistic) -> tuple[str, ...]:
    if not statistic.n_saturated:
        return ()
    return (
        (
            f"{statistic.n_saturated} released values are saturated: there were more records than "
            "max_total_rows, and what rests on those values is too small"
        ),
    )


def _quantity_label(quantity: Any) -> str:
    labels = [f"{name}={key}" for name, key in quantity.labels if name != "table"]
    return ", ".join(filter(None, [quantity.category, quantity.component, *labels]))


MOST_CELLS, MOST_DRAWS = 60, 40
"""Of a picture: more cells are evenly spaced in declared order, and of more draws the first are shown."""


def sample_view(sample: ReleasedSample, about: About = NOTHING) -> StatisticView:
    """Return what a page shows of a sample."""
    n_cells, n_draws = sample.indices.shape
    cells = np.arange(n_cells)
    said = []
    if n_cells > MOST_CELLS:
        cells = np.linspace(0, n_cells - 1, MOST_CELLS).round().astype(np.int64)
        said.append(f"{MOST_CELLS} of {n_cells:,} cells, evenly spaced in declared order")
    if n_draws > MOST_DRAWS:
        said.append(f"the first {MOST_DRAWS} of {n_draws:,} draws of each")
    drawn, facts = _drawn(sample)
    return StatisticView(
        name=sample.plan.name,
        family=sample.plan.family,
        kind=SAMPLE,
        shown_of=sample.parameter,
        entries=("",),
        keys=_keys(sample, cells.tolist()),
        n_cells=n_cells,
        intervals=[],
        within=(float(drawn.within[0]), float(drawn.within[1])),
        is_tempered=isinstance(drawn, SamplePlan) and drawn.is_tempered,
        law=drawn.law if isinstance(drawn, QuantilePlan) else "",
        draws=sample.values[cells, :MOST_DRAWS].tolist(),
        rows=sample.take(cells).table(),
        facts={"draws": f"{n_draws} of each cell, by the exponential mechanism", **facts},
        selection=", ".join(said),
        about=about,
    )


def _drawn(sample: ReleasedSample) -> tuple[SamplePlan | QuantilePlan, dict[str, str]]:
    """Return what was drawn, and the facts of its law."""
    if isinstance(sample, ReleasedQuantile):
        quantile = sample.quantile
        lower, upper = map(format_number, quantile.within)
        return quantile, {
            "quantile": format_number(quantile.quantile),
            "bins": f"{quantile.n_points} of {lower} to {upper}",
            "rank scale": f"{float(quantile.rank_scale):.6g} records",
            "rank error": f"at most {math.ceil(sample.rank_bound()):,} records, with probability {LEVEL:g}",
        }
    drawn = sample.sample
    lower, upper = map(format_number, drawn.within)
    return drawn, {
        "grid": f"{drawn.grid} points of {lower} to {upper}",
        "prior": drawn.prior,
        "temperature": f"{float(drawn.temperature):.6g}",
    }

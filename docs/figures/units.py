"""Draw the figure of units: the mean of rows kept, by bound, beside the two means that people ask for.

Generates units with 1 to 40 rows whose outcome depends on how many they have, bounds them as a release does,
adds the noise of a spec, and draws the 95 % intervals of a Bernoulli statistic of rows kept, by `max_rows`,
and of one of units. It needs the extra ``plot``::

    python docs/figures/units.py
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

import suffice
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Counts = NDArray[np.int64]

OUT = Path(__file__).with_name("units.svg")
SEED = 2014
UNITS = 2000
MOST_ROWS = 40
BOUNDS = (1, 2, 3, 5, 8, 13, 20, 40)
END = len(BOUNDS) + 0.9
EPSILON = "1"
CAPTION = (
    "2,000 generated units of 1 to 40 rows; those with many are true more often. Epsilon 1. "
    "Bars: 95 % intervals; dots: what they are of."
)

INK, GREY, PAPER = "#22303c", "#8593a0", "#ffffff"
KEPT, OF_UNITS, OF_ROWS = "#4c8eb4", "#2f8f6b", "#d1495b"


def generate(rng: np.random.Generator) -> tuple[Counts, Counts]:
    """Return the rows and the true ones of each unit: a long tail, and more that is true in it."""
    rows = np.minimum(np.floor(rng.pareto(1.1, UNITS) + 1).astype(np.int64), MOST_ROWS)
    share = rng.beta(2.0 + 0.4 * rows, 12.0)
    return rows, rng.binomial(rows, share)


def interval(counts: Counts, max_rows: int, rows_of: str, rng: np.random.Generator) -> Floats:
    """Release counts of false and true under a bound, and return the 95 % interval of the probability."""
    spec = {
        "name": "units",
        "dataset": "simulated",
        "source": {"parquet": "none"},
        "privacy": {
            "epsilon": EPSILON,
            "neighboring": "add_or_remove_one",
            "unit": {"column": "unit", "max_rows": str(max_rows)},
        },
        "statistics": {"late": {"family": "bernoulli", "column": "late", "rows_of": rows_of}},
    }
    (late,) = suffice.plan(suffice.load_spec(spec)).statistics
    values = (counts + discrete_laplace(late.scale, counts.shape, rng)).astype(object)[None]
    noisy = NoisyStatistic(plan=late, values=values, groups={}, public_n=None, max_total_rows=10**6)
    return posterior_of(noisy).credible_interval("probability")[0]


def main() -> None:
    """Generate, release, draw and print."""
    rng = np.random.default_rng(SEED)
    rows, true = generate(rng)
    over_rows, over_units = true.sum() / rows.sum(), float(np.mean(true / rows))
    mpl.rcParams.update({"font.family": "DejaVu Sans", "svg.fonttype": "path", "svg.hashsalt": "suffice"})
    figure = Figure(figsize=(10, 4.9), layout=ConstrainedLayoutEngine(), facecolor=PAPER)
    axis = figure.subplots()
    means = {"mean over all rows": (over_rows, OF_ROWS), "mean over units": (over_units, OF_UNITS)}
    for words, (level, colour) in means.items():
        axis.hlines(level, -0.6, END, color=colour, linewidth=1.4, alpha=0.7, linestyle=(0, (5, 3)))
        axis.text(END + 0.1, level, f"{words}\n{level:.3f}", color=colour, fontsize=10, va="center")
    ticks = []
    for place, max_rows in enumerate(BOUNDS):
        kept = np.minimum(rows, max_rows)
        kept_true = rng.hypergeometric(true, rows - true, kept).sum()
        counts = np.array([kept.sum() - kept_true, kept_true])
        left_out = 1 - kept.sum() / rows.sum()
        ends = interval(counts, max_rows, "rows", rng)
        bar(axis, place, ends, KEPT, float(np.sum(true / rows * kept) / kept.sum()))
        ticks.append(f"{max_rows}\n{100 * left_out:.0f} %")
        print(f"max_rows {max_rows}: {ends.round(3)} of rows kept, {100 * left_out:.0f} % left out")
    taken = rng.binomial(1, true / rows).sum()
    ends = interval(np.array([UNITS - taken, taken]), 3, "units", rng)
    bar(axis, len(BOUNDS) + 0.4, ends, OF_UNITS, over_units)
    print(f"rows_of units: {ends.round(3)}; over units {over_units:.3f}, over rows {over_rows:.3f}")
    axis.set_xticks([*range(len(BOUNDS)), len(BOUNDS) + 0.4], [*ticks, "rows_of:\nunits"], color=INK)
    axis.set_xlim(-0.7, len(BOUNDS) + 2.8)
    axis.set_xlabel("max_rows, and the share of all rows that it leaves out", color=GREY, loc="left")
    axis.set_ylabel("probability", color=GREY)
    title = "Which mean it is depends on max_rows, unless units are asked for"
    axis.set_title(title, loc="left", fontsize=12, fontweight="bold", color=INK, pad=12)
    axis.tick_params(length=0, colors=GREY)
    axis.grid(axis="y", color="#e6eaee", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.spines[:].set_visible(False)
    figure.supxlabel(CAPTION, fontsize=9.2, color=GREY)
    figure.savefig(OUT, metadata={"Date": None, "Creator": None})


def bar(axis: Axes, place: float, ends: Floats, colour: str, of: float) -> None:
    """Draw an interval, and a dot at what it is of."""
    axis.vlines(place, *ends, color=colour, linewidth=6, alpha=0.85)
    axis.plot(place, of, "o", color=INK, markersize=5.5, markeredgecolor=PAPER)


if __name__ == "__main__":
    main()

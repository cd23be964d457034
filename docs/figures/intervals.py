"""Draw the figure of the README: intervals that ignore the noise beside intervals that know it.

Simulates many cells of a Bernoulli statistic with the noise of a spec, computes both posteriors of each cell,
draws the first forty, and prints how often the intervals of all cells hold the truth. It needs the extra
``plot``::

    python docs/figures/intervals.py
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

    from suffice.pipeline.ask.posterior.posterior import Posterior

    Floats = NDArray[np.float64]

OUT = Path(__file__).with_name("intervals.svg")
SEED = 2013
CELLS = 4000
SHOWN = 40
MASS = 0.95
MOST_RECORDS = 400
"""A cell's number of records is private, and uniform on 0..400."""
SPEC = {
    "name": "intervals",
    "dataset": "simulated",
    "source": {"parquet": "none"},
    "privacy": {"epsilon": "0.1", "neighboring": "add_or_remove_one", "unit": "row"},
    "groups": {"cell": {"range": ["1", str(CELLS)]}},
    "statistics": {"late": {"family": "bernoulli", "column": "late"}},
}
METHODS = {
    "plug-in": "takes the noisy counts for exact",
    "noise-aware": "accounts for the distribution of the noise",
}
CAPTION = (
    "40 simulated cells of up to 400 records, released at epsilon 0.1. "
    "Dots: the true probability, in order. Bars: 95 % intervals; red where they miss."
)

INK, GREY, PAPER = "#22303c", "#8593a0", "#ffffff"
HELD, MISSED = "#4c8eb4", "#d1495b"


def release(rng: np.random.Generator) -> tuple[NoisyStatistic, Floats]:
    """Simulate all cells: their noisy counts as a release states them, and the true probabilities."""
    (late,) = suffice.plan(suffice.load_spec(SPEC)).statistics
    truth = rng.beta(1.0, 1.0, CELLS)
    records = rng.integers(0, MOST_RECORDS, CELLS, endpoint=True)
    successes = rng.binomial(records, truth)
    counts = np.column_stack([records - successes, successes])
    values = (counts + discrete_laplace(late.scale, counts.shape, rng)).astype(object)
    noisy = NoisyStatistic(
        plan=late, values=values, groups={"cell": [*range(1, CELLS + 1)]}, public_n=None, max_total_rows=10**6
    )
    return noisy, truth


def holds(intervals: Floats, truth: Floats) -> NDArray[np.bool_]:
    """Tell which intervals hold the truth."""
    return (intervals[:, 0] <= truth) & (truth <= intervals[:, 1])


def posterior(noisy: NoisyStatistic, method: str) -> Posterior:
    """Return the posterior of the probability, a private N uniform on what it was drawn from."""
    n_prior = suffice.Uniform(0, MOST_RECORDS) if method == "noise-aware" else None
    return posterior_of(noisy, method=method, prior=suffice.Beta(1, 1), n_prior=n_prior)


def draw(axis: Axes, truth: Floats, intervals: Floats, *, title: str, subtitle: str) -> None:
    """Draw intervals in the order of the truths; those that miss are red, and joined to their truth."""
    cell = np.arange(len(truth))
    hit = holds(intervals, truth)
    nearest = np.clip(truth, intervals[:, 0], intervals[:, 1])
    axis.vlines(cell[~hit], nearest[~hit], truth[~hit], colors=MISSED, linewidth=1)
    for which, colour in ((hit, HELD), (~hit, MISSED)):
        lower, upper = intervals[which].T
        axis.vlines(cell[which], lower, upper, colors=colour, linewidth=4.5, alpha=0.85)
        axis.plot(
            cell[which],
            truth[which],
            "o",
            color=INK if colour == HELD else MISSED,
            markersize=4.6,
            markeredgecolor=PAPER,
            markeredgewidth=0.9,
        )
    axis.set_title(title, loc="left", fontsize=12, fontweight="bold", color=INK, pad=24)
    axis.text(0, 1.035, subtitle, transform=axis.transAxes, fontsize=10, color=GREY)
    axis.set_xlim(-1.2, len(truth) + 0.2)
    axis.set_ylim(-0.03, 1.03)
    axis.set_xticks([])
    axis.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"], color=GREY)
    axis.grid(axis="y", color="#e6eaee", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)


def main() -> None:
    """Simulate, draw and print."""
    rng = np.random.default_rng(SEED)
    noisy, truth = release(rng)
    mpl.rcParams.update({"font.family": "DejaVu Sans", "svg.fonttype": "path", "svg.hashsalt": "suffice"})
    figure = Figure(figsize=(10, 4.7), layout=ConstrainedLayoutEngine(wspace=0.05), facecolor=PAPER)
    axes = figure.subplots(1, len(METHODS), sharey=True)
    order = np.argsort(truth[:SHOWN])
    for axis, (method, words) in zip(axes, METHODS.items(), strict=True):
        intervals = posterior(noisy, method).credible_interval("probability", mass=MASS)
        held = holds(intervals, truth)
        n_missed = SHOWN - int(np.sum(held[:SHOWN]))
        draw(
            axis,
            truth[:SHOWN][order],
            intervals[:SHOWN][order],
            title=f"{method}: misses {n_missed} of {SHOWN} truths",
            subtitle=words,
        )
        print(
            f"{method}: {n_missed} of the {SHOWN} intervals shown miss the truth; "
            f"{100 * np.mean(held):.1f} % of all {CELLS:,} hold it"
        )
    axes[0].set_ylabel("probability", color=GREY)
    figure.supxlabel(CAPTION, fontsize=9.2, color=GREY)
    figure.savefig(OUT, metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()

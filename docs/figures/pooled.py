"""Draw the figure of `borrow-strength.md`: cells alone beside the same cells pooled, the truth marked.

Simulates cells of a Bernoulli statistic with the noise of a spec, computes both posteriors, and draws forty
of the cells. It needs the extra ``plot``::

    python docs/figures/pooled.py
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

import suffice
from suffice.pipeline.ask.borrowing.pooled_posterior import pooled_posterior
from suffice.pipeline.ask.inference.posterior_terms import PosteriorTerms
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from suffice.pipeline.ask.posterior.posterior import Posterior

    Floats = NDArray[np.float64]

OUT = Path(__file__).with_name("pooled.svg")
SEED = 33
CELLS, SHOWN, MASS = 400, 40, 0.95
SPEC = {
    "name": "pooled",
    "dataset": "simulated",
    "source": {"parquet": "none"},
    "privacy": {"epsilon": "0.1", "neighboring": "add_or_remove_one", "unit": "row"},
    "groups": {"county": {"range": ["1", str(CELLS)]}},
    "statistics": {"ill": {"family": "bernoulli", "column": "ill"}},
}
INK, GREY, HELD, MISSED = "#22303c", "#8593a0", "#4c8eb4", "#d1495b"


def release(rng: np.random.Generator) -> tuple[NoisyStatistic, Floats]:
    """Simulate all cells: their noisy counts as a release states them, and the true probabilities."""
    (ill,) = suffice.plan(suffice.load_spec(SPEC)).statistics
    truth = rng.beta(4.0, 36.0, CELLS)
    records = np.rint(np.exp(rng.normal(np.log(90.0), 0.8, CELLS))).astype(np.int64)
    successes = rng.binomial(records, truth)
    counts = np.column_stack([records - successes, successes])
    values = (counts + discrete_laplace(ill.scale, counts.shape, rng)).astype(object)
    groups = {"county": [*range(1, CELLS + 1)]}
    noisy = NoisyStatistic(plan=ill, values=values, groups=groups, public_n=None, max_total_rows=10**6)
    return noisy, truth


def draw(axes: Axes, posterior: Posterior, truth: Floats, title: str, cells: int = CELLS) -> None:
    """Draw intervals and truths of the first cells, in the order of the truth."""
    ends, mean = posterior.credible_interval(mass=MASS), posterior.mean()
    held = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    order = np.argsort(truth[:SHOWN])
    places = np.arange(SHOWN)
    colours = np.where(held[order], HELD, MISSED)
    axes.hlines(places, *ends[order].T, colors=colours.tolist(), linewidth=2.0)
    axes.plot(mean[order], places, "|", color=INK, markersize=5.0)
    axes.plot(truth[order], places, "o", color=INK, markersize=3.2)
    error = float(np.sqrt(np.mean((mean - truth) ** 2)))
    width = float(np.mean(ends[:, 1] - ends[:, 0]))
    axes.set_title(title, loc="left", color=INK, fontsize=11, fontweight="bold", pad=18.0)
    axes.text(
        0.0, 1.005, f"of {cells} cells: width {width:.2f}, error {error:.3f}, {100 * held.mean():.0f} % hold",
        transform=axes.transAxes, color=GREY, fontsize=8.5, va="bottom",
    )  # fmt: skip
    axes.set_yticks([])
    axes.set_xlabel("probability", color=INK)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    print(f"{title}: width {width:.3f}, error {error:.4f}, covered {held.mean():.3f}")


def main() -> None:
    """Draw both panels."""
    mpl.rcParams["svg.hashsalt"] = "pooled"
    noisy, truth = release(np.random.default_rng(SEED))
    alone = posterior_of(noisy)
    together = pooled_posterior(noisy, PosteriorTerms(), "contaminated", lambda: alone)
    figure = Figure(figsize=(9.0, 5.6), layout=ConstrainedLayoutEngine(rect=(0.0, 0.035, 1.0, 0.965)))
    first, second = figure.subplots(1, 2, sharex=True)
    draw(first, alone, truth, "each cell alone")
    draw(second, together, truth, "pooled: one population")
    first.set_xlim(-0.01, 1.0)
    figure.text(
        0.005, 0.005,
        "40 simulated counties of about 90 records, epsilon 0.1. Dots: the truth, in order. "
        "Bars: 95 % intervals, red where they miss; ticks: means.",
        color=GREY, fontsize=8.5,
    )  # fmt: skip
    figure.savefig(OUT, metadata={"Date": None})


if __name__ == "__main__":
    main()

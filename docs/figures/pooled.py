"""Draw the figure of `borrow-strength.md`: cells alone beside the same cells pooled, the truth marked.

Simulates cells of a Bernoulli statistic with the noise of a spec, computes both posteriors, draws forty of
the cells, and counts what the intervals of forty more releases hold. It needs the extra ``plot``::

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

    from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
    from suffice.pipeline.ask.posterior.posterior import Posterior

    Floats = NDArray[np.float64]

OUT = Path(__file__).with_name("pooled.svg")
SEED = 33
CELLS, SHOWN, MASS = 400, 40, 0.95
ENDS = (0.025, 0.975)
RELEASES = 20
LABELS = ("alone", "pooled,\nplug-in", "pooled,\nintegrated")
SPEC = {
    "name": "pooled",
    "dataset": "simulated",
    "source": {"parquet": "none"},
    "privacy": {"epsilon": "0.1", "neighboring": "add_or_remove_one", "unit": "row"},
    "groups": {"county": {"range": ["1", str(CELLS)]}},
    "statistics": {"ill": {"family": "bernoulli", "column": "ill"}},
}
INK, GREY, HELD, MISSED = "#22303c", "#8593a0", "#4c8eb4", "#d1495b"


def release(rng: np.random.Generator, *, outlier: bool) -> tuple[NoisyStatistic, Floats]:
    """Simulate cells: their noisy counts as a release states them, and the true probabilities.

    The truths are not of the model: a beta law, where it has a normal one of log odds with 5 % outliers.
    """
    (ill,) = suffice.plan(suffice.load_spec(SPEC)).statistics
    truth = rng.beta(4.0, 36.0, CELLS)
    records = np.rint(np.exp(rng.normal(np.log(90.0), 0.8, CELLS))).astype(np.int64)
    if outlier:
        truth[0], records[0] = 0.6, 400
    successes = rng.binomial(records, truth)
    counts = np.column_stack([records - successes, successes])
    values = (counts + discrete_laplace(ill.scale, counts.shape, rng)).astype(object)
    groups = {"county": [*range(1, CELLS + 1)]}
    return NoisyStatistic(plan=ill, values=values, groups=groups, public_n=None, max_total_rows=10**6), truth


def together(noisy: NoisyStatistic) -> PooledPosterior:
    """Return the pooled posterior."""
    return pooled_posterior(noisy, PosteriorTerms(), "contaminated", lambda: posterior_of(noisy))


def held(ends: Floats, truth: Floats) -> NDArray[np.bool_]:
    """Tell which intervals hold the truth."""
    return (ends[:, 0] <= truth) & (truth <= ends[:, 1])


def draw(axes: Axes, posterior: Posterior, truth: Floats, title: str, cells: int = CELLS) -> None:
    """Draw intervals and truths of the first cells, in the order of the truth."""
    ends, mean = posterior.credible_interval(mass=MASS), posterior.mean()
    holds = held(ends, truth)
    order = np.argsort(truth[:SHOWN])
    places = np.arange(SHOWN)
    colours = np.where(holds[order], HELD, MISSED)
    axes.hlines(places, *ends[order].T, colors=colours.tolist(), linewidth=2.0)
    axes.plot(mean[order], places, "|", color=INK, markersize=5.0)
    axes.plot(truth[order], places, "o", color=INK, markersize=3.2)
    error = float(np.sqrt(np.mean((mean - truth) ** 2)))
    width = float(np.mean(ends[:, 1] - ends[:, 0]))
    headed(
        axes,
        title,
        f"of {cells} cells: width {width:.2f}, error {error:.3f}, {100 * holds.mean():.0f} % hold",
    )
    axes.set_yticks([])
    axes.set_xlabel("probability", color=INK)
    print(f"{title}: width {width:.3f}, error {error:.4f}, covered {holds.mean():.3f}")


def headed(axes: Axes, title: str, below: str) -> None:
    """Write a panel's title, and a line below it."""
    axes.set_title(title, loc="left", color=INK, fontsize=11, fontweight="bold", pad=18.0)
    axes.text(0.0, 1.005, below, transform=axes.transAxes, color=GREY, fontsize=8.5, va="bottom")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def coverages(rng: np.random.Generator) -> dict[str, list[float]]:
    """Return the share of intervals that hold the truth in each of many releases, by method."""
    shares: dict[str, list[float]] = {"alone": [], "plug-in": [], "pooled": []}
    for _ in range(RELEASES):
        noisy, truth = release(rng, outlier=False)
        (pool,) = together(noisy).distribution.pools  # type: ignore[attr-defined]
        for name, posterior in (("plug-in", pool.plug_in()), ("pooled", pool)):
            shares[name].append(float(held(posterior.quantiles("", ENDS, 0, rng), truth).mean()))
        shares["alone"].append(float(held(posterior_of(noisy).credible_interval(mass=MASS), truth).mean()))
    return shares


def draw_coverages(axes: Axes, shares: dict[str, list[float]]) -> None:
    """Draw a dot for each release, releases with equal shares side by side, and the mean of each method."""
    axes.axhline(MASS, color=GREY, linewidth=1.0, zorder=0)
    for place, (name, each) in enumerate(shares.items()):
        steps, number = np.unique(each, return_counts=True)
        across = np.concatenate([np.arange(n) - (n - 1) / 2.0 for n in number]) / 16.0
        colour = MISSED if name == "plug-in" else HELD
        axes.plot(place + across, np.repeat(steps, number), "o", color=colour, markersize=3.2, alpha=0.75)
        axes.hlines(np.mean(each), place - 0.38, place + 0.38, color=INK, linewidth=2.0)
        axes.text(place, 1.012, f"{100 * np.mean(each):.0f} %", ha="center", color=INK, fontsize=9)
        print(
            f"{name}: covers {np.mean(each):.3f}, worst tenth {np.mean(np.sort(each)[: RELEASES // 10]):.3f}"
        )
    axes.set_xticks(range(len(shares)), LABELS)
    axes.set_ylim(top=1.03)
    headed(axes, "what 95 % intervals hold", f"in {RELEASES} such releases, a dot each")
    axes.spines["left"].set_visible(True)


def main() -> None:
    """Draw the three panels."""
    mpl.rcParams["svg.hashsalt"] = "pooled"
    rng = np.random.default_rng(SEED)
    noisy, truth = release(rng, outlier=True)
    figure = Figure(figsize=(12.0, 5.4), layout=ConstrainedLayoutEngine(rect=(0.0, 0.06, 1.0, 0.94)))
    first, second, third = figure.subplots(1, 3, width_ratios=[1.0, 1.0, 0.9])
    draw(first, posterior_of(noisy), truth, "each county alone")
    draw(second, together(noisy), truth, "the same counts, pooled")
    for axes in (first, second):
        axes.set_xlim(-0.01, 1.0)
    first.set_ylabel(f"{SHOWN} of {CELLS} counties, by the truth", color=INK)
    draw_coverages(third, coverages(rng))
    figure.text(
        0.005, 0.005,
        "40 of 400 simulated counties of about 90 records, noise for epsilon 0.1. Dots: the truth, in order, "
        "which is not of the model; the topmost is an outlier, which stays itself.\nBars: 95 % intervals, "
        "red where they miss; ticks: means. Plug-in: the population's location, spread and slope fixed at "
        "their estimates.",
        color=GREY, fontsize=8.5,
    )  # fmt: skip
    figure.savefig(OUT, metadata={"Date": None})


if __name__ == "__main__":
    main()

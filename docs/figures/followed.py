"""Draw the figure of `follow-a-series.md`: days alone beside the same days walked, the truth marked, a jump.

Simulates the days of a Bernoulli statistic with the noise of a spec, and computes both posteriors. It needs
the extra ``plot``::

    python docs/figures/followed.py
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

OUT = Path(__file__).with_name("followed.svg")
SEED = 33
DAYS, JUMP, RECORDS, MASS = 120, 70, 120, 0.95
SPEC = {
    "name": "followed",
    "dataset": "simulated",
    "source": {"parquet": "none"},
    "privacy": {"epsilon": "0.2", "neighboring": "add_or_remove_one", "unit": "row"},
    "groups": {"day": {"range": ["1", str(DAYS)]}},
    "statistics": {"late": {"family": "bernoulli", "column": "late"}},
}
INK, GREY, HELD, MISSED = "#22303c", "#8593a0", "#4c8eb4", "#d1495b"


def release(rng: np.random.Generator) -> tuple[NoisyStatistic, Floats]:
    """Simulate all days: their noisy counts as a release states them, and the true probabilities."""
    (late,) = suffice.plan(suffice.load_spec(SPEC)).statistics
    logit = -1.2 + np.cumsum(rng.normal(0.0, 0.05, DAYS)) + 1.0 * (np.arange(DAYS) >= JUMP)
    truth = 1.0 / (1.0 + np.exp(-logit))
    successes = rng.binomial(RECORDS, truth)
    counts = np.column_stack([RECORDS - successes, successes])
    values = (counts + discrete_laplace(late.scale, counts.shape, rng)).astype(object)
    groups = {"day": [*range(1, DAYS + 1)]}
    noisy = NoisyStatistic(plan=late, values=values, groups=groups, public_n=None, max_total_rows=10**6)
    return noisy, truth


def draw(axes: Axes, posterior: Posterior, truth: Floats, title: str) -> None:
    """Draw intervals, means and the truth by day."""
    ends, mean = posterior.credible_interval(mass=MASS), posterior.mean()
    held = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    days = np.arange(1, DAYS + 1)
    axes.vlines(days, *ends.T, colors=np.where(held, HELD, MISSED).tolist(), linewidth=1.6)
    axes.plot(days, mean, "_", color=INK, markersize=3.5)
    axes.step(days, truth, where="mid", color=INK, linewidth=1.3)
    error = float(np.sqrt(np.mean((mean - truth) ** 2)))
    width = float(np.mean(ends[:, 1] - ends[:, 0]))
    said = f"{title}: width {width:.2f}, error {error:.3f}, {100 * held.mean():.0f} % hold"
    axes.set_title(said, loc="left", color=INK, fontsize=10.5, fontweight="bold")
    axes.set_ylabel("probability", color=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    print(said)


def main() -> None:
    """Draw both panels."""
    mpl.rcParams["svg.hashsalt"] = "followed"
    noisy, truth = release(np.random.default_rng(SEED))
    alone = posterior_of(noisy)
    walked = pooled_posterior(noisy, PosteriorTerms(), suffice.Pooling(over="day"), lambda: alone)
    figure = Figure(figsize=(9.0, 5.6), layout=ConstrainedLayoutEngine(rect=(0.0, 0.035, 1.0, 0.965)))
    first, second = figure.subplots(2, 1, sharex=True, sharey=True)
    draw(first, alone, truth, "each day alone")
    draw(second, walked, truth, "a walk with jumps")
    second.set_xlabel("day", color=INK)
    first.set_ylim(0.0, 1.0)
    print(walked.rows_of)
    figure.text(
        0.005, 0.005,
        f"{DAYS} simulated days of {RECORDS} records, epsilon 0.2. Line: the truth, with a jump on day "
        f"{JUMP + 1}. Bars: 95 % intervals, red where they miss; ticks: means.",
        color=GREY, fontsize=8.5,
    )  # fmt: skip
    figure.savefig(OUT, metadata={"Date": None})


if __name__ == "__main__":
    main()

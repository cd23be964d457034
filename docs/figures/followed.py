"""Draw the figures of `follow-a-series.md`: days alone and walked, months walked without a season and with.

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

SEED = 33
MONTHS, DAYS, JUMP, RECORDS, MASS = 48, 120, 70, 120, 0.95
SPEC = {
    "name": "followed",
    "dataset": "simulated",
    "source": {"parquet": "none"},
    "privacy": {"epsilon": "0.2", "neighboring": "add_or_remove_one", "unit": "row"},
    "groups": {"day": {"range": ["1", str(DAYS)]}},
    "statistics": {"late": {"family": "bernoulli", "column": "late"}},
}
INK, GREY, HELD, MISSED = "#22303c", "#8593a0", "#4c8eb4", "#d1495b"


def days(rng: np.random.Generator) -> Floats:
    """Draw logits that walk, and jump once."""
    return np.asarray(-1.2 + np.cumsum(rng.normal(0.0, 0.05, DAYS)) + 1.0 * (np.arange(DAYS) >= JUMP))


def months(rng: np.random.Generator) -> Floats:
    """Draw logits that walk, and have a season of 12."""
    effects = 0.55 * np.sin(2.0 * np.pi * np.arange(12) / 12.0) + rng.normal(0.0, 0.15, 12)
    walk = np.cumsum(rng.normal(0.0, 0.05, MONTHS))
    return np.asarray(-1.2 + walk + (effects - np.mean(effects))[np.arange(MONTHS) % 12])


def release(logit: Floats, rng: np.random.Generator) -> tuple[NoisyStatistic, Floats]:
    """Simulate all times: their noisy counts as a release states them, and the true probabilities."""
    (late,) = suffice.plan(suffice.load_spec(SPEC)).statistics
    truth = 1.0 / (1.0 + np.exp(-logit))
    successes = rng.binomial(RECORDS, truth)
    counts = np.column_stack([RECORDS - successes, successes])
    values = (counts + discrete_laplace(late.scale, counts.shape, rng)).astype(object)
    groups = {"day": [*range(1, len(logit) + 1)]}
    noisy = NoisyStatistic(plan=late, values=values, groups=groups, public_n=None, max_total_rows=10**6)
    return noisy, truth


def draw(axes: Axes, posterior: Posterior, truth: Floats, title: str) -> None:
    """Draw intervals, means and the truth by day."""
    ends, mean = posterior.credible_interval(mass=MASS), posterior.mean()
    held = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    times = np.arange(1, len(truth) + 1)
    axes.vlines(times, *ends.T, colors=np.where(held, HELD, MISSED).tolist(), linewidth=1.6)
    axes.plot(times, mean, "_", color=INK, markersize=3.5)
    axes.step(times, truth, where="mid", color=INK, linewidth=1.3)
    error = float(np.sqrt(np.mean((mean - truth) ** 2)))
    width = float(np.mean(ends[:, 1] - ends[:, 0]))
    said = f"{title}: width {width:.2f}, error {error:.3f}, {100 * held.mean():.0f} % hold"
    axes.set_title(said, loc="left", color=INK, fontsize=10.5, fontweight="bold")
    axes.set_ylabel("probability", color=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    print(said)


def drawn(
    name: str, unit: str, posteriors: dict[str, Posterior], truth: Floats, said: str, *, highest: float
) -> None:
    """Draw a figure of one panel for each posterior."""
    mpl.rcParams["svg.hashsalt"] = name
    figure = Figure(figsize=(9.0, 5.6), layout=ConstrainedLayoutEngine(rect=(0.0, 0.035, 1.0, 0.965)))
    axes = figure.subplots(len(posteriors), 1, sharex=True, sharey=True)
    for each, (title, posterior) in zip(axes, posteriors.items(), strict=True):
        draw(each, posterior, truth, title)
    axes[-1].set_xlabel(unit, color=INK)
    axes[0].set_ylim(0.0, highest)
    figure.text(
        0.005, 0.005,
        f"{len(truth)} simulated {unit}s of {RECORDS} records, epsilon 0.2. Line: the truth, {said}. Bars: "
        "95 % intervals, red where they miss; ticks: means.",
        color=GREY, fontsize=8.5,
    )  # fmt: skip
    figure.savefig(Path(__file__).with_name(f"{name}.svg"), metadata={"Date": None})


def main() -> None:
    """Draw both figures."""
    rng = np.random.default_rng(SEED)
    noisy, truth = release(days(rng), rng)
    alone = posterior_of(noisy)
    walked = pooled_posterior(noisy, PosteriorTerms(), suffice.Pooling(over="day"), lambda: alone)
    both: dict[str, Posterior] = {"each day alone": alone, "a walk with jumps": walked}
    drawn("followed", "day", both, truth, f"with a jump on day {JUMP + 1}", highest=1.0)
    rng = np.random.default_rng(SEED)
    seasonal, truth = release(months(rng), rng)
    asked = {"a walk": "day", "a walk and a season of 12": "day season=12"}
    answers: dict[str, Posterior] = {
        title: pooled_posterior(
            seasonal, PosteriorTerms(), suffice.Pooling(over=over), lambda: posterior_of(seasonal)
        )
        for title, over in asked.items()
    }
    drawn("seasonal", "month", answers, truth, "with a season", highest=0.5)


if __name__ == "__main__":
    main()

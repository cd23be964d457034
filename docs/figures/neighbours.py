"""Draw the figure of `borrow-from-neighbours.md`: a map of cells, each alone, and with neighbours.

Simulates cells of a Bernoulli statistic on a square map with the noise of a spec, and computes both. It needs
the extra ``plot``::

    python docs/figures/neighbours.py
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import matplotlib.patches
import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

import suffice
from suffice.pipeline.ask.borrowing.pooled_posterior import pooled_posterior
from suffice.pipeline.ask.borrowing.pooling import Pooling
from suffice.pipeline.ask.inference.posterior_terms import PosteriorTerms
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

OUT = Path(__file__).with_name("neighbours.svg")
SEED, SIDE, RECORDS = 33, 12, 90.0
OUTLYING = 3 * SIDE + 8
SPEC = {
    "name": "neighbours",
    "dataset": "simulated",
    "source": {"parquet": "none"},
    "privacy": {"epsilon": "0.2", "neighboring": "add_or_remove_one", "unit": "row"},
    "groups": {"county": {"range": ["1", str(SIDE**2)]}},
    "statistics": {"ill": {"family": "bernoulli", "column": "ill"}},
}
INK, GREY, RED = "#22303c", "#8593a0", "#d1495b"


def truth() -> Floats:
    """Return probabilities: smooth over the map, but for one county."""
    row, column = np.divmod(np.arange(SIDE**2), SIDE)
    logit = -1.9 + 0.7 * np.sin(row / 3.0) + 0.6 * np.cos(column / 2.5 + row / 6.0)
    logit[OUTLYING] = 1.2
    return np.asarray(1.0 / (1.0 + np.exp(-logit)))


def release(probability: Floats, rng: np.random.Generator) -> NoisyStatistic:
    """Simulate all cells' noisy counts as a release states them."""
    (ill,) = suffice.plan(suffice.load_spec(SPEC)).statistics
    records = np.rint(np.exp(rng.normal(np.log(RECORDS), 0.6, SIDE**2))).astype(np.int64)
    successes = rng.binomial(records, probability)
    counts = np.column_stack([records - successes, successes])
    values = (counts + discrete_laplace(ill.scale, counts.shape, rng)).astype(object)
    groups = {"county": [*range(1, SIDE**2 + 1)]}
    return NoisyStatistic(plan=ill, values=values, groups=groups, public_n=None, max_total_rows=10**6)


def pairs() -> list[tuple[int, int]]:
    """Return the counties that share an edge."""
    keys = np.arange(1, SIDE**2 + 1).reshape(SIDE, SIDE)
    beside = [*zip(keys[:, :-1].ravel().tolist(), keys[:, 1:].ravel().tolist(), strict=True)]
    return [*beside, *zip(keys[:-1].ravel().tolist(), keys[1:].ravel().tolist(), strict=True)]


def main() -> None:
    """Draw the three maps."""
    mpl.rcParams["svg.hashsalt"] = "neighbours"
    probability = truth()
    noisy = release(probability, np.random.default_rng(SEED))
    alone = posterior_of(noisy)
    together = pooled_posterior(noisy, PosteriorTerms(), Pooling(adjacency=pairs()), lambda: alone)
    figure = Figure(figsize=(9.0, 3.7), layout=ConstrainedLayoutEngine(rect=(0.0, 0.09, 1.0, 0.91)))
    panels = figure.subplots(1, 3)
    maps = {"the truth": None, "each cell alone": alone, "with its neighbours": together}
    picture = None
    for axes, (title, posterior) in zip(panels, maps.items(), strict=True):
        mean = probability if posterior is None else posterior.mean()
        picture = axes.imshow(mean.reshape(SIDE, SIDE), cmap="YlGnBu", vmin=0.0, vmax=0.6)
        axes.set_title(title, loc="left", color=INK, fontsize=11, fontweight="bold", pad=18.0)
        said = f"{SIDE**2} counties of about {RECORDS:.0f} records"
        if posterior is not None:
            ends = posterior.credible_interval(mass=0.95)
            held = np.mean((ends[:, 0] <= probability) & (probability <= ends[:, 1]))
            error = float(np.sqrt(np.mean((mean - probability) ** 2)))
            said = f"error {error:.3f}, width {np.mean(ends[:, 1] - ends[:, 0]):.2f}, {100 * held:.0f} % hold"
            print(f"{title}: {said}")
        axes.text(0.0, 1.01, said, transform=axes.transAxes, color=GREY, fontsize=8.5, va="bottom")
        row, column = divmod(OUTLYING, SIDE)
        axes.add_patch(
            mpl.patches.Rectangle(
                (column - 0.5, row - 0.5), 1.0, 1.0, fill=False, edgecolor=RED, linewidth=1.6
            )
        )
        axes.set_xticks([])
        axes.set_yticks([])
    assert picture is not None  # noqa: S101 - there are three panels
    figure.colorbar(picture, ax=panels, shrink=0.85, label="probability")
    figure.text(
        0.005, 0.02,
        "Posterior means of a simulated release, epsilon 0.2. Red: one county unlike all about it. "
        "Error: root mean square.",
        color=GREY, fontsize=8.5,
    )  # fmt: skip
    figure.savefig(OUT, metadata={"Date": None})
    print(together.conflict.lines(), together.pools[0].spread, together.pools[0].of_map)


if __name__ == "__main__":
    main()

"""Draw the figure of `use-covariates.md`: cells alone, pooled, and pooled with public covariates.

Simulates counties whose share of ill records depends on income and state, with the noise of a spec, and draws
the forty smallest. It needs the extras ``plot`` and ``covariates``::

    python docs/figures/covariates.py
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

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

HERE = Path(__file__).parent
SEED, CELLS = 9, 200
SPEC = {
    "name": "covariates",
    "dataset": "simulated",
    "source": {"parquet": "none"},
    "privacy": {"epsilon": "0.2", "neighboring": "add_or_remove_one", "unit": "row"},
    "groups": {"county": {"range": ["1", str(CELLS)]}},
    "statistics": {"ill": {"family": "bernoulli", "column": "ill"}},
}


def main() -> None:
    """Draw three panels."""
    mpl.rcParams["svg.hashsalt"] = "covariates"
    pooled: dict[str, Any] = runpy.run_path(str(HERE / "pooled.py"))
    rng = np.random.default_rng(SEED)
    (ill,) = suffice.plan(suffice.load_spec(SPEC)).statistics
    records = np.sort(np.rint(np.exp(rng.normal(np.log(90.0), 0.8, CELLS))).astype(np.int64))
    income = rng.normal(42.0, 9.0, CELLS)
    state = np.array(["A", "B", "C"])[rng.integers(0, 3, CELLS)]
    logit = -1.8 - 0.6 * (income - 42.0) / 9.0 + 0.7 * (state == "B") + rng.normal(0.0, 0.2, CELLS)
    truth = 1.0 / (1.0 + np.exp(-logit))
    successes = rng.binomial(records, truth)
    counts = np.column_stack([records - successes, successes])
    values = (counts + discrete_laplace(ill.scale, counts.shape, rng)).astype(object)
    keys = [*range(1, CELLS + 1)]
    noisy = NoisyStatistic(
        plan=ill, values=values, groups={"county": keys}, public_n=None, max_total_rows=10**6
    )
    table = {"county": keys, "income": income, "state": state}
    asked = suffice.Pooling(covariates=table, formula="~ income + C(state)")
    alone = posterior_of(noisy)
    answers = {
        "each cell alone": alone,
        "pooled": pooled_posterior(noisy, PosteriorTerms(), "contaminated", lambda: alone),
        "pooled, with income and state": pooled_posterior(noisy, PosteriorTerms(), asked, lambda: alone),
    }
    figure = Figure(figsize=(11.0, 5.6), layout=ConstrainedLayoutEngine(rect=(0.0, 0.035, 1.0, 0.965)))
    panels = figure.subplots(1, 3, sharex=True)
    for panel, (title, answer) in zip(panels, answers.items(), strict=True):
        pooled["draw"](panel, answer, truth, title, CELLS)
    panels[0].set_xlim(-0.01, 1.0)
    figure.text(
        0.005, 0.005,
        "The 40 smallest of 200 simulated counties, epsilon 0.2. Dots: the truth, in order. "
        "Bars: 95 % intervals, red where they miss; ticks: means.",
        color=pooled["GREY"], fontsize=8.5,
    )  # fmt: skip
    figure.savefig(HERE / "covariates.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()

"""Foulds Table 1, Theorems 4 and 5, Remark 1: how many more records an estimate needs than the mean.

Asymptotic relative efficiency here is N E(estimate - p)^2 / (p (1 - p)): 2 for a draw of the posterior,
with or without Laplace noise on the counts; 1 for the mean; 1 + T for a draw of the posterior at
temperature T.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from studies.mechanisms.posterior_sampling import (
    laplace_beta_bernoulli,
    range_of_change,
    sample_beta_bernoulli,
)
from studies.plotting import draw_limit, draw_line, logarithmic, picture
from studies.result import Claim, Result, Row, Verdict, conclude, near
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from studies.result import Size
    from suffice.typing import Floats

TRUTH = 0.3
EPSILON = 1.0
SHOWN = (100, 1000, 10_000, 100_000)
CUTS = (0.2, 0.05)
LEFT = 0.01
"""What 100,000 records may leave to a limit, of it."""
CONCLUSION = (
    "Reproduced: 2, 1 + T and 1. What the paper calls asymptotic posteriors are laws of a draw about the "
    "truth; the posterior's own variance is I^-1 / N, and T times that at temperature T."
)


def temperature(least: float) -> float:
    """Return T = 2 log((1 - a0) / a0) / epsilon."""
    return range_of_change(least) / EPSILON


def estimates(records: int, repeats: int, rng: np.random.Generator) -> Iterator[tuple[str, Floats]]:
    """Yield every estimate of p from each of so many data sets, by its name."""
    successes = rng.binomial(records, TRUTH, repeats)
    failures = records - successes
    yield "non-private draw", rng.beta(successes + 1.0, failures + 1.0)
    yield "Laplace draw", laplace_beta_bernoulli(successes, failures, epsilon=EPSILON, rng=rng).draws[0]
    noise = discrete_laplace(2.0 / EPSILON, (2, repeats), rng)
    ones, zeros = np.maximum(successes + noise[0], 0), np.maximum(failures + noise[1], 0)
    yield "Laplace mean", (ones + 1.0) / (ones + zeros + 2.0)
    for least in CUTS:
        drawn = sample_beta_bernoulli(successes, failures, epsilon=EPSILON, least=least, rng=rng)
        yield f"OPS draw, a0 = {least:g}", drawn.draws[0]


def _label(name: str) -> str:
    return name.replace("a0", "$a_0$")


def efficiency(values: Floats, records: int) -> tuple[float, float]:
    """Return N E(estimate - p)^2 / (p (1 - p)) and its standard error."""
    squares = records * (values - TRUTH) ** 2 / (TRUTH * (1.0 - TRUTH))
    return float(squares.mean()), float(squares.std() / np.sqrt(len(squares)))


def scaled_variance(records: int, hot: float) -> float:
    """Return N over p (1 - p) times the variance of the posterior at a temperature, of N p successes."""
    law = stats.beta(1.0 + TRUTH * records / hot, 1.0 + (1.0 - TRUTH) * records / hot)
    return records * float(law.var()) / (TRUTH * (1.0 - TRUTH))


def run(out: Path, seed: int, size: Size) -> Result:
    """Simulate data sets of 100 to 100,000 records."""
    repeats = size.pick(smallest=4_000, usual=200_000, full=1_000_000)
    rng = np.random.default_rng(seed)
    by_records = {
        records: {name: efficiency(values, records) for name, values in estimates(records, repeats, rng)}
        for records in SHOWN
    }
    limits = {
        "non-private draw": ("2", 2.0),
        "Laplace draw": ("2", 2.0),
        "Laplace mean": ("1", 1.0),
        **{f"OPS draw, a0 = {least:g}": ("1 + T", 1.0 + temperature(least)) for least in CUTS},
    }
    last = by_records[SHOWN[-1]]
    rows = [
        Row(
            quantity=f"ARE of {name}",
            ours=last[name][0],
            error=last[name][1],
            paper=paper,
            claim=near(limit, LEFT * limit),
            digits=3,
        )
        for name, (paper, limit) in limits.items()
    ]
    rows += [
        Row(
            quantity=f"T, a0 = {least:g}, epsilon {epsilon:g}",
            ours=range_of_change(least) / epsilon,
            paper=printed,
            digits=7,
            note="cut off, not rounded, in the paper" if printed else "",
            claim=Claim(low=2.7, high=2.8) if printed else None,
            verdict=Verdict.ADDED,
        )
        for least, epsilon, printed in ((0.2, 1.0, "2.7"), (0.05, 0.1, ""))
    ]
    rows += [
        Row(quantity=f"limit 1 + T, a0 = {least:g}", ours=1.0 + temperature(least), digits=5)
        for least in CUTS
    ]
    untempered, tempered = (scaled_variance(SHOWN[-1], hot) for hot in (1.0, temperature(CUTS[0])))
    rows += [
        Row(
            quantity=quantity,
            ours=value,
            paper=paper,
            claim=near(limit, LEFT * limit, Verdict.WRONG),
            note=note,
            digits=4,
        )
        for quantity, value, paper, limit, note in (
            (
                "Theorem 4: N times the posterior's variance over p (1 - p)",
                untempered,
                "2",
                2.0,
                "2 is the variance of a draw about the truth",
            ),
            (
                "Theorem 5: the same at temperature T, a0 = 0.2",
                tempered,
                "1 + T",
                1.0 + temperature(CUTS[0]),
                "T; 1 + T is the variance of a draw about the truth",
            ),
            (
                "Section 3.3: variance at temperature T over the posterior's, a0 = 0.2",
                tempered / untempered,
                "(1 + T) / 2",
                (1.0 + temperature(CUTS[0])) / 2.0,
                "T; (1 + T) / 2 is the ratio of two draws' variances",
            ),
        )
    ]
    path = out / "relative_efficiency.png"
    with picture(
        path,
        title="A tempered draw never catches up",
        subtitle=rf"Relative efficiency over $N$, $p$ = {TRUTH}, $\varepsilon$ = {EPSILON:g}; dashed: limits",
        footer=f"Foulds et al. 2016, Table 1, Theorems 4, 5; {repeats:,} repeats.",
        width=6.4,
        height=3.8,
    ) as (axis,):
        for series, (name, (_, value)) in enumerate(limits.items()):
            if name != "non-private draw":
                draw_limit(axis, value, f"$1 + T$ = {value:.4g}" if name.startswith("OPS") else f"{value:g}")
            draw_line(
                axis, SHOWN, [by_records[own_records][name][0] for own_records in SHOWN], _label(name), series
            )
        logarithmic(axis, x=True)
        axis.set_ylim(0.0, 8.2)
        axis.set_xlim(80, 400_000)
        axis.set_xlabel("records $N$")
        axis.set_ylabel(r"$N\,\mathrm{E}(\mathrm{estimate} - p)^2\,/\,(p(1 - p))$")
        axis.legend(loc="center left", bbox_to_anchor=(0.0, 0.66), ncols=2)
    curves: dict[str, tuple[float, ...]] = {"N": SHOWN}
    for name in limits:
        curves[name] = tuple(by_records[own_records][name][0] for own_records in SHOWN)
        curves[f"{name}, standard error"] = tuple(by_records[own_records][name][1] for own_records in SHOWN)
    return conclude(out, "relative_efficiency", rows, pictures=[path], curves=curves)

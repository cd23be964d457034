r"""Coverage and error of cells that borrow from their neighbours, over simulated releases on maps.

Run it as ``python benchmarks/pooled_map.py [--releases 10] [--cells 144]``, and with ``--time 3000`` for the
time of one release of so many counties.

Maps are a grid and a random planar graph (Delaunay's, without its longest edges). A release has cells of
lognormal sizes (median N0, a standard deviation of 1), whose logits are one of the truths below, and noise of
scale 1 / epsilon on both counts. Beside the posterior on the map stand the pooled one without it, and each
cell alone (a uniform prior). A line gives, of 95 % intervals, the share that hold the truth, of all cells, of
the smallest third, and of the worst tenth of releases, with the map and without; then errors alone over those
with the map and without (root mean squares) and widths with the map over alone and over pooled without; for
one outlying county or an edge also the coverage of those cells.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pooled_panel import Panel, released
from pooled_worlds import Known, uniform

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.pooled.distribution import mixture_over
from suffice.pipeline.math.engines.pooled.field import field_distribution
from suffice.pipeline.math.engines.pooled.field_map import FieldMap
from suffice.pipeline.math.engines.pooled.hyperparameters import fitted
from suffice.pipeline.math.engines.pooled.populations import DEFAULT, POPULATIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.engines.pooled.count_cells import CountCells
    from suffice.pipeline.math.engines.pooled.distribution import PooledDistribution
    from suffice.typing import Cells, Floats

ENDS = (0.025, 0.975)


@dataclass(frozen=True)
class Simulated:
    """A release, and what is true of it."""

    cells: CountCells
    probability: Floats
    size: Cells


def simulated(logit: Floats, n0: float, epsilon: float, rng: np.random.Generator) -> Simulated:
    """Draw lognormal sizes, counts and noise."""
    size = np.maximum(np.rint(np.exp(rng.normal(np.log(n0), 1.0, len(logit)))), 1.0).astype(np.int64)
    everywhere = np.ones(len(logit), dtype=bool)
    cells = released(Panel(logit=logit, size=size, of_interest=everywhere), epsilon, rng)
    return Simulated(cells=cells, probability=Line.LOGIT.parameter(logit), size=size)


def grid(n_cells: int, rng: np.random.Generator) -> tuple[Floats, Cells]:  # noqa: ARG001
    """Return places in the unit square and pairs of a square grid."""
    side = round(n_cells**0.5)
    number = np.arange(side**2).reshape(side, side)
    pairs = [
        np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1),
        np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1),
    ]
    return np.stack(np.divmod(number.ravel(), side), axis=1) / side, np.concatenate(pairs)


def planar(n_cells: int, rng: np.random.Generator) -> tuple[Floats, Cells]:
    """Return random places and Delaunay's pairs of them."""
    from scipy.spatial import Delaunay

    place = rng.random((round(n_cells**0.5) ** 2, 2))
    corners = Delaunay(place).simplices
    pairs = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
    length = np.hypot(*(place[pairs[:, 0]] - place[pairs[:, 1]]).T)
    return place, pairs[length < 3.0 / len(place) ** 0.5].astype(np.int64)


def _smooth(place: Floats, rng: np.random.Generator) -> Floats:
    """Return waves of random directions, of a standard deviation of .5."""
    waves = rng.normal(0.0, 4.0, (8, 2))
    field = np.sum(np.cos(place @ waves.T + rng.uniform(0.0, 2.0 * np.pi, 8)), axis=1)
    return np.asarray(-2.2 + 0.5 * (field - np.mean(field)) / np.std(field))


def _outlying(place: Floats, rng: np.random.Generator) -> Floats:
    field = _smooth(place, rng)
    field[rng.integers(len(field))] = 0.8
    return field


TRUTHS: dict[str, Callable[[Floats, np.random.Generator], Floats]] = {
    "smooth": _smooth,
    "smooth with noise": lambda place, rng: _smooth(place, rng) + rng.normal(0.0, 0.3, len(place)),
    "no map": lambda place, rng: rng.normal(-2.2, 0.5, len(place)),
    "one outlying county": _outlying,
    "an edge": lambda place, rng: np.where(place[:, 0] > rng.uniform(0.3, 0.7), -1.4, -3.0),
}
MAPS = {"grid": grid, "planar": planar}


def of_interest(name: str, place: Floats, logit: Floats, pairs: Cells) -> Cells:
    """Return the cells that a map may be wrong about: outliers, and those along an edge."""
    if name == "one outlying county":
        return np.flatnonzero(logit > 0.5)
    if name == "an edge":
        crossing = pairs[np.abs(logit[pairs[:, 0]] - logit[pairs[:, 1]]) > 1.0]
        return np.unique(crossing)
    return np.arange(len(place))


def answers(release: Simulated, pairs: Cells) -> dict[str, PooledDistribution]:
    """Return the posteriors that are compared, by name."""
    population, n = POPULATIONS[Line.LOGIT][DEFAULT], len(release.size)
    hyper, blocks = fitted(release.cells, population, Line.LOGIT)
    alone = dataclasses.replace(
        hyper, slope=np.zeros(1), weight=np.ones((1, 1)), location=np.zeros((1, 1)),
        spread=np.ones((1, 1)), drawn_spread=np.ones((1, 1)), spread_slope=np.zeros((1, 1)),
    )  # fmt: skip
    field_map = FieldMap.of(n, pairs, np.zeros(n, dtype=np.int64))
    return {
        "map": field_distribution(release.cells, population, "probability", Line.LOGIT, field_map),
        "pooled": mixture_over(hyper, blocks, population, "probability", Line.LOGIT),
        "alone": mixture_over(alone, blocks, Known(uniform), "probability", Line.LOGIT),
    }


def study(of_map: str, name: str, n0: float, epsilon: float, asked: argparse.Namespace) -> str:
    """Return a line of the table."""
    rng = np.random.default_rng(asked.seed)
    covered: dict[str, list[Floats]] = {}
    error: dict[str, list[float]] = {}
    width: dict[str, float] = {}
    small, special = [], []
    for _ in range(asked.releases):
        place, pairs = MAPS[of_map](asked.cells, rng)
        logit = TRUTHS[name](place, rng)
        release = simulated(logit, n0, epsilon, rng)
        small.append(np.argsort(np.argsort(release.size)) < len(place) // 3)
        wanted = of_interest(name, place, logit, pairs)
        for each, answer in answers(release, pairs).items():
            low, high = answer.quantiles("probability", ENDS, 0, rng).T
            covered.setdefault(each, []).append((low <= release.probability) & (release.probability <= high))
            gap = answer.mean("probability") - release.probability
            error.setdefault(each, []).append(float(np.mean(gap**2)))
            width[each] = width.get(each, 0.0) + float(np.mean(high - low))
        special.extend(covered["map"][-1][wanted].tolist())
    parts = []
    for each in ("map", "pooled"):
        held = np.array(covered[each])
        worst = np.sort(np.mean(held, axis=1))[: max(1, len(held) // 10)]
        parts.append(f"{np.mean(held):.3f}, {np.mean(held[np.array(small)]):.3f}, {np.mean(worst):.3f}")
    ratio = {each: float(np.sqrt(np.mean(error["alone"]) / np.mean(error[each]))) for each in error}
    parts += [f"{ratio['map']:.2f}", f"{ratio['pooled']:.2f}"]
    parts += [f"{width['map'] / width['alone']:.2f}", f"{width['map'] / width['pooled']:.2f}"]
    parts.append(f"{np.mean(special):.3f}" if name in {"one outlying county", "an edge"} else "")
    return " | ".join(parts)


def time_of(n_cells: int, seed: int) -> None:
    """Print the processor time of one release."""
    rng = np.random.default_rng(seed)
    place, pairs = planar(n_cells, rng)
    logit = TRUTHS["smooth with noise"](place, rng)
    release = simulated(logit, 100.0, 0.3, rng)
    start, began = time.process_time(), time.perf_counter()
    field_map = FieldMap.of(len(place), pairs, np.zeros(len(place), dtype=np.int64))
    answer = field_distribution(
        release.cells, POPULATIONS[Line.LOGIT][DEFAULT], "probability", Line.LOGIT, field_map
    )
    print(
        f"{len(place)} cells, {len(answer.points)} points of hyperparameters: "
        f"{time.process_time() - start:.1f} CPU s, {time.perf_counter() - began:.1f} s"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--cells", type=int, default=144)
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument("--maps", nargs="+", default=[*MAPS])
    parser.add_argument("--truths", nargs="+", default=[*TRUTHS])
    parser.add_argument("--sizes", type=float, nargs="+", default=[30.0, 300.0])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--time", type=int)
    asked = parser.parse_args()
    if asked.time:
        time_of(asked.time, asked.seed)
        return
    print(
        "| map | truth | N0 | epsilon | covered: all, small, worst tenth | without the map | error alone "
        "/ map | / pooled | width / alone | / pooled | outlier or edge covered |"
    )
    print("|---" * 11 + "|")
    start = time.process_time()
    for of_map in asked.maps:
        for name in asked.truths:
            for n0 in asked.sizes:
                for epsilon in asked.epsilons:
                    line = study(of_map, name, n0, epsilon, asked)
                    print(f"| {of_map} | {name} | {n0:g} | {epsilon:g} | {line} |", flush=True)
    print(f"{asked.releases} releases of {asked.cells} cells a line, {time.process_time() - start:.0f} CPU s")


if __name__ == "__main__":
    main()

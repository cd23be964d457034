r"""Coverage, error and width of panels: places on a map over months, alone, by map, by walk, and by both.

Run it as ``python benchmarks/pooled_panel.py [--panels 12] [--counties 3000]``.

A panel has a square map of places over months, with lognormal sizes of median N0 (a standard deviation of
.8), whose logits are one of the truths below, and discrete Laplace noise of scale 1 / epsilon on both counts.
It is answered by each cell alone (a uniform prior), by a map of each month with shared hyperparameters, by a
walk of each place, and by both together. A line gives of 95 % intervals the share that hold the truth, of all
cells and of those of interest (next to the front, in the region from two months before its jump to two after
it, the smallest third of places, or all), then width and error as ratios to those of both together, on the
logit scale. "Without jumps" is both together with normal steps.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled.cells import Focus
from suffice.pipeline.math.engines.pooled.count_cells import CountCells
from suffice.pipeline.math.engines.pooled.field import field_distribution
from suffice.pipeline.math.engines.pooled.field_map import FieldMap
from suffice.pipeline.math.engines.pooled.marginals import LineMarginals
from suffice.pipeline.math.engines.pooled.panel_fit import panel_distribution
from suffice.pipeline.math.engines.pooled.populations import DEFAULT, POPULATIONS
from suffice.pipeline.math.engines.pooled.series import CellsInOrder
from suffice.pipeline.math.engines.pooled.walk_distribution import walk_distribution
from suffice.pipeline.math.priors.record_count import Reciprocal

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.typing import Cells, Floats, Mask

ENDS = (0.025, 0.975)
SCALE, JUMPS = 0.3, 0.01
WAYS = ("alone", "map", "walk", "both", "without jumps")


@dataclass(frozen=True)
class Panel:
    """What is true of a panel: logits and sizes, (n_places, n_times), and which cells are of interest."""

    logit: Floats
    size: Cells
    of_interest: Mask


def grid(side: int) -> tuple[Floats, Cells]:
    """Return places in the unit square and pairs of a square grid."""
    number = np.arange(side**2).reshape(side, side)
    pairs = [np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)]
    pairs += [np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)]
    return np.stack(np.divmod(number.ravel(), side), axis=1) / (side - 1.0), np.concatenate(pairs)


def planar(n_places: int, rng: np.random.Generator) -> tuple[Floats, Cells]:
    """Return random places and Delaunay's pairs of them."""
    from scipy.spatial import Delaunay

    place = rng.random((n_places, 2))
    corners = Delaunay(place).simplices
    pairs = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
    length = np.hypot(*(place[pairs[:, 0]] - place[pairs[:, 1]]).T)
    return place, pairs[length < 3.0 / len(place) ** 0.5].astype(np.int64)


def _smooth(place: Floats, rng: np.random.Generator) -> Floats:
    """Return waves of random directions, of a standard deviation of .5."""
    waves = rng.normal(0.0, 4.0, (8, 2))
    field = np.sum(np.cos(place @ waves.T + rng.uniform(0.0, 2.0 * np.pi, 8)), axis=1)
    return np.asarray(-2.0 + 0.5 * (field - np.mean(field)) / np.std(field))


def _walks(n_series: int, n_times: int, step: float, rng: np.random.Generator) -> Floats:
    return np.cumsum(rng.normal(0.0, step, (n_series, n_times)), axis=1)


def panel_of(truth: str, place: Floats, n0: float, n_times: int, rng: np.random.Generator) -> Panel:
    """Draw a panel of a truth."""
    n = len(place)
    base = np.maximum(np.exp(rng.normal(np.log(n0), 0.8, (n, 1))), 3.0)
    size = np.maximum(rng.poisson(np.repeat(base, n_times, axis=1)), 1)
    of_interest = np.zeros((n, n_times), dtype=bool)
    common = _walks(1, n_times, 0.1, rng)
    if truth == "no map":
        logit = rng.normal(-2.0, 0.5, (n, 1)) + common + _walks(n, n_times, 0.06, rng)
        of_interest[:] = True
    elif truth == "linked to size":
        logit = -2.0 + 0.5 * np.log(base / n0) + common + _walks(n, n_times, 0.04, rng)
        of_interest[np.argsort(base[:, 0])[: n // 3]] = True
    elif truth == "moving front":
        # It crosses the map once: rates behind it are three times those before it.
        where = rng.uniform(-0.2, 0.2) + np.linspace(-0.1, 1.0, n_times)
        behind = place[:, :1] < where
        logit = np.where(behind, -1.6, -2.7) + 0.0 * common
        passed = np.argmax(behind, axis=1)
        crossed = np.any(behind, axis=1) & ~behind[:, 0]
        for each in np.flatnonzero(crossed).tolist():
            of_interest[each, max(passed[each] - 2, 0) : passed[each] + 2] = True
    elif truth == "jump in a region":
        logit = _smooth(place, rng)[:, None] + common
        region = np.hypot(*(place - rng.uniform(0.2, 0.8, 2)).T)
        jumped = region <= np.sort(region)[n // 6]
        logit[jumped, n_times // 2 + 1 :] += 1.2
        of_interest[np.ix_(np.flatnonzero(jumped), np.arange(n_times // 2 - 1, n_times // 2 + 3))] = True
    elif truth == "jump of all":
        logit = _smooth(place, rng)[:, None] + common
        logit[:, n_times // 2 + 1 :] += 0.8
        of_interest[:, n_times // 2 - 1 : n_times // 2 + 3] = True
    else:
        logit = _smooth(place, rng)[:, None] + common + _walks(n, n_times, 0.06, rng)
        of_interest[:] = True
    return Panel(logit=logit, size=size, of_interest=of_interest)


TRUTHS = (
    "map and walks", "moving front", "jump in a region", "jump of all", "linked to size", "no map",
)  # fmt: skip


def released(panel: Panel, epsilon: float, rng: np.random.Generator) -> CountCells:
    """Draw counts and noise."""
    success = -np.expm1(-epsilon)
    true = rng.binomial(panel.size, Line.LOGIT.parameter(panel.logit))

    def noisy(count: Cells) -> NoisyCount:
        noise = rng.geometric(success, count.shape) - rng.geometric(success, count.shape)
        values = (count + noise).reshape(-1, 1).astype(np.float64)
        return NoisyCount(values=values, scales=np.array([1.0 / epsilon]))

    return CountCells(true=noisy(true), false=noisy(panel.size - true), n_prior=Reciprocal(10**12))


def alone(source: CountCells) -> LineMarginals:
    """Answer each cell by itself, under a uniform prior."""
    nodes = source.nodes(np.arange(source.n_cells), Focus(centre=source.middle, width=0.5))
    x = nodes.position
    mass = np.sum(nodes.weight, axis=2) * np.exp(-np.abs(x)) / (1.0 + np.exp(-np.abs(x))) ** 2
    none = np.zeros(source.n_cells)
    return LineMarginals(
        name="probability", line=Line.LOGIT, position=x, spacing=nodes.spacing,
        mass=mass / np.sum(mass, axis=1, keepdims=True), own_share=none, outside=none,
    )  # fmt: skip


def answers(
    source: CountCells, pairs: Cells, shape: tuple[int, int], ways: tuple[str, ...]
) -> dict[str, LineMarginals]:
    """Return the posteriors that are compared, by name."""
    n, n_times = shape
    numbers = np.arange(source.n_cells).reshape(shape)
    cells = CellsInOrder(sources=((source, numbers.ravel()),), cell=numbers)
    population = POPULATIONS[Line.LOGIT][DEFAULT]

    def panel(jumps: float) -> LineMarginals:
        of_places = FieldMap.of(n, pairs, np.zeros(n, dtype=np.int64))
        return panel_distribution(
            cells, population, "probability", Line.LOGIT, of_places, pairs, jumps=jumps, scale=SCALE
        )

    def maps() -> LineMarginals:
        of_times = np.concatenate([numbers[pairs, each] for each in range(n_times)])
        of_cells = FieldMap.of(source.n_cells, of_times, np.tile(np.arange(n_times), n))
        return field_distribution(source, population, "probability", Line.LOGIT, of_cells)  # type: ignore[return-value]

    of_way: dict[str, Callable[[], LineMarginals]] = {
        "alone": lambda: alone(source),
        "map": maps,
        "walk": lambda: walk_distribution(cells, "probability", Line.LOGIT, jumps=JUMPS, scale=SCALE),
        "both": lambda: panel(JUMPS),
        "without jumps": lambda: panel(0.0),
    }
    return {name: of_way[name]() for name in ways}


def study(truth: str, n0: float, epsilon: float, asked: argparse.Namespace) -> str:
    """Return a line of the table."""
    rng = np.random.default_rng([asked.seed, TRUTHS.index(truth), int(n0), int(100 * epsilon)])
    place, pairs = grid(asked.side)
    held: dict[str, list[Floats]] = {way: [] for way in asked.ways}
    near: dict[str, list[float]] = {way: [] for way in asked.ways}
    width: dict[str, list[float]] = {way: [] for way in asked.ways}
    error: dict[str, list[float]] = {way: [] for way in asked.ways}
    seconds = dict.fromkeys(asked.ways, 0.0)
    unsettled = 0
    for _ in range(asked.panels):
        panel = panel_of(truth, place, n0, asked.times, rng)
        source = released(panel, epsilon, rng)
        for way in asked.ways:
            start = time.process_time()
            answer = answers(source, pairs, panel.logit.shape, (way,))[way]
            seconds[way] += time.process_time() - start
            unsettled += way == "both" and not answer.settled
            low, middle, high = Line.LOGIT.position(
                np.clip(answer.quantiles("probability", (ENDS[0], 0.5, ENDS[1]), 0, rng).T, 1e-12, 1 - 1e-12)
            )
            x = panel.logit.ravel()
            is_held = (low <= x) & (x <= high)
            held[way].append(is_held)
            near[way] += is_held[panel.of_interest.ravel()].tolist()
            width[way].append(float(np.mean(high - low)))
            error[way].append(float(np.mean((middle - x) ** 2)))
    parts = []
    for way in asked.ways:
        wider = np.mean(width[way]) / np.mean(width["both"])
        worse = np.sqrt(np.mean(error[way]) / np.mean(error["both"]))
        parts.append(f"{np.mean(held[way]):.3f}, {np.mean(near[way]):.3f}, {wider:.2f}, {worse:.2f}")
    spread = np.std(np.mean(np.array(held["both"]), axis=1)) / max(asked.panels - 1, 1) ** 0.5
    said = ", ".join(f"{way} {each / asked.panels:.1f}" for way, each in seconds.items())
    return " | ".join([*parts, f"{spread:.3f}", str(unsettled), said])


def time_of(n_places: int, n_times: int, seed: int) -> str:
    """Work out a large panel, and return how well and how fast."""
    rng = np.random.default_rng(seed)
    place, pairs = planar(n_places, rng)
    panel = panel_of("map and walks", place, 100.0, n_times, rng)
    source = released(panel, 0.5, rng)
    start = time.process_time()
    answer = answers(source, pairs, panel.logit.shape, ("both",))["both"]
    low, high = answer.quantiles("probability", ENDS, 0, rng).T
    seconds = time.process_time() - start
    probability = Line.LOGIT.parameter(panel.logit.ravel())
    covered = np.mean((low <= probability) & (probability <= high))
    known = {name: f"{mean:.3f} (sd {sd:.3f})" for name, (mean, sd) in answer.known.items()}
    return (
        f"{n_places} places of {n_times} months, {len(pairs)} pairs: {seconds:.0f} CPU s, covered "
        f"{covered:.3f}, {known}, {len(answer.points)} points, {len(answer.steps)} steps, resolved: "
        f"{answer.settled}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--panels", type=int, default=12)
    parser.add_argument("--side", type=int, default=6)
    parser.add_argument("--times", type=int, default=12)
    parser.add_argument("--sizes", type=float, nargs="+", default=[100.0])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3])
    parser.add_argument("--truths", nargs="+", default=[*TRUTHS])
    parser.add_argument("--ways", nargs="+", default=[*WAYS])
    parser.add_argument("--counties", type=int, default=0)
    parser.add_argument("--seed", type=int, default=33)
    asked = parser.parse_args()
    if asked.counties:
        print(time_of(asked.counties, asked.times, asked.seed))
        return
    print(f"| truth | N0 | epsilon | {' | '.join(asked.ways)} | covered, of panels: se | unsettled | CPU s |")
    print("|---" * (len(asked.ways) + 6) + "|")
    start = time.process_time()
    for truth in asked.truths:
        for n0 in asked.sizes:
            for epsilon in asked.epsilons:
                print(f"| {truth} | {n0:g} | {epsilon:g} | {study(truth, n0, epsilon, asked)} |", flush=True)
    print(f"{asked.panels} panels a line, {time.process_time() - start:.0f} CPU s")


if __name__ == "__main__":
    main()

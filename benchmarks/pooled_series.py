r"""Coverage and width of series that walk over time, over simulated noisy counts.

Run it as ``python benchmarks/pooled_series.py [--series 36] [--counties 3000]``.

A series has counts with Poisson means whose logarithms follow one of three truths: a random walk, one with a
jump of -0.7 in the middle, and no movement; each count has discrete Laplace noise of scale 1 / epsilon. Every
series is worked out by itself: with the most probable step plugged in and no jumps, with it integrated over
and no jumps, and with it integrated over and 1 % jumps, which is the default. A line gives the share of 95 %
intervals that hold the truth, of all times and of the six next to the middle, where the jump is, and widths;
those alone are of each count under a flat prior of its mean.

A panel of counties of 12 months follows, with a Bernoulli statistic, whose step is shared.

The last table is of laws: series of 36 times, under the truth of every law and of others, worked out as a
walk, a return to a level, with a season of 12 and with a local linear trend, all with 1 % jumps. A cell has
the share of 95 % intervals that hold, their mean width and the root mean squared error, both as ratios to
those of the walk.

``--jump-series 40`` prints series of 48 times whose truth has small steps, a season or a trend, and one jump
of -0.7 or none, worked out by that law without jumps and with: coverage, that of the six times next to the
middle, width and error.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from suffice.pipeline.ask.borrowing.over_time import worked_out
from suffice.pipeline.ask.borrowing.walk import Walk
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled.cells import Focus, Nodes, nodes_of_positions
from suffice.pipeline.math.engines.pooled.count_cells import CountCells
from suffice.pipeline.math.engines.pooled.series import CellsInOrder
from suffice.pipeline.math.engines.pooled.walk_distribution import plugged_in, walk_distribution
from suffice.pipeline.math.priors.record_count import Reciprocal

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.walk_distribution import WalkDistribution
    from suffice.typing import Cells, Floats

ENDS = (0.025, 0.975)
SCALE, JUMPS, JUMP = 0.3, 0.01, -0.7
NEAR = 3
"""Times on either side of the jump that count as next to it."""


@dataclass(frozen=True)
class NoisyCounts:
    """Counts that are known through noise; a ``CellsSource`` without sizes."""

    values: Floats
    scale: float
    has_sizes: ClassVar[bool] = False

    @property
    def n_cells(self) -> int:
        """How many there are."""
        return len(self.values)

    @property
    def middle(self) -> float:
        """The logarithm of their mean."""
        return float(np.log(max(float(np.mean(self.values)), 1.0)))

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        """Nodes of log means."""
        value = self.values[cells]
        count = np.maximum(value, self.scale + 0.5)
        x, log_dx = nodes_of_positions(
            np.log(count), np.sqrt(count + 2.0 * self.scale**2) / count, focus, (-60.0, 34.0)
        )
        counts = NoisyCount(values=value[:, None], scales=np.array([self.scale]))
        return Nodes.of(x, log_dx, np.zeros((len(x), 1)), counts.log_likelihood(x)[:, :, None])


def path(truth: str, mean: float, n_times: int, rng: np.random.Generator) -> Floats:
    """Draw log means: a walk that moves by about .5 over the series, or less."""
    step = {"walk": 1.0, "jump": 0.5, "constant": 0.0}[truth] / np.sqrt(n_times)
    x = np.log(mean) + np.cumsum(rng.normal(0.0, 1.0, n_times) * step)
    if truth == "jump":
        x[n_times // 2 :] += JUMP
    return np.asarray(x)


def noisy(count: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """Add discrete Laplace noise."""
    success = -np.expm1(-epsilon)
    noise = rng.geometric(success, count.shape) - rng.geometric(success, count.shape)
    return np.asarray(count + noise, dtype=np.float64)


def width_alone(values: Floats, scale: float) -> float:
    """Return the mean width of intervals under a flat prior of the mean."""
    grid = np.linspace(0.0, max(float(np.max(values)), 0.0) + 40.0 * scale + 40.0, 3000)[1:]
    counts = NoisyCount(values=values[:, None], scales=np.array([scale]))
    log_value = counts.log_likelihood(np.log(np.tile(grid, (len(values), 1))))
    below = np.cumsum(np.exp(log_value - np.max(log_value, axis=1, keepdims=True)), axis=1)
    below /= below[:, -1:]
    low, high = (np.argmax(below > end, axis=1) for end in ENDS)
    return float(np.mean(grid[high] - grid[low]))


def in_one_series(values: Floats, epsilon: float) -> CellsInOrder:
    """Return counts as one series."""
    cells = np.arange(len(values))
    return CellsInOrder(sources=((NoisyCounts(values, 1.0 / epsilon), cells),), cell=cells[None])


def study(truth: str, mean: float, epsilon: float, n_times: int, n_series: int, seed: int) -> str:
    """Return a line of the table."""
    rng = np.random.default_rng(seed)
    held: dict[str, list[Floats]] = {}
    width: dict[str, list[float]] = {}
    for _ in range(n_series):
        x = path(truth, mean, n_times, rng)
        values = noisy(rng.poisson(np.exp(x)).astype(np.float64), epsilon, rng)
        series = in_one_series(values, epsilon)
        straight = walk_distribution(series, "rate", Line.LOGARITHM, jumps=0.0, scale=SCALE)
        answers: dict[str, WalkDistribution] = {
            "plugged in": plugged_in(straight),
            "integrated": straight,
            "with jumps": walk_distribution(series, "rate", Line.LOGARITHM, jumps=JUMPS, scale=SCALE),
        }
        for name, answer in answers.items():
            low, high = answer.quantiles("rate", ENDS, 0, rng).T
            held.setdefault(name, []).append((low <= np.exp(x)) & (np.exp(x) <= high))
            width.setdefault(name, []).append(float(np.mean(high - low)))
        width.setdefault("alone", []).append(width_alone(values, 1.0 / epsilon))
    middle = slice(n_times // 2 - NEAR, n_times // 2 + NEAR)
    shares = [f"{np.mean(each):.3f}" for each in held.values()]
    near = [f"{np.mean(np.array(each)[:, middle]):.2f}" for each in held.values()]
    widths = [f"{np.mean(width[name]):.3g}" for name in (*held, "alone")]
    return " | ".join([" / ".join(shares), " / ".join(near), " / ".join(widths)])


LAWS = {
    "walk": Walk(over="time"),
    "ar1": Walk(over="time", kind="ar1"),
    "season": Walk(over="time", season=12),
    "trend": Walk(over="time", order=2),
    "trend and season": Walk(over="time", order=2, season=12),
}


def path_of_law(truth: str, mean: float, n_times: int, rng: np.random.Generator) -> Floats:
    """Draw log means of a truth."""
    time = np.arange(n_times)
    x = np.full(n_times, np.log(mean))
    if truth in {"walk", "jump", "season"}:
        x += np.cumsum(rng.normal(0.0, 0.5 / np.sqrt(n_times), n_times))
    if truth == "jump":
        x[n_times // 2 :] += JUMP
    if truth in {"season", "season alone"}:
        effects = rng.normal(0.0, 0.4, 12)
        x += (effects - np.mean(effects))[time % 12]
    if truth == "ar1":
        away = rng.normal(0.0, 0.25)
        for each in range(n_times):
            x[each] += away
            away = 0.6 * away + rng.normal(0.0, 0.2)
    if truth == "trend":
        slope = 0.03 + np.cumsum(rng.normal(0.0, 0.015, n_times))
        x += np.cumsum(slope) - np.mean(np.cumsum(slope))
    return x


def laws_study(truth: str, mean: float, epsilon: float, n_times: int, n_series: int, seed: int) -> str:
    """Return a line of the table of laws."""
    rng = np.random.default_rng(seed)
    held: dict[str, list[Floats]] = {name: [] for name in LAWS}
    width: dict[str, list[Floats]] = {name: [] for name in LAWS}
    error: dict[str, list[Floats]] = {name: [] for name in LAWS}
    unsettled = 0
    for _ in range(n_series):
        x = path_of_law(truth, mean, n_times, rng)
        values = noisy(rng.poisson(np.exp(x)).astype(np.float64), epsilon, rng)
        series = in_one_series(values, epsilon)
        for name, walk in LAWS.items():
            answer = worked_out(series, "rate", Line.LOGARITHM, walk)
            low, middle, high = np.log(answer.quantiles("rate", (ENDS[0], 0.5, ENDS[1]), 0, rng)).T
            held[name].append((low <= x) & (x <= high))
            width[name].append(high - low)
            error[name].append((middle - x) ** 2)
            unsettled += not answer.settled
    of_walk = float(np.mean(width["walk"])), float(np.mean(error["walk"]))
    cells = [
        f"{np.mean(held[name]):.3f}, {np.mean(width[name]) / of_walk[0]:.2f}, "
        f"{np.sqrt(np.mean(error[name]) / of_walk[1]):.2f}"
        for name in LAWS
    ]
    return " | ".join([*cells, str(unsettled)])


JUMPING = {
    "season": Walk(over="time", season=12),
    "trend": Walk(over="time", order=2),
    "trend and season": Walk(over="time", order=2, season=12),
}


def jumps_study(name: str, mean: float, epsilon: float, n_series: int, seed: int, *, has_jump: bool) -> str:
    """Return a line of the table of jumps beside seasons and trends."""
    rng, n_times = np.random.default_rng(seed), 48
    held: dict[float, list[Floats]] = {0.0: [], JUMPS: []}
    width: dict[float, list[float]] = {0.0: [], JUMPS: []}
    error: dict[float, list[float]] = {0.0: [], JUMPS: []}
    unsettled = 0
    for _ in range(n_series):
        x = np.log(mean) + np.cumsum(rng.normal(0.0, 0.03, n_times))
        if "season" in name:
            effects = rng.normal(0.0, 0.3, 12)
            x += (effects - np.mean(effects))[np.arange(n_times) % 12]
        if "trend" in name:
            x += rng.normal(0.0, 0.02) * (np.arange(n_times) - n_times / 2)
        x[n_times // 2 :] += JUMP * has_jump
        series = in_one_series(noisy(rng.poisson(np.exp(x)).astype(np.float64), epsilon, rng), epsilon)
        for jumps in (0.0, JUMPS):
            answer = worked_out(series, "rate", Line.LOGARITHM, replace(JUMPING[name], jumps=jumps))
            low, middle, high = np.log(answer.quantiles("rate", (ENDS[0], 0.5, ENDS[1]), 0, rng)).T
            held[jumps].append((low <= x) & (x <= high))
            width[jumps].append(float(np.mean(high - low)))
            error[jumps].append(float(np.mean((middle - x) ** 2)))
            unsettled += not answer.settled
    near = slice(n_times // 2 - NEAR, n_times // 2 + NEAR)
    cells = [
        f"{np.mean(held[jumps]):.3f}, {np.mean(np.array(held[jumps])[:, near]):.3f}, "
        f"{np.mean(width[jumps]):.3f}, {np.sqrt(np.mean(error[jumps])):.3f}"
        for jumps in held
    ]
    return " | ".join([*cells, str(unsettled)])


def panel(n_counties: int, records: int, seed: int) -> str:
    """Work out a panel of counties of 12 months, and return how well and how fast."""
    rng = np.random.default_rng(seed)
    x = rng.normal(-2.0, 0.5, (n_counties, 1)) + np.cumsum(rng.normal(0.0, 0.1, (n_counties, 12)), axis=1)
    size = np.maximum(np.rint(records * np.exp(rng.normal(0.0, 0.7, (n_counties, 1)))), 5.0)
    size = np.repeat(size, 12, axis=1).astype(np.int64)
    probability = Line.LOGIT.parameter(x)
    true = rng.binomial(size, probability)
    counts = [
        NoisyCount(values=noisy(each.ravel(), 0.5, rng)[:, None], scales=np.array([2.0]))
        for each in (true, size - true)
    ]
    source = CountCells(true=counts[0], false=counts[1], n_prior=Reciprocal(10**12))
    cells = np.arange(x.size)
    start = time.process_time()
    answer = walk_distribution(
        CellsInOrder(sources=((source, cells),), cell=cells.reshape(x.shape)),
        "probability", Line.LOGIT, jumps=JUMPS, scale=SCALE,
    )  # fmt: skip
    low, high = answer.quantiles("probability", ENDS, 0, rng).T
    seconds = time.process_time() - start
    covered = np.mean((low <= probability.ravel()) & (probability.ravel() <= high))
    return (
        f"{n_counties} counties of 12 months, about {records} records each, epsilon .5: {seconds:.0f} CPU s, "
        f"covered {covered:.3f}, width {np.mean(high - low):.3f}, step {answer.steps.mean:.3f} "
        f"(sd {answer.steps.sd:.3f}, truth 0.1), resolved: {answer.settled}"
    )


def print_jumps(n_series: int, seed: int) -> None:
    """Print the table of jumps beside seasons and trends."""
    print("| law | jump | without jumps: covered, near, width, error | with 1 % | unsettled |")
    print("|---" * 5 + "|")
    start = time.process_time()
    for name in JUMPING:
        for has_jump in (True, False):
            line = jumps_study(name, 100.0, 0.22, n_series, seed, has_jump=has_jump)
            print(f"| {name} | {has_jump} | {line} |", flush=True)
    print(f"{n_series} series a line, {time.process_time() - start:.0f} CPU s")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--series", type=int, default=36)
    parser.add_argument("--times", type=int, nargs="*", default=[365, 24])
    parser.add_argument("--means", type=float, nargs="+", default=[5.0, 20.0, 100.0])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.11, 0.22])
    parser.add_argument("--truths", nargs="*", default=["walk", "jump", "constant"])
    parser.add_argument("--counties", type=int, default=3000)
    parser.add_argument("--laws", nargs="*", default=["walk", "ar1", "season", "trend", "jump", "constant"])
    parser.add_argument("--law-series", type=int, default=20)
    parser.add_argument("--law-means", type=float, nargs="+", default=[200.0])
    parser.add_argument("--law-epsilons", type=float, nargs="+", default=[0.2])
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument("--jump-series", type=int, default=0)
    asked = parser.parse_args()
    if asked.jump_series:
        print_jumps(asked.jump_series, asked.seed)
        return
    print(
        "| truth | times | mean | epsilon | covered: plugged in / integrated / with jumps "
        "| next to the middle | width, and alone |"
    )
    print("|---" * 7 + "|")
    start = time.process_time()
    for n_times in asked.times:
        for mean in asked.means:
            for epsilon in asked.epsilons:
                for truth in asked.truths:
                    line = study(truth, mean, epsilon, n_times, asked.series, asked.seed)
                    print(f"| {truth} | {n_times} | {mean:g} | {epsilon:g} | {line} |", flush=True)
    print(f"{asked.series} series a line, {time.process_time() - start:.0f} CPU s")
    if asked.counties:
        print(panel(asked.counties, 100, asked.seed))
    print(f"\n| truth | mean | epsilon | {' | '.join(LAWS)} | unsettled |")
    print("|---" * (len(LAWS) + 4) + "|")
    start = time.process_time()
    for truth in asked.laws:
        for mean, epsilon in zip(asked.law_means, asked.law_epsilons, strict=True):
            line = laws_study(truth, mean, epsilon, 36, asked.law_series, asked.seed)
            print(f"| {truth} | {mean:g} | {epsilon:g} | {line} |", flush=True)
    print(f"{asked.law_series} series a line, {time.process_time() - start:.0f} CPU s")


if __name__ == "__main__":
    main()

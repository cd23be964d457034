r"""Steps of panels behind noise: do intervals hold them, and which answers say that they do not tell.

Run it as ``PYTHONPATH=tests python -m benchmarks.panel_steps [--panels 4] [--jumps 0]``.

A panel has 25 places of a square map and 10 months. Positions are a smooth field of a standard deviation of
.5, a common walk with steps of .1 and walks of places with steps d, a share of them Laplace(0, 1) jumps; each
cell is seen with normal noise of a known standard deviation. A line gives the posterior mean of d, how many
95 % intervals of d hold it, how many answers say that the step is not identified, the
share of jumps, and what 95 % intervals of the cells hold.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.pooled_panel import JUMPS, SCALE, grid
from suffice.pipeline.ask.borrowing.walk_known import Steps
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.pooled.field_map import FieldMap
from suffice.pipeline.math.engines.pooled.panel_fit import panel_distribution
from suffice.pipeline.math.engines.pooled.populations import DEFAULT, POPULATIONS
from suffice.pipeline.math.engines.pooled.series import CellsInOrder
from support.normal_cells import NormalCells

if TYPE_CHECKING:
    from suffice.typing import Floats

SIDE, MONTHS = 5, 10


def truth_of(step: float, jumps: float, rng: np.random.Generator) -> Floats:
    """Return positions, (n_places, n_times)."""
    place, _ = grid(SIDE)
    waves = rng.normal(0.0, 4.0, (8, 2))
    field = np.sum(np.cos(place @ waves.T + rng.uniform(0.0, 2.0 * np.pi, 8)), axis=1)
    of_steps = rng.normal(0.0, step, (SIDE**2, MONTHS))
    of_steps += (rng.random(of_steps.shape) < jumps) * rng.laplace(0.0, 1.0, of_steps.shape)
    level = 0.5 * (field - np.mean(field)) / np.std(field) - 1.0
    return np.asarray(level[:, None] + np.cumsum(of_steps, axis=1) + np.cumsum(rng.normal(0.0, 0.1, MONTHS)))


def line_of(step: float, noise: float, asked: argparse.Namespace) -> str:
    """Return a line of the table."""
    rng = np.random.default_rng([asked.seed, int(1e3 * step), int(1e3 * noise), int(1e4 * asked.jumps)])
    _, pairs = grid(SIDE)
    numbers = np.arange(SIDE**2 * MONTHS).reshape(SIDE**2, MONTHS)
    means, shares, held, n_held, silent, n_said = [], [], [], 0, 0, 0
    for _ in range(asked.panels):
        x = truth_of(step, asked.jumps, rng)
        source = NormalCells((x + rng.normal(0.0, noise, x.shape)).ravel(), np.full(x.size, noise))
        cells = CellsInOrder(sources=((source, numbers.ravel()),), cell=numbers)
        answer = panel_distribution(
            cells, POPULATIONS[Line.LOGIT][DEFAULT], "probability", Line.LOGIT,
            FieldMap.of(SIDE**2, pairs, np.zeros(SIDE**2, dtype=np.int64)), pairs,
            jumps=asked.stated, scale=SCALE,
        )  # fmt: skip
        of_step = answer.step_law.quantiles((0.025, 0.975))
        is_held = bool(of_step[0] < step < of_step[1])
        is_said = not Steps.of({}, answer).identified
        n_held, n_said, silent = n_held + is_held, n_said + is_said, silent + (not is_held and not is_said)
        means.append(answer.known["step"][0])
        shares.append(answer.share_of_jumps[0])
        low, high = answer.quantiles("probability", (0.025, 0.975), 0, rng).T
        probability = Line.LOGIT.parameter(x.ravel())
        held.append(np.mean((low <= probability) & (probability <= high)))
    return (
        f"| {step:g} | {noise:g} | {np.mean(means):.3f} | {n_held} | {n_said} | {silent} | "
        f"{np.mean(shares):.4f} | {np.mean(held):.3f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--panels", type=int, default=4)
    parser.add_argument("--steps", type=float, nargs="+", default=[0.02, 0.06, 0.2])
    parser.add_argument("--noises", type=float, nargs="+", default=[0.1, 0.3, 1.0])
    parser.add_argument("--jumps", type=float, default=0.0)
    parser.add_argument("--stated", type=float, default=JUMPS)
    parser.add_argument("--seed", type=int, default=33)
    asked = parser.parse_args()
    print("| step | noise | mean | held | said | silent misses | share of jumps | cells held |")
    print("|---" * 8 + "|")
    start = time.process_time()
    for step in asked.steps:
        for noise in asked.noises:
            print(line_of(step, noise, asked), flush=True)
    print(f"{asked.panels} panels a line, {time.process_time() - start:.0f} CPU s")


if __name__ == "__main__":
    main()

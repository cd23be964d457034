"""Coverage of default answers in worlds that are not the model, for ``docs/how-to/check-calibration.md``.

.venv/bin/python benchmarks/worlds.py            # or: ... benchmarks/worlds.py exponential poisson
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from suffice.pipeline.ask.calibration.record_worlds import WORLDS
from suffice.pipeline.ask.calibration.simulated_release import generative_model_of
from suffice.pipeline.ask.calibration.simulation import WorldCoverage, world_coverages
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.priors.record_count import Uniform
from suffice.pipeline.terms.declaration.fields import canonical
from support.honest_coverage import groups_of, is_slow, planned
from support.honest_populations import MODEL, populations
from support.noisy import noisy_statistic

if TYPE_CHECKING:
    from collections.abc import Iterator

N0, EPSILON = 300, "1"
SIMULATIONS, FEW = 1000, 60


def measured(family: str, simulations: int) -> tuple[WorldCoverage, ...]:
    """Measure a family at N uniform on N0/2 to 3 N0/2, by default options."""
    plan, entry = planned(family, populations(family, MODEL), EPSILON)
    nothing = np.zeros((1, len(plan.components)), dtype=int)
    cell = noisy_statistic(plan, nothing, groups=groups_of(family))
    model = generative_model_of(cell, canonical(entry), n_prior=Uniform(N0 // 2, N0 + N0 // 2))
    return world_coverages(model, chosen=True, simulations=simulations, rng=np.random.default_rng())


def lines(family: str, simulations: int) -> Iterator[str]:
    """Give a line for every parameter: coverage of 95 % intervals by world, and without noise."""
    coverages = measured(family, simulations)
    for parameter in dict.fromkeys(each.ranks.parameter for each in coverages):
        cells = []
        for world in WORLDS:
            of_world = [
                each for each in coverages if (each.world, each.ranks.parameter) == (world, parameter)
            ]
            shares = [(each.ranks.coverage(0.95), each.without_noise.coverage(0.95)) for each in of_world]
            cells.append("{:.0f} ({:.0f})".format(*100 * np.mean(shares, axis=0)) if shares else "")
        yield f"| `{family}` | {parameter} | {' | '.join(cells)} | {simulations} |"


def main() -> None:
    """Print the table."""
    sys.stdout.write(
        f"| family | question | {' | '.join(WORLDS)} | data sets |\n|{'---|' * (len(WORLDS) + 3)}\n"
    )
    for family in sys.argv[1:] or FAMILIES:
        for line in lines(family, FEW if is_slow(family) else SIMULATIONS):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()

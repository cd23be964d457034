"""Measure how often calibrations reach each verdict, on posteriors that are right and on mutants.

    PYTHONPATH=tests python benchmarks/verdicts.py [--cells 20000] [--repeats 1000] [FAMILY ...]

Mutants believe half or 0.8 of the noise's scale, or are the plug-in posterior. Of each, `--cells` data sets
with N private are simulated, and their truths ranked; calibrations of 1, 20, 1,000 and 5,000 simulations then
draw their ranks from the distribution that was found (parameters apart), `--repeats` times. Where the
posterior is right that distribution is the uniform one; what was found is held against it. The last column is
the chance of "calibrated" at 5,000 by the nested binomials of the coverages, parameters multiplied. A
coverage is outside where it is by the pool, whose standard errors at 20,000 are 0.35, 0.28 and 0.15 points.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from measuring import versions

from suffice.pipeline.ask.calibration.simulation import simulate
from suffice.pipeline.ask.calibration.verdict import (
    CALIBRATED,
    CANNOT_TELL,
    DRAWS,
    LEFT_OUT,
    NOT_CALIBRATED,
    TOLERANCE,
    Ranks,
    judge,
    passing_chance,
)
from suffice.pipeline.ask.inference.posterior_terms import NOISE_AWARE, PLUG_IN
from support.generative_models import generative_model_for

if TYPE_CHECKING:
    from suffice.pipeline.ask.calibration.simulation import Simulated

SIMULATIONS = (1, 20, 1000, 5000)
HALF_N = 500
"""N is uniform on 0 to twice as many."""
EPSILONS = {"bernoulli": ("1", "0.3", "0.1"), "normal": ("5", "1")}
BELIEVED = {"right": 1.0, "noise x 0.8": 0.8, "noise x 0.5": 0.5, PLUG_IN: 1.0}
"""The scale of the noise that the posterior believes, over that which is simulated."""


def main() -> None:
    """Print a row of the table for every family, epsilon and mutant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.add_argument("--cells", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=1000)
    arguments = parser.parse_args()
    rng = np.random.default_rng()
    print(versions())
    print("verdicts: calibrated / cannot tell / not calibrated, % of the repeats\n")
    titles = ("family, epsilon", "posterior", "noise / sampling", "coverage, %", "outside")
    wanted = [f"{simulations} simulations" for simulations in SIMULATIONS]
    print(f"| {' | '.join((*titles, *wanted, 'chance of calibrated'))} |")
    print(f"|{'---|' * (len(titles) + len(wanted) + 1)}")
    for family in arguments.families or EPSILONS:
        for epsilon in EPSILONS[family]:
            ratio = ""
            for posterior, believed in BELIEVED.items():
                pool = ranked(family, epsilon, posterior, believed, arguments.cells, rng)
                ratio = ratio or f"{max(pool.widening) ** 2 - 1.0:.2g}"
                cells = row(pool.clipped, posterior, arguments.repeats, rng)
                print(f"| {family}, {epsilon} | {posterior} | {ratio} | {' | '.join(cells)} |", flush=True)


def ranked(
    family: str, epsilon: str, posterior: str, believed: float, cells: int, rng: np.random.Generator
) -> Simulated:
    """Rank the truths of these simulated data sets."""
    right = posterior == "right"
    method = PLUG_IN if posterior == PLUG_IN else NOISE_AWARE
    generative_model = generative_model_for(family, n=HALF_N, epsilon=epsilon, method=method)
    plan = dataclasses.replace(generative_model.plan, scale=believed * generative_model.scale)
    mutant = dataclasses.replace(generative_model, plan=plan)
    return simulate(mutant, cells, rng, sees_noise=right)


def row(pool: tuple[Ranks, ...], posterior: str, repeats: int, rng: np.random.Generator) -> list[str]:
    """Return the cells of a row from its coverage on."""
    uniform = np.full(DRAWS + 1, 1.0 / (DRAWS + 1))
    right = posterior == "right"
    shares = [uniform if right else np.array(ranks.counts) / ranks.simulations for ranks in pool]
    outside = any(abs(ranks.coverage(mass) - mass) > TOLERANCE[mass] for ranks in pool for mass in LEFT_OUT)
    chance = 1.0
    for ranks in pool:
        true = None if right else {mass: ranks.coverage(mass) for mass in LEFT_OUT}
        chance *= passing_chance(5000, len(pool), true)
    said = f"no (ranks: p = {min(ranks.rank_p_value for ranks in pool):.2g})"
    return [
        "; ".join("/".join(f"{100 * ranks.coverage(mass):.1f}" for mass in LEFT_OUT) for ranks in pool),
        said if right else "yes" if outside else "no",
        *(verdicts(pool, shares, simulations, repeats, rng) for simulations in SIMULATIONS),
        f"{chance:.4f}",
    ]


def verdicts(
    pool: tuple[Ranks, ...],
    shares: list[np.ndarray],
    simulations: int,
    repeats: int,
    rng: np.random.Generator,
) -> str:
    """Return how many calibrations of so many simulations end in each verdict."""
    drawn = [rng.multinomial(simulations, share, size=repeats) for share in shares]
    conclusions = Counter(
        judge(
            tuple(
                Ranks(parameter=ranks.parameter, category=None, counts=tuple(counts[repeat].tolist()))
                for ranks, counts in zip(pool, drawn, strict=True)
            )
        ).conclusion
        for repeat in range(repeats)
    )
    return " / ".join(
        f"{100 * conclusions[verdict] / repeats:.1f}" for verdict in (CALIBRATED, CANNOT_TELL, NOT_CALIBRATED)
    )


if __name__ == "__main__":
    main()

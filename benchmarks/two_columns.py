"""Errors of a regression with one predictor: parabolas of sum and difference beside the rotated design.

    python benchmarks/two_columns.py [--cells 400] [--epsilon 1]
        [--data FILE.parquet PREDICTOR LOWER UPPER OUTCOME LOWER UPPER]...

Both designs release the same data at the same epsilon, with a private number of rows, `--cells` times each.
Coefficients are those of the noisy covariance matrix, its eigenvalues kept at what the noise can hide, and in
half ranges of the columns. An error is a distance from the coefficient without noise; a gain is the rotated
design's median error, or root mean square, over that of the parabolas. A median favours the rotated design:
its product has the noise of a single component, of long tails about a narrow middle.
"""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.terms.statistics.moment_columns import rotated_map, two_column_map
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.moment_columns import Map

    Floats = NDArray[np.float64]

STEPS = 1 << 16
NAMES = ("x", "y")
PAIRS = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
"""The order of the moments."""
SHOWN = {"n": (0, 0), "x": (0, 1), "x^2": (1, 1), "x y": (1, 2)}
NUMBERS = ("slope", "intercept", "residual variance")
FLOOR = 0.5
"""Of the noise on a row's square: what smaller eigenvalues of the covariance are raised to."""


def generated(rng: np.random.Generator) -> Iterator[tuple[str, Floats]]:
    """Data sets in half ranges, (n_rows, 2)."""
    for rows in (10_000, 100_000):
        for name, x, slope, residual in (
            ("uniform", rng.uniform(-1.0, 1.0, rows), 0.5, 0.25),
            ("normal", rng.normal(0.0, 1 / 3, rows), 0.5, 0.25),
            ("off the middle", rng.normal(0.5, 0.15, rows), 0.6, 0.1),
            ("flat", rng.normal(0.2, 0.2, rows), 0.0, 0.2),
            ("steep", rng.normal(0.2, 0.1, rows), -1.0, 0.1),
            ("skewed", rng.exponential(0.3, rows) - 1.0, 0.7, 0.15),
        ):
            y = slope * x + rng.normal(0.0, residual, rows)
            yield f"{name}, {rows:,} rows", np.clip(np.stack([x, y], axis=1), -1.0, 1.0)


def of_file(arguments: list[str]) -> tuple[str, Floats]:
    """Rows of two columns of a file in half ranges; rows with a null are left out."""
    import pyarrow.parquet as pq  # only where files are read

    path, *columns = arguments
    names, bounds = columns[::3], np.array([columns[1::3], columns[2::3]], dtype=np.float64)
    table = pq.read_table(path, columns=names)
    values = np.stack([table[name].to_numpy().astype(np.float64) for name in names], axis=1)
    values = values[np.isfinite(values).all(axis=1)]
    lattice = (np.clip(values, *bounds) - bounds.mean(axis=0)) / (bounds[1] - bounds[0]) * 2.0
    return f"{names[1]} on {names[0]}, {len(lattice):,} rows", lattice


def back(released: Map) -> Floats:
    """Moments in half ranges from components, (n_moments, n_components)."""
    inverse = np.zeros((len(PAIRS), len(released.components)))
    for row, pair in enumerate(PAIRS):
        unit = STEPS ** sum(column > 0 for column in pair)
        for position, weight in released.moments[pair].coefficients.items():
            inverse[row, position] = float(weight / unit)
    return inverse


def noise_sds(released: Map, epsilon: float) -> Floats:
    """Standard deviations of the noise on the moments."""
    sds: Floats = math.sqrt(2.0) * scale(released, epsilon) * np.linalg.norm(back(released), axis=1)
    return sds


def scale(released: Map, epsilon: float) -> float:
    """Scale of the noise on a component, in lattice units."""
    return (released.record_l1 or 0) / epsilon


def coefficients(moments: Floats, floor: float) -> Floats:
    """Slope, intercept and residual variance, (n_cells, 3)."""
    n = np.maximum(moments[:, :1], 1.0)
    mean = moments[:, 1:3] / n
    second = moments[:, [3, 4, 4, 5]].reshape(-1, 2, 2) / n[:, :, None]
    values, vectors = np.linalg.eigh(second - mean[:, :, None] * mean[:, None, :])
    values = np.maximum(values, floor / n)
    covariance = (vectors * values[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    slope = covariance[:, 0, 1] / covariance[:, 0, 0]
    residual = covariance[:, 1, 1] - slope * covariance[:, 0, 1]
    return np.stack([slope, mean[:, 1] - slope * mean[:, 0], residual], axis=1)


def errors(released: Map, data: Floats, epsilon: float, cells: int, rng: np.random.Generator) -> Floats:
    """Release the data many times; return the errors of the three numbers, (n_cells, 3)."""
    lattice = np.rint(data * STEPS)
    ones = np.concatenate([np.ones((len(lattice), 1)), lattice], axis=1)
    # In Python integers, as a release forms them: sums of components exceed what doubles hold.
    exact = np.array([sum(map(int, (ones[:, i] * ones[:, j]).tolist())) for i, j in PAIRS], dtype=object)
    totals = released.matrix @ exact
    noise = discrete_laplace(scale(released, epsilon), (cells, len(totals)), rng)
    inverse = back(released)
    noisy = inverse @ totals.astype(np.float64) + noise.astype(np.float64) @ inverse.T
    moments = exact.astype(np.float64) / [float(STEPS) ** sum(k > 0 for k in pair) for pair in PAIRS]
    floor = FLOOR * noise_sds(released, epsilon)[3]
    return np.abs(coefficients(noisy, floor) - coefficients(moments[None], 0.0))


def main() -> None:
    """Print the noise on moments, then the errors of coefficients on each data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=400)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument(
        "--data", nargs=7, action="append", default=[], help="FILE and name, lower, upper of both"
    )
    arguments: Any = parser.parse_args()
    rng = np.random.default_rng()
    designs = {"rotated": rotated_map(NAMES, STEPS, linear=True), "parabolas": two_column_map(NAMES, STEPS)}
    print("standard deviation of the noise, half ranges, epsilon 1")
    print(f"{'':12}" + "".join(f"{name:>8}" for name in SHOWN))
    for name, released in designs.items():
        sds = noise_sds(released, 1.0)
        print(f"{name:12}" + "".join(f"{sds[PAIRS.index(pair)]:8.2f}" for pair in SHOWN.values()))
    print(f"\nepsilon {arguments.epsilon:g}, {arguments.cells} releases")
    print(f"{'':44}{'median error of the slope':>32}" + "".join(f"{number:>24}" for number in NUMBERS))
    print(f"{'':44}{'rotated':>16}{'parabolas':>16}" + f"{'gain, median':>14}{'and rms':>10}" * len(NUMBERS))
    for title, data in (*generated(rng), *map(of_file, arguments.data)):
        theirs, ours = (
            errors(released, data, arguments.epsilon, arguments.cells, rng) for released in designs.values()
        )
        line = f"{np.median(theirs[:, 0]):16.6f}{np.median(ours[:, 0]):16.6f}"
        for k in range(len(NUMBERS)):
            line += f"{np.median(theirs[:, k]) / np.median(ours[:, k]):14.2f}"
            line += f"{math.sqrt(np.mean(theirs[:, k] ** 2) / np.mean(ours[:, k] ** 2)):10.2f}"
        print(f"{title:44}{line}", flush=True)


if __name__ == "__main__":
    main()

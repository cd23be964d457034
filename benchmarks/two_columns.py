"""Errors of a regression with one predictor: parabolas of sum and difference beside two other designs.

    python benchmarks/two_columns.py [--cells 400] [--epsilon 1]
        [--data FILE.parquet PREDICTOR LOWER UPPER OUTCOME LOWER UPPER]...

All designs release the same data at the same epsilon, with a private number of rows, `--cells` times each:

- rotated: the moments of three and more columns, here of two;
- simplices: with the columns x, y on 0..1, the sums of (x^2, 2 x (1 - x), (1 - x)^2), the same of y, and of
  (x y, x (1 - y), (1 - x) y, (1 - x) (1 - y)). Each of the three adds up to 1 in every record, and moments
  are their best linear estimates. "half product" gives the third half of epsilon, "even" each a third. This
  is how arXiv:2604.11820 is understood from its abstract and public summaries; its text was not at hand;
- parabolas: what two columns are released as.

Coefficients are those of the noisy covariance matrix, its eigenvalues kept at what the noise can hide, and in
half ranges of the columns. An error is a distance from the coefficient without noise; a gain is a design's
median error, or root mean square, over that of the parabolas. A median favours the rotated design: its
product has the noise of a single component, of long tails about a narrow middle.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.terms.statistics.moment_columns import rotated_map, two_column_map

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


@dataclass(frozen=True, slots=True)
class Design:
    """What noise a design puts on moments, in half ranges.

    Attributes
    ----------
    recovery : ndarray of shape (n_moments, n_components)
        Moments from released components.
    scales : ndarray of shape (n_components,)
        Laplace scale of each component at epsilon 1.
    """

    recovery: Floats
    scales: Floats

    def sds(self) -> Floats:
        """Standard deviations of the noise on the moments at epsilon 1."""
        sds: Floats = math.sqrt(2.0) * np.linalg.norm(self.recovery * self.scales, axis=1)
        return sds


def of_map(released: Map) -> Design:
    """Return the design of a map on the lattice."""
    recovery = np.zeros((len(PAIRS), len(released.components)))
    for row, pair in enumerate(PAIRS):
        unit = STEPS ** sum(column > 0 for column in pair)
        for position, weight in released.moments[pair].coefficients.items():
            recovery[row, position] = float(weight / unit)
    return Design(recovery, np.full(recovery.shape[1], float(released.record_l1 or 0)))


def simplices(shares: tuple[float, float, float]) -> Design:
    """Return the design of three simplices with shares of epsilon."""
    x, y = np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.0, 0.5])
    other = np.array([1.0, 0.0, 0.0])

    def product(left: Floats, right: Floats, times: float = 1.0) -> list[float]:
        """Coefficients of a product of two linear forms in 1, u, v over PAIRS."""
        return [times * (left[i] * right[j] + (left[j] * right[i] if i != j else 0.0)) for i, j in PAIRS]

    of_x = [product(x, x), product(x, other - x, 2.0), product(other - x, other - x)]
    of_y = [product(y, y), product(y, other - y, 2.0), product(other - y, other - y)]
    of_both = [product(left, right) for left in (x, other - x) for right in (y, other - y)]
    components = np.array([*of_x, *of_y, *of_both])
    # A record moves every simplex by 1 in all.
    scales = np.repeat(1.0 / np.array(shares), [3, 3, 4])
    # Gauss and Markov: weights are inverse variances.
    weighted = components.T / scales**2
    return Design(np.linalg.solve(weighted @ components, weighted), scales)


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


def errors(design: Design, data: Floats, epsilon: float, cells: int, rng: np.random.Generator) -> Floats:
    """Release the data many times; return the errors of the three numbers, (n_cells, 3)."""
    columns = np.concatenate([np.ones((len(data), 1)), data], axis=1)
    moments = np.array([np.sum(columns[:, i] * columns[:, j]) for i, j in PAIRS])
    noise = rng.laplace(scale=design.scales / epsilon, size=(cells, len(design.scales)))
    floor = FLOOR * design.sds()[3] / epsilon
    return np.abs(coefficients(moments + noise @ design.recovery.T, floor) - coefficients(moments[None], 0.0))


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
    parabolas = of_map(two_column_map(NAMES, STEPS))
    others = {
        "rotated": of_map(rotated_map(NAMES, STEPS, linear=True)),
        "simplices, even": simplices((1 / 3, 1 / 3, 1 / 3)),
        "simplices, half product": simplices((1 / 4, 1 / 4, 1 / 2)),
    }
    print("standard deviation of the noise, half ranges, epsilon 1")
    print(f"{'':24}" + "".join(f"{name:>8}" for name in SHOWN))
    for name, design in {**others, "parabolas": parabolas}.items():
        print(f"{name:24}" + "".join(f"{design.sds()[PAIRS.index(pair)]:8.2f}" for pair in SHOWN.values()))
    print(f"\nepsilon {arguments.epsilon:g}, {arguments.cells} releases; errors over those of parabolas")
    print(f"{'':68}" + "".join(f"{number:>20}" for number in NUMBERS))
    print(f"{'':68}" + f"{'median':>12}{'rms':>8}" * len(NUMBERS))
    for title, data in (*generated(rng), *map(of_file, arguments.data)):
        ours = errors(parabolas, data, arguments.epsilon, arguments.cells, rng)
        for name, design in others.items():
            theirs = errors(design, data, arguments.epsilon, arguments.cells, rng)
            line = "".join(
                f"{np.median(theirs[:, k]) / np.median(ours[:, k]):12.2f}"
                f"{math.sqrt(np.mean(theirs[:, k] ** 2) / np.mean(ours[:, k] ** 2)):8.2f}"
                for k in range(len(NUMBERS))
            )
            print(f"{title:44}{name:24}{line}", flush=True)


if __name__ == "__main__":
    main()

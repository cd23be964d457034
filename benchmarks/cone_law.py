"""Check the formulas of `docs/explanation/cone.md`, and print its tables of noise.

    PYTHONPATH=tests python benchmarks/cone_law.py [--draws 200000] [--batches 3]

- noise: standard deviations at epsilon 1 in half ranges, by mechanism;
- slice: its moments by rejection from a cube, which knows nothing of spheres and balls, beside the
  formulas;
- law: variances and covariances of simulated noise beside the formulas; the share of matrices P with P - H
  in the cone, which is exp(-epsilon) for every record H: why P alone is not private;
- loss: the density of P - Q by quadrature for one column, and its largest log ratio to itself moved by a
  record.
"""

from __future__ import annotations

import argparse
import math
import time
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from two_columns import of_map, simplices

from suffice.pipeline.terms.statistics.cone_noise import ConeNoise
from suffice.pipeline.terms.statistics.moment_columns import rotated_map, two_column_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

STEPS = 1 << 16
COLUMNS = (1, 2, 3, 4, 5, 8)
CHAINS, WARM_UP, KEPT = 2000, 1000, 150
SHOWN = ("n", "x", "x^2", "x y")


def unit_noise(columns: int) -> ConeNoise:
    """Return noise on a cone at epsilon 1, in half ranges."""
    return ConeNoise(rate=Fraction(1), columns=columns, linear=True, steps=1)


def formula(columns: int) -> tuple[float, ...]:
    """Return the standard deviations of n, a sum, a square and a product by the formulas of the note."""
    p = columns + 1
    size, c = p * (p + 1) / 2, (p + 1) / (p + 3)
    e = size * (size + 1)
    variances = (
        2 * size,
        2 * e / (p + 3),
        2 * (e * (p + 1) / (p + 5) - (size * c) ** 2),
        2 * e * (p + 1) / (p + 3) ** 2,
    )
    return tuple(math.sqrt(variance) for variance in variances)


def require_same(columns: int) -> None:
    """Refuse a formula that differs from the exact variances of a plan."""
    noise = unit_noise(columns)
    for sd, pair in zip(formula(columns), ((0, 0), (0, 1), (1, 1), (1, 2)), strict=True):
        if pair in noise.pairs and not math.isclose(sd**2, noise.covariance_of(pair, pair), rel_tol=1e-12):
            raise ValueError(columns, pair)


def cube(columns: int) -> tuple[float, ...]:
    """Return those of noise by the L-infinity norm of (n, x, x y, 2 x^2 - n), which a record moves by 1."""
    size = (columns + 1) * (columns + 2) / 2
    sd = math.sqrt((size + 1) * (size + 2) / 3)
    return sd, sd, sd / math.sqrt(2), sd


def wisharts(columns: int) -> tuple[float, ...]:
    """Return those of a difference of Wishart matrices: every semidefinite P, and l its trace over p."""
    p = columns + 1
    return p * math.sqrt(p + 1), p * math.sqrt((p + 1) / 2), p * math.sqrt(p + 1), p * math.sqrt((p + 1) / 2)


def trace_norm(columns: int, rng: np.random.Generator) -> tuple[float, ...]:
    """Return those of noise by the trace norm, at most p of a record, by a walk over eigenvalues."""
    p = columns + 1
    pairs = list(combinations(range(p), 2))
    first, second = [i for i, _ in pairs], [j for _, j in pairs]

    def log_density(values: Floats) -> Floats:
        gaps = np.abs(values[:, first] - values[:, second])
        density: Floats = np.sum(np.log(gaps), axis=1) - np.sum(np.abs(values), axis=1)
        return density

    values = rng.normal(size=(CHAINS, p)) * p
    density = log_density(values)
    squares, trace = [], []
    for step in range(WARM_UP + KEPT * 10):
        size = 2.0 if step % 2 else 0.7
        moved = values + size * rng.standard_normal(values.shape) / math.sqrt(p) * 1.5
        of_moved = log_density(moved)
        taken = np.log(rng.random(CHAINS)) < of_moved - density
        values[taken], density[taken] = moved[taken], of_moved[taken]
        if step >= WARM_UP and step % 10 == 0:
            squares.append(np.mean(np.sum(values**2, axis=1)))
            trace.append(np.mean(np.sum(values, axis=1) ** 2))
    # Means over uniform eigenvectors, of a sensitivity of p.
    square, squared_trace = p**2 * np.mean(squares), p**2 * np.mean(trace)
    diagonal = (2 * square + squared_trace) / (p * (p + 2))
    off = (p * square - squared_trace) / (p * (p - 1) * (p + 2))
    return math.sqrt(diagonal), math.sqrt(off), math.sqrt(diagonal), math.sqrt(off)


def laplace(columns: int) -> tuple[float, ...]:
    """Return those of Laplace noise on rotated moments."""
    of = rotated_map(tuple(map(str, range(columns))), STEPS, linear=True)
    sds = []
    for row in ((0, 0), (0, 1), (1, 1), (1, 2)):
        if row in of.moments:
            unit = STEPS ** sum(column > 0 for column in row)
            weights = [float(weight / unit) for weight in of.moments[row].coefficients.values()]
            sds.append(math.sqrt(2.0) * float(of.record_l1 or 0) * math.hypot(*weights))
    return tuple(sds)


def designs(columns: int, rng: np.random.Generator) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield mechanisms and their standard deviations."""
    shown = [0, 1, 3, 4]
    if columns == 2:
        for name, shares in (("even", (1 / 3, 1 / 3, 1 / 3)), ("half to products", (0.25, 0.25, 0.5))):
            yield f"simplices, {name}", tuple(simplices(shares).sds()[shown])
        yield "parabolas (Laplace)", tuple(of_map(two_column_map(("x", "y"), STEPS)).sds()[shown])
    yield "rotated moments (Laplace)", laplace(columns)
    yield "L-infinity", cube(columns)
    yield "trace norm", trace_norm(columns, rng)
    yield "difference of Wisharts", wisharts(columns)
    yield "cone", formula(columns)


def by_rejection(columns: int, draws: int, rng: np.random.Generator) -> tuple[Floats, int]:
    """Return points of the slice, (n_points, p, p), and how many of a cube were tried."""
    p = columns + 1
    kept, tried = [], 0
    while sum(map(len, kept)) < draws:
        matrix = np.zeros((200_000, p, p))
        matrix[:, 0, 0] = 1.0
        for i, j in combinations(range(p), 2):
            matrix[:, i, j] = matrix[:, j, i] = rng.uniform(-1.0, 1.0, len(matrix))
        for i in range(1, p):
            matrix[:, i, i] = rng.uniform(0.0, 1.0, len(matrix))
        minors = [np.linalg.det(matrix[:, : i + 1, : i + 1]) >= 0 for i in range(1, p)]
        kept.append(matrix[np.all(minors, axis=0)])
        tried += len(matrix)
    return np.concatenate(kept), tried


def of_balls(columns: int, draws: int, rng: np.random.Generator) -> Floats:
    """Return the matrices t G of a sphere's and balls' points, (n_draws, p, p), as the sampler makes them."""
    p = columns + 1
    points = rng.standard_normal((draws, p, p + 1))
    more = np.concatenate(
        [np.zeros((draws, 1, 1)), 2.0 * rng.standard_exponential((draws, columns, 1))], axis=1
    )
    points /= np.sqrt(np.sum(points**2, axis=2, keepdims=True) + more)
    t = rng.standard_gamma(p * (p + 1) / 2, (draws, 1, 1))
    matrices: Floats = t * (points @ np.swapaxes(points, 1, 2))
    return matrices


def largest_deviation(
    columns: int, draws: int, batches: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the largest and the mean squared distance of covariances from formulas, in standard errors."""
    pairs = unit_noise(columns).pairs
    products, squares = np.zeros((2, len(pairs), len(pairs)))
    for _ in range(batches):
        noise = of_balls(columns, draws, rng) - of_balls(columns, draws, rng)
        entries = np.stack([noise[:, i, j] for i, j in pairs], axis=1)
        products += entries.T @ entries / (draws * batches)
        squares += (entries**2).T @ entries**2 / (draws * batches)
    errors = np.sqrt((squares - products**2) / (draws * batches))
    off = ((products - unit_noise(columns).covariance) / errors)[np.triu_indices(len(pairs))]
    return float(np.max(np.abs(off))), float(np.mean(off**2))


def share_inside(columns: int, draws: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the share of P - H in the cone, for a record inside the bounds, and its standard error."""
    z = np.concatenate([[1.0], rng.uniform(-1.0, 1.0, columns)])
    moved = of_balls(columns, draws, rng) - np.outer(z, z)
    diagonal = moved[:, range(1, columns + 1), range(1, columns + 1)]
    inside = (np.linalg.eigvalsh(moved)[:, 0] >= 0) & np.all(diagonal <= moved[:, :1, 0], axis=1)
    return float(inside.mean()), float(inside.std() / math.sqrt(draws))


def density(n: float, x: float, square: float, cells: int = 700) -> float:
    """Return the density of P - Q of one column at (n, x, x^2), but for a constant, by quadrature."""
    start, width = max(0.0, n), 18.0
    of_n = (start + (np.arange(cells) + 0.5) / cells * width)[:, None]
    of_x = of_n * (-1.0 + 2.0 * (np.arange(cells) + 0.5) / cells)
    # P and Q = P - Z are in the cone where the third entry is between these.
    low = np.maximum(of_x**2 / of_n, (of_x - x) ** 2 / np.maximum(of_n - n, 1e-300) + square)
    high = np.minimum(of_n, of_n - n + square)
    room = np.maximum(high - low, 0.0).sum(axis=1) * (2.0 * of_n[:, 0] / cells)
    return float(np.sum(room * np.exp(-2.0 * of_n[:, 0] + n)) * width / cells)


def largest_loss(points: int, rng: np.random.Generator) -> float:
    """Return the largest log ratio of densities at points that differ by a record."""
    worst = 0.0
    for _ in range(points):
        p, q = (of_balls(1, 1, rng)[0] for _ in range(2))
        here = np.array([(p - q)[0, 0], (p - q)[0, 1], (p - q)[1, 1]])
        level = math.log(density(*here))
        for value in (-1.0, 0.0, 0.6):
            record = np.array([1.0, value, value**2])
            worst = max(worst, *(abs(math.log(density(*(here + s * record))) - level) for s in (1, -1)))
    return worst


def main() -> None:
    """Print every table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=200_000)
    parser.add_argument("--batches", type=int, default=3)
    given = parser.parse_args()
    rng = np.random.default_rng(1511)
    print("| columns | mechanism | " + " | ".join(SHOWN) + " |\n|---|---|---|---|---|---|")
    for columns in COLUMNS:
        require_same(columns)
        for name, sds in designs(columns, rng):
            cells = [f"{sd:.2f}" for sd in sds[: 3 if columns == 1 else 4]]
            print(f"| {columns} | {name} | " + " | ".join(cells) + " |", flush=True)
    print("\nslice: columns, accepted of the cube, standard errors off")
    print("of G_11, G_11^2, G_01^2, G_12^2, G_11 G_22")
    for columns, draws in ((1, given.draws), (2, given.draws), (3, 20_000)):
        points, tried = by_rejection(columns, draws, rng)
        m = columns + 2
        c = m / (m + 2)
        told = [
            (points[:, 1, 1], c),
            (points[:, 1, 1] ** 2, m / (m + 4)),
            (points[:, 0, 1] ** 2, 1 / (m + 2)),
        ]
        if columns > 1:
            told += [(points[:, 1, 2] ** 2, m / (m + 2) ** 2), (points[:, 1, 1] * points[:, 2, 2], c**2)]
        off = [(np.mean(x) - exact) / (np.std(x) / math.sqrt(len(x))) for x, exact in told]
        print(columns, f"{len(points) / tried:.5f}", np.round(off, 2))
    print(
        "\nlaw: columns; covariances: largest distance in standard errors, mean square; share of P - H inside"
    )
    for columns in (1, 2, 4, 7):
        share, error = share_inside(columns, given.draws, rng)
        largest, square = largest_deviation(columns, given.draws, given.batches, rng)
        print(columns, f"{largest:.2f} {square:.2f}", f"{share:.5f} ({error:.5f})")
    print(f"\nloss: largest log ratio by quadrature, one column, epsilon 1: {largest_loss(40, rng):.5f}")
    print(f"\n{time.process_time():.0f} CPU s")


if __name__ == "__main__":
    main()

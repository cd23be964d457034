"""Quantiles and means from a noisy histogram, beside trees, the exponential mechanism and released sums.

    python -m benchmarks.histogram_quantiles /path/to/nycflights13/flights.parquet /path/to/adult.parquet

For every column, number of records and epsilon: samples with replacement from the column, whose own quantiles
are the truth of the law; those of the sample are the truth of the rows. Histogram and trees have the same
bins. A row of the first table: coverage of 95 % intervals, of the law and of the rows, with the share of
refused ones, and their median width; then the root mean squared rank error, and the mean absolute error, of

- ours: the posterior median;
- binary, 16-ary: trees with an equal part of epsilon a level, made consistent by least squares (Hay et al.,
  as OpenDP's ``make_consistent_b_ary_tree``), counts below 0 taken for 0, linear in a leaf;
- walk-down: 16-ary of four levels over equal leaves, as Google's library documents it: from the root to the
  child that the rank falls into, children with less than .0075 of the noisy counts left out;
- exponential: rank as utility, over 8 candidates a bin, with a quarter of epsilon for each of four quantiles;
  and with all of epsilon for one;
- no privacy: the sample's quantile.

Estimates of columns of whole numbers are rounded, everyone's. Lines that begin with MEAN: coverage, root mean
squared error and median width of the mean by histogram, also where values are taken for even in bins, and by
the sums that the normal family releases, as a ratio with the delta method; and CPU seconds a release.

The rank error is 0 where the estimate is the quantile of a law with atoms.
"""

from __future__ import annotations

import argparse
import itertools
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.engines.histogram.column_law import LAW, ROWS, column_law
from suffice.pipeline.math.engines.histogram.histogram_posterior import histogram_posterior
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals

if TYPE_CHECKING:
    from suffice.typing import Floats

LEVELS = (0.1, 0.5, 0.9, 0.99)
SIZES, EPSILONS = (300, 3_000, 30_000), (0.1, 1.0)
DRAWS = 1_000
PER_BIN = 8
LEAST_SHARE = 0.0075
"""Of the noisy counts of siblings, as Google's quantile tree has it."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column's values, sorted, its public bins, and whether values are known to be whole numbers."""

    name: str
    values: Floats
    edges: Floats
    atoms: tuple[float, ...] = ()
    whole: bool = False

    @property
    def bins(self) -> SimpleNamespace:
        """Lower and upper ends, atoms in their places."""
        points = np.unique(np.concatenate([self.edges, self.atoms]))
        ends = [(a, b) for a, b in itertools.pairwise(points)] + [(a, a) for a in self.atoms]
        lower, upper = np.array(sorted(ends)).T
        return SimpleNamespace(lower=lower, upper=upper, is_atom=lower == upper)

    def counts(self, values: Floats) -> Floats:
        """Count values, which are sorted, in bins."""
        bins = self.bins
        atoms = np.isin(bins.lower, self.atoms)
        above = np.where(atoms & ~bins.is_atom, "right", "left")
        begins = np.where(
            above == "right",
            np.searchsorted(values, bins.lower, side="right"),
            np.searchsorted(values, bins.lower, side="left"),
        )
        return np.diff(begins, append=len(values)).astype(np.float64)

    @property
    def candidates(self) -> Floats:
        """What the exponential mechanism chooses among."""
        bins = self.bins
        share = (np.arange(PER_BIN) + 0.5) / PER_BIN
        inner = bins.lower[:, None] + share * (bins.upper - bins.lower)[:, None]
        return np.unique(inner)


def quantile(values: Floats, q: float) -> float:
    """Return the least value up to which a share q of sorted values lies."""
    return float(values[int(np.ceil(q * len(values) - 1e-9)) - 1])


def rank_error(values: Floats, estimate: Floats, q: float) -> Floats:
    """Return how far the ranks of estimates are from q."""
    below = np.searchsorted(values, estimate, side="left") / len(values)
    up_to = np.searchsorted(values, estimate, side="right") / len(values)
    return np.maximum(below - q, 0.0) - np.maximum(q - up_to, 0.0)


def noise(shape: tuple[int, ...], epsilon: float, rng: np.random.Generator) -> Floats:
    """Draw discrete Laplace noise of the scale 1 / epsilon; a simulation's, no mechanism."""
    p = -np.expm1(-epsilon)
    return (rng.geometric(p, shape) - rng.geometric(p, shape)).astype(np.float64)


def consistent_leaves(counts: Floats, branching: int, epsilon: float, rng: np.random.Generator) -> Floats:
    """Return leaves (..., n_leaves) of a noisy tree that was made consistent by least squares."""
    n_levels = int(np.ceil(np.log(counts.shape[-1]) / np.log(branching) - 1e-9)) + 1
    size = branching ** (n_levels - 1)
    exact = [np.pad(counts, [(0, 0)] * (counts.ndim - 1) + [(0, size - counts.shape[-1])])]
    while exact[-1].shape[-1] > 1:
        exact.append(exact[-1].reshape(*counts.shape[:-1], -1, branching).sum(axis=-1))
    noisy = [level + noise(level.shape, epsilon / n_levels, rng) for level in exact]
    return consistent(noisy, branching)[..., : counts.shape[-1]]


def consistent(noisy: list[Floats], branching: int) -> Floats:
    """Return the leaves of least squares, of levels from the leaves to the root (Hay et al. 2010, 4.1)."""
    up = [noisy[0]]
    for height, level in enumerate(noisy[1:], start=2):
        total = up[-1].reshape(*level.shape, branching).sum(axis=-1)
        power, less = float(branching**height), float(branching ** (height - 1))
        up.append((power - less) / (power - 1.0) * level + (less - 1.0) / (power - 1.0) * total)
    fitted = up[-1]
    for level in up[-2::-1]:
        children = level.reshape(*fitted.shape, branching)
        gap = fitted - children.sum(axis=-1)
        fitted = (children + gap[..., None] / branching).reshape(*level.shape)
    return fitted


def quantiles_of_counts(counts: Floats, bins: SimpleNamespace, q: float) -> Floats:
    """Return quantiles of counts (n, n_bins), linear in a bin."""
    counts = np.maximum(counts, 0.0)
    up_to = np.cumsum(counts, axis=1)
    wanted = q * up_to[:, -1:]
    at = np.minimum(np.sum(up_to < wanted, axis=1), counts.shape[1] - 1)
    rows = np.arange(len(counts))
    inside = np.clip(1.0 - (up_to[rows, at] - wanted[:, 0]) / np.maximum(counts[rows, at], 1e-9), 0.0, 1.0)
    return bins.lower[at] + inside * (bins.upper - bins.lower)[at]


def walk_down(values: Floats, bounds: tuple[float, float], epsilon: float, rng: np.random.Generator) -> Any:
    """Return quantiles of one sample by a 16-ary tree of four levels, as its documentation describes it."""
    low, high = bounds
    leaf = np.clip(((values - low) / (high - low) * 16**4).astype(np.int64), 0, 16**4 - 1)
    levels = [np.bincount(leaf // 16 ** (3 - level), minlength=16 ** (level + 1)) for level in range(4)]
    noisy = [level + noise(level.shape, epsilon / 4.0, rng) for level in levels]
    results = []
    for q in LEVELS:
        node, rank = 0, q
        start, width = low, high - low
        for level in noisy:
            children = np.maximum(level[16 * node : 16 * node + 16], 0.0)
            children = np.where(children < LEAST_SHARE * np.sum(children), 0.0, children)
            if np.sum(children) == 0.0:
                break
            share = children / np.sum(children)
            up_to = np.cumsum(share)
            child = int(np.minimum(np.sum(up_to < rank - 1e-12), 15))
            rank = float(np.clip((rank - (up_to[child] - share[child])) / max(share[child], 1e-12), 0.0, 1.0))
            width /= 16.0
            start += child * width
            node = 16 * node + child
        results.append(start + rank * width)
    return results


def exponential(
    below: Floats, above: Floats, candidates: Floats, q: float, epsilon: float, rng: np.random.Generator
) -> float:
    """Choose a candidate by how far it is from the rank q; one record moves that by max(q, 1 - q)."""
    utility = -np.abs((1.0 - q) * below - q * above)
    return float(
        candidates[np.argmax(epsilon * utility / (2.0 * max(q, 1.0 - q)) + rng.gumbel(size=len(below)))]
    )


def released_mean(samples: list[Floats], bounds: tuple[float, float], epsilon: float, rng: Any) -> Floats:
    """Return mean, lower and upper end, (n, 3): sums of the normal family, a ratio, the delta method."""
    low, high = bounds
    centre, half = (low + high) / 2.0, (high - low) / 2.0
    results = []
    for values in samples:
        # Unit of the partition: a record adds 1 in all.
        x = (values - centre) / half
        parts = np.array([np.sum((1 - x) ** 2), np.sum(2 * (1 - x) * (1 + x)), np.sum((1 + x) ** 2)]) / 4.0
        b = 1.0 / epsilon
        parts = parts + rng.laplace(0.0, b, 3)
        n = max(np.sum(parts), 1.0)
        mean = np.clip((parts[2] - parts[0]) / n, -1.0, 1.0)
        square = np.clip((parts[2] + parts[0] - parts[1]) / n, mean**2, 1.0)
        # Of (c - a) / (a + b + c): noise of each part, and the sample's own variance.
        slope = np.array([-1.0 - mean, -mean, 1.0 - mean]) / n
        sd = np.sqrt((square - mean**2) / n + 2.0 * b**2 * np.sum(slope**2))
        results.append(centre + half * np.array([mean, mean - 1.96 * sd, mean + 1.96 * sd]))
    return np.array(results)


def columns(flights: str, adult: str) -> list[Column]:
    """Return the four columns with bins that are fine in the body and geometric beyond."""
    import pyarrow.parquet as pq

    delay = pq.read_table(flights, columns=["arr_delay"])["arr_delay"].drop_null().to_numpy()
    of_adult = pq.read_table(adult, columns=["capital-gain", "hours-per-week"])
    gain, hours = (of_adult[name].to_numpy().astype(np.float64) for name in of_adult.column_names)
    lognormal = np.exp(np.random.default_rng(20).normal(3.0, 1.2, 1_000_000)).clip(0.0, 10_000.0)
    return [
        Column(
            name="arrival delay",
            values=np.sort(delay.astype(np.float64)),
            edges=np.concatenate(
                [np.arange(-90.5, 119.0, 3.0), np.geomspace(119.5, 1299.5, 30).round() + 0.5]
            ),
            atoms=(0.0,),
            whole=True,
        ),
        Column(
            name="capital gain",
            values=np.sort(gain),
            edges=np.unique(np.concatenate([[0.0], np.geomspace(100.0, 100_000.0, 60).round()])),
            atoms=(0.0, 99_999.0),
            whole=True,
        ),
        Column(name="hours", values=np.sort(hours), edges=np.arange(0.5, 100.0), whole=True),
        Column(
            name="lognormal",
            values=np.sort(lognormal),
            edges=np.concatenate([np.arange(0.0, 60.0, 1.0), np.geomspace(60.0, 10_000.0, 45)]),
        ),
    ]


def study(column: Column, n: int, epsilon: float, releases: int, rng: np.random.Generator) -> list[str]:
    """Return lines of the tables for one setting."""
    bins, candidates = column.bins, column.candidates
    bounds = float(bins.lower[0]), float(bins.upper[-1])
    samples = [np.sort(rng.choice(column.values, n)) for _ in range(releases)]
    counts = np.stack([column.counts(each) for each in samples])
    noisy = counts + noise(counts.shape, epsilon, rng)
    begun = time.process_time()
    posterior = histogram_posterior(NoisyTotals.of_counts([noisy], [1.0 / epsilon]), bins)
    law = column_law(posterior, DRAWS, rng, of=LAW)
    seconds = (time.process_time() - begun) / releases
    rows = column_law(posterior, DRAWS, rng, of=ROWS)
    trees = {b: consistent_leaves(counts, b, epsilon, rng) for b in (2, 16)}
    walked = np.array([walk_down(each, bounds, epsilon, rng) for each in samples])
    below = [np.searchsorted(each, candidates, side="left").astype(np.float64) for each in samples]
    above = [n - np.searchsorted(each, candidates, side="right").astype(np.float64) for each in samples]
    lines = []
    for position, q in enumerate(LEVELS):
        truth, of_samples = quantile(column.values, q), np.array([quantile(each, q) for each in samples])
        ours, of_rows = law.quantile(q), rows.quantile(q)
        covered = (ours.lower <= truth) & (truth <= ours.upper)
        of_rows_covered = (of_rows.lower <= of_samples) & (of_samples <= of_rows.upper)
        chosen = [
            np.array([exponential(b, a, candidates, q, part, rng) for b, a in zip(below, above, strict=True)])
            for part in (epsilon / len(LEVELS), epsilon)
        ]
        # The median, also where it is refused: what is compared is all of them.
        middle = np.median(law._quantiles(q)[0], axis=0)  # noqa: SLF001 - refused estimates too
        estimates = [
            middle,
            quantiles_of_counts(trees[2], bins, q),
            quantiles_of_counts(trees[16], bins, q),
            walked[:, position],
            *chosen,
            of_samples,
        ]
        if column.whole:
            estimates = [np.rint(each) for each in estimates]
        ranks = [np.sqrt(np.mean(rank_error(column.values, each, q) ** 2)) for each in estimates]
        errors = [np.mean(np.abs(each - truth)) for each in estimates]
        lines.append(
            f"| {column.name} | {n} | {epsilon:g} | {q:g} "
            f"| {np.mean(covered):.3f} | {np.mean(of_rows_covered):.3f} "
            f"| {np.mean(ours.refused):.2f} | {np.median(ours.upper - ours.lower):.4g} | "
            + " | ".join(f"{1e4 * rank:.0f}, {error:.3g}" for rank, error in zip(ranks, errors, strict=True))
            + " |"
        )
    truth = float(np.mean(column.values))
    sums = released_mean(samples, bounds, epsilon, rng)
    for name, of in (("histogram", law.mean()), ("even in bins", law.mean(is_even=True))):
        covered = (of.lower <= truth) & (truth <= of.upper)
        error = np.sqrt(np.nanmean((of.mean - truth) ** 2))
        lines.append(
            f"MEAN | {column.name} | {n} | {epsilon:g} | {name} | {np.mean(covered):.3f} | {error:.4g} "
            f"| {np.median(of.upper - of.lower):.4g} | {np.mean(of.refused):.2f} | {seconds:.3f} |"
        )
    covered = (sums[:, 1] <= truth) & (truth <= sums[:, 2])
    lines.append(
        f"MEAN | {column.name} | {n} | {epsilon:g} | sums | {np.mean(covered):.3f} "
        f"| {np.sqrt(np.mean((sums[:, 0] - truth) ** 2)):.4g} "
        f"| {np.median(sums[:, 2] - sums[:, 1]):.4g} | | |"
    )
    return lines


def main() -> None:
    """Print a line of the tables for every setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("flights")
    parser.add_argument("adult")
    parser.add_argument("--releases", type=int, default=100)
    arguments = parser.parse_args()
    rng = np.random.default_rng()
    for n in SIZES:
        for epsilon in EPSILONS:
            for column in columns(arguments.flights, arguments.adult):
                print(*study(column, n, epsilon, arguments.releases, rng), sep="\n", flush=True)


if __name__ == "__main__":
    main()

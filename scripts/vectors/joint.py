"""Joint posteriors that readers are held to: counts of trees and bins of histograms, without any release."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.engines.histogram.column_law import LAW, ROWS, column_law
from suffice.pipeline.math.engines.histogram.histogram_posterior import histogram_posterior
from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
from suffice.pipeline.math.engines.tree.populations import (
    DEFAULT,
    RECIPROCAL,
    ZERO_INFLATED,
    named_population,
)
from suffice.pipeline.math.engines.tree.posterior import tree_posterior
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics.histogram_bins import HistogramBins

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.histogram.histogram_posterior import HistogramPosterior
    from suffice.typing import Floats

MASS = 0.95
DRAWS = 40_000
"""Of a histogram: frequencies that another reader's draws are compared with."""
DIGITS = 11
LEVELS = (0.1, 0.5, 0.9)
_SHOWN = 40
"""Nodes of a level that are stated, evenly spread over it."""
_MOST_COUNT = 120
"""Of leaves that are enumerated."""
COMPARED = {"log_evidence": 1e-7, "mean_in_sds": 1e-6, "sd": 1e-6}
"""How far a reader may be off: windows of messages are cut where 1e-12 is outside."""


def tree_cases() -> dict[str, NoisyTree]:
    """Return trees of noisy counts that differ in all that matters to an engine."""
    return {
        "three levels below the root": _tree(
            [[0, 0, 0], [0, 0, 1, 2, 2], [0, 1, 1, 2, 3, 4, 4, 4]], (4, 3, 2, 1)
        ),
        "a level that was not released": _tree([[0, 0, 0], [0, 0, 1, 1, 1, 2]], (5, None, 1.5)),
        "leaves that were not released": _tree([[0, 0], [0, 0, 1, 1, 1]], (6, 2, None)),
        "known sizes": _tree([[0, 0], [0, 0, 0, 1, 1]], (3, 3, 3), sizes=[1, 2, 0.5, 4, 1]),
        "wide noise": _tree([[0] * 6, np.repeat(np.arange(6), 10).tolist()], (80, 40, 20)),
        "many leaves": _tree([[0] * 30, np.repeat(np.arange(30), 69).tolist()], (7, 3.5, 1)),
        "weights of the reciprocal": _tree([[0, 0], [0, 1, 1]], (3, 2, 1.5)),
        "a share of empty leaves": _tree([[0, 0, 0], np.repeat(np.arange(3), 8).tolist()], (4, 3, 2)),
    }


POPULATION_OF = {"weights of the reciprocal": RECIPROCAL, "a share of empty leaves": ZERO_INFLATED}
"""Of the cases whose leaves are not contaminated."""


def _tree(
    parents: list[list[int]], scales: tuple[float | None, ...], sizes: list[float] | None = None
) -> NoisyTree:
    """Return a tree whose released values follow from a plain rule: off by some scales, a few below 0."""
    leaf = np.arange(len(parents[-1]))
    count = (7 * leaf * leaf + 3 * leaf) % 23 + 40 * (leaf % 7 == 0)
    values: list[NDArray[np.int64] | None] = []
    for level in range(len(scales) - 1, -1, -1):
        scale = scales[level]
        off = np.zeros(len(count)) if scale is None else scale * ((5 * np.arange(len(count)) + 2) % 7 - 3) / 2
        values.insert(0, None if scale is None else np.asarray(np.round(count + off), dtype=np.int64))
        if level:
            count = np.bincount(parents[level - 1], count).astype(np.int64)
    return NoisyTree(
        parents=tuple(np.array(each, dtype=np.int64) for each in parents),
        values=tuple(values),
        scales=scales,
        sizes=None if sizes is None else np.array(sizes, dtype=np.float64),
    )


def trees_document() -> dict[str, Any]:
    """Return trees, what was released of them, and what is known of their counts."""
    cases = []
    for about, tree in tree_cases().items():
        population = POPULATION_OF.get(about, DEFAULT)
        posterior = tree_posterior(tree, named_population(population))
        stated = [
            (level, posterior.means(level), posterior.sds(level), *posterior.interval(level, MASS))
            for level in range(tree.depth + 1)
        ]
        cases.append(
            {
                "about": about,
                "population": population,
                "parents": [each.tolist() for each in tree.parents],
                "values": [None if each is None else each.tolist() for each in tree.values],
                "scales": list(tree.scales),
                "sizes": None if tree.sizes is None else tree.sizes.tolist(),
                "log_evidence": rounded(posterior.log_evidence),
                "nodes": [
                    {
                        "level": level,
                        "node": node,
                        "mean": rounded(means[node]),
                        "sd": rounded(sds[node]),
                        "lower": int(lower[node]),
                        "upper": int(upper[node]),
                    }
                    for level, means, sds, lower, upper in stated
                    for node in _spread(len(means))
                ],
            }
        )
    return {"mass": MASS, "tolerance": COMPARED, "cases": cases, "enumerated": enumerated(tree_cases())}


def enumerated(cases: dict[str, NoisyTree]) -> dict[str, Any]:
    """Return what is known of one case by a sum over all counts of its leaves.

    Evidence and means; of each leaf the mean share of the root and the chance to be the highest, where equal
    ones are as probably the higher; and of the first and the last leaf together mean and sd.
    """
    about = "weights of the reciprocal"
    tree = cases[about]
    leaves = np.stack(np.meshgrid(*[np.arange(_MOST_COUNT)] * tree.n_leaves, indexing="ij"), axis=-1)
    counts = [leaves.reshape(-1, tree.n_leaves)]
    for parents in reversed(tree.parents):
        of = parents[:, None] == np.arange(parents.max() + 1)
        counts.insert(0, counts[0] @ of.astype(np.int64))
    weight = np.prod(1.0 / (1.0 + counts[-1]), axis=1)
    for level, values, scale in zip(counts, tree.values, tree.scales, strict=True):
        assert values is not None  # noqa: S101
        assert scale is not None  # noqa: S101
        noise = np.tanh(0.5 / scale) * np.exp(-np.abs(level - values) / scale)
        weight = weight * np.prod(noise, axis=1)
    total = weight.sum()
    root, last = counts[0][:, 0], counts[-1]
    has_any = weight * (root > 0)
    shares = has_any @ (last / np.maximum(root, 1)[:, None]) / has_any.sum()
    is_highest = last == last.max(axis=1)[:, None]
    highest = weight @ (is_highest / is_highest.sum(axis=1)[:, None]) / total
    ends = last[:, 0] + last[:, -1]
    mean = weight @ ends / total
    return {
        "about": about,
        "log_evidence": rounded(float(np.log(total))),
        "means": [[rounded(mean) for mean in weight @ level / total] for level in counts],
        "shares_of_root": [rounded(share) for share in shares],
        "highest": [rounded(chance) for chance in highest],
        "first_and_last": {
            "mean": rounded(mean),
            "sd": rounded(float(np.sqrt(weight @ (ends - mean) ** 2 / total))),
        },
        "relative": 1e-8,
    }


def histogram_cases() -> dict[str, tuple[HistogramBins, NDArray[np.int64], float]]:
    """Return bins, noisy counts and the scale of their noise."""
    even = HistogramBins(edges=tuple(map(Fraction, range(33))))
    atoms = HistogramBins(
        edges=tuple(map(Fraction, (0, 1, 2, 4, 8, 16, 32, 64))), atoms=(Fraction(0), Fraction(20))
    )
    smooth = np.round(400 * np.exp(-0.5 * ((np.arange(32) - 12.5) / 4) ** 2)).astype(np.int64)
    ripple = (7 * np.arange(32) ** 2) % 11 - 5
    return {
        "a smooth column": (even, smooth + ripple, 2.5),
        "few records under wide noise": (even, smooth // 40 + 5 * ripple, 20.0),
        "atoms, and bins that grow": (
            atoms,
            np.array([90, 4, 31, 22, 15, -3, 2, 61, 1, -1][: len(atoms)]),
            2.0,
        ),
        "thousands of records": (even, 500 * smooth + ripple, 1.0),
    }


def histograms_document() -> dict[str, Any]:
    """Return bins, noisy counts, expected counts, and how often each bin holds a quantile."""
    cases = []
    for about, (bins, values, scale) in histogram_cases().items():
        posterior = posterior_of(bins, values, scale)
        means, sds = posterior.expected_counts()
        cases.append(
            {
                "about": about,
                "bins": bins.written(),
                "values": values.tolist(),
                "scale": scale,
                "log_evidence": rounded(posterior.log_evidence()[0]),
                "means": [rounded(mean) for mean in means[0]],
                "sds": [rounded(sd) for sd in sds[0]],
                "columns": [_column(posterior, of) for of in (LAW, ROWS)],
            }
        )
    return {"draws": DRAWS, "tolerance": {"log_evidence": 1e-8, "relative": 1e-7}, "cases": cases}


def posterior_of(bins: HistogramBins, values: NDArray[np.int64], scale: float) -> HistogramPosterior:
    """Return the posterior of one cell."""
    totals = NoisyTotals.of_counts([values[None].astype(np.float64)], [scale])
    return histogram_posterior(totals, bins)


def _column(posterior: HistogramPosterior, of: str) -> dict[str, Any]:
    law = column_law(posterior, DRAWS, np.random.default_rng(1), of=of)
    up_to = np.cumsum(law.shares[:, 0], axis=1)
    ends = law.shares[:, 0] @ law.lower, law.shares[:, 0] @ law.upper
    n_bins = len(law.lower)
    # Of nothing nothing is known: a quantile is from the first bin on.
    up_to[law.is_empty[:, 0]] = 1.0
    frequencies: list[Floats] = [
        np.bincount(np.minimum((up_to < level).sum(axis=1), n_bins - 1), minlength=n_bins) / DRAWS
        for level in LEVELS
    ]
    return {
        "of": of,
        "levels": list(LEVELS),
        "frequencies": [each.tolist() for each in frequencies],
        "mean_between": [
            {"mean": rounded(float(np.mean(each))), "sd": rounded(float(np.std(each)))} for each in ends
        ],
    }


def _spread(n_nodes: int) -> list[int]:
    return sorted(set(np.linspace(0, n_nodes - 1, min(n_nodes, _SHOWN)).round().astype(int).tolist()))


def rounded(number: float) -> float:
    """Return a number to the digits that are stated."""
    return float(f"{float(number):.{DIGITS}g}")


__all__ = ["COMPARED", "MASS", "histograms_document", "rounded", "trees_document"]

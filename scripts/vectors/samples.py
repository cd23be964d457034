"""Draws of a sample's exact law with known random numbers, for test vectors: they protect nobody."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.priors.mixtures import log_prior_on_points
from suffice.pipeline.spec.compiled_statistics import score_tables
from suffice.pipeline.terms.declaration.fields import SampleEntry, sample_entry
from suffice.pipeline.terms.statistics.statistic_plan import SamplePlan

if TYPE_CHECKING:
    import random

    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


def records_and_totals(
    plan: StatisticPlan, entry: StatisticSpec, sums: NDArray[np.object_]
) -> NDArray[np.object_]:
    """Return the records of each cell and their sum of T from its lower bound, (n_cells, 2)."""
    sampled = FAMILIES[plan.family].sampled
    if sampled is None:
        message = f"{plan.family} is not sampled"
        raise ValueError(message)
    found: NDArray[np.object_] = np.asarray(sampled.totals(entry, sums), dtype=object)
    return found


def drawn_points(
    plan: StatisticPlan, entry: StatisticSpec, totals: NDArray[np.object_], source: random.Random
) -> NDArray[np.object_]:
    """Draw points of the grid, (n_cells, n_draws), by the distribution function of each cell's law."""
    stated, sample = sample_entry(entry), plan.sample
    if not isinstance(stated, SampleEntry) or not isinstance(sample, SamplePlan):
        message = f"{plan.name} is not sampled"
        raise ValueError(message)  # noqa: TRY004 - it says of what it is
    tables = score_tables(entry, stated)
    prior = log_prior_on_points(sample.prior, sample.values()).tolist()
    drawn = []
    for n, total in totals.tolist():
        scores = tables.scores(n, total)
        weights = [math.exp(score / sample.scale + log) for score, log in zip(scores, prior, strict=True)]
        below = [*itertools.accumulate(weights)]
        heights = [source.random() * below[-1] for _ in range(sample.draws)]
        drawn.append([sum(height >= bound for bound in below[:-1]) for height in heights])
    return np.array(drawn, dtype=object)

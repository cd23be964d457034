"""Draws of a sample's exact law with known random numbers, for test vectors: they protect nobody."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.priors.mixtures import log_prior_on_points
from suffice.pipeline.spec.compiled_statistics import scores_of
from suffice.pipeline.terms.declaration.fields import sample_entry
from suffice.pipeline.terms.statistics.drawn_quantile import QuantilePlan
from suffice.pipeline.terms.statistics.sample_plan import SamplePlan

if TYPE_CHECKING:
    import random

    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


def records_and_totals(
    plan: StatisticPlan, entry: StatisticSpec, sums: NDArray[np.object_]
) -> NDArray[np.object_]:
    """Return the records of each cell and their sum of T from its lower bound, (n_cells, 2).

    Of a quantile: the records in each bin, (n_cells, n_bins).
    """
    family = FAMILIES[plan.family]
    sampled = family.sampled_quantile if isinstance(plan.sample, QuantilePlan) else family.sampled
    if sampled is None:
        message = f"{plan.family} is not sampled"
        raise ValueError(message)
    totals: NDArray[np.object_] = np.asarray(sampled.totals(entry, sums), dtype=object)
    return totals


def drawn_points(
    plan: StatisticPlan, entry: StatisticSpec, totals: NDArray[np.object_], source: random.Random
) -> NDArray[np.object_]:
    """Draw points of the grid, or bins, (n_cells, n_draws), by the distribution of each cell's law."""
    stated, sample = sample_entry(entry), plan.sample
    if stated is None or sample is None:
        message = f"{plan.name} is not sampled"
        raise ValueError(message)
    tables = scores_of(entry, stated)
    prior = [0.0] * sample.n_points  # all bins have the same weight
    if isinstance(sample, SamplePlan):
        prior = log_prior_on_points(sample.prior, sample.values()).tolist()
    drawn = []
    for of_cell in totals.tolist():
        scores = tables.scores(*of_cell)
        weights = [math.exp(score / sample.scale + log) for score, log in zip(scores, prior, strict=True)]
        below = [*itertools.accumulate(weights)]
        heights = [source.random() * below[-1] for _ in range(sample.draws)]
        drawn.append([sum(height >= bound for bound in below[:-1]) for height in heights])
    return np.array(drawn, dtype=object)

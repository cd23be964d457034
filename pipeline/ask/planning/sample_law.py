"""The law of a released sample given exact sums, for simulations: it protects nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.priors.on_points import log_prior_on_points
from suffice.pipeline.spec.sampled import tables_of
from suffice.pipeline.terms.declaration.sample_entry import sample_entry
from suffice.pipeline.terms.statistics.sample_plan import TABLE_BITS

if TYPE_CHECKING:
    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats

_ENTRIES = 1 << 22
"""Probabilities of grid points that are in memory together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleLaw:
    """What draws of a posterior sample follow, given exact sums.

    Attributes
    ----------
    prior : str
    points : ndarray of shape (n_points,), float64
        Of the grid, in the parameter's unit.
    log_prior, slopes, offsets : ndarray of shape (n_points,), float64
        Log prior weights, and what a lattice unit of T adds to the log likelihood and a record takes off.
    temperature : float, >= 1
    draws : int, > 0
    """

    prior: str
    points: Floats
    log_prior: Floats
    slopes: Floats
    offsets: Floats
    temperature: float
    draws: int

    @classmethod
    def of(cls, plan: StatisticPlan, entry: StatisticSpec) -> SampleLaw:
        """Return the law of a sampled statistic, its tables in float64."""
        stated, sample = sample_entry(entry), plan.sample
        if stated is None or sample is None:
            message = f"{plan.name} states no sample"
            raise ValueError(message)
        tables = tables_of(entry, stated)
        unit = float(1 << TABLE_BITS)
        values = sample.values()
        return cls(
            prior=sample.prior,
            points=values,
            log_prior=log_prior_on_points(sample.prior, values),
            slopes=np.array([slope / unit for slope in tables.slopes]),
            offsets=np.array([offset / unit for offset in tables.offsets]),
            temperature=float(sample.temperature),
            draws=sample.draws,
        )

    def sample(self, n: Floats, total: Floats, rng: np.random.Generator) -> Floats:
        """Draw the samples of data sets with so many records and lattice units, (n_data_sets, draws)."""
        rows = max(1, _ENTRIES // len(self.points))
        parts = [self._sample(n[at : at + rows], total[at : at + rows], rng) for at in range(0, len(n), rows)]
        return np.concatenate(parts)

    def _sample(self, n: Floats, total: Floats, rng: np.random.Generator) -> Floats:
        log_likelihood = total[:, None] * self.slopes - n[:, None] * self.offsets
        log_weights = self.log_prior + log_likelihood / self.temperature
        below = np.cumsum(np.exp(log_weights - log_weights.max(axis=1, keepdims=True)), axis=1)
        heights = rng.random((len(below), self.draws)) * below[:, -1:]
        drawn = [
            np.searchsorted(row, height, side="right") for row, height in zip(below, heights, strict=True)
        ]
        points: Floats = self.points[np.minimum(drawn, len(self.points) - 1)]
        return points

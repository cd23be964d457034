"""Quantiles against the distribution function of every pair of the quadrature: what merging changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.ask.inference.chosen_priors import n_prior_for, prior_for
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.distribution import coordinate_of
from suffice.pipeline.math.engines.one_sum.nodes import resolve
from suffice.pipeline.math.engines.one_sum.spread_sums import SpreadGammaGamma
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from typing import Any

LEVELS = np.array([0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975])
ENDS, INNER = 0.004, 0.015
"""What merging may change levels by, next to both ends of 95 % intervals and in between."""
ENTRIES = [
    {"family": "exponential", "upper": 100},
    {"family": "weibull", "shape": 1.7, "upper": 60},
    {"family": "laplace", "location": 0, "half_range": 60},
    {"family": "poisson", "upper": 40},
    {"family": "bernoulli"},
]


def released(entry: dict[str, Any]) -> Any:
    """Cells of few records that noise of epsilon .1 hides, and of many that it does not."""
    plan = statistic_plan(entry, epsilon="0.1", public_n=False)
    bits = plan.parameters.lattice_bits
    unit = int(plan.parameters.upper or 1) if bits is None else 1 << bits
    parts = [(18.0, -3.4), (3.0, 20.0), (-5.0, 12.0), (30.0, 300.0), (200.0, 5000.0)]
    return noisy_statistic(plan, np.array([[round(part * unit) for part in pair] for pair in parts]))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: str(entry["family"]))
def test_quantiles_have_their_levels(entry: dict[str, Any]) -> None:
    """Pairs of few and of many records that were merged before they were split had levels .05 away."""
    statistic = released(entry)
    family = FAMILIES[statistic.plan.family]
    assert family.latent is not None
    assert family.noise_aware is not None
    prior, n_prior = prior_for(statistic, None), n_prior_for(statistic, None)
    distribution = family.noise_aware(statistic, prior, n_prior)
    (name,) = distribution.parameters
    quantiles = distribution.quantiles(name, tuple(LEVELS), 1000, np.random.default_rng(7))
    sums, update = family.latent(statistic, prior, n_prior)
    pairs = resolve(sums)
    cell, n, total, weight = pairs.cell, pairs.n, pairs.total, pairs.weight
    if isinstance(sums.marginal, SpreadGammaGamma):
        shares, shifts = sums.marginal.shares(total, n), sums.marginal.shifts
        cell, n = np.tile(cell, len(shifts)), np.tile(n, len(shifts))
        total, weight = (total + shifts[:, None]).ravel(), (shares * weight).ravel()
    given = coordinate_of(update(n, total))
    position = given.line.position(quantiles)[cell]
    levels = np.stack([np.bincount(cell, weight * given.cdf(column)) for column in position.T], axis=1)
    error = np.max(np.abs(levels - LEVELS), axis=0)
    assert np.all(error[[0, -1]] < ENDS)
    assert np.all(error < INNER)

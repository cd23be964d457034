"""A field of three binary variables against sums over every table of counts that it may come from."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import multivariate_t, poisson

from suffice.pipeline.math.engines.field import NoisyField, draw, features, margins
from suffice.pipeline.math.engines.multivariate.hmc import effective_draws

if TYPE_CHECKING:
    from suffice.typing import Counts, Floats

SIZES, PAIRS = (2, 2, 2), [(0, 1), (1, 2), (0, 2)]
SDS = np.array([np.inf, *[2.5] * 3, *[1.0] * 3])
MOST = 22
"""Of each of the eight counts in the reference: a larger one has a chance below 1e-4 in all rows here."""

_einsum: Any = np.einsum
"""Of operands unpacked, a form that has no types."""


def noise_chance(distance: Counts, scale: float) -> Floats:
    q = np.exp(-1.0 / scale)
    chance: Floats = (1.0 - q) / (1.0 + q) * q ** np.abs(distance)
    return chance


def exact_likelihood(y: Counts, rates: Floats, scale: float, most: int) -> Floats:
    """Return p(y | rates), (n,), by a sum over all tables of counts below `most`; rates are (n, 8).

    The counts of c = 0 and those of c = 1 meet in the table of a and b alone: their noise is summed over one
    entry after another.
    """
    ab, bc, ac = (part.reshape(2, 2) for part in np.split(y, 3))
    n = np.arange(most)
    chances = np.asarray(poisson.pmf(n, rates.reshape(-1, 2, 2, 2, 1)))  # draw, a, b, c, count
    both = n[:, None] + n
    # Axes i, j, k, l are the counts of (a, b) = 00, 01, 10, 11.
    halves = [
        _einsum(
            "di,dj,dk,dl,ik,jl,ij,kl->dijkl",
            *(chances[:, a, b, c] for a, b in itertools.product(range(2), range(2))),
            *(noise_chance(bc[b, c] - both, scale) for b in range(2)),
            *(noise_chance(ac[a, c] - both, scale) for a in range(2)),
            optimize=True,
        )
        for c in range(2)
    ]
    met = halves[1]
    for axis, released in enumerate(ab.ravel()):
        met = np.moveaxis(
            np.tensordot(met, noise_chance(released - both, scale), (axis + 1, 0)), -1, axis + 1
        )
    likelihood: Floats = np.sum(halves[0] * met, axis=(1, 2, 3, 4))
    return likelihood


def literal_likelihood(y: Counts, rates: Floats, scale: float, most: int) -> float:
    """Return the same of one row of rates, table by table."""
    tables = np.concatenate([margins(SIZES, pair) for pair in PAIRS])
    every = np.array(list(itertools.product(range(most), repeat=8)))
    chance = np.prod(poisson.pmf(every, rates), axis=1)
    return float(np.sum(chance * np.prod(noise_chance(y - every @ tables.T, scale), axis=1)))


def test_the_reference_is_the_sum_over_all_tables() -> None:
    y = np.array([2, 1, 0, 3, 2, 1, -1, 1, 0, 2, 1, 3])
    rates = np.array([[0.3, 1.2, 0.7, 0.5, 0.9, 0.2, 1.5, 0.4], [1.0, 0.1, 0.6, 0.8, 0.3, 1.1, 0.2, 0.9]])
    for row, value in zip(rates, exact_likelihood(y, rates, 1.3, 4), strict=True):
        assert literal_likelihood(y, row, 1.3, 4) == pytest.approx(value, rel=1e-10)


def discrepancy(
    counts: Counts, scale: float, points: int = 1500, most: int = MOST
) -> tuple[Floats, Floats, Floats]:
    """Return by how much means and spreads differ from exact ones, in exact sd, and 6 standard errors.

    Of alpha, the six effects, and the logit of c given a = b = 1, which no table holds. The reference weighs
    points of a wider law by the exact posterior.
    """
    x, tables = features(SIZES, PAIRS), np.concatenate([margins(SIZES, pair) for pair in PAIRS])
    field = NoisyField(
        features=x, margins=tables, counts=counts.astype(float), scales=np.full(12, scale), sds=SDS
    )
    eta, _ = draw(field, 1000, np.random.default_rng())
    flat = eta.reshape(-1, 7)
    wide = multivariate_t(flat.mean(axis=0), 1.5 * np.cov(flat.T), df=8)
    grid = wide.rvs(points, random_state=np.random.default_rng())
    rates = np.exp(grid @ x.T)
    parts = np.array_split(rates, max(points // 50, 1))
    likelihood = np.concatenate([exact_likelihood(counts, part, scale, most) for part in parts])
    log_prior = np.log(rates.sum(axis=1)) - 0.5 * np.sum((grid / SDS) ** 2, axis=1)
    weight = likelihood * np.exp(log_prior - wide.logpdf(grid))
    weight /= weight.sum()
    logit = x[7] - x[6]
    ours, reference = (np.column_stack([each, each @ logit]) for each in (flat, grid))
    exact = weight @ reference
    exact_sd = np.sqrt(weight @ (reference - exact) ** 2)
    chains = np.concatenate([eta, (eta @ logit)[:, :, None]], axis=2)
    error = 6.0 * np.sqrt(1.0 / effective_draws(chains) + np.sum(weight**2))
    of_mean, of_sd = np.abs(ours.mean(axis=0) - exact) / exact_sd, np.abs(ours.std(axis=0) / exact_sd - 1.0)
    return of_mean, of_sd, error


def released(table: list[int], scale: float, rng: np.random.Generator) -> Counts:
    """Return the three noisy tables of eight counts."""
    tables = np.concatenate([margins(SIZES, pair) for pair in PAIRS]).astype(int)
    q = np.exp(-1.0 / scale)
    noisy: Counts = tables @ np.array(table) + rng.geometric(1.0 - q, 12) - rng.geometric(1.0 - q, 12)
    return noisy


@pytest.mark.audit
def test_three_variables_have_the_exact_posterior() -> None:
    """Of 41 rows; means may be off by .1 sd, spreads by a tenth."""
    y = released([6, 4, 3, 7, 5, 3, 4, 9], 1.0, np.random.default_rng())
    of_mean, of_sd, error = discrepancy(y, 1.0)
    assert (of_mean < 0.1 + error).all()
    assert (of_sd < 0.1 + error).all()


@pytest.mark.audit
def test_three_variables_with_empty_entries_are_beyond_the_approximation() -> None:
    """The control, which a model refuses."""
    y = np.array([0, 0, 0, 9, 0, 0, 4, 5, 0, 1, 4, 6])
    of_mean, _, error = discrepancy(y, 0.5, 6000, 15)
    assert (of_mean - error).max() > 0.1

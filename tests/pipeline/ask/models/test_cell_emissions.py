"""Sums over categories, cells and states are those of single log emissions."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.pipeline.ask.models.chain_tables import CountsOverTime
from suffice.pipeline.ask.models.noise_aware_states import CellEmissions
from suffice.pipeline.ask.models.noisy_counts import log_emission


@pytest.mark.parametrize("scales", [(5.0, 5.0), (2.0, 0.4), (3.0, 0.0), (0.0, 0.0)])
def test_sums_in_all_three_ways(scales: tuple[float, float]) -> None:
    """Two restarts with tables of their own; one cell each is not observed, and one has nothing above 0."""
    rng = np.random.default_rng()
    n_states, shape, sizes = 3, (2, 4), (3, 2)
    tables = []
    for _ in range(2):
        counts = [
            rng.integers(-6 if scale else 0, 30, (*shape, size))
            for scale, size in zip(scales, sizes, strict=True)
        ]
        for each, scale in zip(counts, scales, strict=True):
            each[0, 1] = -2 if scale else 0
        observed = np.ones(shape, dtype=bool)
        observed[1, rng.integers(4)] = False
        tables.append(CountsOverTime(counts=tuple(counts), is_observed=observed, scales=scales))
    theta = np.concatenate([rng.dirichlet(np.ones(size), (2, n_states)) for size in sizes], axis=-1)
    rows = rng.gamma(5.0, 4.0, (2, 8))
    states = rng.integers(n_states, size=(2, 8))
    terms = np.zeros((2, 8, n_states, 5))
    for restart, table in enumerate(tables):
        released = np.concatenate([counts.reshape(8, -1) for counts in table.counts], axis=1)
        for column, scale in enumerate(np.repeat(scales, sizes)):
            expected = rows[restart][:, None] * theta[restart, :, column]
            terms[restart, :, :, column] = log_emission(released[:, column, None], expected, float(scale))
        terms[restart, ~table.is_observed.ravel()] = 0.0
    emissions = CellEmissions.of(tables, n_states)
    assert np.allclose(emissions.by_state(theta, rows), terms.sum(axis=-1), atol=1e-3)
    own = np.take_along_axis(terms, states[..., None, None], axis=2)[:, :, 0]
    assert np.allclose(emissions.by_cell(theta, states, rows), own.sum(axis=-1), atol=1e-3)
    # By category only what depends on theta is right: differences between two of them.
    other = np.concatenate([rng.dirichlet(np.ones(size), (2, n_states)) for size in sizes], axis=-1)
    found = emissions.by_category(other, states, rows) - emissions.by_category(theta, states, rows)
    wanted = np.zeros_like(found)
    for restart, cell in np.ndindex(2, 8):
        if not tables[restart].is_observed.ravel()[cell]:
            continue
        state = states[restart, cell]
        for column, scale in enumerate(np.repeat(scales, sizes)):
            y = emissions.released[restart, cell, column]
            now, then = (rows[restart, cell] * each[restart, state, column] for each in (theta, other))
            wanted[restart, state, column] += log_emission(y, then, scale) - log_emission(y, now, scale)
    assert np.allclose(found, wanted, atol=1e-3)


def test_exact_counts_are_drawn_where_something_was_released() -> None:
    rng = np.random.default_rng()
    table = CountsOverTime(
        counts=(np.array([[[40, -9], [7, 3]]]), np.array([[[30, 5], [1, 2]]])),
        is_observed=np.array([[True, False]]),
        scales=(2.0, 0.0),
    )
    emissions = CellEmissions.of([table] * 500, 1)
    theta = np.tile([0.6, 0.4, 0.5, 0.5], (500, 1, 1))
    drawn = emissions.draw_latent_counts(theta, np.zeros((500, 2), dtype=int), np.full((500, 2), 50.0), rng)
    assert np.all(drawn[:, 1] == 0)
    assert np.all(drawn[:, 0, 2:] == [30, 5])
    # Of -9 the exact count is Poisson(20 q), q = exp(-1/2): within 6 errors.
    assert abs(drawn[:, 0, 1].mean() - 20.0 * np.exp(-0.5)) < 6.0 * np.sqrt(12.2 / 500)
    assert 25 < drawn[:, 0, 0].mean() < 45
